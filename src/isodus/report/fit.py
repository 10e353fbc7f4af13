"""How the model and samples agree: tests, with what they know of where the samples came from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..comparison import fitted_to
from ..description import far_away
from ..goodness import GoodnessOfFit, goodness_of_fit
from ..model import PolynomialModel

__all__ = ["Checked", "Learned", "check", "in_proportion"]

_MOST_SAMPLED = 3000  # terms of a model that is drawn from


class Learned(NamedTuple):
    """Whether the model was learned from these samples, and how that is known."""

    same: bool
    told: bool

    @classmethod
    def of(cls, model: PolynomialModel, rows: np.ndarray | None, new: bool | None) -> Learned:
        """By what was said, or else by the number of rows and their middles and spreads."""
        if rows is None or new is not None:
            return cls(new is False, True)
        return cls(fitted_to(model, rows), False)


class Checked(NamedTuple):
    """What was tested; found is None, and why says so, where it could not be; allowed: for having been fitted."""

    n: int
    same: bool
    told: bool
    allowed: bool
    found: GoodnessOfFit | None
    why: str

    @property
    def not_drawn(self) -> str:
        """Why there are no draws of the model; empty if there are."""
        if self.found is None:
            return self.why
        if self.found.draws is not None:
            return ""
        return self.found.note or "no draws were made"


def check(
    source: Any, model: PolynomialModel, X: Any, rows: np.ndarray, weight: np.ndarray | None, learned: Learned
) -> Checked:
    """The tests of fit, by the estimator where it was fitted to these samples, else with the model as it is.

    rows: X as numbers.
    """
    n = len(rows)
    if weight is not None:
        return Checked(n, *learned, False, None, "the tests know nothing of weights")
    far = bool(far_away(model))
    not_drawn = "its mass is far from the data" if far else f"it has more than {_MOST_SAMPLED:,} terms"
    n_draws = 0 if far or len(model.basis) > _MOST_SAMPLED else 10_000
    options: dict[str, Any] = dict(n_draws=n_draws, progress=False)
    found, allowed, why = None, learned.same and source is not model, ""
    if allowed:
        try:
            found = source.goodness_of_fit(X, **options)
        except ValueError:  # one whose influence is not known
            allowed = False
    try:
        found = found or goodness_of_fit(model, X, **options)
    except ValueError as error:
        why = " ".join(str(error).split())
    if found is not None and not n_draws:
        found = replace(found, note=f"the model was not sampled: {not_drawn}")
    return Checked(n, *learned, allowed, found, why)


def in_proportion(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """As many rows, each as often as its weight says, for pictures."""
    until = np.cumsum(weight)
    at = np.searchsorted(until, (np.arange(len(rows)) + 0.5) / len(rows) * until[-1])
    return rows[np.minimum(at, len(rows) - 1)]
