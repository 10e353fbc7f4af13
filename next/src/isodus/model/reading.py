"""Parts of a file that is not trusted: every value is checked, and messages say where it stands."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = ["Reader"]

Array = np.ndarray
T = TypeVar("T")
_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Reader:
    """A value of parsed JSON and the name of its place."""

    def __init__(self, where: str, value: Any) -> None:
        self.where, self.value = where, value

    def __getitem__(self, key: str) -> Reader:
        if not isinstance(self.value, dict) or key not in self.value:
            raise ValueError(f"{self.where} has no entry {key!r}")
        return Reader(key if self.where == "the file" else f"{self.where}.{key}", self.value[key])

    def parts(self, count: int | None = None) -> list[Reader]:
        """The parts of a list."""
        if not isinstance(self.value, list):
            raise ValueError(f"{self.where} must be a list, not {self.value!r:.40}")
        if count is not None and len(self.value) != count:
            raise ValueError(f"{self.where} has {len(self.value):,} entries in place of {count:,}")
        return [Reader(f"{self.where}[{k}]", part) for k, part in enumerate(self.value)]

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise ValueError(f"{self.where} must be a text, not {self.value!r:.40}")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise ValueError(f"{self.where} must be true or false, not {self.value!r:.40}")
        return self.value

    def number(self, least: float = -math.inf, most: float = math.inf, finite: bool = True) -> float:
        """A number in a range; with finite=False also NaN and infinities, which are words."""
        value = self.value
        if not finite and isinstance(value, str) and value in _WORDS:
            return _WORDS[value]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{self.where} must be a number, not {value!r:.40}")
        number = float(value)
        if not math.isfinite(number) or not least <= number <= most:
            raise ValueError(f"{self.where} is out of range: {number:g}")
        return number

    def integer(self, least: int, most: int) -> int:
        """A whole number in a range."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not least <= self.value <= most:
            raise ValueError(f"{self.where} must be an integer from {least} to {most}, not {self.value!r:.40}")
        return self.value

    def numbers(self, count: int | None = None, finite: bool = True) -> Array:
        """A list of numbers."""
        return np.array([part.number(finite=finite) for part in self.parts(count)], float)

    def integers(self, count: int | None, below: int) -> Array:
        """A list of integers from 0 to below `below`."""
        return np.array([part.integer(0, below - 1) for part in self.parts(count)], int)

    def packed(self, count: int) -> Array:
        """`count` finite float64 numbers as base64 of their little-endian bytes."""
        try:
            data = base64.b64decode(self.text(), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"{self.where} is not base64 ({error})") from None
        if len(data) != 8 * count:
            raise ValueError(f"{self.where} has {len(data):,} bytes in place of {8 * count:,}")
        values = np.frombuffer(data, "<f8").astype(float)
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{self.where} holds values that are not finite")
        return values

    def made(self, make: Callable[[Any], T]) -> T:
        """What a function makes of the value; whatever it raises is a ValueError with the place."""
        try:
            return make(self.value)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError) as error:
            reason = str(error).rstrip(".") or type(error).__name__
            raise ValueError(f"{self.where} cannot be read: {reason}") from None
