"""isodus: which continuous variables interact, in pairs, threes and fours, learned from samples."""

from ._version import __version__
from .basis import MonomialBasis
from .conditional import Conditional
from .estimators import ISODUS, PseudoLikelihood, ScoreMatching
from .likelihood import match_moments
from .model import PolynomialModel

__all__ = [
    "ISODUS",
    "Conditional",
    "MonomialBasis",
    "PolynomialModel",
    "PseudoLikelihood",
    "ScoreMatching",
    "__version__",
    "match_moments",
]
