"""Exact samples of quadratic energies."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from ..basis import MonomialBasis

__all__ = ["draw", "precision_matrix"]


def precision_matrix(basis: MonomialBasis, theta: np.ndarray) -> np.ndarray:
    """Λ with E(x) = bᵀx + ½ xᵀΛx: Λ_ii = 2θ_(i,i), Λ_ij = θ_(i,j)."""
    precision = np.zeros((basis.n_variables, basis.n_variables))
    pairs = basis.factors[basis.degrees == 2, :2]
    np.add.at(precision, (pairs[:, 0], pairs[:, 1]), theta[basis.degrees == 2])
    return precision + precision.T


def draw(basis: MonomialBasis, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n samples, shape (n, p), of exp(−E) with E of degree 2."""
    precision = precision_matrix(basis, theta)
    linear = np.zeros(basis.n_variables)
    linear[basis.factors[basis.degrees == 1, 0]] = theta[basis.degrees == 1]
    try:
        factor = cholesky(precision, lower=True)
    except LinAlgError:
        smallest = np.linalg.eigvalsh(precision)[0]
        raise ValueError(
            f"the model is no probability distribution: its precision matrix has the eigenvalue {smallest:.3g}"
        ) from None
    mean = -cho_solve((factor, True), linear)
    noise = rng.standard_normal((basis.n_variables, n))
    return (mean[:, None] + solve_triangular(factor, noise, lower=True, trans=1)).T
