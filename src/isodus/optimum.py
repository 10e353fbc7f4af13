"""Pseudo-likelihood's optimum over one θ: over the terms that were asked for, or, by choice, over those that pay.

A Gaussian is the least that a model is. With `Task.select`, whether terms above degree 2 are worth having is asked
three times: before they are fitted, by a score test; after it, by what they gain against what that costs; and where
that is not clear, by cross-validation. Terms that do not pay would be noise, and at samples far out not even a small
one. Where rows depend on one another chance gains more, and costs more: so price and folds are those of groups and
series.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .basis import MonomialBasis
from .dependence import INDEPENDENT, Dependence
from .energy import local_parameters
from .inference import lags_of, slope_covariance
from .losses import Loss
from .losses.score_matching import ScoreMatchingLoss
from .objective import Evaluation
from .pilots import choose, floors, gaussian, in_spaces, quadratic_minimum
from .refinement import Joint, refine
from .samples import ArraySamples, generator, part_of
from .solvers.newton import Problem, inverse

__all__ = ["Optimum", "Task", "optimum", "over"]

_CLEAR = 4.0  # times its price that a gain must be to be believed without cross-validation
_FEW = 5  # samples a term up to which nothing is believed without it
_FOLDS = 3
_STEADY = 15  # samples a term from which none are added to steady the fit


class Task(NamedTuple):
    """What is minimised, how far, and how the unrefined estimator is called."""

    loss: Loss
    isodus: Callable[[MonomialBasis, ArraySamples], np.ndarray] | None
    tol: float
    steps: int
    max_iter: int
    random_state: Any = None
    how: Dependence = INDEPENDENT  # rows of one another
    select: bool = False  # whether terms above degree 2 that do not pay are left out


class Optimum(NamedTuple):
    """A minimum, over the terms of `part.objective.basis`; pilot: what it started from.

    steadied: the objective with the samples that were added to steady it, where there were any.
    """

    problem: Problem
    part: Joint
    pilot: str
    steadied: Joint | None = None

    @property
    def basis(self) -> MonomialBasis:
        """The terms that were estimated."""
        return self.part.objective.basis

    def nearby(self) -> Callable[[np.ndarray, bool], Evaluation]:
        """What was minimised, evaluate(θ, hessian): on the samples of `part`, with the slope of all at the minimum."""
        joint, found = self.steadied or self.part, self.problem
        slope = joint(found.theta).gradient
        tilt = np.zeros_like(slope) if found.evaluation is None else found.evaluation.gradient - slope

        def evaluate(theta: np.ndarray, hessian: bool) -> Evaluation:
            at = joint(theta, hessian)
            value = at.value + float(tilt @ (theta - found.theta))
            return replace(at, value=value, gradient=at.gradient + tilt)

        return evaluate


def optimum(
    basis: MonomialBasis, unit: np.ndarray, samples: ArraySamples, pilot: str | np.ndarray, task: Task
) -> Optimum:
    """The optimum over the terms of the basis, or those that pay; unit: (p,), 1/spread of each variable.

    Where variables do not all live on the line there is no Gaussian to begin from or to compare with: all terms count.
    """
    whole, part = _joints(basis, samples, task)
    if basis.spaces is not None:
        return _solved(whole, part, unit, *_in_spaces(part, unit, pilot, task), task)
    gauss, exact = gaussian(basis, samples)
    if basis.degree == 2 and exact:
        return Optimum(Problem(gauss, status="converged", n_iter=1), part, "gaussian")
    isodus = None if task.isodus is None else partial(task.isodus, basis)
    start = choose(pilot, samples, part, unit, gauss, isodus)
    if not task.select:
        if start.near or samples.total >= _STEADY * len(basis):
            return _solved(whole, part, unit, start.theta, start.name, task)
        return over(basis, unit, samples, task)  # it is steadied there
    clear = not exact or (
        not task.how.between_rows and part(start.theta).value < part(gauss, hessian=False).value - 2 * part.noise() ** 2
    )
    if start.near and clear:
        return _solved(whole, part, unit, start.theta, start.name, task)
    if not exact:  # there is no Gaussian to compare with
        return over(basis, unit, samples, task)
    task = task._replace(how=_known(task.how, whole, gauss))
    beyond = supported(part, gauss, task.how)
    if part is not whole and not beyond.all():
        beyond = supported(whole, gauss, task.how)
    found = over(among(basis, beyond), unit, samples, task)
    if found.basis.degree > 2 and not _pays(found, unit, task):
        found = over(among(basis, np.zeros(basis.n_variables, bool)), unit, samples, task)
    return found


def _known(how: Dependence, whole: Joint, theta: np.ndarray) -> Dependence:
    """With the lags that slopes at θ ask for, where they are left to the data."""
    if how.lags is None or how.lags >= 0:
        return how
    nodes = range(whole.objective.basis.n_variables)
    thetas = local_parameters(whole.objective.basis, theta, nodes)
    return how._replace(lags=lags_of(whole.objective, thetas, [0.0] * len(nodes)))


def _in_spaces(part: Joint, unit: np.ndarray, pilot: str | np.ndarray, task: Task) -> tuple[np.ndarray, str]:
    """Where to begin: at the pilot that was asked for, score matching, or without interactions, by their values."""
    basis, low = part.objective.basis, floors(part.objective.basis, unit)
    found = {"independent": in_spaces(basis, unit)}
    if not isinstance(pilot, str):
        found["model"] = pilot
    elif pilot == "isodus" and task.isodus is not None:
        found["isodus"] = task.isodus(basis, part.samples)
    elif all(space.has_slopes for space in basis.spaces or ()):
        at_zero = Joint(basis, ScoreMatchingLoss(), part.samples)(np.zeros(len(basis)))
        found["score_matching"] = quadratic_minimum(at_zero).theta
    values = {
        name: part(theta, hessian=False).value if np.all(theta > low) else np.inf for name, theta in found.items()
    }
    best = min(values, key=lambda name: values[name])
    return found[best], best


def _joints(basis: MonomialBasis, samples: ArraySamples, task: Task) -> tuple[Joint, Joint]:
    """The objective on all samples and on some; the same where all are few, or depend on one another."""
    some = samples if task.how.between_rows else part_of(samples, basis.largest, task.random_state)
    whole = Joint(basis, task.loss, samples)
    return whole, whole if some is samples else Joint(basis, task.loss, some)


def _solved(whole: Joint, part: Joint, unit: np.ndarray, start: np.ndarray, name: str, task: Task) -> Optimum:
    low = floors(part.objective.basis, unit)
    return Optimum(refine(whole, part, start, low, task.tol, task.steps, task.max_iter), part, name)


def over(basis: MonomialBasis, unit: np.ndarray, samples: ArraySamples, task: Task) -> Optimum:
    """The optimum over these terms, whether they are supported or not; steadied where samples are few."""
    if basis.spaces is not None:
        return optimum(basis, unit, samples, "auto", task)
    gauss, exact = gaussian(basis, samples)
    if basis.degree == 2 and exact:
        part = _joints(basis, samples, task)[1]
        return Optimum(Problem(gauss, status="converged", n_iter=1), part, "gaussian")
    whole, part = _joints(basis, samples, task)
    if samples.total >= _STEADY * len(basis):
        start = choose("auto", samples, part, unit, gauss)
        return _solved(whole, part, unit, start.theta, start.name, task)
    steadied = Joint(basis, task.loss, samples.steadied(generator(task.random_state)))
    start = choose("auto", steadied.samples, steadied, unit, gauss)
    found = _solved(steadied, steadied, unit, start.theta, start.name, task)
    found.problem.metric = whole(found.problem.theta).hessian  # the rows that were added tell nothing of the errors
    return found._replace(part=whole, steadied=steadied)


def supported(joint: Joint, theta: np.ndarray, how: Dependence = INDEPENDENT) -> np.ndarray:
    """Which variables have terms above degree 2 that pay, judged from the Gaussian θ; (p,) of bool.

    Taking terms in gains n gᵀA⁻¹g / 2 on these samples, of which tr(A⁻¹B), less what degree 2 has of it, is
    chance and its price on new ones (Takeuchi's criterion, by a score test: nothing is fitted). First all terms at
    once: where they do not pay, none; then the terms of one variable at a time.
    """
    basis = joint.objective.basis
    at, p = joint(theta), basis.n_variables
    if at.hessian is None:
        return np.ones(p, bool)
    A, B, base = at.hessian, slope_covariance(joint.objective, theta, how), np.flatnonzero(basis.degrees <= 2)

    def balance(terms: np.ndarray) -> float:
        if not len(terms):
            return 0.0
        solve = inverse(A[np.ix_(terms, terms)])
        if solve is None:
            return np.inf
        g = at.gradient[terms]
        return float(at.ess * (g @ solve(g)) - 2 * np.trace(solve(B[np.ix_(terms, terms)])))

    least = balance(base)
    if balance(np.arange(len(basis))) <= least:
        return np.zeros(p, bool)
    pays = [balance(np.union1d(base, basis.local(i).terms)) > least for i in range(p)]
    return np.array(pays) if any(pays) else np.ones(p, bool)


def among(basis: MonomialBasis, variables: np.ndarray) -> MonomialBasis:
    """The terms of degree 1 and 2, and of the higher ones those whose variables are all among `variables`."""
    inside = np.append(variables, True)[basis.factors].all(axis=1)  # the padding, -1, picks the last
    kept = [term for term, keep in zip(basis.terms, inside | (basis.degrees <= 2), strict=True) if keep]
    return MonomialBasis(basis.n_variables, terms=kept).within(basis.spaces)


def _pays(found: Optimum, unit: np.ndarray, task: Task) -> bool:
    """Whether the terms above degree 2 are worth having, judged from the optimum with them.

    They gain n (F(Gaussian) − F(θ)); the price is tr(A⁻¹B), less what the Gaussian terms have of it: for independent
    samples, their number.
    """
    part, problem, basis = found.part, found.problem, found.basis
    samples = part.samples
    gauss, _ = gaussian(basis, samples)
    here = part(problem.theta, hessian=False)
    gain = here.ess * (part(gauss, hessian=False).value - here.value)
    free, metric = np.flatnonzero(~problem.on_floor), problem.metric
    solve = None if metric is None else inverse(metric[np.ix_(free, free)])
    price = np.inf
    if metric is not None and solve is not None and problem.status == "converged":
        B = slope_covariance(part.objective, problem.theta, task.how)[np.ix_(free, free)]
        base = np.flatnonzero(basis.degrees[free] <= 2)
        own = float(len(base))
        if task.how.between_rows and (alone := inverse(metric[np.ix_(free[base], free[base])])) is not None:
            own = float(np.trace(alone(B[np.ix_(base, base)])))
        price = float(np.trace(solve(B))) - own
    if problem.status == "converged" and gain <= 0:
        return False
    many = task.how.error_df(samples.n_rows) or here.ess
    if gain > _CLEAR * price and many > _FEW * len(basis):
        return True
    folds = samples.folds(_FOLDS, task.how.together(samples.n_rows, _FOLDS))
    parts = task._replace(how=INDEPENDENT)  # how rows depend on one another was asked of all of them
    return sum(_held_out_gain(basis, unit, train, rest, parts) for train, rest in folds) > 0


def _held_out_gain(
    basis: MonomialBasis, unit: np.ndarray, train: ArraySamples, rest: ArraySamples, task: Task
) -> float:
    """By how much the terms above degree 2 lower the loss of samples that they were not fitted to, summed."""
    theta = over(basis, unit, train, task._replace(steps=40, max_iter=40)).problem.theta
    unseen = Joint(basis, task.loss, rest)
    with_them, without = unseen(theta, hessian=False), unseen(gaussian(basis, train)[0], hessian=False)
    return without.ess * (without.value - with_them.value)
