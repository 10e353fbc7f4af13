"""Samples larger than memory, from files or from a function that makes blocks, read as a stream.

Blocks are read ahead by a thread while the ones before are computed on. Columns are looked up by name in every file
when it is opened; that a pass finds the same rows as the first is checked in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import reduce
from operator import add
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any

import numpy as np
import pandas as pd

from .arrays import available_memory
from .blocks import Block
from .files import Rows, columns_of, file_paths, rows_of
from .progress import report

__all__ = ["SampleStream", "as_floats", "open_samples"]

_LEAST_MEMORY = 16 << 20
_LARGEST = 32 << 20  # bytes of a block, beyond which nothing is gained
_PARTS = 32  # of the memory, that a block is; a few are on their way, and a reader has copies of its own
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
_WAIT = 0.1  # seconds between looks at whether a pass was given up


class SampleStream:
    """Samples that are read block by block, again and again: what `open_samples` gives, for `fit` and `score`.

    Attributes
    ----------
    columns : list of str
        The variables.
    weight : str or None
        The column that holds repetition counts.
    memory : int
        Bytes that reading may take.
    """

    here = True  # computed on in this process

    def __init__(
        self,
        make: Callable[[list[str], int], Rows],
        columns: list[str],
        weight: str | None,
        memory: int,
        what: str,
        named: bool = True,
    ) -> None:
        self._make, self.columns, self.weight, self.memory, self._what = make, columns, weight, memory, what
        self.labels: list[Any] | None = list(columns) if named else None  # names of their own
        self.block_rows = max(min(memory // _PARTS, _LARGEST) // (8 * (len(columns) + (weight is not None))), 256)
        self._seen: list[tuple[int, float]] | None = None
        self._given: np.ndarray | None = None  # weights that came with `fit`

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f"{self.n_rows:,} rows of "
        names = ", ".join(self.columns[:8]) + (", …" if len(self.columns) > 8 else "")
        weight = f", weighted by {self.weight}" if self.weight else ""
        return (
            f"SampleStream: {rows}{len(self.columns)} columns ({names}){weight} from {self._what}, in blocks of "
            f"{self.block_rows:,} rows"
        )

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        """Not to be had: what asks for it wants all samples at once."""
        raise ValueError(
            "this wants samples in memory, and not a stream of them: stream.sample(100_000) gives some, as a frame"
        )

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, once a pass was made."""
        return None if self._seen is None else sum(n for n, _ in self._seen)

    def __iter__(self) -> Iterator[Block]:
        """All blocks, one pass."""
        seen: list[tuple[int, float]] = []
        start, p = 0, len(self.columns)
        for rows, where in self._make([*self.columns, *([self.weight] if self.weight else [])], self.block_rows):
            X = as_floats(rows, where, start, p + (self.weight is not None))
            for a in range(0, len(X), self.block_rows):
                part = X[a : a + self.block_rows]
                self._same(len(seen), len(part), float(np.sum(part)), where)
                seen.append((len(part), float(np.sum(part))))
                weight = part[:, -1] if self.weight else None
                if self._given is not None:
                    weight = self._own(start, len(part))
                yield Block(part[:, :p], weight, start, where)
                start += len(part)
        if self._seen is not None and len(seen) != len(self._seen):
            raise ValueError(
                f"{self._what}: {len(seen)} blocks in this pass and {len(self._seen)} in the first. Samples must be "
                "the same in every pass"
            )
        if not start:
            raise ValueError(f"{self._what}: no rows")
        if self._given is not None and len(self._given) != start:
            raise ValueError(f"sample_weight has {len(self._given):,} values, and there are {start:,} rows")
        self._seen = seen

    def weighted_by(self, weight: Any) -> SampleStream:
        """The same samples with repetition counts, an array with a number a row, or as they are for None."""
        if weight is None:
            return self
        if self.weight is not None:
            raise ValueError(f"weights are in column {self.weight} already: leave sample_weight out, or weight=")
        values = np.asarray(weight, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(f"sample_weight has shape {values.shape}: it must have one weight a row")
        stream = copy(self)
        stream._given = values
        return stream

    def _own(self, start: int, count: int) -> np.ndarray:
        part = self._given[start : start + count]  # type: ignore[index]
        if len(part) < count:
            raise ValueError(f"sample_weight has {start + len(part):,} values, and there are more rows than that")
        return part

    def _same(self, at: int, rows: int, total: float, where: str) -> None:
        """An error if a block is not the one that it was in the first pass."""
        if self._seen is None:
            return
        first = self._seen[at] if at < len(self._seen) else (0, 0.0)
        if first[0] != rows or not (first[1] == total or (np.isnan(first[1]) and np.isnan(total))):
            what = f"{rows:,} rows, {first[0]:,} at first" if first[0] != rows else "other values than at first"
            raise ValueError(
                f"{where}: block {at} has {what}. Samples must be the same in every pass: a generator wants the same "
                "seed each time it is called, and files must not be written to"
            )

    def reduce(self, function: Callable[[Block], Any]) -> Any:
        """Σ over blocks of function(block), in their order, reading ahead."""
        with _Ahead(iter(self)) as blocks:
            return reduce(add, map(function, self._watched(blocks)))

    def _watched(self, blocks: Iterator[Block]) -> Iterator[Block]:
        total = self.n_rows
        for block in blocks:
            yield block
            report("rows of samples", block.start + len(block.X), total, minor=True)

    def sample(self, n: int, rng: int | np.random.Generator | None = 0) -> pd.DataFrame:
        """n different rows at random, in their order, as a frame: one pass."""
        draws = np.random.default_rng(rng)
        keys, rows = np.empty(0), np.empty((0, len(self.columns)))
        for block in self:
            keys, rows = np.append(keys, draws.random(len(block.X))), np.concatenate([rows, block.X])
            at = np.sort(np.argpartition(keys, n)[:n]) if len(keys) > n else slice(None)
            keys, rows = keys[at], rows[at]
        return pd.DataFrame(rows, columns=self.columns)


def open_samples(
    source: str | Path | Sequence[str | Path] | Callable[[], Iterable[Any]],
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    memory: int | str | None = None,
) -> SampleStream:
    """Samples that need not fit in memory, for `fit` and `score`.

    Parameters
    ----------
    source : path, list of paths, or callable
        Parquet (.parquet), CSV (.csv, .csv.gz) or .npy files; a folder stands for all such files in it, by name. Or a
        function without arguments that returns an iterator over blocks, arrays of shape (any number, n_features) or
        DataFrames: it is called for every pass, and must give the same each time.
    columns : list of str, optional
        The variables; by default all columns, which then must be numbers. Arrays have columns x0, x1, ….
    weight : str, optional
        A column of repetition counts.
    memory : int or str, optional
        What reading may take, in bytes or such as "2GB"; by default a quarter of what is free. The sums that a fit
        forms are besides, and do not grow with the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isodus import ISODUS, open_samples
    >>> def blocks():
    ...     for seed in range(20):
    ...         yield np.random.default_rng(seed).standard_normal((5_000, 2))
    >>> stream = open_samples(blocks, memory="2GB")
    >>> est = ISODUS(degree=2).fit(stream)
    >>> stream
    SampleStream: 100,000 rows of 2 columns (x0, x1) from blocks(), in blocks of 2,097,152 rows
    """
    budget = _bytes(memory)
    if callable(source):
        return _from_function(source, columns, weight, budget)
    if isinstance(source, Iterator):
        raise ValueError("an iterator can be gone through once: give a function that makes it anew for every pass")
    paths = file_paths([source] if isinstance(source, str | Path) else list(source))
    known = columns_of(paths[0])
    names = [str(name) for name in (known if columns is None else columns)]
    names = [name for name in names if name != weight]
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate column names: {', '.join(sorted({n for n in names if names.count(n) > 1}))}")
    wanted = [*names, *([weight] if weight else [])]
    for path in paths:
        there = known if path == paths[0] else columns_of(path)
        missing = [name for name in wanted if name not in there]
        if missing:
            raise ValueError(
                f"{path}: no column {', '.join(map(repr, missing[:8]))}; there are {', '.join(map(str, there[:12]))}"
                f"{', …' if len(there) > 12 else ''}"
            )
        if len(there) != len(known) and path.suffix == ".npy":
            raise ValueError(f"{path} has {len(there)} columns, {paths[0]} has {len(known)}")

    def make(wanted: list[str], rows: int) -> Rows:
        for path in paths:
            yield from rows_of(path, wanted, rows)

    what = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files, {paths[0]} and others"
    return SampleStream(make, names, weight, budget, what, named=paths[0].suffix != ".npy" or columns is not None)


def _from_function(
    source: Callable[[], Iterable[Any]], columns: Sequence[str] | None, weight: str | None, budget: int
) -> SampleStream:
    """A stream of what a function makes; its first block tells the columns."""
    what = f"{getattr(source, '__name__', 'a function')}()"
    first = next(iter(source()), None)
    if first is None:
        raise ValueError(f"{what}: no rows")
    there = _names(first)
    names = [str(name) for name in (there if columns is None else columns) if name != weight]
    missing = [name for name in [*names, *([weight] if weight else [])] if name not in there]
    if missing:
        raise ValueError(f"{what} has no column {', '.join(missing[:8])}; there are {', '.join(there[:12])}")

    def make(wanted: list[str], rows: int) -> Rows:
        for k, block in enumerate(source()):
            where, has = f"block {k} of {what}", _names(block)
            missing = [name for name in wanted if name not in has]
            if missing or len(has) != len(there):
                raise ValueError(f"{where} has columns {', '.join(has[:12])}; the first has {', '.join(there[:12])}")
            yield _picked(block, wanted, has), where

    return SampleStream(make, names, weight, budget, what, isinstance(first, pd.DataFrame) or columns is not None)


def _names(block: Any) -> list[str]:
    if isinstance(block, pd.DataFrame):
        return [str(name) for name in block.columns]
    if getattr(block, "ndim", None) != 2:
        raise ValueError(f"a block must be an array of two dimensions or a DataFrame, not {type(block).__name__}")
    return [f"x{i}" for i in range(block.shape[1])]


def _picked(block: Any, wanted: list[str], has: list[str]) -> Any:
    """The columns that are wanted."""
    if wanted == has:
        return block
    at = [has.index(name) for name in wanted]
    return block.iloc[:, at] if isinstance(block, pd.DataFrame) else block[:, at]


def as_floats(rows: Any, where: str, start: int, width: int) -> np.ndarray:
    """Rows as a floating array; an error that names the value where one is no number."""
    if isinstance(rows, pd.DataFrame):
        for name, kind in rows.dtypes.items():
            if not pd.api.types.is_numeric_dtype(kind):
                bad = pd.to_numeric(rows[name], errors="coerce").isna() & rows[name].notna()
                if not len(rows):
                    continue
                row = int(np.argmax(bad))
                example = f", such as {rows[name].iloc[row]!r} in row {start + row:,}" if bad.any() else ""
                raise ValueError(f"{where}: column {name!r} is not numeric{example}. Leave it out with columns=")
        rows = rows.to_numpy(dtype=np.float64, na_value=np.nan) if len(rows) else np.empty((0, width))
    X = np.asarray(rows)
    if X.ndim != 2 or X.shape[1] != width:
        raise ValueError(f"{where} has shape {X.shape}; {width} columns are wanted")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{where} holds {X.dtype}; numbers are wanted")
    return np.ascontiguousarray(X, dtype=np.float64)


def _bytes(memory: int | str | None) -> int:
    """A number of bytes, from words such as "2GB"."""
    if memory is None:
        return max(available_memory() // 4, _LEAST_MEMORY)
    found: float = -1
    if isinstance(memory, str):
        text = memory.strip().upper().replace(" ", "")
        unit = next((u for u in sorted(_UNITS, key=len, reverse=True) if text.endswith(u)), "")
        try:
            found = float(text.removesuffix(unit)) * _UNITS.get(unit, 1)
        except ValueError:
            found = -1
    elif not isinstance(memory, bool) and isinstance(memory, int | float | np.number):
        found = float(memory)
    if not _LEAST_MEMORY <= found < np.inf:
        raise ValueError(f'memory must be a size of at least 16 MiB, in bytes or such as "2GB", not {memory!r}')
    return int(found)


class _Ahead:
    """An iterator whose next item is made by a thread while this one is used."""

    def __init__(self, items: Iterator[Any]) -> None:
        self._queue: Queue[tuple[str, Any]] = Queue(maxsize=1)
        self._given_up = Event()
        self._thread = Thread(target=self._read, args=(items,), daemon=True)

    def _read(self, items: Iterator[Any]) -> None:
        try:
            for item in items:
                if not self._put(("item", item)):
                    return
            self._put(("end", None))
        except BaseException as error:
            self._put(("error", error))

    def _put(self, what: tuple[str, Any]) -> bool:
        while not self._given_up.is_set():
            try:
                self._queue.put(what, timeout=_WAIT)
                return True
            except Full:
                continue
        return False

    def __enter__(self) -> Iterator[Any]:
        self._thread.start()
        return self._items()

    def _items(self) -> Iterator[Any]:
        while True:
            kind, value = self._queue.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value

    def __exit__(self, *_: object) -> None:
        self._given_up.set()
        with suppress(Empty):
            self._queue.get_nowait()
        self._thread.join()
