"""Rows that depend on those before them: how many lags the covariance takes."""

from __future__ import annotations

import numpy as np

from ..data import Block
from .objective import Objective

__all__ = ["automatic_lags"]

_MOST_CORRELATION = 0.97


def automatic_lags(f: Objective, tau: np.ndarray) -> int:
    """Lags for Bartlett's weights by Andrews (1991), as if each score were autoregressive with correlation ρ.

    1.1447 (α n)^{1/3}, α = Σ 4ρ²/((1 − ρ)⁶ (1 + ρ)²) / Σ 1/(1 − ρ)⁴; at most a quarter of the rows. Correlations are
    those within blocks.
    """

    def moments(block: Block, S: np.ndarray) -> np.ndarray:
        return np.stack([np.einsum("kn,kn->k", S, S), np.einsum("kn,kn->k", S[:, 1:], S[:, :-1])])

    variance, next_to = f.scores(tau, moments)
    rho = np.clip(next_to / np.maximum(variance, 1e-300), -_MOST_CORRELATION, _MOST_CORRELATION)
    alpha = np.sum(4 * rho**2 / ((1 - rho) ** 6 * (1 + rho) ** 2)) / np.sum((1 - rho) ** -4.0)
    n = f.samples.n_rows
    return int(min(np.ceil(1.1447 * (alpha * n) ** (1 / 3)), n // 4))
