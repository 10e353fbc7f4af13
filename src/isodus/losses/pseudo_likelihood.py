"""Pseudo-likelihood: −log P(x_i | rest), pointwise in (a, x)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import comb

import numpy as np

from .. import univariate
from ..arrays import Array, contract, namespace, on_device, set_rows
from ..spaces import Space, Spaces, batches, powers
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

    def at(
        self, nodes: np.ndarray, like: Array, hessian: bool, spaces: Spaces | None
    ) -> Callable[[Array, Array], Pointwise]:
        """The pointwise loss; it is the same for all nodes that live alike."""
        integrate = partial(integrate_each if self.adaptive else univariate.integrate, tol=self.tol)
        pointwise = _with_curvature if hessian else _slope_only
        if spaces is None:
            return partial(pointwise, integrate)
        ways: list[tuple[np.ndarray, Callable[[Array, Array], Pointwise]]] = []
        for space, at in batches(spaces, nodes):
            if space.tabled:
                ways.append((at, partial(_tabled, space, self.tol, hessian)))
            else:
                ways.append((at, partial(pointwise, partial(integrate, support=space.support))))
        return ways[0][1] if len(ways) == 1 else partial(_by_batch, ways)


def _by_batch(ways: list[tuple[np.ndarray, Callable[[Array, Array], Pointwise]]], a: Array, x: Array) -> Pointwise:
    """What different nodes say, in their places; those that have fewer factors have zeros there."""
    xp, (s, q, n) = namespace(x), a.shape
    shift, value = xp.zeros(q, dtype=x.dtype, device=x.device), xp.zeros_like(x)
    factors: list[tuple[Array, Array]] = []
    for at, way in ways:
        index = on_device(at, x)
        found = way(xp.take(a, index, axis=1), xp.take(x, index, axis=0))
        set_rows(value, at, found.value)
        for r, (z, f) in enumerate(found.factors):
            if r == len(factors):
                factors.append((xp.zeros_like(x), xp.zeros((s, q, n), dtype=x.dtype, device=x.device)))
            set_rows(factors[r][0], at, z)
            set_rows(factors[r][1], at, f, axis=1)
    return Pointwise(shift, value, factors)


def _tabled(space: Space, tol: float, hessian: bool, a: Array, x: Array) -> Pointwise:
    """Where expectations are sums over nodes: Cov(φ_l, φ_k) = L Lᵀ gives the factors, L⁻¹(φ − Eφ) the slope."""
    xp, (s, q, n) = namespace(x), a.shape
    found = space.expectations(xp.reshape(a, (s, q * n)), second=hessian, tol=tol)
    phi = space.features(x, s)
    value = contract(a, phi) + xp.reshape(found.log_z, (q, n))
    mean = xp.reshape(found.mean, (s, q, n))
    shift, slope = xp.zeros(q, dtype=x.dtype, device=x.device), phi - mean
    if found.second is None:
        return Pointwise(shift, value, [(xp.ones_like(x), slope)])
    both = xp.reshape(found.second, (s, s, q, n))
    cov = [[both[j, k, ...] - mean[j, ...] * mean[k, ...] for k in range(j + 1)] for j in range(s)]
    L, z = _cholesky(cov, [both[j, j, ...] for j in range(s)], [slope[j, ...] for j in range(s)])
    zero = xp.zeros_like(x)
    return Pointwise(
        shift, value, [(z[r], xp.stack([L[l][r] if l >= r else zero for l in range(s)])) for r in range(s)]
    )


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
    cov = [[central[j + k + 2] - central[j + 1] * central[k + 1] for k in range(j + 1)] for j in range(s)]
    L, z = _cholesky(cov, central[2::2], [t[j, ...] - central[j + 1] for j in range(s)])
    mode_powers = [xp.ones_like(x), *(powers(mode, s)[k, ...] for k in range(s - 1))]
    factors = []
    for r in range(s):
        rows = [
            sum(comb(l, j) * mode_powers[l - j] * L[j - 1][r] for j in range(r + 1, l + 1)) if l > r else None
            for l in range(1, s + 1)
        ]
        factors.append((z[r], xp.stack([xp.zeros_like(x) if row is None else row for row in rows])))
    return Pointwise(xp.zeros(q, dtype=x.dtype, device=x.device), value, factors)


def _cholesky(
    cov: list[list[Array]], squares: list[Array], slope: list[Array]
) -> tuple[list[list[Array]], list[Array]]:
    """L with L Lᵀ = cov, of which the lower triangle is given, at every sample, and z = L⁻¹ slope.

    squares: the mean squares of what it is the covariance of, by which rounding is judged.
    """
    xp, s = namespace(slope[0]), len(slope)
    L: list[list[Array]] = [[] for _ in range(s)]
    z: list[Array] = []
    for j in range(s):
        for k in range(j + 1):
            value = cov[j][k]
            for r in range(k):
                value = value - L[j][r] * L[k][r]
            if k == j:
                # rounding may take what is left of a nearly dependent power below zero
                L[j].append(xp.sqrt(xp.maximum(value, 1e-14 * squares[j])))
            else:
                L[j].append(xp.where(L[k][k] > 0, value / xp.where(L[k][k] > 0, L[k][k], 1.0), 0.0))
        rest = slope[j]
        for r in range(j):
            rest = rest - L[j][r] * z[r]
        z.append(xp.where(L[j][j] > 0, rest / xp.where(L[j][j] > 0, L[j][j], 1.0), 0.0))
    return L, z
