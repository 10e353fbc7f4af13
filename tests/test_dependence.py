"""Sums over samples that depend on one another, block by block, against the sums written out."""

from functools import reduce
from operator import add

import numpy as np
import pytest

from isodus.dependence import automatic_lags, of_groups, of_series

RNG = np.random.default_rng(0)
S = RNG.standard_normal((3, 60))


def blocks(sizes):
    return np.split(np.arange(60), np.cumsum(sizes)[:-1])


SIZES = [[60], [30, 30], [1] * 60, [5, 1, 2, 40, 12], [57, 3]]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("lags", [0, 1, 4, 25])
def test_a_series_is_summed_with_weights_that_fall_linearly(lags, sizes):
    expected = S @ S.T
    for k in range(1, lags + 1):
        expected = expected + (1 - k / (lags + 1)) * (S[:, k:] @ S[:, :-k].T + S[:, :-k] @ S[:, k:].T)
    found = reduce(add, [of_series(S[:, at], lags) for at in blocks(sizes)]).total()
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("n_groups", [1, 2, 7, 60])
def test_groups_are_summed_before_they_are_squared(n_groups, sizes):
    groups = np.sort(np.append(RNG.integers(n_groups, size=60 - n_groups), np.arange(n_groups)))
    sums = np.stack([S[:, groups == g].sum(axis=1) for g in range(n_groups)], axis=1)
    found = reduce(add, [of_groups(S[:, at], groups[at]) for at in blocks(sizes)]).total()
    assert np.allclose(found, sums @ sums.T, rtol=1e-12, atol=1e-12)


def test_any_order_of_adding_neighbours_gives_the_same():
    for make in (lambda at: of_series(S[:, at], 7), lambda at: of_groups(S[:, at], np.arange(60)[at] // 9)):
        a, b, c = (make(at) for at in blocks([20, 3, 37]))
        assert np.allclose(((a + b) + c).total(), (a + (b + c)).total(), rtol=1e-12, atol=1e-12)


def test_lags_of_an_autoregression():
    """1.1447 (4ρ²n / (1 − ρ²)²)^{1/3} if all slopes have the same ρ."""
    n, rho = 10_000, 0.5
    expected = 1.1447 * (4 * rho**2 * n / (1 - rho**2) ** 2) ** (1 / 3)
    assert automatic_lags(np.array([2.0, 3.0]), np.array([1.0, 1.5]), n) == int(np.ceil(expected))
    assert automatic_lags(np.array([1.0]), np.array([0.0]), n) == 0
    assert automatic_lags(np.array([1.0, 0.0]), np.array([0.99, 0.0]), 40) == 10  # a quarter of all at most
