"""Quadratics with an L1 penalty against their dual, a least-squares problem between bounds, and all signs in turn."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear

from isodus.fit.lasso import _solved, lassos, missed


def problems(q, m, n, seed, kind="normal"):
    """A with unit diagonals, b and costs; of some coordinates costs are 0 or infinite."""
    rng = np.random.default_rng(seed)
    A, b = np.zeros((q, m, m)), np.zeros((q, m))
    for k in range(q):
        X = rng.standard_normal((n, m))
        if kind == "near copies":
            X = rng.standard_normal((n, 1)) + 10 ** rng.uniform(-2, -1) * X  # condition 1e5
        elif kind == "powers":
            X = rng.standard_normal((n, 1)) ** np.arange(1, m + 1)
        X /= np.sqrt(np.mean(X**2, axis=0))
        t = np.where(rng.random(m) < 0.4, 3 * rng.standard_normal(m), 0.0)
        A[k], b[k] = X.T @ X / n, X.T @ (X @ t + rng.standard_normal(n)) / n
        A[k][np.diag_indices(m)] = 1.0
    kinds = rng.random((q, m))
    cost = np.where(kinds < 0.15, 0.0, np.where(kinds < 0.25, np.inf, rng.uniform(0.01, 0.4, (q, m))))
    return A, b, cost


def by_dual(A, b, cost):
    """argmin by the dual: s = At is the s nearest to 0 in the norm of A⁻¹ with |s − b| ≤ c.

    Coordinates without a cost are eliminated first, those with an infinite one left out.
    """
    free, paid = cost == 0, (cost > 0) & np.isfinite(cost)
    t = np.zeros(len(b))
    lift = np.linalg.solve(A[np.ix_(free, free)], np.column_stack([b[free], A[np.ix_(free, paid)]]))
    S = A[np.ix_(paid, paid)] - A[np.ix_(paid, free)] @ lift[:, 1:]
    rhs = b[paid] - A[np.ix_(paid, free)] @ lift[:, 0]
    if paid.any():
        L = cholesky(S, lower=True)
        half = solve_triangular(L, np.eye(len(L)), lower=True)
        bounds = (rhs - cost[paid], rhs + cost[paid])
        s = lsq_linear(half, np.zeros(len(L)), bounds, method="bvls", tol=1e-15, max_iter=10_000).x
        t[paid] = np.linalg.solve(S, s)
        t[paid] = np.where(np.abs(np.abs(rhs - s) - cost[paid]) > 1e-9 * cost[paid], 0.0, t[paid])
    t[free] = lift[:, 0] - lift[:, 1:] @ t[paid]
    return t


def by_signs(A, b, cost):
    """argmin by trying all supports and signs: the stationary point of one of them is the optimum."""
    best, least = np.zeros(len(b)), np.inf
    for signs in product((-1.0, 0.0, 1.0), repeat=len(b)):
        signs = np.array(signs)
        if np.any(~np.isfinite(cost) & (signs != 0)) or np.any((cost == 0) & (signs <= 0)):
            continue
        on, pull = signs != 0, np.where(np.isfinite(cost), cost, 0.0) * signs
        t = np.zeros(len(b))
        t[on] = np.linalg.solve(A[np.ix_(on, on)], b[on] - pull[on])
        if np.all((np.sign(t) == signs) | (cost == 0)):
            value = 0.5 * t @ A @ t - b @ t + pull @ t
            best, least = (t, value) if value < least else (best, least)
    return best


@pytest.mark.parametrize("kind", ["normal", "near copies", "powers"])
def test_few_coordinates_by_all_signs(kind):
    A, b, cost = problems(40, 4, 30, seed=1, kind=kind)
    found = lassos(A, b, cost, np.zeros_like(b))
    for k in range(len(b)):
        size = 1 + np.abs(found[k]).max()
        assert_allclose(found[k], by_signs(A[k], b[k], cost[k]), rtol=0, atol=1e-9 * size)


@pytest.mark.parametrize(("m", "n", "kind"), [(2, 30, "normal"), (12, 40, "normal"), (40, 200, "normal"),
                                             (8, 60, "near copies"), (6, 200, "powers")])  # fmt: skip
@pytest.mark.parametrize("begin", ["zero", "far"])
def test_many_coordinates_by_the_dual(m, n, kind, begin):
    A, b, cost = problems(30, m, n, seed=2, kind=kind)
    start = 5 * np.random.default_rng(3).standard_normal(b.shape) if begin == "far" else np.zeros_like(b)
    found = lassos(A, b, cost, start)
    assert np.all(found[~np.isfinite(cost)] == 0)
    for k in range(len(b)):
        size = 1 + np.abs(found[k]).max()
        assert_allclose(found[k], by_dual(A[k], b[k], cost[k]), rtol=0, atol=1e-9 * size)


@pytest.mark.parametrize(
    ("m", "n", "kind"),
    [(40, 20, "normal"), (60, 300, "hard"), (10, 40, "hard"), (12, 200, "powers"), (5, 3, "copies")],
)
def test_conditions_of_optimality_where_nothing_is_determined(m, n, kind):
    """Fewer rows than coordinates, correlations of 1 − 1e-10 and exact copies: −slope is in the subdifferential."""
    A, b, cost = problems(20, m, n, seed=4, kind="powers" if kind == "powers" else "normal")
    rng = np.random.default_rng(5)
    if kind in ("hard", "copies"):
        for k in range(len(b)):
            X = rng.standard_normal((n, 1)) + (
                10 ** rng.uniform(-5, -1) * rng.standard_normal((n, m)) * (kind == "hard")
            )
            X /= np.sqrt(np.mean(X**2, axis=0))
            A[k], b[k] = X.T @ X / n, X.T @ (X @ rng.standard_normal(m) + rng.standard_normal(n)) / n
            A[k][np.diag_indices(m)] = 1.0
    if n < m:
        cost[cost == 0] = 0.1
    found = lassos(A, b, cost, np.zeros_like(b))
    slope = np.einsum("qlm,qm->ql", A, found) - b
    size = 1 + np.abs(found).max(axis=1)
    assert np.max(missed(found, slope, cost).max(axis=1) / size) < 1e-12


def test_what_is_missed():
    t, slope = np.array([0.0, 0.0, 2.0, -2.0, 1.0, 0.0]), np.array([0.3, -0.6, -0.5, 0.4, 0.25, 9.0])
    cost = np.array([0.5, 0.5, 0.5, 0.5, 0.0, np.inf])
    assert_allclose(missed(t, slope, cost), [0.0, 0.1, 0.0, 0.1, 0.25, 0.0], atol=1e-15)


def test_a_singular_system_has_its_smallest_solution():
    A = np.array([np.ones((3, 3)), np.eye(3)])
    assert_allclose(_solved(A, np.array([[3.0, 3.0, 3.0], [1.0, 2.0, 3.0]])), [[1, 1, 1], [1, 2, 3]], atol=1e-12)


def test_no_problems_and_no_coordinates():
    assert lassos(np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)
    assert lassos(np.zeros((2, 0, 0)), np.zeros((2, 0)), np.zeros((2, 0)), np.zeros((2, 0))).shape == (2, 0)
