"""Is an interaction absent? Score tests from fits without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import chi2
from scipy.stats import f as fisher

from ..data import Block, Clusters
from .newton import Fit, better, newton
from .objective import Objective
from .sandwich import inverse, spread

__all__ = ["MOST_DF", "InteractionTest", "interaction_tests", "wald_tests"]

Array = np.ndarray
MOST_DF = 10  # rows or clusters per term of a block, below which it is not tested
_SCREEN = 0.2  # p above which the one-step statistic is reported
_CLOSE, _THERE = 0.1, 0.03  # standard errors from the optimum without the block, to the last step and to none


@dataclass(frozen=True)
class InteractionTest:
    """A test that a block of terms is zero: statistic, degrees of freedom, p, and how it was computed.

    p is that of χ² at the statistic less the share of unknowns per observed conditional: see `interaction_tests`.
    """

    statistic: float
    df: int
    p_value: float
    method: Literal["score", "one-step", "Wald"]


def wald_tests(tau: Array, covariance: Array, blocks: Sequence[Array], count: float) -> list[InteractionTest]:
    """Wald's tests that blocks of unknowns are zero, of at most a tenth of the rows or clusters that are counted."""
    found = []
    for block in blocks:
        statistic, df = float(tau[block] @ _solved(covariance[np.ix_(block, block)], tau[block])), len(block)
        tested = np.isfinite(statistic) and count >= MOST_DF * df
        p = float(chi2.sf(statistic, df)) if tested else np.nan
        found.append(InteractionTest(statistic if tested else np.nan, df, p, "Wald"))
    return found


def interaction_tests(
    f: Objective,
    fit: Fit,
    covariance: Array,
    blocks: Sequence[Array],
    groups: Clusters | None = None,
    progress: Callable[[int], None] = lambda done: None,
    lags: int = 0,
) -> list[InteractionTest]:
    """A score test for each block of unknowns.

    The fit without a block b has efficient scores e_i = s_ib − A_br A_rr⁻¹ s_ir and u = Σ e_i; uᵀ(Σ e eᵀ)⁻¹u is χ².
    To first order it is W/(1 + W/n) with Wald's statistic W: the one-step form, which is reported where Wald's p is at
    least .2. covariance: of τ, by the sandwich. groups: clusters, within which scores are added.
    lags: of rows that depend on those before them, with Bartlett's weights.

    Σ e eᵀ at estimated unknowns is too small by their number over that of the conditionals that were observed, n per
    node, as a residual variance is. p is of the statistic S times 1 − tr(A⁻¹(A − R))/(n p), R the ridge. With G
    clusters it is of Hotelling's F, (S/df)/((G − S)/(G − df)). Blocks of more than a tenth of the rows or clusters
    are not tested.
    """
    bread = inverse(fit.hessian)
    count = f.n if groups is None else float(groups.size)
    unknowns = len(fit.tau) - fit.ridge.multiply(bread).sum()
    share = max(0.0, 1 - unknowns / (f.n * len(f.axes)))

    def tested(statistic: float, df: int, method: Literal["score", "one-step"]) -> InteractionTest:
        if not np.isfinite(statistic) or count < MOST_DF * df:
            return InteractionTest(np.nan, df, np.nan, method)
        if groups is None:
            return InteractionTest(statistic, df, float(chi2.sf(share * statistic, df)), method)
        ratio = (statistic / df) / max((count - statistic) / (count - df), 1e-300)
        return InteractionTest(statistic, df, float(fisher.sf(share * ratio, df, count - df)), method)

    found = []
    for done, block in enumerate(blocks):
        theta, C = fit.tau[block], covariance[np.ix_(block, block)]
        wald = float(theta @ _solved(C, theta))
        one_step = wald / (1 + wald / count)
        df = len(block)
        if not np.isfinite(wald) or count < MOST_DF * df or chi2.sf(wald, df) >= _SCREEN:
            found.append(tested(one_step, df, "one-step"))
        else:
            found.append(tested(_score_statistic(f, fit, bread, block, groups, lags), df, "score"))
        progress(done + 1)
    return found


def _score_statistic(f: Objective, fit: Fit, bread: Array, block: Array, groups: Clusters | None, lags: int) -> float:
    """uᵀ(Σ e eᵀ)⁻¹u at the optimum without the block, by Newton's steps."""
    rest = np.setdiff1d(np.arange(len(fit.tau)), block)
    try:
        tau, M = _stepped_without(f, fit, bread, block, rest)
    except (np.linalg.LinAlgError, ValueError):  # the whole fit's quadratic is of no use there
        try:
            tau = _fitted_without(f, fit, block)
            M, step, _ = _at(f, fit, tau, block, rest)
            tau[rest] -= step
        except (np.linalg.LinAlgError, ValueError):
            return np.nan
    P = np.zeros((len(block), len(tau)))  # e = P s
    P[:, block], P[:, rest] = np.eye(len(block)), -M.T
    unknowns = [own for own, _ in f.terms.local_T]
    parts = [P[:, own] for own in unknowns]

    def scored(add: Callable[[Block, Array], Any]) -> Any:
        def efficient(block: Block, S: Iterator[Array]) -> Any:
            return add(block, np.sum([Q @ s for Q, s in zip(parts, S, strict=True)], axis=0))

        return f.node_scores({i: tau[own] for i, own in enumerate(unknowns)}, efficient)

    around, u = spread(scored, groups, lags)
    return float(u @ _solved(around, u))


def _stepped_without(f: Objective, fit: Fit, bread: Array, block: Array, rest: Array) -> tuple[Array, Array]:
    """τ at the optimum without a block, by steps from `_first_guess`, and A_rr⁻¹ A_rb; an error where they fail."""
    tau, last = _first_guess(f, fit, bread, block, rest), np.inf
    while last >= _CLOSE:
        M, step, distance = _at(f, fit, tau, block, rest)
        if not distance < 0.5 * last:
            raise ValueError("steps do not become shorter")
        if distance >= _THERE:  # efficient scores are of second order in what is left
            tau[rest] -= step
        last = distance
    return tau, M


def _first_guess(f: Objective, fit: Fit, bread: Array, block: Array, rest: Array) -> Array:
    """τ near the optimum without a block: that of the whole fit's quadratic, and from there one step.

    For it, gradient and Hessian of the nodes that have the block are taken anew; others change by much less.
    """
    tau = fit.tau - bread[:, block] @ np.linalg.solve(bread[np.ix_(block, block)], fit.tau[block])
    tau[block] = 0.0
    A, g = fit.hessian, np.zeros(len(tau))
    unknowns = {i: own for i, (own, _) in enumerate(f.terms.local_T) if np.isin(block, own).any()}
    before, after = (f.at_nodes({i: at[own] for i, own in unknowns.items()}) for at in (fit.point, tau))
    for i, own in unknowns.items():
        old, new = np.asarray(before[i].hessian), np.asarray(after[i].hessian)
        g[own] += after[i].gradient - before[i].gradient - old @ (tau - fit.point)[own]
        A[np.ix_(own, own)] += new - old
    tau[rest] -= cho_solve(cho_factor(A[np.ix_(rest, rest)]), g[rest])
    return tau


def _at(f: Objective, fit: Fit, tau: Array, block: Array, rest: Array) -> tuple[Array, Array, float]:
    """A_rr⁻¹ A_rb, Newton's step of the other unknowns, and its length in standard errors."""
    at = f(tau)
    A, g = Fit(tau, at, tau, "converged", 0, fit.ridge).hessian, (at.gradient + fit.ridge @ tau)[rest]
    factor = cho_factor(A[np.ix_(rest, rest)])
    step = cho_solve(factor, g)
    return cho_solve(factor, A[np.ix_(rest, block)]), step, float(np.sqrt(max(f.n * (g @ step), 0.0)))


def _fitted_without(f: Objective, fit: Fit, block: Array) -> Array:
    """τ at the optimum without a block, by Newton."""
    keep = np.ones(len(fit.tau), bool)
    keep[block] = False
    part, ridge = f.only(keep), fit.ridge[keep][:, keep]
    tau, start = np.zeros(len(keep)), better(part, ridge, fit.tau[keep], np.zeros(keep.sum()))[0]
    tau[keep] = newton(part, start, ridge, tol=_CLOSE).tau
    return tau


def _solved(C: Array, v: Array) -> Array:
    """C⁻¹ v through a matrix of unit diagonal; NaN where C is not positive definite."""
    size = np.sqrt(np.maximum(np.diag(C), 1e-300))
    try:
        return _solve_positive(C / size / size[:, None], v / size) / size
    except (np.linalg.LinAlgError, ValueError):
        return np.full_like(v, np.nan)


def _solve_positive(A: Array, b: Array) -> Array:
    return cho_solve(cho_factor(A), b)
