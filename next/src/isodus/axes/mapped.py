"""A variable seen through a rising map: log10, log, asinh or a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from .base import Array, Axis, Boundary, Derivatives, Integrals, Nodes
from .line import Line
from .polynomial import middle_and_spread
from .quadrature import invert

__all__ = ["Map", "Mapped"]


@dataclass(frozen=True, eq=False)
class Map:
    """A rising function g with its inverse and log g′.

    Parameters
    ----------
    g : {"log10", "log", "asinh", "table"}
        asinh(x/scale) is linear near 0 and a logarithm far out.
    scale : float
        Of asinh.
    knots : array of shape (2, m), optional
        Of a table: x and g(x), both rising; a monotone cubic between, straight lines beyond.
    """

    g: str
    scale: float = 1.0
    knots: Array | None = None

    def __post_init__(self) -> None:
        if self.g not in ("log10", "log", "asinh", "table"):
            raise ValueError(f"a map is 'log10', 'log', 'asinh' or 'table', not {self.g!r}")
        if not self.scale > 0:
            raise ValueError(f"the scale of a map must be positive, not {self.scale}")
        if (self.g == "table") != (self.knots is not None):
            raise ValueError("the map 'table' needs knots, and no other map has them")
        if self.knots is not None:
            shape = np.shape(self.knots)
            if len(shape) != 2 or shape[0] != 2 or shape[1] < 2 or not np.all(np.diff(self.knots) > 0):
                raise ValueError("the knots of a table are two rows, x and g(x), both rising")

    def defined(self, x: Array) -> Array:
        """Where g(x) exists."""
        x = np.asarray(x, float)
        return np.isfinite(x) & (x > 0) if self.g in ("log", "log10") else np.isfinite(x)

    def forward(self, x: Array) -> Array:
        """g(x)."""
        x = np.asarray(x, float)
        if self.g == "table":
            return self._curve(x)[0]
        if self.g == "asinh":
            return np.arcsinh(x / self.scale)
        positive = np.where(x > 0, x, 1.0)
        return np.log10(positive) if self.g == "log10" else np.log(positive)

    def log_slope(self, x: Array) -> Array:
        """log g′(x)."""
        x = np.asarray(x, float)
        if self.g == "table":
            return np.log(self._curve(x)[1])
        if self.g == "asinh":
            return -np.log(np.hypot(x, self.scale))
        return -np.log(np.where(x > 0, x, 1.0)) - (np.log(np.log(10)) if self.g == "log10" else 0.0)

    def inverse(self, y: Array) -> Array:
        """x with g(x) = y."""
        if self.knots is not None:
            x, at = self.knots
            first, *_, last = self._slopes
            j = np.clip(np.searchsorted(at, y), 1, len(at) - 1)
            inside = invert(self._curve, np.clip(y, at[0], at[-1]), x[j - 1], x[j])
            beyond = np.where(y < at[0], x[0] + (y - at[0]) / first, x[-1] + (y - at[-1]) / last)
            return np.where((y < at[0]) | (y > at[-1]), beyond, inside)
        with np.errstate(over="ignore"):
            if self.g == "asinh":
                return self.scale * np.sinh(y)
            return np.power(10.0, y) if self.g == "log10" else np.exp(y)

    def _curve(self, x: Array) -> tuple[Array, Array]:
        """g and g′ of a table."""
        places = self.knots[0]  # type: ignore[index]
        near = np.clip(x, places[0], places[-1])
        slope = self._spline(near, 1)
        return self._spline(near) + slope * (x - near), slope

    @cached_property
    def _spline(self) -> CubicHermiteSpline:
        return CubicHermiteSpline(*self.knots, self._slopes)  # type: ignore[misc]

    @cached_property
    def _slopes(self) -> Array:
        """Slopes at the knots: harmonic means of those on both sides, so that the cubic rises."""
        run, rise = np.diff(np.asarray(self.knots))
        secants = rise / run
        return np.concatenate([secants[:1], 2 / (1 / secants[1:] + 1 / secants[:-1]), secants[-1:]])


@dataclass(frozen=True, eq=False)
class Mapped(Axis):
    """An axis of g(x): functions φ_l(g(x)), base q(g(x)) g′(x). Derivatives, boundary and powers are those in g(x).

    Parameters
    ----------
    axis : Axis
        The axis of g(x).
    g, scale, knots
        The map, as in `Map`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).lognormal(size=1000)
    >>> axis = Mapped.fit(x, 4, g="log10")
    >>> axis.contains(np.array([-1.0, 1.0])).tolist(), axis.name(1, "x")
    ([False, True], 'log10(x)^2')
    """

    axis: Axis
    g: str
    scale: float = 1.0
    knots: Array | None = None

    kind: ClassVar[str] = "mapped"

    def __post_init__(self) -> None:
        if not isinstance(self.axis, Axis):
            raise ValueError(f"a mapped axis needs the axis of g(x), not {self.axis!r:.50}")
        Map(self.g, self.scale, self.knots)

    @classmethod
    def fit(
        cls,
        x: Array,
        degree: int,
        weight: Array | None = None,
        extremes: tuple[float, float] | None = None,
        g: str = "log10",
        scale: float | None = None,
        knots: Array | None = None,
        axis: Callable[..., Axis] = Line.fit,
    ) -> Self:
        """The axis of a column: `axis` makes that of g(x); without a scale, asinh has the column's spread."""
        if g == "asinh" and scale is None:
            scale = middle_and_spread(x, np.ones(len(x)) if weight is None else weight)[1]
        rising = Map(g, scale or 1.0, None if knots is None else np.asarray(knots, float))
        least, most = extremes or (x.min(), x.max())
        ends = np.array([least, most])
        if not rising.defined(ends).all():
            raise ValueError(f"{g} needs positive values, and the smallest is {least:g}")
        inner = axis(rising.forward(x), degree, weight, tuple(rising.forward(ends)))
        return cls(inner, g, rising.scale, rising.knots)

    @cached_property
    def map(self) -> Map:
        """The map x to g(x)."""
        return Map(self.g, self.scale, self.knots)

    @property
    def degrees(self) -> Array:  # type: ignore[override]
        """Those of the axis of g(x)."""
        return self.axis.degrees

    @property
    def unit(self) -> float:  # type: ignore[override]
        """That of the axis of g(x), whose powers are those of g(x)."""
        return self.axis.unit

    @property
    def powers(self) -> Callable[[], Array] | None:  # type: ignore[override]
        """To powers of g(x)."""
        return self.axis.powers

    @property
    def unit_powers(self) -> Callable[[], Array] | None:  # type: ignore[override]
        """To powers of the coordinate of the axis of g(x)."""
        return self.axis.unit_powers

    def unclamped(self) -> Axis:
        """That of g(x)."""
        return replace(self, axis=self.axis.unclamped())

    def power_reference(self, nu: float, power: float, origin: float = 0.0) -> tuple[Callable[[Array], Array], Array]:
        """That of g(x)."""
        log_r, m = self.axis.power_reference(nu, power, origin)
        return lambda x: log_r(self.map.forward(x)), m

    @property
    def derivatives(self) -> Callable[[Array], Derivatives] | None:  # type: ignore[override]
        """With respect to the coordinate of the axis of g(x)."""
        inner = self.axis.derivatives
        return None if inner is None else lambda x: inner(self.map.forward(x))

    @property
    def boundary(self) -> Callable[[Array], Boundary] | None:  # type: ignore[override]
        """That of the axis of g(x)."""
        inner = self.axis.boundary
        return None if inner is None else lambda x: inner(self.map.forward(x))

    @property
    def norms(self) -> Array:
        """Those of the axis of g(x)."""
        return self.axis.norms

    @property
    def ends(self) -> tuple[float, float]:
        """Where those of the axis of g(x) are reached."""
        start, end = self.map.inverse(np.array(self.axis.ends))
        return float(start), float(end)

    def coordinate(self, x: Array) -> Array:
        """The coordinate of the axis of g(x)."""
        return self.axis.coordinate(self.map.forward(x))

    def name(self, l: int, variable: str) -> str:
        """That of g(x)."""
        return self.axis.name(l, f"{'g' if self.g == 'table' else self.g}({variable})")

    def contains(self, x: Array) -> Array:
        """Where g is defined and its value on its axis."""
        return self.map.defined(x) & self.axis.contains(self.map.forward(x))

    def functions(self, x: Array) -> Array:
        """φ_l(g(x)), (n, J)."""
        return self.axis.functions(self.map.forward(x))

    def log_base(self, x: Array) -> Array:
        """log q(g(x)) + log g′(x)."""
        inside = self.axis.log_base(self.map.forward(x)) + self.map.log_slope(x)
        return np.where(self.contains(x), inside, -np.inf)

    def nodes(self, count: int) -> Nodes:
        """The nodes of g(x)."""
        nodes = self.axis.nodes(count)
        return nodes._replace(places=self._inverse(nodes.places))

    def sums(self, a: Array, second: bool, count: int) -> tuple[Integrals, Array]:
        """Those of the axis of g(x)."""
        return self.axis.sums(a, second, count)

    def cdf(self, a: Array, x: Array) -> Array:
        """P(variable ≤ x), row by row."""
        below = self.axis.cdf(a, self.map.forward(x))
        return np.where(self.map.defined(x), below, np.where(x == np.inf, 1.0, 0.0))

    def quantile(self, a: Array, v: Array) -> Array:
        """x with distribution function v, row by row."""
        return self._inverse(self.axis.quantile(a, v))

    def _inverse(self, y: Array) -> Array:
        """x with g(x) = y; the nearest number strictly inside the ends where x is beyond the range of numbers."""
        start, end = self.ends
        return np.clip(self.map.inverse(y), np.nextafter(start, np.inf), np.nextafter(end, -np.inf))
