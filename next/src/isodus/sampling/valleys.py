"""Where the energy of a model on whole lines is lowest: valleys that no chain or window from the middle would see."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from .graph import Component

__all__ = ["low_points"]

Array = np.ndarray
_MOST_VARIABLES, _MOST_PRODUCTS = 50, 2000  # of a component that is searched
_DIRECTIONS, _STARTS = 512, 12
_RADII = np.geomspace(1e-2, 1e5, 141)
_DEEPER = 1.0  # below the lowest point that is reached from the middle
_NEAR = 5.0  # of the lowest, in energy
_BOTTOM = -1e12


def low_points(part: Component, rng: np.random.Generator) -> Array | None:
    """Local minima of E, (points, variables) in the units of x, that lie lower than those reached from the middle.

    None where there are none, where not all variables are on whole lines, or where there are too many. The energy is
    followed along random rays, and from its lowest places there downhill.
    """
    axes, p = part.terms.axes, len(part.terms.axes)
    wide = all(axis.on_window is not None for axis in axes)
    if not wide or p > _MOST_VARIABLES or len(part.theta) > _MOST_PRODUCTS:
        return None
    powers = np.zeros((len(part.theta), p), int)
    for k, factors in enumerate(part.terms.products):
        for i, l in factors:
            powers[k, i] = l + 1

    def energy(y: Array) -> Array:
        """Of points (p, n)."""
        value = np.zeros(y.shape[1])
        for alpha, theta in zip(powers, part.theta, strict=True):
            there = np.flatnonzero(alpha)
            value += theta * np.prod(y[there] ** alpha[there, None], axis=0)
        return value

    def slope(y: Array) -> Array:
        """∂E/∂y at one point (p,)."""
        out = np.zeros(p)
        for alpha, theta in zip(powers, part.theta, strict=True):
            for i in np.flatnonzero(alpha):
                rest = alpha.copy()
                rest[i] -= 1
                out[i] += theta * alpha[i] * np.prod(y**rest)
        return out

    def downhill(y: Array) -> tuple[float, Array]:
        found = minimize(lambda y: float(energy(y[:, None])[0]), y, jac=slope, method="L-BFGS-B")
        return (float(found.fun), found.x) if np.isfinite(found.fun) else (np.inf, y)

    with np.errstate(over="ignore", invalid="ignore"):
        middle = min(downhill(0.1 * rng.standard_normal(p))[0] for _ in range(3))
        direction = rng.standard_normal((p, _DIRECTIONS))
        direction[:, ::2] = np.sign(direction[:, ::2])  # where high powers are least, and lower ones large
        direction *= rng.random((p, _DIRECTIONS)) < rng.random(_DIRECTIONS)  # some of few variables
        direction /= np.maximum(np.sqrt((direction**2).sum(axis=0)), 1e-300)
        lowest = [energy(radius * direction) for radius in _RADII]
        along = np.where(np.isfinite(lowest), lowest, np.inf)
        best = along.min(axis=0)
        rays = np.argsort(best)[:_STARTS]
        found = [downhill(_RADII[along[:, k].argmin()] * direction[:, k]) for k in rays]
    least = min(value for value, _ in found)
    if not _BOTTOM < least < middle - _DEEPER:  # one without bottom is no density, which `on_windows` finds
        return None
    low = np.array([y for value, y in found if value < least + _NEAR])
    zero, one = (np.array([axis.coordinate(np.array([x]))[0] for axis in axes]) for x in (0.0, 1.0))
    return (low - zero) / (one - zero)
