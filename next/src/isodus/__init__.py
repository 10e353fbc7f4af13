"""Learn which continuous variables interact, in pairs, threes and fours, from samples."""

from ._core.notes import IsodusWarning, Note
from .data import open_samples
from .estimators import ISODUS, PseudoLikelihood, ScoreMatching
from .fit.l1 import L1
from .fit.penalties import Ridge
from .losses import PowerReference, TiltedReference
from .model import PolynomialModel
from .terms import MonomialBasis, lattice

__version__ = "0.3.0.dev0"

__all__ = [
    "ISODUS",
    "L1",
    "IsodusWarning",
    "MonomialBasis",
    "Note",
    "PolynomialModel",
    "PowerReference",
    "PseudoLikelihood",
    "Ridge",
    "ScoreMatching",
    "TiltedReference",
    "lattice",
    "open_samples",
]
