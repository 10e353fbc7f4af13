"""Regularizing densities R(x_i) and their moments m_l = ∫ x^l R(x) dx."""

from __future__ import annotations

from math import comb

import numpy as np
from scipy.special import gammaln

from .arrays import Array, namespace

__all__ = ["absolute_power", "power_moments", "shared_integer"]


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
