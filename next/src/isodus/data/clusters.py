"""Labels of rows that belong together → numbers of clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

__all__ = ["Clusters", "Labels", "check_count", "clusters_of"]

Array = np.ndarray


class Clusters(NamedTuple):
    """How many clusters there are, and those of the kept rows."""

    size: int
    kept: Array | None  # (kept rows,)


class Labels:
    """Labels as they come, each with its number: memory grows with the number of clusters."""

    def __init__(self) -> None:
        self._index = pd.Index([])
        self.count = 0

    def codes(self, labels: Any, start: int) -> Array:
        """The numbers of some rows' clusters, (rows,); start: the number of the first row in messages."""
        labels = pd.Series(labels if isinstance(labels, pd.Series) else np.asarray(labels))
        labels = labels.astype(object) if isinstance(labels.dtype, pd.CategoricalDtype) else labels
        check_labels(labels, start)
        codes = self._index.get_indexer(labels)
        new = pd.Index(pd.unique(labels[codes < 0]))
        if len(new):
            self._index = self._index.append(new) if self.count else new
            self.count = len(self._index)
            codes = self._index.get_indexer(labels)
        return codes


def clusters_of(groups: Any, n: int, there: Array | None = None) -> Array:
    """A number for the cluster of each of n rows, or of those where `there` is true, or an error."""
    labels = pd.Series(groups if isinstance(groups, pd.Series) else np.asarray(groups).ravel())
    if len(labels) != n:
        raise ValueError(f"groups has {len(labels):,} labels, but X has {n:,} rows. Pass one label per row.")
    check_labels(labels)
    codes = pd.factorize(labels if there is None else labels[there])[0]
    check_count(int(codes.max()) + 1)
    return codes


def check_labels(labels: pd.Series, start: int = 0) -> None:
    """An error where a label is missing. start: the number of the first row."""
    missing = labels.isna().to_numpy()
    if missing.any():
        raise ValueError(f"groups has no label in row {start + int(np.argmax(missing))}. Pass one label per row.")


def check_count(count: int) -> None:
    """An error where there are too few clusters."""
    if count < 2:
        raise ValueError("groups has one label only, so standard errors cannot be computed. Leave groups out.")
