"""Quadratics with an L1 penalty, many small ones at once."""

from __future__ import annotations

import numpy as np

__all__ = ["lassos", "missed"]

Array = np.ndarray
_SWEEPS, _ROUNDS = 2, 300
_EXACT = 1e-13  # of a slope, in units of 1 + the largest |b| and |t| of a problem
_ROUNDING = 4e-15  # on the unit diagonal, so that what is singular to rounding has a solution


def missed(t: Array, slope: Array, cost: Array) -> Array:
    """By how much −slope misses the subdifferential of Σ c|t|, coordinate by coordinate."""
    with np.errstate(invalid="ignore"):
        at_zero = np.maximum(np.abs(slope) - cost, 0.0)
        elsewhere = np.abs(slope + np.where(t == 0, 0.0, cost) * np.sign(t))
    return np.where(t == 0, at_zero, elsewhere)


def lassos(A: Array, b: Array, cost: Array, start: Array) -> Array:
    """argmin ½ tᵀAt − bᵀt + Σ c|t| of q problems, (q, m); A: (q, m, m) with a unit diagonal, b, cost, start: (q, m).

    Coordinates in turn find the support and its signs; on these the problem is a linear system. Coordinates that would
    change sign on the way to its solution leave the support, one after the other, so that every round ends in the
    optimum of a support with its signs, and none is met twice. A coordinate with an infinite cost stays 0.
    """
    t = np.where(np.isfinite(cost), start, 0.0)
    left = np.arange(len(t))
    for _ in range(_ROUNDS):
        slope = np.einsum("qlm,qm->ql", A[left], t[left]) - b[left]
        enough = _EXACT * (1 + np.maximum(np.abs(b[left]), np.abs(t[left])).max(axis=1, initial=0.0))
        open_ = missed(t[left], slope, cost[left]).max(axis=1, initial=0.0) > enough
        left = left[open_]
        if not len(left):
            break
        swept = _swept(A[left], t[left], slope[open_], cost[left])
        t[left] = _on_supports(A[left], b[left], cost[left], swept)
    return t


def _swept(A: Array, t: Array, slope: Array, cost: Array) -> Array:
    """Each coordinate at its own optimum, one after the other."""
    t, slope, columns = t.copy(), slope.copy(), np.ascontiguousarray(A.transpose(2, 0, 1))
    for _ in range(_SWEEPS):
        for k in np.flatnonzero(np.isfinite(cost).any(axis=0)):
            z = t[:, k] - slope[:, k]
            moved = np.sign(z) * np.maximum(np.abs(z) - cost[:, k], 0.0) - t[:, k]
            t[:, k] += moved
            slope += columns[k] * moved[:, None]
    return t


def _on_supports(A: Array, b: Array, cost: Array, t: Array) -> Array:
    """The optimum with the signs of t, of those coordinates that keep theirs."""
    left = np.arange(len(t))
    while len(left):
        moved = _on_support(A[left], b[left], cost[left], t[left])
        fewer = ((moved == 0) & (t[left] != 0)).any(axis=1)
        t[left], left = moved, left[fewer]
    return t


def _on_support(A: Array, b: Array, cost: Array, t: Array) -> Array:
    """From t toward the optimum with the same signs, up to the first that changes; that coordinate is 0 then."""
    free = cost == 0
    on = (t != 0) | free
    pull = np.where(on & ~free, np.where(np.isfinite(cost), cost, 0.0) * np.sign(t), 0.0)
    size = A.shape[1]
    inside = np.where(on[:, :, None] & on[:, None, :], A, 0.0)
    inside[:, np.arange(size), np.arange(size)] = np.where(on, 1 + _ROUNDING, 1.0)
    target = _solved(inside, np.where(on, b - pull, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(on & ~free & (np.sign(target) != np.sign(t)), t / (t - target), np.inf)
    first = share.min(axis=1, initial=np.inf)
    moved = np.where((first >= 1)[:, None], target, t + np.minimum(first, 1.0)[:, None] * (target - t))
    return np.where(share <= first[:, None], np.where(first[:, None] < 1, 0.0, moved), moved)


def _solved(A: Array, b: Array) -> Array:
    """A⁻¹ b of each problem; where one is singular in spite of the rounding, the smallest solutions."""
    try:
        return np.linalg.solve(A, b[..., None])[..., 0]
    except np.linalg.LinAlgError:
        return np.einsum("qlm,qm->ql", np.linalg.pinv(A, hermitian=True), b)
