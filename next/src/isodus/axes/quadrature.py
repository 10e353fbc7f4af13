"""Nodes and weights on [−1, 1], and the polynomials that are orthonormal there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

__all__ = ["gauss_legendre", "invert", "legendre", "legendre_derivatives", "legendre_integrals"]


@cache
def gauss_legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights of `count` nodes on [−1, 1], by Newton on the recurrence."""
    u = np.cos(np.pi * (np.arange(count, 0, -1) - 0.25) / (count + 0.5))
    slope = np.ones_like(u)
    for _ in range(8):
        older, p = np.ones_like(u), u.copy()
        for k in range(2, count + 1):
            older, p = p, ((2 * k - 1) * u * p - (k - 1) * older) / k
        slope = count * (u * p - older) / (u * u - 1)
        u = u - p / slope
    weights = 2 / ((1 - u * u) * slope**2)
    u.flags.writeable = weights.flags.writeable = False
    return u, weights


def legendre(u: np.ndarray, degrees: range) -> np.ndarray:
    """Legendre polynomials of consecutive degrees, orthonormal under the uniform density on [−1, 1]: (..., len)."""
    u = np.asarray(u, float)
    out, older, p = [], np.zeros_like(u), np.ones_like(u)
    for k in range(degrees.stop):
        if k >= degrees.start:
            out.append(np.sqrt(2 * k + 1) * p)
        older, p = p, ((2 * k + 1) * u * p - k * older) / (k + 1)
    return np.stack(out, axis=-1)


def legendre_integrals(u: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal Legendre polynomials of degree below `count` and their integrals from −1 to u: (count, n) each."""
    p = legendre(u, range(count + 1)).T
    k = np.arange(count + 1)[:, None]
    plain = p / np.sqrt(2 * k + 1)
    below = np.empty((count, len(u)))
    below[0] = u + 1
    below[1:] = (plain[2:] - plain[:-2]) / np.sqrt(2 * k[1:-1] + 1)
    return p[:-1], below


def legendre_derivatives(u: np.ndarray, degrees: range) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivatives of `legendre(u, degrees)`, by P′_{k+1} = P′_{k−1} + (2k + 1) P_k."""
    u = np.asarray(u, float)
    k = np.arange(degrees.stop)
    plain = np.moveaxis(legendre(u, range(degrees.stop)), -1, 0) / np.sqrt(2 * k + 1).reshape(-1, *[1] * u.ndim)
    first, second = np.zeros_like(plain), np.zeros_like(plain)
    for j in range(1, degrees.stop):
        first[j] = (2 * j - 1) * plain[j - 1] + (first[j - 2] if j > 1 else 0)
        second[j] = (2 * j - 1) * first[j - 1] + (second[j - 2] if j > 1 else 0)
    size = np.sqrt(2 * k + 1)[degrees.start :]
    return np.moveaxis(first, 0, -1)[..., degrees.start :] * size, np.moveaxis(second, 0, -1)[
        ..., degrees.start :
    ] * size


def invert(
    rising: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    v: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    noise: float = 0.0,
) -> np.ndarray:
    """Where a rising function, given with its slope, has the values v in [low, high]: Newton, else bisection.

    Ends where v is not between the values there. noise: of the function, within which v is reached.
    """
    low, high = np.array(low, float), np.array(high, float)
    u = 0.5 * (low + high)
    done = np.zeros(u.shape, bool)
    for _ in range(100):
        value, slope = rising(u)
        under = value < v
        low, high = np.where(under, u, low), np.where(under, high, u)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = u - (value - v) / slope
        step = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        done |= np.abs(value - v) <= noise
        step = np.where(done, u, step)  # what has arrived stays
        done |= np.abs(step - u) <= 1e-15 * np.maximum(1.0, np.abs(u))
        u = step
        if done.all():
            break
    return u
