"""What is done in a task with a partition of a Dask collection: its rows, what the first reading finds, and sums."""

from __future__ import annotations

import copy
import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .._core.memory import kept_pages
from .._core.threads import one_blas_thread
from .clusters import check_labels
from .layout import Layout
from .samples import BLOCK_ROWS, Block, added
from .tables import columns_of, frame_of, read_table
from .weights import Weights, checked_weights

__all__ = [
    "Found",
    "Job",
    "Part",
    "Reading",
    "Sources",
    "applied",
    "first_reading",
    "in_task",
    "joined",
    "summed",
    "taken",
]

Array = np.ndarray
in_task: ContextVar[bool] = ContextVar("in_task", default=False)
"""Whether what is pickled goes to a task: functions leave behind what their sums over blocks do not need."""
Sources = tuple[Any, ...]
"""A partition as Dask has it: table, weights, labels."""


class _Rows(NamedTuple):
    """The rows of a partition whose weight is positive."""

    X: Array  # (rows, p) float64, columns contiguous
    weight: Array  # (rows,)
    codes: Array | None  # (rows,) the number of each row's label in `labels`
    labels: Any


@dataclass(frozen=True)
class Reading:
    """How a partition becomes rows; columns of weights and labels by their names."""

    layout: Layout
    match: tuple[Sequence[str], str] | None  # the names of a fit, and who asks
    weights: Weights
    weight: str | None
    groups: str | None

    def __call__(self, sources: Sources, start: int) -> tuple[Array, Array, Any]:
        """All rows, (n, p), their weights and labels, or an error. start: the number of the first row in messages."""
        table, weight, groups = sources
        n, layout = len(table), self.layout
        there, frame = layout.checked(table, start), frame_of(table)
        weight = self._of_rows(self.weight, weight, "sample_weight", frame, n, start)
        groups = self._of_rows(self.groups, groups, "groups", frame, n, start)
        if not n:
            return np.empty((0, len(layout.names))), np.empty(0), groups
        X = read_table(there, layout.names, start).X if self.match is None else columns_of(there, *self.match, start)
        if weight is None or not np.any(weight != 0):
            return X, np.full(n, float(weight is None)), groups
        return X, checked_weights(weight, n, self.weights, start), groups

    def rows(self, sources: Sources, start: int) -> _Rows:
        """Those of positive weight."""
        X, w, groups = self(sources, start)
        there, codes, labels = np.flatnonzero(w), None, ()
        if groups is not None:
            check_labels(pd.Series(groups), start)
            codes, labels = pd.factorize(np.asarray(groups)[there])
        return _Rows(X if len(there) == len(w) else np.take(X.T, there, axis=1).T, w[there], codes, labels)

    def _of_rows(self, name: str | None, given: Any, what: str, frame: Any, n: int, start: int) -> Any:
        if name is not None:
            if frame is None or name not in frame.columns:
                raise ValueError(f"{what} names a column {name!r}, which {self.layout.source} does not have.")
            return frame[name].to_numpy()
        if given is not None and len(given) != n:
            raise ValueError(
                f"{what} has {len(given):,} values for the {n:,} rows of the partition that begins at row {start:,}. "
                "Cut both alike."
            )
        return given


class Found(NamedTuple):
    """What the first reading finds in a partition."""

    length: int  # with rows of weight zero
    wrong: bool  # whether its rows are an error
    n_rows: int = 0
    minima: Any = np.inf  # (p,)
    maxima: Any = -np.inf  # (p,)
    total: float = 0.0
    largest: float = 0.0
    squares: float = 0.0  # Σ w² in units of the largest weight's
    labels: Any = ()
    check: int = 0


@dataclass(frozen=True)
class Job:
    """What is done in a task: f, in the caller's treatment of floating point errors."""

    f: Callable[..., Any]
    reading: Reading
    errors: Any
    scale: float = 1.0

    def __reduce__(self) -> tuple[Callable[..., Job], tuple[bytes]]:
        import cloudpickle

        token = in_task.set(True)
        try:
            return _unpickled, (cloudpickle.dumps((self.f, self.reading, self.errors, self.scale)),)
        finally:
            in_task.reset(token)

    def __call__(self, *args: Any) -> Any:
        """f of the arguments."""
        with one_blas_thread(), kept_pages(), np.errstate(**self.errors):
            return self.f(*args)


def _unpickled(job: bytes) -> Job:
    return Job(*pickle.loads(job))


class Part(NamedTuple):
    """What is known of a partition after the first reading."""

    start: int  # the number of its first row, rows of weight zero included
    row: int  # the same without them
    number: int  # of its first block
    n_rows: int
    check: int
    codes: Array | None  # the number of each of its labels among all


def first_reading(reading: Reading, *sources: Any) -> Found:
    """Facts about a partition, of which the place is not known yet."""
    n = len(sources[0])
    try:
        rows = reading.rows(sources, 0)
    except (TypeError, ValueError):  # is raised again with the number of the row
        return Found(n, True)
    X, w, _, labels = rows
    if not len(X):
        return Found(n, False)
    largest, extremes = float(w.max()), (X.min(axis=0), X.max(axis=0))
    squares = float(np.sum((w / largest) ** 2))
    return Found(n, False, len(X), *extremes, float(w.sum()), largest, squares, labels, _check(rows))


def _check(rows: _Rows) -> int:
    """A number that changes with any bit of some rows."""
    found = 0
    for column in (*rows.X.T, rows.weight, *(() if rows.codes is None else (rows.codes,))):
        found = zlib.crc32(np.ascontiguousarray(column).data, found)
    return found


def _again(reading: Reading, part: Part, sources: Sources) -> _Rows:
    """The rows of a partition at a later reading."""
    rows = reading.rows(sources, part.start)
    if len(rows.X) != part.n_rows or _check(rows) != part.check:
        raise ValueError(
            f"{reading.layout.source} has other values in the partition that begins at row {part.start:,} than at the "
            "first reading. A fit reads its samples several times, and they must be the same each time. Use persist(), "
            "or fixed seeds."
        )
    return rows._replace(codes=None if part.codes is None else part.codes[rows.codes])


def summed(part: Part, job: Job, *sources: Any) -> Any:
    """Σ f(block) of a partition."""
    rows = _again(job.reading, part, sources)
    weight = rows.weight * job.scale
    square = weight if job.reading.weights == "counts" else weight * weight

    def blocks() -> Iterator[Block]:
        for number, k in enumerate(range(0, part.n_rows, BLOCK_ROWS)):
            of = slice(k, k + BLOCK_ROWS)
            codes = None if rows.codes is None else rows.codes[of]
            yield Block(part.number + number, part.row + k, rows.X[of], weight[of], square[of], codes)

    return added(job, blocks())


def taken(reading: Reading, part: Part, rows: Array, head: int, *sources: Any) -> tuple[Any, ...]:
    """Kept rows of a partition, and the first ones."""
    of = _again(reading, part, sources)
    codes = np.zeros(len(rows), int) if of.codes is None else of.codes[rows]
    return of.X[rows], of.weight[rows], codes, of.X[:head].copy()


def applied(job: Job, *sources: Any) -> tuple[int, bool, Any]:
    """How many rows a partition has, whether they are an error, and f of them and their weights."""
    n = len(sources[0])
    try:
        X, weight, _ = job.reading(sources, 0)
    except (TypeError, ValueError):
        return n, True, None
    return n, False, job(X, weight) if n else None


def joined(parts: Sequence[Any]) -> Any:
    """Partial sums in their order; Dask may give the first one to another task, too."""
    total = copy.deepcopy(parts[0])
    for part in parts[1:]:
        total = total + part
    return total
