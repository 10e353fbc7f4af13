"""Error against n in four dimensions."""

from isodus.datasets import paper_4d, paper_4d_theta

from .scaling import HALF_DECADES, AgainstN

TITLE = "Error against n, four variables of degree 4"
STATED = (
    "For two independent pairs of variables, which the estimator is not told, with all 65 terms of degree 2 to 4 the "
    "error falls as 1/√n (45 sets of samples per point)."
)
PROCESSES = 2
_SIZES = {"tiny": ((200, 400), 2), "quick": ((1000, 3162), 3), "standard": (HALF_DECADES[:5], 16)}
_TERMS = dict(degree=4, max_order=4)
_STUDY = AgainstN(paper_4d, paper_4d_theta, _TERMS, _SIZES, seed=10, start=31_623, compared=False)
tasks, repetition, claims, draw = _STUDY.tasks, _STUDY.repetition, _STUDY.claims, _STUDY.draw
