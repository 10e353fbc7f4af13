"""isodus sample: new samples of a model, or what is missing in a table."""

from __future__ import annotations

import sys
import time
import warnings
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd
import typer

from .. import io
from ..tables import complete, numbers, read_cells, read_table
from ..transforms import of_setting, transformed, undone
from .common import (
    Debug,
    Json,
    as_json,
    check_output,
    check_stdout,
    counted,
    errors_in_a_line,
    load_model,
    seconds,
    show_warnings,
    warning_lines,
)

if TYPE_CHECKING:
    from .. import PolynomialModel

__all__ = ["sample"]

_SHOWN = 10  # rows on a terminal
_MANY = 10_000_000  # values of samples from which several processes pay
_LEFT_OUT = "The model is of log10 of the data: leave those rows out, or, with --given, those cells empty"


class Method(StrEnum):
    """How to draw samples."""

    AUTO = "auto"
    EXACT = "exact"
    GIBBS = "gibbs"
    HMC = "hmc"
    TEMPERING = "tempering"


def sample(
    file: Annotated[Path, typer.Argument(metavar="MODEL", help="A model, as isodus fit -o model.json writes it.")],
    n: Annotated[
        int | None, typer.Option("-n", "--samples", min=1, show_default="1000", help="How many samples to draw.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Where to write them, .csv or .npy; - is standard output. Without it a terminal shows the first.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, show_default="random", help="The same seed gives the same samples.")
    ] = None,
    method: Annotated[
        Method, typer.Option(help="How to draw: auto is exact if that can be had, and elsewhere the quickest chains.")
    ] = Method.AUTO,
    start: Annotated[
        Path | None, typer.Option(help="A CSV file with samples, such as the data, for chains to start from.")
    ] = None,
    given: Annotated[
        Path | None,
        typer.Option(help="A CSV file with empty cells or without some columns: fill in those, given the others."),
    ] = None,
    stays: Annotated[
        bool,
        typer.Option(
            "--transformed", help="For a model of log10 or asinh of the data: all tables are of those, not of the data."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Draw also from a model whose mass is known to be far from the data.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw new samples of a model, or fill in what is missing in a table."""
    with errors_in_a_line(debug):
        if given is None:
            check_output(output, "the samples", {file: "the model", start: "the samples"}, (".csv", ".npy"))
        else:
            _check_given(n, method, start)
            check_output(output, "the filled table", {file: "the model", given: "the table"}, (".csv",))
        check_stdout({"-o": output}, json)
        model = load_model(file)
        kinds, of = _undone(model, file, stays)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if given is None:
                (table, line), sep = _drawn(model, n or 1000, seed, method, start, kinds, force), ","
            else:
                table, line, sep = _filled(model, given, seed, kinds, force)
        said = [*of, *line.split("\n")]
        if not json:
            for one in said:
                typer.echo(one, err=True)
            show_warnings(caught)
        if output or not json:
            _write(table, output, sep)
        if json:
            where = {"samples": table.to_dict("list")} if output is None else {"written": str(output)}
            found = {"n_rows": len(table), "columns": list(table.columns), "said": said}
            typer.echo(as_json(found | {"warnings": warning_lines(caught)} | where))
        elif output and not io.is_stdout(output):
            order = f"; its columns are {', '.join(model.names)}" if output.suffix.lower() == ".npy" else ""
            typer.echo(f"written to {output}{order}", err=True)


def _check_given(n: int | None, method: Method, start: Path | None) -> None:
    if n is not None:
        raise ValueError("-n does not go with --given: the rows are those of the file")
    if method != Method.AUTO or start is not None:
        raise ValueError("--method and --start do not go with --given: they are for new samples")


def _undone(model: PolynomialModel, file: Path, stays: bool) -> tuple[dict[str, str], list[str]]:
    """What was taken of columns before the model was learned, and is to be undone; and what to say of it."""
    found = model.settings.get("transform")
    if found is None:
        return {}, []
    kinds = of_setting(found, model.names)
    words = found if isinstance(found, str) else ", ".join(f"{kind} of {name}" for name, kind in kinds.items())
    of = "of the data" if isinstance(found, str) else "of its columns"
    if stays:
        return {}, [f"the model is of {words} {of}; the table is of {words} too"]
    if not set(kinds.values()) <= {"log10", "asinh"}:
        raise ValueError(f"{file} is of {words} {of}, which cannot be undone here: take --transformed")
    return kinds, [f"the model is of {words} {of}; the table is in units of the data (else: --transformed)"]


def _drawn(
    model: PolynomialModel,
    n: int,
    seed: int | None,
    method: Method,
    start: Path | None,
    kinds: dict[str, str],
    force: bool,
) -> tuple[pd.DataFrame, str]:
    """New samples, and how they were made."""
    begin = None
    if start is not None:
        begin = transformed(complete(read_table(start, model.names), str(start)).frame, kinds, _LEFT_OUT)
    started = time.perf_counter()
    n_jobs = -1 if n * len(model.names) >= _MANY else None
    X = model.sample(n, seed, method=method.value, start=begin, n_jobs=n_jobs, force=force)
    lines = f"{counted(len(X), 'sample')} of {counted(len(model.names), 'variable')} in {seconds(started)}: "
    lines += repr(X.info).removeprefix("SamplingInfo: ")
    if start is not None and X.info.method == "exact":
        lines += "\nnote: --start was not used, exact samples need none"
    return undone(pd.DataFrame(np.asarray(X), columns=list(model.names)), kinds), lines


def _filled(
    model: PolynomialModel, given: Path, seed: int | None, kinds: dict[str, str], force: bool
) -> tuple[pd.DataFrame, str, str]:
    """The table with what was missing, what that was, and how its fields are separated.

    Cells that were there stay as they are, to the letter, and new ones are written as they are.
    """
    table, unnamed, dialect = read_cells(given)
    there = [name for name in model.names if name in table.columns]
    added = [name for name in model.names if name not in there]
    if not there:
        raise ValueError(
            f"{given} has no column of the model: it has {', '.join(map(repr, table.columns[:8]))}, the model has "
            f"{', '.join(map(repr, model.names[:8]))}"
        )
    own = {name: kind for name, kind in kinds.items() if name in there}
    known = transformed(numbers(given, table[there], dialect.decimal), own, _LEFT_OUT)
    known = known.reindex(columns=list(model.names))
    missing = known.isna()
    counts = missing.sum()
    line = f"nothing is missing in the {counted(len(table), 'row')} of {given}: they stay as they are"
    if missing.to_numpy().any():
        started = time.perf_counter()
        drawn = undone(model.impute(known, rng=seed, force=force), kinds)
        for name in added:
            table[name] = ""
        for name in counts[counts > 0].index:
            cells = missing[name].to_numpy()
            texts = [repr(value).replace(".", dialect.decimal) for value in drawn.loc[cells, name].tolist()]
            table.loc[cells, name] = texts
        each = ", ".join(f"{name} {number:,}" for name, number in counts[counts > 0].items())
        line = f"filled in {counted(int(counts.sum()), 'cell')}: {each}; {seconds(started)}"
        if added:
            line += f"\nnot in {given}, added as new columns: {', '.join(added)}"
    return table.rename(columns=dict.fromkeys(unnamed, "")), line, dialect.sep


def _write(table: pd.DataFrame, output: Path | None, sep: str) -> None:
    """To standard output, or to a file, which is there only once it is complete; on a terminal the first rows alone."""
    if output is None and sys.stdout.isatty() and len(table) > _SHOWN:
        table.head(_SHOWN).to_csv(sys.stdout, index=False, lineterminator="\n", sep=sep)
        typer.echo(
            f"… the first {_SHOWN} of {len(table):,} rows; -o samples.csv writes all, and a pipe gets all", err=True
        )
    elif output is None:
        table.to_csv(sys.stdout, index=False, lineterminator="\n", sep=sep)
    elif output.suffix.lower() == ".npy":
        with io.writing(output, binary=True) as f:
            np.save(f, table.to_numpy())
    else:
        with io.writing(output) as f:
            table.to_csv(f, index=False, sep=sep)
