"""The road for variables that end: rows on [0, width], or on [0, ∞), where q may have any sign and degree.

As on the careful road, every monotone piece of q below the level; the ends of the support are ends of pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, perm

from ..arrays import Array, namespace
from .careful import level_bound, lowest
from .pieces import Pieces
from .polynomials import listed, polynomial, root, taylor_exact, value_slope

__all__ = ["truncated"]


def _roots_between(g: Callable, noise: Callable, points: Array) -> Array:
    """One point in each of the pieces between points (r, n): g's root there, or the end where |g| is smaller."""
    xp = namespace(points)
    lo, hi, f = points[:-1, ...], points[1:, ...], g(points)[0]
    f_lo, f_hi = f[:-1, ...], f[1:, ...]
    none = (f_lo > 0) == (f_hi > 0)
    near = xp.where(xp.abs(f_lo) < xp.abs(f_hi), lo, hi)
    lo, hi = xp.where(none, near, lo), xp.where(none, near, hi)
    return root(g, lo, hi, 0.5 * (lo + hi), f_hi > 0, noise, 1e-6)


def _critical(c: Sequence[Array], right: Array) -> Array:
    """0, points among which are all roots of q' in [0, right], and right; (r, n), ascending."""
    xp, d = namespace(right), len(c) - 1
    left = xp.zeros_like(right)
    points = xp.stack([left, right])
    for k in range(d - 1, 0, -1):
        ck = [perm(j, k) * c[j] for j in range(k, d + 1)]

        def g(x: Array, ck: list[Array] = ck) -> tuple[Array, Array]:
            return value_slope(ck, x)

        def noise(x: Array, ck: list[Array] = ck) -> Array:
            return 4e-16 * polynomial([xp.abs(cj) for cj in ck], x)

        points = xp.concat([left[None, ...], _roots_between(g, noise, points), right[None, ...]])
    return points


def truncated(a: Array, low: Array | None, level: float, width: float) -> tuple[Pieces, Array]:
    """All monotone pieces of q below the level on [0, width], a: (d, n); and the rows where rounding spared them."""
    xp = namespace(a)
    zero = xp.zeros_like(a[0, ...])
    c, c_low = [zero, *listed(a)], None if low is None else [zero, *listed(low)]
    right = level_bound(c, 0.0, 0.0, level) if width == inf else zero + width
    points = _critical(c, right)
    mode = lowest(points, polynomial(c, points))
    hi, lo = taylor_exact(c, c_low, mode)
    near = [zero, *(h + r for h, r in zip(hi[1:], lo[1:], strict=True))]
    t = points - mode
    energies = polynomial(near, t)
    least = xp.min(energies, axis=0)

    def crossing(t: Array) -> tuple[Array, Array]:
        f, df = value_slope(near, t)
        return f - least - level, df

    left, right, over = t[:-1, ...], t[1:, ...], energies > least + level
    over_left, over_right = over[:-1, ...], over[1:, ...]
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
    energy = hi[0] + (lo[0] + least)
    ok = xp.isfinite(energy)
    for u in (-1.0, 1.0):  # the pieces lie where they should: what rounding has misplaced is not integrated
        e = polynomial(rows, u + 0.0 * half)
        ok = ok & xp.all((half == 0) | ((e > -1.0) & (e < level + 2.0)), axis=0)
    return Pieces(xp.stack(rows), mid, half, mode, energy, "double exponential"), ok
