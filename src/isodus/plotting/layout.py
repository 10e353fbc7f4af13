"""Where variables and sets of them go in a picture; the same model always gives the same places."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

__all__ = ["around_circle", "circle_order", "spread"]

_PASSES = 8


def circle_order(n: int, sets: Sequence[Sequence[int]], weights: Sequence[float]) -> list[int]:
    """An order of n nodes around a circle in which those that interact are near one another.

    From the order of the Fiedler vector, and from that of the angles of the two slowest modes, nodes are moved to where
    the sum of weighted distances is least. The first node comes first.
    """
    pairs = [(i, j, w) for nodes, w in zip(sets, weights, strict=True) for i, j in combinations(nodes, 2)]
    if n < 4 or not pairs:
        return list(range(n))
    ends = np.array([pair[:2] for pair in pairs]).T
    w = np.array([pair[2] for pair in pairs])
    w = 0.2 + w / w.max()  # weak ones count too: they are drawn
    L = np.zeros((n, n))
    np.add.at(L, tuple(ends), -w)
    L += L.T
    np.fill_diagonal(L, -L.sum(axis=1))
    _, slow, slower = np.linalg.eigh(L)[1][:, :3].T
    slow = slow * (np.sign(slow[np.argmax(np.abs(slow) > 1e-9)]) or 1.0)
    starts = [np.lexsort([np.arange(n), key.round(9)]) for key in (slow, np.arctan2(slower, slow))]
    _, order = min((_moved(start, ends, w) for start in starts), key=lambda found: found[0])
    order = np.roll(order, -int(np.flatnonzero(order == 0)[0]))
    if order[1] > order[-1]:
        order = np.roll(order[::-1], 1)
    return order.tolist()


def _moved(order: np.ndarray, ends: np.ndarray, w: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum of weighted distances, and an order in which no single node can be moved to lessen it."""
    n = len(order)
    slots = np.arange(n)[:, None]
    best = np.inf
    for _ in range(_PASSES):
        before = best
        for node in range(n):
            rest = order[order != node]
            rank = np.empty(n, np.int64)
            rank[rest] = np.arange(n - 1)
            rank[node] = 0
            place = rank + (rank >= slots)  # (slots, nodes): the node in each slot, those after it moved on
            place[:, node] = slots[:, 0]
            gap = np.abs(place[:, ends[0]] - place[:, ends[1]])
            costs = np.minimum(gap, n - gap) @ w
            if costs.min() < best - 1e-9:
                best = float(costs.min())
                order = np.insert(rest, int(np.argmin(costs)), node)
        if best >= before - 1e-9:
            break
    return best, order


def around_circle(order: Sequence[int]) -> np.ndarray:
    """Places on the unit circle, (n, 2), by node: the first of the order on top, then clockwise."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / max(len(order), 1)
    places = np.empty((len(order), 2))
    places[list(order)] = np.column_stack([np.cos(angle), np.sin(angle)])
    return places


def spread(wanted: np.ndarray, fixed: np.ndarray, least: float) -> np.ndarray:
    """Points near where they are wanted, (m, 2), but farther than `least` from one another and from those fixed."""
    m = len(wanted)
    turn = 2.4 * np.arange(m)  # the golden angle: points at one place part
    at = wanted + 1e-3 * np.column_stack([np.cos(turn), np.sin(turn)])
    for _ in range(200):
        others = np.concatenate([at, fixed])
        gap = at[:, None, :] - others[None, :, :]
        distance = np.linalg.norm(gap, axis=2) + 10 * least * np.eye(m, len(others))
        push = np.clip(least - distance, 0.0, None) / np.maximum(distance, 1e-9)
        step = 0.5 * (gap * push[..., None]).sum(axis=1)
        if not np.any(np.abs(step) > 1e-4):
            break
        at = at + step + 0.02 * (wanted - at)
    return at
