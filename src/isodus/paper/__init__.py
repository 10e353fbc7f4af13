"""The paper's experiments, reproduced: Ren, Misra, Vuffray and Lokhov, "Learning Continuous Exponential Families
Beyond Gaussian". One module a study; `isodus paper` runs them.
"""

from __future__ import annotations

from . import (
    degree_ratio,
    error_1d,
    error_4d,
    gaussian_scaling,
    irrepresentability,
    lambda_sweep,
    n_star,
    nu_delta,
    time_1d,
    time_4d,
    two_d,
)
from .study import Study

__all__ = ["SIZES", "STUDIES", "study_named"]

_IN_ORDER: tuple[Study, ...] = (
    nu_delta,
    gaussian_scaling,
    lambda_sweep,
    n_star,
    irrepresentability,
    error_1d,
    time_1d,
    degree_ratio,
    two_d,
    error_4d,
    time_4d,
)
STUDIES: dict[str, Study] = {study.NAME: study for study in _IN_ORDER}
SIZES = ("quick", "standard", "full")


def study_named(name: str) -> Study:
    """The study of this name."""
    if name not in STUDIES:
        raise ValueError(f"there is no study {name!r}; there are {', '.join(STUDIES)}, and all")
    return STUDIES[name]
