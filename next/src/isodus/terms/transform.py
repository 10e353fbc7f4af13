"""Products of functions written in products of others: T of θ = T τ, powers of x, and functions on other axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array

from ..axes import Axis
from .keys import Key, Product, key_of, product_of

__all__ = ["condition", "for_each", "of_powers", "on_other_axes", "powers_of", "to_powers"]

Array = np.ndarray
_WHOLE = 4_000_000  # entries of T up to which its condition number is that of the whole


def of_powers(axes: Sequence[Axis], keys: Sequence[Key], centred: bool = False) -> tuple[list[Product], csr_array]:
    """The closure of some powers of x, and T: column k is (x/unit)^α of key k in the functions of the closure.

    Powers of x, and not of x − location: without its divisors, a power depends on the origin. centred: with them, of
    the axes' own coordinates y.
    """
    return _written([product_of(key) for key in keys], for_each(axes, lambda axis: powers_of(axis, centred)))


def powers_of(axis: Axis, centred: bool = False) -> Array:
    """M with (1, y, y², …) = M (1, φ), of x/unit or, centred, of y; c with y_l = c_l φ_l where there are no powers."""
    if axis.powers is None:
        return 1 / axis.norms
    if centred and axis.unit_powers is not None:
        return _inverse(axis.unit_powers())
    M = axis.powers()
    return _inverse(M * axis.unit ** np.arange(len(M)))


def for_each(axes: Sequence[Axis], f: Callable[[Axis], Array]) -> list[Array]:
    """f of each axis, once for those that tied variables share."""
    found = {id(axis): f(axis) for axis in {id(axis): axis for axis in axes}.values()}
    return [found[id(axis)] for axis in axes]


def _inverse(M: Array) -> Array:
    """X with X M = 1 for a lower triangular M, row by row: |X M − 1| is at most the rounding of |X| |M| everywhere."""
    return solve_triangular(M, np.eye(len(M)), trans="T", lower=True).T


def to_powers(axes: Sequence[Axis], products: Sequence[Product]) -> tuple[list[Key], csr_array]:
    """Monomials of x, and B with (their coefficients) = B θ; the constant is dropped."""
    found, B = _written(products, for_each(axes, lambda axis: axis.norms if axis.powers is None else axis.powers()))
    return [key_of(factors) for factors in found], B


def on_other_axes(
    old: Sequence[Axis], new: Sequence[Axis], products: Sequence[Product]
) -> tuple[list[Product], csr_array]:
    """Products of functions of the new axes, and X with (their coefficients) = X θ, for axes of the same kinds.

    An old function is written in the new ones by least squares on the new nodes.
    """
    matrices = []
    for a, b in zip(old, new, strict=True):
        nodes = b.nodes(b.smallest)
        ones = np.ones((len(nodes.phi), 1))
        one_phi, one_old = np.hstack([ones, nodes.phi]), np.hstack([ones, a.functions(nodes.places)])
        matrices.append(np.linalg.lstsq(one_phi, one_old, rcond=None)[0].T)
    return _written(products, matrices)


def _written(products: Sequence[Product], matrices: Sequence[Array]) -> tuple[list[Product], csr_array]:
    """Products of φ as sums of products of ψ: these, by order and degree, and their coefficients, (these, products).

    matrices: M with (1, φ) = M (1, ψ) for each variable, or c with φ_l = c_l ψ_l. The constant is dropped.
    """
    place: dict[Product, int] = {}
    rows, columns, values = [], [], []
    for column, factors in enumerate(products):
        for parts in product(*(_parts(matrices[i], l) for i, l in factors)):
            other = tuple((i, m) for (i, _), (m, _) in zip(factors, parts, strict=True) if m >= 0)
            if other:
                rows.append(place.setdefault(other, len(place)))
                columns.append(column)
                values.append(prod(value for _, value in parts))
    found = sorted(place, key=_order)
    order = np.argsort([place[factors] for factors in found])
    return found, csr_array((values, (order[rows], columns)), shape=(len(found), len(products)))


def _order(factors: Product) -> tuple[int, int, Key]:
    """By the number of variables, the sum of powers and the key."""
    key = key_of(factors)
    return len(factors), len(key), key


def _parts(M: Array, l: int) -> list[tuple[int, float]]:
    """φ_l as a sum of ψ: their numbers, −1 of the constant, and coefficients. All up to l are listed."""
    if M.ndim == 1:
        return [(l, float(M[l]))]
    return [(m - 1, float(value)) for m, value in enumerate(M[l + 1]) if value or m <= l + 1]


def condition(T: csr_array, groups: Sequence[Array]) -> float:
    """Condition number of T with columns of length 1; where T is large, the largest of groups of its columns."""
    worst = 1.0
    for part in [T] if T.shape[0] * T.shape[1] <= _WHOLE else [T[:, columns] for columns in groups]:
        dense = part.toarray()
        s = np.linalg.svd(dense[dense.any(axis=1)] / np.linalg.norm(dense, axis=0), compute_uv=False)
        worst = max(worst, s[0] / max(s[-1], 1e-300))
    return float(worst)
