"""What columns look like: constant, few values, piles of equal values, whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .samples import Samples

__all__ = ["FEW", "ColumnFacts", "look"]

FEW = 10
"""Up to so many distinct values are listed."""

_ROUNDING = 8 * np.finfo(float).eps


class ColumnFacts(NamedTuple):
    """One column. Extremes are exact; the rest is about the kept rows, by their weights."""

    name: str
    minimum: float
    maximum: float
    constant: bool  # up to rounding
    values: tuple[float, ...] | None  # the distinct ones in increasing order, None if more than `FEW`
    mode: float  # the most common value
    share: float  # of the weight that is at the mode
    integer: bool  # whether all values are whole numbers


def look(samples: Samples) -> list[ColumnFacts]:
    """Facts about each column, from which errors and notes are made.

    Examples
    --------
    >>> from isodus.data import as_samples
    >>> sign, value = look(as_samples([[-1, 0.5], [1, 0.5], [-1, 2.0], [1, 7.5]]))
    >>> sign.values, sign.integer, sign.constant
    ((-1.0, 1.0), True, False)
    >>> value.mode, value.share
    (0.5, 0.5)
    """
    X, weight = samples.kept
    return [
        _facts(name, x, weight, float(low), float(high))
        for name, x, low, high in zip(samples.names, X.T, samples.minima, samples.maxima, strict=True)
    ]


def _facts(name: str, x: np.ndarray, weight: np.ndarray, low: float, high: float) -> ColumnFacts:
    order = np.argsort(x)
    x, weight = x[order], weight[order]
    first = np.flatnonzero(np.r_[True, x[1:] != x[:-1]])
    values, counts = x[first], np.add.reduceat(weight, first)
    most = int(np.argmax(counts))
    return ColumnFacts(
        name,
        low,
        high,
        bool(high - low <= _ROUNDING * max(abs(low), abs(high))),
        tuple(values.tolist()) if len(values) <= FEW else None,
        float(values[most]),
        float(counts[most] / weight.sum()),
        bool(np.all(values == np.rint(values))),
    )
