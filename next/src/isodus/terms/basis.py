"""A list of terms that a user gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral

import numpy as np

from .keys import Key

__all__ = ["MonomialBasis", "lattice"]


class MonomialBasis:
    """The terms of a model, given one by one.

    Parameters
    ----------
    terms : iterable of tuples
        Each lists variables, by number or name, as often as their power: (0, 0, 1) is x0² x1. On axes that are not of
        powers, a variable repeated l times means its l-th function.
    ties : sequence of int, optional
        A number for each term. Terms of the same number share one parameter.

    Examples
    --------
    >>> MonomialBasis([(0, 0), (1, 1), (0, 1), (0, 0, 0, 0), (1, 1, 1, 1)])
    MonomialBasis of 5 terms
    >>> MonomialBasis([("a", "a"), ("b", "b"), ("a", "b")], ties=[0, 0, 1])
    MonomialBasis of 3 terms, 2 parameters
    """

    def __init__(self, terms: Iterable[Sequence[int | str]], ties: Sequence[int] | None = None) -> None:
        try:
            terms = list(terms)
            if any(isinstance(term, str) for term in terms):
                raise TypeError
            self.terms = [tuple(term) for term in terms]
        except TypeError:
            raise ValueError(
                "Each term of a basis is a tuple of variables, such as (0, 0, 1) for x0² x1 or ('a',) for a alone."
            ) from None
        self.ties = None if ties is None else [int(t) for t in ties]
        if not self.terms or not all(self.terms):
            raise ValueError("A basis needs at least one term, and a term at least one variable.")
        if self.ties is not None and len(self.ties) != len(self.terms):
            raise ValueError(f"ties has {len(self.ties):,} numbers for {len(self.terms):,} terms. Give one each.")
        if self.ties is not None and sorted(set(self.ties)) != list(range(max(self.ties) + 1)):
            raise ValueError("ties must use each of the numbers 0, 1, … up to its largest.")

    def keys(self, names: Sequence[str]) -> list[Key]:
        """The terms by number of variable; an error for unknown variables and terms given twice."""
        place = {name: i for i, name in enumerate(names)}
        found: dict[Key, None] = {}
        for term in self.terms:
            key = tuple(sorted(self._number(v, place, len(names)) for v in term))
            if key in found:
                raise ValueError(f"The term {term} is in the basis twice. List it once.")
            found[key] = None
        return list(found)

    @staticmethod
    def _number(variable: int | str, place: dict[str, int], p: int) -> int:
        if isinstance(variable, str) or str(variable) in place:  # labels of frames may be numbers
            variable = str(variable)
            if variable not in place:
                raise ValueError(f"The basis names a variable {variable!r}, which is not a column of X.")
            return place[variable]
        number = isinstance(variable, Integral) and not isinstance(variable, bool)
        if not number or not 0 <= int(variable) < p:
            raise ValueError(f"The basis has a variable {variable!r}; X has columns 0 to {p - 1}.")
        return int(variable)

    def __repr__(self) -> str:
        tied = "" if self.ties is None else f", {max(self.ties) + 1:,} parameters"
        return f"MonomialBasis of {len(self.terms):,} terms{tied}"


def lattice(shape: int | Sequence[int], own: Sequence[int] = (2, 4), periodic: bool = True) -> MonomialBasis:
    """Sites on a lattice, coupled to their neighbours by x_i x_j, with the same parameters at each site.

    Parameters
    ----------
    shape : int or sequence of int
        Sites in each direction. Site numbers follow numpy's order.
    own : sequence of int, default=(2, 4)
        Powers of one site: m² and λ of a φ⁴ field.
    periodic : bool, default=True
        Whether the last site of a direction is a neighbour of the first.

    Returns
    -------
    MonomialBasis
        A parameter for each power in `own`, then one for the coupling of neighbours.

    Examples
    --------
    >>> lattice((4, 4))
    MonomialBasis of 64 terms, 3 parameters
    """
    shape = (shape,) if isinstance(shape, int) else shape
    if isinstance(shape, str) or not all(isinstance(size, int | np.integer) and size > 0 for size in shape):
        raise ValueError(f"shape lists the sites in each direction, such as (4, 4), and is {shape!r}.")
    sites = np.arange(int(np.prod(shape))).reshape(shape)
    terms: dict[Key, int] = {(i,) * power: k for k, power in enumerate(own) for i in sites.ravel().tolist()}
    for axis, size in enumerate(shape):
        inner = range(size if periodic else size - 1)
        here, there = (np.take(s, inner, axis) for s in (sites, np.roll(sites, -1, axis)))
        for i, j in zip(here.ravel().tolist(), there.ravel().tolist(), strict=True):
            if i != j:
                terms[min(i, j), max(i, j)] = len(own)
    return MonomialBasis(list(terms), list(terms.values()))
