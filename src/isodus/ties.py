"""Terms that share one parameter: which, under what label, and how many parameters there are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .spaces import PLAIN, Spaces

__all__ = ["Ties", "check_alike", "ties"]

Term = tuple[int, ...]


class Ties(NamedTuple):
    """codes: (M,), which parameter each term has; labels: what each parameter is called."""

    codes: np.ndarray
    labels: tuple[Hashable, ...]

    def summed(self, values: np.ndarray) -> np.ndarray:
        """Σ over the terms of each parameter, of a vector (M,)."""
        return np.bincount(self.codes, weights=values, minlength=len(self.labels))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """The value of each parameter at every term of it."""
        return values[self.codes]

    def first(self) -> np.ndarray:
        """One term of every parameter, (G,); -1 for a parameter that has none."""
        at = np.full(len(self.labels), -1)
        at[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
        return at


def ties(terms: Sequence[Term], given: Callable[[Term], Any] | Sequence[Sequence[Sequence[int]]]) -> Ties:
    """From a function from a term to a label, or a list of groups of terms; what has no label is by itself."""
    labels: dict[Term, Hashable] = {}
    if callable(given):
        labels = {term: given(term) for term in terms}
    else:
        known = set(terms)
        for k, group in enumerate(given):
            for term in group:
                if isinstance(term, str) or not isinstance(term, Sequence):
                    raise ValueError(f"tied: a group is a list of terms such as [(0, 1), (1, 2)], not {group!r}")
                row = tuple(sorted(term))
                if row not in known:
                    raise ValueError(f"tied: {row} of group {k} is no term of the basis")
                if row in labels:
                    raise ValueError(f"tied: {row} is in two groups")
                labels[row] = k
    codes = np.empty(len(terms), np.int64)
    names: dict[Any, int] = {}
    for at, term in enumerate(terms):
        label = labels.get(term)
        try:
            codes[at] = names.setdefault(term if label is None else ("shared", label), len(names))
        except TypeError:
            raise ValueError(f"tied: the label {label!r} of {term} cannot be one: it must be hashable") from None
    called = [key[1] if key[:1] == ("shared",) else key for key in names]
    return Ties(codes, tuple(called))


def check_alike(terms: Sequence[Term], tied: Ties, spaces: Spaces | None) -> None:
    """Refuse to tie terms whose variables live differently: their functions are not the same."""
    if spaces is None:
        return
    seen: dict[int, tuple[Term, list[Any]]] = {}
    for term, code in zip(terms, tied.codes.tolist(), strict=True):
        kind = sorted((term.count(v), repr(spaces[v] if spaces else PLAIN)) for v in set(term))
        other, first = seen.setdefault(code, (term, kind))
        if kind != first:
            raise ValueError(
                f"tied: {other} and {term} share the parameter {tied.labels[code]!r}, but their variables live on "
                f"{_where(other, spaces)} and on {_where(term, spaces)}: what they multiply is not alike"
            )


def _where(term: Term, spaces: Spaces) -> str:
    return ", ".join(sorted({str(spaces[v].support) for v in term}))
