"""What the roads to the mass of a row hand to the rules that integrate it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..arrays import Array
from .polynomials import at_rows

__all__ = ["ILL_CONDITIONED", "Pieces"]

ILL_CONDITIONED = 1e4  # Σ|a_l x^l| at the mode above which plain Taylor shifts lose more than ~1e-12


@dataclass(frozen=True)
class Pieces:
    """Intervals y = mode + mid + half·u, u ∈ [−1, 1], K a row, ascending, that hold the mass of each row.

    There, q − energy = Σ_j b_j u^j + nu (|y|^power − |mode|^power); x = y + shift. Empty ones have half = 0.
    """

    b: Array  # (d + 1, K, n)
    mid: Array  # (K, n)
    half: Array  # (K, n)
    mode: Array  # (n,)
    energy: Array  # (n,), min q, which is q(mode) up to the rounding of mode
    rule: str
    patient: bool = True  # whether a rule that has not converged is worth doubling
    nu: float = 0.0
    power: float = 0.0
    shift: float = 0.0

    def take(self, rows: Array) -> Pieces:
        """The pieces of some rows."""
        names = ("b", "mid", "half", "mode", "energy")
        return replace(self, **{name: at_rows(getattr(self, name), rows) for name in names})
