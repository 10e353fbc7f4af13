"""Estimators: checking and wiring."""

from .pseudo_likelihood import PseudoLikelihood

__all__ = ["PseudoLikelihood"]
