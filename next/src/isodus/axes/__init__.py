"""One variable at a time: functions, a base measure, and nodes on which integrals are sums that know their error."""

from .base import Axis, Boundary, Derivatives, Integrals, Nodes, packed_pairs
from .bounded import Bounded
from .circle import Circle
from .functions import Functions
from .half_line import HalfLine
from .interval import Interval
from .line import Line
from .mapped import Mapped
from .values import Values
from .whole_line import WholeLine

__all__ = [
    "Axis",
    "Boundary",
    "Bounded",
    "Circle",
    "Derivatives",
    "Functions",
    "HalfLine",
    "Integrals",
    "Interval",
    "Line",
    "Mapped",
    "Nodes",
    "Values",
    "WholeLine",
    "packed_pairs",
]
