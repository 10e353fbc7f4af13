"""The distribution function and its inverse: cells of each piece, Gauss-Legendre within a cell."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..arrays import Array, namespace, on_device
from .pieces import Pieces
from .polynomials import listed, polynomial, power_tail, root
from .quick import tightened
from .rules import sums

__all__ = ["LEVEL", "cdf_rows", "quantile_rows"]

LEVEL = 38.0  # what lies higher above the lowest energy is dropped

_CELLS = 16  # of an interval


@lru_cache(maxsize=4)
def _cell_rule(rule: str, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cell edges in [−1, 1], crowded to ends where |y|^power may be rough; nodes, weights on [0, 1]."""
    edges = np.linspace(-1.0, 1.0, _CELLS + 1)
    if rule != "trapezoid":
        edges = np.tanh(0.5 * np.pi * np.sinh(1.8 * edges))
        edges[0], edges[-1] = -1.0, 1.0
    x, w = np.polynomial.legendre.leggauss(10 if d <= 4 or rule != "trapezoid" else 20)
    return edges, 0.5 * (x + 1.0), 0.5 * w


def _cells(p: Pieces) -> Array:
    """∫ exp(−(q − energy)) over every cell, (K, cells, n)."""
    xp, (edges, nodes, w) = namespace(p.b), _cell_rule(p.rule, p.b.shape[0] - 1)
    size = np.diff(edges)
    u = (edges[:-1, None] + size[:, None] * nodes).ravel()
    return xp.permute_dims(sums(p, u, np.kron(np.diag(size), w)), (1, 0, 2))


def _from(p: Pieces, b: Array, mid: Array, half: Array, left: Array, u: Array) -> tuple[Array, Array]:
    """∫_left^u exp(−(q − energy)) du within a cell, and the density at u."""
    xp, (_, nodes, w) = namespace(u), _cell_rule(p.rule, p.b.shape[0] - 1)
    at = on_device(np.append(nodes, 1.0).reshape(-1, *[1] * u.ndim), u)
    v = left + (u - left) * at
    e = polynomial(listed(b), v)
    if p.nu > 0:
        e += power_tail(p.mode + mid + half * v, p.nu, p.power) - power_tail(p.mode, p.nu, p.power)
    f = xp.exp(-e)
    weights = on_device(np.append(w, 0.0).reshape(-1, *[1] * u.ndim), u)
    return (u - left) * xp.sum(f * weights, axis=0), f[-1, ...]


def _tight(p: Pieces) -> tuple[Pieces, Array]:
    """Pieces on which q stays below about LEVEL, as the cells need it, and where that could be had."""
    return tightened(p, LEVEL) if p.rule == "trapezoid" else (p, p.mode == p.mode)


def quantile_rows(p: Pieces, out: Array, v: Array) -> Array:
    """Into out (1, n) the x where the distribution function is v (n,); returns where it is right."""
    p, ok = _tight(p)
    xp, edges = namespace(v), on_device(_cell_rule(p.rule, p.b.shape[0] - 1)[0], v)
    cumulative = xp.cumulative_sum(xp.reshape(_cells(p), (-1, v.shape[0])), axis=0)
    Z = cumulative[-1, ...]
    goal = xp.minimum(v, xp.ones_like(v) - 2.0**-52) * Z
    before = cumulative <= goal
    cell = xp.sum(xp.astype(before, xp.int64), axis=0)
    cell = xp.minimum(cell, xp.full_like(cell, cumulative.shape[0] - 1))
    base = xp.max(xp.where(before, cumulative, 0.0), axis=0)
    share = (goal - base) / (xp.min(xp.where(before, Z, cumulative), axis=0) - base)
    b, mid, half = _piece(p, cell // _CELLS)
    left, right = xp.take(edges, cell % _CELLS), xp.take(edges, cell % _CELLS + 1)
    goal = (goal - base) / half
    start = left + (right - left) * xp.minimum(xp.maximum(share, 0.0 * Z + 1e-3), 0.0 * Z + 0.999)

    def g(u: Array) -> tuple[Array, Array]:
        F, f = _from(p, b, mid, half, left, u)
        return F - goal, f

    u = root(g, left, right, start, xp.ones_like(v) > 0, lambda u: 1e-12 * Z / half)
    out[0, ...] = p.mode + (mid + half * u) + p.shift
    return ok & (Z > 0) & xp.isfinite(out[0, ...])


def _piece(p: Pieces, k: Array) -> tuple[Array, Array, Array]:
    """b, mid and half of the k-th piece of each row, k: (n,)."""
    xp = namespace(p.b)
    b, mid, half = p.b[:, 0, :], p.mid[0, ...], p.half[0, ...]
    for j in range(1, p.mid.shape[0]):
        b = xp.where(k == j, p.b[:, j, :], b)
        mid, half = xp.where(k == j, p.mid[j, ...], mid), xp.where(k == j, p.half[j, ...], half)
    return b, mid, half


def cdf_rows(p: Pieces, out: Array, x: Array) -> Array:
    """Into out (1, n) the distribution function at x (n,); returns where it is right."""
    p, ok = _tight(p)
    xp, edges = namespace(x), on_device(_cell_rule(p.rule, p.b.shape[0] - 1)[0], x)
    mass = _cells(p)
    some = p.half > 0
    u = ((x - p.shift - p.mode) - p.mid) / xp.where(some, p.half, 1.0)
    u = xp.minimum(xp.maximum(u, xp.full_like(u, -1.0)), xp.ones_like(u))
    before = edges[1:-1, None] <= u[:, None, :]
    cell = xp.sum(xp.astype(before, xp.int64), axis=1)
    left = xp.reshape(xp.take(edges, xp.reshape(cell, (-1,))), u.shape)
    F = p.half * _from(p, p.b, p.mid, p.half, left, u)[0]
    F = xp.sum(F + xp.sum(xp.where(before, mass[:, :-1, :], 0.0), axis=1), axis=0)
    Z = xp.sum(mass, axis=(0, 1))
    out[0, ...] = xp.minimum(F / Z, xp.ones_like(Z))
    return ok & (Z > 0) & xp.isfinite(out[0, ...])
