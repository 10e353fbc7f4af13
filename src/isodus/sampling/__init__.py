"""New samples from an energy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..basis import MonomialBasis
from . import gaussian, grid

__all__ = ["components", "draw", "restrict"]


def components(basis: MonomialBasis, theta: np.ndarray) -> list[np.ndarray]:
    """Groups of variables that do not interact with one another, each as sorted indices."""
    factors = basis.factors[(theta != 0) & (basis.orders > 1)]
    first = np.repeat(factors[:, :1], factors.shape[1], axis=1)
    linked = factors >= 0
    edges = (np.ones(linked.sum()), (first[linked], factors[linked]))
    p = basis.n_variables
    _, label = connected_components(coo_array(edges, shape=(p, p)), directed=False)
    return [np.flatnonzero(label == k) for k in range(label.max() + 1)]


def restrict(basis: MonomialBasis, theta: np.ndarray, variables: np.ndarray) -> tuple[MonomialBasis, np.ndarray]:
    """The non-zero terms of one group of variables, as an energy of its own."""
    place = {int(v): k for k, v in enumerate(variables)}
    here = np.flatnonzero((theta != 0) & np.isin(basis.factors[:, 0], variables))
    terms = [tuple(place[v] for v in row if v >= 0) for row in basis.factors[here].tolist()]
    part = MonomialBasis(len(variables), terms=terms)
    values = dict(zip(terms, theta[here], strict=True))
    return part, np.array([values[term] for term in part.terms])


def _highest_powers(basis: MonomialBasis, theta: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The highest pure power of every variable and its parameter, shape (p, 2), if a density can exist with them."""
    highest = np.zeros((basis.n_variables, 2))
    for term, value in zip(basis.terms, theta, strict=True):
        if len(set(term)) == 1 and value != 0:
            highest[term[0]] = len(term), value
    for name, (power, value) in zip(names, highest, strict=True):
        if power == 0 or power % 2 or value < 0:
            what = "has no power of its own" if power == 0 else f"falls as {value:.3g}·{name}^{power:.0f}"
            raise ValueError(f"the model is no probability distribution: along {name} its energy {what}")
    return highest


def draw(basis: MonomialBasis, theta: np.ndarray, n: int, rng: np.random.Generator, names: Sequence[str]) -> np.ndarray:
    """n independent samples, shape (n, p), of exp(−E): exact, group by group of interacting variables."""
    out = np.empty((n, basis.n_variables))
    unused = sorted(set(range(basis.n_variables)) - set(basis.factors[theta != 0].ravel().tolist()))
    if unused:
        raise ValueError(f"no term contains {names[unused[0]]}: its density is flat and does not exist")
    for variables in components(basis, theta):
        part, values = restrict(basis, theta, variables)
        called = [names[v] for v in variables]
        if part.degree <= 2:
            out[:, variables] = gaussian.draw(part, values, n, rng)
            continue
        if len(variables) > 2:
            raise NotImplementedError(
                f"{', '.join(called)} interact, in terms of degree {part.degree}; exact samples exist for Gaussian "
                "models and for groups of at most two interacting variables"
            )
        power, value = _highest_powers(part, values, called).T
        unit = value ** (-1 / power)  # variables in which the highest pure powers have parameter one
        values = values * np.append(unit, 1.0)[part.factors].prod(axis=1)
        out[:, variables] = grid.draw(part, values, n, rng) * unit
    return out
