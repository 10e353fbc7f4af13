"""scikit-learn estimators: validation and wiring, no formula."""

from .isodus import ISODUS
from .pseudo_likelihood import PseudoLikelihood
from .score_matching import ScoreMatching

__all__ = ["ISODUS", "PseudoLikelihood", "ScoreMatching"]
