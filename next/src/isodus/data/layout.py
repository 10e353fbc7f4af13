"""Which columns the tables of a stream have: those of the first, in all others too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from .._core.notes import listed
from .tables import default_names, frame_of

__all__ = ["Layout"]


class Layout(NamedTuple):
    """The columns of a stream's first table, which all others must have."""

    names: tuple[str, ...]
    named: bool
    has: tuple[str, ...]
    source: str

    @classmethod
    def of(cls, table: Any, columns: Sequence[Any] | None, special: Sequence[str], source: str) -> Self:
        """The columns of a first table. columns: those asked for; special: those that are no variables."""
        frame = frame_of(table)
        has = tuple(map(str, frame.columns)) if frame is not None else default_names(_width(table, source, 0))
        if columns is None:
            return cls(tuple(name for name in has if name not in special), frame is not None, has, source)
        names = tuple(
            has[c] if isinstance(c, int | np.integer) and -len(has) <= c < len(has) else str(c) for c in columns
        )
        lost = [name for name in names if name not in has]
        if lost:
            raise ValueError(f"columns {listed(lost)} are not in {source}. It has {listed(has)}.")
        return cls(names, frame is not None, has, source)

    def checked(self, table: Any, row: int) -> Any:
        """The variables of a table, an error where it has other columns."""
        frame = frame_of(table)
        if (frame is not None) != self.named:
            raise ValueError(f"{self.source} gives arrays and frames by turns, at row {row:,}. Give one of them.")
        if frame is None:
            width = _width(table, self.source, row)
            if width != len(self.has):
                raise ValueError(
                    f"{self.source} has {width} columns from row {row:,} on, and {len(self.has)} before. "
                    "All blocks need the same columns."
                )
            places = [self.has.index(name) for name in self.names]
            return table if places == list(range(width)) else np.asarray(table)[:, places]
        there = list(map(str, frame.columns))
        lost, new = [n for n in self.has if n not in there], [n for n in there if n not in self.has]
        if lost or new:
            what = f"without {listed(lost)}" if lost else f"with {listed(new)}, which were not there before"
            raise ValueError(f"{self.source} has rows {what}, from row {row:,} on. All blocks need the same columns.")
        return frame[[frame.columns[there.index(name)] for name in self.names]].to_native()


def _width(table: Any, source: str, row: int) -> int:
    """The number of columns of an array."""
    shape = np.shape(table)
    if len(shape) != 2:
        raise ValueError(
            f"{source} gives blocks of shape {shape} at row {row:,}. Give arrays of shape (rows, columns), or frames."
        )
    return shape[1]
