"""Score matching: one linear system, without integrals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..fit.objective import Objective
from ..losses import ScoreMatchingLoss
from .base import PolynomialEstimator

__all__ = ["ScoreMatching"]


@dataclass(eq=False, repr=False)
class ScoreMatching(PolynomialEstimator):
    """Estimate a polynomial exponential family by score matching.

    It minimises Σ_i ½⟨h (s_i − s*_i)²⟩, the distance of the model's score s = ∂ log μ/∂x_i from that of the data's
    density, which by parts needs the data alone (Hyvärinen 2005; with weights h that vanish at ends, Yu, Drton and
    Shojaie 2019). The problem is one linear system for all variables, so it is the fastest estimator. It loses on
    separated modes, as the score does not see how much mass each has.

    Parameters
    ----------
    degree, max_order, min_degree, basis, support, scale, penalty, consensus
    tol, max_iter, n_jobs, progress, random_state
        As in `PseudoLikelihood`. Variables need derivatives, so those of a few values are not supported.

    Attributes
    ----------
    model_, status_, notes_, held_out_, path_, ridge_, n_iter_, n_features_in_, feature_names_in_
        As in `PseudoLikelihood`.

    Examples
    --------
    >>> from isodus import ScoreMatching
    >>> from isodus.datasets import paper_pair
    >>> est = ScoreMatching(degree=4).fit(paper_pair(5000))
    >>> est.status_
    'converged'
    """

    def _loss(self) -> ScoreMatchingLoss:
        return ScoreMatchingLoss()

    @property
    def _on_moments(self) -> Literal["score matching"]:
        return "score matching"

    def _check_axes(self, f: Objective) -> None:
        for name, axis in zip(f.samples.names, f.axes, strict=True):
            if axis.derivatives is None or axis.boundary is None:
                raise ValueError(
                    f"Column {name!r} is on an axis without derivatives, which score matching needs. "
                    "Use PseudoLikelihood or ISODUS, or a support with derivatives."
                )
