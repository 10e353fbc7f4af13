"""What is minimised: a file each."""

from .base import Loss, NodeRows, Pointwise
from .interaction_screening import PowerScreening, TiltedScreening
from .pseudo_likelihood import PseudoLikelihoodLoss
from .references import PowerReference, TiltedReference
from .score_matching import ScoreMatchingLoss

__all__ = [
    "Loss",
    "NodeRows",
    "Pointwise",
    "PowerReference",
    "PowerScreening",
    "PseudoLikelihoodLoss",
    "ScoreMatchingLoss",
    "TiltedReference",
    "TiltedScreening",
]
