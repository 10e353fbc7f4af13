"""Estimators: checking and wiring."""

from .isodus import ISODUS
from .pseudo_likelihood import PseudoLikelihood
from .score_matching import ScoreMatching

__all__ = ["ISODUS", "PseudoLikelihood", "ScoreMatching"]
