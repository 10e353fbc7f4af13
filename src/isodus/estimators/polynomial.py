"""What the estimators share: from estimates to a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from .. import consensus as _consensus
from .. import shared
from ..arrays import one_blas_thread
from ..basis import MonomialBasis
from ..checks import warn
from ..dependence import Dependence
from ..description import term_name
from ..energy import local_parameters
from ..enforcement import enforce
from ..fitting import FAR, judge, judge_joint, left_out_note, move_note, notes, on_floor_note, stray_note
from ..inference import (
    degrees_of_freedom,
    joint_sandwich,
    lags_of,
    left_open,
    node_blocks,
    node_inverses,
    node_sandwich,
)
from ..losses import Loss
from ..model import PolynomialModel
from ..objective import Evaluation, Objective
from ..optimum import Optimum
from ..preparation import Setting
from ..refinement import add_nodes
from ..samples import ArraySamples, part_of
from ..significance import Covariance
from ..solvers.newton import Problem, inverse
from ..suitability import few_rows
from ..wording import listed
from .fitted import Fitted

__all__ = ["PolynomialEstimator", "embedded"]

_MOST_TERMS_JUDGED = 20_000  # of models whose integrability is looked into
MOST_JOINT_TERMS = 4000  # beyond which all variables are not solved for jointly, but one by one
_ALWAYS_TOLD = ("degree", "max_order")  # in a summary, also where they are as by default


class PolynomialEstimator(Fitted):
    """An estimator of a `PolynomialModel`, node by node or for all variables jointly."""

    consensus: str
    integrable: str
    _error_df: float | None = None
    _rows_a_parameter = 5  # of a variable, below which standard errors are too small
    _needs_slopes = False  # of what stands in the place of powers

    @property
    def _has_penalty(self) -> bool:
        return False

    def _learn(
        self,
        setting: Setting,
        samples: ArraySamples,
        loss: Loss,
        problems: Sequence[Problem],
        nu: np.ndarray | None = None,
        whole: Setting | None = None,
    ) -> Self:
        """Judge the node problems, make their estimates one, and keep the model; whole: with more terms, then zero."""
        large, self._joint_loss = whole or setting, None
        basis = setting.basis
        status, effective = judge(setting, problems, nu)
        trusted = [word in ("converged", "weights concentrated") for word in status]
        thetas = [problem.theta for problem in problems]
        values = [np.inf if problem.evaluation is None else problem.evaluation.value for problem in problems]
        unknown = [np.full((len(theta), len(theta)), np.nan) for theta in thetas]
        metrics = [none if p.metric is None else p.metric for p, none in zip(problems, unknown, strict=True)]
        objective = Objective(basis, loss, samples if setting.how.between_rows else part_of(samples, basis.largest))
        free = [~problem.on_floor for problem in problems]
        how, said = self._dependence(setting, objective, thetas, values)
        inverses = node_inverses(metrics, free)
        free_rows = degrees_of_freedom(basis, setting.n)
        nodes = node_sandwich(objective, thetas, values, inverses, free_rows, how)
        if nodes is not None and basis.spaces is not None:
            ends = np.cumsum([0, *map(len, thetas)])
            parts = [(nodes[a:b, a:b], None, A) for a, b, A in zip(ends[:-1], ends[1:], inverses, strict=True)]
            said += self._open_terms(setting, basis, parts)
        theta, share = _consensus.combine(basis, thetas, self.consensus, trusted, nodes)
        held = [k for i, problem in enumerate(problems) for k in basis.local(i).terms[problem.on_floor]]
        said += [on_floor_note(basis.terms[k], setting.names) for k in held]

        def nearest() -> np.ndarray | None:
            """A consensus is the minimum of no objective; those of the nodes, added up, tell what a change costs."""
            if len(basis) > MOST_JOINT_TERMS:
                return None
            at = [Evaluation(0.0, np.zeros(len(t)), A, setting.n) for t, A in zip(thetas, metrics, strict=True)]
            moved = enforce(basis, theta, add_nodes(basis, at), setting.n)
            return None if moved is None else embedded(large.basis, basis, moved)[0]

        covariance: Covariance | None
        if nodes is not None:
            covariance = _consensus.carry(basis, share, nodes)
        elif not how.between_rows:
            covariance = node_blocks(objective, thetas, values, inverses, share, free_rows, how)
        else:
            covariance = None
            said.append(f"no standard errors: of {len(basis):,} terms they are known for independent samples only")
        self._keep(large, *embedded(large.basis, basis, theta, covariance), said, nearest)
        self.status_, self.effective_samples_ = status, effective
        self.n_iter_ = np.array([problem.n_iter for problem in problems])
        return self

    def _dependence(
        self, setting: Setting, objective: Objective, thetas: Sequence[np.ndarray], values: Sequence[float]
    ) -> tuple[Dependence, list[str]]:
        """How samples depend on one another, with the lags that the data ask for, and what is to be said of errors."""
        how, said = setting.how, []
        self._weighted = setting.weight is not None
        largest, rows = objective.basis.largest, objective.samples.n_rows
        if how.lags is not None and how.lags < 0:
            how = how._replace(lags=lags_of(objective, thetas, values))
            said.append(f"standard errors allow for samples that depend on one another up to {how.lags} rows apart")
        many, what = how.independent(rows)
        if many < self._rows_a_parameter * largest:
            said.insert(
                0,
                f"standard errors from {many:,} {what} for {largest} parameters a variable may be too small: "
                f"{self._rows_a_parameter * largest:,} or more are wanted",
            )
            warn(f"{said[0]}. Take fewer terms, or isodus.bootstrap")
        elif few := "" if self._has_penalty else few_rows(rows, largest, objective.basis.degree):
            said.insert(0, few)
            warn(f'{few}. Take l1="auto", which looks for the few that matter, degree=2, or a basis of fewer terms')
        self._how, self._error_df = how, how.error_df(rows)
        return how, said

    def _open_terms(self, setting: Setting, basis: MonomialBasis, parts: Sequence[tuple[Any, Any, Any]]) -> list[str]:
        """What is to be said of terms that the samples leave open, whose errors, in place, are then unknown.

        parts: covariances with the Hessian that they were made of, of all terms, or its inverse, of those of a node.
        """
        if basis.spaces is None or all(space.support.values is None for space in basis.spaces):
            return []
        terms: set[int] = set()
        for i, (covariance, hessian, known) in enumerate(parts):
            solve = inverse(hessian) if known is None else None
            A = solve(np.eye(len(hessian))) if solve is not None else known
            if A is None:
                continue
            at = np.flatnonzero(left_open(A, covariance, setting.n))
            covariance[at, :] = covariance[:, at] = np.nan
            terms.update((at if known is None else basis.local(i).terms[at]).tolist())
        if not terms:
            return []
        shown = ", ".join(term_name(basis.terms[k], setting.names, basis.spaces) for k in sorted(terms)[:6])
        note = (
            f"the samples leave open how large {shown}{', …' if len(terms) > 6 else ''} are: some combinations of "
            "values were never seen"
        )
        warn(f"{note}. Take fewer terms, a penalty (l1), or more samples")
        return [note]

    def _learn_jointly(
        self, setting: Setting, samples: ArraySamples, found: Optimum, whole: Setting | None = None
    ) -> Self:
        """Judge the one problem that all variables share, and keep the model; whole: with more terms, then zero."""
        large, self._joint_loss = whole or setting, found.part.objective.loss
        p, problem, objective = setting.basis.n_variables, found.problem, found.part.objective
        status = judge_joint(problem, objective.basis, setting.names)
        if problem.metric is None and problem.status == "converged":  # solved without one
            problem.metric = found.part(problem.theta).hessian
        if setting.how.between_rows:
            objective = Objective(objective.basis, objective.loss, samples)
        nodes, covariance = range(p), None
        local = local_parameters(objective.basis, problem.theta, nodes)
        how, said = self._dependence(setting, objective, local, [0.0] * p)
        if problem.metric is not None:
            free_rows = degrees_of_freedom(objective.basis, setting.n)
            covariance = joint_sandwich(objective, problem.theta, problem.metric, free_rows, ~problem.on_floor, how)
            said += self._open_terms(setting, objective.basis, [(covariance, problem.metric, None)])
        theta, covariance = embedded(large.basis, objective.basis, problem.theta, covariance)

        def nearest() -> np.ndarray | None:
            evaluate = found.nearby()
            moved = enforce(found.basis, problem.theta, evaluate(problem.theta, True), setting.n, evaluate)
            return None if moved is None else embedded(large.basis, found.basis, moved)[0]

        said += notes(setting, found)
        if left_out := left_out_note(setting, found):
            said.append(left_out)
            warn(f"{left_out}. Use select=False, the default, to estimate all terms")
        self._keep(large, theta, covariance, said, nearest)
        self.status_, self.effective_samples_ = status, np.full(p, setting.n)
        self.n_iter_ = np.full(p, problem.n_iter)
        return self

    def _learn_tied(self, setting: Setting, samples: ArraySamples, loss: Loss, tol: float, max_iter: int) -> Self:
        """Fit parameters that terms share, and keep the model and a table of them."""
        found = shared.solve(setting, samples, loss, tol, max_iter)
        basis, problem, p = setting.basis, found.problem, setting.basis.n_variables
        assert basis.tied is not None
        labels = shared.labels(basis.tied.labels)
        self.status_ = [problem.status] * p
        if problem.status != "converged":
            warn(
                f"parameters that terms share ({', '.join(labels[:6])}): {problem.status}. Raise max_iter, take more "
                "samples, or tie fewer terms",
                ConvergenceWarning,
            )
        self._joint_loss, self._how, self._weighted = None, setting.how, setting.weight is not None
        self._error_df = setting.how.error_df(samples.n_rows)
        first = basis.tied.first()
        said = [
            f"the data do not support {labels[k]}: it is held at its least value"
            for k in np.flatnonzero(problem.on_floor)
        ]
        self._keep(
            setting, basis.tied.spread(problem.theta), shared.spread(basis, found.covariance), said, lambda: None
        )
        self.pilot_, self.effective_samples_ = found.pilot, np.full(p, getattr(problem.evaluation, "ess", setting.n))
        self.n_iter_ = np.full(p, problem.n_iter)
        unit = setting.scale[0] ** -basis.degrees[first].astype(float)
        self.shared_ = pd.DataFrame(
            {
                "theta": problem.theta * unit,
                "stderr": np.sqrt(np.diagonal(found.covariance)) * unit,
                "terms": basis.tied.summed(np.ones(len(basis))).astype(int),
            },
            index=pd.Index(labels, name="parameter"),
        )
        self.shared_covariance_ = found.covariance * unit * unit[:, None]
        return self

    def _keep(
        self,
        setting: Setting,
        theta: np.ndarray,
        covariance: Covariance | None,
        said: list[str],
        nearest: Callable[[], np.ndarray | None],
    ) -> None:
        """Make the model; where it is to be integrable and is not, with the nearest parameters that are, if any."""
        units, said = (setting.location, setting.scale, tuple(setting.names)), [*setting.said, *said]
        plain = setting.basis.spaces is None
        settings = self._settings() | ({} if self._error_df is None else {"error_df": self._error_df})
        model = PolynomialModel(setting.basis, theta, *units, setting.n, settings, covariance)
        verdict = model.integrability() if len(theta) <= _MOST_TERMS_JUDGED else None
        plain = plain and setting.basis.tied is None  # what is shared is not moved term by term
        if plain and self.integrable == "enforce" and verdict is not None and verdict.status != "integrable":
            with one_blas_thread():
                near = nearest()
            if near is not None:
                note, far = move_note(model, near)
                said, model = [*said, note], replace(model, theta=near, moved_from=model.theta)
                verdict = model.integrability()
                if far:
                    warn(
                        f"{note}: the data do not support a density of this form. Moved by more than {FAR:.0f} "
                        f"standard errors: {listed(far)}. Lower the degree or use fewer terms, or keep the estimate by "
                        'integrable="warn"',
                    )
        may_stray = plain and setting.basis.tied is None and model.basis.degree > 2 and len(theta) <= MOST_JOINT_TERMS
        if may_stray and verdict and verdict.status != "not integrable":
            with one_blas_thread():
                note = stray_note(setting, model)
            if note:
                said = [*said, note]
                warn(
                    f"{note}. It can be read and scored near the data. Samples and log Z would describe that region, "
                    "not your data: isodus raises an error for them. Use isodus.match_moments(model, X), a model with "
                    "these terms and a higher power of every variable whose mass is where the data are"
                )
        self.location_, self.scale_ = setting.location, setting.scale
        self.notes_, self.integrability_ = said, verdict
        self.model_ = replace(model, settings=settings | {"notes": said}) if said else model
        if verdict is not None and verdict.status == "not integrable":
            warn(
                "the learned model is no density on the whole space: in standardised variables, "
                f"{verdict.reason}. Its terms can be read near the data, and it can be scored where its "
                "conditional densities exist; it has no samples. Lower the degree, take fewer terms, or more samples",
            )

    def _settings(self) -> dict[str, Any]:
        """How the model was learned, in plain values."""
        plain, words = (
            (bool, int, float, str, type(None)),
            ("basis", "support", "functions", "pilot", "l1_weights", "include", "exclude"),
        )
        left_out = {
            "device",
            "n_jobs",
            "progress",
            "random_state",
            *(("degree", "max_order", "min_degree") if self.basis else ("basis",)),
        }
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in left_out}
        usual = type(self)().get_params(deep=False)
        default = [n for n, v in given.items() if n not in _ALWAYS_TOLD and isinstance(v, plain) and v == usual[n]]
        shown = {
            name: value if isinstance(value, plain) else repr(value) if name in words else np.asarray(value).tolist()
            for name, value in given.items()
        }
        return {"estimator": type(self).__name__, **shown, "default": default}


def embedded(
    whole: MonomialBasis, basis: MonomialBasis, theta: np.ndarray, covariance: Covariance | None = None
) -> tuple[np.ndarray, Covariance | None]:
    """θ and its covariance among the terms of a larger basis, where the others are zero and have no error."""
    if whole is basis:
        return theta, covariance
    at = whole.positions(whole.padded(basis.factors))
    large = np.zeros(len(whole))
    large[at] = theta
    if covariance is None:
        return large, None
    if not isinstance(covariance, np.ndarray):
        places, others = covariance.tocoo(), np.setdiff1d(np.arange(len(whole)), at)
        values = np.append(places.data, np.full(len(others), np.nan))
        rows, columns = (np.append(at[there], others) for there in (places.row, places.col))
        return large, csr_array((values, (rows, columns)), shape=(len(whole), len(whole)))
    spread = np.full((len(whole), len(whole)), np.nan)
    spread[np.ix_(at, at)] = covariance
    return large, spread
