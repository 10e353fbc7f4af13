"""Notes: what users should know of their columns, and of a fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._core.notes import Note, listed
from ..axes import Axis
from ..data import Clusters, ColumnFacts, Samples, order_facts
from ..data.facts import FEW
from ..fit.gaussian import variance_inflation
from ..fit.held_out import HeldOut
from ..fit.newton import Fit
from ..fit.objective import Objective
from ..fit.path import Path
from ..fit.penalties import ENOUGH_ROWS, NEAR_COPY, Penalty
from ..fit.score_tests import MOST_DF
from .columns import Spec

__all__ = ["check_finite", "column_notes", "fit_notes", "order_notes", "status_notes", "unresolved_notes"]

Array = np.ndarray
_PILE, _PILED_ROWS = 0.05, 5  # share and number of equal values
_MANY_VALUES = 100
_WORSE = 0.01  # nats per variable
_FEW_GROUPS = 40
_TEST_ROWS = {2: 15, 3: 100}  # per local parameter, from which score tests of an order hold their level

# What happened, and the remedy; others follow it.
_STATUS = {
    "iteration limit": (
        "The fit used all {steps} steps of max_iter before it converged, so that estimates and standard errors are "
        "not final.",
        "Raise max_iter",
    ),
    "stalled": (
        "The fit stalled: no step lowers the objective, and the optimum was not reached. Columns that are nearly "
        "determined by others are the usual reason.",
        "Drop them",
    ),
    "singular": (
        "The Hessian of the fit is singular, so that the data do not determine all terms.",
        "Drop columns that others determine",
    ),
}


# ---------------------------------------------------------------- columns


def column_notes(samples: Samples, facts: Sequence[ColumnFacts], spec: Spec, axes: Sequence[Axis]) -> list[Note]:
    """Few values where a density is wanted, many where there should be few, piles, near-copies."""
    notes = []
    for fact, support, axis in zip(facts, spec.supports, axes, strict=True):
        name, count = fact.name, len(fact.values)
        if support == "values" and (count > _MANY_VALUES or (count > FEW and 2 * count > samples.n_rows)):
            text = (
                f"Column {name!r} has {count:,} distinct values, and support='values' takes these for all that it can "
                "have, so that rows with any other value score −∞. If the column is continuous, use "
                f"support={{{name!r}: 'line'}}."
            )
            notes.append(Note("many values", "warning", (name,), {"values": count}, text))
        elif axis.continuous and count <= FEW and 3 * count <= samples.n_rows:
            text = (
                f"Column {name!r} has only {count} values and is taken for continuous. "
                f"If it is discrete, use support={{{name!r}: 'values'}}; if values were rounded, add jitter."
            )
            notes.append(Note("few values", "warning", (name,), {"values": count}, text))
        elif axis.continuous and fact.share > _PILE and fact.share * samples.n >= _PILED_ROWS:
            text = (
                f"Column {name!r} has the value {fact.mode:g} in {100 * fact.share:.0f} % of its rows. "
                "A continuous density only smooths such a pile, which censoring or rounding leaves behind."
            )
            notes.append(Note("pile", "info", (name,), {"value": fact.mode, "share": fact.share}, text))
    return [*notes, *_near_copies(samples, axes)]


def _near_copies(samples: Samples, axes: Sequence[Axis]) -> list[Note]:
    """Columns of which the others leave less than a hundredth of the variance."""
    if not 1 < len(samples.names) < samples.n_rows:
        return []
    V = variance_inflation(axes, samples)
    near = tuple(name for name, inflation in zip(samples.names, V, strict=True) if inflation > NEAR_COPY)
    if not near or not np.isfinite(V).all():
        return []
    text = (
        f"Columns {listed(near)} are nearly determined by other columns. With few rows the ridge shrinks their terms "
        "visibly, and their standard errors are large. Drop near-copies if their interaction is not the question."
    )
    return [Note("near-copies", "info", near, {"variance left": float(1 / V.max())}, text)]


def order_notes(samples: Samples) -> list[Note]:
    """A warning where rows depend on those before them, or are sorted; rows with weights may come in any order."""
    facts = order_facts(samples)
    if samples.weighted or not facts.lag1:
        return []
    shown = [f"{name!r} ({value:.2f})" for name, value in list(facts.lag1.items())[:8]]
    more = f" and {len(facts.lag1) - 8} more" if len(facts.lag1) > 8 else ""
    if facts.sorted:
        text = (
            f"Rows are sorted by {listed(facts.sorted)}. If they were sorted after sampling, shuffle them to see "
            f"whether anything else is in their order. If {facts.sorted[0]!r} is a time, drop it and use "
            "dependence='auto', as standard errors and tests otherwise take rows as independent."
        )
        return [Note("sorted rows", "warning", facts.sorted, facts.lag1, text)]
    text = (
        f"Rows depend on the row before: columns {', '.join(shown)}{more} have the lag-1 autocorrelation in brackets. "
        "Standard errors and tests take rows as independent. If rows are a series in time, use dependence='auto' in "
        "fit; if they belong to groups, use groups."
    )
    return [Note("dependent rows", "warning", tuple(facts.lag1), facts.lag1, text)]


# ---------------------------------------------------------------- a fit


def fit_notes(
    f: Objective,
    fit: Fit,
    penalty: Penalty | None,
    scored: HeldOut | None,
    path: Path | None,
    covariance: Array | None,
    groups: Clusters | None,
    predicting: str,
) -> list[Note]:
    """What a fit has to report beside its status. predicting: an estimator or penalty that predicts better."""
    notes = unresolved_notes(f.samples.names, fit.at.unresolved, f.samples.n_rows)
    if scored is not None and not scored.gain >= -_WORSE:
        notes.append(_worse(scored, f, penalty, predicting))
    elif scored is None and fit.status == "converged" and f.terms.rows_per_unknown(f.n) < ENOUGH_ROWS:
        text = "The held-out check was interrupted. The fit is complete, but may predict worse than a Gaussian."
        notes.append(Note("held out", "warning", (), {}, text))
    if penalty is not None and penalty.selects:
        return notes
    if path is not None and path.best.free == "Gaussian":
        text = "Of all strengths, none predicts held-out rows better than the Gaussian, which is therefore the model."
        notes.append(Note("Gaussian chosen", "info", (), {"score": path.best.score}, text))
    if covariance is None or not np.all(np.isfinite(covariance)):
        text = "There are no standard errors: the Hessian is too large or not positive definite."
        notes.append(Note("no standard errors", "warning", (), {}, text))
    elif penalty is not None and penalty.shrinks:
        text = "Standard errors and tests treat the ridge as fixed. Shrunk terms are biased toward zero."
        notes.append(Note("ridge", "info", (), {}, text))
    else:
        notes += _levels(f)
    return [*notes, *_few(f, groups)]


def status_notes(f: Objective, fit: Fit, penalty: Penalty | None, predicting: str) -> list[Note]:
    """A warning where the fit did not converge."""
    text = "The fit was interrupted and holds its last step. Fit again for a final answer."
    if fit.status in _STATUS:
        what, remedy = _STATUS[fit.status]
        text = f"{what.format(steps=fit.n_iter)} {_remedies(remedy, f, penalty, predicting)}"
    return [] if fit.status == "converged" else [Note(fit.status, "warning", (), {"steps": fit.n_iter}, text)]


def unresolved_notes(names: Sequence[str], unresolved: Array, n_rows: int) -> list[Note]:
    """A warning of columns some of whose integrals are not resolved."""
    bad = {name: int(count) for name, count in zip(names, unresolved, strict=True) if count}
    if not bad:
        return []
    columns = ", ".join(f"{name!r} ({count:,} of {n_rows:,} rows)" for name, count in bad.items())
    text = (
        f"Conditional densities are too narrow to be integrated in columns {columns}, so that estimates and scores "
        "there are not reliable. The columns are nearly determined by others. Drop near-copies."
    )
    return [Note("unresolved integrals", "warning", tuple(bad), bad, text)]


def check_finite(f: Objective, fit: Fit, by_nodes: bool = False) -> None:
    """An error where the objective has no value: conditional densities so narrow that no number of nodes finds them.

    A joint minimisation that failed where most rows have such densities has none either: it ended at rounding.
    """
    failed = fit.status in ("singular", "stalled") and not by_nodes and 2 * fit.at.unresolved.max() > f.samples.n_rows
    if np.isfinite(fit.at.value) and not failed:
        return
    lost = ~np.isfinite(fit.at.nodes) | (fit.at.unresolved > 0)
    if by_nodes:
        raise ValueError(
            f"The consensus cannot be integrated in columns {listed(np.array(f.samples.names)[lost].tolist())}, where "
            "its energy has no lower bound. Use PseudoLikelihood or TiltedReference without consensus, or more rows."
        )
    lower = "use degree=2, " if f.terms.degrees.max() > 2 else ""
    raise ValueError(
        f"Conditional densities of columns {listed(np.array(f.samples.names)[lost].tolist())} cannot be integrated: "
        "these columns are nearly determined by other columns, or their terms have no integral. "
        f"Drop near-copies, {lower}or add terms that fall at both ends."
    )


def _remedies(first: str, f: Objective, penalty: Penalty | None, predicting: str) -> str:
    """A sentence with the first remedy, and the general ones that the user has not taken."""
    remedies = [first]
    if f.terms.degrees.max() > 2:
        remedies.append("lower the degree")
    if penalty is None or not penalty.by_folds:
        remedies.append(f"use {predicting}")
    return f"{' or '.join(remedies)}." if len(remedies) < 3 else f"{', '.join(remedies[:-1])}, or {remedies[-1]}."


def _worse(scored: HeldOut, f: Objective, penalty: Penalty | None, predicting: str) -> Note:
    """A warning that the reference predicts new rows better."""
    better = "a Gaussian" if scored.reference == "Gaussian" else "independent variables"
    loss = f"{-scored.gain:.2f} nats" if -scored.gain < 1e6 else "over a million nats"
    remedy, p = f"Use {predicting}.", len(f.axes)
    if penalty is not None and penalty.selects:
        remedy = f"Use a smaller strength of L1, or {predicting}."
    elif scored.reference == "Gaussian" and np.sum(f.terms.degrees <= 2) < p * (p + 3) // 2:
        remedy = "Include all terms up to degree 2, which a Gaussian has."
    elif any(axis.powers is None for axis in f.axes if axis.continuous and axis.ordered):
        remedy = f"Use scale='robust', or {predicting}."
    elif penalty is not None and penalty.by_folds:
        remedy = "Lower the degree." if f.terms.degrees.max() > 2 else "Use more rows or fewer columns."
    text = f"Held out, this model scores {loss} per variable below {better}. {remedy}"
    if f.loss.quadratic and not scored.gain > -1:
        text += " Score matching does not see how much mass its model has elsewhere than at the rows."
    numbers = {"score": scored.score, "reference": scored.reference_score, "gain": scored.gain}
    return Note("held out", "warning", (), numbers, text)


def _levels(f: Objective) -> list[Note]:
    """How far the levels of tests hold with so few rows."""
    rows, notes = f.terms.rows_per_unknown(f.n), []
    for order, least in _TEST_ROWS.items():
        if rows < least and order in np.minimum(f.terms.orders, max(_TEST_ROWS)):
            kind = "pairs" if order == 2 else "three variables and more"
            text = (
                f"There are {rows:.0f} rows per term of a variable. Tests of {kind} hold their level from {least} on; "
                "with fewer rows they reject too often."
            )
            notes.append(Note("levels", "info", (), {"rows per local parameter": rows, "order": order}, text))
    return notes


def _few(f: Objective, groups: Clusters | None) -> list[Note]:
    """Warnings where rows or clusters are too few for errors by clusters, or for tests."""
    count = int(min(f.samples.n_rows, f.n)) if groups is None else groups.size
    what, notes = "rows" if groups is None else "groups", []
    if groups is not None and count < _FEW_GROUPS:
        text = (
            f"There are {count} groups, and errors by groups are too small with fewer than {_FEW_GROUPS}. "
            "Do not rely on intervals and p-values of single terms. Use finer groups if their rows are independent."
        )
        notes.append(Note("few groups", "warning", (), {"groups": count}, text))
    largest = max((len(unknowns) for v, unknowns in f.terms.interactions.items() if len(v) > 1), default=0)
    if count < MOST_DF * largest:
        text = (
            f"{count:,} {what} are too few to test interactions of {largest} terms, so some have no p-value. "
            f"Use at least {MOST_DF} {what} per term of an interaction, or a lower degree."
        )
        notes.append(Note("no tests", "warning", (), {what: count, "terms": largest}, text))
    return notes
