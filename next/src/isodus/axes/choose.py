"""The axis of a column from the words that a user gives: support and scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from .base import Array, Axis
from .bounded import Bounded
from .circle import Circle
from .half_line import HalfLine
from .interval import Interval
from .line import Line
from .values import Values
from .whole_line import WholeLine

__all__ = ["Scale", "Support", "choose_axis", "takes", "whole_line"]

Support = Literal["line", "positive", "circle", "values", "spin"] | tuple[float, float] | Axis
Scale = Literal["robust", "center", "spread", "cdf"] | None


def takes(support: object) -> bool:
    """Whether a support has a meaning: a word, two ends of which one may be infinite, or an axis."""
    if isinstance(support, Axis):
        return True
    if isinstance(support, str):
        return support in ("line", "positive", "circle", "values", "spin")
    try:
        start, end = map(float, support)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return False
    return bool(start < end)


def whole_line(degree: int) -> Axis:
    """Powers of x itself on the whole line: the axis of a model given by hand."""
    return WholeLine(0.0, 1.0, degree)


def choose_axis(
    x: Array,
    degree: int,
    support: Support = "line",
    scale: Scale = "robust",
    weight: Array | None = None,
    extremes: tuple[float, float] | None = None,
    gaussian: bool = False,
) -> Axis:
    """The axis of a column, (n,).

    gaussian: no term of the model is above degree 2, so that integrals on the whole line are closed forms.
    extremes: least and largest value, where x are not all rows.
    """
    if isinstance(support, Axis):
        values = x if extremes is None else np.append(x, extremes)
        if not support.contains(values).all():
            value = values[~support.contains(values)][0]
            raise ValueError(f"the axis given as support does not contain {value:g}. Use a wider one, or drop rows")
        return support
    if support == "circle":
        return Circle.fit(x, degree)
    if support == "spin":
        return Values.fit(x, degree, weight, extremes, values=[-1.0, 1.0]).in_units(0.0, 1.0)
    if support == "values":
        return _in_units(Values.fit(x, degree, weight, extremes), scale)
    axis: Axis
    ends = (-np.inf, np.inf) if support == "line" else (0.0, np.inf) if support == "positive" else _ends(support)
    if ends == (-np.inf, np.inf):
        if scale == "cdf":
            return Bounded.fit(x, degree, weight, extremes)
        axis = (WholeLine if gaussian else Line).fit(x, degree, weight, extremes)
    elif np.isfinite(ends).all():
        axis = Interval.fit(x, degree, weight, extremes, ends=ends)
    elif np.isfinite(ends[0]):
        axis = HalfLine.fit(x, degree, weight, extremes, start=ends[0])
    else:
        axis = HalfLine.fit(x, degree, weight, extremes, start=ends[1], direction=-1.0)
    return _in_units(axis, scale)


def _ends(support: Sequence[float] | str) -> tuple[float, float]:
    start, end = map(float, support)
    return start, end


def _in_units(axis: Axis, scale: Scale) -> Axis:
    """The same axis with y in units of its location, its spread, both or neither; its functions stay as they are."""
    if axis.in_units is None or scale not in ("center", "spread", None):
        return axis
    return axis.in_units(axis.location if scale == "center" else 0.0, axis.unit if scale == "spread" else 1.0)
