"""A model in words: a summary of 80 columns, and a formula on one line."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._core.notes import Note
from ..axes import Axis
from ..terms import Terms, product_of
from .fitted import Fitted
from .polynomial import PolynomialView

__all__ = ["formula", "summary"]

Array = np.ndarray
_WIDTH = 80
_MOST_ROWS, _MOST_NAME = 20, 30


def summary(
    terms: Terms, names: Sequence[str], fitted: Fitted | None, table: pd.DataFrame, notes: Sequence[Note], q: float
) -> str:
    """What was fitted, how well it predicts, which interactions are significant, and notes."""
    degrees, orders = terms.degrees, terms.orders
    span = (
        f"degree {degrees.min()}" if degrees.min() == degrees.max() else f"degrees {degrees.min()} to {degrees.max()}"
    )
    variables = "variable" if orders.max() == 1 else "variables"
    lines = [
        f"PolynomialModel of {_count(len(names), 'variable')}",
        "",
        *_row("Variables", _shortened(names)),
        *_row("Terms", f"{len(terms):,}, of {span}, with up to {orders.max()} {variables} each"),
    ]
    lines += _fit_rows(fitted) if fitted is not None else _row("Fit", "none: coefficients were given")
    lines += ["", *_interactions(table, fitted, q)]
    if notes:
        lines += ["", "Notes"]
        for note in notes:
            mark = "! " if note.severity == "warning" else "- "
            lines += textwrap.wrap(note.text, _WIDTH, initial_indent=mark, subsequent_indent="  ")
    return "\n".join(line.rstrip() for line in lines)


def _fit_rows(fitted: Fitted) -> list[str]:
    n = f"{fitted.n_rows:,} rows"
    if fitted.n != fitted.n_rows:
        n += f" with a total weight of {fitted.n:,.6g}"
    lines = _row("Fit", f"{fitted.estimator}, {n}, {fitted.penalty}") + _row("Status", fitted.status)
    scored: Any = fitted.held_out
    if scored is not None:
        other = "a Gaussian" if scored["reference"] == "Gaussian" else scored["reference"]
        gain = scored["score"] - scored["reference_score"]
        how = "above" if gain >= 0 else "below"
        text = (
            f"{scored['score']:.3f} nats per variable, {abs(gain):.3f} {how} {other} ({scored['reference_score']:.3f})"
        )
        lines += _row("Held out", text)
    return lines


def _interactions(table: pd.DataFrame, fitted: Fitted | None, q: float) -> list[str]:
    """A heading, and a line for each interaction that is shown."""
    if not len(table):
        return ["Interactions: the model has none."]
    if table["q_value"].isna().all():
        why = "no tests, as there are no standard errors"
        if fitted is None or fitted.selected:
            why = "no tests, as the model was not fitted" if fitted is None else "chosen by the penalty, and not tested"
        shown, heading = table, f"Interactions: {len(table):,} ({why})"
    else:
        shown = table[table["q_value"] <= q]
        heading = (
            f"Interactions: {len(shown):,} of {len(table):,} significant at a false discovery rate of {100 * q:g} %"
        )
    if not len(shown):
        return [heading]
    width = min(_MOST_NAME, max(len("interaction"), *map(len, shown["variables"])))
    tested = bool(shown["q_value"].notna().any())
    lines = [
        heading,
        f"  {'interaction':<{width}} {'strength':>9}" + (f"{'chi2':>10}{'df':>4}{'p':>10}{'q':>10}" * tested),
    ]
    for row in shown.head(_MOST_ROWS).itertuples():
        line = f"  {_cut(row.variables, width):<{width}} {row.strength:>9.3g}"
        if tested:
            line += f"{row.statistic:>10.4g}{row.df:>4}{_probability(row.p_value):>10}{_probability(row.q_value):>10}"
        lines.append(line)
    if len(shown) > _MOST_ROWS:
        lines.append(f"  and {len(shown) - _MOST_ROWS:,} more; see model.interactions()")
    return lines


def _probability(value: float) -> str:
    return "" if np.isnan(value) else "<1e-300" if value < 1e-300 else f"{value:.2g}"


def _row(name: str, text: str) -> list[str]:
    """A name and a text, wrapped beside it."""
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{name:<11}", subsequent_indent=" " * 11)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _shortened(names: Sequence[str]) -> str:
    shown = [_cut(name, _MOST_NAME) for name in names[:12]]
    return ", ".join(shown) + (f" and {len(names) - 12:,} more" if len(names) > 12 else "")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


# the formula ----------------------------------------------------------------------------------------------------------


def formula(
    view: PolynomialView, terms: Terms, names: Sequence[str], digits: int, most_terms: int | None, latex: bool
) -> str:
    """The density as one line; where terms are many, those that are surest, or largest without standard errors."""
    keep = np.flatnonzero(view.coefficients)
    left = 0
    if most_terms is not None and len(keep) > most_terms:
        size = np.abs(view.coefficients[keep])
        if view.covariance is not None:
            size = size / np.maximum(view.stderr[keep], 1e-300)
        left = len(keep) - most_terms
        keep = np.sort(keep[np.argsort(-size, kind="stable")[:most_terms]])
    bases = [name for name, axis in zip(names, terms.axes, strict=True) if _has_base(axis)]
    if latex:
        bases = [_latex_name(name) for name in bases]
    base = "".join(f"q({name}) " for name in bases)
    word = (lambda k: _latex_term(view.keys[k], terms, names)) if latex else (lambda k: view.terms[k])
    parts = [_signed(view.coefficients[k], word(k), digits, latex) for k in keep]
    energy = "".join(f" {sign} {text}" for sign, text in parts)
    energy = energy[3:] if energy.startswith(" + ") else "−" + energy[3:] if energy else "0"
    if latex:
        more = r" + \dots" if left else ""
        shown = ", ".join(_latex_name(name) for name in names)
        return rf"p({shown}) \propto {base}\exp\left(-\left[{energy.replace('−', '-')}{more}\right]\right)"
    more = f" + … ({left:,} more terms)" if left else ""
    return f"p({_shortened(names)}) ∝ {base}exp(−[{energy}{more}])"


def _has_base(axis: Axis) -> bool:
    """Whether the base measure changes with x, inside of tails."""
    values = axis.log_base(axis.table(axis.smallest).nodes.places[1:-1])
    return bool(np.ptp(values) > 1e-9) if len(values) else False


def _signed(value: float, word: str, digits: int, latex: bool) -> tuple[str, str]:
    """The sign and the size of a term; a coefficient of 1 is not written."""
    number = f"{abs(value):.{digits}g}"
    if latex and "e" in number:
        mantissa, exponent = number.split("e")
        number = rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
    text = word if number == "1" else f"{number} {word}"
    return ("+" if value >= 0 else "−"), text


def _latex_term(key: Sequence[int], terms: Terms, names: Sequence[str]) -> str:
    """A term with its powers as exponents."""
    parts = []
    for i, l in product_of(key):
        word = terms.axes[i].name(l, "\0")
        base, caret, power = word.rpartition("^")
        base, power = (base, power) if caret and power.isdecimal() else (word, "")
        base = re.sub(r"\b(cos|sin|log)\b", r"\\\1 ", base) if base != "\0" else base
        parts.append(base.replace("\0", _latex_name(names[i])) + (f"^{{{power}}}" if power else ""))
    return r" \, ".join(parts)


def _latex_name(name: str) -> str:
    """A variable: one letter with a number becomes an index, and longer words are upright."""
    match = re.fullmatch(r"([A-Za-z])_?(\d*)", name)
    if match:
        return match[1] + (f"_{{{match[2]}}}" if match[2] else "")
    safe = re.sub(r"([\\{}_&%$#^~])", lambda m: r"\backslash " if m[1] == "\\" else rf"\{m[1]}", name)
    return rf"\text{{{safe}}}"
