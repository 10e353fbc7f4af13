"""A variable that ends on one side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Array, Boundary
from .line import Line, tail_length, window
from .polynomial import Polynomial, middle_and_spread, recurrence

__all__ = ["FAR", "HalfLine"]

FAR = 100.0  # spreads from the middle, where a start no longer matters


@dataclass(frozen=True, eq=False)
class HalfLine(Polynomial):
    """Polynomials from a given start on, or up to it; on the other side the window and the tail are a line's.

    Parameters
    ----------
    direction : float
        1 for [start, ∞), −1 for (−∞, start]; the others are those of `Polynomial`, with `low` or `high` at the start.

    Examples
    --------
    >>> import numpy as np
    >>> axis = HalfLine.fit(np.random.default_rng(0).exponential(size=1000), 4, start=0.0)
    >>> axis.contains(np.array([-0.1, 0.0, 100.0])).tolist()
    [False, True, True]
    """

    direction: float

    kind: ClassVar[str] = "half line"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.direction not in (-1, 1):
            raise ValueError(f"the direction of a half line is 1 or -1, not {self.direction}")

    @property
    def tails(self) -> tuple[bool, bool]:
        """The side opposite the start goes on."""
        return self.direction < 0, self.direction > 0

    @classmethod
    def fit(
        cls,
        x: Array,
        degree: int,
        weight: Array | None = None,
        extremes: tuple[float, float] | None = None,
        start: float = 0.0,
        direction: float = 1.0,
    ) -> HalfLine | Line:
        """The axis of a column on [start, ∞), or (−∞, start] where `direction` is −1.

        A start more than a hundred spreads from the middle is a line's: no mass is near it, and a window up to it would
        be too wide for the nodes.
        """
        least, most = extremes or (x.min(), x.max())
        if least < start if direction > 0 else most > start:
            side = "at least" if direction > 0 else "at most"
            raise ValueError(
                f"values from {least:g} to {most:g} are not all {side} {start:g}. Use another support or drop rows"
            )
        weight = np.ones(len(x)) if weight is None else weight
        location, scale = middle_and_spread(x, weight)
        y, edge = (x - location) / scale, (start - location) / scale
        if abs(edge) > FAR:
            return Line.fit(x, degree, weight, extremes)
        low, high = window((least - location) / scale, (most - location) / scale)
        low, high = (edge, high) if direction > 0 else (low, edge)
        alpha, beta = recurrence(np.clip(y, low, high), weight, degree)
        return cls(location, scale, low, high, tail_length(y, weight, low, high), alpha, beta, float(direction))

    def boundary(self, x: Array) -> Boundary:
        """h = tanh(d) with d the distance from the start in units of y: min(d, 1) with a slope everywhere."""
        start = self.low if self.direction > 0 else self.high
        h = np.tanh(self.direction * (self.coordinate(x) - start))
        return Boundary(h, self.direction * (1 - h * h))
