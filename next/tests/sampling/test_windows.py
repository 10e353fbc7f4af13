"""Draws on windows, near nodes and without them, against distribution functions on fine grids of their own."""

import numpy as np
import pytest
from given_models import distance, on_axes, on_whole_lines

from isodus.axes import Circle, Interval, Values, WholeLine
from isodus.sampling import sample

GRID = np.linspace(-6, 6, 12_001)
CONDITIONALS = {
    "normal": [0.3, 0.5],
    "quartic": [0.4, 1.0, 0.0, 0.25],
    "far": [-8.0, 1.0, 0.0, 0.25],  # both neighbours far out
    "two wells": [-2.7, -8.0, 0.0, 2.0],
    "deep wells": [0.1, -16.0, 0.0, 4.0],
    "skewed": [0.2, -0.5, 0.4, 0.3],
    "narrow": [-60.0, 30.0],  # a spread of .13
    "degree 6": [0.5, -2.0, 0.0, 0.3, 0.0, 0.1],
}


def density(a):
    """exp(−Σ a_l y^l) on the grid, over its largest value."""
    E = sum(value * GRID ** (l + 1) for l, value in enumerate(a))
    return np.exp(E.min() - E)


def ends(a):
    """Where the density is e^−36 of its largest value."""
    inside = GRID[density(a) > np.exp(-36.0)]
    return inside[0], inside[-1]


def check(x, a):
    """Against the whole distribution, its tails, and for ties."""
    mass = density(a)
    assert distance(x, GRID, mass) < 1.95
    below = (np.cumsum(mass) - mass / 2) / mass.sum()
    for share in (1e-3, 1e-2):
        for count in (np.sum(x < np.interp(share, below, GRID)), np.sum(x > np.interp(1 - share, below, GRID))):
            assert abs(count - share * len(x)) < 4.5 * np.sqrt(share * len(x))
    assert len(np.unique(x)) == len(x)


@pytest.mark.parametrize("name", CONDITIONALS)
@pytest.mark.parametrize("wider", [0.0, 0.25, 0.5, 1.5])
def test_draws(name, wider):
    a = np.array(CONDITIONALS[name])
    low, high = ends(a)
    axis = WholeLine(0.0, 1.0, len(a)).on_window(low - wider, high + wider / 3)
    check(axis.draw(np.tile(a, (100_000, 1)), np.random.default_rng(0)), a)


@pytest.mark.parametrize("name", CONDITIONALS)
@pytest.mark.parametrize("count", [32, 48, 96, 1536])
def test_draws_near_nodes(name, count):
    a = np.array(CONDITIONALS[name])
    axis = WholeLine(0.0, 1.0, len(a)).on_window(*ends(a))
    mass = axis.mass(a[None], count)[0][:, 0]
    rng = np.random.default_rng(1)
    j = rng.choice(count, 100_000, p=mass / mass.sum())
    check(axis.draw_near(np.tile(a, (100_000, 1)), j, count, rng), a)


def test_draws_near_nodes_that_do_not_resolve_the_row():
    a = np.array([0.0, 5000.0])  # a spread of .01, between two nodes that are .25 apart
    axis = WholeLine(0.0, 1.0, 2).on_window(-4.0, 4.0)
    rng = np.random.default_rng(2)
    x = axis.draw_near(np.tile(a, (20_000, 1)), rng.integers(15, 17, 20_000), 32, rng)
    assert np.mean(np.abs(x) < 0.05) > 0.99
    assert np.median(np.abs(x)) == pytest.approx(0.006745, rel=0.05)


def test_rows_of_one_call_are_drawn_by_their_own_coefficients():
    rng = np.random.default_rng(3)
    axis = WholeLine(1.0, 2.0, 4).on_window(-4.0, 4.0)
    a = np.column_stack([rng.normal(size=60_000), rng.normal(size=60_000), np.zeros(60_000), np.full(60_000, 0.5)])
    levels = WholeLine(1.0, 2.0, 4).cdf(a, axis.draw(a, rng))
    assert distance(levels, np.linspace(0, 1, 1001), np.ones(1001)) < 1.95


@pytest.mark.parametrize("coupling", [1.0, 10.0])
def test_chain_of_strong_couplings(coupling):
    # E = Σ c x² + x⁴/4 − c x x': with ten times the coupling, conditionals are a third as wide
    p, n = 30, 20_000
    theta = {(i, i): coupling for i in range(p)} | {(i,) * 4: 0.25 for i in range(p)}
    theta |= {(i, i + 1): -coupling for i in range(p - 1)}
    grid = np.linspace(-4.5, 4.5, 601)
    own, T = np.exp(-0.25 * grid**4), np.exp(-coupling * (grid[:, None] - grid) ** 2 / 2)
    left = [own * np.exp(-coupling * grid**2 / 2)]  # sites at an end have one neighbour less in T
    for _ in range(1, p):
        message = own * (T @ left[-1])
        left.append(message / message.sum())
    draws = sample(*on_whole_lines(theta), n, np.random.default_rng(4))
    assert draws.method == "exact"
    for i in (0, 1, 15, 28, 29):
        assert distance(draws.X[:, i], grid, left[i] * left[p - 1 - i] / own) < 1.95
        assert len(np.unique(draws.X[:, i])) == n
    pair = left[14][:, None] * T * left[14]
    pair /= pair.sum()
    difference = grid[:, None] - grid
    second, fourth = np.sum(pair * difference**2), np.sum(pair * difference**4)
    found = np.mean((draws.X[:, 14] - draws.X[:, 15]) ** 2)
    assert abs(found - second) < 4.5 * np.sqrt((fourth - second**2) / n)


def test_a_tree_of_different_axes():
    # a star: two wells in the middle, its leaves on a whole line, an interval, a circle and two values
    line = WholeLine(0.0, 1.0, 4)
    axes = [line, line, Interval.fit(np.linspace(-0.9, 0.9, 50), 2, ends=(-1.0, 1.0)), Circle(1)]
    axes.append(Values.fit(np.array([-1.0, 1.0]), 1, values=[-1.0, 1.0]))
    theta = {(0, 0): -4.0, (0,) * 4: 2.0, (1, 1): 1.0, (1,) * 4: 0.5, (0, 1): -1.5, (0, 0, 1): 0.4}
    theta |= {(0, 2): 0.8, (2, 2): 0.3, (0, 3): 0.7, (0, 3, 3): -0.4, (0, 4): -0.5, (4,): 0.2}
    terms, values = on_axes(axes, theta)
    n = 40_000
    draws = sample(terms, values, n, np.random.default_rng(5))
    assert draws.method == "exact"
    places = [np.linspace(-4, 4, 801), np.linspace(-4, 4, 801), np.linspace(-0.9995, 0.9995, 2000)]
    places += [np.linspace(0, 2 * np.pi, 2000, endpoint=False), np.array([-1.0, 1.0])]
    phi = [axis.functions(x) for axis, x in zip(axes, places, strict=True)]
    own, pairs = [np.zeros(len(x)) for x in places], [np.zeros((801, len(x))) for x in places]
    for factors, value in zip(terms.products, values, strict=True):
        if len(factors) == 1:
            own[factors[0][0]] += value * phi[factors[0][0]][:, factors[0][1]]
        else:
            (_, k), (i, l) = factors
            pairs[i] += value * np.outer(phi[0][:, k], phi[i][:, l])
    leaves = [np.exp(-E - own[i]) for i, E in enumerate(pairs)]
    middle = np.exp(-own[0]) * np.prod([leaf.sum(axis=1) for leaf in leaves[1:]], axis=0)
    assert distance(draws.X[:, 0], places[0], middle) < 1.95
    for i in (1, 2, 3):
        mass = (middle / leaves[i].sum(axis=1)) @ leaves[i]
        assert distance(draws.X[:, i], places[i], mass) < 1.95
        assert len(np.unique(draws.X[:, i])) == n
    share = middle @ (leaves[4][:, 1] / leaves[4].sum(axis=1)) / middle.sum()
    assert abs(np.mean(draws.X[:, 4] == 1) - share) < 4 * np.sqrt(share * (1 - share) / n)
    upper = [places[0] > 0 if i == 0 else places[i] > np.median(places[i]) for i in range(4)]
    for i in (1, 2, 3):  # and jointly with the middle
        joint = (middle / leaves[i].sum(axis=1))[:, None] * leaves[i]
        share = joint[np.ix_(upper[0], upper[i])].sum() / joint.sum()
        found = np.mean((draws.X[:, 0] > 0) & (draws.X[:, i] > np.median(places[i])))
        assert abs(found - share) < 4.5 * np.sqrt(share * (1 - share) / n) + 2e-3  # of the grid's step
