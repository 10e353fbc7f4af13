"""New samples from an energy."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..basis import MonomialBasis
from . import gaussian, grid

__all__ = ["components", "draw"]


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
    if not terms:
        raise ValueError(f"no term contains variable {variables[0]}: its density is flat and does not exist")
    part = MonomialBasis(len(variables), terms=terms)
    values = dict(zip(terms, theta[here], strict=True))
    return part, np.array([values[term] for term in part.terms])


def draw(basis: MonomialBasis, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n independent samples, shape (n, p), of exp(−E): exact, group by group of interacting variables."""
    out = np.empty((n, basis.n_variables))
    for variables in components(basis, theta):
        part, values = restrict(basis, theta, variables)
        if part.degree <= 2:
            out[:, variables] = gaussian.draw(part, values, n, rng)
        elif len(variables) <= 2:
            out[:, variables] = grid.draw(part, values, n, rng)
        else:
            raise NotImplementedError(
                f"variables {variables.tolist()} interact, in terms of degree {part.degree}; exact samples exist "
                "for Gaussian models and for groups of at most two interacting variables"
            )
    return out
