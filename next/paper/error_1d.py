"""Error against n in one dimension."""

from isodus.datasets import paper_1d, paper_1d_theta

from .scaling import HALF_DECADES, AgainstN

TITLE = "Error against n, one variable of degree 4"
STATED = (
    "For E = −x² − 0.5x³ − 2x⁴ both estimators have similar accuracy, and the error falls as 1/√n (45 sets of samples "
    "per point)."
)
PROCESSES = 2
_SIZES = {"tiny": ((300, 1000), 2), "quick": ((1000, 3162, 10_000), 20), "standard": (HALF_DECADES[:5], 240)}
_STUDY = AgainstN(paper_1d, paper_1d_theta, dict(degree=4), _SIZES, seed=6, start=3162)
tasks, repetition, claims, draw = _STUDY.tasks, _STUDY.repetition, _STUDY.claims, _STUDY.draw
