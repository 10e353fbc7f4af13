"""What there is to tell of a model, as plain values: sentences, rows of tables, places of a graph, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from .. import formula
from .._version import __version__
from ..arrays import to_host
from ..checks import finite_rows
from ..description import interacting
from ..diagnostics import Integrability
from ..model import PolynomialModel
from ..plotting.layout import around_circle, circle_order, spread
from ..plotting.sets import interacting_sets
from ..samples import floating_rows
from ..validation import check_weight
from ..wording import many, once
from . import fit, pictures, words

__all__ = ["LEVEL", "gather"]

LEVEL = 0.05  # of false discoveries, from which on an interaction is not sure
_MOST_TERMS = 2000  # in the table
_MOST_SETS = 1500  # in the graph
_MOST_NODES = 200
_MOST_JUDGED = 20_000  # terms of models whose integrability is looked into
_NOT_JUDGED = Integrability("unknown", None, f"a model of more than {_MOST_JUDGED:,} terms was not looked into")
_SHORT_FORMULA = 12


def gather(
    source: Any, model: PolynomialModel, X: Any, weight: Any, new: bool | None, title: str | None, said: Sequence[str]
) -> dict[str, Any]:
    """All of it; source: the estimator, or the model again. Values are plain, but for what tests found."""
    rows = None if X is None else _rows(model, X)
    counts = None if weight is None or rows is None else check_weight(weight, rows)[0]
    table, sets = _terms(model), interacting_sets(model)
    learned = fit.Learned.of(model, rows, new)
    checked = None if rows is None else fit.check(source, model, X, rows, counts, learned)
    verdict = model.integrability() if len(model.basis) <= _MOST_JUDGED else _NOT_JUDGED
    p = len(model.names)
    sample = rows if rows is None or counts is None else fit.in_proportion(rows, counts)
    return {
        "title": title or f"Interactions of {many(p, 'variable')}",
        "made": f"isodus {__version__}, {date.today().isoformat()}",
        "names": list(model.names),
        "summary": words.summary(model, sets[0], verdict, checked),
        "formula": formula.energy(_briefly_named(model), "html", _SHORT_FORMULA, "raw"),
        "cautions": words.cautions(model, checked),
        "warnings": once([*model.settings.get("notes", []), *said]),
        "terms": table,
        "graph": _graph(model, sets, table["places"]),
        "fit": checked,
        "pictures": pictures.gather(model, sample, verdict, checked),
        "units": words.units(model),
        "how": words.how(model),
        "cite": words.citations(model, checked is not None),
        "level": LEVEL,
    }


def _briefly_named(model: PolynomialModel) -> PolynomialModel:
    """With names that fit into a formula, and still differ."""
    names = [words.short(name) for name in model.names]
    if len(set(names)) < len(names):
        names = [f"{words.short(name, 24)} ({k})" for k, name in enumerate(model.names)]
    return replace(model, names=tuple(names))


def _rows(model: PolynomialModel, X: Any) -> np.ndarray:
    rows = to_host(floating_rows(X, model.names)).astype(np.float64, copy=False)
    finite_rows(rows, model.names, "X")
    return rows


def _terms(model: PolynomialModel) -> dict[str, Any]:
    """Terms that are in the model, the strongest first; places: the row of each, by its place in the basis."""
    frame, own = model.to_frame(), model.to_frame("standardized")
    there = np.flatnonzero((model.theta != 0) | (frame["theta"] != 0) | frame["stderr"].notna())
    order = there[np.argsort(-np.abs(model.theta[there]), kind="stable")]
    order = order[np.lexsort([-np.abs(model.theta[order]), model.basis.orders[order] == 1])]
    shown = order[:_MOST_TERMS]
    rows = [
        {
            "powers": [[v, term.count(v)] for v in sorted(set(term))],
            **{name: _plain(frame[name].iloc[k]) for name in frame.columns if name != "term"},
            "standardized": _plain(own["theta"].iloc[k]),
        }
        for k, term in ((k, model.basis.terms[k]) for k in shown.tolist())
    ]
    return {
        "rows": rows,
        "places": {int(k): row for row, k in enumerate(shown)},
        "all": len(order),
        "zero": len(model.basis) - len(there),
        "errors": bool(frame["stderr"].notna().any()),
    }


def _graph(model: PolynomialModel, sets: tuple[pd.DataFrame, str], places: dict[int, int]) -> dict[str, Any]:
    """Sets of variables with their terms, and places on the unit circle and, of larger sets, inside of it."""
    frame, measure = sets
    order = np.argsort(-frame["strength"].to_numpy(), kind="stable")
    chosen, used = list[int](), set[int]()
    for k in order[:_MOST_SETS]:
        more = used | set(frame["variables"].iloc[k])
        if len(more) > _MOST_NODES:
            break
        chosen, used = [*chosen, int(k)], more
    shown = frame.iloc[chosen]
    nodes = sorted(used)
    where = {v: k for k, v in enumerate(nodes)}
    inner = [tuple(where[v] for v in variables) for variables in shown["variables"]]
    at = around_circle(circle_order(len(nodes), inner, shown["strength"].tolist()))
    centres = _centres(inner, at)
    terms = interacting(model.basis)
    return {
        "nodes": [{"v": v, "x": round(x, 5), "y": round(y, 5)} for v, (x, y) in zip(nodes, at.tolist(), strict=True)],
        "sets": [
            {
                "v": list(row.variables),
                "strength": _plain(row.strength),
                "sign": int(row.sign),
                "p": _plain(row.p_value),
                "q": _plain(row.q_value),
                "at": centres.get(k),
                "terms": [places[t] for t in terms[row.variables] if t in places],
            }
            for k, row in enumerate(shown.itertuples())
        ],
        "all": len(frame),
        "measure": measure.removeprefix("strength: "),
        "alone": [] if len(shown) < len(frame) else [v for v in range(len(model.names)) if v not in used],
        "first": max(60, 3 * len(nodes)),
    }


def _centres(inner: list[tuple[int, ...]], at: np.ndarray) -> dict[int, list[float]]:
    """Where sets of three and more are drawn."""
    large = [k for k, nodes in enumerate(inner) if len(nodes) > 2]
    if not large:
        return {}
    wanted = np.array([0.9 * at[list(inner[k])].mean(axis=0) for k in large])
    found = spread(wanted, at, float(np.clip(2.2 / np.sqrt(len(large)) / 3, 0.05, 0.16)))
    return {k: [round(x, 5), round(y, 5)] for k, (x, y) in zip(large, found.tolist(), strict=True)}


def _plain(value: Any) -> Any:
    """A number as JSON has it, to eight digits; None where there is none."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, float):
        return value
    return float(f"{value:.8g}") if np.isfinite(value) else None
