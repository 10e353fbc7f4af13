"""Models made by hand, and what they are compared with: sums and integrals on fine grids of their own."""

import numpy as np

from isodus.axes import WholeLine
from isodus.terms import Terms


def on_axes(axes, theta):
    """Terms and θ of {key: coefficient}; on powers a key is a product of powers of x."""
    terms = Terms(axes, list(theta))
    return terms, terms.T @ np.array(list(theta.values()), float)


def on_whole_lines(theta):
    """A polynomial model on whole lines."""
    degree = max(key.count(i) for key in theta for i in key)
    p = 1 + max(max(key) for key in theta)
    return on_axes([WholeLine(0.0, 1.0, degree)] * p, theta)


def energy(theta, *x):
    """Σ θ x^α of {key: coefficient}."""
    return sum(value * np.prod(np.broadcast_arrays(*(x[i] for i in key)), axis=0) for key, value in theta.items())


def on_grid(theta, p, reach, count):
    """A fine grid, (count,), and exp(−E) on it for p variables, (count,) * p; integrals are sums times the step."""
    grid = np.linspace(-reach, reach, count)
    return grid, np.exp(-energy(theta, *np.meshgrid(*[grid] * p, indexing="ij", sparse=True)))


def log_integral(theta, p, reach=6.0, count=241):
    """log ∫ exp(−E): the trapezoid sum, which converges faster than any power."""
    grid, density = on_grid(theta, p, reach, count)
    return np.log(density.sum()) + p * np.log(grid[1] - grid[0])


def distance(x, grid, mass):
    """√n times the Kolmogorov-Smirnov distance of draws from a mass on a fine grid; above 1.95, p is below .001."""
    below = np.cumsum(mass) - 0.5 * mass
    at = np.interp(np.sort(x), grid, below / mass.sum())
    n = len(x)
    return np.sqrt(n) * max(np.max(np.arange(1, n + 1) / n - at), np.max(at - np.arange(n) / n))


WELLS = {(i, i): -4.0 for i in range(2)} | {(i,) * 4: 2.0 for i in range(2)} | {(0, 1): -0.5, (0,): 0.1}
"""Two wells of height 2 at ±1, coupled and tilted."""

SEPARATED = {(i, i): -8.0 for i in range(4)} | {(i,) * 4: 4.0 for i in range(4)}
SEPARATED |= {(i, (i + 1) % 4): -0.6 for i in range(3)} | {(0, 3): -0.6, (0,): 0.15}
"""A ring of four wells of height 4."""


def chain(p, quartic=0.25):
    """φ⁴ on a line: E = Σ x² + quartic x⁴ − x_i x_{i+1}."""
    theta = {(i, i): 1.0 for i in range(p)} | {(i,) * 4: quartic for i in range(p)}
    return theta | {(i, i + 1): -1.0 for i in range(p - 1)}
