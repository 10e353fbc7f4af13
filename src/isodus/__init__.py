"""isodus: which continuous variables interact, in pairs, threes and fours, learned from samples."""

from ._version import __version__
from .basis import MonomialBasis
from .estimators import ISODUS, PseudoLikelihood, ScoreMatching
from .model import PolynomialModel

__all__ = ["ISODUS", "MonomialBasis", "PolynomialModel", "PseudoLikelihood", "ScoreMatching", "__version__"]
