"""What a model that was estimated knows of its fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._core.notes import Note
from ..fit.score_tests import InteractionTest

__all__ = ["Fitted", "Tests"]

Array = np.ndarray
Covariance = Array | Callable[[], Array | None] | None
Tests = Sequence[InteractionTest] | Callable[[], Sequence[InteractionTest]] | None


@dataclass
class Fitted:
    """How a model was estimated, and how sure it is.

    Parameters
    ----------
    estimator : str
        The estimator's class, such as "PseudoLikelihood".
    n : float
        The sum of weights, Kish's (Σ w)²/Σ w² of importance weights.
    n_rows : int
        The number of rows.
    status : str
        "converged", or why the fit ended.
    minima, maxima : array of shape (p,)
        The range of the data.
    notes : list of Note
    covariance : array of shape (K, K), or a function that makes it, optional
        Of the errors of τ, by the sandwich. A function is called when it is first needed.
    penalty : str
        In words, such as "weak ridge".
    columns : tuple of str, optional
        The columns of the user's frame; None if the data had no names.
    tests : list of InteractionTest, or a function that makes it, optional
        One for each entry of ``terms.interactions`` with two variables or more, in its order. A function is called when
        a test is first needed; also on saving and pickling, so that a loaded model has its tests.
    held_out : mapping, optional
        The fields of `isodus.fit.held_out.HeldOut`.
    selected : bool
        Whether the terms were chosen by the same rows, so that there are no tests.
    means, sds : array of shape (p,), optional
        Means and standard deviations of the data, which draws are compared with.
    """

    estimator: str
    n: float
    n_rows: int
    status: str
    minima: Array
    maxima: Array
    notes: list[Note] = field(default_factory=list)
    covariance: Covariance = None
    penalty: str = "no penalty"
    columns: tuple[str, ...] | None = None
    tests: Tests = None
    held_out: Mapping[str, Any] | None = None
    selected: bool = False
    means: Array | None = None
    sds: Array | None = None

    def __post_init__(self) -> None:
        if not callable(self.covariance):
            self.covariance = _symmetric(self.covariance)

    def tau_covariance(self) -> Array | None:
        """The covariance of τ, computed once; None if there is none."""
        if callable(self.covariance):
            self.covariance = _symmetric(self.covariance())
        return self.covariance

    def interaction_tests(self) -> Sequence[InteractionTest] | None:
        """The tests, computed once; None if there are none."""
        if callable(self.tests):
            self.tests = list(self.tests())
        return self.tests

    def __getstate__(self) -> dict[str, Any]:
        self.interaction_tests()
        self.tau_covariance()
        return self.__dict__.copy()


def _symmetric(covariance: Array | None) -> Array | None:
    """Exactly, so that a file needs one half only."""
    return None if covariance is None else (covariance + covariance.T) / 2
