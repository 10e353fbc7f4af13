"""What all estimators share: checking, wiring, and what is known after a fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from .._core.checks import finite_number, positive_integer, seed_of
from .._core.notes import IsodusWarning, Note, announce, user_level
from .._core.progress import Progress, Show
from .._core.threads import one_blas_thread, workers
from ..axes.choose import Scale, Support
from ..data import Samples, as_samples, checked_weights, columns_of, look
from ..fit.folds import FOLDS, folds
from ..fit.held_out import HeldOut, held_out
from ..fit.learn import MOST_COVARIANCE, learn
from ..fit.newton import Fit
from ..fit.objective import Objective
from ..fit.path import Path, ridge_by_folds
from ..fit.penalties import Ridge, WeakRidge
from ..fit.sandwich import sandwich
from ..fit.score_tests import InteractionTest, interaction_tests
from ..fit.series import automatic_lags
from ..losses import Loss, PseudoLikelihoodLoss
from ..model import Fitted, PolynomialModel
from ..terms import MonomialBasis
from .columns import Spec, check_columns, check_terms, column_notes, make_terms
from .findings import ENOUGH_ROWS, FIVE_FOLDS, check_finite, fit_notes

__all__ = ["PolynomialEstimator"]

Array = np.ndarray


class PolynomialEstimator(DensityMixin, BaseEstimator):
    """Axes from columns, terms from axes, an objective from terms and samples, and its optimum."""

    loss: ClassVar[Callable[[], Loss]]

    degree: int
    max_order: int
    min_degree: int
    basis: MonomialBasis | Sequence[Sequence[int | str]] | None
    support: Support | Mapping[Any, Support]
    scale: Scale
    penalty: Literal["weak"] | Ridge | None
    tol: float
    max_iter: int
    n_jobs: int | None
    progress: Show
    random_state: Any

    @one_blas_thread()  # blocks of rows are in threads; those of BLAS would only wait for one another
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        dependence: Literal["auto"] | int | None = None,
    ) -> Self:
        """Estimate the terms that were asked for.

        Parameters
        ----------
        X : array or frame of shape (n, p)
            One row per sample, one column per variable.
        y : ignored
        sample_weight : array of shape (n,), optional
            How often each row was seen.
        groups : array of shape (n,), optional
            A label per row. Rows of one label may depend on one another; standard errors, tests and folds count
            labels instead of rows.
        dependence : "auto" or int, optional
            For rows that are a series in time: over how many rows they depend on one another. "auto" chooses the
            number from the scores.

        Returns
        -------
        self
        """
        spec, penalty = self._checked()
        samples = as_samples(X, sample_weight, salt=seed_of(self.random_state))
        clusters = _cluster_numbers(groups, sample_weight, len(X) if hasattr(X, "__len__") else samples.n_rows)
        lags = _checked_dependence(dependence, sample_weight, groups, samples.n_rows)
        f, notes = self._prepared(samples, spec, penalty)

        def build(rows: Samples) -> Objective:
            return Objective(f.loss, make_terms(rows, spec, f.axes), rows, f.n_jobs)

        def fold(count: int = FOLDS) -> Array:
            return folds(samples.X, clusters, lags is not None, self._seed(), count)

        fit, self.path_, self.held_out_ = self._optimum(f, penalty, build, fold)
        check_finite(f, fit)
        if lags == "auto":
            lags = automatic_lags(f, fit.tau)
        covariance = tests = None
        if len(f.terms) <= MOST_COVARIANCE and fit.at.hessian is not None:
            covariance = sandwich(f, fit, clusters, lags or 0)
            tests = _Tests(f, fit, covariance, clusters, lags or 0, self.progress)
        self._objective, self._fit = f, fit
        self.status_, self.n_iter_ = fit.status, sum(steps for _, _, steps in fit.trace)
        self.ridge_ = fit.ridge.diagonal()
        self.notes_ = [*notes, *fit_notes(f, fit, penalty, self.held_out_, self.path_, covariance, clusters)]
        self.model_ = self._model(samples, penalty, covariance, tests)
        self.n_features_in_ = len(samples.names)
        if samples.columns is not None:
            self.feature_names_in_ = np.array(samples.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        for note in self.notes_:
            announce(note)
        return self

    def _prepared(
        self, samples: Samples, spec: Spec, penalty: WeakRidge | Ridge | None
    ) -> tuple[Objective, list[Note]]:
        """The objective, and notes about columns; an error where the rows cannot tell the terms apart."""
        facts, by_user = look(samples), _decides_copies(penalty)
        check_columns(samples, facts, spec, by_user)
        terms = make_terms(samples, spec)
        check_terms(terms, samples, by_user)
        f = Objective(type(self).loss(), terms, samples, workers(self.n_jobs))
        if penalty is None and f.n * terms.copies < terms.m:
            raise ValueError(
                f"{samples.n_rows:,} rows are too few for {terms.m:,} terms per variable without a penalty. "
                "Use penalty='weak', a lower degree, or more rows."
            )
        return f, column_notes(samples, facts, terms.axes)

    def _model(
        self, samples: Samples, penalty: WeakRidge | Ridge | None, covariance: Array | None, tests: _Tests | None
    ) -> PolynomialModel:
        """The fitted model, with what is known of its fit."""
        f, fit = self._objective, self._fit
        means, sds = _moments(*samples.kept)
        known = Fitted(
            estimator=type(self).__name__,
            n=f.n,
            n_rows=samples.n_rows,
            status=fit.status,
            minima=np.array(samples.minima),
            maxima=np.array(samples.maxima),
            means=means,
            sds=sds,
            notes=list(self.notes_),
            covariance=covariance,
            penalty=_in_words(penalty, self.path_),
            columns=samples.columns,
            tests=tests,
            held_out=None if self.held_out_ is None else asdict(self.held_out_),
        )
        return PolynomialModel(f.terms, fit.tau, samples.names, known)

    def score(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> float:
        """Mean of log P(x_i | rest) per row and variable, in the units of X: higher is better.

        Parameters
        ----------
        X : array or frame of shape (n, p)
        y : ignored
        sample_weight : array of shape (n,), optional
            How often each row was seen.
        """
        values = self.score_samples(X)
        if sample_weight is None:
            return float(np.mean(values))
        weight = checked_weights(sample_weight, len(values))
        return float(np.average(values[weight > 0], weights=weight[weight > 0]))

    def score_samples(self, X: Any) -> Array:
        """Mean over variables of log P(x_i | rest), (n,); −inf where a value is not on its axis."""
        check_is_fitted(self, "model_")
        X = columns_of(X, self.model_.names, type(self).__name__)
        axes, out = self._objective.axes, np.full(len(X), -np.inf)
        inside = np.all([axis.contains(x) for axis, x in zip(axes, X.T, strict=True)], axis=0)
        if inside.any():
            f = self._objective.with_loss(PseudoLikelihoodLoss()).on(as_samples(X[inside], names=self.model_.names))
            losses, unresolved = f.losses(self._fit.tau)
            base = np.column_stack([axis.log_base(x) for axis, x in zip(axes, X[inside].T, strict=True)])
            out[inside] = (base - losses).mean(axis=1)
            _warn_unresolved(self.model_.names, unresolved)
        return out

    def objective(self, X: Any, sample_weight: Any = None) -> Objective:
        """The objective on some rows: value, gradient and Hessian at any τ, without penalty.

        Parameters
        ----------
        X : array or frame of shape (n, p)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        Objective
            With the axes and terms of the fit; before a fit, with those that a fit to X would have.
        """
        if not hasattr(self, "model_"):
            spec, _ = self._checked()
            samples = as_samples(X, sample_weight, salt=seed_of(self.random_state))
            return Objective(type(self).loss(), make_terms(samples, spec), samples, workers(self.n_jobs))
        values = columns_of(X, self.model_.names, type(self).__name__)
        return self._objective.on(as_samples(values, sample_weight, names=self.model_.names))

    # ---------------------------------------------------------------- inside

    def _checked(self) -> tuple[Spec, WeakRidge | Ridge | None]:
        """Arguments that mean something."""
        finite_number(self.tol, "tol", above=0.0)
        positive_integer(self.max_iter, "max_iter")
        spec = Spec(self.degree, self.max_order, self.min_degree, self.basis, self.support, self.scale).checked()
        penalty = self.penalty
        if penalty is None:
            return spec, None
        if isinstance(penalty, Ridge):
            penalty.check()
            return spec, penalty
        if penalty != "weak":
            raise ValueError(f"penalty must be 'weak', None or a Ridge, not {penalty!r}.")
        return spec, WeakRidge()

    def _optimum(
        self,
        f: Objective,
        penalty: WeakRidge | Ridge | None,
        build: Callable[[Samples], Objective],
        fold: Callable[..., Array],
    ) -> tuple[Fit, Path | None, HeldOut | None]:
        """The fit; its path, if folds choose the ridge; and its held-out score, if rows are few."""
        with Progress(self.progress, "fitting") as bar:

            def say(what: str) -> None:
                bar.label = what
                bar(f.passes)

            if isinstance(penalty, Ridge) and penalty.strength == "cv":
                fit, path = ridge_by_folds(f, build, fold(), self.tol, self.max_iter, say)
                gains = tuple(s - r for s, r in zip(path.best.scores, path.reference_scores, strict=True))
                return fit, path, HeldOut(path.best.score, path.reference_score, path.reference, gains)
            fit = learn(f, penalty, self.tol, self.max_iter, self._seed(), progress=say)
            few = f.n * f.terms.copies < ENOUGH_ROWS * f.terms.m
            if not few or fit.status in ("singular", "interrupted"):
                return fit, None, None
            say("scoring folds")
            count = FOLDS if f.n * f.terms.copies >= FIVE_FOLDS * f.terms.m else 2 * FOLDS
            try:
                return fit, None, held_out(f, fit, penalty, build, fold(count))
            except KeyboardInterrupt:
                fit.status = "interrupted"
                return fit, None, None

    def _seed(self) -> int:
        return seed_of(self.random_state) % 2**32


class _Tests:
    """The tests of all interactions, computed when they are first asked for."""

    def __init__(
        self, f: Objective, fit: Fit, covariance: Array, clusters: Array | None, lags: int, progress: Show
    ) -> None:
        self.f, self.fit, self.covariance, self.progress = f, fit, covariance, progress
        self.clusters, self.lags = clusters, lags

    @one_blas_thread()
    def __call__(self) -> list[InteractionTest]:
        blocks = [unknowns for variables, unknowns in self.f.terms.interactions.items() if len(variables) > 1]
        with Progress(self.progress, "testing interactions", len(blocks)) as bar:
            return interaction_tests(self.f, self.fit, self.covariance, blocks, self.clusters, bar, self.lags)


def _moments(X: Array, weight: Array) -> tuple[Array, Array]:
    """Means and standard deviations of columns."""
    share = weight / weight.sum()
    means = share @ X
    return means, np.sqrt(share @ (X - means) ** 2)


def _cluster_numbers(groups: Any, sample_weight: Any, n: int) -> Array | None:
    """A number for each row that has a weight."""
    if groups is None:
        return None
    labels = pd.Series(np.asarray(groups).ravel() if not isinstance(groups, pd.Series) else groups)
    if len(labels) != n:
        raise ValueError(f"groups has {len(labels):,} labels, but X has {n:,} rows. Pass one label per row.")
    if labels.isna().any():
        raise ValueError(f"groups has no label in row {int(np.argmax(labels.isna()))}. Pass one label per row.")
    if sample_weight is not None:
        labels = labels[np.asarray(sample_weight) > 0]
    numbers = pd.factorize(labels)[0]
    if numbers.max(initial=0) == 0:
        raise ValueError("groups has one label only, so standard errors cannot be computed. Leave groups out.")
    return numbers


def _checked_dependence(dependence: Any, sample_weight: Any, groups: Any, n_rows: int) -> Literal["auto"] | int | None:
    if dependence is None:
        return None
    if groups is not None:
        raise ValueError("groups and dependence cannot be combined. Give each series a label in groups.")
    if sample_weight is not None:
        raise ValueError("sample_weight and dependence cannot be combined: a series has each row once.")
    if dependence == "auto":
        return "auto"
    lags = positive_integer(dependence, "dependence", least=0)
    if 4 * lags > n_rows:
        raise ValueError(
            f"dependence is {lags:,} for {n_rows:,} rows, which leaves too few independent ones for standard errors. "
            "Use at most a quarter of the rows, or 'auto'."
        )
    return lags


def _decides_copies(penalty: WeakRidge | Ridge | None) -> bool:
    """Whether a user's ridge decides between columns that the data cannot tell apart."""
    return isinstance(penalty, Ridge) and (penalty.strength == "cv" or penalty.free == "own")


def _in_words(penalty: WeakRidge | Ridge | None, path: Path | None) -> str:
    if penalty is None:
        return "no penalty"
    if path is not None:
        best = path.best
        return (
            "the Gaussian (five folds)"
            if best.free == "Gaussian"
            else (f"ridge of strength {best.strength:g} by five folds, free: {best.free} terms")
        )
    if isinstance(penalty, Ridge):
        return f"ridge of strength {float(penalty.strength):g}, free: {penalty.free} terms"
    return "weak ridge"


def _warn_unresolved(names: Sequence[str], unresolved: Array) -> None:
    bad = [f"{name!r} ({int(count):,} rows)" for name, count in zip(names, unresolved, strict=True) if count]
    if bad:
        warnings.warn(
            f"Integrals of columns {', '.join(bad)} are not resolved, so these scores are not reliable. "
            "The columns are nearly determined by others; drop near-copies or use Ridge('cv').",
            IsodusWarning,
            stacklevel=user_level(),
        )
