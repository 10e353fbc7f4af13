import numpy as np
import pytest
from scipy import stats

from isodus import MonomialBasis, PolynomialModel
from isodus.datasets import (
    diamond_gaussian,
    gaussian,
    gaussian_10,
    paper_1d,
    paper_4d,
    paper_pair,
    regular_gaussian,
)
from isodus.sampling import components, grid


def moments_by_quadrature(model, half_width, powers):
    """E[x^i y^j] by the trapezoid rule, spectrally accurate for these densities."""
    x = np.linspace(-half_width, half_width, 601)
    axes = np.meshgrid(*[x] * model.basis.n_variables, indexing="ij")
    points = np.stack([a.ravel() for a in axes], axis=1)
    density = np.exp(-model.energy(points))
    return [float(density @ np.prod(points ** np.array(p), axis=1) / density.sum()) for p in powers]


@pytest.mark.parametrize(
    ("model", "powers"),
    [
        (paper_1d(), [(1,), (2,), (3,), (4,)]),
        (paper_pair(1), [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 1), (2, 2), (0, 4)]),
        (paper_pair(2), [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 1), (2, 2), (0, 4)]),
        (PolynomialModel.from_dict({(0, 0): -8.0, (0,) * 4: 4.0}), [(1,), (2,), (4,)]),
        (
            PolynomialModel.from_dict({(0, 0): -2.0, (0,) * 4: 1.0, (1, 1): 3.0, (0, 1): 1.0, (1,) * 4: 0.5}),
            [(1, 0), (2, 0), (1, 1), (0, 2)],
        ),
    ],
)
def test_moments_against_quadrature(model, powers):
    n = 200_000
    X = model.sample(n, rng=0)
    for p, expected in zip(powers, moments_by_quadrature(model, 4.0, powers), strict=True):
        values = np.prod(X ** np.array(p), axis=1)
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(n)


def test_distribution_within_a_coarse_grid_is_unbiased():
    """With cells as wide as 0.3σ, uniform draws within them would add 0.7% to the variance."""
    basis, theta = MonomialBasis(1, terms=[(0, 0)]), np.array([0.5])
    n, points = 4_000_000, 64
    x = grid.draw(basis, theta, n, np.random.default_rng(0), points)[:, 0]
    h = 2 * np.sqrt(2 * grid._DEPTH) / points
    error = np.sqrt(2 / n)
    assert h**2 / 12 > 8 * error  # the bias that this test would see
    assert abs(x.var() - 1) < 4 * error
    assert abs(stats.kurtosis(x)) < 4 * np.sqrt(24 / n)


def test_marginal_by_kolmogorov_smirnov():
    x = paper_1d().sample(100_000, rng=3)[:, 0]
    t = np.linspace(-3, 3, 20001)
    cdf = np.cumsum(np.exp(-paper_1d().energy(t[:, None])))
    assert stats.kstest(x, lambda v: np.interp(v, t, cdf / cdf[-1])).pvalue > 0.01
    assert len(np.unique(x)) == len(x)  # no ties


def test_separated_narrow_wells_are_both_found():
    # 1e5 (x − 1)² (x + 2)²: two wells of equal depth, 3 apart, widths 7e-4
    coefficients = 1e5 * np.array([-4, -3, 2, 1])
    model = PolynomialModel.from_dict({(0,) * (k + 1): c for k, c in enumerate(coefficients)})
    x = model.sample(20_000, rng=0)[:, 0]
    assert np.all((np.abs(x - 1) < 0.01) | (np.abs(x + 2) < 0.01))
    assert abs(np.mean(x > 0) - 0.5) < 4 * 0.5 / np.sqrt(20_000)


def ridge(A, B):
    """x ~ N(0, 1/2B), y | x ~ N(x², 1/2A): a curved ridge, thin for large A and long for small B."""
    return PolynomialModel.from_dict({(1, 1): A, (0, 0, 1): -2 * A, (0, 0, 0, 0): A, (0, 0): B})


@pytest.mark.parametrize(("A", "B"), [(1.0, 0.5), (10.0, 0.5), (1.0, 0.1), (100.0, 0.5)])
def test_a_curved_ridge_is_not_cut_off(A, B):
    X = ridge(A, B).sample(100_000, rng=0)
    for values, expected in ((X[:, 0] ** 2, 1 / (2 * B)), ((X[:, 1] - X[:, 0] ** 2) ** 2, 1 / (2 * A))):
        assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(len(values))


@pytest.mark.parametrize(("A", "B"), [(100.0, 0.01), (10.0, 0.001), (1000.0, 0.05)])
def test_a_ridge_too_thin_for_the_grid_is_refused(A, B):
    with pytest.raises(ValueError, match="features too narrow"):
        ridge(A, B).sample(1000, rng=0)


def test_any_units_can_be_sampled():
    far = PolynomialModel.from_dict({(0, 0): 1e-12, (0, 0, 0): 0.5e-18, (0, 0, 0, 0): 2e-24}).sample(1000, rng=0)
    assert np.allclose(far, 1e6 * paper_1d().sample(1000, rng=0), rtol=1e-9)


def test_location_and_scale_are_applied():
    basis = MonomialBasis(1, 4)
    X = PolynomialModel(basis, [0.0, 0.5, 0.0, 0.1], [1e6], [3.0]).sample(50_000, rng=1)
    Y = PolynomialModel(basis, [0.0, 0.5, 0.0, 0.1]).sample(50_000, rng=1)
    assert np.allclose(X, 1e6 + 3.0 * Y, rtol=1e-12)


def test_independent_blocks_are_found_and_gaussians_are_exact():
    model = paper_4d()
    groups = components(model.basis, model.theta)
    assert [g.tolist() for g in groups] == [[0, 1], [2, 3]]
    X = model.sample(100_000, rng=0)
    correlation = np.corrcoef(X.T)[:2, 2:]
    assert np.all(np.abs(correlation) < 4 / np.sqrt(100_000))

    truth = gaussian_10(0)
    X = truth.sample(200_000, rng=0)
    covariance = np.linalg.inv(truth.precision())
    error = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / len(X))
    assert np.all(np.abs(np.cov(X.T) - covariance) < 5 * error)


def test_a_gaussian_with_a_mean():
    model = PolynomialModel.from_dict({(0,): -2.0, (0, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0})
    X = model.sample(100_000, rng=0)
    mean = np.linalg.solve(model.precision(), [2.0, 0.0])
    assert np.all(np.abs(X.mean(axis=0) - mean) < 4 * X.std(axis=0) / np.sqrt(len(X)))


def test_seeds():
    model = paper_pair(1)
    assert np.array_equal(model.sample(10, rng=5), model.sample(10, rng=np.random.default_rng(5)))
    assert not np.array_equal(model.sample(10, rng=5), model.sample(10, rng=6))


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ({(0, 0): -1.0}, "no probability distribution"),
        ({(0, 0): 1.0, (0, 1): 3.0, (1, 1): 1.0}, "eigenvalue"),
        ({(0,) * 3: 1.0, (0, 0): 1.0}, "no probability distribution"),
        ({(0,) * 4: 1.0, (1,) * 4: 1.0, (0, 0, 1, 1): -3.0}, "no probability distribution"),
        ({(0, 0): 1.0, (0, 0, 0): 1e-7}, "along x0 its energy falls as 1e-07·x0.3"),
        ({(0, 0): 1.0, (0,) * 4: -1e-13}, "along x0 its energy falls"),
        ({(0, 0, 1, 1): 1.0, (0,) * 4: 1.0}, "along x1 its energy has no power of its own"),
        ({(0,): -4e15, (0, 0): 6e10, (0,) * 3: -4e5, (0,) * 4: 1.0}, "the energy cancels"),
    ],
)
def test_what_is_no_distribution_is_refused(theta, message):
    with pytest.raises(ValueError, match=message):
        PolynomialModel.from_dict(theta).sample(10, rng=0)


def test_larger_groups_and_bad_sizes_are_refused():
    model = PolynomialModel.from_dict({(i,) * 4: 1.0 for i in range(3)} | {(0, 1): 0.5, (1, 2): 0.5})
    with pytest.raises(NotImplementedError, match="x0, x1, x2 interact"):
        model.sample(10)
    for n in (0, -3, 2.5, True):
        with pytest.raises(ValueError, match="n must be a positive integer"):
            paper_1d().sample(n)
    with pytest.raises(ValueError, match="no term contains x1"):
        PolynomialModel.from_dict({(0, 0): 1.0}, n_variables=2).sample(5)


def test_models_of_the_paper_have_the_stated_parameters():
    four = paper_4d().to_dict()
    assert len(four) == 24
    assert four[0, 1, 1, 1] == 0.5  # key 1222
    assert four[2, 2, 3] == 0.5  # key 334
    assert four[2, 3, 3, 3] == 0.25  # key 3444
    assert paper_1d().to_dict() == {(0, 0): 1.0, (0, 0, 0): 0.5, (0, 0, 0, 0): 2.0}
    precision = gaussian_10(3).precision()
    off = precision[~np.eye(10, dtype=bool)]
    assert np.allclose(np.diag(precision), 3)
    assert off.min() > 0
    assert off.max() < 1
    regular = regular_gaussian(20, rng=1).precision()
    assert np.all(np.count_nonzero(regular - np.eye(20), axis=0) == 3)
    assert set(np.unique(regular)) == {0.0, 0.25, 1.0}
    covariance = np.linalg.inv(diamond_gaussian(0.55).precision())
    assert np.allclose(np.diag(covariance), 1)
    assert covariance[1, 2] == pytest.approx(0, abs=1e-12)
    assert covariance[0, 3] == pytest.approx(2 * 0.55**2)
    assert diamond_gaussian().precision()[0, 3] == 0
    for make in (
        lambda: gaussian([[1.0, 2.0], [2.0, 1.0]]),
        lambda: diamond_gaussian(0.8),
        lambda: paper_pair(3),
    ):
        with pytest.raises(ValueError, match="must"):
            make()
