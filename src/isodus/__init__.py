"""isodus: which continuous variables interact, in pairs, threes and fours, learned from samples."""

from ._version import __version__
from .basis import MonomialBasis
from .comparison import compare, nested_test
from .conditional import Conditional
from .estimators import ISODUS, PseudoLikelihood, ScoreMatching
from .goodness import goodness_of_fit
from .groups import compare_groups
from .lattice import lattice_basis
from .likelihood import match_moments
from .model import PolynomialModel
from .planning import sample_size
from .report import write_report
from .resampling import bootstrap, selection_frequencies
from .streams import open_samples

__all__ = [
    "ISODUS",
    "Conditional",
    "MonomialBasis",
    "PolynomialModel",
    "PseudoLikelihood",
    "ScoreMatching",
    "__version__",
    "bootstrap",
    "compare",
    "compare_groups",
    "goodness_of_fit",
    "lattice_basis",
    "match_moments",
    "nested_test",
    "open_samples",
    "sample_size",
    "selection_frequencies",
    "write_report",
]
