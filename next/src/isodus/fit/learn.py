"""From a start at degree 2, by rungs of rows, to the optimum with its ridge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from .gaussian import fitted_gaussian, gaussian_of, moments
from .newton import Fit, better, newton
from .objective import At, Objective
from .penalties import Penalty

__all__ = ["MOST_COVARIANCE", "free_start", "gaussian_fit", "learn", "no_ridge", "starts"]

Array = np.ndarray
MOST_COVARIANCE = 4000
"""Unknowns up to which the Hessian of all rows, and so their covariance, is computed."""

_RUNGS = (64, 16, 4)
_EXACT = 1e-9  # gradient of a closed form, in units of the columns' spreads
_MOST_TRIED = 5  # functions of an axis
_ROWS_PER_UNKNOWN, _RUNG_ROWS = 6, 100  # of a node, and in all, that a rung must hold
_START_ROWS, _START_PER_UNKNOWN = 2000, 20  # rows on which degree 2 and its A_kk are found


def no_ridge(f: Objective) -> csr_array:
    """A ridge of zeros."""
    return csr_array((len(f.terms),) * 2)


def free_start(f: Objective, free: Literal["quadratic", "own"] = "quadratic") -> tuple[Array, float]:
    """τ at the optimum of the terms of degree at most 2, or of these the own terms, the others zero; its value."""
    tau, low, value = f.terms.zeros(), f.terms.degrees <= 2, -np.inf
    if free == "own":
        low &= f.terms.orders == 1
    if low.any():
        part = f.only(low)
        ridge = no_ridge(part)
        begin, at = better(part, ridge, *starts(part))
        fit = newton(part, begin, ridge, tol=0.1, at=at)
        tau[low], value = fit.tau, fit.at.value
    return tau, value


def gaussian_fit(f: Objective, penalty: Penalty | None) -> Fit | None:
    """The inverse covariance, where all terms up to degree 2 are on the whole line and it is the optimum; else None."""
    own = penalty is not None and penalty.free == "own"
    if own or np.any(f.terms.product_degrees > 2) or any(axis.gaussian_moments is None for axis in f.axes):
        return None
    p, linear = len(f.axes), bool(np.any(f.terms.degrees == 1))
    if not linear and (len(f.terms) != p * (p + 1) // 2 or f.terms.copies > 1):
        return None
    found = gaussian_of(moments(f.samples, f.axes, f.n_jobs), f.axes, linear)
    if found is None:
        return None
    make = f.terms.gaussian if linear else f.terms.near_gaussian
    tau = make(found.mean, found.precision)
    if tau is None:
        return None
    at = f(tau, 2 if len(f.terms) <= MOST_COVARIANCE else 1)
    if not np.abs(at.gradient).max() < _EXACT:
        return None
    return Fit(tau, at, tau, "converged", 0, no_ridge(f), [("closed form", f.n, 0)])


def starts(f: Objective) -> list[Array]:
    """Zero, which is no density on the whole line, and near Gaussians: of independent columns, and the sample's."""
    X, weight = f.samples.kept
    share = weight / weight.sum()
    mean = share @ X
    variance = np.maximum(share @ (X - mean) ** 2, 1e-300)
    found = fitted_gaussian(X, weight) if f.terms.copies == 1 else None
    starts = [f.terms.zeros(), _with_integrals(f), f.terms.near_gaussian(mean, np.diag(1 / variance))]
    return starts if found is None else [*starts, f.terms.near_gaussian(found.mean, found.precision)]


def _with_integrals(f: Objective) -> Array:
    """τ of own terms where τ = 0 has no integral, as with functions of a user's: the best of −1, 0 and 1 for each."""
    tau, place = f.terms.zeros(), {key: k for k, key in enumerate(f.terms.keys)}
    for i, (axis, x) in enumerate(zip(f.terms.axes, f.samples.kept.columns, strict=True)):
        J = min(len(axis.degrees), _MOST_TRIED)
        keys = [(i,) * (l + 1) for l in range(J)]
        if np.isfinite(axis.integrals(np.zeros((1, len(axis.degrees))), second=False).log_Z[0]):
            continue
        tried = np.zeros((3**J, len(axis.degrees)))
        tried[:, :J] = np.array(list(product((-1.0, 0.0, 1.0), repeat=J)))
        value = tried @ axis.functions(x).mean(axis=0) + axis.integrals(tried, second=False).log_Z
        best = tried[np.argmin(np.where(np.isfinite(value), value, np.inf))]
        for key, coefficient in zip(keys, best, strict=False):
            if key in place:
                tau[place[key]] = coefficient
    return tau


def learn(
    f: Objective,
    penalty: Penalty | None,
    tol: float = 1e-3,
    max_iter: int = 100,
    seed: int = 0,
    start: Array | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Fit:
    """The optimum with its ridge, in stages: A_kk at the optimum of degree 2, solve, A_kk there, solve.

    The first stage climbs rungs: a sixty-fourth of the rows, a sixteenth, a quarter, all; each starts from the better
    of the optimum of degree 2 and the rung before.
    """
    latest = f.terms.zeros() if start is None else start
    trace: list[tuple[str, float, int]] = []

    def solve(
        what: str, part: Objective, tau: Array, ridge: csr_array, tol: float, most: int, at: At | None = None
    ) -> Fit:
        nonlocal latest
        progress(f"{what}, {part.n:,.10g} rows")
        found = newton(part, tau, ridge, tol, most, at)
        latest = found.tau
        trace.append((what, part.n, found.n_iter))
        if found.status == "interrupted":
            raise KeyboardInterrupt
        return found

    try:
        fit = _climbed(f, penalty, tol, max_iter, seed, start, solve)
    except KeyboardInterrupt:
        fit = Fit(latest, f(latest), latest, "interrupted", 0, no_ridge(f))
    return _with_hessian(f, replace(fit, trace=trace))


def _climbed(
    f: Objective,
    penalty: Penalty | None,
    tol: float,
    max_iter: int,
    seed: int,
    start: Array | None,
    solve: Callable[..., Fit],
) -> Fit:
    """Rungs, then all rows in stages; a quadratic loss is solved at once."""
    penalty = None if penalty is None else penalty.of(f)
    exact = gaussian_fit(f, penalty)
    if exact is not None:
        return exact
    if f.loss.quadratic:
        zero = f.terms.zeros()
        begin, ridge = f(zero), no_ridge(f)
        if penalty is not None:
            assert begin.hessian is not None
            own = np.diagonal(begin.hessian) if f.terms.identity else f.diagonal(f.terms.T @ zero)
            ridge = penalty.ridge(f.terms, own, f.n)
        return solve("all rows", f, zero, ridge, tol, max_iter, begin)
    rungs = _rungs(f, seed) if start is None else []
    enough = [part for part in rungs if part.n * f.terms.copies >= max(_START_ROWS, _START_PER_UNKNOWN * f.terms.m)]
    first = enough[0] if enough else f
    low, value = (start, -np.inf) if start is not None else free_start(first, penalty.free if penalty else "quadratic")
    tau = low
    rungs = [part for part in rungs if part.samples.n_rows >= _RUNG_ROWS]
    if not np.any(f.terms.product_degrees > 2):
        rungs = []
        penalty = penalty if penalty is not None and penalty.free == "own" else None
    D = None if penalty is None else first.diagonal(f.terms.T @ tau)

    def ridge_on(part: Objective) -> csr_array:
        return no_ridge(part) if penalty is None or D is None else penalty.ridge(f.terms, D, part.n)

    for part in rungs:
        ridge = ridge_on(part)
        tau, at = better(part, ridge, tau, low, enough=value)
        tau = solve("rung", part, tau, ridge, 0.3, 30, at).tau
    whole = f.kept()
    tau, at = better(whole, ridge_on(whole), tau, low, enough=value)
    at = at if whole is f else None
    for stage in range(1 if penalty is None else penalty.stages(f.terms, f.n), 0, -1):
        fit = solve("all rows", f, tau, ridge_on(f), tol if stage == 1 else max(tol, 0.05), max_iter, at)
        if fit.status not in ("converged", "iteration limit") or stage == 1:
            break
        D = f.diagonal(f.terms.T @ fit.tau)
        tau, at = fit.point, fit.at
    return fit


def _with_hessian(f: Objective, fit: Fit) -> Fit:
    """The fit with the Hessian of all rows, where it was solved with that of a part."""
    if fit.at.product is None or len(f.terms) > MOST_COVARIANCE:
        return fit
    return replace(fit, at=f(fit.point))


def _rungs(f: Objective, seed: int) -> list[Objective]:
    """The objective on prefixes of one salted permutation of the kept rows, and on all of these if there are more."""
    whole = f.kept()
    n = whole.samples.n_rows
    order = np.random.default_rng([seed, 64]).permutation(n)
    sizes = [n // part for part in _RUNGS if f.terms.rows_per_unknown(n // part) >= _ROWS_PER_UNKNOWN]
    rungs = [f.take(np.sort(order[:size])) for size in sizes if size * f.terms.copies >= _RUNG_ROWS]
    return rungs if whole is f else [*rungs, whole]
