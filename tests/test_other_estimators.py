"""Pseudo-likelihood and score matching."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize as scipy_minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_estimators import EXPECTED

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching, estimators
from isodus.datasets import gaussian_10, paper_1d, paper_4d, paper_pair

BOTH = [PseudoLikelihood, ScoreMatching]


@parametrize_with_checks(
    [PseudoLikelihood(degree=2), ScoreMatching(degree=2)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def theta(estimator, units="raw"):
    return np.array(list(estimator.model_.to_dict(units).values()))


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_gaussian_is_the_inverse_covariance(kind, weighted):
    X = gaussian_10(2).sample(3000, rng=0) + np.arange(10.0)
    weight = np.random.default_rng(0).integers(1, 4, 3000) if weighted else None
    estimator = kind(degree=2).fit(X, sample_weight=weight)
    covariance = np.cov(X.T, ddof=0, fweights=weight)
    assert np.allclose(estimator.precision_, np.linalg.inv(covariance), rtol=1e-6, atol=1e-8)
    linear = [estimator.model_.to_dict()[(i,)] for i in range(10)]
    mean = np.average(X, axis=0, weights=weight)
    assert np.allclose(linear, -np.linalg.solve(covariance, mean), rtol=1e-5, atol=1e-6)


def test_pseudo_likelihood_of_one_variable_is_maximum_likelihood():
    x = paper_1d().sample(400, rng=0)[:, 0]
    moments = np.array([np.mean(x**k) for k in range(1, 5)])

    def minus_log_likelihood(t):
        z = quad(lambda v: np.exp(-np.polyval([*t[::-1], 0.0], v)), -6, 6, epsabs=0, epsrel=1e-12, limit=200)[0]
        return t @ moments + np.log(z)

    estimator = PseudoLikelihood(tol=1e-9).fit(x[:, None])
    found = scipy_minimize(minus_log_likelihood, theta(estimator) * 0.7, method="BFGS", options={"gtol": 1e-9})
    assert np.allclose(theta(estimator), found.x, rtol=1e-4, atol=1e-4)
    assert minus_log_likelihood(theta(estimator)) <= found.fun + 1e-10
    assert estimator.score(x[:, None]) == pytest.approx(-found.fun, abs=1e-9)


def test_pseudo_likelihood_is_the_best_score_there_is():
    """All variables share one θ, so no other model of the family scores better on the same samples."""
    X = paper_pair(2).sample(2000, rng=0)
    best = PseudoLikelihood(tol=1e-9).fit(X)
    assert best.status_ == ["converged"] * 2
    for other in (ISODUS().fit(X), ScoreMatching().fit(X)):
        assert other.score(X) < best.score(X)
    for seed in range(5):
        step = np.random.default_rng(seed).standard_normal(len(best.model_.theta))
        for size in (1e-3, -1e-3):
            moved = PolynomialModel(best.model_.basis, best.model_.theta + size * step, best.location_, best.scale_)
            assert moved.conditional_log_density(X).mean() < best.score(X)


def test_score_matching_solves_its_normal_equations():
    """Σ_i ⟨∂_iφ_k ∂_iφ_j⟩ θ_j = Σ_i ⟨∂_i²φ_k⟩, statistics and derivatives by finite differences."""
    X = paper_pair(1).sample(500, rng=0)
    estimator = ScoreMatching(center=False, scale=False).fit(X)
    terms, h = estimator.model_.basis.terms, 1e-4
    phi = lambda Z: np.stack([np.prod(Z[:, list(t)], axis=1) for t in terms], axis=1)
    A, b = 0.0, 0.0
    for step in h * np.eye(2):
        first = (phi(X + step) - phi(X - step)) / (2 * h)
        A = A + first.T @ first / len(X)
        b = b + np.mean((phi(X + step) - 2 * phi(X) + phi(X - step)) / h**2, axis=0)
    assert np.allclose(A @ theta(estimator), b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("truth", [paper_1d(), paper_pair(1), paper_4d()])
def test_the_truth_is_found(kind, truth):
    options = dict(min_degree=2, max_order=None)
    true = truth.to_dict()
    found = kind(**options).fit(truth.sample(40_000, rng=0)).model_.to_dict()
    assert np.mean([abs(value - true.get(term, 0.0)) for term, value in found.items()]) < 0.12


@pytest.mark.parametrize("kind", BOTH)
def test_node_by_node_where_there_are_too_many_terms(kind, monkeypatch):
    X = paper_pair(1).sample(20_000, rng=0)
    joint = theta(kind().fit(X), "standardized")
    monkeypatch.setattr(estimators, "MOST_JOINT_TERMS", 5)
    single = kind().fit(X)
    assert single.status_ == ["converged"] * 2
    assert not np.array_equal(joint, theta(single, "standardized"))
    assert np.allclose(joint, theta(single, "standardized"), atol=0.03)


def test_a_gaussian_with_known_zeros_is_solved_jointly():
    """Without the term (0, 1) the regressions of its two variables disagree about what they share."""
    basis = MonomialBasis(3, terms=[(0,), (1,), (2,), (0, 0), (1, 1), (2, 2), (0, 2), (1, 2)])
    X = np.random.default_rng(0).multivariate_normal(np.zeros(3), [[1, 0.4, 0.5], [0.4, 1, 0.5], [0.5, 0.5, 1]], 2000)
    estimator = PseudoLikelihood(basis=basis, tol=1e-9).fit(X)
    for size in (1e-3, -1e-3):
        for k in range(len(basis)):
            step = size * np.eye(len(basis))[k]
            moved = PolynomialModel(basis, estimator.model_.theta + step, estimator.location_, estimator.scale_)
            assert moved.conditional_log_density(X).mean() < estimator.score(X)


@pytest.mark.parametrize("seed", range(3))
def test_gaussian_data_at_degree_4_are_near_gaussian_or_say_that_they_did_not_converge(seed):
    """The quartic self terms are zero within their error, half the time on the wrong side: the hard case."""
    X, held_out = (gaussian_10(seed).sample(5000, rng=k)[:, :3] for k in (0, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quartic = PseudoLikelihood(degree=4, max_iter=40).fit(X)
    values = quartic.model_.to_dict("standardized")
    assert all(values[(i,) * 4] >= 1e-3 * (1 - 1e-9) for i in range(3))
    held = [i for i in range(3) if values[(i,) * 4] <= 1.001e-3]
    assert len(quartic.notes_) == len(held)
    assert all("do not support" in note for note in quartic.notes_)
    if set(quartic.status_) == {"converged"}:
        assert not caught
        assert abs(quartic.score(held_out) - PseudoLikelihood(degree=2).fit(X).score(held_out)) < 0.01
    else:
        assert [w.category for w in caught] == [ConvergenceWarning]


@pytest.mark.parametrize("kind", BOTH)
def test_collinear_columns_are_named(kind):
    x, y = np.random.default_rng(0).standard_normal((2, 500))
    frame = pd.DataFrame({"a": x, "b": 2 * x, "c": y})
    with pytest.warns(ConvergenceWarning, match="cannot be told apart"):
        estimator = kind(degree=2).fit(frame)
    assert set(estimator.status_) == {"singular"}
