"""Draws against closed forms and quadrature of the stated densities."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import stats

from isodus import datasets as d

N = 20_000
SAMPLERS = {
    "paper_1d": (d.paper_1d, 1),
    "paper_pair": (d.paper_pair, 2),
    "paper_pair 2": (partial(d.paper_pair, which=2), 2),
    "paper_4d": (d.paper_4d, 4),
    "gaussian": (partial(d.gaussian, precision=d.diamond_precision()), 4),
    "many_body": (d.many_body, 9),
    "double_wells": (d.double_wells, 4),
    "skewed": (d.skewed, 4),
    "curved": (d.curved, 2),
    "butterfly": (d.butterfly, 10),
    "phi4": (partial(d.phi4, size=(4, 4), sweeps=20), 16),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_shapes_and_seeds(name):
    sample, p = SAMPLERS[name]
    X = sample(300)
    assert X.shape == (300, p)
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert len(np.unique(X[:, 0])) == 300
    np.testing.assert_array_equal(X, sample(300, seed=0))
    np.testing.assert_array_equal(sample(50, seed=np.random.default_rng(5)), sample(50, seed=5))
    assert not np.isin(sample(300, seed=1), X).any()


def quadrature(theta, p, reach, count=80):
    """Places (count^p, p) and shares of the density ∝ exp(−Σ θ x^α), by Gauss-Legendre nodes in a box."""
    u, w = np.polynomial.legendre.leggauss(count)
    x = np.stack(np.meshgrid(*[reach * u] * p, indexing="ij"), axis=-1).reshape(-1, p)
    weights = np.prod(np.stack(np.meshgrid(*[w] * p, indexing="ij"), axis=-1), axis=-1).ravel()
    energy = sum(value * np.prod(x[:, list(term)], axis=1) for term, value in theta.items())
    mass = weights * np.exp(energy.min() - energy)
    return x, mass / mass.sum()


def assert_moments(X, x, share, degree=4):
    """All products up to a degree, within 4.5 standard errors of the mean of independent draws."""
    for powers in product(range(degree + 1), repeat=X.shape[1]):
        if 0 < sum(powers) <= degree:
            value = np.prod(x**powers, axis=1)
            mean = share @ value
            error = np.sqrt(share @ (value - mean) ** 2 / len(X))
            assert abs(np.prod(X**powers, axis=1).mean() - mean) < 4.5 * error, powers


MODELS = {
    "paper_1d": (d.paper_1d, d.paper_1d_theta(), 3.0),
    "paper_pair": (d.paper_pair, d.paper_pair_theta(), 3.0),
    "paper_pair 2": (partial(d.paper_pair, which=2), d.paper_pair_theta(2), 3.0),
    "double_wells": (
        partial(d.double_wells, p=2, height=(1.0, 3.0), shift=0.5, coupling=-1.5),
        d.double_wells_theta(2, height=(1.0, 3.0), shift=0.5, coupling=-1.5),
        4.0,
    ),
    "skewed": (partial(d.skewed, p=1), d.skewed_theta(1), 8.0),
    "many_body": (partial(d.many_body, sizes=(2,)), d.many_body_theta((2,)), 6.0),
    "many_body 3": (partial(d.many_body, sizes=(3,)), d.many_body_theta((3,)), 6.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_moments_are_those_of_the_density(name):
    sample, theta, reach = MODELS[name]
    X = sample(N)
    assert_moments(X, *quadrature(theta, X.shape[1], reach, 60))


def test_pairs_of_the_four_dimensional_model_are_independent():
    X, theta = d.paper_4d(N), d.paper_4d_theta()
    assert len(theta) == 24
    assert max(map(len, map(set, theta))) == 2
    assert (theta[2, 2, 3], theta[0, 0, 1]) == (0.5, 0.05)
    assert np.abs(np.corrcoef(X.T)[:2, 2:]).max() < 4 / np.sqrt(N)


def test_bounds_of_many_body_models():
    theta = d.many_body_theta((4, 3, 2), 0.8)
    x = np.random.default_rng(0).normal(size=(100_000, 9)) * 3
    own = 0.8 * (0.5 * x**2 + 0.1 * x**4)
    for group in ((0, 1, 2, 3), (4, 5, 6), (7, 8)):
        assert np.all(own[:, group].sum(axis=1) + theta[group] * x[:, group].prod(axis=1) > 0)
    with pytest.raises(ValueError, match="sizes"):
        d.many_body(10, sizes=(5,))


def test_curved_and_skewed_follow_their_theta():
    x, share = quadrature(d.curved_theta(), 2, 9.0, 300)
    X = d.curved(N)
    for f in (lambda z: z[:, 1], lambda z: z[:, 0] ** 2 * z[:, 1], lambda z: z[:, 1] ** 2):
        assert share @ f(x) == pytest.approx(f(X).mean(), abs=4.5 * f(X).std() / np.sqrt(N))
    assert np.all(stats.skew(d.skewed(N)) * [-1, 1, -1, 1] > 0.1)


def test_gaussians():
    precision = d.paper_precision()
    assert np.all((precision - 3 * np.eye(10))[np.triu_indices(10, 1)] > 0)
    X, covariance = d.gaussian(N, precision), np.linalg.inv(precision)
    error = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / N)
    assert np.all(np.abs(X.T @ X / N - covariance) < 4.5 * error)
    theta = d.gaussian_theta(precision)
    assert (theta[3, 3], theta[2, 5]) == (1.5, precision[2, 5])
    regular = d.regular_precision(20, 3, 0.2, seed=4)
    assert np.all((regular == 0.2).sum(axis=1) == 3)
    assert np.linalg.eigvalsh(regular)[0] > 0
    diamond = np.linalg.inv(d.diamond_precision(0.4))
    np.testing.assert_allclose(diamond[0], [1, 0.4, 0.4, 0.32])
    assert d.diamond_precision()[0, 3] == 0


def test_butterflies_are_uncorrelated_and_dependent():
    X = d.butterfly(N, 2)
    assert np.abs(np.corrcoef(X.T) - np.eye(4)).max() < 4.5 * 3 / np.sqrt(N)
    assert np.corrcoef(X[:, 0] ** 2, X[:, 1] ** 2)[0, 1] > 0.2


def test_lattice_fields():
    assert len(d.phi4_neighbours((4, 6))) == 48
    theta = d.phi4_theta((4, 4), -0.5, 3.0)
    assert (theta[5, 5], theta[5, 5, 5, 5], theta[5, 6]) == (1.75, 0.125, -1.0)
    # without a coupling the field is Gaussian, its precision 2θ on the diagonal and θ beside it
    free = d.phi4_theta((4,), 1.0, 0.0)
    precision = np.array([[free.get(tuple(sorted((i, j))), 0.0) * (1 + (i == j)) for j in range(4)] for i in range(4)])
    X = d.phi4(N, (4,), 1.0, 0.0, sweeps=60)
    covariance = np.linalg.inv(precision)
    error = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / N)
    assert np.all(np.abs(X.T @ X / N - covariance) < 4.5 * error)
    x, share = quadrature(d.phi4_theta((4,), -1.0, 6.0), 4, 3.5, 32)
    X = d.phi4(N, (4,), sweeps=100)
    for f in (lambda z: z[:, 0] ** 2, lambda z: z[:, 0] ** 4, lambda z: z[:, 0] * z[:, 1], lambda z: z[:, 0] * z[:, 2]):
        assert share @ f(x) == pytest.approx(f(X).mean(), abs=4.5 * f(X).std() / np.sqrt(N))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: d.phi4(1, (3, 4)), "even"),
        (lambda: d.phi4(1, (4, 4), -1.0, 0.0), "no density"),
        (lambda: d.phi4(1, (4, 4), -1.0, -1.0), "no density"),
        (lambda: d.paper_pair(1, which=3), "which must be one of 1, 2"),
        (lambda: d.paper_1d(1, seed="a"), "seed must be"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_sachs():
    table = d.sachs(condition=True)
    assert table.shape == (7466, 12)
    assert sorted(table["condition"].unique()) == list(range(1, 10))
    assert table["PKA"].iloc[0] == pytest.approx(np.log10(414.0))
    assert (d.sachs().to_numpy() == 0).sum() == 1669  # at the instrument's floor of 1
    assert d.sachs().columns.tolist() == table.columns[:11].tolist()
