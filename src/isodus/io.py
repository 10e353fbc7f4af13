"""Files: tables read with care, anything written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

__all__ = ["numbers", "read_cells", "read_json", "read_table", "write_text", "writing"]

_MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none")


def read_table(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The numeric columns of a CSV file with a header, or those asked for; and why others were left out.

    Every value is finite: missing ones are an error, with their number in each column.
    """
    table, unnamed = _read_csv(path)
    left_out = dict.fromkeys(unnamed, "has no name") | {
        name: _first_word(table[name]) for name in table.columns.difference(unnamed, sort=False) if _wordy(table[name])
    }
    chosen = [name for name in table.columns if name not in left_out] if columns is None else list(columns)
    _check_chosen(path, table, chosen, left_out)
    numbers = table[chosen].astype(np.float64)
    missing = (~np.isfinite(numbers)).sum()
    if missing.any():
        counts = ", ".join(f"{name} ({number:,})" for name, number in missing[missing > 0].items())
        raise ValueError(
            f"missing or infinite values in {path}, {len(table):,} rows: {counts}. Fill them in, leave out those rows, "
            "or choose other columns"
        )
    return numbers, left_out if columns is None else {}


def read_cells(path: str | os.PathLike[str]) -> tuple[pd.DataFrame, list[str]]:
    """All cells of a CSV file with a header, as the texts they are; and its columns without a name, "column 3"."""
    table, unnamed = _read_csv(path, as_text=True)
    return table.fillna(""), unnamed  # rows shorter than the header


def numbers(path: str | os.PathLike[str], cells: pd.DataFrame) -> pd.DataFrame:
    """Cells that `read_cells` read from a file, as numbers: NaN where they are missing; all others are finite."""
    found = {}
    for name in cells.columns:
        there = ~cells[name].str.strip().str.lower().isin(_MISSING)
        found[name] = pd.to_numeric(cells[name].where(there), errors="coerce").astype(np.float64)
        bad = np.asarray(there & ~np.isfinite(found[name]))
        if bad.any():
            at = int(np.argmax(bad))
            more = int(bad.sum()) - 1
            others = f", and {more:,} more cell{'s' if more > 1 else ''} like it" if more else ""
            raise ValueError(
                f"column {name} of {path} has {cells[name].iloc[at]!r} in line {at + 2}{others}: write a finite "
                "number, or leave the cell empty if its value is missing"
            )
    return pd.DataFrame(found, index=cells.index)


def _read_csv(path: str | os.PathLike[str], as_text: bool = False) -> tuple[pd.DataFrame, list[str]]:
    """The table, a row or more, and which columns had no name."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        table, unnamed = _parsed(path, as_text)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8; write the table as CSV") from None
    except pd.errors.ParserWarning:
        raise ValueError(f"the rows of {path} have more fields than its header") from None
    except pd.errors.ParserError as error:
        raise ValueError(f"{path} is no CSV table: {error}") from None
    if not len(table):
        raise ValueError(f"{path} has a header and no rows")
    return table, unnamed


def _parsed(path: str | os.PathLike[str], as_text: bool) -> tuple[pd.DataFrame, list[str]]:
    """The table as it is, and which columns had no name. Two of one name are refused, not renamed."""
    first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, skipinitialspace=True)
    names = [str(name).strip() for name in first.iloc[0]]
    twice = sorted({repr(name) for name in names if name and names.count(name) > 1})
    if twice:
        raise ValueError(f"more than one column of {path} is called {', '.join(twice)}: rename or delete one")
    if any(_is_fraction(name) for name in names):
        raise ValueError(f"{path} begins with numbers ({', '.join(names[:4])}, …), not with names: add a header line")
    unnamed = [f"column {k}" for k, name in enumerate(names, 1) if not name]
    names = [name or f"column {k}" for k, name in enumerate(names, 1)]
    options: dict[str, Any] = dict(header=0, names=names, index_col=False, skipinitialspace=True, low_memory=False)
    if as_text:  # an empty line is a row, of one missing cell, where there is one column
        options |= dict(dtype=str, keep_default_na=False, skip_blank_lines=len(names) > 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header loses values
        return pd.read_csv(path, **options), unnamed


def _check_chosen(
    path: str | os.PathLike[str], table: pd.DataFrame, chosen: Sequence[str], left_out: dict[str, str]
) -> None:
    if not chosen:
        only = next(iter(table.columns))
        hint = "; fields must be separated by commas" if len(table.columns) == 1 and set(only) & set(";\t| ") else ""
        raise ValueError(f"{path} has no numeric column: {', '.join(map(repr, table.columns[:8]))}{hint}")
    unknown = [name for name in chosen if name not in table.columns]
    if unknown:
        raise ValueError(
            f"{path} has no column {', '.join(map(repr, unknown))}; it has {', '.join(map(repr, table.columns[:20]))}"
            f"{' and more' if len(table.columns) > 20 else ''}"
        )
    twice = sorted({repr(name) for name in chosen if list(chosen).count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)} chosen more than once")
    wordy = [f"{name} {left_out[name]}" for name in chosen if name in left_out and _wordy(table[name])]
    if wordy:
        raise ValueError(f"columns of {path} that are not numeric: {', '.join(wordy)}")


def _wordy(column: pd.Series) -> bool:
    return pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column)


def _first_word(column: pd.Series) -> str:
    """Which value keeps a column from being numeric, and where."""
    values = column.astype(str) if pd.api.types.is_bool_dtype(column) else column
    bad = np.asarray(pd.to_numeric(values, errors="coerce").isna() & values.notna())
    at = int(np.argmax(bad))
    return f"has {values.iloc[at]!r} in line {at + 2}"


def _is_fraction(word: str) -> bool:
    """Whether a word is a number but no integer: such is no column's name."""
    try:
        return math.isfinite(float(word)) and not float(word).is_integer()
    except ValueError:
        return False


def read_json(path: str | os.PathLike[str], what: str, kind: str) -> dict[str, Any]:
    """The object in a JSON file whose "format" is `kind`; what: in words, for errors."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no {what}: it is not JSON ({error})") from None
    if not isinstance(content, dict) or content.get("format") != kind:
        raise ValueError(f'{path} is no {what}: it lacks "format": "{kind}"')
    return content


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file; no half-written one is ever seen."""
    with writing(path) as f:
        f.write(text)


@contextmanager
def writing(path: str | os.PathLike[str], binary: bool = False) -> Iterator[IO[Any]]:
    """A temporary file beside this path, open to write to; it takes its place once all has been written."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") if binary else os.fdopen(handle, "w", encoding="utf-8", newline="") as f:
            yield f
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
