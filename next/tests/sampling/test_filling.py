"""Missing values: closed forms for Gaussians, fine grids elsewhere, exact sums and Gibbs sweeps alike."""

import itertools

import numpy as np
import pytest
from given_models import chain, distance, energy, on_axes, on_whole_lines

from isodus.axes import Line, Values
from isodus.sampling import fill, sample

SPIN = Values.fit(np.array([-1.0, 1.0]), 1, values=[-1.0, 1.0])


def test_gaussian_conditionals():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((5, 9))
    P, b = B @ B.T / 9, rng.standard_normal(5)
    theta = {(i,): b[i] for i in range(5)} | {(i, i): P[i, i] / 2 for i in range(5)}
    theta |= {(i, j): P[i, j] for i in range(5) for j in range(i + 1, 5)}
    row, n = np.array([0.5, np.nan, -1.0, np.nan, np.nan]), 20_000
    X = np.tile(row, (n, 1))
    out = fill(*on_whole_lines(theta), X, np.isnan(X), np.random.default_rng(1))
    assert np.array_equal(out[:, [0, 2]], X[:, [0, 2]])
    m, o = [1, 3, 4], [0, 2]
    covariance = np.linalg.inv(P[np.ix_(m, m)])
    mean = -covariance @ (b[m] + P[np.ix_(m, o)] @ row[o])
    sd = np.sqrt(np.diag(covariance))
    z = (out[:, m] - mean) / sd
    assert np.abs(z.mean(axis=0)).max() < 4 / np.sqrt(n)
    assert np.abs(z.T @ z / n - covariance / np.outer(sd, sd)).max() < 5 * np.sqrt(2 / n)


BIMODAL = {(i,) * 4: 2.0 for i in range(3)} | {(i, i): -8.0 for i in range(2)}
BIMODAL |= {(2, 2): 1.0, (0, 1): -2.0, (0, 2): 0.2, (1, 2): 0.3, (0, 1, 2): 0.5}
"""Given x2, x0 and x1 are in one of two modes together, which no single move of one of them reaches."""


def test_bimodal_conditional():
    terms, theta = on_whole_lines(BIMODAL)
    n, x2 = 20_000, 0.4
    X = np.column_stack([np.full((n, 2), 7.0), np.full(n, x2)])
    missing = np.tile([True, True, False], (n, 1))
    start = np.array([[1.4, 1.4, 0.4]])  # one mode alone
    out = fill(terms, theta, X, missing, np.random.default_rng(0), start=start)
    grid = np.linspace(-3, 3, 601)
    density = np.exp(-energy(BIMODAL, grid[:, None], grid[None], x2) - 20)
    density /= density.sum()
    share = density[np.ix_(grid > 0, grid > 0)].sum()
    assert 0.05 < share < 0.95
    assert abs(np.mean((out[:, :2] > 0).all(axis=1)) - share) < 4 * np.sqrt(share * (1 - share) / n)
    for i in range(2):
        assert distance(out[:, i], grid, density.sum(axis=1 - i)) < 1.95
        assert len(np.unique(out[:, i])) == n


def test_each_row_is_given_its_own_values():
    terms, theta = on_whole_lines(BIMODAL)
    rng = np.random.default_rng(0)
    n = 30_000
    X = sample(terms, theta, n, rng).X
    missing = rng.random((n, 3)) < 0.5
    out = fill(terms, theta, np.where(missing, np.nan, X), missing, rng)
    # filling what is missing at random in draws of the model gives draws of the model
    assert np.array_equal(out[~missing], X[~missing])
    assert np.isfinite(out).all()
    for f in (
        lambda x: x[:, 0],
        lambda x: x[:, 0] * x[:, 1],
        lambda x: x[:, 0] * x[:, 1] * x[:, 2],
        lambda x: x[:, 2] ** 2,
    ):
        first, second = f(X), f(out)
        assert abs((first - second).mean()) < 4 * (first - second).std() / np.sqrt(n)


def test_one_missing_value_is_an_exact_draw():
    axis = Line.fit(np.random.default_rng(0).standard_normal(300), 2)
    terms, theta = on_axes([axis, axis], {(0,): 0.1, (0, 0): 0.5, (1,): 0.2, (0, 1): 0.9, (1, 1): 0.4})
    X = np.tile([[np.nan, 0.7]], (10_000, 1))
    out = fill(terms, theta, X, np.isnan(X), np.random.default_rng(1))
    phi = axis.functions(np.array([0.7]))[0]
    grid = np.linspace(-9, 9, 9001)
    p = axis.functions(grid)
    mass = np.exp(axis.log_base(grid) - p @ [0.1, 0.5] - 0.9 * p[:, 0] * phi[0])
    assert distance(out[:, 0], grid, mass) < 1.95


def test_many_missing_values_by_sweeps():
    # all depend on each other: too much to sum out
    p = 9
    theta = {(i, i): 1.0 for i in range(p)} | {(i,) * 4: 0.5 for i in range(p)}
    theta |= dict.fromkeys(itertools.combinations(range(p), 2), -0.25)
    terms, values = on_whole_lines(theta)
    X = np.full((4000, p), np.nan)
    X[:, 0] = 1.5
    out = fill(terms, values, X, np.isnan(X), np.random.default_rng(0), n_sweeps=40)
    assert np.array_equal(out[:, 0], X[:, 0])
    rest = out[:, 1:]
    # Schwinger and Dyson given x0: E[x_i ∂E/∂x_i] = 1
    slope = 2 * rest + 2 * rest**3 - 0.25 * (out.sum(axis=1, keepdims=True) - rest)
    virial = (rest * slope).mean(axis=1)
    assert abs(virial.mean() - 1) < 4 * virial.std() / np.sqrt(4000)
    assert rest.mean() > 0.1


def test_a_chain_between_its_ends():
    terms, theta = on_whole_lines(chain(5))
    X = np.full((10_000, 5), np.nan)
    X[:, 0], X[:, 4] = 2.0, -1.0
    out = fill(terms, theta, X, np.isnan(X), np.random.default_rng(0))
    grid = np.linspace(-4, 4, 161)
    own, T = np.exp(-(grid**2) - 0.25 * grid**4), np.exp(np.outer(grid, grid))
    left, right = np.exp(2.0 * grid) * own, np.exp(-1.0 * grid) * own
    middle = (T @ left) * own * (T @ right)
    assert distance(out[:, 2], grid, middle) < 1.95


@pytest.mark.parametrize("both", [True, False])
def test_values_far_out_imply_others_far_out(both):
    # x1 is about x0, and x0 = 30 is where no draw of the model ever is
    theta = {(0, 0): 30.0, (0,) * 4: 1e-4, (0, 1): -10.0, (1, 1): 5.0, (2, 2): 5.0, (1, 2): -9.0}
    terms, values = on_whole_lines(theta)
    X = np.tile([[30.0, np.nan, np.nan if both else 27.0]], (1500, 1))
    out = fill(terms, values, X, np.isnan(X), np.random.default_rng(0))
    m = [1, 2] if both else [1]
    P = np.array([[10.0, -9.0], [-9.0, 10.0]])[: len(m), : len(m)]
    mean = np.linalg.solve(P, [300.0, 0.0] if both else [300.0 + 9 * 27.0])
    covariance = np.linalg.inv(P)
    z = (out[:, m] - mean) / np.sqrt(np.diag(covariance))
    assert np.abs(z.mean(axis=0)).max() < 4 / np.sqrt(1500)
    assert np.abs(z.std(axis=0) - 1).max() < 4 / np.sqrt(3000)


def test_threads_and_inputs():
    terms, theta = on_whole_lines(BIMODAL)
    rng = np.random.default_rng(0)
    X, missing = rng.standard_normal((2000, 3)), rng.random((2000, 3)) < 0.4
    X.flags.writeable = missing.flags.writeable = False
    first, second = (fill(terms, theta, X, missing, np.random.default_rng(1), n_jobs=n) for n in (1, 2))
    assert np.array_equal(first, second)
    assert np.array_equal(fill(terms, theta, X, np.zeros((2000, 3), bool), np.random.default_rng(1)), X)


def test_discrete_values_are_filled():
    terms, theta = on_axes([SPIN] * 3, {(0,): 0.0, (1,): 0.0, (2,): 0.0, (0, 1): -1.0, (1, 2): -1.0})
    X = np.tile([[1.0, np.nan, np.nan]], (20_000, 1))
    out = fill(terms, theta, X, np.isnan(X), np.random.default_rng(0))
    share = 1 / (1 + np.exp(-2.0))
    assert abs(np.mean(out[:, 1] == 1) - share) < 4 * np.sqrt(share * (1 - share) / 20_000)
    both = share**2 + (1 - share) ** 2
    assert abs(np.mean(out[:, 2] == 1) - both) < 4 * np.sqrt(both * (1 - both) / 20_000)


@pytest.mark.parametrize("all_missing", [True, False])
def test_a_row_of_missing_values_is_a_draw(all_missing):
    terms, theta = on_whole_lines(BIMODAL)
    X = np.zeros((10_000, 3))
    missing = np.full(X.shape, all_missing)
    out = fill(terms, theta, X, missing, np.random.default_rng(0))
    if not all_missing:
        assert np.array_equal(out, X)
        return
    other = sample(terms, theta, 10_000, np.random.default_rng(1)).X
    for f in (lambda x: x[:, 0] > 0, lambda x: x[:, 0] * x[:, 1], lambda x: x[:, 2]):
        first, second = f(out), f(other)
        assert abs(first.mean() - second.mean()) < 4 * np.hypot(first.std(), second.std()) / 100
