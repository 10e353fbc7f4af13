"""Files of samples as streams of blocks: Parquet, CSV and .npy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .csv_dialect import dialect_of

__all__ = ["Rows", "columns_of", "file_paths", "rows_of"]

Rows = Iterator[tuple[Any, str]]  # rows as a table or an array, and where they come from, in words


class _Format(NamedTuple):
    """How a kind of file is read: its columns, and its rows in blocks of at most so many."""

    columns: Callable[[Path], list[str] | int]
    rows: Callable[[Path, list[str], int], Rows]


def file_paths(given: list[str | Path]) -> list[Path]:
    """The files that are meant, folders replaced by what is in them."""
    found: list[Path] = []
    for path in map(Path, given):
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.is_file() and _ending(one) in _FORMATS)
            if not inside:
                raise ValueError(f"{path}: no {', '.join(_FORMATS)} file is in this folder")
            found += inside
        elif not path.exists():
            raise FileNotFoundError(f"{path}: there is no such file")
        else:
            found.append(path)
    if not found:
        raise ValueError("no files: give a path, a list of paths, or a function that makes blocks")
    for path in found:
        _format(path)
    return found


def _ending(path: Path) -> str:
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix.lower()


def _format(path: Path) -> _Format:
    if _ending(path) not in _FORMATS:
        raise ValueError(f"{path}: not a kind of file that can be streamed, which are {', '.join(_FORMATS)}")
    return _FORMATS[_ending(path)]


def columns_of(path: Path) -> list[str]:
    """The names of a file's columns; x0, x1, … where it has none."""
    found = _format(path).columns(path)
    return [f"x{i}" for i in range(found)] if isinstance(found, int) else found


def rows_of(path: Path, wanted: list[str], rows: int) -> Rows:
    """Blocks of at most so many rows, with the columns that are wanted, in that order."""
    return _format(path).rows(path, wanted, rows)


def _parquet(path: Path) -> Any:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install isodus[files]") from None
    try:
        return parquet.ParquetFile(path, page_checksum_verification=True)
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a whole Parquet file ({_short(error)})") from None


def _parquet_columns(path: Path) -> list[str]:
    with _parquet(path) as file:
        return [str(name) for name in file.schema_arrow.names]


def _parquet_rows(path: Path, wanted: list[str], rows: int) -> Rows:
    from pyarrow import ArrowException

    with _parquet(path) as file:
        done, batches = 0, file.iter_batches(batch_size=rows, columns=wanted)
        while True:
            where = f"{path}, from row {done:,} on"
            try:
                batch = next(batches, None)
            except (ArrowException, OSError) as error:
                raise ValueError(f"{where}: cannot be read ({_short(error)})") from None
            if batch is None:
                return
            done += batch.num_rows
            yield batch.to_pandas()[wanted], where


def _csv_columns(path: Path) -> list[str]:
    try:
        options = dialect_of(path).options
        names = [str(name) for name in pd.read_csv(path, nrows=0, **options).columns]
        with suppress(pd.errors.EmptyDataError):
            fields = pd.read_csv(path, header=None, skiprows=1, nrows=1, **options).shape[1]
            if fields > len(names):  # which pandas would take for names of rows
                raise ValueError(f"{fields} fields in the first row under a header of {len(names)} names")
    except (ValueError, OSError, EOFError) as error:  # what pandas raises is a ValueError, of whatever kind
        raise ValueError(f"{path}: no header can be read ({_short(error)})") from None
    return names


def _csv_rows(path: Path, wanted: list[str], rows: int) -> Rows:
    done, where = 0, f"{path}, from row 0 on"
    many, options = len(_csv_columns(path)), dialect_of(path).options
    try:  # all columns, since rows that are too long would not be noticed otherwise
        with pd.read_csv(path, chunksize=max(rows * len(wanted) // many, 256), **options) as chunks:
            for chunk in chunks:
                yield chunk[wanted], where
                done += len(chunk)
                where = f"{path}, from row {done:,} on"
    except (pd.errors.ParserError, UnicodeDecodeError, OSError, EOFError) as error:
        raise ValueError(f"{where}: cannot be read ({_short(error)})") from None


def _npy(path: Path) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path}: not a whole .npy file ({_short(error)})") from None
    if array.ndim != 2:
        raise ValueError(f"{path} has shape {array.shape}: two dimensions are wanted, samples and variables")
    return array


def _npy_rows(path: Path, wanted: list[str], rows: int) -> Rows:
    array = _npy(path)
    at = [int(name[1:]) for name in wanted]
    for start in range(0, len(array), rows):
        part = np.array(_npy(path)[start : start + rows])  # mapped anew: pages that were read count as memory
        yield part if at == list(range(part.shape[1])) else part[:, at], f"{path}, from row {start:,} on"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


_FORMATS = {
    ".parquet": _Format(_parquet_columns, _parquet_rows),
    ".csv": _Format(_csv_columns, _csv_rows),
    ".csv.gz": _Format(_csv_columns, _csv_rows),
    ".npy": _Format(lambda path: _npy(path).shape[1], _npy_rows),
}
