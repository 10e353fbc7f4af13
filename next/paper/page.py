"""Makes docs/paper.md from page.md and the results: every claim judged, every figure."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from . import STUDIES
from .methods import JOINT, OURS, PAPER
from .statistics import FAILS, HOLDS, OPEN, Claim, plain
from .study import Results, load, stored
from .timing import over

_TEMPLATE = Path(__file__).with_name("page.md")


def page(folder: Path, where: Path) -> str:
    """The text of the page that lies in `where`, of all studies that have results in `folder`."""
    found = {name: results for name in STUDIES if (results := stored(name, folder)) is not None}
    claims = {name: load(name).claims(results.table) for name, results in found.items()}
    relative = os.path.relpath(folder, where).replace(os.sep, "/")
    parts = dict(n="–", table="–", joint="–", paper="–", summary=_summary(claims))
    if "two-d" in found:
        parts |= _speed(found["two-d"].table)
    studies = [_section(name, load(name), results, claims[name], relative) for name, results in found.items()]
    return _TEMPLATE.read_text("utf-8").format(studies="\n".join(studies), **parts)


def write_page(folder: Path, file: Path) -> None:
    """As `page`, in a file."""
    file.write_text(page(folder, file.parent), "utf-8")


def _summary(claims: dict[str, list[Claim]]) -> str:
    stated = [(name, claim) for name, some in claims.items() for claim in some if claim.stated]
    count = Counter(claim.verdict for _, claim in stated)
    lines = [
        f"Of {len(stated)} claims of the paper {count[HOLDS]} hold, {count[FAILS]} do not hold, and {count[OPEN]} "
        "cannot be told at this size."
    ]
    for verdict, words in ((FAILS, "These do not hold:"), (OPEN, "These cannot be told:")):
        some = [f"- {_line(claim)} ({name})" for name, claim in stated if claim.verdict == verdict]
        lines += ["", words, "", *some] if some else []
    return "\n".join(lines)


def _speed(table: pd.DataFrame) -> dict[str, str]:
    n = table["n"].max()
    seconds = table[table["n"] == n].groupby("method")["seconds"].median().sort_values()
    rows = [f"| {method} | {plain(s)} | {plain(s / seconds[PAPER])} |" for method, s in seconds.items()]
    head = ["| estimator | seconds | times ISODUS, paper |", "| --- | --- | --- |"]
    joint, paper = (plain(over(table, n, JOINT, other).value) for other in (OURS, PAPER))
    return dict(n=f"{n:,}", table="\n".join(head + rows), joint=joint, paper=paper)


def _section(name: str, study: Any, results: Results, claims: list[Claim], folder: str) -> str:
    lines = [f"## {study.TITLE}", "", f"*The paper:* {_escaped(study.STATED)}", ""]
    lines += [f"![{study.TITLE}]({folder}/{name}.svg)", "", "| claim | measured | verdict |", "| --- | --- | --- |"]
    for claim in claims:
        text = _escaped(claim.text) if claim.stated else f"*{_escaped(claim.text)}*"
        verdict = claim.verdict if claim.verdict == HOLDS else f"**{claim.verdict}**"
        lines.append(f"| {text} | {_escaped(claim.measured)} | {verdict} |")
    about = results.about
    how = f"{_size(results.table)}; {about['seconds']:,.0f} s of a core, {about['machine']}"
    return "\n".join([*lines, "", f"Size {about['size']}: {how}.", ""])


def _size(table: pd.DataFrame) -> str:
    """How often, and on how many samples."""
    parts = [f"n = {', '.join(f'{n:,}' for n in sorted(table['n'].unique()))}"] if table["n"].nunique() < 10 else []
    for column, plural in (("set", "sets of samples"), ("model", "random models"), ("graph", "graphs")):
        parts += [f"{table[column].nunique()} {plural}"] if column in table else []
    if "converged" in table and not table["converged"].all():
        parts.append(f"{(~table['converged']).sum():,} of {len(table):,} fits did not converge and are included")
    return ", ".join(parts)


def _line(claim: Claim) -> str:
    return f"{_escaped(claim.text)}: {_escaped(claim.measured)}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")
