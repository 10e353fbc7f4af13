"""A variable between two given ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Array, Boundary
from .half_line import FAR, HalfLine
from .line import Line
from .polynomial import Polynomial, middle_and_spread, recurrence

__all__ = ["Interval"]


@dataclass(frozen=True, eq=False)
class Interval(Polynomial):
    """Polynomials, orthonormal under the rows, between two ends; q is uniform there, and no value lies beyond.

    Examples
    --------
    >>> import numpy as np
    >>> axis = Interval.fit(np.random.default_rng(0).random(1000), 4, ends=(0.0, 1.0))
    >>> axis.contains(np.array([0.0, 0.5, 1.5])).tolist()
    [True, True, False]
    """

    kind: ClassVar[str] = "interval"

    @classmethod
    def fit(
        cls,
        x: Array,
        degree: int,
        weight: Array | None = None,
        extremes: tuple[float, float] | None = None,
        ends: tuple[float, float] = (-1.0, 1.0),
    ) -> Interval | HalfLine | Line:
        """The axis of a column between `ends`.

        An end more than a hundred spreads from the middle is none: no mass is near it, and the nodes would be too far
        apart.
        """
        start, end = map(float, ends)
        if not (np.isfinite([start, end]).all() and start < end):
            raise ValueError(f"the ends of an interval must be finite and in order, not {start:g} and {end:g}")
        location, scale = (start + end) / 2, (end - start) / 2
        low, high = (start - location) / scale, (end - location) / scale
        y = (x - location) / scale
        least, most = extremes or (x.min(), x.max())
        if least < start or most > end:
            raise ValueError(
                f"values from {least:g} to {most:g} are not all between {start:g} and {end:g}. Use other ends"
            )
        weight = np.ones(len(x)) if weight is None else weight
        middle, spread = middle_and_spread(x, weight)
        near = [abs(edge - middle) <= FAR * spread for edge in (start, end)]
        if not all(near):
            if not any(near):
                return Line.fit(x, degree, weight, extremes)
            edge, direction = (start, 1.0) if near[0] else (end, -1.0)
            return HalfLine.fit(x, degree, weight, extremes, start=edge, direction=direction)
        return cls(location, scale, low, high, 1.0, *recurrence(y, weight, degree))

    def boundary(self, x: Array) -> Boundary:
        """h = 1 − u², with u = ∓1 at the ends: about the distance to the nearer end, with h′ everywhere."""
        y = self.coordinate(x)
        half = (self.high - self.low) / 2
        return Boundary((y - self.low) * (self.high - y) / half**2, (self.low + self.high - 2 * y) / half**2)
