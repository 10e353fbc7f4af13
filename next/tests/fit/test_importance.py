"""Importance weights: ratios of densities, whose scale means nothing; errors by the squares of the weights."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isodus import ISODUS, IsodusWarning, PowerReference, PseudoLikelihood, ScoreMatching
from isodus.data import as_samples
from isodus.fit.sandwich import inverse

RNG = np.random.default_rng(31)
X = RNG.multivariate_normal([0.0, 1.0], [[1.0, 0.4], [0.4, 2.0]], 900)
W = np.exp(0.5 * X[:, 0])
ESTIMATORS = {
    "pseudo-likelihood": lambda **k: PseudoLikelihood(4, tol=1e-8, n_jobs=1, **k),
    "tilted": lambda **k: ISODUS(4, tol=1e-8, n_jobs=1, **k),
    "power": lambda **k: ISODUS(4, reference=PowerReference(0.1), tol=1e-8, n_jobs=1, **k),
    "score matching": lambda **k: ScoreMatching(4, tol=1e-8, n_jobs=1, **k),
    "consensus": lambda **k: PseudoLikelihood(4, consensus="mean", tol=1e-8, n_jobs=1, **k),
}


def fitted(name, rows=X, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsodusWarning)
        return ESTIMATORS[name]().fit(rows, **kwargs)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_only_proportions_matter(name):
    one = fitted(name, sample_weight=W, weights="importance")
    other = fitted(name, sample_weight=1e15 * W, weights="importance")
    se = np.sqrt(np.diag(one.model_.fitted.tau_covariance()))
    assert_allclose((one.model_.tau - other.model_.tau) / se, 0.0, atol=1e-6)
    assert_allclose(np.diag(other.model_.fitted.tau_covariance()), se**2, rtol=1e-6)
    assert_allclose(one.ridge_, other.ridge_, rtol=1e-9)
    assert one.model_.fitted.n == pytest.approx(W.sum() ** 2 / (W @ W), rel=1e-12)
    p = lambda est: np.array([test.p_value for test in est.model_.fitted.interaction_tests()])
    assert_allclose(p(one), p(other), rtol=1e-4)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_ratios_are_no_weights(name):
    one, plain = fitted(name, sample_weight=np.full(len(X), 0.02), weights="importance"), fitted(name)
    assert_allclose(one.model_.tau, plain.model_.tau, rtol=1e-6, atol=1e-9)
    assert_allclose(one.model_.fitted.tau_covariance(), plain.model_.fitted.tau_covariance(), rtol=1e-6, atol=1e-12)


def test_estimates_are_those_of_counts_and_errors_those_of_squares():
    """The same optimum without a ridge; the covariance A⁻¹ Σ w² ψψᵀ A⁻¹/(Σ w)² from the scores of all rows."""
    one = PseudoLikelihood(4, penalty=None, tol=1e-8, n_jobs=1)
    one.fit(X, sample_weight=W, weights="importance")
    counts = PseudoLikelihood(4, penalty=None, tol=1e-8, n_jobs=1).fit(X, sample_weight=10 * W)
    assert_allclose(one.model_.tau, counts.model_.tau, rtol=1e-6, atol=1e-8)
    f = counts.objective(X, 10 * W)
    tau = counts.model_.tau
    S = np.concatenate(f.scores(tau, lambda block, S: [S]), axis=1)
    A = inverse(f(tau).hessian)
    expected = A @ (S * W**2) @ S.T @ A / W.sum() ** 2
    assert_allclose(one.model_.fitted.tau_covariance(), expected, rtol=1e-6, atol=1e-9)


def test_importance_weights_correct_the_distribution_of_rows():
    """Rows of N(0, 1) with the ratio of N(.5, 1) to it; 60 sets, whose intervals cover the truth."""
    z = []
    for seed in range(60):
        x = np.random.default_rng([3, seed]).standard_normal((600, 2))
        est = PseudoLikelihood(2, penalty=None, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsodusWarning)
            est.fit(x, sample_weight=np.exp(x[:, 0] / 2), weights="importance")
        view = est.model_.polynomial()
        truth = {(0,): -0.5, (0, 0): 0.5, (1, 1): 0.5}
        z.append((view.coefficients - [truth.get(key, 0.0) for key in view.keys]) / view.stderr)
    z = np.array(z)
    assert 0.75 < np.mean(z**2) < 1.4
    assert np.all(np.abs(z.mean(axis=0)) < 0.5)


def test_rows_of_weight_zero_are_dropped():
    w = np.where(np.arange(len(X)) % 3, W, 0.0)
    one = fitted("pseudo-likelihood", sample_weight=w, weights="importance", groups=np.arange(len(X)) // 2)
    other = fitted("pseudo-likelihood", X[w > 0], sample_weight=w[w > 0], weights="importance",
                   groups=(np.arange(len(X)) // 2)[w > 0])  # fmt: skip
    assert_allclose(one.model_.tau, other.model_.tau, rtol=1e-12)
    assert_allclose(one.model_.fitted.tau_covariance(), other.model_.fitted.tau_covariance(), rtol=1e-12)
    assert as_samples(X, w, weights="importance").n_rows == np.count_nonzero(w)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (0 * W, "sample_weight is zero in all rows"),
        (W - 2, "negative in row .* are ratios of densities"),
        (np.where(W > 2, np.nan, W), "NaN or infinite"),
        (W[:-1], "Pass one weight per row"),
    ],
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_refused(name, weight, message):
    with pytest.raises(ValueError, match=message):
        ESTIMATORS[name]().fit(X, sample_weight=weight, weights="importance")


def test_an_unknown_meaning_of_weights():
    with pytest.raises(ValueError, match="weights must be one of"):
        PseudoLikelihood().fit(X, sample_weight=W, weights="ratios")
