"""What the studies compare, and the error of an estimate."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from isodus import ISODUS, PowerReference, PseudoLikelihood, ScoreMatching

PAPER, LIKELIHOOD, SCORE = "ISODUS, paper", "pseudo-likelihood, paper", "score matching"
OURS, JOINT = "ISODUS, default", "pseudo-likelihood, default"
METHODS = (PAPER, LIKELIHOOD, SCORE, OURS)

Make = Callable[[], Any]
Theta = Mapping[tuple[int, ...], float]


def paper_isodus(nu: float = 2.0, delta: float = 2.0, **options: Any) -> ISODUS:
    """The paper's estimator: units of x, node by node, the geometric mean of the answers."""
    reference = PowerReference(nu=nu, delta=delta)
    return ISODUS(**dict(reference=reference, scale=None, consensus="geometric", min_degree=2, n_jobs=1) | options)


def estimators(**terms: Any) -> dict[str, Make]:
    """All of them on the same terms. The first two are the paper's."""
    plain = dict(min_degree=2, n_jobs=1) | terms
    raw = dict(penalty=None, scale=None) | plain
    return {
        PAPER: lambda: paper_isodus(**terms),
        LIKELIHOOD: lambda: PseudoLikelihood(consensus="geometric", **raw),
        SCORE: lambda: ScoreMatching(**raw),
        OURS: lambda: ISODUS(**plain),
        JOINT: lambda: PseudoLikelihood(**plain),
    }


class Fit(NamedTuple):
    """θ term by term in powers of x, empty where it has no density; seconds of a core, and steps of Newton's method."""

    theta: Theta
    seconds: float
    steps: int
    converged: bool


def learn(make: Make, X: np.ndarray) -> Fit:
    """One fit."""
    estimator, started = make(), time.process_time()
    try:
        estimator.fit(X)
    except ValueError as error:
        if "cannot be integrated" not in str(error):
            raise
        return Fit({}, time.process_time() - started, 0, False)
    took = time.process_time() - started
    return Fit(estimator.model_.to_dict(), took, estimator.n_iter_, estimator.status_ == "converged")


def mean_error(theta: Theta, truth: Theta) -> float:
    """ε, the mean of |θ̂ − θ| over all terms; of a Gaussian in the paper's terms, ½ θ_ii x_i²."""
    if not theta:
        return float("nan")
    factor = 2.0 if max(map(len, theta)) == 2 else 1.0
    errors = [(factor if k[0] == k[-1] else 1.0) * abs(v - truth.get(k, 0.0)) for k, v in theta.items()]
    return float(np.mean(errors))


def generator(*seed: int) -> np.random.Generator:
    """Of a study, a set and whatever else distinguishes samples."""
    return np.random.default_rng(seed)
