"""Interaction screening: exp of the energy's part with one variable, weighted by a reference density of that variable.

With R(x_i | rest) any density, a its coefficients and m_l = E_R[φ_l], the mean of exp(Σ_l a_l (φ_l − m_l)) R/q has its
minimum at the a of the samples' model: under q exp(−Σ a_l φ_l)/Z its gradient is that of ∫ R (φ − m) = 0 (eqs. 7-9 of
the paper). A factor that depends on the other variables alone changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..axes import Axis, packed_pairs
from .base import Array, NodeRows, Pointwise
from .references import Reference

__all__ = ["ReferenceScreening", "TiltedScreening"]


@dataclass(frozen=True)
class TiltedScreening:
    """ℓ(a, φ) = Σ_l (a_l − a⁰_l)(φ_l − m_l) with m = E_R[φ], R ∝ q exp(−Σ_l a⁰_l φ_l) and a⁰ a pilot's.

    At the pilot all weights exp ℓ are 1, and the gradient is that of pseudo-likelihood.
    """

    link: ClassVar[Literal["mean", "log_mean"]] = "log_mean"
    unclamped: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False

    def prepare(self, rows: NodeRows) -> tuple[Array, Array, Array]:
        """φ − m, Σ_l a⁰_l (φ_l − m_l), and which rows have integrals that are not resolved."""
        pilot = rows.pilot
        assert pilot is not None
        found = rows.axis.integrals(pilot, second=False)
        away = np.asfortranarray(rows.phi - found.mean)
        return away, np.einsum("nl,nl->n", pilot, away), found.error > rows.axis.tolerance

    def at(self, axis: Axis, a: Array, prepared: tuple[Array, Array, Array], second: bool) -> Pointwise:
        """The exponent, its slope φ − m, and the slope's products."""
        away, offset, unresolved = prepared
        return _exponent(a, away, -offset, unresolved, second)


@dataclass(frozen=True)
class ReferenceScreening:
    """ℓ(a, φ) = Σ_l a_l (φ_l − m_l) + log r with r = R/q and m = E_R[φ], R a reference of one variable.

    With the paper's R ∝ exp(−ν|y|^{s+δ}) it is eq. 10. The powers of the model keep their origin where R has another.

    Parameters
    ----------
    reference : Reference
    degree : int
        s, of the energy.
    link : {"log_mean", "mean_exp"}
        The logarithm of the mean of exp ℓ, or that mean itself.
    """

    reference: Reference
    degree: int
    link: Literal["log_mean", "mean_exp"] = "log_mean"

    unclamped: ClassVar[bool] = True
    quadratic: ClassVar[bool] = False

    def prepare(self, rows: NodeRows) -> tuple[Array, Array]:
        """φ − m and log r."""
        log_r, m = self.reference.of(rows.node, rows.axis, self.degree)
        return np.asfortranarray(rows.phi - m), log_r(rows.x)

    def at(self, axis: Axis, a: Array, prepared: tuple[Array, Array], second: bool) -> Pointwise:
        """The exponent, its slope φ − m, and the slope's products."""
        away, log_r = prepared
        return _exponent(a, away, log_r, np.zeros(len(a), bool), second)


def _exponent(a: Array, away: Array, offset: Array, unresolved: Array, second: bool) -> Pointwise:
    terms = a * away
    curvature = None
    if second:
        l, m = packed_pairs(a.shape[1])
        curvature = away[:, l] * away[:, m]
    return Pointwise(
        terms.sum(axis=1) + offset, away, curvature, unresolved, np.abs(terms).sum(axis=1) + np.abs(offset)
    )
