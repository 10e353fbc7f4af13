"""Generalised score matching: the squared gradient of the log density, without integrals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..axes import Axis, packed_pairs
from .base import Array, NodeRows, Pointwise

__all__ = ["ScoreMatchingLoss"]


@dataclass(frozen=True)
class ScoreMatchingLoss:
    """ℓ(a, φ) = ½ h (Σ_l a_l φ_l′)² − Σ_l a_l (h φ_l″ + h′ φ_l′), h a weight that vanishes where the axis ends.

    By parts, its mean is ½ E[h (s − s*)²] up to a constant, s = −Σ a_l φ_l′ the model's score and s* that of the
    samples' density. It is quadratic in a, so that one Newton step solves it.
    """

    link: ClassVar[Literal["mean", "log_mean"]] = "mean"
    unclamped: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True

    def prepare(self, rows: NodeRows) -> tuple[Array, Array]:
        """√h φ′ and h φ″ + h′ φ′, (n, J) each."""
        assert rows.axis.derivatives is not None
        assert rows.axis.boundary is not None
        first, second = rows.axis.derivatives(rows.x)
        h, slope = rows.axis.boundary(rows.x)
        return np.asfortranarray(np.sqrt(h)[:, None] * first), h[:, None] * second + slope[:, None] * first

    def at(self, axis: Axis, a: Array, prepared: tuple[Array, Array], second: bool) -> Pointwise:
        """ℓ, h φ′ Σ_l a_l φ_l′ − (h φ″ + h′ φ′), and h φ′ φ′ᵀ."""
        root, linear = prepared
        score = np.einsum("nl,nl->n", a, root)
        pull = np.einsum("nl,nl->n", a, linear)
        curvature = None
        if second:
            l, m = packed_pairs(a.shape[1])
            curvature = root[:, l] * root[:, m]
        slope = root * score[:, None] - linear
        return Pointwise(0.5 * score**2 - pull, slope, curvature, np.zeros(len(a), bool), 0.5 * score**2 + np.abs(pull))
