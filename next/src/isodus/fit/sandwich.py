"""Covariance of the estimates: A⁻¹ (Σ c ψψᵀ) A⁻¹ with the scores of rows, clusters or series.

c counts rows; of importance weights w it is w².
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..data import Block
from .newton import Fit
from .objective import Objective

__all__ = ["inverse", "sandwich", "spread"]

Array = np.ndarray
Scored = Callable[[Callable[[Block, Array], Any]], Any]


@np.errstate(over="ignore", invalid="ignore")  # of a matrix beyond the range of numbers, which has none
def inverse(A: Array) -> Array:
    """A⁻¹ of a symmetric matrix, through one of unit diagonal; NaN where it is not positive definite."""
    size = np.sqrt(np.maximum(np.diag(A), 1e-300))
    try:
        factor = cho_factor(A / size / size[:, None])
    except (np.linalg.LinAlgError, ValueError):
        return np.full_like(A, np.nan)
    return cho_solve(factor, np.eye(len(A))) / size / size[:, None]


def spread(
    scored: Scored, n_rows: int, groups: Array | None = None, lags: int = 0, of: Callable[[Array], Array] = lambda S: S
) -> tuple[Array, Array]:
    """Σ c e eᵀ, (k, k), and Σ w e, (k,), with e = `of` the scores of rows, (K, rows) to (k, rows).

    scored: adds f(block, scores) over blocks, as `Objective.scores` does at some τ. groups: (n_rows,) numbers of
    clusters, within which e is added first. lags: of rows that depend on those before them, with Bartlett's weights.
    """
    if groups is None and not lags:

        def summed(block: Block, S: Array) -> Array:
            e = of(S)
            return np.column_stack([(e * block.square) @ e.T, e @ block.weight])

        total = scored(summed)
        return total[:, :-1], total[:, -1]

    def clustered(block: Block, S: Array) -> list[tuple[Array, Array]]:
        rows = np.arange(block.start, block.start + S.shape[1])
        which, into = np.unique(rows if groups is None else groups[rows], return_inverse=True)
        values = (of(S) * block.weight).T
        part = np.zeros((len(which), values.shape[1]))
        np.add.at(part, into, values)
        return [(which, part)]

    parts = scored(clustered)
    e = np.zeros((n_rows if groups is None else int(groups.max()) + 1, parts[0][1].shape[1]))
    for which, part in parts:
        e[which] += part
    found = e.T @ e
    for lag in range(1, lags + 1):
        step = e[lag:].T @ e[:-lag]
        found += (1 - lag / (lags + 1)) * (step + step.T)
    return found, e.sum(axis=0)


def sandwich(f: Objective, fit: Fit, groups: Array | None = None, lags: int = 0) -> Array:
    """The covariance of τ, (K, K): A⁻¹ (Σ c s sᵀ) A⁻¹ / n², A with the ridge, scores and A at `fit.point`."""
    bread = inverse(fit.hessian)
    return bread @ spread(partial(f.scores, fit.point), f.samples.n_rows, groups, lags)[0] @ bread / f.n**2
