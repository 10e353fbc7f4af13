"""Ridges: the weak one that steadies every fit, and those that predict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.base import BaseEstimator

from ..terms import Terms
from .gaussian import variance_inflation
from .objective import Objective

__all__ = ["ENOUGH_ROWS", "NEAR_COPY", "Ridge", "WeakRidge", "ridge_matrix", "weak_factor"]

ENOUGH_ROWS = 100
"""Per unknown of a node, from which the weak ridge is its floor alone; below, fits are also scored on folds."""

Array = np.ndarray
_STRENGTH = 0.1
NEAR_COPY = 100.0
"""Variance inflation from which a variable is a near-copy of others: a correlation of .995."""

_FLOOR, _LEAST, _POWER = 0.1, 1e-5, 8  # of near-copies, of other variables, and how fast it falls between
_FEW = 5  # unknowns of a node below which there is no ridge


def weak_factor(terms: Terms, n: float, V: Array) -> Array:
    """The default ridge's: (8m/n)⁴ + max(1e-5, .1 min(1, V/100)⁸), V the largest of a product's variables, (P,).

    Terms of near-copies have errors far wider than the region where their densities keep to the data, so that without
    a floor their optimum lies in a corner of that region: many steps away, and sometimes a bad prediction. It falls
    fast, since at a correlation of .99 (V from 30 to 50) a floor of 1e-4 costs intervals half a point of their cover.
    """
    largest = np.array([max(V[i] for i, _ in factors) for factors in terms.products])
    floor = np.maximum(_LEAST, _FLOOR * np.minimum(1.0, largest / NEAR_COPY) ** _POWER)
    return (8 / terms.rows_per_unknown(n)) ** 4 + floor


def ridge_matrix(
    terms: Terms, diagonal: Array, n: float, factor: float | Array, free: Literal["quadratic", "own"] = "quadratic"
) -> csr_array:
    """TᵀRT with r_k = .1 |α_k|² A_kk factor / n on each product, 0 on what is free, averaged over a block; (K, K).

    diagonal: A_kk of the products, (P,). factor: a number, or one for each product. free: what is not shrunk, terms of
    degree at most 2 ("quadratic"), or of these those of one variable ("own").
    """
    left = terms.product_degrees <= 2
    if free == "own":
        left &= np.array([len(factors) == 1 for factors in terms.products])
    r = np.where(left, 0.0, _STRENGTH * terms.roughness * diagonal * factor / (n * terms.copies))
    for block in terms.blocks:
        r[block] = r[block].mean()
    return csr_array(terms.T.T @ (diags_array(r) @ terms.T))


@dataclass(frozen=True, eq=False)
class WeakRidge:
    """The default: steadies a fit and does not select. Two stages, one from 100 rows per local parameter on.

    n: the rows that decide the factor, where these are not those of the fit: a fold takes the number of all rows.
    V: the variance inflation of each variable, that of all rows in each rung, pilot and fold, (p,).
    """

    n: float | None = None
    V: Array | None = None
    free: ClassVar[Literal["quadratic", "own"]] = "quadratic"

    def of(self, f: Objective) -> Self | None:
        """The ridge with V of an objective's rows, where it has none; None with fewer than five unknowns per node."""
        if f.terms.m < _FEW:
            return None
        return self if self.V is not None else replace(self, V=variance_inflation(f.terms.axes, *f.samples.kept))

    def stages(self, terms: Terms, n: float) -> int:
        """How often A_kk is taken anew."""
        return 1 if terms.rows_per_unknown(n) >= ENOUGH_ROWS else 2

    def matrix(self, terms: Terms, diagonal: Array, n: float) -> csr_array:
        """The ridge in τ."""
        assert self.V is not None
        return ridge_matrix(terms, diagonal, n, weak_factor(terms, self.n or n, self.V))


class Ridge(BaseEstimator):
    """A ridge that shrinks terms above degree 2, or all but own terms: ½ Σ r_k θ_k², r_k = .1 |α_k|² A_kk t / n.

    Parameters
    ----------
    strength : float or "cv"
        t; 0 is no ridge. "cv" chooses it, and `free`, for the smallest mean of held-out losses over five folds, from
        a path that begins at the Gaussian or at independent variables. The Gaussian itself is one more candidate.
    free : {"quadratic", "own"}, default="quadratic"
        What is not shrunk: terms of degree at most 2, or of these the terms of one variable alone.

    Examples
    --------
    >>> from isodus import Ridge
    >>> Ridge(10.0)
    Ridge(strength=10.0)
    """

    def __init__(self, strength: float | Literal["cv"] = "cv", free: Literal["quadratic", "own"] = "quadratic") -> None:
        self.strength = strength
        self.free = free

    def check(self) -> None:
        """An error for values that mean nothing."""
        number = isinstance(self.strength, Real) and not isinstance(self.strength, bool)
        if self.strength != "cv" and not (number and 0 <= float(self.strength) < np.inf):
            raise ValueError(f'strength of Ridge must be "cv" or a number of at least 0, not {self.strength!r}')
        if self.free not in ("quadratic", "own"):
            raise ValueError(f'free of Ridge must be "quadratic" or "own", not {self.free!r}')

    def of(self, f: Objective) -> Self:
        """The same for all rows."""
        return self

    def stages(self, terms: Terms, n: float) -> int:
        """How often A_kk is taken anew."""
        return 2

    def matrix(self, terms: Terms, diagonal: Array, n: float) -> csr_array:
        """The ridge in τ."""
        return ridge_matrix(terms, diagonal, n, float(self.strength), self.free)
