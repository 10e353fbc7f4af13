"""Terms of fields on a lattice, which share their couplings."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod

import numpy as np

from .basis import MonomialBasis

__all__ = ["lattice_basis"]


def lattice_basis(
    shape: int | Iterable[int],
    periodic: bool = True,
    *,
    degree: int = 4,
    next_neighbours: bool = False,
) -> MonomialBasis:
    """The terms of a field on a lattice, as of φ⁴, where all sites and all bonds share their parameters.

        E(φ) = θ_mass Σ_i φ_i² + θ_quartic Σ_i φ_i⁴ + θ_neighbours Σ_<ij> φ_i φ_j

    Parameters
    ----------
    shape : int or iterable of int
        Sites of a chain, or along each side of a lattice: 16, (8, 8). Variables are in the order of ``np.ndindex``.
    periodic : bool, default=True
        Sites at opposite ends are neighbours. Otherwise the squares of sites with fewer neighbours have parameters of
        their own, since a lattice action has them.
    degree : {2, 4, 6}, default=4
        The highest power of a site; 6 adds "sextic".
    next_neighbours : bool, default=False
        Also pairs of sites that are one step apart along two sides.

    Examples
    --------
    >>> from isodus import lattice_basis
    >>> basis = lattice_basis((4, 4))
    >>> basis.tied.labels
    ('mass', 'neighbours', 'quartic')
    """
    sides = [shape] if isinstance(shape, int | np.integer) else list(shape)
    if not sides or any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2 for n in sides):
        raise ValueError(f"shape must be whole numbers of at least 2, such as (8, 8), not {shape!r}")
    if degree not in (2, 4, 6):
        raise ValueError(f"degree must be 2, 4 or 6, not {degree!r}")
    if not isinstance(periodic, bool) or not isinstance(next_neighbours, bool):
        raise ValueError("periodic and next_neighbours must be True or False")
    near = _pairs(sides, periodic, 1)
    called = dict.fromkeys(near, "neighbours")
    if next_neighbours:
        called = dict.fromkeys(_pairs(sides, periodic, 2) - near, "next neighbours") | called
    sites, count = prod(sides), np.bincount(np.array(sorted(near)).ravel(), minlength=prod(sides))
    alike = len(set(count.tolist())) == 1
    for i in range(sites):
        called[i, i] = "mass" if alike else f"mass, {count[i]} neighbours"
        for power, name in ((4, "quartic"), (6, "sextic")):
            if power <= degree:
                called[(i,) * power] = name
    return MonomialBasis(sites, terms=called, tied=called.__getitem__)


def _pairs(sides: list[int], periodic: bool, steps: int) -> set[tuple[int, ...]]:
    """Pairs of sites that are one step apart along so many sides."""
    number = np.arange(prod(sides)).reshape(sides)
    found = set()
    moves = [move for move in product((-1, 0, 1), repeat=len(sides)) if sum(map(abs, move)) == steps]
    for place in np.ndindex(*sides):
        for move in moves:
            to = [a + b for a, b in zip(place, move, strict=True)]
            if periodic:
                to = [a % n for a, n in zip(to, sides, strict=True)]
            elif any(not 0 <= a < n for a, n in zip(to, sides, strict=True)):
                continue
            pair = sorted((int(number[place]), int(number[tuple(to)])))
            if pair[0] != pair[1]:
                found.add(tuple(pair))
    return found
