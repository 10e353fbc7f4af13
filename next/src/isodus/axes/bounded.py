"""A variable on the scale of its own distribution function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from scipy.special import erf

from .base import Array, Boundary, Derivatives, Nodes
from .polynomial import middle_and_spread
from .quadrature import gauss_legendre, legendre, legendre_derivatives
from .smooth import Smooth, last_coefficients

__all__ = ["Bounded"]

_CELLS = 100
_THIN = 0.01  # share of the Cauchy distribution, which keeps log q finite everywhere
_ROWS = 4096  # in turn, so that kernels by rows stay in cache
_CUT, _FINE = 5.0, 1024  # where x is cut in its moments, and their nodes


@dataclass(frozen=True, eq=False)
class Bounded(Smooth):
    """Legendre polynomials of u = 2F(x) − 1, with F the exact integral of a kernel estimate q of the density.

    q = .99 Σ_j shares_j N(centres_j, widths_j²) + .01 Cauchy(location, spread).

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_cauchy(1000)
    >>> axis = Bounded.fit(x, 4)
    >>> bool(np.abs(axis.functions(x).mean(axis=0)).max() < 0.03)
    True
    >>> axis.log_base(np.array([1e300])).round().tolist()
    [-1384.0]
    """

    centres: Array
    widths: Array
    shares: Array
    location: float
    spread: float
    degree: int

    kind: ClassVar[str] = "bounded"

    def __post_init__(self) -> None:
        shapes = {np.shape(self.centres), np.shape(self.widths), np.shape(self.shares)}
        if len(shapes) > 1 or np.ndim(self.centres) != 1 or not np.all(self.widths > 0) or not self.spread > 0:
            raise ValueError("a bounded axis needs centres, positive widths and shares of one length, and a spread")
        if not (np.all(self.shares > 0) and abs(np.sum(self.shares) - 1) < 1e-9):
            raise ValueError("the shares of a bounded axis must be positive and sum to 1")
        if self.degree < 1 or self.degree != int(self.degree):
            raise ValueError(f"the degree of a bounded axis must be a whole number from 1 on, not {self.degree}")
        object.__setattr__(self, "degree", int(self.degree))

    @classmethod
    def fit(
        cls, x: Array, degree: int, weight: Array | None = None, extremes: tuple[float, float] | None = None
    ) -> Self:
        """The axis of a column; a weight counts how often a row is repeated.

        Kernels sit on a hundred quantiles; equal ones are one kernel with their share, so that a pile of equal values
        leaves the others as they are. A width is Silverman's times the root of the local gap between centres over the
        typical one (Abramson), and at least three quarters of the smaller gap beside it.
        """
        weight = np.ones(len(x)) if weight is None else weight
        n = weight.sum()
        location, scale = middle_and_spread(x, weight)
        cells = int(np.clip(n, 1, _CELLS))
        levels = (np.arange(cells) + 0.5) / cells
        centres, counts = np.unique(np.quantile(x, levels, method="inverted_cdf", weights=weight), return_counts=True)
        low, high = np.quantile(x, [0.25, 0.75], method="inverted_cdf", weights=weight)
        silverman = 0.9 * n**-0.2 * min((high - low) / 1.34 or scale, scale)
        widths = np.full(len(centres), silverman)
        if len(centres) > 1:
            gap = np.diff(centres)
            left, right = np.append(gap[0], gap), np.append(gap, gap[-1])
            sparse = np.sqrt(left * right) / counts
            local = np.sqrt(sparse / np.exp(np.mean(np.log(sparse))))
            widths = np.maximum(silverman * np.clip(local, 0.3, 10), 0.75 * np.minimum(left, right))
        return cls(centres, widths, counts / cells, location, 3.92 * scale, degree)

    @property
    def degrees(self) -> Array:  # type: ignore[override]
        """1, …, degree."""
        return np.arange(1, self.degree + 1)

    @property
    def unit(self) -> float:  # type: ignore[override]
        """The robust spread."""
        return self.spread / 3.92

    def name(self, l: int, variable: str) -> str:
        """The l-th Legendre polynomial of u, which is no power of x."""
        return f"P{l + 1}({variable})"

    @property
    def norms(self) -> Array:
        """√(2l + 1) of the l-th Legendre polynomial."""
        return np.sqrt(2 * self.degrees + 1.0)

    def to_unit(self, x: Array) -> Array:
        """u = 2F(x) − 1, as a difference of what lies below x and what lies above it."""
        return self._by_rows(x)[0]

    def coordinate(self, x: Array) -> Array:
        """u, in which derivatives are taken."""
        return self.to_unit(x)

    def functions(self, x: Array) -> Array:
        """φ_l(x), (n, J)."""
        return legendre(self.to_unit(x), range(1, self.degree + 1))

    def log_base(self, x: Array) -> Array:
        """log q(x)."""
        return np.where(self.contains(x), self._by_rows(x)[1], -np.inf)

    def nodes(self, count: int) -> Nodes:
        """Gauss-Legendre nodes in u, where q is uniform."""
        u, w = gauss_legendre(count)
        return Nodes(self.from_unit(u), np.log(w / 2), legendre(u, range(1, self.degree + 1)), last_coefficients(count))

    def mean_variance(self, a: Array) -> tuple[Array, Array]:
        """Mean and variance of x cut at `_CUT` widths beyond the outermost kernels, as a Cauchy tail has no moments."""
        reach = _CUT * self.widths
        x = np.clip(self.table(_FINE).nodes.places, (self.centres - reach).min(), (self.centres + reach).max())
        mean, variance = np.empty(len(a)), np.empty(len(a))
        for rows in np.array_split(np.arange(len(a)), 1 + len(a) * _FINE // 2_000_000):
            mass, _ = self.mass(a[rows], _FINE)
            mass /= mass.sum(axis=0)
            mean[rows] = x @ mass
            variance[rows] = np.einsum("kn,kn->n", mass, (x[:, None] - mean[rows]) ** 2)
        return mean, variance

    def derivatives(self, x: Array) -> Derivatives:
        """φ′ and φ″ with respect to u."""
        return Derivatives(*legendre_derivatives(self.to_unit(x), range(1, self.degree + 1)))

    def boundary(self, x: Array) -> Boundary:
        """h = 1 − u², which vanishes at the ends of u."""
        u = self.to_unit(x)
        return Boundary(1 - u * u, -2 * u)

    def from_unit(self, u: Array) -> Array:
        """x at u: a place in a table, then Newton between its neighbours, else bisection, on rows that still move."""
        places, units, slopes = self._lookup
        j = np.clip(np.searchsorted(units, u), 1, len(units) - 1)
        low, high = places[j - 1], places[j]
        rise, width = units[j] - units[j - 1], high - low
        z = np.clip((u - units[j - 1]) / rise, 0, 1)  # the cubic with the slopes of the inverse function
        x = low + z * width + z * (1 - z) * ((1 - z) * (rise / slopes[j - 1] - width) - z * (rise / slopes[j] - width))
        x, rows = np.where((x >= low) & (x <= high), x, 0.5 * (low + high)), np.arange(len(x))
        for _ in range(100):
            before = x[rows]
            at, log_q = self._by_rows(self.location + self.spread * before)
            under = at < u[rows]
            low[rows], high[rows] = np.where(under, before, low[rows]), np.where(under, high[rows], before)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = before - (at - u[rows]) / (2 * self.spread * np.exp(log_q))
            inside = (step >= low[rows]) & (step <= high[rows])
            x[rows] = np.where(inside, step, 0.5 * (low[rows] + high[rows]))
            rows = rows[np.abs(x[rows] - before) > 4e-16 * np.maximum(1.0, np.abs(before))]
            if not len(rows):
                break
        return self.location + self.spread * x

    def log_density(self, z: Array) -> Array:
        """Uniform in u."""
        return np.full(len(z), np.log(0.5))

    @cached_property
    def _lookup(self) -> tuple[Array, Array, Array]:
        """Places in spreads from the location, u and du/dx there: around each kernel, and far out into the tails."""
        far = np.logspace(-1, 17, 145)
        near = self.centres + self.widths * np.linspace(-4, 4, 17)[:, None]
        places = np.unique(np.concatenate([-far, [0.0], far, ((near - self.location) / self.spread).ravel()]))
        units, log_q = self._by_rows(self.location + self.spread * places)
        new = np.append(True, np.diff(units) > 0)
        return places[new], units[new], 2 * self.spread * np.exp(log_q[new])

    def _by_rows(self, x: Array) -> tuple[Array, Array]:
        """U and log q."""
        x = np.asarray(x, float)
        u, log_q = np.empty(x.size), np.empty(x.size)
        for start in range(0, x.size, _ROWS):
            rows = slice(start, start + _ROWS)
            u[rows], log_q[rows] = self._distribution(x.ravel()[rows])
        return u.reshape(x.shape), log_q.reshape(x.shape)

    def _distribution(self, x: Array) -> tuple[Array, Array]:
        """U and log q of a block, (n,) each."""
        with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
            z = (x[:, None] - self.centres) / (np.sqrt(2) * self.widths)
            far = (x - self.location) / self.spread
            u = (1 - _THIN) * (erf(z) @ self.shares) + _THIN * (2 / np.pi) * np.arctan(far)
            kernels = np.exp(-z * z) @ (self.shares / self.widths) / np.sqrt(2 * np.pi)
            cauchy = -np.log(np.pi * self.spread) - 2 * np.log(np.hypot(1.0, np.clip(far, -1e300, 1e300)))
            return u, np.logaddexp(np.log(1 - _THIN) + np.log(kernels), np.log(_THIN) + cauchy)
