"""Tests of interactions against score statistics that are written out, and their level."""

import numpy as np
import pytest
import statsmodels.api as sm
from fit.build import from_zero, grouped, objective, optimum, skewed
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from scipy.stats import chi2
from scipy.stats import f as fisher
from statsmodels.stats.sandwich_covariance import S_hac_simple

from isodus import PseudoLikelihood
from isodus.axes import WholeLine
from isodus.datasets import curved
from isodus.fit.learn import learn
from isodus.fit.penalties import Ridge
from isodus.fit.sandwich import sandwich
from isodus.fit.score_tests import interaction_tests

RHO = {"score": 0.3, "one-step": 0.15}


def gaussian_pair(rho, n=400, seed=3):
    """Two columns with sample means and tails of their own."""
    z = np.random.default_rng(seed).standard_t(8, size=(n, 2))
    z[:, 1] += rho * z[:, 0]
    return z * [1.0, 3.0] + [5.0, 0.0]


def all_tests(f, fit, groups=None, lags=0):
    blocks = [unknowns for variables, unknowns in f.terms.interactions.items() if len(variables) > 1]
    clusters = None
    if groups is not None:
        f, clusters = grouped(f, groups)
    return interaction_tests(f, fit, sandwich(f, fit, clusters, lags), blocks, clusters, lags=lags)


def quadratic(X):
    f = objective(X, 2, axes=[WholeLine.fit(x, 2) for x in X.T], block=150)
    return f, optimum(f)


@pytest.mark.parametrize("labelled", [False, True])
def test_a_pair_at_degree_two_written_out(labelled):
    """u = Σ z₀z₁ with residuals z about the means: the statistic is u²/Σ(z₀z₁)², n R² of a regression of 1 on z₀z₁."""
    X = gaussian_pair(RHO["score"])
    groups = np.random.default_rng(0).integers(0, 50, len(X)) if labelled else None
    found = all_tests(*quadratic(X), groups)[0]
    product = np.prod(X - X.mean(axis=0), axis=1)
    if labelled:
        product = np.bincount(groups, product)
    expected = sm.OLS(np.ones(len(product)), product).fit()
    assert found.method == "score"
    assert found.df == 1
    assert found.statistic == pytest.approx(len(product) * expected.rsquared, rel=1e-3)
    share, S = 1 - 5 / (2 * len(X)), found.statistic  # five unknowns, two conditionals per row
    hotelling = S / ((50 - S) / 49)
    expected_p = fisher.sf(share * hotelling, 1, 49) if labelled else chi2.sf(share * S, 1)
    assert found.p_value == pytest.approx(expected_p, rel=1e-9)


def test_a_series_written_out():
    """u = Σ z₀z₁ over its long-run variance with Bartlett's weights."""
    z = gaussian_pair(RHO["score"])
    X = np.stack([z[1:, 0] + z[:-1, 0], z[1:, 1] + z[:-1, 1]], axis=1)
    found = all_tests(*quadratic(X), lags=4)[0]
    product = np.prod(X - X.mean(axis=0), axis=1)
    expected = product.sum() ** 2 / S_hac_simple(product[:, None], 4)[0, 0]
    assert found.method == "score"
    assert found.statistic == pytest.approx(expected, rel=1e-3)
    assert found.statistic < 0.9 * all_tests(*quadratic(X))[0].statistic


def test_the_one_step_statistic_written_out():
    """W/(1 + W/n) with W = θ²/variance."""
    X = gaussian_pair(RHO["one-step"])
    f, fit = quadratic(X)
    found, k = all_tests(f, fit)[0], f.terms.keys.index((0, 1))
    wald = fit.tau[k] ** 2 / sandwich(f, fit)[k, k]
    assert found.method == "one-step"
    assert found.statistic == pytest.approx(wald / (1 + wald / len(X)), rel=1e-9)
    assert found.p_value == pytest.approx(chi2.sf(found.statistic * (1 - 5 / (2 * len(X))), 1), rel=1e-9)


def score_statistic(f, block, groups=None, ridge=None):
    """uᵀ(Σ e eᵀ)⁻¹u from the losses of rows alone: their minimum without the block, and differences of them."""
    K = len(f.terms)
    R = np.zeros((K, K)) if ridge is None else ridge
    rest = np.setdiff1d(np.arange(K), block)

    def restricted(t):
        tau = np.zeros(K)
        tau[rest] = t
        at = f(tau, 1)
        return at.value + 0.5 * tau @ R @ tau, (at.gradient + R @ tau)[rest]

    tau = np.zeros(K)
    tau[rest] = minimize(restricted, np.zeros(len(rest)), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    weight = np.concatenate([b.weight for b in f.samples.blocks()])
    h = 1e-4
    S = np.stack([(f.losses(tau + h * e)[0] - f.losses(tau - h * e)[0]).sum(axis=1) / (2 * h) for e in np.eye(K)])
    A = approx_fprime(tau, lambda t: f(t, 1).gradient, 1e-6) + R
    e = S[block] - A[np.ix_(block, rest)] @ np.linalg.solve(A[np.ix_(rest, rest)], S[rest])
    if groups is not None:
        e = np.stack([np.bincount(groups, row * weight) for row in e])
        return e.sum(axis=1) @ np.linalg.solve(e @ e.T, e.sum(axis=1))
    u = e @ weight
    return u @ np.linalg.solve((e * weight) @ e.T, u)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_terms_against_differences_of_losses(labelled, weighted):
    X, rng = skewed(300, 3, 2.0), np.random.default_rng(1)
    weight = rng.integers(1, 4, 300).astype(float) if weighted else None
    groups = rng.integers(0, 80, 300) if labelled else None
    f = objective(X, 3, weight=weight, block=64)
    fit = from_zero(f)
    found = all_tests(f, fit, groups)[0]
    block = f.terms.interactions[0, 1]
    assert found.method == "score"
    assert found.df == len(block) == 3
    assert found.statistic == pytest.approx(score_statistic(f, block, groups), rel=5e-3)


def test_with_a_ridge():
    f = objective(skewed(200, 3, 2.0), 3)
    fit = learn(f, Ridge(300.0), tol=1e-8)
    assert fit.ridge.diagonal().max() > 0
    found = all_tests(f, fit)[0]
    expected = score_statistic(f, f.terms.interactions[0, 1], ridge=fit.ridge.toarray())
    assert found.method == "score"
    assert found.statistic == pytest.approx(expected, rel=5e-3)


def test_what_is_strong_needs_more_steps_and_has_a_tiny_p():
    X = gaussian_pair(2.0, 300)
    found = all_tests(*quadratic(X))[0]
    product = np.prod(X - X.mean(axis=0), axis=1)
    assert found.statistic == pytest.approx(product.sum() ** 2 / (product**2).sum(), rel=1e-3)
    assert found.p_value < 1e-12


def test_without_a_covariance_there_is_no_test():
    X = gaussian_pair(0.5, 300)
    f, fit = quadratic(X)
    found = interaction_tests(f, fit, np.full((len(fit.tau),) * 2, np.nan), [np.array([4])])[0]
    assert np.isnan(found.statistic)
    assert np.isnan(found.p_value)


def test_progress_counts_blocks():
    f, fit = quadratic(np.random.default_rng(0).standard_normal((200, 4)))
    done = []
    blocks = [unknowns for variables, unknowns in f.terms.interactions.items() if len(variables) > 1]
    interaction_tests(f, fit, sandwich(f, fit), blocks, None, done.append)
    assert done == [1, 2, 3, 4, 5, 6]


def test_levels_of_independent_skewed_columns():
    """Six null pairs of degree 3 in each of 60 sets of 300 rows: of 360 tests 5 % reject, 18 ± 4.1 if independent."""
    p_values = []
    for seed in range(60):
        X = np.random.default_rng([9, seed]).gamma(4.0, size=(300, 4))
        f = objective(X, 3)
        p_values += [test.p_value for test in all_tests(f, learn(f, None, tol=1e-3))]
    rejected = np.mean(np.array(p_values) < 0.05)
    assert 0.02 < rejected < 0.085
    assert_allclose(np.mean(p_values), 0.5, atol=0.06)


@pytest.mark.parametrize("n", [500, 16_000])
def test_where_the_quadratic_of_the_whole_fit_is_of_no_use(n):
    """½x² + 4(y − .6x²)², whose fit without the interaction is far from the whole fit."""
    test = PseudoLikelihood(4, n_jobs=1).fit(curved(n, seed=3)).model_.fitted.interaction_tests()[0]
    assert test.method == "score"
    assert test.p_value < 1e-10
