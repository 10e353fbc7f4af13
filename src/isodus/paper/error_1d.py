"""Error against n in one dimension."""

from __future__ import annotations

from typing import Any

from ..datasets import paper_1d
from .scaling import HALF_DECADES, ErrorStudy

NAME = "error-1d"
TITLE = "Error against n, one variable, degree 4"
STATED = (
    "For E = −x² − 0.5x³ − 2x⁴ both estimators have a similar accuracy, and their errors fall as 1/√n (45 sets of "
    "samples a point)."
)
TIMED = False
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=6, sets=12, n=HALF_DECADES[:5]),
    "standard": dict(seed=6, sets=180, n=HALF_DECADES),  # 45 leave the slope of three parameters open
    "full": dict(seed=6, sets=180, n=HALF_DECADES),
}
_STUDY = ErrorStudy(
    paper_1d,
    terms=dict(degree=4, min_degree=2),
    start=3162,
    seconds=(0.1, 2.5e-6),
    title="x² + 0.5 x³ + 2 x⁴",
    papers=45,
)
tasks, cost, repetition = _STUDY.tasks, _STUDY.cost, _STUDY.repetition
claims, remarks, draw = _STUDY.claims, _STUDY.remarks, _STUDY.draw
