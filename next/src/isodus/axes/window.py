"""The powers of a whole line on a window, where a model given by hand has its mass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .base import Array, Axis, Nodes
from .quadrature import gauss_legendre
from .smooth import Smooth, last_coefficients

if TYPE_CHECKING:
    from .whole_line import WholeLine

__all__ = ["Window"]

_GRIDS, _DRAW_ROWS = (32, 96), 2048  # nodes of draws
_UNSEEN = (0.05, 1e-3)  # Fourier coefficients; the one that the sum errs by is at most the fourth power of the first


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
        out, left = np.empty(len(a)), np.arange(len(a))
        for count in _GRIDS:
            coarse = []
            for k in range(0, len(left), _DRAW_ROWS):
                rows = left[k : k + _DRAW_ROWS]
                out[rows], fine = self._on_shifted_grid(a[rows], shift[rows], v[rows], count)
                coarse.append(rows[~fine])
            left = np.concatenate([left[:0], *coarse])
        if len(left):
            out[left] = self.quantile(a[left], v[left])
        return out

    def _on_shifted_grid(self, a: Array, shift: Array, v: Array, count: int) -> tuple[Array, Array]:
        """Draws, and which rows are resolved, (n,) each.

        The four sums over every fourth node give the density's Fourier coefficients at a quarter and at half of the
        frequency that the sum over all nodes errs by. Whether a row passes must not depend on its shift, or the shifts
        of rows that pass were not uniform: the first coefficient's modulus does not.
        """
        grid, exponents, some = _grid(self.low, self.high, count, self.line.degree)
        shift = (grid[1] - grid[0]) * shift
        shifted = _moved(a, shift)
        shifted[0] += (some @ shifted).max(axis=0)
        mass = exponents @ shifted
        with np.errstate(over="ignore", invalid="ignore"):  # between two of these nodes; the total is then infinite
            np.exp(mass, out=mass)
            S = mass.reshape(count // 4, 4, len(a)).sum(axis=0)
            for k in range(1, count):
                mass[k] += mass[k - 1]
            total = mass[-1]
            fine = np.hypot(S[0] - S[2], S[1] - S[3]) <= _UNSEEN[0] * total
            fine &= (np.abs(S[0] - S[1] + S[2] - S[3]) <= _UNSEEN[1] * total) & np.isfinite(total)
        j = (mass < v * total).sum(axis=0, dtype=np.uint8)
        return self.line.location + self.line.scale * (grid.take(j, mode="clip") + shift), fine


@lru_cache(64)
def _grid(low: float, high: float, count: int, degree: int) -> tuple[Array, Array, Array]:
    """Equispaced nodes from `low` on, (count,), less their powers from 0 on, (count, degree + 1), and every fourth."""
    grid = low + (high - low) / count * np.arange(count)
    exponents = -np.vander(grid, degree + 1, increasing=True)
    return grid, exponents, exponents[::4].copy()


def _moved(a: Array, shift: Array) -> Array:
    """Coefficients in t, from power 0 on, of Σ a_l (t + shift)^l; a: (n, J), out: (J + 1, n)."""
    c = np.concatenate([np.zeros((1, len(a))), a.T])
    step = np.empty(len(a))
    for j in range(len(c) - 1):  # synthetic division, again and again
        for k in range(len(c) - 2, j - 1, -1):
            c[k] += np.multiply(shift, c[k + 1], out=step)
    return c
