"""Quantiles of smooth densities: nodes in panels, whose sums are probabilities, and a polynomial in one of them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre as series

from .base import Array, exponentials
from .quadrature import gauss_legendre, invert, legendre

__all__ = ["FIRST", "LAST", "Panels", "Quantiles", "panel_edges", "panel_nodes", "quantiles"]

FIRST, LAST = 9, 576  # equal panels at first, and at most
NODES = 14  # of each panel
_SPLITS = 15  # of the outer panels, by two each; while panels are few, a third as many by eight each
_LOCAL = 5e-9  # of the last two coefficients in the panel of v: the polynomial errs by them
_ELSEWHERE = 1e-5  # of those in other panels: a sum errs by their square
_NEWTON = 1e-5  # of the mass between two nodes: what is left before the last step, which squares it


class Panels(NamedTuple):
    """Nodes of one axis: a tail's, `NODES` Gauss-Legendre nodes in each panel of [−1, 1], a tail's."""

    edges: Array  # (panels + 1,), of z
    exponents: Array  # (N, J + 2): −φ, log weights, −1
    tails: tuple[bool, bool]
    ratios: Array  # (2,): density at each end, in z, over the mass of the tail's node


class _Local(NamedTuple):
    """Matrices that act on the mass at the nodes of a panel, in s ∈ [−1, 1]."""

    places: Array  # (NODES + 2,): −1, the nodes, 1
    below: Array  # (NODES + 2, NODES): mass below each place
    density: Array  # (NODES + 2, NODES): density there
    powers: Array  # (NODES + 1, NODES): coefficients of the mass below s in powers of s
    last: Array  # (2, NODES): last two coefficients


@cache
def _local() -> _Local:
    s = gauss_legendre(NODES)[0]
    places = np.concatenate([[-1.0], s, [1.0]])
    P, size = legendre(s, range(NODES)), np.sqrt(2 * np.arange(NODES) + 1)
    powers = np.zeros((NODES + 1, NODES))
    for l in range(NODES):
        powers[: l + 2, l] = 0.5 * size[l] * series.leg2poly(series.legint([0.0] * l + [1.0], lbnd=-1))
    powers = powers @ P.T
    vandermonde = np.vander(places, NODES + 1, increasing=True)
    density = 0.5 * legendre(places, range(NODES)) @ P.T
    return _Local(places, vandermonde @ powers, density, powers, P[:, -2:].T.copy())


def panel_edges(count: int) -> Array:
    """Ends of `count` equal panels of [−1, 1]; from the second count on, the outer ones are split toward the ends.

    So a layer at an end, of whatever width, is resolved without finer panels elsewhere.
    """
    edges = np.linspace(-1, 1, count + 1)
    if count == FIRST:
        return edges
    near = edges[1] + 1
    split = near * 2.0 ** -np.arange(_SPLITS, 0, -1.0 if count > 4 * FIRST else -3.0)
    return np.concatenate([[-1.0], split - 1, edges[1:-1], 1 - split[::-1], [1.0]])


def panel_nodes(edges: Array) -> tuple[Array, Array]:
    """Places in [−1, 1] and weights, (panels, NODES) each."""
    s, w = gauss_legendre(NODES)
    half = np.diff(edges)[:, None] / 2
    return edges[:-1, None] + half * (1 + s), half * w


class Quantiles(NamedTuple):
    """z of each row, the masses of its tails over the whole, and whether the density is resolved, (n,) each."""

    z: Array
    left: Array
    right: Array
    fine: Array


def quantiles(panels: Panels, a: Array, v: Array) -> Quantiles:
    """z with distribution function v for the densities of the rows of a, (n, J); an end where v lies in a tail."""
    mass, _ = exponentials(panels.exponents, a)
    n, left = len(v), int(panels.tails[0])
    inside = mass[left : len(mass) - panels.tails[1]]
    count = len(inside) // NODES
    cumulative = np.empty((count + 1, n))
    cumulative[0] = mass[0] if left else 0.0
    sums = inside.reshape(count, NODES, n).sum(axis=1)
    for k in range(count):
        np.add(cumulative[k], sums[k], out=cumulative[k + 1])
    total = cumulative[-1] + mass[-1] if panels.tails[1] else cumulative[-1]
    target = v * total
    panel = (cumulative[1:-1] < target).sum(axis=0)
    rows = np.arange(n)
    part = inside.ravel().take((panel * (NODES * n) + rows) + (np.arange(NODES) * n)[:, None])
    local = _local()
    last = np.abs(np.matmul(local.last, inside.reshape(count, NODES, n))).reshape(-1, n).max(axis=0)
    fine = (last < _ELSEWHERE * total) & (np.abs(local.last @ part).max(axis=0) < _LOCAL * total)
    for side in (0, -1):
        if panels.tails[side]:
            fine &= _seen(panels, mass, side) < _ELSEWHERE * total
    s = _inverse(part, target - cumulative[panel, rows])
    z = panels.edges[panel] + (np.diff(panels.edges) / 2)[panel] * (1 + s)
    return Quantiles(z, cumulative[0] / total, (mass[-1] if panels.tails[1] else 0 * total) / total, fine)


def _seen(panels: Panels, mass: Array, side: int) -> Array:
    """What the nodes may miss between them and a tail: the density extrapolated less the exact one, times that gap."""
    half = np.diff(panels.edges)[side] / 2
    near = mass[1 : 1 + NODES] if side == 0 else mass[-1 - NODES : -1]
    gap = 1 + gauss_legendre(NODES)[0][0]
    return gap * np.abs(_local().density[side] @ near - half * panels.ratios[side] * mass[side])


def _inverse(part: Array, t: Array) -> Array:
    """s in [−1, 1] below which the panel has the mass t, (n,); part: mass at the nodes of the panel, (NODES, n)."""
    local, n, rows = _local(), len(t), np.arange(len(t))
    below, density, powers = local.below @ part, local.density @ part, local.powers @ part
    j = (below[1:-1] < t).sum(axis=0)
    at, low, high = j * n + rows, local.places[j], local.places[j + 1]
    F0, F1, f0, f1 = (table.ravel().take(at + step) for table in (below, density) for step in (0, n))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rise, width = F1 - F0, high - low
        z = (t - F0) / rise  # the cubic through both ends with the slopes of the inverse function
        s = low + z * width + z * (1 - z) * ((1 - z) * (rise / f0 - width) - z * (rise / f1 - width))
        s = np.where((s >= low) & (s <= high), s, 0.5 * (low + high))
        value, slope = _polynomial(powers, s)
        s -= (value - t) / slope
        value, slope = _polynomial(powers, s)
        far = np.flatnonzero(~((np.abs(value - t) <= _NEWTON * rise) & (s >= low) & (s <= high)))
        s -= (value - t) / slope
    if len(far):
        s[far] = invert(lambda s: _polynomial(powers[:, far], s), t[far], low[far], high[far])
    return np.clip(s, low, high)


def _polynomial(powers: Array, s: Array) -> tuple[Array, Array]:
    """Value and slope of polynomials with coefficients (k, n), (n,) each."""
    value, slope = powers[-1].copy(), np.zeros_like(s)
    for coefficient in powers[-2::-1]:
        slope *= s
        slope += value
        value *= s
        value += coefficient
    return value, slope
