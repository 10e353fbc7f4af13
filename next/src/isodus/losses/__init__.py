"""What is minimised: a file each."""

from .base import Loss, NodeRows, Pointwise
from .interaction_screening import ReferenceScreening, TiltedScreening
from .pseudo_likelihood import PseudoLikelihoodLoss
from .references import PowerReference, Reference, TiltedReference
from .score_matching import ScoreMatchingLoss

__all__ = [
    "Loss",
    "NodeRows",
    "Pointwise",
    "PowerReference",
    "PseudoLikelihoodLoss",
    "Reference",
    "ReferenceScreening",
    "ScoreMatchingLoss",
    "TiltedReference",
    "TiltedScreening",
]
