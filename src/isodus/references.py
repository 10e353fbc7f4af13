"""Regularizing densities R(x_i) and their moments m_l = ∫ x^l R(x) dx."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, isfinite

import numpy as np
from scipy.special import gammaln

from .arrays import Array, empty, namespace
from .spaces import Space, Spaces

__all__ = ["absolute_power", "bounded", "fall", "moments", "power_moments", "shared_integer", "tilted_moments"]

_AT_ENDS = 2.0  # power of the distance to an end with which R vanishes, where functions are infinite there


def power_moments(nu: np.ndarray, exponent: np.ndarray, centre: np.ndarray, s: int) -> np.ndarray:
    """m_1 … m_s of R(x) ∝ exp(−ν|x − centre|^exponent), shape (s, p); paper, centering coefficients c^(l).

    About the centre, with e = exponent = s + δ:
    c^(l) = ν^{−l/e} Γ((l+1)/e) / Γ(1/e) for even l, 0 for odd l. About zero by binomial expansion.
    """
    central = [
        np.zeros_like(nu)
        if l % 2
        else np.exp(-l / exponent * np.log(nu) + gammaln((l + 1) / exponent) - gammaln(1 / exponent))
        for l in range(s + 1)
    ]
    return np.stack([sum(comb(l, j) * centre ** (l - j) * central[j] for j in range(l + 1)) for l in range(1, s + 1)])


def absolute_power(x: Array, exponent: float | Array) -> Array:
    """|x|^exponent; by products where the exponent is an integer, and with an exponent a row otherwise."""
    if not isinstance(exponent, int):
        return namespace(x).abs(x) ** exponent
    result = abs(x) if exponent % 2 else None
    square, half = x * x, exponent // 2
    while half:
        if half % 2:
            result = square if result is None else result * square
        half //= 2
        if half:
            square = square * square
    return result


def shared_integer(exponent: np.ndarray) -> int | None:
    """The exponent of all variables, if it is one and an integer."""
    e = float(exponent[0])
    return int(e) if np.all(exponent == e) and e == int(e) else None


def bounded(spaces: Spaces) -> np.ndarray:
    """Which variables live within bounds: their R is uniform, (p,)."""
    return np.array([space.support.bounded for space in spaces])


def moments(space: Space, nu: float, exponent: float, centre: float, s: int) -> np.ndarray:
    """m_l = ∫ φ_l R, (s,), of R ∝ exp(−ν|x − centre|^exponent), or of the uniform R where x has bounds.

    In closed form for powers: of an interval (b^{l+1} − a^{l+1})/((l + 1)(b − a)), of a half line
    ν^{−l/e} Γ((l+1)/e)/Γ(1/e) from its end, of a few values their mean.
    """
    low, high, values, _ = space.support
    if values is not None:
        return np.asarray(space.features(np.array(values), s)).mean(axis=1)
    if space.functions is None and space.support.bounded:
        l = np.arange(1, s + 1)
        return (high ** (l + 1) - low ** (l + 1)) / ((l + 1) * (high - low))
    if space.functions is None and isfinite(low):
        l = np.arange(s + 1)
        own = np.exp(-l / exponent * np.log(nu) + gammaln((l + 1) / exponent) - gammaln(1 / exponent))
        return np.array([sum(comb(k, j) * low ** (k - j) * own[j] for j in range(k + 1)) for k in range(1, s + 1)])
    if space.functions is None:
        return power_moments(np.array([nu]), np.array([exponent]), np.array([centre]), s)[:, 0]
    return tilted_moments(space, np.zeros((s, 1)), nu, exponent, centre, tilted=False)[:, 0]


def fall(space: Space, x: Array, nu: float, exponent: float, centre: float, tilted: bool = False) -> Array:
    """−log R: ν|x − centre|^exponent, and where functions are infinite at the ends, −2 log of the distance to those.

    Weights there would otherwise be those of 1/x, or more, of which few samples have all. What is tilted needs no such.
    """
    xp = namespace(x)
    value = nu * absolute_power(x - centre, exponent) if nu > 0 else xp.zeros_like(x)
    if getattr(space.functions, "ends", False) and not tilted:
        for end, sign in ((space.support.low, 1.0), (space.support.high, -1.0)):
            if isfinite(end):
                value = value - _AT_ENDS * xp.log(sign * (x - end))
    return value


@dataclass(frozen=True)
class _WithFall:
    """Functions of a space, and after them −log R."""

    space: Space
    nu: float
    exponent: float
    centre: float
    tilted: bool

    @property
    def ends(self) -> bool:
        """As those of the functions."""
        return bool(getattr(self.space.functions, "ends", False))

    def __call__(self, x: Array, s: int) -> Array:
        out = empty((s, *x.shape), x)
        out[: s - 1, ...] = self.space.features(x, s - 1)
        out[s - 1, ...] = fall(self.space, x, self.nu, self.exponent, self.centre, self.tilted)
        return out


def tilted_moments(space: Space, a: Array, nu: float, exponent: float, centre: float, tilted: bool = True) -> Array:
    """E φ_l, (s, n), of R ∝ exp(−Σ_l a_l φ_l − ν|x − centre|^exponent), with what `fall` adds, a: (s, n)."""
    if nu == 0 and (tilted or not getattr(space.functions, "ends", False)):
        return space.expectations(a).mean
    xp, s = namespace(a), a.shape[0]
    with_fall = space._replace(functions=_WithFall(space, nu, exponent, centre, tilted))
    return with_fall.expectations(xp.concat([a, xp.ones_like(a[:1, ...])])).mean[:s, ...]
