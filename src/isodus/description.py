"""A model in words: names of its terms, who interacts with whom, a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .basis import MonomialBasis
from .significance import block, check_level, p_values, q_values, stderr, wald, width
from .spaces import Spaces
from .wording import many, once

if TYPE_CHECKING:
    import networkx

__all__ = [
    "FAR_AWAY",
    "candidate_sets",
    "chosen_from_the_same",
    "far_away",
    "graph",
    "hyperedges",
    "in_a_line",
    "interacting",
    "interaction_table",
    "interaction_tests",
    "selected",
    "summary",
    "term_name",
    "term_table",
    "terms_in_words",
]

Term = tuple[int, ...]
_DISCOVERY = 0.05
FAR_AWAY = "the learned model has its mass far from the data"  # in the notes of a fit, which model files keep


def in_a_line(model: Any) -> str:
    """What it is: how many variables and terms."""
    shown = ", ".join(model.names[:4]) + (", …" if len(model.names) > 4 else "")
    return f"PolynomialModel: {len(model.names)} variables ({shown}), {terms_in_words(model)}"


def terms_in_words(model: Any) -> str:
    """How many terms there are; those of zero are counted, and told."""
    there = int(np.count_nonzero(model.theta))
    less = f", {there:,} of them not zero in standardised variables" if there < len(model.basis) else ""
    return f"{len(model.basis)} terms up to degree {model.basis.degree}{less}"


def chosen_from_the_same(model: Any) -> bool:
    """Whether a penalty chose the terms from the samples that errors and tests are of, which do not know of it."""
    return bool(model.settings.get("l1")) and model.settings.get("debias") not in ("split", "one step")


def far_away(model: Any) -> str:
    """The note by which a fit reported that the model's mass is far from the data; empty if there is none."""
    return next((note for note in model.settings.get("notes", []) if FAR_AWAY in note), "")


def selected(model: Any) -> bool:
    """Whether the fit may have left out terms above degree 2, which are zero then and were not tested."""
    return bool(model.settings.get("select"))


def candidate_sets(model: Any) -> int | None:
    """How many sets of interacting variables a penalty had to choose from; None where that is not known."""
    settings, p = model.settings, len(model.names)
    if not settings.get("l1") or not settings.get("degree") or settings.get("exclude"):
        return None
    return sum(comb(p, k) for k in range(2, min(settings.get("max_order") or p, settings["degree"], p) + 1))


def term_name(term: Term, names: Sequence[str], spaces: Spaces | None = None) -> str:
    """A term in words: (0, 0, 1) is ``x0^2*x1``, or what functions of spaces are called."""
    powers = {v: term.count(v) for v in sorted(set(term))}
    return "*".join(function_name(names[v], power, v, spaces) for v, power in powers.items())


def function_name(name: str, power: int, v: int, spaces: Spaces | None) -> str:
    """One factor of a term in words."""
    functions = None if spaces is None else spaces[v].functions
    if functions is None:
        return name + (f"^{power}" if power > 1 else "")
    return functions.name(power, name) if hasattr(functions, "name") else f"f{power}({name})"


def term_table(model: Any, units: Any, level: float, correction: str, simultaneous: bool) -> pd.DataFrame:
    """A row a term, with its interval, p-value and false discovery rate; see `PolynomialModel.to_frame`."""
    basis, covariance = model.basis, model.covariance_in(units)
    theta, estimate = model.parameters(units), model.parameters(units, model.estimate)
    reach = width(covariance, check_level(level), simultaneous, model.error_df)
    errors = stderr(covariance, len(theta))
    p, q = p_values(estimate, errors, model.error_df), np.empty(len(theta))
    for family in (basis.orders == 1, basis.orders > 1):
        q[family] = q_values(p[family], correction)
    return pd.DataFrame(
        {
            "term": [model.term_name(term) for term in basis.terms],
            "degree": basis.degrees.astype(np.int64),
            "order": basis.orders,
            "theta": theta,
            "stderr": errors,
            "ci_low": estimate - reach * errors,
            "ci_high": estimate + reach * errors,
            "p_value": p,
            "q_value": q,
        }
    )


def interaction_table(model: Any, correction: str) -> pd.DataFrame:
    """A row a set of interacting variables, with Wald's test of its terms; see `PolynomialModel.interactions`."""
    frame = interaction_tests(model, correction)
    frame["variables"] = [model.term_name(variables) for variables in frame["variables"]]
    return frame.sort_values(["p_value", "chi2"], ascending=[True, False], kind="stable", ignore_index=True)


def interaction_tests(model: Any, correction: str = "bh") -> pd.DataFrame:
    """As `interaction_table`, but with the sets as tuples of indices, and in the order of the basis."""
    theta, covariance = model.theta, model.covariance
    rows = []
    for variables, terms in interacting(model.basis).items():
        C = np.full((len(terms), len(terms)), np.nan) if covariance is None else block(covariance, np.array(terms))
        if selected(model) and np.isnan(np.diagonal(C)).any():
            C = np.full_like(C, np.nan)  # of a set that lost terms no test of what is left is a test
        test = wald(model.estimate[terms], C, model.error_df)
        size = float(np.sqrt(np.sum(np.square(theta[terms]))))
        rows.append((variables, len(variables), len(terms), size, *test))
    frame = pd.DataFrame(rows, columns=["variables", "order", "n_terms", "strength", "chi2", "df", "p_value"])
    frame["q_value"] = q_values(frame["p_value"].to_numpy(float), correction)
    return frame


def interacting(basis: MonomialBasis) -> dict[Term, list[int]]:
    """Sets of two variables and more that have terms, with the places of these."""
    groups: dict[Term, list[int]] = {}
    for k in np.flatnonzero(basis.orders > 1).tolist():
        groups.setdefault(tuple(sorted(set(basis.terms[k]))), []).append(k)
    return groups


def hyperedges(basis: MonomialBasis, theta: np.ndarray, names: Sequence[str]) -> dict[tuple[str, ...], float]:
    """Sets of interacting variables, with the root of the sum of squares of their terms' θ."""
    squares: dict[tuple[str, ...], float] = {}
    for term, value in zip(basis.terms, theta.tolist(), strict=True):
        variables = tuple(names[v] for v in sorted(set(term)))
        if len(variables) > 1 and value != 0:
            squares[variables] = squares.get(variables, 0.0) + value * value
    return {variables: float(np.sqrt(square)) for variables, square in squares.items()}


def graph(names: Sequence[str], edges: Mapping[tuple[str, ...], float]) -> networkx.Graph:
    """Variables that share a hyperedge; "weight": the root of the sum of squares of those."""
    import networkx

    made = networkx.Graph()
    made.add_nodes_from(names)
    for variables, weight in edges.items():
        for k, a in enumerate(variables):
            for b in variables[k + 1 :]:
                before = made.edges[a, b]["weight"] if made.has_edge(a, b) else 0.0
                made.add_edge(a, b, weight=float(np.hypot(before, weight)))
    return made


def summary(model: Any, n_terms: int, level: float = 0.95) -> str:
    """What a `PolynomialModel` says, with its strongest interactions."""
    basis, theta = model.basis, model.theta
    learned = "" if model.n_samples is None else f", learned from {model.n_samples:,.10g} samples"
    order = np.argsort(-np.abs(np.where(basis.orders > 1, theta, 0.0)))[:n_terms]
    order = order[(basis.orders[order] > 1) & (theta[order] != 0)]
    raw = np.array(list(model.to_dict().values()))
    names = [model.term_name(basis.terms[k]) for k in order]
    width = max(map(len, names), default=0)
    lines = [f"{model!r}{learned}"]
    if model.settings:
        lines.append(f"settings: {_settings(model.settings)}")
    if len(order):
        lines.append(
            f"strongest interactions, by standardised size (of {np.count_nonzero(theta[basis.orders > 1])}); with a "
            "negative θ the term tends to be large, as a*b is of two that rise together"
        )
        own, frame = model.stderr("standardized"), model.to_frame(level=level)
        low, high = frame["ci_low"].to_numpy(), frame["ci_high"].to_numpy()
        percent = f"{100 * level:.4g} %"
        lines += [
            f"  {name:<{width}}  standardised {_with_error(theta[k], own[k])}, "
            f"in the units of the data {_with_interval(raw[k], low[k], high[k], percent)}"
            for name, k in zip(names, order, strict=True)
        ]
        if model.moved_from is not None and model.covariance is not None:
            lines.append(
                "± and intervals are of what was estimated; θ was moved from there, and may be outside of them"
            )
        lines += _found(model)
    else:
        lines.append("no variables interact")
    return "\n".join([*lines, *(f"note: {note}" for note in once(model.settings.get("notes", [])))])


def _found(model: Any) -> list[str]:
    """Which sets of variables interact surely, of how many; nothing where there are no errors."""
    tests = model.interactions()
    untested = int(tests["q_value"].isna().sum()) if selected(model) else 0
    lost = [f"{many(untested, 'set')} of variables not tested: terms of theirs were left out"] if untested else []
    tests = tests[tests["q_value"].notna()] if untested else tests
    if not tests["q_value"].notna().any():
        return lost
    found = tests["variables"][tests["q_value"] < _DISCOVERY].tolist()
    named = f": {', '.join(found[:8])}{', …' if len(found) > 8 else ''}" if found else ""
    if not chosen_from_the_same(model):
        return [
            f"{len(found)} of {len(tests)} sets of variables interact at a false discovery rate of 5 %{named}",
            *lost,
        ]
    of, left = candidate_sets(model), f"{many(int((tests['strength'] > 0).sum()), 'set')} of variables"
    left += f", of {of:,} candidates" if of else ""
    return [
        f"the penalty left {left}; {len(found)} of these interact at a false discovery rate of 5 %{named}; too "
        "optimistic, as they were chosen from the same samples"
    ]


def _settings(settings: Mapping[str, Any]) -> str:
    """How it was learned, without what is as by default, where that is known."""
    usual = settings.get("default", [])
    told = [
        f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}"
        for k, v in settings.items()
        if v is not None and k not in {*usual, "default", "notes"}
    ]
    return ", ".join(told).removeprefix("estimator=") + ("; others by default" if usual else "")


def _with_error(value: float, stderr: float) -> str:
    return f"{value:+.4g}" if np.isnan(stderr) else f"{value:+.4g} ± {stderr:.2g}"


def _with_interval(value: float, low: float, high: float, percent: str) -> str:
    return f"{value:+.4g}" if np.isnan(low) else f"{value:+.4g} ({percent}: {low:+.3g} to {high:+.3g})"
