"""Where a variable lives: on the line, a half line, an interval, a circle, or among a few values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import inf, isfinite, pi
from numbers import Real
from operator import or_
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CIRCLE", "LINE", "Support", "as_support"]


class Support(NamedTuple):
    """From low to high, or, where there are any, the values, ascending; circle: both ends are one place."""

    low: float = -inf
    high: float = inf
    values: tuple[float, ...] | None = None
    circle: bool = False

    def holds(self, x: Any, slack: float = 0.0) -> Any:
        """Which of x lie in it, or by no more than `slack` beside it; x: an array of any library."""
        if self.values is not None:
            return reduce(or_, (abs(x - value) <= slack for value in self.values))
        if self.circle:  # angles may have been wound up
            return abs(x) < inf
        return (x >= self.low - slack) & (x <= self.high + slack)

    def standardised(self, location: float, scale: float) -> Support:
        """The same in y = (x − location)/scale."""
        return self._moved(lambda x: (x - location) / scale)

    def in_units(self, location: float, scale: float) -> Support:
        """The same in x = location + scale·y, to rounding."""
        return self._moved(lambda y: location + scale * y)

    def slack(self, location: float) -> float:
        """How far beside it, as `in_units` gives it, rounding may put a value that is in it."""
        return 2.0**-49 * sum(abs(x) for x in (self.low, self.high, location) if isfinite(x))

    def _moved(self, to: Callable[[float], float]) -> Support:
        if self.circle:
            return self
        return Support(to(self.low), to(self.high), None if self.values is None else tuple(map(to, self.values)))

    @property
    def powers(self) -> float:
        """How many powers of x can be told apart: one fewer than there are values."""
        return inf if self.values is None else len(self.values) - 1

    @property
    def bounded(self) -> bool:
        """Whether it is of finite length, or a few values."""
        return isfinite(self.low) and isfinite(self.high)

    def __str__(self) -> str:
        if self.circle:
            return "the circle"
        if self.values is not None:
            return "{" + ", ".join(f"{v:g}" for v in self.values) + "}"
        return f"({self.low:g}, {self.high:g})"


LINE = Support()
CIRCLE = Support(-pi, pi, None, True)
_KNOWN = {"spin": Support(-1.0, 1.0, (-1.0, 1.0)), "circle": CIRCLE, "positive": Support(0.0, inf)}


def as_support(given: Any) -> Support:
    """A support from what a user writes: None, (low, high), a list of values, or "spin", "positive", "circle"."""
    if given is None or isinstance(given, Support):
        return given or LINE
    if isinstance(given, str):
        if given not in _KNOWN:
            known = ", ".join(f'"{name}"' for name in _KNOWN)
            raise ValueError(f"there is no support {given!r}; there are {known}, (low, high) and lists of values")
        return _KNOWN[given]
    if isinstance(given, tuple):
        return _between(given)
    if isinstance(given, list | np.ndarray):
        return _among(given)
    raise ValueError(f'a support is None, (low, high), a list of values, "spin", "positive" or "circle", not {given!r}')


def _between(ends: tuple[Any, ...]) -> Support:
    if len(ends) != 2 or not all(isinstance(end, Real) and not isinstance(end, bool) for end in ends):
        raise ValueError(f"an interval is a pair (low, high) of numbers, not {ends!r}; values are a list")
    low, high = map(float, ends)
    if not low < high:
        raise ValueError(f"an interval goes from low to high, not from {low:g} to {high:g}")
    if low == -inf and high < inf:
        raise ValueError(f"a half line begins somewhere: instead of (-inf, {high:g}) take −x, on ({-high:g}, inf)")
    return Support(low, high)


def _among(values: Sequence[Any] | np.ndarray) -> Support:
    try:
        found = sorted({float(v) for v in values})
    except (TypeError, ValueError):
        raise ValueError(f"the values of a support are numbers, not {list(values)!r}") from None
    if not all(map(isfinite, found)):
        raise ValueError("the values of a support must be finite")
    if len(found) < 2:
        raise ValueError(f"a variable that has {len(found)} value{'s' * (len(found) != 1)} does not vary: leave it out")
    return Support(found[0], found[-1], tuple(found))
