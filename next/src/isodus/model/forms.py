"""Is a form positive away from 0? Terms of equal weight Σ α_i/d_i, as (exponents (K, p), coefficients (K,)).

With a weight of 1, the form is compared with N(x) = Σ |x_i|^{d_i}; F/N does not change along x_i = t^{1/d_i} u_i.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.optimize import minimize

__all__ = ["LARGEST", "is_positive", "least"]

Array = np.ndarray
LARGEST = 60
"""Variables of a form up to which it is minimised."""

_STARTS = 24
_STEPS = 200  # of the search for a scale in which each pure power outweighs its part of the mixed terms
_PROJECTIONS, _MOST_SQUARES = 3000, 60


def is_positive(exponents: Array, theta: Array, d: Array) -> tuple[bool | None, Array | None]:
    """True, or False with a direction in which it is negative, or None if nothing was found; weight 1."""
    scale = np.array([theta[np.flatnonzero(e)[0]] for e in _pure(exponents, theta, d)]) ** (-1 / d)
    theta = theta * np.prod(scale**exponents, axis=1)  # pure powers have coefficient 1 now
    if np.all(d == 2):
        return _quadratic(exponents, theta, scale)
    if _outweighed(exponents, theta, d):
        return True, None
    if len(d) > LARGEST:
        return None, None
    value, u = least(exponents, theta, d)
    if value < -1e-9:
        return False, _unit(u * scale, d)
    return (True if value > 1e-9 and _sum_of_squares(exponents, theta, d) else None), None


def least(exponents: Array, theta: Array, d: Array) -> tuple[float, Array]:
    """The smallest value of the form on Σ |x_i|^{d_i} = 1 from many starts, and where.

    The form's weight by d may be any: values are those after x_i = t^{1/d_i} u_i has brought u to Σ |u_i|^{d_i} = 1.
    """
    p, rng = len(d), np.random.default_rng(0)
    signs = np.array(list(product([1.0, -1.0], repeat=p))) if p <= 4 else rng.choice([-1.0, 1.0], (16, p))
    starts = np.concatenate([signs, rng.standard_normal((_STARTS, p))])
    omega, evaluate = float((exponents[0] / d).sum()), _evaluator(exponents, theta)

    def ratio(x: Array) -> tuple[float, Array]:
        N, dN = np.sum(np.abs(x) ** d), d * np.abs(x) ** (d - 1) * np.sign(x)
        value, gradient = evaluate(x)
        below = N**omega
        return value / below, gradient / below - omega * value / (below * N) * dN

    best, where = np.inf, starts[0]
    for start in starts:
        found = minimize(ratio, _unit(start, d), jac=True, method="L-BFGS-B", bounds=[(-4, 4)] * p)
        if found.fun < best:
            best, where = float(found.fun), found.x
    return best, _unit(where, d)


def _evaluator(exponents: Array, theta: Array) -> Callable[[Array], tuple[float, Array]]:
    """x to the form's value and gradient. Terms are padded lists of their variables, (K, m)."""
    m, p = int((exponents > 0).sum(axis=1).max()), exponents.shape[1]
    where = np.argsort(exponents == 0, axis=1, kind="stable")[:, :m]
    powers = np.take_along_axis(exponents, where, axis=1)

    def value(x: Array) -> tuple[float, Array]:
        at = x[where]
        factors = at**powers
        slopes = powers * at ** np.maximum(powers - 1, 0)
        gradient = np.zeros(p)
        for j in range(m):
            rest = np.prod(np.delete(factors, j, axis=1), axis=1)
            gradient += np.bincount(where[:, j], theta * rest * slopes[:, j], p)
        return float(theta @ np.prod(factors, axis=1)), gradient

    return value


def _unit(x: Array, d: Array) -> Array:
    """x with Σ |x_i|^{d_i} = 1, along x_i = t^{1/d_i} u_i."""
    return x * np.sum(np.abs(x) ** d) ** (-1 / d)


def _pure(exponents: Array, theta: Array, d: Array) -> Array:
    """For each variable, which row is its pure power, (p, K)."""
    return np.stack([(exponents == np.eye(len(d), dtype=int)[i] * d[i]).all(axis=1) for i in range(len(d))])


def _quadratic(exponents: Array, theta: Array, scale: Array) -> tuple[bool | None, Array | None]:
    """By the eigenvalues."""
    Q = np.zeros((len(scale), len(scale)))
    for e, value in zip(exponents, theta, strict=True):
        i, j = np.repeat(np.arange(len(scale)), e)
        Q[i, j] += value / 2
        Q[j, i] += value / 2
    values, vectors = np.linalg.eigh(Q)
    rounding = 1e-12 * max(1.0, values[-1])
    if abs(values[0]) <= rounding:
        return None, None
    return (True, None) if values[0] > 0 else (False, _unit(vectors[:, 0] * scale, np.full(len(scale), 2)))


def _outweighed(exponents: Array, theta: Array, d: Array) -> bool:
    """Whether |x^α| ≤ Σ_i (α_i/d_i) |x_i|^{d_i}, after x_i → c_i x_i, bounds all mixed terms by the pure powers."""
    mixed = ~_pure(exponents, theta, d).any(axis=0) & ~((exponents % 2 == 0).all(axis=1) & (theta > 0))
    shares, size = exponents[mixed] / d, np.abs(theta[mixed])
    log_c = np.zeros(len(d))
    for _ in range(_STEPS):
        part = (size * np.exp(exponents[mixed] @ log_c)) @ shares / np.exp(d * log_c)
        if part.max(initial=0.0) < 1 - 1e-12:
            return True
        log_c += 0.25 * np.log(np.maximum(part, 1e-3)) / d
        log_c -= log_c.mean()
    return False


def _sum_of_squares(exponents: Array, theta: Array, d: Array) -> bool:
    """Whether F = zᵀQz with Q positive definite, z all monomials of weight 1/2: projections onto both sides in turn."""
    z = _half(d) if len(d) <= 12 else np.zeros((0, len(d)))
    if not 0 < len(z) <= _MOST_SQUARES:
        return False
    place: dict[tuple[int, ...], int] = {}
    sums = z[:, None] + z[None, :]
    which = np.array([place.setdefault(s, len(place)) for s in map(tuple, sums.reshape(-1, len(d)).tolist())])
    target, count = np.zeros(len(place)), np.bincount(which)
    for e, value in zip(map(tuple, exponents.tolist()), theta, strict=True):
        if e not in place:
            return False
        target[place[e]] = value
    Q, floor = np.zeros((len(z), len(z))), 0.2
    for step in range(_PROJECTIONS):
        gap = (target - np.bincount(which, Q.ravel())) / count
        Q = Q + gap[which].reshape(Q.shape)  # exactly on the coefficients
        values, vectors = np.linalg.eigh(Q)
        if values[0] > 1e-9 * len(z):
            return True
        if step % 100 == 99:
            floor *= 0.7
        Q = (vectors * np.maximum(values, floor)) @ vectors.T
    return False


def _half(d: Array) -> Array:
    """Exponents with Σ β_i/d_i = 1/2, (·, p)."""
    found: list[tuple[tuple[int, ...], float]] = [((), 0.5)]
    for size in d:
        found = [((*beta, k), left - k / size) for beta, left in found for k in range(int(left * size + 1e-9) + 1)]
    return np.array([beta for beta, left in found if abs(left) < 1e-9], int).reshape(-1, len(d))
