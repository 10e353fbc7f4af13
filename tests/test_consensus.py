import numpy as np
import pytest

from isodus import MonomialBasis
from isodus.consensus import carry, combine, places

BASIS = MonomialBasis(3, terms=[(0, 0), (0, 1), (0, 1, 2), (1, 1), (2, 2)])


def node_values(values):
    """Local parameters from {(node, term): value}."""
    return [np.array([values[i, BASIS.terms[k]] for k in BASIS.local(i).terms]) for i in range(3)]


@pytest.mark.parametrize(
    ("three", "mean", "geometric"),
    [
        ((2.0, 4.0, 1.0), 7 / 3, 2.0),
        ((-2.0, -4.0, -1.0), -7 / 3, -2.0),
        ((-8.0, 1.0, 1.0), -2.0, -2.0),
        ((3.0, 0.0, 1.0), 4 / 3, 0.0),
    ],
)
def test_each_term_is_combined_over_its_variables(three, mean, geometric):
    values = {(0, (0, 0)): 1.5, (1, (1, 1)): -0.5, (2, (2, 2)): 0.0, (0, (0, 1)): 4.0, (1, (0, 1)): 9.0}
    values |= {(i, (0, 1, 2)): v for i, v in enumerate(three)}
    thetas = node_values(values)
    got = dict(zip(BASIS.terms, combine(BASIS, thetas, "mean")[0], strict=True))
    assert got[0, 0] == 1.5
    assert got[0, 1] == 6.5
    assert got[0, 1, 2] == pytest.approx(mean)
    got = dict(zip(BASIS.terms, combine(BASIS, thetas, "geometric")[0], strict=True))
    assert (got[0, 0], got[1, 1], got[2, 2]) == pytest.approx((1.5, -0.5, 0.0))
    assert got[0, 1] == pytest.approx(6.0)
    assert got[0, 1, 2] == pytest.approx(geometric)


THREE = (0, 1, 2)  # the one term with three estimates


def estimates(three=(2.0, 4.0, 1.0)):
    values = {(0, (0, 0)): 1.5, (1, (1, 1)): -0.5, (2, (2, 2)): 0.3, (0, (0, 1)): 4.0, (1, (0, 1)): 9.0}
    return node_values(values | {(i, THREE): v for i, v in enumerate(three)})


def where(term):
    return np.flatnonzero(places(BASIS) == BASIS.terms.index(term))


def covariance(C):
    """Of all local parameters: random, but C for those of the term with three estimates."""
    root = np.random.default_rng(0).standard_normal((8, 8))
    full = root @ root.T
    full[np.ix_(where(THREE), where(THREE))] = C
    return full


C = np.array([[1.0, 0.3, -0.2], [0.3, 4.0, 0.5], [-0.2, 0.5, 0.25]])


def test_precision_is_its_formula():
    """Σ u v with u ∝ (C + 0.05 tr(C)/3 I)⁻¹ 1, and Σ u = 1; of one estimate, itself."""
    theta, share = combine(BASIS, estimates(), "precision", None, covariance(C))
    got = dict(zip(BASIS.terms, theta, strict=True))
    u = np.linalg.inv(C + 0.05 * 5.25 / 3 * np.eye(3)) @ np.ones(3)
    assert got[THREE] == pytest.approx(u @ [2.0, 4.0, 1.0] / u.sum(), rel=1e-12)
    assert np.allclose(share[where(THREE)], u / u.sum(), rtol=1e-12)
    assert got[0, 0] == 1.5
    assert np.allclose(np.bincount(places(BASIS), share), 1.0)
    assert np.array_equal(combine(BASIS, estimates(), "precision")[0], combine(BASIS, estimates(), "mean")[0])


@pytest.mark.parametrize("method", ["precision", "geometric", "mean"])
def test_estimates_that_agree_are_kept(method):
    theta, _ = combine(BASIS, estimates((0.7, 0.7, 0.7)), method, None, covariance(C))
    assert theta[BASIS.terms.index(THREE)] == pytest.approx(0.7, rel=1e-12)


@pytest.mark.parametrize("method", ["precision", "geometric", "mean"])
def test_nodes_that_are_not_trusted_are_left_out(method):
    """Of a term that has others: x2² has only one. Two estimates of one variance, so that all methods agree on 3."""
    even = np.array([[1.0, 0.3, 9.0], [0.3, 1.0, 9.0], [9.0, 9.0, np.nan]])
    theta, share = combine(BASIS, estimates((3.0, 3.0, 1e9)), method, [True, True, False], covariance(even))
    got = dict(zip(BASIS.terms, theta, strict=True))
    assert got[THREE] == pytest.approx(3.0, rel=1e-12)
    assert got[2, 2] == pytest.approx(0.3, rel=1e-12)
    known = np.where(np.isnan(covariance(even)), 0.0, covariance(even))
    assert np.allclose(carry(BASIS, share, covariance(even)), carry(BASIS, share, known), rtol=1e-14)


@pytest.mark.parametrize(
    ("singular", "share"),
    [
        (np.ones((3, 3)), [1 / 3, 1 / 3, 1 / 3]),  # estimates that coincide
        (np.zeros((3, 3)), [1 / 3, 1 / 3, 1 / 3]),
        (np.full((3, 3), np.nan), [1 / 3, 1 / 3, 1 / 3]),
        (np.diag([1.0, 1.0, 0.0]), [1 / 33, 1 / 33, 31 / 33]),  # 1/30 is added: of 31/30, 31/30 and 1/30 the inverses
    ],
)
def test_a_singular_covariance_still_weighs(singular, share):
    theta, got = combine(BASIS, estimates(), "precision", None, covariance(singular))
    assert np.allclose(got[where(THREE)], share, rtol=1e-9)
    assert np.all(np.isfinite(theta))


@pytest.mark.parametrize("method", ["precision", "geometric", "mean"])
def test_the_covariance_of_the_answer_is_the_delta_method(method):
    """∂Θ/∂v by finite differences of the combination itself, the shares of "precision" held."""
    thetas, full = estimates(), covariance(C)
    _, share = combine(BASIS, thetas, method, None, full)
    v, h, ends = np.concatenate(thetas), 1e-6, np.cumsum([len(t) for t in thetas])[:-1]

    def combined(step):
        return combine(BASIS, np.split(v + step, ends), method, None, full)[0]

    W = np.stack([(combined(h * e) - combined(-h * e)) / (2 * h) for e in np.eye(len(v))], axis=1)
    assert np.allclose(W[places(BASIS), np.arange(len(v))], share, atol=1e-8)
    assert np.allclose(carry(BASIS, share, full), W @ full @ W.T, rtol=1e-6, atol=1e-7)
