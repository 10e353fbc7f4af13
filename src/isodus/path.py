"""Penalised fits of all nodes: a working set that grows until no slope asks for more, and a path of penalties.

    F_i(θ) + λ Σ_k ω_ik |θ_k|,    ω_ik = weight of the term × noise of its slope,

with the noise √⟨slope²⟩ at the model without any penalised term. Over n samples a slope that is zero in truth is of
size noise/√n, so that λ√n is how many standard errors a term must show to be taken in, whatever its degree. The model
is empty from λ_max on, which is the first point of a path; each of the next starts from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .nodewise import Nodes, Problem, TiltedNodes, packed
from .solvers.proximal import Solved, residual

__all__ = ["LOOSE", "Penalized", "Start", "at", "begin", "follow", "over", "settled"]

_ROUNDS = 60
_MORE = 12  # places that a node's working set may grow by at once, or by as many as it has
LOOSE = 3e-3  # of λ: how far from optimal what is on the way may be
_TILTS, _NEAR = 4, 0.05  # most tilts of the density at one λ; the residual, over λ, at which one is enough
_ROUNDING = 1e-10  # relative change of a value that says nothing
_LOST = 1e-2  # residual of a model without penalised terms from which on no slope says anything
_CELLS = 2e7  # of the Hessians of nodes that are solved at once


@dataclass(frozen=True)
class Penalized:
    """All nodes at one λ: theta (p, K), gradient (p, K), value (p,), residual (p,), all of the problem with λ.

    residual: by how much the conditions of optimality are missed, in units of each slope's noise, as λ is. spread:
    (p, K), from `over`, the diagonal of the inverse Hessian over the places that are not zero, and 0 elsewhere.
    """

    l1: float
    theta: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    residual: np.ndarray
    n_iter: int
    spread: np.ndarray


@dataclass(frozen=True)
class Start:
    """The model without penalised terms, and what a penalty needs to know of it.

    weight: (p, K), ω of each place, 0 for terms that are not penalised, infinite for those that are left out;
    low: (p, K), least values; unit: (p, K), the noise of each slope. Nodes that could not be fitted have no slopes
    there, and are left as they are along a path.
    """

    nodes: Nodes
    weight: np.ndarray
    low: np.ndarray
    unit: np.ndarray
    empty: Penalized
    tol: float
    max_iter: int

    @cached_property
    def penalised(self) -> np.ndarray:
        """Which places have a penalty, (p, K) of bool."""
        return (self.weight > 0) & (self.weight < np.inf)

    @cached_property
    def held(self) -> np.ndarray:
        """Which places have a least value, (p, K) of bool."""
        return self.low > -np.inf

    @cached_property
    def lost(self) -> np.ndarray:
        """Which nodes could not be fitted, (p,) of bool."""
        return ~(self.empty.residual <= _LOST)

    @cached_property
    def l1_max(self) -> float:
        """The least λ at which no penalised term is in the model."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = np.abs(self.empty.gradient) / self.weight
        return float(np.max(slopes, where=self.penalised, initial=0.0))


def begin(
    nodes: Nodes,
    theta: np.ndarray,
    weight: np.ndarray,
    low: np.ndarray,
    own: np.ndarray | None = None,
    *,
    raw: bool = False,
    tol: float,
    max_iter: int,
) -> Start:
    """Fit the terms that are not penalised, from θ, (p, K), and find the noise of all slopes.

    weight, low: (p, K), weight 0 where there is no penalty, infinite where there is no term; own: (p, K), the terms of
    one variable, with which noise is found even if they are penalised; raw: whether weights are costs themselves, not
    in units of noise.
    """
    unit, held = np.ones_like(theta), low > -np.inf
    likelihood = nodes.exact if isinstance(nodes, TiltedNodes) else nodes

    def fitted(free: np.ndarray) -> Penalized:
        cost = np.where(free, 0.0, np.inf)
        return _solve(likelihood, np.inf, np.where(free, theta, 0.0), cost, low, unit, free, tol, max_iter)

    free = (weight == 0) | held
    first = fitted(free)
    wider = free if own is None else free | (own & (weight < np.inf))
    alone = first if np.array_equal(free, wider) else fitted(wider)
    unit = likelihood.noise(alone.theta, alone.value, wider)
    weight = weight if raw else np.where(np.isfinite(weight) & (weight > 0), weight * unit, weight)
    start = Start(nodes, weight, low, unit, first, tol, max_iter)
    first.gradient[start.lost] = 0.0
    return start


def over(nodes: Nodes, before: Penalized, inside: np.ndarray, low: np.ndarray, tol: float, max_iter: int) -> Penalized:
    """The minimum over some places, (p, K) of bool, without a penalty; slopes by the others are not looked at.

    before: such a minimum over other places, or where to start, with infinite residuals; what has not changed is kept.
    """
    theta, value, spread = np.where(inside, before.theta, 0.0), before.value.copy(), before.spread.copy()
    missed = np.where(((before.theta != 0) != inside).any(axis=1), np.inf, before.residual)
    cost, unit = np.zeros_like(theta), np.ones_like(theta)
    for turn in range(2 if isinstance(nodes, TiltedNodes) else 1):
        changed = np.flatnonzero(missed > tol)
        if not len(changed):
            break
        if isinstance(nodes, TiltedNodes):
            value = nodes.tilt(theta)
        last, earlier = theta.copy(), value.copy()
        for some in _groups(inside, changed):
            places, found = _on(nodes, some, inside, theta, cost, low, unit, tol, max_iter)
            theta[some] = _spread_out(places, found.theta, theta.shape[1])
            spread[some] = _spread_out(places, _variances(found), theta.shape[1])
            value[some], missed[some] = found.value, found.residual
        if isinstance(nodes, TiltedNodes):
            value = nodes.tilt(theta)
            worse = changed[~(value[changed] <= earlier[changed] + _ROUNDING * np.abs(earlier[changed]))]
            for some in _groups(inside, worse):  # where the step was too long, without a detour
                places, found = _on(nodes.exact, some, inside, last, cost, low, unit, tol, max_iter)
                theta[some] = _spread_out(places, found.theta, theta.shape[1])
                spread[some] = _spread_out(places, _variances(found), theta.shape[1])
            value = nodes.tilt(theta)
            # a step leaves an error of second order
            missed[changed] = np.where(turn, 0.0, np.abs(theta - last).max(axis=1)[changed] ** 2)
    return replace(before, theta=theta, value=value, spread=spread, residual=missed)


def follow(
    start: Start, l1: Sequence[float], here: Penalized | None = None, tol: float | None = None
) -> Iterator[Penalized]:
    """The solution at each λ of a decreasing sequence, one after the other; tol: of residuals, if not the start's."""
    here = here or start.empty
    before = min(here.l1, start.l1_max)
    for value in l1:
        here = _at(start, float(value), here, before, tol or start.tol)
        here = replace(here, residual=np.where(start.lost, start.empty.residual, here.residual))
        before = float(value)
        yield here


def at(start: Start, l1: float) -> Penalized:
    """The solution at one λ."""
    tilted = isinstance(start.nodes, TiltedNodes)
    (found,) = follow(start, [l1], tol=max(start.tol, LOOSE * l1) if tilted else start.tol)
    return settled(start, found) if tilted else found


def settled(start: Start, found: Penalized) -> Penalized:
    """What is nearly the solution at its λ, to the tolerance of the start; by pseudo-likelihood itself, if tilted."""
    nodes = start.nodes.exact if isinstance(start.nodes, TiltedNodes) else start.nodes
    value, gradient = nodes.full(found.theta)
    here = replace(found, value=value, gradient=gradient)
    return _at(replace(start, nodes=nodes), found.l1, here, found.l1, start.tol)


def _at(start: Start, l1: float, here: Penalized, before: float, tol: float) -> Penalized:
    penalised = start.penalised
    if l1 >= start.l1_max and not ((here.theta != 0) & penalised).any() and not (start.held & penalised).any():
        return replace(start.empty, l1=l1)
    cost = np.where(np.isfinite(start.weight), l1 * np.where(np.isfinite(start.weight), start.weight, 0.0), np.inf)
    # slopes change by less than λ does, nearly always: the others are looked at when the rest is solved
    slope = np.abs(here.gradient)
    likely = slope >= np.where(penalised, max(2 * l1 - before, l1 / 2) * np.where(penalised, start.weight, 0.0), np.inf)
    working = (here.theta != 0) | (start.weight == 0) | start.held
    likely &= penalised & ~working
    working |= _largest(np.where(likely, slope / start.unit, 0.0), working)
    rest = cost, start.low, start.unit
    if not isinstance(start.nodes, TiltedNodes):
        return _solve(start.nodes, l1, here.theta, *rest, working, tol, start.max_iter, here)
    start.nodes.tilt(here.theta)
    slow = np.zeros(len(working), bool)
    for turn in range(_TILTS):
        found = _solve(start.nodes, l1, here.theta, *rest, working, tol, start.max_iter, here)
        here = _tilted_anew(start.nodes, here, found, *rest, tol, start.max_iter, slow)
        far = here.residual > max(tol, _NEAR * l1)
        if not far.any():
            break
        working |= here.theta != 0
        slow = far & (turn > 0)
    return here


def _tilted_anew(
    nodes: TiltedNodes,
    before: Penalized,
    found: Penalized,
    cost: np.ndarray,
    low: np.ndarray,
    unit: np.ndarray,
    tol: float,
    max_iter: int,
    slow: np.ndarray,
) -> Penalized:
    """What was found as the pilot of the next, with pseudo-likelihood's values and slopes there.

    A node whose penalised pseudo-likelihood did not fall is solved by that itself, without a detour; and so are those
    that come near the optimum only slowly, (p,) of bool, as far from the model they may.
    """
    theta, value = found.theta.copy(), nodes.tilt(found.theta)
    changed = np.flatnonzero((theta != before.theta).any(axis=1))

    def total(value: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return value + np.where(theta != 0, cost * np.abs(theta), 0.0).sum(axis=1)

    with np.errstate(invalid="ignore"):
        ours, its = total(value, theta), total(before.value, before.theta)
    worse = changed[(slow | ~(ours <= its + _ROUNDING * np.abs(its)))[changed]]
    if len(worse):
        theta[worse] = before.theta[worse]
        working = (theta != 0) | (found.theta != 0) | (low > -np.inf) | (cost == 0)
        some = np.zeros(len(theta), bool)
        some[worse] = True
        exact = _solve(
            nodes.exact, found.l1, theta, cost, low, unit, working & some[:, None], tol, max_iter, before, worse
        )
        theta[worse] = exact.theta[worse]
        value = nodes.tilt(theta)
    gradient = before.gradient.copy()
    if len(changed):
        gradient[changed] = nodes.full(theta, changed)[1]
    missed = (residual(theta, gradient, cost, low) / unit).max(axis=1)
    return Penalized(found.l1, theta, value, gradient, missed, found.n_iter, np.zeros_like(theta))


def _solve(
    nodes: Nodes,
    l1: float,
    theta: np.ndarray,
    cost: np.ndarray,
    low: np.ndarray,
    unit: np.ndarray,
    working: np.ndarray,
    tol: float,
    max_iter: int,
    before: Penalized | None = None,
    rows: np.ndarray | None = None,
) -> Penalized:
    """Solve on a working set, look at all slopes, take in those that the penalty does not hold, and again.

    before: what is known at θ, so that nodes which are as they should be are left alone; rows: the nodes, if not all.
    """
    theta, n_iter = theta.copy(), 0
    if before is None:
        value, gradient = np.zeros(len(theta)), np.zeros_like(theta)
        missed = np.full(theta.shape, np.inf)
    else:
        value, gradient = before.value.copy(), before.gradient.copy()
        missed = residual(theta, gradient, cost, low) / unit
    if rows is None:
        rows = np.flatnonzero((missed > tol).any(axis=1))
    else:
        missed[np.setdiff1d(np.arange(len(theta)), rows)] = 0.0
    for _ in range(_ROUNDS if len(rows) else 0):
        for some in _groups(working, rows):
            places, found = _on(nodes, some, working, theta, cost, low, unit, 0.5 * tol, max_iter)
            n_iter = max(n_iter, int(found.n_iter.max(initial=0)))
            theta[some] = _spread_out(places, found.theta, theta.shape[1])
        value[rows], gradient[rows] = nodes.full(theta, rows)
        missed[rows] = residual(theta[rows], gradient[rows], cost[rows], low[rows]) / unit[rows]
        asking = (missed > tol) & ~working
        if not asking.any():
            break
        rows = np.flatnonzero(asking.any(axis=1))
        working = working | _largest(np.where(asking, missed, 0.0), working)
    return Penalized(l1, theta, value, gradient, missed.max(axis=1), n_iter, np.zeros_like(theta))


def _on(
    nodes: Nodes,
    rows: np.ndarray,
    working: np.ndarray,
    theta: np.ndarray,
    cost: np.ndarray,
    low: np.ndarray,
    unit: np.ndarray,
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, Solved]:
    """The minimum of some nodes over their working sets, and the places of these, (rows, A), padded with -1."""
    places = packed(working[rows])

    def pick(x: np.ndarray, otherwise: float) -> np.ndarray:
        return np.where(places >= 0, x[rows[:, None], places], otherwise)

    problem = Problem(pick(theta, 0.0), pick(cost, 0.0), pick(low, -np.inf), pick(unit, 1.0))
    with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is not taken
        return places, nodes.solve(rows, places, problem, tol, max_iter)


def _spread_out(places: np.ndarray, values: np.ndarray, width: int) -> np.ndarray:
    """Values of a working set, (rows, A), in their places, (rows, K), with zeros elsewhere."""
    out = np.zeros((len(places), width))
    row, k = np.nonzero(places >= 0)
    out[row, places[row, k]] = values[row, k]
    return out


def _variances(found: Solved) -> np.ndarray:
    """The diagonal of H⁻¹ over what is not zero, (q, A)."""
    inside = found.theta != 0
    both = inside[:, :, None] & inside[:, None, :]
    scale = 1 / np.sqrt(np.maximum(np.einsum("ikk->ik", found.hessian), 1e-300))
    H = np.where(both, found.hessian * scale[:, :, None] * scale[:, None, :], 0.0)
    np.einsum("ikk->ik", H)[:] = np.where(inside, 1 + 1e-12, 1.0)
    return np.where(inside, np.einsum("ikk->ik", np.linalg.inv(H)) * scale * scale, 0.0)


def _largest(size: np.ndarray, working: np.ndarray) -> np.ndarray:
    """The places with the largest positive sizes, at most so many a node, (p, K) of bool."""
    many = np.count_nonzero(size, axis=1)
    most = np.maximum(_MORE, np.count_nonzero(working, axis=1))
    chosen = size > 0
    for i in np.flatnonzero(many > most):
        chosen[i] = False
        chosen[i, np.argpartition(-size[i], most[i])[: most[i]]] = True
    return chosen


def _groups(working: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Nodes that are solved at once: with working sets of like size, where their Hessians would fill the memory."""
    count = np.count_nonzero(working[rows], axis=1)
    rows, count = rows[np.argsort(count, kind="stable")], np.sort(count)
    while len(rows):
        fits = np.arange(1, len(rows) + 1) * count.astype(float) ** 2 <= _CELLS
        many = max(int(np.count_nonzero(fits)), 1)
        yield np.sort(rows[:many])
        rows, count = rows[many:], count[many:]
