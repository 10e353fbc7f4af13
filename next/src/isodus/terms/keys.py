"""Public keys of terms, and what they are inside: the only place where one is turned into the other.

A key lists variables, each as often as the number of its function: (0, 0, 1) is the second function of variable 0 times
the first of variable 1, which for powers is x0² x1. Inside, a product is a sorted tuple of (variable, function), with
functions counted from 0: ((0, 1), (1, 0)).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from math import comb

from ..axes import Axis

__all__ = ["Key", "Product", "closed", "count_on_lines", "count_up_to", "key_of", "keys_up_to", "name_of", "product_of"]

Key = tuple[int, ...]
Product = tuple[tuple[int, int], ...]


@lru_cache(maxsize=2**16)
def product_of(key: Key) -> Product:
    """((0, 1), (1, 0)) of (0, 0, 1)."""
    return tuple((i, len(list(same)) - 1) for i, same in groupby(sorted(key)))


def key_of(factors: Product) -> Key:
    """(0, 0, 1) of ((0, 1), (1, 0))."""
    return tuple(i for i, l in factors for _ in range(l + 1))


def name_of(key: Key, axes: Sequence[Axis], names: Sequence[str]) -> str:
    """A term in words, such as x0^2*x1."""
    return "*".join(axes[i].name(l, names[i]) for i, l in product_of(key))


def keys_up_to(axes: Sequence[Axis], degree: int, max_order: int, min_degree: int = 1) -> list[Key]:
    """All terms with a degree from `min_degree` to `degree` and at most `max_order` variables, by order."""
    of = [axis.degrees.tolist() for axis in axes]
    found: list[Key] = []
    here: list[tuple[Key, Key, int]] = [((), (), 0)]  # variables, their functions, and the degree
    for _ in range(max_order):
        here = sorted(
            ((*variables, i), (*functions, l), total + d)
            for variables, functions, total in here
            for i in range(variables[-1] + 1 if variables else 0, len(of))
            for l, d in enumerate(of[i])
            if total + d <= degree
        )
        found += [
            key_of(tuple(zip(variables, functions, strict=True)))
            for variables, functions, total in here
            if total >= min_degree
        ]
    return found


def count_up_to(axes: Sequence[Axis], degree: int, max_order: int, min_degree: int = 1) -> int:
    """How many terms `keys_up_to` lists: products of one function each of some variables, counted by their degree."""
    counts = [[0] * (degree + 1) for _ in range(max_order + 1)]  # by number of variables and degree
    counts[0][0] = 1
    for axis in axes:
        for order in range(max_order, 0, -1):
            for d in axis.degrees.tolist():
                for rest in range(degree - d + 1):
                    counts[order][rest + d] += counts[order - 1][rest]
    return sum(sum(row[min_degree:]) for row in counts[1:])


def count_on_lines(p: int, degree: int, max_order: int) -> int:
    """How many terms p variables have whose functions are of degree 1, 2, …: of k variables C(p, k) C(degree, k)."""
    return sum(comb(p, k) * comb(degree, k) for k in range(1, max_order + 1))


def closed(keys: Iterable[Key], axes: Sequence[Axis]) -> bool:
    """Whether the terms include every divisor of each of them, so that functions span what their powers span.

    It is enough that they include what is one power lower. An axis without powers has functions that stand for
    themselves.
    """
    present, power = {product_of(key) for key in keys}, [axis.powers is not None for axis in axes]
    for factors in present:
        for k, (i, l) in enumerate(factors):
            lower = (*factors[:k], (i, l - 1), *factors[k + 1 :]) if l else factors[:k] + factors[k + 1 :]
            if power[i] and lower and lower not in present:
                return False
    return True
