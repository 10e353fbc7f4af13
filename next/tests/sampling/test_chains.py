"""Gibbs chains on the nodes: the same laws as exact sums, also where modes are far apart."""

import numpy as np
import pytest
from given_models import SEPARATED, WELLS, distance, on_axes, on_grid, on_whole_lines

from isodus.axes import Line, Values
from isodus.sampling import sample
from isodus.sampling.chains import effective_size, pick_columns
from isodus.sampling.conditionals import Block, Conditionals

SPIN = Values.fit(np.array([-1.0, 1.0]), 1, values=[-1.0, 1.0])


@pytest.mark.parametrize("with_start", [True, False])
@pytest.mark.parametrize(("theta", "p"), [(WELLS, 2), (SEPARATED, 4)])
def test_wells_by_default(theta, p, with_start):
    terms, values = on_whole_lines(theta)
    start = sample(terms, values, 500, np.random.default_rng(0)).X if with_start else None
    draws = sample(terms, values, 20_000, np.random.default_rng(1), start=start, method="chains")
    assert draws.method == "chains"
    grid, density = on_grid(theta, p, 2.6, 53)
    density /= density.sum()
    for i in range(p):
        mass = density.sum(axis=tuple(j for j in range(p) if j != i))
        fine = np.linspace(-2.6, 2.6, 2601)
        assert distance(draws.X[:, i], fine, np.interp(fine, grid, mass)) < 3  # the grid's marginal is a polygon
        share = mass[grid > 0.01].sum() + mass[np.abs(grid) < 0.01].sum() / 2
        assert abs(np.mean(draws.X[:, i] > 0) - share) < 4 * np.sqrt(share * (1 - share) / 20_000)
    pair = density.sum(axis=tuple(range(2, p)))
    mean, square = grid @ pair @ grid, (grid**2) @ pair @ (grid**2)
    assert abs(np.mean(draws.X[:, 0] * draws.X[:, 1]) - mean) < 4 * np.sqrt((square - mean**2) / 20_000)
    assert draws.effective.shape == (p,)
    assert draws.effective.min() > 15_000
    assert draws.unresolved.tolist() == [0] * p


def test_no_ties_and_distance():
    theta = {(0, 0): 0.5, (1, 1): 0.5, (0,) * 4: 0.1, (1,) * 4: 0.1, (0, 1): 0.4}
    terms, values = on_whole_lines(theta)
    grid, density = on_grid(theta, 2, 6.0, 1201)
    for method in ("exact", "chains"):
        X = sample(terms, values, 20_000, np.random.default_rng(2), method=method).X
        for i in range(2):
            assert len(np.unique(X[:, i])) == 20_000
            assert distance(X[:, i], grid, density.sum(axis=1 - i)) < 1.95


def test_slow_chains_say_so():
    # two spins that agree with probability 1 − 2e-7: a chain stays where it starts
    terms, theta = on_axes([SPIN] * 2, {(0, 1): -7.7, (0,): 0.0, (1,): 0.0})
    start = np.array([[1.0, 1.0], [-1.0, -1.0]])
    draws = sample(terms, theta, 1000, np.random.default_rng(0), start=start, method="chains")
    assert draws.effective.max() < 50
    exact = sample(terms, theta, 1000, np.random.default_rng(0))
    assert exact.effective is None
    assert abs(exact.X[:, 0].mean()) < 4 / np.sqrt(1000)


def lattice_model(side):
    """φ⁴ on a periodic square lattice: neighbours cannot be summed out."""
    theta = {}
    for i in range(side * side):
        row, column = divmod(i, side)
        theta |= {(i, i): 1.5, (i,) * 4: 0.25}
        for j in (row * side + (column + 1) % side, (row + 1) % side * side + column):
            theta[min(i, j), max(i, j)] = -1.0
    return on_whole_lines(theta)


def test_lattice_by_chains():
    terms, theta = lattice_model(5)
    draws = sample(terms, theta, 2000, np.random.default_rng(3))
    assert draws.method == "chains"
    X = draws.X
    # Schwinger and Dyson: E[x_i ∂E/∂x_i] = 1 at each site
    field = X.reshape(-1, 5, 5)
    near = sum(np.roll(field, step, axis) for step in (-1, 1) for axis in (1, 2))
    virial = (field * (3 * field + field**3 - near)).mean(axis=(1, 2))
    assert abs(virial.mean() - 1) < 4 * virial.std() / np.sqrt(2000)
    own = (field * near / 4).mean(axis=(1, 2))
    shifted = sample(terms, theta, 2000, np.random.default_rng(4), n_sweeps=100).X.reshape(-1, 5, 5)
    near = sum(np.roll(shifted, step, axis) for step in (-1, 1) for axis in (1, 2))
    other = (shifted * near / 4).mean(axis=(1, 2))
    assert abs(own.mean() - other.mean()) < 4 * np.hypot(own.std(), other.std()) / np.sqrt(2000)


def test_draws_do_not_depend_on_threads():
    terms, theta = lattice_model(4)
    for method in ("chains", "auto"):
        first, second = (
            sample(terms, theta, 3000, np.random.default_rng(5), n_jobs=n, n_sweeps=3, method=method).X for n in (1, 2)
        )
        assert np.array_equal(first, second)
    terms, theta = on_whole_lines(WELLS)
    first, second = (sample(terms, theta, 12_000, np.random.default_rng(5), n_jobs=n).X for n in (1, 2))
    assert np.array_equal(first, second)


def test_draws_follow_the_seed():
    terms, theta = on_whole_lines(WELLS)
    rng = np.random.default_rng(6)
    first, second = (sample(terms, theta, 100, rng).X for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, sample(terms, theta, 100, np.random.default_rng(6)).X)
    known = {"exact": KNOWN_EXACT, "chains": KNOWN_CHAINS}
    for method, values in known.items():
        X = sample(terms, theta, 3, np.random.default_rng(7), method=method).X
        assert X.ravel() == pytest.approx(values, abs=1e-6)


KNOWN_EXACT = [-1.0736952, 1.1265593, -0.4176168, -0.8569382, -0.8984577, -1.1344912]
KNOWN_CHAINS = [-0.807854, -1.0245474, -0.9562629, -1.01186, -0.9084104, -1.1901136]


def test_start_is_only_read():
    terms, theta = lattice_model(4)
    start = np.random.default_rng(8).normal(size=(50, 16))
    kept = start.copy()
    start.flags.writeable = False
    sample(terms, theta, 100, np.random.default_rng(9), start=start, n_sweeps=5)
    assert np.array_equal(start, kept)


def test_no_rows():
    for theta in (WELLS, {(0, 0): 0.5, (1, 1): 0.5, (0, 1): 0.1}, {(0, 0): 0.5}):
        for method in ("auto", "chains"):
            X = sample(*on_whole_lines(theta), 0, np.random.default_rng(0), method=method).X
            assert X.shape == (0, 1 + max(max(key) for key in theta))


def test_progress_ends_at_all():
    terms, theta = on_whole_lines(WELLS | {(2, 2): 1.0})
    seen = []
    for method in ("auto", "chains"):
        sample(terms, theta, 5000, np.random.default_rng(0), method=method, progress=lambda *at: seen.append(at))
        assert seen[-1] == (3, 3)
        assert all(0 <= done <= total for done, total in seen)


def test_picks():
    rng = np.random.default_rng(0)
    for N in (1, 2, 5, 8, 64, 66, 130):
        mass = rng.random((N, 500)) * (rng.random((N, 500)) < 0.6)
        mass[N // 2] += 1e-3
        v = rng.random(500)
        below = np.cumsum(mass, axis=0)
        expected = np.minimum((below < v * below[-1]).sum(axis=0), N - 1)
        assert pick_columns(mass, v).tolist() == expected.tolist()


def test_coefficients_follow_changes():
    rng = np.random.default_rng(0)
    axes = [Line.fit(rng.standard_normal(200), 3) for _ in range(4)]
    theta = {key: rng.normal() for key in [(0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 2), (0, 1, 2), (2, 3), (0, 0)]}
    theta |= {(0, 0, 1): 0.3, (2, 2): 0.1, (3, 3): 0.2, (2, 2, 3): -0.7, (2, 3, 3): 0.4, (2, 2, 3, 3): 0.6}
    terms, values = on_axes(axes, theta)
    X = rng.standard_normal((7, 4))
    block = Block(Conditionals(terms, values), [axis.functions(x).T.copy() for axis, x in zip(axes, X.T, strict=True)])
    for i in (2, 0, 3, 1, 2):
        X[:, i] = rng.standard_normal(7)
        block.move([i], X[:, i])
    phi = [axis.functions(x) for axis, x in zip(axes, X.T, strict=True)]
    E = np.zeros(7)
    a = [np.zeros((7, 3)) for _ in axes]
    for factors, value in zip(terms.products, values, strict=True):
        E += value * np.prod([phi[i][:, l] for i, l in factors], axis=0)
        for i, l in factors:
            a[i][:, l] += value * np.prod([np.ones(7), *(phi[j][:, m] for j, m in factors if j != i)], axis=0)
    assert block.energy(values) == pytest.approx(E, abs=1e-12)
    for i in range(4):
        assert block.a(i) == pytest.approx(a[i], abs=1e-12)


def test_effective_sizes():
    rng = np.random.default_rng(0)
    traces = rng.standard_normal((200, 3, 16))
    for t in range(1, 200):
        traces[t, 1] = 0.8 * traces[t - 1, 1] + 0.6 * traces[t, 1]
    traces[:, 2] = 1.0
    independent, slow, constant = effective_size(traces) / 3200
    assert independent == pytest.approx(1.0, abs=0.15)
    assert slow == pytest.approx((1 - 0.8) / (1 + 0.8), rel=0.3)
    assert constant == 1
