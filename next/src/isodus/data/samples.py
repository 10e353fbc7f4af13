"""Samples: blocks of rows with counts, and sums over them. Everything that reads rows goes through `Samples`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .._core.checks import one_of
from .._core.progress import Show
from .._core.threads import ordered_map
from .clusters import Clusters, clusters_of
from .tables import default_names, read_table
from .weights import Weights, check_counts, checked_weights

__all__ = [
    "KEPT_ROWS",
    "Block",
    "Kept",
    "MemorySamples",
    "Opened",
    "Samples",
    "added",
    "as_samples",
    "hashes",
    "kept_rows",
    "opened",
    "samples_of",
]

Array = np.ndarray
R = TypeVar("R")

KEPT_ROWS = 1 << 17
"""How many rows are kept at most, wherever the samples live."""
BLOCK_ROWS = 2048
_HASHED = 1 << 20  # row numbers at once
HEAD_ROWS = 1 << 14
"""How many of the first rows are looked at for what is in their order."""


class Block(NamedTuple):
    """Consecutive rows and their weights."""

    number: int
    start: int  # the number of its first row
    X: Array  # (rows, p) float64, columns contiguous
    weight: Array  # (rows,) float64
    square: Array  # (rows,) of the squares of what rows are summed for: a count, or a ratio of densities squared
    clusters: Array | None = None  # (rows,) the number of each row's cluster


class Kept(NamedTuple):
    """The rows that start everything: axes, rungs, folds. All rows, or as many as `KEPT_ROWS`, in their order."""

    X: Array  # (rows, p) float64, columns contiguous
    weight: Array  # (rows,) float64

    @property
    def columns(self) -> tuple[Array, ...]:
        """One array per variable."""
        return tuple(self.X.T)


class Samples(Protocol):
    """Rows with weights, in memory or elsewhere. Rows of weight zero do not exist, and row numbers skip them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The p names of variables."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names if the user's table gave them, else None."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    def n(self) -> float:
        """The sum of weights; importance weights are scaled so that it is Kish's (Σ w)²/Σ w²."""

    @property
    def kept(self) -> Kept:
        """The rows that start everything."""

    @property
    def minima(self) -> Array:
        """The smallest value of each variable over all rows, (p,)."""

    @property
    def maxima(self) -> Array:
        """The largest value of each variable over all rows, (p,)."""

    @property
    def head(self) -> Array:
        """The first `HEAD_ROWS` rows in their order, (rows, p)."""

    @property
    def kept_samples(self) -> MemorySamples:
        """The kept rows as samples; themselves where these are all."""

    @property
    def in_memory(self) -> bool:
        """Whether blocks cost nothing."""

    @property
    def kept_between_passes(self) -> bool:
        """Whether what is prepared of blocks may be kept where they are, up to a limit."""

    @property
    def weighted(self) -> bool:
        """Whether the user gave weights."""

    @property
    def clusters(self) -> Clusters | None:
        """What is known of the rows' clusters, where there are any."""

    def blocks(self) -> Iterator[Block]:
        """All rows, in their order."""

    def sum(self, f: Callable[[Block], R], n_jobs: int | None = 1) -> R:
        """Σ f(block), added with + in the order of blocks, so that it does not depend on the number of threads."""


class Opened:
    """Samples that are read anew each time."""

    def matched(self, names: Sequence[str], who: str) -> Opened:
        """The same rows with the columns of a fit, in their order."""
        raise NotImplementedError

    def mapped(self, f: Callable[[Array, Array], R], sample_weight: Any = None) -> Iterator[R]:
        """f(rows, weights) of parts of the rows, in their order."""
        raise NotImplementedError

    def read(self, sample_weight: Any, groups: Any, salt: int, weights: Weights, progress: Show) -> Samples:
        """Samples after a first reading."""
        raise NotImplementedError


class MemorySamples:
    """Samples in memory. X, (n, p), is in Fortran order and finite, weights are positive: `as_samples` sees to that."""

    in_memory = kept_between_passes = True

    def __init__(
        self,
        X: Array,
        weight: Array,
        names: Sequence[str],
        columns: Sequence[str] | None = None,
        *,
        salt: int = 0,
        block: int = BLOCK_ROWS,
        weights: Weights = "counts",
        weighted: bool = False,
        codes: Array | None = None,
    ) -> None:
        self.X, self.weight = X.view(), weight.view()
        self.X.flags.writeable = self.weight.flags.writeable = False
        self.names, self.columns = tuple(names), None if columns is None else tuple(columns)
        self.n_rows, self.salt, self.block, self.weights, self.weighted = len(X), salt, block, weights, weighted
        self.codes = codes  # (n_rows,) the number of each row's cluster

    @cached_property
    def n(self) -> float:
        """The sum of weights."""
        return float(self.weight.sum())

    @cached_property
    def minima(self) -> Array:
        """The smallest value of each variable, (p,)."""
        return self.X.min(axis=0)

    @cached_property
    def maxima(self) -> Array:
        """The largest value of each variable, (p,)."""
        return self.X.max(axis=0)

    @property
    def kept(self) -> Kept:
        """All rows, or those with the smallest hashes of (row number, salt)."""
        return Kept(self.kept_samples.X, self.kept_samples.weight)

    @cached_property
    def kept_samples(self) -> MemorySamples:
        """The kept rows as samples; themselves where these are all."""
        if self.n_rows <= KEPT_ROWS:
            return self
        return self.take(kept_rows(self.n_rows, self.salt))

    @property
    def head(self) -> Array:
        """The first rows in their order."""
        return self.X[:HEAD_ROWS]

    @cached_property
    def clusters(self) -> Clusters | None:
        """What is known of the rows' clusters."""
        return None if self.codes is None else Clusters(int(self.codes.max()) + 1, self.kept_samples.codes)

    def blocks(self) -> Iterator[Block]:
        """All rows, in their order."""
        for number, start in enumerate(range(0, self.n_rows, self.block)):
            part = slice(start, start + self.block)
            w = self.weight[part]
            codes = None if self.codes is None else self.codes[part]
            yield Block(number, start, self.X[part], w, w if self.weights == "counts" else w * w, codes)

    def sum(self, f: Callable[[Block], R], n_jobs: int | None = 1) -> R:
        """Σ f(block), added with + in the order of blocks."""
        return added(f, self.blocks(), n_jobs)

    def take(self, rows: Array) -> MemorySamples:
        """The samples of these row numbers, or where a mask of all rows is true."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        return MemorySamples(
            _rows(self.X, rows),
            self.weight[rows],
            self.names,
            self.columns,
            salt=self.salt,
            block=self.block,
            weights=self.weights,
            weighted=self.weighted,
            codes=None if self.codes is None else self.codes[rows],
        )


def added(f: Callable[[Block], R], blocks: Iterator[Block], n_jobs: int | None = 1) -> R:
    """Σ f(block), added with + in the order of blocks."""
    with closing(ordered_map(f, blocks, n_jobs)) as results:
        total: Any = next(results)
        for result in results:
            total = total + result
    return total


def as_samples(
    X: Any,
    sample_weight: Any = None,
    *,
    salt: int = 0,
    names: Sequence[str] | None = None,
    block: int = BLOCK_ROWS,
    weights: Weights = "counts",
    groups: Any = None,
) -> MemorySamples:
    """Samples of a table; the only validation that tables and weights get.

    Parameters
    ----------
    X : array, list of rows, or frame of shape (n, p)
        numpy, pandas, polars, pyarrow and whatever else narwhals reads; integers and booleans count as numbers.
    sample_weight : array of shape (n,), optional
        How often each row was seen, or with ``weights="importance"`` a ratio of densities, of which only the
        proportions matter. Rows of weight zero are dropped.
    salt : int
        Chooses the rows that are kept where there are more than `KEPT_ROWS`.
    names : sequence of str, optional
        Names of the variables; by default those of the frame, or x0, x1, ….
    block : int
        Rows per block.
    weights : {"counts", "importance"}
    groups : array of shape (n,), optional
        A label per row.

    Examples
    --------
    >>> samples = as_samples([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], sample_weight=[1, 0, 2])
    >>> samples.names, samples.n_rows, samples.n
    (('x0', 'x1'), 2, 3.0)
    >>> float(samples.sum(lambda b: b.weight @ b.X[:, 1]))
    11.0
    """
    values, columns = read_table(X, names)
    if names is None:
        names = default_names(values.shape[1]) if columns is None else columns
    elif len(names) != values.shape[1] or len(set(names)) != len(names):
        raise ValueError(f"names must be {values.shape[1]} different names, one per column, not {list(names)!r}")
    one_of(weights, ("counts", "importance"), "weights")
    weight = np.ones(len(values)) if sample_weight is None else checked_weights(sample_weight, len(values), weights)
    codes = None if groups is None else clusters_of(groups, len(values), weight > 0)
    if not weight.all():
        rows = np.flatnonzero(weight)
        values, weight = _rows(values, rows), weight[rows]
    if weights == "importance":
        weight = weight / weight.max()
        weight *= weight.sum() / (weight @ weight)
    else:
        check_counts(weight.sum(), len(weight))
    return MemorySamples(
        values,
        weight,
        names,
        columns,
        salt=salt,
        block=block,
        weights=weights,
        weighted=sample_weight is not None,
        codes=codes,
    )


def samples_of(
    X: Any,
    sample_weight: Any = None,
    *,
    salt: int = 0,
    weights: Weights = "counts",
    groups: Any = None,
    progress: Show = None,
) -> Samples:
    """Samples of a table, as `as_samples`, or of what `open_samples` returns or Dask has, after a first reading."""
    source = opened(X)
    if source is not None:
        return source.read(sample_weight, groups, salt, weights, progress)
    return as_samples(X, sample_weight, salt=salt, weights=weights, groups=groups)


def opened(X: Any) -> Opened | None:
    """What is read anew each time; None for a table in memory."""
    if type(X).__module__.partition(".")[0] == "dask":
        from .dask import DaskTable

        return DaskTable(X)
    return X if isinstance(X, Opened) else None


def hashes(rows: Array, salt: int) -> Array:
    """A fixed 64-bit hash of row numbers (uint64), the same everywhere: splitmix64. Different rows never agree."""
    rows = rows.astype(np.uint64)
    return _mix(rows ^ _mix(np.array([salt % 2**64], dtype=np.uint64)))


def kept_rows(n_rows: int, salt: int) -> Array:
    """The numbers of those with the smallest hashes, at most `KEPT_ROWS`, in their order."""
    kept, limit = np.empty(0, int), np.uint64(2**64 - 1)
    for start in range(0, n_rows, _HASHED):
        new = np.arange(start, min(start + _HASHED, n_rows))
        kept = np.concatenate([kept, new[hashes(new, salt) <= limit]])
        if len(kept) > KEPT_ROWS:
            hashed = hashes(kept, salt)
            first = np.argpartition(hashed, KEPT_ROWS - 1)[:KEPT_ROWS]
            kept, limit = kept[first], hashed[first].max()
    return np.sort(kept)


def _mix(z: Array) -> Array:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _rows(X: Array, rows: Array) -> Array:
    """X[rows] in Fortran order."""
    return np.take(X.T, rows, axis=1).T
