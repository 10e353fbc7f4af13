"""A variable with functions of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from .base import Array, Boundary, Derivatives, Integrals, Nodes, rounding
from .polynomial import middle_and_spread
from .quadrature import gauss_legendre
from .smooth import Smooth, last_coefficients

__all__ = ["Functions"]

_REACH = 4.5  # of t: places on a half line are exp(±71) scales from its start
_LARGE = 1e100  # functions are cut there, so that products stay finite
_ENDS = 1e-6  # of the largest density in t: what is left at the last nodes where an integral diverges


@dataclass(frozen=True, eq=False)
class Functions(Smooth):
    """Functions f(x) that a user gives, on a support, under dx.

    Places are x(t) at Gauss-Legendre nodes in t, with s = π/2 · sinh t (double exponential): middle + half · tanh s
    on an interval, start ± scale · exp s on a half line, location + scale · sinh s on the line. So x^k near 0 and
    powers far out are resolved alike. log Z is +inf where the density in t has not fallen below a millionth of its
    largest value at the last nodes: the integral diverges, or so much of it lies beyond e^71 scales that it might as
    well. On a finite end other than 0, x cannot come nearer than rounding; write x as a distance from such an end.

    Parameters
    ----------
    f : callable
        x of shape (n,) to values of shape (n, J).
    support : tuple of float
        Ends, ±inf where there is none.
    degrees : array of shape (J,)
        What each function counts for in the degree of a term.
    location, scale : float
        Units of x.
    slopes : callable, optional
        x to f′ and f″, for score matching.
    names : sequence of str, optional
        A name for each function, with {} for the variable.

    Examples
    --------
    >>> import numpy as np
    >>> gamma = Functions(lambda x: np.stack([x, np.log(x)], axis=1), (0.0, np.inf), [1, 1])
    >>> gamma.integrals(np.array([[1.0, -2.0], [-1.0, 0.0]])).log_Z.round(8).tolist()  # log Γ(3), and no integral
    [0.69314718, inf]
    """

    f: Callable[[Array], Array]
    support: tuple[float, float]
    degrees: Array
    location: float = 0.0
    scale: float = 1.0
    slopes: Callable[[Array], tuple[Array, Array]] | None = None
    names: Sequence[str] | None = None

    kind: ClassVar[str] = "functions"

    def __post_init__(self) -> None:
        start, end = map(float, self.support)
        if not (start < end and self.scale > 0):
            shown = f"{start:g}, {end:g} and {self.scale:g}"
            raise ValueError(f"a support needs two ends in order and a positive scale, not {shown}")
        object.__setattr__(self, "degrees", np.asarray(self.degrees))
        object.__setattr__(self, "support", (start, end))

    @classmethod
    def fit(
        cls,
        x: Array,
        f: Callable[[Array], Array],
        support: tuple[float, float],
        degrees: Sequence[int],
        weight: Array | None = None,
        slopes: Callable[[Array], tuple[Array, Array]] | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        """The axis of a column: on the line in units of its median and spread, on a half line of its distances."""
        weight = np.ones(len(x)) if weight is None else weight
        location, scale = middle_and_spread(x, weight)
        ends = np.isfinite(support)
        if ends.any():
            scale = float(np.average(np.abs(x - np.asarray(support)[ends][0]), weights=weight))
        return cls(f, support, np.asarray(degrees), location, scale, slopes, names)

    @property
    def unit(self) -> float:  # type: ignore[override]
        """The scale."""
        return self.scale

    @property
    def ends(self) -> tuple[float, float]:
        """The support."""
        return self.support

    @property
    def derivatives(self) -> Callable[[Array], Derivatives] | None:  # type: ignore[override]
        """f′ and f″, if given."""
        slopes = self.slopes
        return None if slopes is None else lambda x: Derivatives(*slopes(x))

    def name(self, l: int, variable: str) -> str:
        """As given, else f1, f2, …"""
        return self.names[l].format(variable) if self.names else f"f{l + 1}({variable})"

    def contains(self, x: Array) -> Array:
        """Finite values in the support, without an end at which a function is not finite."""
        x = np.asarray(x, float)
        inside = np.isfinite(x) & (x >= self.support[0]) & (x <= self.support[1])
        inside[inside] = np.all(np.isfinite(self._values(x[inside])), axis=-1)
        return inside

    def functions(self, x: Array) -> Array:
        """f(x), (n, J)."""
        return self._values(np.asarray(x, float))

    def log_base(self, x: Array) -> Array:
        """0 on the support: densities are under dx."""
        return np.where(self.contains(x), 0.0, -np.inf)

    def boundary(self, x: Array) -> Boundary:
        """1 − u² between two ends, tanh of the distance in scales from one, 1 where there is none."""
        start, end = self.support
        if np.isfinite(start) and np.isfinite(end):
            half = (end - start) / 2
            return Boundary((x - start) * (end - x) / half**2, (start + end - 2 * x) / half**2)
        if not np.isfinite(start) and not np.isfinite(end):
            return Boundary(np.ones_like(x, float), np.zeros_like(x, float))
        side, edge = (1.0, start) if np.isfinite(start) else (-1.0, end)
        h = np.tanh(side * (x - edge) / self.scale)
        return Boundary(h, side * (1 - h * h) / self.scale)

    def nodes(self, count: int) -> Nodes:
        """Nodes in t; checks are the last coefficients of the mass."""
        u, w = gauss_legendre(count)
        places, log_slope = self._place(_REACH * u)
        phi = np.nan_to_num(np.clip(self._values(places), -_LARGE, _LARGE), nan=0.0)
        return Nodes(places, np.log(w * _REACH) + log_slope, phi, last_coefficients(count))

    def sums(self, a: Array, second: bool, count: int) -> tuple[Integrals, Array]:
        """Sums over nodes; +inf, and NaN for moments, where the integral diverges."""
        mass, top = self.mass(a, count)
        density = mass / gauss_legendre(count)[1][:, None]
        left = np.maximum(density[0], density[-1]) / density.max(axis=0)
        ok = left < _ENDS
        mass[:, ~ok] = 1.0
        out, unseen = self.moments(a, mass, top, second, count)
        for values, diverges in zip(out, (np.inf, np.nan, np.nan, 0.0), strict=True):
            if values is not None:
                values[~ok] = diverges
        unseen[~ok] = 0.0
        table = self.table(count)
        size = np.abs(table.nodes.phi).T @ mass / mass.sum(axis=0)  # where the mass is: at the last nodes it is e^71
        out.error[ok] = (unseen + left + rounding(np.einsum("nl,ln->n", np.abs(a), size), out.mean))[ok]
        return out, unseen

    def to_unit(self, x: Array) -> Array:
        """u = t(x) over its reach."""
        start, end = self.support
        with np.errstate(divide="ignore"):
            if np.isfinite(start) and np.isfinite(end):
                s = 0.5 * (np.log(np.maximum(x - start, 0.0)) - np.log(np.maximum(end - x, 0.0)))
            elif np.isfinite(start):
                s = np.log(np.maximum(x - start, 0.0) / self.scale)
            elif np.isfinite(end):
                s = -np.log(np.maximum(end - x, 0.0) / self.scale)
            else:
                s = np.arcsinh((x - self.location) / self.scale)
        return np.clip(np.arcsinh(s / (np.pi / 2)) / _REACH, -1, 1)

    def from_unit(self, u: Array) -> Array:
        """x(t) at t = u times its reach."""
        return self._place(_REACH * u)[0]

    def log_density(self, z: Array) -> Array:
        """log dx/du."""
        return np.log(_REACH) + self._place(_REACH * z)[1]

    def to_dict(self) -> NoReturn:
        """Functions are code, which no file keeps."""
        raise ValueError(
            "an axis with functions of your own cannot be saved; make the model again from its coefficients"
        )

    @classmethod
    def from_fields(cls, given: dict[str, Any]) -> NoReturn:
        """No file keeps such an axis."""
        raise ValueError("an axis with functions of your own cannot be read from a file")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def _values(self, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(self.f(x), float)

    def _place(self, t: Array) -> tuple[Array, Array]:
        """x(t), strictly inside the support, and log dx/dt."""
        s, log_slope = np.pi / 2 * np.sinh(t), np.log(np.pi / 2 * np.cosh(t))
        start, end = self.support
        log_cosh = np.logaddexp(s, -s) - np.log(2)
        if np.isfinite(start) and np.isfinite(end):
            share = np.exp(-np.logaddexp(0.0, -2 * s))
            x = np.where(s < 0, start + (end - start) * share, end - (end - start) * np.exp(-np.logaddexp(0.0, 2 * s)))
            log_slope += np.log((end - start) / 2) - 2 * log_cosh
        elif np.isfinite(start):
            x = start + self.scale * np.exp(s)
            log_slope += np.log(self.scale) + s
        elif np.isfinite(end):
            x = end - self.scale * np.exp(-s)
            log_slope += np.log(self.scale) - s
        else:
            x = self.location + self.scale * np.sinh(s)
            log_slope += np.log(self.scale) + log_cosh
        return np.clip(x, np.nextafter(start, np.inf), np.nextafter(end, -np.inf)), log_slope
