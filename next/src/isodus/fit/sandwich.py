"""Covariance of the estimates: A⁻¹ (Σ c ψψᵀ) A⁻¹ with the scores of rows, clusters or series.

c counts rows; of importance weights w it is w².
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..data import Block, Clusters
from .newton import Fit
from .objective import Objective
from .series import ClusterSums, LaggedSums

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


def spread(scored: Scored, clusters: Clusters | None = None, lags: int = 0) -> tuple[Array, Array]:
    """Σ c s sᵀ, (k, k), and Σ w s, (k,), with s the scores of rows.

    scored: adds f(block, scores), scores (k, rows), over blocks, as `Objective.scores` does at some τ. Scores of a
    cluster are added first. lags: of rows that depend on those before them, with Bartlett's weights.
    """
    if clusters is not None:
        size = clusters.size
        s = scored(lambda block, S: ClusterSums(size, block, (S * block.weight).T)).sums
        return s.T @ s, s.sum(axis=0)
    if lags:
        found = scored(lambda block, S: LaggedSums(lags, (S * block.weight).T))
        return found.products, found.total
    total = scored(lambda block, S: np.column_stack([(S * block.square) @ S.T, S @ block.weight]))
    return total[:, :-1], total[:, -1]


def sandwich(f: Objective, fit: Fit, clusters: Clusters | None = None, lags: int = 0) -> Array:
    """The covariance of τ, (K, K): A⁻¹ (Σ c s sᵀ) A⁻¹ / n², A with the ridge, scores and A at `fit.point`."""
    bread = inverse(fit.hessian)
    return bread @ spread(partial(f.scores, fit.point), clusters, lags)[0] @ bread / f.n**2
