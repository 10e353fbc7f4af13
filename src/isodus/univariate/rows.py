"""Which rows have a density; in blocks that fit the cache, each by the quickest road that is right for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import array_api_compat
import numpy as np

from ..arrays import Array, empty, namespace, rows_at_once
from ..supports import LINE, Support
from .careful import careful
from .pieces import Pieces
from .polynomials import at_rows, listed, put_rows, taylor_exact
from .quick import hasty, patient
from .truncated import truncated
from .wells import lone, pair

__all__ = ["Family", "each_row"]

_BLOCK = 16384  # rows at a time: a vector of them is 128 kB, ten fit the second cache
_WIDTH, _MOST = 4096, 1 << 22  # bytes that a row takes on an accelerator, and most rows at a time there


@dataclass(frozen=True)
class Family:
    """q(y) = Σ_l (a_l + low_l) y^l + nu |y|^power, x = y + shift, is q(x) less its value `origin` at x = shift."""

    a: Array  # (d, n)
    low: Array | None  # (d, n), what rounding took from a
    origin: Array  # (n,)
    nu: float = 0.0
    power: float = 0.0
    shift: float = 0.0
    width: float | None = None  # y is in [0, width], where it ends

    @classmethod
    def of(cls, a: Array, nu: float, power: float, centre: float, support: Support = LINE) -> Family:
        """From the coefficients in x; an even power of the tail becomes one more coefficient."""
        xp = namespace(a)
        a = xp.astype(a, xp.float64, copy=False)
        origin, low = xp.zeros_like(a[0, ...]), None
        if support.low > -inf:
            with np.errstate(all="ignore"):
                hi, lo = taylor_exact([origin, *listed(a)], None, xp.full_like(origin, support.low))
            a, low = xp.stack(hi[1:]), xp.stack(lo[1:])
            return cls(a, low, hi[0] + lo[0], shift=support.low, width=support.high - support.low)
        if nu <= 0:
            return cls(a, low, origin)
        if centre != 0.0:
            with np.errstate(all="ignore"):  # of rows that are not finite
                hi, lo = taylor_exact([origin, *listed(a)], None, xp.full_like(origin, centre))
            origin, a, low = hi[0] + lo[0], xp.stack(hi[1:]), xp.stack(lo[1:])
        if power % 2 != 0:
            return cls(a, low, origin, nu, power, centre)
        d = int(power)
        a = _padded(a, d)
        a[d - 1, ...] = nu
        return cls(a, None if low is None else _padded(low, d), origin, shift=centre)

    def at(self, rows: Array | slice | None, degree: int) -> Family:
        """Some rows, without the coefficients above `degree`."""
        low = None if self.low is None else at_rows(self.low[:degree, ...], rows)
        return replace(self, a=at_rows(self.a[:degree, ...], rows), low=low)


def _padded(a: Array, d: int) -> Array:
    """The rows of a (s, n), then rows of zeros up to d."""
    out = empty((d, a.shape[1]), a)
    out[: a.shape[0], ...] = a
    out[a.shape[0] :, ...] = 0.0
    return out


def each_row(kernel: Callable, width: int, family: Family, extra: tuple, level: float) -> tuple[Array, Array]:
    """The kernel's results (width, n), 0 where there are none, and which rows have them.

    kernel(pieces, out, *extra at these rows) writes out (width, rows) and returns where it converged.
    """
    a = family.a
    xp, n = namespace(a), a.shape[1]
    with np.errstate(all="ignore"):
        finite = xp.all(xp.isfinite(a), axis=0) & xp.isfinite(family.origin)
        confined = family.nu > 0 or (family.width is not None and family.width < inf)
        groups = [(a.shape[0], finite)] if confined else _degrees(a, finite, 2 if family.width is None else 1)
        if n and len(groups) == 1 and bool(xp.all(groups[0][1])):
            out, exists = _by_roads(kernel, width, family.at(None, groups[0][0]), extra, level)
        else:
            out, exists = empty((width, n), a), finite & False
            out[...] = 0.0
            for d, mask in groups if n else []:
                some = xp.nonzero(mask)[0]
                part, ok = _by_roads(kernel, width, family.at(some, d), [at_rows(v, some) for v in extra], level)
                out, exists = put_rows(out, mask, part), put_rows(exists, mask, ok)
        return out if bool(xp.all(exists)) else xp.where(exists, out, 0.0), exists


def _degrees(a: Array, finite: Array, step: int) -> list[tuple[int, Array]]:
    """(d, rows whose highest non-zero coefficient is positive and of a degree d that `step` divides), d = s, s−1, …"""
    xp, s = namespace(a), a.shape[0]
    if s % step == 0 and bool(xp.all(finite & (a[s - 1, ...] > 0))):
        return [(s, finite)]
    groups, zero_above = [], finite
    for d in range(s, 0, -1):
        mask = zero_above & (a[d - 1, ...] > 0)
        if d % step == 0 and bool(xp.any(mask)):
            groups.append((d, mask))
        zero_above = zero_above & (a[d - 1, ...] == 0)
    return groups


def _by_roads(kernel: Callable, width: int, family: Family, extra: tuple | list, level: float) -> tuple[Array, Array]:
    """All rows by the quickest road, then what it could not do by the next."""
    xp = namespace(family.a)
    first: Callable
    others: list[Callable]
    if family.width is not None:
        first, others = partial(_of_support, family.width), []
    elif family.nu > 0:
        first, others = careful, []
    elif family.a.shape[0] == 4 and not extra:
        first, others = hasty, [lone, pair, careful]
    else:
        first, others = hasty, [patient, careful]
    out, ok = _blocks(first, kernel, width, family, extra, level)
    for road in others:
        if bool(xp.all(ok)):
            break
        rows = xp.nonzero(~ok)[0]
        rest = family.at(rows, family.a.shape[0])
        again, converged = _blocks(road, kernel, width, rest, [at_rows(v, rows) for v in extra], level)
        out, ok = put_rows(out, ~ok, again), ok | put_rows(ok, ~ok, converged)
    return out, ok


def _of_support(
    width: float, a: Array, low: Array | None, nu: float, power: float, level: float
) -> tuple[Pieces, Array]:
    return truncated(a, low, level, width)


def _blocks(
    road: Callable, kernel: Callable, width: int, family: Family, extra: tuple | list, level: float
) -> tuple[Array, Array]:
    """One road for all rows, block by block: the kernel's results (width, n) and where they are right."""
    a, low = family.a, family.low
    xp, (d, n) = namespace(a), a.shape
    block = _BLOCK // (4 if extra or road is not hasty else 1)  # where more vectors are in use
    block = max(block, 64) if array_api_compat.is_numpy_array(a) else 1 << 18
    block = rows_at_once(a, block, _WIDTH, _MOST)
    out, exists = empty((width, n), a), xp.ones_like(a[0, ...]) > 0
    for i in range(0, n, block):
        j = slice(i, min(i + block, n))
        c = empty((d, j.stop - i), a)
        c[...] = a[:, j]
        pieces, ok = road(c, at_rows(low, j), family.nu, family.power, level)
        pieces, rows = replace(pieces, shift=family.shift), xp.nonzero(ok)[0]
        if rows.shape[0] > 0.8 * ok.shape[0]:
            ok = ok & kernel(pieces, out[:, j], *(at_rows(v, j) for v in extra))
        elif rows.shape[0]:
            part = empty((width, rows.shape[0]), a)
            converged = kernel(pieces.take(rows), part, *(at_rows(at_rows(v, j), rows) for v in extra))
            out[:, j] = put_rows(out[:, j], ok, part)
            ok = put_rows(ok, ok, converged)
        exists[j] = ok
    return out, exists
