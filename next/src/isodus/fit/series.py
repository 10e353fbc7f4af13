"""Rows that depend on one another: how many lags the covariance takes, and sums over clusters and lags."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.signal import oaconvolve

from ..data import Block
from .objective import Objective

__all__ = ["ClusterSums", "LaggedSums", "automatic_lags"]

Array = np.ndarray

_MOST_CORRELATION = 0.97


def automatic_lags(f: Objective, tau: np.ndarray) -> int:
    """Lags for Bartlett's weights by Andrews (1991), as if each score were autoregressive with correlation ρ.

    1.1447 (α n)^{1/3}, α = Σ 4ρ²/((1 − ρ)⁶ (1 + ρ)²) / Σ 1/(1 − ρ)⁴; at most a quarter of the rows.
    """
    variance, next_to = f.scores(tau, lambda block, S: _Neighbours.of(S)).moments
    rho = np.clip(next_to / np.maximum(variance, 1e-300), -_MOST_CORRELATION, _MOST_CORRELATION)
    alpha = np.sum(4 * rho**2 / ((1 - rho) ** 6 * (1 + rho) ** 2)) / np.sum((1 - rho) ** -4.0)
    n = f.samples.n_rows
    return int(min(np.ceil(1.1447 * (alpha * n) ** (1 / 3)), n // 4))


class _Neighbours(NamedTuple):
    """Σ e_t² and Σ e_t e_{t−1} over consecutive rows, (2, k), the first of these and the last."""

    moments: Array
    first: Array
    last: Array

    @classmethod
    def of(cls, S: Array) -> Self:
        next_to = np.einsum("kn,kn->k", S[:, 1:], S[:, :-1])
        return cls(np.stack([np.einsum("kn,kn->k", S, S), next_to]), S[:, 0].copy(), S[:, -1].copy())

    def __add__(self, other: Self) -> Self:  # type: ignore[override]
        between = np.stack([np.zeros_like(self.last), self.last * other.first])
        return self._replace(moments=self.moments + other.moments + between, last=other.last)


class ClusterSums:
    """Σ e over the rows of each cluster, (clusters, k): one matrix, to which the blocks after the first are added."""

    def __init__(self, size: int, block: Block, e: Array) -> None:
        assert block.clusters is not None
        self._size, (self._which, into) = size, np.unique(block.clusters, return_inverse=True)
        self._part = np.zeros((len(self._which), e.shape[1]))
        np.add.at(self._part, into, e)
        self._sums: Array | None = None

    @property
    def sums(self) -> Array:
        """The sums so far."""
        if self._sums is None:
            self._sums = np.zeros((self._size, self._part.shape[1]))
            self._sums[self._which] = self._part
        return self._sums

    def __add__(self, other: Self) -> Self:
        if other._sums is None:
            self.sums[other._which] += other._part
        else:
            self.sums[:] += other.sums
        return self


class LaggedSums:
    """Σ_t e_t e_tᵀ + Σ_l (1 − l/(lags + 1)) Σ_t (e_t e_{t−l}ᵀ + its transpose) over consecutive blocks, and Σ e.

    Of the rows so far only the last `lags` are held.
    """

    def __init__(self, lags: int, e: Array) -> None:
        self._weights = 1 - np.arange(lags + 1) / (lags + 1)
        self._weights[0] = 0.0
        self.total, self._first, self._last = e.sum(axis=0), e[:lags], e[-lags:]
        self.products = e.T @ e + _both(e.T @ self._before(e))

    def _before(self, e: Array) -> Array:
        """Σ_l (1 − l/(lags + 1)) e_{t−l} for each row t."""
        return oaconvolve(e, self._weights[:, None], axes=0)[: len(e)]

    def __add__(self, other: Self) -> Self:
        lags, later = len(self._weights) - 1, other._first
        joined = np.concatenate([self._last, np.zeros_like(later)])
        cross = later.T @ self._before(joined)[len(self._last) :]
        self.total, self.products = self.total + other.total, self.products + other.products + _both(cross)
        self._last = np.concatenate([self._last, other._last])[-lags:]
        if len(self._first) < lags:  # then these are all rows so far
            self._first = np.concatenate([self._first, later])[:lags]
        return self


def _both(A: Array) -> Array:
    return A + A.T
