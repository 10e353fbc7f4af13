"""Terms and unknowns of a model from coefficients in powers of x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse.linalg import spsolve

from .._core.checks import finite_number
from ..axes import Axis
from ..axes.choose import whole_line
from ..data.tables import default_names
from ..terms import Key, Terms, product_of, to_powers
from .files import MOST_FACTORS

__all__ = ["terms_by_hand"]

Array = np.ndarray


def terms_by_hand(
    coefficients: Mapping[Any, float], names: Sequence[str] | None, axes: Sequence[Axis] | None
) -> tuple[Terms, Array, tuple[str, ...]]:
    """Terms, τ and names; without axes, powers on the whole line."""
    found, names = _by_number(coefficients, names, None if axes is None else len(axes))
    keys, values = list(found), np.array(list(found.values()), float)
    if axes is None:
        degrees = [max((key.count(i) for key in keys if i in key), default=1) for i in range(len(names))]
        lines = [whole_line(degree) for degree in degrees]
        return Terms.of(lines, [product_of(key) for key in keys]), values, names
    for key in keys:
        for i, l in product_of(key):
            if l >= len(axes[i].degrees):
                raise ValueError(
                    f"The term {key} needs function {l + 1} of {names[i]!r}, whose axis has {len(axes[i].degrees)}. "
                    "Make the axis with a higher degree."
                )
    terms = Terms(axes, keys)
    if not terms.identity:  # an unknown is the coefficient of a power of x in units of the axis
        units = [1.0 if axis.powers is None else axis.unit for axis in axes]
        return terms, values * [np.prod([units[i] for i in key]) for key in terms.keys], names
    there, B = to_powers(axes, terms.products)
    place = dict(zip(keys, values, strict=True))
    return terms, np.atleast_1d(spsolve(B.tocsc(), np.array([place[key] for key in there]))), names


def _by_number(
    coefficients: Mapping[Any, float], names: Sequence[str] | None, p: int | None
) -> tuple[dict[Key, float], tuple[str, ...]]:
    """Coefficients by sorted keys of numbers, and the names of all variables."""
    if not isinstance(coefficients, Mapping) or not coefficients:
        raise ValueError("from_dict needs a dictionary with at least one term, such as {('a', 'b'): 0.5, ...}.")
    keys = [tuple(key) if isinstance(key, tuple | list) else (key,) for key in coefficients]
    if not all(keys):
        raise ValueError("A term lists at least one variable, and one of the keys is empty.")
    variables = list(dict.fromkeys(v for key in keys for v in key))
    words = [v for v in variables if isinstance(v, str)]
    if names is None:
        if words and len(words) < len(variables):
            raise ValueError("The keys mix names and numbers. Use one of them, or pass names=.")
        names = words if words else default_names(p or 1 + max(map(_number, variables), default=-1))
    names = tuple(str(name) for name in names)
    if len(set(names)) < len(names) or not names:
        raise ValueError(f"names must be different from each other, not {list(names)!r:.60}.")
    if p is not None and len(names) != p:
        raise ValueError(f"There are {len(names)} variables and {p} axes. Pass one axis for each variable, in order.")
    place = {name: i for i, name in enumerate(names)}
    found: dict[Key, float] = {}
    for key, value in zip(keys, coefficients.values(), strict=True):
        numbers = tuple(sorted(_place(v, place) for v in key))
        if len(set(numbers)) > MOST_FACTORS:
            raise ValueError(f"A term has at most {MOST_FACTORS} variables, and {key!r:.60} has {len(set(numbers))}.")
        if numbers in found:
            raise ValueError(f"The term {key!r:.60} is there twice, in different orders. List it once.")
        found[numbers] = finite_number(value, f"the coefficient of {key!r:.60}")
    return found, names


def _number(variable: Any) -> int:
    if isinstance(variable, bool) or not isinstance(variable, int | np.integer) or variable < 0:
        raise ValueError(f"A key lists variables by name or by number from 0 on, and holds {variable!r:.60}.")
    return int(variable)


def _place(variable: Any, place: Mapping[str, int]) -> int:
    if isinstance(variable, str):
        if variable not in place:
            raise ValueError(f"There is no variable {variable!r}; there are {', '.join(map(repr, place))}.")
        return place[variable]
    if _number(variable) >= len(place):
        raise ValueError(f"There is no variable {variable}; they are numbered from 0 to {len(place) - 1}.")
    return int(variable)
