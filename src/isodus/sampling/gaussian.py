"""Quadratic energies: exact samples and normalisation."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from ..basis import MonomialBasis

__all__ = ["centre", "draw", "log_z", "precision_matrix"]


def precision_matrix(basis: MonomialBasis, theta: np.ndarray) -> np.ndarray:
    """Λ with E(x) = bᵀx + ½ xᵀΛx: Λ_ii = 2θ_(i,i), Λ_ij = θ_(i,j)."""
    if basis.degree > 2:
        raise ValueError(f"a model of degree {basis.degree} has no precision matrix; fit with degree=2 for a Gaussian")
    precision = np.zeros((basis.n_variables, basis.n_variables))
    pairs = basis.factors[basis.degrees == 2, :2]
    np.add.at(precision, (pairs[:, 0], pairs[:, 1]), theta[basis.degrees == 2])
    return precision + precision.T


def draw(basis: MonomialBasis, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n samples, shape (p, n), of exp(−E) with E of degree 2."""
    factor, linear = _factor(basis, theta)
    mean = -cho_solve((factor, True), linear)
    noise = rng.standard_normal((basis.n_variables, n))
    return mean[:, None] + solve_triangular(factor, noise, lower=True, trans=1, overwrite_b=True)


def log_z(basis: MonomialBasis, theta: np.ndarray) -> float:
    """log ∫ exp(−bᵀx − ½ xᵀΛx) dx = ½ bᵀΛ⁻¹b − ½ log det(Λ/2π)."""
    factor, linear = _factor(basis, theta)
    half = solve_triangular(factor, linear, lower=True)
    return float(half @ half / 2 - np.log(np.diagonal(factor)).sum() + len(half) * np.log(2 * np.pi) / 2)


def centre(basis: MonomialBasis, theta: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The mean μ = −Λ⁻¹b, −E(μ) = ½ bᵀΛ⁻¹b, and by how many spreads μ is off by the rounding of b and Λ.

    With v = x − μ the energy is E(μ) + ½ vᵀΛv, where nothing cancels.
    """
    factor, linear = _factor(basis, theta)
    mean, half = -cho_solve((factor, True), linear), solve_triangular(factor, linear, lower=True)
    rounding = np.finfo(np.float64).eps * (np.abs(precision_matrix(basis, theta)) @ np.abs(mean) + np.abs(linear))
    return mean, float(half @ half / 2), float(np.linalg.norm(solve_triangular(factor, rounding, lower=True)))


def _factor(basis: MonomialBasis, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L with LLᵀ = Λ, and b."""
    precision = precision_matrix(basis, theta)
    linear = np.zeros(basis.n_variables)
    linear[basis.factors[basis.degrees == 1, 0]] = theta[basis.degrees == 1]
    try:
        return cholesky(precision, lower=True), linear
    except LinAlgError:
        smallest = np.linalg.eigvalsh(precision)[0]
        raise ValueError(
            f"the model is no probability distribution: its precision matrix has the eigenvalue {smallest:.3g}"
        ) from None
