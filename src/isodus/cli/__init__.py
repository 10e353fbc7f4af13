"""The command line tool, a module a command."""

from __future__ import annotations

from typing import Annotated

import typer

from .._version import __version__
from .compare import compare
from .demo import demo
from .fit import fit
from .paper import paper
from .plot import plot
from .report import report
from .sample import sample

__all__ = ["app"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn which continuous variables interact, in pairs, threes and fours, from samples.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"isodus {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the tool itself."""


for command in (fit, sample, compare, plot, report, paper, demo):
    app.command()(command)
