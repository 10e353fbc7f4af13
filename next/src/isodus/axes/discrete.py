"""Axes whose nodes are all the values of the variable: distribution functions are sums."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .base import Array, Axis

__all__ = ["Discrete"]


class Discrete(Axis):
    """Nodes are values in order, and densities are probabilities: a few values, classes, counts."""

    continuous: ClassVar[bool] = False

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last value."""
        places = self.table(self.largest).nodes.places
        return float(places[0]), float(places[-1])

    def contains(self, x: Array) -> Array:
        """Whether x is one of the values."""
        return np.isin(x, self.table(self.largest).nodes.places)

    def cdf(self, a: Array, x: Array) -> Array:
        """P(variable ≤ x), row by row."""
        out = np.empty(len(a))
        for rows, mass, places in self.resolved(a):
            below = np.vstack([np.zeros(len(rows)), mass.cumsum(axis=0)])
            out[rows] = below[np.searchsorted(places, x[rows], side="right"), np.arange(len(rows))]
        return np.minimum(out, 1.0)

    def quantile(self, a: Array, v: Array) -> Array:
        """The least value whose distribution function is at least v, row by row."""
        out = np.empty(len(a))
        for rows, mass, places in self.resolved(a):
            j = (mass.cumsum(axis=0) < v[rows]).sum(axis=0)
            out[rows] = places[np.minimum(j, len(places) - 1)]
        return out
