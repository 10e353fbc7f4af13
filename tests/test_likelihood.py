import numpy as np
import pytest

from isodus import MonomialBasis, PolynomialModel, match_moments
from isodus.datasets import double_wells, paper_pair
from isodus.likelihood import statistics


def units(X, degree=4):
    basis = MonomialBasis(X.shape[1], degree, max_order=2)
    return PolynomialModel(basis, np.zeros(len(basis)), np.median(X, axis=0), X.std(axis=0))


def test_statistics_are_the_monomials():
    Y = np.random.default_rng(0).standard_normal((3, 5))
    basis = MonomialBasis(3, 3)
    expected = [np.prod(Y[list(term)], axis=0) for term in basis.terms]
    np.testing.assert_allclose(statistics(basis, Y), expected, rtol=1e-14)


def test_the_moments_of_samples_are_those_of_the_data():
    X = double_wells(2, height=1.5, coupling=0.8).sample(20_000, rng=0)
    model = match_moments(units(X), X, rng=0)
    assert model.integrability().status == "integrable"
    drawn = np.asarray(model.sample(50_000, rng=1))
    basis = MonomialBasis(2, 4)
    T, Q = (statistics(basis, ((rows - model.location) / model.scale).T) for rows in (np.asarray(X), drawn))
    off = (Q.mean(axis=1) - T.mean(axis=1)) / T.std(axis=1)
    assert np.abs(off).max() < 0.05  # a Gaussian with the same covariance is off by more than ten times that
    gaussian = np.random.default_rng(0).multivariate_normal(X.mean(axis=0), np.cov(np.asarray(X).T), 50_000)
    G = statistics(basis, ((gaussian - model.location) / model.scale).T)
    assert np.abs((G.mean(axis=1) - T.mean(axis=1)) / T.std(axis=1)).max() > 0.5
    assert "standard deviations from those in the data" in model.settings["notes"][0]


def test_parameters_lie_within_their_errors_of_the_truth():
    """The highest power is held at a thousandth or more, in truth zero: a small bias, beside these errors."""
    truth = paper_pair(1)
    X = truth.sample(4000, rng=3)
    model = match_moments(units(X), X, rng=0)
    true = truth.to_dict()
    found, stderr = model.to_dict(), dict(zip(model.basis.terms, model.stderr(), strict=True))
    z = [(found[term] - true.get(term, 0.0)) / stderr[term] for term in found if len(term) == 2]
    assert np.all(np.isfinite(z))
    assert np.max(np.abs(z)) < 4


def test_a_seed_gives_the_same_model():
    X = paper_pair(1).sample(2000, rng=0)
    first, second = (match_moments(units(X), X, rng=5) for _ in range(2))
    np.testing.assert_array_equal(first.theta, second.theta)


def test_too_few_samples_and_constant_columns_are_refused():
    X = paper_pair(1).sample(10, rng=0)
    with pytest.raises(ValueError, match="10 samples do not tell"):
        match_moments(units(np.asarray(X)), X)
    X = np.column_stack([np.random.default_rng(0).standard_normal(500), np.ones(500)])
    basis = MonomialBasis(2, 4)
    model = PolynomialModel(basis, np.zeros(len(basis)), names=["a", "b"])
    with pytest.raises(ValueError, match="b is the same in all samples"):
        match_moments(model, X)
    with pytest.raises(ValueError, match="nan in row 3, column x0"):
        match_moments(
            PolynomialModel(basis, np.zeros(len(basis))), np.where(np.arange(1000).reshape(500, 2) == 6, np.nan, X)
        )
