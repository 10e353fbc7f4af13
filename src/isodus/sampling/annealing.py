"""log Z by annealed importance sampling (Neal, 2001), where no exact sum is within reach.

Independent chains start from a Gaussian, E₀ with log Z₀ known, and pass through the energies (1 − β) E₀ + β E, β from
0 to 1, with a Gibbs sweep at each. With w = exp(Σ Δβ (E₀ − E)) along a chain, Z = Z₀ ⟨w⟩ without bias.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
from scipy.special import logsumexp

from ..basis import MonomialBasis
from ..energy import energy, features
from .sweep import Conditionals, alone, chains, sweep

__all__ = ["log_partition"]

_CHAINS, _FIRST, _SWEEPS = 512, 64, 20
_STEP = 0.05  # of β, in standard deviations of E₀ − E
_WIDER = 1.5  # the first Gaussian's variances, over those of the density
_FEW = 0.1  # of the chains that must carry the weight


def log_partition(
    basis: MonomialBasis, theta: np.ndarray, names: Sequence[str], rng: np.random.Generator
) -> tuple[float, float]:
    """log ∫ exp(−E(x)) dx and its standard error, for an energy of degree above 2."""
    conditionals = Conditionals(basis, theta)
    groups, s = conditionals.colours(), basis.degree
    if basis.spaces is None:
        there = chains(basis, theta, conditionals, names, rng, _CHAINS, _SWEEPS)
        mean, variance = there.mean(axis=1), _WIDER * there.var(axis=1)
        first = np.zeros((len(mean), s))  # E₀ = Σ_i x_i²/2v_i − μ_i x_i/v_i
        first[:, 0], first[:, 1] = -mean / variance, 0.5 / variance
    else:
        first = np.stack([space.start(s) for space in basis.spaces])
    each = zip(conditionals.spaces, first, strict=True)
    log_z0 = sum(float(space.expectations(a[:, None], means=False).log_z[0]) for space, a in each)

    def begin(n: int) -> np.ndarray:
        if basis.spaces is not None:
            return alone(basis.spaces, s, n, rng)
        return mean[:, None] + np.sqrt(variance)[:, None] * rng.standard_normal((len(mean), n))

    def anneal(n: int, delta: Callable[[int, float, np.ndarray], float]) -> np.ndarray:
        """log w of n chains; delta: the next step of β, of its number, β and E₀ − E there."""
        X = begin(n)
        log_w, beta = np.zeros(n), 0.0
        for k in count():
            lower = np.einsum("il,lin->n", first, features(basis, X, s)) - energy(basis, theta, X)
            step = delta(k, beta, lower)
            log_w += step * lower
            beta += step
            if beta >= 1.0:
                break
            sweep(conditionals, groups, names, X, rng, beta, first)
        return log_w

    steps: list[float] = []

    def short(k: int, beta: float, lower: np.ndarray) -> float:
        spread = np.ptp(np.quantile(lower, [0.05, 0.95])) / 3.29  # the tail is long at first
        steps.append(min(1.0 - beta, _STEP / max(spread, _STEP)))
        return steps[-1]

    anneal(_FIRST, short)  # steps chosen on the chains that are weighed would bias the weights
    log_w = anneal(_CHAINS, lambda k, beta, lower: steps[k])
    log_z = float(logsumexp(log_w) - np.log(_CHAINS)) + log_z0
    w = np.exp(log_w - log_w.max())
    effective = w.sum() ** 2 / np.sum(w * w)
    if effective < _FEW * _CHAINS:
        warnings.warn(
            f"log Z is not trustworthy: of {_CHAINS} annealed chains {effective:.0f} carry the weight",
            UserWarning,
            stacklevel=4,
        )
    return log_z, float(w.std(ddof=1) / w.mean() / np.sqrt(_CHAINS))
