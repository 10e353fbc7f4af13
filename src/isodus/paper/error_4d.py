"""Error against n in four dimensions."""

from __future__ import annotations

from typing import Any

from ..datasets import paper_4d
from .scaling import HALF_DECADES, ErrorStudy

NAME = "error-4d"
TITLE = "Error against n, four variables, degree 4"
STATED = (
    "On a four-dimensional four-body distribution that is two independent pairs, which the estimator is not told, the "
    "error falls as 1/√n (45 sets of samples a point)."
)
TIMED = False
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=10, sets=6, n=HALF_DECADES[:5]),
    "standard": dict(seed=10, sets=45, n=HALF_DECADES),
    "full": dict(seed=10, sets=45, n=HALF_DECADES),
}
_STUDY = ErrorStudy(
    paper_4d,
    terms=dict(degree=4, min_degree=2, max_order=None),
    start=31_623,
    seconds=(0.4, 2e-5),
    title="Four variables, 65 terms of degree 2 to 4",
    papers=45,
    compared=False,
)
tasks, cost, repetition = _STUDY.tasks, _STUDY.cost, _STUDY.repetition
claims, remarks, draw = _STUDY.claims, _STUDY.remarks, _STUDY.draw
