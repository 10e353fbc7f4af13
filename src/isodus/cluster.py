"""Samples on a cluster: Dask arrays and data frames, whose blocks stay where they are while sums come back.

With a `distributed.Client` blocks are on its workers; without one they are computed here, by Dask's threads. Sums are
added in the order of the blocks, eight at a time: the answer does not depend on how many workers there are, nor on
whether one is lost on the way, since Dask computes again what was lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CDLL
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from .arrays import available_memory, one_blas_thread
from .blocks import Block
from .streams import as_floats

__all__ = ["DaskSource", "is_dask"]

_AT_ONCE = 8  # sums that are added in one task
_TRIM, _MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of the GNU C library


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection with rows and columns, or a column."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "to_delayed")


class DaskSource:
    """Blocks of a Dask array or data frame, and of weights, an array of any kind with a number a row."""

    here = False

    def __init__(self, X: Any, weight: Any = None) -> None:
        import dask

        self._dask = dask
        frame = hasattr(X, "columns")
        if not frame and X.ndim != 2:
            raise ValueError(f"X must have two dimensions, samples and variables, not {X.ndim}")
        self.labels = list(X.columns) if frame else None
        self.columns = [str(name) for name in X.columns] if frame else [f"x{i}" for i in range(X.shape[1])]
        parts = _parts(X)
        weights = _parts(weight) if is_dask(weight) else None
        if weights is not None and len(weights) != len(parts):
            raise ValueError(f"sample_weight has {len(weights)} blocks and X has {len(parts)}: they must be the same")
        known = [] if frame else [int(n) for n in X.chunks[0] if n == n]  # a size that is not known is NaN
        self._parts, sizes = self._held(parts, known if len(known) == len(parts) else None)
        self._starts = np.append(0, np.cumsum(sizes))
        self.n_rows = int(self._starts[-1])
        if not self.n_rows:
            raise ValueError("X has no rows")
        if weights is None and weight is not None:
            values = np.asarray(weight, dtype=np.float64)
            if values.shape != (self.n_rows,):
                raise ValueError(f"sample_weight has shape {values.shape}, X has {self.n_rows:,} rows")
            weights = [values[a:b] for a, b in zip(self._starts, self._starts[1:], strict=False)]
        self._weights = weights or [None] * len(parts)
        self.memory = available_memory() // 4

    def _held(self, parts: list[Any], sizes: list[int] | None) -> tuple[list[Any], list[int]]:
        """The blocks, kept on the workers where their memory allows it, and how many rows each has."""
        client = self._client()
        held = parts if client is None else list(client.persist(parts))
        if sizes is None:
            sizes = list(self._dask.compute(*[self._dask.delayed(len)(part) for part in held]))
        if client is None:
            return parts, sizes
        room = sum(worker["memory_limit"] or 0 for worker in client.scheduler_info(n_workers=-1)["workers"].values())
        fits = not room or 8 * len(self.columns) * sum(sizes) <= room / 2
        return held if fits else parts, sizes

    def _client(self) -> Any:
        try:
            from distributed import default_client

            return default_client()
        except (ImportError, ValueError):
            return None

    def reduce(self, function: Callable[[Block], Any]) -> Any:
        """Σ over blocks of function(block), in their order."""
        delayed = self._dask.delayed
        sent = delayed(function, pure=False, traverse=False)
        some = delayed(_on_block, pure=False)
        sums = [
            some(sent, part, weight, int(start), k, len(self.columns))
            for k, (part, weight, start) in enumerate(zip(self._parts, self._weights, self._starts, strict=False))
            if self._starts[k + 1] > start
        ]
        together = delayed(_added, pure=False)
        while len(sums) > 1:
            sums = [together(sums[k : k + _AT_ONCE]) for k in range(0, len(sums), _AT_ONCE)]
        return sums[0].compute()


def _parts(X: Any) -> list[Any]:
    """The blocks of rows as delayed values."""
    if getattr(X, "ndim", 1) == 2 and not hasattr(X, "columns"):
        X = X.rechunk({1: -1})
    parts = X.to_delayed()
    return list(np.ravel(parts)) if isinstance(parts, np.ndarray) else list(parts)


def _on_block(function: Callable[[Block], Any], part: Any, weight: Any, start: int, k: int, width: int) -> Any:
    where = f"block {k}"
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)
        if len(weight) != len(part):
            raise ValueError(f"{where}: {len(part):,} rows and {len(weight):,} weights")
    with one_blas_thread(), _memory_kept():
        return function(Block(as_floats(part, where, start, width), weight, start, where))


@contextmanager
def _memory_kept() -> Iterator[None]:
    """While it lasts, memory that is freed stays with the process.

    Dask's workers are set to give it back at once (MALLOC_TRIM_THRESHOLD_), which doubles the time of anything that
    makes arrays of some hundred kilobytes, again and again.
    """
    asked = os.environ.get("MALLOC_TRIM_THRESHOLD_")
    change = None if asked is None else getattr(CDLL(None), "mallopt", None)
    if asked is None or change is None:
        yield
        return
    change(_TRIM, 1 << 28)
    change(_MAP, 1 << 25)
    try:
        yield
    finally:
        change(_TRIM, int(asked))
        change(_MAP, 1 << 17)


def _added(sums: list[Any]) -> Any:
    return reduce(add, sums)
