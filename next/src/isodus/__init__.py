"""Learn which continuous variables interact, in pairs, threes and fours, from samples."""

from ._core.notes import IsodusWarning, Note
from .estimators import PseudoLikelihood
from .fit.penalties import Ridge
from .model import PolynomialModel
from .terms import MonomialBasis, lattice

__version__ = "0.3.0.dev0"

__all__ = ["IsodusWarning", "MonomialBasis", "Note", "PolynomialModel", "PseudoLikelihood", "Ridge", "lattice"]
