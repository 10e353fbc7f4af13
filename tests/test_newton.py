from dataclasses import dataclass

import numpy as np
import pytest
from cases import BASES, parameters_of, samples_of, screening
from scipy.optimize import minimize as scipy_minimize
from scipy.special import gamma
from test_objective import objective_of

from isodus.solvers.newton import Rung, ladder


def minimize(evaluate, starts, *, tol, max_iter):
    return ladder([Rung(evaluate, tol)], starts, max_iter=max_iter)


@dataclass
class Point:
    value: float
    gradient: np.ndarray
    hessian: np.ndarray | None


def log_cosh_sum(A, b):
    """f(x) = Σ log cosh(A x − b) and its derivatives: convex, smooth, steep steps overshoot."""

    def at(x, hessian):
        t = np.tanh(A @ x - b)
        value = np.sum(np.logaddexp(A @ x - b, b - A @ x))
        return Point(value, A.T @ t, A.T @ ((1 - t**2)[:, None] * A) if hessian else None)

    return at


@pytest.mark.parametrize("start", [0.0, 3.0])
def test_convex_problems_in_lockstep(start):
    rng = np.random.default_rng(0)
    functions = [log_cosh_sum(rng.standard_normal((40, k)), rng.standard_normal(40)) for k in (2, 5, 9)]
    asked = []

    def evaluate(which, points, hessian):
        asked.append(len(which))
        return [functions[j](x, hessian) for j, x in zip(which, points, strict=True)]

    problems = minimize(evaluate, [np.full(k, start) for k in (2, 5, 9)], tol=1e-8, max_iter=100)
    for problem, f in zip(problems, functions, strict=True):
        assert problem.status == "converged"
        assert np.abs(f(problem.theta, False).gradient).max() < 1e-7
    assert max(asked) == 3
    assert len(asked) == max(problem.n_iter for problem in problems)


def test_value_never_rises():
    f = log_cosh_sum(np.random.default_rng(1).standard_normal((30, 4)) * 3, np.full(30, 5.0))
    values = []

    def evaluate(which, points, hessian):
        (x,) = points
        return [f(x, True)]

    for most in range(1, 12):
        (problem,) = minimize(evaluate, [np.full(4, 4.0)], tol=1e-12, max_iter=most)
        values.append(f(problem.theta, False).value)
    assert np.all(np.diff(values) <= 1e-9)


def test_iteration_limit_singular_and_non_finite_are_told_apart():
    f = log_cosh_sum(np.random.default_rng(1).standard_normal((30, 4)), np.full(30, 5.0))
    one = lambda function: lambda which, points, hessian: [function(points[0], True)]
    assert minimize(one(f), [np.zeros(4)], tol=1e-10, max_iter=2)[0].status == "iteration limit"
    flat = log_cosh_sum(np.ones((30, 2)), np.zeros(30))
    assert minimize(one(flat), [np.ones(2)], tol=1e-10, max_iter=9)[0].status == "singular"
    nowhere = lambda x, h: Point(np.inf, np.full(2, np.nan), None)
    assert minimize(one(nowhere), [np.ones(2)], tol=1e-10, max_iter=9)[0].status == "non-finite"


def test_ladder_starts_afresh_where_a_rung_has_no_minimum():
    good = log_cosh_sum(np.random.default_rng(0).standard_normal((40, 2)), np.random.default_rng(1).normal(size=40))

    def falling(x, hessian):  # exp(−x): no minimum, ever longer steps
        e = np.exp(-x)
        return Point(float(e.sum()), -e, np.diag(e))

    wrap = lambda f: lambda which, points, hessian: [f(x, hessian) for x in points]
    (problem,) = ladder([Rung(wrap(falling), 1e-6), Rung(wrap(good), 1e-8)], [np.zeros(2)], max_iter=50)
    assert problem.status == "converged"
    assert np.abs(good(problem.theta, False).gradient).max() < 1e-7


def test_a_floor_holds_one_coordinate_and_lets_go():
    """f = ½(x − c)ᵀQ(x − c) + quartic: with the floor active the other coordinates are at their own optimum."""
    Q = np.array([[2.0, 0.9, 0.3], [0.9, 1.0, -0.2], [0.3, -0.2, 1.5]])

    def at(c):
        def evaluate(which, points, hessian):
            (x,) = points
            d = x - c
            value = 0.5 * d @ Q @ d + 0.1 * np.sum(d**4)
            return [Point(value, Q @ d + 0.4 * d**3, Q + np.diag(1.2 * d**2))]

        return evaluate

    for c, held in ((np.array([1.0, -0.5, 2.0]), True), (np.array([1.0, 0.5, 2.0]), False)):
        floor = np.array([-np.inf, 0.1, -np.inf])
        (problem,) = ladder([Rung(at(c), 1e-10)], [np.array([3.0, 0.1, -3.0])], [floor], max_iter=50)
        assert problem.status == "converged"
        assert problem.on_floor.tolist() == [False, held, False]
        bounds = [(None, None), (0.1, None), (None, None)]
        value = lambda x, c=c: at(c)(None, [x], False)[0].value
        found = scipy_minimize(
            value, np.ones(3), bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}
        )
        assert np.allclose(problem.theta, found.x, atol=1e-5)
        assert problem.theta[1] >= 0.1


@pytest.mark.parametrize("floor", [None, np.array([-np.inf, 0.05, -np.inf])])
@pytest.mark.parametrize("verified", [False, True])
def test_a_verified_answer_was_evaluated(verified, floor):
    """Otherwise it is one step ahead of the last point that was."""
    f = log_cosh_sum(np.random.default_rng(0).standard_normal((40, 3)), np.random.default_rng(1).normal(size=40))
    seen = []

    def evaluate(which, points, hessian):
        seen.append(points[0].copy())
        return [f(points[0], hessian)]

    (problem,) = ladder([Rung(evaluate, 1e-5, verified=verified)], [np.full(3, 0.5)], [floor], max_iter=50)
    assert problem.status == "converged"
    assert any(np.array_equal(problem.theta, point) for point in seen) == verified
    if verified:
        at = f(problem.theta, True)
        assert problem.evaluation.value == at.value
        free = ~problem.on_floor
        g = at.gradient[free]
        assert np.sqrt(g @ np.linalg.solve(at.hessian[np.ix_(free, free)], g)) < 1e-5


def test_what_has_a_floor_falls_by_steps():
    """To a fifth of itself at most, so that it does not arrive in one step where others would run away."""
    seen = []

    def evaluate(which, points, hessian):
        (x,) = points
        seen.append(x[0])
        return [Point(0.5 * float(x @ x), x.copy(), np.eye(2))]

    (problem,) = ladder([Rung(evaluate, 1e-9)], [np.array([100.0, 1.0])], [np.array([1e-3, -np.inf])], max_iter=50)
    assert problem.status == "converged"
    assert problem.theta.tolist() == pytest.approx([1e-3, 0.0], abs=1e-12)
    assert np.all(np.array(seen[1:]) >= 0.2 * np.array(seen[:-1]) - 1e-12)
    assert len(seen) >= 8  # 100 · 0.2^7 > 1e-3


def features(basis, i, X, nu):
    """The paper's centred statistics of node i, a column a term, and log R, one after the other."""
    e = basis.degree + 2.0
    c = lambda l: 0.0 if l % 2 else nu ** (-l / e) * gamma((l + 1) / e) / gamma(1 / e)
    terms = [basis.terms[k] for k in basis.local(i).terms]
    rest = [np.prod([X[:, v] for v in term if v != i], axis=0) for term in terms]
    G = [(X[:, i] ** t.count(i) - c(t.count(i))) * r for t, r in zip(terms, rest, strict=True)]
    return np.stack(G, axis=1), -nu * np.abs(X[:, i]) ** e


@pytest.mark.parametrize("link", ["log", "plain"])
@pytest.mark.parametrize("name", ["quartic pairs", "quartic, no linear terms", "three-body", "listed"])
def test_optimum_against_trust_exact_on_the_formula_written_out(name, link):
    basis = BASES[name]
    X = samples_of(basis, n=3000)
    loss = screening(basis, link=link)
    zeros = [np.zeros_like(theta) for theta in parameters_of(basis)]
    problems = minimize(objective_of(basis, loss, X).evaluate, zeros, tol=1e-10, max_iter=100)
    for i in range(basis.n_variables):
        assert problems[i].status == "converged"
        G, log_r = features(basis, i, X, loss.nu[i])
        w = lambda theta, G=G, log_r=log_r: np.exp(G @ theta + log_r) / len(G)
        found = scipy_minimize(
            lambda theta, w=w: w(theta).sum(),
            zeros[i],
            jac=lambda theta, w=w, G=G: G.T @ w(theta),
            hess=lambda theta, w=w, G=G: (G.T * w(theta)) @ G,
            method="trust-exact",
            options={"gtol": 1e-12},
        )
        assert np.allclose(problems[i].theta, found.x, rtol=1e-7, atol=1e-8)
