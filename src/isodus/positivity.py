"""Polynomials, and proofs that one is positive: eigenvalues, the inequality of the means, sums of squares.

A sum of squares is hᵀGh with monomials h and a positive definite Gram matrix G. Whatever found G, it is put exactly
onto the coefficients of the polynomial, and its smallest eigenvalue must exceed what rounding leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from itertools import combinations, combinations_with_replacement, product
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = [
    "Form",
    "Squares",
    "half_monomials",
    "is_positive_definite",
    "is_sum_of_squares",
    "linked",
    "pure_powers_prevail",
    "solver_is_here",
]

Term = tuple[int, ...]

_MOST_SQUARES = 500  # rows of a Gram matrix
_MOST_SOLVED = 70  # of one that is left to a solver: about five seconds
_ITERATIONS = (60, 20_000)  # at least, and over the rows of a Gram matrix
_LEAST = 1e-3  # eigenvalue that is looked for
_EPS = float(np.finfo(np.float64).eps)


class Form(NamedTuple):
    """A polynomial. factors: (K, s) in graded order, padded with -1; theta: (K,), none zero; names: (q,)."""

    factors: np.ndarray
    theta: np.ndarray
    names: tuple[str, ...]

    def level(self, w: np.ndarray) -> np.ndarray:
        """α·w of every term, (K,)."""
        return np.append(w, 0)[self.factors].sum(axis=1)

    def powers(self) -> np.ndarray:
        """(K, s): the power in its term of the variable at each position; 0 at padding."""
        return np.where(self.factors >= 0, (self.factors[:, :, None] == self.factors[:, None, :]).sum(axis=2), 0)

    def can_fall(self) -> np.ndarray:
        """(K,): which terms are negative somewhere, all but even monomials with a positive parameter."""
        return (self.theta < 0) | (self.powers() % 2).any(axis=1)

    def highest_pure_powers(self) -> tuple[np.ndarray, np.ndarray]:
        """d, (q,): the highest pure power of each variable, 0 for none; and which term it is, -1 for none."""
        d, at = np.zeros(len(self.names), np.int64), np.full(len(self.names), -1)
        pure = np.flatnonzero(((self.factors == self.factors[:, :1]) | (self.factors < 0)).all(axis=1))
        at[self.factors[pure, 0]] = pure  # of several the last stays, in graded order the highest
        d[at >= 0] = np.count_nonzero(self.factors[at[at >= 0]] >= 0, axis=1)
        return d, at

    def where(self, here: np.ndarray) -> Form:
        """Some of the terms."""
        return self._replace(factors=self.factors[here], theta=self.theta[here])

    def among(self, variables: np.ndarray) -> Form:
        """The terms of a group of variables that no term links to others, numbered anew."""
        place = np.full(len(self.names) + 1, -1)
        place[variables] = np.arange(len(variables))
        here = place[self.factors[:, 0]] >= 0
        return Form(place[self.factors[here]], self.theta[here], tuple(self.names[v] for v in variables))

    def monomials(self, x: np.ndarray) -> np.ndarray:
        """x^{α_k} of every term, (K,)."""
        return np.append(x, 1.0)[self.factors].prod(axis=1)

    def times(self, x: np.ndarray) -> np.ndarray:
        """θ_k x^{α_k} of every term, (K,)."""
        return self.theta * self.monomials(x)

    def terms(self) -> list[Term]:
        """Every term as the sorted tuple of its variables."""
        return [tuple(v for v in row if v >= 0) for row in self.factors.tolist()]


def linked(form: Form) -> list[np.ndarray]:
    """Groups of variables that share terms, each as sorted indices."""
    q, inside = len(form.names), form.factors >= 0
    first = np.repeat(form.factors[:, :1], form.factors.shape[1], axis=1)
    links = coo_array((np.ones(inside.sum()), (first[inside], form.factors[inside])), shape=(q, q))
    _, label = connected_components(links, directed=False)
    return np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])


def is_positive_definite(form: Form) -> tuple[bool, np.ndarray]:
    """Whether a quadratic form has only positive eigenvalues, beyond rounding; if not, the vector of the lowest."""
    q, (i, j) = len(form.names), form.factors[:, :2].T
    A = np.zeros((q, q))
    A[i, j] = form.theta / 2
    A += A.T
    rounding = 8 * _EPS * q * np.linalg.norm(A, np.inf)
    try:
        linalg.cholesky(A - 2 * rounding * np.eye(q), check_finite=False)  # a tenth of the time of an eigenvalue
    except linalg.LinAlgError:
        value, vector = linalg.eigh(A, subset_by_index=[0, 0])
        return bool(value[0] > rounding), vector[:, 0]
    return True, np.zeros(q)


def pure_powers_prevail(form: Form, d: np.ndarray) -> bool:
    """Whether the terms that can fall are at least −Σ_i c_i x_i^{d_i} with all c_i < 1, by the inequality of the means,

        |θ x^α| ≤ |θ| z^{α/d} Σ_i (α_i/d_i) x_i^{d_i}/z_i,

    in a form whose pure powers x_i^{d_i} have parameter 1. The best units z > 0 are a nonlinear Perron vector: the
    power iteration increases z_i where c_i is large.
    """
    q, falling = len(d), form.where(form.can_fall())
    f, each, z = falling.factors, np.append(1 / d, 0.0)[falling.factors], np.ones(q)
    for _ in range(200):
        size = np.abs(falling.times(z ** (1 / d)))
        c = np.bincount(f.ravel() % (q + 1), (size[:, None] * each).ravel(), q + 1)[:q] / z
        if c.max() < 1 - 1e-9:
            return True
        z *= np.sqrt(c + 1e-3)
        z = np.maximum(z / z.max(), 1e-12)
    return False


def is_sum_of_squares(form: Form, half: tuple[np.ndarray, np.ndarray] | None = None) -> bool:
    """Whether a form is proved to be hᵀGh with a positive definite G; half: d and w, h the monomials with ω = ½.

    Without them, whether it is so plus some constant, with 1, x_1 … x_q among h, the monomials of half the degree.
    """
    q, terms = len(form.names), form.terms()
    if half is not None:
        h, asked, free = half_monomials(terms, *half), terms, None
    else:
        candidates = _divisors(q, form.factors.shape[1] // 2, terms) | {(), *((i,) for i in range(q))}
        few = len(candidates) <= _MOST_SQUARES
        h = _consistent(sorted(candidates), {(), *terms, *((i, i) for i in range(q))}) if few else []
        asked, free = [*terms, ()], len(terms)
    squares = Squares(h, asked)
    target = np.zeros(len(squares.terms))
    target[: len(terms)] = form.theta
    return squares.proves(target, free)


def half_monomials(terms: Collection[Term], d: np.ndarray, w: np.ndarray) -> list[Term]:
    """The monomials with ω = ½: all, or of many variables those that divide a term; none if they are too many."""
    candidates = _divisors(len(d), int(d.max()) // 2, terms)
    halves = sorted(h for h in candidates if h and 2 * w[list(h)].sum() == w[0] * d[0])
    return _consistent(halves, set(terms)) if len(halves) <= _MOST_SQUARES else []


def _divisors(q: int, degree: int, terms: Collection[Term]) -> set[Term]:
    """The monomials of q variables up to a degree: all, or of many variables those that divide a term."""
    lengths = range(degree + 1)
    if comb(q + degree, q) <= _MOST_SQUARES:
        return {h for n in lengths for h in combinations_with_replacement(range(q), n)}
    return {h for term in terms for n in lengths for h in combinations(term, n)}


def _consistent(h: list[Term], terms: set[Term]) -> list[Term]:
    """Without those whose square is no term and no product of two others: they could have no share in hᵀGh."""
    while True:
        crossed = {tuple(sorted(a + b)) for a, b in combinations(h, 2)}
        kept = [a for a in h if (square := tuple(sorted(a + a))) in terms or square in crossed]
        if len(kept) == len(h):
            return h
        h = kept


class Squares:
    """The linear map from Gram matrices G to the coefficients of hᵀGh.

    terms: first those asked for, then the others that products of two of h make. G is (n, n) with n = len(h);
    coefficients are (m,), in the order of `terms`; index: (n²,), the term of each product; count: how many each has.
    """

    def __init__(self, h: Sequence[Term], terms: Iterable[Term]) -> None:
        place = {term: k for k, term in enumerate(terms)}
        known = len(place)
        self.h, self.n = h, len(h)
        self.index = np.array([place.setdefault(tuple(sorted(a + b)), len(place)) for a, b in product(h, h)], np.int64)
        self.terms, self.count = list(place), np.bincount(self.index, minlength=len(place))
        self.complete = bool(np.all(self.count[:known] > 0))  # whether every term asked for is a product

    def coefficients(self, G: np.ndarray) -> np.ndarray:
        """Those of hᵀGh, (m,)."""
        return np.bincount(self.index, G.ravel(), len(self.terms))

    def spread(self, change: np.ndarray) -> np.ndarray:
        """The smallest matrix that changes the coefficients by so much."""
        return (change / np.maximum(self.count, 1))[self.index].reshape(self.n, self.n)

    def proves(self, target: np.ndarray, free: int | None = None) -> bool:
        """Whether hᵀGh has coefficients `target` for some G with positive eigenvalues, rounding included.

        free: a coefficient that may be anything. Douglas-Rachford iterations between the matrices that give the
        coefficients and those with no eigenvalue below 1e-3; then, where there is one and n is moderate, a solver.
        """
        if self.n == 0 or not self.complete:
            return False
        Z = np.zeros((self.n, self.n))
        for k in range(_ITERATIONS[0] + _ITERATIONS[1] // max(self.n, 20)):
            G = self._onto(Z, target, free)
            if k % 5 == 0 and self._is_proof(G, target, free):
                return True
            value, vector = np.linalg.eigh(2 * G - Z)
            Z += (vector * np.maximum(value, _LEAST)) @ vector.T - G
        G_solved = self._solved(target, free)
        return G_solved is not None and self._is_proof(self._onto(G_solved, target, free), target, free)

    def _onto(self, G: np.ndarray, target: np.ndarray, free: int | None) -> np.ndarray:
        """The nearest matrix that gives the coefficients."""
        change = target - self.coefficients(G)
        if free is not None:
            change[free] = 0.0
        return G + self.spread(change)

    def _is_proof(self, G: np.ndarray, target: np.ndarray, free: int | None) -> bool:
        """Whether the smallest eigenvalue λ of G exceeds the sum of what the coefficients are off.

        A difference Σ r_α x^α is at most Σ|r_α| |h|², for |x^α| ≤ |h|² where α = a + b; and hᵀGh ≥ λ|h|².
        """
        off = np.abs(target - self.coefficients(G))
        if free is not None:
            off[free] = 0.0
        off_by = off.sum() + 8 * _EPS * self.n * np.abs(G).sum()
        return bool(linalg.eigvalsh(G, subset_by_index=[0, 0])[0] > off_by)

    def _solved(self, target: np.ndarray, free: int | None) -> np.ndarray | None:
        """G whose least eigenvalue is largest, up to 1, by a solver of semidefinite programs: a hint, not a proof."""
        if not solver_is_here() or self.n > _MOST_SOLVED:
            return None
        import cvxpy  # type: ignore[import-not-found, unused-ignore]

        G, least = cvxpy.Variable((self.n, self.n), symmetric=True), cvxpy.Variable()
        wanted = np.arange(len(self.terms)) != (-1 if free is None else free)
        ones = np.ones(self.n * self.n)
        L: Any = coo_array((ones, (self.index, np.arange(self.n * self.n)))).tocsr()[wanted]
        rules = [L @ cvxpy.vec(G, order="C") == target[wanted], G >> least * np.eye(self.n), least <= 1]
        problem = cvxpy.Problem(cvxpy.Maximize(least), rules)
        try:
            problem.solve(solver=cvxpy.CLARABEL)
        except cvxpy.error.SolverError:
            return None
        return None if G.value is None else (G.value + G.value.T) / 2


def solver_is_here() -> bool:
    """Whether the optional solver is installed."""
    return find_spec("cvxpy") is not None and find_spec("clarabel") is not None
