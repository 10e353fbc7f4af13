"""What is minimised: a file each."""

from .base import Loss, NodeRows, Pointwise
from .check import check_loss
from .interaction_screening import PowerScreening, TiltedScreening
from .pseudo_likelihood import PseudoLikelihoodLoss
from .score_matching import ScoreMatchingLoss

__all__ = [
    "Loss",
    "NodeRows",
    "Pointwise",
    "PowerScreening",
    "PseudoLikelihoodLoss",
    "ScoreMatchingLoss",
    "TiltedScreening",
    "check_loss",
]
