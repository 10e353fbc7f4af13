"""Exact samples of one- and two-variable energies by inverse transform on a fine grid.

A cell's probability is its density integrated to fourth order, p + Δp/24 with Δ the second
difference along each axis; within a cell a sample follows the density's exponential slope. What is left
is of order h⁴ in the cell's width h: with 5,000 points a dimension below what any sample can show,
where a uniform draw within the cell would add h²/12 to the variance.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from ..basis import MonomialBasis

__all__ = ["draw"]

_DEPTH = 45.0  # energy above the minimum beyond which the density, below 3e-20 of its peak, is left out
_FARTHEST = 1e6  # how far out, in the units of the energy, the window is looked for
_CHUNK = 8  # rows of the grid at a time, few enough to stay in cache
_MOST_POINTS = (10_000_000, 20_000)  # a dimension, for one variable and for two


def draw(basis: MonomialBasis, theta: np.ndarray, n: int, rng: np.random.Generator, points: int = 5000) -> np.ndarray:
    """n samples, shape (n, p) with p ≤ 2, of exp(−E), on a grid of at least `points` a dimension."""
    c = _coefficients(basis, theta)
    window, lowest = _window(c)
    for _ in range(60):
        cells = Cells(c, window, lowest, points)
        rows, edges = cells.rows(), cells.edge_masses()
        # a ridge that ran between the points of the first look shows here: mass at the window's edge
        short = [[mass > 1e-13 * rows.sum() for mass in pair] for pair in edges]
        if np.any(short):
            window = [_widened(*side, *ends) for side, ends in zip(window, short, strict=True)]
            continue
        cumulative = np.cumsum(rows)
        row = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        row = np.minimum(row, len(rows) - 1)
        column = cells.columns(row, rng)
        slopes = _slopes(c, cells.P[0][row], cells.P[1][column])
        # mean (h·slope)² is (h/σ)² for a well of width σ; at 0.1 the variance is still right to 3e-5
        coarse = max(float(np.mean((slope * h) ** 2)) for slope, h in zip(slopes, cells.width, strict=True))
        if coarse <= 0.1:
            x = [
                axis[at] + _within_cell(slope, h, rng.random(n)) if h else axis[at]
                for axis, at, slope, h in zip(cells.axes, (row, column), slopes, cells.width, strict=True)
            ]
            return np.stack(x[: basis.n_variables], axis=1)
        points = max(2 * points, int(points * np.sqrt(coarse / 0.05)))
        if points > _MOST_POINTS[basis.n_variables - 1]:
            break
    box = " × ".join(f"[{lo:.4g}, {hi:.4g}]" for lo, hi in window)
    raise ValueError(
        f"the model cannot be sampled on a grid: over the range {box} of its scaled variables it has features too "
        f"narrow for {_MOST_POINTS[basis.n_variables - 1]:,} points a dimension"
    )


def _widened(lo: float, hi: float, below: bool, above: bool) -> tuple[float, float]:
    return lo - 0.3 * (hi - lo) * below, hi + 0.3 * (hi - lo) * above


class Cells:
    """The cells of a grid over a window, and their probabilities up to a common factor."""

    def __init__(self, c: np.ndarray, window: list[tuple[float, float]], lowest: float, points: int) -> None:
        self.axes = [np.linspace(lo, hi, points) if hi > lo else np.zeros(1) for lo, hi in window]
        self.width = [x[1] - x[0] if len(x) > 1 else 0.0 for x in self.axes]
        self.P = [np.vander(x, k, increasing=True) for x, k in zip(self.axes, c.shape, strict=True)]
        self._minus_c = -c @ self.P[1].T
        self._minus_c[0] += lowest
        n = len(self.axes[0])
        self._chunks = [(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]

    def masses(self, start: int, stop: int) -> np.ndarray:
        """Probabilities of the cells in the rows start … stop − 1."""
        n, m = len(self.axes[0]), len(self.axes[1])
        p = np.zeros((stop - start + 2, m + 2))
        first, last = max(start - 1, 0), min(stop + 1, n)
        inside = p[first - start + 1 : last - start + 1, 1:-1]
        np.matmul(self.P[0][first:last], self._minus_c, out=inside)
        np.maximum(inside, -700.0, out=inside)  # below are numbers on which processors are slow
        np.exp(inside, out=inside)
        total = p[2:, 1:-1] + p[:-2, 1:-1]
        if m > 1:
            total += p[1:-1, 2:]
            total += p[1:-1, :-2]
        total *= 1 / 24
        total += p[1:-1, 1:-1] * (11 / 12 - (1 / 12 if m > 1 else 0.0))
        return total

    def rows(self) -> np.ndarray:
        """The probability of every row; keeps those of the first and last column for `edge_masses`."""
        sums, self._sides = [], np.zeros(2)
        for chunk in self._chunks:
            masses = self.masses(*chunk)
            sums.append(masses.sum(axis=1))
            self._sides += masses[:, [0, -1]].sum(axis=0)
        self._ends = np.array([sums[0][0], sums[-1][-1]])
        return np.concatenate(sums)

    def edge_masses(self) -> list[np.ndarray]:
        """The probability of the first and last row, and of the first and last column, after `rows`."""
        return [self._ends, self._sides if self.width[1] else np.zeros(2)]

    def columns(self, row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A column drawn for every row of a list of rows."""
        column = np.zeros(len(row), np.int64)
        m = len(self.axes[1])
        if m == 1:
            return column
        by_row = np.argsort(row, kind="stable")
        bounds = np.searchsorted(row[by_row], [start for start, _ in self._chunks] + [len(self.axes[0])])
        for (start, stop), first, last in zip(self._chunks, bounds[:-1], bounds[1:], strict=True):
            here = by_row[first:last]
            if len(here):
                flat = np.cumsum(self.masses(start, stop))
                ends = np.append(0.0, flat)[np.arange(stop - start + 1) * m]
                r = row[here] - start
                target = ends[r] + rng.random(len(here)) * (ends[r + 1] - ends[r])
                column[here] = np.clip(np.searchsorted(flat, target, side="right") - r * m, 0, m - 1)
        return column


def _coefficients(basis: MonomialBasis, theta: np.ndarray) -> np.ndarray:
    """c with E(x, y) = Σ c_ij x^i y^j; one column for a single variable."""
    s = basis.degree
    c = np.zeros((s + 1, s + 1 if basis.n_variables == 2 else 1))
    powers = basis.powers
    c[powers[:, 0], powers[:, 1] if basis.n_variables == 2 else 0] = theta
    return c


def _slopes(c: np.ndarray, P0: np.ndarray, P1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """∂E/∂x and ∂E/∂y where the powers of x and y are P0 and P1."""
    k0, k1 = np.arange(1, c.shape[0]), np.arange(1, c.shape[1])
    along_x = np.einsum("ni,ij,nj->n", P0[:, :-1], c[1:] * k0[:, None], P1, optimize=True)
    along_y = np.einsum("ni,ij,nj->n", P0, c[:, 1:] * k1, P1[:, :-1], optimize=True)
    return along_x, along_y


def _within_cell(slope: np.ndarray, h: float, u: np.ndarray) -> np.ndarray:
    """A draw from the density ∝ exp(−slope·t) on |t| ≤ h/2."""
    t = slope * h
    small = np.abs(t) < 1e-8
    safe = np.where(small, 1.0, t)
    return h * (np.where(small, u, -np.log1p(u * np.expm1(-safe)) / safe) - 0.5)


def _window(c: np.ndarray) -> tuple[list[tuple[float, float]], float]:
    """A box outside of which the energy lies more than _DEPTH above its minimum, and the minimum."""
    far = np.sinh(np.linspace(-1, 1, 801) * np.arcsinh(_FARTHEST * 100)) / 100
    used = [bool(np.any(c[1:] if axis == 0 else c[:, 1:])) for axis in range(2)]
    grids = [far if use else np.zeros(1) for use in used]
    E = _on_grid(c, grids)
    low = np.nonzero(E.min() + _DEPTH >= E)
    if any(len(x) > 1 and (at.min() == 0 or at.max() == len(x) - 1) for x, at in zip(grids, low, strict=True)):
        raise ValueError(
            "the model is no probability distribution that can be sampled on a grid: along a variable its "
            f"energy does not rise {_DEPTH:g} above its minimum within {_FARTHEST:g} scale units"
        )
    wells = _wells(c, grids, E)
    sizes = [_on_grid(np.abs(c), [np.abs(x[:1]), np.abs(x[1:])])[0, 0] for _, x in wells[:1]]
    if not wells or sizes[0] * np.finfo(float).eps > 1e-6:
        raise ValueError(
            "the energy cancels: near its minimum it is the difference of numbers too large for double precision. "
            "Write the model in variables centred there (location, scale)"
        )
    lowest = min(float(E.min()), min(value for value, _ in wells))
    wells = [(value, x) for value, x in wells if value < lowest + _DEPTH]
    for _ in range(30):
        box = []
        for axis, (x, at) in enumerate(zip(grids, np.nonzero(lowest + _DEPTH > E), strict=True)):
            at = np.append(at, np.searchsorted(x, [well[axis] for _, well in wells]))
            box.append((float(x[max(at.min() - 1, 0)]), float(x[min(at.max() + 1, len(x) - 1)])))
        shrunk = [(hi - lo) < 0.95 * (x[-1] - x[0]) for x, (lo, hi) in zip(grids, box, strict=True)]
        if not any(shrunk):
            break
        grids = [np.linspace(lo, hi, 401) if hi > lo else x for x, (lo, hi) in zip(grids, box, strict=True)]
        E = _on_grid(c, grids)
    return box, lowest


def _on_grid(c: np.ndarray, grids: list[np.ndarray]) -> np.ndarray:
    P = [np.vander(x, k, increasing=True) for x, k in zip(grids, c.shape, strict=True)]
    return P[0] @ c @ P[1].T


def _wells(c: np.ndarray, grids: list[np.ndarray], E: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """The energy and place of the bottoms of the wells around the lowest local minima on the grid."""
    padded = np.pad(E, 1, constant_values=np.inf)
    neighbours = [padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]]
    at = np.nonzero(np.all([other >= E for other in neighbours], axis=0))
    order = np.argsort(E[at])[:20]

    def value(x: np.ndarray) -> float:
        return float(np.polynomial.polynomial.polyval2d(x[0], x[1], c))

    wells = []
    for k in order:
        start = np.array([grids[0][at[0][k]], grids[1][at[1][k]]])
        found = minimize(value, start, method="Nelder-Mead", options={"maxiter": 400})
        wells.append((float(found.fun), found.x))
    return wells
