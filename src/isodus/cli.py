"""The command line tool."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from ._version import __version__

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


@app.command()
def demo(
    n: Annotated[int, typer.Option("-n", "--samples", min=1000, help="How many samples to draw.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
) -> None:
    """Draw samples of the paper's four-variable model, learn it, and compare."""
    from . import ISODUS
    from .datasets import paper_4d

    console = Console(width=None if Console().is_terminal else 100)
    truth = paper_4d()
    console.print(
        f"isodus {__version__}: four variables in two independent pairs, 24 parameters. The estimator knows\n"
        "neither; it learns all terms of degree 2 to 4, with the settings of the paper (ν = δ = 2).\n",
        highlight=False,
    )
    started = time.perf_counter()
    X = truth.sample(n, rng=seed)
    drawn = time.perf_counter() - started
    estimator = ISODUS(
        degree=4,
        min_degree=2,
        max_order=None,
        nu=2.0,
        delta=2.0,
        center=False,
        scale=False,
        refine=0,
        consensus="geometric",
        random_state=seed,
    )
    started = time.perf_counter()
    estimator.fit(X)
    learned = time.perf_counter() - started

    model, true = estimator.model_, truth.to_dict()
    table = Table(title="parameters that are not zero", title_justify="left", header_style="bold")
    for _ in range(2):
        table.add_column("term")
        table.add_column("true", justify="right")
        table.add_column("learned", justify="right")
    values = model.to_dict()
    cells = [(model.term_name(t), f"{true[t]:.2f}", f"{values[t]:+.3f}") for t in values if t in true]
    first = [cell for cell in cells if "x0" in cell[0] or "x1" in cell[0]]
    second = [cell for cell in cells if cell not in first]
    for left, right in zip(first, second, strict=True):
        table.add_row(*left, *right)
    console.print(table)
    zero = np.abs([value for term, value in values.items() if term not in true])
    error = np.mean([abs(value - true.get(term, 0.0)) for term, value in values.items()])
    console.print(
        f"{len(zero)} further terms, in truth zero, were learned too: mean size {zero.mean():.3f}, "
        f"largest {zero.max():.3f}.\nMean absolute error over all {len(values)} terms: {error:.3f}.\n"
        f"{n:,} samples drawn in {drawn:.2f} s, model learned in {learned:.2f} s.",
        highlight=False,
    )
