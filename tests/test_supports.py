"""The one-dimensional family on intervals, half lines and a few values."""

import array_api_strict
import mpmath
import numpy as np
import pytest
from scipy import stats

from isodus import univariate
from isodus.supports import LINE, Support, as_support

INF = np.inf
CASES = {
    "exponential": ([0.7], (0.0, INF)),
    "half Gaussian": ([0.0, 0.5], (0.0, INF)),
    "falls, then rises": ([-3.0, 0.8], (0.0, INF)),
    "odd degree": ([1.0, -2.0, 0.3], (0.0, INF)),
    "a well inside and one at the end": ([4.0, -11.0, 4.0], (0.0, INF)),
    "two wells": ([0.0, -8.0, 0.0, 1.0], (-2.5, INF)),
    "tail that begins far out": ([2.0, 0.3, 0.0, 0.05], (3.0, INF)),
    "uniform": ([0.0, 0.0], (2.0, 5.0)),
    "leans to the right": ([-2.0, 0.1], (-1.0, 1.0)),
    "both ends": ([0.0, -6.0, 0.0, 0.0], (-1.0, 1.0)),
    "steep": ([300.0, -500.0, 100.0], (0.0, 1.0)),
    "narrow, far from zero": ([-2e4, 1e2], (99.0, 101.0)),
}


def reference(a, ends, power=0):
    """∫ x^power exp(−q) dx over the support by mpmath, times exp(least q), and that."""
    with mpmath.workdps(25):
        c = [mpmath.mpf(float(v)) for v in a]
        q = lambda x: sum(c[l] * x ** (l + 1) for l in range(len(c)))
        lo, hi = ends
        grid = np.linspace(lo, hi if hi < INF else lo + 100, 20001)
        values = sum(float(v) * grid ** (l + 1) for l, v in enumerate(a))
        least = mpmath.mpf(float(values.min()))
        inside = grid[values < values.min() + 90]
        turns = grid[1:-1][(values[1:-1] < values[:-2]) & (values[1:-1] <= values[2:])]
        points = sorted({float(inside[0]), float(inside[-1]), *map(float, turns), *map(float, inside[::2000])})
        if hi == INF:
            points[-1] = points[-1] + 1
        f = lambda x: x**power * mpmath.exp(-(q(x) - least))
        return mpmath.quad(f, points), least


@pytest.mark.parametrize("name", CASES)
def test_log_z_and_moments_match_mpmath(name):
    a, ends = CASES[name]
    found = univariate.integrate(np.array(a)[:, None], moments=4, support=Support(*ends))
    Z, least = reference(a, ends)
    assert not len(found.missing)
    assert found.log_z[0] == pytest.approx(float(mpmath.log(Z) - least), abs=1e-10, rel=1e-12)
    for l in range(1, 5):
        size, _ = reference(a, ends, 2 * (l // 2 + l % 2))
        expected = float(reference(a, ends, l)[0] / Z)
        assert found.moments[l - 1, 0] == pytest.approx(expected, abs=1e-9 * float(size / Z))


def test_closed_forms():
    rate = np.array([0.3, 1.0, 40.0])
    found = univariate.integrate(rate[None, :], moments=2, support=Support(0.0, INF))
    np.testing.assert_allclose(found.log_z, -np.log(rate), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.moments, [1 / rate, 2 / rate**2], rtol=1e-12)
    mean, spread, ends = 0.4, 0.7, (-0.5, 2.0)
    a = np.array([[-mean / spread**2], [0.5 / spread**2]])
    normal = stats.truncnorm((ends[0] - mean) / spread, (ends[1] - mean) / spread, mean, spread)
    found = univariate.integrate(a, moments=2, support=Support(*ends))
    assert found.moments[0, 0] == pytest.approx(normal.mean(), rel=1e-12)
    assert found.moments[1, 0] == pytest.approx(normal.moment(2), rel=1e-12)
    x = np.linspace(*ends, 9)[1:-1]
    many = np.repeat(a, len(x), axis=1)
    np.testing.assert_allclose(univariate.cdf(many, x, support=Support(*ends)), normal.cdf(x), atol=1e-11)
    np.testing.assert_allclose(univariate.quantile(many, normal.cdf(x), support=Support(*ends)), x, atol=1e-10)


def test_a_support_that_holds_all_the_mass_is_the_whole_line():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4, 200))
    a[3] = 0.5 + np.abs(a[3])
    line = univariate.integrate(a, moments=8)
    for ends in ((-8.0, INF), (-8.0, 8.0)):
        some = univariate.integrate(a, moments=8, support=Support(*ends))
        np.testing.assert_allclose(some.log_z, line.log_z, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(some.central, line.central, rtol=1e-7, atol=1e-9)


def test_parts_add_up_to_the_whole():
    rng = np.random.default_rng(1)
    a = 2 * rng.standard_normal((3, 100))
    whole, left, right = (
        univariate.integrate(a, support=Support(*ends)).log_z for ends in ((-1.0, 2.0), (-1.0, 0.5), (0.5, 2.0))
    )
    np.testing.assert_allclose(np.logaddexp(left, right), whole, rtol=1e-10, atol=1e-10)


def test_rows_without_a_density_on_a_half_line():
    a = np.array([[1.0, -1.0, 1.0, 0.0, 1.0], [0.0, 0.0, -1.0, 0.0, np.nan], [0.0, 0.0, 0.0, 0.0, 0.0]])
    found = univariate.integrate(a, moments=2, support=Support(0.0, INF))
    assert found.missing.tolist() == [1, 2, 3, 4]
    assert found.log_z[0] == pytest.approx(0.0, abs=1e-12)
    assert np.isinf(found.log_z[1:]).all()
    assert univariate.integrate(a[:, :4], support=Support(0.0, 3.0)).missing.size == 0


@pytest.mark.parametrize("ends", [(0.0, INF), (-1.0, 2.0)])
def test_draws_follow_the_density(ends):
    a = np.array([0.5, -2.0, 0.0, 1.0])
    x = univariate.draw(np.repeat(a[:, None], 20_000, axis=1), np.random.default_rng(0), support=Support(*ends))
    assert ends[0] <= x.min()
    assert x.max() <= ends[1]
    grid = np.quantile(x, [0.1, 0.3, 0.5, 0.7, 0.9])
    cdf = univariate.cdf(np.repeat(a[:, None], 5, axis=1), grid, support=Support(*ends))
    np.testing.assert_allclose(cdf, [0.1, 0.3, 0.5, 0.7, 0.9], atol=4 * 0.5 / np.sqrt(20_000))


@pytest.mark.parametrize("ends", [(0.0, INF), (-1.0, 2.0)])
def test_array_api_strict_gives_the_same(ends):
    rng = np.random.default_rng(2)
    a = rng.standard_normal((4, 50))
    a[3] = np.abs(a[3])
    expected = univariate.integrate(a, moments=4, support=Support(*ends))
    found = univariate.integrate(array_api_strict.asarray(a), moments=4, support=Support(*ends))
    np.testing.assert_allclose(np.asarray(found.log_z), expected.log_z, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(found.central), expected.central, rtol=1e-10, atol=1e-13)


def test_no_warnings_and_no_nan_for_coefficients_over_many_orders():
    rng = np.random.default_rng(3)
    a = rng.choice([-1.0, 1.0], (4, 500)) * 10 ** rng.uniform(-6, 6, (4, 500))
    found = univariate.integrate(a, moments=4, support=Support(-1.0, 1.0))
    assert not np.isnan(found.log_z).any()
    there = np.isfinite(found.log_z)
    assert there.mean() > 0.95
    assert np.all(np.abs(found.moments[:, there]) <= 1 + 1e-9)


VALUES = (-1.0, 0.5, 2.0)


def test_sums_over_values():
    rng = np.random.default_rng(0)
    a, support = rng.standard_normal((2, 50)) * 3, as_support([2, 0.5, -1.0])
    v = np.array(VALUES)
    P = np.exp(-(a[0] * v[:, None] + a[1] * v[:, None] ** 2))
    found = univariate.integrate(a, moments=4, support=support)
    np.testing.assert_allclose(found.log_z, np.log(P.sum(axis=0)), rtol=1e-12, atol=1e-13)
    for l in range(1, 5):
        np.testing.assert_allclose(found.moments[l - 1], (P * v[:, None] ** l).sum(axis=0) / P.sum(axis=0), atol=1e-12)
    np.testing.assert_array_equal(found.mode, v[P.argmax(axis=0)])
    strict = univariate.integrate(array_api_strict.asarray(a), moments=4, support=support)
    np.testing.assert_allclose(np.asarray(strict.central), found.central, atol=1e-14)
    u = rng.random(50)
    x = univariate.quantile(a, u, support=support)
    cumulative = np.cumsum(P, axis=0) / P.sum(axis=0)
    np.testing.assert_array_equal(x, v[(cumulative < u).sum(axis=0)])
    np.testing.assert_allclose(univariate.cdf(a, np.full(50, 0.7), support=support), cumulative[1], rtol=1e-12)
    assert np.all(univariate.cdf(a, np.full(50, -1.1), support=support) == 0)


def test_energies_of_values_that_are_large_or_no_numbers():
    a = np.array([[1e6, -1e300, np.nan, 1e308], [0.0, 0.0, 0.0, 1e308]])
    found = univariate.integrate(a, moments=2, support=Support(-1.0, 2.0, VALUES))
    assert found.missing.tolist() == [2]
    assert found.log_z[3] == 0  # all on −1, the only energy that is a number
    np.testing.assert_allclose(found.log_z[:2], [1e6, 2e300])
    np.testing.assert_array_equal(found.mode[:2], [-1.0, 2.0])


def test_what_a_user_writes():
    assert as_support(None) == LINE
    assert as_support("spin").values == (-1.0, 1.0)
    assert as_support((0, INF)) == Support(0.0, INF)
    assert as_support([3, 1, 2, 2]).values == (1.0, 2.0, 3.0)
    assert str(as_support((0, INF))) == "(0, inf)"
    assert str(as_support("spin")) == "{-1, 1}"
    assert as_support([0, 1, 2]).powers == 2
    assert as_support((2.0, 6.0)).standardised(4.0, 2.0) == Support(-1.0, 1.0)
    np.testing.assert_array_equal(as_support([0, 1]).holds(np.array([0.0, 0.5, 1.0])), [True, False, True])
    np.testing.assert_array_equal(as_support((0, 1)).holds(np.array([-0.1, 0.5, np.nan])), [False, True, False])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("spins", "there is no support 'spins'"),
        ((1, 0), "from low to high, not from 1 to 0"),
        ((0, 1, 2), r"a pair \(low, high\) of numbers"),
        ((-INF, 3), "take −x"),
        ((0, "b"), "pair"),
        ([1.0], "a variable that has 1 value does not vary"),
        ([1.0, INF], "must be finite"),
        (["a", "b"], "are numbers"),
        (3.0, "a support is None"),
    ],
)
def test_what_is_no_support(given, words):
    with pytest.raises(ValueError, match=words):
        as_support(given)
