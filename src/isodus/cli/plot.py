"""isodus plot: pictures of a model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

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

__all__ = ["plot"]


def plot(
    file: Annotated[Path, typer.Argument(metavar="MODEL", help="A model, as isodus fit -o model.json writes it.")],
    kind: Annotated[
        str, typer.Option(help="graph, couplings, forest; marginals and pairs, over --data if given; residuals of it.")
    ] = "graph",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            show_default="beside the model, if nothing is there",
            help="Where to write it: .png, .svg or .pdf; - is standard output, as PNG.",
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="A table of samples, for the kinds that show them.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Draw also from a model whose mass is known to be far from the data.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw a picture of a model."""
    from ..plotting import draw

    with errors_in_a_line(debug):
        output = output or unnamed_output(file.with_suffix(f".{kind}.png"), "the picture")
        check_output(output, "the picture", {file: "the model", data: "the samples"})
        aside = check_stdout({"-o": output}, json)
        model = load_model(file)
        X = None
        if data is not None:
            X = samples_for(model, data).frame
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            draw(kind, model, X, output, **({"force": True} if force else {}))
        if json:
            typer.echo(as_json({"kind": kind, "written": str(output), "warnings": warning_lines(caught)}))
            return
        show_warnings(caught)
        if not aside:
            typer.echo(f"written to {output}")
