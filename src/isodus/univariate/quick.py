"""The quick road: one interval about the mode, in plain arithmetic, with a certificate that it holds the mass.

In the variable v = x / s with s such that the largest even term of q reaches the level at v = 1:

1. the mode of a quartic near to q, or the lowest of a few nodes, then Newton steps, lead to the mode; Taylor
   coefficients h there;
2. Newton steps lead to T with q(mode ± T) ≥ q(mode) + level; with u = (v − mode) / T, b_k = h_k T^k;
3. Σ_{k≥2} k b_k u^{k−2} > 0 for |u| ≥ 1: q rises beyond the interval;
4. Σ_{k≥2} b_k u^{k−2} ≥ 0: the mode is the lowest point.

`hasty` takes few steps, for quartics without the scale s, and `patient` takes more with the rows left over;
where a certificate fails even then, the row is left to another road.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log

import numpy as np

from ..arrays import Array, empty, matmul_into, multiply_into, namespace, on_device
from .pieces import ILL_CONDITIONED, Pieces
from .polynomials import listed, polynomial, put_rows, scaled, taylor, value_slope

__all__ = ["hasty", "patient", "quartic_start", "tightened"]

_SCAN = np.linspace(-1.2, 1.2, 17)
_FAR = float(_SCAN[1] - _SCAN[0])  # the longest step towards the mode
_FOLD = 0.3  # what v² counts as where a higher power is replaced by a lower one
_CHECK = np.linspace(-1.0, 1.0, 129)
_FLAT = 1e-15  # h_1² / h_2, four times what q is above its minimum: at the mode
_TIE = 1e-3  # wells of depths so near that nodes cannot tell the deeper one are left to the careful road


def hasty(a: Array, low: Array | None, nu: float, power: float, level: float) -> tuple[Pieces, Array]:
    """The quick road with few steps, which do for most rows."""
    return _quartic(a, level) if a.shape[0] == 4 else _quick(a, level, False)


def patient(a: Array, low: Array | None, nu: float, power: float, level: float) -> tuple[Pieces, Array]:
    """The quick road with as many steps as it takes."""
    return _quick(a, level, True)


def _quick(a: Array, level: float, patient: bool) -> tuple[Pieces, Array]:
    """One interval a row of a (d, n), d even; second, the rows where that is right."""
    xp, d = namespace(a), a.shape[0]
    if d == 2:
        return _gaussian(a, level, patient)
    s = _reach(a, level)
    c = scaled(a, s)
    v, ok = _mode(c, patient)
    energy = polynomial([0.0, *listed(c)], v)
    ok = ok & (polynomial([0.0, *listed(xp.abs(c))], xp.abs(v)) < ILL_CONDITIONED)
    h = taylor(c, v)
    T = _window(h, level, 12 if patient else 2)
    pieces = empty((d + 1, 1, T.shape[0]), T)
    pieces[0, ...] = 0.0
    b = scaled(h, T, pieces[1:, 0, :])
    ok = ok & _holds(b, level)
    if d > 4:  # the start for a quartic is in the lowest well
        ok = ok & _most(b, _lowest_at_zero(b) | ~ok, _lowest_at_nodes)
    return _pieces(pieces, v * s, T * s, energy, ok, patient)


def _quartic(a: Array, level: float) -> tuple[Pieces, Array]:
    """The same for a quartic: the mode has a formula, and q rises where 4 b_4 u² + 3 b_3 u + 2 b_2 > |b_1|."""
    xp = namespace(a)
    x = quartic_start(a, 4)
    energy = polynomial([0.0, *listed(a)], x)
    ok = polynomial([0.0, *listed(xp.abs(a))], xp.abs(x)) < ILL_CONDITIONED
    h = taylor(a, x)
    ok &= h[0, ...] * h[0, ...] < _FLAT * h[1, ...]
    T = _window(h, level, 2)
    pieces = empty((5, 1, T.shape[0]), T)
    pieces[0, ...] = 0.0
    b1, b2, b3, b4 = listed(scaled(h, T, pieces[1:, 0, :]))
    lower = b2 + b4
    lower -= xp.abs(b1 + b3)
    ok &= (lower > level) & (lower < 1.5 * level)
    b3 = 3.0 * xp.abs(b3)
    parabola = 4.0 * b4
    slope = parabola + 2.0 * b2
    slope -= b3
    slope -= xp.abs(b1)
    ok &= (slope > 0) & ((2.0 * parabola > b3) | (b3 * b3 < 8.0 * b2 * parabola))
    return _pieces(pieces, x, T, energy, ok, False)


def _most(b: Array, ok: Array, otherwise: Callable) -> Array:
    """`ok`, and in its other rows otherwise(b there), which is not called for the many."""
    xp = namespace(b)
    if bool(xp.all(ok)):
        return ok
    return put_rows(ok, ~ok, otherwise(xp.take(b, xp.nonzero(~ok)[0], axis=-1)))


def _gaussian(a: Array, level: float, patient: bool) -> tuple[Pieces, Array]:
    """Degree 2: q = c_2 (x − mode)² + const."""
    xp, c1, c2 = namespace(a), a[0, ...], a[1, ...]
    mode = -0.5 * c1 / c2
    b = xp.stack([0.0 * c2, 0.0 * c2, xp.full_like(c2, level + 1.0)])[:, None, :]
    ok = xp.abs(c1 * mode) + c2 * mode * mode < ILL_CONDITIONED
    return _pieces(b, mode, xp.sqrt((level + 1.0) / c2), 0.5 * c1 * mode, ok, patient)


def _pieces(b: Array, mode: Array, half: Array, energy: Array, ok: Array, patient: bool) -> tuple[Pieces, Array]:
    """One piece a row about the mode; b: (d + 1, 1, n)."""
    xp = namespace(b)
    if patient and not bool(xp.all(ok)):  # no rule is doubled for rows that are not right
        b, half = xp.where(ok, b, 0.0), xp.where(ok, half, 0.0)
    return Pieces(b, xp.zeros_like(half)[None, :], half[None, :], mode, energy, "trapezoid", patient), ok


def _reach(c: Array, level: float) -> Array:
    """min over even k of (level / c_k)^(1/k), (n,): how far the even terms alone let the mass reach."""
    xp, d = namespace(c), c.shape[0]
    z = xp.log(c[d - 1, ...]) / d
    shortest = z - log(level) / d
    for k in range(d - 2, 0, -2):
        z = xp.log(xp.maximum(c[k - 1, ...], xp.full_like(z, 1e-300)))
        z -= log(level)
        z /= k
        shortest = xp.maximum(shortest, z)
    return xp.exp(-shortest)


def _mode(c: Array, patient: bool) -> tuple[Array, Array]:
    """The bottom of the lowest well, by Newton steps, and where they have got there."""
    xp, d = namespace(c), c.shape[0]
    v = _lowest_node(c) if patient and d > 4 else quartic_start(c)
    slope = [c[k, ...] if k == 0 else (k + 1) * c[k, ...] for k in range(d)]
    scratch = empty((2, v.shape[0]), v)
    for _ in range(12 if patient else 3):
        f, df = value_slope(slope, v, scratch)
        move = f / df
        f *= move  # what the step will lower q by; the error it leaves is of the order of its square
        v -= xp.clip(move, -_FAR, _FAR)
    return v, (xp.abs(f) < 1e-7) & (df > 0)


def _lowest_node(c: Array) -> Array:
    """The node where Σ c_k v^k is least."""
    xp = namespace(c)
    e = empty((_SCAN.size, c.shape[1]), c)
    matmul_into(e, on_device(_SCAN[:, None] ** np.arange(1, c.shape[0] + 1), c), c)
    return xp.take(on_device(_SCAN, c), xp.argmin(e, axis=0))


def quartic_start(c: Array, steps: int = 3) -> Array:
    """Near the lowest minimum of a quartic: q / c_4 = z⁴ − 6 r z² + g z + const, z = v − origin.

    q' = 0 is z³ − 3 r z + g/4 = 0. Its root opposite to g, w = |z|, by Newton from w³ = |g|/4 + max(3 r, 0)^{3/2},
    which is right when either of them is 0. Higher powers are folded into lower ones, v² counting as _FOLD,
    which is good enough to start from.
    """
    xp = namespace(c)
    if c.shape[0] > 4:
        c = c + 0.0
        for k in range(c.shape[0] - 1, 3, -1):
            c[k - 2, ...] += _FOLD * c[k, ...]
        c[3, ...] = xp.maximum(c[3, ...], xp.ones_like(c[3, ...]))
    c4 = c[3, ...]
    inverse = 1.0 / c4
    k1, k2, origin = c[0, ...] * inverse, c[1, ...] * inverse, -0.25 * c[2, ...] * inverse
    square = origin * origin
    r3 = 3.0 * square - 0.5 * k2
    g = (2.0 * k2 - 8.0 * square) * origin + k1
    quarter = xp.abs(g) * 0.25
    w = xp.maximum(r3, 0.0 * r3)
    w *= xp.sqrt(w)
    w += quarter
    w = xp.exp(xp.log(w + 1e-300) / 3.0)
    for _ in range(steps):  # w = (2 w³ + |g|/4) / (3 w² − 3 r), in place
        square = w * w
        w *= square
        w *= 2.0
        w += quarter
        square *= 3.0
        square -= r3
        w /= square
    return xp.where(g > 0, origin - w, origin + w)


def _window(h: Array, level: float, steps: int) -> Array:
    """T (n,) with Σ h_k (±T)^k about level + 2 on the side where that is less."""
    t = 1.35 * _reach(h, level)  # from beyond the barrier of a double well
    odd = polynomial([h[k, ...] for k in range(0, h.shape[0], 2)], t * t)
    return _crossing(h, -_sign(odd), t, level, steps)


def _crossing(h: Array, side: Array, t: Array, level: float, steps: int) -> Array:
    """t > 0 with Σ h_k (side t)^k about level + 2, by Newton from t; √q, since it is closer to linear than q."""
    xp, t = namespace(h), t + 0.0
    g = [0.0, *(h[k, ...] if k % 2 else side * h[k, ...] for k in range(h.shape[0]))]
    scratch = empty((2, t.shape[0]), t)
    for _ in range(steps):
        e, slope = value_slope(g, t, scratch)
        f = xp.sqrt(xp.abs(e))
        f *= (level + 2.0) ** 0.5
        f -= e
        f *= 2.0
        f /= slope
        most = 0.4 * t
        t += xp.where((slope > 0) & (f < most), f, most)
    return t


def _sign(x: Array) -> Array:
    """1 or −1."""
    return namespace(x).where(x > 0, 1.0 + 0.0 * x, -1.0 + 0.0 * x)


def tightened(p: Pieces, level: float) -> tuple[Pieces, Array]:
    """Pieces of the quick road cut where q reaches the level on the other side too; where that bounds q well."""
    xp, b = namespace(p.b), p.b[1:, 0, :]
    side = _sign(xp.sum(b[::2, ...], axis=0))
    t = _crossing(b, side, 1.0 + 0.0 * side, level, 5)
    mid, half = 0.5 * side * (t - 1.0), 0.5 * (t + 1.0)
    c = xp.concat([polynomial([0.0, *listed(b)], mid)[None, ...], scaled(taylor(b + 0.0, mid), half)])
    e = on_device(_CHECK[::8, None] ** np.arange(c.shape[0]), c) @ c
    ok = (xp.max(e, axis=0) < 1.6 * level) & (xp.minimum(e[0, ...], e[-1, ...]) > level - 1.0)
    c, half = xp.where(ok, c, 0.0), xp.where(ok, p.half * half, 0.0)
    return replace(p, b=c[:, None, :], mid=p.half * mid, half=half), ok


def _holds(b: Array, level: float) -> Array:
    """Where both ends lie above the level, not far above it, and q rises beyond them."""
    xp, d = namespace(b), b.shape[0]
    even, odd = b[1, ...] + b[3, ...], b[0, ...] + b[2, ...]
    for k in range(4, d, 2):
        even, odd = even + b[k + 1, ...], odd + b[k, ...]
    lower = even - xp.abs(odd)
    p = empty((d - 1, 2, b.shape[1]), b)
    for k in range(2, d + 1):
        multiply_into(p[k - 2, 0, ...], b[k - 1, ...], float(k))
        multiply_into(p[k - 2, 1, ...], b[k - 1, ...], float(k if k % 2 == 0 else -k))
    for i in range(d - 2):  # Taylor coefficients at ±1
        for j in range(d - 3, i - 1, -1):
            p[j, ...] += p[j + 1, ...]
    rises = _most(p, xp.min(p, axis=(0, 1)) >= 0, lambda p: xp.all(_positive(p), axis=0))
    return rises & (lower > level) & (lower < 1.5 * level)


def _lowest_at_zero(b: Array) -> Array:
    """Where Σ_{k≥2} b_k u^{k−2} is certainly nowhere negative."""
    xp = namespace(b)
    r = empty((b.shape[0] - 1, b.shape[1]), b)
    r[::2, ...] = b[1::2, ...]
    r[1::2, ...] = -xp.abs(b[2::2, ...])
    return _positive(r)


def _lowest_at_nodes(b: Array) -> Array:
    """Where Σ_k b_k u^k > _TIE (b_2 + 50) u² at all nodes, 50 being about what the sum is at the ends."""
    xp = namespace(b)
    V = _CHECK[:, None] ** np.arange(1, b.shape[0] + 1)
    V[:, 1] *= 1.0 - _TIE
    e = on_device(V, b) @ b
    e -= on_device(50.0 * _TIE * _CHECK[:, None] ** 2, b)
    return xp.min(e, axis=0) > -1e-9


def _positive(p: Array) -> Array:
    """A certificate that Σ_j p_j t^j, p: (m + 1, …), is not negative for t ≥ 0.

    A negative p_j is made up for by its neighbours: α p_{j−1} + p_j t + β p_{j+1} t² ≥ 0 when p_j² ≤ 4 α β
    p_{j−1} p_{j+1}; the first and the last have one neighbour, α = 1, others share themselves out, α = 1/2.
    """
    xp, m = namespace(p), p.shape[0] - 1
    share = np.full(m + 1, 0.5)
    share[0] = share[-1] = 1.0
    weight = on_device(4.0 * share[:-2] * share[2:], p)
    zero = xp.zeros_like(p[:1, ...])
    slack = xp.maximum(p, zero)
    slack = slack[:-2, ...] * slack[2:, ...]
    slack *= xp.reshape(weight, (-1, *[1] * (p.ndim - 1)))
    slack = xp.sqrt(slack)
    slack += p[1:-1, ...]
    return (xp.min(slack, axis=0) >= 0) & (p[0, ...] >= 0) & (p[m, ...] > 0)
