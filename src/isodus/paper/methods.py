"""What every study compares: the paper's estimator, its rival, and what the paper could not show."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import ISODUS, PolynomialModel, PseudoLikelihood, ScoreMatching

__all__ = [
    "LIKELIHOOD",
    "OURS",
    "PAPERS",
    "SCORE",
    "Fit",
    "estimators",
    "learn",
    "mean_error",
    "paper_isodus",
    "samples",
]

PAPERS, LIKELIHOOD, SCORE, OURS = "ISODUS, paper", "pseudo-likelihood", "score matching", "ISODUS, default"

Make = Callable[[], Any]


def paper_isodus(**settings: Any) -> ISODUS:
    """The paper's estimator: ν = δ = 2, raw units, the plain objective, geometric mean."""
    paper: dict[str, Any] = dict(nu=2.0, delta=2.0, objective="plain", center=False, scale=False, refine=0)
    return ISODUS(**(paper | dict(consensus="geometric", integrable="warn") | settings))


def estimators(**terms: Any) -> dict[str, Make]:
    """The four, on the same terms; pseudo-likelihood with the paper's geometric mean."""
    return {
        PAPERS: lambda: paper_isodus(**terms),
        LIKELIHOOD: lambda: PseudoLikelihood(**terms, consensus="geometric", integrable="warn"),
        SCORE: lambda: ScoreMatching(**terms),
        OURS: lambda: ISODUS(**terms),
    }


class Fit(NamedTuple):
    """What learning gave, how long it took, how many warnings, and whether every variable converged."""

    estimator: Any
    seconds: float
    warned: int
    converged: bool


def learn(make: Make, X: np.ndarray) -> Fit:
    """One fit; its warnings are counted, as a study has thousands."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        estimator = make().fit(X)
        seconds = time.perf_counter() - started
    return Fit(estimator, seconds, len(caught), set(estimator.status_) == {"converged"})


def samples(truth: PolynomialModel, n: int, *seed: int) -> np.ndarray:
    """Independent and exact."""
    return np.array(truth.sample(n, rng=np.random.default_rng([*seed, n])))


def mean_error(model: PolynomialModel, truth: PolynomialModel) -> float:
    """ε, the mean absolute error over all components of Θ; of a Gaussian in the paper's terms, ½ θ_ii x_i²."""
    true = truth.to_dict()
    found: Mapping[tuple[int, ...], float] = model.to_dict()
    factor = 2.0 if model.basis.degree == 2 else 1.0
    errors = [
        (factor if len(set(term)) == 1 else 1.0) * abs(value - true.get(term, 0.0)) for term, value in found.items()
    ]
    return float(np.mean(errors))
