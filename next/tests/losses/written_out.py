"""ℓ of one row by adaptive quadrature, or by a sum where there are a few values."""

from itertools import pairwise

import numpy as np
from scipy.integrate import quad

from isodus.axes import Axis


def pseudo_likelihood(axis: Axis, a: np.ndarray, x: float) -> float:
    """−log P(x) + log q(x) under q exp(−Σ a_l φ_l)."""
    mass = lambda t: float(np.exp(log_mass(axis, a, t)))
    log_Z = np.log(integral(axis, mass))
    return float(log_Z - log_mass(axis, a, x) + axis.log_base(np.array([x]))[0])


def uniform_screening(axis: Axis, a: np.ndarray, x: float) -> float:
    """Σ_l a_l (φ_l(x) − m_l), m_l the mean of φ_l between the ends."""
    energy = lambda t: float(axis.functions(np.array([t]))[0] @ a)
    low, high = ends(axis)
    return energy(x) - quad(energy, low, high, epsabs=1e-13, epsrel=1e-12)[0] / (high - low)


def log_mass(axis: Axis, a: np.ndarray, t: float) -> float:
    """log q(t) − Σ_l a_l φ_l(t)."""
    at = np.array([t])
    return float(axis.log_base(at)[0] - axis.functions(at)[0] @ a)


def ends(axis: Axis) -> tuple[float, float]:
    """Where the window of a `Polynomial` ends."""
    return axis.location + axis.scale * axis.low, axis.location + axis.scale * axis.high


def integral(axis: Axis, f) -> float:
    """∫ f over all that the axis holds."""
    if axis.kind == "values":
        return sum(map(f, axis.values))
    if axis.kind == "circle":
        edges = np.linspace(0, 2 * np.pi, 5)
    elif axis.kind == "whole line":
        edges = axis.location + axis.scale * np.linspace(-40, 40, 81)
    else:
        low, high = ends(axis)
        left, right = axis.tails
        reach = 60 * axis.tail * axis.scale
        edges = np.r_[[low - reach] * left, np.linspace(low, high, 9), [high + reach] * right]
    return sum(quad(f, a, b, epsabs=0, epsrel=1e-11, limit=200)[0] for a, b in pairwise(edges))
