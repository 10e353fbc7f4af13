"""Notes about a fit: what went wrong, what it predicts, and how far its tests hold."""

from __future__ import annotations

import numpy as np

from .._core.notes import Note
from ..fit.held_out import HeldOut
from ..fit.newton import Fit
from ..fit.objective import Objective
from ..fit.path import Path
from ..fit.penalties import Ridge, WeakRidge
from ..fit.score_tests import MOST_DF

__all__ = ["ENOUGH_ROWS", "FIVE_FOLDS", "check_finite", "fit_notes"]

ENOUGH_ROWS = 100
"""Per local parameter, below which a fit is also scored on rows that it has not seen."""

FIVE_FOLDS = 20
"""Rows per local parameter from which five folds are enough for that; below, there are ten."""

_WORSE = 0.01  # nats per variable
_FEW_GROUPS = 40
_TEST_ROWS = {2: 15, 3: 100}  # per local parameter, from which score tests of an order hold their level

_STATUS = {
    "iteration limit": "The fit used all {steps} steps of max_iter before it converged, so that estimates and standard "
    "errors are not final. Raise max_iter, lower the degree, or use penalty=Ridge('cv').",
    "stalled": "The fit stalled: no step lowers the objective, and the optimum was not reached. Columns that are "
    "nearly determined by others are the usual reason. Drop them, lower the degree, or use penalty=Ridge('cv').",
    "singular": "The Hessian of the fit is singular, so that the data do not determine all terms. "
    "Lower the degree, drop columns that others determine, or use penalty=Ridge('cv').",
    "interrupted": "The fit was interrupted and holds its last step. Fit again for a final answer.",
}


def fit_notes(
    f: Objective,
    fit: Fit,
    penalty: WeakRidge | Ridge | None,
    scored: HeldOut | None,
    path: Path | None,
    covariance: np.ndarray | None,
    groups: np.ndarray | None = None,
) -> list[Note]:
    """All that a fit has to report."""
    notes = []
    rows = f.n * f.terms.copies / max(f.terms.m, 1)
    if fit.status in _STATUS:
        text = _STATUS[fit.status].format(steps=fit.n_iter)
        notes.append(Note(fit.status, "warning", (), {"steps": fit.n_iter}, text))
    notes += _unresolved(f, fit)
    if scored is not None:
        notes += _held_out(scored, penalty)
    if path is not None and path.best.free == "Gaussian":
        text = "Of all strengths, none predicts held-out rows better than the Gaussian, which is therefore the model."
        notes.append(Note("Gaussian chosen", "info", (), {"score": path.best.score}, text))
    if covariance is None or not np.all(np.isfinite(covariance)):
        text = "There are no standard errors: the Hessian is too large or not positive definite."
        notes.append(Note("no standard errors", "warning", (), {}, text))
    elif isinstance(penalty, Ridge):
        text = "Standard errors and tests treat the ridge as fixed. Shrunk terms are biased toward zero."
        notes.append(Note("ridge", "info", (), {}, text))
    else:
        notes += _levels(f, rows)
    return [*notes, *_few(f, groups)]


def _few(f: Objective, groups: np.ndarray | None) -> list[Note]:
    """Warnings where rows or clusters are too few for errors by clusters, or for tests."""
    count = f.samples.n_rows if groups is None else int(groups.max()) + 1
    what, notes = "rows" if groups is None else "groups", []
    if groups is not None and count < _FEW_GROUPS:
        text = (
            f"There are {count} groups, and errors by groups are too small with fewer than {_FEW_GROUPS}. "
            "Do not rely on intervals and p-values of single terms. Use finer groups if their rows are independent."
        )
        notes.append(Note("few groups", "warning", (), {"groups": count}, text))
    largest = max((len(block) for v, block in f.terms.interactions.items() if len(v) > 1), default=0)
    if count < MOST_DF * largest:
        text = (
            f"{count:,} {what} are too few to test interactions of {largest} terms, so some have no p-value. "
            f"Use at least {MOST_DF} {what} per term of an interaction, or a lower degree."
        )
        notes.append(Note("no tests", "warning", (), {what: count, "terms": largest}, text))
    return notes


def check_finite(f: Objective, fit: Fit) -> None:
    """An error where the objective has no value: conditional densities so narrow that no number of nodes finds them."""
    if np.isfinite(fit.at.value):
        return
    lost = ~np.isfinite(fit.at.nodes) | (fit.at.unresolved > 0)
    names = ", ".join(repr(name) for name, bad in zip(f.samples.names, lost, strict=True) if bad)
    raise ValueError(
        f"Conditional densities of columns {names} cannot be integrated: these columns are nearly determined by other "
        "columns, or their terms have no integral. Drop near-copies, use degree=2, or add terms that fall at both "
        "ends."
    )


def _unresolved(f: Objective, fit: Fit) -> list[Note]:
    """Columns some of whose integrals are not resolved at the optimum."""
    bad = [(name, int(count)) for name, count in zip(f.samples.names, fit.at.unresolved, strict=True) if count]
    if not bad:
        return []
    said = ", ".join(f"{name!r} ({count:,} of {f.samples.n_rows:,} rows)" for name, count in bad)
    text = (
        f"Conditional densities are too narrow to be integrated in columns {said}, so that estimates and scores there "
        "are not reliable. The columns are nearly determined by others. Drop near-copies."
    )
    names = tuple(name for name, _ in bad)
    return [Note("unresolved integrals", "warning", names, dict(bad), text)]


def _held_out(scored: HeldOut, penalty: WeakRidge | Ridge | None) -> list[Note]:
    """A warning where the reference predicts new rows better."""
    if scored.gain >= -_WORSE:
        return []
    better = "a Gaussian" if scored.reference == "Gaussian" else "independent variables"
    loss = f"{-scored.gain:.2f} nats" if np.isfinite(scored.gain) else "infinitely many nats"
    chosen = isinstance(penalty, Ridge) and penalty.strength == "cv"
    remedy = "Lower the degree." if chosen else "Use penalty=Ridge(strength='cv')."
    text = f"Held out, this model scores {loss} per variable below {better}. {remedy}"
    numbers = {"score": scored.score, "reference": scored.reference_score, "gain": scored.gain}
    return [Note("held out", "warning", (), numbers, text)]


def _levels(f: Objective, rows: float) -> list[Note]:
    """How far the levels of tests hold with so few rows."""
    orders = f.terms.orders
    notes = []
    for order, least in _TEST_ROWS.items():
        there = np.any(orders == order) if order < max(_TEST_ROWS) else np.any(orders >= order)
        if there and rows < least:
            kind = "pairs" if order == 2 else "three variables and more"
            text = (
                f"There are {rows:.0f} rows per term of a variable. Tests of {kind} hold their level from {least} on; "
                "with fewer rows they reject too often."
            )
            notes.append(Note("levels", "info", (), {"rows per local parameter": rows, "order": order}, text))
    return notes
