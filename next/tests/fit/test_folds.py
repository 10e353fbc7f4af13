import numpy as np
import pytest

from isodus import PseudoLikelihood
from isodus.fit.folds import FOLDS, folds

RNG = np.random.default_rng(8)
X = RNG.standard_normal((500, 2))


@pytest.fixture
def rng():
    return np.random.default_rng(123)


def test_five_parts_of_equal_size():
    parts = folds(X)
    assert FOLDS == 5
    assert np.bincount(parts).tolist() == [100] * 5


def test_identical_rows_share_a_part(rng):
    Y = np.repeat(X[:100], rng.integers(1, 8, 100), axis=0)
    Y = Y[rng.permutation(len(Y))]
    parts = folds(Y)
    where = np.unique(Y, axis=0, return_inverse=True)[1].ravel()
    assert all(len(np.unique(parts[where == k])) == 1 for k in range(100))
    assert set(parts) == set(range(5))


def test_groups_share_a_part(rng):
    groups = rng.integers(0, 40, 500)
    parts = folds(X, groups)
    assert all(len(np.unique(parts[groups == g])) == 1 for g in range(40))
    assert set(parts) == set(range(5))


@pytest.mark.parametrize("n", [500, 503, 7])
def test_series_are_cut_in_blocks_of_time(n):
    parts = folds(X[:n] if n < 501 else np.vstack([X, X])[:n], series=True)
    assert np.all(np.diff(parts) >= 0)
    assert set(parts) == set(range(5))
    assert np.ptp(np.bincount(parts)) <= 1


def test_parts_do_not_depend_on_the_order_of_rows_or_on_how_often_one_was_seen(rng):
    order = rng.permutation(500)
    np.testing.assert_array_equal(folds(X)[order], folds(X[order]))
    np.testing.assert_array_equal(np.repeat(folds(X), 3), folds(np.repeat(X, 3, axis=0)))


def test_seeds():
    np.testing.assert_array_equal(folds(X, seed=3), folds(X, seed=3))
    assert np.any(folds(X, seed=3) != folds(X, seed=4))


@pytest.mark.parametrize("p", [2, 3])
def test_patterns_of_few_values_are_not_parts(p, rng):
    """All patterns of spins are in all parts; a column of many values decides beside them."""
    S = np.sign(rng.standard_normal((500, p)))
    assert np.bincount(folds(S)).tolist() == [100] * 5
    pattern = (S > 0) @ 2 ** np.arange(p)
    assert all(set(folds(S)[pattern == k]) == set(range(5)) for k in range(2**p))
    Y = np.repeat(np.column_stack([S, X[:, 0]])[:100], 5, axis=0)
    parts = folds(Y)
    assert np.all(parts.reshape(100, 5) == parts[::5, None])


def test_a_fit_of_independent_spins_is_not_warned_of():
    """Four spins, of which the last is the product of two others: pairs neither gain nor lose by the held-out check."""
    S = np.sign(np.random.default_rng(0).standard_normal((300, 3)))
    est = PseudoLikelihood(2, support="spin", n_jobs=1).fit(np.column_stack([S, S[:, 0] * S[:, 1]]))
    assert est.held_out_.reference == "independent variables"
    assert abs(est.held_out_.gain) < 0.05
