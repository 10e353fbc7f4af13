"""Damped Newton for several independent convex problems in lockstep.

Each round evaluates every unfinished problem once, at its own trial point, so that one pass over the
data serves them all. A problem is a state; `propose` and `receive` move it on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..progress import report

__all__ = ["Evaluation", "Problem", "Rung", "inverse", "ladder"]

_ARMIJO = 1e-4
_NEAR = 0.3  # decrement below which full steps are tried
_FALL = 0.2  # a coordinate with a floor falls to this share of itself at most, in one step


class Evaluation(Protocol):
    """What a solver is told about a point; the Hessian only where it asked for it."""

    @property
    def value(self) -> float: ...  # noqa: D102
    @property
    def gradient(self) -> np.ndarray: ...  # noqa: D102
    @property
    def hessian(self) -> np.ndarray | None: ...  # noqa: D102


Evaluate = Callable[[list[int], list[np.ndarray], bool], Sequence[Evaluation]]
"""evaluate(which, points, hessian): several problems at once, each at its own point."""


@dataclass
class Problem:
    """The state of one minimisation.

    status: "running", "converged", "iteration limit", "singular" or "non-finite". decrement:
    √(gᵀA⁻¹g), the length of the Newton step in the problem's own metric, which no change of units
    touches; tolerances are on it. evaluation: at the last accepted point, one step before `theta` when
    converged, unless the rung asks for a verified one. rate: by how much a step with the present Hessian kept
    would shorten the next. floor: least values of the coordinates, −inf for most, which `theta` must satisfy from
    the start.
    """

    theta: np.ndarray
    floor: np.ndarray | None = None
    status: str = "running"
    n_iter: int = 0
    decrement: float = np.inf
    evaluation: Evaluation | None = None
    metric: np.ndarray | None = None
    step: np.ndarray | None = None
    length: float = 0.0
    quadratic: float = np.inf  # c in λ' ≈ cλ², where it is known
    rate: float = np.inf
    wants_hessian: bool = True

    def trial(self) -> np.ndarray:
        """Where the problem wants to be evaluated."""
        return self.theta if self.step is None else self.theta + self.length * self.step

    def receive(self, at_trial: Evaluation, tol: float, rounding: float, verified: bool = False) -> None:
        """Accept the trial point or shorten the step; look for convergence; prepare the next step."""
        self.n_iter += 1
        if self.evaluation is not None and not self._is_descent(at_trial, rounding):
            self.wants_hessian, self.quadratic = True, np.inf
            return
        if not np.isfinite(at_trial.value):
            self.status = "non-finite"
            return
        fresh = at_trial.hessian is not None
        newton = self.evaluation is not None and self.evaluation.hessian is not None and self.length == 1.0
        before = self.decrement if newton else np.inf
        self.theta, self.evaluation = self.trial(), at_trial
        if at_trial.hessian is not None:
            self.metric = at_trial.hessian
        assert self.metric is not None
        self.step = newton_step(self.metric, at_trial.gradient, self.theta, self._reach())
        if self.step is None:
            self.status = "singular"
            return
        self.decrement = float(np.sqrt(max(-at_trial.gradient @ self.step, 0.0)))
        # far out a full step overshoots: grow from the length that was good last
        self.length = 1.0 if self.decrement <= _NEAR else min(1.0, 4 * (self.length or 0.25))
        self._look_ahead(before, fresh, tol, verified)

    def _reach(self) -> np.ndarray | None:
        """How low coordinates may go in one step.

        What has a floor is what keeps the others in bounds: where it falls by orders of magnitude at once,
        they run away, and the way back is long.
        """
        if self.floor is None:
            return None
        return np.where(self.floor > 0, np.maximum(self.floor, _FALL * self.theta), self.floor)

    @property
    def on_floor(self) -> np.ndarray:
        """Which coordinates the floor holds up."""
        if self.floor is None:
            return np.zeros(len(self.theta), bool)
        return self.theta <= np.where(self.floor > -np.inf, 1 + 1e-9, 1.0) * self.floor

    def _look_ahead(self, before: float, fresh: bool, tol: float, verified: bool) -> None:
        """Finish, or choose what to ask for next, by the decrements that are to be expected.

        In Newton's quadratic phase, λ' ≈ cλ², and with the Hessian kept, λ' ≈ 2cλ₀ λ with λ₀ the
        decrement where it was computed: both are known before they are measured.
        """
        if before < 1 and fresh:
            self.quadratic = max(self.decrement / before**2, 1.0)
        if fresh:
            self.rate = 2 * self.quadratic * self.decrement
        ahead = self.rate * self.decrement
        if verified and self.decrement <= tol:
            self.status = "converged"
        elif not verified and (self.decrement <= tol or ahead <= tol):
            self.theta, self.status = self.trial(), "converged"
        self.wants_hessian = not (fresh and self.rate * ahead <= tol)

    def _is_descent(self, at_trial: Evaluation, rounding: float) -> bool:
        assert self.evaluation is not None
        assert self.step is not None
        slope = float(self.evaluation.gradient @ self.step)
        change = at_trial.value - self.evaluation.value
        if np.isfinite(change) and change <= _ARMIJO * self.length * slope:
            return True
        # where values agree to rounding the slope along the step decides
        if abs(change) <= rounding * max(1.0, abs(self.evaluation.value)):
            if abs(float(at_trial.gradient @ self.step)) <= 0.9 * abs(slope):
                return True
            self.status = "converged" if self.decrement**2 < rounding else "iteration limit"
            return False
        if np.isfinite(change):
            best = -0.5 * slope * self.length / (change / self.length - slope)
            self.length = float(np.clip(best, 0.1 * self.length, 0.5 * self.length))
        else:
            self.length *= 0.1
        if self.length < 1e-12:
            self.status = "iteration limit"
        return False


def newton_step(
    A: np.ndarray, gradient: np.ndarray, theta: np.ndarray, floor: np.ndarray | None = None
) -> np.ndarray | None:
    """−A⁻¹g; what would cross the floor ends on it, and the rest is solved given that. None if A is singular.

    Which coordinates are held is decided anew at every step, so the floor is left when the gradient turns.
    """
    solve = inverse(A)
    if solve is None:
        return None
    step = -solve(gradient)
    if floor is None:
        return step
    free = np.ones(len(gradient), bool)
    while True:
        crossing = free & (theta + step < floor)
        if not crossing.any():
            return step
        step[crossing] = (floor - theta)[crossing]
        free &= ~crossing
        solve = inverse(A[np.ix_(free, free)])
        if solve is None:
            return None
        step[free] = -solve(gradient[free] + A[np.ix_(free, ~free)] @ step[~free])


def inverse(hessian: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """v ↦ A⁻¹v, of a vector or a matrix, by Cholesky of A scaled to a unit diagonal; None if singular to rounding."""
    diagonal = np.diagonal(hessian)
    if not len(diagonal):
        return lambda v: v
    if not np.all((diagonal > 0) & np.isfinite(diagonal)):
        return None
    scale = 1 / np.sqrt(diagonal)
    try:
        factor = cho_factor(hessian * scale * scale[:, None], lower=True, check_finite=False)
    except LinAlgError:
        return None
    # the least pivot is what of a statistic is not a combination of the others
    if np.min(np.diagonal(factor[0])) ** 2 < 10 * len(scale) * np.finfo(float).eps:
        return None
    return lambda v: (scale * cho_solve(factor, (scale * v.T).T, check_finite=False).T).T


class Rung(NamedTuple):
    """A stage of a minimisation: how to evaluate, when to stop, and what change of a value is rounding.

    verified: whether the answer is to be a point that was evaluated, not one step ahead of it.
    """

    evaluate: Evaluate
    tol: float
    rounding: float = 1e-12
    verified: bool = False


def ladder(
    rungs: Sequence[Rung],
    starts: Sequence[np.ndarray],
    floors: Sequence[np.ndarray | None] | None = None,
    *,
    max_iter: int,
) -> list[Problem]:
    """Minimise on growing samples, or with growing precision, each rung from where the one before ended.

    A small sample may have no minimiser where the whole has one: what has not converged on a lower
    rung starts the next one afresh. Iterations are counted over all rungs.
    """
    floors = floors or [None] * len(starts)
    problems = [Problem(start, floor) for start, floor in zip(starts, floors, strict=True)]
    for rung in rungs:
        problems = [
            Problem(p.theta, p.floor, n_iter=p.n_iter, quadratic=p.quadratic)
            if p.status == "converged"
            else Problem(start, p.floor, n_iter=p.n_iter)
            for p, start in zip(problems, starts, strict=True)
        ]
        minimize(rung, problems, max_iter=max_iter)
    return problems


def minimize(rung: Rung, problems: Sequence[Problem], *, max_iter: int) -> None:
    """Move problems on until each has ended, in at most max_iter rounds."""
    for k in range(max_iter):
        report("fitting, Newton steps", k, minor=True)
        running = [j for j, problem in enumerate(problems) if problem.status == "running"]
        if not running:
            break
        at = [problems[j] for j in running]
        results = rung.evaluate(running, [p.trial() for p in at], any(p.wants_hessian for p in at))
        for problem, result in zip(at, results, strict=True):
            problem.receive(result, rung.tol, rung.rounding, rung.verified)
    for problem in problems:
        if problem.status == "running":
            problem.status = "iteration limit"
