"""What columns look like: constant, few values, piles of equal values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .samples import Samples

__all__ = ["FEW", "ColumnFacts", "column_facts"]

FEW = 10
"""Up to so many distinct values are few."""

_ROUNDING = 8 * np.finfo(float).eps


class ColumnFacts(NamedTuple):
    """One column: extremes are those of all rows; the rest is about the kept rows, by their weights."""

    name: str
    constant: bool  # up to rounding
    values: np.ndarray  # the distinct ones, in increasing order
    mode: float  # the most common value
    share: float  # of the weight that is at the mode


def column_facts(samples: Samples) -> list[ColumnFacts]:
    """Facts about each column, from which errors and notes are made.

    Examples
    --------
    >>> from isodus.data import as_samples
    >>> sign, value = column_facts(as_samples([[-1, 0.5], [1, 0.5], [-1, 2.0], [1, 7.5]]))
    >>> sign.values.tolist(), sign.constant
    ([-1.0, 1.0], False)
    >>> value.mode, value.share
    (0.5, 0.5)
    """
    X, weight = samples.kept
    facts = []
    for name, x, low, high in zip(samples.names, X.T, samples.minima.tolist(), samples.maxima.tolist(), strict=True):
        values, place = np.unique(x, return_inverse=True)
        share = np.bincount(place, weight) / weight.sum()
        constant = bool(high - low <= _ROUNDING * max(abs(low), abs(high)))
        facts.append(ColumnFacts(name, constant, values, float(values[share.argmax()]), float(share.max())))
    return facts
