"""Fits in which many terms share one parameter: the objectives of all nodes, added up, as a function of few numbers.

θ = Tτ with T of zeros and ones. Of every node only its own terms are looked at, so that neither a gradient nor a
Hessian by all θ is ever formed: lattices of thousands of sites have a handful of τ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, tril

from .basis import MonomialBasis
from .energy import local_parameters
from .inference import MOST_PARAMETERS, neighbours, sandwich
from .losses import Loss
from .losses.score_matching import ScoreMatchingLoss
from .objective import Evaluation, Objective
from .pilots import floors, in_spaces, quadratic_minimum
from .preparation import Setting
from .samples import ArraySamples
from .significance import Covariance
from .solvers.newton import Problem, Rung, minimize

__all__ = ["Shared", "solve", "spread"]


class Shared:
    """The sum of the objectives of all nodes as a function of τ."""

    def __init__(self, basis: MonomialBasis, loss: Loss, samples: ArraySamples) -> None:
        assert basis.tied is not None
        self.objective, self.ties = Objective(basis, loss, samples), basis.tied
        self.nodes = range(basis.n_variables)
        self.places = [self.ties.codes[basis.local(i).terms] for i in self.nodes]

    def local(self, tau: np.ndarray) -> list[np.ndarray]:
        """θ of each node."""
        return local_parameters(self.objective.basis, self.ties.spread(tau), self.nodes)

    def each(self, tau: np.ndarray, hessian: bool = True) -> list[Evaluation]:
        """The objectives of the nodes, by their own parameters."""
        return self.objective.evaluate(self.nodes, self.local(tau), hessian)

    def __call__(self, tau: np.ndarray, hessian: bool = True) -> Evaluation:
        """Value and gradient by τ, and the Hessian where it is asked for."""
        found, G = self.each(tau, hessian), len(tau)
        gradient, matrix = np.zeros(G), np.zeros((G, G)) if hessian else None
        for at, e in zip(self.places, found, strict=True):
            np.add.at(gradient, at, e.gradient)
            if matrix is not None and e.hessian is not None:
                np.add.at(matrix, (at[:, None], at), e.hessian)
        return Evaluation(sum(e.value for e in found), gradient, matrix, min(e.ess for e in found))


class Solution(NamedTuple):
    """τ as a solved problem, and its covariance (G, G)."""

    problem: Problem
    covariance: np.ndarray
    pilot: str


def solve(setting: Setting, samples: ArraySamples, loss: Loss, tol: float, max_iter: int) -> Solution:
    """Minimise over τ, from score matching where there is one and it scores better than no interactions."""
    shared = Shared(setting.basis, loss, samples)
    basis, ties, G = setting.basis, shared.ties, len(shared.ties.labels)
    if isinstance(loss, ScoreMatchingLoss):
        at_zero = shared(np.zeros(G))
        problem = quadratic_minimum(at_zero)
        problem.evaluation = shared(problem.theta)
        return Solution(problem, _covariance(shared, setting, problem), "none")
    unit = setting.scale / setting.width
    low = np.full(G, -np.inf)
    np.maximum.at(low, ties.codes, floors(basis, unit))
    if loss.link == "mean":
        start, name = _start(shared, samples, unit, low)
    else:
        start, name = np.where(low > -np.inf, 100 * low, 0.0), "none"

    def evaluate(which: list[int], points: list[np.ndarray], hessian: bool) -> list[Evaluation]:
        return [shared(points[0], hessian)]

    problem = Problem(start, low)
    minimize(Rung(evaluate, tol, verified=True), [problem], max_iter=max_iter)
    return Solution(problem, _covariance(shared, setting, problem), name)


def _start(shared: Shared, samples: ArraySamples, unit: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, str]:
    basis, ties = shared.objective.basis, shared.ties
    counts = np.maximum(ties.summed(np.ones(len(basis))), 1)
    found = {"independent": np.maximum(ties.summed(in_spaces(basis, unit)) / counts, 2 * low)}
    if basis.spaces is None or all(space.has_slopes for space in basis.spaces):
        matched = Shared(basis, ScoreMatchingLoss(), samples)
        found["score_matching"] = quadratic_minimum(matched(np.zeros(len(low)))).theta
    values = {name: shared(tau, False).value if np.all(tau > low) else np.inf for name, tau in found.items()}
    best = min(values, key=lambda name: values[name])
    return found[best], best


def _covariance(shared: Shared, setting: Setting, problem: Problem) -> np.ndarray:
    """The sandwich of τ; NaN where a parameter is held."""
    values = [0.0] * len(shared.nodes)
    if shared.objective.loss.link != "mean":
        values = [e.value for e in shared.each(problem.theta, False)]
    covariance, free = np.full((len(problem.theta),) * 2, np.nan), ~problem.on_floor
    if problem.metric is None:
        return covariance
    at = np.ix_(free, free)
    found = sandwich(
        shared.objective,
        shared.nodes,
        shared.local(problem.theta),
        values,
        shared.places,
        problem.metric[at],
        max(setting.n - 1, 1.0),
        setting.how,
        free,
    )
    covariance[at] = found
    return covariance


def spread(basis: MonomialBasis, covariance: np.ndarray) -> Covariance:
    """The covariance of all θ = Tτ; of very many terms that of terms with the same or two variables."""
    assert basis.tied is not None
    codes = basis.tied.codes
    if len(basis) <= MOST_PARAMETERS:
        return covariance[np.ix_(codes, codes)]
    rows, columns = neighbours(basis)
    lower = csr_array((covariance[codes[rows], codes[columns]], (rows, columns)), shape=(len(basis),) * 2)
    return csr_array(lower + tril(lower, -1).T)


def labels(names: Sequence[object]) -> list[str]:
    """Labels in words."""
    return [" ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names]
