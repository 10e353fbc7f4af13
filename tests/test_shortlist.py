"""Fits over a list of the terms that count, against fits over all terms."""

import array_api_strict
import numpy as np
import pytest

from isodus import ISODUS, MonomialBasis, PseudoLikelihood
from isodus.datasets import hypertree_polynomial, regular_gaussian
from isodus.estimators import candidates
from isodus.shortlist import Shortlist


@pytest.fixture(scope="module")
def X():
    return 3 + np.array(regular_gaussian(60, 3, 0.25, rng=60).sample(600, rng=1))


def both(monkeypatch, X, make, share=0.5):
    """The estimator over all terms, and over a list; how often that grew."""
    grown, grow = [], Shortlist.grow

    def counted(self, *arguments):
        before, missed = len(self.basis), grow(self, *arguments)
        grown.append(len(self.basis) > before)
        return missed

    monkeypatch.setattr(Shortlist, "grow", counted)
    monkeypatch.setattr(Shortlist, "pays", True)
    monkeypatch.setattr(candidates, "_SHARE", share)
    monkeypatch.setattr(candidates, "_MANY_TERMS", 10**9)
    whole = make().fit(X)
    assert not grown
    monkeypatch.setattr(candidates, "_MANY_TERMS", 100)
    listed = make().fit(X)
    assert grown
    return whole, listed, sum(grown)


def assert_same(whole, listed, rtol=1e-10):
    assert listed.model_.basis == whole.model_.basis
    np.testing.assert_allclose(listed.model_.theta, whole.model_.theta, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(listed.l1_max_, whole.l1_max_, rtol=max(1e-12, 1e-3 * rtol))
    assert max(listed.kkt_.max(), whole.kkt_.max()) <= whole.tol
    assert listed.notes_ == whole.notes_


CASES = {
    "penalty": dict(l1=0.12),
    "weak penalty": dict(l1=0.07),
    "above the largest": dict(l1=5.0),
    "any node": dict(l1=0.1, rule="or"),
    "raw costs": dict(l1=0.15, l1_scaling="raw"),
    "as in the paper, no linear terms": dict(l1=1.5, l1_scaling="paper", min_degree=2),
    "self terms too": dict(l1=0.12, penalize_self=True),
    "two halves": dict(l1=0.12, debias="split"),
}


@pytest.mark.filterwarnings("ignore:no interaction is in the model")
@pytest.mark.parametrize("name", CASES)
def test_a_list_gives_what_all_terms_give(monkeypatch, X, name):
    whole, listed, _ = both(monkeypatch, X, lambda: ISODUS(2, **CASES[name]))
    assert_same(whole, listed)


def test_terms_that_would_enter_join_the_list(monkeypatch, X):
    whole, listed, grown = both(monkeypatch, X, lambda: PseudoLikelihood(2, l1=0.1), share=4.0)
    assert grown
    assert_same(whole, listed)


def test_a_path_over_a_list(monkeypatch, X):
    whole, listed, _ = both(monkeypatch, X, lambda: ISODUS(2, l1="auto"))
    assert_same(whole, listed)
    np.testing.assert_allclose(listed.path_.l1, whole.path_.l1, rtol=1e-12)
    np.testing.assert_allclose(listed.path_.values, whole.path_.values, rtol=1e-10)
    for ours, its in zip(listed.path_.terms, whole.path_.terms, strict=True):
        np.testing.assert_array_equal(ours, its)


def test_a_path_takes_in_what_its_list_has_not(monkeypatch, X):
    begin = Shortlist.begin
    monkeypatch.setattr(Shortlist, "begin", lambda self, start, l1, share: begin(self, start, l1, 4 * share))
    whole, listed, grown = both(monkeypatch, X, lambda: PseudoLikelihood(2, l1="auto", l1_path=[0.4, 0.2, 0.1, 0.05]))
    assert grown
    assert_same(whole, listed)


def test_other_arrays_give_the_same(monkeypatch, X):
    whole = ISODUS(2, l1=0.2).fit(X)
    monkeypatch.setattr(candidates, "_MANY_TERMS", 100)
    assert_same(whole, ISODUS(2, l1=0.2).fit(array_api_strict.asarray(X)))


@pytest.mark.parametrize("options", [dict(), dict(l1_scaling="raw", min_degree=2), dict(max_order=3, l1=0.05)])
def test_a_list_of_terms_of_up_to_four_variables(monkeypatch, options):
    Y = np.array(hypertree_polynomial(5, rng=3).sample(600, rng=4))
    for share in (0.5, 3.0):
        make = lambda: PseudoLikelihood(4, **{"l1": 0.1, "max_order": 4, **options})
        whole, listed, grown = both(monkeypatch, Y, make, share)
        assert grown or share < 1
        assert np.count_nonzero(whole.model_.basis.orders > 2) > 0
        assert_same(whole, listed, rtol=1e-4)


def test_a_list_is_never_without_the_nearest_term(monkeypatch):
    Y = np.array(hypertree_polynomial(5, rng=3).sample(600, rng=4))
    with pytest.warns(UserWarning, match="no interaction is in the model. The nearest to it is"):
        whole, listed, _ = both(monkeypatch, Y, lambda: PseudoLikelihood(4, l1=5.0, max_order=4))
    assert_same(whole, listed, rtol=1e-6)


@pytest.mark.parametrize("options", [dict(exclude=[(0, 1)]), dict(include=[(0, 1)]), dict(l1_weights={(0, 1): 0.5})])
def test_terms_that_are_named_are_looked_up_among_all(monkeypatch, X, options):
    monkeypatch.setattr(candidates, "_MANY_TERMS", 100)
    monkeypatch.setattr(Shortlist, "begin", None)
    ISODUS(2, l1=0.15, **options).fit(X[:, :20])


@pytest.mark.parametrize(
    ("p", "degree", "min_degree", "max_order"),
    [(1, 4, 1, None), (5, 4, 1, None), (5, 4, 2, 2), (4, 6, 3, 3), (7, 4, 1, 1), (3, 3, 3, None)],
)
def test_positions_among_all_monomials_are_counted(p, degree, min_degree, max_order):
    basis = MonomialBasis(p, degree, min_degree=min_degree, max_order=max_order)
    listed = MonomialBasis(p, degree, terms=basis.terms)
    assert len(basis) == len(basis.factors)
    for rows in (MonomialBasis(p, degree).factors, MonomialBasis(p, 1).factors):
        np.testing.assert_array_equal(basis.positions(rows), listed.positions(listed.padded(rows)))
    assert basis.positions(np.full((1, degree), -1)) == -1


def test_a_basis_of_rows_is_that_of_its_terms():
    rows = np.array([[1, 2, -1], [0, -1, -1], [0, 0, 2], [1, 2, -1]])
    assert MonomialBasis.listed(3, rows) == MonomialBasis(3, terms=[(0,), (1, 2), (0, 0, 2)])
    assert MonomialBasis.listed(3, rows[:2]).degree == 2
