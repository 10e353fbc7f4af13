"""isodus paper: the paper's experiments."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .common import Debug, Json, as_json, errors_in_a_line

__all__ = ["paper"]


class Size(StrEnum):
    """How large a study of the paper is."""

    QUICK = "quick"
    STANDARD = "standard"
    FULL = "full"


def paper(
    study: Annotated[str | None, typer.Argument(help="The study to run, or all; without one they are listed.")] = None,
    size: Annotated[Size, typer.Option(help="For minutes, for hours, or as many as in the paper.")] = Size.QUICK,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of results and figures.")] = Path("paper"),
    jobs: Annotated[int, typer.Option(help="Processes; -1 is one a core. Studies of run time take one.")] = -1,
    again: Annotated[bool, typer.Option("--again", help="Begin anew whatever is in the folder.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Run the paper's experiments, draw their figures, and say which of its claims hold."""
    from ..paper import command
    from ..paper.study import Stopped

    with errors_in_a_line(debug):
        if study is None:
            listed = command.studies(output)
            typer.echo(as_json({"studies": listed.to_dict("records")})) if json else command.show_studies(
                listed, output
            )
            return
        try:
            claims = command.run(study, size, output, jobs, again, quiet=json)
            if json:
                typer.echo(as_json({"size": size, "folder": str(output), "claims": claims.to_dict("records")}))
        except Stopped as stopped:
            typer.echo(str(stopped), err=True)
            raise typer.Exit(130) from None
