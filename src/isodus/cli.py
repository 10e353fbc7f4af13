"""The command line tool."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from . import io
from ._version import __version__

if TYPE_CHECKING:
    from . import PolynomialModel

__all__ = ["app"]

_MANY = 10_000_000  # values of samples from which several processes pay
_LEFT_OUT = "The model is of log10 of the data: leave those rows out, or, with --given, those cells empty"

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
    l1: Annotated[
        str, typer.Option(help="Penalty that leaves few terms: a number, or auto, ebic, cv or stars to choose one.")
    ] = "0",
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Learn the model behind the numeric columns of a CSV file, and say what it found."""
    from . import ISODUS, PseudoLikelihood, ScoreMatching

    with _errors_in_a_line(debug):
        _check_output(output, "the model", {file: "the samples"})
        started = time.perf_counter()
        wanted = None if columns is None else [name.strip() for name in columns.split(",")]
        table, left_out = io.read_table(file, wanted)
        typer.echo(f"read {len(table):,} rows, {len(table.columns)} columns in {_seconds(started)}")
        if left_out:
            typer.echo("left out: " + ", ".join(f"{name} ({why})" for name, why in left_out.items()))
        table = _transformed(table, transform)

        choice: Any = {"isodus": ISODUS, "pseudo-likelihood": PseudoLikelihood, "score-matching": ScoreMatching}
        learner = choice[estimator](degree, max_order=max_order, l1=_penalty(l1), n_jobs=-1)
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

        _show(caught)
        for line in _unsettled(model.names, learner.status_):
            typer.echo(f"note: {line}")
        typer.echo(_compared(score, table))
        if output:
            model.save(output)
            typer.echo(f"model written to {output}")


def _penalty(text: str) -> float | str:
    """A number, or the word that it is."""
    try:
        return float(text)
    except ValueError:
        return text


class Size(StrEnum):
    """How large a study of the paper is."""

    QUICK = "quick"
    STANDARD = "standard"
    FULL = "full"


@app.command()
def paper(
    study: Annotated[str | None, typer.Argument(help="The study to run, or all; without one they are listed.")] = None,
    size: Annotated[Size, typer.Option(help="For minutes, for hours, or as many as in the paper.")] = Size.QUICK,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of results and figures.")] = Path("paper"),
    jobs: Annotated[int, typer.Option(help="Processes; -1 is one a core. Studies of run time take one.")] = -1,
    again: Annotated[bool, typer.Option("--again", help="Begin anew whatever is in the folder.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Run the paper's experiments, draw their figures, and say which of its claims hold."""
    from .paper import command
    from .paper.study import Stopped

    with _errors_in_a_line(debug):
        if study is None:
            return command.list_studies(output)
        try:
            command.run(study, size, output, jobs, again)
        except Stopped as stopped:
            typer.echo(str(stopped), err=True)
            raise typer.Exit(130) from None


class Method(StrEnum):
    """How to draw samples."""

    AUTO = "auto"
    EXACT = "exact"
    GIBBS = "gibbs"
    HMC = "hmc"
    TEMPERING = "tempering"


@app.command()
def sample(
    file: Annotated[Path, typer.Argument(metavar="MODEL", help="A model, as isodus fit -o model.json writes it.")],
    n: Annotated[
        int | None, typer.Option("-n", "--samples", min=1, show_default="1000", help="How many samples to draw.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Where to write them, .csv or .npy; as CSV on standard output unless given."
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
    transformed: Annotated[
        bool,
        typer.Option(
            "--transformed", help="For a model of log10 or asinh of the data: all tables are of those, not of the data."
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Draw new samples of a model, or fill in what is missing in a table."""
    from . import PolynomialModel

    with _errors_in_a_line(debug):
        if given is None:
            _check_output(output, "the samples", {file: "the model", start: "the samples"}, (".csv", ".npy"))
        else:
            _check_given(n, method, start)
            _check_output(output, "the filled table", {file: "the model", given: "the table"}, (".csv",))
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file}")
        model = PolynomialModel.load(file)
        transform = _undone(model, file, transformed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if given is None:
                table, line = _drawn(model, n or 1000, seed, method, start, transform)
            else:
                table, line = _filled(model, given, seed, transform)
        typer.echo(line, err=True)
        _show(caught)
        _write(table, output)
        if output:
            order = f"; its columns are {', '.join(model.names)}" if output.suffix.lower() == ".npy" else ""
            typer.echo(f"written to {output}{order}", err=True)


def _check_given(n: int | None, method: Method, start: Path | None) -> None:
    if n is not None:
        raise ValueError("-n does not go with --given: the rows are those of the file")
    if method != Method.AUTO or start is not None:
        raise ValueError("--method and --start do not go with --given: they are for new samples")


def _undone(model: PolynomialModel, file: Path, transformed: bool) -> Transform | None:
    """What was taken of the data before the model was learned, and is to be undone."""
    found = model.settings.get("transform")
    if found is None:
        return None
    if transformed:
        typer.echo(f"the model is of {found} of the data; the table is of {found} too", err=True)
        return None
    if found not in list(Transform):
        raise ValueError(f"{file} is of {found} of the data, which cannot be undone here: take --transformed")
    typer.echo(
        f"the model is of {found} of the data; the table is in units of the data (else: --transformed)", err=True
    )
    return Transform(found)


def _drawn(
    model: PolynomialModel, n: int, seed: int | None, method: Method, start: Path | None, transform: Transform | None
) -> tuple[pd.DataFrame, str]:
    """New samples, and how they were made."""
    begin = None if start is None else _transformed(io.read_table(start, model.names)[0], transform, _LEFT_OUT)
    started = time.perf_counter()
    n_jobs = -1 if n * len(model.names) >= _MANY else None
    X = model.sample(n, seed, method=method.value, start=begin, n_jobs=n_jobs)
    lines = f"{_counted(len(X), 'sample')} of {_counted(len(model.names), 'variable')} in {_seconds(started)}: "
    lines += repr(X.info).removeprefix("SamplingInfo: ")
    if start is not None and X.info.method == "exact":
        lines += "\nnote: --start was not used, exact samples need none"
    return pd.DataFrame(_back(np.asarray(X), transform), columns=list(model.names)), lines


def _filled(
    model: PolynomialModel, given: Path, seed: int | None, transform: Transform | None
) -> tuple[pd.DataFrame, str]:
    """The table with what was missing, and what that was. Cells that were there stay as they are, to the letter."""
    table, unnamed = io.read_cells(given)
    there = [name for name in model.names if name in table.columns]
    added = [name for name in model.names if name not in there]
    if not there:
        raise ValueError(
            f"{given} has no column of the model: it has {', '.join(map(repr, table.columns[:8]))}, the model has "
            f"{', '.join(map(repr, model.names[:8]))}"
        )
    known = _transformed(io.numbers(given, table[there]), transform, _LEFT_OUT).reindex(columns=list(model.names))
    missing = known.isna()
    counts = missing.sum()
    line = f"nothing is missing in the {_counted(len(table), 'row')} of {given}: they stay as they are"
    if missing.to_numpy().any():
        started = time.perf_counter()
        drawn = _back(model.impute(known, rng=seed), transform)
        for name in added:
            table[name] = ""
        for name in counts[counts > 0].index:
            cells = missing[name].to_numpy()
            table.loc[cells, name] = [repr(value) for value in drawn.loc[cells, name].tolist()]
        each = ", ".join(f"{name} {number:,}" for name, number in counts[counts > 0].items())
        line = f"filled in {_counted(int(counts.sum()), 'cell')}: {each}; {_seconds(started)}"
        if added:
            line += f"\nnot in {given}, added as new columns: {', '.join(added)}"
    return table.rename(columns=dict.fromkeys(unnamed, "")), line


def _back(values: Any, transform: Transform | None) -> Any:
    """What `_transformed` would make these values of."""
    if transform == Transform.LOG10:
        return 10.0**values
    return np.sinh(values) if transform == Transform.ASINH else values


def _write(table: pd.DataFrame, output: Path | None) -> None:
    """To standard output, or to a file, which is there only once it is complete."""
    if output is None:
        table.to_csv(sys.stdout, index=False, lineterminator="\n")
    elif output.suffix.lower() == ".npy":
        with io.writing(output, binary=True) as f:
            np.save(f, table.to_numpy())
    else:
        with io.writing(output) as f:
            table.to_csv(f, index=False)


@contextmanager
def _errors_in_a_line(debug: bool) -> Iterator[None]:
    """An error as one line and exit status 1, or, to find its cause, with its traceback."""
    try:
        yield
    except Exception as error:
        if debug or isinstance(
            error, BrokenPipeError | typer.Exit
        ):  # the reader has had enough, as head has: typer ends quietly
            raise
        kind = "" if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: "
        typer.echo(f"error: {kind}{' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from None


def _show(caught: Sequence[warnings.WarningMessage]) -> None:
    for warning in caught:
        typer.echo(f"warning: {' '.join(str(warning.message).split())}", err=True)


def _check_output(
    output: Path | None, what: str, sources: Mapping[Path | None, str], endings: Sequence[str] = ()
) -> None:
    """What would keep it from being written, found out before the work is done; sources: files that must stay."""
    if output is None:
        return
    if output.is_dir():
        raise ValueError(f"{output} is a folder: name a file to write {what} to")
    if endings and output.suffix.lower() not in endings:
        raise ValueError(f"cannot write {output}: {what} can be written to a file that ends in {' or '.join(endings)}")
    if not output.parent.is_dir():
        raise ValueError(f"there is no folder {output.parent} to write {output.name} into")
    if not os.access(output.parent, os.W_OK):
        raise ValueError(f"the folder {output.parent} cannot be written into")
    for file, content in sources.items():
        if file is not None and output.exists() and file.exists() and output.samefile(file):
            raise ValueError(f"{what} would replace {content} in {file}: name another file")


def _transformed(
    table: pd.DataFrame,
    transform: Transform | None,
    remedy: str = "Use --transform asinh, or leave those columns or rows out",
) -> pd.DataFrame:
    if transform == Transform.LOG10:
        bad = (table <= 0).sum()
        if bad.any():
            counts = ", ".join(f"{name} ({number:,})" for name, number in bad[bad > 0].items())
            raise ValueError(f"log10 of values that are not above zero, of {len(table):,} rows: {counts}. {remedy}")
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


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _seconds(started: float) -> str:
    return f"{time.perf_counter() - started:.2f} s"
