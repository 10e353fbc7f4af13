"""From a pilot to the maximum of the pseudo-likelihood, in as few passes over all samples as it takes.

Tilted by a pilot θ₀ (and ν → 0), the screening objective of node i has at θ₀ the slope ⟨x^l − E x^l⟩ of
pseudo-likelihood, F: a refinement is a step that must lower F, and its fixed point is the minimum of F. One
θ is shared by all variables. With F_s the same on a subsample,

    F̂(θ) = F_s(θ) + (∇F(θ₀) − ∇F_s(θ₀))·(θ − θ₀)

has the slope of F at θ₀ and nearly its curvature everywhere (Jordan, Lee and Yang, 2019, for likelihoods on many
machines): one pass over all samples for ∇F(θ₀), and Newton steps on the subsample lead to its minimum, which is nearer
to that of F by the relative error of the subsample's curvature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .basis import MonomialBasis
from .energy import local_parameters
from .losses import Loss
from .objective import Evaluation, Objective
from .samples import ArraySamples
from .solvers.newton import Problem, Rung, minimize, newton_step

__all__ = ["Joint", "add_nodes", "decrement", "refine"]


def add_nodes(basis: MonomialBasis, evaluations: Sequence[Evaluation]) -> Evaluation:
    """The sum of the objectives of all nodes, as a function of one θ."""
    M = len(basis)
    gradient = np.zeros(M)
    hessian = None if evaluations[0].hessian is None else np.zeros((M, M))
    for i, evaluation in enumerate(evaluations):
        terms = basis.local(i).terms
        gradient[terms] += evaluation.gradient
        if hessian is not None and evaluation.hessian is not None:
            hessian[np.ix_(terms, terms)] += evaluation.hessian
    value = sum(evaluation.value for evaluation in evaluations)
    return Evaluation(value, gradient, hessian, min(evaluation.ess for evaluation in evaluations))


class Joint:
    """The sum of the objectives of all nodes as a function of one θ; it remembers where it was last, and before."""

    def __init__(self, basis: MonomialBasis, loss: Loss, samples: ArraySamples) -> None:
        self.objective, self.samples = Objective(basis, loss, samples), samples
        self._seen: list[tuple[np.ndarray, Evaluation]] = []

    def __call__(self, theta: np.ndarray, hessian: bool = True) -> Evaluation:
        """Value and gradient, and the Hessian where it is asked for."""
        for point, found in self._seen:
            if np.array_equal(point, theta) and not (hessian and found.hessian is None):
                return found
        basis = self.objective.basis
        nodes = range(basis.n_variables)
        found = add_nodes(basis, self.objective.evaluate(nodes, local_parameters(basis, theta, nodes), hessian))
        self._seen = [(theta.copy(), found), *self._seen[:1]]
        return found

    def wider(self, whole: Joint) -> Joint:
        """The same on four times as many samples, or on all."""
        n_rows = 4 * self.samples.n_rows
        if 2 * n_rows > whole.samples.n_rows:
            return whole
        objective = whole.objective
        return Joint(objective.basis, objective.loss, whole.samples.subsample(n_rows, np.random.default_rng(n_rows)))

    def noise(self) -> float:
        """How large a decrement at the truth is, by chance: √(parameters / samples)."""
        return float(np.sqrt(len(self.objective.basis) / self.samples.total))


def decrement(at: Evaluation, theta: np.ndarray, floor: np.ndarray) -> float:
    """√(gᵀA⁻¹g), with what stands on its floor held there; infinite where there is none."""
    step = None if at.hessian is None else newton_step(at.hessian, at.gradient, theta, floor)
    return np.inf if step is None else float(np.sqrt(max(-at.gradient @ step, 0.0)))


def refine(
    whole: Joint, part: Joint, pilot: np.ndarray, floor: np.ndarray, tol: float, steps: int, max_iter: int
) -> Problem:
    """Minimise F from a pilot with at most `steps` passes over all samples, or Newton steps where `part` is all.

    tol: the decrement that is small enough. The answer's n_iter counts the passes; its evaluation and metric are
    those of `part`.
    """
    if part is whole:
        return _newton(whole, pilot, floor, tol, min(max_iter, steps + 1))
    far = decrement(part(pilot), pilot, floor) > 2 * part.noise()
    if far:  # all the way on the subsample; nothing that follows is trusted until all samples have seen it
        near = _newton(part, pilot, floor, 0.3 * part.noise(), max_iter)
        pilot = near.theta if near.status == "converged" else pilot
    theta, best, before, last = pilot, pilot, np.inf, np.inf
    error = 2 * part.noise() / np.sqrt(whole.objective.basis.n_variables)
    for n_iter in range(1, steps + 1):
        here, small = whole(theta, hessian=False), part(theta)
        if not here.value <= before + 1e-12 * abs(before):
            return refine(whole, part.wider(whole), best, floor, tol, steps - n_iter + 1, max_iter)
        length = decrement(replace(here, hessian=small.hessian), theta, floor)
        error = error if np.isinf(last) else 2 * length / last
        if far and length <= tol:
            return Problem(theta, floor, "converged", n_iter, length, here, small.hessian)
        problem = _newton(part, theta, floor, 0.1 * max(tol, error * length), max_iter, here.gradient - small.gradient)
        problem.n_iter, problem.decrement = n_iter, error * length
        if problem.status != "converged" or (not far and problem.decrement <= tol):
            return problem
        theta, best, before, last = problem.theta, theta, here.value, length
    problem.status = "iteration limit"
    return problem


def _newton(
    joint: Joint, start: np.ndarray, floor: np.ndarray, tol: float, max_iter: int, tilt: np.ndarray | None = None
) -> Problem:
    """Minimise joint(θ) + tilt·θ."""

    def evaluate(which: list[int], points: list[np.ndarray], hessian: bool) -> list[Evaluation]:
        at = joint(points[0], hessian)
        if tilt is not None:
            at = replace(at, value=at.value + float(tilt @ points[0]), gradient=at.gradient + tilt)
        return [at]

    problem = Problem(start, floor)
    minimize(Rung(evaluate, tol, verified=True), [problem], max_iter=max_iter)
    return problem
