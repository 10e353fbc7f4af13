"""Gaussians in closed form, single variables by quantiles, and models that have no density."""

import numpy as np
import pytest
from given_models import distance, energy, on_axes, on_whole_lines

from isodus.axes import Line, Values, WholeLine
from isodus.sampling import NoDensity, log_partition, sample


def gaussian_model(p, seed, degree=2):
    """Terms, θ, mean and covariance of x, with units of y of their own; and log Z in y."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((p, 2 * p))
    P, b = B @ B.T / (2 * p) + 0.2 * np.eye(p), rng.standard_normal(p)
    axes = [WholeLine(rng.normal(), np.exp(rng.normal()), degree) for _ in range(p)]
    # in powers of y, so a key's coefficient is θ itself
    theta = {(i,): b[i] for i in range(p)} | {(i, i): P[i, i] / 2 for i in range(p)}
    theta |= {(i, j): P[i, j] for i in range(p) for j in range(i + 1, p)}
    terms, _ = on_axes(axes, theta)
    assert terms.identity
    location, scale = np.array([axis.gaussian_moments() for axis in axes]).T
    covariance = np.linalg.inv(P)
    log_Z = 0.5 * (p * np.log(2 * np.pi) - np.linalg.slogdet(P)[1] + b @ covariance @ b)
    values = np.array([theta[key] for key in terms.keys])
    return terms, values, location - scale * (covariance @ b), covariance * np.outer(scale, scale), log_Z


def test_gaussian():
    terms, theta, mean, covariance, log_Z = gaussian_model(12, 0)
    assert log_partition(terms, theta, np.random.default_rng(0)).value == pytest.approx(log_Z, abs=1e-10)
    n = 40_000
    draws = sample(terms, theta, n, np.random.default_rng(1))
    assert draws.method == "exact"
    sd = np.sqrt(np.diag(covariance))
    z = (draws.X - mean) / sd
    R = covariance / np.outer(sd, sd)
    assert np.abs(z.mean(axis=0)).max() < 4 / np.sqrt(n)
    assert np.abs(z.T @ z / n - R).max() < 5 * np.sqrt(2 / n)
    assert np.abs(np.mean(z**4, axis=0) - 3).max() < 5 * np.sqrt(96 / n)


def test_gaussian_on_windows_is_the_same():
    # the same Gaussian of two variables, summed out on nodes, as axes of degree 4 have no closed form
    terms, theta, _, covariance, log_Z = gaussian_model(2, 3)
    axes = [WholeLine(axis.location, axis.scale, 4) for axis in terms.axes]
    more = {(i,) * power: value for i in range(2) for power, value in ((3, 0.0), (4, 1e-9))}
    wide, more = on_axes(axes, dict(zip(terms.keys, theta, strict=True)) | more)
    assert log_partition(wide, more, np.random.default_rng(0)).value == pytest.approx(log_Z, abs=1e-6)
    X = sample(wide, more, 20_000, np.random.default_rng(2)).X
    sd = np.sqrt(np.diag(covariance))
    assert np.abs(np.cov(X.T) - covariance).max() < 5 * np.sqrt(2 / 20_000) * sd.max() ** 2


def test_a_large_gaussian():
    p = 800
    theta = {(i, i): 1.0 for i in range(p)} | {(i, i + 1): -0.9 for i in range(p - 1)}
    X = sample(*on_whole_lines(theta), 500, np.random.default_rng(0)).X
    P = 2 * np.eye(p) - 0.9 * (np.eye(p, k=1) + np.eye(p, k=-1))
    energy_of_rows = np.einsum("ni,ni->n", X @ P, X)  # χ² of p
    assert abs(energy_of_rows.mean() - p) < 4 * np.sqrt(2 * p / 500)


def test_single_variables():
    line = Line.fit(np.random.default_rng(0).standard_normal(300), 4)
    theta = {(0,): 0.1, (0, 0): -0.4, (0,) * 3: 0.05, (0,) * 4: 0.3, (1,): 0.4}
    terms, values = on_axes([line, Values.fit(np.array([0.0, 1.0, 4.0]), 1)], theta)
    draws = sample(terms, values, 10_000, np.random.default_rng(1))
    a = np.array([[0.1, -0.4, 0.05, 0.3]])
    grid = np.linspace(-30, 30, 600_001)
    mass = np.exp(line.log_base(grid) - line.functions(grid) @ a[0])
    assert distance(draws.X[:, 0], grid, mass) < 1.95
    assert draws.method == "exact"
    phi = terms.axes[1].functions(np.array([0.0, 1.0, 4.0]))[:, 0]
    share = np.exp(-0.4 * phi) / np.exp(-0.4 * phi).sum()
    assert [np.mean(draws.X[:, 1] == x) for x in (0, 1, 4)] == pytest.approx(share, abs=0.02)
    log_Z = np.log(mass.sum() * (grid[1] - grid[0]))
    log_Z += np.log(np.exp(-0.4 * phi).sum())
    assert log_partition(terms, values, np.random.default_rng(0)).value == pytest.approx(log_Z, abs=1e-7)


def test_variables_without_terms():
    terms, theta = on_axes([Values.fit(np.array([0.0, 1.0]), 1)] * 3, {(0,): 0.5, (0, 1): 0.0, (1,): 0.0})
    X = sample(terms, theta, 4000, np.random.default_rng(0)).X
    assert np.abs(X[:, 1:].mean(axis=0) - 0.5).max() < 0.04
    first = np.exp(-0.5 * terms.axes[0].functions(np.array([0.0, 1.0]))[:, 0])
    expected = np.log(first.sum()) + 2 * np.log(2)
    assert log_partition(terms, theta, np.random.default_rng(0)).value == pytest.approx(expected)


@pytest.mark.parametrize("power", [4, 6, 8])
def test_far_and_narrow_polynomials_have_windows(power):
    # own terms alone would put the mass elsewhere: the coupling moves it
    theta = {(0,) * power: 1e-3, (1,) * power: 1e-3, (0, 1): -3.0, (0,): 5.0}
    grid = np.linspace(-45, 45, 1801)
    E = energy(theta, grid[:, None], grid[None])
    log_Z = np.log(np.exp(-(E - E.min())).sum()) - E.min() + 2 * np.log(grid[1] - grid[0])
    assert log_partition(*on_whole_lines(theta), np.random.default_rng(0)).value == pytest.approx(log_Z, abs=1e-8)


NONE = [
    {(0,) * 3: 1.0},
    {(0,) * 4: -1.0},
    {(0, 0): -0.5},
    {(0, 0): 0.5, (1, 1): 0.5, (0, 1): 1.2},  # not positive definite
    {(0, 0): 0.5, (1, 1): 0.5, (0, 0, 1): 0.1},  # odd
    {(0,) * 4: 1.0, (1,) * 4: 1.0, (0, 0, 1, 1): -2.2},
    {(0,) * 4: 1.0, (1, 1): 1.0, (0, 0, 1): 3.0},  # x⁴ + 3x²y + y² is negative at y = −3x²/2
    {(0,) * 4: 1.0, (0, 1): 1.0},
    {(0,) * 4: 1.0, (1,) * 4: 1.0, (0, 1): 0.1, (2,) * 3: 1.0, (2, 2): 1.0},
]


@pytest.mark.parametrize("theta", NONE)
def test_no_density(theta):
    terms, values = on_whole_lines(theta)
    assert log_partition(terms, values, np.random.default_rng(0)).value == np.inf
    with pytest.raises(NoDensity, match="no density"):
        sample(terms, values, 10, np.random.default_rng(0))


def test_a_density_by_its_coupling():
    # x⁴ + 2x²y + 1.5y² is positive although x²y alone is odd: along each direction y² or x⁴ decides
    theta = {(0,) * 4: 1.0, (1, 1): 1.5, (0, 0, 1): 2.0}
    x, y = np.linspace(-4, 4, 801)[:, None], np.linspace(-8, 8, 1601)[None]
    log_Z = np.log(np.exp(-(x**4 + 1.5 * y**2 + 2 * x * x * y)).sum() * 1e-4)
    assert log_partition(*on_whole_lines(theta), np.random.default_rng(0)).value == pytest.approx(log_Z, abs=1e-8)
