"""One estimate from those of several nodes: geometric as in the paper, the mean, or by precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from ..data import Block, Clusters
from ..terms import Terms
from .nodewise import NodeFit
from .objective import Objective
from .sandwich import inverse, spread

__all__ = ["Consensus", "combined", "node_variances"]

Array = np.ndarray
Consensus = Literal["geometric", "mean", "precision"]
_SHRUNK = 0.05  # of a small covariance toward equal weights


def combined(
    kind: Consensus,
    f: Objective,
    fits: Sequence[NodeFit],
    groups: Clusters | None = None,
    lags: int = 0,
    covariance: bool = True,
) -> tuple[Array, Array]:
    """τ, (K,), and its covariance, (K, K) or empty, from the estimates v of the nodes of each unknown.

    Nodes that did not converge are left out where an unknown has others.

    geometric: sign(mean v) exp(mean log|v|), 0 where any is 0. precision: Σ w v, weights ∝ (C + .05 tr C/|k| I)⁻¹ 1
    with C the small covariance of the estimates of that unknown. The covariance is joint over nodes: of
    Σ d_i A_i⁻¹ s_i, d the derivatives by v and s_i the scores of a row at node i.
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
    breads = [np.zeros((0, 0)) if fit.at.hessian is None else inverse(fit.at.hessian) for fit in fits]
    taus = {i: fit.tau for i, fit in enumerate(fits)}

    def influences(block: Block, parts: Iterator[Array]) -> Array:
        """A_i⁻¹ s_i of each unknown and node, (K, most nodes, rows)."""
        e = np.zeros((*there.shape, len(block.X)))
        for (unknowns, _), slot, bread, S in zip(f.terms.local_T, slots, breads, parts, strict=True):
            e[unknowns, slot] = bread @ S
        e[~there] = 0.0
        return e

    weights = there / count[:, None]
    if kind == "precision" and there.shape[1] > 1:

        def small(block: Block, parts: Iterator[Array]) -> Array:
            e = influences(block, parts)
            return (e * block.square) @ e.transpose(0, 2, 1)

        weights = _precision_weights(f.node_scores(taus, small), there)
    tau, slopes = (weights * v).sum(axis=1), weights
    if kind == "geometric":
        sure = np.where(there, np.abs(v), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            tau = np.sign(tau) * np.exp(np.log(sure).sum(axis=1) / count)
            slopes = np.where(there & (v != 0), tau[:, None] / (count[:, None] * v), 0.0)

    if not covariance:
        return tau, np.zeros((0, 0))

    def scored(g: Any) -> Any:
        return f.node_scores(
            taus, lambda block, parts: g(block, np.einsum("ka,kar->kr", slopes, influences(block, parts)))
        )

    return tau, spread(scored, groups, lags)[0] / f.n**2


def node_variances(f: Objective, fits: Sequence[NodeFit]) -> Array:
    """The trace of each node's sandwich, (p,); +∞ where it did not converge."""
    breads = [None if fit.at.hessian is None else inverse(fit.at.hessian) for fit in fits]

    def squares(block: Block, parts: Iterator[Array]) -> Array:
        return np.array([np.sum((bread @ S) ** 2 @ block.square) for bread, S in zip(breads, parts, strict=True)])

    traces = f.node_scores({i: fit.tau for i, fit in enumerate(fits)}, squares) / f.n**2
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
