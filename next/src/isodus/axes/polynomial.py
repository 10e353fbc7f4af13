"""Polynomials on a window of an axis, orthonormal under the rows, with exponential tails where the axis goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Self

import numpy as np
from scipy.special import gamma

from .base import Array, Derivatives, Nodes
from .quadrature import gauss_legendre
from .smooth import Smooth, last_coefficients

__all__ = [
    "Polynomial",
    "check_spread",
    "mean_and_deviation",
    "middle_and_spread",
    "polynomials",
    "power_moments",
    "recurrence",
    "shifted_powers",
    "to_powers",
]

_FAR = 1e100  # where the window of an axis without one ends
_LEAST = 1e-150  # spread, whose square is still a number
_EVEN = 32  # an even power: the larger, the nearer to an end nodes begin to crowd


@dataclass(frozen=True, eq=False)
class Polynomial(Smooth):
    """Polynomials of y = (x − location)/scale on [low, high]; beyond, they keep their value and q falls exponentially.

    Parameters
    ----------
    location, scale : float
        The units of y.
    low, high : float
        The window, in y.
    tail : float
        Length over which q falls by a factor e beyond the window, in y.
    alpha, beta : array of shape (degree,)
        The recurrence β_k φ_{k+1} = (y − α_k) φ_k − β_{k−1} φ_{k−1} with φ_0 = 1.
    """

    location: float
    scale: float
    low: float
    high: float
    tail: float
    alpha: Array
    beta: Array

    def __post_init__(self) -> None:
        if not (self.scale > 0 and self.high > self.low and self.tail > 0 and np.all(self.beta > 0)):
            raise ValueError(f"an axis of kind {self.kind!r} needs low < high and positive scale, tail and beta")
        if np.ndim(self.alpha) != 1 or np.shape(self.alpha) != np.shape(self.beta) or not len(self.alpha):
            raise ValueError(f"an axis of kind {self.kind!r} needs alpha and beta of one length")

    @property
    def degrees(self) -> Array:  # type: ignore[override]
        """1, …, degree."""
        return np.arange(1, len(self.alpha) + 1)

    @property
    def unit(self) -> float:  # type: ignore[override]
        """The scale."""
        return self.scale

    def in_units(self, location: float, scale: float) -> Self:
        """The same functions and base measure with another y."""
        ratio, shift = self.scale / scale, (self.location - location) / scale
        return replace(
            self,
            location=location,
            scale=scale,
            low=ratio * self.low + shift,
            high=ratio * self.high + shift,
            tail=ratio * self.tail,
            alpha=ratio * self.alpha + shift,
            beta=ratio * self.beta,
        )

    def coordinate(self, x: Array) -> Array:
        """y = (x − location)/scale, in which derivatives are taken."""
        return (np.asarray(x, float) - self.location) / self.scale

    @property
    def ends(self) -> tuple[float, float]:
        """Those of the window, where the axis does not go on."""
        left, right = self.tails
        low, high = self.location + self.scale * self.low, self.location + self.scale * self.high
        return (-np.inf if left else low), (np.inf if right else high)

    def contains(self, x: Array) -> Array:
        """Finite values, on this side of an end without a tail."""
        y = self.coordinate(x)
        left, right = self.tails
        return np.isfinite(y) & (left | (y >= self.low)) & (right | (y <= self.high))

    def functions(self, x: Array) -> Array:
        """φ_l(x), (n, J)."""
        return polynomials(np.clip(self.coordinate(x), self.low, self.high), self.alpha, self.beta)

    def log_base(self, x: Array) -> Array:
        """−log scale inside the window, falling linearly beyond it."""
        y = self.coordinate(x)
        beyond = np.maximum(0.0, np.maximum(self.low - y, y - self.high))
        return np.where(self.contains(x), -np.log(self.scale) - beyond / self.tail, -np.inf)

    def nodes(self, count: int) -> Nodes:
        """Graded Gauss-Legendre nodes inside, and a node for each tail.

        Checks are the last eight coefficients of the mass inside, and at each tail the density extrapolated to the
        edge minus the exact one: where a tail holds the mass and the density falls before the first node, the
        coefficients see nothing.
        """
        u, w = gauss_legendre(count)
        left, right = self.tails
        half, slope = (self.high - self.low) / 2, _graded_slope(u)
        edges = np.array([self.low] * left + [self.high] * right)
        y = np.concatenate([edges[:left], self.low + half * (_graded(u) + 1), edges[left:]])
        mass = np.concatenate([[self.tail] * left, half * w * slope, [self.tail] * right])
        inside = slice(left, left + count)
        check = np.zeros((len(y), 8 + left + right))
        check[inside, :8] = last_coefficients(count)
        # the density at u = 1 of a series on the nodes, by Christoffel and Darboux; that at u = -1 mirrors it
        at_end = count * check[inside, 7] / np.sqrt(2 * count - 1) / (2 * (1 - u) * slope)
        gap = 1 - _graded(u[-1])  # an error at the edge times the gap to the first node is missed mass
        for column, (node, extrapolate) in enumerate([(0, at_end[::-1])] * left + [(-1, at_end)] * right, start=8):
            check[inside, column] = gap * extrapolate
            check[node, column] = -gap * half / self.tail
        return Nodes(self.location + self.scale * y, np.log(mass), polynomials(y, self.alpha, self.beta), check)

    def to_unit(self, x: Array) -> Array:
        """u, −1 and 1 at the ends of the window."""
        place = 2 * (self.coordinate(x) - self.low) / (self.high - self.low) - 1
        return np.where(np.abs(place) > 1, place, _ungraded(np.clip(place, -1, 1)))

    def from_unit(self, u: Array) -> Array:
        """x at u."""
        return self.location + self.scale * (self.low + (self.high - self.low) * (_graded(u) + 1) / 2)

    def from_panel(self, z: Array) -> Array:
        """x at z, −1 and 1 at the ends of the window."""
        return self.location + self.scale * (self.low + (self.high - self.low) * (z + 1) / 2)

    def log_density(self, z: Array) -> Array:
        """Uniform in y."""
        return np.full(len(z), np.log((self.high - self.low) / 2))

    def beyond(self, side: int, log_share: Array) -> Array:
        """x in a tail, of an exponential distribution."""
        edge = self.low if side < 0 else self.high
        return self.location + self.scale * (edge - side * self.tail * log_share)

    def log_share(self, side: int, x: Array) -> Array:
        """−distance from the window over `tail`."""
        edge = self.low if side < 0 else self.high
        return -np.maximum(0.0, side * (self.coordinate(x) - edge)) / self.tail

    def within(self, places: Array) -> tuple[Array, Array]:
        """A place itself; in a tail those of an exponential distribution."""
        mean, variance = places.copy(), np.zeros(len(places))
        left, right = self.tails
        for node, side in [(0, -1)] * left + [(-1, 1)] * right:
            mean[node] += side * self.scale * self.tail
            variance[node] = (self.scale * self.tail) ** 2
        return mean, variance

    def derivatives(self, x: Array) -> Derivatives:
        """φ′ and φ″ with respect to y; zero beyond the window, where functions keep their value."""
        y = self.coordinate(x)
        first, second = [], []
        older, p, last = (0 * y,) * 3, (np.ones_like(y), 0 * y, 0 * y), 0.0
        for a, b in zip(self.alpha, self.beta, strict=True):
            q = (
                ((y - a) * p[0] - last * older[0]) / b,
                (p[0] + (y - a) * p[1] - last * older[1]) / b,
                (2 * p[1] + (y - a) * p[2] - last * older[2]) / b,
            )
            older, p, last = p, q, b
            first.append(q[1])
            second.append(q[2])
        inside = ((y >= self.low) & (y <= self.high))[..., None]
        return Derivatives(np.stack(first, -1) * inside, np.stack(second, -1) * inside)

    def powers(self) -> Array:
        """M, (J+1, J+1), with (1, φ_1, …, φ_J) = M (1, x, …, x^J) inside the window."""
        return to_powers(self.alpha, self.beta, self.location, self.scale)

    def unit_powers(self) -> Array:
        """The same with powers of y."""
        return to_powers(self.alpha, self.beta, 0.0, 1.0)

    def unclamped(self) -> Self:
        """The same polynomials, which go on where a tail is."""
        left, right = self.tails
        return replace(self, low=-_FAR if left else self.low, high=_FAR if right else self.high)

    def power_reference(self, nu: float, power: float, origin: float = 0.0) -> tuple[Callable[[Array], Array], Array]:
        """exp(−ν|y − origin|^power) where the axis goes on, from its end if it has one; uniform between two ends."""
        left, right = self.tails
        if not (left or right):
            return super().power_reference(nu, power)
        origin = origin if left and right else self.high if left else self.low
        m = power_moments(nu, power, len(self.alpha) + 1, [-1] * left + [1] * right)
        shifted = shifted_powers(len(m), -origin, 1.0)  # powers of y = origin + t in those of t, whose moments are m
        return lambda x: -nu * np.abs(self.coordinate(x) - origin) ** power, (self.unit_powers() @ shifted @ m)[1:]


def power_moments(nu: float, power: float, size: int, sides: Sequence[int]) -> Array:
    """E[t^l] for l < size under exp(−ν|t|^power) on the given sides of 0: ν^{−l/power} Γ((l+1)/power)/Γ(1/power)."""
    l = np.arange(size)
    one = nu ** (-l / power) * gamma((l + 1) / power) / gamma(1 / power)
    return np.mean([one * float(side) ** l for side in sides], axis=0)


def _graded(u: Array) -> Array:
    """Place in the window, −1 to 1, of a node u: even inside, and dense at the ends, so that layers are seen."""
    return u + (u - u ** (_EVEN + 1)) / _EVEN


def _graded_slope(u: Array) -> Array:
    return (1 + 1 / _EVEN) * (1 - u**_EVEN)


def _ungraded(place: Array) -> Array:
    """The node's u: Newton from the bound that the largest curvature gives, which is exact at the ends."""
    p = np.abs(place)
    u = 1 - np.sqrt(2 * (1 - p) / (_EVEN + 1))
    for _ in range(7):
        u = u - (_graded(u) - p) / np.maximum(_graded_slope(u), 1e-300)
    return np.copysign(np.clip(u, 0, 1), place)


def polynomials(y: Array, alpha: Array, beta: Array) -> Array:
    """φ_1 … φ_J by their recurrence, (..., J)."""
    out, older, p, last = [], np.zeros_like(y), np.ones_like(y), 0.0
    for a, b in zip(alpha, beta, strict=True):
        older, p, last = p, ((y - a) * p - last * older) / b, b
        out.append(p)
    return np.stack(out, axis=-1)


def to_powers(alpha: Array, beta: Array, location: float, scale: float) -> Array:
    """M, (J+1, J+1), with (1, φ_1, …, φ_J) = M (1, x, …, x^J) for polynomials of (x − location)/scale."""
    size = len(alpha) + 1
    M = np.zeros((size, size))
    M[0, 0], last = 1.0, 0.0
    for k, (a, b) in enumerate(zip(alpha, beta, strict=True)):
        M[k + 1, 1:] = M[k, :-1]
        M[k + 1] = (M[k + 1] - a * M[k] - (last * M[k - 1] if k else 0)) / b
        last = b
    return M @ shifted_powers(size, location, scale)


def shifted_powers(size: int, location: float, scale: float) -> Array:
    """Coefficients of ((x − location)/scale)^l in powers of x, a row for each l < size."""
    out = np.zeros((size, size))
    for l in range(size):
        for j in range(l + 1):
            out[l, j] = comb(l, j) * (-location) ** (l - j) / scale**l
    return out


def recurrence(y: Array, weight: Array, degree: int) -> tuple[Array, Array]:
    """α and β of the polynomials that are orthonormal under rows y with weights (Stieltjes' procedure)."""
    share = weight / weight.sum()
    alpha, beta, older, p, last = [], [], np.zeros_like(y), np.ones_like(y), 0.0
    for k in range(degree):
        alpha.append(float(share @ (y * p * p)))
        q = (y - alpha[-1]) * p - last * older
        last = float(np.sqrt(share @ (q * q)))
        if not last > 1e-8:
            raise ValueError(
                f"the column has {k + 1} different values, too few for polynomials of degree {degree}. Use degree "
                f"{k} or less, or support 'values'"
            )
        beta.append(last)
        older, p = p, q / last
    return np.array(alpha), np.array(beta)


def middle_and_spread(x: Array, weight: Array) -> tuple[float, float]:
    """Median, and the width of the middle 95 % over a Gaussian's; where that is 0, the standard deviation."""
    low, middle, high = map(float, np.quantile(x, [0.025, 0.5, 0.975], method="inverted_cdf", weights=weight))
    spread = high / 3.92 - low / 3.92
    if not spread > 1e-12 * max(abs(low), abs(high)):
        spread = mean_and_deviation(x, weight)[1]
    check_spread(middle, spread)
    return middle, spread


def mean_and_deviation(x: Array, weight: Array | None) -> tuple[float, float]:
    """Mean and standard deviation; +inf or NaN where they are beyond the range of numbers."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        share = np.full(len(x), 1 / len(x)) if weight is None else weight / weight.sum()
        mean = float(share @ x)
        return mean, float(np.sqrt(share @ (x - mean) ** 2))


def check_spread(middle: float, spread: float) -> None:
    """A ValueError for a column that is constant, or in units in which squares are beyond the range of numbers."""
    if not spread > 1e-14 * abs(middle) and np.isfinite(spread):
        raise ValueError("the column is constant up to rounding, so its density does not exist; subtract its mean")
    if not _LEAST < spread < 1 / _LEAST:
        raise ValueError(f"the column has a spread of {spread:.3g}, which is out of range; multiply it by a constant")
