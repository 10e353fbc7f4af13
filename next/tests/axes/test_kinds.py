"""What is particular to each kind of axis."""

import numpy as np
import pytest
from cases import DATA, bumps, gamma_functions, hermite_functions
from scipy.special import gammaln
from scipy.stats import norm

from isodus.axes import Bounded, Circle, Functions, HalfLine, Interval, Line, Mapped, Values, WholeLine
from isodus.axes.choose import choose_axis
from isodus.contracts.reference import random_exponents


def rows(axis, x, count=3):
    return random_exponents(axis, x, np.random.default_rng(2), count)


# ------------------------------------------------------------------------------------------------- units


@pytest.mark.parametrize("kind", [Line, Bounded, WholeLine])
@pytest.mark.parametrize(("shift", "scale"), [(1e6, 1.0), (0.0, 1e-6), (-3e4, 1e3)])
def test_units_change_nothing_but_the_unit(kind, shift, scale):
    x, degree = DATA["skewed"], 2 if kind is WholeLine else 6
    axis, other = kind.fit(x, degree), kind.fit(shift + scale * x, degree)
    a = rows(axis, x)
    mine, theirs = axis.integrals(a), other.integrals(a)
    near = 1e-12 + 1e-15 * abs(shift) / scale * 1e3  # what rounding of the shifted rows leaves
    np.testing.assert_allclose(theirs.log_Z, mine.log_Z, rtol=near, atol=near)
    np.testing.assert_allclose(theirs.mean, mine.mean, rtol=near, atol=near * 100)
    np.testing.assert_allclose(other.log_base(shift + scale * x), axis.log_base(x) - np.log(scale), atol=1e3 * near)
    v = np.linspace(0.05, 0.95, len(a))
    np.testing.assert_allclose((other.quantile(a, v) - shift) / scale, axis.quantile(a, v), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["normal", "skewed", "uniform"])
@pytest.mark.parametrize("kind", [Line, Bounded])
def test_functions_are_nearly_orthonormal_on_new_rows(name, kind):
    rng = np.random.default_rng(11)
    sample = {"normal": rng.standard_normal, "skewed": lambda n: rng.gamma(3.0, size=n), "uniform": rng.random}[name]
    phi = kind.fit(sample(4000), 4).functions(sample(20_000))
    assert np.abs(phi.T @ phi / len(phi) - np.eye(4)).max() < 0.35


def test_functions_of_a_line_are_orthonormal_under_the_rows_and_their_weights():
    x, weight = DATA["t3"], np.random.default_rng(0).integers(1, 4, len(DATA["t3"])).astype(float)
    phi = np.hstack([np.ones((len(x), 1)), Line.fit(x, 6, weight).functions(x)])
    np.testing.assert_allclose((phi * weight[:, None]).T @ phi / weight.sum(), np.eye(7), atol=1e-9)
    repeated = Line.fit(np.repeat(x, weight.astype(int)), 6)
    np.testing.assert_allclose(repeated.alpha, Line.fit(x, 6, weight).alpha, atol=1e-9)


@pytest.mark.parametrize("kind", [Line, HalfLine, Interval])
def test_powers_are_those_of_x(kind):
    x = DATA["uniform"]
    axis = kind.fit(x, 5, ends=(0.0, 1.0)) if kind is Interval else kind.fit(x, 5)
    inside = np.linspace(0.01, 0.99, 30)
    written = inside[:, None] ** np.arange(6) @ axis.powers().T
    np.testing.assert_allclose(written[:, 1:], axis.functions(inside), atol=1e-9)


# ------------------------------------------------------------------------------------------------- line


def test_the_window_of_a_line():
    x = np.concatenate([np.linspace(-2, 2, 401), [-3.0, 5.0]])
    axis = Line.fit(x, 2)
    location, scale = axis.location, axis.scale
    np.testing.assert_allclose([location + scale * axis.low, location + scale * axis.high], [-5.0, 7.0])
    far = Line.fit(np.append(x, 1e3), 2)
    assert far.high == 10
    np.testing.assert_allclose(far.tail, (1e3 - far.location) / far.scale - 10)
    np.testing.assert_allclose(axis.tail, 0.05 * (axis.high - axis.low))


def test_beyond_the_window_functions_keep_their_value_and_the_base_falls():
    axis = Line.fit(DATA["normal"], 4)
    end = axis.location + axis.scale * axis.high
    x = end + axis.scale * axis.tail * np.array([0.0, 1.0, 2.0, 50.0])
    np.testing.assert_allclose(axis.functions(x), np.repeat(axis.functions(x[:1]), 4, axis=0), rtol=1e-12)
    np.testing.assert_allclose(axis.log_base(x), -np.log(axis.scale) - np.array([0, 1, 2, 50]), atol=1e-9)
    assert not np.any(axis.derivatives(x[1:]).first)


def test_mass_in_a_tail_behind_a_thin_layer_is_seen():
    axis = Line.fit(DATA["normal"], 6)
    edge = axis.derivatives(np.array([axis.location + axis.scale * axis.high * (1 - 1e-12)])).first[0]
    for thin in (1e2, 1e4, 1e6, 1e8):  # ever more of the mass in the right tail, through ever thinner layers
        a = np.zeros((1, 6))
        a[0, 0] = -thin / edge[0]
        got, exact = axis.integrals(a), layered(axis, thin, edge[0])
        assert got.error[0] <= axis.tolerance
        assert abs(got.log_Z[0] - exact) <= 10 * got.error[0] + 1e-13


def layered(axis, steep, slope):
    """Log Z of exp(steep · φ_1/φ_1′): φ_1 is linear, so its integral is in closed form."""
    first = (axis.high - axis.alpha[0]) / axis.beta[0]
    top = steep * first / slope
    decay = steep / (slope * axis.beta[0])
    inside = -np.expm1(-decay * (axis.high - axis.low)) / decay
    return top + np.log(inside + axis.tail + axis.tail * np.exp(-decay * (axis.high - axis.low)))


# ------------------------------------------------------------------------------------------------- bounded


@pytest.mark.parametrize("name", ["normal", "skewed", "cauchy", "integers", "piles", "small", "shifted"])
def test_the_slope_of_the_distribution_function_is_the_base(name):
    x = DATA[name]
    axis = Bounded.fit(x, 2)
    at = np.quantile(x, np.linspace(0.01, 0.99, 41))
    h = 1e-3 * axis.widths.min()
    near = at[:, None] + h * np.arange(-3, 4)
    F = axis.to_unit(near.ravel()).reshape(near.shape)
    places = near - at[:, None]  # what rounding leaves of the steps
    slope = np.array([np.polynomial.polynomial.polyfit(p / h, f, 5)[1] / h for p, f in zip(places, F, strict=True)])
    q = np.exp(axis.log_base(at))
    rounding = 1e-14 / h + 1e-16 * np.abs(at).max() / h * q
    assert np.all(np.abs(slope / 2 - q) <= 1e-10 * q + rounding)


def test_the_base_is_the_derivative_of_its_integral_to_ten_digits():
    """∫ q between two places against the difference of F, by quadrature over every kernel."""
    axis = Bounded.fit(DATA["wells"], 2)
    u, w = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(-6, 6, 2001)
    half = np.diff(edges)[:, None] / 2
    x = edges[:-1, None] + half * (u + 1)
    mass = (half * w * np.exp(axis.log_base(x.ravel()).reshape(x.shape))).sum(axis=1)
    np.testing.assert_allclose(mass, np.diff(axis.to_unit(edges)) / 2, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("far", [1e6, -1e6, 1e300])
def test_one_value_far_away_leaves_the_rest(far):
    x = DATA["normal"]
    plain, other = Bounded.fit(x, 6), Bounded.fit(np.append(x, far), 6)
    assert np.abs(other.functions(x) - plain.functions(x)).max() < 0.15
    assert np.abs(other.log_base(x) - plain.log_base(x)).max() < 0.15
    assert np.isfinite(other.log_base(np.array([far]))).all()


def test_rounding_leaves_the_functions():
    x = DATA["normal"]
    plain, rounded = Bounded.fit(x, 4), Bounded.fit(np.round(x, 1), 4)
    assert np.abs(rounded.functions(x) - plain.functions(x)).max() < 0.25
    assert np.abs(rounded.log_base(x) - plain.log_base(x)).max() < 0.5


def test_a_pile_leaves_the_others_as_they_are():
    x = DATA["normal"]
    piled = np.concatenate([x, np.zeros(len(x) // 4)])
    axis, plain = Bounded.fit(piled, 2), Bounded.fit(x, 2)
    away = (np.abs(x) > 1) & (np.abs(x) < 2.5)
    expected = np.log(np.exp(plain.log_base(x[away])) * 0.8)
    assert np.abs(axis.log_base(x[away]) - expected).max() < 0.35
    right = x > 0.6
    shares = [1 - kind.to_unit(x[right]) for kind in (axis, plain)]
    assert np.abs(shares[0] - 0.8 * shares[1]).max() < 0.02


def test_the_base_is_never_zero_for_finite_values():
    axis = Bounded.fit(DATA["uniform"], 3)
    x = np.concatenate([np.logspace(-300, 307, 50), -np.logspace(-300, 307, 50), [0.0, np.finfo(float).max]])
    assert np.isfinite(axis.log_base(x)).all()
    assert np.isfinite(axis.functions(x)).all()
    assert np.isneginf(axis.log_base(np.array([np.inf, -np.inf, np.nan]))).all()


# ------------------------------------------------------------------------------------------------- circle


@pytest.mark.parametrize("turn", [0.3, 2.0, 5.9])
def test_a_rotated_circle_has_the_same_integrals(turn):
    axis = Circle(6)
    a = rows(axis, DATA["angles"])
    k = np.arange(1, 7)
    cos, sin = a[:, ::2], a[:, 1::2]
    turned = np.empty_like(a)
    turned[:, ::2] = cos * np.cos(k * turn) - sin * np.sin(k * turn)
    turned[:, 1::2] = sin * np.cos(k * turn) + cos * np.sin(k * turn)
    mine, theirs = axis.integrals(a), axis.integrals(turned)
    np.testing.assert_allclose(theirs.log_Z, mine.log_Z, rtol=1e-11)
    x = np.linspace(0, 6, 50)
    energies = [axis.functions(at) @ b.T for at, b in ((x, a), (x + turn, turned))]
    np.testing.assert_allclose(*energies, atol=1e-9)
    c, s = mine.mean[:, ::2], mine.mean[:, 1::2]
    np.testing.assert_allclose(theirs.mean[:, ::2], c * np.cos(k * turn) - s * np.sin(k * turn), atol=1e-9)


def test_circle_against_bessel_functions():
    kappa = np.array([0.1, 1.0, 30.0, 300.0])
    got = Circle(1).integrals(np.stack([-kappa / np.sqrt(2), 0 * kappa], axis=1))
    from scipy.special import ive

    np.testing.assert_allclose(got.log_Z, np.log(2 * np.pi * ive(0, kappa)) + kappa, rtol=1e-13)
    np.testing.assert_allclose(got.mean[:, 0], np.sqrt(2) * ive(1, kappa) / ive(0, kappa), rtol=1e-11)


# ------------------------------------------------------------------------------------------------- whole line


def test_whole_line_closed_forms():
    mu, v = np.array([0.0, 3.0, -40.0]), np.array([1.0, 0.01, 5.0])
    axis = WholeLine(1.0, 2.0, 2)
    a = np.stack([-mu / v, 0.5 / v], axis=1)
    got = axis.integrals(a)
    np.testing.assert_allclose(got.log_Z, 0.5 * np.log(2 * np.pi * v) + mu**2 / (2 * v), rtol=1e-13)
    np.testing.assert_allclose(got.mean, np.stack([mu, mu**2 + v], axis=1), rtol=1e-12)
    np.testing.assert_allclose(got.covariance, np.stack([v, 2 * mu * v, 4 * mu**2 * v + 2 * v**2], axis=1), rtol=1e-12)
    x = axis.quantile(a, np.array([0.1, 0.5, 0.9]))
    np.testing.assert_allclose(x, 1 + 2 * norm.ppf([0.1, 0.5, 0.9], mu, np.sqrt(v)), rtol=1e-12)
    higher = WholeLine(1.0, 2.0, 4).integrals(np.hstack([a, np.zeros((3, 2))]))
    np.testing.assert_allclose(higher.log_Z, got.log_Z, rtol=1e-11)
    np.testing.assert_allclose(higher.mean[:, :2], got.mean, rtol=1e-10, atol=1e-10)


def test_whole_line_quartic_closed_form():
    b = np.array([1e-4, 1.0, 1e5])
    a = np.zeros((3, 4))
    a[:, 3] = b
    got = WholeLine(0.0, 1.0, 4).integrals(a)
    np.testing.assert_allclose(got.log_Z, gammaln(0.25) - np.log(2) - 0.25 * np.log(b), atol=1e-11)
    np.testing.assert_allclose(got.mean[:, 1], np.exp(gammaln(0.75) - gammaln(0.25)) / np.sqrt(b), rtol=1e-10)


@pytest.mark.parametrize(
    "row", [[0, 0, 0, 0], [1, 0, 0, 0], [0, -1, 0, 0], [0, 1, 1, 0], [0, 1, 0, -1e-9], [5, 2, -1, 0]], ids=str
)
def test_log_z_is_infinite_where_there_is_no_integral(row):
    got = WholeLine(0.0, 1.0, 4).integrals(np.array([row, [0, 0.5, 0, 0]], float))
    assert got.log_Z[0] == np.inf
    assert np.isnan(got.mean[0]).all()
    np.testing.assert_allclose(got.log_Z[1], 0.5 * np.log(2 * np.pi), rtol=1e-12)


# ------------------------------------------------------------------------------------------------ functions of users


def test_functions_with_a_logarithm_are_gamma_distributions():
    axis = Functions(gamma_functions, (0.0, np.inf), [1, 1])
    shape, rate = np.array([0.5, 1.0, 2.5, 30.0]), np.array([1.0, 1e-3, 1e4, 2.0])
    got = axis.integrals(np.stack([rate, 1 - shape], axis=1))
    assert np.all(got.error <= axis.tolerance)
    np.testing.assert_allclose(got.log_Z, gammaln(shape) - shape * np.log(rate), atol=1e-9)
    np.testing.assert_allclose(got.mean[:, 0], shape / rate, rtol=1e-6)
    np.testing.assert_allclose(got.covariance[:, 0], shape / rate**2, rtol=1e-7)
    assert np.isposinf(axis.integrals(np.array([[-1.0, 0.0], [1.0, 1.5], [0.0, 0.0]])).log_Z).all()


def test_functions_of_hermite_are_gaussian():
    axis = Functions(hermite_functions, (-np.inf, np.inf), [1, 2, 3, 4])
    mu, v = 0.7, 0.3
    got = axis.integrals(np.array([[-mu / v, 0.5 / v, 0, 0]]))
    assert got.error[0] <= axis.tolerance
    np.testing.assert_allclose(got.log_Z, 0.5 * np.log(2 * np.pi * v) + mu**2 / (2 * v) + 0.5 / v, atol=1e-10)
    np.testing.assert_allclose(got.mean[0, :2], [mu, mu**2 + v - 1], atol=1e-9)


def test_functions_between_ends_and_a_value_without_a_logarithm():
    between = Functions(bumps, (0.0, 2.0), [1, 2])
    np.testing.assert_allclose(between.integrals(np.zeros((1, 2))).log_Z, np.log(2.0), atol=1e-12)
    gamma = Functions(gamma_functions, (0.0, np.inf), [1, 1])
    assert gamma.contains(np.array([0.0, -1.0, np.nan, 1e-300, 3.0])).tolist() == [False, False, False, True, True]


# ------------------------------------------------------------------------------------------------- mapped, values


def test_a_mapped_axis_is_the_axis_of_g_with_the_slope_of_g():
    x = DATA["skewed"]
    axis, inner = Mapped.fit(x, 4, g="log10"), Line.fit(np.log10(x), 4)
    np.testing.assert_allclose(axis.functions(x), inner.functions(np.log10(x)), atol=1e-12)
    np.testing.assert_allclose(axis.log_base(x), inner.log_base(np.log10(x)) - np.log(x * np.log(10)), atol=1e-12)
    np.testing.assert_allclose(axis.integrals(rows(axis, x)).log_Z, inner.integrals(rows(axis, x)).log_Z, rtol=1e-13)


def test_values_are_sums():
    values, p = np.array([-2.0, -1.0, 0.5, 3.0, 4.0]), 4
    axis = Values.fit(DATA["five"], p)
    a = rows(axis, DATA["five"])
    weights = np.exp(-axis.functions(values) @ a.T)
    got = axis.integrals(a)
    np.testing.assert_allclose(got.log_Z, np.log(weights.sum(axis=0)), rtol=1e-12)
    np.testing.assert_allclose(
        got.mean, (weights.T @ axis.functions(values)) / weights.sum(axis=0)[:, None], atol=1e-12
    )
    assert axis.cdf(a[:1], np.array([0.4])) == pytest.approx(weights[:2, 0].sum() / weights[:, 0].sum())
    spin = Values.fit(np.array([-1.0, 1.0, 1.0, 1.0]), 2, values=[-1.0, 1.0])
    np.testing.assert_allclose(spin.functions(np.array([-1.0, 1.0])).ravel(), [-np.sqrt(3), 1 / np.sqrt(3)])


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("kind", [Line, WholeLine, Bounded, HalfLine])
@pytest.mark.parametrize(
    "x", [np.full(50, 3.0), np.zeros(50), np.full(50, 1e9), np.full(50, 0.1), np.array([2.0])], ids=str
)
def test_a_constant_column_is_refused(kind, x):
    with pytest.raises(ValueError, match="the column is constant"):
        kind.fit(x, 2)


@pytest.mark.parametrize("kind", [Line, WholeLine, Bounded])
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e-140, 1e-30, 1e30, 1e140, 1e200, 1e308])
def test_extreme_scales_work_or_are_refused(kind, scale):
    with np.errstate(all="ignore"):
        x = scale * np.random.default_rng(0).uniform(-1, 1, 200)
    if not 1e-149 < scale < 1e149:
        with pytest.raises(ValueError, match=r"the column (is constant|has a spread of .*out of range)"):
            kind.fit(x, 2)
        return
    axis = kind.fit(x, 2)
    assert np.isfinite(axis.functions(x)).all()
    assert np.isfinite(axis.log_base(x)).all()
    got = axis.integrals(np.array([[0.1, 0.3]]))
    assert np.isfinite(got.log_Z).all()
    assert got.error[0] <= axis.tolerance


@pytest.mark.parametrize("kind", [Line, Bounded])
def test_an_offset_of_a_thousand_million_spreads(kind):
    x = 1e9 + DATA["normal"]
    axis, plain = kind.fit(x, 4), kind.fit(x - 1e9, 4)
    np.testing.assert_allclose(axis.functions(x), plain.functions(x - 1e9), atol=1e-5)
    assert np.isfinite(axis.log_base(x)).all()


@pytest.mark.parametrize("kind", [Line, WholeLine, Bounded, HalfLine])
def test_integers_are_numbers(kind):
    x = DATA["integers"].astype(int)
    mine, theirs = kind.fit(x, 2), kind.fit(x.astype(float), 2)
    np.testing.assert_array_equal(mine.functions(x), theirs.functions(x.astype(float)))
    np.testing.assert_array_equal(mine.log_base(x), theirs.log_base(x.astype(float)))


def test_too_few_values_for_the_degree_are_refused():
    with pytest.raises(
        ValueError, match="has 3 different values, too few for polynomials of degree 4. Use degree 2 or less"
    ):
        Line.fit(np.array([0.0, 1.0, 2.0] * 20), 4)
    with pytest.raises(ValueError, match="constant"):
        Values.fit(np.ones(5), 2)


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ((1.0, 1.0), "must be finite and in order"),
        ((0.2, 0.8), "are not all between"),
        ((0.5, np.inf), "are not all at least 0.5"),
        ((-np.inf, 0.5), "are not all at most 0.5"),
        ("spin", "is not one of the values"),
    ],
)
def test_supports_that_do_not_hold_the_column_are_refused(support, message):
    with pytest.raises(ValueError, match=message):
        choose_axis(DATA["uniform"], 2, support)


@pytest.mark.parametrize("low", [1.0, 2.0])
def test_a_window_of_no_width_is_refused(low):
    line = Line.fit(DATA["normal"], 2)
    with pytest.raises(ValueError, match="low < high"):
        Line(0.0, 1.0, low, 1.0, line.tail, line.alpha, line.beta)


def test_97_percent_zeros_have_a_window():
    x = np.where(np.arange(1000) % 33 == 0, DATA["normal"][:1000], 0.0)
    axis = Line.fit(x, 2)
    assert axis.scale > 0
    assert np.isfinite(axis.integrals(np.zeros((1, 2))).log_Z).all()
