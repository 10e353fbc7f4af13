"""Functions φ_1, φ_2, … of one variable that may stand in the place of its powers in an energy.

A term (0, 0, 1) is then φ_2(x0)·φ_1(x1): the number of times that a variable is named says which of its functions is
meant. Any object will do that is called as ``functions(x, s)`` and gives φ_1 … φ_s along a new first axis. What else
it may have:

    derivatives(x, s)   φ' and φ'', two such arrays; score matching needs them
    count               how many functions there are, if not as many as one likes
    support             where the variable lives, if none is given
    start(s)            coefficients, (s,), of which exp(−Σ_l a_l φ_l) has an integral, where x has no bounds
    ends                True where functions are infinite at the ends of the support, as log x is
    name(l, variable)   φ_l in words
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import factorial, inf, isfinite, sqrt
from typing import Any, ClassVar

import numpy as np

from .arrays import Array, empty, namespace
from .supports import CIRCLE, Support

__all__ = ["Fourier", "HeavyTails", "Hermite", "Legendre", "LogPowers", "Logarithms", "from_plain", "plain"]


def _units(location: float, scale: float) -> None:
    if not (isfinite(location) and isfinite(scale) and scale > 0):
        raise ValueError(f"location must be finite and scale positive, not {location!r} and {scale!r}")


@dataclass(frozen=True)
class Hermite:
    """Hermite polynomials of y = (x − location)/scale, He_l(y)/√l!: of length one and orthogonal under a Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from isodus.functions import Hermite
    >>> Hermite()(np.array([0.0, 1.0]), 3).round(3)
    array([[ 0.   ,  1.   ],
           [-0.707,  0.   ],
           [-0.   , -0.816]])
    """

    location: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _units(self.location, self.scale)

    def __call__(self, x: Array, s: int) -> Array:
        """φ_1 … φ_s."""
        return self._with_one(x, s)[1:, ...]

    def _with_one(self, x: Array, s: int) -> Array:
        y, h = (x - self.location) / self.scale, empty((s + 1, *x.shape), x)
        h[0, ...] = 1.0
        h[1, ...] = y
        for l in range(1, s):  # He_{l+1} = y He_l − l He_{l−1}
            h[l + 1, ...] = (y * h[l, ...] - sqrt(l) * h[l - 1, ...]) / sqrt(l + 1)
        return h

    def derivatives(self, x: Array, s: int) -> tuple[Array, Array]:
        """φ' and φ''; φ_l' = √l φ_{l−1}."""
        h, first, second = self._with_one(x, s), empty((s, *x.shape), x), empty((s, *x.shape), x)
        for l in range(1, s + 1):
            first[l - 1, ...] = h[l - 1, ...] * (sqrt(l) / self.scale)
            second[l - 1, ...] = h[l - 2, ...] * (sqrt(l * (l - 1)) / self.scale**2) if l > 1 else 0.0 * x
        return first, second

    def start(self, s: int) -> np.ndarray:
        """A Gaussian, or something with lighter tails."""
        a = np.zeros(s)
        top = s - s % 2
        if top:
            a[1], a[top - 1] = 0.5, max(a[top - 1], 0.5 / factorial(top - 1))
        return a

    def name(self, l: int, variable: str) -> str:
        """In words."""
        return f"He{l}({variable})"


@dataclass(frozen=True)
class Legendre:
    """Legendre polynomials on the interval (low, high), √(2l + 1) P_l: orthonormal under the uniform density."""

    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            raise ValueError(f"an interval goes from low to high, not from {self.low!r} to {self.high!r}")

    @property
    def support(self) -> Support:
        """The interval."""
        return Support(self.low, self.high)

    def _unnormalised(self, x: Array, s: int) -> tuple[Array, Array]:
        half = 0.5 * (self.high - self.low)
        y, P = (x - 0.5 * (self.low + self.high)) / half, empty((s + 1, *x.shape), x)
        P[0, ...] = 1.0
        P[1, ...] = y
        for l in range(1, s):
            P[l + 1, ...] = ((2 * l + 1) * y * P[l, ...] - l * P[l - 1, ...]) / (l + 1)
        return y, P

    def __call__(self, x: Array, s: int) -> Array:
        """φ_1 … φ_s."""
        _, P = self._unnormalised(x, s)
        for l in range(1, s + 1):
            P[l, ...] *= sqrt(2 * l + 1)
        return P[1:, ...]

    def derivatives(self, x: Array, s: int) -> tuple[Array, Array]:
        """φ' and φ''; P'_{l+1} = P'_{l−1} + (2l + 1) P_l, and so once more."""
        _, P = self._unnormalised(x, s)
        first, second, half = empty((s + 1, *x.shape), x), empty((s + 1, *x.shape), x), 0.5 * (self.high - self.low)
        first[0, ...], second[0, ...] = 0.0, 0.0
        first[1, ...], second[1, ...] = 1.0, 0.0
        for l in range(1, s):
            first[l + 1, ...] = first[l - 1, ...] + (2 * l + 1) * P[l, ...]
            second[l + 1, ...] = second[l - 1, ...] + (2 * l + 1) * first[l, ...]
        for l in range(1, s + 1):
            first[l, ...] *= sqrt(2 * l + 1) / half
            second[l, ...] *= sqrt(2 * l + 1) / half**2
        return first[1:, ...], second[1:, ...]

    def name(self, l: int, variable: str) -> str:
        """In words."""
        return f"P{l}({variable})"


@dataclass(frozen=True)
class Fourier:
    """cos x, sin x, cos 2x, sin 2x, …: of an angle, on the circle."""

    support: ClassVar[Support] = CIRCLE

    def __call__(self, x: Array, s: int) -> Array:
        """φ_1 … φ_s."""
        xp, out = namespace(x), empty((s, *x.shape), x)
        for l in range(s):
            k = l // 2 + 1
            out[l, ...] = xp.sin(k * x) if l % 2 else xp.cos(k * x)
        return out

    def derivatives(self, x: Array, s: int) -> tuple[Array, Array]:
        """φ' and φ''."""
        values = self(x, s + s % 2)
        first, second = empty((s, *x.shape), x), empty((s, *x.shape), x)
        for l in range(s):
            k = l // 2 + 1
            first[l, ...] = values[l - 1, ...] * float(k) if l % 2 else values[l + 1, ...] * -float(k)
            second[l, ...] = values[l, ...] * -float(k * k)
        return first, second

    def name(self, l: int, variable: str) -> str:
        """In words."""
        k = (l + 1) // 2
        return f"{'cos' if l % 2 else 'sin'}({'' if k == 1 else k}{variable})"


@dataclass(frozen=True)
class LogPowers:
    """log x, x, x², …: on x > 0, as a Gamma distribution has, x^{k−1} e^{−x/c}."""

    support: ClassVar[Support] = Support(0.0, inf)
    ends: ClassVar[bool] = True

    def __call__(self, x: Array, s: int) -> Array:
        """φ_1 … φ_s."""
        out = empty((s, *x.shape), x)
        with np.errstate(divide="ignore"):
            out[0, ...] = namespace(x).log(x)
        for l in range(1, s):
            out[l, ...] = x if l == 1 else out[l - 1, ...] * x
        return out

    def derivatives(self, x: Array, s: int) -> tuple[Array, Array]:
        """φ' and φ''."""
        first, second = empty((s, *x.shape), x), empty((s, *x.shape), x)
        first[0, ...] = 1 / x
        second[0, ...] = -1 / (x * x)
        power = namespace(x).ones_like(x)  # x^{l−2}
        for l in range(1, s):
            first[l, ...] = l * (power if l == 1 else power * x)
            second[l, ...] = l * (l - 1) * power
            power = power if l == 1 else power * x
        return first, second

    def start(self, s: int) -> np.ndarray:
        """An exponential distribution, or something with lighter tails."""
        a = np.zeros(s)
        a[min(s, 2) - 1], a[s - 1] = 1.0, max(a[s - 1], 1.0 if s == 2 else 0.05)
        return a if s > 1 else np.array([1.0])

    def name(self, l: int, variable: str) -> str:
        """In words."""
        return f"log({variable})" if l == 1 else variable if l == 2 else f"{variable}^{l - 1}"


@dataclass(frozen=True)
class Logarithms:
    """z, z², …, z = (log x − location)/scale: on x > 0, of which the log-normal distribution has two.

    The same as taking logarithms of the data, but for the density, which is one of x, and for variables beside it.
    """

    location: float = 0.0
    scale: float = 1.0
    support: ClassVar[Support] = Support(0.0, inf)
    ends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _units(self.location, self.scale)

    def _z(self, x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return (namespace(x).log(x) - self.location) / self.scale

    def __call__(self, x: Array, s: int) -> Array:
        """φ_1 … φ_s."""
        out = empty((s, *x.shape), x)
        out[0, ...] = self._z(x)
        for l in range(1, s):
            out[l, ...] = out[l - 1, ...] * out[0, ...]
        return out

    def derivatives(self, x: Array, s: int) -> tuple[Array, Array]:
        """φ' = l z^{l−1} z' and φ'' = l (l − 1) z^{l−2} z'² + l z^{l−1} z'', z' = 1/(scale x), z'' = −z'/x."""
        z, first, second = self._z(x), empty((s, *x.shape), x), empty((s, *x.shape), x)
        slope = 1 / (self.scale * x)
        before = power = namespace(x).ones_like(x)  # z^{l−2}, z^{l−1}
        for l in range(1, s + 1):
            first[l - 1, ...] = l * power * slope
            second[l - 1, ...] = l * ((l - 1) * before * slope - power / x) * slope
            before, power = power, power * z
        return first, second

    def start(self, s: int) -> np.ndarray:
        """A log-normal distribution, or something with lighter tails."""
        a = np.zeros(s)
        top = s - s % 2
        if top:
            a[1], a[top - 1] = 0.5, max(0.5 if top == 2 else 0.05, a[top - 1])
        return a

    def name(self, l: int, variable: str) -> str:
        """In words."""
        plain_units = self.location == 0 and self.scale == 1
        z = f"log({variable})" if plain_units else f"((log({variable}) - {self.location:g})/{self.scale:g})"
        return z if l == 1 else f"{z}^{l}"


@dataclass(frozen=True)
class HeavyTails:
    """arctan y and log(1 + y²), y = (x − location)/scale: tails that fall as a power of x, skewed or not.

    One variable alone has a density of Pearson's type IV, of which Student's t is the one that is not skewed: with ν
    degrees of freedom the parameter of log(1 + y²) is (ν + 1)/2 for scale √ν.
    """

    location: float = 0.0
    scale: float = 1.0
    count: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _units(self.location, self.scale)

    def __call__(self, x: Array, s: int) -> Array:
        """φ_1 … φ_s; those beyond the second are zero."""
        xp = namespace(x)
        y, out = (x - self.location) / self.scale, empty((s, *x.shape), x)
        out[...] = 0.0
        out[0, ...] = xp.atan(y)
        if s > 1:
            big = xp.abs(y) > 1e8  # where y² might overflow
            safe = xp.where(big, xp.ones_like(y), y)
            out[1, ...] = xp.where(big, 2 * xp.log(xp.maximum(xp.abs(y), xp.ones_like(y))), xp.log1p(safe * safe))
        return out

    def derivatives(self, x: Array, s: int) -> tuple[Array, Array]:
        """φ' and φ''."""
        y, d = (x - self.location) / self.scale, self.scale
        first, second = empty((s, *x.shape), x), empty((s, *x.shape), x)
        first[...], second[...] = 0.0, 0.0
        q = 1 / (1 + y * y)
        first[0, ...] = q / d
        second[0, ...] = -2 * y * q * q / (d * d)
        if s > 1:
            first[1, ...] = 2 * y * q / d
            second[1, ...] = 2 * (1 - y * y) * q * q / (d * d)
        return first, second

    def start(self, s: int) -> np.ndarray:
        """Student's t with one degree of freedom."""
        a = np.zeros(s)
        a[min(s, 2) - 1] = 1.0
        return a

    def name(self, l: int, variable: str) -> str:
        """In words."""
        plain_units = self.location == 0 and self.scale == 1
        y = variable if plain_units else f"({variable} - {self.location:g})/{self.scale:g}"
        return f"arctan({y})" if l == 1 else f"log(1 + {variable}^2)" if plain_units else f"log(1 + ({y})^2)"


_KNOWN = {kind.__name__: kind for kind in (Hermite, Legendre, Fourier, LogPowers, Logarithms, HeavyTails)}


def plain(functions: Any) -> dict[str, Any] | None:
    """Functions as plain values for a file; None for powers, an error for functions of a user's own."""
    if functions is None:
        return None
    name = type(functions).__name__
    if _KNOWN.get(name) is not type(functions):
        raise ValueError(
            f"a model with functions of your own ({name}) cannot be written to a file, which holds no code: keep its "
            "parameters (to_dict) and make it anew"
        )
    return {"name": name, **asdict(functions)}


def from_plain(content: Any) -> Any:
    """The functions that `plain` wrote."""
    if content is None:
        return None
    if not isinstance(content, dict) or content.get("name") not in _KNOWN:
        raise ValueError(f"there are no functions {content!r}")
    return _KNOWN[content["name"]](**{k: float(v) for k, v in content.items() if k != "name"})
