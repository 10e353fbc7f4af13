"""The ridge's formula by hand, and what it must not depend on."""

import numpy as np
import pytest
from fit.build import objective
from numpy.testing import assert_allclose
from sklearn.base import clone

from isodus.axes import Circle, Line
from isodus.data import as_samples
from isodus.fit.gaussian import variance_inflation
from isodus.fit.held_out import refitted
from isodus.fit.learn import learn
from isodus.fit.penalties import Ridge, WeakRidge, ridge_matrix, weak_factor
from isodus.terms import Terms, key_of, keys_up_to

RNG = np.random.default_rng(4)
LINES = [Line.fit(RNG.standard_normal(300), 4) for _ in range(3)]


@pytest.fixture
def rng():
    return np.random.default_rng(123)


def by_hand(terms, diagonal, n, factor, free="quadratic"):
    """r_k = .1 |α_k|² A_kk factor / n of each term on the line."""
    r = []
    for key, A in zip(terms.keys, diagonal, strict=True):
        powers = [key.count(i) for i in set(key)]
        untouched = sum(powers) <= 2 and (free == "quadratic" or len(powers) == 1)
        r.append(0.0 if untouched else 0.1 * sum(p * p for p in powers) * A * factor / n)
    return np.array(r)


@pytest.mark.parametrize("free", ["quadratic", "own"])
@pytest.mark.parametrize(("degree", "order"), [(4, 2), (3, 3), (2, 2)])
def test_the_formula(degree, order, free, rng):
    terms = Terms(LINES, keys_up_to(LINES, degree, order))
    diagonal = rng.uniform(0.1, 3.0, len(terms))
    found = ridge_matrix(terms, diagonal, 250.0, 7.0, free).toarray()
    assert_allclose(found, np.diag(by_hand(terms, diagonal, 250.0, 7.0, free)), atol=1e-15)
    matrix = Ridge(7.0, free).matrix(terms, diagonal, 250.0).toarray()
    assert_allclose(matrix, found)


def test_the_weak_ridge():
    """(8m/n)⁴ and a floor; m = 4 own terms and 6 of both pairs; two stages below 100 rows per local parameter."""
    terms, V = Terms(LINES, keys_up_to(LINES, 4, 2)), np.array([1.0, 50.0, 4000.0])
    ones, ridge = np.ones(len(terms)), WeakRidge(V=V)
    assert terms.m == 16
    floor = np.array([{0: 1e-5, 1: 0.1 / 256, 2: 0.1}[max(key)] for key in terms.keys])  # of the variable of largest V
    for n, factor, stages in [(100, 1.28**4, 2), (1599, (128 / 1599) ** 4, 2), (1600, 0.08**4, 1)]:
        assert_allclose(weak_factor(terms, n, V), factor + floor, rtol=1e-12)
        assert ridge.stages(terms, n) == stages
        assert_allclose(ridge.matrix(terms, ones, n).diagonal(), by_hand(terms, factor + floor, n, 1.0))


def test_the_floor_is_continuous():
    terms = Terms(LINES[:1], [(0, 0, 0, 0)])
    V = np.geomspace(1.0, 1e4, 20_000)
    floor = np.array([weak_factor(terms, 1e9, np.array([v]))[0] for v in V])
    assert np.all(np.diff(floor) >= 0)
    assert np.abs(np.diff(np.log(floor))).max() < 0.004  # 8 times a step of log V, which is .00046
    assert_allclose(floor[[0, -1]], [1e-5, 0.1], rtol=1e-9)


def test_few_unknowns_have_no_ridge(rng):
    x = rng.standard_normal((50, 1))
    assert WeakRidge().of(objective(x, degree=4)) is None  # four unknowns
    assert WeakRidge().of(objective(x, degree=5)) is not None
    assert learn(objective(x, degree=4), WeakRidge()).ridge.nnz == 0


def test_variance_inflation_by_regression(rng):
    X = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 3))
    weight = rng.integers(1, 4, 400).astype(float)
    V = variance_inflation([Line.fit(x, 2) for x in X.T], as_samples(X, weight, weights="importance"))
    for i, x in enumerate(X.T):
        rest = np.column_stack([np.ones(400), np.delete(X, i, axis=1)]) * np.sqrt(weight)[:, None]
        left = np.linalg.lstsq(rest, x * np.sqrt(weight), rcond=None)[1][0]
        assert V[i] == pytest.approx(np.sum(weight * (x - np.average(x, weights=weight)) ** 2) / left, rel=1e-8)
    copied = np.column_stack([X, X[:, 0]])
    assert np.all(np.isinf(variance_inflation([Line.fit(x, 2) for x in copied.T], as_samples(copied))))


def test_a_ridge_keeps_the_inflation_of_all_rows(rng):
    """Near-copies, in other units and another order: the same ridge; in a fold with n rows, that of the whole."""
    x = rng.standard_normal(300)
    X = np.column_stack([x, x + 0.2 * rng.standard_normal(300), rng.standard_normal(300)])
    whole = WeakRidge().of(objective(X))
    assert_allclose(WeakRidge().of(objective(X * [1e-3, -7.0, 50.0] + [5.0, 0.0, -1e3])).V, whole.V, rtol=1e-6)
    assert_allclose(WeakRidge().of(objective(X[::-1, ::-1].copy())).V[::-1], whole.V, rtol=1e-6)
    assert 20 < whole.V[0] < 40
    assert whole.V[2] < 1.1
    assert whole.of(objective(X[:100])).V is whole.V
    f, seen = objective(X[:200]), {}

    class Kept(WeakRidge):
        def matrix(self, terms, diagonal, n):
            seen[self.n] = self.V
            return super().matrix(terms, diagonal, n)

    refitted(Kept(V=whole.V), f, f.terms.zeros(), 300.0)
    assert list(seen) == [300.0]
    assert seen[300.0] is whole.V


def test_through_T(rng):
    """½ θᵀRθ with θ = T τ, R by hand on the closure."""
    terms = Terms(LINES, keys_up_to(LINES, 4, 2, min_degree=2))
    diagonal, tau = rng.uniform(0.1, 3.0, len(terms.products)), rng.standard_normal(len(terms))
    closure = Terms(LINES, [key_of(terms.products[k]) for k in range(len(terms.products))])
    r, theta = by_hand(closure, diagonal, 90.0, 2.0), terms.T @ tau
    assert tau @ (ridge_matrix(terms, diagonal, 90.0, 2.0) @ tau) == pytest.approx(r @ theta**2, rel=1e-12)


def test_tied_nodes_multiply_the_rows():
    keys = [(i,) * power for power in (1, 2, 3, 4) for i in range(3)] + [(0, 1), (1, 2), (0, 2)]
    ties = [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3 + [4] * 3
    axes = LINES[:1] * 3
    terms = Terms(axes, keys, ties)
    assert terms.copies == 3
    assert terms.m == 5
    assert_allclose(weak_factor(terms, 40, np.ones(3)), (8 * 5 / 120) ** 4 + 1e-5)
    assert WeakRidge().stages(terms, 166) == 2
    assert WeakRidge().stages(terms, 167) == 1
    free = Terms(axes, keys)
    r = by_hand(free, np.ones(len(keys)), 120.0, 2.0)
    place = [terms.products.index(factors) for factors in free.products]
    T, R = terms.T.toarray()[place], np.diag(r)
    assert_allclose(ridge_matrix(terms, np.ones(len(terms.products)), 40.0, 2.0).toarray(), T.T @ R @ T, atol=1e-12)


def test_sine_and_cosine_have_one_ridge(rng):
    axes = [Circle(4), Circle(4)]
    terms = Terms(axes, keys_up_to(axes, 4, 2))
    diagonal = rng.uniform(0.1, 3.0, len(terms))
    r = dict(zip(terms.keys, ridge_matrix(terms, diagonal, 100.0, 5.0).diagonal(), strict=True))
    at = dict(zip(terms.keys, diagonal, strict=True))
    mean = np.mean([at[(0,) * i + (1,) * j] for i in (3, 4) for j in (1, 2)])  # cos 2x, sin 2x by cos y, sin y
    for i in (3, 4):
        for j in (1, 2):
            assert r[(0,) * i + (1,) * j] == pytest.approx(0.1 * (4 + 1) * mean * 5.0 / 100, rel=1e-12)
    assert r[0,] == r[0, 1] == r[0, 0, 1, 1] == 0.0  # of degree 2 at most
    assert r[0, 0, 0, 1] > 0
    assert r[(0,) * 7] == pytest.approx(0.1 * 16 * (at[(0,) * 7] + at[(0,) * 8]) / 2 * 5.0 / 100, rel=1e-12)


def test_the_ridge_does_not_depend_on_where_a_circle_begins(rng):
    X = rng.vonmises(0.0, [1.0, 400.0], (150, 2)).cumsum(axis=1)
    values, ridges = [], []
    for turn in (0.0, 1.1):
        f = objective(X + np.array([turn, -2 * turn]), axes=[Circle(3), Circle(3)], degree=3)
        fit = learn(f, WeakRidge(), tol=1e-8)
        values.append(fit.at.value)
        ridges.append(fit.ridge.diagonal())
    assert ridges[0].max() > 0
    assert values[0] == pytest.approx(values[1], rel=1e-10)
    assert_allclose(ridges[0], ridges[1], rtol=1e-6)
    assert weak_factor(f.terms, 1e9, WeakRidge().of(f).V).min() > 0.09  # angles within .05 of one another


@pytest.mark.parametrize("bad", [-1.0, np.inf, np.nan, "auto", True, None, [1.0]])
def test_strengths_that_mean_nothing(bad):
    with pytest.raises(ValueError, match='strength of Ridge must be "cv" or a number'):
        Ridge(bad).check()


def test_ridge_is_a_plain_estimator_object():
    for strength in ("cv", 0, 3.5, np.float64(2.0), np.float32(2.0), np.int64(3)):
        Ridge(strength).check()
    with pytest.raises(ValueError, match='free of Ridge must be "quadratic" or "own"'):
        Ridge(1.0, free="none").check()
    ridge = Ridge(2.0, free="own")
    assert clone(ridge).get_params() == {"strength": 2.0, "free": "own"}
    assert repr(Ridge(10.0)) == "Ridge(strength=10.0)"


def test_a_ridge_toward_independence_shrinks_products_of_degree_2(rng):
    """The objective of two Gaussian variables with a huge ridge on x_0 x_1 is that of independent ones."""
    x = rng.standard_normal(300)
    f = objective(np.column_stack([x, x + rng.standard_normal(300)]), degree=2)
    at = {free: learn(f, Ridge(1e8, free=free), tol=1e-8) for free in ("own", "quadratic")}
    coupling = f.terms.keys.index((0, 1))
    assert abs(at["own"].tau[coupling]) < 1e-4
    assert_allclose(at["quadratic"].tau, learn(f, None, tol=1e-8).tau, atol=1e-8)
    assert abs(at["quadratic"].tau[coupling]) > 0.3


def test_one_row_does_not_decide_what_is_a_near_copy(rng):
    """Functions are clamped on the window: one row far away neither makes near-copies of columns nor hides them."""
    apart, near = rng.standard_normal((4000, 3)), rng.standard_normal((4000, 3))
    near[:, 1] = near[:, 0] + 0.03 * near[:, 1]
    apart[0], near[0] = 1e3, (300.0, -300.0, 0.0)
    axes = [[Line.fit(x, 4) for x in X.T] for X in (apart, near)]
    assert variance_inflation(axes[0], as_samples(apart)).max() < 1.5
    assert variance_inflation(axes[1], as_samples(near))[:2].min() > 5
