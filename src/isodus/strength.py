"""How strong the regularizing density of the unrefined estimator is to be: ν from the data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from .basis import MonomialBasis
from .inference import node_variances
from .losses.screening import Screening
from .objective import Evaluation, Objective
from .samples import ArraySamples
from .solvers.newton import Problem, Rung, minimize

__all__ = ["by_reach", "choose_nu"]

_GRID = np.geomspace(3.2, 0.003, 21)  # in standardised variables, strongest first
_WITHIN = 1.15  # of the smallest variance
_REACH = 1.8  # spreads at which a density that was not chosen by the data falls to 1/e


def by_reach(s: int, delta: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """ν, (p,), with which R falls to 1/e at 1.8 spreads, whatever the data; unit: the spread of each variable."""
    return (_REACH * unit) ** -(s + delta)


def choose_nu(
    basis: MonomialBasis,
    samples: ArraySamples,
    delta: np.ndarray,
    centre: np.ndarray,
    unit: np.ndarray,
    starts: Sequence[np.ndarray],
    floors: Sequence[np.ndarray | None],
) -> np.ndarray:
    """Of a grid, the largest ν of each variable whose sandwich trace is within 15 % of the smallest; (p,).

    The plain minimum is a trap: just below it weights gather on few samples, and the estimated variance does not
    see it. What did not converge counts as infinite; where nothing did, `by_reach`.
    """
    nodes = range(basis.n_variables)
    traces = np.full((len(_GRID), len(nodes)), np.inf)
    thetas = list(starts)
    # in units of each variable's spread, whatever units θ has; the padding of factors, -1, picks the last
    squares = [np.append(unit, 1.0)[basis.factors[basis.local(i).terms]].prod(axis=1) ** 2 for i in nodes]
    for g, strength in enumerate(_GRID):
        nu = strength * unit ** -(basis.degree + delta)
        objective = Objective(basis, Screening.of_degree(basis.degree, nu, delta, centre, "log", basis.spaces), samples)
        problems = [Problem(theta, floor) for theta, floor in zip(thetas, floors, strict=True)]
        tol = 0.03 * np.sqrt(max(map(len, thetas)) / samples.total)
        minimize(Rung(partial(_evaluate, objective), tol), problems, max_iter=30)
        for i, problem in enumerate(problems):
            if problem.status == "converged" and problem.metric is not None and problem.evaluation is not None:
                thetas[i] = problem.theta
                value = problem.evaluation.value
                variances = node_variances(objective, i, problem.theta, value, problem.metric, samples.total)
                traces[g, i] = variances @ squares[i] if np.all(np.isfinite(variances)) else np.inf
        if np.all(traces[g] > 3 * traces.min(axis=0)):
            break
    chosen = np.argmax(traces <= _WITHIN * traces.min(axis=0), axis=0)
    found = np.isfinite(traces.min(axis=0))
    return np.where(found, _GRID[chosen] * unit ** -(basis.degree + delta), by_reach(basis.degree, delta, unit))


def _evaluate(objective: Objective, which: list[int], points: list[np.ndarray], hessian: bool) -> list[Evaluation]:
    return objective.evaluate(which, points, hessian)
