"""Integrals of exp(−Σ a_l φ_l) from the formulas of each kind of axis, in long doubles and without its nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LONG = np.longdouble
PANELS = 400


class Measure(NamedTuple):
    """Functions and log weights at places: the base measure of an axis as a fine sum."""

    phi: np.ndarray  # (N, J)
    log_weight: np.ndarray  # (N,)


def panel_rule(low, high):
    """Places and weights of panels that narrow towards both ends, so that layers there are seen."""
    even = np.linspace(-1, 1, PANELS + 1, dtype=LONG)
    near = 1 - LONG(2) ** -np.arange(5, 46)
    edges = np.unique(np.concatenate([even, near, -near]))
    u, w = (values.astype(LONG) for values in np.polynomial.legendre.leggauss(16))
    half = np.diff(edges)[:, None] / 2
    places, weights = (edges[:-1, None] + half * (u + 1)).ravel(), (half * w).ravel()
    return LONG(low) + (LONG(high) - LONG(low)) * (places + 1) / 2, weights * (LONG(high) - LONG(low)) / 2


def recurrence_values(y, alpha, beta):
    """Orthonormal polynomials of degree 1 on, written out once more."""
    values = [0 * y, np.ones_like(y)]
    below = LONG(0)
    for a, b in zip(alpha.astype(LONG), beta.astype(LONG), strict=True):
        values.append(((y - a) * values[-1] - below * values[-2]) / b)
        below = b
    return np.stack(values[2:], axis=1)


def polynomial_measure(axis):
    """A window under dy, and the mass of each exponential tail, where functions keep their value."""
    y, w = panel_rule(axis.low, axis.high)
    left, right = axis.tails
    y = np.concatenate([y, [LONG(axis.low)] * left, [LONG(axis.high)] * right])
    w = np.concatenate([w, [LONG(axis.tail)] * (left + right)])
    return Measure(recurrence_values(y, axis.alpha, axis.beta), np.log(w))


def bounded_measure(axis):
    """Legendre polynomials under the uniform density on [−1, 1]."""
    u, w = panel_rule(-1, 1)
    unit = np.eye(axis.degree + 1)[1:]
    phi = [np.sqrt(LONG(2 * k + 1)) * np.polynomial.legendre.legval(u, c) for k, c in enumerate(unit, start=1)]
    return Measure(np.stack(phi, axis=1), np.log(w / 2))


def circle_measure(axis):
    """√2 cos kx and √2 sin kx under dx."""
    x, w = panel_rule(0, 2 * np.pi)
    phi = [f(k * x) for k in range(1, axis.degree + 1) for f in (np.cos, np.sin)]
    return Measure(np.sqrt(LONG(2)) * np.stack(phi, axis=1), np.log(w))


def integrals(measure, a):
    """Log Z, E[φ] and the covariance, packed, of each row of a."""
    log_Z, mean, covariance = [], [], []
    l, m = np.triu_indices(a.shape[1])
    for row in a.astype(LONG):
        exponent = measure.log_weight - measure.phi @ row
        top = exponent.max()
        mass = np.exp(exponent - top)
        log_Z.append(np.log(mass.sum()) + top)
        kept = mass > 1e-24  # of the largest; the rest is below rounding
        mass, phi = mass[kept] / mass[kept].sum(), measure.phi[kept]
        mean.append(mass @ phi)
        away = phi - mean[-1]
        covariance.append(((mass[:, None] * away).T @ away)[l, m])
    return np.array(log_Z), np.array(mean), np.array(covariance)


def off(got, truth):
    """How far integrals are from the truth, row by row, in the units in which errors are stated."""
    log_Z, mean, covariance = truth
    size = 1 + np.maximum(np.abs(mean).max(axis=1), np.abs(covariance).max(axis=1))
    parts = [np.abs(got.log_Z - log_Z), np.abs(got.mean - mean).max(axis=1) / size]
    if got.covariance is not None:
        parts.append(np.abs(got.covariance - covariance).max(axis=1) / size)
    return np.maximum.reduce(parts).astype(float)
