"""Conditional densities against quadrature of exp(−energy) along one variable."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from isodus import IsodusWarning, PolynomialModel
from isodus.axes import Line


def along(model, i, row):
    """exp(−energy) as a function of x_i, up to a constant."""

    def f(x):
        X = np.tile(row, (np.size(x), 1))
        X[:, i] = np.ravel(x)
        return np.exp(top - model.energy(X))

    top = 0.0
    top = float(model.energy(row[None])[0])
    return f


def identity(x):
    return x


MOMENTS = (np.ones_like, identity, np.square)


def integral(f, low, high, weight=np.ones_like, parts=400):
    """∫ weight f by Gauss-Legendre on equal parts."""
    u, w = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(low, high, parts + 1)
    half = np.diff(edges) / 2
    places = (edges[:-1] + half)[:, None] + half[:, None] * u
    return float(((f(places.ravel()) * weight(places.ravel())).reshape(places.shape) @ w) @ half)


def pieces(axis):
    """Intervals on which the density is smooth: the window, and tails as far as they matter."""
    low, high = axis.location + axis.scale * np.array([axis.low, axis.high])
    reach = 45 * axis.tail * axis.scale
    left, right = axis.tails
    return [(low - reach, low)] * left + [(low, high)] + [(high, high + reach)] * right


@pytest.mark.parametrize("i", [0, 5])
def test_moments_and_distribution_on_windows_with_tails(mixed, values, i):
    given = mixed.conditional(mixed.names[i], values[:4])
    for row in range(4):
        f, parts = along(mixed, i, values[row]), pieces(mixed.terms.axes[i])
        Z, first, second = (sum(integral(f, *part, g) for part in parts) for g in MOMENTS)
        mean = first / Z
        assert given.mean()[row] == pytest.approx(mean, abs=1e-8)
        assert given.variance()[row] == pytest.approx(second / Z - mean**2, abs=1e-8)
        x = mean + 0.3
        low, high = parts[0][0], parts[-1][1]
        kinks = [b for _, b in parts[:-1] if b < x]
        below = sum(integral(f, a, b) for a, b in zip([low, *kinks], [*kinks, x], strict=True)) / Z
        assert given.cdf(x)[row] == pytest.approx(below, abs=1e-8)
        assert given.pdf(x)[row] == pytest.approx(f(x)[0] / Z, rel=1e-8)
        assert given.quantile(below)[row] == pytest.approx(x, abs=1e-7)
        assert high > x


def test_whole_line(quartic):
    X = np.random.default_rng(0).standard_normal((3, 3))
    for i, name in enumerate(quartic.names):
        given = quartic.conditional(name, X)
        for row in range(3):
            f = along(quartic, i, X[row])
            Z, first, second = (integral(f, -12, 12, g) for g in MOMENTS)
            assert given.mean()[row] == pytest.approx(first / Z, abs=1e-8)
            assert given.variance()[row] == pytest.approx(second / Z - (first / Z) ** 2, abs=1e-8)
            assert given.cdf(0.2)[row] == pytest.approx(integral(f, -12, 0.2) / Z, abs=1e-8)
            assert given.logpdf(0.2)[row] == pytest.approx(np.log(f(0.2)[0] / Z), abs=1e-8)


def test_circle_has_a_mean_direction(mixed, values):
    given = mixed.conditional("angle", values[:3])
    for row in range(3):
        f = along(mixed, 1, values[row])
        Z, cos, sin = (integral(f, 0, 2 * np.pi, g) for g in (np.ones_like, np.cos, np.sin))
        assert given.mean()[row] == pytest.approx(np.arctan2(sin, cos) % (2 * np.pi), abs=1e-9)
        assert given.variance()[row] == pytest.approx(1 - np.hypot(cos, sin) / Z, abs=1e-9)


def test_values_are_sums(mixed, values):
    given = mixed.conditional("spin", values[:5])
    for row in range(5):
        weights = along(mixed, 2, values[row])(np.array([-1.0, 0.0, 1.0]))
        share = weights / weights.sum()
        assert given.mean()[row] == pytest.approx(share[2] - share[0], abs=1e-12)
        assert given.variance()[row] == pytest.approx(share[2] + share[0] - (share[2] - share[0]) ** 2, abs=1e-12)
        assert given.pdf(1.0)[row] == pytest.approx(share[2])
        assert given.cdf(0.0)[row] == pytest.approx(share[0] + share[1])
    assert (given.pdf(0.5) == 0).all()


def test_interval_by_scipy(mixed, values):
    given = mixed.conditional("share", values[:2])
    for row in range(2):
        f = along(mixed, 4, values[row])
        Z = quad(lambda x, f=f: f(x)[0], -1, 1, epsabs=1e-12)[0]
        first = quad(lambda x, f=f: x * f(x)[0], -1, 1, epsabs=1e-12)[0]
        assert given.mean()[row] == pytest.approx(first / Z, abs=1e-9)


def test_bounded_axis_cuts_moments_where_its_kernels_end(mixed, values):
    axis, given = mixed.terms.axes[3], mixed.conditional("cdf", values[:2])
    reach = 5 * axis.widths
    low, high = (axis.centres - reach).min(), (axis.centres + reach).max()
    for row in range(2):
        f, density = along(mixed, 3, values[row]), given.logpdf
        ends = given.cdf([[low, high]])[row]
        Z = integral(f, low, high) / (ends[1] - ends[0])
        np.testing.assert_allclose(np.exp(density(0.4))[row], f(0.4)[0] / Z, rtol=1e-6)
        mean = integral(f, low, high, identity) / Z + low * ends[0] + high * (1 - ends[1])
        assert given.mean()[row] == pytest.approx(mean, abs=2e-5)


def test_mapped_axis_counts_its_tails_as_lying_at_their_ends(mixed, values):
    """A tail of log10 x need not have a mean in x."""
    inner, given = mixed.terms.axes[6].axis, mixed.conditional("dose", values[:2])
    low, high = 10 ** (inner.location + inner.scale * np.array([inner.low, inner.high]))
    for row in range(2):
        f = along(mixed, 6, values[row])
        ends = given.cdf([[low, high]])[row]
        edges = np.log10([low, high])
        inside = integral(lambda y, f=f: np.log(10) * 10**y * f(10**y), *edges)
        mean = integral(lambda y, f=f: np.log(10) * 10 ** (2 * y) * f(10**y), *edges) / inside * (ends[1] - ends[0])
        assert given.mean()[row] == pytest.approx(mean + low * ends[0] + high * (1 - ends[1]), rel=1e-8)


def test_linear_regression_of_a_gaussian():
    precision = np.array([[2.0, 0.6, 0.0], [0.6, 1.5, -0.4], [0.0, -0.4, 1.0]])
    theta = {(i, j): precision[i, j] / (2 if i == j else 1) for i in range(3) for j in range(i, 3) if precision[i, j]}
    model = PolynomialModel.from_dict(theta)
    X = np.random.default_rng(1).standard_normal((20, 3))
    given = model.conditional("x1", X)
    np.testing.assert_allclose(given.mean(), -(X[:, [0, 2]] @ precision[1, [0, 2]]) / 1.5, atol=1e-12)
    np.testing.assert_allclose(given.variance(), 1 / 1.5)


def test_draws_follow_the_distribution(pair):
    given = pair.conditional("a", {"b": [0.5]})
    draws = given.sample(4000, random_state=0)
    assert draws.shape == (1, 4000)
    assert kstest(draws[0], lambda x: given.cdf(np.atleast_2d(x))[0]).pvalue > 1e-3
    np.testing.assert_array_equal(draws, given.sample(4000, random_state=0))
    assert pair.conditional("a", {"b": [0.0, 1.0, 2.0]}).sample(random_state=1).shape == (3,)


def test_shapes(pair):
    given = pair.conditional("a", {"b": [0.0, 0.5, 1.0]})
    assert given.n == 3
    assert repr(given) == "Conditional of 'a' given the others, 3 rows"
    assert given.quantile(0.5).shape == given.quantile([0.1, 0.2, 0.3]).shape == (3,)
    assert given.quantile([[0.1, 0.9]]).shape == given.cdf(np.zeros((3, 2))).shape == (3, 2)
    each = given.quantile([[0.1, 0.9]] * 3)
    np.testing.assert_array_equal(each, given.quantile([[0.1, 0.9]]))
    one = pair.conditional("a", {"b": 0.5})
    np.testing.assert_allclose(one.quantile([0.1, 0.9]), each[1], rtol=1e-12)
    np.testing.assert_allclose(given.cdf(each), [[0.1, 0.9]] * 3, atol=1e-10)
    np.testing.assert_allclose(given.logpdf(each), np.log(given.pdf(each)))
    with pytest.raises(ValueError, match=r"x has the shape \(2, 2\), and there are 3 rows"):
        given.pdf(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="from 0 to 1"):
        given.quantile(1.5)
    with pytest.raises(ValueError, match="x holds NaN"):
        given.cdf(np.nan)


def test_infinities(mixed, values):
    for name in mixed.names:
        given = mixed.conditional(name, values[:2])
        assert given.cdf(np.inf).tolist() == [1.0, 1.0]
        assert given.cdf(-np.inf).tolist() == given.pdf(np.inf).tolist() == [0.0, 0.0]


def test_columns_are_found_by_name(quartic):
    X = pd.DataFrame(np.random.default_rng(2).standard_normal((6, 3)), columns=["a", "b", "c"])
    expected = quartic.conditional("b", X.to_numpy()).mean()
    forms = [
        X,
        X[["c", "b", "a"]],
        X[["c", "a"]],
        X[["a", "c"]].to_numpy(),
        {"c": X["c"], "a": X["a"].to_list()},
        X.assign(b=np.nan),
        pl.from_pandas(X),
        pl.from_pandas(X).to_arrow(),
    ]
    for given in forms:
        np.testing.assert_array_equal(quartic.conditional("b", given).mean(), expected)
    np.testing.assert_array_equal(quartic.conditional(1, X).mean(), expected)


def test_of_two_variables_one_column_is_enough(pair):
    b = pd.Series([0.0, 0.5])
    for given in (b, b.to_numpy(), b.to_frame("b")):
        np.testing.assert_array_equal(pair.conditional("a", given).mean(), pair.conditional("a", {"b": b}).mean())


def test_numbers_are_repeated(quartic):
    given = quartic.conditional("b", {"a": [0.0, 1.0], "c": 0.5})
    np.testing.assert_array_equal(given.mean(), quartic.conditional("b", [[0.0, 0.5], [1.0, 0.5]]).mean())


def test_only_neighbours_are_needed():
    model = PolynomialModel.from_dict({("a", "a"): 1.0, ("a", "b"): 1.0, ("b", "b"): 1.0, ("c", "c"): 1.0})
    assert model.conditional("a", {"b": 1.0}).mean() == pytest.approx(-0.5)
    assert model.conditional("a", {"b": 1.0, "c": np.nan}).mean() == pytest.approx(-0.5)
    assert model.conditional("c").variance() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("variable", "given", "message"),
    [
        ("z", {}, "no variable 'z'. It has 'a', 'b', 'c'"),
        (3, {}, "no variable 3"),
        ("a", {}, "depends on 'b', 'c', too"),
        ("a", {"b": [1.0]}, "depends on 'c', too"),
        ("a", {"b": [1.0], "c": [1.0], "d": [1.0]}, "no variable 'd'"),
        ("a", {"b": [1.0, 2.0], "c": [1.0, 2.0, 3.0]}, r"columns of one length. That of 'b' has the shape \(2,\)"),
        ("a", {"b": [[1.0]], "c": 1.0}, "columns of one length"),
        ("a", {"b": [1.0, np.nan], "c": 1.0}, "'b' has no value in row 1"),
        ("a", {"b": ["x"], "c": 1.0}, "Column 'b' holds strings"),
        ("a", np.zeros((2, 4)), r"2 other variables, and given has the shape \(2, 4\)"),
        ("a", [1.0, 2.0], r"given has the shape \(2,\)"),
        ("a", pd.DataFrame({"b": [], "c": []}), "at least one row"),
        ("a", pd.DataFrame([[1.0, 1.0, 1.0]], columns=["b", "b", "c"]), "'b', 'b', 'c'. have one name"),
    ],
)
def test_errors_name_the_column(quartic, variable, given, message):
    with pytest.raises(ValueError, match=message):
        quartic.conditional(variable, given)


def test_a_value_off_its_axis_is_an_error(mixed, values):
    X = values.copy()
    X[2, 2] = 0.3
    with pytest.raises(ValueError, match=r"Column 'spin' has the value 0.3 in row 2.*kind 'values'.*model.outside"):
        mixed.conditional("angle", X)


def test_no_integral_is_an_error():
    model = PolynomialModel.from_dict({("a", "a", "b"): 1.0, ("b", "b"): 1.0})
    assert model.conditional("a", {"b": 1.0}).variance() == pytest.approx(0.5)
    with pytest.raises(ValueError, match="'a' is not integrable in 2 of 3 rows .first in row 1"):
        model.conditional("a", {"b": [1.0, -1.0, 0.0]})


def test_a_density_that_nodes_miss_is_a_warning():
    axis = Line.fit(np.random.default_rng(0).standard_normal(300), 2)
    model = PolynomialModel.from_dict({("a", "a"): 1e9, ("a",): 1.0}, axes=[axis])
    with pytest.warns(IsodusWarning, match="'a' is too narrow to be integrated in 1 of 1 rows"):
        model.conditional("a")
