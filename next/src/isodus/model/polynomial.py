"""A model's θ and covariance in powers of x: an exact conversion, and a view on which nothing depends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from ..terms import Key, Terms, name_of, to_powers

__all__ = ["PolynomialView", "interacting_sets", "polynomial_view", "power_matrix"]

Array = np.ndarray
_ROUNDING = 64 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class PolynomialView:
    """Coefficients of powers of x, with their covariance: what the energy is where no window ends, up to a constant.

    Functions of axes that have no powers (a circle, a scale of the distribution function) stand for themselves.

    Attributes
    ----------
    keys : list of tuples
        The terms: variables by number, each as often as its power. (0, 0, 1) is x0² x1.
    terms : list of str
        The same in words.
    coefficients : array of shape (K,)
    covariance : array of shape (K, K) or None
        Of the coefficients' errors.

    Examples
    --------
    >>> from isodus.model import PolynomialModel
    >>> model = PolynomialModel.from_dict({("a", "a"): 1.0, ("a", "b"): 0.5, ("b", "b"): 1.0})
    >>> view = model.polynomial()
    >>> view.terms, view.coefficients.tolist()
    (['a^2', 'b^2', 'a*b'], [1.0, 1.0, 0.5])
    """

    keys: list[Key]
    terms: list[str]
    coefficients: Array
    covariance: Array | None

    @property
    def stderr(self) -> Array:
        """Standard errors, (K,); NaN where there is no covariance."""
        if self.covariance is None:
            return np.full(len(self.keys), np.nan)
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    def to_dict(self) -> dict[Key, float]:
        """Coefficients by key."""
        return dict(zip(self.keys, self.coefficients.tolist(), strict=True))

    def to_frame(self) -> pd.DataFrame:
        """One row per term: term, coefficient, stderr."""
        return pd.DataFrame({"term": self.terms, "coefficient": self.coefficients, "stderr": self.stderr})


def power_matrix(terms: Terms) -> tuple[list[Key], csr_array]:
    """Monomials of x, and M with (their coefficients) = M τ, (K, unknowns).

    Entries that are zero up to rounding are zero: in T, a power alone is written in all functions of its closure.
    """
    keys, B = to_powers(terms.axes, terms.products)
    M, size = csr_array(B @ terms.T), csr_array(abs(B) @ abs(terms.T))
    rounding = np.asarray(size[_rows(M), M.indices]).ravel()
    M.data[np.abs(M.data) <= _ROUNDING * rounding] = 0.0
    M.eliminate_zeros()
    there = np.flatnonzero(np.diff(M.indptr))
    return [keys[k] for k in there], M[there]


def _rows(M: csr_array) -> Array:
    return np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))


def polynomial_view(terms: Terms, tau: Array, names: tuple[str, ...], covariance: Array | None) -> PolynomialView:
    """θ in powers of x, B θ, and its covariance B Cov Bᵀ."""
    keys, M = power_matrix(terms)
    words = [name_of(key, terms.axes, names) for key in keys]
    return PolynomialView(keys, words, M @ tau, None if covariance is None else M @ (M @ covariance).T)


def interacting_sets(terms: Terms) -> dict[Key, Array]:
    """The unknowns of each set of two variables and more; an unknown that is tied belongs to several sets.

    An unknown is written in products, and belongs to those sets of their variables that no other one of its sets holds.
    """
    sets: dict[Key, Array] = terms.interactions
    if not terms.identity:
        found: dict[Key, list[int]] = {}
        T = terms.T.tocsc()
        for k in range(T.shape[1]):
            of = {tuple(i for i, _ in terms.products[row]) for row in T.indices[T.indptr[k] : T.indptr[k + 1]]}
            for variables in of:
                if not any(set(variables) < set(other) for other in of):
                    found.setdefault(variables, []).append(k)
        sets = {variables: np.array(found[variables]) for variables in sorted(found, key=lambda v: (len(v), v))}
    return {variables: unknowns for variables, unknowns in sets.items() if len(variables) > 1}
