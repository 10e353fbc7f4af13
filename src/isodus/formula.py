"""A model as mathematics: its energy as text, HTML or LaTeX, and as a table for notebooks and terminals."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from .description import function_name
from .wording import once

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["energy", "html_table", "rich_table"]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SHOWN = 12  # terms in a table or in its formula
_LATEX = {"\\": r"\backslash ", "^": r"\wedge ", "~": r"\sim ", " ": r"\ "} | {c: f"\\{c}" for c in "#$%&_{}"}


class _Style(NamedTuple):
    """How names, powers and numbers are written; by: between factors; more: how many terms are left out, in words."""

    name: Callable[[str], str]
    power: Callable[[str, str], str]
    times: str
    by: str
    cross: str
    minus: str
    more: str


_STYLES = {
    "text": _Style(str, lambda base, k: base + k.translate(_RAISED), "·", "·", "×", "−", "{} more terms"),
    "html": _Style(
        lambda name: f"<i>{escape(name)}</i>",
        lambda base, k: f"{base}<sup>{k.replace('-', '−')}</sup>",
        "&#8239;",
        "·",
        "×",
        "−",
        "{} more terms",
    ),
    "latex": _Style(
        lambda name: _latex_name(name),
        lambda base, k: f"{base}^{{{k}}}",
        r"\,",
        r"\,",
        r"\times ",
        "-",
        r"\text{{{} more terms}}",
    ),
}


def energy(model: Any, style: str, n_terms: int | None, units: Any) -> str:
    """The energy of a model; see `PolynomialModel.formula`."""
    if style not in _STYLES:
        raise ValueError(f"style must be one of {', '.join(map(repr, _STYLES))}, not {style!r}")
    how, theta, order = _STYLES[style], model.parameters(units), _strongest(model, units)
    left = 0 if n_terms is None else max(len(order) - n_terms, 0)
    text = ""
    for k in np.sort(order[: len(order) - left]).tolist():
        size = f"{_number(abs(theta[k]), how)}{how.times}{_monomial(model, model.basis.terms[k], how)}"
        if text:
            text += f" {how.minus} {size}" if theta[k] < 0 else f" + {size}"
        else:
            text = f"{how.minus}{size}" if theta[k] < 0 else size
    return (text or "0") + (f" + {how.more.format(f'{left:,}')}" if left else "")


def html_table(model: Any) -> str:
    """For notebooks: what it is, its energy, and its strongest terms with intervals."""
    frame = _frame(model)
    head = "".join(f"<th>{heading}</th>" for heading in frame.columns)
    left = 'style="text-align: left"'
    rows = "".join(
        f"<tr><td {left}>{row[0]}</td>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>"
        for row in frame.itertuples(index=False)
    )
    remarks = "".join(f"<p>{escape(line)}</p>" for line in _remarks(model))
    return (
        f"<div><p>{escape(repr(model))}{_learned(model)}</p>"
        f"<p>density ∝ exp(−<i>E</i>), <i>E</i> = {energy(model, 'html', _SHOWN, 'raw')}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{remarks}</div>"
    )


def rich_table(model: Any) -> RenderableType:
    """The same for terminals."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", box=None, pad_edge=False)
    frame = _frame(model, "text")
    for heading in frame.columns:
        table.add_column(heading, justify="left" if heading == "term" else "right")
    for row in frame.itertuples(index=False):
        table.add_row(*(Text(cell) for cell in row))
    formula = Text(f"density ∝ exp(−E), E = {energy(model, 'text', _SHOWN, 'raw')}\n")
    head = Text(f"{model!r}{_learned(model)}", style="bold")
    return Group(head, formula, table, *map(Text, _remarks(model)))


def _learned(model: Any) -> str:
    return "" if model.n_samples is None else f", learned from {model.n_samples:,.10g} samples"


def _remarks(model: Any) -> list[str]:
    """What is to be said below the table."""
    many = len(_strongest(model))
    said = [f"the {_SHOWN} strongest of {many:,} terms; to_frame() has all"] if many > _SHOWN else []
    if model.moved_from is not None and model.covariance is not None:
        said.append("intervals and q are of what was estimated; θ is what it was moved to")
    return said + [f"note: {note}" for note in once(model.settings.get("notes", []))]


def _frame(model: Any, style: str = "html") -> pd.DataFrame:
    """The strongest terms with what is known of them, as words."""
    how, order = _STYLES[style], _strongest(model)[:_SHOWN]
    names = [_monomial(model, model.basis.terms[k], how) for k in order]
    theta, known = model.parameters("raw"), model.covariance is not None
    columns = {"term": names, "θ": [_number(theta[k], how) for k in order]}
    if known:
        rows = model.to_frame().iloc[order]
        columns["standard error"] = [_number(value, how, 2) for value in rows["stderr"]]
        columns["95 % interval"] = [
            "" if np.isnan(low) else f"{_number(low, how)} to {_number(high, how)}"
            for low, high in zip(rows["ci_low"], rows["ci_high"], strict=True)
        ]
        columns["q"] = ["" if np.isnan(q) else "<0.0001" if q < 1e-4 else f"{q:.2g}" for q in rows["q_value"]]
        if style == "html":
            columns["q"] = [escape(q) for q in columns["q"]]
    if np.any(model.location) or np.any(model.scale != 1):
        columns["θ, standardised"] = [_number(model.theta[k], how) for k in order]
    return pd.DataFrame(columns)


def _strongest(model: Any, units: Any = "raw") -> np.ndarray:
    """Terms that are not zero in these units, by their size in standardised variables."""
    order = np.argsort(-np.abs(model.theta), kind="stable")
    return order[model.parameters(units)[order] != 0]


def _monomial(model: Any, term: tuple[int, ...], how: _Style) -> str:
    names, spaces, parts = model.names, model.basis.spaces, []
    for v in sorted(set(term)):
        k = term.count(v)
        if spaces is not None and spaces[v].functions is not None:
            parts.append(how.name(function_name(names[v], k, v, spaces)))
        else:
            parts.append(how.name(names[v]) if k == 1 else how.power(how.name(names[v]), str(k)))
    return how.by.join(parts)


def _number(value: float, how: _Style, digits: int = 3) -> str:
    if np.isnan(value):
        return ""
    text = f"{abs(value):.{digits}g}"
    sign = how.minus if value < 0 else ""
    if "e" not in text:
        return sign + text
    mantissa, exponent = text.split("e")
    return sign + mantissa + how.cross + how.power("10", str(int(exponent)))


def _latex_name(name: str) -> str:
    """A letter with a number is a variable with an index; anything else is upright text."""
    found = re.fullmatch(r"([A-Za-z])_?(\d+)", name)
    if found:
        return f"{found[1]}_{{{found[2]}}}"
    return name if len(name) == 1 and name.isalpha() else rf"\mathrm{{{''.join(_LATEX.get(c, c) for c in name)}}}"
