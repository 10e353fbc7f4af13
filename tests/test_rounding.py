"""Densities far from zero beside their width: told to the digits that the parameters hold, or refused."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from isodus import ISODUS, PolynomialModel
from isodus.datasets import double_wells

COVARIANCE = np.array([[2.0, 0.8, -0.3], [0.8, 1.0, 0.2], [-0.3, 0.2, 0.5]])


def gaussian(mean, covariance=COVARIANCE):
    """In raw units, with no location to help."""
    precision = np.linalg.inv(covariance)
    linear, p = -precision @ mean, len(mean)
    theta = {(i, j): precision[i, j] * (0.5 if i == j else 1.0) for i in range(p) for j in range(i, p)}
    return PolynomialModel.from_dict(theta | {(i,): linear[i] for i in range(p)})


@pytest.mark.parametrize("far", [0.0, 1e3, 1e6, 1e9])
def test_gaussians_far_from_zero(far):
    """Against the textbook; the rounding of the linear terms alone moves the mean by 1e-16 of it."""
    mean = far * np.array([1.0, -0.7, 0.3]) + 0.3
    model = gaussian(mean)
    X = mean + np.random.default_rng(0).multivariate_normal(np.zeros(3), 4 * COVARIANCE, 50)
    truth = stats.multivariate_normal(np.zeros(3), COVARIANCE)
    atol = 1e-11 + 1e-15 * far
    np.testing.assert_allclose(model.logpdf(X), truth.logpdf(X - mean), rtol=0, atol=100 * atol)
    precision = np.linalg.inv(COVARIANCE)
    spread = 1 / np.sqrt(np.diagonal(precision))
    given = (X - mean) - (X - mean) @ precision * spread**2  # of each variable, from its mean
    expected = stats.norm.logpdf(X - mean, given, spread)
    np.testing.assert_allclose(model.conditional_log_density(X), expected, rtol=0, atol=1e-6 + 100 * atol)
    for i in range(3):
        found = model.conditional(i, X)
        np.testing.assert_allclose(found.logpdf(X[:, i]), expected[:, i], rtol=0, atol=100 * atol)
        np.testing.assert_allclose(found.mean() - mean[i], given[:, i], rtol=0, atol=100 * atol)


def test_the_normalisation_of_a_gaussian_far_from_zero():
    mean, spread = 1e5 + 0.3, 1.7
    model = PolynomialModel.from_dict({(0, 0): 0.5 / spread**2, (0,): -mean / spread**2})
    with mpmath.workdps(40):
        a, b = (mpmath.mpf(model.to_dict()[term]) for term in ((0, 0), (0,)))
        exact = b**2 / (4 * a) + mpmath.log(mpmath.pi / a) / 2
    assert model.log_partition() == pytest.approx(float(exact), rel=1e-14)


def test_a_gaussian_beside_what_is_none():
    """Groups that do not interact: only the Gaussian is moved to its mean."""
    wells = {(0,) * 4: 1.0, (0, 0): -1.0, (0,): 0.2}
    mean = 1e7 + 0.25
    both = PolynomialModel.from_dict(wells | {(1, 1): 0.5, (1,): -mean})
    X = np.random.default_rng(0).standard_normal((20, 2))
    expected = PolynomialModel.from_dict(wells).logpdf(X[:, :1]) + stats.norm.logpdf(X[:, 1])
    np.testing.assert_allclose(both.logpdf(X + np.array([0.0, mean])), expected, atol=1e-7)


@pytest.mark.parametrize("centre", [300.0, 1e4])
def test_quartics_far_from_zero_are_told_or_refused(centre):
    """The same model with a location knows; written in x, its parameters have lost digits from some distance on."""
    X = double_wells(3).sample(1500, rng=0) + centre
    model = ISODUS(4).fit(X).model_
    raw, rows = PolynomialModel.from_dict(model.to_dict()), X[:100]
    if centre < 1e3:
        expected = model.conditional_log_density(rows)
        np.testing.assert_allclose(raw.conditional_log_density(rows), expected, atol=1e-5)
        np.testing.assert_allclose(raw.conditional(0, rows).mean(), model.conditional(0, rows).mean(), atol=1e-5)
        return
    assert np.abs(raw.energy(rows) - model.energy(rows)).max() > 1
    for ask in (raw.conditional_log_density, lambda rows: raw.conditional(1, rows)):
        with pytest.raises(
            ValueError, match=r"the energy cancels: in row \d+, where the density of x\d given the others"
        ):
            ask(rows)
    with pytest.raises(ValueError, match="the energy cancels: where the density of x0, x1, x2 is"):
        raw.logpdf(rows)


def test_a_gaussian_whose_parameters_do_not_hold_its_mean_is_refused():
    flat = gaussian(np.full(2, 1e9), np.array([[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]]))
    with pytest.raises(ValueError, match="the energy cancels"):
        flat.logpdf([[1e9, 1e9]])
    with pytest.raises(ValueError, match="the energy cancels: in row 1, where the density of x0 given the others is"):
        PolynomialModel.from_dict({(0, 0): 0.5, (0, 1): -1.0, (1, 1): 1.0}).conditional(0, [[0.0, 1.0], [0.0, 1e14]])


@pytest.mark.parametrize("degree", [2, 4])
def test_rows_far_out_are_scored(degree):
    """Where the energy is large and not the difference of large numbers, its digits are there."""
    est = ISODUS(degree).fit(double_wells(2).sample(2000, rng=0))
    theta = est.model_.to_dict()
    for far in (1e2, 1e5, 1e8):
        found = est.score_samples([[far, 0.0]])[0]
        assert found == pytest.approx(-theta[(0,) * degree] * far**degree / 2, rel=0.3)


@pytest.mark.parametrize("support", ["positive", (0.0, 3e8)])
def test_elsewhere_than_on_the_line_it_is_refused(support):
    for mean, fine in ((1e3, True), (1e8, False)):
        model = PolynomialModel.from_dict({(0, 0): 0.5, (0,): -mean}, support=support)
        rows = mean + np.array([[-1.0], [0.0], [2.0]])
        if fine:
            found = model.conditional_log_density(rows)[:, 0]
            np.testing.assert_allclose(found, stats.norm.logpdf(rows[:, 0], mean), atol=1e-8)
            continue
        for ask in (model.conditional_log_density, lambda rows, model=model: model.conditional(0, rows)):
            with pytest.raises(ValueError, match="the energy cancels: in row 0"):
                ask(rows)
