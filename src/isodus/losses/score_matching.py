"""Score matching (Hyvärinen), pointwise in (a, x)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, contract, empty, namespace
from ..energy import powers
from . import Pointwise

__all__ = ["ScoreMatchingLoss"]


@dataclass(frozen=True)
class ScoreMatchingLoss:
    """½ (∂E/∂x)² − ∂²E/∂x² = ½ (Σ_l l a_l x^{l−1})² − Σ_l l(l−1) a_l x^{l−2}: quadratic in a."""

    link: str = "mean"
    pilot: None = None
    known: int = 0

    def at(self, nodes: np.ndarray, like: Array, hessian: bool) -> Callable[[Array, Array], Pointwise]:
        """The pointwise loss; it is the same for all nodes."""
        return _pointwise


def _pointwise(a: Array, x: Array) -> Pointwise:
    """The one factor is v_l = l x^{l−1}, t = Σ_l a_l v_l the coordinate along it; a: (s, q, n); x: (q, n)."""
    xp = namespace(x)
    s = a.shape[0]
    v, rest = empty((s, *x.shape), x), empty((s, *x.shape), x)
    v[0, ...] = 1.0
    rest[0, ...] = 0.0
    if s > 1:
        v[1:, ...] = powers(x, s - 1)
        for l in range(2, s + 1):  # ∂v_l/∂x from the powers before v is multiplied by l
            rest[l - 1, ...] = v[l - 2, ...] * (-float(l * (l - 1)))

        for l in range(2, s + 1):
            v[l - 1, ...] *= float(l)
    t = contract(a, v)
    value = 0.5 * t * t + contract(a, rest)
    return Pointwise(xp.zeros(x.shape[0], dtype=x.dtype, device=x.device), value, [(t, v)], rest)
