"""Error against n for ten Gaussian variables."""

from __future__ import annotations

from typing import Any

from ..datasets import gaussian_10
from .scaling import ErrorStudy

NAME = "gaussian-scaling"
TITLE = "Error against n, ten Gaussian variables"
STATED = (
    "With δ = ν = 2 the mean absolute error falls as 1/√n and is in absolute terms similar to that of "
    "pseudo-likelihood (10 variables, 25 sets of samples a point)."
)
TIMED = False
_N = [100, 500, 1000, 5000, 10_000, 50_000, 100_000]
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=2, sets=8, n=_N[:6]),
    "standard": dict(seed=2, sets=100, n=_N),  # 25 leave slopes open
    "full": dict(seed=2, sets=100, n=_N),
}
_STUDY = ErrorStudy(
    gaussian_10,
    terms=dict(degree=2, min_degree=2),
    start=10_000,
    seconds=(0.15, 8e-6),
    title="Ten Gaussian variables",
    papers=25,
)
tasks, cost, repetition = _STUDY.tasks, _STUDY.cost, _STUDY.repetition
claims, remarks, draw = _STUDY.claims, _STUDY.remarks, _STUDY.draw
