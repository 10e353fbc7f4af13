"""Exact draws and log Z on few variables and trees, against enumeration, transfer matrices and sums on fine grids."""

import itertools

import numpy as np
import pytest
from given_models import SEPARATED, WELLS, chain, distance, log_integral, on_axes, on_grid, on_whole_lines
from scipy.special import i0, i0e, i1

from isodus.axes import Bounded, Circle, HalfLine, Interval, Line, Values
from isodus.sampling import log_partition, sample
from isodus.sampling.elimination import eliminate, pick_rows
from isodus.sampling.graph import interactions

SPIN = Values.fit(np.array([-1.0, 1.0]), 1, values=[-1.0, 1.0])


def spins(p, keys, seed):
    """A model of spins with random coefficients: terms, θ, all states and their probabilities, log Z."""
    rng = np.random.default_rng(seed)
    own = [(i,) for i in range(p)]
    lower = sorted({pair for key in keys for k in range(2, len(key)) for pair in itertools.combinations(key, k)})
    theta = {key: rng.normal(scale=0.6) for key in [*own, *sorted(set(lower) | set(keys))]}
    states = np.array(list(itertools.product([-1.0, 1.0], repeat=p)))
    exponent = -sum(value * np.prod(states[:, key], axis=1) for key, value in theta.items())
    return *on_axes([SPIN] * p, theta), states, np.exp(exponent), np.log(np.exp(exponent).sum())


@pytest.mark.parametrize(
    ("p", "keys"),
    [
        (4, [(0, 1), (1, 2), (2, 3), (0, 3)]),
        (5, [(0, 1, 2), (2, 3), (3, 4)]),
        (10, list(itertools.combinations(range(10), 2))),
        (6, [(0, 1), (2, 3)]),  # parts that are independent, and two variables alone
    ],
)
def test_spins_are_enumerated(p, keys):
    terms, theta, states, weight, log_Z = spins(p, keys, seed=p)
    found = log_partition(terms, theta, np.random.default_rng(0))
    assert found.method == "exact"
    assert found.stderr == 0
    assert found.value == pytest.approx(log_Z, abs=1e-12)
    draws = sample(terms, theta, 20_000, np.random.default_rng(1))
    assert draws.method == "exact"
    assert draws.effective is None
    assert set(np.unique(draws.X)) <= {-1.0, 1.0}
    share = weight / weight.sum()
    mean, second = share @ states, states.T @ (share[:, None] * states)
    assert np.abs(draws.X.mean(axis=0) - mean).max() < 5 / np.sqrt(20_000)
    assert np.abs(draws.X.T @ draws.X / 20_000 - second).max() < 5 / np.sqrt(20_000)


def test_frequencies_of_all_states():
    terms, theta, _, weight, _ = spins(5, [(0, 1, 2), (2, 3), (3, 4), (0, 4)], seed=3)
    X, share = sample(terms, theta, 50_000, np.random.default_rng(1)).X, weight / weight.sum()
    number = ((X > 0) @ 2 ** np.arange(4, -1, -1)).astype(int)
    count = np.bincount(number, minlength=32)
    assert np.sum((count - 50_000 * share) ** 2 / (50_000 * share)) < 62.5  # χ² of 31: p = .0007


def test_values_of_several_levels():
    axis = Values.fit(np.array([0.0, 1.0, 2.0, 5.0]), 3)
    theta = {(0,): 0.3, (0, 0): -0.2, (1,): 0.1, (0, 1): 0.5, (0, 0, 1): 0.4}
    terms, values = on_axes([axis, axis], theta)
    phi = axis.functions(axis.values)
    E = 0
    for factors, value in zip(terms.products, values, strict=True):
        table = value * np.ones((4, 4))
        for i, l in factors:
            table *= phi[:, l][:, None] if i == 0 else phi[:, l]
        E = E + table
    assert log_partition(terms, values, np.random.default_rng(0)).value == pytest.approx(np.log(np.exp(-E).sum()))
    X = sample(terms, values, 30_000, np.random.default_rng(2)).X
    share = np.exp(-E) / np.exp(-E).sum()
    for i, x in enumerate(axis.values):
        for j, y in enumerate(axis.values):
            p = share[i, j]
            assert abs(np.mean((X[:, 0] == x) & (X[:, 1] == y)) - p) < 4.5 * np.sqrt(p * (1 - p) / 30_000)


@pytest.mark.parametrize(
    "theta",
    [
        WELLS,
        {(0, 0): 0.5, (1, 1): 0.5, (2, 2): 0.5, **{(i,) * 4: 0.25 for i in range(3)}, (0, 1, 2): 0.8, (0, 1): 0.3},
        {(0, 0): 1.0, (0, 0, 0): 0.5, (0,) * 4: 2.0, (0, 1): 0.4, (0, 0, 1): 0.3, (0, 0, 1, 1): 0.3, (1,) * 4: 1.0},
        {(0,) * 4: 1.0, (1,) * 4: 0.02, (0, 1): 1.0, (1,): -1.0},  # scales far apart
    ],
)
def test_log_partition_of_polynomials(theta):
    p = 1 + max(max(key) for key in theta)
    found = log_partition(*on_whole_lines(theta), np.random.default_rng(0))
    assert found.method == "exact"
    assert found.value == pytest.approx(log_integral(theta, p, *((9.0, 361) if p == 2 else (5.5, 141))), abs=1e-8)


def test_three_variables_with_a_product_of_three():
    theta = {(i, i): 0.5 for i in range(3)} | {(i,) * 4: 0.25 for i in range(3)} | {(0, 1, 2): 0.8, (0, 1): 0.3}
    draws = sample(*on_whole_lines(theta), 20_000, np.random.default_rng(3))
    assert draws.method == "exact"
    grid, density = on_grid(theta, 3, 5.0, 161)
    share = density / density.sum()
    x, y, z = np.meshgrid(grid, grid, grid, indexing="ij", sparse=True)
    for f in (lambda x, y, z: x * y * z, lambda x, y, z: x * y, lambda x, y, z: x * x * y * y):
        mean = np.sum(share * f(x, y, z))
        sd = np.sqrt(np.sum(share * f(x, y, z) ** 2) - mean**2)
        assert abs(f(*draws.X.T).mean() - mean) < 4 * sd / np.sqrt(20_000)
    for i in range(3):
        assert distance(draws.X[:, i], grid, share.sum(axis=tuple(j for j in range(3) if j != i))) < 1.95


@pytest.mark.parametrize(("theta", "p"), [(WELLS, 2), (SEPARATED, 4)])
def test_wells(theta, p):
    draws = sample(*on_whole_lines(theta), 20_000, np.random.default_rng(4))
    assert draws.method == "exact"
    grid, density = on_grid(theta, p, 2.6, 53)
    for i in range(p):
        mass = density.sum(axis=tuple(j for j in range(p) if j != i))
        share = (mass[grid > 0].sum() + mass[np.abs(grid) < 1e-9].sum() / 2) / mass.sum()
        assert abs(np.mean(draws.X[:, i] > 0) - share) < 4 * np.sqrt(share * (1 - share) / 20_000)
    signs = np.sign(draws.X[:, 0] * draws.X[:, 1]).mean()
    pair = density.sum(axis=tuple(range(2, p)))
    assert abs(signs - (np.sign(grid[:, None] * grid) * pair).sum() / pair.sum()) < 4 / np.sqrt(20_000)


def test_chain_by_transfer_matrix():
    p, theta = 40, chain(40)
    terms, values = on_whole_lines(theta)
    grid = np.linspace(-4.5, 4.5, 181)
    step, own = grid[1] - grid[0], np.exp(-(grid**2) - 0.25 * grid**4)
    T = np.exp(np.outer(grid, grid))
    left, scale = [own], 0.0
    for _ in range(p - 1):
        message = own * (T @ left[-1]) * step
        scale += np.log(message.sum())
        left.append(message / message.sum())
    log_Z = scale + np.log(left[-1].sum() * step)
    assert log_partition(terms, values, np.random.default_rng(0)).value == pytest.approx(log_Z, abs=1e-8)
    X = sample(terms, values, 20_000, np.random.default_rng(5)).X
    for i in (0, 7, 20, 39):
        assert distance(X[:, i], grid, left[i] * left[p - 1 - i] / own) < 1.95
    pair = left[19][:, None] * T * left[19]
    pair /= pair.sum()
    mean = grid @ pair @ grid
    sd = np.sqrt((grid**2) @ pair @ (grid**2) - mean**2)
    assert abs(np.mean(X[:, 19] * X[:, 20]) - mean) < 4 * sd / np.sqrt(20_000)


@pytest.mark.parametrize("kappa", [0.5, 3.0, 40.0])
def test_von_mises_pair(kappa):
    # −κ cos(x − y) = −κ (cos x cos y + sin x sin y), and functions are √2 cos, √2 sin
    terms, theta = on_axes([Circle(1)] * 2, {(0, 1): -kappa / 2, (0, 0, 1, 1): -kappa / 2})
    log_Z = 2 * np.log(2 * np.pi) + np.log(i0e(kappa)) + kappa
    assert log_partition(terms, theta, np.random.default_rng(0)).value == pytest.approx(log_Z, abs=1e-8)
    X = sample(terms, theta, 4_000, np.random.default_rng(6)).X
    ratio = i1(kappa) / i0(kappa)
    second = 1 - ratio / kappa  # E cos²
    assert abs(np.cos(X[:, 0] - X[:, 1]).mean() - ratio) < 4 * np.sqrt((second - ratio**2) / 4_000)
    for x in X.T:
        assert abs(np.exp(1j * x).mean()) < 4 / np.sqrt(4_000)
        assert len(np.unique(x)) == 4_000


def integrate(axis, f):
    """∫ f(x) q(x) dx by a composite rule of its own, far into the tails."""
    if not axis.continuous:
        x = axis.nodes(64).places
        return np.sum(f(x))
    if axis.kind == "circle":
        x = np.linspace(0, 2 * np.pi, 400, endpoint=False)
        return np.sum(f(x), axis=-1) * (x[1] - x[0])
    ends = [axis.location + axis.scale * y for y in (axis.low, axis.high)]
    reach = 40 * axis.tail * axis.scale
    edges = np.linspace(*ends, 41)
    if axis.tails[0]:
        edges = np.concatenate([ends[0] - reach * np.linspace(1, 0, 30, endpoint=False), edges])
    if axis.tails[1]:
        edges = np.concatenate([edges, ends[1] + reach * np.linspace(0, 1, 31)[1:]])
    s, w = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half * (s + 1)).ravel()
    return f(x) @ ((half * w).ravel() * np.exp(axis.log_base(x)))


def mixed_model():
    rng = np.random.default_rng(0)
    axes = [Line.fit(rng.standard_normal(500), 2), SPIN, HalfLine.fit(rng.exponential(size=500), 2)]
    return axes, {(0,): 0.1, (0, 0): 0.4, (1,): 0.2, (0, 1): 0.5, (2,): 0.1, (0, 2): 0.3, (2, 2): 0.2, (1, 2): -0.4}


def test_mixed_axes_with_tails():
    axes, theta = mixed_model()
    terms, values = on_axes(axes, theta)
    line, _, half = axes

    def inner(x, s):
        p = line.functions(np.atleast_1d(x))

        def f(z):
            q = half.functions(z)
            t = theta
            E = t[0,] * p[:, :1] + t[0, 0] * p[:, 1:] + t[1,] * s + t[0, 1] * s * p[:, :1] + t[2,] * q[:, 0]
            E = E + t[0, 2] * p[:, :1] * q[:, 0] + t[2, 2] * q[:, 1] + t[1, 2] * s * q[:, 0]
            return np.exp(-E)

        return integrate(half, f)

    def total(g):
        return sum(g(s) * integrate(line, lambda x, s=s: inner(x, s)) for s in (-1.0, 1.0))

    Z = total(lambda s: 1.0)
    assert log_partition(terms, values, np.random.default_rng(0)).value == pytest.approx(np.log(Z), abs=1e-8)
    draws = sample(terms, values, 20_000, np.random.default_rng(7))
    assert draws.method == "exact"
    mean = total(lambda s: s) / Z
    assert abs(draws.X[:, 1].mean() - mean) < 4 * np.sqrt((1 - mean**2) / 20_000)
    moment = sum(integrate(line, lambda x, s=s: x * inner(x, s)) for s in (-1.0, 1.0)) / Z
    square = sum(integrate(line, lambda x, s=s: x * x * inner(x, s)) for s in (-1.0, 1.0)) / Z
    assert abs(draws.X[:, 0].mean() - moment) < 4 * np.sqrt((square - moment**2) / 20_000)


def test_mass_in_tails():
    # a line whose mass is mostly beyond its window
    axis = Line.fit(np.random.default_rng(0).standard_normal(500), 2)
    terms, values = on_axes([axis, axis], {(0, 0): -0.6, (0,): 0.1, (1,): 0.0, (0, 1): 0.6, (1, 1): 0.3})
    phi = axis.functions

    def inner(x):
        p = phi(x)

        def f(y):
            q = phi(y)
            return np.exp(0.6 * p[:, 1:] - 0.1 * p[:, :1] - 0.6 * p[:, :1] * q[:, 0] - 0.3 * q[:, 1])

        return integrate(axis, f)

    Z = integrate(axis, inner)
    assert log_partition(terms, values, np.random.default_rng(0)).value == pytest.approx(np.log(Z), abs=1e-8)
    X = sample(terms, values, 20_000, np.random.default_rng(8)).X
    end = axis.location + axis.scale * axis.low
    share = integrate(axis, lambda x: inner(x) * (x < end)) / Z
    assert 0.1 < share < 0.9
    assert abs(np.mean(X[:, 0] < end) - share) < 4 * np.sqrt(share * (1 - share) / 20_000)


def test_near_copies_take_more_nodes():
    # x1 is x0 with a deviation of .1: 64 nodes do not see its conditional
    theta = {(0, 0): 0.5 + 50.0, (0,) * 4: 0.01, (0, 1): -100.0, (1, 1): 50.0}
    terms, values = on_whole_lines(theta)
    draws = sample(terms, values, 20_000, np.random.default_rng(9))
    assert draws.method == "exact"
    assert np.std(draws.X[:, 1] - draws.X[:, 0]) == pytest.approx(0.1, rel=0.03)
    grid = np.linspace(-6, 6, 2001)
    mass = np.exp(-0.5 * grid**2 - 0.01 * grid**4)
    assert distance(draws.X[:, 0], grid, mass) < 1.95


def test_bounded_and_interval():
    rng = np.random.default_rng(0)
    axes = [Bounded.fit(rng.standard_normal(400), 4), Interval.fit(rng.random(400), 3, ends=(0.0, 1.0))]
    theta = {(0,): 0.2, (0, 0): -0.5, (1,): 0.1, (0, 1): 0.7, (1, 1): 0.3, (0, 0, 1): 0.2}
    terms, values = on_axes(axes, theta)
    X = sample(terms, values, 10_000, np.random.default_rng(10)).X
    u, y = np.linspace(-1, 1, 401), np.linspace(0, 1, 402)  # u = 2F − 1 is uniform under the base measure
    p = np.stack([np.sqrt(3) * u, np.sqrt(5) * (1.5 * u * u - 0.5)], axis=1)
    q = axes[1].functions(y)
    E = 0.2 * p[:, :1] - 0.5 * p[:, 1:] + 0.1 * q[:, 0] + 0.7 * p[:, :1] * q[:, 0] + 0.3 * q[:, 1]
    density = np.exp(-(E + 0.2 * p[:, 1:] * q[:, 0]))
    assert distance(axes[0].to_unit(X[:, 0]), u, density.sum(axis=1)) < 1.95
    assert distance(X[:, 1], y, density.sum(axis=0)) < 1.95


def test_what_cannot_be_summed_out_is_an_error():
    theta = {(i, i): 0.5 for i in range(8)} | {(i,) * 4: 0.1 for i in range(8)}
    theta |= dict.fromkeys(itertools.combinations(range(8), 2), 0.2)
    with pytest.raises(ValueError, match="method='auto'"):
        sample(*on_whole_lines(theta), 10, np.random.default_rng(0), method="exact")


def test_picks():
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 7, 64, 66):
        share = rng.random((5, size)) * (rng.random((5, size)) < 0.7)
        share[:, 0] += 1e-3
        below = np.cumsum(share, axis=1) / share.sum(axis=1, keepdims=True)
        row, v = rng.integers(0, 5, 1000), rng.random(1000)
        expected = [min(int(np.searchsorted(below[r], x)), size - 1) for r, x in zip(row, v, strict=True)]
        assert pick_rows(below, row, v).tolist() == expected


def test_marginals_of_a_loop():
    terms, theta, states, weight, _ = spins(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (1, 4, 5)], seed=2)
    tables = eliminate(terms.axes, interactions(terms, theta))
    share = weight / weight.sum()
    for i, mass in enumerate(tables.marginals()):
        assert mass[0] == pytest.approx([share[states[:, i] == s].sum() for s in (-1, 1)], abs=1e-12)
