"""Files, pipes and functions → tables one after the other. pyarrow, pandas and numpy read; what it is decides how."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .dialect import csv_options
from .unpack import FAULTS, Open, again, kind_of, member_of, needed, show_size, unpacked

__all__ = ["MOST_UNPACKED", "Source", "source_of"]

Array = np.ndarray
Tables = Callable[[Sequence[str] | None], Iterator[Any]]

MOST_UNPACKED = 1 << 30
"""Bytes up to which an .npz array or a workbook, which cannot be read in parts, is unpacked into memory."""
_ROWS = 1 << 16  # of a table
_CELLS = 1 << 22
_ARROW = {"parquet": "parquet", "feather": "ipc"}


class Source(NamedTuple):
    """Where tables come from, and how: `tables` starts anew at each call, with some columns or all."""

    name: str
    tables: Tables
    faults: tuple[type[Exception], ...] = ()
    """What its reader raises where a file is damaged."""


def source_of(source: Any, csv: Mapping[str, Any] | None = None) -> Source:
    """The reader of a path, an open file, "-" for standard input, or a function that returns tables."""
    if callable(source):
        name = getattr(source, "__name__", type(source).__name__)
        return Source(f"the function {name!r}", partial(_called, source))
    if isinstance(source, str) and source == "-":
        source = sys.stdin
    if hasattr(source, "read"):
        name = "standard input" if source is sys.stdin else str(getattr(source, "name", "the open file"))
        return _of_file(name, again(source, name), csv or {})
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"open_samples reads a path, an open file, or a function that returns tables anew at each call, not "
            f"{type(source).__name__}. Pass tables in memory to fit, and generators as functions."
        )
    path = Path(source).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}. Check the path.")
    if path.is_dir():
        return _arrow(path, "parquet")
    if not path.is_file():  # a pipe
        with path.open("rb") as pipe:
            return _of_file(str(path), again(pipe, str(path)), csv or {})
    return _of_file(str(path), partial(open, path, "rb"), csv or {}, path)


def _of_file(name: str, opened: Open, csv: Mapping[str, Any], path: Path | None = None) -> Source:
    """The reader of a file, by its first bytes."""
    with opened() as file:
        kind = kind_of(file)
        member = member_of(file, name) if kind == "zip" else ""
    if kind == "zstd":
        needed("pyarrow", f"{name} is packed by zstd")
    if kind in ("npy", *_ARROW):
        if path is None:
            raise ValueError(f"{name} is a {kind} file, which is read by its path. Pass the path.")
        return Source(name, partial(_npy, path), FAULTS) if kind == "npy" else _arrow(path, _ARROW[kind])
    if member.endswith(".npy"):
        return Source(name, partial(_npz, name, opened, member), FAULTS)
    if member.startswith("xl/"):
        return _workbook(name, opened)
    faults = (*FAULTS, pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeError)
    return Source(name, partial(_csv, name, opened, kind, member, csv), faults)


def _called(source: Callable[[], Any], _: Sequence[str] | None) -> Iterator[Any]:
    return iter(source())


def _csv(
    name: str, opened: Open, kind: str, member: str, csv: Mapping[str, Any], _: Sequence[str] | None
) -> Iterator[Any]:
    with unpacked(opened(), kind, name, member) as file:
        options = csv_options(file, name, csv)
        rows = max(2048, min(_ROWS, _CELLS // max(1, len(options["names"]))))
        with pd.read_csv(file, chunksize=rows, low_memory=False, **options) as frames:
            yield from map(_numbered, frames)


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose columns of strings have numbers where these can be read, whatever the other rows hold."""
    for name in frame.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]]:
        column = frame[name].astype(object)
        values = pd.to_numeric(column, errors="coerce")
        frame[name] = column.where(values.isna(), values)
    return frame


def _arrow(path: Path, kind: str) -> Source:
    arrow = needed("pyarrow", f"{path} is a {'Parquet' if kind == 'parquet' else 'Feather'} file or a folder")
    return Source(str(path), partial(_arrow_tables, path, kind), (*FAULTS, arrow.ArrowException))


def _arrow_tables(path: Path, kind: str, columns: Sequence[str] | None) -> Iterator[Any]:
    arrow, dataset = needed("pyarrow", str(path)), needed("pyarrow.dataset", str(path))
    found = dataset.dataset(path, format=kind, partitioning="hive")
    there = None if columns is None else [name for name in columns if name in found.schema.names]
    batches = found.to_batches(columns=there, batch_size=_ROWS, batch_readahead=2, fragment_readahead=1)
    yield from (arrow.Table.from_batches([batch]) for batch in batches if batch.num_rows)


def _npy(path: Path, _: Sequence[str] | None) -> Iterator[Array]:
    try:
        values = np.load(path, "r", allow_pickle=False)
    except ValueError as error:
        raise OSError(str(error)) from error
    yield from _parts(_shaped(values, str(path)))


def _npz(name: str, opened: Open, member: str, _: Sequence[str] | None) -> Iterator[Array]:
    """The array of an archive, if it is not too large to be unpacked."""
    with opened() as file, zipfile.ZipFile(file) as archive:
        with archive.open(member) as packed:
            size, dtype = _header(packed)
        _check_size(max(size, archive.getinfo(member).file_size), f"{member} in {name}", "save it by numpy.save")
        if dtype.hasobject:
            raise ValueError(f"{member} in {name} holds objects. Save an array of numbers.")
        with archive.open(member) as packed:
            yield from _parts(_shaped(np.lib.format.read_array(packed, allow_pickle=False), name))


def _header(file: Any) -> tuple[int, np.dtype]:
    """Bytes that an array asks for, and its type."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return int(np.prod([dtype.itemsize, *shape], dtype=object)), dtype


def _check_size(size: int, name: str, remedy: str) -> None:
    if size > MOST_UNPACKED:
        raise ValueError(
            f"{name} would unpack to {show_size(size)}, and at most {show_size(MOST_UNPACKED)} is unpacked into "
            f"memory. To read it in parts, {remedy}, or write a Parquet file."
        )


def _shaped(values: Array, name: str) -> Array:
    if values.ndim != 2:
        raise ValueError(f"{name} holds an array of shape {values.shape}. Save one of shape (rows, columns).")
    return values


def _parts(values: Array) -> Iterator[Array]:
    """Parts of an array."""
    rows = max(2048, min(_ROWS, _CELLS // max(1, values.shape[1])))
    for start in range(0, len(values), rows):
        yield values[start : start + rows]


def _workbook(name: str, opened: Open) -> Source:
    needed("openpyxl", f"{name} is a workbook")
    with opened() as file, zipfile.ZipFile(file) as archive:
        _check_size(sum(member.file_size for member in archive.infolist()), name, "export it as CSV")

    return Source(name, partial(_sheet, opened), FAULTS)


def _sheet(opened: Open, _: Sequence[str] | None) -> Iterator[Any]:
    with opened() as file:
        try:
            yield pd.read_excel(io.BytesIO(file.read()), engine="openpyxl")
        except (ValueError, KeyError) as error:
            raise OSError(str(error)) from error
