"""Ridge("cv"): two paths of strengths by warm starts, and the smallest mean loss over five folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..data import Samples
from .gaussian import fitted_gaussian
from .held_out import HeldOut, fold_objectives, node_scores, reference_scores
from .learn import free_start, no_ridge
from .newton import Fit, newton
from .objective import Objective
from .penalties import ridge_matrix
from .rank import dependent_columns

__all__ = ["STRENGTHS", "Path", "Point", "ridge_by_folds"]

Array = np.ndarray
STRENGTHS = (1e8, 1e5, 1e4, 1e3, 100.0, 10.0, 1.0, 0.1, 0.01, 1e-3, 1e-4)
_RISE = 0.3  # nats per variable above the best mean, where a path ends
Free = Literal["quadratic", "own"]


@dataclass(frozen=True)
class Point:
    """One strength of a path: `strength` is t, `free` what is not shrunk, `score` the mean over folds."""

    strength: float
    free: str
    score: float
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Path:
    """All strengths that were tried, the best of them, and the Gaussian's score on the same folds."""

    points: tuple[Point, ...]
    best: Point
    reference_score: float
    reference: str
    reference_scores: tuple[float, ...]

    @property
    def held_out(self) -> HeldOut:
        """What the best strength scores."""
        gains = tuple(s - r for s, r in zip(self.best.scores, self.reference_scores, strict=True))
        return HeldOut(self.best.score, self.reference_score, self.reference, gains)


def ridge_by_folds(
    f: Objective,
    build: Callable[[Samples], Objective],
    fold: Array,
    tol: float = 1e-3,
    max_iter: int = 100,
    progress: Callable[[str], None] = lambda what: None,
) -> tuple[Fit, Path | None]:
    """The fit with the strength that predicts best, and the path.

    "quadratic" leaves terms of degree at most 2 free and begins at the Gaussian; "own" leaves terms of one variable
    of degree at most 2 free and begins at independent variables. The Gaussian itself, with Ledoit's and Wolf's
    covariance below five rows per column, is one more candidate where the axes can hold it. An interrupt ends the
    paths, and what was best so far is fitted.
    """
    pairs = fold_objectives(f, build, fold)
    compared = [reference_scores(*pair) for pair in pairs]
    columns, name = compared[0][0], compared[0][2]
    reference = tuple(score for _, score, _ in compared)
    frees: tuple[Free, ...] = ("quadratic", "own") if len(f.axes) > 1 else ("quadratic",)
    if any(dependent_columns(part.samples) for part, _ in pairs):
        frees = ("own",)  # the Gaussian of copies, or of fewer rows than columns, does not exist
    gaussian, points, interrupted = _gaussian_tau(f), list[Point](), False
    if gaussian is not None:
        points.append(Point(np.inf, "Gaussian", float(np.mean(reference)), reference))
    try:
        for free in frees:
            for point in _scored(pairs, columns, free, progress):
                points.append(point)
    except KeyboardInterrupt:
        interrupted = True
    if not points:
        tau = free_start(f, frees[0])[0]
        return Fit(tau, f(tau), tau, "interrupted", 0, no_ridge(f)), None
    chosen = max(points, key=lambda point: point.score)
    path = Path(tuple(points), chosen, float(np.mean(reference)), name, reference)
    fit = _refit(f, chosen, gaussian, tol, max_iter)
    return (replace(fit, status="interrupted") if interrupted else fit), path


def _scored(
    pairs: list[tuple[Objective, Objective]], columns: Array, free: Free, progress: Callable[[str], None]
) -> Iterator[Point]:
    """The points of one path, from the strongest ridge on."""
    taus = [free_start(part, free)[0] for part, _ in pairs]
    D = [part.diagonal(part.terms.T @ tau) for (part, _), tau in zip(pairs, taus, strict=True)]
    best = -np.inf
    for strength in STRENGTHS:
        progress(f"strength {strength:g}, {free} terms free")
        scores = []
        for k, (part, rest) in enumerate(pairs):
            ridge = ridge_matrix(part.terms, D[k], part.n, strength, free)
            step = newton(part, taus[k], ridge, tol=0.1, max_iter=60)
            if step.status == "interrupted":
                raise KeyboardInterrupt
            taus[k] = step.tau
            scores.append(float(node_scores(rest, taus[k])[columns].mean()))
        mean = float(np.mean(scores))
        point = Point(strength, free, mean if np.isfinite(mean) else -np.inf, tuple(scores))
        yield point
        best = max(best, point.score)
        if not point.score > best - _RISE:
            return


def _gaussian_tau(f: Objective) -> Array | None:
    found = fitted_gaussian(f.samples.kept.X, f.samples.kept.weight)
    return None if found is None else f.terms.gaussian(found.mean, found.precision)


def _refit(f: Objective, chosen: Point, gaussian: Array | None, tol: float, max_iter: int) -> Fit:
    """All rows at the chosen strength, by the strengths before it."""
    free: Free = "own" if chosen.free == "own" else "quadratic"
    tau = free_start(f, free)[0]
    D = f.diagonal(f.terms.T @ tau)
    if chosen.free == "Gaussian" and gaussian is not None:
        ridge = ridge_matrix(f.terms, D, f.n, STRENGTHS[0], free)
        return Fit(gaussian, f(gaussian), gaussian, "converged", 0, ridge, [("Gaussian", f.n, 0)])
    trace = []
    for strength in (t for t in STRENGTHS if t > chosen.strength):
        step = newton(f, tau, ridge_matrix(f.terms, D, f.n, strength, free), tol=0.3, max_iter=30)
        tau = step.tau
        trace.append((f"strength {strength:g}", f.n, step.n_iter))
    ridge = ridge_matrix(f.terms, D, f.n, chosen.strength, free)
    fit = newton(f, tau, ridge, tol, max_iter)
    return replace(fit, trace=[*trace, (f"strength {chosen.strength:g}", f.n, fit.n_iter)])
