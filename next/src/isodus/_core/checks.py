"""What arguments must be. Every message names the argument."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["finite_number", "generator", "one_of", "positive_integer", "seed_of"]


def one_of(value: Any, options: Collection[Any], name: str) -> Any:
    """The value, if it is among the options: strings, numbers, booleans or None."""
    for option in options:
        if type(value) is type(option) and value == option:
            return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, not {value!r}")


def positive_integer(value: Any, name: str, least: int = 1) -> int:
    """The value as an int, if it is a whole number of at least `least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {kind}, not {value!r}")
    return int(value)


def finite_number(value: Any, name: str, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """The value as a float, if it is finite, greater than `above` and at least `least`."""
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool | np.bool_) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number <= above or number < least:
        bound = f" above {above:g}" if above > -math.inf else f" of at least {least:g}" if least > -math.inf else ""
        raise ValueError(f"{name} must be a finite number{bound}, not {value!r}")
    return number


def generator(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """A random generator from None (fresh), an integer of any size, a RandomState (draws a seed) or a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32).tolist())
    return np.random.default_rng(None if random_state is None else _seed(random_state, name))


def seed_of(random_state: Any, name: str = "random_state") -> int:
    """A number below 2⁶⁴ to salt hashes with: 0 for None, always the same for the same integer.

    A Generator or RandomState gives it by a draw.
    """
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return int(generator(random_state).integers(2**64, dtype=np.uint64))
    return int(np.random.SeedSequence(_seed(random_state, name)).generate_state(1, np.uint64)[0])


def _seed(value: Any, name: str) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < 0:
        raise ValueError(
            f"{name} must be None, an integer of at least 0, a numpy Generator or a RandomState, not {value!r}"
        )
    return int(value)
