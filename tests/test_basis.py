from itertools import combinations_with_replacement

import numpy as np
import pytest
from cases import EVERYWHERE

from isodus import MonomialBasis
from isodus.basis import n_monomials


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("max_order", [None, 1, 2, 3])
@pytest.mark.parametrize("min_degree", [1, 2])
def test_terms_are_all_monomials_in_graded_order(p, max_order, min_degree):
    expected = [
        term
        for d in range(min_degree, 5)
        for term in combinations_with_replacement(range(p), d)
        if max_order is None or len(set(term)) <= max_order
    ]
    basis = MonomialBasis(p, 4, min_degree=min_degree, max_order=max_order)
    assert basis.terms == expected
    assert n_monomials(p, 4, min_degree=min_degree, max_order=max_order) == len(expected)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_local_maps_take_terms_apart(name):
    basis = EVERYWHERE[name]
    cofactors = [tuple(v for v in row if v >= 0) for row in basis.cofactors.tolist()]
    for i in range(basis.n_variables):
        local = basis.local(i)
        seen = []
        for l in range(1, basis.degree + 1):
            for k in range(local.ends[l - 1], local.ends[l]):
                term = basis.terms[local.terms[k]]
                assert term.count(i) == l
                assert cofactors[local.cofactors[k]] == tuple(v for v in term if v != i)
                seen.append(term)
        assert sorted(seen) == sorted(term for term in basis.terms if i in term)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_cofactors_are_graded_and_each_follows_from_an_earlier_one(name):
    basis = EVERYWHERE[name]
    degrees = np.count_nonzero(basis.cofactors >= 0, axis=1)
    assert np.all(np.diff(degrees) >= 0)
    assert basis.cofactor_ends.tolist() == [np.count_nonzero(degrees <= d) for d in range(basis.degree)]
    made = np.zeros(len(basis.cofactors), bool)
    made[0] = True
    for columns, _, parents in basis.recipes:
        assert np.all(made[parents])
        assert not np.any(made[columns])
        made[columns] = True
    assert np.all(made)


def test_positions_find_terms_and_only_them():
    basis = MonomialBasis(4, 4, max_order=2)
    assert np.array_equal(basis.positions(basis.factors), np.arange(len(basis)))
    assert basis.positions(np.array([[0, 1, 2, -1]])).tolist() == [-1]


def test_many_variables_of_high_degree_have_keys_beyond_64_bits():
    basis = MonomialBasis(3000, terms=[(0,), (2999,) * 6, (5, 700, 2999), (0, 0, 1, 1, 2, 2)])
    assert np.array_equal(basis.positions(basis.factors), np.arange(4))
    assert len(basis.local(2999).terms) == 2


@pytest.mark.parametrize(
    ("basis", "closed"),
    [
        (MonomialBasis(3, 4), True),
        (MonomialBasis(3, 4, max_order=2), True),
        (MonomialBasis(3, 4, min_degree=2), False),
        (MonomialBasis(2, terms=[(0,), (1,), (0, 0), (0, 1), (1, 1)]), True),
        (MonomialBasis(2, terms=[(0,), (0, 0), (0, 1), (1, 1)]), False),
        (MonomialBasis(2, terms=[(0,), (1,), (0, 1), (0, 0, 1)]), False),
    ],
)
def test_closed_under_translation(basis, closed):
    assert basis.closed_under_translation is closed


def test_equality_is_by_terms():
    assert MonomialBasis(2, 2) == MonomialBasis(2, terms=[(1, 1), (0,), (1, 0), (0, 0), (1,)])
    assert hash(MonomialBasis(2, 2)) == hash(MonomialBasis(2, 2))
    assert MonomialBasis(2, 2) != MonomialBasis(3, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(n_variables=3, terms=[(0, 5)]), r"\(0, 5\) names variable 5, but the variables are 0 to 2"),
        (dict(n_variables=3, terms=[(0, -1)]), "names variable -1"),
        (dict(n_variables=3, terms=[(0, "b")]), "names variable 'b'"),
        (dict(n_variables=3, terms=[]), "terms is empty"),
        (dict(n_variables=3, terms=[()]), "at least one variable"),
        (dict(n_variables=3, terms=[(0, 1), (1, 0)]), "listed twice"),
        (dict(n_variables=3, terms=[(0, 1, 2)], degree=2), "above degree=2"),
        (dict(n_variables=3, terms=[(0,)], max_order=2), "leave out"),
        (dict(n_variables=3), "degree is missing"),
        (dict(n_variables=0, degree=2), "n_variables must be an integer of at least 1"),
        (dict(n_variables=3, degree=0), "degree must be an integer of at least 1"),
        (dict(n_variables=3, degree=2.0), "degree must be an integer"),
        (dict(n_variables=3, degree=2, min_degree=3), "no term is left"),
        (dict(n_variables=3, degree=2, max_order=0), "max_order must be"),
        (dict(n_variables=100_000, degree=6), "terms: about .* GB are free. Lower degree or max_order"),
    ],
)
def test_bad_input_is_told_apart(arguments, message):
    with pytest.raises(ValueError, match=message):
        MonomialBasis(**arguments)
