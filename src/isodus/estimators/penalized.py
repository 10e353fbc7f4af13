"""What estimators with a penalty share: from options to a path, and from a path to a model of few terms."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .. import wording
from ..arrays import Array, available_memory, to_host
from ..checks import telling_where, warn
from ..consensus import RULES, agreed
from ..criteria import Task
from ..debiasing import one_step
from ..description import term_name
from ..enforcement import enforce
from ..fitting import judge_weights, sources
from ..losses import Loss
from ..losses.pseudo_likelihood import PseudoLikelihoodLoss
from ..model import PolynomialModel
from ..nodewise import TiltedNodes
from ..objective import Evaluation
from ..path import Penalized, Start, at
from ..penalties import SCALINGS, Terms, Weights, multiplier
from ..penalty_path import PenaltyPath
from ..prediction import worse_than_gaussian
from ..preparation import Setting, prepare
from ..progress import Progress, Show, report
from ..refinement import Joint
from ..samples import ArraySamples, generator, part_of
from ..selection import METHODS, choose, settle
from ..solvers.newton import Problem
from ..validation import one_of, positive_integer, true_or_false
from .candidates import Form, candidates, listed, over, within
from .held_out import worse_held_out
from .polynomial import MOST_JOINT_TERMS, PolynomialEstimator, embedded

__all__ = ["PenalizedEstimator"]

_WORSE = 0.1  # in log P a variable
_BEST = "ebic"  # what "auto" stands for; benchmarks/selection.py compares


_OPTIONS = (
    "l1",
    "l1_scaling",
    "l1_weights",
    "l1_path",
    "penalize_self",
    "include",
    "exclude",
    "rule",
    "folds",
    "debias",
)


class PenalizedEstimator(PolynomialEstimator):
    """A `PolynomialEstimator` that takes an L1 penalty, by which most terms become exactly zero."""

    l1: float | str
    l1_scaling: str | None
    l1_weights: Weights | None
    l1_path: Sequence[float] | None
    penalize_self: bool
    include: Terms | None
    exclude: Terms | None
    rule: str
    folds: int
    debias: bool | str
    n_jobs: int | None
    nu_: np.ndarray
    _node_loss: Loss = PseudoLikelihoodLoss()

    @property
    def _has_penalty(self) -> bool:
        return isinstance(self.l1, str) or bool(self.l1)

    def _check_penalty(self) -> None:
        if isinstance(self.l1, str):
            one_of(self.l1, ("auto", *METHODS), "l1", "or a number of at least 0")
        elif isinstance(self.l1, bool) or not isinstance(self.l1, Real) or not 0 <= float(self.l1) < np.inf:
            raise ValueError(
                f"l1 must be a number of at least 0 or one of 'auto', 'ebic', 'cv', 'stars', not {self.l1!r}"
            )
        if self.l1_scaling not in SCALINGS:
            raise ValueError(f"l1_scaling must be None, 'raw' or 'paper', not {self.l1_scaling!r}")
        one_of(self.rule, RULES, "rule")
        true_or_false(self.penalize_self, "penalize_self")
        if not isinstance(self.debias, bool) and self.debias not in ("auto", "split"):
            raise ValueError(f'debias must be True, False, "auto" or "split", not {self.debias!r}')
        if positive_integer(self.folds, "folds") < 2:
            raise ValueError(f"folds must be 2 or more, not {self.folds}")
        if self.l1_path is not None:
            if not isinstance(self.l1, str):
                raise ValueError('l1_path is what l1="auto" chooses from; with a number for l1 leave it out')
            self._check_path(np.asarray(self.l1_path, float))
        self._split = False
        for name in ("l1_", "l1_max_", "kkt_", "path_"):  # of an earlier fit
            if hasattr(self, name):
                delattr(self, name)
        if not self._has_penalty:
            given = [name for name in ("l1_weights", "include", "exclude") if getattr(self, name) is not None]
            given += [name for name in ("penalize_self", "debias") if getattr(self, name) in (True, "split")]
            if given:
                raise ValueError(
                    f"{', '.join(given)} without a penalty: set l1, or give the terms that the model is to have, basis="
                )

    def _check_path(self, path: np.ndarray) -> None:
        if path.ndim != 1 or len(path) < 2 or not np.all(np.isfinite(path) & (path > 0)):
            raise ValueError("l1_path must list two or more positive numbers")
        bad = np.flatnonzero(np.diff(path) >= 0)
        if len(bad):
            k = int(bad[0])
            raise ValueError(
                f"l1_path must decrease, since each point starts from the one before, but {path[k]:g} is followed by "
                f"{path[k + 1]:g}"
            )

    def _learn_sparse(
        self,
        setting: Setting,
        samples: ArraySamples,
        form: Form,
        refit: Callable[[ArraySamples, Setting, Setting], Self],
        tol: float,
        max_iter: int,
    ) -> Self:
        """Fit with the penalty and keep the model of what survives.

        refit(samples, setting, whole): the estimator without a penalty, over the terms of `setting`.
        """
        rest, self._split = (samples, setting), self.debias == "split"
        self._how, self._weighted = setting.how, setting.weight is not None
        if self._split:
            (samples, setting), rest = self._halves(samples, setting)
        setting, task, path, start, found, others = self._searched(setting, samples, form, tol, max_iter)
        basis, weight, low = setting.basis, task.weight, task.low
        theta = agreed(start.nodes.terms, found.theta, len(basis), self.rule, self.consensus)
        refitted = self.debias in (True, "split") or (self.debias == "auto" and path is not None)
        inside = theta != 0
        if refitted and path is not None:  # what was judged; of this a term that enters just at λ may still be zero
            inside &= weight == 0
            inside[path.terms[path.chosen]] = True
        kept = np.flatnonzero(inside | (weight == 0) | (low > -np.inf))
        if not len(kept):
            raise ValueError(
                f"no term is left: every one is penalised, and with l1 = {self.l1_:.3g} none is kept by "
                + ("all of its variables" if self.rule == "and" else "any of its variables")
                + f"; from {self.l1_max_:.3g} on none is by any. Lower l1, or leave penalize_self=False"
            )
        said = self._structure_notes(setting, task, inside, start, path, others)
        spanned = basis.spanned(kept) if np.any(setting.location) else basis.only(kept)
        if refitted:
            samples, setting = rest
            with telling_where(self._after_path()) if path is not None else nullcontext():
                refit(samples, setting._replace(basis=basis.only(kept)), setting._replace(basis=spanned))
            self._say(said)
            self._warn_of_poor_prediction(samples, setting)
            return self
        whole = setting._replace(basis=spanned)
        self._joint_loss, self._error_df = None, None
        sparse = np.zeros(len(whole.basis))
        sparse[whole.basis.positions(whole.basis.padded(basis.factors[kept]))] = theta[kept]
        self._keep(whole, sparse, None, said, lambda: _nearest(whole, sparse, samples))
        self.status_ = self._judge_nodes(setting, found, tol)
        self.effective_samples_ = self._judge_penalised_weights(setting, start, found)
        self.n_iter_ = np.full(len(setting.names), found.n_iter)
        self._warn_of_poor_prediction(samples, setting)
        return self

    def _searched(
        self, setting: Setting, samples: ArraySamples, form: Form, tol: float, max_iter: int
    ) -> tuple[Setting, Task, PenaltyPath | None, Start, Penalized, int]:
        """The solution, the setting with the terms it was looked for among, and how many others were asked only.

        Where there are very many, a few are listed; whether others would enter is seen at every penalty, and the list
        grows until none would.
        """
        whole = setting.basis
        short = listed(self, setting, samples, form, tol, max_iter)
        while True:
            short = short if short is not None and short.pays else None
            part, task = over(self, setting, whole if short is None else short.basis, samples, form, tol, max_iter)
            if short is not None:
                task = within(short, task)
            path, start, found, visited = self._solved(task, samples, part)
            if short is None:
                break
            before = len(short.basis)
            self.kkt_ = np.maximum(found.residual, short.grow(start, visited or [], found, tol))
            if path is not None:
                terms = [whole.positions(part.basis.factors[at]) for at in path.terms]
                self.path_ = replace(path, terms=terms)
            if len(short.basis) == before or visited is None:
                break
        return part, task, path, start, found, 0 if short is None else len(whole) - len(part.basis)

    def _solved(
        self, task: Task, samples: ArraySamples, setting: Setting
    ) -> tuple[PenaltyPath | None, Start, Penalized, list[Penalized] | None]:
        """The solution at `l1`, or at what the data choose along a path, which is then kept.

        And those on the way; None where it was interrupted, and is not to be gone again.
        """
        factor, path = multiplier(1.0, self.l1_scaling, len(setting.names), setting.n), None
        visited: list[Penalized] | None = []
        if isinstance(self.l1, str):
            how = _BEST if self.l1 == "auto" else self.l1
            if how == "cv" and samples.n_rows < 2 * self.folds:
                raise ValueError(f"{samples.n_rows} samples are too few for {self.folds} folds of two or more")
            scaled = None if self.l1_path is None else [value * factor for value in self.l1_path]
            together = setting.how.together(samples.n_rows, self.folds)
            choice = choose(task, samples, setting.n, how, scaled, self.folds, together)
            report("fitting what was chosen", 0)
            self.path_ = replace(choice.path, l1=choice.path.l1 / factor)
            with telling_where(self._after_path()):
                choice = settle(task, choice)
            path, start, found = choice[:3]
            visited = None if choice.interrupted else choice.solutions
            self.path_ = path = replace(path, l1=path.l1 / factor)
        else:
            start = task.start(samples)
            found = at(start, self.l1 * factor)
        self.l1_, self.l1_max_, self.kkt_ = found.l1 / factor, start.l1_max / factor, found.residual
        return path, start, found, visited

    def _after_path(self) -> str:
        """Where an interrupt was that came when a penalty had been chosen."""
        path = self.path_
        l1 = path.l1[path.chosen]
        return "while the model of the chosen penalty was fitted: the path is kept in path_" + (
            f", and l1={l1:.6g}, debias=True fits there without it" if l1 else ""
        )

    def _halves(
        self, samples: ArraySamples, setting: Setting
    ) -> tuple[tuple[ArraySamples, Setting], tuple[ArraySamples, Setting]]:
        """Two halves of the samples: at random, of whole groups, or of a series the first and the second."""
        if samples.n_rows < 4:
            raise ValueError(f"{samples.n_rows} samples cannot be split: one half chooses terms, the other fits them")
        n, rng, how = samples.n_rows, generator(getattr(self, "random_state", None)), setting.how
        if not samples.in_memory:
            if how.lags is not None:
                raise ValueError('debias="split" cuts a series in the middle, which must be in memory for it')
            one, other = next(samples.folds(2))
            return (one, setting._replace(n=one.total)), (other, setting._replace(n=other.total))
        first = np.arange(n) < n // 2 if how.lags is not None else rng.permutation(n) < n // 2
        if how.groups is not None:
            names, codes = np.unique(how.groups, return_inverse=True)
            if len(names) < 4:
                raise ValueError(f"{len(names)} groups cannot be split: each half needs two or more")
            first = (rng.permutation(len(names)) < len(names) // 2)[codes]

        def part(rows: np.ndarray) -> tuple[ArraySamples, Setting]:
            some = samples.take(rows)
            total = float(len(rows)) if some.weight is None else float(to_host(some.weight).sum())
            own = how if how.groups is None else how._replace(groups=how.groups[rows])
            return some, setting._replace(X=some.X, weight=some.weight, n=total, how=own)

        return part(np.flatnonzero(first)), part(np.flatnonzero(~first))

    def debiased(
        self, X: Array, sample_weight: Array | None = None, groups: Any = None, *, progress: Show = None
    ) -> PolynomialModel:
        """Estimates of all candidate terms, those that were not chosen too, with standard errors that are right.

        One step from what was learned towards the estimate without a penalty undoes what the penalty did (see
        `isodus.debiasing`). The errors are not those of a model that was given beforehand: they hold whatever was
        chosen, if the truth has few terms. The model is for reading, `to_frame` and `interactions`: it is not sparse,
        and need not be a density.

        Parameters
        ----------
        X, sample_weight, groups
            As they were given to `fit`.
        progress : bool or callable, optional
            A bar, by default on a terminal after a second, or a function, as in `ISODUS`.
        """
        check_is_fitted(self, "model_")
        if not self._has_penalty:
            raise ValueError("nothing was penalised, so nothing is biased: read model_ itself")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # fit has said them
            own = clone(self)
            setting, _ = candidates(self, prepare(own, X, sample_weight, groups, penalised=True))
        self._check_given_again(setting.weight is not None, setting.how.groups is not None)
        basis, model = setting.basis, self.model_
        units = (setting.location, setting.scale, tuple(setting.names))
        same = units[2] == model.names and all(map(np.allclose, units[:2], (model.location, model.scale)))
        if not same:
            raise ValueError("these are not the samples that were fitted: their columns, or the units of these, differ")
        need = 16 * basis.n_variables * basis.largest**2
        if need > 0.5 * available_memory():
            raise ValueError(
                f"{basis.largest:,} candidate terms at each of {basis.n_variables} variables need {need / 1e9:.3g} GB: "
                "exclude terms, lower max_order, or use debias='split'"
            )
        theta, at = np.zeros(len(basis)), basis.positions(basis.padded(model.basis.factors))
        theta[at[at >= 0]] = model.theta[at >= 0]
        with sources(setting, self.n_jobs) as samples, Progress(progress) as bar:
            options = (samples, theta, setting.n, setting.how, bar)
            new, covariance, how = one_step(basis, self._node_loss, *options)
        spanned = basis.spanned(np.arange(len(basis))) if np.any(setting.location) else basis
        said = f"de-biased estimates of {len(basis):,} candidate terms, of which {np.count_nonzero(theta)} were chosen"
        df = how.error_df(setting.X.shape[0])
        settings = {**self._settings(), "debias": "one step", "notes": [said]} | (
            {} if df is None else {"error_df": df}
        )
        values, known = embedded(spanned, basis, new, covariance)
        return PolynomialModel(spanned, values, *units, setting.n, settings, known)

    def _warn_of_poor_prediction(self, samples: ArraySamples, setting: Setting) -> None:
        """Say so if a Gaussian with all pairs would predict far better: few terms are not what the data ask for."""
        worse, together = worse_than_gaussian(self.model_, samples), setting.how.together(samples.n_rows, 5)
        if worse == np.inf:
            note = "some variables are linear functions of others, and what is learned of them means little"
            self._say([note])
            warn(f"{note}. Leave out columns that repeat others")
        elif worse > _WORSE and (worse := worse_held_out(self, samples, together)) > _WORSE:
            note = (
                "on rows held out the model predicts a variable from the others worse than a Gaussian with all pairs, "
                f"by {worse:.2g} nats per variable"
            )
            self._say([note])
            warn(
                f"{note}: variables depend on one another more strongly than this penalty leaves room for. Lower l1, "
                "set debias=True, or leave out columns that nearly repeat others",
            )

    def _settings(self) -> dict[str, Any]:
        """How the model was learned, in plain values; of the penalty only what was asked for."""
        settings = super()._settings()
        if not self._has_penalty:
            return {name: value for name, value in settings.items() if name not in _OPTIONS}
        unset = [name for name in _OPTIONS if getattr(self, name) is None or getattr(self, name) is False]
        unset += ["debias"] if self.debias == "auto" else []
        unset += [] if self.l1 == "cv" else ["folds"]
        settings = {name: value for name, value in settings.items() if name not in unset}
        return settings | ({"l1_chosen": self.l1_} if isinstance(self.l1, str) else {})

    def _judge_penalised_weights(self, setting: Setting, start: Start, found: Penalized) -> np.ndarray:
        """Effective sample sizes; a status and a warning where weights gathered on too few samples."""
        weighted = None if isinstance(start.nodes, TiltedNodes) else start.nodes.effective(found.theta)
        if weighted is None:
            return np.full(len(setting.names), setting.n)
        for i, (name, ess) in enumerate(zip(setting.names, weighted, strict=True)):
            problem = Problem(found.theta[i][found.theta[i] != 0], status=self.status_[i])
            self.status_[i], message = judge_weights(setting, problem, ess, float(self.nu_[i]))
            if message:
                warn(f"{name}: {message}", ConvergenceWarning)
        return weighted

    def _judge_nodes(self, setting: Setting, found: Penalized, tol: float) -> list[str]:
        bad = np.flatnonzero(~(found.residual <= tol))
        if len(bad):
            worst = bad[np.argmax(found.residual[bad])]
            warn(
                f"{', '.join(setting.names[i] for i in bad[:8])}{' …' if len(bad) > 8 else ''}: the conditions of "
                f"optimality are missed by up to {found.residual[worst]:.1e} (wanted: {tol:.1e}; l1: {found.l1:.3g}). "
                "Raise max_iter or l1",
                ConvergenceWarning,
            )
        return ["iteration limit" if i in set(bad.tolist()) else "converged" for i in range(len(setting.names))]

    def _structure_notes(
        self, setting: Setting, task: Task, inside: np.ndarray, start: Start, path: PenaltyPath | None, others: int
    ) -> list[str]:
        """What was chosen and why; a warning where nothing was. others: penalised terms that are not in the basis."""
        basis, penalised = setting.basis, task.penalised
        many, of = int(np.count_nonzero(inside[penalised])), int(np.count_nonzero(penalised)) + others
        said = [f"{many:,} of {of:,} penalised terms are in the model (l1 = {self.l1_:.3g})"]
        if path is not None:
            said[0] += f": {path.why}"
        if path is not None and self.l1 != "cv" and setting.how.between_rows:
            said.append(
                "the penalty was chosen as if rows were independent: where they are alike within groups, or along a "
                "series, more terms are let in by chance"
            )
            warn(f'{said[-1]}. Take l1="cv", which leaves out whole groups or stretches, or see `debiased` for tests')
        if start.lost.any():
            names = [name for name, lost in zip(setting.names, start.lost, strict=True) if lost]
            said.append(
                f"{wording.listed(names)}: no density of this degree could be fitted even without interactions, so "
                "none was looked for. Transform heavy tails (log, asinh, ranks), lower the degree, or say which values "
                "there are, support="
            )
            warn(said[-1], ConvergenceWarning)
        if np.any(penalised) and not np.any(inside[basis.orders > 1]):
            strongest = ""
            many_ways = np.where(start.nodes.terms >= 0, basis.orders[start.nodes.terms] > 1, False) & start.penalised
            many_ways[start.lost] = False
            if many_ways.any():
                slope = np.where(many_ways, np.abs(start.empty.gradient) / np.where(many_ways, start.weight, 1.0), 0.0)
                i, k = np.unravel_index(np.argmax(slope), slope.shape)
                name = term_name(basis.terms[start.nodes.terms[i, k]], setting.names)
                standard = np.abs(start.empty.gradient[i, k]) / start.unit[i, k] * np.sqrt(setting.n)
                chance = np.sqrt(2 * np.log(max(of, 2)))
                strongest = (
                    f". The nearest to it is {name}, {standard:.1f} standard errors from none; of so many terms one is "
                    f"{chance:.1f} from it by chance. A smaller l1 takes in more"
                )
            said.append(f"no interaction is in the model{strongest}")
            warn(said[-1])
        return said

    def _say(self, said: list[str]) -> None:
        """Notes, before those that there are."""
        self.notes_ = [*said, *self.notes_]
        self.model_ = replace(self.model_, settings={**self.model_.settings, "notes": self.notes_})


def _nearest(setting: Setting, theta: np.ndarray, samples: ArraySamples) -> np.ndarray | None:
    """The nearest parameters with a density, as pseudo-likelihood's curvature measures it; None if there are none."""
    basis = setting.basis
    if len(basis) > MOST_JOINT_TERMS:
        return None
    joint = Joint(basis, PseudoLikelihoodLoss(tol=1e-6), part_of(samples, basis.largest))
    slope = joint(theta).gradient  # what the penalty holds up: θ is to be the minimum

    def evaluate(at: np.ndarray, hessian: bool) -> Evaluation:
        found = joint(at, hessian)
        return replace(found, value=found.value - float(slope @ (at - theta)), gradient=found.gradient - slope)

    return enforce(basis, theta, evaluate(theta, True), setting.n, evaluate)
