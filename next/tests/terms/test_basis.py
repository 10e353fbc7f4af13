import networkx
import numpy as np
import pytest

from isodus.terms import MonomialBasis, lattice


def test_terms_by_number_and_name():
    basis = MonomialBasis([("b", "a", "a"), (2,), ("c", 0)])
    assert basis.keys(["a", "b", "c"]) == [(0, 0, 1), (2,), (0, 2)]
    assert MonomialBasis([np.array([1, 0])]).keys(["a", "b"]) == [(0, 1)]


@pytest.mark.parametrize(
    ("terms", "ties", "message"),
    [
        ([], None, "at least one term"),
        ([(0,), ()], None, "at least one variable"),
        ([(0,), (1,)], [0], "ties has 1 numbers for 2 terms"),
        ([(0,), (1,)], [0, 2], "numbers 0, 1"),
        ([(0,), (1,)], [-1, 0], "numbers 0, 1"),
    ],
)
def test_bases_that_mean_nothing(terms, ties, message):
    with pytest.raises(ValueError, match=message):
        MonomialBasis(terms, ties)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (("z",), "'z', which is not a column"),
        ((2,), "columns 0 to 1"),
        ((-1,), "columns 0 to 1"),
        ((True,), "True"),
        ((0.5,), "0.5"),
        (("a", 0, "b"), None),
    ],
)
def test_variables_that_are_not_there(term, message):
    if message is None:
        assert MonomialBasis([term]).keys(["a", "b"]) == [(0, 0, 1)]
    else:
        with pytest.raises(ValueError, match=message):
            MonomialBasis([term]).keys(["a", "b"])


def test_a_term_given_twice_is_named():
    with pytest.raises(ValueError, match=r"\(1, 0, 0\) is in the basis twice"):
        MonomialBasis([(0, 0, 1), (1, 0, 0)]).keys(["a", "b"])


@pytest.mark.parametrize("shape", [(6,), (4, 5), (3, 3, 4), (2, 4)])
@pytest.mark.parametrize("periodic", [True, False])
def test_lattices_against_networkx(shape, periodic):
    basis = lattice(shape, own=(2, 4, 6), periodic=periodic)
    sites = int(np.prod(shape))
    keys = basis.keys([f"x{i}" for i in range(sites)])
    own = [(key, tie) for key, tie in zip(keys, basis.ties, strict=True) if len(set(key)) == 1]
    assert sorted(own) == sorted(((i,) * power, k) for i in range(sites) for k, power in enumerate((2, 4, 6)))
    graph = networkx.grid_graph(dim=shape[::-1], periodic=periodic)  # its nodes are in the order of shape
    number = {node if isinstance(node, tuple) else (node,): i for i, node in enumerate(np.ndindex(shape))}
    at = lambda node: number[node if isinstance(node, tuple) else (node,)]
    edges = {tuple(sorted((at(u), at(v)))) for u, v in graph.edges if u != v}
    coupled = [(key, tie) for key, tie in zip(keys, basis.ties, strict=True) if len(set(key)) == 2]
    assert {key for key, _ in coupled} == edges
    assert len(coupled) == len(edges)
    assert {tie for _, tie in coupled} == {3}


def test_words():
    assert repr(lattice((4, 4))) == "MonomialBasis of 64 terms, 3 parameters"
    assert repr(MonomialBasis([(0,)])) == "MonomialBasis of 1 terms"
