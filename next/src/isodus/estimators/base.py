"""What all estimators share: checking, wiring, and what is known after a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from .._core.checks import finite_number, positive_integer, seed_of
from .._core.notes import announce
from .._core.progress import Progress, Show
from .._core.threads import one_blas_thread, workers
from ..axes.choose import Scale, Support
from ..data import Clusters, Samples, Weights, as_samples, column_facts, columns_of, opened, over_rows, samples_of
from ..fit.consensus import Consensus
from ..fit.folds import FOLDS, folds
from ..fit.gaussian import precision
from ..fit.held_out import below_reference, held_out, refitted
from ..fit.learn import MOST_COVARIANCE, learn
from ..fit.newton import Fit
from ..fit.objective import Objective
from ..fit.path import ridge_by_folds
from ..fit.penalties import ENOUGH_ROWS, Penalty, WeakRidge
from ..fit.sandwich import sandwich
from ..fit.score_tests import InteractionTest, interaction_tests, wald_tests
from ..fit.series import automatic_lags
from ..losses import Loss, PseudoLikelihoodLoss
from ..model import Fitted, PolynomialModel
from ..model.fitted import Tests
from ..terms import MonomialBasis
from .by_nodes import Outcome, Solved, by_nodes, in_powers
from .columns import MOST_TERMS, Spec, check_columns, check_terms, make_terms
from .findings import check_finite, column_notes, fit_notes, order_notes, status_notes, unresolved_notes
from .sparse import sparse_fit

__all__ = ["PolynomialEstimator"]

Array = np.ndarray
_FIVE_FOLDS = 20  # rows per local parameter from which five folds are enough for that; below, there are ten


@dataclass(eq=False, repr=False)
class PolynomialEstimator(DensityMixin, BaseEstimator):
    """Axes from columns, terms from axes, an objective from terms and samples, and its optimum.

    An estimator is a dataclass of this class: its fields are further arguments, `_loss` is what it minimises.
    """

    _after: ClassVar[tuple[str, ...]] = ()
    """Attributes that some fits have and others have not."""

    degree: int = 4
    _: KW_ONLY
    max_order: int = 2
    min_degree: int = 1
    basis: MonomialBasis | Sequence[Sequence[int | str]] | None = None
    support: Support | Mapping[Any, Support] = "line"
    scale: Scale = "robust"
    penalty: Literal["weak"] | Penalty | None = "weak"
    consensus: Consensus | None = None
    tol: float = 1e-3
    max_iter: int = 100
    n_jobs: int | None = None
    progress: Show = None
    random_state: Any = None

    def _loss(self) -> Loss:
        """What is minimised."""
        return PseudoLikelihoodLoss()

    def _check_axes(self, f: Objective) -> None:
        """An error for axes that the estimator cannot have."""

    @property
    def _by_nodes(self) -> bool:
        """Whether each variable has a problem of its own, without a ridge."""
        return self.consensus is not None

    @property
    def _predicting(self) -> str:
        """What predicts better than this estimator, in words of code."""
        return "PseudoLikelihood(penalty=Ridge(strength='cv'))"

    @property
    def _on_moments(self) -> Literal["pseudo-likelihood", "score matching"] | None:
        """What the moments of a Gaussian are enough for."""
        return "pseudo-likelihood"

    def _nodewise(self, f: Objective, seed: int, say: Callable[[str], None]) -> tuple[Objective, int]:
        """What an L1 penalty is added to, in powers of y, and how often each strength is tilted anew."""
        return in_powers(f, f.loss), 0

    def _solve(self, f: Objective, penalty: Penalty | None, seed: int, say: Callable[[str], None]) -> Solved:
        """The optimum of an objective, without a choice by folds."""
        if self.consensus is not None:
            say("nodes")
            return by_nodes(f, f.loss, self.consensus, self.tol, self.max_iter, "leave out consensus")[0]
        return self._solved(f, learn(f, penalty, self.tol, self.max_iter, seed, progress=say), penalty)

    def _solved(self, f: Objective, fit: Fit, penalty: Penalty | None) -> Solved:
        return Solved(f, fit, partial(refitted, penalty))

    @one_blas_thread()  # blocks of rows are in threads; those of BLAS would only wait for one another
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        weights: Weights = "counts",
        groups: Any = None,
        dependence: Literal["auto"] | int | None = None,
    ) -> Self:
        """Estimate the terms that were asked for.

        Parameters
        ----------
        X : array or frame of shape (n, p), of numpy, pandas, Dask, …, or samples of `open_samples`
            One row per sample, one column per variable.
        y : ignored
        sample_weight : array of shape (n,), optional
            How often each row was seen; for samples of `open_samples` also the name of a column.
        weights : {"counts", "importance"}, default="counts"
            "importance": sample_weight are ratios of densities, any positive numbers of which only the proportions
            matter. Rows then count as Kish's (Σ w)²/Σ w².
        groups : array of shape (n,), optional
            A label per row; for samples of `open_samples` also the name of a column. Rows of one label may depend on
            one another; standard errors, tests and folds count labels instead of rows.
        dependence : "auto" or int, optional
            For rows that are a series in time: over how many rows they depend on one another. "auto" chooses the
            number from the scores.

        Returns
        -------
        self
        """
        penalty = self._checked_penalty()
        samples, spec = self._samples(X, sample_weight, weights, groups)
        clusters = samples.clusters
        lags = _checked_lags(dependence, samples)
        ordered = order_notes(samples) if clusters is None and lags is None else []
        facts = column_facts(samples)
        check_columns(samples, facts, spec, penalty)
        seed = seed_of(self.random_state) % 2**32
        parts = partial(folds, samples.kept.X, clusters and clusters.kept, lags is not None, seed)
        for name in ("strength_", "kkt_", "precision_", "feature_names_in_", *self._after):
            self.__dict__.pop(name, None)
        with Progress(self.progress, "fitting") as bar:
            if penalty is not None and penalty.selects:
                independent = clusters is None and lags in (None, 0)
                outcome = sparse_fit(self, samples, spec, penalty, seed, parts, bar.say, independent)
            else:
                outcome = self._optimum(samples, spec, penalty, seed, parts, bar.say)
        found, self.path_, self.held_out_, also = outcome
        f, fit = found.f, found.fit
        check_finite(f, fit, self._by_nodes)
        lags = automatic_lags(f, fit.tau) if lags == "auto" else lags or 0
        covariance, tests = self._errors(found, penalty, clusters, lags)
        notes = [*ordered, *column_notes(samples, facts, spec, f.axes)]
        known = any(note.kind == fit.status for note in found.notes)
        if not known and (not self._by_nodes or fit.status == "interrupted"):
            notes += status_notes(f, fit, penalty, self._predicting)
        notes += found.notes
        notes += fit_notes(f, fit, penalty, self.held_out_, self.path_, covariance, clusters, self._predicting)

        self.__dict__.update(also)
        self._objective, self._fit, self._minimised = f, fit, found.minimised or f
        self.status_, self.n_iter_ = fit.status, sum(steps for _, _, steps in fit.trace)
        self.ridge_, self.notes_ = fit.ridge.diagonal(), notes
        self.model_ = PolynomialModel(f.terms, fit.tau, samples.names, self._fitted(covariance, tests, penalty))
        P = precision(f.terms, self.model_.theta)
        if P is not None:
            self.precision_ = P
        self.n_features_in_ = len(samples.names)
        if samples.columns is not None:
            self.feature_names_in_ = np.array(samples.columns, dtype=object)
        for note in self.notes_:
            announce(note)
        return self

    def score(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> float:
        """Mean of log P(x_i | rest) per row and variable, in the units of X: higher is better.

        Parameters
        ----------
        X : array or frame of shape (n, p)
        y : ignored
        sample_weight : array of shape (n,), optional
            How often each row was seen.
        """
        total, count = 0.0, 0.0
        for scores, weight in self._scores(X, sample_weight):
            total, count = total + scores[weight > 0] @ weight[weight > 0], count + weight.sum()
        return float(total / count)

    def score_samples(self, X: Any) -> Array:
        """Mean over variables of log P(x_i | rest), (n,); −inf where a value is not on its axis."""
        return np.concatenate([scores for scores, _ in self._scores(X)])

    def _scores(self, X: Any, sample_weight: Any = None) -> Iterator[tuple[Array, Array]]:
        """Scores of parts of the rows, and their weights."""
        check_is_fitted(self, "model_")
        names, f, tau = self.model_.names, self._objective.with_loss(PseudoLikelihoodLoss()), self._fit.tau
        axes, unresolved, n = self._objective.axes, np.zeros(len(names), int), 0

        def of_rows(rows: Array, weight: Array) -> tuple[Array, Array, Array, int]:
            scores, bad = np.full(len(rows), -np.inf), np.zeros(len(names), int)
            inside = np.all([axis.contains(x) for axis, x in zip(axes, rows.T, strict=True)], axis=0)
            if inside.any():
                losses, bad = f.on(as_samples(rows[inside], names=names)).losses(tau)
                base = np.column_stack([axis.log_base(x) for axis, x in zip(axes, rows[inside].T, strict=True)])
                scores[inside] = (base - losses).mean(axis=1)
            return scores, weight, bad, int(inside.sum())

        for scores, weight, bad, count in over_rows(of_rows, X, names, type(self).__name__, sample_weight):
            unresolved, n = unresolved + bad, n + count
            yield scores, weight
        for note in unresolved_notes(names, unresolved, n):
            announce(note)

    def objective(self, X: Any, sample_weight: Any = None, weights: Weights = "counts") -> Objective:
        """The objective on some rows: value, gradient and Hessian at any τ, without penalty.

        Parameters
        ----------
        X : array or frame of shape (n, p)
        sample_weight : array of shape (n,), optional
        weights : {"counts", "importance"}, default="counts"

        Returns
        -------
        Objective
            With the axes and terms of the fit; before a fit, with those that a fit to X would have. With `consensus`,
            its `at_nodes` has the unknowns of each node.
        """
        if not hasattr(self, "model_"):
            return self._objective_of(*self._samples(X, sample_weight, weights))
        names, who = self.model_.names, type(self).__name__
        source = opened(X)
        if source is not None:
            return self._minimised.on(samples_of(source.matched(names, who), sample_weight, weights=weights))
        return self._minimised.on(as_samples(columns_of(X, names, who), sample_weight, names=names, weights=weights))

    # ---------------------------------------------------------------- inside

    def _checked_penalty(self) -> Penalty | None:
        """The penalty; an error for it, tol or max_iter if they mean nothing."""
        finite_number(self.tol, "tol", above=0.0)
        positive_integer(self.max_iter, "max_iter")
        penalty: Penalty | None = None
        if isinstance(self.penalty, Penalty):
            penalty = self.penalty
            penalty.check()
        elif isinstance(self.penalty, str) and self.penalty == "weak":
            penalty = None if self._by_nodes else WeakRidge()
        elif self.penalty is not None:
            raise ValueError(f"penalty must be 'weak', None, a Ridge or an L1, not {self.penalty!r}.")
        if self.consensus not in (None, *get_args(Consensus)):
            raise ValueError(f"consensus must be 'geometric', 'mean', 'precision' or None, not {self.consensus!r}.")
        if self._by_nodes and penalty is not None and not penalty.selects:
            without = "leave out consensus" if self.consensus is not None else "use reference=TiltedReference()"
            raise ValueError(f"Estimates of single variables have no ridge. Use penalty=None, or {without}.")
        return penalty

    def _samples(self, X: Any, sample_weight: Any, weights: Weights, groups: Any = None) -> tuple[Samples, Spec]:
        """The rows, and the axes and terms that are asked for."""
        salt, show = seed_of(self.random_state), self.progress
        samples = samples_of(X, sample_weight, salt=salt, weights=weights, groups=groups, progress=show)
        asked = (self.degree, self.max_order, self.min_degree, self.basis, self.support, self.scale)
        return samples, Spec.of(samples.names, *asked)

    def _objective_of(self, samples: Samples, spec: Spec, most: int = MOST_TERMS) -> Objective:
        f = Objective(self._loss(), make_terms(samples, spec, most=most), samples, workers(self.n_jobs))
        self._check_axes(f)
        return f

    def _optimum(
        self,
        samples: Samples,
        spec: Spec,
        penalty: Penalty | None,
        seed: int,
        parts: Callable[..., Array],
        say: Callable[[str], None],
    ) -> Outcome:
        """The fit; its path, if folds choose the penalty; and its held-out score, if rows are few."""
        f = self._objective_of(samples, spec)
        check_terms(f.terms, samples, penalty)

        def build(rows: Samples) -> Objective:
            return found.f.built(make_terms(rows, spec, f.terms.axes), rows)

        penalty = None if penalty is None else penalty.of(f)
        found = self._solved(f, Fit.none(f.terms), penalty)
        if penalty is not None and penalty.by_folds:
            fit, path = ridge_by_folds(f, build, parts(), self.tol, self.max_iter, say)
            return Outcome(found._replace(fit=fit), path, None if path is None else path.held_out)
        found = self._solve(f, penalty, seed, say)
        check_finite(found.f, found.fit, self._by_nodes)
        rows = f.terms.rows_per_unknown(f.n)
        enough = rows >= ENOUGH_ROWS and not below_reference(found.f, found.fit)
        if enough or found.fit.status in ("singular", "interrupted"):
            return Outcome(found)
        say("scoring folds")
        try:
            count = FOLDS if rows >= _FIVE_FOLDS else 2 * FOLDS
            return Outcome(found, None, held_out(found.f, found.fit, found.refit, build, parts(count=count)))
        except KeyboardInterrupt:  # the fit is there; only its check is not
            return Outcome(found)

    def _errors(
        self, found: Solved, penalty: Penalty | None, clusters: Clusters | None, lags: int
    ) -> tuple[Array | None, Tests]:
        """The covariance of τ and the tests of interactions, where there are any."""
        f, fit = found.f, found.fit
        if penalty is not None and not penalty.has_errors:
            return None, None
        if found.covariance is not None:
            covariance = found.covariance(clusters, lags)
            tests: Tests = partial(_wald_tests, f, fit, covariance, clusters)
        elif len(f.terms) <= MOST_COVARIANCE and fit.at.hessian is not None:
            alone = fit.covariance if clusters is None and not lags else None
            covariance = sandwich(f, fit, clusters, lags) if alone is None else alone
            tests = partial(_tests, f, fit, covariance, clusters, lags, self.progress)
        else:
            return None, None
        selected = penalty is not None and penalty.selects  # the same rows have chosen the terms
        return covariance, None if selected else tests

    def _fitted(self, covariance: Array | None, tests: Tests, penalty: Penalty | None) -> Fitted:
        """What the model knows of its fit."""
        samples = self._objective.samples
        X, weight = samples.kept
        means = np.average(X, axis=0, weights=weight)
        return Fitted(
            estimator=type(self).__name__,
            n=samples.n,
            n_rows=samples.n_rows,
            status=self._fit.status,
            minima=np.array(samples.minima),
            maxima=np.array(samples.maxima),
            means=means,
            sds=np.sqrt(np.average((X - means) ** 2, axis=0, weights=weight)),
            notes=list(self.notes_),
            covariance=covariance,
            penalty="no penalty"
            if penalty is None
            else penalty.in_words(self.path_, getattr(self, "strength_", np.nan)),
            selected=penalty is not None and penalty.selects,
            columns=samples.columns,
            tests=tests,
            held_out=None if self.held_out_ is None else asdict(self.held_out_),
        )


@one_blas_thread()
def _tests(
    f: Objective, fit: Fit, covariance: Array, clusters: Clusters | None, lags: int, progress: Show
) -> list[InteractionTest]:
    """The tests of all interactions; the model asks for them when they are first needed."""
    interactions = [unknowns for variables, unknowns in f.terms.interactions.items() if len(variables) > 1]
    with Progress(progress, "testing interactions", len(interactions)) as bar:
        return interaction_tests(f, fit, covariance, interactions, clusters, bar, lags)


def _wald_tests(f: Objective, fit: Fit, covariance: Array, clusters: Clusters | None) -> list[InteractionTest]:
    interactions = [unknowns for variables, unknowns in f.terms.interactions.items() if len(variables) > 1]
    return wald_tests(fit.tau, covariance, interactions, f.n if clusters is None else clusters.size)


def _checked_lags(dependence: Any, samples: Samples) -> Literal["auto"] | int | None:
    if dependence is None:
        return None
    if samples.clusters is not None:
        raise ValueError("groups and dependence cannot be combined. Give each series a label in groups.")
    if samples.weighted:
        raise ValueError("sample_weight and dependence cannot be combined: a series has each row once.")
    if dependence == "auto":
        return "auto"
    lags = positive_integer(dependence, "dependence", least=0)
    if 4 * lags > samples.n_rows:
        raise ValueError(
            f"dependence is {lags:,} for {samples.n_rows:,} rows, which leaves too few independent ones for standard "
            "errors. Use at most a quarter of the rows, or 'auto'."
        )
    return lags
