"""Quadrature: log Z and moments from sums over fixed nodes of every piece, two matrix products around one exp."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log10, sqrt

import array_api_compat
import numpy as np

from ..arrays import Array, empty, matmul_into, multiply_into, namespace, on_device
from .pieces import Pieces
from .polynomials import power_tail, put_rows, recentre

__all__ = ["moment_rows", "raw_moments", "sums"]

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


def _fewest(p: Pieces, moments: int, tol: float) -> int:
    """The number of nodes, less one, to begin with: such that it does for most rows.

    Of a quartic, the more the narrower the wells, whose width in the interval is about b_2^{−1/2}.
    """
    digits, d = -log10(tol), p.b.shape[0] - 1
    if p.rule != "trapezoid":
        return 96
    if d == 4:
        curved = float(namespace(p.b).mean(p.b[2, ...]))
        return 4 * ceil((3.0 * digits - 3.0 + 1.5 * moments + 4.0 * sqrt(max(curved, 0.0))) / 4.0)
    few = 2 * ceil((16 if d == 2 else 28) * sqrt(0.1 * digits)) + moments // 2 * 2
    return 2 * few if p.patient else few


def moment_rows(p: Pieces, out: Array, moments: int, tol: float, n: int = 0) -> Array:
    """Into out (2 + moments, n): log ∫exp(−q), mode, E[(x − mode)^l]; returns where the rule agrees with its half.

    Halving the step raises the error to a power above 2 (2^{d/(d−1)} for the trapezoid sum), so agreement
    to tol^0.45 / 10 is enough, tol^0.6 / 10 above degree 4, where the power is nearer to 2 and moments about
    the mode lose more. The first moment is checked since Z's error oscillates and may be 0 by chance.
    """
    xp = namespace(p.b)
    n = n or _fewest(p, moments, tol)
    S = sums(p, *_rule(p.rule, n, moments))
    error, S, start = xp.abs(S[:3, ...]), S[3:, ...], p.mid
    if p.rule != "trapezoid":  # powers about the end nearer to the mode: then nothing cancels
        right = p.mid > 0
        S = xp.where(right, S[: moments + 1, ...], S[moments + 1 :, ...])
        start = xp.where(right, p.mid - p.half, p.mid + p.half)
    ok = _agree(p, error, S[0, ...], S[moments - moments % 2, ...], tol)
    log_z, mode, central = out[0, ...], out[1, ...], out[2:, ...]
    Z = _about_mode(p, S, start, central)
    log_z[...] = xp.log(Z) - p.energy
    mode[...] = p.mode + p.shift
    ok = ok & xp.isfinite(log_z) & xp.isfinite(out[-1, ...])  # the highest moment is the first to overflow
    rows = xp.nonzero(~ok)[0]
    if rows.shape[0] > (0 if p.patient else ok.shape[0] // 8) and n < _MOST_NODES:
        again = empty((out.shape[0], rows.shape[0]), out)
        converged = moment_rows(p.take(rows), again, moments, tol, 2 * n)
        out[...] = put_rows(out, ~ok, again)
        ok = ok | put_rows(ok, ~ok, converged)
    return ok


def _agree(p: Pieces, error: Array, Z: Array, size: Array, tol: float) -> Array:
    """Where the differences (3, K, n) from the half rule are small against ∫f and ∫u^top f (K, n).

    Wells (trapezoid) are judged one by one, since a light one far away may make up the higher moments.
    """
    xp, enough = namespace(Z), 0.1 * tol ** (0.45 if p.b.shape[0] <= 5 else 0.6)
    if p.rule != "trapezoid":
        error, Z, size = (xp.sum(v, axis=-2, keepdims=True) for v in (error, Z, size))
    ok = (error[0, ...] + error[1, ...] <= enough * Z) & (error[2, ...] <= enough * size)
    return ok[0, ...] if ok.shape[0] == 1 else xp.all(ok, axis=0)


def _about_mode(p: Pieces, S: Array, start: Array, out: Array) -> Array:
    """E[(x − mode)^l] into out (moments, n), and ∫f (n,), from S (1 + moments, K, n) about start (K, n)."""
    xp, one = namespace(S), S.shape[1] == 1 and p.rule == "trapezoid"  # then it is about the mode
    Z = S[0, 0, ...] if one else xp.sum(S[0, ...], axis=0)
    scale = 1.0 / Z
    for k in range(1, S.shape[0]):
        scale = scale * p.half
        if one:
            multiply_into(out[k - 1, ...], S[k, 0, ...], scale[0, ...])
        else:
            S[k, ...] *= scale
    if not one:
        S[0, ...] /= Z
        recentre(S, start)
        out[...] = xp.sum(S[1:, ...], axis=1)
    return Z


def raw_moments(central: Array, mode: Array) -> Array:
    """E[x^l] (m, n) from E[(x − mode)^l], l = 1..m."""
    out, block = empty(central.shape, central), 8192 if type(central) is np.ndarray else max(central.shape[1], 1)
    M = empty((central.shape[0] + 1, min(block, central.shape[1])), central)
    for i in range(0, central.shape[1], block):
        j = slice(i, min(i + block, central.shape[1]))
        part = M[:, : j.stop - i]
        part[0, ...], part[1:, ...] = 1.0, central[:, j]
        recentre(part, mode[j])
        out[:, j] = part[1:, ...]
    return out
