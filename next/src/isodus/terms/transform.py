"""T of θ = T τ: powers of x written in the functions of their closure, and tied parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.sparse import csr_array

from ..axes import Axis
from .keys import Key, Product, divisors, product_of

__all__ = ["between", "condition", "of_powers", "tied", "to_powers"]

_WHOLE = 4_000_000  # entries of T up to which its condition number is that of the whole


def of_powers(axes: Sequence[Axis], keys: Sequence[Key]) -> tuple[list[Product], csr_array]:
    """The closure of some powers of x, and T: column k is (x/unit)^α of key k in the functions of the closure.

    Powers of x, and not of x − location: without its divisors, a power depends on the origin. An axis without powers
    has functions that stand for themselves.
    """
    inverse = [None if axis.powers is None else np.linalg.inv(_scaled(axis)) for axis in axes]
    closure = sorted({d for key in keys for d in divisors(product_of(key), axes)}, key=lambda f: (len(f), f))
    place = {factors: k for k, factors in enumerate(closure)}
    rows, columns, values = [], [], []
    for column, key in enumerate(keys):
        factors = product_of(key)
        for divisor in divisors(factors, axes):
            at = dict(divisor)
            value = 1.0
            for i, l in factors:
                B = inverse[i]
                value *= 1.0 if B is None else B[l + 1, at.get(i, -1) + 1]
            rows.append(place[divisor])
            columns.append(column)
            values.append(value)
    return closure, csr_array((values, (rows, columns)), shape=(len(closure), len(keys)))


def _scaled(axis: Axis) -> np.ndarray:
    """M with (1, φ) = M (1, x/unit, …)."""
    assert axis.powers is not None
    M = axis.powers()
    return M * axis.unit ** np.arange(len(M))


def to_powers(axes: Sequence[Axis], products: Sequence[Product]) -> tuple[list[Key], csr_array]:
    """Monomials of x, and B with (their coefficients) = B θ; the constant is dropped."""
    matrices = [None if axis.powers is None else axis.powers() for axis in axes]
    place: dict[Key, int] = {}
    rows, columns, values = [], [], []
    for column, factors in enumerate(products):
        choices = [range(l + 2) if matrices[i] is not None else [l + 1] for i, l in factors]
        for at in product(*choices):
            key = tuple(i for (i, _), power in zip(factors, at, strict=True) for _ in range(power))
            if not key:
                continue
            value = 1.0
            for (i, l), power in zip(factors, at, strict=True):
                M = matrices[i]
                value *= 1.0 if M is None else M[l + 1, power]
            rows.append(place.setdefault(key, len(place)))
            columns.append(column)
            values.append(value)
    order = sorted(place, key=lambda key: (len(set(key)), len(key), key))
    new = np.empty(len(place), int)
    new[[place[key] for key in order]] = np.arange(len(order))
    return order, csr_array((values, (new[rows], columns)), shape=(len(order), len(products)))


def between(old: Sequence[Axis], new: Sequence[Axis], products: Sequence[Product]) -> csr_array:
    """X with (θ in the functions of the new axes) = X θ, (products, products), for axes of the same kinds.

    An old function is written in the new ones by least squares on the new nodes; what has no product is left out.
    """
    matrices = []
    for a, b in zip(old, new, strict=True):
        nodes = b.nodes(b.smallest)
        columns = np.column_stack([np.ones(len(nodes.phi)), nodes.phi])
        matrices.append(np.linalg.lstsq(columns, a.functions(nodes.places), rcond=None)[0])  # (1 + J, J)
    place = {factors: k for k, factors in enumerate(products)}
    rows, columns_, values = [], [], []
    for column, factors in enumerate(products):
        for at in product(*(range(-1, len(matrices[i]) - 1) for i, _ in factors)):
            found = tuple((i, l) for (i, _), l in zip(factors, at, strict=True) if l >= 0)
            if found in place:
                rows.append(place[found])
                columns_.append(column)
                values.append(np.prod([matrices[i][l + 1, m] for (i, m), l in zip(factors, at, strict=True)]))
    return csr_array((values, (rows, columns_)), shape=(len(products),) * 2)


def tied(ties: Sequence[int]) -> csr_array:
    """S with τ of key k = (S t)_k, where keys of one number in `ties` share a parameter; (keys, parameters)."""
    return csr_array((np.ones(len(ties)), (np.arange(len(ties)), ties)), shape=(len(ties), max(ties) + 1))


def condition(T: csr_array, groups: Sequence[np.ndarray]) -> float:
    """Condition number of T with columns of length 1; where T is large, the largest of groups of its columns."""
    T = T @ csr_array((1 / np.sqrt(T.multiply(T).sum(axis=0)), (range(T.shape[1]),) * 2))
    whole = T.shape[0] * T.shape[1] <= _WHOLE
    parts = [T] if whole else [T[:, columns] for columns in groups]
    worst = 1.0
    for part in parts:
        dense = part.toarray()
        s = np.linalg.svd(dense[np.abs(dense).any(axis=1)], compute_uv=False)
        worst = max(worst, s[0] / max(s[-1], 1e-300))
    return float(worst)
