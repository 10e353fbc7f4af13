"""Samples that do not fit in memory: read block by block, as often as a fit needs them."""

from __future__ import annotations

import copy
import zlib
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from typing import Any, NoReturn, TypeVar

import numpy as np

from .._core.checks import one_of
from .._core.progress import Progress, Show
from . import samples
from .clusters import Clusters, Labels, check_count
from .first_read import FirstRead, Rows
from .layout import Layout
from .readers import Source, source_of
from .samples import BLOCK_ROWS, Block, Kept, Opened, Samples, added, opened
from .tables import columns_of, frame_of, read_table
from .weights import Weights, check_counts, checked_weights

__all__ = ["Stream", "StreamSamples", "open_samples", "over_rows"]

Array = np.ndarray
R = TypeVar("R")
_END = object()


class Stream(Opened):
    """Samples in a file, a pipe or a function, made by `open_samples`.

    Nothing is read before a fit asks for it; `reads` counts how often that was.
    """

    def __init__(self, source: Source, columns: Sequence[Any] | None = None, sample_weight: Any = None) -> None:
        self._source, self._columns, self._weight, self._groups = source, columns, sample_weight, None
        self._match: Callable[..., Array] | None = None
        self._parent: Stream | None = None
        self.reads = 0

    def __repr__(self) -> str:
        return f"samples of {self.name}, read {self.reads} times"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "Samples of open_samples are read block by block, by fit, score, score_samples, objective and logpdf. "
            "For anything else pass a table in memory, such as pandas reads."
        )

    @property
    def name(self) -> str:
        """What is read."""
        return self._source.name

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self._weight is not None

    @property
    def grouped(self) -> bool:
        """Whether rows have labels."""
        return self._groups is not None

    def having(self, sample_weight: Any, groups: Any = None) -> Stream:
        """The same source with weights and labels; its reads count here too."""
        if sample_weight is not None and self._weight is not None:
            raise ValueError("sample_weight was given to open_samples and to fit. Give it once.")
        other = copy.copy(self)
        other._parent, other._groups = self, groups
        other._weight = self._weight if sample_weight is None else sample_weight
        return other

    def matched(self, names: Sequence[str], who: str) -> Stream:
        """The same rows with the columns of a fit, in their order."""
        other = self.having(None)
        other._match = partial(columns_of, names=names, who=who)
        return other

    def mapped(self, f: Callable[[Array, Array], R], sample_weight: Any = None) -> Iterator[R]:
        """f(rows, weights) of the tables of one reading."""
        yield from (f(part.X, part.weight) for part in self.having(sample_weight).parts())

    def read(self, sample_weight: Any, groups: Any, salt: int, weights: Weights, progress: Show) -> Samples:
        """Samples after a first reading. Those of at most `KEPT_ROWS` rows are in memory from then on."""
        one_of(weights, ("counts", "importance"), "weights")
        stream = self.having(sample_weight, groups)
        labels, found, checks = Labels() if stream.grouped else None, FirstRead(salt), array("L")
        with Progress(progress, f"read {self.reads + 1} of {self.name}") as bar:
            for block in blocks_of(found.watched(stream.parts(weights, labels))):
                found.add(block)
                checks.append(check(block))
                bar(found.n_rows)
        if not found.n_rows:
            raise ValueError(f"{self.name} has no rows, or none of positive weight. Pass a source that has some.")
        if weights == "counts":
            check_counts(found.total, found.n_rows)
        if labels is not None:
            check_count(labels.count)
        if found.n_rows <= samples.KEPT_ROWS:
            return found.kept_samples(weights, stream.weighted, labels is not None)
        return StreamSamples(stream, found, weights, labels, checks, progress)

    def parts(self, weights: Weights = "counts", labels: Labels | None = None) -> Iterator[Rows]:
        """One reading, table by table."""
        self._count()
        layout, row = None, 0
        with closing(self._tables()) as tables:
            while (table := self._next(tables, row)) is not _END:
                layout = layout or Layout.of(table, self._columns, self._special(), self.name)
                there, frame = layout.checked(table, row), frame_of(table)
                if len(table) == 0:
                    continue
                values = (
                    read_table(there, layout.names, row).X if self._match is None else self._match(there, start=row)
                )
                if frame is None and np.may_share_memory(values, there):
                    values = values.copy("F")
                stop = row + len(values)
                weight = self._of_rows(self._weight, "sample_weight", frame, row, stop)
                weight = np.ones(len(values)) if weight is None else checked_weights(weight, len(values), weights, row)
                codes = None
                if labels is not None:
                    codes = labels.codes(self._of_rows(self._groups, "groups", frame, row, stop), row)
                yield Rows(layout.names, layout.named, values, weight, codes)
                row = stop
        for given, what in ((self._weight, "sample_weight"), (self._groups, "groups")):
            if given is not None and not isinstance(given, str) and len(given) != row:
                raise ValueError(
                    f"{what} has {len(given):,} values, but {self.name} has {row:,} rows. Pass one per row."
                )

    def _count(self) -> None:
        self.reads += 1
        if self._parent is not None:
            self._parent._count()

    def _special(self) -> list[str]:
        return [name for name in (self._weight, self._groups) if isinstance(name, str)]

    def _tables(self) -> Generator[Any, None, None]:
        known = self._columns is not None and all(isinstance(name, str) for name in self._columns)
        yield from self._source.tables([*(self._columns or ()), *self._special()] if known else None)

    def _next(self, tables: Iterator[Any], row: int) -> Any:
        try:
            return next(tables, _END)
        except self._source.faults as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise
            raise ValueError(
                f"{self.name} cannot be read after row {row:,}: {str(error).strip()}. It is truncated or damaged. "
                "Get it anew, or correct that place."
            ) from error

    def _of_rows(self, given: Any, what: str, frame: Any, start: int, stop: int) -> Any:
        """Weights or labels of some rows: a column of the stream, or a part of an array."""
        if given is None:
            return None
        if isinstance(given, str):
            if frame is None or given not in frame.columns:
                raise ValueError(f"{what} names a column {given!r}, which {self.name} does not have.")
            return frame[given].to_numpy()
        if len(given) < stop:
            raise ValueError(f"{what} has {len(given):,} values, but {self.name} has more rows. Pass one per row.")
        return np.asarray(given[start:stop])


class StreamSamples:
    """Samples that are read anew for each sum; see `Samples`. What the first reading has found is given."""

    in_memory = kept_between_passes = False
    block = BLOCK_ROWS

    def __init__(
        self, stream: Stream, found: FirstRead, weights: Weights, labels: Labels | None, checks: array, progress: Show
    ) -> None:
        self.stream, self.weights, self.weighted, self.progress = stream, weights, stream.weighted, progress
        self.names, self.columns = found.names, found.columns
        self.n_rows, self.minima, self.maxima, self.head = found.n_rows, found.minima, found.maxima, found.head
        self._labels, self._checks = labels, checks
        self._scale = found.scale(weights)
        self.n = found.total * self._scale
        self.kept_samples = found.kept_samples(weights, self.weighted, labels is not None)

    @property
    def kept(self) -> Kept:
        """The kept rows."""
        return Kept(self.kept_samples.X, self.kept_samples.weight)

    @cached_property
    def clusters(self) -> Clusters | None:
        """What is known of the rows' clusters."""
        return None if self._labels is None else Clusters(self._labels.count, self.kept_samples.codes)

    def blocks(self) -> Iterator[Block]:
        """All rows, in their order; an error where they are not those of the first reading."""
        name, seen = self.stream.name, 0
        with Progress(self.progress, f"read {self.stream.reads + 1} of {name}", self.n_rows) as bar:
            for block in blocks_of(self.stream.parts(self.weights, self._labels)):
                seen = block.start + len(block.X)
                if seen > self.n_rows:
                    _changed(name, f"has more than the {self.n_rows:,} rows of the first reading")
                if self._checks[block.number] != check(block):
                    _changed(name, f"has other values in rows {block.start:,} to {seen - 1:,} than before")
                bar(seen)
                w = block.weight * self._scale
                yield block._replace(weight=w, square=w if self.weights == "counts" else w * w)
        if seen < self.n_rows:
            _changed(name, f"ended after {seen:,} of the {self.n_rows:,} rows of the first reading")

    def sum(self, f: Callable[[Block], R], n_jobs: int | None = 1) -> R:
        """Σ f(block), added with + in the order of blocks."""
        return added(f, self.blocks(), n_jobs)


def _changed(name: str, what: str) -> NoReturn:
    raise ValueError(
        f"{name} {what}. A fit reads its samples several times, and they must be the same each time. "
        "Pass a copy that does not change, or a function that starts anew."
    )


def over_rows(
    f: Callable[[Array, Array], R], X: Any, names: Sequence[str], who: str, sample_weight: Any = None
) -> Iterator[R]:
    """f(rows, weights) of parts of X in the order of the fitted names, (rows, p): of all of a table at once."""
    source = opened(X)
    if source is not None:
        yield from source.matched(names, who).mapped(f, sample_weight)
        return
    values = columns_of(X, names, who)
    yield f(values, np.ones(len(values)) if sample_weight is None else checked_weights(sample_weight, len(values)))


def blocks_of(parts: Iterator[Rows]) -> Iterator[Block]:
    """Parts of any size as blocks of `BLOCK_ROWS` rows, so that no sum depends on how a source is cut.

    Rows of weight zero are left out.
    """
    number, rest = 0, list[Array]()
    for part in parts:
        new = [part.X, part.weight] if part.clusters is None else [part.X, part.weight, part.clusters]
        there = np.flatnonzero(part.weight)
        if len(there) < len(part.weight):
            new = [_rows(values, there) for values in new]
        rest = [np.concatenate([a.T, b.T], axis=-1).T for a, b in zip(rest, new, strict=True)] if rest else new
        stop = len(rest[0]) // BLOCK_ROWS * BLOCK_ROWS
        for start in range(0, stop, BLOCK_ROWS):
            yield _block(number, [values[start : start + BLOCK_ROWS] for values in rest])
            number += 1
        rest = [values[stop:] for values in rest]
    if rest and len(rest[0]):
        yield _block(number, rest)


def _rows(values: Array, rows: Array) -> Array:
    return np.take(values.T, rows, axis=-1).T


def _block(number: int, rows: list[Array]) -> Block:
    X, weight, *codes = rows
    return Block(number, number * BLOCK_ROWS, X, weight, weight, *codes)


def check(block: Block) -> int:
    """A number that changes with any bit of a block."""
    found = 0
    for column in (*block.X.T, block.weight, *(() if block.clusters is None else (block.clusters,))):
        found = zlib.crc32(column, found)
    return found


def open_samples(
    source: Any,
    *,
    columns: Sequence[Any] | None = None,
    sample_weight: Any = None,
    csv: Mapping[str, Any] | None = None,
) -> Stream:
    """Samples that need not fit in memory, for `fit`, `score`, `score_samples`, `objective` and `logpdf`.

    A fit reads them block by block, several times; memory holds some blocks and at most 131,072 rows, from which
    axes, starting points and folds are made. Files of fewer rows are read once. The answer is that of the same rows in
    memory.

    Parameters
    ----------
    source : path, open file, "-" or callable
        A Parquet or Feather file or a folder of Parquet files (pyarrow reads them), a CSV file, an array in .npy or
        .npz, or a workbook (openpyxl reads it). CSV may be packed by gzip, bz2, xz, zstd or zip; its first bytes
        decide. "-" is standard input. Pipes are copied to a temporary file, up to 32 GiB or half of what is free.
        A callable returns blocks of rows anew at each call: an iterator of arrays or frames, of any length.
    columns : sequence of str or int, optional
        The variables; by default all columns but those of weights and groups.
    sample_weight : str or array of shape (n,), optional
        Name of a column of weights, or the weights.
    csv : dict, optional
        Arguments of `pandas.read_csv`. By default the first lines decide about separator, decimal comma, encoding
        (UTF-8, or UTF-16 with its mark) and names of columns; lines above them that begin with "#" are skipped.

    Returns
    -------
    Stream
        Its `reads` counts how often the source was read.

    Examples
    --------
    >>> import numpy as np
    >>> from isodus import PseudoLikelihood, open_samples
    >>> def blocks():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(14):
    ...         z = rng.standard_normal((10_000, 2))
    ...         yield np.column_stack([z[:, 0], z[:, 0] * z[:, 1]])
    >>> samples = open_samples(blocks)
    >>> est = PseudoLikelihood(degree=4).fit(samples)
    >>> est.status_, est.model_.fitted.n_rows, samples.reads <= 12
    ('converged', 140000, True)
    """
    return Stream(source_of(source, csv), columns, sample_weight)
