"""The careful road: every monotone piece of q below the level, whatever the row.

The critical points of q are isolated through the chain of its derivatives: each is monotone between the
roots of the next. Taylor shifts are compensated, so that q near the mode is that of the given doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import perm

from ..arrays import Array, namespace
from .pieces import Pieces
from .polynomials import listed, polynomial, power_tail, root, taylor_exact, value_slope

__all__ = ["below", "careful", "level_bound", "lowest"]


def level_bound(c: Sequence[Array], nu: float, power: float, level: float) -> Array:
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
    return root(g, lo, hi, 0.5 * (lo + hi), f_hi > 0, noise, 1e-6)


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
            f, df = value_slope(ck, x) if len(ck) > 1 else (ck[0] + 0.0 * x, 0.0 * x)
            return (f + power_tail(x, nu, power, k), df + power_tail(x, nu, power, k + 1)) if nu > 0 else (f, df)

        def noise(x: Array, ck: list[Array] = ck, k: int = k) -> Array:
            x = xp.abs(x)
            f = polynomial([xp.abs(cj) for cj in ck], x) if len(ck) > 1 else xp.abs(ck[0])
            return 4e-16 * (f + xp.abs(power_tail(x, nu, power, k)) if nu > 0 else f)

        separators = _roots_between(g, noise, separators, bound)
    return separators


def lowest(points: Array, e: Array) -> Array:
    """The point (n,) of points (r, n) where e (r, n) is least."""
    xp = namespace(e)
    x, least = points[0, ...], e[0, ...]
    for k in range(1, e.shape[0]):
        lower = e[k, ...] < least
        x, least = xp.where(lower, points[k, ...], x), xp.where(lower, e[k, ...], least)
    return x


def _mode(
    c: Sequence[Array], low: Sequence[Array] | None, nu: float, power: float, level: float
) -> tuple[Array, Array, Array]:
    """The mode (n,), the critical points about it (r, n) and the bound about it (n,)."""
    xp, zero = namespace(c[-1]), c[0]
    bound = level_bound(c, nu, power, level)
    critical = _critical(c, nu, power, bound)
    if nu > 0:
        mode = lowest(critical, polynomial(c, critical) + power_tail(critical, nu, power))
        return mode, xp.sort(xp.concat([critical, zero[None, ...]]), axis=0) - mode, bound + xp.abs(mode)
    mode = lowest(critical, polynomial(c, critical))
    hi, lo = taylor_exact(c, low, mode)  # again from near the mode, where rounding of c is no longer felt
    near = [zero, *(h + r for h, r in zip(hi[1:], lo[1:], strict=True))]
    bound = level_bound(near, nu, power, level)
    critical = _critical(near, nu, power, bound)
    t = lowest(critical, polynomial(near, critical))
    moved = mode + t
    return moved, critical - (moved - mode), bound + xp.abs(t)


def careful(a: Array, low: Array | None, nu: float, power: float, level: float) -> tuple[Pieces, Array]:
    """All monotone pieces of q below the level, a: (d, n); second, the rows where rounding spared them."""
    xp = namespace(a)
    zero = xp.zeros_like(a[0, ...])
    c, c_low = [zero, *listed(a)], None if low is None else [zero, *listed(low)]
    mode, critical, bound = _mode(c, c_low, nu, power, level)
    hi, lo = taylor_exact(c, c_low, mode)
    left, right = xp.concat([-bound[None, ...], critical]), xp.concat([critical, bound[None, ...]])
    return below(hi, lo, mode, left, right, level, nu, power)


def below(
    hi: Sequence[Array],
    lo: Sequence[Array],
    mode: Array,
    left: Array,
    right: Array,
    level: float,
    nu: float = 0.0,
    power: float = 0.0,
) -> tuple[Pieces, Array]:
    """What of stretches from left to right, (K, n), about the mode, is below the level; and where rounding spared it.

    On each of them q is monotone; hi + lo: its Taylor coefficients at the mode.
    """
    xp, zero = namespace(mode), 0.0 * mode
    near = [zero, *(h + r for h, r in zip(hi[1:], lo[1:], strict=True))]

    def tail(t: Array, k: int = 0) -> Array | float:
        return power_tail(mode + t, nu, power, k) if nu > 0 else 0.0

    def energy(t: Array) -> Array:
        return polynomial(near, t) + tail(t) - tail(zero)

    at_left, at_right = energy(left), energy(right)
    # below 0 where the mode lies between two doubles
    least = xp.minimum(xp.min(at_left, axis=0), xp.min(at_right, axis=0))

    def crossing(t: Array) -> tuple[Array, Array]:
        f, df = value_slope(near, t)
        return f + tail(t) - tail(zero) - least - level, df + tail(t, 1)

    over_left, over_right = at_left > least + level, at_right > least + level
    crosses = over_left != over_right
    start = xp.where(crosses, left, right)
    cut = root(crossing, start, right, 0.5 * (start + right), over_right, lambda t: 1.0)
    left, right = xp.where(crosses & over_left, cut, left), xp.where(crosses & over_right, cut, right)
    half = xp.where(over_left & over_right, 0.0, 0.5 * (right - left))
    mid = 0.5 * (left + right)
    b, b_low = taylor_exact([-least, *hi[1:]], [zero, *lo[1:]], mid)
    scale, rows = xp.ones_like(half), []
    for h, r in zip(b, b_low, strict=True):
        rows.append((h + r) * scale)
        scale = scale * half
    energy_at_mode = hi[0] + (lo[0] + least) + tail(zero)
    ok = xp.isfinite(energy_at_mode)
    for u in (-1.0, 1.0):  # the pieces lie where they should: what rounding has misplaced is not integrated
        e = polynomial(rows, u + 0.0 * half) + tail(mid + u * half) - tail(zero)
        ok = ok & xp.all((half == 0) | ((e > -1.0) & (e < level + 2.0)), axis=0)
    return Pieces(xp.stack(rows), mid, half, mode, energy_at_mode, "double exponential", nu=nu, power=power), ok
