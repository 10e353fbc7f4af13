"""Energy, score, log Z and the polynomial view against quadrature, finite differences and closed forms."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal

from isodus import IsodusWarning, PolynomialModel, PseudoLikelihood, datasets
from isodus.axes import Circle, Line, WholeLine


def polynomial_energy(theta, X):
    return sum(value * np.prod(X[:, list(key)], axis=1) for key, value in theta.items())


def gauss_log_Z(theta, p, edge=7.0, count=120):
    """log ∫ exp(−E) on a box, by numpy's Gauss-Legendre nodes."""
    u, w = np.polynomial.legendre.leggauss(count)
    places = np.stack([m.ravel() for m in np.meshgrid(*[edge * u] * p, indexing="ij")], axis=1)
    weights = np.prod([m.ravel() for m in np.meshgrid(*[edge * w] * p, indexing="ij")], axis=0)
    return float(np.log(weights @ np.exp(-polynomial_energy(theta, places))))


def line_log_Z(model, count=150):
    """log ∫ exp(−energy) for lines: Gauss-Legendre nodes inside, and tails in which q falls exponentially."""
    u, w = np.polynomial.legendre.leggauss(count)
    places, log_weights = [], []
    for axis in model.terms.axes:
        middle, half = (axis.high + axis.low) / 2, (axis.high - axis.low) / 2
        y = np.concatenate([[axis.low], middle + half * u, [axis.high]])
        places.append(axis.location + axis.scale * y)
        log_weights.append(np.log(axis.scale * np.concatenate([[axis.tail], half * w, [axis.tail]])))
    X = np.stack([m.ravel() for m in np.meshgrid(*places, indexing="ij")], axis=1)
    logs = sum(np.meshgrid(*log_weights, indexing="ij")).ravel() - model.energy(X)
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


def test_gaussian_by_hand_is_scipys():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 4))
    precision, mean = A @ A.T + np.eye(4), rng.standard_normal(4)
    theta = {(i,): -(precision @ mean)[i] for i in range(4)}
    theta |= {(i, j): precision[i, j] / (2 if i == j else 1) for i in range(4) for j in range(i, 4)}
    X = rng.standard_normal((50, 4))
    model = PolynomialModel.from_dict(theta)
    reference = multivariate_normal(mean, np.linalg.inv(precision))
    log_Z = 0.5 * mean @ precision @ mean + 0.5 * np.log(np.linalg.det(2 * np.pi * np.linalg.inv(precision)))
    np.testing.assert_allclose(model.logpdf(X, log_Z), reference.logpdf(X), atol=1e-11)
    np.testing.assert_allclose(model.score_function(X), -(X - mean) @ precision, atol=1e-7)


def test_gaussian_of_two_variables_has_its_log_Z():
    model = PolynomialModel.from_dict({(0,): 0.4, (0, 0): 1.0, (0, 1): 0.7, (1, 1): 0.8})
    precision = np.array([[2.0, 0.7], [0.7, 1.6]])
    mean = np.linalg.solve(precision, [-0.4, 0.0])
    X = np.random.default_rng(1).standard_normal((20, 2))
    reference = multivariate_normal(mean, np.linalg.inv(precision)).logpdf(X)
    np.testing.assert_allclose(model.logpdf(X), reference, atol=1e-8)


def test_logpdf_of_two_variables_by_quadrature():
    theta = datasets.paper_pair_theta(2)
    model = PolynomialModel.from_dict(theta)

    def f(y, x):
        return np.exp(-sum(value * x ** key.count(0) * y ** key.count(1) for key, value in theta.items()))

    Z = dblquad(f, -3, 3, -3, 3, epsabs=1e-10, epsrel=1e-10)[0]
    X = np.random.default_rng(0).standard_normal((10, 2))
    np.testing.assert_allclose(model.logpdf(X), -polynomial_energy(theta, X) - np.log(Z), atol=1e-8)


def test_logpdf_of_three_variables_by_quadrature(quartic):
    theta = quartic.to_dict()
    X = np.random.default_rng(0).standard_normal((10, 3))
    np.testing.assert_allclose(quartic.logpdf(X), -polynomial_energy(theta, X) - gauss_log_Z(theta, 3), atol=1e-8)


def test_logpdf_of_fits_is_normalised(pair, triple):
    assert pair.log_partition() == pytest.approx(line_log_Z(pair), abs=1e-8)
    assert triple.log_partition() == pytest.approx(line_log_Z(triple, 60), abs=1e-8)


@pytest.mark.parametrize("name", ["pair", "quartic"])
def test_energy_and_log_Z_are_minus_logpdf(name, request):
    model = request.getfixturevalue(name)
    X = np.random.default_rng(3).standard_normal((30, len(model.names)))
    np.testing.assert_array_equal(model.energy(X) + model.log_partition(), -model.logpdf(X))
    np.testing.assert_array_equal(model.energy(X) + 1.5, -model.logpdf(X, 1.5))


def test_log_partition_is_kept_and_has_an_error(pair):
    assert pair.log_partition() == pair.log_partition(0)
    value, stderr = pair.log_partition(return_stderr=True)
    assert value == pair.log_partition()
    assert stderr < 1e-6


def test_log_partition_of_no_density_is_an_error():
    model = PolynomialModel.from_dict({("a", "a"): 1.0, ("a", "b"): 3.0, ("b", "b"): -1.0})
    with pytest.raises(ValueError, match="has no density.* whole line: not integrable. Along 'b' alone"):
        model.log_partition()


def test_score_is_the_slope_of_the_energy(pair, quartic, triple):
    for model in (pair, quartic, triple):
        X = 0.7 * np.random.default_rng(4).standard_normal((25, len(model.names)))
        slope = np.empty_like(X)
        for i in range(X.shape[1]):
            h = 1e-5 * np.eye(X.shape[1])[i]
            slope[:, i] = (model.energy(X + h) - model.energy(X - h)) / 2e-5
        np.testing.assert_allclose(model.score_function(X), -slope, atol=2e-8 * max(1, np.abs(slope).max()))


def test_score_on_axes_of_all_kinds(mixed, values):
    with pytest.raises(ValueError, match="'spin' have no derivatives"):
        mixed.score_function(values)
    axes = [axis for name, axis in zip(mixed.names, mixed.terms.axes, strict=True) if name != "spin"]
    keys = (
        {(i,): 0.3 * (i + 1) for i in range(6)} | {(i, i + 1): 0.5 for i in range(5)} | {(i, i): -0.2 for i in range(6)}
    )
    model = PolynomialModel.from_dict(keys, axes=axes)
    X = np.delete(values, 2, axis=1)
    slope = np.empty_like(X)
    for i in range(6):
        h = 1e-5 * np.eye(6)[i]
        slope[:, i] = (model.energy(X - h) - model.energy(X + h)) / 2e-5
    np.testing.assert_allclose(model.score_function(X), slope, rtol=1e-5, atol=1e-6)


def test_score_off_an_axis_or_at_its_end_is_an_error(mixed):
    model = PolynomialModel.from_dict({("s",): 1.0}, axes=[mixed.terms.axes[4]])
    with pytest.raises(ValueError, match="Column 's' has the value 2 in row 1"):
        model.score_function([[0.5], [2.0]])
    with pytest.raises(ValueError, match="'s' has the value 1 in row 0, where its axis ends"):
        model.score_function([[1.0]])


def test_energy_off_an_axis_is_infinite(mixed, values):
    X = values.copy()
    X[3, 2] = 0.5  # not a spin
    energy = mixed.energy(X)
    assert energy[3] == np.inf
    assert np.isfinite(np.delete(energy, 3)).all()
    assert mixed.logpdf(X, 0.0)[3] == -np.inf


# ------------------------------------------------------------------------------------------------ powers of x


def test_polynomial_of_a_fit_is_its_energy(pair, triple):
    for model in (pair, triple):
        X = 2 * np.random.default_rng(6).random((40, len(model.names))) - 1  # inside all windows
        gap = model.energy(X) - polynomial_energy(model.to_dict(), X)
        assert np.ptp(gap) < 1e-10 * np.abs(model.energy(X)).max()


def test_polynomial_of_a_basis_without_lower_terms():
    X = datasets.paper_pair(500) + np.array([3.0, -1.0])
    with pytest.warns(IsodusWarning, match="below a Gaussian. Include all terms up to degree 2"):
        model = PseudoLikelihood(4, basis=[(0, 0), (1, 1), (0, 1), (0, 0, 0, 0), (1, 1, 1, 1)]).fit(X).model_
    assert sorted(model.to_dict()) == [(0, 0), (0, 0, 0, 0), (0, 1), (1, 1), (1, 1, 1, 1)]
    gap = model.energy(X) - polynomial_energy(model.to_dict(), X)
    assert np.ptp(gap) < 1e-9 * np.abs(model.energy(X)).max()


def test_covariance_in_powers_of_x(pair):
    """Errors of τ are errors of the energy: both give the same variance of differences between two places."""
    X = 2 * np.random.default_rng(8).random((12, 2)) - 1
    view = pair.polynomial()
    phi = [axis.functions(x) for axis, x in zip(pair.terms.axes, X.T, strict=True)]
    functions = np.stack([np.prod([phi[i][:, l] for i, l in f], axis=0) for f in pair.terms.products], axis=1)
    powers = np.stack([np.prod(X[:, list(key)], axis=1) for key in view.keys], axis=1)
    for design, covariance in ((functions, pair.fitted.tau_covariance()), (powers, view.covariance)):
        gaps = design[1:] - design[0]
        variances = np.einsum("nk,kl,nl->n", gaps, covariance, gaps)
        if design is functions:
            expected = variances
    np.testing.assert_allclose(variances, expected, rtol=1e-7)
    np.testing.assert_allclose(pair.stderr, np.sqrt(np.diagonal(view.covariance)))


def test_tests_do_not_depend_on_units():
    X = datasets.paper_pair(400, seed=2)
    tables = [PseudoLikelihood(4).fit(Y).model_.interactions() for Y in (X, 1e3 * X + 50.0)]
    np.testing.assert_allclose(tables[0]["statistic"], tables[1]["statistic"], rtol=1e-4)


# ------------------------------------------------------------------------------------------------ by hand


def test_from_dict_takes_names_numbers_and_an_order():
    by_name = PolynomialModel.from_dict({("b", "a"): 0.5, ("a", "a"): 1.0, "b": 0.1, ("b", "b"): 1.0}, names=["a", "b"])
    by_number = PolynomialModel.from_dict({(1, 0): 0.5, (0, 0): 1.0, (1,): 0.1, (1, 1): 1.0})
    assert by_name.names == ("a", "b")
    assert by_number.names == ("x0", "x1")
    assert by_name.to_dict() == by_number.to_dict() == {(0, 0): 1.0, (0, 1): 0.5, (1,): 0.1, (1, 1): 1.0}
    assert PolynomialModel.from_dict(by_name.to_dict()).to_dict() == by_name.to_dict()


def test_from_dict_on_given_axes(pair):
    """The fit's coefficients on its axes are the fit."""
    again = PolynomialModel.from_dict(pair.to_dict(), names=pair.names, axes=pair.terms.axes)
    X = pd.DataFrame(np.random.default_rng(9).standard_normal((20, 2)), columns=["a", "b"])
    np.testing.assert_allclose(again.energy(X), pair.energy(X), rtol=1e-9)


def test_from_dict_on_given_axes_without_lower_terms():
    rng = np.random.default_rng(10)
    axes = [Line.fit(3 + rng.standard_normal(300), 4), Line.fit(0.1 * rng.standard_normal(300), 4)]
    theta = {(0, 0): 0.4, (0, 1): -2.0, (1, 1, 1, 1): 500.0}
    model = PolynomialModel.from_dict(theta, axes=axes)
    X = np.column_stack([3 + rng.standard_normal(20), 0.1 * rng.standard_normal(20)])
    assert np.ptp(model.energy(X) - polynomial_energy(theta, X)) < 1e-8
    assert {key: pytest.approx(value) for key, value in model.to_dict().items()} == theta


@pytest.mark.parametrize(
    ("coefficients", "options", "message"),
    [
        ({}, {}, "at least one term"),
        ([1.0], {}, "at least one term"),
        ({("a", 0): 1.0}, {}, "mix names and numbers"),
        ({("a", "b"): 1.0, ("b", "a"): 2.0}, {}, "twice"),
        ({("a",): np.nan}, {}, "coefficient of .*finite"),
        ({("a",): "1"}, {}, "coefficient of .*finite"),
        ({(): 1.0}, {}, "one of the keys is empty"),
        ({tuple(range(65)): 1.0}, {}, "at most 64 variables, and .* has 65"),
        ({(-1,): 1.0}, {}, "number from 0 on"),
        ({(0.5,): 1.0}, {}, "number from 0 on"),
        ({("a",): 1.0}, {"names": ["b"]}, "no variable 'a'"),
        ({(2,): 1.0}, {"names": ["a", "b"]}, "no variable 2"),
        ({(0,): 1.0}, {"names": ["a", "a"]}, "different from each other"),
        ({("a",): 1.0}, {"axes": [WholeLine(0.0, 1.0, 2)] * 2}, "1 variables and 2 axes"),
        ({("a",) * 3: 1.0}, {"axes": [WholeLine(0.0, 1.0, 2)]}, "needs function 3 of 'a', whose axis has 2"),
    ],
)
def test_from_dict_refuses_by_name(coefficients, options, message):
    with pytest.raises(ValueError, match=message):
        PolynomialModel.from_dict(coefficients, **options)


def test_a_circle_is_in_terms_of_cosines_and_sines():
    """Coefficients are those of cos x and sin x, whatever the functions are inside."""
    angles = np.random.default_rng(0).vonmises(0.3, 2.0, (4000, 1))
    model = PseudoLikelihood(1, support="circle").fit(angles).model_
    a, b = (model.to_dict()[key] for key in ((0,), (0, 0)))
    x = np.linspace(0, 6, 7)
    gap = model.energy(x[:, None]) - (a * np.cos(x) + b * np.sin(x))
    assert np.ptp(gap) < 1e-12
    assert np.hypot(a, b) == pytest.approx(2.0, abs=4 * model.stderr.max())
    given = PolynomialModel.from_dict({(0,): 1.0, (0, 0): 0.5}, axes=[Circle(2)])
    np.testing.assert_allclose(given.energy(x[:, None]), np.cos(x) + 0.5 * np.sin(x))
    assert given.to_dict() == pytest.approx({(0,): 1.0, (0, 0): 0.5})


def test_whether_a_model_by_hand_has_an_integral_is_asked_before_draws():
    one = PolynomialModel.from_dict({(0,) * 4: 1, (0, 0, 0, 1): -4, (0, 0, 1, 1): 6, (0, 1, 1, 1): -4, (1,) * 4: 1})
    for f in (one.log_partition, lambda: one.sample(5), lambda: one.logpdf([[0.0, 0.0]])):
        with pytest.raises(ValueError, match="no density. .* not integrable. E does not change along"):
            f()
    with pytest.warns(IsodusWarning, match="cannot tell whether this model has a density"):
        PolynomialModel.from_dict({(0, 0, 1, 1): 1, (0, 0): 1, (1, 1): 0.01, (0, 1, 1): 0.001}).sample(5)
    with pytest.raises(ValueError, match="out of range. Use other units"):
        PolynomialModel.from_dict({(0,) * 4: 1e-308}).log_partition()
