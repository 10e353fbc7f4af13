"""What a penalty is to cost: the weight of every term, from what a user says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from .basis import MonomialBasis
from .checks import column_finder
from .description import term_name

__all__ = ["Terms", "Weights", "multiplier", "positions", "weights"]

Key = Sequence[int | str]
Terms = Iterable[Key]
Weights = Mapping[Key, float] | Callable[[tuple[int, ...]], float]

SCALINGS = (None, "raw", "paper")


def multiplier(l1: float, scaling: str | None, p: int, n: float) -> float:
    """λ itself: as it is given, or times √(log p / n), as the paper writes it."""
    return float(l1) * (np.sqrt(np.log(p) / n) if scaling == "paper" else 1.0)


def weights(
    basis: MonomialBasis,
    columns: Sequence[Any],
    given: Weights | None = None,
    include: Terms | None = None,
    exclude: Terms | None = None,
    penalize_self: bool = False,
) -> np.ndarray:
    """The weight of each term, (M,): 1; 0 for those that are always in the model; infinite for those that never are.

    Terms of one variable have weight 0 unless `penalize_self`. given: weights by term, or a function of one;
    include, exclude: terms that are in whatever they cost, or out. columns: their names, of whatever type.
    """
    names = [str(name) for name in columns]
    out = np.where((basis.orders == 1) & (not penalize_self), 0.0, 1.0)
    if given is not None and not callable(given) and not isinstance(given, Mapping):
        raise ValueError(f"l1_weights must map terms to weights, or be a function of a term, not {given!r}")
    if callable(given):
        values = [given(term) for term in basis.terms]
        out[:] = [_weight(value, term, names) for value, term in zip(values, basis.terms, strict=True)]
    elif given:
        at = positions(given, basis, columns, "l1_weights")
        out[at] = [_weight(value, basis.terms[k], names) for k, value in zip(at, given.values(), strict=True)]
    kept = positions(include or (), basis, columns, "include")
    left = positions(exclude or (), basis, columns, "exclude")
    both = np.intersect1d(kept, left)
    if len(both):
        listed = ", ".join(term_name(basis.terms[k], names) for k in both[:5])
        raise ValueError(f"{listed}: in both include and exclude; a term cannot be forced in and fixed to zero")
    for at, ours, other, name in ((kept, 0.0, np.inf, "include"), (left, np.inf, 0.0, "exclude")):
        clash = [] if given is None else [k for k in at if out[k] == other and basis.orders[k] > 1]
        if clash:
            listed = ", ".join(term_name(basis.terms[k], names) for k in clash[:5])
            raise ValueError(f"{listed}: in {name}, but l1_weights gives the weight {other:g}; they contradict")
        out[at] = ours
    return out


def _weight(value: Any, term: tuple[int, ...], names: Sequence[str]) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
        raise ValueError(
            f"l1_weights gives {value!r} for {term_name(term, names)}: a weight is a number of at least 0, where 0 "
            "keeps the term in and infinity leaves it out"
        )
    return float(value)


def positions(terms: Terms, basis: MonomialBasis, columns: Sequence[Any], what: str) -> np.ndarray:
    """Where terms stand in the basis; they may be written with names of variables, or with indices."""
    if isinstance(terms, str) or not isinstance(terms, Iterable):
        raise ValueError(f"{what} must list terms such as (0, 1) or ('a', 'b'), not {terms!r}")
    names, find = [str(name) for name in columns], column_finder(columns)
    rows = [_term(key, find, names, what) for key in terms]
    if not rows:
        return np.empty(0, int)
    padded = np.full((len(rows), basis.degree), -1, np.int32)
    for row, term in zip(padded, rows, strict=True):
        row[: min(len(term), basis.degree)] = term[: basis.degree]
    at = basis.positions(padded)
    for place, term in zip(at, rows, strict=True):
        if place < 0 or len(term) > basis.degree:
            raise ValueError(
                f"{what}: {term_name(term, names)} is no term of the basis, which has {len(basis):,} terms of degree "
                f"{int(basis.degrees.min())} to {basis.degree} in at most {int(basis.orders.max())} variables"
            )
    return at


def _term(key: Any, find: Callable[[Any], int | None], names: Sequence[str], what: str) -> tuple[int, ...]:
    if isinstance(key, str) or not isinstance(key, Iterable):
        raise ValueError(f"{what}: a term is a tuple of columns such as (0, 1) or ('a', 'b'), not {key!r}")
    term = []
    for v in key:
        at = find(v)
        if at is None:
            known = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise ValueError(f"{what}: term {tuple(key)!r} names {v!r}, which is no column; the columns are {known}")
        term.append(at)
    if not term:
        raise ValueError(f"{what}: a term needs at least one variable")
    return tuple(sorted(term))
