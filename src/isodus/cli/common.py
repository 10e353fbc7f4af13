"""What commands share: errors in a line, warnings, files to write to, transforms, JSON."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from .. import io
from ..tables import Table, complete, read_table
from ..transforms import of_setting, transformed

if TYPE_CHECKING:
    from .. import PolynomialModel

__all__ = [
    "Debug",
    "Json",
    "as_json",
    "check_output",
    "check_stdout",
    "counted",
    "errors_in_a_line",
    "load_model",
    "samples_for",
    "seconds",
    "show_warnings",
    "unnamed_output",
    "warning_lines",
]

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for programs to read.")]


@contextmanager
def errors_in_a_line(debug: bool) -> Iterator[None]:
    """An error as one line and exit status 1, or, to find its cause, with its traceback."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        typer.echo(str(interrupt) or "interrupted", err=True)
        raise typer.Exit(130) from None
    except Exception as error:
        if debug or isinstance(
            error, BrokenPipeError | typer.Exit
        ):  # the reader has had enough, as head has: typer ends quietly
            raise
        kind = "" if isinstance(error, ValueError | OSError | ImportError) else f"{type(error).__name__}: "
        typer.echo(f"error: {kind}{' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from None


def warning_lines(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """What was warned of, a line each, and each once."""
    return list(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))


def show_warnings(caught: Sequence[warnings.WarningMessage]) -> None:
    """What was warned of, on standard error."""
    for line in warning_lines(caught):
        typer.echo(f"warning: {line}", err=True)


def load_model(file: Path) -> PolynomialModel:
    """A model that isodus fit wrote."""
    from .. import PolynomialModel

    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    return PolynomialModel.load(file)


def check_output(
    output: Path | None, what: str, sources: Mapping[Path | None, str], endings: Sequence[str] = ()
) -> None:
    """What would keep it from being written, found out before the work is done; sources: files that must stay."""
    if output is None or io.is_stream(output):
        return
    if output.is_dir():
        raise ValueError(f"{output} is a folder: name a file to write {what} to")
    if endings and output.suffix.lower() not in endings:
        raise ValueError(f"cannot write {output}: {what} can be written to a file that ends in {' or '.join(endings)}")
    target = Path(os.path.realpath(output)) if output.is_symlink() else output  # links are written through
    if not target.parent.is_dir():
        raise ValueError(f"there is no folder {target.parent} to write {target.name} into")
    try:
        io.check_writable(target)
    except OSError as error:
        where = str(output) if target.exists() else f"the folder {target.parent}"
        raise ValueError(f"{where} cannot be written{'' if target.exists() else ' into'}: {error.strerror}") from None
    for file, content in sources.items():
        if file is None:
            continue
        if os.path.realpath(output) == os.path.realpath(file) or (
            output.exists() and file.exists() and output.samefile(file)
        ):
            raise ValueError(f"{what} would replace {content} in {file}: name another file")


def unnamed_output(output: Path, what: str) -> Path:
    """A file that the user has not named: one that is there already is not replaced."""
    if os.path.lexists(output):
        raise ValueError(f"{output} is there already: name a file for {what} with -o; -o {output} replaces it")
    return output


def check_stdout(outputs: Mapping[str, Path | None], json: bool = False) -> bool:
    """Whether one of the outputs, by option, is standard output; an error if two are, or one and --json."""
    found = [option for option, output in outputs.items() if output and io.is_stdout(output)] + (
        ["--json"] if json else []
    )
    if len(found) > 1:
        raise ValueError(f"{' and '.join(found)} both write to standard output. Name a file for one of them")
    return bool(found)


def as_json(content: Any) -> str:
    """A JSON text; numbers that are not finite are null."""
    return json.dumps(_plain(content), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def counted(number: int, what: str) -> str:
    """A number of things in words."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def seconds(started: float) -> str:
    """Time since then, in words."""
    return f"{time.perf_counter() - started:.2f} s"


def samples_for(model: PolynomialModel, data: Path, weights: str | None = None) -> Table:
    """The complete rows of a table that a model is held against, with what was taken of its columns taken again."""
    table = complete(read_table(data, model.names, weights), str(data), "drop")
    kinds = of_setting(model.settings.get("transform"), model.names)
    return table._replace(frame=transformed(table.frame, kinds, "Leave those rows out"))
