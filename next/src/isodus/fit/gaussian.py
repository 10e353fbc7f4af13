"""The Gaussian that every model is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from ..axes import Axis
from ..data import Block, Samples
from ..terms import Terms

__all__ = [
    "Gaussian",
    "correlations",
    "fitted_gaussian",
    "gaussian_of",
    "inverse_correlations",
    "moments",
    "precision",
    "variance_inflation",
]

Array = np.ndarray
_FEW_ROWS = 5  # per column, below which the covariance is shrunk
_SINGULAR = 1e-12  # the smallest eigenvalue of correlations that have an inverse
_ROUNDING = 64 * np.finfo(float).eps  # of a mean: the spread that a constant column has


class Gaussian:
    """A multivariate Gaussian of some columns, given by mean and precision.

    Its optimum of pseudo-likelihood at degree 2 is the inverse covariance.
    """

    def __init__(self, mean: Array, precision: Array) -> None:
        self.mean, self.precision = mean, precision

    def node_scores(self, X: Array) -> Array:
        """log P(x_i | rest) of each row and column, in the units of X, (n, p)."""
        d = np.diag(self.precision)
        return 0.5 * np.log(d / (2 * np.pi)) - 0.5 * ((X - self.mean) @ self.precision) ** 2 / d


def fitted_gaussian(X: Array, weight: Array) -> Gaussian | None:
    """The Gaussian of some rows; with fewer than five rows per column, of Ledoit's and Wolf's covariance.

    None where a column is constant or the covariance has no inverse.
    """
    mean, size, Z, S = correlations(X, weight)
    if not np.all(size > _ROUNDING * np.abs(mean)) or not np.all(np.isfinite(size)):
        return None
    if weight.sum() < _FEW_ROWS * X.shape[1]:
        S = _shrunk(Z, weight / weight.sum(), S, weight.sum())
    precision = inverse_correlations(S)
    return None if precision is None else Gaussian(mean, precision / size / size[:, None])


def correlations(X: Array, weight: Array) -> tuple[Array, Array, Array, Array]:
    """Means, standard deviations, standardised rows times the roots of their shares of the weight, and ZᵀZ."""
    share = weight / weight.sum()
    mean = share @ X
    Z = X - mean
    Z *= np.sqrt(share)[:, None]
    size = np.sqrt(np.einsum("ij,ij->j", Z, Z))
    Z /= np.where(size > 0, size, 1.0)
    return mean, size, Z, Z.T @ Z


def inverse_correlations(S: Array) -> Array | None:
    """S⁻¹ by Cholesky's factor; None where S is singular up to rounding."""
    if not np.isfinite(S).all():
        return None
    factor, failed = dpotrf(S, lower=True)
    if failed:
        return None
    found = dpotri(factor, lower=True)[0]
    found = np.tril(found) + np.tril(found, -1).T
    return found if np.linalg.norm(found) < 1 / _SINGULAR else None


def variance_inflation(axes: Sequence[Axis], X: Array, weight: Array) -> Array:
    """V_i = 1/(1 − R²) with R² of variable i's function of least degree from those of the others, (p,); ∞ for copies.

    Of several functions of least degree, as on a circle, V is that of the combination that the others tell best: the
    largest eigenvalue of S_ii (S⁻¹)_ii, which does not change as a circle is turned.
    """
    first = [axis.functions(x)[:, axis.degrees == min(axis.degrees)] for axis, x in zip(axes, X.T, strict=True)]
    stop = np.cumsum([phi.shape[1] for phi in first])
    S = correlations(np.hstack(first), weight)[-1]
    inverse = inverse_correlations(S)
    if inverse is None:
        return np.full(len(axes), np.inf)
    places = [slice(b - phi.shape[1], b) for b, phi in zip(stop, first, strict=True)]
    return np.array([np.linalg.eigvals(S[i, i] @ inverse[i, i]).real.max() for i in places])


def moments(samples: Samples, axes: Sequence[Axis], n_jobs: int) -> Array:
    """⟨(1, y)(1, y)ᵀ⟩ of the axes' coordinates y, (p + 1, p + 1)."""

    def of_block(block: Block) -> Array:
        Y = np.stack([np.ones(len(block.X)), *(axis.coordinate(x) for axis, x in zip(axes, block.X.T, strict=True))])
        return (Y * block.weight) @ Y.T

    return samples.sum(of_block, n_jobs) / samples.n


def gaussian_of(M: Array, axes: Sequence[Axis], centred: bool = True) -> Gaussian | None:
    """The Gaussian of some `moments` on the whole line, or that of mean 0; None where the covariance has no inverse."""
    location, scale = np.array([axis.gaussian_moments() for axis in axes if axis.gaussian_moments]).T
    mean, C = M[0, 1:], M[1:, 1:] - np.outer(M[0, 1:], M[0, 1:])
    if not centred:
        away = mean + location / scale
        mean, C = -location / scale, C + np.outer(away, away)
    size = np.sqrt(np.diag(C))
    inverse = inverse_correlations(C / size / size[:, None])
    if inverse is None:
        return None
    return Gaussian(location + scale * mean, inverse / (size * scale) / (size * scale)[:, None])


def precision(terms: Terms, theta: Array) -> Array | None:
    """P of a Gaussian on the whole line in the units of X, (p, p); None where the model is another."""
    if np.any(terms.product_degrees > 2) or any(axis.gaussian_moments is None for axis in terms.axes):
        return None
    scale = np.array([axis.gaussian_moments()[1] for axis in terms.axes if axis.gaussian_moments])
    P = np.zeros((len(scale),) * 2)
    for factors, value in zip(terms.products, theta, strict=True):
        variables = [i for i, l in factors for _ in range(l + 1)]  # x_i² is one factor
        if len(variables) == 2:
            i, j = variables
            P[i, j] = P[j, i] = value * (2 if i == j else 1) / (scale[i] * scale[j])
    return P


def _shrunk(Z: Array, share: Array, S: Array, n: float) -> Array:
    """(1 − ρ) S + ρ (tr S / p) I with the ρ of Ledoit and Wolf (2004); Z: rows times the roots of their shares."""
    p = len(S)
    mu = np.trace(S) / p
    distance = np.sum((S - mu * np.eye(p)) ** 2)
    noise = (np.sum(np.sum(Z**2, axis=1) ** 2 / share) - np.sum(S**2)) / n
    rho = min(1.0, noise / distance) if distance > 0 else 1.0
    return (1 - rho) * S + rho * mu * np.eye(p)
