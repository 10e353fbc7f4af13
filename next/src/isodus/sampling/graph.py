"""Which variables belong together, and the coefficients of each set of variables that share products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array

from ..axes import Axis
from ..terms import Product, Terms, key_of

__all__ = ["Component", "NoDensity", "Sets", "components", "given", "given_row", "interactions", "own_coefficients"]

Array = np.ndarray
Sets = dict[tuple[int, ...], Array]


class NoDensity(ValueError):  # noqa: N818
    """The integral of exp(−E) is infinite."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"The model has no density: {why}. Draws and log Z do not exist. Use a model that is integrable."
        )


class Component(NamedTuple):
    """Variables that depend on each other and on no others, by their numbers in the model, and their own model."""

    variables: list[int]
    terms: Terms
    theta: Array

    def on(self, axes: list[Axis]) -> Component:
        """The same on other axes with the same functions."""
        return self._replace(terms=_terms(axes, self.terms.products))

    @property
    def single(self) -> bool:
        """Whether it is one variable."""
        return len(self.variables) == 1

    @property
    def gaussian(self) -> bool:
        """Whether all axes have a Gaussian's closed forms, and no product is above degree 2."""
        closed = all(axis.gaussian_moments is not None for axis in self.terms.axes)
        return closed and bool(np.all(self.terms.product_degrees <= 2))


def _terms(axes: list[Axis], products: list[Product]) -> Terms:
    """The given products, with T the identity."""
    T = csr_array(eye_array(len(products)))
    return Terms.of(axes, products, T, [key_of(factors) for factors in products], True)


def components(terms: Terms, theta: Array) -> list[Component]:
    """The parts of a model that are independent of each other; products whose coefficient is 0 do not count."""
    theta = np.asarray(theta, float)
    root = list(range(len(terms.axes)))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    there = [int(k) for k in np.flatnonzero(theta)]
    for k in there:
        first, *rest = (find(i) for i, _ in terms.products[k])
        for other in rest:
            root[find(other)] = find(first)
    members: dict[int, list[int]] = {}
    for i in range(len(root)):
        members.setdefault(find(i), []).append(i)
    products: dict[int, list[int]] = {i: [] for i in members}
    for k in there:
        products[find(terms.products[k][0][0])].append(k)
    found = []
    for i, variables in members.items():
        number = {j: k for k, j in enumerate(variables)}
        mine = [tuple((number[j], l) for j, l in terms.products[k]) for k in products[i]]
        part = _terms([terms.axes[j] for j in variables], mine)
        found.append(Component(variables, part, theta[products[i]]))
    return found


def interactions(terms: Terms, theta: Array) -> Sets:
    """Coefficients θ by set of variables: a tensor (1, J, …, J) with an index for the function of each variable."""
    found: Sets = {}
    for factors, value in zip(terms.products, theta, strict=True):
        variables = tuple(i for i, _ in factors)
        if variables not in found:
            found[variables] = np.zeros((1, *(len(terms.axes[i].degrees) for i in variables)))
        found[variables][(0, *(l for _, l in factors))] += value
    return found


def own_coefficients(terms: Terms, theta: Array) -> list[Array]:
    """Coefficients of each variable's functions in terms of its own, (J,) each."""
    own = [np.zeros(len(axis.degrees)) for axis in terms.axes]
    for factors, value in zip(terms.products, theta, strict=True):
        if len(factors) == 1:
            own[factors[0][0]][factors[0][1]] += value
    return own


def given(terms: Terms, theta: Array, phi: Sequence[Array], left: Sequence[int]) -> Sets:
    """Coefficients, row by row, of the sets of the variables `left` given the others, renumbered.

    phi: functions of each variable, (J, n) each; those of the variables left are not read.
    """
    number, found = {i: k for k, i in enumerate(left)}, {}
    n = phi[0].shape[1]
    for factors, value in zip(terms.products, theta, strict=True):
        mine = [(number[i], l) for i, l in factors if i in number]
        if mine:
            variables = tuple(k for k, _ in mine)
            if variables not in found:
                found[variables] = np.zeros((n, *(len(terms.axes[left[k]].degrees) for k in variables)))
            at = np.full(n, value)
            for i, l in factors:
                if i not in number:
                    at *= phi[i][l]
            place: Any = (slice(None), *(l for _, l in mine))
            found[variables][place] += at
    for variables, tensor in found.items():
        if not np.any(np.ptp(tensor, axis=0)):
            found[variables] = tensor[:1]
    return found


def given_row(part: Component, phi: Sequence[Array], left: Sequence[int]) -> Component:
    """The variables `left` of one row as a model of their own; phi: (J, 1) each."""
    sets = given(part.terms, part.theta, phi, left)
    products, theta = [], []
    for variables, tensor in sets.items():
        for at in zip(*np.nonzero(tensor[0]), strict=True):
            products.append(tuple((i, int(l)) for i, l in zip(variables, at, strict=True)))
            theta.append(tensor[0][at])
    return Component(list(range(len(left))), _terms([part.terms.axes[i] for i in left], products), np.array(theta))
