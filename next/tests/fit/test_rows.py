"""Rows that were seen often are rows given often, and the order of rows is nothing; from the estimator down."""

import warnings

import numpy as np
import pytest
from fit.build import skewed
from numpy.testing import assert_allclose

from isodus import IsodusWarning, PseudoLikelihood, Ridge
from isodus.datasets import curved

RNG = np.random.default_rng(15)


@pytest.fixture
def rng():
    return np.random.default_rng(123)


def fitted(X, degree=4, penalty="weak", tol=1e-8, **kwargs):
    """A fit on one thread; its warnings, which small samples give, are not the subject here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsodusWarning)
        return PseudoLikelihood(degree, penalty=penalty, tol=tol, n_jobs=1).fit(X, **kwargs)


def of(est):
    """τ, standard errors of τ, and statistics."""
    covariance = est.model_.fitted.tau_covariance()
    statistics = [test.statistic for test in est.model_.fitted.interaction_tests()]
    return est.model_.tau, np.sqrt(np.diag(covariance)), np.array(statistics)


@pytest.mark.parametrize("penalty", ["weak", None, Ridge(3.0)], ids=["weak", "none", "number"])
@pytest.mark.parametrize("scale", ["robust", "cdf"])
def test_counts_are_repeated_rows(penalty, scale, rng):
    X = skewed(120, 2, 1.5)
    weight = rng.integers(0, 4, 120)
    repeated = rng.permutation(np.repeat(X, weight, axis=0))  # one after the other, they would get a warning
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsodusWarning)
        make = lambda: PseudoLikelihood(3, penalty=penalty, scale=scale, tol=1e-8, n_jobs=1)
        one, other = make().fit(X, sample_weight=weight), make().fit(repeated)
    assert one.status_ == other.status_ == "converged"
    (tau, se, statistics), (again, errors, same) = of(one), of(other)
    assert_allclose((tau - again) / se, 0.0, atol=1e-5)
    assert_allclose(se, errors, rtol=1e-5)
    assert_allclose(statistics, same, rtol=1e-3)
    assert_allclose(one.ridge_, other.ridge_, rtol=1e-4, atol=1e-12)
    assert one.score(X, sample_weight=weight) == pytest.approx(other.score(repeated), rel=1e-8)
    if penalty is not None:
        assert one.held_out_.score == pytest.approx(other.held_out_.score, abs=1e-5)
        assert one.held_out_.reference_score == pytest.approx(other.held_out_.reference_score, rel=1e-9)
        assert_allclose(one.held_out_.gains, other.held_out_.gains, atol=1e-5)
    assert [note.kind for note in one.notes_] == [note.kind for note in other.notes_]


def test_counts_are_repeated_rows_with_groups(rng):
    X, groups = skewed(200, 2, 1.5), rng.integers(0, 50, 200)
    weight = rng.integers(0, 4, 200)
    one = fitted(X, 3, sample_weight=weight, groups=groups)
    other = fitted(np.repeat(X, weight, axis=0), 3, groups=np.repeat(groups, weight))
    (tau, se, statistics), (again, errors, same) = of(one), of(other)
    assert_allclose((tau - again) / se, 0.0, atol=1e-5)
    assert_allclose(se, errors, rtol=1e-5)
    assert_allclose(statistics, same, rtol=1e-3)


def test_a_strength_by_folds_counts_repeated_rows(rng):
    X = skewed(60, 2, 1.5)
    weight = rng.integers(1, 4, 60)
    one, other = fitted(X, 4, Ridge("cv"), sample_weight=weight), fitted(np.repeat(X, weight, axis=0), 4, Ridge("cv"))
    assert one.path_.best.strength == other.path_.best.strength
    assert one.path_.best.free == other.path_.best.free
    assert_allclose([p.score for p in one.path_.points], [p.score for p in other.path_.points], atol=2e-3)


SETS = {
    "skewed": lambda: skewed(3000, 3, 1.5),
    "curved": lambda: curved(3000),
    "few rows": lambda: skewed(200, 3, 1.5),
    "many rows": lambda: skewed(30_000, 2, 1.5),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("scale", ["robust", "cdf"])
def test_rows_in_another_order(name, scale, rng):
    """To the default tolerance: 1e-3 standard errors."""
    X = SETS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsodusWarning)
        make = lambda: PseudoLikelihood(4, scale=scale, n_jobs=1)
        one, other = make().fit(X), make().fit(X[rng.permutation(len(X))])
    tau, se, _ = of(one)
    assert_allclose((tau - other.model_.tau) / se, 0.0, atol=1e-3)
    if one.held_out_ is not None:
        assert one.held_out_.score == pytest.approx(other.held_out_.score, abs=0.01)
        assert one.held_out_.reference_score == pytest.approx(other.held_out_.reference_score, rel=1e-9)


def test_threads_change_nothing():
    X = skewed(5000, 2, 1.5)
    one, other = (PseudoLikelihood(4, n_jobs=n_jobs).fit(X) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.model_.tau, other.model_.tau)
    np.testing.assert_array_equal(of(one)[1], of(other)[1])
    np.testing.assert_array_equal(of(one)[2], of(other)[2])
