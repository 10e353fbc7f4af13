"""What was gathered as a page: every text escaped, scripts and styles inside, and nothing else allowed to run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from ..plotting.sets import PARTIAL
from ..wording import listed, many
from . import words
from .fit import Checked

__all__ = ["embedded", "page"]

_ORDERS = {1: "one variable", 2: "pairs", 3: "threes", 4: "fours"}
_COLUMNS = (
    ("term", "term", "The product of powers of variables"),
    ("theta", "θ", "The parameter, in the units of the data"),
    ("stderr", "std. error", "Standard error of θ"),
    ("ci_low", "95 % from", "Lower end of the interval"),
    ("ci_high", "to", "Upper end of the interval"),
    ("p_value", "p", "Of θ = 0, two-sided"),
    ("q_value", "q", "False discovery rate"),
    ("standardized", "θ standardised", "The parameter in centred and scaled variables"),
    ("order", "variables", "How many variables are in it"),
    ("degree", "degree", "The sum of its powers"),
)
_FEW = {"stderr", "ci_low", "ci_high", "p_value", "q_value"}  # columns that need standard errors
_MOMENTS = 10
_BREAKS = re.compile(r"(?<=[_./:*\-])(?=\w)")  # after these a name may go on in the next line


def page(found: dict[str, Any]) -> str:
    """The whole file."""
    style, script = _file("report.css"), _file("graph.js") + _file("table.js")
    data = {name: found[name] for name in ("names", "graph", "level")} | {"terms": _columns(found["terms"]["rows"])}
    sections = [
        ("graph", "Graph", "Which variables interact", _graph(found)),
        ("terms", "Terms", "Terms", _terms(found)),
        ("densities", "Model and data", "Model and data", _pictures(found)),
        ("fit", "Goodness of fit", "Goodness of fit", _fit(found)),
        ("how", "How it was computed", "How it was computed", _how(found)),
        ("cite", "How to cite", "How to cite", _list(found["cite"])),
    ]
    text = Template(_file("template.html")).substitute(
        title=escape(words.short(found["title"], 200)),
        made=escape(found["made"]),
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        data=embedded(data),
        summary=_summary(found),
        links=" ".join(f'<a href="#{name}">{link}</a>' for name, link, _, _ in sections),
        sections="\n".join(_section(name, title, body) for name, _, title, body in sections),
    )
    return text.encode("utf-8", "replace").decode("utf-8")


def _section(name: str, title: str, body: str) -> str:
    """A part of the page with its heading; body: HTML."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{title}</h2>\n{body}\n</section>'
    )


def _how(found: dict[str, Any]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{_text(value)}</dd>" for name, value in found["how"])
    return Template(_file("how.html")).substitute(units=escape(found["units"]), rows=rows)


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """By column, which is half as long as by row."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def embedded(value: Any) -> str:
    """JSON that can stand in a script element, whatever is in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII alone: line separators are escaped too
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    """Escaped, without characters that cannot be shown."""
    return escape("".join(c if c.isprintable() else " " for c in text))


def _list(lines: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(line)}</li>" for line in lines) + "</ul>" if lines else ""


def _summary(found: dict[str, Any]) -> str:
    rows = "".join(f"<dt>{escape(question)}</dt><dd>{_text(answer)}</dd>" for question, answer in found["summary"])
    warned = ""
    if found["warnings"]:
        warned = (
            '<section class="warned" aria-labelledby="warnings-title"><h2 id="warnings-title">Notes and warnings</h2>'
            f"{_list(found['warnings'])}</section>"
        )
    return (
        f'<dl class="answers">{rows}</dl>'
        f'<p class="formula">Density ∝ exp(−<i>E</i>), <i>E</i> = {found["formula"]}</p>{warned}'
    )


def _graph(found: dict[str, Any]) -> str:
    graph, names = found["graph"], found["names"]
    if not graph["sets"]:
        return "<p>No variables interact, so there is no graph.</p>"
    said = []
    if len(graph["sets"]) < graph["all"]:
        said.append(f"Here are the {len(graph['sets']):,} strongest of {graph['all']:,} sets.")
    if graph["alone"]:
        said.append(f"Without interactions: {listed([words.short(names[v]) for v in graph['alone']], 60)}.")
    options = "".join(f'<option value="{node["v"]}">{escape(words.short(names[node["v"]]))}</option>'
                      for node in sorted(graph["nodes"], key=lambda one: one["v"]))  # fmt: skip
    tested = any(one["q"] is not None for one in graph["sets"])
    return Template(_file("graph.html")).substitute(
        measure="size of the partial correlation" if graph["measure"] == PARTIAL else escape(graph["measure"]),
        larger=_marks(graph["sets"]),
        options=options,
        sure="" if tested else " hidden",
        level=f"{found['level']:g}",
        remarks=f"<p>{_text(' '.join(said))}</p>" if said else "",
    )


def _marks(sets: list[dict[str, Any]]) -> str:
    """What stands for larger sets, if there are any."""
    sizes = {min(len(one["v"]), 5) for one in sets}
    kinds = ((3, "a square joins three"), (4, "a diamond, four"), (5, "a circle, five or more"))
    return "".join(f"; {text}" for size, text in kinds if size in sizes) + "."


def _terms(found: dict[str, Any]) -> str:
    terms, names = found["terms"], found["names"]
    rows = terms["rows"]
    if not rows:
        return "<p>All terms are zero.</p>"
    columns = [column for column in _COLUMNS if terms["errors"] or column[0] not in _FEW]
    head = "".join(
        f'<th scope="col" aria-sort="none" data-label="{called}">'
        f'<button type="button" data-column="{key}" title="{escape(more)}">{called}</button></th>'
        for key, called, more in columns
    )
    body = "".join(_row(k, row, names, columns) for k, row in enumerate(rows))
    orders = sorted({row["order"] for row in rows})
    options = "".join(f'<option value="{o}">{_ORDERS.get(o, f"sets of {o}")}</option>' for o in orders)
    left = f"The {len(rows):,} strongest of {terms['all']:,} terms. " if len(rows) < terms["all"] else ""
    left += (
        f"{many(terms['zero'], 'further term')} of zero {'is' if terms['zero'] == 1 else 'are'} left out."
        if terms["zero"]
        else ""
    )
    return Template(_file("terms.html")).substitute(
        head=head,
        body=body,
        orders=options,
        sure="" if terms["errors"] else " hidden",
        level=f"{found['level']:g}",
        cautions=_list(found["cautions"]),
        left=f"<p>{left}</p>" if left else "",
    )


def _row(k: int, row: dict[str, Any], names: list[str], columns: list[tuple[str, str, str]]) -> str:
    cells = []
    for key, _, _ in columns[1:]:
        value = row[key]
        shown = words.probability(value) if key in ("p_value", "q_value") else words.number(value)
        cells.append(f"<td>{escape(shown)}</td>")
    term = f'<span class="term">{_term(row["powers"], names)}</span>'
    return f'<tr data-k="{k}"><th scope="row">{term}</th>{"".join(cells)}</tr>'


def _term(powers: list[list[int]], names: list[str]) -> str:
    """x0²·x1, with the whole of a name that was cut as its title."""
    factor = lambda v, power: f"{_name(names[v])}{f'<sup>{power}</sup>' if power > 1 else ''}"
    return "·<wbr>".join(f'<span class="factor">{factor(v, power)}</span>' for v, power in powers)


def _name(name: str) -> str:
    shown = words.short(name)
    title = "" if shown == name else f' title="{_text(name[:300])}"'
    return f"<bdi{title}>{_breakable(shown)}</bdi>"


def _breakable(name: str) -> str:
    """Escaped, with places at which a long name may be broken."""
    return _BREAKS.sub("<wbr>", escape(name))


def _pictures(found: dict[str, Any]) -> str:
    shown, names = found["pictures"], found["names"]
    if shown["why"]:
        return f"<p>The densities of the model are not shown: {_text(shown['why'])}.</p>"
    data = found["fit"] is not None
    some = len(shown["marginals"]) < len(names)
    worst = f" The {len(shown['marginals'])} of {len(names):,} variables that fit worst." if some and data else ""
    worst = worst or (f" The first {len(shown['marginals'])} of {len(names):,} variables." if some else "")
    out = [f"<p>{_legend(found)}{worst}</p>", _panels(shown["marginals"], names, "Density", shown["of"])]
    if shown["pairs"]:
        text = f"{many(len(shown['pairs']), 'pair')}, the strongest first; the first variable runs to the right."
        masses = "25, 50, 75 and 95 %" if len(shown["of"]) == 1 else "50 and 95 %"
        out.append(f"<h3>Pairs</h3><p>{text} Contours hold {masses} of the model.</p>")
        out.append(_panels(shown["pairs"], names, "Density of the pair", shown["of"]))
    return "".join(out)


def _legend(found: dict[str, Any]) -> str:
    """What lines and colours mean, or why a line is not there."""
    checked: Checked | None = found["fit"]
    if checked is None:
        return "The model, by draws from it."
    given = (
        '<span class="key dashed">Orange, dashed</span>: each variable given the others, averaged over the samples, '
        "which is what was fitted"
    )
    if "model" in found["pictures"]["of"]:
        return (
            'Grey: the samples. <span class="key">Blue</span>: the model by itself, from its own draws. '
            f"{given}. Where the two lines differ, the model has its mass elsewhere than the samples."
        )
    return f"Grey: the samples. {given}. What the model by itself has is not shown: {_text(checked.not_drawn)}."


def _panels(panels: list[dict[str, Any]], names: list[str], what: str, of: list[str]) -> str:
    out, both = [], len(of) > 1
    for panel in panels:
        called = " and ".join(words.short(names[v]) for v in panel["v"])
        alone = "a line" if len(panel["v"]) == 1 else "contours"
        seen = "a histogram" if len(panel["v"]) == 1 else "dots"
        over = "" if panel["n"] is None else f", over {seen} of {many(panel['n'], 'sample')}"
        more = ", and of the model given the other variables, dashed" if both else ""
        alt = escape(f"{what} of {called} under the model as {alone}{more}{over}")
        caption = " × ".join(_name(names[v]) for v in panel["v"])
        out.append(f'<figure><img src="{panel["src"]}" alt="{alt}"><figcaption>{caption}</figcaption></figure>')
    return f'<div class="panels{" pairs" if panels and len(panels[0]["v"]) > 1 else ""}">{"".join(out)}</div>'


def _fit(found: dict[str, Any]) -> str:
    checked: Checked | None = found["fit"]
    if checked is None:
        return "<p>Not tested: the report was made without samples.</p>"
    if checked.found is None:
        return f"<p>Not tested: {_text(checked.why)}.</p>"
    fit = checked.found
    table = fit.residuals.sort_values("p_value", kind="stable")
    rows = [
        (_name(name), *map(escape, (words.number(row["statistic"], 3), words.number(row["critical"], 3),
                                    words.probability(row["p_value"]), words.probability(row["q_value"]))))
        for name, row in table.iterrows()
    ]  # fmt: skip
    head = ("variable", "largest distance", "exceeded once in 20", "p", "q")
    test, stein = fit.stein, "there is none where variables do not all live on the whole line, with powers"
    if test is not None:
        stein = f"p = {test.p_value:.2g} of {many(test.n_bootstrap, 'draw')}, on {test.n_samples:,} rows"
    off = listed([words.short(name) for name in fit.misfits], 8) or "none"
    alt = f"Ordered residuals less what is expected, a line a variable. Off: {off}."
    picture = found["pictures"]["residuals"]
    seen = f'<figure class="wide"><img src="{picture}" alt="{escape(alt)}"></figure>' if picture else ""
    return (
        f'<p class="verdict">{_text(fit.verdict[0].upper() + fit.verdict[1:])}.</p>'
        f"<p>{_text(words.samples_in_words(checked))}</p>"
        f"<p>Kernel Stein test of all variables together: {stein}.</p>"
        + (f"<p>Note: {_text(fit.note)}.</p>" if fit.note else "")
        + "<h3>Each variable given the others</h3><p>Residuals P(X ≤ x | rest) are uniform if the model is right; "
        f"the distance is Kolmogorov’s and Smirnov’s.</p>{seen}{_table(head, rows, 'Residuals, a row a variable')}"
        + _moments(fit.moments)
    )


def _moments(table: Any) -> str:
    if table is None:
        return ""
    far = table.reindex(table["z"].abs().sort_values(ascending=False, kind="stable").index).head(_MOMENTS)
    rows = [
        (_breakable(words.short(name, 80)), *(escape(words.number(row[key], 3)) for key in ("observed", "model", "z")))
        for name, row in far.iterrows()
    ]
    return (
        "<h3>Moments</h3><p>Means of terms, standardised, in the samples and in draws of the model: the farthest "
        "apart. They show where a model is off, not whether; of many some are always far.</p>"
        + _table(("mean of", "samples", "model", "z"), rows, "Moments that are farthest apart")
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]], caption: str) -> str:
    """Cells are HTML already."""
    top = "".join(f'<th scope="col">{escape(one)}</th>' for one in head)
    cells = lambda row: "".join(f"<td>{cell}</td>" for cell in row[1:])
    body = "".join(f'<tr><th scope="row"><span class="term">{row[0]}</span></th>{cells(row)}</tr>' for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f'<caption class="hidden">{escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
