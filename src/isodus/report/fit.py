"""How the model and samples agree: tests and scores, with what they know of where the samples came from."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..estimators import PseudoLikelihood
from ..goodness import GoodnessOfFit, goodness_of_fit
from ..model import PolynomialModel
from ..samples import standardisation

__all__ = ["Checked", "Learned", "check", "far_away", "in_proportion"]

_FAR = "mass far from the data"
_MOST_SAMPLED = 3000  # terms of a model that is drawn from
_MOST_SCORED = 100_000  # rows that are predicted
_NEAR = 0.02  # spreads within which middles are the same


class Learned(NamedTuple):
    """Whether the model was learned from these samples, and how that is known."""

    same: bool
    told: bool

    @classmethod
    def of(cls, model: PolynomialModel, rows: np.ndarray | None, new: bool | None) -> Learned:
        """By what was said, or else by the number of rows and their middles and spreads."""
        if rows is None or new is not None:
            return cls(new is False, True)
        if model.n_samples is None or model.n_samples != len(rows):
            return cls(False, False)
        try:
            location, scale = standardisation(rows, None, model.names, np.random.default_rng(0))
        except ValueError:  # a constant column, which no model was learned from
            return cls(False, False)
        near = np.abs(location - model.location) <= _NEAR * scale
        alike = np.abs(scale / model.scale - 1) <= _NEAR
        return cls(bool(np.all(near | (model.location == 0)) and np.all(alike | (model.scale == 1))), False)


class Checked(NamedTuple):
    """What was tested; found is None, and why says so, where it could not be; allowed: for having been fitted.

    score, gaussian: mean log P(x_i | rest) a variable, of the model and of a Gaussian with all pairs that was learned
    from the same samples; NaN where the model was not learned from these.
    """

    n: int
    same: bool
    told: bool
    allowed: bool
    found: GoodnessOfFit | None
    why: str
    score: float
    gaussian: float

    @property
    def not_drawn(self) -> str:
        """Why there are no draws of the model; empty if there are."""
        if self.found is None:
            return self.why
        if self.found.draws is not None:
            return ""
        return self.found.note or "no draws were made"


def far_away(model: PolynomialModel) -> bool:
    """Whether its fit has said that its mass is far from the data."""
    return any(_FAR in note for note in model.settings.get("notes", []))


def check(
    source: Any, model: PolynomialModel, X: Any, rows: np.ndarray, weight: np.ndarray | None, learned: Learned
) -> Checked:
    """The tests of fit, by the estimator where it was fitted to these samples, else with the model as it is.

    rows: X as numbers.
    """
    n, scores = len(rows), _scores(model, rows, weight) if learned.same else (np.nan, np.nan)
    if weight is not None:
        return Checked(n, *learned, False, None, "the tests know nothing of weights", *scores)
    far = far_away(model)
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
    return Checked(n, *learned, allowed, found, why, *scores)


def _scores(model: PolynomialModel, rows: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Mean log P(x_i | rest) a variable, of the model and of a Gaussian that is learned here."""
    if model.basis.degree < 3:
        return np.nan, np.nan
    at = np.linspace(0, len(rows) - 1, min(len(rows), _MOST_SCORED)).astype(np.int64)
    some, counts = rows[at], None if weight is None else weight[at]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of the samples has been said
        try:
            gaussian = PseudoLikelihood(degree=2).fit(some, sample_weight=counts).score(some, sample_weight=counts)
        except ValueError:  # more columns than rows
            return np.nan, np.nan
        score = np.average(np.asarray(model.conditional_log_density(some)).mean(axis=1), weights=counts)
    return float(score), float(gaussian)


def in_proportion(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """As many rows, each as often as its weight says, for pictures."""
    until = np.cumsum(weight)
    at = np.searchsorted(until, (np.arange(len(rows)) + 0.5) / len(rows) * until[-1])
    return rows[np.minimum(at, len(rows) - 1)]
