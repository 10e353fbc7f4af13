"""Missing values, given the others of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .. import sampling
from ..terms import Terms
from .conditional import Conditional
from .density import coefficients, somewhere
from .given import Gaps, check_on_axes

__all__ = ["imputed"]

Array = np.ndarray
_DRAWS = 100  # of the missing values of a row, over which conditional means are averaged
_VALUES = 4_000_000  # of such draws, in turn


def imputed(
    terms: Terms,
    theta: Array,
    names: Sequence[str],
    gaps: Gaps,
    method: Literal["draw", "mean"],
    rng: np.random.Generator,
    n_jobs: int,
) -> Array:
    """X without gaps, (n, p)."""
    seen = np.where(gaps.missing, [somewhere(axis) for axis in terms.axes], gaps.X)
    check_on_axes(terms, seen, names, range(len(names)), "the density of missing values")

    def filled(rows: Array) -> Array:
        return sampling.fill(terms, theta, gaps.X[rows], gaps.missing[rows], rng, n_jobs=n_jobs)

    out, count = gaps.X.copy(), gaps.missing.sum(axis=1)
    if method == "draw":
        rows = np.flatnonzero(count)
        out[rows] = filled(rows)
        return out

    def put_means(rows: Array, X: Array, draws: int) -> None:
        """Conditional means of the missing values of some rows, averaged over completions of the rows."""
        for i, axis in enumerate(terms.axes):
            gone = gaps.missing[rows, i]
            if gone.any():
                given = Conditional(names[i], axis, coefficients(terms, theta, X[np.repeat(gone, draws)], i))
                mean, variance = (v.reshape(-1, draws) for v in (given.mean(), given.variance()))
                out[rows[gone], i] = axis.pooled_mean(mean, variance)

    one, several = np.flatnonzero(count == 1), np.flatnonzero(count > 1)
    put_means(one, seen[one], 1)
    for rows in np.array_split(several, 1 + several.size * _DRAWS * len(names) // _VALUES):
        if len(rows):
            put_means(rows, filled(np.repeat(rows, _DRAWS)), _DRAWS)
    return out
