"""Andrews's number of lags, from scores whose correlations are known."""

import numpy as np
import pytest
from fit.build import objective

from isodus.axes import WholeLine
from isodus.fit.learn import learn
from isodus.fit.series import automatic_lags


def series(rho, n=4000, p=1, seed=0):
    e = np.random.default_rng(seed).standard_normal((n, p))
    for t in range(1, n):
        e[t] += rho * e[t - 1]
    return e


def by_hand(rho, n):
    """1.1447 (α n)^(1/3) with α = Σ 4ρ²/((1 − ρ)⁶(1 + ρ)²) / Σ 1/(1 − ρ)⁴, each score of weight 1."""
    alpha = sum(4 * r * r / ((1 - r) ** 6 * (1 + r) ** 2) for r in rho) / sum((1 - r) ** -4 for r in rho)
    return int(min(np.ceil(1.1447 * (alpha * n) ** (1 / 3)), n // 4))


def fitted(X, block=777):
    f = objective(X, 2, axes=[WholeLine.fit(x, 2) for x in X.T], block=block)
    return f, learn(f, None, tol=1e-8).tau


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_lags_of_an_autoregressive_series(rho):
    """Scores z and z² − 1 have the correlations of these products, however the rows are cut."""
    X = series(rho)
    f, tau = fitted(X)
    z = (X - X.mean()) / X.std()
    found = [s[:-1] @ s[1:] / (s @ s) for s in (z[:, 0], z[:, 0] ** 2 - 1)]
    assert automatic_lags(f, tau) == by_hand(found, 4000)


def test_few_rows_have_few_lags():
    X = series(0.99, 40)
    assert automatic_lags(*fitted(X)) == 10


def test_dependence_takes_more_lags_than_independence():
    assert automatic_lags(*fitted(series(0.0, p=2))) <= 4
    assert automatic_lags(*fitted(series(0.9, p=2))) > 20
