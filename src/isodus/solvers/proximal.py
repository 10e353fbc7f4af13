"""Proximal Newton for many small problems with an L1 penalty, all of them at once.

Problem i minimises F_i(θ) + Σ_k c_ik |θ_k| over θ_k ≥ low_ik, with F_i smooth and convex. A step minimises the
quadratic model of F_i with the penalty, exactly, and is shortened until the sum falls. Problems are rows: θ, costs and
gradients are (q, A), Hessians (q, A, A), padded with coordinates that have no slope, so that every operation is one on
arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Point", "Solved", "lasso", "minimize", "residual", "sparse_inverse"]

_ARMIJO = 1e-4
_FALL = 0.2  # what has a positive floor falls to this share of itself at most, in one step
_ROUNDING = 1e-13  # relative change of a value that says nothing
_RIDGE = 1e-12  # of a unit diagonal, so that what is singular to rounding has a solution
_SWEEPS = 3  # over the coordinates, to guess a support
_MOST_STEPS = 1000
_EXACT = 1e-12  # what a slope of the quadratic model may miss, its diagonal scaled to one


class Point(NamedTuple):
    """Problems at points: value (q,), gradient (q, A), hessian (q, A, A)."""

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray


Evaluate = Callable[[np.ndarray, np.ndarray], Point]
"""evaluate(which, theta): some of the problems, each at its own point."""


@dataclass
class Solved:
    """What was found; theta, gradient: (q, A); value: (q,), without the penalty; hessian: (q, A, A).

    residual: (q,), by how much the conditions of optimality are missed, in units of `unit`; n_iter: (q,) steps.
    """

    theta: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    residual: np.ndarray
    n_iter: np.ndarray


def residual(theta: np.ndarray, gradient: np.ndarray, cost: np.ndarray, low: np.ndarray) -> np.ndarray:
    """By how much −g misses the subdifferential of Σ c|θ| at each coordinate; nothing where a floor holds it."""
    on = theta != 0
    missed = np.abs(gradient)
    missed -= cost
    np.maximum(missed, 0.0, out=missed)
    slope = gradient[on] + cost[on] * np.sign(theta[on])
    missed[on] = np.where((theta[on] <= low[on]) & (slope > 0), 0.0, np.abs(slope))
    return missed


def minimize(
    evaluate: Evaluate,
    theta: np.ndarray,
    cost: np.ndarray,
    low: np.ndarray,
    unit: np.ndarray,
    *,
    tol: float,
    max_iter: int,
) -> Solved:
    """Minimise every problem until its residual, in units of `unit` (q, A), is below tol."""
    q = len(theta)
    at = evaluate(np.arange(q), theta)
    found = Solved(
        theta.copy(),
        at.value.copy(),
        at.gradient.copy(),
        at.hessian.copy(),
        np.full(q, np.inf),
        np.zeros(q, int),
    )
    running = np.flatnonzero(np.isfinite(found.value))
    found.residual[running] = _worst(found, running, cost, low, unit)
    for _ in range(max_iter):
        running = running[found.residual[running] > tol]
        if not len(running):
            break
        stalled = _step(evaluate, found, running, cost, low, unit)
        running = running[~stalled]
    return found


def _worst(found: Solved, rows: np.ndarray, cost: np.ndarray, low: np.ndarray, unit: np.ndarray) -> np.ndarray:
    missed = residual(found.theta[rows], found.gradient[rows], cost[rows], low[rows])
    return (missed / unit[rows]).max(axis=1, initial=0.0)


def _step(
    evaluate: Evaluate, found: Solved, rows: np.ndarray, cost: np.ndarray, low: np.ndarray, unit: np.ndarray
) -> np.ndarray:
    """One step of each of these problems, in place; which of them cannot be moved any further, (rows,)."""
    theta, c, floor = found.theta[rows], cost[rows], low[rows]
    reach = np.where(floor > 0, np.maximum(floor, _FALL * theta), floor)
    step = lasso(found.hessian[rows], found.gradient[rows], theta, c, reach) - theta
    before = found.value[rows] + _penalty(theta, c)
    slope = np.einsum("ij,ij->i", found.gradient[rows], step) + _penalty(theta + step, c) - _penalty(theta, c)
    length, stalled = np.ones(len(rows)), np.zeros(len(rows), bool)
    open_ = np.arange(len(rows))
    stalled[~np.isfinite(slope)] = True
    open_ = open_[~stalled]
    while len(open_):
        trial = theta[open_] + length[open_, None] * step[open_]
        at = evaluate(rows[open_], trial)
        after = at.value + _penalty(trial, c[open_])
        noise = _ROUNDING * np.maximum(1.0, np.abs(before[open_]))
        with np.errstate(invalid="ignore"):
            change = after - before[open_]
        small = np.abs(length * slope)[open_] <= 10 * noise
        good = np.isfinite(change) & (change <= np.where(small, noise, _ARMIJO * (length * slope)[open_]))
        taken = rows[open_[good]]
        found.theta[taken], found.value[taken] = trial[good], at.value[good]
        found.gradient[taken], found.hessian[taken] = at.gradient[good], at.hessian[good]
        found.n_iter[taken] += 1
        previous = found.residual[taken].copy()
        found.residual[taken] = _worst(found, taken, cost, low, unit)
        # steps that change no digit of the value go on while they bring the slope nearer
        stalled[open_[good]] = small[good] & (found.residual[taken] > 0.5 * previous)
        with np.errstate(invalid="ignore", divide="ignore"):
            best = -0.5 * (slope * length**2)[open_] / (change - (slope * length)[open_])
        shorter = np.where(
            np.isfinite(change), np.clip(best, 0.1 * length[open_], 0.5 * length[open_]), 0.1 * length[open_]
        )
        length[open_] = np.where(good, length[open_], shorter)
        stuck = ~good & (small | ~(length[open_] >= 1e-10))  # of what is not a number too
        stalled[open_[stuck]] = True
        open_ = open_[~good & ~stuck]
    return stalled


def _penalty(theta: np.ndarray, cost: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", cost, np.abs(theta))


def lasso(H: np.ndarray, g: np.ndarray, theta: np.ndarray, cost: np.ndarray, low: np.ndarray) -> np.ndarray:
    """argmin_x g·(x − θ) + ½ (x − θ)ᵀH(x − θ) + Σ c|x| over x ≥ low, for each of q problems.

    A few sweeps over the coordinates guess supports and signs. Given those the minimum is that of a linear system;
    towards it the sum falls until a coordinate would change its sign, which then leaves the support, or meet its floor.
    Where nothing is in the way, the coordinate whose slope exceeds its cost most enters (Lee, Battle, Raina and Ng,
    2007): a finite number of steps, however ill-conditioned H is. Where H or g is not a number, or there is a slope
    and no curvature, x is not a number.
    """
    curved = np.einsum("ikk->ik", H)
    bounded = ((curved > 0) | (np.abs(g) <= cost)).all(axis=1)
    scale = 1 / np.sqrt(np.maximum(curved, 1e-300))  # to a unit diagonal
    H = H * scale[:, :, None] * scale[:, None, :]
    z, c, floor = theta / scale, cost * scale, low / scale
    b = g * scale - np.einsum("ijk,ik->ij", H, z)
    bounded &= np.isfinite(b).all(axis=1) & np.isfinite(H).all(axis=(1, 2))
    out, rows = np.full_like(z, np.nan), np.flatnonzero(bounded)
    if len(rows) < len(z):
        H, b, z, c, floor = (x[rows] for x in (H, b, z, c, floor))
    enough = _EXACT * np.maximum(np.abs(b), c).max(axis=1, initial=1e-300)[:, None]
    for _ in range(_SWEEPS):
        _sweep(H, b, z, c, floor)
    sign, held = np.sign(z), z <= floor
    for _ in range(_MOST_STEPS):
        free_way = _on_support(H, b, z, sign, held, c, floor)
        slope = np.einsum("ijk,ik->ij", H, z) + b
        # what may enter: zeros whose slope exceeds their cost, and what its floor holds though it would rise
        excess = np.where((sign == 0) & (c > 0) & ~held, np.abs(slope) - c, 0.0)
        excess = np.where(held, -(slope + c * sign), excess)
        at = np.argmax(excess, axis=1)
        entering = np.flatnonzero((excess[np.arange(len(z)), at] > enough[:, 0]) & free_way)
        at = at[entering]
        sign[entering, at] = np.where(held[entering, at], sign[entering, at], -np.sign(slope[entering, at]))
        held[entering, at] = False
        out[rows] = z
        keep = ~free_way
        keep[entering] = True
        if not keep.any():
            break
        rows = rows[keep]
        H, b, z, c, floor, sign, held, enough = (x[keep] for x in (H, b, z, c, floor, sign, held, enough))
    return np.where(out <= low / scale, low, out * scale)  # on the floor to the last digit


def sparse_inverse(H: np.ndarray, mu: float, tol: float = 1e-6, max_iter: int = 200) -> np.ndarray:
    """M, its rows m_k = argmin ½ mᵀHm − m_k + μ Σ_{j≠k} |m_j|, H, (K, K), being scaled to a unit diagonal for it.

    By sweeps over the coordinates of all rows at once; |H m_k − e_k| ≤ μ in those units, and nothing at k itself.
    """
    scale = 1 / np.sqrt(np.maximum(np.diagonal(H), 1e-300))
    R = H * scale * scale[:, None]
    M = np.eye(len(R))
    slope = R - M  # of row k by coordinate j, R m_k − e_k
    for _ in range(max_iter):
        most = 0.0
        for j in range(len(R)):
            free = M[:, j] - slope[:, j]
            new = np.sign(free) * np.maximum(np.abs(free) - mu, 0.0)
            new[j] = free[j]
            change = new - M[:, j]
            rows = np.flatnonzero(change)
            if len(rows):
                slope[rows] += change[rows, None] * R[j]
                M[rows, j] = new[rows]
                most = max(most, float(np.abs(change).max()))
        if most <= tol:
            break
    return M * scale * scale[:, None]


def _sweep(H: np.ndarray, b: np.ndarray, z: np.ndarray, c: np.ndarray, floor: np.ndarray) -> None:
    """The minimum over one coordinate after the other, in place; H has a unit diagonal."""
    slope = np.einsum("ijk,ik->ij", H, z) + b
    for k in range(z.shape[1]):
        free = z[:, k] - slope[:, k]
        new = np.maximum(np.sign(free) * np.maximum(np.abs(free) - c[:, k], 0.0), floor[:, k])
        change = new - z[:, k]
        if change.any():
            slope += H[:, :, k] * change[:, None]
            z[:, k] = new


def _on_support(
    H: np.ndarray, b: np.ndarray, z: np.ndarray, sign: np.ndarray, held: np.ndarray, c: np.ndarray, floor: np.ndarray
) -> np.ndarray:
    """Towards the minimum given the signs, in place, as far as they hold; where they did all the way, (q,) of bool.

    What reaches zero has no sign from then on, and what reaches its floor is held there.
    """
    slope = np.einsum("ijk,ik->ij", H, z) + b + c * sign
    free = ((sign != 0) | (c == 0)) & ~held
    both = free[:, :, None] & free[:, None, :]
    A = np.where(both, H, 0.0)
    np.einsum("ikk->ik", A)[:] = np.where(free, 1.0 + _RIDGE, 1.0)
    downhill = np.where(free, -slope, 0.0)
    step = np.linalg.solve(A, downhill[:, :, None])[:, :, 0]
    wild = ~np.isfinite(step).all(axis=1)  # where A is singular all the same
    step[wild] = downhill[wild] / z.shape[1]
    to = z + step
    crossing, below = free & (c > 0) & (to * sign < 0), free & (to < floor)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(crossing, -z / step, 1.0)
        share = np.minimum(share, np.where(below, (floor - z) / step, 1.0))
    t = np.clip(share.min(axis=1, initial=1.0), 0.0, 1.0)[:, None]
    first = (share <= t) & (t < 1)
    z += t * step
    stopped = first & below & (floor > 0)
    gone = first & crossing & ~stopped
    z[gone] = sign[gone] = 0.0
    z[stopped] = floor[stopped]
    held |= stopped
    return (t[:, 0] >= 1) & ~wild
