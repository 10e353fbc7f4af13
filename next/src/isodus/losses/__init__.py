"""What is minimised: a file each."""

from .base import Loss, Pointwise
from .pseudo_likelihood import PseudoLikelihoodLoss

__all__ = ["Loss", "Pointwise", "PseudoLikelihoodLoss"]
