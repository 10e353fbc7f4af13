"""What the first reading of a stream finds: how many rows, extremes, and the rows that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from . import samples
from .samples import HEAD_ROWS, Block, MemorySamples, Weights, hashes

__all__ = ["FirstRead", "Rows"]

Array = np.ndarray
_MOST_PARTS = 64  # of what is kept, that are put together


class Rows(NamedTuple):
    """A part of a stream: numbers of the variables, weights, and numbers of clusters where there are any."""

    names: tuple[str, ...]
    named: bool  # by the user's table
    X: Array  # (rows, p) float64, columns contiguous
    weight: Array  # (rows,)
    clusters: Array | None


class FirstRead:
    """Facts about all rows, and those with the smallest hashes of (row number, salt), block by block."""

    def __init__(self, salt: int) -> None:
        self.names: tuple[str, ...] = ()
        self.columns: tuple[str, ...] | None = None
        self.salt, self.n_rows, self.total = salt, 0, 0.0
        self._largest = self._squares = 0.0  # the largest weight, and Σ w² in units of its square
        self.minima, self.maxima = np.array(np.inf), np.array(-np.inf)  # (p,) after the first block
        self._head: list[Array] = []
        self._kept: list[tuple[Array, ...]] = []  # hashes, row numbers, X, weights, clusters
        self._new = 0  # rows since the last choice
        self._limit = np.uint64(2**64 - 1)

    def watched(self, parts: Iterator[Rows]) -> Iterator[Rows]:
        """The parts of a stream, from which the names are taken."""
        for part in parts:
            self.names, self.columns = part.names, part.names if part.named else None
            yield part

    def add(self, block: Block) -> None:
        """The next block."""
        X, weight = block.X, block.weight
        self.minima, self.maxima = np.minimum(self.minima, X.min(axis=0)), np.maximum(self.maxima, X.max(axis=0))
        largest = max(self._largest, float(weight.max()))
        self._squares = self._squares * (self._largest / largest) ** 2 + float(np.sum((weight / largest) ** 2))
        self._largest, self.total = largest, self.total + float(weight.sum())
        if self.n_rows < HEAD_ROWS:
            self._head.append(X[: HEAD_ROWS - self.n_rows].copy())
        rows = np.arange(self.n_rows, self.n_rows + len(X))
        self.n_rows += len(X)
        hashed = hashes(rows, self.salt)
        there = hashed <= self._limit
        codes = np.zeros(len(rows), int) if block.clusters is None else block.clusters
        self._kept.append(tuple(values[there] for values in (hashed, rows, X, weight, codes)))
        self._new += len(self._kept[-1][0])
        if len(self._kept) >= _MOST_PARTS or self._new > samples.KEPT_ROWS:
            self._prune()

    def _prune(self) -> None:
        kept = [np.concatenate(parts) for parts in zip(*self._kept, strict=True)]
        if len(kept[0]) > samples.KEPT_ROWS:
            first = np.argpartition(kept[0], samples.KEPT_ROWS)[: samples.KEPT_ROWS]
            kept = [values[first] for values in kept]
            self._limit = kept[0].max()
        self._kept, self._new = [tuple(kept)], 0

    @property
    def head(self) -> Array:
        """The first rows in their order."""
        return np.concatenate(self._head)

    def scale(self, weights: Weights) -> float:
        """What weights are multiplied by: those of importance sum to Kish's number of rows."""
        return 1.0 if weights == "counts" else self.total / self._largest / self._squares / self._largest

    def kept_samples(self, weights: Weights, weighted: bool, clustered: bool) -> MemorySamples:
        """The kept rows in their order."""
        self._prune()
        _, rows, X, weight, codes = self._kept[0]
        order = np.argsort(rows)
        return MemorySamples(
            np.take(X.T, order, axis=1).T,
            weight[order] * self.scale(weights),
            self.names,
            self.columns,
            salt=self.salt,
            weights=weights,
            weighted=weighted,
            codes=codes[order] if clustered else None,
        )
