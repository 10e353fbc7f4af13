"""The command line tool."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from . import io
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
        "neither; it learns all terms of degree 2 to 4.\n",
        highlight=False,
    )
    terms = dict(degree=4, min_degree=2, max_order=None, random_state=seed)
    started = time.perf_counter()
    X = truth.sample(n, rng=seed)
    drawn = time.perf_counter() - started
    started = time.perf_counter()
    model = ISODUS(**terms).fit(X).model_  # type: ignore[arg-type]
    learned = time.perf_counter() - started
    paper = dict(nu=2.0, delta=2.0, center=False, scale=False, refine=0, consensus="geometric", integrable="warn")
    other = ISODUS(**terms, **paper).fit(X).model_  # type: ignore[arg-type]

    true, values, stderr = truth.to_dict(), model.to_dict(), dict(zip(model.basis.terms, model.stderr(), strict=True))
    table = Table(title="parameters that are not zero", title_justify="left", header_style="bold")
    for _ in range(2):
        table.add_column("term")
        table.add_column("true", justify="right")
        table.add_column("learned", justify="right")
    cells = [(model.term_name(t), f"{true[t]:.2f}", f"{values[t]:+.3f} ± {stderr[t]:.3f}") for t in values if t in true]
    first = [cell for cell in cells if "x0" in cell[0] or "x1" in cell[0]]
    second = [cell for cell in cells if cell not in first]
    for left, right in zip(first, second, strict=True):
        table.add_row(*left, *right)
    console.print(table)
    zeros = [t for t in values if t not in true]
    sure = sum(abs(values[t]) < 1.96 * stderr[t] for t in zeros)
    error, papers = (
        np.mean([abs(value - true.get(t, 0.0)) for t, value in found.to_dict().items()]) for found in (model, other)
    )
    console.print(
        f"{len(zeros)} further terms, in truth zero, were learned too: {sure} within 1.96 standard errors of zero.\n"
        f"Mean absolute error over all {len(values)} terms: {error:.3f}; with the settings of the paper {papers:.3f}.\n"
        f"{n:,} samples drawn in {drawn:.2f} s, model learned in {learned:.2f} s.",
        highlight=False,
    )


class Estimator(StrEnum):
    """What to learn by."""

    ISODUS = "isodus"
    PSEUDO_LIKELIHOOD = "pseudo-likelihood"
    SCORE_MATCHING = "score-matching"


class Transform(StrEnum):
    """What to take of every value before learning."""

    LOG10 = "log10"
    ASINH = "asinh"


@app.command()
def fit(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header: a sample a row, a variable a column.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where to write the model, as JSON.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Names of the columns to take, as a,b,c; all numeric ones unless given.")
    ] = None,
    transform: Annotated[Transform | None, typer.Option(help="Take this of all values first.")] = None,
    degree: Annotated[int, typer.Option(help="Highest degree of a term; even.")] = 4,
    max_order: Annotated[int, typer.Option(help="Most distinct variables in a term.")] = 2,
    estimator: Annotated[Estimator, typer.Option(help="What to learn by.")] = Estimator.ISODUS,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Learn the model behind the numeric columns of a CSV file, and say what it found."""
    from . import ISODUS, PseudoLikelihood, ScoreMatching

    with _errors_in_a_line(debug):
        _check_output(output, file)
        started = time.perf_counter()
        wanted = None if columns is None else [name.strip() for name in columns.split(",")]
        table, left_out = io.read_table(file, wanted)
        typer.echo(f"read {len(table):,} rows, {len(table.columns)} columns in {_seconds(started)}")
        if left_out:
            typer.echo("left out: " + ", ".join(f"{name} ({why})" for name, why in left_out.items()))
        table = _transformed(table, transform)

        choice: Any = {"isodus": ISODUS, "pseudo-likelihood": PseudoLikelihood, "score-matching": ScoreMatching}
        learner = choice[estimator](degree, max_order=max_order, n_jobs=-1)
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught, Console(stderr=True).status("learning …"):
            warnings.simplefilter("always")
            learner.fit(table)
            learned = _seconds(started)
            score = learner.score(table)
        model = learner.model_
        if transform:
            model = replace(model, settings={**model.settings, "transform": str(transform)})
        typer.echo(f"learned by {estimator} in {learned}\n\n{model.summary()}\n")

        for warning in caught:
            typer.echo(f"warning: {' '.join(str(warning.message).split())}", err=True)
        for line in _unsettled(model.names, learner.status_):
            typer.echo(f"note: {line}")
        typer.echo(_compared(score, table))
        if output:
            model.save(output)
            typer.echo(f"model written to {output}")


@contextmanager
def _errors_in_a_line(debug: bool) -> Iterator[None]:
    """An error as one line and exit status 1, or, to find its cause, with its traceback."""
    try:
        yield
    except Exception as error:
        if debug:
            raise
        kind = "" if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: "
        typer.echo(f"error: {kind}{' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from None


def _check_output(output: Path | None, file: Path) -> None:
    """What would keep the model from being written, found out before the work is done."""
    if output is None:
        return
    if not output.parent.is_dir():
        raise ValueError(f"there is no folder {output.parent} to write {output.name} into")
    if output.is_dir():
        raise ValueError(f"{output} is a folder: name a file to write the model to")
    if output.exists() and file.exists() and output.samefile(file):
        raise ValueError(f"the model would replace the samples in {file}: name another file")


def _transformed(table: pd.DataFrame, transform: Transform | None) -> pd.DataFrame:
    if transform == Transform.LOG10:
        bad = (table <= 0).sum()
        if bad.any():
            counts = ", ".join(f"{name} ({number:,})" for name, number in bad[bad > 0].items())
            raise ValueError(
                f"log10 of values that are not above zero, of {len(table):,} rows: {counts}. Use --transform asinh, "
                "or leave those columns or rows out"
            )
        return table.apply(np.log10)
    return table.apply(np.arcsinh) if transform == Transform.ASINH else table


def _unsettled(names: Sequence[str], status: Sequence[str]) -> list[str]:
    """The variables that did not converge as they should, a line for each status."""
    lines = []
    for word in sorted(set(status) - {"converged"}):
        found = [name for name, other in zip(names, status, strict=True) if other == word]
        lines.append(f"{word}, {len(found)} of {len(names)} variables: {', '.join(found)}")
    return lines


def _compared(score: float, table: pd.DataFrame) -> str:
    """How well the model predicts each variable from the others, beside a Gaussian."""
    from . import PseudoLikelihood

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is to be said of the samples has been said
        gaussian = PseudoLikelihood(degree=2).fit(table).score(table)
    return (
        f"mean log P(x_i | rest) a variable, on these samples: {score:.4f}; "
        f"a Gaussian has {gaussian:.4f} (higher is better)"
    )


def _seconds(started: float) -> str:
    return f"{time.perf_counter() - started:.2f} s"
