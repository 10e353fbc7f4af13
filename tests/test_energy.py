import numpy as np
import pytest
from cases import EVERYWHERE, NAMESPACES, SPACES, samples_of

from isodus import MonomialBasis, energy
from isodus.arrays import to_host
from isodus.energy import Cofactors, cofactor_matrix, transpose_product
from isodus.spaces import PLAIN


def written_out(basis, theta, X):
    """Σ_k θ_k Π x, or Π φ(x), one term after the other; X has shape (p, n)."""
    functions = [space.functions for space in basis.spaces or [PLAIN] * basis.n_variables]

    def factor(v, l):
        return X[v] ** l if functions[v] is None else functions[v](X[v], l)[l - 1]

    terms = zip(theta, basis.terms, strict=True)
    return sum(t * np.prod([factor(v, term.count(v)) for v in set(term)], axis=0) for t, term in terms)


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("name", EVERYWHERE)
def test_energy_gradient_and_conditionals_against_the_sum_written_out(name, namespace):
    basis = EVERYWHERE[name]
    theta, X = np.random.default_rng(0).standard_normal(len(basis)), samples_of(basis, 7).T
    Y = NAMESPACES[namespace](X)
    E = written_out(basis, theta, X)
    assert np.allclose(to_host(energy.energy(basis, theta, Y)), E, rtol=1e-13, atol=1e-13)

    g = to_host(energy.gradient(basis, theta, Y))
    for i in range(basis.n_variables):
        h = 1e-5 * np.eye(basis.n_variables)[:, [i]]
        difference = (written_out(basis, theta, X + h) - written_out(basis, theta, X - h)) / 2e-5
        assert np.allclose(g[i], difference, rtol=1e-8, atol=1e-8)

    nodes = list(range(basis.n_variables))
    C = energy.scatter(basis, nodes, energy.local_parameters(basis, theta, nodes), Y)
    a = to_host(energy.conditional_coefficients(C, energy.cofactor_matrix(basis, Y)))
    for i in nodes:
        with_it = np.array([t if i in term else 0.0 for t, term in zip(theta, basis.terms, strict=True)])
        phi = energy.features(basis, X, basis.degree)[:, i]
        assert np.allclose((a[:, i] * phi).sum(axis=0), written_out(basis, with_it, X), rtol=1e-12, atol=1e-12)


def test_gather_undoes_scatter():
    basis = MonomialBasis(4, 4)
    thetas = [np.random.default_rng(i).standard_normal(len(basis.local(i).terms)) for i in range(4)]
    C = energy.scatter(basis, range(4), thetas, np.empty(0))
    for i in range(4):
        assert np.array_equal(energy.gather(basis.local(i), i, C), thetas[i])


@pytest.mark.parametrize("basis", [MonomialBasis(3, 4), MonomialBasis(3, 4, max_order=2), MonomialBasis(1, 6)])
def test_raw_units_keep_the_energy_up_to_a_constant(basis):
    rng = np.random.default_rng(1)
    theta, X = rng.standard_normal(len(basis)), rng.standard_normal((basis.n_variables, 9))
    location, scale = rng.standard_normal(basis.n_variables), rng.uniform(0.5, 2, basis.n_variables)
    raw = energy.raw_units(basis, theta, location, scale)
    difference = written_out(basis, raw, X) - written_out(basis, theta, (X - location[:, None]) / scale[:, None])
    assert np.allclose(difference, difference[0], rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize(
    "basis",
    [
        MonomialBasis(5, 4),
        MonomialBasis(3, 2),
        MonomialBasis(6, 4, max_order=3),
        MonomialBasis(4, 6, max_order=2),
        MonomialBasis(4, terms=[(0, 0, 0, 0), (0, 1, 2, 3), (1, 1), (2, 2, 3), (3, 3, 3, 3)]),
        SPACES["angles"],
        SPACES["mixed"],
    ],
)
def test_products_with_cofactors_that_are_not_made(basis):
    rng = np.random.default_rng(0)
    X, v = rng.standard_normal((basis.n_variables, 30)), rng.standard_normal((basis.degree, 3, 30))
    H, m = cofactor_matrix(basis, X), int(basis.cofactor_ends[max(basis.degree - 2, 0)])
    for made, unmade in ((H, Cofactors.of(basis, X)), (H * H, Cofactors.of(basis, X).squared())):
        expected, found = transpose_product(v, made, m), transpose_product(v, unmade, m)
        np.testing.assert_allclose(found.first, expected.first, atol=1e-12)
        np.testing.assert_allclose(found.higher, expected.higher, atol=1e-12)
