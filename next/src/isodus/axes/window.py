"""The powers of a whole line on a window, where a model given by hand has its mass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .base import Array, Axis, Nodes
from .smooth import Smooth

if TYPE_CHECKING:
    from .whole_line import WholeLine

__all__ = ["Window"]

_COUNTS = (32, 64, 128, 256)  # nodes of draws
_UNSEEN = 1e-3  # checks of a mass whose nodes a draw may start from: sums over shifted nodes differ by their square
_MOVED = 1e-4  # of a sum over nodes, when they are shifted, of a row that they do not resolve
_PEAK = 2.0  # times the density interpolated between nodes: that of a resolved row is below
_CELLS = 200_000  # of rows and nodes at a time


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

    smallest: ClassVar[int] = 48
    largest: ClassVar[int] = 1536

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

        A sum over equispaced nodes is the integral however the nodes are shifted, to an error that falls faster than
        any power of the gap. So nodes shifted by a part u of the gap, drawn uniformly, with shares as the density f
        there are draws from it. Node j moves to shifted node j with probability 1 − u, else to shifted node j − 1,
        which gives shifted node k the density L interpolated linearly between nodes k and k + 1. Where L is above f,
        the move is undone with probability 1 − f/L, and the shifted node is drawn by (f − L)₊ instead.
        """
        gap = (self.high - self.low) / count
        s, other, w = rng.random((3, len(a)))
        s += other
        s -= 1.0
        y = np.empty((3, len(a)))  # the node, where it moves, and the node beyond
        np.multiply(j, gap, out=y[0])
        y[0] += self.low + gap / 2
        np.multiply(s, gap, out=y[1])
        np.copysign(gap, s, out=y[2])
        y[1:] += y[0]
        E = _energy(a, y)
        np.subtract(E[0], E[1:], out=E[1:])
        with np.errstate(over="ignore"):
            f, L = np.exp(E[1:], out=E[1:])
            L -= 1.0
            L *= np.abs(s)
            L += 1.0
            kept = np.multiply(w, L, out=other) < f
            kept &= f < np.multiply(_PEAK, L, out=other)
            rows = np.flatnonzero(~kept)
            share = f[rows] / L[rows]
        x = y[1]
        if len(rows):
            x[rows] = self._undone(a[rows], x[rows], s[rows] % 1, w[rows], share, count)
        return self.line.location + self.line.scale * x

    def _undone(self, a: Array, y: Array, u: Array, w: Array, share: Array, count: int) -> Array:
        """A shifted node per row, by (f − L)₊ where the share f/L is below the uniform w, else y as it is.

        Rows that the nodes do not resolve, whose sum over shifted nodes is another, are drawn by `quantile`.
        """
        v = np.where(share < 1, (w - share) / np.where(share < 1, 1 - share, 1.0), w)
        gap = (self.high - self.low) / count
        nodes = self.low + gap * (np.arange(count)[:, None] + np.stack([np.full(len(a), 0.5), 0.5 + u])[:, None])
        E = _energy(a, nodes)
        at, shifted = np.exp(E.min(axis=(0, 1)) - E)
        rest = shifted - (1 - u) * at
        rest[:-1] -= u * at[1:]
        total = np.cumsum(np.maximum(rest, 0.0, out=rest), axis=0)
        k = np.minimum((total < v * total[-1]).sum(axis=0), count - 1)
        out = np.where(share < 1, nodes[1, k, np.arange(len(a))], y)
        S = at.sum(axis=0)
        coarse = np.flatnonzero(np.abs(shifted.sum(axis=0) - S) > _MOVED * S)
        if len(coarse):
            out[coarse] = self.line.coordinate(self.quantile(a[coarse], np.maximum(v[coarse], 2.0**-54)))
        return out

    def draw(self, a: Array, rng: np.random.Generator) -> Array:
        """One exact draw per row, near a node drawn by its mass on as many as resolve the row, else by `quantile`.

        How many depends on the row alone, not on the draw: those that are kept would not be fair otherwise.
        """
        v, x, waiting = rng.random(len(a)), np.empty(len(a)), np.arange(len(a))
        for count in _COUNTS:
            check, later = self.table(count).nodes.check, [waiting[:0]]
            for rows in np.array_split(waiting, 1 + len(waiting) * count // _CELLS):
                here = a.T.take(rows, axis=1).T
                mass, _ = self.mass(here, count)
                unseen = np.abs(check.T @ mass).max(axis=0)
                for before, after in pairwise(mass):
                    np.add(before, after, out=after)
                j = np.minimum((mass < v[rows] * mass[-1]).sum(axis=0, dtype=np.uint16), count - 1)
                fine = np.flatnonzero(unseen < _UNSEEN * mass[-1])
                x[rows[fine]] = self.draw_near(here.T.take(fine, axis=1).T, j[fine], count, rng)
                later.append(np.delete(rows, fine))
            waiting = np.concatenate(later)
        if len(waiting):
            x[waiting] = self.quantile(a[waiting], np.maximum(v[waiting], 2.0**-54))
        return x


def _energy(a: Array, y: Array) -> Array:
    """Σ a_l y^l, (..., n); a: (n, J), y: (..., n)."""
    rows = a.T
    out = rows[-1] * y
    for row in rows[-2::-1]:
        out += row
        out *= y
    return out
