"""Terms against products written out one by one."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest

from isodus.axes import Circle, Line, Values
from isodus.terms import MonomialBasis, Terms, key_of, keys_up_to, lattice, product_of, to_powers

RNG = np.random.default_rng(1)
X = np.column_stack([
    RNG.standard_normal(60), RNG.uniform(0, 2 * np.pi, 60), RNG.integers(0, 3, 60), 5 + RNG.gamma(2.0, size=60)
])  # fmt: skip
AXES = [Line.fit(X[:, 0], 4), Circle(2), Values.fit(X[:, 2], 2), Line.fit(X[:, 3], 3)]
PHI = [axis.functions(x) for axis, x in zip(AXES, X.T, strict=True)]
KEYS = keys_up_to(AXES, 4, 3)
BASES = {
    "all": (KEYS, None),
    "shuffled": ([KEYS[k] for k in RNG.permutation(len(KEYS))], None),
    "without lower terms": (keys_up_to(AXES, 4, 3, min_degree=2), None),
    "list": ([(0, 0, 3), (1, 1, 2, 2), (0, 0, 0, 0), (2, 3, 3)], None),
    "a node without terms": ([(0, 0), (3, 3, 3), (0, 3)], None),
    "tied": ([(0, 0), (3, 3), (0, 3), (0, 0, 1), (2,)], [0, 0, 1, 2, 2]),
}


@pytest.fixture
def rng():
    return np.random.default_rng(123)


@pytest.fixture(params=BASES)
def terms(request):
    return Terms(AXES, *BASES[request.param])


def products(terms, phi):
    """Every product of the model, (n, P)."""
    return np.stack([np.prod([phi[i][:, l] for i, l in factors], axis=0) for factors in terms.products], axis=1)


def test_cofactors_are_products(terms):
    H = terms.H(PHI)
    assert H.shape == (len(terms.cofactors), len(X))
    for rest, c in terms.cofactors.items():
        expected = np.prod([PHI[i][:, l] for i, l in rest], axis=0) * np.ones(len(X))
        np.testing.assert_allclose(H[c], expected, rtol=1e-14)


def test_every_term_without_one_of_its_variables_is_a_cofactor(terms):
    for factors in terms.products:
        for factor in factors:
            assert tuple(f for f in factors if f != factor) in terms.cofactors


def test_a_is_what_changes_the_energy(terms, rng):
    """E(x with x_i replaced) − E(x) = Σ_l a_l (φ_l(x_i') − φ_l(x_i)), and ∂E/∂x_i = Σ_l a_l ∂φ_l/∂x_i."""
    theta, H = rng.standard_normal(len(terms.products)), terms.H(PHI)
    before = products(terms, PHI) @ theta
    for i, axis in enumerate(AXES):
        local = terms.local[i]
        a = H[local.cofactors].T @ terms.scatter(theta, i)
        other = [*PHI]
        other[i] = PHI[i][::-1]
        change = (a * (other[i] - PHI[i])).sum(axis=1)
        np.testing.assert_allclose(products(terms, other) @ theta - before, change, rtol=1e-9, atol=1e-9)
        if axis.powers is not None and axis.continuous:
            step, energies, slopes = 1e-5, [], []
            for moved in (X[:, i] + step, X[:, i] - step):
                other[i] = axis.functions(moved)
                energies.append(products(terms, other) @ theta)
            slopes = np.polynomial.polynomial.polyval(
                X[:, i], np.stack([np.polynomial.polynomial.polyder(row) for row in axis.powers()[1:]], axis=1)
            )
            slope = (a * slopes.T).sum(axis=1)
            inside = (axis.functions(X[:, i] + step) != axis.functions(X[:, i] - step)).any(axis=1)
            error = np.abs((energies[0] - energies[1]) / (2 * step) - slope)
            assert inside.all()
            assert np.all(error < 1e-6 * (1 + np.abs(slope).max()))


def test_gather_is_the_transpose_of_scatter(terms, rng):
    """∂/∂θ_k Σ_n Σ_l G_nl a_nl, for any G, against θ = each unit vector."""
    H = terms.H(PHI)
    for i in terms.nodes:
        local = terms.local[i]
        G = rng.standard_normal((len(X), len(AXES[i].degrees)))
        gradient = np.zeros(len(terms.products))
        gradient[local.terms] = terms.gather(i, H[local.cofactors] @ G)
        unit = np.eye(len(terms.products))
        expected = [np.sum(G * (H[local.cofactors].T @ terms.scatter(e, i))) for e in unit]
        np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_local_terms(terms):
    for i, local in enumerate(terms.local):
        with_i = {k for k, factors in enumerate(terms.products) if any(j == i for j, _ in factors)}
        assert set(local.terms) == with_i
        assert len(local.terms) == len(with_i)
        columns = {c: rest for rest, c in terms.cofactors.items()}
        for place, k in enumerate(local.terms):
            rest = columns[local.cofactors[local.where[place]]]
            assert tuple(sorted((*rest, (i, local.functions[place])))) == terms.products[k]
        for l in range(len(AXES[i].degrees)):
            assert np.all(local.functions[local.starts[l] : local.starts[l + 1]] == l)
        assert local.starts[-1] == len(local.terms)


def test_local_rows_of_T(terms):
    T = terms.T.toarray()
    for local, (unknowns, part) in zip(terms.local, terms.local_T, strict=True):
        rows = T[local.terms]
        dense = np.eye(len(unknowns)) if part is None else part if isinstance(part, np.ndarray) else part.toarray()
        np.testing.assert_array_equal(rows[:, unknowns], dense)
        assert np.count_nonzero(np.delete(rows, unknowns, axis=1)) == 0
    assert terms.m == max(len(unknowns) for unknowns, _ in terms.local_T)


def test_degrees_orders_and_roughness():
    terms = Terms(AXES, KEYS)
    for k, key in enumerate(KEYS):
        degrees = [AXES[i].degrees[key.count(i) - 1] for i in set(key)]
        assert terms.degrees[k] == terms.product_degrees[k] == sum(degrees)
        assert terms.orders[k] == len(degrees)
        assert terms.roughness[k] == sum(d * d for d in degrees)
    assert terms.identity
    assert terms.condition() == 1.0


def test_interactions_are_all_terms_of_one_set_of_variables():
    terms = Terms(AXES, KEYS)
    sets = [variables for size in (1, 2, 3) for variables in combinations(range(4), size)]
    assert list(terms.interactions) == [s for s in sets if any(set(key) == set(s) for key in KEYS)]
    for variables, unknowns in terms.interactions.items():
        assert [tuple(sorted(set(KEYS[k]))) for k in unknowns] == [variables] * len(unknowns)
    assert sum(map(len, terms.interactions.values())) == len(KEYS)


def test_blocks_join_sine_and_cosine():
    terms = Terms(AXES, KEYS)
    blocks = [{KEYS[k] for k in block} for block in terms.blocks]
    assert {(1,), (1, 1)} in blocks
    assert {(0, 0, 1), (0, 0, 1, 1)} in blocks
    assert {(0, 0)} in blocks
    assert sorted(np.concatenate(terms.blocks)) == list(range(len(KEYS)))


def test_leaving_out_unknowns_is_setting_them_to_zero(terms):
    keep = np.arange(len(terms)) % 3 != 1
    part, tau = terms.only(keep), np.where(keep, 1 + np.arange(len(terms)), 0.0)
    np.testing.assert_allclose(
        products(part, PHI) @ (part.T @ tau[keep]), products(terms, PHI) @ (terms.T @ tau), atol=1e-9
    )
    assert part.keys == [key for key, kept in zip(terms.keys, keep, strict=True) if kept]
    assert part.only(np.array([0])).keys == [terms.keys[0]]


def test_terms_from_what_they_hold(terms, rng):
    """With all parts the same terms; with products alone, these with T the identity."""
    again = Terms.of(terms.axes, terms.products, terms.T, terms.keys, terms.identity, terms.copies)
    tau = rng.standard_normal(len(terms))
    np.testing.assert_array_equal(products(again, PHI) @ (again.T @ tau), products(terms, PHI) @ (terms.T @ tau))
    assert (again.m, again.keys, again.copies) == (terms.m, terms.keys, terms.copies)
    plain = Terms.of(terms.axes, terms.products)
    np.testing.assert_array_equal(plain.T.toarray(), np.eye(len(terms.products)))
    assert [product_of(key) for key in plain.keys] == terms.products
    assert plain.identity


def test_an_absent_pair_leaves_a_closed_basis():
    terms = Terms(AXES, [key for key in KEYS if not {0, 3} <= set(key)])
    assert terms.identity
    assert not any({0, 3} <= {i for i, _ in factors} for factors in terms.products)


@pytest.mark.parametrize("absent", [(0, 0, 0), (3,), (0, 3), (0, 0, 3)])
def test_a_fixed_zero_is_a_power_that_is_absent(absent, rng):
    """A lower term that is left out has no coefficient in powers of x, though the functions of x above it have one."""
    axes = [AXES[0], AXES[3]]
    keys = [tuple(0 if i == 0 else 3 for i in key) for key in keys_up_to(axes, 4, 2)]
    terms = Terms(AXES, [key for key in keys if key != absent and key.count(3) < 4])
    powers, B = to_powers(AXES, terms.products)
    made = B @ (terms.T @ rng.standard_normal(len(terms)))
    assert not terms.identity
    assert product_of(absent) in terms.products
    assert abs(made[powers.index(absent)]) < 1e-9 * np.abs(made).max()


def test_the_gaussian_is_found_in_the_functions(rng):
    axes = [Line.fit(X[:, 0], 4), Line.fit(X[:, 3], 3), Line.fit(X[:, 0] - 2, 2)]
    A = rng.standard_normal((3, 3))
    precision, mean = A @ A.T + np.eye(3), np.array([0.3, -1.0, 2.0])
    terms = Terms(axes, keys_up_to(axes, 3, 2))
    tau = terms.gaussian(mean, precision)
    Y = np.column_stack([X[:, 0], X[:, 3], X[::-1, 0] - 2])
    energy = products(terms, [axis.functions(y) for axis, y in zip(axes, Y.T, strict=True)]) @ tau
    expected = 0.5 * np.einsum("ni,ij,nj->n", Y - mean, precision, Y - mean)
    np.testing.assert_allclose(np.diff(energy), np.diff(expected), rtol=1e-9, atol=1e-9)


def test_the_nearest_gaussian():
    """Exact where the terms hold it, also through T; elsewhere the least squares in θ."""
    axes = [Line.fit(X[:, 0], 4), Line.fit(X[:, 3], 3)]
    precision, phi = np.array([[2.0, 0.5], [0.5, 1.0]]), [PHI[0], axes[1].functions(X[:, 3])]
    closed, squares = Terms(axes, keys_up_to(axes, 3, 2)), Terms(axes, keys_up_to(axes, 3, 2, min_degree=2))
    mean = np.array([1.0, -1.0])
    np.testing.assert_allclose(closed.near_gaussian(mean, precision), closed.gaussian(mean, precision), atol=1e-12)
    made = products(squares, phi) @ (squares.T @ squares.near_gaussian(np.zeros(2), precision))
    Y = X[:, [0, 3]]
    expected = 0.5 * np.einsum("ni,ij,nj->n", Y, precision, Y)
    np.testing.assert_allclose(np.diff(made), np.diff(expected), atol=1e-6)
    whole = Terms(axes, [key_of(squares.products[k]) for k in range(len(squares.products))])
    theta = whole.near_gaussian(mean, precision)
    nearest = np.linalg.lstsq(squares.T.toarray(), theta, rcond=None)[0]
    np.testing.assert_allclose(squares.near_gaussian(mean, precision), nearest, rtol=1e-5, atol=1e-7)


def test_the_gaussian_is_none_where_it_has_no_place():
    axes, eye = [Line.fit(X[:, 0], 4), Line.fit(X[:, 3], 3)], np.eye(2)
    assert Terms(axes, keys_up_to(axes, 4, 2, min_degree=2)).gaussian(np.zeros(2), eye) is None
    assert Terms(axes, keys_up_to(axes, 4, 1)).gaussian(np.zeros(2), eye + 0.1) is None
    spins = [Values.fit(np.sign(X[:, 0]), 1)] * 2
    assert Terms(spins, keys_up_to(spins, 2, 2)).gaussian(np.zeros(2), eye) is None
    mixed = AXES[:2]
    assert Terms(mixed, keys_up_to(mixed, 2, 2)).gaussian(np.zeros(2), eye) is None


def test_ties_add_columns():
    keys, ties = BASES["tied"]
    free, shared = Terms(AXES, keys), Terms(AXES, keys, ties)
    dense = free.T.toarray()
    assert free.products == shared.products
    expected = np.stack([dense[:, np.array(ties) == t].sum(axis=1) for t in range(3)], axis=1)
    np.testing.assert_allclose(shared.T.toarray(), expected)
    assert shared.keys == [(0, 0), (0, 3), (0, 0, 1)]
    assert (free.copies, shared.copies) == (1, 1)


def test_a_phi4_lattice_of_1024_sites_has_three_unknowns_and_little_memory():
    names = [f"x{i}" for i in range(1024)]
    basis, axis = lattice((32, 32)), Line.fit(X[:, 0], 4)
    tracemalloc.start()
    try:
        terms = Terms([axis] * 1024, basis.keys(names), basis.ties)
        assert terms.m == len(terms) == 3
        assert terms.condition() < 10
        assert len(terms.local) == 1024
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6
    assert len(terms.cofactors) == 1 + 1024
    assert terms.copies == 1024
    assert len(terms.products) == 4 * 1024 + 2 * 1024
    assert isinstance(basis, MonomialBasis)
