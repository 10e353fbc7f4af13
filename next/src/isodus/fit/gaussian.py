"""The Gaussian that every model is compared with."""

from __future__ import annotations

import numpy as np

__all__ = ["Gaussian", "fitted_gaussian"]

Array = np.ndarray
_FEW_ROWS = 5  # per column, below which the covariance is shrunk
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
    share = weight / weight.sum()
    mean = share @ X
    centred = X - mean
    size = np.sqrt(share @ centred**2)
    if not np.all(size > _ROUNDING * np.abs(mean)) or not np.all(np.isfinite(size)):
        return None
    Z = centred / size
    S = (Z * share[:, None]).T @ Z
    if weight.sum() < _FEW_ROWS * X.shape[1]:
        S = _shrunk(Z, share, S, weight.sum())
    if np.linalg.eigvalsh(S)[0] < 1e-12:
        return None
    return Gaussian(mean, np.linalg.inv(S) / size / size[:, None])


def _shrunk(Z: Array, share: Array, S: Array, n: float) -> Array:
    """(1 − ρ) S + ρ (tr S / p) I with the ρ of Ledoit and Wolf (2004)."""
    p = len(S)
    mu = np.trace(S) / p
    distance = np.sum((S - mu * np.eye(p)) ** 2)
    noise = (share @ np.sum(Z**2, axis=1) ** 2 - np.sum(S**2)) / n
    rho = min(1.0, noise / distance) if distance > 0 else 1.0
    return (1 - rho) * S + rho * mu * np.eye(p)
