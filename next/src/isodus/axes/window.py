"""The powers of a whole line on a window, where a model given by hand has its mass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .base import Array, Axis, Nodes
from .quadrature import gauss_legendre
from .smooth import Smooth, last_coefficients

if TYPE_CHECKING:
    from .whole_line import WholeLine

__all__ = ["Window"]

_GRIDS, _DRAW_ROWS = (24, 48, 96), 4096  # nodes of draws
_SMALL = 256.0  # terms of an exponent up to which it is in single precision
_QUARTER, _HALF = {True: 0.15, False: 0.05}, 1e-3
"""Fourier coefficients at a quarter (with powers up to the fourth, or higher ones) and at half of a grid's frequency.

The sum over the grid then errs by at most some 5e-6 with powers up to the fourth.
"""


@dataclass(frozen=True, eq=False)
class Window(Smooth):
    """The powers of a whole line on y in [low, high], outside of which a model has no mass to speak of."""

    line: WholeLine
    low: float
    high: float

    @property
    def degrees(self) -> Array:  # type: ignore[override]
        """1, …, degree."""
        return np.arange(1, self.line.degree + 1)

    @property
    def unit(self) -> float:  # type: ignore[override]
        """The scale."""
        return self.line.scale

    def functions(self, x: Array) -> Array:
        """y, y², …, (n, J)."""
        return self.line.functions(x)

    def log_base(self, x: Array) -> Array:
        """−log scale in the window."""
        return np.where(np.abs(self.to_unit(x)) <= 1, -np.log(self.line.scale), -np.inf)

    def nodes(self, count: int) -> Nodes:
        """Gauss-Legendre nodes; checks are the last coefficients."""
        u, w = gauss_legendre(count)
        x = self.from_unit(u)
        return Nodes(x, np.log(w) + self.log_density(u), self.functions(x), last_coefficients(count))

    def to_unit(self, x: Array) -> Array:
        """u, −1 and 1 at the ends."""
        return 2 * (self.line.coordinate(x) - self.low) / (self.high - self.low) - 1

    def from_unit(self, u: Array) -> Array:
        """x at u."""
        return self.line.location + self.line.scale * (self.low + (self.high - self.low) * (u + 1) / 2)

    def wider(self) -> Axis:
        """The same on twice the window."""
        more = (self.high - self.low) / 2
        return replace(self, low=self.low - more, high=self.high + more)

    finest: ClassVar[int] = 72

    def narrow(self, a: Array, v: Array) -> Array:
        """As on the whole line, where each row has nodes of its own."""
        return self.line.quantile(a, v)

    def log_density(self, z: Array) -> Array:
        """Uniform in y."""
        return np.full(len(z), np.log((self.high - self.low) / 2))

    def draw(self, a: Array, rng: np.random.Generator) -> Array:
        """One exact draw per row: a node of an equispaced grid that is shifted at random, row by row.

        A sum over equispaced nodes is the integral whatever the shift, to an error that falls faster than any power
        of the gap: a random shift and a node by its mass are a draw from the density. Rows that a grid does not resolve
        get a finer one, then the quantile.
        """
        shift, v = rng.random((2, len(a)))
        np.maximum(v, 2.0**-54, out=v)
        blocks = [slice(k, k + _DRAW_ROWS) for k in range(0, len(a), _DRAW_ROWS)]
        return np.concatenate([np.empty(0), *(self._drawn(a[rows], shift[rows], v[rows], _GRIDS) for rows in blocks)])

    def _drawn(self, a: Array, shift: Array, v: Array, counts: tuple[int, ...]) -> Array:
        """Draws on the first of these grids that resolves a row."""
        if not counts:
            return self.quantile(a, v)
        x, fine = self._on_shifted_grid(a, shift, v, counts[0])
        coarse = np.flatnonzero(~fine)
        if len(coarse):
            x[coarse] = self._drawn(a[coarse], shift[coarse], v[coarse], counts[1:])
        return x

    def _on_shifted_grid(self, a: Array, shift: Array, v: Array, count: int) -> tuple[Array, Array]:
        """Draws, and which rows are resolved, (n,) each.

        The sums S over every fourth node give the density's Fourier coefficients at a quarter and at half of the
        frequency that the sum over all nodes errs by. Whether a row passes must not depend on its shift, or the shifts
        of rows that pass were not uniform: the first coefficient's modulus does not.

        Exponents whose terms are small are in single precision: nodes then have their shares to some 1e-6.
        """
        middle, gap = (self.low + self.high) / 2, (self.high - self.low) / count
        grid, exponents = _grid(gap, count, self.line.degree)
        y = gap * shift
        y += middle
        terms = np.abs(a).max(axis=0, initial=0.0) @ max(-self.low, self.high) ** self.degrees
        kind = np.float32 if terms < _SMALL else np.float64
        exponents = exponents.astype(kind, copy=False)
        c = _moved(a.astype(kind, copy=False), y.astype(kind, copy=False))
        c[0] += (exponents[: count // 4] @ c).max(axis=0)
        mass = exponents @ c
        with np.errstate(over="ignore", invalid="ignore"):  # between two of these nodes; the total is then infinite
            np.exp(mass, out=mass)
            for before, row in pairwise(mass):
                np.add(before, row, out=row)
            total = mass[-1]
            S = mass[count // 4 - 1 :: count // 4].copy()
            S[1:] -= mass[count // 4 - 1 : -1 : count // 4]
            S[:2], S[2:] = S[:2] - S[2:], S[:2] + S[2:]
            fine = S[0] ** 2 + S[1] ** 2 < (_QUARTER[self.line.degree <= 4] * total) ** 2
            fine &= np.abs(S[2] - S[3]) < _HALF * total
            target = (v * total).astype(mass.dtype)
        j = (mass < target).sum(axis=0, dtype=np.uint8)
        y += grid.take(j, mode="clip")
        return self.line.location + self.line.scale * y, fine


@lru_cache(64)
def _grid(gap: float, count: int, degree: int) -> tuple[Array, Array]:
    """Equispaced nodes t around −gap/2, (count,), and less their powers from 0 on, (count, degree + 1).

    Every fourth comes first, then those after these, and so on: running sums then hold the sums over every fourth.
    """
    grid = gap * (np.arange(count).reshape(-1, 4).T.ravel() - count // 2)
    return grid, -np.vander(grid, degree + 1, increasing=True)


def _moved(a: Array, shift: Array) -> Array:
    """Coefficients in t, from power 0 on, of Σ a_l (t + shift)^l; a: (n, J), out: (J + 1, n)."""
    c = np.concatenate([np.zeros((1, len(a)), a.dtype), a.T])
    rows, step = list(c), np.empty_like(c[0])
    for j in range(len(rows) - 1):  # synthetic division, again and again
        for k in range(len(rows) - 2, j - 1, -1):
            np.multiply(shift, rows[k + 1], out=step)
            np.add(rows[k], step, out=rows[k])
    return c
