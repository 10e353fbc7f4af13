"""Tables of samples from files: CSV of any dialect, Parquet, Feather, .npy, .npz, standard input; read with care.

What is no number, missing or twice there is told by file, column and line. Nothing is guessed silently: what was
assumed is said.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from .csv_dialect import Dialect, dialect_of

__all__ = ["Table", "chosen_columns", "complete", "numbers", "read_cells", "read_table"]

_MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none")
_MOST_COLUMNS = 20_000  # beyond which a table is more likely to lie on its side
_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")

File = str | os.PathLike[str]


class Table(NamedTuple):
    """Numbers, NaN where they are missing, and weights, None for one each.

    left_out: columns that were not taken, and why; said: what was assumed in reading.
    """

    frame: pd.DataFrame
    weight: np.ndarray | None
    left_out: dict[str, str]
    said: list[str]


def read_table(files: File | Sequence[File], columns: Sequence[str] | None = None, weight: str | None = None) -> Table:
    """The numeric columns of a file or several, or those asked for, by name or pattern (``gene_*``).

    "-" is standard input, as CSV. Rows of several files follow one another; each has the columns of the first.
    """
    paths = [files] if isinstance(files, str | os.PathLike) else list(files)
    _check_different(paths)
    first = _one_table(paths[0], columns, weight)
    names, parts, said = list(first.frame.columns), [first], list(first.said)
    for path in paths[1:]:
        parts.append(_one_table(path, names, weight))
        said += [line for line in parts[-1].said if line not in said]
    if len(parts) == 1:
        return first
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    together = None if first.weight is None else np.concatenate([part.weight for part in parts])
    return Table(frame, together, first.left_out, said)


def complete(table: Table, what: str, how: str = "fail") -> Table:
    """A table without missing values. how: "fail", an error with their number in each column, or "drop" those rows."""
    missing = table.frame.isna()
    counts = missing.sum()
    if not counts.any():
        return table
    rows = missing.any(axis=1).to_numpy()
    listed = ", ".join(f"{name} ({number:,})" for name, number in counts[counts > 0].items())
    if how == "fail":
        raise ValueError(
            f"missing values in {what}, {rows.sum():,} of {len(rows):,} rows: {listed}. Choose other columns, "
            "--missing drop leaves out those rows, --missing impute fills them in by the model"
        )
    if rows.all():
        raise ValueError(f"every row of {what} has a missing value: {listed}. Leave out columns with many of them")
    weight = None if table.weight is None else table.weight[~rows]
    said = [*table.said, f"{rows.sum():,} of {len(rows):,} rows with missing values left out: {listed}"]
    return Table(table.frame[~rows].reset_index(drop=True), weight, table.left_out, said)


def chosen_columns(wanted: Sequence[str], there: Sequence[str], where: File) -> list[str]:
    """Columns by name, or by pattern with * and ?, in the order that was asked for."""
    found: list[str] = []
    for word in wanted:
        matching = [word] if word in there else [name for name in there if fnmatchcase(name, word)]
        if not matching:
            kind = "column like" if set(word) & set("*?[") else "column"
            raise ValueError(
                f"{where} has no {kind} {word!r}; it has {', '.join(map(repr, there[:20]))}"
                f"{' and more' if len(there) > 20 else ''}"
            )
        pattern = word not in there
        found += [name for name in matching if not (pattern and name in found)]
    twice = sorted({repr(name) for name in found if found.count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)} chosen more than once")
    return found


def _one_table(path: File, columns: Sequence[str] | None, weight: str | None) -> Table:
    """One file; every number that is there is finite."""
    table, unnamed, said = _read(path)
    where = _called(path)
    if len(table.columns) > _MOST_COLUMNS and columns is None:
        raise ValueError(
            f"{where} has {len(table.columns):,} columns and {len(table):,} rows: a column is a variable and a row a "
            "sample. Is it on its side? Choose columns with --columns if it is not"
        )
    left_out = dict.fromkeys(unnamed, "has no name") | {
        name: _first_word(table[name]) for name in table.columns.difference(unnamed, sort=False) if _wordy(table[name])
    }
    if columns is None:
        chosen = [name for name in table.columns if name not in left_out and name != weight]
        if not chosen:
            raise ValueError(f"{where} has no numeric column: {', '.join(map(repr, table.columns[:8]))}")
    else:
        chosen = chosen_columns(columns, list(table.columns), where)
    wordy = [name for name in [*chosen, *([weight] if weight else [])] if name in left_out and _wordy(table[name])]
    if wordy:
        listed = ", ".join(f"{name} {left_out[name]}" for name in wordy[:5])
        raise ValueError(f"columns of {where} that are not numeric: {listed}")
    frame = table[chosen].astype(np.float64)
    infinite = np.isinf(frame.to_numpy())
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise ValueError(f"{where}: {chosen[column]} is infinite in row {row + 1:,}. Leave out that row or column")
    counts = None
    if weight is not None:
        (weight,) = chosen_columns([weight], list(table.columns), where)
        counts = table[weight].to_numpy(np.float64, na_value=np.nan)
        if weight in chosen:
            raise ValueError(f"{weight} is a variable and the weights: leave it out of --columns")
    return Table(frame, counts, left_out if columns is None else {}, said)


def _check_different(paths: Sequence[File]) -> None:
    """Refuse one file that is given twice, under whatever names: its rows would count twice."""
    seen: dict[str, File] = {}
    for path in paths:
        real = "-" if str(path) == "-" else os.path.realpath(path)
        if real in seen:
            also = "" if str(path) == str(seen[real]) else f", also as {seen[real]}"
            raise ValueError(f"{_called(path)} is given twice{also}: its rows would count twice. Leave one out")
        seen[real] = path


def _called(path: File) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _read(path: File) -> tuple[pd.DataFrame, list[str], list[str]]:
    """A table as it is, its columns without a name, and what was assumed."""
    where = _called(path)
    if str(path) == "-":
        return _read_csv(BytesIO(sys.stdin.buffer.read()), where)
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name the files in it")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    ending = path.suffix.lower()
    if ending in (".parquet", ".feather", ".arrow"):
        return _checked(_read_columns(path, ending), where), [], []
    if ending in (".npy", ".npz"):
        return _checked(_read_arrays(path), where), [], []
    return _read_csv(path, where)


def _checked(table: pd.DataFrame, where: str) -> pd.DataFrame:
    names = list(map(str, table.columns))
    twice = sorted({repr(name) for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"more than one column of {where} is called {', '.join(twice)}: rename or delete one")
    if not len(table):
        raise ValueError(f"{where} has no rows")
    return table.set_axis(names, axis=1)


def _read_columns(path: Path, ending: str) -> pd.DataFrame:
    try:
        return pd.read_parquet(path) if ending == ".parquet" else pd.read_feather(path)
    except ImportError:
        raise ImportError(f"{path}: Parquet and Feather files need pyarrow: pip install isodus[files]") from None
    except Exception as error:  # of pyarrow, which has its own kinds
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _read_arrays(path: Path) -> pd.DataFrame:
    """Two-dimensional arrays have columns x0, x1, …; the fields of a record, or the arrays of an .npz, names."""
    try:
        content = np.load(path, "r", allow_pickle=False)  # mapped, a header that promises too much is found out
        arrays = {name: content[name] for name in content.files} if path.suffix.lower() == ".npz" else {"": content}
    except (ValueError, OSError, EOFError, BadZipFile, KeyError) as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    if len(arrays) == 1:
        (array,) = arrays.values()
        if array.dtype.names:
            return pd.DataFrame({name: array[name] for name in array.dtype.names})
        if array.ndim in (1, 2):
            rows = array if array.ndim == 2 else array[:, None]
            return pd.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])])
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) != 1 or len(next(iter(shapes.values()))) != 1:
        listed = ", ".join(f"{name or 'the array'} {shape}" for name, shape in list(shapes.items())[:6])
        raise ValueError(
            f"{path} is no table: one array with a sample a row, or a column each, are wanted, not {listed}"
        )
    return pd.DataFrame(arrays)


def read_cells(path: File) -> tuple[pd.DataFrame, list[str], Dialect]:
    """All cells of a CSV file, as the texts they are; its columns without a name, "column 3"; and its dialect."""
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    dialect = dialect_of(source)
    table, unnamed = _parsed_with_care(source, str(path), dialect, as_text=True)
    return table.fillna(""), unnamed, dialect  # rows shorter than the header


def numbers(path: File, cells: pd.DataFrame, decimal: str = ".") -> pd.DataFrame:
    """Cells that `read_cells` read from a file, as numbers: NaN where they are missing; all others are finite."""
    found = {}
    for name in cells.columns:
        there = ~cells[name].str.strip().str.lower().isin(_MISSING)
        values = cells[name].where(there)
        values = values if decimal == "." else values.str.replace(decimal, ".", regex=False)
        found[name] = pd.to_numeric(values, errors="coerce").astype(np.float64)
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


def _read_csv(source: Path | IO[bytes], where: str) -> tuple[pd.DataFrame, list[str], list[str]]:
    dialect = dialect_of(source)
    table, unnamed = _parsed_with_care(source, where, dialect)
    said = [dialect.words] if dialect.words else []
    if _may_be_headless(table):
        shown = ", ".join(table.columns[:4]) + (", …" if len(table.columns) > 4 else "")
        said.append(f"the first line ({shown}) is taken for names: if it is a sample, as all others, add a header line")
    return table, unnamed, [f"{where}: {line}" for line in said]


def _parsed_with_care(
    source: Path | IO[bytes], where: str, dialect: Dialect, as_text: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """The table, a row or more, and which columns had no name."""
    try:
        table, unnamed = _parsed(source, where, dialect, as_text)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{where} is empty") from None
    except UnicodeDecodeError:
        table, unnamed = _parsed(_rewound(source), where, dialect._replace(encoding="latin-1"), as_text)
    except pd.errors.ParserWarning:
        raise ValueError(f"the rows of {where} have more fields than its header") from None
    except pd.errors.ParserError as error:
        raise ValueError(f"{where} is no CSV table: {' '.join(str(error).split())}") from None
    if not len(table):
        raise ValueError(f"{where} has a header and no rows")
    return table, unnamed


def _rewound(source: Path | IO[bytes]) -> Path | IO[bytes]:
    if not isinstance(source, Path):
        source.seek(0)
    return source


def _parsed(source: Path | IO[bytes], where: str, dialect: Dialect, as_text: bool) -> tuple[pd.DataFrame, list[str]]:
    """The table as it is, and which columns had no name. Two of one name are refused, not renamed."""
    layout: Mapping[str, Any] = {**dialect.options, "skipinitialspace": True}
    first = pd.read_csv(source, header=None, nrows=1, dtype=str, keep_default_na=False, **layout)
    names = [str(name).strip() for name in first.iloc[0]]
    twice = (
        sorted({repr(name) for name in names if name and names.count(name) > 1}) if len(set(names)) < len(names) else []
    )
    if any(_is_fraction(name, dialect.decimal) for name in names) or (twice and all(map(_is_integer, names))):
        raise ValueError(f"{where} begins with numbers ({', '.join(names[:4])}, …), not with names: add a header line")
    if twice:
        raise ValueError(f"more than one column of {where} is called {', '.join(twice)}: rename or delete one")
    unnamed = [f"column {k}" for k, name in enumerate(names, 1) if not name]
    names = [name or f"column {k}" for k, name in enumerate(names, 1)]
    options: dict[str, Any] = dict(header=0, names=names, index_col=False, low_memory=False)
    if as_text:  # an empty line is a row, of one missing cell, where there is one column
        options |= dict(dtype=str, keep_default_na=False, skip_blank_lines=len(names) > 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header loses values
        return pd.read_csv(_rewound(source), **options, **layout), unnamed


def _wordy(column: pd.Series) -> bool:
    return pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column)


def _first_word(column: pd.Series) -> str:
    """Which value keeps a column from being numeric, and where."""
    values = column.astype(str) if pd.api.types.is_bool_dtype(column) else column
    bad = np.asarray(pd.to_numeric(values, errors="coerce").isna() & values.notna())
    at = int(np.argmax(bad))
    return f"has {values.iloc[at]!r} in line {at + 2}" if bad.any() else "has no value at all"


def _may_be_headless(table: pd.DataFrame) -> bool:
    """Whether names are integers, as all cells are, and do not count the columns: the first line may be a row."""
    names = list(table.columns)
    counted = [[str(k) for k in range(first, first + len(names))] for first in (0, 1)]
    return (
        all(map(_is_integer, names))
        and names not in counted
        and all(pd.api.types.is_integer_dtype(kind) for kind in table.dtypes)
    )


def _is_integer(word: str) -> bool:
    return word.removeprefix("-").isdecimal()


def _is_fraction(word: str, decimal: str = ".") -> bool:
    """Whether a word is a number but no integer: such is no column's name."""
    try:
        value = float(word.replace(decimal, "."))
        return math.isfinite(value) and not value.is_integer()
    except ValueError:
        return False
