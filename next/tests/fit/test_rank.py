"""What the data cannot identify is named, and nothing else is."""

import numpy as np
import pytest

from isodus import PseudoLikelihood
from isodus.axes import Line, Values
from isodus.data import as_samples
from isodus.fit.rank import dependent_columns, dependent_terms
from isodus.terms import Terms, keys_up_to

RNG = np.random.default_rng(6)
BASE = RNG.standard_normal((300, 3)) * [1.0, 1e3, 1e-3] + [0.0, 1e4, 5.0]
ONES = np.ones(300)


@pytest.fixture
def rng():
    return np.random.default_rng(123)


def columns(X, weight=ONES, names=None):
    names = names or [f"x{i}" for i in range(X.shape[1])]
    return dependent_columns(as_samples(X, weight, names=names, weights="importance"))


def test_independent_columns():
    assert columns(BASE) == {}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda X: X[:, 0], ["a"]),
        (lambda X: -3 * X[:, 1] + 2, ["b"]),
        (lambda X: X[:, 0] + X[:, 1], ["a", "b"]),
        (lambda X: X[:, 0] / 1 + X[:, 1] / 1e3 - X[:, 2] / 1e-3, ["a", "b", "c"]),
        (lambda X: 1e6 + 1e-3 * X[:, 0], ["a"]),
    ],
)
def test_copies_and_sums_name_their_columns(make, expected):
    X = np.column_stack([BASE / [1, 1, 1], make(BASE)])
    assert columns(X, names=["a", "b", "c", "d"]) == {"d": expected}


def test_a_column_with_a_small_part_of_another_names_both():
    """The coefficient counts in units of spread: 1 of the one, .001 of the other is below the rounding of a name."""
    d = BASE[:, 0] + BASE[:, 1] / 1e3 * 0.1
    assert columns(np.column_stack([BASE, d]))["x3"] == ["x0", "x1"]


def test_two_copies_and_what_is_almost_a_copy(rng):
    X = np.column_stack([BASE[:, 0], BASE[:, 0], BASE[:, 2], BASE[:, 0] + 1e-3 * rng.standard_normal(300)])
    assert columns(X) == {"x1": ["x0"]}
    X = np.column_stack([BASE[:, 0], BASE[:, 0], BASE[:, 0]])
    assert columns(X) == {"x1": ["x0"], "x2": ["x0"]}


def test_weights_count():
    """Two columns that differ in five rows are two, unless these rows count for nothing."""
    few = np.arange(300) < 5
    X = np.column_stack([BASE[:, 0], BASE[:, 0] + few])
    assert columns(X, np.where(few, 1.0, 7.0)) == {}
    assert columns(X, np.where(few, 1e-12, 7.0)) == {"x1": ["x0"]}


def few(X, degree, order, values=None):
    axes = [Values.fit(x, degree, values=values) for x in X.T]
    terms = Terms(axes, keys_up_to(axes, degree, order))
    return dependent_terms(terms, X, [f"s{i}" for i in range(X.shape[1])])


SPINS = np.sign(RNG.standard_normal((300, 3)))


def test_spins_that_are_free_have_no_dependent_terms():
    assert few(SPINS, 3, 3) == []


def test_a_spin_that_is_the_product_of_two_others():
    """s2 = s0 s1: s0 s2 is s1, s1 s2 is s0, and of three the product is constant; one name for each that is lost."""
    X = np.column_stack([SPINS[:, :2], SPINS[:, 0] * SPINS[:, 1]])
    found = few(X, 3, 3)
    assert set(found) == {"s0*s2", "s1*s2", "s0*s1*s2"} or set(found) == {"s0*s1", "s0*s2", "s1*s2", "s0*s1*s2"}


def test_a_pair_of_which_one_combination_is_never_seen():
    """Three of four combinations: the product is a sum of 1, s0 and s1."""
    X = SPINS[(SPINS[:, 0] < 0) | (SPINS[:, 1] < 0)]
    assert few(X, 2, 2) == ["s0*s1"]


def test_alphabets(rng):
    X = rng.integers(0, 3, (400, 2)).astype(float)
    assert few(X, 4, 2) == []
    X = X[~((X[:, 0] == 2) & (X[:, 1] == 2))]  # eight combinations left for nine products
    assert few(X, 4, 2) == ["s0^2*s1^2"]


def test_columns_of_many_values_are_not_asked():
    axes = [Line.fit(x, 4) for x in BASE.T]
    terms = Terms(axes, keys_up_to(axes, 4, 2))
    assert dependent_terms(terms, BASE, ["a", "b", "c"]) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda Z: Z[:, 0], "'x3' is a sum or copy of 'x0'"),
        (lambda Z: Z[:, 0] - 2 * Z[:, 2], "'x3' is a sum or copy of 'x0', 'x2'"),
        (lambda Z: 0 * Z[:, 0] + 0.1, "'x3' is constant"),
    ],
)
def test_a_fit_ends_with_the_names_of_columns(make, message, rng):
    Z = rng.standard_normal((300, 3))
    with pytest.raises(ValueError, match=message):
        PseudoLikelihood(4, n_jobs=1).fit(np.column_stack([Z, make(Z)]))


def test_a_fit_ends_with_the_names_of_terms():
    X = np.column_stack([SPINS[:, :2], SPINS[:, 0] * SPINS[:, 1]])
    with pytest.raises(ValueError, match=r"'x0\*x1'.*'x0\*x1\*x2' are constant or sums"):
        PseudoLikelihood(3, max_order=3, support="spin", n_jobs=1).fit(X)
