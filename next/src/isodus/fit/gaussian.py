"""The Gaussian that every model is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri

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
    "of_kept",
    "precision",
    "variance_inflation",
    "variances_left",
]

Array = np.ndarray
_FEW_ROWS = 5  # per column, below which the covariance is shrunk
_SINGULAR = 1e-12  # the smallest eigenvalue of correlations that have an inverse
_SMALL = 1e-100
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


def of_kept(samples: Samples) -> tuple[Array, Array, Array]:
    """Means, standard deviations and correlations of the kept rows, of any size, computed once for the samples."""
    known = vars(samples)
    if "_of_kept" not in known:
        X, weight = samples.kept
        largest = np.maximum(np.abs(X).max(axis=0), 1e-300)
        unit = np.where((largest > _SMALL) & (largest < 1 / _SMALL), 1.0, largest)
        mean, size, _, R = correlations(X if np.all(unit == 1) else X / unit, weight)
        known["_of_kept"] = unit * mean, unit * size, R
    return known["_of_kept"]


def inverse_correlations(S: Array) -> Array | None:
    """S⁻¹ by Cholesky's factor; None where S is singular up to rounding."""
    factor = _factor(S)
    if factor is None:
        return None
    found = dpotri(factor, lower=True)[0]
    found = np.tril(found) + np.tril(found, -1).T
    return found if np.linalg.norm(found) < 1 / _SINGULAR else None


def variance_inflation(axes: Sequence[Axis], samples: Samples) -> Array:
    """V_i = 1/(1 − R²) with R² of variable i's function of least degree from those of the others, (p,); ∞ for copies.

    Of several functions of least degree, as on a circle, V is that of the combination that the others tell best: the
    largest eigenvalue of S_ii (S⁻¹)_ii, which does not change as a circle is turned.
    """
    if all(axis.gaussian_moments is not None for axis in axes):  # these functions are the columns
        left = variances_left(of_kept(samples)[-1])
        return np.full(len(axes), np.inf) if left is None else 1 / left
    X, weight = samples.kept
    first = [axis.functions(x)[:, axis.degrees == min(axis.degrees)] for axis, x in zip(axes, X.T, strict=True)]
    stop = np.cumsum([phi.shape[1] for phi in first])
    S = correlations(np.hstack(first), weight)[-1]
    inverse = inverse_correlations(S)
    if inverse is None:
        return np.full(len(axes), np.inf)
    places = [slice(b - phi.shape[1], b) for b, phi in zip(stop, first, strict=True)]
    return np.array([np.linalg.eigvals(S[i, i] @ inverse[i, i]).real.max() for i in places])


def variances_left(S: Array) -> Array | None:
    """1/diag(S⁻¹) of correlations: the share of each column's variance that the others leave; None where singular."""
    factor = _factor(S)
    if factor is None:
        return None
    diagonal = np.sum(dtrtri(factor, lower=True)[0] ** 2, axis=0)
    return 1 / diagonal if diagonal.sum() < 1 / _SINGULAR else None


def _factor(S: Array) -> Array | None:
    """Cholesky's, zero above the diagonal; None where there is none."""
    factor, failed = dpotrf(S, lower=True) if np.isfinite(S).all() else (S, 1)
    return None if failed else factor


def moments(samples: Samples, axes: Sequence[Axis], n_jobs: int) -> Array:
    """⟨(1, y)(1, y)ᵀ⟩ of the axes' coordinates y, (p + 1, p + 1)."""
    if len(samples.kept.X) == samples.n_rows:
        mean, size, R = of_kept(samples)
        location, scale = _units(axes)
        m, d = np.append(1.0, (mean - location) / scale), np.append(0.0, size / scale)
        return np.outer(m, m) + np.pad(R, (1, 0)) * d * d[:, None]

    def of_block(block: Block) -> Array:
        Y = np.stack([np.ones(len(block.X)), *(axis.coordinate(x) for axis, x in zip(axes, block.X.T, strict=True))])
        Y *= np.sqrt(block.weight)
        return Y @ Y.T

    return samples.sum(of_block, n_jobs) / samples.n


def gaussian_of(M: Array, axes: Sequence[Axis], centred: bool = True) -> Gaussian | None:
    """The Gaussian of some `moments` on the whole line, or that of mean 0; None where the covariance has no inverse."""
    location, scale = _units(axes)
    mean, C = M[0, 1:], M[1:, 1:] - np.outer(M[0, 1:], M[0, 1:])
    if not centred:
        away = mean + location / scale
        mean, C = -location / scale, C + np.outer(away, away)
    size = np.sqrt(np.diag(C))
    inverse = inverse_correlations(C / size / size[:, None])
    if inverse is None:
        return None
    return Gaussian(location + scale * mean, inverse / (size * scale) / (size * scale)[:, None])


def _units(axes: Sequence[Axis]) -> Array:
    """Locations and scales of axes that hold a Gaussian, (2, p)."""
    return np.array([axis.gaussian_moments() for axis in axes if axis.gaussian_moments]).T


def precision(terms: Terms, theta: Array) -> Array | None:
    """P of a Gaussian on the whole line in the units of X, (p, p); None where the model is another."""
    if np.any(terms.product_degrees > 2) or any(axis.gaussian_moments is None for axis in terms.axes):
        return None
    _, scale = _units(terms.axes)
    P = np.zeros((len(scale),) * 2)
    pairs = [(f[0][0], f[-1][0], k) for k, f in enumerate(terms.products) if len(f) == 2 or f[0][1] == 1]
    i, j, k = np.array(pairs, int).reshape(-1, 3).T
    P[i, j] = P[j, i] = theta[k] * np.where(i == j, 2, 1) / (scale[i] * scale[j])
    return P


def _shrunk(Z: Array, share: Array, S: Array, n: float) -> Array:
    """(1 − ρ) S + ρ (tr S / p) I with the ρ of Ledoit and Wolf (2004); Z: rows times the roots of their shares."""
    p = len(S)
    mu = np.trace(S) / p
    distance = np.sum((S - mu * np.eye(p)) ** 2)
    noise = (np.sum(np.sum(Z**2, axis=1) ** 2 / share) - np.sum(S**2)) / n
    rho = min(1.0, noise / distance) if distance > 0 else 1.0
    return (1 - rho) * S + rho * mu * np.eye(p)
