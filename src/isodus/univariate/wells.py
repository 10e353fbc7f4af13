"""Quartics that are not for the quick road: wells far apart, deep or far from zero.

A quartic about its deepest well, h_2 t² + h_3 t³ + h_4 t⁴, has at most one other, at `far`, behind a barrier at
`near`: the roots of 4 h_4 t² + 3 h_3 t + 2 h_2, both on the side where h_3 t < 0, so that on this side q rises
more slowly. Three cases are told apart by the heights there: the other well holds no mass, or both wells lie in
one interval (`lone`), or each has its own (`pair`). Every interval is as long on the other side, where q is
higher, and ends where the density vanishes, so the trapezoid sum does for all. Taylor shifts are compensated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..arrays import Array, empty, namespace
from .pieces import Pieces
from .polynomials import listed, root, scaled, taylor_exact, value_slope
from .quick import quartic_start

__all__ = ["lone", "pair"]

_TINY = 1e-300  # in place of zero in a denominator
_FLAT = 1e-4  # by how much h_1 may change q in an interval
_GAP = 4.0  # between the barrier and the level


@dataclass(frozen=True)
class _Quartic:
    """Rows about a point near the bottom of their deepest well, h = hi + lo, and their other critical points."""

    mode: Array
    hi: list[Array]
    lo: list[Array]
    h: list[Array]
    side: Array  # 1 or −1: where the other well is, or would be
    two: Array  # whether there is one
    near: Array  # distance of the barrier
    far: Array  # distance of the other well
    barrier: Array  # height of the barrier
    other: Array  # height of the bottom of the other well


def lone(a: Array, low: Array | None, nu: float, power: float, level: float) -> tuple[Pieces, Array]:
    """One interval a row of a (4, n), about the deepest well; second, the rows where that is right."""
    xp, q = namespace(a), _deepest(a, low)
    apart, dropped = _apart(q, level), q.two & (q.other >= level)
    above = xp.clip(xp.where(dropped, 0.5 * (q.barrier - level), 2.0), 0.01, 2.0)
    T = _crossing(q, level + above, 0.5 * above, apart | dropped)
    b = _scaled(q.h, T, 0.0)
    ok = _sound(b, level) & (q.other > -1.0) & ~apart
    b, T = xp.where(ok, b, 0.0), xp.where(ok, T, 0.0)
    return Pieces(b[:, None, :], 0.0 * T[None, :], T[None, :], q.mode, q.hi[0] + q.lo[0], "trapezoid"), ok


def pair(a: Array, low: Array | None, nu: float, power: float, level: float) -> tuple[Pieces, Array]:
    """Two intervals a row of a (4, n), about each well; second, the rows where that is right."""
    xp, q = namespace(a), _deepest(a, low)
    zero, at = xp.zeros_like(q.mode), q.side * q.far
    hi, lo = taylor_exact([zero, *q.hi[1:]], [zero, *q.lo[1:]], at)
    other = replace(q, h=_sum(hi, lo), side=-q.side, near=q.far - q.near)
    height = xp.clip(q.barrier - other.h[0] - 0.5 * _GAP, None, level + 2.0)
    T = [_crossing(q, zero + level + 2.0, zero + 1.0, q.two), _crossing(other, height, zero + 1.0, q.two)]
    b = [_scaled(q.h, T[0], 0.0), _scaled(other.h, T[1], other.h[0])]
    ok = _apart(q, level) & (q.other > -1.0) & _sound(b[0], level) & _sound(b[1], level)
    right = q.side < 0  # the deepest well
    b, half, mid = ([xp.where(right, v, u), xp.where(right, u, v)] for u, v in (b, T, [zero, at]))
    b, half = xp.where(ok, xp.stack(b, axis=1), 0.0), xp.where(ok, xp.stack(half), 0.0)
    return Pieces(b, xp.stack(mid), half, q.mode, q.hi[0] + q.lo[0], "trapezoid"), ok


def _sum(hi: list[Array], lo: list[Array]) -> list[Array]:
    """Unevaluated sums, evaluated."""
    return [h + r for h, r in zip(hi, lo, strict=True)]


def _scaled(h: Sequence[Array], T: Array, floor: Array | float) -> Array:
    """The coefficients (5, n) of floor + Σ_{k≥1} h_k t^k in u = t / T."""
    b = empty((5, T.shape[0]), T)
    b[0, ...] = floor
    scaled(namespace(T).stack(h[1:]), T, b[1:, ...])
    return b


def _apart(q: _Quartic, level: float) -> Array:
    """Where each well has an interval of its own: the barrier is high enough, seen from either.

    A well above the level, but less than twice as high, has one too: far away, it may make up the higher moments.
    """
    high = (q.barrier > level + _GAP) & (q.barrier - q.other > 0.5 * level + _GAP)
    return q.two & high & (q.other < 2.0 * level)


def _sound(b: Array, level: float) -> Array:
    """Where u = 0 is the bottom of a well and Σ b_k u^k > level at u = ±1."""
    xp, even, odd = namespace(b), b[0, ...] + b[2, ...] + b[4, ...], b[1, ...] + b[3, ...]
    return (b[2, ...] >= 0) & (xp.abs(b[1, ...]) < _FLAT) & (even - xp.abs(odd) > level)


def _deepest(a: Array, low: Array | None) -> _Quartic:
    """The rows about the bottom of the deepest well: after a last step to it, or to the other if that is deeper."""
    xp = namespace(a)
    zero = xp.zeros_like(a[0, ...])
    c, c_low = [zero, *listed(a)], None if low is None else [zero, *listed(low)]
    first = _about(c, c_low, _bottom(a))
    step = -0.5 * first.h[1] / xp.where(first.h[2] == 0, 1.0, first.h[2])
    return _about(c, c_low, first.mode + xp.where(first.other < 0, first.side * first.far, step))


def _bottom(a: Array) -> Array:
    """Near the bottom of the deepest well: from the depressed quartic, then Newton steps."""
    x = quartic_start(a)
    slope = [float(k + 1) * a[k, ...] for k in range(4)]
    scratch = empty((2, x.shape[0]), x)
    for _ in range(4):
        f, df = value_slope(slope, x, scratch)
        f /= df
        x -= f
    return x


def _about(c: Sequence[Array], low: Sequence[Array] | None, mode: Array) -> _Quartic:
    """Taylor coefficients at the mode, and the roots of h' / t, h_1 being next to nothing."""
    xp = namespace(mode)
    hi, lo = taylor_exact(c, low, mode)
    h = _sum(hi, lo)
    _, _, h2, h3, h4 = h
    square = 9.0 * h3 * h3 - 32.0 * h2 * h4
    two = square > 0
    slow = 3.0 * xp.abs(h3) + xp.sqrt(xp.where(two, square, 0.0))
    near, far = 4.0 * h2 / (slow + _TINY), slow / (8.0 * h4)
    barrier, other = ((h2 - (xp.abs(h3) - h4 * t) * t) * t * t for t in (near, far))
    side = xp.where(h3 < 0, xp.ones_like(h3), -xp.ones_like(h3))
    return _Quartic(mode, hi, lo, h, side, two, near, far, barrier, xp.where(two, other, 0.0))


def _crossing(q: _Quartic, target: Array, slack: Array, before: Array) -> Array:
    """t > 0 with Σ_{k≥1} h_k (side t)^k within `slack` of its target: before the barrier, or the last one.

    Beyond the other well q rises faster than its second and fourth power alone. Where there is no other well,
    it is at least a ninth of h_2 t² and of h_4 t⁴.
    """
    xp = namespace(target)
    _, h1, h2, h3, h4 = q.h
    beyond = q.two & ~before
    start = xp.where(beyond, q.far, 0.0)
    height = target - xp.where(beyond, q.other, 0.0)
    curved = h2 + (6.0 * h4 * start - 3.0 * xp.abs(h3)) * start
    reach = xp.minimum(xp.sqrt(height / xp.clip(curved, _TINY, None)), xp.sqrt(xp.sqrt(height / h4)))
    end = start + reach
    hi = xp.where(before, q.near, xp.where(beyond, end, 3.0 * reach))
    c = [0.0 * h1, q.side * h1, h2, q.side * h3, h4]

    def g(t: Array) -> tuple[Array, Array]:
        f, df = value_slope(c, t)
        f -= target
        return f, df

    return root(g, start, hi, xp.minimum(end, hi), target == target, lambda t: slack, 1e-3)
