"""Parts of the rows: identical rows and clusters share a part, series are cut in blocks of time."""

from __future__ import annotations

import numpy as np

from ..data.facts import FEW

__all__ = ["FOLDS", "folds"]

Array = np.ndarray
FOLDS = 5


def folds(X: Array, groups: Array | None = None, series: bool = False, seed: int = 0, count: int = FOLDS) -> Array:
    """The part of each row, 0 to count − 1, (n,).

    Rows are identical if they agree in all columns of more than ten values. Columns of few values agree by chance: a
    part that held all rows of one pattern of spins would be scored by a model that has never seen this pattern.
    """
    n = len(X)
    if series:
        return np.arange(n) * count // n
    if groups is None:
        many = [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) > FEW]
        groups = np.unique(X[:, many], axis=0, return_inverse=True)[1].ravel() if many else np.arange(n)
    order = np.random.default_rng([seed, count]).permutation(int(groups.max()) + 1)
    return order[groups] % count
