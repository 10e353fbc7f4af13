"""The Gaussian that models are compared with, against scipy and scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.covariance import LedoitWolf

from isodus.fit.gaussian import Gaussian, fitted_gaussian

RNG = np.random.default_rng(10)
L = np.array([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-0.3, 0.1, 0.5]])


@pytest.fixture
def rng():
    return np.random.default_rng(123)


def test_conditional_densities_by_the_covariance(rng):
    mean, S = np.array([1.0, -2.0, 30.0]), L @ L.T
    X = rng.standard_normal((20, 3)) @ L.T + mean
    found = Gaussian(mean, np.linalg.inv(S)).node_scores(X)
    for i in range(3):
        rest = [j for j in range(3) if j != i]
        gain = S[i, rest] @ np.linalg.inv(S[np.ix_(rest, rest)])
        middle = mean[i] + (X[:, rest] - mean[rest]) @ gain
        expected = norm.logpdf(X[:, i], middle, np.sqrt(S[i, i] - gain @ S[rest, i]))
        assert_allclose(found[:, i], expected, rtol=1e-10)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_with_enough_rows_it_is_the_sample_covariance(scale, rng):
    X = scale * (rng.standard_normal((200, 3)) @ L.T + 5)
    weight = rng.integers(1, 4, 200)
    found = fitted_gaussian(X, weight.astype(float))
    repeated = np.repeat(X, weight, axis=0)
    assert_allclose(found.mean, repeated.mean(axis=0))
    assert_allclose(np.linalg.inv(found.precision), np.cov(repeated.T, bias=True), rtol=1e-8)


@pytest.mark.parametrize("n", [6, 8, 14])
@pytest.mark.parametrize("p", [3, 20])
def test_with_few_rows_it_is_Ledoits_and_Wolfs_of_the_standardised_columns(n, p, rng):
    X = rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) * np.geomspace(1, 1e4, p) + 3
    sd = X.std(axis=0)
    expected = LedoitWolf().fit(X / sd)
    assert 0 < expected.shrinkage_ < 1
    found = fitted_gaussian(X, np.ones(n))
    made = np.linalg.inv(found.precision) / sd / sd[:, None]
    assert_allclose(made, expected.covariance_, atol=1e-8)


def test_the_limit_is_five_rows_per_column(rng):
    X = rng.standard_normal((15, 3))
    assert_allclose(np.linalg.inv(fitted_gaussian(X, np.ones(15)).precision), np.cov(X.T, bias=True), rtol=1e-8)
    Y = X[:14]
    assert np.abs(np.linalg.inv(fitted_gaussian(Y, np.ones(14)).precision) - np.cov(Y.T, bias=True)).max() > 1e-3


def test_weights_of_few_rows_are_repeated_rows(rng):
    X, weight = rng.standard_normal((6, 4)) @ (np.eye(4) + 2), np.array([1, 2, 1, 3, 1, 1])
    found, repeated = (
        fitted_gaussian(X, weight.astype(float)),
        fitted_gaussian(np.repeat(X, weight, axis=0), np.ones(9)),
    )
    assert_allclose(found.precision, repeated.precision, rtol=1e-10)
    assert np.abs(np.tril(found.precision, -1)).max() > 0.01  # not shrunk to independence


def test_columns_without_a_density(rng):
    X = rng.standard_normal((50, 2))
    for constant in (0.0, 1.0, 0.1, -1e9 / 7):  # the mean of most of these is not exact
        assert fitted_gaussian(np.column_stack([X, np.full(50, constant)]), np.ones(50)) is None
        assert fitted_gaussian(np.column_stack([X, np.full(50, constant)])[:9], np.ones(9)) is None
    assert fitted_gaussian(np.column_stack([X, X[:, 0]]), np.ones(50)) is None
    assert fitted_gaussian(X[:1], np.ones(1)) is None
