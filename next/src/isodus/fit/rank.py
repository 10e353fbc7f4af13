"""Whether the data can identify the terms: a fact about the rows, asked before any fit.

The Hessian of pseudo-likelihood cannot answer it. At θ = 0 it has full rank for exact copies of columns, and at a
diverging optimum it blames every term of these columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations

import numpy as np
from scipy.linalg.lapack import dpotrf

from ..data import Samples
from ..terms import Product, Terms, key_of, name_of
from .gaussian import correlations, of_kept

__all__ = ["dependent_columns", "dependent_terms"]

Array = np.ndarray
_TOLERANCE = 1e-10  # of what is left of a column's variance after those before it
_FEW_VALUES, _LOOKED = 10, 50  # and rows in which more values are seen at once
_ROWS_PER_COLUMN = 3  # from which a dependence is no accident


def dependent_columns(samples: Samples) -> dict[str, list[str]]:
    """Columns that are copies or sums of columns before them, and of which, by their correlations."""
    kept, lost = _elimination(of_kept(samples)[-1])
    if not lost:
        return {}
    found, names, (X, weight) = {}, samples.names, samples.kept
    Z = correlations(X / np.maximum(np.abs(X).max(axis=0), 1e-300), weight)[2]
    for j in lost:
        before = [k for k in kept if k < j]
        coefficients = np.linalg.lstsq(Z[:, before], Z[:, j], rcond=None)[0]
        strong = np.abs(coefficients) > 1e-3 * np.abs(coefficients).max(initial=0.0)
        found[names[j]] = [names[k] for k, used in zip(before, strong, strict=True) if used]
    return found


def dependent_terms(terms: Terms, X: Array, names: Sequence[str]) -> list[str]:
    """Products of columns of few values that are constant, or sums of lower products of the same columns."""
    most = min(_FEW_VALUES, len(X) // 2)
    maybe = np.count_nonzero(np.diff(np.sort(X[:_LOOKED], axis=0), axis=0), axis=0) < most
    few = [looks and len(np.unique(x)) <= most for looks, x in zip(maybe.tolist(), X.T, strict=True)]
    phi = cache(lambda i: terms.axes[i].functions(X[:, i]))
    of: dict[tuple[int, ...], list[Product]] = {}
    for factors in terms.products:
        of.setdefault(tuple(i for i, _ in factors), []).append(factors)
    found: dict[Product, str] = {}
    own = sorted(f for f in terms.products if len(f) == 1)
    own = own if _ROWS_PER_COLUMN * len(own) <= len(X) else []
    Z = np.column_stack([np.ones(len(X)), *(phi(i)[:, l] for ((i, l),) in own)])[:, 1:]
    Z = Z - Z.mean(axis=0)
    Z /= np.sqrt(np.maximum((Z**2).sum(axis=0), 1e-300))
    for k in _elimination(Z.T @ Z)[1]:  # columns that are functions of others, such as a square
        found[own[k]] = name_of(key_of(own[k]), terms.axes, names)
    for variables in terms.interactions:
        if len(variables) < 2 or not all(few[i] for i in variables):
            continue
        parts = [part for size in range(1, len(variables) + 1) for part in combinations(variables, size)]
        inside = [factors for part in parts for factors in sorted(of.get(part, ()))]
        columns = [np.prod([phi(i)[:, l] for i, l in f], axis=0) for f in inside]
        Z = np.column_stack([np.ones(len(X)), *columns])
        Z /= np.sqrt(np.maximum((Z**2).sum(axis=0), 1e-300))
        for k in _elimination(Z.T @ Z)[1]:
            found[inside[k - 1]] = name_of(key_of(inside[k - 1]), terms.axes, names)
    return list(found.values())


def _elimination(G: Array) -> tuple[list[int], list[int]]:
    """Columns of a Gram matrix of unit diagonal that stand alone, and those that depend on columns before them."""
    factor, failed = dpotrf(G, lower=True)
    if not failed and np.all(
        np.diagonal(factor) ** 2 > _TOLERANCE
    ):  # what each column leaves of the variance of the next
        return list(range(len(G))), []
    left, kept, lost = G.copy(), [], []
    for j in range(len(G)):
        if left[j, j] > _TOLERANCE:
            kept.append(j)
            left[j + 1 :] -= np.outer(left[j + 1 :, j] / left[j, j], left[j])
        else:
            lost.append(j)
    return kept, lost
