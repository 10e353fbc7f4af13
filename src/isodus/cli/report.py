"""isodus report: a model as a page to read and to forward."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .common import (
    Debug,
    Json,
    as_json,
    check_output,
    check_stdout,
    errors_in_a_line,
    load_model,
    samples_for,
    show_warnings,
    unnamed_output,
    warning_lines,
)

__all__ = ["ENDINGS", "report"]

ENDINGS = (".html", ".htm")


def report(
    file: Annotated[Path, typer.Argument(metavar="MODEL", help="A model, as isodus fit -o model.json writes it.")],
    data: Annotated[
        Path | None, typer.Option(help="A table of samples to hold the model against; - is standard input.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            show_default="beside the model, if nothing is there",
            help="Where to write it: .html; - is standard output.",
        ),
    ] = None,
    weights: Annotated[str | None, typer.Option(metavar="COLUMN", help="A column of repetition counts.")] = None,
    title: Annotated[str | None, typer.Option(help="Of the report.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a report of a model, one HTML file: in words, graph, tables, pictures, fit."""
    from .. import write_report

    with errors_in_a_line(debug):
        output = output or unnamed_output(file.with_suffix(".html"), "the report")
        check_output(output, "the report", {file: "the model", data: "the samples"}, ENDINGS)
        aside = check_stdout({"-o": output}, json)
        if weights is not None and data is None:
            raise ValueError("--weights are those of samples: give --data too")
        model = load_model(file)
        X, counts, said = None, None, list[str]()
        if data is not None:
            table = samples_for(model, data, weights)
            X, counts, said = table.frame, table.weight, table.said
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with Console(stderr=True).status("making the report"):
                write_report(model, output, X, sample_weight=counts, title=title, said=said)
        if json:
            typer.echo(as_json({"written": str(output), "said": said, "warnings": warning_lines(caught)}))
            return
        for line in said:
            typer.echo(line, err=aside)
        show_warnings(caught)
        if not aside:
            typer.echo(f"written to {output}")
