"""Dask arrays and frames: rows stay where they are; in each pass, tasks take a function and give back its sums."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import dask
import numpy as np
import pandas as pd
from dask import delayed

from .._core.checks import one_of
from .._core.progress import Show
from . import samples
from .clusters import Clusters, Labels, check_count
from .layout import Layout
from .partitions import Found, Job, Part, Reading, Sources, applied, first_reading, joined, summed, taken
from .samples import (
    BLOCK_ROWS,
    HEAD_ROWS,
    Block,
    Kept,
    MemorySamples,
    Opened,
    Samples,
    kept_rows,
)
from .weights import Weights, check_counts

__all__ = ["DaskSamples", "DaskTable"]

Array = np.ndarray
R = TypeVar("R")
_SUMMANDS = 16  # of partitions next to one another that one task adds


class DaskTable(Opened):
    """A Dask array or frame."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self._match: tuple[Sequence[str], str] | None = None
        frame = hasattr(X, "columns") and X.ndim == 2
        if not frame and not hasattr(X, "rechunk"):
            raise TypeError(
                f"X is a Dask {type(X).__name__}, and isodus needs a table. Pass a Dask array or DataFrame."
            )
        if not frame and X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data: X.reshape(-1, 1).")
        self.name = f"The Dask {'DataFrame' if frame else 'array'}"
        self._empty = X._meta if frame else np.empty((0, X.shape[1]))  # which columns there are
        self._tables = list(np.ravel((X if frame else X.rechunk({1: -1})).to_delayed()))

    def matched(self, names: Sequence[str], who: str) -> DaskTable:
        """The same rows with the columns of a fit, in their order."""
        other = copy.copy(self)
        other._match = (tuple(names), who)
        return other

    def mapped(self, f: Callable[[Array, Array], R], sample_weight: Any = None) -> Iterator[R]:
        """f(rows, weights) of each partition that has rows, computed where they are."""
        reading, sources = self._opened(sample_weight, None, "counts")
        job = _boxed(Job(f, reading, np.geterr()))
        found = self._compute([_task(applied, job, *of) for of in sources])
        _check_rows(reading, sources, [(n, wrong) for n, wrong, _ in found])
        yield from (value for n, _, value in found if n)

    def read(self, sample_weight: Any, groups: Any, salt: int, weights: Weights, progress: Show) -> Samples:
        """Samples after a first reading. Those of at most `KEPT_ROWS` rows are in memory from then on."""
        one_of(weights, ("counts", "importance"), "weights")
        reading, sources = self._opened(sample_weight, groups, weights)
        found = self._compute([_task(partial(first_reading, reading), *of) for of in sources])
        _check_rows(reading, sources, found)
        if not sum(of.n_rows for of in found):
            raise ValueError(f"{self.name} has no rows of positive weight. Pass one that has some.")
        labels = None if groups is None else Labels()
        start, row, number, parts = 0, 0, 0, list[tuple[Part, Sources]]()
        for of, source in zip(found, sources, strict=True):
            if of.n_rows:
                codes = None if labels is None else labels.codes(pd.Series(of.labels), row)
                parts.append((Part(start, row, number, of.n_rows, of.check, codes), source))
            start, row, number = start + of.length, row + of.n_rows, number - (-of.n_rows // BLOCK_ROWS)
        there = [of for of in found if of.n_rows]
        of_dask = DaskSamples(reading, parts, there, labels, salt, sample_weight is not None)
        return of_dask.kept_samples if row <= samples.KEPT_ROWS else of_dask

    def _compute(self, tasks: list[Any]) -> Any:
        """What tasks give that raise nothing themselves, so that an error is one of the graph or of the scheduler."""
        try:
            return dask.compute(*tasks)
        except Exception as error:
            raise RuntimeError(
                f"{self.name} cannot be computed: {type(error).__name__}: {error}. Its graph fails, or no worker is "
                "left. Try X.persist() first."
            ) from error

    def _opened(self, sample_weight: Any, groups: Any, weights: Weights) -> tuple[Reading, list[Sources]]:
        """How partitions are read, and the sources of each."""
        given = (sample_weight, groups)
        names = [of if isinstance(of, str) else None for of in given]
        layout = Layout.of(self._empty, None, [name for name in names if name is not None], self.name)
        columns = [self._cut(of, what) for of, what in zip(given, ("sample_weight", "groups"), strict=True)]
        reading = Reading(layout, self._match, weights, *names)
        return reading, list(zip(self._tables, *columns, strict=True))

    def _cut(self, given: Any, what: str) -> list[Any]:
        """Weights or labels, cut like the table."""
        if given is None or isinstance(given, str):
            return [None] * len(self._tables)
        if dask.is_dask_collection(given):
            chunks = getattr(self.X, "chunks", ((np.nan,),))[0]
            if hasattr(given, "rechunk") and given.shape[:1] == (sum(chunks),):
                given = given.rechunk({0: chunks})
            cut = list(np.ravel(given.to_delayed()))
            if len(cut) != len(self._tables):
                raise ValueError(f"{what} has {len(cut)} partitions, and X has {len(self._tables)}. Cut both alike.")
            return cut
        ends = np.cumsum(self._compute([_task(len, table) for table in self._tables]))
        if len(given) != ends[-1]:
            raise ValueError(f"{what} has {len(given):,} values, but X has {ends[-1]:,} rows. Pass one per row.")
        given = given.to_numpy() if isinstance(given, pd.Series) else np.asarray(given)
        return list(dask.persist(*(_boxed(part) for part in np.split(given, ends[:-1]))))


class DaskSamples:
    """Samples of a Dask collection; see `Samples`. What the first reading has found is given."""

    in_memory, kept_between_passes = False, True
    block = BLOCK_ROWS

    def __init__(
        self,
        reading: Reading,
        parts: Sequence[tuple[Part, Sources]],
        found: Sequence[Found],
        labels: Labels | None,
        salt: int,
        weighted: bool,
    ) -> None:
        self.reading, self.names, self.weighted, self.salt = reading, reading.layout.names, weighted, salt
        self.columns = self.names if reading.layout.named else None
        if reading.match is not None:
            self.names = tuple(reading.match[0])
        self._parts, self._labels = parts, labels
        self.n_rows = sum(of.n_rows for of in found)
        self.minima = np.min([of.minima for of in found], axis=0)
        self.maxima = np.max([of.maxima for of in found], axis=0)
        total, largest, self._scale = sum(of.total for of in found), max(of.largest for of in found), 1.0
        if reading.weights == "importance":
            squares = sum(of.squares * (of.largest / largest) ** 2 for of in found)
            self._scale = total / largest / squares / largest
        else:
            check_counts(total, self.n_rows)
        if labels is not None:
            check_count(labels.count)
        self.n = total * self._scale

    @cached_property
    def _taken(self) -> tuple[Array, ...]:
        """Kept rows, their weights and clusters, and the first rows."""
        rows, tasks = kept_rows(self.n_rows, self.salt), []
        for part, sources in self._parts:
            own = rows[slice(*np.searchsorted(rows, [part.row, part.row + part.n_rows]))] - part.row
            head = max(0, HEAD_ROWS - part.row)
            if len(own) or head:
                tasks.append(_task(partial(taken, self.reading, part, own, head), *sources))
        X, weight, codes, first = zip(*dask.compute(*tasks), strict=True)
        columns = np.concatenate([part.T for part in X], axis=1).T
        return columns, np.concatenate(weight), np.concatenate(codes), np.concatenate(first)

    @cached_property
    def kept_samples(self) -> MemorySamples:
        """The kept rows as samples."""
        X, weight, codes, _ = self._taken
        return MemorySamples(
            X,
            weight * self._scale,
            self.names,
            self.columns,
            salt=self.salt,
            weights=self.reading.weights,
            weighted=self.weighted,
            codes=None if self._labels is None else codes,
        )

    @property
    def kept(self) -> Kept:
        """The kept rows."""
        return Kept(self.kept_samples.X, self.kept_samples.weight)

    @property
    def head(self) -> Array:
        """The first rows in their order."""
        return self._taken[-1]

    @cached_property
    def clusters(self) -> Clusters | None:
        """What is known of the rows' clusters."""
        return None if self._labels is None else Clusters(self._labels.count, self.kept_samples.codes)

    def blocks(self) -> Iterator[Block]:
        """All rows, in their order; a block ends with its partition."""
        for task in self._tasks(lambda block: [block]):
            yield from task.compute()

    def sum(self, f: Callable[[Block], R], n_jobs: int | None = 1) -> R:
        """Σ f(block): of each partition in the order of blocks, then in the order of partitions.

        Dask decides how many partitions are at work at once.
        """
        level = self._tasks(f)
        while len(level) > 1:
            level = [_task(joined, level[k : k + _SUMMANDS]) for k in range(0, len(level), _SUMMANDS)]
        return level[0].compute()

    def _tasks(self, f: Callable[[Block], Any]) -> list[Any]:
        """Σ f(block) of each partition."""
        job = _boxed(Job(f, self.reading, np.geterr(), self._scale))
        return [_task(partial(summed, part), job, *sources) for part, sources in self._parts]


def _task(f: Callable[..., Any], *args: Any) -> Any:
    return delayed(f, pure=False)(*args)


def _boxed(value: Any) -> Any:
    """A value that travels as it is, once for all tasks; Dask does not look into it."""
    return delayed(value, name=f"isodus-{uuid.uuid4().hex}", traverse=False)


def _check_rows(reading: Reading, sources: Sequence[Sources], found: Sequence[Any]) -> None:
    """The error of the first partition that has one, with the number of the row. found: lengths, and whether."""
    start = 0
    for of, (length, wrong, *_) in zip(sources, found, strict=True):
        if wrong:
            _task(partial(reading.rows, start=start), of).compute()
            raise ValueError(f"{reading.layout.source} gives other values each time, at row {start:,}. Use persist().")
        start += length
