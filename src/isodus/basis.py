"""Which monomials: integer maps only, no sample is touched here.

A monomial x^α is its *factors*, the sorted tuple of its variables with repetition: (0, 0, 1) is
x0²·x1. Terms stand in graded order, and in lexicographic order within a degree.

Seen from node i, a term is x_i^l times a *cofactor*, the monomial that is left without x_i. The
cofactors of all nodes form one list, again graded, so that "degree ≤ d" is a leading slice. It holds
every suffix of its members: each cofactor is one variable times an earlier cofactor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from .arrays import available_memory
from .factors import (
    Index,
    Lookup,
    Recipe,
    all_factors,
    explicit_factors,
    keys,
    leading_runs,
    ranks,
    recipes,
    run_is,
    runs,
    stack,
    without,
)
from .spaces import PLAIN, Spaces, as_spaces
from .ties import Ties, check_alike, ties

__all__ = ["MonomialBasis", "n_monomials"]


class Local(NamedTuple):
    """The terms that contain one variable, ordered by its power, then by cofactor.

    terms: (K,) positions in the basis; cofactors: (K,) positions in the cofactor list; the terms with
    power l are `slice(ends[l - 1], ends[l])`.
    """

    terms: np.ndarray
    cofactors: np.ndarray
    ends: tuple[int, ...]


def n_monomials(p: int, degree: int, *, min_degree: int = 1, max_order: int | None = None) -> int:
    """How many monomials of p variables have a degree in the range and at most max_order variables."""
    return sum(
        comb(p, q) * comb(d - 1, q - 1)
        for d in range(min_degree, degree + 1)
        for q in range(1, min(d, p, max_order or d) + 1)
    )


class MonomialBasis:
    """The monomials of an energy, with the maps that node-wise estimation needs.

    Parameters
    ----------
    n_variables : int
        Number of variables p.
    degree : int, optional
        Highest degree s. With `terms` it may be left out.
    min_degree : int, default=1
        Lowest degree.
    max_order : int or None, default=None
        Most distinct variables in one term; None for no limit.
    terms : iterable of tuples of int, optional
        An explicit list of terms instead of all monomials in the range: ``(0, 0, 1)`` is x0²·x1.
    support : optional
        Where variables live: for all of them, or a list of one a variable, or a mapping from indices. ``(0, inf)``,
        ``(a, b)``, a list of values such as ``[-1, 1]``, or "positive", "spin" and "circle"; None is the line. Powers
        that a list of values cannot tell apart are no terms.
    functions : optional
        What stands in the place of powers, of `isodus.functions` or the like; for all, a list, or a mapping.
    tied : callable or sequence of sequences of terms, optional
        Terms that share one parameter: a function from a term to a label, or a list of groups; terms with the label
        None, or in no group, have one of their own.

    Attributes
    ----------
    factors : ndarray of shape (n_terms, degree)
        Sorted variables of each term, padded with -1 at the end.
    degrees : ndarray of shape (n_terms,)
        Degree of each term.

    Examples
    --------
    >>> from isodus import MonomialBasis
    >>> MonomialBasis(2, 2).terms
    [(0,), (1,), (0, 0), (0, 1), (1, 1)]
    >>> MonomialBasis(100, 4)
    MonomialBasis(100, 4): 4598125 terms
    """

    def __init__(
        self,
        n_variables: int,
        degree: int | None = None,
        *,
        min_degree: int = 1,
        max_order: int | None = None,
        terms: Iterable[Sequence[int]] | None = None,
        support: Any = None,
        functions: Any = None,
        tied: Callable[[tuple[int, ...]], Any] | Sequence[Sequence[Sequence[int]]] | None = None,
    ) -> None:
        self.n_variables = _positive_int(n_variables, "n_variables")
        self.min_degree = _positive_int(min_degree, "min_degree")
        self.max_order = None if max_order is None else _positive_int(max_order, "max_order")
        if terms is not None:
            if min_degree != 1 or max_order is not None:
                raise ValueError("terms lists every term by itself: leave out min_degree and max_order")
            self._explicit = True
            self.factors = explicit_factors(self.n_variables, degree, list(terms))
            self.factors.flags.writeable = False
            self.degree = self.factors.shape[1]
        else:
            if degree is None:
                raise ValueError("degree is missing: give the highest degree, or a list of terms")
            self._explicit = False
            self.degree = _positive_int(degree, "degree")
            if self.min_degree > self.degree:
                raise ValueError(f"min_degree={min_degree} is above degree={degree}: no term is left")
            self._fits_memory()
        self._locals: dict[int, Local] = {}
        self.spaces: Spaces | None = None
        self.tied: Ties | None = None
        if support is not None or functions is not None:
            self._live_in(as_spaces(support, functions, [f"variable {i}" for i in range(self.n_variables)]))
        if tied is not None:
            self.tied = ties(self.terms, tied)
            check_alike(self.terms, self.tied, self.spaces)

    def _live_in(self, spaces: Spaces | None) -> None:
        """Put variables into spaces; terms with functions that cannot be told from others there are left out."""
        self.spaces = None if spaces is None or all(space == PLAIN for space in spaces) else spaces
        if self.spaces is None:
            return
        most = np.array([*(space.most for space in self.spaces), np.inf])
        dependent = np.zeros(len(self), bool)
        for j, length in runs(self.degree) if np.any(most < self.degree) else ():
            dependent |= run_is(self.factors, j, length) & (length > most[self.factors[:, j]])
        if dependent.all():
            raise ValueError("no term is left: every one has powers that the values of its variables cannot tell apart")
        if dependent.any():
            self.factors, self._explicit = self.factors[~dependent], True
            self.factors.flags.writeable = False

    def within(self, spaces: Spaces | None) -> MonomialBasis:
        """The same terms, of variables that live in these spaces; those that are then dependent are left out."""
        basis = copy(self)
        for name in ("degrees", "terms", "orders", "largest", "cofactors", "cofactor_ends", "recipes"):
            basis.__dict__.pop(name, None)
        for name in ("_lookup", "_incidence", "closed_under_translation"):
            basis.__dict__.pop(name, None)
        basis._locals = {}
        basis._live_in(spaces)
        if basis.tied is not None:
            at = self.positions(self.padded(basis.factors))
            basis.tied = basis.tied._replace(codes=basis.tied.codes[at])
        return basis

    @property
    def featured(self) -> bool:
        """Whether some variables have functions other than powers."""
        return self.spaces is not None and any(space.functions is not None for space in self.spaces)

    @classmethod
    def listed(cls, n_variables: int, factors: np.ndarray, spaces: Spaces | None = None) -> MonomialBasis:
        """The basis of terms given as rows of sorted variables, padded with -1; a row that stands twice counts once."""
        width = int(np.count_nonzero(factors >= 0, axis=1).max())
        factors = factors[:, :width].astype(np.int32)
        rows = factors[np.unique(keys(factors, n_variables, width), return_index=True)[1]]
        basis = cls.__new__(cls)
        basis.n_variables, basis.degree, basis.min_degree, basis.max_order = n_variables, width, 1, None
        basis._explicit, basis._locals, basis.spaces, basis.tied = True, {}, spaces, None
        basis.factors = rows[np.argsort(np.count_nonzero(rows >= 0, axis=1), kind="stable")]
        basis.factors.flags.writeable = False
        return basis

    @cached_property
    def factors(self) -> np.ndarray:
        """(n_terms, degree): sorted variables of each term, padded with -1; made when they are first asked for."""
        levels = all_factors(self.n_variables, self.degree, self.max_order)
        factors = stack(levels[self.min_degree :], self.degree)
        factors.flags.writeable = False
        return factors

    @cached_property
    def degrees(self) -> np.ndarray:
        """(n_terms,): degree of each term."""
        return np.count_nonzero(self.factors >= 0, axis=1).astype(np.int8)

    @property
    def complete(self) -> bool:
        """Whether these are all monomials in a range, rather than a list of some."""
        return not self._explicit

    def _fits_memory(self) -> None:
        n_terms = n_monomials(self.n_variables, self.degree, min_degree=self.min_degree, max_order=self.max_order)
        # factors, and for each variable of a term its position, power and cofactor; twice for sorting
        need = n_terms * (8 * self.degree + 24 * min(self.degree, self.max_order or self.degree))
        free = available_memory()
        if need > free:
            raise ValueError(
                f"all monomials of {self.n_variables} variables up to degree {self.degree}"
                f"{'' if self.max_order is None else f' with at most {self.max_order} variables each'} are"
                f" {n_terms:,} terms: about {_gigabytes(need)}, and {_gigabytes(free)} are free. "
                "Lower degree or max_order, or list the terms you need (terms=[...])."
            )

    def __len__(self) -> int:
        if self._explicit:
            return len(self.factors)
        return n_monomials(self.n_variables, self.degree, min_degree=self.min_degree, max_order=self.max_order)

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={value}"
            for name, value, default in (
                ("min_degree", self.min_degree, 1),
                ("max_order", self.max_order, None),
            )
            if value != default
        )
        listed = ", terms=[...]" if self._explicit else ""
        spaces = "" if self.spaces is None else ", support=..., functions=..." if self.featured else ", support=..."
        shared = "" if self.tied is None else f" with {len(self.tied.labels)} parameters"
        return f"MonomialBasis({self.n_variables}, {self.degree}{options}{listed}{spaces}): {len(self)} terms{shared}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MonomialBasis):
            return NotImplemented
        alike = self.n_variables == other.n_variables and self.spaces == other.spaces
        return alike and np.array_equal(self.factors, other.factors)

    def __hash__(self) -> int:
        return hash((self.n_variables, self.factors.shape, self.factors[:64].tobytes()))

    @cached_property
    def terms(self) -> list[tuple[int, ...]]:
        """The terms as sorted index tuples, in the order of the basis."""
        return self._tuples(slice(None))

    def _tuples(self, at: Index) -> list[tuple[int, ...]]:
        return [tuple(row[:d]) for row, d in zip(self.factors[at].tolist(), self.degrees[at].tolist(), strict=True)]

    @cached_property
    def orders(self) -> np.ndarray:
        """Number of distinct variables of each term."""
        return self._starts.sum(axis=1)

    @property
    def powers(self) -> np.ndarray:
        """Exponents α as a dense (n_terms, n_variables) array; for small bases."""
        return np.stack([np.count_nonzero(self.factors == i, axis=1) for i in range(self.n_variables)], axis=1)

    @property
    def _starts(self) -> np.ndarray:
        """(n_terms, degree): where a variable stands for the first time in its term."""
        starts = self.factors >= 0
        starts[:, 1:] &= self.factors[:, 1:] != self.factors[:, :-1]
        return starts

    @cached_property
    def closed_under_translation(self) -> bool:
        """Whether every divisor of every term is a term, so that x − c has an energy in the basis too."""
        if not self._explicit:
            return self.min_degree == 1
        for j in range(self.degree):
            divisors = np.delete(self.factors, j, axis=1)[(self.degrees > max(j, 1))]
            if np.any(self.positions(divisors) < 0):
                return False
        return True

    @cached_property
    def largest(self) -> int:
        """Most terms that contain one variable."""
        if not self._explicit:  # all monomials less those of the other variables
            fewer, limits = self.n_variables - 1, dict(min_degree=self.min_degree, max_order=self.max_order)
            return len(self) - (n_monomials(fewer, self.degree, **limits) if fewer else 0)  # type: ignore[arg-type]
        return int(self.counts.max())

    @property
    def counts(self) -> np.ndarray:
        """(p,): how many terms contain each variable."""
        return np.bincount(self.factors[self._starts], minlength=self.n_variables)

    def only(self, at: np.ndarray) -> MonomialBasis:
        """The basis of some of the terms, given by their positions."""
        return MonomialBasis.listed(self.n_variables, self.factors[at], self.spaces)

    def spanned(self, at: np.ndarray) -> MonomialBasis:
        """The basis of some of the terms and of all that divide them: the least that is closed under translation."""
        factors = self.factors[at]
        rows = [factors]
        for drop in (c for k in range(1, self.degree) for c in combinations(range(self.degree), k)):
            some = factors[factors[:, drop[-1]] >= 0]  # what is left of them is a term, and its padding stands last
            rows.append(np.pad(np.delete(some, drop, axis=1), ((0, 0), (0, len(drop))), constant_values=-1))
        every = np.concatenate(rows)
        return MonomialBasis.listed(self.n_variables, every[every[:, 0] >= 0], self.spaces)

    def padded(self, factors: np.ndarray) -> np.ndarray:
        """Factors of terms of a lower degree, with as many columns as those of this basis."""
        width = self.degree - factors.shape[1]
        if width < 0:  # what is cut off is padding
            return factors[:, : self.degree]
        return np.pad(factors, ((0, 0), (0, width)), constant_values=-1) if width else factors

    def positions(self, factors: np.ndarray) -> np.ndarray:
        """Positions in the basis of rows of padded factors; -1 where a row is no term of the basis."""
        if self._explicit:
            return self._lookup(factors)
        below = n_monomials(self.n_variables, self.min_degree - 1, max_order=self.max_order)
        return np.maximum(ranks(factors, self.n_variables, self.degree, self.max_order) - 1 - below, -1)

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.factors, self.n_variables, self.degree)

    @cached_property
    def cofactors(self) -> np.ndarray:
        """(m, degree − 1) padded factors of the cofactors, graded; the first is the constant 1."""
        p, width = self.n_variables, self.degree - 1
        if not self._explicit:
            order = min(p, self.max_order or p) - 1
            return stack(all_factors(p, width, order), width)
        rows = [np.full((1, width), -1, np.int32)]
        for j, length in runs(self.degree):
            rows.append(without(self.factors[run_is(self.factors, j, length)], j, length))
        members = np.concatenate(rows)
        if width:
            suffixes = [np.pad(members[:, j:], ((0, 0), (0, j)), constant_values=-1) for j in range(width)]
            members = np.concatenate(suffixes)
        members = np.unique(members, axis=0)
        degrees = np.count_nonzero(members >= 0, axis=1)
        return members[np.argsort(degrees, kind="stable")]

    @cached_property
    def cofactor_ends(self) -> np.ndarray:
        """(degree,): the cofactors of degree ≤ d are the first ``cofactor_ends[d]``."""
        degrees = np.count_nonzero(self.cofactors >= 0, axis=1)
        return np.searchsorted(degrees, np.arange(self.degree), side="right")

    @cached_property
    def recipes(self) -> list[Recipe]:
        """How to make the cofactors, in order, each by one multiplication; the first is 1, then X."""
        p, width, ends = self.n_variables, self.degree - 1, self.cofactor_ends
        if len(self.cofactors) == 1:
            return []
        parents, variables = Lookup(self.cofactors, p, width)(without(self.cofactors, 0, 1)), self.cofactors[:, 0]
        if self.featured:  # φ_l of the first variable, row (l − 1) p + i of the features, times what is left without it
            lookup, lengths = Lookup(self.cofactors, p, width), leading_runs(self.cofactors)
            variables = variables + p * np.maximum(lengths - 1, 0)
            for length in range(2, width + 1):
                here = lengths == length
                parents[here] = lookup(without(self.cofactors[here], 0, length))
        return [
            recipe
            for d in range(1, self.degree)
            for recipe in recipes(int(ends[d - 1]), int(ends[d]), variables, parents, p)
        ]

    @cached_property
    def _incidence(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Terms and cofactors of all nodes, by variable, then power, then cofactor, and where each group begins."""
        p, width = self.n_variables, self.degree - 1
        lookup = Lookup(self.cofactors, p, width)
        variables, powers, terms, cofactors = [], [], [], []
        for j, length in runs(self.degree):
            here = np.flatnonzero(run_is(self.factors, j, length)).astype(np.int32)
            rows = self.factors[here]
            variables.append(rows[:, j])
            powers.append(np.full(len(here), length, np.int8))
            terms.append(here)
            cofactors.append(lookup(without(rows, j, length)))
        variable, power = np.concatenate(variables), np.concatenate(powers)
        term, cofactor = np.concatenate(terms), np.concatenate(cofactors)
        group = variable * np.int64(self.degree + 1) + power
        order = np.argsort(group * len(self.cofactors) + cofactor)
        ends = np.searchsorted(group[order], np.arange(p * (self.degree + 1) + 1))
        return ends, term[order], cofactor[order]

    def local(self, i: int) -> Local:
        """The terms of node i."""
        if i not in self._locals:
            self._locals[i] = self._local(i)
        return self._locals[i]

    def _local(self, i: int) -> Local:
        ends, terms, cofactors = self._incidence
        first = i * (self.degree + 1)
        bounds = ends[first + 1 : first + self.degree + 2]
        here = slice(int(bounds[0]), int(bounds[-1]))
        return Local(terms[here], cofactors[here], tuple((bounds - bounds[0]).tolist()))


def _positive_int(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, not {value!r}")
    return int(value)


def _gigabytes(n: float) -> str:
    return f"{n / 1e9:,.3g} GB"
