"""Each variable with a problem of its own, in powers of y, and one estimate from their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, get_args

import numpy as np

from .._core.notes import Note, listed
from ..data import Clusters
from ..fit.consensus import Consensus, combined
from ..fit.held_out import HeldOut, Refit, looked_at
from ..fit.learn import no_ridge, starts
from ..fit.newton import Fit, Status
from ..fit.nodewise import NodeFit, learn_nodes
from ..fit.objective import Objective
from ..fit.penalties import ENOUGH_ROWS
from ..losses import Loss
from ..terms import Terms

__all__ = ["Outcome", "Solved", "by_nodes", "in_powers"]

Array = np.ndarray
_FOLD_TOL = 0.3
_RUNG = 16  # every how many rows nodes are solved first


class Solved(NamedTuple):
    """An estimate: its objective and fit, how a fold is fitted from it, and what else is known."""

    f: Objective
    fit: Fit
    refit: Refit
    covariance: Callable[[Clusters | None, int], Array] | None = None
    """Of clusters and lags, where it is not the sandwich of the fit."""
    notes: list[Note] = []  # noqa: RUF012
    minimised: Objective | None = None
    """What was minimised, where it is not f."""


class Outcome(NamedTuple):
    """What a fit has found: the estimate, the path of strengths, the held-out score, and attributes of some fits."""

    solved: Solved
    path: Any = None
    held_out: HeldOut | None = None
    also: Mapping[str, Any] = {}


def in_powers(f: Objective, loss: Loss) -> Objective:
    """The objective of a loss whose unknowns are coefficients of powers of y, not of orthonormal functions."""
    terms = f.terms
    keyed = Terms(terms.axes, terms.keys, None, in_powers=True) if terms.identity else terms
    return Objective(loss, keyed, f.samples, f.n_jobs)


def by_nodes(
    f: Objective, loss: Loss, kind: Consensus, tol: float, max_iter: int, remedy: str
) -> tuple[Solved, list[NodeFit], Array]:
    """The consensus of all variables' answers, these answers, and the largest leverage of a row in each.

    f: the objective that scores and folds are taken from. remedy: for variables without an answer.
    """
    g = in_powers(f, loss)
    fits = learn_nodes(g, _begin(g, max_iter), tol, max_iter, keep=True)

    def back(found: Array, of: Objective = g) -> Array:
        """From the unknowns of the nodes to those of the model."""
        return of.terms.T @ found if f.terms.identity else found

    def covariance(clusters: Clusters | None, lags: int) -> Array:
        return back(back(found.covariance(clusters, lags)).T)

    def refit(part: Objective, start: Array, n: float) -> Array:
        h = in_powers(part, loss)
        again = learn_nodes(h, _begin(h, max_iter), _FOLD_TOL, max_iter)
        return back(combined(kind, h, again).tau, h)

    found = combined(kind, g, fits)
    tau = back(found.tau)
    status, steps = max((fit.status for fit in fits), key=get_args(Status).index), max(fit.n_iter for fit in fits)
    part = looked_at(f)
    fit = Fit(tau, replace(part(tau, 0), n=part.n), tau, status, steps, no_ridge(f), [("nodes", f.n, steps)])
    return Solved(f, fit, refit, covariance, _failed(f, fits, remedy), g), fits, found.leverage


def _begin(g: Objective, max_iter: int) -> list[Array | Mapping[int, Array]]:
    """Where the nodes begin: the answers of a part of the rows, where these are enough."""
    part = g.kept()
    rows = np.arange(0, part.samples.n_rows, _RUNG if part is g else 1)
    if g.terms.rows_per_unknown(len(rows)) < ENOUGH_ROWS:
        return [*starts(g)]
    part = part.take(rows)
    fits = learn_nodes(part, starts(part), _FOLD_TOL, max_iter)
    return [{i: fit.tau for i, fit in enumerate(fits)}] if all(f.status == "converged" for f in fits) else [*starts(g)]


def _failed(f: Objective, fits: list[NodeFit], remedy: str) -> list[Note]:
    """A warning of columns whose problems were not solved."""
    found = {name: fit.status for name, fit in zip(f.samples.names, fits, strict=True) if fit.status != "converged"}
    if not found or "interrupted" in found.values():
        return []
    text = (
        f"The problems of columns {listed(list(found))} have no answer ({', '.join(sorted(set(found.values())))}), so "
        f"that their terms are not reliable. Lower the degree, or {remedy}."
    )
    return [Note("nodes failed", "warning", tuple(found), {}, text)]
