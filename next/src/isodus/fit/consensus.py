"""One estimate from those of several nodes: geometric as in the paper, the mean, or by precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, Literal, NamedTuple

import numpy as np

from ..data import Block, Clusters
from ..losses import Pointwise
from ..terms import Terms
from .nodewise import NodeFit
from .objective import Objective
from .sandwich import inverse, spread

__all__ = ["Consensus", "combined", "influences", "node_variances"]

Array = np.ndarray
Consensus = Literal["geometric", "mean", "precision"]
Parts = Sequence[tuple[Array, float]]  # of each node: ψ, (m, rows), and the largest leverage
Scored = Callable[[Callable[[Block, Parts], Any]], Any]
_SHRUNK = 0.05  # of a small covariance toward equal weights
_KEPT_BYTES = 2**28  # of influences, up to which they are kept
_LEAST = 1e-3  # of 1 − h


class Combined(NamedTuple):
    """τ, (K,), its covariance of clusters and lags, (K, K), and the largest leverage of a row at each node, (p,)."""

    tau: Array
    covariance: Callable[[Clusters | None, int], Array]
    leverage: Array


def combined(kind: Consensus, f: Objective, fits: Sequence[NodeFit]) -> Combined:
    """One τ from the estimates v of the nodes of each unknown.

    Nodes that did not converge are left out where an unknown has others.

    geometric: sign(mean v) exp(mean log|v|), 0 where any is 0. precision: Σ w v, weights ∝ (C + .05 tr C/|k| I)⁻¹ 1
    with C the small covariance of the estimates of that unknown. The covariance is joint over nodes: of
    Σ d_i ψ_i, d the derivatives by v and ψ_i the influences of a row at node i.
    """
    slots = _slots(f.terms)
    there = np.zeros((len(f.terms), max((slot.max(initial=0) for slot in slots), default=0) + 1), bool)
    v = np.zeros(there.shape)
    for (unknowns, _), slot, fit in zip(f.terms.local_T, slots, fits, strict=True):
        v[unknowns, slot], there[unknowns, slot] = fit.tau, fit.status == "converged"
    alone = there.sum(axis=1) == 0
    for (unknowns, _), slot in zip(f.terms.local_T, slots, strict=True):
        there[unknowns, slot] |= alone[unknowns]
    v[~there] = 0.0
    count = there.sum(axis=1)
    scored = influences(f, fits)

    weights = there / count[:, None]
    if kind == "precision" and there.shape[1] > 1:

        def small(block: Block, parts: Parts) -> Array:
            e = np.zeros((*there.shape, len(block.X)))
            for (unknowns, _), slot, (psi, _) in zip(f.terms.local_T, slots, parts, strict=True):
                e[unknowns, slot] = psi
            return (e * block.square) @ e.transpose(0, 2, 1)

        weights = _precision_weights(scored(small), there)
    tau, slopes = (weights * v).sum(axis=1), weights
    if kind == "geometric":
        sure = np.where(there, np.abs(v), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            tau = np.sign(tau) * np.exp(np.log(sure).sum(axis=1) / count)
            slopes = np.where(there & (v != 0), tau[:, None] / (count[:, None] * v), 0.0)

    def joint(g: Callable[[Block, Array], Any]) -> Any:
        def summed(block: Block, parts: Parts) -> Any:
            e = np.zeros((len(f.terms), len(block.X)))
            for (unknowns, _), slot, (psi, _) in zip(f.terms.local_T, slots, parts, strict=True):
                used = there[unknowns, slot]
                e[unknowns[used]] += slopes[unknowns[used], slot[used], None] * psi[used]
            return g(block, e)

        return scored(summed)

    leverage = np.max(scored(lambda block, parts: [[h for _, h in parts]]), axis=0)
    return Combined(tau, lambda clusters, lags: spread(joint, clusters, lags)[0], leverage)


def influences(f: Objective, fits: Sequence[NodeFit]) -> Scored:
    """Sums over blocks of g(block, ψ of each node and its leverage): how far its estimate would move without a row.

    ψ = A⁻¹ s/n, s the row's score; where a node has converged, the mean score is zero. Where the mean is one of
    w = exp ℓ, A is a mean of g gᵀ with these weights, so that a row of large weight pulls the fit to itself, and the
    sandwich misses that. Newton's step without the row is ψ/(1 − h), h = π gᵀA⁻¹g/(1 − π) with π = w/Σw.
    """
    link, linked = f.loss.link, [fit.at for fit in fits]
    others = {i: fit.tau for i, fit in enumerate(fits) if fit.status != "converged"}
    for i, at in f.at_nodes(others, 1).items() if others else ():
        linked[i] = at
    breads = [np.zeros((0, 0)) if fit.at.hessian is None else inverse(fit.at.hessian) / f.n for fit in fits]

    def of_node(i: int, H: Array, point: Pointwise, count: Array) -> tuple[Array, float]:
        of, (_, T) = f.terms.local[i], f.terms.local_T[i]
        G = H[of.where] * point.slope.T[of.functions]
        G = G if T is None else T.T @ G
        if link == "mean":
            return breads[i] @ G, 0.0
        if link == "log_mean" and i in others:
            G -= linked[i].gradient[:, None]
        w = np.exp(point.value - (linked[i].value if link == "log_mean" else 0.0))
        psi = breads[i] @ G
        h = count * w * np.einsum("kr,kr->r", G, psi) / np.maximum(1 - count * w / f.n, _LEAST)
        psi *= w / np.maximum(1 - h, _LEAST)
        return psi, float(h.max())

    def of_block(block: Block, points: Iterator[tuple[Array, Pointwise]]) -> Parts:
        count = block.square / block.weight  # what goes with a row: 1 of those that are repeated, an importance weight
        return [of_node(i, *point, count) for i, point in enumerate(points)]

    local = [fit.tau if T is None else T @ fit.tau for fit, (_, T) in zip(fits, f.terms.local_T, strict=True)]
    if 8 * f.samples.n_rows * sum(len(fit.tau) for fit in fits) > _KEPT_BYTES:
        return lambda g: f._each(local, lambda block, points: g(block, of_block(block, points)))
    kept = f._each(local, lambda block, points: [(block, of_block(block, points))])
    return lambda g: reduce(add, (g(block, parts) for block, parts in kept))


def node_variances(f: Objective, fits: Sequence[NodeFit]) -> Array:
    """The trace of the covariance of each node, (p,); +∞ where it did not converge."""

    def squares(block: Block, parts: Parts) -> Array:
        return np.array([np.sum(psi**2 @ block.square) for psi, _ in parts])

    traces = influences(f, fits)(squares)
    fine = np.isfinite(traces) & np.array([fit.status == "converged" for fit in fits])
    return np.where(fine, traces, np.inf)


def _slots(terms: Terms) -> list[Array]:
    """For each node, which of the estimates of its unknowns are its own."""
    seen, slots = np.zeros(len(terms), int), []
    for unknowns, _ in terms.local_T:
        slots.append(seen[unknowns].copy())
        seen[unknowns] += 1
    return slots


def _precision_weights(C: Array, there: Array) -> Array:
    """(C + .05 tr C/|k| I)⁻¹ 1 over its sum, for each unknown; C: (K, nodes, nodes)."""
    weights = np.zeros(there.shape)
    for k, here in enumerate(there):
        at = C[k][np.ix_(here, here)]
        at = at + _SHRUNK * np.trace(at) / here.sum() * np.eye(here.sum())
        try:
            w = np.linalg.solve(at, np.ones(here.sum()))
        except np.linalg.LinAlgError:
            w = np.ones(here.sum())
        weights[k, here] = w / w.sum() if np.isfinite(w).all() and w.sum() else 1 / here.sum()
    return weights
