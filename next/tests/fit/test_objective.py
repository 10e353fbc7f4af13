"""The objective: products, parts, rows, and what does not depend on blocks and threads."""

import numpy as np
import pytest
from fit.build import objective, skewed
from losses.written_out import integral, log_mass
from numpy.testing import assert_allclose, assert_array_equal

from isodus.axes import Circle, Line, Values
from isodus.data import as_samples
from isodus.terms import key_of

RNG = np.random.default_rng(12)
N = 300
MIXED = np.column_stack([skewed(N, 2, 1.0), RNG.uniform(0, 2 * np.pi, N), RNG.integers(0, 3, N)])
AXES = [Line.fit(MIXED[:, 0], 4), Line.fit(MIXED[:, 1], 4), Circle(2), Values.fit(MIXED[:, 3], 2)]
WEIGHT = RNG.integers(1, 4, N).astype(float)
SETTINGS = {
    "closed": {"least": 1, "order": 3},
    "without lower terms": {"least": 2, "order": 2},
    "a list": {"keys": [(0, 0), (1, 1), (0, 1), (0, 2), (0, 0, 3, 3), (1, 1, 1, 1)]},
    "tied": {"keys": [(0, 0), (1, 1), (0, 1), (0, 1, 1), (0, 0, 1)], "ties": [0, 0, 1, 2, 2]},
}


@pytest.fixture
def rng():
    return np.random.default_rng(123)


@pytest.fixture(params=SETTINGS)
def case(request):
    """An objective of mixed axes with weights and blocks, and a point."""
    f = objective(MIXED, 4, axes=AXES, weight=WEIGHT, block=70, **SETTINGS[request.param])
    return f, np.random.default_rng(5).normal(0.0, 0.05, len(f.terms))


def test_products_with_the_Hessian(case, rng):
    f, tau = case
    A, product = f(tau).hessian, f.curvature_product(tau)
    for v in [*np.eye(len(tau))[:5], rng.standard_normal(len(tau))]:
        assert_allclose(product(v), A @ v, atol=1e-11 * np.abs(A).max())


def test_the_diagonal_in_theta(case):
    """Of the Hessian over all products, without T."""
    f, tau = case
    theta = f.terms.T @ tau
    whole = objective(MIXED, axes=AXES, weight=WEIGHT, keys=[key_of(f.terms.products[k]) for k in range(len(theta))])
    place = [whole.terms.products.index(factors) for factors in f.terms.products]
    assert_allclose(f.diagonal(theta), whole(theta).hessian.diagonal()[place], rtol=1e-9, atol=1e-12)


def test_the_objective_of_some_unknowns(case):
    f, tau = case
    keep = np.arange(len(tau)) % 3 != 0
    part, at = f.only(keep), f(np.where(keep, tau, 0.0))
    small = part(tau[keep])
    assert small.value == pytest.approx(at.value, rel=1e-12)
    assert_allclose(small.gradient, at.gradient[keep], atol=1e-11)
    assert_allclose(small.hessian, at.hessian[np.ix_(keep, keep)], atol=1e-10 * np.abs(at.hessian).max())


def test_the_objective_of_some_rows(case, rng):
    f, tau = case
    rows = rng.permutation(N)[:90]
    part = f.take(np.sort(rows))
    direct = f.on(as_samples(MIXED[np.sort(rows)], WEIGHT[np.sort(rows)]))
    assert part.n == direct.n == WEIGHT[rows].sum()
    assert part(tau).value == pytest.approx(direct(tau).value, rel=1e-12)
    other = np.setdiff1d(np.arange(N), rows)
    both = (part.n * part(tau).value + f.take(other).n * f.take(other)(tau).value) / f.n
    assert both == pytest.approx(f(tau).value, rel=1e-12)


def test_losses_of_rows_are_conditional_densities(case):
    """ℓ = log q(x) − log P(x_i | rest), the latter from the products of functions and adaptive quadrature."""
    f, tau = case
    theta, losses = f.terms.T @ tau, f.losses(tau)[0]
    assert losses.shape == (N, 4)
    assert_allclose(np.average(losses, axis=0, weights=WEIGHT), f(tau).nodes, rtol=1e-12)
    for n in (0, 75, 299):  # of different blocks
        phi = [axis.functions(MIXED[n : n + 1, i])[0] for i, axis in enumerate(AXES)]
        for i, axis in enumerate(AXES):
            a = np.zeros(len(axis.degrees))
            for value, factors in zip(theta, f.terms.products, strict=True):
                if i in dict(factors):
                    a[dict(factors)[i]] += value * np.prod([phi[j][l] for j, l in factors if j != i])
            log_Z = np.log(integral(axis, lambda t, axis=axis, a=a: float(np.exp(log_mass(axis, a, t)))))
            assert losses[n, i] == pytest.approx(phi[i] @ a + log_Z, rel=1e-8, abs=1e-8)


def test_scores_are_gradients_of_the_losses_of_rows(case):
    f, tau = case
    S = np.concatenate(f.scores(tau, lambda block, S: [S]), axis=1)
    rows = lambda tau: f.losses(tau)[0].sum(axis=1)
    steps = 1e-2 / (1 + np.abs(S).max(axis=1))
    for k, e in enumerate(np.diag(steps)):
        expected = (8 * (rows(tau + e) - rows(tau - e)) - (rows(tau + 2 * e) - rows(tau - 2 * e))) / (12 * steps[k])
        assert_allclose(S[k], expected, atol=1e-7 * (1 + np.abs(expected).max()))


def test_threads_and_passes_change_nothing(case, rng):
    f, tau = case
    alone, v = f(tau), rng.standard_normal(len(tau))
    product, scores = f.curvature_product(tau)(v), f.scores(tau, lambda block, S: S @ block.weight)
    for n_jobs in (1, 2, 4):
        again = f.on(f.samples)
        again.n_jobs = n_jobs
        for _ in range(2):  # what is prepared is kept after the first pass
            at = again(tau)
            assert at.value == alone.value
            assert_array_equal(at.gradient, alone.gradient)
            assert_array_equal(at.hessian, alone.hessian)
        assert_array_equal(again.curvature_product(tau)(v), product)
        assert_array_equal(again.scores(tau, lambda block, S: S @ block.weight), scores)
        assert_array_equal(again.losses(tau)[0], f.losses(tau)[0])


def test_nothing_kept_is_the_same(case, monkeypatch):
    f, tau = case
    monkeypatch.setattr("isodus.fit.objective._KEPT_BYTES", 0)
    assert f.on(f.samples)(tau).value == f(tau).value


def test_passes_are_counted(case):
    f, tau = case
    before = f.passes
    f(tau)
    f(tau, 0)
    assert f.passes == before + 2


def test_rounding_is_what_it_says(rng):
    """ε⟨1 + Σ|a_l φ_l|⟩, from the products themselves; 1 is that of log Z, or of exp and log of a mean."""
    f = objective(skewed(100, 2), 3)
    tau = rng.standard_normal(len(f.terms))
    phi = [axis.functions(x) for axis, x in zip(f.axes, f.samples.X.T, strict=True)]
    total = 0.0
    for i in range(2):
        a = np.zeros_like(phi[i])
        for value, factors in zip(tau, f.terms.products, strict=True):
            if i in dict(factors):
                rest = [phi[j][:, l] for j, l in factors if j != i]
                a[:, dict(factors)[i]] += value * np.prod(rest, axis=0)
        total += 1 + np.abs(a * phi[i]).sum(axis=1).mean()
    assert f(tau).rounding / np.finfo(float).eps == pytest.approx(total, rel=1e-10)


def test_unresolved_rows_are_counted_by_node(rng):
    """A density narrower than the finest nodes is flagged in its own variable's count only."""
    x = rng.standard_normal(200)
    axes = [Line.fit(x, 2), Line.fit(x, 2)]
    f = objective(np.column_stack([x, x]), axes=axes, keys=[(0,), (1,), (0, 0), (1, 1)])
    assert f(np.array([0.0, 0.0, 1.0, 1.0])).unresolved.tolist() == [0, 0]
    assert f(np.array([0.0, 0.0, 1.0, 1e9])).unresolved.tolist() == [0, 200]
