"""Penalties ½ τᵀRτ: the weak one that steadies every fit, and those that predict."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.base import BaseEstimator

from ..terms import Terms
from .gaussian import variance_inflation
from .objective import Objective

__all__ = ["ENOUGH_ROWS", "NEAR_COPY", "Penalty", "Ridge", "WeakRidge", "ridge_matrix", "weak_factor"]

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


class Penalty(BaseEstimator):
    """What a fit adds to its objective: ½ τᵀRτ. One of your own is a class of this one with `matrix`.

    What differs between penalties is data here, so that nothing else asks which one it has.
    """

    selects: ClassVar[bool] = False
    """Whether it leaves terms out, so that each variable has a problem of its own."""
    shrinks: ClassVar[bool] = True
    """Whether it moves estimates by more than rounding where rows are many."""
    free: Literal["quadratic", "own"] = "quadratic"
    """What it leaves alone, and a fit begins at: terms of degree at most 2, or of these those of one variable."""

    @property
    def by_folds(self) -> bool:
        """Whether folds choose its strength."""
        return False

    @property
    def has_errors(self) -> bool:
        """Whether its estimates have standard errors."""
        return True

    @property
    def decides(self) -> bool:
        """Whether it decides between columns that the data cannot tell apart."""
        return self.by_folds or self.free == "own"

    def check(self) -> None:
        """An error for values that mean nothing."""

    def of(self, f: Objective) -> Self | None:
        """The penalty with what it takes from all rows of a fit; None where it is zero."""
        return self

    def in_fold(self, n: float) -> Self:
        """The penalty of a part of n rows."""
        return self

    def stages(self, terms: Terms, n: float) -> int:
        """How often A_kk is taken anew."""
        return 2

    def matrix(self, terms: Terms, diagonal: Array, n: float) -> csr_array:
        """R, (K, K); diagonal: A_kk of the products, (P,)."""
        raise NotImplementedError(f"{type(self).__name__} has no method matrix, which gives its R.")

    def ridge(self, terms: Terms, diagonal: Array, n: float) -> csr_array:
        """R as a fit takes it; an error for a matrix of another size, or one that is no penalty."""
        found, name, K = self.matrix(terms, diagonal, n), type(self).__name__, len(terms)
        if found.shape != (K, K):
            raise ValueError(
                f"matrix of {name} gives R of shape {found.shape} for {K} unknowns. Return one of ({K}, {K})."
            )
        R = csr_array(found)
        if np.all(diagonal >= 0) and not (np.isfinite(R.data).all() and np.all(R.diagonal() >= 0)):
            raise ValueError(f"matrix of {name} gives R with negative or no numbers on its diagonal. Use finite ones.")
        return R

    def in_words(self, path: Any = None, strength: float = np.nan) -> str:
        """Such as "weak ridge"; path and strength: what was chosen."""
        return repr(self)


class WeakRidge(Penalty):
    """The default: steadies a fit and does not select. Two stages, one from 100 rows per local parameter on.

    n: the rows that decide the factor, where these are not those of the fit: a fold takes the number of all rows.
    V: the variance inflation of each variable, that of all rows in each rung, pilot and fold, (p,).
    """

    shrinks = False

    def __init__(self, n: float | None = None, V: Array | None = None) -> None:
        self.n = n
        self.V = V

    def of(self, f: Objective) -> Self | None:
        """The ridge with V of an objective's rows, where it has none; None with fewer than five unknowns per node."""
        if f.terms.m < _FEW:
            return None
        return self if self.V is not None else type(self)(self.n, variance_inflation(f.terms.axes, f.samples))

    def in_fold(self, n: float) -> Self:
        """That of all rows."""
        return type(self)(n, self.V)

    def stages(self, terms: Terms, n: float) -> int:
        """How often A_kk is taken anew."""
        return 1 if terms.rows_per_unknown(n) >= ENOUGH_ROWS else 2

    def matrix(self, terms: Terms, diagonal: Array, n: float) -> csr_array:
        """The ridge in τ."""
        assert self.V is not None
        return ridge_matrix(terms, diagonal, n, weak_factor(terms, self.n or n, self.V))

    def in_words(self, path: Any = None, strength: float = np.nan) -> str:
        """Its name."""
        return "weak ridge"


class Ridge(Penalty):
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

    @property
    def by_folds(self) -> bool:
        """Whether folds choose its strength."""
        return self.strength == "cv"

    def matrix(self, terms: Terms, diagonal: Array, n: float) -> csr_array:
        """The ridge in τ."""
        return ridge_matrix(terms, diagonal, n, float(self.strength), self.free)

    def in_words(self, path: Any = None, strength: float = np.nan) -> str:
        """Strength, how it was chosen, and what is free."""
        if path is None:
            interrupted = "terms above degree 2 left out: interrupted before a strength was chosen"
            return interrupted if self.by_folds else f"ridge of strength {self.strength:g}, free: {self.free} terms"
        if path.best.free == "Gaussian":
            return "the Gaussian (five folds)"
        return f"ridge of strength {path.best.strength:g} by five folds, free: {path.best.free} terms"
