"""Pseudo-likelihood: −log P(x_i | rest), pointwise in (a, x)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np

from .. import univariate
from ..arrays import Array, contract, namespace
from ..energy import powers
from ..univariate.adaptive import integrate_each
from . import Pointwise

__all__ = ["PseudoLikelihoodLoss"]


@dataclass(frozen=True)
class PseudoLikelihoodLoss:
    """Σ_l a_l x^l + log Z(a), Z(a) = ∫ exp(−Σ_l a_l x^l) dx; paper, pseudo-likelihood estimator.

    ∂ℓ/∂a_l = x^l − E x^l and ∂²ℓ/∂a_l∂a_k = Cov(x^l, x^k) under the conditional density. Where a sample has
    none the value is infinite. The slope is also that of the screening objective tilted by the same a, at ν = 0.

    tol: relative error of the integrals. adaptive: whether each sample is integrated by itself, as the paper's
    baseline does, which takes a thousand times as long.
    """

    tol: float = 1e-10
    adaptive: bool = False
    link: str = "mean"
    pilot: None = None
    known: int = 0

    def at(self, nodes: np.ndarray, like: Array, hessian: bool) -> Callable[[Array, Array], Pointwise]:
        """The pointwise loss; it is the same for all nodes."""
        integrate = partial(integrate_each if self.adaptive else univariate.integrate, tol=self.tol)
        return partial(_with_curvature if hessian else _slope_only, integrate)


def _slope_only(integrate: Callable[..., univariate.Integrals], a: Array, x: Array) -> Pointwise:
    """Value and slope x^l − E x^l; a: (s, q, n); x: (q, n). The one factor is the slope itself."""
    xp = namespace(x)
    s, q, n = a.shape
    found = integrate(xp.reshape(a, (s, q * n)), moments=s)
    u = powers(x, s)
    value = contract(a, u) + xp.reshape(found.log_z, (q, n))
    u -= xp.reshape(found.moments, (s, q, n))
    return Pointwise(xp.zeros(q, dtype=x.dtype, device=x.device), value, [(xp.ones_like(x), u)])


def _with_curvature(integrate: Callable[..., univariate.Integrals], a: Array, x: Array) -> Pointwise:
    """Derivatives through the powers of t = x − mode, whose covariance does not cancel; a: (s, q, n); x: (q, n).

    Cov(t^j, t^k) = L Lᵀ (lower triangular, at every sample) and x^l = Σ_j C(l, j) mode^{l−j} t^j give
    the factors; the slope along them is L⁻¹ (t^j − E t^j).
    """
    xp = namespace(x)
    s, q, n = a.shape
    found = integrate(xp.reshape(a, (s, q * n)), moments=2 * s)
    shape = (q, n)
    mode = xp.reshape(found.mode, shape)
    central = [xp.ones_like(x), *(xp.reshape(found.central[k, :], shape) for k in range(2 * s))]
    value = contract(a, powers(x, s)) + xp.reshape(found.log_z, shape)
    t = powers(x - mode, s)
    L, z = _cholesky(central, [t[j, ...] - central[j + 1] for j in range(s)], s)
    mode_powers = [xp.ones_like(x), *(powers(mode, s)[k, ...] for k in range(s - 1))]
    factors = []
    for r in range(s):
        rows = [
            sum(comb(l, j) * mode_powers[l - j] * L[j - 1][r] for j in range(r + 1, l + 1)) if l > r else None
            for l in range(1, s + 1)
        ]
        factors.append((z[r], xp.stack([xp.zeros_like(x) if row is None else row for row in rows])))
    return Pointwise(xp.zeros(q, dtype=x.dtype, device=x.device), value, factors)


def _cholesky(central: list[Array], slope: list[Array], s: int) -> tuple[list[list[Array]], list[Array]]:
    """L with L Lᵀ = Cov(t^j, t^k), j, k = 1 … s, at every sample, and z = L⁻¹ slope."""
    xp = namespace(slope[0])
    L: list[list[Array]] = [[] for _ in range(s)]
    z: list[Array] = []
    for j in range(s):
        for k in range(j + 1):
            value = central[j + k + 2] - central[j + 1] * central[k + 1]
            for r in range(k):
                value = value - L[j][r] * L[k][r]
            if k == j:
                # rounding may take what is left of a nearly dependent power below zero
                L[j].append(xp.sqrt(xp.maximum(value, 1e-14 * central[2 * j + 2])))
            else:
                L[j].append(xp.where(L[k][k] > 0, value / xp.where(L[k][k] > 0, L[k][k], 1.0), 0.0))
        rest = slope[j]
        for r in range(j):
            rest = rest - L[j][r] * z[r]
        z.append(xp.where(L[j][j] > 0, rest / xp.where(L[j][j] > 0, L[j][j], 1.0), 0.0))
    return L, z
