"""Fits with an L1 penalty: candidates, a strength, the terms that are left, and what they are estimated to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from .._core.notes import Note, listed
from ..axes import Axis
from ..data import MemorySamples, Samples
from ..fit.gaussian import moments
from ..fit.gram import GramProblem
from ..fit.held_out import HeldOut, below_reference, node_scores, reference_scores
from ..fit.l1 import L1
from ..fit.learn import learn, no_ridge
from ..fit.newton import Fit
from ..fit.objective import At, Objective
from ..fit.penalties import ENOUGH_ROWS
from ..fit.sparse import FAR, SparseProblem
from ..fit.strength import Problem, SparsePath, by_ebic, by_folds, by_stability, default_path
from ..terms import Key, Terms
from ..terms.keys import closed, count_on_lines
from .by_nodes import Outcome, Solved
from .columns import Spec, check_terms
from .crowded import Crowded

if TYPE_CHECKING:
    from .base import PolynomialEstimator

__all__ = ["sparse_fit"]

Array = np.ndarray
_MOST_CANDIDATES = 60_000
_HALVES, _PARTS = 20, 200
_FOLD_TOL = 0.3


class Candidates(NamedTuple):
    """Terms to choose from on some rows: their problem, and the objective that has their axes."""

    problem: Problem
    f: Objective
    crowd: Crowded | None = None
    """Where these are the strongest of more terms than can be listed."""

    def solved(self, strength: float) -> tuple[Self, Any]:
        """The optimum at a strength; terms that should be in it and were not listed are taken in."""
        solution = self.problem.at(strength)
        if self.crowd is None or not isinstance(self.problem, SparseProblem):
            return self, solution
        more = self.crowd.missing(self.problem, solution)
        return self._replace(problem=self.crowd.problem(more)).solved(strength) if more else (self, solution)

    def down_to(self, strength: float) -> Self:
        """With all terms listed that are in the optimum at a strength, and so on a path that ends there."""
        return self if self.crowd is None else self.solved(strength)[0]


def sparse_fit(
    est: PolynomialEstimator,
    samples: Samples,
    spec: Spec,
    l1: L1,
    seed: int,
    parts: Callable[..., Array],
    say: Callable[[str], None],
    independent: bool = True,
) -> Outcome:
    """The terms that the penalty leaves, and their estimates."""
    if l1.strength == "ebic" and not independent:
        raise ValueError(
            "strength='ebic' of L1 needs independent rows, so it cannot be combined with groups or dependence. "
            "Use strength='cv' or 'stars'."
        )
    of_rows = partial(_candidates, est, spec=spec, l1=l1, seed=seed, say=say)
    whole = of_rows(samples)
    check_terms(whole.f.terms, samples, l1)
    unit = l1.multiplier(len(samples.names), samples.n)
    path = None
    if isinstance(l1.strength, str):
        strengths = _strengths(whole, l1, unit)
        whole = whole.down_to(strengths[-1]) if strengths else whole
        path = _chosen(est, whole, of_rows, l1, seed, parts, strengths).in_units(unit)
    strength = path.strength if path is not None else float(l1.strength)
    whole, solution = whole.solved(strength * unit)
    f, values = _left(est, whole, solution, l1)
    _check_squares(f, values, l1.refits)
    solved = est._solved(f, _estimate(whole, f, values, solution), None)
    if l1.refits:
        solved = est._solve(_refitted(f), None, seed, say)
    elif isinstance(whole.problem, SparseProblem):
        solved = solved._replace(minimised=whole.problem.screening)
    solved = solved._replace(notes=[*_notes(whole, solution, l1, strength, path), *solved.notes])
    if path is not None and path.interrupted:
        solved = solved._replace(fit=replace(solved.fit, status="interrupted"))
    scored = _scored(est, whole, solved, of_rows, l1, strength, parts, say)
    return Outcome(solved, path, scored, {"strength_": strength, "kkt_": solution.missed})


def _candidates(
    est: PolynomialEstimator,
    samples: Samples,
    spec: Spec,
    l1: L1,
    seed: int,
    say: Callable[[str], None],
) -> Candidates:
    """The problem of some rows, on moments where it is a Gaussian's."""
    if spec.degree == 2 and spec.keys is None and est._on_moments is not None:
        f = est._objective_of(samples, spec._replace(max_order=1), _MOST_CANDIDATES)
        problem = _gram(f, samples, spec, l1, est._on_moments == "score matching")
        if problem is not None:
            return Candidates(problem, f)
    if spec.keys is None and count_on_lines(len(samples.names), spec.degree, spec.max_order) > _MOST_CANDIDATES:
        crowd = Crowded(est, samples, spec, l1, seed, say)
        return Candidates(crowd.problem(crowd.strongest), crowd.f, crowd)
    f = est._objective_of(samples, spec, _MOST_CANDIDATES)
    g, n_tilts = est._nodewise(f, seed, say)
    weight = l1.weight(f.terms.keys, samples.names)
    _check_rows(samples, max(int(np.sum(weight[places] == 0)) for places, _ in g.terms.local_T))
    return Candidates(SparseProblem(g, weight, l1.units == "noise", n_tilts, est.tol, est.max_iter, say), f)


def _gram(f: Objective, samples: Samples, spec: Spec, l1: L1, scored: bool) -> GramProblem | None:
    """The Gaussian's problem, in t = y with linear terms, and in x over its unit without.

    None where the axes are of another kind, linear terms have a cost, or squares are left out.
    """
    if any(axis.gaussian_moments is None for axis in f.axes):
        return None
    p, centred = len(samples.names), spec.min_degree == 1
    cost = np.ones((p, p))
    np.fill_diagonal(cost, float(l1.penalize_self))
    if l1.penalize_self or l1.weights is not None or l1.include is not None or l1.exclude is not None:
        alone: list[Key] = [(i,) for i in range(p)] if centred else []
        keys = [*alone, *((i, j) for i in range(p) for j in range(i, p))]
        weight = l1.weight(keys, samples.names)
        if weight[: len(alone)].any():
            return None
        for key, value in zip(keys[len(alone) :], weight[len(alone) :].tolist(), strict=True):
            cost[key[0], key[1]] = cost[key[1], key[0]] = value
    if not np.isfinite(np.diagonal(cost)).all():
        return None
    _check_rows(samples, int((cost == 0).sum(axis=1).max()) + centred)
    sums = moments(samples, f.axes, f.n_jobs)
    mean, M = sums[0, 1:], sums[1:, 1:] - np.outer(sums[0, 1:], sums[0, 1:])  # of y
    zero, one = np.array([_origin(axis, centred) for axis in f.axes]).T
    M, mean = M / one / one[:, None], (mean - zero) / one
    M = M if centred else M + np.outer(mean, mean)
    return GramProblem(M, mean if centred else None, cost, samples.n, l1.units == "noise", scored, one)


def _check_rows(samples: Samples, free: int) -> None:
    """An error where a node has more terms without a penalty than there are rows."""
    if free > samples.n:
        raise ValueError(
            f"{samples.n_rows:,} rows are too few for {free:,} terms per variable that are not penalised. "
            "Penalise them (weights and include of L1), or lower the degree."
        )


def _origin(axis: Axis, centred: bool) -> tuple[float, float]:
    """y at t = 0, and the length of t = 1 in y."""
    assert axis.powers is not None
    assert axis.unit_powers is not None
    M = axis.unit_powers() if centred else axis.powers() * [1.0, axis.unit, axis.unit**2]
    return float(M[1, 0]), float(M[1, 1])


def _chosen(
    est: PolynomialEstimator,
    whole: Candidates,
    of_rows: Callable[[Samples], Candidates],
    l1: L1,
    seed: int,
    parts: Callable[..., Array],
    strengths: list[float],
) -> SparsePath:
    """The path, and the strength that the data choose on it."""
    problem, samples = whole.problem, whole.f.samples.kept_samples
    if not strengths:
        return SparsePath(str(l1.strength), (0.0,), (0,), (np.nan,), 0)
    if l1.strength == "ebic":
        path = by_ebic(problem, strengths, l1.rule)
    elif l1.strength == "cv":
        fold = parts(count=l1.folds)
        path = by_folds(
            problem,
            [_fold(est, of_rows, samples, fold == k, l1, strengths[-1]) for k in np.unique(fold)],
            strengths,
            l1.rule,
        )
    else:
        rng, part = np.random.default_rng([seed, 20]), parts(count=_PARTS)  # of rows that belong together
        labels = np.unique(part)
        halves = (np.isin(part, rng.permutation(labels)[: len(labels) // 2]) for _ in range(_HALVES))
        rows = (samples.take(np.flatnonzero(half)) for half in halves)
        path = by_stability(problem, (of_rows(some).problem for some in rows), strengths, l1.rule)
    return path


def _strengths(whole: Candidates, l1: L1, unit: float) -> list[float]:
    """The path: the user's, or from the first strength without a penalised term to the last that lists all terms."""
    if l1.path is not None:
        return [s * unit for s in l1.path]
    least = 0.0 if whole.crowd is None else whole.crowd.least
    return [s for s in default_path(whole.problem, l1.units == "noise") if s >= least]


def _fold(
    est: PolynomialEstimator,
    of_rows: Callable[[Samples], Candidates],
    samples: MemorySamples,
    out: Array,
    l1: L1,
    last: float,
) -> tuple[Problem, Callable[[Any], float]]:
    """The problem of the rows of a fold, and a solution's score on the others."""
    part, rest = of_rows(samples.take(np.flatnonzero(~out))).down_to(last), samples.take(np.flatnonzero(out))

    def score(solution: Any) -> float:
        if not part.problem.joint(solution, l1.rule, est.consensus or "mean"):
            return -np.inf
        f, values = _left(est, part, solution, l1)
        columns = np.flatnonzero([axis.continuous for axis in f.axes])
        scores = node_scores(f.on(rest), values)
        return float(scores[columns if len(columns) else slice(None)].mean())

    return part.problem, score


def _left(est: PolynomialEstimator, at: Candidates, solution: Any, l1: L1) -> tuple[Objective, Array]:
    """The objective of the terms that are left, in powers, and their values."""
    values = at.problem.joint(solution, l1.rule, est.consensus or "mean")
    if isinstance(at.problem, SparseProblem):
        place = {key: k for k, key in enumerate(at.problem.f.terms.keys)}
        terms = at.problem.f.terms.only(np.array(sorted(place[key] for key in values), int))
    else:
        keys = sorted(values, key=lambda key: (len(set(key)), key))
        own_units = any(_origin(axis, True) != (0.0, 1.0) for axis in at.f.axes)
        terms = Terms(at.f.axes, keys, None, in_powers=own_units)
    if not values:
        raise ValueError("The L1 penalty leaves no term. Use a smaller strength, or penalize_self=False.")
    f = Objective(est._loss(), terms, at.f.samples, at.f.n_jobs)
    return f, np.array([values[key] for key in terms.keys])


def _check_squares(f: Objective, values: Array, refits: bool) -> None:
    """An error where a Gaussian's squares are left out, or penalised estimates of them are not positive."""
    squares = {key[0]: value for key, value in zip(f.terms.keys, values.tolist(), strict=True) if key == (key[0],) * 2}
    lost = [
        name
        for i, (axis, name) in enumerate(zip(f.axes, f.samples.names, strict=True))
        if axis.gaussian_moments is not None and not (refits and i in squares) and not squares.get(i, 0.0) > 0
    ]
    if lost:
        raise ValueError(
            f"The L1 penalty leaves columns {listed(lost)} without a positive square, and so without a density. "
            "Use a smaller strength, refit=True, or penalize_self=False."
        )


def _refitted(f: Objective) -> Objective:
    """The same terms without a penalty: in orthonormal functions, where they include every divisor of each."""
    if f.terms.rows_per_unknown(f.n) < 1:
        raise ValueError(
            f"{f.samples.n_rows:,} rows are too few to estimate the {f.terms.m:,} terms per variable that L1 leaves "
            "without a penalty. Use a larger strength of L1, or refit=False."
        )
    if not closed(f.terms.keys, f.terms.axes):
        return f
    return Objective(f.loss, Terms(f.terms.axes, f.terms.keys), f.samples, f.n_jobs)


def _scored(
    est: PolynomialEstimator,
    whole: Candidates,
    solved: Solved,
    of_rows: Callable[[Samples], Candidates],
    l1: L1,
    strength: float,
    parts: Callable[..., Array],
    say: Callable[[str], None],
) -> HeldOut | None:
    """The score of folds, with terms of their own at that strength: where rows are few or a Gaussian is better."""
    f, fit = solved.f, solved.fit
    few = f.terms.rows_per_unknown(f.n) < ENOUGH_ROWS
    if fit.status == "interrupted" or not (few or _below(whole, f, fit)):
        return None
    say("scoring folds")
    fold, found = parts(count=l1.folds), []
    for k in np.unique(fold):
        part = of_rows(f.samples.kept_samples.take(np.flatnonzero(fold != k)))
        rest = f.samples.kept_samples.take(np.flatnonzero(fold == k))
        part, solution = part.solved(strength * l1.multiplier(len(f.axes), part.f.n))
        g, tau = _left(est, part, solution, l1)
        if l1.refits:
            value, g = dict(zip(g.terms.products, g.terms.T @ tau, strict=True)), _refitted(g)
            start = np.array([value[factors] for factors in g.terms.products]) if g.terms.identity else tau
            known = start if np.isfinite(g(start, 0).value) else None
            tau = learn(g, None, _FOLD_TOL, est.max_iter, start=known).tau
        columns, reference, name = reference_scores(g, g.on(rest))
        found.append((float(node_scores(g.on(rest), tau)[columns].mean()), reference, name))
    scores, references, names = zip(*found, strict=True)
    gains = tuple(s - r for s, r in zip(scores, references, strict=True))
    return HeldOut(float(np.mean(scores)), float(np.mean(references)), names[0], gains)


def _below(at: Candidates, f: Objective, fit: Fit) -> bool:
    """Whether the fit scores its own rows below a Gaussian, which gains about p/n nats per variable there by chance."""
    by, problem = len(f.axes) / f.n, at.problem
    if not isinstance(problem, GramProblem):
        return below_reference(f, fit, by)
    losses = problem.gaussian_losses()
    return losses is not None and float(np.mean(fit.at.nodes - losses)) > by


def _estimate(at: Candidates, f: Objective, tau: Array, solution: Any) -> Fit:
    """The penalised estimate as a fit; on moments its losses are pseudo-likelihood's."""
    p, problem = len(f.axes), at.problem
    if isinstance(problem, GramProblem):
        losses = problem.joint_losses(dict(zip(f.terms.keys, tau.tolist(), strict=True)))
        known = At(float(losses.sum()), losses, np.zeros(len(tau)), None, np.zeros(p, int), 0.0)
    else:
        known = f(tau, 0)
    return Fit(tau, known, tau, solution.status, solution.n_iter, no_ridge(f), [("L1", f.n, solution.n_iter)])


def _notes(at: Candidates, solution: Any, l1: L1, strength: float, path: SparsePath | None) -> list[Note]:
    """How many terms are in the model, and what follows."""
    problem, notes = at.problem, []
    kept, of = problem.count(problem.kept(solution, l1.rule)), problem.count(problem.candidates)
    of = of if at.crowd is None else at.crowd.count
    why = "" if path is None else f", chosen by {l1.strength!r}"
    text = f"{kept:,} of {of:,} penalised terms are in the model (L1 of strength {strength:.3g}{why}). " + (
        "Intervals do not account for the choice." if l1.refits else "Penalised estimates have no standard errors."
    )
    numbers = {"kept": kept, "of": of, "strength": strength}
    notes.append(Note("selected", "info" if kept or not of else "warning", (), numbers, text))
    if at.crowd is not None and path is not None and l1.path is None and path.chosen == len(path.strengths) - 1:
        text = (
            f"The path ends at strength {strength:.3g}, below which more terms enter than isodus lists, and "
            f"{l1.strength!r} chose its end. A smaller strength may be better. Give the path of L1, or a strength."
        )
        notes.append(Note("end of the path", "warning", (), {"strength": strength}, text))
    if path is not None and path.interrupted:
        text = "The path was interrupted, and the strength is the best of those before. Fit again for the whole path."
        notes.append(Note("interrupted", "warning", (), {"strengths": len(path.strengths)}, text))
    if isinstance(problem, SparseProblem) and problem.distance > FAR and not l1.refits:
        far = f"is {problem.distance:.2g} standard errors from the fixed point"
        why = far if np.isfinite(problem.distance) else "was not found"
        text = f"The tilted answer {why}. The estimate is pseudo-likelihood's with the same penalty."
        notes.append(Note("pilot on all rows", "info", (), {"distance": problem.distance}, text))
    missed = float(np.max(solution.missed, initial=0.0)) * np.sqrt(problem.n)
    if solution.status != "converged":
        text = (
            f"The penalised fit ended with status {solution.status!r}, and its conditions of optimality are missed by "
            f"{missed:.2g} standard errors. Raise max_iter, or the strength of L1."
        )
        notes.append(Note(solution.status, "warning", (), {"missed": missed}, text))
    return notes
