"""Quadrature: log Z and moments from sums over fixed nodes of every piece, two matrix products around one exp."""

from __future__ import annotations

from functools import lru_cache

import array_api_compat
import numpy as np

from ..arrays import Array, empty, matmul_into, multiply_into, namespace, on_device
from .pieces import Pieces
from .polynomials import power_tail, put_rows, recentre

__all__ = ["moment_rows", "sums"]

_MOST_NODES = 1024


@lru_cache(maxsize=64)
def _rule(name: str, n: int, moments: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u_j and rows of weights.

    First w_j u_j^l for l = 0, 1 and the highest even l, odd less even nodes: the difference from the rule
    with half the nodes. Then w_j u_j^l, l = 0..moments, or, where the mass may lie at either end,
    w_j (u_j + 1)^l and w_j (u_j − 1)^l.
    """
    if name == "trapezoid":
        u, w, origins = np.linspace(-1.0, 1.0, n + 1), np.full(n + 1, 2.0 / n), [0.0]
    else:
        v, h = np.linspace(-3.2, 3.2, n + 1, retstep=True)
        u, origins = np.tanh(0.5 * np.pi * np.sinh(v)), [-1.0, 1.0]
        w = h * 0.5 * np.pi * np.cosh(v) / np.cosh(0.5 * np.pi * np.sinh(v)) ** 2
    check = u ** np.array([[0], [1], [moments - moments % 2]]) * w * np.where(np.arange(n + 1) % 2, 1.0, -1.0)
    powers = [(u - origin) ** np.arange(moments + 1)[:, None] * w for origin in origins]
    return u, np.concatenate([check, *powers])


def sums(p: Pieces, u: np.ndarray, weights: np.ndarray) -> Array:
    """Σ_j weights[i, j] exp(−(q − energy)) at nodes u_j of every piece, times half: (i, K, n)."""
    xp = namespace(p.b)
    d, K, n = p.b.shape
    b = xp.reshape(p.b, (d, K * n))
    V, W = on_device(-(u[:, None] ** np.arange(d)), b), on_device(weights, b)
    if p.nu > 0:
        nodes, flat = on_device(u[:, None], b), (1, K * n)
        start, half = xp.reshape(p.mode + p.mid, flat), xp.reshape(p.half, flat)
        least = xp.reshape(power_tail(p.mode, p.nu, p.power) + 0.0 * p.mid, flat)
    steep = float(xp.max(xp.sum(xp.abs(b), axis=0))) > 700.0
    # tiles of a few hundred kB stay in the second cache
    tile = max(64, 40_000 // u.size) if array_api_compat.is_numpy_array(b) else K * n
    S, scratch = empty((weights.shape[0], K * n), b), empty((u.size * min(tile, K * n),), b)
    for i in range(0, K * n, tile):
        j = slice(i, min(i + tile, K * n))
        e = xp.reshape(scratch[: u.size * (j.stop - i)], (u.size, j.stop - i))
        matmul_into(e, V, b[:, j])
        if p.nu > 0:
            e += least[:, j] - power_tail(start[:, j] + half[:, j] * nodes, p.nu, p.power)
        matmul_into(S[:, j], W, _exp(e, steep))
    S *= xp.reshape(p.half, (1, K * n))
    return xp.reshape(S, (weights.shape[0], K, n))


def _exp(e: Array, steep: bool) -> Array:
    """exp(e), in the memory of e where the library can; where e may be steep, 1e-43 stands for all below."""
    if type(e) is not np.ndarray:
        return namespace(e).exp(e)
    if steep:  # numbers too small for full precision cost the processor ten times as much
        np.maximum(e, -100.0, out=e)
    return np.exp(e, out=e)


def _fewest(p: Pieces, moments: int) -> int:
    """The number of nodes, less one, to begin with: such that it does for most rows."""
    if p.rule != "trapezoid":
        return 96
    few = {3: 32, 5: 48}.get(p.b.shape[0], 56) + moments // 2 * 2
    narrow = float(namespace(p.b).mean(p.b[2, ...])) > 100.0  # wells a few hundredths of the interval wide
    return 2 * few if p.patient or narrow else few


def moment_rows(p: Pieces, out: Array, moments: int, tol: float, n: int = 0) -> Array:
    """Into out (2 + 2 moments, n): mode, E[(x − mode)^l], log ∫exp(−q), E[x^l]; where the rule agrees with its half.

    Halving the step raises the error to a power above 2 (2^{d/(d−1)} for the trapezoid sum), so agreement
    to tol^0.45 / 10 is enough, tol^0.6 / 10 above degree 4, where the power is nearer to 2 and moments about
    the mode lose more. The first moment is checked since Z's error oscillates and may be 0 by chance.
    """
    xp = namespace(p.b)
    n = n or _fewest(p, moments)
    mode, central, raw = out[0, ...], out[1 : 1 + moments, ...], out[1 + moments :, ...]
    error, Z, size = _about_mode(p, sums(p, *_rule(p.rule, n, moments)), central)
    enough = 0.1 * tol ** (0.45 if p.b.shape[0] <= 5 else 0.6)
    ok = (error[0, ...] + error[1, ...] <= enough * Z) & (error[2, ...] <= enough * size)
    mode[...] = p.mode + p.shift
    central /= Z
    raw[0, ...], raw[1:, ...] = 1.0, central
    recentre(raw, mode)
    raw[0, ...] = xp.log(Z) - p.energy
    rows = xp.nonzero(~ok)[0]
    if rows.shape[0] > (0 if p.patient else ok.shape[0] // 8) and n < _MOST_NODES:
        again = empty((out.shape[0], rows.shape[0]), out)
        converged = moment_rows(p.take(rows), again, moments, tol, 2 * n)
        out[...] = put_rows(out, ~ok, again)
        ok = ok | put_rows(ok, ~ok, converged)
    return ok


def _about_mode(p: Pieces, S: Array, out: Array) -> tuple[Array, Array, Array]:
    """∫(x − mode)^l f into out (moments, n); the half rule's differences (3, n), ∫f and ∫u^top f (n,). Gives up S."""
    xp, moments = namespace(S), out.shape[0]
    error, S = xp.abs(S[:3, ...]), S[3:, ...]
    top, scale = moments - moments % 2, p.half
    if p.rule == "trapezoid":  # one piece, about the mode
        for k in range(1, moments + 1):
            multiply_into(out[k - 1, ...], S[k, 0, ...], scale[0, ...])
            scale = scale * p.half
        return error[:, 0, ...], S[0, 0, ...], S[top, 0, ...]
    right = p.mid > 0  # powers about the end nearer to the mode: then nothing cancels
    S = xp.where(right, S[: moments + 1, ...], S[moments + 1 :, ...])
    Z, size = xp.sum(S[0, ...], axis=0), xp.sum(S[top, ...], axis=0)
    for k in range(1, moments + 1):
        S[k, ...] *= scale
        scale = scale * p.half
    recentre(S, xp.where(right, p.mid - p.half, p.mid + p.half))
    out[...] = xp.sum(S[1:, ...], axis=1)
    return xp.sum(error, axis=1), Z, size
