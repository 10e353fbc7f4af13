"""Pseudo-likelihood and score matching."""

import warnings

import numpy as np
import pandas as pd
import pytest
from cases import PAIR, WELLS, drawn
from scipy.integrate import quad
from scipy.optimize import minimize as scipy_minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_estimators import EXPECTED

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching
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


@pytest.mark.parametrize("truth", [paper_1d(), PolynomialModel.from_dict({(0,): 0.2, (0, 0): -4.0, (0,) * 4: 1.0})])
def test_pseudo_likelihood_of_one_variable_is_maximum_likelihood(truth):
    x = truth.sample(400, rng=0)[:, 0]
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
    X = drawn(PAIR, 500)
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


@pytest.mark.parametrize(
    ("kind", "module"), [(PseudoLikelihood, "pseudo_likelihood"), (ScoreMatching, "score_matching"), (ISODUS, "isodus")]
)
def test_node_by_node_where_there_are_too_many_terms(kind, module, monkeypatch):
    X = drawn(PAIR, 20_000)
    joint = kind().fit(X)
    monkeypatch.setattr(f"isodus.estimators.{module}.MOST_JOINT_TERMS", 5)
    single = kind().fit(X)
    assert single.status_ == ["converged"] * 2
    assert not np.array_equal(joint.model_.theta, single.model_.theta)
    assert np.allclose(joint.model_.theta, single.model_.theta, atol=0.03)
    ratio = single.model_.stderr() / joint.model_.stderr()
    assert np.all((ratio > 0.9) & (ratio < 2))  # who does not share, knows less


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


@pytest.mark.parametrize("kind", [PseudoLikelihood, ISODUS])
@pytest.mark.parametrize("seed", range(3))
def test_gaussian_data_at_degree_4_are_a_gaussian_and_say_so(kind, seed):
    """The quartic self terms are zero within their error, half the time on the wrong side: the hard case."""
    X = gaussian_10(seed).sample(5000, rng=0)[:, :3] + [10.0, 0.0, -3.0]
    said = "select=True left out 21 of 21 terms above degree 2: they are zero and were not tested"
    with pytest.warns(UserWarning, match=said) as caught:
        quartic = kind(degree=4, select=True).fit(X)
    assert len(caught) == 1
    assert quartic.status_ == ["converged"] * 3
    assert quartic.notes_ == [said]
    assert quartic.model_.settings["notes"] == quartic.notes_
    assert quartic.integrability_.status == "integrable"
    higher = quartic.model_.basis.degrees > 2
    assert not np.any(quartic.model_.theta[higher])
    gaussian = PseudoLikelihood(degree=2).fit(X).model_
    assert np.allclose(quartic.model_.theta[~higher], gaussian.theta, rtol=1e-9, atol=1e-12)
    assert np.allclose(quartic.model_.stderr()[~higher], gaussian.stderr(), rtol=1e-6)
    assert np.all(np.isnan(quartic.model_.stderr()[higher]))


@pytest.mark.parametrize("kind", BOTH)
def test_collinear_columns_are_named(kind):
    x, y = np.random.default_rng(0).standard_normal((2, 500))
    frame = pd.DataFrame({"a": x, "b": 2 * x, "c": y})
    with pytest.warns(ConvergenceWarning, match="cannot be told apart"):
        estimator = kind(degree=2).fit(frame)
    assert set(estimator.status_) == {"singular"}
    assert np.all(np.isnan(estimator.model_.stderr()))


def test_adaptive_integration_gives_the_same_optimum():
    X = drawn(WELLS, 300)[:, :1]
    batched, adaptive = (PseudoLikelihood(integration=how, tol=1e-9).fit(X) for how in ("batched", "adaptive"))
    assert np.allclose(batched.model_.theta, adaptive.model_.theta, rtol=1e-6, atol=1e-6)
    assert np.allclose(batched.model_.covariance, adaptive.model_.covariance, rtol=1e-5, atol=1e-9)
    with pytest.raises(ValueError, match="integration must be one of 'batched', 'adaptive', not 'quad'"):
        PseudoLikelihood(integration="quad").fit(X)


@pytest.mark.parametrize(
    ("estimator", "X", "category", "message"),
    [
        (
            ScoreMatching(),
            gaussian_10(0).sample(3000, rng=0)[:, :3],
            UserWarning,
            "no density on the whole space: .*along",
        ),
        (
            ISODUS(refine=0, nu=0.1, integrable="warn"),
            gaussian_10(0).sample(3000, rng=3)[:, :3],
            UserWarning,
            "no density on the whole space",
        ),
        (ISODUS(refine=0, max_iter=1), gaussian_10(0).sample(300, rng=0)[:, :2], ConvergenceWarning, "no convergence"),
        (PseudoLikelihood(max_iter=1), drawn(PAIR, 2000), ConvergenceWarning, "no convergence"),
        (ISODUS(degree=2), np.random.default_rng(0).standard_t(2, (500, 1)), UserWarning, "heavier"),
    ],
    ids=["score matching", "screening", "screening, iterations", "pseudo-likelihood, iterations", "tails"],
)
def test_warnings_point_to_the_line_that_called_fit(estimator, X, category, message):
    with pytest.warns(category, match=message) as caught:
        estimator.fit(X)
    assert {warning.filename for warning in caught} == {__file__}
    no_density = any("no density on the whole space" in str(warning.message) for warning in caught)
    assert (estimator.integrability_.status == "not integrable") == no_density


@pytest.mark.parametrize(
    ("height", "seed", "worse"), [(8.0, 0, False), (40.0, 0, False), (40.0, 1, True), (40.0, 2, True)]
)
def test_score_matching_that_loses_to_a_gaussian_says_so(height, seed, worse):
    """Between wells far apart there are no samples, and it does not see how they are weighted: it may lose, or not."""
    X = PolynomialModel.from_dict({(0, 0): -height, (0, 0, 0, 0): height / 4}).sample(2000, rng=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = ScoreMatching().fit(X)
    lost = PseudoLikelihood(degree=2).fit(X).score(X) - estimator.score(X)
    assert (lost > 0.1) == worse
    assert any("worse than a Gaussian does" in str(w.message) and w.filename == __file__ for w in caught) == worse
