"""ℓ of one row by adaptive quadrature, or by a sum where there are a few values."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.integrate import quad

from isodus.axes import Axis


def pseudo_likelihood(axis: Axis, a: np.ndarray, x: float, pilot: np.ndarray) -> float:
    """−log P(x) + log q(x) under q exp(−Σ a_l φ_l)."""
    mass = lambda t: float(np.exp(log_mass(axis, a, t)))
    log_Z = np.log(integral(axis, mass))
    return float(log_Z - log_mass(axis, a, x) + axis.log_base(np.array([x]))[0])


def uniform_screening(axis: Axis, a: np.ndarray, x: float, pilot: np.ndarray) -> float:
    """Σ_l a_l (φ_l(x) − m_l), m_l the mean of φ_l between the ends."""
    energy = lambda t: float(axis.functions(np.array([t]))[0] @ a)
    low, high = ends(axis)
    return energy(x) - quad(energy, low, high, epsabs=1e-13, epsrel=1e-12)[0] / (high - low)


def tilted_screening(axis: Axis, a: np.ndarray, x: float, pilot: np.ndarray) -> float:
    """Σ_l (a_l − a⁰_l)(φ_l(x) − m_l), m the mean under the density of the pilot."""
    gap = lambda t: float(axis.functions(np.array([t]))[0] @ (a - pilot))
    mass = lambda t: float(np.exp(log_mass(axis, pilot, t)))
    return gap(x) - integral(axis, lambda t: gap(t) * mass(t)) / integral(axis, mass)


def power_screening(nu: float, power: float):
    """Σ_l a_l (φ_l(x) − m_l) − ν|y|^power with m the mean under exp(−ν|y|^power), y in units of the axis."""

    def value(axis: Axis, a: np.ndarray, x: float, pilot: np.ndarray) -> float:
        energy = lambda t: float(axis.functions(np.array([t]))[0] @ a)
        if axis.kind in ("values", "circle"):
            places = axis.values if axis.kind == "values" else np.arange(64) * np.pi / 32
            return energy(x) - np.mean([energy(t) for t in places])
        if axis.kind == "interval":
            u, w = np.polynomial.legendre.leggauss(40)
            (low, high) = ends(axis)
            return energy(x) - np.sum(w / 2 * [energy(t) for t in low + (high - low) * (u + 1) / 2])
        start = axis.low if axis.kind == "half line" else 0.0
        reach, unit = (40 / nu) ** (1 / power), axis.scale
        distance = lambda t: (t - axis.location) / unit - start
        mass = lambda t: float(np.exp(-nu * abs(distance(t)) ** power))
        low = axis.location + unit * (start - (0 if axis.kind == "half line" else reach))
        edges = np.linspace(low, axis.location + unit * (start + reach), 33)
        total = lambda f: sum(quad(f, a, b, epsabs=0, epsrel=1e-12, limit=200)[0] for a, b in pairwise(edges))
        m = [total(lambda t, l=l: axis.functions(np.array([t]))[0, l] * mass(t)) / total(mass) for l in range(len(a))]
        return energy(x) - float(a @ m) - nu * abs(distance(x)) ** power

    return value


def score_matching(axis: Axis, a: np.ndarray, x: float, pilot: np.ndarray) -> float:
    """½ h s² + h s′ + h′ s with s = −Σ a_l φ_l′, by polynomials through the functions at places near x.

    Derivatives are with respect to the axis' own coordinate.
    """
    J = len(a)
    y = float(axis.coordinate(np.array([x]))[0])
    if axis.kind == "circle":
        k, at = np.repeat(np.arange(1, J // 2 + 1), 2), np.array([y])
        shape = np.sqrt(2) * np.where(np.arange(J) % 2, np.sin(k * at), np.cos(k * at))
        turned = np.sqrt(2) * np.where(np.arange(J) % 2, np.cos(k * at), -np.sin(k * at))
        s, slope, h, h_slope = -a @ (k * turned), a @ (k**2 * shape), 1.0, 0.0
    else:
        unit, zero = axis.scale, axis.location
        places = y + np.linspace(-0.4, 0.4, J + 1)  # polynomials of degree J are known from J + 1 values
        anywhere = axis if axis.kind == "whole line" else replace(axis, low=-1e9, high=1e9)
        E = np.polynomial.Polynomial.fit(places, anywhere.functions(zero + unit * places) @ a, J)
        s, slope = -E.deriv()(y), -E.deriv(2)(y)
        h, h_slope = weight(axis, y)
    return float(0.5 * h * s**2 + h * slope + h_slope * s)


def weight(axis: Axis, y: float) -> tuple[float, float]:
    """h and h′ of the axis: 1 on a line, tanh of the distance from a start, a parabola between ends."""
    if axis.kind == "half line":
        h = np.tanh(y - axis.low)
        return h, 1 - h * h
    if axis.kind == "interval":
        half, middle = (axis.high - axis.low) / 2, (axis.high + axis.low) / 2
        return 1 - ((y - middle) / half) ** 2, -2 * (y - middle) / half**2
    return 1.0, 0.0


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
