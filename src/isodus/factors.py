"""Rows of factors: a monomial is the sorted tuple of its variables, a list of them an array padded with -1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

__all__ = [
    "Index",
    "Lookup",
    "Recipe",
    "all_factors",
    "explicit_factors",
    "keys",
    "leading_runs",
    "ranks",
    "recipes",
    "run_is",
    "runs",
    "stack",
    "without",
]

Index = slice | np.ndarray


class Recipe(NamedTuple):
    """``H[columns] = X[variables] * H[parents]``: how cofactors follow from earlier ones."""

    columns: slice
    variables: Index
    parents: Index


def all_factors(p: int, degree: int, max_order: int | None) -> list[np.ndarray]:
    """Rows of factors of every monomial, a list with an array a degree 0, 1, …; lexicographic."""
    rows = np.empty((1, 0), np.int32)
    order = np.zeros(1, np.int64)
    levels = [rows]
    for d in range(1, degree + 1):
        last = rows[:, -1] if d > 1 else np.zeros(1, np.int32)
        counts = p - last.astype(np.int64)
        if max_order is not None and d > 1:
            counts = np.where(order < max_order, counts, 1)
        elif max_order == 0:
            counts = np.zeros(1, np.int64)
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        added = np.repeat(last, counts) + (np.arange(counts.sum()) - starts).astype(np.int32)
        grown = np.repeat(rows, counts, axis=0)
        is_new = added != grown[:, -1] if d > 1 else np.ones(len(added), bool)
        order = np.repeat(order, counts) + is_new
        rows = np.concatenate([grown, added[:, None]], axis=1)
        levels.append(rows)
    return levels


def stack(levels: list[np.ndarray], width: int) -> np.ndarray:
    """Rows of several degrees in one array, padded with -1."""
    out = np.full((sum(map(len, levels)), width), -1, np.int32)
    start = 0
    for rows in levels:
        out[start : start + len(rows), : rows.shape[1]] = rows
        start += len(rows)
    return out


def runs(degree: int) -> list[tuple[int, int]]:
    """Where a variable can stand in a sorted term: (first position, power)."""
    return [(j, length) for length in range(1, degree + 1) for j in range(degree + 1 - length)]


def run_is(factors: np.ndarray, j: int, length: int) -> np.ndarray:
    """Rows in which one variable fills exactly the positions j … j + length − 1."""
    v = factors[:, j]
    here = (v >= 0) & (factors[:, j + length - 1] == v)
    if j:
        here &= factors[:, j - 1] != v
    if j + length < factors.shape[1]:
        here &= factors[:, j + length] != v
    return here


def leading_runs(factors: np.ndarray) -> np.ndarray:
    """How often each row names its first variable; 0 for an empty one."""
    return np.where(factors[:, 0] >= 0, np.count_nonzero(factors == factors[:, :1], axis=1), 0)


def without(factors: np.ndarray, j: int, length: int) -> np.ndarray:
    """Rows without the positions j … j + length − 1, padded to one column less."""
    pad = np.full((len(factors), length - 1), -1, np.int32)
    return np.concatenate([factors[:, :j], factors[:, j + length :], pad], axis=1)


def keys(factors: np.ndarray, p: int, width: int) -> np.ndarray:
    """One sortable number a row of at most `width` factors: digits in base p + 1, or bytes if too long."""
    if (p + 1) ** width >= 2**63:
        padded = np.zeros((len(factors), width), ">u4")
        padded[:, : factors.shape[1]] = factors + 1
        return padded.view(f"S{4 * width}")[:, 0]
    key = np.zeros(len(factors), np.int64)
    for j in range(width):
        key *= p + 1
        if j < factors.shape[1]:
            key += factors[:, j] + 1
    return key


class Lookup:
    """Positions of rows of factors in a list of such rows; -1 for a row that is not in the list."""

    def __init__(self, rows: np.ndarray, p: int, width: int) -> None:
        self._p, self._width = p, width
        found = keys(rows, p, width)
        self._order = np.argsort(found, kind="stable").astype(np.int32)
        self._keys = found[self._order]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Where rows stand in the list."""
        wanted = keys(rows, self._p, self._width)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[at] == wanted, self._order[at], np.int32(-1))


def ranks(factors: np.ndarray, p: int, degree: int, max_order: int | None) -> np.ndarray:
    """Positions among all monomials up to a degree, graded, the constant first; -1 for rows that are not there.

    By counting: before a row stand, for each of its factors, those that are the same up to there and then smaller.
    """
    most, d = min(degree, p, max_order or degree), np.count_nonzero(factors >= 0, axis=1)
    # ways[r, q, u]: to go on by r factors from a row that ends in u and has q variables
    ways = np.zeros((degree + 1, most + 2, p + 1), np.int64)
    ways[0, : most + 1, :p] = 1
    for r in range(1, degree + 1):
        later = ways[r - 1, 1:, ::-1].cumsum(axis=1)[:, ::-1]  # by variables from u on
        ways[r, :-1, :-1] = ways[r - 1, :-1, :-1] + later[:, 1:]
        ways[r, most + 1] = 0
    below = np.concatenate([np.zeros_like(ways[:, :, :1]), ways.cumsum(axis=2)], axis=2)  # by variables before u
    sizes = np.array([1, *(ways[r - 1, 1].sum() for r in range(1, degree + 1))])
    rank, order, last = np.cumsum(sizes)[np.minimum(d, degree) - 1], np.zeros_like(d), np.full(len(d), -1)
    good = (d >= 1) & (d <= degree)
    for k in range(min(factors.shape[1], degree)):
        v, here = factors[:, k], factors[:, k] >= 0
        left, u = np.maximum(np.minimum(d, degree) - k - 1, 0), np.where(here, v, 0)
        more = np.minimum(order + 1, most + 1)
        grown = below[left, more, u] - below[left, more, last + 1] + np.where(order > 0, ways[left, order, last], 0)
        rank += np.where(here & (v != last), grown, 0)
        order = np.where(here & (v != last), more, order)
        last = np.where(here, v, last)
        good &= order <= most
    return np.where(good, rank, -1)


def explicit_factors(p: int, degree: int | None, terms: list[Sequence[int]]) -> np.ndarray:
    """Rows of factors of terms that a user has listed, in order."""
    if not terms:
        raise ValueError("terms is empty: list at least one term, such as (0, 0)")
    rows = set()
    for term in terms:
        if isinstance(term, str) or not isinstance(term, Iterable):
            raise ValueError(f"a term is a tuple of variable indices such as (0, 0, 1), not {term!r}")
        row = []
        for v in term:
            if isinstance(v, bool) or not isinstance(v, int | np.integer) or not 0 <= v < p:
                raise ValueError(f"term {tuple(term)} names variable {v!r}, but the variables are 0 to {p - 1}")
            row.append(int(v))
        if not row:
            raise ValueError("a term needs at least one variable; the constant is not part of an energy")
        if degree is not None and len(row) > degree:
            raise ValueError(f"term {tuple(term)} has degree {len(row)}, above degree={degree}")
        if tuple(sorted(row)) in rows:
            raise ValueError(f"term {tuple(term)} is listed twice")
        rows.add(tuple(sorted(row)))
    width = max(map(len, rows)) if degree is None else degree
    ordered = sorted(rows, key=lambda r: (len(r), r))
    return np.array([r + (-1,) * (width - len(r)) for r in ordered], np.int32)


def recipes(start: int, stop: int, variables: np.ndarray, parents: np.ndarray, p: int) -> list[Recipe]:
    """Few slices where the order allows it (x_v times a run of parents), one gather otherwise."""
    if start == stop:
        return []
    dv, dq = np.diff(variables[start:stop]), np.diff(parents[start:stop])
    kind = np.select([(dq == 1) & (dv == 0), (dq == 1) & (dv == 1), (dq == 0) & (dv == 1)], [1, 2, 3], 0)
    # a run ends where the kind changes; runs of different kinds must not share a column
    pieces, first = [], start
    while first < stop:
        last = first + 1
        if last < stop and kind[first - start]:
            k = kind[first - start]
            while last < stop and kind[last - 1 - start] == k:
                last += 1
        pieces.append((first, last))
        first = last
        if len(pieces) > 4 * p + 16:
            return [Recipe(slice(start, stop), variables[start:stop], parents[start:stop])]
    recipes = []
    for first, last in pieces:
        v, q = int(variables[first]), int(parents[first])
        n_v = last - first if last - first > 1 and variables[first + 1] != v else 1
        n_q = last - first if last - first > 1 and parents[first + 1] != q else 1
        recipes.append(Recipe(slice(first, last), slice(v, v + n_v), slice(q, q + n_q)))
    return recipes
