"""What every quadratic penalty keeps, for each row of PENALTIES: its form, its optimum, and what a user sees of it."""

import warnings

import numpy as np
import pytest
from cases import PENALTIES
from fit.build import objective
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.base import clone

from isodus import PseudoLikelihood
from isodus.datasets import skewed
from isodus.fit.penalties import Penalty

X = skewed(160, 3, seed=5) @ np.array([[1, 0.4, 0.2], [0, 1, 0.4], [0, 0, 1]])
EACH = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)


@EACH
def test_its_form(penalty):
    """Symmetric, never negative, the same for the same arguments, and linear in the diagonal."""
    f = objective(X, 3)
    penalty = penalty.of(f)
    diagonal = np.random.default_rng(0).uniform(0.1, 3.0, len(f.terms.products))
    R = penalty.matrix(f.terms, diagonal, f.n).toarray()
    assert_allclose(R, R.T, atol=1e-15)
    assert np.linalg.eigvalsh(R).min() > -1e-12
    assert R.max() > 0
    assert_allclose(penalty.matrix(f.terms, 2 * diagonal, f.n).toarray(), 2 * R)
    assert_allclose(clone(penalty).matrix(f.terms, diagonal, f.n).toarray(), R)
    assert penalty.stages(f.terms, f.n) >= 1


@EACH
def test_the_fit_is_its_optimum(penalty):
    """f(τ) + ½ τᵀRτ is smallest at the answer, by another solver; R is the matrix of the last stage."""
    with warnings.catch_warnings(action="ignore"):  # of the held-out check
        est = PseudoLikelihood(3, penalty=penalty, tol=1e-8).fit(X)
    f, R = est.objective(X), est._fit.ridge.toarray()

    def value(tau):
        at = f(tau, 1)
        return at.value + 0.5 * tau @ R @ tau, at.gradient + R @ tau

    found = minimize(value, 0.9 * est.model_.tau, jac=True, method="BFGS", options={"gtol": 1e-9})
    assert_allclose(est.model_.tau, found.x, atol=1e-6)
    assert_allclose(est.ridge_, np.diag(R))


@EACH
def test_what_a_user_sees(penalty):
    with warnings.catch_warnings(action="ignore"):
        est = PseudoLikelihood(3, penalty=penalty).fit(X)
    assert penalty.in_words() in " ".join(est.model_.summary().split())
    biased = any(note.kind == "ridge" for note in est.notes_)
    assert biased == penalty.shrinks
    assert penalty.has_errors == (est.model_.stderr is not None)
    assert penalty.in_fold(100).in_words() == penalty.in_words()


def test_a_penalty_without_a_matrix():
    with pytest.raises(NotImplementedError, match="Penalty has no method matrix"):
        PseudoLikelihood(3, penalty=Penalty()).fit(X)


class Given(Penalty):
    """R as it is given."""

    def __init__(self, make=None):
        self.make = make

    def matrix(self, terms, diagonal, n):
        return self.make(len(terms))


def test_matrices_that_are_no_penalty():
    dense = PseudoLikelihood(3, penalty=Given(lambda K: 0.01 * np.eye(K))).fit(X)
    assert_allclose(dense.ridge_, 0.01)
    with pytest.raises(ValueError, match=r"matrix of Given gives R of shape \(3, 3\) for 18 unknowns"):
        PseudoLikelihood(3, penalty=Given(lambda K: np.eye(3))).fit(X)
    for value in (np.nan, -1.0):
        with pytest.raises(ValueError, match="matrix of Given gives R with negative or no numbers"):
            PseudoLikelihood(3, penalty=Given(lambda K, value=value: np.diag(np.full(K, value)))).fit(X)
