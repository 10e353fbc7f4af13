"""Interaction screening with a tilted reference: a pilot, tilts as convex problems, the distance to the fixed point.

A pilot that is pseudo-likelihood's optimum is the minimiser of the problem that it tilts: the fixed point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from ..losses import TiltedScreening
from .learn import gaussian_fit, learn, no_ridge
from .newton import Fit, newton
from .objective import Objective
from .penalties import ENOUGH_ROWS, Penalty
from .sandwich import inverse, sandwich

__all__ = ["Tilted", "learn_tilted", "tilted_by"]

Array = np.ndarray
_PART, _MOST = 0.25, 0.75  # of the rows: a pilot takes the first at least,
_PER_UNKNOWN = 2 * ENOUGH_ROWS  # and up to the second if this many per local parameter need it
_PILOT_TOL = 0.3
_FAR = 0.45  # standard errors from the fixed point, above which it takes all: a Newton step's, so that .5 is kept
_NEAR, _MORE = 2.0, 2  # standard errors up to which more tilts are tried before, and how many: each about halves it


@dataclass
class Tilted:
    """The answer, as a fit of pseudo-likelihood at that point, and how it was found.

    Attributes
    ----------
    fit : Fit
    pilot : array of shape (K,)
        τ⁰ of the last problem.
    pilot_rows : int
        Rows of the pilot; where these are all, the answer is pseudo-likelihood's.
    n_tilts : int
        Problems that were solved; 0 where the pilot took all rows.
    distance : float
        From the fixed point, of the term that is farthest, in standard errors; NaN where there was no tilt, 0 where
        the fixed point is a closed form.
    """

    fit: Fit
    pilot: Array
    pilot_rows: int
    n_tilts: int
    distance: float


def learn_tilted(
    f: Objective,
    penalty: Penalty | None,
    n_tilts: int,
    tol: float,
    max_iter: int,
    seed: int,
    say: Callable[[str], None],
) -> Tilted:
    """Pilot on a part of the rows, tilts on all, and pseudo-likelihood's Newton step at the answer.

    f: pseudo-likelihood. Where the step is more than .45 standard errors of some term, but not far more, there are up
    to two more tilts. Where these are not enough, or a problem is not solved, the pilot takes all rows instead.
    """
    penalty = None if penalty is None else penalty.of(f)
    n, kept = f.samples.n_rows, f.samples.kept_samples.n_rows
    there = f.terms.rows_per_unknown(f.n)
    rows = int(np.ceil(n * max(_PART, ENOUGH_ROWS / there, min(_MOST, _PER_UNKNOWN / there))))
    distance = np.nan
    exact = gaussian_fit(f, penalty)
    if exact is not None:
        return Tilted(exact, exact.tau, n, 0, 0.0)
    if rows < n and ENOUGH_ROWS * n <= there * kept:
        part = f.take(np.sort(np.random.default_rng([seed, 4]).permutation(kept)[:rows]))
        pilot = learn(part, penalty, _PILOT_TOL, max_iter, seed, progress=say)
        found = _tilts(f, penalty, part, pilot, n_tilts, tol, max_iter, say)
        if found is not None and (found.distance <= _FAR or found.fit.status == "interrupted"):
            return found
        distance = np.inf if found is None else found.distance
    fit = learn(f, penalty, tol, max_iter, seed, progress=say)
    return Tilted(fit, fit.tau, n, 0, distance)


def _tilts(
    f: Objective,
    penalty: Penalty | None,
    part: Objective,
    pilot: Fit,
    n_tilts: int,
    tol: float,
    max_iter: int,
    say: Callable[[str], None],
) -> Tilted | None:
    """The answer of the last tilt and its distance from the fixed point; None where a problem is not solved.

    An interrupted pilot or tilt is the answer, at a distance that is not known.
    """
    ridge = no_ridge(f)
    if penalty is not None and pilot.status == "converged":
        ridge = penalty.ridge(f.terms, part.diagonal(f.terms.T @ pilot.tau), f.n)
    start, fit, k, found = pilot.tau, pilot, 0, None
    while fit.status == "converged" and (found is None or (_FAR < found.distance <= _NEAR and k < n_tilts + _MORE)):
        k += 1
        say(f"tilt {k}")
        start = fit.tau
        fit = newton(f.with_loss(TiltedScreening()).tilted(start), start, ridge, tol, max_iter)
        if k >= n_tilts and fit.status == "converged":
            answer = replace(fit, at=f(fit.tau), point=fit.tau, trace=[*pilot.trace, ("tilts", f.n, fit.n_iter)])
            answer.covariance = covariance = sandwich(f, answer)
            found = Tilted(answer, start, part.samples.n_rows, k, _distance(answer, ridge, covariance))
    if fit.status == "interrupted":
        answer = replace(fit, at=f(fit.tau), point=fit.tau, ridge=ridge)
        return Tilted(answer, start, part.samples.n_rows, k, np.nan)
    return found


def _distance(fit: Fit, ridge: csr_array, covariance: Array) -> float:
    """The largest of a Newton step's terms in standard errors; +∞ where there is none."""
    step = inverse(fit.hessian) @ (fit.at.gradient + ridge @ fit.tau)
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = float(np.max(np.abs(step) / error))
    return distance if np.isfinite(distance) else np.inf


def tilted_by(
    f: Objective, pilot: Array, n_tilts: int, penalty: Penalty | None, tol: float, max_iter: int
) -> tuple[Objective, Fit]:
    """Interaction screening from a given pilot: the objective of the last tilt, and its minimum."""
    fit, penalty = (
        Fit(pilot, f(pilot, 0), pilot, "converged", 0, no_ridge(f)),
        None if penalty is None else penalty.of(f),
    )
    g = f
    for _ in range(n_tilts):
        g = f.with_loss(TiltedScreening()).tilted(fit.tau)
        ridge = no_ridge(f) if penalty is None else penalty.ridge(f.terms, g.diagonal(f.terms.T @ fit.tau), f.n)
        fit = newton(g, fit.tau, ridge, tol, max_iter)
        if fit.status != "converged":
            break
    return g, fit
