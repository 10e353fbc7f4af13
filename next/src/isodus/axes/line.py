"""A variable on the line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from .base import Array, endless
from .polynomial import Polynomial, middle_and_spread, recurrence

__all__ = ["Line", "tail_length", "window"]

_REACH = 10.0  # spreads from the middle at which a window ends at the latest
_ROOM = 0.25  # of the range of the data, on each side of it
_TAIL = 0.05  # of the window: the least length of a tail


@dataclass(frozen=True, eq=False)
class Line(Polynomial):
    """Polynomials on a window around the data, fixed before the fit; beyond it functions are constant and q falls.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal(1000)
    >>> axis = Line.fit(x, 4)
    >>> phi = axis.functions(x)
    >>> bool(np.allclose(phi.T @ phi / 1000, np.eye(4)))
    True
    """

    kind: ClassVar[str] = "line"

    @property
    def tails(self) -> tuple[bool, bool]:
        """Both sides go on."""
        return True, True

    @classmethod
    def fit(
        cls, x: Array, degree: int, weight: Array | None = None, extremes: tuple[float, float] | None = None
    ) -> Self:
        """The axis of a column: the window is a quarter of the range beyond it, at most ten spreads from the middle.

        extremes: least and largest value, where x are not all rows.
        """
        weight = np.ones(len(x)) if weight is None else weight
        location, scale = middle_and_spread(x, weight)
        y = (x - location) / scale
        least, most = ((np.asarray(extremes) - location) / scale) if extremes else (y.min(), y.max())
        low, high = window(least, most)
        alpha, beta = recurrence(np.clip(y, low, high), weight, degree)
        return cls(location, scale, low, high, tail_length(y, weight, low, high), alpha, beta)

    boundary = endless


def window(least: float, most: float) -> tuple[float, float]:
    """A quarter of the range beyond the data, at most ten spreads from the middle."""
    room = _ROOM * (most - least)
    return float(max(least - room, -_REACH)), float(min(most + room, _REACH))


def tail_length(y: Array, weight: Array, low: float, high: float) -> float:
    """The mean distance of what lies beyond the window, or a twentieth of the window if that is more."""
    over = np.maximum(0.0, np.maximum(low - y, y - high))
    mean_over = weight @ over / max(weight @ (over > 0), 1e-300)
    return float(max(_TAIL * (high - low), mean_over))
