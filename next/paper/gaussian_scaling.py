"""Error against n for ten Gaussian variables."""

from isodus.datasets import gaussian, gaussian_theta, paper_precision

from .scaling import AgainstN

TITLE = "Error against n, ten Gaussian variables"
STATED = (
    "With δ = ν = 2 the error falls as 1/√n and is similar to that of pseudo-likelihood (p = 10, 25 sets of samples "
    "per point)."
)
PROCESSES = 2
_NS = (100, 500, 1000, 5000, 10_000, 30_000)
_SIZES = {"tiny": ((300, 1000), 2), "quick": ((1000, 3000), 6), "standard": (_NS, 25)}
_STUDY = AgainstN(
    lambda n, rng: gaussian(n, paper_precision(), rng),
    lambda: gaussian_theta(paper_precision()),
    dict(degree=2),
    _SIZES,
    seed=2,
    start=1000,
)
tasks, repetition, claims, draw = _STUDY.tasks, _STUDY.repetition, _STUDY.claims, _STUDY.draw
