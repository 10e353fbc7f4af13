"""Have chains converged, and how many independent draws are they worth? (Vehtari et al., Bayesian Analysis 2021.)

Of m chains of n draws, S = mn, with W the mean variance within chains and B the variance of their means,

    V = (n − 1)/n W + B,    ρ_t = 1 − (W − ⟨γ_t⟩)/V,    R̂ = √(V/W),    ESS = S/τ,

γ_t the autocovariance of a chain at lag t. Of the pairs P_k = ρ_{2k} + ρ_{2k+1}, positive in a reversible chain,
τ = −1 + 2 Σ_{k<K} min(P_0 … P_k) + max(ρ_{2K}, 0) takes those before the first, K, that is not (Geyer, 1992).
Chains are split in halves, so that a drift shows, and ranks r stand for values, as z = Φ⁻¹((r − 3/8)/(S + 1/4)), so
that a variance need not exist. Of an odd number of draws the halves, and S, leave out the middle one.

What has not moved, or cannot be told, does not look good, and no value is NaN:

    values                                        R̂    ESS    autocorrelation time
    one not finite, or none                       ∞    0      ∞
    fewer than 4 draws a chain                    ∞    1      S
    all equal                                     1    S      1
    constant in every chain, but not all equal    ∞    1      S
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

__all__ = ["autocorrelation_time", "effective_sample_size", "r_hat", "tail_effective_sample_size"]

_CELLS = 1 << 20  # values at a time; ranks take ten times their memory
_FEW = 4  # draws: halves of fewer have no variance
_TAILS = 0.05, 0.95


def effective_sample_size(x: np.ndarray) -> np.ndarray:
    """Independent draws that tell the bulk of each variable as well as x, (chains, draws, p); at most S log₁₀ S."""
    return _in_blocks(x, lambda y: _independent(_normal(_halves(y))), few=1.0, not_finite=0.0)


def tail_effective_sample_size(x: np.ndarray) -> np.ndarray:
    """Independent draws that tell the 5 % and the 95 % quantile as well as x, (chains, draws, p): the fewer of both."""

    def tails(y: np.ndarray) -> np.ndarray:
        quantiles = np.quantile(y, _TAILS, axis=(1, 2), keepdims=True)
        y = _halves(y)
        equal, stuck = _constant(y)
        fewer = np.min([_independent((y <= q).astype(float)) for q in quantiles], axis=0)
        return np.where(stuck & ~equal, 1.0, fewer)  # quantiles may coincide with the largest value

    return _in_blocks(x, tails, few=1.0, not_finite=0.0)


def autocorrelation_time(x: np.ndarray) -> np.ndarray:
    """τ of each variable of x, (chains, draws, p): draws that are worth one independent draw of the mean, ≥ 1/log₁₀ S.

    Of the values themselves, neither split nor ranked.
    """

    def time(y: np.ndarray) -> np.ndarray:
        y = y - y[:, :1, :1]
        largest = np.abs(y).max(axis=(1, 2), keepdims=True)
        return y[0].size / _independent(y / np.where(largest, largest, 1.0))  # squares neither overflow nor vanish

    return _in_blocks(x, time, few=float(np.prod(x.shape[:2])), not_finite=np.inf)


def r_hat(x: np.ndarray) -> np.ndarray:
    """R̂ of each variable of x, (chains, draws, p): the larger of that of its location and that of its spread."""

    def location_and_spread(y: np.ndarray) -> np.ndarray:
        y = _halves(y)
        folded = np.abs(y - np.median(y, axis=(1, 2), keepdims=True))
        return np.maximum(_ratio(_normal(y)), _ratio(_normal(folded)))

    return _in_blocks(x, location_and_spread, few=np.inf, not_finite=np.inf)


def _in_blocks(
    x: np.ndarray, diagnose: Callable[[np.ndarray], np.ndarray], few: float, not_finite: float
) -> np.ndarray:
    """What diagnose makes of blocks of variables, (·, chains, draws); few and not_finite where it cannot be asked."""
    chains, draws, p = x.shape
    out = np.empty(p)
    step = max(1, _CELLS // max(1, chains * draws))
    for block in (slice(first, first + step) for first in range(0, p, step)):
        y = np.array(x[:, :, block].transpose(2, 0, 1), float, order="C")
        y *= 0.5  # so that no sum or difference of two overflows
        missing = ~np.isfinite(y).all(axis=(1, 2)) | (chains * draws == 0)
        y[missing] = 0.0
        out[block] = diagnose(y) if draws >= _FEW and chains else few
        out[block][missing] = not_finite
    return out


def _halves(y: np.ndarray) -> np.ndarray:
    half = y.shape[2] // 2
    return np.concatenate([y[:, :, :half], y[:, :, -half:]], axis=1)


def _normal(y: np.ndarray) -> np.ndarray:
    """z of the ranks of all values of a variable; ties share the mean of theirs."""
    flat = y.reshape(len(y), -1)
    S = flat.shape[1]
    order = np.argsort(flat, axis=1)
    values = np.take_along_axis(flat, order, axis=1)
    runs = np.flatnonzero(np.insert(values[:, 1:] != values[:, :-1], 0, True, axis=1))  # where equal values start
    lengths = np.diff(runs, append=flat.size)
    scores = ndtri((np.arange(1, S + 0.5, 0.5) - 3 / 8) / (S + 1 / 4))  # ranks are multiples of 1/2
    z = np.empty(flat.shape)
    scores = np.repeat(scores[2 * (runs % S) + lengths - 1], lengths)
    np.put_along_axis(z, order, scores.reshape(flat.shape), axis=1)
    return z.reshape(y.shape)


def _constant(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variables with all values equal, and those with all values of each chain equal."""
    return (y == y[:, :1, :1]).all(axis=(1, 2)), (y == y[:, :, :1]).all(axis=(1, 2))


def _ratio(z: np.ndarray) -> np.ndarray:
    """R̂ of chains z, (variables, chains, draws)."""
    n = z.shape[2]
    equal, stuck = _constant(z)
    W = np.where(stuck, 1.0, z.var(axis=2, ddof=1).mean(axis=1))
    R = np.sqrt((n - 1) / n + z.mean(axis=2).var(axis=1, ddof=1) / W)
    return np.where(equal, 1.0, np.where(stuck, np.inf, R))


def _independent(y: np.ndarray) -> np.ndarray:
    """S/τ of chains y, (variables, chains, draws), τ at least 1/log₁₀ S."""
    _, m, n = y.shape
    equal, stuck = _constant(y)
    last = max(1, (n - 3) // 2)  # K at most; later lags are means of too few products
    mean = y.mean(axis=2, keepdims=True)
    length = next_fast_len(n + 2 * last, real=True)
    power = np.abs(rfft(y - mean, length)) ** 2
    gamma = irfft(power.mean(axis=1), length)[:, : 2 * last + 1] / n
    V = gamma[:, :1] + (mean[:, :, 0].var(axis=1, ddof=1)[:, None] if m > 1 else 0.0)
    rho = 1 - (gamma[:, :1] * n / (n - 1) - gamma) / np.where(stuck[:, None], 1.0, V)
    rho[:, 0] = 1.0

    P = rho[:, 0:-1:2] + rho[:, 1::2]
    before = np.logical_and.accumulate(P > 0, axis=1)
    end = np.take_along_axis(rho, 2 * before.sum(axis=1, keepdims=True), axis=1)[:, 0]
    tau = 2 * np.sum(np.minimum.accumulate(P, axis=1), axis=1, where=before) + np.maximum(end, 0.0) - 1
    S = m * n
    return np.where(equal, S, np.where(stuck, 1.0, S / np.maximum(tau, 1 / np.log10(S))))
