from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from isodus import MonomialBasis, PolynomialModel, sampling
from isodus.datasets import (
    diamond_gaussian,
    gaussian,
    gaussian_10,
    paper_1d,
    paper_4d,
    paper_pair,
    regular_gaussian,
)
from isodus.sampling import annealing, components, tree


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


def test_nodes_of_a_coarse_grid_leave_no_trace():
    """Nodes are 0.7 of a width apart; uniform draws within such cells would add 4 % to the variance."""
    model = PolynomialModel.from_dict({(0, 0): 0.5, (0,) * 4: 1e-9})
    n = 4_000_000
    x = model.sample(n, rng=0)[:, 0]
    (nodes,) = model._groups[0].grid.nodes
    error = np.sqrt(2 / n)
    assert (nodes[1] - nodes[0]) ** 2 / 12 > 40 * error  # the bias that this test would see
    assert abs(x.var() - 1) < 4 * error
    assert abs(stats.kurtosis(x)) < 4 * np.sqrt(24 / n)


def wells(p, height=1.0, coupling=0.5):
    """A chain of double wells, E = Σ h (x_i² − 1)² − c Σ x_i x_(i+1)."""
    theta = {(i, i): -2 * height for i in range(p)} | {(i,) * 4: height for i in range(p)}
    return PolynomialModel.from_dict(theta | {(i, i + 1): -coupling for i in range(p - 1)})


MODELS = {
    "pair": paper_pair(1),
    "wells": wells(4),
    "high wells": wells(3, 4.0, 2.0),
    "three bodies": PolynomialModel.from_dict(
        {(i,) * 4: 1.0 for i in range(3)} | {(0, 1, 2): 1.5, (0, 0, 1): 0.5, (1, 1, 2, 2): 0.8, (0,): 0.3}
    ),
    "four bodies": PolynomialModel.from_dict(
        {(i,) * 4: 1.0 for i in range(4)} | {(0, 1, 2, 3): 1.5, (0, 1): 0.5, (1, 2, 3): 0.4}
    ),
    "a loop": PolynomialModel.from_dict(
        {(i,) * 4: 0.5 for i in range(4)} | {(0, 1): 1.0, (1, 2): -1.0, (2, 3): 0.7, (0, 3): 0.9, (0, 0, 2, 2): -0.3}
    ),
    "degree six": PolynomialModel.from_dict({(0,) * 6: 1.0, (1,) * 6: 0.1, (0, 0, 1): 0.4, (0, 1, 1, 1): 0.3}),
}


def brute(model):
    """Gauss-Legendre nodes, not equally spaced, of every variable; probabilities of all their combinations; log Z."""
    p = model.basis.n_variables
    X = model.sample(2000, rng=0)
    middle, reach = (X.max(axis=0) + X.min(axis=0)) / 2, 0.8 * np.ptp(X, axis=0)
    u, w = np.polynomial.legendre.leggauss({1: 200, 2: 150, 3: 80, 4: 36}[p])
    axes = [m + r * u for m, r in zip(middle, reach, strict=True)]
    points = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
    density = np.exp(-model.energy(points)).reshape((len(u),) * p)
    for v, r in enumerate(reach):
        density *= np.expand_dims(r * w, [k for k in range(p) if k != v])
    return axes, density / density.sum(), np.log(density.sum())


def expected(axes, density, powers):
    """E[Π x_v^powers_v]."""
    for x, l in zip(axes, powers, strict=True):
        density = np.tensordot(x**l, density, 1)
    return float(density)


@pytest.mark.parametrize("name", MODELS)
def test_sums_and_samples_against_brute_force(name):
    model = MODELS[name]
    p, n = model.basis.n_variables, 200_000
    axes, density, log_z = brute(model)
    assert model.log_partition() == pytest.approx(log_z, abs=3e-7 * np.sqrt(p))

    # already on the grid, before they are drawn again, the bias of moments is below a tenth of the error at n = 1e6
    found = model._groups[0].grid
    single = tree.marginals(found.steps, found.nodes, found.messages)
    for v in range(p):
        marginal = density.sum(axis=tuple(k for k in range(p) if k != v))
        for l in range(1, 5):
            spread = np.sqrt(marginal @ axes[v] ** (2 * l))
            assert abs(single[v] @ found.nodes[v] ** l - marginal @ axes[v] ** l) < 1e-4 * spread

    X = model.sample(n, rng=1)
    for term in {*model.basis.terms, *[(i,) for i in range(p)], *[(i, i) for i in range(p)]}:
        values, exact = X[:, term].prod(axis=1), expected(axes, density, [term.count(v) for v in range(p)])
        assert abs(values.mean() - exact) < 4.5 * values.std() / np.sqrt(n), term
    assert all(len(np.unique(x)) == n for x in X.T)  # no ties


def moved(nodes, a, parts=32):
    """All values g_k + δ that a draw given coefficients a (s, n) can have, and their probabilities: (n, parts · m)."""
    h = nodes[1] - nodes[0]
    delta = ((np.arange(parts) + 0.5) / parts - 0.5) * h
    x = delta[:, None] + nodes
    energy = np.einsum("ln,ldk->ndk", a, np.stack([x ** (l + 1) for l in range(len(a))]))
    weights = np.exp(-(energy - energy.min(axis=(1, 2), keepdims=True)))
    weights /= weights.sum(axis=2, keepdims=True) * parts
    return x.ravel(), weights.reshape(a.shape[1], -1)


@pytest.mark.parametrize("name", ["pair", "two wells", "degree six"])
def test_the_bias_of_samples_is_below_a_hundredth_of_what_a_million_can_show(name):
    """The law of a sample, with no sample drawn: nodes of x1, then x0 given them, then x1 given x0."""
    model = MODELS.get(name) or wells(2, 2.0, 1.0)
    axes, density, _ = brute(model)
    found = model._groups[0].grid
    start = tree.marginals(found.steps, found.nodes, found.messages)[1]
    first = found.conditionals.coefficients(0, np.stack([np.zeros_like(found.nodes[1]), found.nodes[1]]))
    x0, given = moved(found.nodes[0], first)
    law0 = start @ given
    x1, given = moved(found.nodes[1], found.conditionals.coefficients(1, np.stack([x0, np.zeros_like(x0)])))
    joint = law0[:, None] * given
    for powers in [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (2, 1), (4, 0), (0, 4), (2, 2), (3, 1)]:
        exact = expected(axes, density, powers)
        spread = np.sqrt(expected(axes, density, [2 * l for l in powers]) - exact**2)
        assert abs(x0 ** powers[0] @ joint @ x1 ** powers[1] - exact) < 1e-5 * spread, powers


def transfer(m2, lam, size, periodic):
    """A φ⁴ chain by its transfer matrix on Gauss-Legendre nodes: log Z, ⟨φ²⟩ and ⟨φ_i φ_(i+1)⟩ in the middle."""
    u, w = np.polynomial.legendre.leggauss(200)
    x, w = 6 * u, 6 * w
    site = w * np.exp(-(m2 / 2 * x**2 + lam * x**4))
    bond = np.exp(-(np.subtract.outer(x, x) ** 2) / 2)
    T = np.sqrt(site)[:, None] * bond * np.sqrt(site)
    left = np.linalg.matrix_power(T, size // 2)
    if periodic:
        right = np.linalg.matrix_power(T, size - size // 2)
        Z = np.trace(left @ right)
        square = np.trace(left @ (x[:, None] ** 2 * right)) / Z
        neighbours = np.trace(np.linalg.matrix_power(T, size - 1) @ (x[:, None] * T * x)) / Z
        return np.log(Z), square, neighbours
    ends = np.sqrt(site)
    a, b = ends @ np.linalg.matrix_power(T, size // 2), np.linalg.matrix_power(T, size - 1 - size // 2) @ ends
    Z = a @ b
    one = ends @ np.linalg.matrix_power(T, size // 2 - 1)
    return np.log(Z), a @ (x**2 * b) / Z, (one * x) @ T @ (x * b) / Z


@pytest.mark.parametrize("periodic", [False, True])
def test_a_field_on_a_chain_against_its_transfer_matrix(periodic):
    m2, lam, size, n = -2.0, 0.5, 12, 100_000
    bonds = [*pairwise(range(size)), *([(0, size - 1)] if periodic else [])]
    theta = {(i, i): m2 / 2 + sum(i in bond for bond in bonds) / 2 for i in range(size)}
    model = PolynomialModel.from_dict(theta | {(i,) * 4: lam for i in range(size)} | dict.fromkeys(bonds, -1.0))
    log_z, square, neighbours = transfer(m2, lam, size, periodic)
    assert model.log_partition() == pytest.approx(log_z, abs=1e-6)
    X = model.sample(n, rng=2)
    i = size // 2
    for values, exact in ((X[:, i] ** 2, square), (X[:, i - 1] * X[:, i], neighbours)):
        assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(n)


@pytest.mark.parametrize("name", ["wells", "high wells", "four bodies"])
def test_marginals_by_kolmogorov_smirnov(name):
    model = MODELS[name]
    found = model._groups[0].grid
    X = model.sample(20_000, rng=5)
    single = tree.marginals(found.steps, found.nodes, found.messages)
    for v, x in enumerate(X.T):
        # sums over a grid are exact for all moments, so this Fourier sum of the grid's law is the marginal density
        fine = np.linspace(found.nodes[v][0], found.nodes[v][-1], 4001)
        h = found.nodes[v][1] - found.nodes[v][0]
        density = np.sinc((fine[:, None] - found.nodes[v]) / h) @ single[v]
        cdf = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2))
        assert stats.kstest(x, lambda t, f=fine, c=cdf: np.interp(t, f, c / c[-1])).pvalue > 1e-3


def test_the_density_integrates_to_one_in_the_units_of_the_data():
    basis = MonomialBasis(2, 4)
    theta = np.where(basis.degrees == 4, 0.2, 0.1) * np.where(basis.orders == 1, 3.0, 1.0)
    model = PolynomialModel(basis, theta, location=[50.0, -3.0], scale=[10.0, 0.2])
    x, y = np.linspace(-10, 110, 601), np.linspace(-4.2, -1.8, 601)
    points = np.stack([a.ravel() for a in np.meshgrid(x, y, indexing="ij")], axis=1)
    assert np.exp(model.logpdf(points)).sum() * (x[1] - x[0]) * (y[1] - y[0]) == pytest.approx(1, abs=1e-6)

    gauss = gaussian_10(1)
    X = gauss.sample(20, rng=0)
    known = stats.multivariate_normal(np.zeros(10), np.linalg.inv(gauss.precision())).logpdf(X)
    assert np.allclose(gauss.logpdf(X), known, rtol=1e-12)
    tilted = PolynomialModel.from_dict({(0,): -2.0, (0, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0})
    mean, covariance = np.linalg.solve(tilted.precision(), [2.0, 0.0]), np.linalg.inv(tilted.precision())
    known = stats.multivariate_normal(mean, covariance).logpdf(X[:, :2])
    assert np.allclose(tilted.logpdf(X[:, :2]), known, rtol=1e-12)
    both = paper_4d()  # two blocks
    pairs = paper_pair(1).logpdf(X[:, :2]) + paper_pair(2).logpdf(X[:, 2:4])
    assert np.allclose(both.logpdf(X[:, :4]), pairs, atol=1e-6)


def test_samples_do_not_depend_on_the_number_of_jobs():
    model = wells(3)
    X = model.sample(40_000, rng=3)
    assert np.array_equal(X, model.sample(40_000, rng=3, n_jobs=2))
    assert np.array_equal(X, wells(3).sample(40_000, rng=3))  # its grid was remembered, this one is found anew


def test_a_chain_of_many_variables():
    X = wells(300).sample(4000, rng=0)
    reference = wells(9).sample(100_000, rng=1)
    inner, near = X[:, 50:250], reference[:, 4]
    for f in (lambda x: x**2, lambda x: x**4):
        error = np.hypot(f(inner).std() / np.sqrt(4000 * 50), f(near).std() / np.sqrt(100_000))
        assert abs(f(inner).mean() - f(near).mean()) < 4 * error
    # correlations decay by the second largest eigenvalue over the largest
    u, w = np.polynomial.legendre.leggauss(200)
    site = 2.5 * w * np.exp(-(((2.5 * u) ** 2 - 1) ** 2))
    T = np.sqrt(site)[:, None] * np.exp(0.5 * np.multiply.outer(2.5 * u, 2.5 * u)) * np.sqrt(site)
    largest = np.linalg.eigvalsh(T)[-2:]
    products = [np.mean(inner[:, :-k] * inner[:, k:]) for k in (1, 2, 3)]
    assert products[2] / products[1] == pytest.approx(largest[0] / largest[1], abs=0.01)


def test_what_is_too_large_says_what_it_would_take():
    p = 12
    theta = {(i,) * 4: 1.0 for i in range(p)} | {(i, j): 0.1 for i in range(p) for j in range(i)}
    dense = PolynomialModel.from_dict(theta, names=[f"v{i}" for i in range(p)])
    with pytest.raises(sampling.NotExactError, match=r"v0, v1, .*12 variables.* cells: .* GB, where .* GB can be had"):
        dense.sample(10, method="exact")


def test_little_memory_is_not_exceeded(monkeypatch):
    monkeypatch.setattr("isodus.sampling.grid.available_memory", lambda: 100_000)
    with pytest.raises(sampling.NotExactError, match=r"0.0\d* GB, where 5e-05 GB can be had"):
        PolynomialModel.from_dict(MODELS["four bodies"].to_dict()).sample(10, method="exact")


def test_annealed_importance_sampling_against_exact_sums():
    model = wells(4)
    exact = model.log_partition()
    found = [
        annealing.log_partition(model.basis, model.theta, model.names, np.random.default_rng(seed)) for seed in range(8)
    ]
    values, errors = np.array(found).T
    assert np.all(errors < 0.03)
    assert np.all(np.abs(values - exact) < 4 * errors)
    assert abs(values.mean() - exact) < 4 * np.sqrt(np.mean(errors**2) / 8)
    assert 0.4 < values.std(ddof=1) / np.sqrt(np.mean(errors**2)) < 2  # the error bar is one


def test_a_dense_model_is_normalised_with_an_error_bar():
    p = 9
    theta = {(i,) * 4: 1.0 for i in range(p)} | {(i, j): 0.1 for i in range(p) for j in range(i)}
    dense = PolynomialModel.from_dict(theta | {(p, p, p): 0.5, (p,) * 4: 1.0, (p, p): 1.0})
    with pytest.warns(UserWarning, match="an estimate, by annealed importance sampling: .* ± "):
        value = dense.log_partition()
    again, error = dense.log_partition(return_error=True)
    assert again == value
    assert 0 < error < 0.05
    # second order in the couplings, about independent variables: log Z = p log z + Σ θ² v²/2 + …
    x = np.linspace(-3, 3, 2001)
    z, v = np.trapezoid(np.exp(-(x**4)), x), np.trapezoid(x**2 * np.exp(-(x**4)), x)
    variance = v / z
    coupling = 0.1 * (np.ones((p, p)) - np.eye(p))
    third = np.trace(np.linalg.matrix_power(coupling, 3)) / 6
    series = p * np.log(z) + 36 * (0.1 * variance) ** 2 / 2 - third * variance**3
    alone = PolynomialModel.from_dict({(0, 0, 0): 0.5, (0,) * 4: 1.0, (0, 0): 1.0}).log_partition()
    assert value == pytest.approx(series + alone, abs=4 * error + 0.005)
    with pytest.warns(UserWarning, match="annealed"):
        assert np.all(np.isfinite(dense.logpdf(np.zeros((3, p + 1)))))


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


@pytest.mark.parametrize(("A", "B"), [(100.0, 0.01), (1000.0, 0.05)])
def test_a_ridge_too_thin_for_the_memory_is_refused(A, B, monkeypatch):
    monkeypatch.setattr("isodus.sampling.grid.available_memory", lambda: 200_000_000)
    with pytest.raises(sampling.NotExactError, match="x1, x0, .* cells: .* GB, where 0.1 GB can be had"):
        ridge(A, B).sample(1000, rng=0, method="exact")


def test_any_units_can_be_sampled():
    far = PolynomialModel.from_dict({(0, 0): 1e-12, (0, 0, 0): 0.5e-18, (0, 0, 0, 0): 2e-24}).sample(1000, rng=0)
    assert np.allclose(far, 1e6 * paper_1d().sample(1000, rng=0), rtol=0, atol=1e-2)


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
        ({(0, 0): 1.0, (0, 1): 3.0, (1, 1): 1.0}, "energy falls without bound along x0 = .*, x1 = "),
        ({(0,) * 3: 1.0, (0, 0): 1.0}, "no probability distribution"),
        ({(0,) * 4: 1.0, (1,) * 4: 1.0, (0, 0, 1, 1): -3.0}, "no probability distribution"),
        ({(0, 0): 1.0, (0, 0, 0): 1e-7}, "falls without bound along x0 = -1·t"),
        ({(0, 0): 1.0, (0,) * 4: -1e-13}, "falls without bound along x0 = "),
        ({(0, 0, 1, 1): 1.0, (0,) * 4: 1.0}, "the energy is constant along x1 = 1·t"),
        ({(0,): -4e15, (0, 0): 6e10, (0,) * 3: -4e5, (0,) * 4: 1.0}, "the energy cancels"),
    ],
)
def test_what_is_no_distribution_is_refused(theta, message):
    with pytest.raises(ValueError, match=message):
        PolynomialModel.from_dict(theta).sample(10, rng=0)


def test_bad_input_is_refused():
    for n in (0, -3, 2.5, True):
        with pytest.raises(ValueError, match="n must be a positive integer"):
            paper_1d().sample(n)
    for rng in ("abc", 1.5, -1):
        with pytest.raises(ValueError, match=r"rng must be what numpy.random.default_rng takes"):
            paper_1d().sample(3, rng=rng)
    with pytest.raises(ValueError, match="constant along x1"):
        PolynomialModel.from_dict({(0, 0): 1.0}, n_variables=2).sample(5)
    with pytest.raises(ValueError, match="theta holds a value that is not finite, at position 0"):
        PolynomialModel.from_dict({(0, 0): np.nan})
    falls = PolynomialModel.from_dict({(0,) * 4: 1.0, (1,) * 4: 1.0, (0, 0, 1, 1): -3.0}, names=["ph", "temp"])
    for call in (falls.sample, lambda n: falls.log_partition(), lambda n: falls.logpdf([[0.0, 0.0]])):
        with pytest.raises(ValueError, match=r"no probability distribution: .* along ph = .*, temp = "):
            call(10)


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


@pytest.mark.parametrize("support", [None, ["positive", "spin", (0.0, 1.0), (0.0, 2.0)]])
def test_few_draws_are_those_of_the_whole_tables(support, monkeypatch):
    pairs = {(0, 1): 0.5, (1, 2): 0.3, (0, 2): -0.4, (2, 3): 0.3, (0, 3): 0.2, (1, 3): -0.1}
    quartic = {(i,) * 4: 0.3 for i in range(4)} if support is None else {(0, 0): 0.3}
    model = PolynomialModel.from_dict({(i,): 0.4 for i in range(4)} | pairs | quartic, support=support)
    (group,) = model._groups
    found, seen = group.grid, []
    few = tree._draw_few
    monkeypatch.setattr(tree, "_draw_few", lambda *some: (seen.append(some[0].variable), few(*some)))
    by_rows = tree.draw(found.steps, found.nodes, found.messages, 40, np.random.default_rng(0))
    assert len(seen) >= 2
    monkeypatch.setattr(tree, "_draw_few", lambda step, steps, *rest: tree._draw_many(step, *rest))
    whole = tree.draw(found.steps, found.nodes, found.messages, 40, np.random.default_rng(0))
    assert np.array_equal(by_rows, whole)
