"""Axes whose nodes are Gauss-Legendre in a coordinate u in [−1, 1]: distribution functions by the mass's series."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import numpy as np

from .base import Array, Axis
from .panels import FIRST, LAST, Panels, panel_edges, panel_nodes, quantiles
from .quadrature import gauss_legendre, invert, legendre, legendre_integrals

_CELLS = 40_000  # panels of rows in turn
_LARGE = 1e100  # functions are cut there, so that products stay finite

__all__ = ["Smooth", "last_coefficients", "series_inverse", "series_share"]


@cache
def last_coefficients(count: int) -> Array:
    """The last eight Legendre polynomials on `count` nodes, (count, 8): a resolved mass has none of them."""
    return legendre(gauss_legendre(count)[0], range(count - 8, count))


class Smooth(Axis):
    """Nodes are the left tail's, if there is one, `count` Gauss-Legendre nodes inside, and the right tail's.

    A subclass maps x to u, and gives the mass beyond each end its distribution; functions are constant there.
    """

    @property
    def tails(self) -> tuple[bool, bool]:
        """Whether the axis goes on beyond u = −1 and beyond u = 1."""
        return False, False

    def to_unit(self, x: Array) -> Array:
        """The coordinate u of x; outside of [−1, 1] in the tails."""
        raise NotImplementedError

    def from_unit(self, u: Array) -> Array:
        """x at u."""
        raise NotImplementedError

    def from_panel(self, z: Array) -> Array:
        """x at z in [−1, 1], in which quantiles are sought."""
        return self.from_unit(z)

    def log_density(self, z: Array) -> Array:
        """Logarithm of the base measure's density in z."""
        raise NotImplementedError

    def beyond(self, side: int, log_share: Array) -> Array:
        """x in the tail of a side (−1 or 1) beyond which the share exp(log_share) of the tail's mass lies."""
        raise NotImplementedError

    def log_share(self, side: int, x: Array) -> Array:
        """Logarithm of the share of a tail's mass that lies beyond x; 0 inside."""
        raise NotImplementedError

    def cdf(self, a: Array, x: Array) -> Array:
        """P(variable ≤ x) under q exp(−Σ a_l φ_l), row by row."""
        out, u = np.empty(len(a)), self.to_unit(x)
        for rows, mass, _ in self.resolved(a):
            left, inside, right = self._parts(mass)
            below = left + series_share(inside, np.clip(u[rows], -1, 1))
            if self.tails[0]:
                below = np.where(u[rows] < -1, left * np.exp(self.log_share(-1, x[rows])), below)
            if self.tails[1]:
                below = np.where(u[rows] > 1, 1 - right * np.exp(self.log_share(1, x[rows])), below)
            out[rows] = below
        return np.clip(out, 0.0, 1.0)

    def quantile(self, a: Array, v: Array) -> Array:
        """x with distribution function v: polynomials in panels; tails in closed form."""
        x, waiting, count = np.empty(len(a)), np.arange(len(a)), FIRST
        while len(waiting):
            later = []
            for rows in np.array_split(waiting, -(-len(waiting) * count // _CELLS)):
                found = quantiles(self.panels(count), a[rows], v[rows])
                fine = found.fine | (count >= LAST)
                x[rows[fine]] = self._places(*(values[fine] for values in (v[rows], *found[:3])))
                later.append(rows[~fine])
            waiting, count = np.concatenate(later), 2 * count
            if count > self.finest and len(waiting):
                x[waiting] = self.narrow(a[waiting], v[waiting])
                break
        return x

    finest: ClassVar[int] = LAST
    """Panels from which on `narrow` takes over, where there is such a method."""

    def narrow(self, a: Array, v: Array) -> Array:
        """Quantiles of densities that are very narrow."""
        raise NotImplementedError

    def _places(self, v: Array, z: Array, left: Array, right: Array) -> Array:
        """x of distribution function v, given z and the shares of the tails."""
        x = self.from_panel(z)
        with np.errstate(divide="ignore", invalid="ignore"):  # logarithms of 0, at ends and where a tail is empty
            if self.tails[0]:
                x = np.where(v < left, self.beyond(-1, np.log(v) - np.log(left)), x)
            if self.tails[1]:
                x = np.where(1 - v < right, self.beyond(1, np.log1p(-v) - np.log(right)), x)
        return x

    def panels(self, count: int) -> Panels:
        """Nodes in `count` panels, made once."""
        made = self.__dict__.setdefault("_panels", {})
        if count not in made:
            edges, (left, right) = panel_edges(count), self.tails
            (z, w), nodes = (at.ravel() for at in panel_nodes(edges)), self.nodes(self.smallest)
            with np.errstate(all="ignore"):
                phi = np.nan_to_num(np.clip(self.functions(self.from_panel(z)), -_LARGE, _LARGE), nan=0.0)
            phi = np.vstack([nodes.phi[:left], phi, nodes.phi[len(nodes.phi) - right :]])
            ends = nodes.log_weights[[0, -1]]
            log_weights = np.concatenate([ends[:left], np.log(w) + self.log_density(z), ends[2 - right :]])
            exponents = np.hstack([-phi, log_weights[:, None], -np.ones((len(phi), 1))])
            ratios = np.exp(self.log_density(np.array([-1.0, 1.0])) - ends) if left or right else np.zeros(2)
            made[count] = Panels(edges, exponents, self.tails, ratios)
        return made[count]

    def _parts(self, mass: Array) -> tuple[Array | float, Array, Array | float]:
        """Masses of the left tail, the inside (count, n) and the right tail."""
        left, right = self.tails
        return mass[0] if left else 0.0, mass[left : len(mass) - right], mass[-1] if right else 0.0


def series_share(mass: Array, u: Array) -> Array:
    """Mass below u, by the Legendre series of a mass on Gauss-Legendre nodes; mass: (count, n), u: (n,)."""
    return _series(_coefficients(mass), u)[0]


def series_inverse(mass: Array, v: Array) -> Array:
    """u below which the Legendre series of a mass (count, n) has the share v (n,); ends where there is none."""
    count, coefficients = len(mass), _coefficients(mass)
    j = (mass.cumsum(axis=0) < v).sum(axis=0)
    edges = np.concatenate([[-1.0, -1.0], gauss_legendre(count)[0], [1.0, 1.0]])
    low, high = edges[j], edges[np.minimum(j + 3, count + 3)]
    low = np.where(_series(coefficients, low)[0] > v, -1.0, low)
    high = np.where(_series(coefficients, high)[0] < v, 1.0, high)
    return invert(lambda u: _series(coefficients, u), v, low, high, 1e-15)


def _coefficients(mass: Array) -> Array:
    return legendre(gauss_legendre(len(mass))[0], range(len(mass))).T @ mass


def _series(coefficients: Array, u: Array) -> tuple[Array, Array]:
    """Mass below u and density in u, of a series with coefficients (count, n)."""
    values, below = legendre_integrals(u, len(coefficients))
    return 0.5 * np.einsum("kn,kn->n", coefficients, below), 0.5 * np.einsum("kn,kn->n", coefficients, values)
