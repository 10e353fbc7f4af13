"""What constructors and methods ask of their arguments."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

__all__ = [
    "Interrupted",
    "column_finder",
    "count",
    "distinct_names",
    "finite_rows",
    "generator",
    "index_terms",
    "is_index",
    "positions",
    "square",
    "telling_where",
    "vector",
    "warn",
]

_PACKAGE = os.path.dirname(__file__)


class Interrupted(UserWarning):
    """Ctrl-C ended something early, and what there was is the answer."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points to the line of the user's by which isodus was called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def telling_where(where: str) -> Iterator[None]:
    """A Ctrl-C in here says where it was and what is kept, unless it says so already."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if interrupt.args:
            raise
        raise KeyboardInterrupt(f"interrupted {where}") from None


def count(n: Any, name: str) -> int:
    """A whole number of at least one."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"{name} must be a positive integer, not {n!r}")
    return int(n)


def generator(rng: Any) -> np.random.Generator:
    """A random generator, of a seed or as it is."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ValueError(f"rng must be what numpy.random.default_rng takes, a seed or a Generator: {error}") from None


def is_index(value: Any) -> bool:
    """Whether it can be a position in a list."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 0


def column_finder(columns: Sequence[Any]) -> Callable[[Any], int | None]:
    """What tells the position of a column: by its name, of whatever type or as a string; else by its index; or None."""
    known = {str(name): i for i, name in enumerate(columns)} | {name: i for i, name in enumerate(columns)}

    def find(key: Any) -> int | None:
        place = int(key) if is_index(key) and key < len(columns) else None
        return None if isinstance(key, bool) or not isinstance(key, Hashable) else known.get(key, place)  # True is 1

    return find


def positions(variables: Any, names: Sequence[str]) -> list[int]:
    """The indices of variables that are given by index or name, each once; None is all."""
    if variables is None:
        return list(range(len(names)))
    find, found = column_finder(names), []
    for v in [variables] if isinstance(variables, str) or is_index(variables) else variables:
        at = find(v)
        if at is None:
            shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise ValueError(f"the model has no variable {v!r}; it has {shown}")
        found.append(at)
    if not found:
        raise ValueError("variables is empty: name at least one, or leave it out for all")
    return list(dict.fromkeys(found))


def index_terms(theta: Mapping[Any, float]) -> None:
    """Parameters by term, at least one, each a tuple of indices."""
    if not theta:
        raise ValueError("theta is empty: give at least one term, such as {(0, 0): 1.0}")
    odd = [term for term in theta if not isinstance(term, tuple) or not term or not all(map(is_index, term))]
    if odd:
        raise ValueError(f"a term is a tuple of variable indices such as (0, 0, 1), not {odd[0]!r}")


def vector(values: Iterable[float], length: int, name: str) -> np.ndarray:
    """A copy, finite, of this length, that cannot be written to."""
    array = np.array(values, dtype=np.float64)
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, it should have {length} values")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds a value that is not finite, at position {np.argmin(np.isfinite(array))}")
    array.flags.writeable = False
    return array


def square(values: Any, length: int) -> np.ndarray | csr_array:
    """A copy of a covariance, of this size, that cannot be written to."""
    if issparse(values):
        if values.shape != (length, length):
            raise ValueError(f"covariance has shape {values.shape}, it should have ({length}, {length})")
        return csr_array(values, dtype=np.float64, copy=True)
    array = np.array(values, dtype=np.float64)
    if array.shape != (length, length):
        raise ValueError(f"covariance has shape {array.shape}, it should have ({length}, {length})")
    array.flags.writeable = False
    return array


def distinct_names(names: Sequence[str] | None, p: int) -> tuple[str, ...]:
    """The names of p variables, all different; x0, x1, … by default."""
    if names is None:
        return tuple(f"x{i}" for i in range(p))
    names = tuple(map(str, names))
    if len(names) != p:
        raise ValueError(f"{len(names)} names for {p} variables: {', '.join(names[:8])}")
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < p else []
    if twice:
        raise ValueError(f"names must differ; more than one variable is called {', '.join(twice)}")
    return names


def finite_rows(rows: np.ndarray, names: Sequence[str], what: str, missing: bool = False) -> None:
    """At least a row, a column a variable, finite; missing: or NaN."""
    if rows.ndim != 2 or rows.shape[1] != len(names) or not len(rows):
        raise ValueError(f"{what} has shape {rows.shape}; it should have a row or more and {len(names)} columns")
    bad = np.isinf(rows) if missing else ~np.isfinite(rows)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"{what} holds {rows[row, column]} in row {row}, column {names[column]}"
            + ("" if missing else "; values that are given must be finite numbers")
        )
