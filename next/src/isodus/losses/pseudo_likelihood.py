"""Pseudo-likelihood: −log P(x_i | rest), less the base measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..axes import Axis
from .base import Array, NodeRows, Pointwise

__all__ = ["PseudoLikelihoodLoss"]


@dataclass(frozen=True)
class PseudoLikelihoodLoss:
    """ℓ(a, φ) = Σ_l a_l φ_l + log Z(a),  Z(a) = ∫ q exp(−Σ_l a_l φ_l); its slope is φ − E[φ], its curvature Cov[φ]."""

    link: ClassVar[Literal["mean", "log_mean"]] = "mean"
    unclamped: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False

    def prepare(self, rows: NodeRows) -> tuple[Array]:
        """φ itself, by columns."""
        return (np.asfortranarray(rows.phi),)

    def at(self, axis: Axis, a: Array, prepared: tuple[Array], second: bool) -> Pointwise:
        """ℓ, φ − E[φ] and Cov[φ]."""
        (phi,) = prepared
        log_Z, mean, covariance, error = axis.integrals(a, second)
        terms = a * phi
        value, magnitude = terms.sum(axis=1) + log_Z, np.abs(terms).sum(axis=1)
        return Pointwise(value, phi - mean, covariance, error > axis.tolerance, magnitude)
