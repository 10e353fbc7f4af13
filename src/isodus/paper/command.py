"""What `isodus paper` prints."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from .._version import __version__
from . import STUDIES, study_named
from .study import Study, compute, write_outputs

__all__ = ["run", "show_studies", "studies"]


def studies(folder: Path) -> pd.DataFrame:
    """Every study, what it is about, and whether there are results in a folder."""
    rows = [(name, study.TITLE, _state(folder, name)) for name, study in STUDIES.items()]
    return pd.DataFrame(rows, columns=["study", "title", "state"])


def show_studies(listed: pd.DataFrame, folder: Path) -> None:
    """Print them, and how to run them."""
    table = Table(header_style="bold", box=None, pad_edge=False)
    for heading in ("study", "what it shows", f"in {folder}"):
        table.add_column(heading)
    for row in listed.itertuples(index=False):
        table.add_row(*row)
    console = _console()
    console.print(table)
    console.print(
        "\nisodus paper NAME runs one and isodus paper all runs all, with --size quick (ten minutes for all on two "
        "cores), standard (three to four hours) or full (the paper's repetitions).",
        highlight=False,
    )


def _state(folder: Path, name: str) -> str:
    if (folder / f"{name}.json").exists():
        return "done"
    part = folder / f"{name}.part.jsonl"
    return "begun" if part.exists() else ""


def run(name: str, size: str, folder: Path, n_jobs: int | None, again: bool, *, quiet: bool = False) -> pd.DataFrame:
    """One study, or all: computed, drawn, its claims printed unless `quiet`; returns the claims, with their study."""
    chosen = list(STUDIES.values()) if name == "all" else [study_named(name)]
    console, found = _console(quiet), []
    for k, study in enumerate(chosen, 1):
        label = f"{study.NAME} ({k} of {len(chosen)})" if len(chosen) > 1 else study.NAME
        settings = {"size": size, **study.SIZES[size]}
        results = compute(study, settings, folder, n_jobs=n_jobs, again=again, label=label)
        claims = write_outputs(study, results, folder)
        found.append(claims.assign(study=study.NAME))
        _show(console, study, claims, study.remarks(results.table, results.settings))
        if results.isodus != __version__:
            console.print(f"(computed by isodus {results.isodus}; this is {__version__})", highlight=False)
        console.print(f"results and figure: {folder / study.NAME}.json, .png, .svg, .claims.csv\n", highlight=False)
    return pd.concat(found, ignore_index=True)


def _show(console: Console, study: Study, claims: pd.DataFrame, remarks: list[str]) -> None:
    console.print(f"[bold]{study.NAME}[/bold]: {study.TITLE}", highlight=False)
    console.print(f"The paper: {study.STATED}\n", highlight=False, markup=False)
    table = Table(header_style="bold", show_lines=False, pad_edge=False, box=None)
    table.add_column("claim", ratio=5)
    table.add_column("measured", ratio=6)
    table.add_column("verdict", ratio=2)
    for row in claims.itertuples():
        table.add_row(row.claim, row.measured, row.verdict)
    console.print(table, highlight=False, markup=False)
    for remark in remarks:
        console.print(f"\n{remark}", highlight=False, markup=False)


def _console(quiet: bool = False) -> Console:
    return Console(width=None if Console().is_terminal else 140, quiet=quiet)
