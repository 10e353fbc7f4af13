"""isodus: which continuous variables interact, in pairs, threes and fours, learned from samples."""

from ._version import __version__
from .basis import MonomialBasis
from .estimators import ISODUS
from .model import PolynomialModel

__all__ = ["ISODUS", "MonomialBasis", "PolynomialModel", "__version__"]
