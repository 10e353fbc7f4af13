"""A variable on the whole line, where a density need not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import ndtr, ndtri

from .base import Array, Axis, Derivatives, Integrals, Nodes, endless, packed_pairs, rounding
from .polynomial import check_spread, mean_and_deviation, power_moments, shifted_powers
from .quadrature import gauss_legendre
from .smooth import last_coefficients, series_inverse, series_share
from .window import Window

__all__ = ["WholeLine"]

_DEPTH = 40.0  # above the least energy, where a row's window ends
_SERIES_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class WholeLine(Axis):
    """Powers y, y², …, y = (x − location)/scale, on ℝ under dy; log Z is +inf where there is no integral.

    Up to degree 2 integrals are closed forms; beyond, each row has Gauss-Legendre nodes on a window of its own, which
    ends where the energy is `_DEPTH` above its least value.

    Parameters
    ----------
    location, scale : float
    degree : int
    zero, one : float
        The y that is 0 and the length in y that is 1 in the units of a penalty or a reference.

    Examples
    --------
    >>> import numpy as np
    >>> axis = WholeLine(0.0, 1.0, 2)
    >>> axis.integrals(np.array([[0.0, 0.5], [0.0, -0.5]])).log_Z.round(4).tolist()  # √(2π), and no integral
    [0.9189, inf]
    """

    location: float
    scale: float
    degree: int
    zero: float = 0.0
    one: float = 1.0

    kind: ClassVar[str] = "whole line"

    def __post_init__(self) -> None:
        if not (self.scale > 0 and self.one > 0) or self.degree < 1 or self.degree != int(self.degree):
            raise ValueError("a whole line needs a positive scale and unit, and a degree from 1 on")
        object.__setattr__(self, "degree", int(self.degree))

    @classmethod
    def fit(
        cls, x: Array, degree: int, weight: Array | None = None, extremes: tuple[float, float] | None = None
    ) -> Self:
        """The axis of a column, in units of its mean and standard deviation."""
        mean, deviation = mean_and_deviation(x, weight)
        check_spread(mean, deviation)
        return cls(mean, deviation, degree)

    @property
    def degrees(self) -> Array:  # type: ignore[override]
        """1, …, degree."""
        return np.arange(1, self.degree + 1)

    @property
    def unit(self) -> float:  # type: ignore[override]
        """The length of x that is 1 in the units of a penalty or a reference."""
        return self.scale * self.one

    def in_units(self, location: float, scale: float) -> Self:
        """The same powers, with penalties and references in other units."""
        return replace(self, zero=(location - self.location) / self.scale, one=scale / self.scale)

    def coordinate(self, x: Array) -> Array:
        """y, in which derivatives are taken."""
        return (np.asarray(x, float) - self.location) / self.scale

    def functions(self, x: Array) -> Array:
        """y, y², …, (n, J)."""
        return _powers(self.coordinate(x), self.degree)[..., 1:]

    def log_base(self, x: Array) -> Array:
        """−log scale."""
        return np.where(self.contains(x), -np.log(self.scale), -np.inf)

    def derivatives(self, x: Array) -> Derivatives:
        """φ′ and φ″ with respect to y."""
        k, y = self.degrees, _powers(self.coordinate(x), self.degree)
        first = k * y[..., :-1]
        return Derivatives(first, k * np.concatenate([np.zeros_like(y[..., :1]), first[..., :-1]], axis=-1))

    boundary = endless

    def powers(self) -> Array:
        """M, (J+1, J+1), with (1, φ_1, …, φ_J) = M (1, x, …, x^J)."""
        return shifted_powers(self.degree + 1, self.location, self.scale)

    def unit_powers(self) -> Array:
        """M with (1, φ) = M (1, t, …, t^J), t = (y − zero)/one."""
        return shifted_powers(self.degree + 1, -self.zero / self.one, 1 / self.one)

    def power_reference(self, nu: float, power: float, origin: float = 0.0) -> tuple[Callable[[Array], Array], Array]:
        """exp(−ν|t − origin|^power), t = (y − zero)/one."""
        m = shifted_powers(self.degree + 1, -origin, 1.0) @ power_moments(nu, power, self.degree + 1, (-1, 1))
        zero = self.zero + origin * self.one
        return lambda x: -nu * np.abs((self.coordinate(x) - zero) / self.one) ** power, (self.unit_powers() @ m)[1:]

    def gaussian_moments(self) -> tuple[float, float]:
        """Location and scale: with degree 2 the density is N(location + scale·μ, scale²·v), 2v = 1/a_2, μ = −a_1 v."""
        return self.location, self.scale

    def on_window(self, low: float, high: float) -> Axis:
        """The same functions and base measure on y in [low, high] alone."""
        return Window(self, low, high)

    def nodes(self, count: int) -> Nodes:
        """Nodes for a standard normal density; those of a row depend on its energy."""
        y, log_weights = self._places(np.array([0.0]), np.array([np.sqrt(2 * _DEPTH)]), count)
        return Nodes(
            self.location + self.scale * y[0],
            log_weights[0],
            _powers(y[0], self.degree)[:, 1:],
            last_coefficients(count),
        )

    def sums(self, a: Array, second: bool, count: int) -> tuple[Integrals, Array]:
        """Closed forms up to degree 2, else sums on each row's own nodes."""
        n, J = len(a), self.degree
        l, m = packed_pairs(J)
        out = Integrals(
            np.full(n, np.inf), np.full((n, J), np.nan), np.full((n, len(l)), np.nan) if second else None, np.zeros(n)
        )
        unseen = np.zeros(n)
        if J <= 2:
            return self._closed(a, out), unseen
        for rows in _parts(np.flatnonzero(_integrable(a)), count):
            at = self._row_masses(a[rows], count)
            mean = np.einsum("nk,nkj->nj", at.mass, at.phi)
            out.log_Z[rows], out.mean[rows] = at.log_Z, mean
            if out.covariance is not None:
                away = at.phi - mean[:, None]
                out.covariance[rows] = np.einsum("nki,nkj->nij", at.mass[..., None] * away, away)[:, l, m]
            unseen[rows] = np.abs(at.mass @ last_coefficients(count)).max(axis=1)
            out.error[rows] = unseen[rows] + rounding(
                np.einsum("nj,nj->n", np.abs(a[rows]), np.abs(at.phi).max(axis=1)), mean
            )
        return out, unseen

    def mean_variance(self, a: Array) -> tuple[Array, Array]:
        """Mean and variance of x, from those of y."""
        _, mean, covariance, _ = self.integrals(a)
        assert covariance is not None
        return self.location + self.scale * mean[:, 0], self.scale**2 * covariance[:, 0]

    def cdf(self, a: Array, x: Array) -> Array:
        """P(variable ≤ x), row by row; NaN where there is no integral."""
        y = self.coordinate(x)
        if self.degree <= 2:
            mu, v = _gaussian(a)
            return ndtr((y - mu) / np.sqrt(v))
        out = np.full(len(a), np.nan)
        for rows, at in self._resolved(a):
            out[rows] = series_share(at.mass.T, np.clip((y[rows] - at.middle) / at.half, -1, 1))
        return np.where(np.isnan(out), out, np.clip(out, 0.0, 1.0))

    def quantile(self, a: Array, v: Array) -> Array:
        """x with distribution function v, row by row; NaN where there is no integral."""
        if self.degree <= 2:
            mu, variance = _gaussian(a)
            return self.location + self.scale * (mu + np.sqrt(variance) * ndtri(v))
        out = np.full(len(a), np.nan)
        for rows, at in self._resolved(a):
            out[rows] = at.middle + at.half * series_inverse(at.mass.T, v[rows])
        return self.location + self.scale * out

    def _closed(self, a: Array, out: Integrals) -> Integrals:
        """Moments of N(μ, v) with 2v = 1/a_2 and μ = −a_1 v."""
        rows = np.flatnonzero(_integrable(a))
        mu, v = _gaussian(a[rows])
        if len(rows):
            out.log_Z[rows] = 0.5 * np.log(2 * np.pi * v) + mu * mu / (2 * v)
            out.mean[rows] = np.stack([mu, mu * mu + v], axis=1)
            if out.covariance is not None:
                out.covariance[rows] = np.stack([v, 2 * mu * v, 2 * v * v + 4 * mu * mu * v], axis=1)
            out.error[rows] = np.finfo(float).eps * (1 + mu * mu / v)
        return out

    def _places(self, middle: Array, half: Array, count: int) -> tuple[Array, Array]:
        """Nodes of each row, (n, count), and their log weights."""
        u, w = gauss_legendre(count)
        return middle[:, None] + half[:, None] * u, np.log(half)[:, None] + np.log(w)

    def _row_masses(self, a: Array, count: int) -> _RowMasses:
        """Normalised mass of rows that have an integral, on `count` nodes of their own."""
        low, high = _windows(a)
        middle, half = (low + high) / 2, (high - low) / 2
        y, log_weights = self._places(middle, half, count)
        phi = _powers(y, self.degree)[..., 1:]
        mass = log_weights - np.einsum("nkj,nj->nk", phi, a)
        top = mass.max(axis=1)
        mass = np.exp(mass - top[:, None])
        Z = mass.sum(axis=1)
        return _RowMasses(middle, half, phi, mass / Z[:, None], np.log(Z) + top)

    def _resolved(self, a: Array) -> Iterator[tuple[Array, _RowMasses]]:
        """Rows that have an integral, in turn, on as many nodes as the series of their mass takes."""
        waiting, count = np.flatnonzero(_integrable(a)), self.smallest
        while len(waiting):
            later = []
            for rows in _parts(waiting, count):
                at = self._row_masses(a[rows], count)
                fine = np.abs(at.mass @ last_coefficients(count)).max(axis=1) < _SERIES_TOLERANCE
                if count >= self.largest:
                    fine[:] = True
                yield rows[fine], _RowMasses(*(values[fine] for values in at))
                later.append(rows[~fine])
            waiting, count = np.concatenate(later), 2 * count


class _RowMasses(NamedTuple):
    """Nodes of each row: window, functions (n, count, J), normalised mass (n, count), log Z."""

    middle: Array
    half: Array
    phi: Array
    mass: Array
    log_Z: Array  # noqa: N815


def _powers(y: Array, degree: int) -> Array:
    """1, y, …, y^degree, (..., degree + 1); each power lies together in memory."""
    out = np.empty((degree + 1, *np.shape(y)))
    out[0] = 1.0
    for k in range(degree):
        np.multiply(out[k], y, out=out[k + 1])
    return out.transpose(*range(1, out.ndim), 0)


def _parts(rows: Array, count: int) -> list[Array]:
    return np.array_split(rows, 1 + len(rows) * count // 100_000) if len(rows) else []


def _leading(a: Array) -> Array:
    """The largest power with a coefficient, 0 if there is none, (n,)."""
    return np.where(a != 0, np.arange(1, a.shape[1] + 1), 0).max(axis=1, initial=0)


def _integrable(a: Array) -> Array:
    """Whether ∫ exp(−Σ a_l y^l) dy exists: the leading power is even and its coefficient positive."""
    top = _leading(a)
    return (top > 0) & (top % 2 == 0) & (a[np.arange(len(a)), np.maximum(top, 1) - 1] > 0)


def _gaussian(a: Array) -> tuple[Array, Array]:
    """μ and v; NaN where there is no integral, (n,) each."""
    ok = _integrable(a)
    curvature = 2 * (a[:, 1] if a.shape[1] > 1 else np.ones(len(a)))
    v = 1 / np.where(ok, curvature, np.nan)
    return -a[:, 0] * v, v


def _windows(a: Array) -> tuple[Array, Array]:
    """Where the energy of each row is at most `_DEPTH` above its least value: the outermost ends, (n,) each."""
    low, high, top = np.empty(len(a)), np.empty(len(a)), _leading(a)
    for degree in np.unique(top):
        rows = np.flatnonzero(top == degree)
        energy = np.concatenate([np.zeros((len(rows), 1)), a[rows, :degree]], axis=1)
        turns = _roots(energy[:, 1:] * np.arange(1, degree + 1)).real
        least = np.einsum("nkj,nj->nk", _powers(turns, degree), energy).min(axis=1)
        energy[:, 0] -= least + _DEPTH
        ends = _roots(energy)
        real = ends.imag == 0
        low[rows] = np.where(real, ends.real, np.inf).min(axis=1)
        high[rows] = np.where(real, ends.real, -np.inf).max(axis=1)
    return low, high


def _roots(coefficients: Array) -> Array:
    """Complex roots of polynomials Σ c_l y^l by companion matrices, (n, d); coefficients: (n, d + 1)."""
    size = coefficients.shape[1] - 1
    companion = np.zeros((len(coefficients), size, size))
    companion[:, np.arange(1, size), np.arange(size - 1)] = 1.0
    companion[:, :, -1] = -coefficients[:, :-1] / coefficients[:, -1:]
    return np.linalg.eigvals(companion).astype(complex)
