"""Degree 2 on the whole line: the inverse covariance, and statsmodels' robust covariances of regressions.

At the optimum the regression of each column on the others has the coefficients −c_ij/(2 c_ii), so that its robust
covariance is the sandwich of θ carried through these functions.
"""

from functools import partial

import numpy as np
import pytest
import statsmodels.api as sm
from fit.build import grouped, in_powers, objective, optimum
from numpy.testing import assert_allclose
from statsmodels.stats import sandwich_covariance as robust

from isodus.axes import WholeLine
from isodus.fit.sandwich import inverse, sandwich, spread

P = 4


def data(n=500, seed=0, ar=0.0):
    """Correlated columns with heavy tails and noise whose size depends on the other columns."""
    rng = np.random.default_rng(seed)
    e = rng.standard_t(6, size=(n, P))
    for t in range(1, n) if ar else ():
        e[t] += ar * e[t - 1]
    X = e @ np.array([[1.0, 0.4, 0.0, -0.3], [0.0, 0.8, 0.5, 0.0], [0.0, 0.0, 1.5, 0.2], [0.0, 0.0, 0.0, 2.0]])
    X[:, 3] += 0.5 * np.abs(X[:, 0]) * rng.standard_normal(n)
    return X + np.array([10.0, 0.0, -3.0, 1.0])


def fit_of(X, weight=None, block=64):
    f = objective(X, 2, axes=[WholeLine.fit(x, 2, weight) for x in X.T], weight=weight, block=block)
    return f, optimum(f)


def regressions(f, fit, covariance):
    """For each column the coefficients (1, others) of its regression, and their covariance by the delta method."""
    keys, c, C = in_powers(f, fit.tau, covariance)
    at = {key: k for k, key in enumerate(keys)}
    for i in range(P):
        others, own = [j for j in range(P) if j != i], at[i, i]
        tops = [at[i,]] + [at[tuple(sorted((i, j)))] for j in others]
        J = np.zeros((P, len(c)))
        J[range(P), tops] = -1 / (2 * c[own])
        J[:, own] = c[tops] / (2 * c[own] ** 2)
        yield -c[tops] / (2 * c[own]), J @ C @ J.T


def ols(X, i, **kwargs):
    return sm.OLS(X[:, i], sm.add_constant(np.delete(X, i, axis=1))).fit(**kwargs)


def precision_of(f, fit):
    keys, c, _ = in_powers(f, fit.tau, np.zeros((len(fit.tau),) * 2))
    made = np.zeros((P, P))
    for key, value in zip(keys, c, strict=True):
        if len(key) == 2:
            made[key] = made[key[::-1]] = value * (2 if key[0] == key[1] else 1)
    return made


@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_is_the_inverse_covariance(weighted):
    X = data()
    weight = np.random.default_rng(1).integers(1, 5, len(X)).astype(float) if weighted else None
    f, fit = fit_of(X, weight)
    expected = np.linalg.inv(np.cov(X.T, bias=True, fweights=None if weight is None else weight.astype(int)))
    assert fit.status == "converged"
    assert_allclose(precision_of(f, fit), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def check(f, fit, covariance, X, **kwargs):
    for i, (b, C) in enumerate(regressions(f, fit, covariance)):
        expected = ols(X, i, **kwargs)
        assert_allclose(b, expected.params, rtol=1e-8, atol=1e-9)
        size = np.sqrt(np.diag(expected.cov_params()))
        assert_allclose(C / size / size[:, None], expected.cov_params() / size / size[:, None], atol=1e-8)


def test_the_sandwich_is_statsmodels_HC0():
    X = data()
    f, fit = fit_of(X)
    check(f, fit, sandwich(f, fit), X, cov_type="HC0")


def test_weights_are_repeated_rows():
    X = data()
    weight = np.random.default_rng(2).integers(1, 5, len(X)).astype(float)
    f, fit = fit_of(X, weight)
    check(f, fit, sandwich(f, fit), np.repeat(X, weight.astype(int), axis=0), cov_type="HC0")


def with_groups(f, fit, groups):
    f, clusters = grouped(f, groups)
    return f, fit, clusters


def test_groups_are_statsmodels_clusters():
    X, groups = data(), np.random.default_rng(3).integers(0, 60, 500)
    f, fit = fit_of(X)
    options = {"groups": groups, "use_correction": False}
    check(f, fit, sandwich(*with_groups(f, fit, groups)), X, cov_type="cluster", cov_kwds=options)


def test_groups_of_rows_that_were_seen_often():
    X, rng = data(), np.random.default_rng(5)
    weight, groups = rng.integers(1, 4, 500), rng.integers(0, 60, 500)
    f, fit = fit_of(X, weight.astype(float))
    options = {"groups": np.repeat(groups, weight), "use_correction": False}
    covariance = sandwich(*with_groups(f, fit, groups))
    check(f, fit, covariance, np.repeat(X, weight, axis=0), cov_type="cluster", cov_kwds=options)


def test_each_row_a_group_is_no_groups():
    f, fit = fit_of(data())
    assert_allclose(sandwich(*with_groups(f, fit, np.arange(500))), sandwich(f, fit), rtol=1e-10)


@pytest.mark.parametrize("lags", [1, 7])
def test_dependence_is_statsmodels_HAC(lags):
    X = data(ar=0.5)
    f, fit = fit_of(X)
    options = {"maxlags": lags, "use_correction": False}
    check(f, fit, sandwich(f, fit, lags=lags), X, cov_type="HAC", cov_kwds=options)


def scores_of(f, fit):
    return np.concatenate(f.scores(fit.tau, lambda block, S: [S]), axis=1).T


def test_meat_is_statsmodels_sums_of_scores():
    """Also where groups and lags cross blocks, at degree 4."""
    X, groups = data(300, ar=0.3), np.random.default_rng(4).integers(0, 40, 300)
    f = objective(X[:, :2], 4, block=37)
    fit = optimum(f)
    S = scores_of(f, fit)
    near = lambda made, expected: assert_allclose(made, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    g, clusters = grouped(f, groups)
    scored = partial(g.scores, fit.tau)
    near(spread(scored)[0], robust.S_white_simple(S))
    near(spread(scored, clusters)[0], robust.S_crosssection(S, groups))
    for lags in (5, 36, 37, 50, 90):
        near(spread(scored, lags=lags)[0], robust.S_hac_simple(S, lags))
    near(spread(scored, lags=0)[0], robust.S_hac_simple(S, 0))
    A, n = f(fit.tau).hessian, len(X)
    near(sandwich(f, fit), np.linalg.solve(A, np.linalg.solve(A, S.T @ S).T) / n**2)


def test_scores_written_out():
    """φ − E[φ] of normal conditionals, one column of S for each term."""
    X = data(50)
    f, fit = fit_of(X)
    S, z = scores_of(f, fit), np.stack([axis.functions(x)[:, 0] for axis, x in zip(f.axes, X.T, strict=True)], axis=1)
    c = dict(zip(f.terms.keys, fit.tau, strict=True))
    middle, variance = np.empty_like(z), np.empty(P)
    for i in range(P):
        linear = c[i,] + sum(c[tuple(sorted((i, j)))] * z[:, j] for j in range(P) if j != i)
        middle[:, i], variance[i] = -linear / (2 * c[i, i]), 1 / (2 * c[i, i])
    for k, key in enumerate(f.terms.keys):
        i, j = key[0], key[-1]
        expected = {
            (1, 1): z[:, i] - middle[:, i],
            (2, 1): z[:, i] ** 2 - middle[:, i] ** 2 - variance[i],
            (2, 2): z[:, j] * (z[:, i] - middle[:, i]) + z[:, i] * (z[:, j] - middle[:, j]),
        }[len(key), len(set(key))]
        assert_allclose(S[:, k], expected, atol=1e-9)


def test_the_inverse_of_a_badly_scaled_matrix():
    scale = np.array([1e-8, 1.0, 1e8])
    A = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
    assert_allclose(inverse(A * scale * scale[:, None]) * scale * scale[:, None], np.linalg.inv(A), atol=1e-14)
    assert np.all(np.isnan(inverse(np.array([[1.0, 2.0], [2.0, 1.0]]))))
    assert np.all(np.isnan(inverse(np.full((2, 2), np.nan))))
