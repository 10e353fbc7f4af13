"""Tables as users have them → columns of numbers. Nothing else looks at what kind of table it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple, NoReturn

import narwhals as nw
import numpy as np
import pandas as pd
from scipy.sparse import issparse

from .._core.notes import listed

__all__ = ["Table", "columns_of", "default_names", "distinct", "frame_of", "numbers", "read_table"]

Array = np.ndarray

_NOT_NUMBERS = (nw.Categorical, nw.Enum, nw.Datetime, nw.Date, nw.Duration, nw.Time, nw.List, nw.Array, nw.Struct)


class Table(NamedTuple):
    """X, (n, p), float64 in Fortran order, finite; and the names that the user's frame gives to its columns."""

    X: Array
    columns: tuple[str, ...] | None


def default_names(p: int) -> tuple[str, ...]:
    """x0, x1, …"""
    return tuple(f"x{i}" for i in range(p))


def read_table(X: Any, names: Sequence[str] | None = None, start: int = 0) -> Table:
    """A table of finite numbers, with at least one row and one column, or an error that names the column and row.

    X may be an array, a list of rows, or a frame that narwhals reads (pandas, polars, pyarrow, …). names replace those
    of the frame in messages, and start is the number that these give to the first row.
    """
    if issparse(X):
        raise TypeError("Sparse data were passed, but isodus needs dense data. Use X.toarray().")
    frame = frame_of(X)
    if frame is None:
        return Table(_finite(_array(X, names, start), names, start), None)
    columns = distinct(frame.columns)
    shown = columns if names is None or len(names) != len(columns) else names
    _check_shape((len(frame), len(columns)))
    values = np.empty((len(frame), len(columns)), order="F")
    for i, name in enumerate(shown):
        values[:, i] = _column(frame[:, i], f"Column {name!r}", start)
    return Table(_finite(values, shown, start), columns)


def columns_of(X: Any, names: Sequence[str], who: str = "isodus", start: int = 0) -> Array:
    """X in the order of the fitted names, (n, p), checked like the samples of a fit.

    Columns of a frame are found by their names, in whatever order they are. Arrays are taken by position, and so is a
    frame whose names are all new where the fit knew none (its names are x0, x1, …). who is named where counts differ;
    start is the number of the first row.
    """
    names = tuple(names)
    values, columns = read_table(X, start=start)
    if columns is None or (names == default_names(len(names)) and not set(names) & set(columns)):
        _check_count(values.shape[1], len(names), who)
        return values
    missing = [name for name in names if name not in columns]
    extra = [name for name in columns if name not in names]
    if missing or extra:
        parts = [f"Columns seen in the fit are missing: {listed(missing)}."] if missing else []
        parts += [f"Columns that were not in the fit: {listed(extra)}."] if extra else []
        if len(names) != len(columns):
            parts.append(f"X has {len(columns)} features, but {who} is expecting {len(names)} features as input.")
        raise ValueError(" ".join([*parts, "Pass the columns of the fit, in any order."]))
    if columns == names:
        return values
    return values[:, [columns.index(name) for name in names]]


def numbers(values: Any, what: str, start: int = 0) -> Array:
    """A one-dimensional array as float64; missing values become NaN. Anything but numbers is an error.

    start: the number of the first row in messages.
    """
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan) if values.dtype.kind in "buif" else values.filled()
    values = np.asarray(values)
    if values.dtype.kind in "buif":
        with np.errstate(over="ignore", invalid="ignore"):  # a longdouble may become infinite, which is looked for
            return values.astype(np.float64, copy=False)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported. {what} is complex. Pass real and imaginary parts as columns.")
    if values.dtype.kind == "O":
        return _from_objects(values, what, start)
    kind = {"U": "strings", "S": "strings", "T": "strings", "M": "dates", "m": "durations"}.get(values.dtype.kind)
    _not_numbers(what, kind or str(values.dtype))


def _from_objects(values: Array, what: str, start: int) -> Array:
    missing = pd.isna(values)
    result = np.full(values.shape, np.nan)
    for place in np.flatnonzero(~missing):
        value = values[place]
        if isinstance(value, complex | np.complexfloating):
            raise ValueError(f"Complex data not supported. {what} is complex in row {start + place}.")
        if isinstance(value, str | bytes):
            _not_numbers(what, f"{'dates as ' * _is_date(value)}strings (row {start + place}: {value[:20]!r})")
        if isinstance(value, date):
            _not_numbers(what, f"dates (row {start + place})")
        try:
            result[place] = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{what} is not a number in row {start + place}: {error}. Convert or drop it.") from None
    return result


def _is_date(text: str | bytes) -> bool:
    """Whether a string begins with a date such as 2024-01-31."""
    try:
        date.fromisoformat(text[:10])  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _not_numbers(what: str, kind: str) -> NoReturn:
    remedy = "Convert or drop it."
    if kind.startswith(("dates", "values of type Date")):
        remedy = "Drop it; if rows are a series in time, sort them by it and use dependence='auto' in fit."
    raise ValueError(f"{what} holds {kind}, and isodus needs numbers. {remedy}")


def frame_of(X: Any) -> nw.DataFrame[Any] | None:
    """X as narwhals sees it, None for what is not a frame."""
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        distinct(X.columns)
        raise
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("X is a lazy frame, and isodus needs its values. Collect it, as by X.collect() or X.compute().")
    return frame if isinstance(frame, nw.DataFrame) else None


def distinct(labels: Any) -> tuple[str, ...]:
    """Labels as names, an error where two are the same."""
    columns = tuple(str(label) for label in labels)
    twice = sorted({name for name in columns if columns.count(name) > 1}) if len(set(columns)) < len(columns) else []
    if twice:
        raise ValueError(f"More than one column is called {listed(twice)}. Results need one name per column; rename.")
    return columns


def _column(column: nw.Series[Any], what: str, start: int) -> Array:
    if isinstance(column.dtype, _NOT_NUMBERS):
        _not_numbers(what, f"values of type {column.dtype}")
    return numbers(column.to_numpy(), what, start)


def _array(X: Any, names: Sequence[str] | None, start: int = 0) -> Array:
    """An array or a list of rows as a two-dimensional float64 array in Fortran order."""
    values = X if isinstance(X, np.ma.MaskedArray) else _as_array(X)
    if values.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {values.ndim}D array instead. Reshape your data: X.reshape(-1, 1) if it is a "
            "single variable, X.reshape(1, -1) if it is a single sample."
        )
    _check_shape(values.shape)
    if type(values) is np.ndarray and values.dtype == np.float64:
        return np.asfortranarray(values)
    if names is None or len(names) != values.shape[1]:
        names = default_names(values.shape[1])
    result = np.empty(values.shape, order="F")
    for i, name in enumerate(names):
        result[:, i] = numbers(values[:, i], f"Column {name!r}", start)
    return result


def _as_array(X: Any) -> Array:
    try:
        values = np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"X is not a table: {error}. Pass rows of equal length.") from None
    if values.dtype.kind in "US" and not isinstance(X, np.ndarray):  # numbers beside strings became strings
        return np.asarray(X, dtype=object)
    return values


def _check_shape(shape: tuple[int, ...]) -> None:
    n, p = shape
    if p == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape=({n}, {p})) while a minimum of 1 is required.")
    if n == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape=({n}, {p})) while a minimum of 1 is required.")


def _check_count(p: int, fitted: int, who: str) -> None:
    if p != fitted:
        raise ValueError(f"X has {p} features, but {who} is expecting {fitted} features as input.")


def _finite(X: Array, names: Sequence[str] | None, start: int = 0) -> Array:
    """X, if all of it is finite; its sum is NaN or infinite otherwise, and seldom because it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):
            return X
    for i in range(X.shape[1]):
        wrong = ~np.isfinite(X[:, i])
        if wrong.any():
            row = int(np.argmax(wrong))
            kind = "NaN" if np.isnan(X[row, i]) else "an infinity (inf)"
            name = (names if names is not None and len(names) == X.shape[1] else default_names(X.shape[1]))[i]
            raise ValueError(
                f"Column {name!r} contains {kind} in row {start + row} ({int(wrong.sum()):,} such rows), and a density "
                "needs finite values. Drop those rows or fill them in."
            )
    return X
