"""The one-dimensional polynomial family, batched over samples: log Z, moments, distribution, draws.

Row j has the density f_j(x) ∝ exp(−q_j(x)) on the real line,

    q_j(x) = Σ_{l=1..s} a[l−1, j] x^l + nu |x − centre|^power,        a: (s, n), power > s.

How: the critical points of q are isolated through the chain of its derivatives (each derivative is
monotone between the roots of the next). They give the intervals where q ≤ min q + level; outside of
them nothing is left in double precision. On such an interval, mapped to u ∈ [−1, 1], q is a polynomial
between 0 and `level`, so it cannot vary faster than its degree allows and a few dozen fixed nodes
integrate exp(−q): energies and moments of all rows are two matrix products with one exp between them.

Two roads, told apart row by row. The quick one takes rows with one interval, well conditioned, and
uses the trapezoid sum (spectrally accurate, since the density vanishes at both ends). The careful one
takes all others: compensated Taylor shifts, so that q near the mode is that of the given doubles, and a
double exponential rule on each monotone piece of q. Each rule is doubled until it agrees with its own
half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import perm

import array_api_compat
import numpy as np

from isodus.arrays import Array, namespace, on_device, to_host

__all__ = ["Integrals", "cdf", "draw", "integrate", "quantile"]

_BLOCK = 4096  # rows at a time: a vector of them is 32 kB, small enough for the first cache
_MOST_NODES = 1024
_ILL_CONDITIONED = 1e4  # Σ|a_l x^l| at the mode above which plain Taylor shifts lose more than ~1e-12
_CELLS = 16  # of an interval, for cdf and quantile


@dataclass(frozen=True)
class Integrals:
    """Normalisers and moments of n rows.

    log_z (n,): log ∫ exp(−q) dx.  moments (m, n): E[x^l], l = 1..m.  mode (n,): where the density is highest.
    central (m, n): E[(x − mode)^l], for covariances where the mass is narrow and far from zero.
    missing: host indices of rows with no density (q not confining, or not finite), or whose density
    double precision cannot resolve; there log_z = +inf and everything else is 0.
    """

    log_z: Array
    moments: Array
    mode: Array
    central: Array
    missing: np.ndarray


def integrate(
    a: Array,
    *,
    moments: int = 0,
    nu: float = 0.0,
    power: float = 0.0,
    centre: float = 0.0,
    tol: float = 1e-10,
) -> Integrals:
    """The log of Z = ∫ exp(−q) dx and E[x^l], l = 1..moments, of every row; relative errors below `tol`.

    The error of an odd moment is relative to E|x|^l. Mass more than 38 + 1.25·moments above the lowest
    energy is dropped.
    """
    xp = namespace(a)
    level = 38.0 + 1.25 * moments

    def kernel(p: _Pieces) -> tuple[Array, Array]:
        return _moments(p, moments, tol)

    out, exists, origin = _rows(kernel, 2 + 2 * moments, a, (), nu, power, centre, level)
    log_z = xp.where(exists, out[0, ...] - origin, xp.inf)
    missing = np.nonzero(~to_host(exists))[0]
    return Integrals(log_z, out[2 + moments :, ...], out[1, ...], out[2 : 2 + moments, ...], missing)


def quantile(a: Array, u: Array, *, nu: float = 0.0, power: float = 0.0, centre: float = 0.0) -> Array:
    """The x with ∫_{−∞}^x f / ∫ f = u, for u (n,) in (0, 1); the error, as a probability, is below 1e-10."""
    return _existing(_quantile, a, u, nu, power, centre)


def cdf(a: Array, x: Array, *, nu: float = 0.0, power: float = 0.0, centre: float = 0.0) -> Array:
    """∫_{−∞}^x f / ∫ f for x (n,); absolute error below 1e-10."""
    return _existing(_cdf, a, x, nu, power, centre)


def draw(a: Array, rng: np.random.Generator, *, nu: float = 0.0, power: float = 0.0, centre: float = 0.0) -> Array:
    """One exact draw from each row, (n,): the quantile at a uniform variate made on the host."""
    u = 1.0 - rng.random(a.shape[1])  # in (0, 1]; the clip keeps 1 out
    return quantile(a, on_device(np.minimum(u, 1.0 - 2.0**-53), a), nu=nu, power=power, centre=centre)


# Rows: which exist, in blocks, quick or careful


def _existing(kernel: Callable, a: Array, v: Array, nu: float, power: float, centre: float) -> Array:
    out, exists, _ = _rows(kernel, 1, a, (v,), nu, power, centre, 38.0)
    missing = np.nonzero(~to_host(exists))[0]
    if missing.size:
        raise ValueError(
            f"{missing.size} of {a.shape[1]} rows have no density (the first: row {missing[0]}): "
            f"with nu = {nu}, the highest non-zero coefficient must be of even degree, positive, all finite"
        )
    return out[0, ...]


def _rows(
    kernel: Callable, width: int, a: Array, extra: tuple, nu: float, power: float, centre: float, level: float
) -> tuple[Array, Array, Array]:
    """The kernel's results (width, n), which rows have them, and the part of q that is constant, (n,)."""
    xp = namespace(a)
    a = xp.astype(a, xp.float64, copy=False)
    n = a.shape[1]
    with np.errstate(all="ignore"):
        finite = xp.all(xp.isfinite(a), axis=0)
        origin = xp.zeros_like(a[0, ...])
        low = None
        even = nu > 0 and power % 2 == 0
        if nu > 0 and centre != 0.0:  # q as a polynomial in y = x − centre
            hi, lo = _shift([origin, *_list(a)], None, xp.zeros_like(origin) + centre)
            origin, a, low = hi[0] + lo[0], xp.stack(hi[1:]), xp.stack(lo[1:])
        if even:  # then nu y^power is one more coefficient
            pad = xp.zeros((int(power) - a.shape[0], n), dtype=a.dtype, device=array_api_compat.device(a))
            low = None if low is None else xp.concat([low, pad])
            a = xp.concat([a, pad[1:, ...], pad[:1, ...] + nu])
        smooth = nu == 0 or even
        shift = centre if nu > 0 else 0.0
        out, exists = xp.zeros((width, n), dtype=a.dtype, device=array_api_compat.device(a)), finite & False
        for d, mask in (_degrees(a, finite) if smooth else [(a.shape[0], finite)]) if n else []:
            some = None if bool(xp.all(mask)) else xp.nonzero(mask)[0]
            parts = [_rows_of(v, some) for v in (a[:d, ...], None if low is None else low[:d, ...], *extra)]
            nu_left = 0.0 if smooth else nu
            part, ok = _blocks(kernel, parts[0], parts[1], parts[2:], nu_left, power, shift, level)
            if some is None:
                out, exists = part, ok
                break
            out, exists = _put(out, mask, part), _put(exists, mask, ok)
        exists = exists & xp.all(xp.isfinite(out), axis=0) & xp.isfinite(origin)
        return xp.where(exists, out, 0.0), exists, xp.where(exists, origin, 0.0)


def _degrees(a: Array, finite: Array) -> list[tuple[int, Array]]:
    """(d, rows whose highest non-zero coefficient is of even degree d and positive), d = s, s−2, …"""
    xp, s = namespace(a), a.shape[0]
    if s % 2 == 0 and bool(xp.all(finite & (a[s - 1, ...] > 0))):
        return [(s, finite)]
    groups, zero_above = [], finite
    for d in range(s, 0, -1):
        mask = zero_above & (a[d - 1, ...] > 0)
        if d % 2 == 0 and bool(xp.any(mask)):
            groups.append((d, mask))
        zero_above = zero_above & (a[d - 1, ...] == 0)
    return groups


def _blocks(
    kernel: Callable,
    a: Array,
    low: Array | None,
    extra: list,
    nu: float,
    power: float,
    shift: float,
    level: float,
) -> tuple[Array, Array]:
    """The kernel block by block: all rows by the quick road, then what it could not do by the careful one."""
    xp, n = namespace(a), a.shape[1]

    def sweep(roads: Callable, rows: Array | None) -> tuple[Array, Array]:
        block = _BLOCK // (4 if extra or a.shape[0] > 4 or roads is _careful else 1)
        block = max(block, 64) if array_api_compat.is_numpy_array(a) else 1 << 18
        outs, oks = [], []
        size = n if rows is None else rows.shape[0]
        for i in range(0, size, block):
            here = slice(i, min(i + block, size)) if rows is None else rows[i : min(i + block, size)]
            c, lo, *rest = (_rows_of(v, here) for v in (a, low, *extra))
            p, ok = roads(c, lo, nu, power, level)
            out, converged = kernel(replace(p, shift=shift), *rest)
            outs.append(out)
            oks.append(ok & converged)
        return (outs[0], oks[0]) if len(outs) == 1 else (xp.concat(outs, axis=-1), xp.concat(oks))

    if nu > 0:
        return sweep(_careful, None)
    out, ok = sweep(_quick, None)
    if not bool(xp.all(ok)):
        again, converged = sweep(_careful, xp.nonzero(~ok)[0])
        out, ok = _put(out, ~ok, again), ok | _put(ok, ~ok, converged)
    return out, ok


def _rows_of(v: Array, rows: Array | slice | None) -> Array:
    if v is None or rows is None:
        return v
    return v[..., rows] if isinstance(rows, slice) else namespace(v).take(v, rows, axis=-1)


def _put(out: Array, mask: Array, values: Array) -> Array:
    """`out` (…, n), given up to this function, with `values` (…, count) in the rows of `mask`, in order."""
    if array_api_compat.is_numpy_array(out):
        out[..., mask] = values
        return out
    xp = namespace(out)
    where = xp.cumulative_sum(xp.astype(mask, xp.int64)) - 1
    return xp.where(mask, xp.take(values, xp.where(mask, where, 0), axis=-1), out)


# Polynomials, as lists of coefficients c_0, c_1, …: each a number or an array that broadcasts with x


def _list(a: Array) -> list[Array]:
    return [a[j, ...] for j in range(a.shape[0])]


def _polynomial(c: Sequence[Array], x: Array) -> Array:
    f = c[-1] * x
    for cj in c[-2:0:-1]:
        f += cj
        f *= x
    return f + c[0]


def _value_slope(c: Sequence[Array], x: Array) -> tuple[Array, Array]:
    f, df = c[-1] * x + c[-2], c[-1] + 0.0 * x
    for cj in c[-3::-1]:
        df *= x
        df += f
        f = f * x
        f += cj
    return f, df


def _shift(c: Sequence[Array], low: Sequence[Array] | None, x: Array) -> tuple[list[Array], list[Array]]:
    """Taylor coefficients at x of Σ (c_j + low_j) t^j as unevaluated sums hi_k + lo_k.

    Repeated synthetic division with every rounding error caught (Dekker's product, Knuth's sum): as if
    computed in twice the precision and rounded.
    """
    d = len(c) - 1
    hi = [cj + 0.0 * x for cj in c]
    lo = [0.0 * h for h in hi] if low is None else [lj + 0.0 * x for lj in low]
    x1 = x * 134217729.0
    x1 = x1 - (x1 - x)
    x2 = x - x1
    for i in range(d):
        for j in range(d - 1, i - 1, -1):
            y = hi[j + 1]
            y1 = y * 134217729.0
            y1 = y1 - (y1 - y)
            y2 = y - y1
            p = x * y
            error = ((x1 * y1 - p) + x1 * y2 + x2 * y1) + x2 * y2
            total = hi[j] + p
            z = total - hi[j]
            error += (hi[j] - (total - z)) + (p - z)
            lo[j] = lo[j] + x * lo[j + 1] + error
            hi[j] = total
    return hi, lo


def _recentre(M: Sequence[Array], shift: Array) -> list[Array]:
    """E[(shift + v)^l], l = 0..m, from M_l = E[v^l]."""
    M = [m + 0.0 for m in M]
    for i in range(1, len(M)):
        for k in range(len(M) - 1, i - 1, -1):  # M_k: E[v^(k−i) (shift + v)^i]
            M[k] += shift * M[k - 1]
    return M


def _tail(y: Array, nu: float, power: float, k: int = 0) -> Array:
    """The k-th derivative of nu |y|^power."""
    xp = namespace(y)
    falling = nu
    for i in range(k):
        falling *= power - i
    f = falling * xp.abs(y) ** (power - k)
    return f * xp.sign(y) if k % 2 else f


# Critical points and intervals


def _root(g: Callable, lo: Array, hi: Array, x: Array, rising: Array, f_tol: Callable, x_tol: float = 0.0) -> Array:
    """The root in [lo, hi] of g, monotone there: Newton, or bisection where that leaves [lo, hi] or creeps.

    g(x) -> value, slope. Ends when, in every row, |value| ≤ f_tol(x) or the last step was ≤ x_tol |x|.
    """
    xp = namespace(x)
    going, last = x == x, hi - lo
    for _ in range(200):
        f, df = g(x)
        going = going & (xp.abs(f) > f_tol(x))
        if not bool(xp.any(going)):
            break
        right = (f > 0) == rising
        hi, lo = xp.where(right, x, hi), xp.where(right, lo, x)
        step = f / df
        new = x - step
        newton = (new > lo) & (new < hi) & (xp.abs(step) < 0.5 * last)
        new = xp.where(newton, new, 0.5 * (lo + hi))
        last = xp.abs(new - x)
        x = xp.where(going, new, x)
        going = going & (last > x_tol * xp.abs(new))
    return x


def _roots_between(g: Callable, noise: Callable, separators: Array, bound: Array) -> Array:
    """One point in each piece between separators: g's root there, or the end where |g| is smaller."""
    xp = namespace(bound)
    lo = xp.concat([-bound[None, ...], separators])
    hi = xp.concat([separators, bound[None, ...]])
    ends = g(xp.concat([lo[:1, ...], hi]))[0]
    f_lo, f_hi = ends[:-1, ...], ends[1:, ...]
    none = (f_lo > 0) == (f_hi > 0)
    near = xp.where(xp.abs(f_lo) < xp.abs(f_hi), lo, hi)
    lo, hi = xp.where(none, near, lo), xp.where(none, near, hi)
    return _root(g, lo, hi, 0.5 * (lo + hi), f_hi > 0, noise, 1e-6)


def _bound(c: Sequence[Array], nu: float, power: float, level: float) -> Array:
    """Beyond ±bound, q exceeds its minimum by `level` and no derivative of q vanishes (c_0 = 0).

    max_k ((d + 1) |c_k| / lead)^(1 / (power − k)), c_0 standing for level: each term is then below a
    (d + 1)-th of the leading one, and for derivatives the ratios are smaller still.
    """
    xp = namespace(c[-1])
    lead, power = (nu, power) if nu > 0 else (c[-1], len(c) - 1)
    lower = list(c[1:]) if nu > 0 else list(c[1:-1])
    bound = (len(c) * level / lead) ** (1.0 / power)
    for k, ck in enumerate(lower, start=1):
        bound = xp.maximum(bound, (len(c) * xp.abs(ck) / lead) ** (1.0 / (power - k)))
    return bound


def _critical(c: Sequence[Array], nu: float, power: float, bound: Array) -> Array:
    """Points (r, n), ascending, among which are all roots of q'; from the highest derivative down."""
    xp, d = namespace(bound), len(c) - 1

    def derivative(k: int) -> list[Array]:
        return [perm(j, k) * c[j] for j in range(k, d + 1)]

    if nu > 0:
        separators, first = xp.zeros_like(bound)[None, ...], d
    elif d == 2:
        return (-0.5 * c[1] / c[2])[None, ...]
    else:
        c0, c1, c2 = derivative(d - 2)
        middle = -0.5 * c1 / c2
        radius = xp.sqrt(xp.maximum(middle * middle - c0 / c2, xp.zeros_like(middle)))
        separators, first = xp.stack([middle - radius, middle + radius]), d - 3
    for k in range(first, 0, -1):
        ck = derivative(k)

        def g(x: Array, ck: list[Array] = ck, k: int = k) -> tuple[Array, Array]:
            f, df = _value_slope(ck, x) if len(ck) > 1 else (ck[0] + 0.0 * x, 0.0 * x)
            return (f + _tail(x, nu, power, k), df + _tail(x, nu, power, k + 1)) if nu > 0 else (f, df)

        def noise(x: Array, ck: list[Array] = ck, k: int = k) -> Array:
            x = xp.abs(x)
            f = _polynomial([xp.abs(cj) for cj in ck], x) if len(ck) > 1 else xp.abs(ck[0])
            return 4e-16 * (f + xp.abs(_tail(x, nu, power, k)) if nu > 0 else f)

        separators = _roots_between(g, noise, separators, bound)
    return separators


@dataclass(frozen=True)
class _Pieces:
    """Intervals y = mode + mid + half·u, u ∈ [−1, 1], K a row, ascending, that hold the mass of each row.

    There, q − energy = Σ_j b_j u^j + nu (|y|^power − |mode|^power); x = y + shift. Empty ones have half = 0.
    """

    b: Array  # (d + 1, K, n)
    mid: Array  # (K, n)
    half: Array  # (K, n)
    mode: Array  # (n,)
    energy: Array  # (n,), min q, which is q(mode) up to the rounding of mode
    rule: str
    nu: float = 0.0
    power: float = 0.0
    shift: float = 0.0

    def take(self, rows: Array) -> _Pieces:
        names = ("b", "mid", "half", "mode", "energy")
        return replace(self, **{name: _rows_of(getattr(self, name), rows) for name in names})


def _lowest(points: Array, e: Array) -> tuple[Array, Array]:
    xp = namespace(e)
    x, least = points[0, ...], e[0, ...]
    for k in range(1, e.shape[0]):
        lower = e[k, ...] < least
        x, least = xp.where(lower, points[k, ...], x), xp.where(lower, e[k, ...], least)
    return x, least


def _quick(a: Array, low: Array | None, nu: float, power: float, level: float) -> tuple[_Pieces, Array]:
    """One interval a row, in plain arithmetic; second, the rows where that is right."""
    xp, d = namespace(a), a.shape[0]
    c = [0.0, *_list(a)]
    if d == 2:
        mode, half = -0.5 * c[1] / c[2], xp.sqrt((level + 1.0) / c[2])
        zero = xp.zeros_like(half)
        mid, b, ok = zero, [zero, zero, zero + (level + 1.0)], half > 0
    else:
        mode, mid, half, b, ok = (_quartic if d == 4 else _any_degree)(c, level)
    ok = ok & (_polynomial([0.0, *_list(xp.abs(a))], xp.abs(mode)) < _ILL_CONDITIONED)
    b, half = xp.where(ok, xp.stack(b), 0.0), xp.where(ok, half, 0.0)
    return _Pieces(b[:, None, :], mid[None, :], half[None, :], mode, _polynomial(c, mode), "trapezoid"), ok


def _quartic(c: Sequence[Array], level: float) -> tuple[Array, Array, Array, list[Array], Array]:
    """Mode, mid, half, b, and where they are right; q / c_4 = z⁴ − 6 r z² + g z + const, z = x − origin."""
    xp, c4 = namespace(c[4]), c[4]
    k1, k2, origin = c[1] / c4, c[2] / c4, -0.25 * c[3] / c4
    square = origin * origin
    r, g = square - k2 / 6.0, (2.0 * k2 - 8.0 * square) * origin + k1
    # q' = 0 is z³ − 3 r z + g/4 = 0. Its root w opposite to g, the lowest minimum, by Newton from beyond it.
    # From here on z counts in the direction of that root, so that g is −G.
    side, G = xp.where(g > 0, -xp.ones_like(g), xp.ones_like(g)), xp.abs(g)
    r3, r6, quarter, zero = 3.0 * r, 6.0 * r, 0.25 * G, xp.zeros_like(G)
    w = xp.sqrt(xp.maximum(r3, zero)) + xp.exp(xp.log(quarter + 1e-300) / 3.0)
    for _ in range(5):
        ww = w * w
        w = (2.0 * w * ww + quarter) / (3.0 * ww - r3)
    ww = w * w
    least = (ww - r6) * ww - G * w
    # the other two by deflation; the one nearer to w is the barrier
    t = xp.where(r > 0.25 * ww, xp.sqrt(xp.maximum(r3 - 0.75 * ww, zero)) - 0.5 * w, w)
    barrier = (t * t - r6) * (t * t) - G * t - least

    top = (level + 1.5) / c4
    z = xp.sqrt(r3 + xp.sqrt(xp.maximum(r3 * r3 + least + top, zero)))
    z = xp.stack([-z, z])
    goal = xp.sqrt(top)
    for _ in range(3):  # √(q − least) = √level: closer to linear than q
        zz = z * z
        e = (zz - r6) * zz - G * z - least
        z = z - 2.0 * (e - goal * xp.sqrt(xp.abs(e))) / (4.0 * (zz - r3) * z - G)
    zz = z * z
    e = c4 * ((zz - r6) * zz - G * z - least)
    ok = xp.all((e > level) & (e < level + 4.0), axis=0) & (z[0, ...] < -w) & (z[1, ...] > w)
    ok = ok & (c4 * barrier < level)
    ok = ok & (_polynomial([0.0, *(xp.abs(cj) for cj in c[1:])], xp.abs(origin)) < _ILL_CONDITIONED)

    half, v = 0.5 * (z[1, ...] - z[0, ...]), 0.5 * (z[1, ...] + z[0, ...])
    vv, h1 = v * v, c4 * half
    h2 = h1 * half
    h3 = h2 * half
    b = [c4 * ((vv - r6) * vv - G * v - least), side * h1 * (4.0 * (vv - r3) * v - G), h2 * (6.0 * vv - r6)]
    return origin + side * w, side * (v - w), half, [*b, side * h3 * (4.0 * v), h3 * half], ok


def _any_degree(c: Sequence[Array], level: float) -> tuple[Array, Array, Array, list[Array], Array]:
    """The mode, mid, half, b, and where they are right, for any even degree."""
    xp = namespace(c[-1])
    bound = _bound(c, 0.0, 0.0, level)
    critical = _critical(c, 0.0, 0.0, bound)
    e = _polynomial(c, critical)
    mode, least = _lowest(critical, e)
    inner, outer = xp.stack([critical[0, ...], critical[-1, ...]]), xp.stack([-bound, bound])

    def crossing(x: Array) -> tuple[Array, Array]:
        f, df = _value_slope(c, x)  # the root of the energy is closer to linear than the energy
        root = xp.sqrt(xp.maximum(f - least, xp.zeros_like(f)))
        return root - (level + 1.0) ** 0.5, 0.5 * df / root

    rising = outer > 0
    ends = _root(crossing, xp.minimum(inner, outer), xp.maximum(inner, outer), outer, rising, lambda x: 0.07)
    half, middle = 0.5 * (ends[1, ...] - ends[0, ...]), 0.5 * (ends[1, ...] + ends[0, ...])
    b, scale = [cj + 0.0 * middle for cj in c], half
    b[0] = b[0] - least
    for i in range(len(b) - 1):
        for j in range(len(b) - 2, i - 1, -1):
            b[j] = b[j] + middle * b[j + 1]
    for j in range(1, len(b)):
        b[j] = b[j] * scale
        scale = scale * half
    return mode, middle - mode, half, b, xp.max(e, axis=0) < least + level


def _careful(a: Array, low: Array | None, nu: float, power: float, level: float) -> tuple[_Pieces, Array]:
    """All monotone pieces of q below the level, with compensated Taylor shifts."""
    xp = namespace(a)
    zero = xp.zeros_like(a[0, ...])
    c, c_low = [zero, *_list(a)], None if low is None else [zero, *_list(low)]

    def tail(y: Array) -> Array | float:
        return _tail(y, nu, power) if nu > 0 else 0.0

    bound = _bound(c, nu, power, level)
    critical = _critical(c, nu, power, bound)
    mode, _ = _lowest(critical, _polynomial(c, critical) + tail(critical))
    if nu == 0:  # again from near the mode, where rounding of c is no longer felt
        hi, lo = _shift(c, c_low, mode)
        near = [zero, *(h + r for h, r in zip(hi[1:], lo[1:], strict=True))]
        bound = _bound(near, nu, power, level)
        critical = _critical(near, nu, power, bound)
        t, _ = _lowest(critical, _polynomial(near, critical))
        moved = mode + t
        critical, mode = critical - (moved - mode), moved
        bound = bound + xp.abs(t)
    else:
        critical = xp.sort(xp.concat([critical, zero[None, ...]]), axis=0) - mode
        bound = bound + xp.abs(mode)
    hi, lo = _shift(c, c_low, mode)
    near = [zero, *(h + r for h, r in zip(hi[1:], lo[1:], strict=True))]

    def energy(t: Array) -> Array:
        return _polynomial(near, t) + tail(mode + t) - tail(mode)

    least = xp.min(energy(critical), axis=0)  # below 0 where the mode lies between two doubles

    def crossing(t: Array) -> tuple[Array, Array]:
        f, df = _value_slope(near, t)
        slope = df + _tail(mode + t, nu, power, 1) if nu > 0 else df
        return f + tail(mode + t) - tail(mode) - least - level, slope

    left = xp.concat([-bound[None, ...], critical])
    right = xp.concat([critical, bound[None, ...]])
    over_left, over_right = energy(left) > least + level, energy(right) > least + level
    crosses = over_left != over_right
    cut_lo, cut_hi = xp.where(crosses, left, right), right
    cut = _root(crossing, cut_lo, cut_hi, 0.5 * (cut_lo + cut_hi), over_right, lambda t: 1.0)
    left, right = xp.where(crosses & over_left, cut, left), xp.where(crosses & over_right, cut, right)
    half = xp.where(over_left & over_right & ~crosses, 0.0, 0.5 * (right - left))
    mid = 0.5 * (left + right)
    b, b_low = _shift([-least, *hi[1:]], [zero, *lo[1:]], mid)
    scale, rows = xp.ones_like(half), []
    for h, r in zip(b, b_low, strict=True):
        rows.append((h + r) * scale)
        scale = scale * half
    lowest = hi[0] + (lo[0] + least) + tail(mode)
    ok = xp.isfinite(lowest)
    for u in (-1.0, 1.0):  # the pieces lie where they should: what rounding has misplaced is not integrated
        e = _polynomial(rows, u + 0.0 * half) + tail(mode + mid + u * half) - tail(mode)
        ok = ok & xp.all((half == 0) | ((e > -1.0) & (e < level + 2.0)), axis=0)
    return _Pieces(xp.stack(rows), mid, half, mode, lowest, "double exponential", nu, power), ok


# Integrals over the pieces


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


def _sums(p: _Pieces, u: np.ndarray, weights: np.ndarray) -> Array:
    """Σ_j weights[i, j] exp(−(q − energy)) at nodes u_j of every piece, times half: (i, K, n)."""
    xp = namespace(p.b)
    d, K, n = p.b.shape
    b = xp.reshape(p.b, (d, K * n))
    V, W = on_device(-(u[:, None] ** np.arange(d)), b), on_device(weights, b)
    if p.nu > 0:
        nodes, flat = on_device(u[:, None], b), (1, K * n)
        start, half = xp.reshape(p.mode + p.mid, flat), xp.reshape(p.half, flat)
        least = xp.reshape(_tail(p.mode, p.nu, p.power) + 0.0 * p.mid, flat)
    # tiles below the size from which the C library maps fresh pages for every array
    tile = max(64, 14_000 // u.size) if array_api_compat.is_numpy_array(b) else K * n
    parts = []
    for i in range(0, K * n, tile):
        j = slice(i, min(i + tile, K * n))
        e = V @ b[:, j]
        if p.nu > 0:
            e += least[:, j] - _tail(start[:, j] + half[:, j] * nodes, p.nu, p.power)
        parts.append(W @ xp.exp(e))
    return xp.reshape(xp.concat(parts, axis=1), (weights.shape[0], K, n)) * p.half


def _moments(p: _Pieces, moments: int, tol: float, n: int = 0) -> tuple[Array, Array]:
    """Rows log ∫exp(−q), mode, E[(x − mode)^l], E[x^l]; and where the rule agrees with its half.

    Halving the step raises the error to a power above 2 (2^{d/(d−1)} for the trapezoid sum), so agreement
    to tol^0.45 / 10 is enough, tol^0.6 / 10 above degree 4, where the power is nearer to 2 and moments about
    the mode lose more. The first moment is checked since Z's error oscillates and may be 0 by chance.
    """
    xp = namespace(p.b)
    n = n or (56 if p.rule == "trapezoid" else 96)
    u, weights = _rule(p.rule, n, moments)
    S = _sums(p, u, weights)
    error, S, origin = xp.sum(xp.abs(S[:3, ...]), axis=1), S[3:, ...], p.mid
    if p.rule != "trapezoid":  # powers about the end nearer to the mode: then nothing cancels
        right = p.mid > 0
        S = xp.where(right, S[: moments + 1, ...], S[moments + 1 :, ...])
        origin = xp.where(right, p.mid - p.half, p.mid + p.half)
    Z = xp.sum(S[0, ...], axis=0)
    top = moments - moments % 2
    enough = 0.1 * tol ** (0.45 if p.b.shape[0] <= 5 else 0.6)
    ok = error[0, ...] + error[1, ...] <= enough * Z
    ok = ok & (error[2, ...] <= enough * xp.sum(S[top, ...], axis=0))
    scale, M = p.half, [S[0, ...]]
    for k in range(1, moments + 1):
        M.append(S[k, ...] * scale)
        scale = scale * p.half
    M = [xp.sum(m, axis=0) for m in _recentre(M, origin)]
    mode, M = p.mode + p.shift, [m / Z for m in M]
    out = xp.stack([xp.log(Z) - p.energy, mode, *M[1:], *_recentre(M, mode)[1:]])
    if n < _MOST_NODES and not bool(xp.all(ok)):
        rows = xp.nonzero(~ok)[0]
        again, converged = _moments(p.take(rows), moments, tol, 2 * n)
        out, ok = _put(out, ~ok, again), ok | _put(ok, ~ok, converged)
    if p.rule == "trapezoid" and top:  # the change of origin from mid to mode cancelled too much
        lost, square = xp.full_like(Z, 1e-16 / tol), 4.0 * p.mid[0, ...] * p.mid[0, ...]
        for _ in range(top // 2):
            lost = lost * square
        ok = ok & (lost <= 0.1 * out[1 + top, ...])
    return out, ok


# The distribution function: cells of each piece, Gauss-Legendre within a cell


@lru_cache(maxsize=4)
def _cell_rule(rule: str, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cell edges in [−1, 1], crowded to ends where |y|^power may be rough; nodes, weights on [0, 1]."""
    edges = np.linspace(-1.0, 1.0, _CELLS + 1)
    if rule != "trapezoid":
        edges = np.tanh(0.5 * np.pi * np.sinh(1.8 * edges))
        edges[0], edges[-1] = -1.0, 1.0
    x, w = np.polynomial.legendre.leggauss(10 if d <= 4 or rule != "trapezoid" else 20)
    return edges, 0.5 * (x + 1.0), 0.5 * w


def _cells(p: _Pieces) -> Array:
    """∫ exp(−(q − energy)) over every cell, (K, cells, n)."""
    xp, (edges, nodes, w) = namespace(p.b), _cell_rule(p.rule, p.b.shape[0] - 1)
    size = np.diff(edges)
    u = (edges[:-1, None] + size[:, None] * nodes).ravel()
    return xp.permute_dims(_sums(p, u, np.kron(np.diag(size), w)), (1, 0, 2))


def _from(p: _Pieces, b: Array, mid: Array, half: Array, left: Array, u: Array) -> tuple[Array, Array]:
    """∫_left^u exp(−(q − energy)) du within a cell, and the density at u."""
    xp, (_, nodes, w) = namespace(u), _cell_rule(p.rule, p.b.shape[0] - 1)
    at = on_device(np.append(nodes, 1.0).reshape(-1, *[1] * u.ndim), u)
    v = left + (u - left) * at
    e = _polynomial(_list(b), v)
    if p.nu > 0:
        e += _tail(p.mode + mid + half * v, p.nu, p.power) - _tail(p.mode, p.nu, p.power)
    f = xp.exp(-e)
    weights = on_device(np.append(w, 0.0).reshape(-1, *[1] * u.ndim), u)
    return (u - left) * xp.sum(f * weights, axis=0), f[-1, ...]


def _quantile(p: _Pieces, v: Array) -> tuple[Array, Array]:
    """The x where the distribution function is v."""
    xp, edges = namespace(v), on_device(_cell_rule(p.rule, p.b.shape[0] - 1)[0], v)
    mass = _cells(p)
    mass = xp.reshape(mass, (mass.shape[0] * _CELLS, -1))
    cumulative = xp.cumulative_sum(mass, axis=0)
    Z = cumulative[-1, ...]
    goal = xp.minimum(v, xp.ones_like(v) - 2.0**-52) * Z
    before = cumulative <= goal
    cell = xp.sum(xp.astype(before, xp.int64), axis=0)
    cell = xp.minimum(cell, xp.full_like(cell, mass.shape[0] - 1))
    base = xp.max(xp.where(before, cumulative, 0.0), axis=0)
    share = (goal - base) / (xp.min(xp.where(before, Z, cumulative), axis=0) - base)
    piece = cell // _CELLS
    b, mid, half = p.b[:, 0, :], p.mid[0, ...], p.half[0, ...]
    for k in range(1, p.mid.shape[0]):
        b = xp.where(piece == k, p.b[:, k, :], b)
        mid, half = xp.where(piece == k, p.mid[k, ...], mid), xp.where(piece == k, p.half[k, ...], half)
    cell = cell - piece * _CELLS
    left, right = xp.take(edges, cell), xp.take(edges, cell + 1)
    goal = (goal - base) / half
    start = left + (right - left) * xp.minimum(xp.maximum(share, 0.0 * Z + 1e-3), 0.0 * Z + 0.999)

    def g(u: Array) -> tuple[Array, Array]:
        F, f = _from(p, b, mid, half, left, u)
        return F - goal, f

    u = _root(g, left, right, start, xp.ones_like(v) > 0, lambda u: 1e-12 * Z / half)
    return (p.mode + (mid + half * u) + p.shift)[None, ...], Z > 0


def _cdf(p: _Pieces, x: Array) -> tuple[Array, Array]:
    """The distribution function at x."""
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
    return xp.minimum(F / Z, xp.ones_like(Z))[None, ...], Z > 0
