"""Degree 2 on the line: the inverse covariance, in closed form, by every estimator."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isodus import (
    ISODUS,
    IsodusWarning,
    MonomialBasis,
    PowerReference,
    PseudoLikelihood,
    Ridge,
    ScoreMatching,
    TiltedReference,
)

RNG = np.random.default_rng(50)
P = 6
X = RNG.standard_t(8, (900, P)) @ (np.eye(P) + 0.2 * RNG.standard_normal((P, P))) * np.logspace(-4, 4, P) + 7
WEIGHT = RNG.integers(0, 4, 900)
INVERSE = np.linalg.inv(np.cov(X.T, bias=True))
CLOSED = [PseudoLikelihood, ISODUS, ScoreMatching]


def agree(found, expected, tolerance=1e-11):
    size = np.sqrt(np.diag(expected))
    assert_allclose(found / size / size[:, None], expected / size / size[:, None], atol=tolerance)


@pytest.mark.parametrize("cls", CLOSED)
def test_the_inverse_covariance(cls):
    est = cls(2, n_jobs=1).fit(X)
    agree(est.precision_, INVERSE)
    assert (est.status_, est.n_iter_) == ("converged", 0)
    assert est._objective.passes <= 2  # the Hessian for standard errors, and ISODUS' own
    view = est.model_.polynomial()
    found = dict(zip(view.keys, view.coefficients, strict=True))
    for i in range(P):
        assert found[i, i] == pytest.approx(INVERSE[i, i] / 2, rel=1e-9)
        assert found[i,] == pytest.approx(-INVERSE[i] @ X.mean(axis=0), rel=1e-6)
    assert np.isfinite(est.model_.stderr).all()


@pytest.mark.parametrize("cls", CLOSED)
@pytest.mark.parametrize("weights", ["counts", "importance"])
def test_with_weights(cls, weights):
    est = cls(2, n_jobs=1).fit(X, sample_weight=WEIGHT, weights=weights)
    agree(est.precision_, np.linalg.inv(np.cov(X.T, bias=True, aweights=WEIGHT)))


@pytest.mark.parametrize("cls", [PseudoLikelihood, ScoreMatching])
def test_standard_errors_are_those_of_newton(cls):
    """Ties that tie nothing make it a fit by Newton's method."""
    est, keys = cls(2, n_jobs=1).fit(X[:, :3]), [(0,), (1,), (2,), (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    other = cls(basis=MonomialBasis(keys, ties=range(9)), tol=1e-10, n_jobs=1).fit(X[:, :3])
    one, two = est.model_.polynomial(), other.model_.polynomial()
    assert other._fit.trace[0][0] != "closed form"
    agree(other.precision_, est.precision_, 1e-7)
    found = dict(zip(two.keys, two.stderr, strict=True))
    assert_allclose([found[key] for key in one.keys], one.stderr, rtol=1e-4)


def test_isodus_says_that_it_has_no_pilot():
    est = ISODUS(2, n_jobs=1).fit(X)
    assert (est.pilot_rows_, est.n_tilts_) == (900, 0)
    note = next(note for note in est.notes_ if note.kind == "pilot on all rows")
    assert "the fixed point of a Gaussian is its inverse covariance" in note.text
    at = est.objective(X)(est.model_.tau)
    assert_allclose(at.gradient, 0.0, atol=1e-9)
    assert_allclose(at.value, 0.0, atol=1e-9)


OTHER = {
    "a ridge": PseudoLikelihood(2, penalty=Ridge(5.0, free="own"), n_jobs=1),
    "a list": PseudoLikelihood(basis=[(i,) * k for i in range(P) for k in (1, 2)] + [(0, 1)], n_jobs=1),
    "without linear terms": PseudoLikelihood(2, min_degree=2, n_jobs=1),
    "the paper's": ISODUS(2, reference=PowerReference(1.0), n_jobs=1),
    "a pilot": ISODUS(2, reference=TiltedReference(PseudoLikelihood(2, n_jobs=1).fit(X).model_), n_jobs=1),
    "consensus": PseudoLikelihood(2, consensus="mean", n_jobs=1),
}


@pytest.mark.parametrize("name", OTHER)
def test_other_gaussians_have_a_precision_too(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsodusWarning)
        est = OTHER[name].fit(X)
    assert_allclose(est.precision_, est.precision_.T)
    view = est.model_.polynomial()
    for key, value in zip(view.keys, view.coefficients, strict=True):
        if len(key) == 2:
            assert est.precision_[key] == pytest.approx(value * (2 if key[0] == key[1] else 1), rel=1e-9)
    if name == "a list":
        assert np.count_nonzero(est.precision_) == P + 2
    if name in ("a pilot", "consensus"):
        agree(est.precision_, INVERSE, 1e-2)


def test_others_have_none():
    rows = np.random.default_rng(0).uniform(size=(500, 2))
    for est in (PseudoLikelihood(4), PseudoLikelihood(2, support=(0, 1)), PseudoLikelihood(2, scale="cdf")):
        assert not hasattr(est.fit(rows), "precision_")
