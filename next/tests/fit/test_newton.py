"""Newton's method and conjugate gradients against scipy, and how a minimisation ends."""

import numpy as np
import pytest
from fit.build import from_zero, objective, skewed
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.sparse import csr_array, diags_array

from isodus.axes import WholeLine
from isodus.fit.conjugate_gradients import conjugate_gradients
from isodus.fit.learn import free_start, learn, no_ridge
from isodus.fit.newton import newton
from isodus.fit.penalties import Ridge, WeakRidge

RNG = np.random.default_rng(14)


@pytest.fixture
def rng():
    return np.random.default_rng(123)


def by_scipy(f, ridge):
    """The minimum by scipy's trust region."""
    R = ridge.toarray()
    return minimize(
        lambda t: f(t, 0).value + 0.5 * t @ R @ t,
        f.terms.zeros(),
        jac=lambda t: f(t, 1).gradient + R @ t,
        hess=lambda t: f(t).hessian + R,
        method="trust-exact",
        options={"gtol": 1e-10},
    ).x


def distance(f, tau, other, ridge):
    """In standard errors, √(n (τ − τ')ᵀ A (τ − τ'))."""
    away = tau - other
    return np.sqrt(f.n * away @ (f(other).hessian + ridge.toarray()) @ away)


@pytest.fixture(params=["plain", "conjugate gradients", "value first"])
def road(request, monkeypatch):
    """Each way to a step: the Hessian at once, after the value, or of a quarter of the rows."""
    if request.param != "plain":
        monkeypatch.setattr("isodus.fit.newton._MANY", 0)
    if request.param == "conjugate gradients":
        monkeypatch.setattr("isodus.fit.newton._FORMED", 0)
    return request.param


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_the_minimum_is_scipys(road, strength, rng):
    f = objective(skewed(400, 2, 1.5), 4)
    ridge = csr_array(diags_array(strength * rng.uniform(0.0, 0.1, len(f.terms))))
    fit = newton(f, f.terms.zeros(), ridge, tol=1e-3)
    assert fit.status == "converged"
    assert distance(f, fit.tau, by_scipy(f, ridge), ridge) < 1e-3
    assert fit.n_iter < 25


@pytest.mark.parametrize("tol", [1.0, 1e-3, 1e-8])
def test_the_tolerance_is_in_standard_errors(tol):
    f = objective(skewed(400, 2, 1.5), 4)
    fit = newton(f, f.terms.zeros(), no_ridge(f), tol=tol)
    g, A = fit.at.gradient, fit.hessian
    assert np.sqrt(f.n * g @ np.linalg.solve(A, g)) < tol
    assert distance(f, fit.tau, by_scipy(f, no_ridge(f)), no_ridge(f)) < max(0.5 * tol, 1e-6)


def test_steps_that_are_too_long_are_damped(rng):
    """A start far off, where Newton's full step goes uphill."""
    f = objective(skewed(400, 2, 1.5), 4)
    start = 3 * rng.standard_normal(len(f.terms))
    fit = newton(f, start, no_ridge(f), tol=1e-6)
    assert fit.status == "converged"
    assert_allclose(fit.tau, from_zero(f).tau, atol=1e-5)


def test_the_iteration_limit():
    f = objective(skewed(400, 2, 1.5), 4)
    fit = newton(f, f.terms.zeros(), no_ridge(f), max_iter=2)
    assert fit.status == "iteration limit"
    assert fit.n_iter == 2
    assert fit.at.value == pytest.approx(f(fit.tau, 0).value, rel=1e-12)


def test_an_interrupt_keeps_the_last_step(monkeypatch):
    f = objective(skewed(400, 2, 1.5), 4)
    whole, calls = type(f).__call__, []

    def interrupted(self, *args):
        calls.append(0)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return whole(self, *args)

    monkeypatch.setattr(type(f), "__call__", interrupted)
    fit = newton(f, f.terms.zeros(), no_ridge(f), tol=1e-8)
    monkeypatch.undo()
    assert fit.status == "interrupted"
    assert fit.n_iter >= 1
    assert fit.at.value == pytest.approx(f(fit.tau, 0).value, rel=1e-12)


def test_a_precision_that_is_not_positive_has_no_end(rng):
    """Two copies at degree 2: no optimum, and a status other than "converged"."""
    x = rng.standard_normal(200)
    X = np.column_stack([x, x])
    f = objective(X, 2, axes=[WholeLine.fit(x, 2)] * 2)
    tau = f.terms.zeros()
    tau[[k for k, key in enumerate(f.terms.keys) if key in ((0, 0), (1, 1))]] = 0.5
    fit = newton(f, tau, no_ridge(f), max_iter=60)
    assert fit.status in ("stalled", "singular", "iteration limit")


@pytest.mark.parametrize("size", [1, 5, 40])
def test_conjugate_gradients_solve(size, rng):
    B = rng.standard_normal((size, size))
    A, b = B @ B.T + np.eye(size), rng.standard_normal(size)
    x, count = conjugate_gradients(lambda v: A @ v, b, lambda r: r, 1e-10, 10 * size)
    assert_allclose(x, np.linalg.solve(A, b), rtol=1e-7, atol=1e-8)
    assert count <= 2 * size + 1
    x, count = conjugate_gradients(lambda v: A @ v, b, lambda r: np.linalg.solve(A, r), 1e-10)
    assert_allclose(x, np.linalg.solve(A, b), rtol=1e-9)
    assert count == 1


def test_conjugate_gradients_end():
    A, b = np.diag([1.0, 1e6]), np.array([1.0, 1.0])
    x, count = conjugate_gradients(lambda v: A @ v, b, lambda r: r, 1e-12, 1)
    assert count == 1
    assert np.all(np.isfinite(x))
    assert conjugate_gradients(lambda v: A @ v, 0 * b, lambda r: r)[1] == 0
    assert np.all(np.isfinite(conjugate_gradients(lambda v: -v, b, lambda r: r)[0]))


def test_the_free_start_is_the_optimum_of_degree_two():
    f = objective(skewed(500, 3, 1.0), 4)
    low = f.terms.degrees <= 2
    tau = free_start(f)[0]
    assert np.all(tau[~low] == 0)
    part = f.only(low)
    assert distance(part, tau[low], by_scipy(part, no_ridge(part)), no_ridge(part)) < 0.1


@pytest.mark.parametrize("penalty", [WeakRidge(), Ridge(3.0), Ridge(3.0, free="own"), None])
@pytest.mark.parametrize("n", [150, 2500])
def test_stages_written_out(penalty, n):
    """A_kk at the optimum of degree 2, solve, and where rows are few A_kk there, solve."""
    X = skewed(n, 2, 1.5)
    f = objective(X, 4)
    fit = learn(f, penalty, tol=1e-8)
    assert fit.status == "converged"
    if penalty is None:
        assert fit.ridge.nnz == 0
        assert_allclose(fit.tau, by_scipy(f, no_ridge(f)), atol=1e-6)
        return
    tau, low = f.terms.zeros(), f.terms.degrees <= 2
    tau[low] = by_scipy(f.only(low), no_ridge(f.only(low)))
    penalty = penalty.of(f)
    stages = 1 if isinstance(penalty, WeakRidge) and n >= 100 * f.terms.m else 2
    for _ in range(stages):
        ridge = penalty.matrix(f.terms, f(tau).hessian.diagonal(), n)
        tau = by_scipy(f, ridge)
    assert_allclose(fit.ridge.diagonal(), ridge.diagonal(), rtol=0.05, atol=1e-12)
    assert distance(f, fit.tau, tau, ridge) < 0.05
    assert_allclose(fit.tau, by_scipy(f, fit.ridge), atol=1e-6)
