"""Polynomials Σ_j c_j x^j of many rows at once, as lists of coefficients: numbers, or arrays that broadcast with x."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import array_api_compat

from ..arrays import Array, empty, multiply_into, namespace

__all__ = [
    "at_rows",
    "listed",
    "polynomial",
    "power_tail",
    "put_rows",
    "recentre",
    "root",
    "scaled",
    "taylor",
    "taylor_exact",
    "value_slope",
]


def listed(a: Array) -> list[Array]:
    """The rows of a matrix, first axis, as a list."""
    return [a[j, ...] for j in range(a.shape[0])]


def at_rows(v: Array, rows: Array | slice | None) -> Array:
    """`v` (…, n) at some of its rows, the last axis; all of them for None."""
    if v is None or rows is None:
        return v
    return v[..., rows] if isinstance(rows, slice) else namespace(v).take(v, rows, axis=-1)


def put_rows(out: Array, mask: Array, values: Array) -> Array:
    """`out` (…, n), given up to this function, with `values` (…, count) in the rows of `mask`, in order."""
    if array_api_compat.is_numpy_array(out):
        out[..., mask] = values
        return out
    xp = namespace(out)
    where = xp.cumulative_sum(xp.astype(mask, xp.int64)) - 1
    return xp.where(mask, xp.take(values, xp.where(mask, where, 0), axis=-1), out)


def polynomial(c: Sequence[Array], x: Array) -> Array:
    """Σ_j c_j x^j by Horner's rule, at least of degree 1."""
    f = empty(x.shape, x)
    multiply_into(f, c[-1], x)
    for cj in c[-2:0:-1]:
        f += cj
        f *= x
    f += c[0]
    return f


def value_slope(c: Sequence[Array], x: Array, out: Array | None = None) -> tuple[Array, Array]:
    """Σ_j c_j x^j and its derivative, at least of degree 1, like x; in the memory of `out`, (2, …), if given."""
    out = empty((2, *x.shape), x) if out is None else out
    f, df = out[0, ...], out[1, ...]
    multiply_into(f, c[-1], x)
    f += c[-2]
    df[...] = c[-1]
    for cj in c[-3::-1]:
        df *= x
        df += f
        f *= x
        f += cj
    return f, df


def scaled(c: Array, s: Array, out: Array | None = None) -> Array:
    """c_j s^j, j = 1..d, of c (d, n): the coefficients, but the constant one, in the variable x / s."""
    out, power = empty(c.shape, c) if out is None else out, s
    for j in range(c.shape[0]):
        power = power * s if j else s
        multiply_into(out[j, ...], c[j, ...], power)
    return out


def taylor(c: Array, x: Array) -> Array:
    """The Taylor coefficients k = 1..d at x of Σ_j c_j x^j, in the memory of c_1..c_d (d, n); plain arithmetic."""
    d, step = c.shape[0], empty(x.shape, x)
    for i in range(d):
        for j in range(d - 2, max(i, 1) - 2, -1):
            multiply_into(step, c[j + 1, ...], x)
            c[j, ...] += step
    return c


def taylor_exact(c: Sequence[Array], low: Sequence[Array] | None, x: Array) -> tuple[list[Array], list[Array]]:
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


def recentre(M: Array, shift: Array) -> None:
    """In place, E[(shift + v)^l] from M_l = E[v^l], l = 0..m along the first axis; shift like M_l."""
    step = empty(M.shape, M)
    for i in range(1, M.shape[0]):  # then M_k is E[v^(k−i) (shift + v)^i], k ≥ i
        multiply_into(step[i:, ...], M[i - 1 : -1, ...], shift)
        M[i:, ...] += step[i:, ...]


def power_tail(y: Array, nu: float, power: float, k: int = 0) -> Array:
    """The k-th derivative of nu |y|^power."""
    xp = namespace(y)
    falling = nu
    for i in range(k):
        falling *= power - i
    f = falling * xp.abs(y) ** (power - k)
    return f * xp.sign(y) if k % 2 else f


def root(g: Callable, lo: Array, hi: Array, x: Array, rising: Array, f_tol: Callable, x_tol: float = 0.0) -> Array:
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
