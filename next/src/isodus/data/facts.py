"""What columns look like: constant, few values, piles of equal values, and what is in the order of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm, rankdata

from .samples import Samples

__all__ = ["FEW", "ColumnFacts", "OrderFacts", "column_facts", "order_facts"]

FEW = 10
"""Up to so many distinct values are few."""

_LEVEL = 1e-3  # of finding an order in independent rows, over all columns
_LEAST = 0.05  # autocorrelation, below which standard errors are less than 5 % off
_LEAST_ROWS, _CELLS = 2048, 1 << 20  # of which ranks are taken
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


class OrderFacts(NamedTuple):
    """What is in the order of the first rows."""

    sorted: tuple[str, ...]  # columns that never fall, or never rise
    lag1: dict[str, float]  # the rank autocorrelation of the columns in which it is significant


def order_facts(samples: Samples) -> OrderFacts:
    """Whether the first `HEAD_ROWS` rows depend on the row before, by the ranks of each column.

    With u the centred ranks, Σ u_t u_{t+1} over the root of Σ (u_t u_{t+1})² is near standard normal in independent
    rows of any distribution, ties and single large values included.

    Examples
    --------
    >>> import numpy as np
    >>> from isodus.data import as_samples
    >>> walk = np.cumsum(np.random.default_rng(0).standard_normal((500, 1)), axis=0)
    >>> order_facts(as_samples(walk, names=["w"])).lag1
    {'w': 0.99...}
    """
    X = samples.head
    X = X[: max(_LEAST_ROWS, _CELLS // X.shape[1])]
    n, p = X.shape
    if n < 3:
        return OrderFacts((), {})
    steps = np.diff(X, axis=0)
    order = [name for name, d in zip(samples.names, steps.T, strict=True) if np.all(d >= 0) or np.all(d <= 0)]
    u = rankdata(X, axis=0) - (n + 1) / 2
    variance, products = np.maximum((u**2).sum(axis=0), 1e-300), u[1:] * u[:-1]
    excess = products.sum(axis=0) + variance / n  # under independence the mean is −Σ u²/n
    found, noise = excess / variance, np.sqrt((products**2).sum(axis=0))
    significant = (np.abs(excess) > norm.isf(_LEVEL / 2 / p) * noise) & (np.abs(found) > _LEAST)
    names = np.array(samples.names, dtype=object)[significant]
    return OrderFacts(tuple(order), dict(zip(names, found[significant].tolist(), strict=True)))
