"""The powers of a whole line on a window, where a model given by hand has its mass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .base import Array, Axis, Nodes
from .smooth import Smooth

if TYPE_CHECKING:
    from .whole_line import WholeLine

__all__ = ["Window"]

_GRIDS, _DRAW_ROWS = (24, 48, 96), 4096  # nodes of draws
_COARSE = 1e-4  # of the logarithm of a sum over nodes when they are shifted
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

    smallest: ClassVar[int] = 32

    def nodes(self, count: int) -> Nodes:
        """Equispaced nodes in the middles of as many parts; checks are the highest Fourier coefficients of the mass.

        The mass has fallen off at the ends, so the sum errs by the coefficients of twice that frequency.
        """
        u = (2 * np.arange(count) + 1) / count - 1
        x = self.from_unit(u)
        angle = np.pi * u[:, None] * np.arange(count // 2 - 4, count // 2)
        log_weights = np.log(2 / count) + self.log_density(u)
        return Nodes(x, log_weights, self.functions(x), np.sqrt(2) * np.hstack([np.cos(angle), np.sin(angle)]))

    def cdf(self, a: Array, x: Array) -> Array:
        """As on the whole line."""
        return self.line.cdf(a, x)

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

    def draw_near(self, a: Array, j: Array, count: int, rng: np.random.Generator) -> Array:
        """One exact draw per row, given that each row's node j was drawn by its mass on `count` nodes.

        As in `draw`, nodes shifted by a random share u of the gap have the same sum: shifted node k is to have the
        share f(y_k + u) of it. Node j moves to shifted node j with probability 1 − u, else to shifted node j − 1, which
        gives shifted node k the density L interpolated linearly between nodes k and k + 1. Where L is above f, the move
        is undone with probability 1 − f/L, and what has moved too much goes where f is above L.
        """
        n, gap = len(a), (self.high - self.low) / count
        s, other, w = rng.random((3, n))
        s += other
        s -= 1.0
        y = np.empty((3, n))  # of the node, what it moves to, and the node beyond that
        np.multiply(j, gap, out=y[0])
        y[0] += self.low + gap / 2
        np.multiply(s, gap, out=y[1])
        np.copysign(gap, s, out=y[2])
        y[1:] += y[0]
        with np.errstate(over="ignore"):
            f = _energy(a, y)
            np.subtract(f[0], f[1:], out=f[1:])
            np.exp(f[1:], out=f[1:])
            beyond = np.abs(s)
            L = f[2]
            L -= 1.0
            L *= beyond
            L += 1.0
            np.multiply(w, L, out=beyond)
            moved = np.flatnonzero(~(beyond < f[1]))
        if len(moved):
            share = f[1, moved] / L[moved]
            v = (w[moved] - share) / (1 - share)
            y[1, moved] = self._undone(a[moved], s[moved] % 1, v, count)
        return self.line.location + self.line.scale * y[1]

    def _undone(self, a: Array, u: Array, v: Array, count: int) -> Array:
        """A shifted node y per row, drawn by (f − L)₊ with the uniform v; rows that nodes do not resolve by `quantile`."""
        gap = (self.high - self.low) / count
        y = (self.low + gap * (np.arange(count) + 0.5))[:, None] + np.stack([np.zeros(len(a)), gap * u])[:, None]
        f = -_energy(a, y)
        f -= f.max(axis=(0, 1))
        np.exp(f, out=f)
        at, shifted = f
        rest = shifted - (1 - u) * at
        rest[:-1] -= u * at[1:]
        total = np.cumsum(np.maximum(rest, 0.0, out=rest), axis=0)
        k = np.minimum((total < v * total[-1]).sum(axis=0), count - 1)
        out = y[1, k, np.arange(len(a))]
        coarse = np.flatnonzero(np.abs(np.log(shifted.sum(axis=0) / at.sum(axis=0))) > _COARSE)
        if len(coarse):
            out[coarse] = self.line.coordinate(self.quantile(a[coarse], np.maximum(v[coarse], 2.0**-54)))
        return out

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


def _energy(a: Array, y: Array) -> Array:
    """Σ a_l y^l, (..., n); a: (n, J), y: (..., n)."""
    rows = a.T
    out = rows[-1] * y
    for row in rows[-2::-1]:
        out += row
        out *= y
    return out


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
