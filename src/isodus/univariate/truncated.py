"""The road for variables that end: rows on [0, width], or on [0, ∞), where q may have any sign and degree.

As on the careful road, every monotone piece of q below the level; the ends of the support are ends of pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, perm

from ..arrays import Array, namespace
from .careful import below, level_bound, lowest
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
    t = points - mode
    return below(hi, lo, mode, t[:-1, ...], t[1:, ...], level)
