import numpy as np
import pytest

from isodus import MonomialBasis, positivity
from isodus.positivity import Form, Squares, half_monomials, is_sum_of_squares


def form(terms):
    basis = MonomialBasis(1 + max(max(term) for term in terms), terms=terms)
    theta = np.array([terms[term] for term in basis.terms], np.float64)
    return Form(basis.factors, theta, tuple(f"x{i}" for i in range(basis.n_variables)))


def quartic(terms, p):
    """Whether a form of degree 4 is proved a sum of squares."""
    return is_sum_of_squares(form(terms), half=(np.full(p, 4), np.ones(p, int)))


def test_gram_matrices_and_coefficients():
    """hᵀGh at random points, by its coefficients and as it stands."""
    rng = np.random.default_rng(0)
    h = [(0, 0), (0, 1), (1, 1), (2,)]
    squares = Squares(h, [(0, 0, 1, 1), (2, 2)])
    assert squares.complete
    assert squares.terms[:2] == [(0, 0, 1, 1), (2, 2)]
    assert len(squares.terms) == 9  # x⁴, x³y, x²y², xy³, y⁴, and z² with z times three
    G = rng.standard_normal((4, 4))
    G += G.T
    c = squares.coefficients(G)
    for x in rng.standard_normal((5, 3)):
        v = np.array([np.prod(x[list(a)]) for a in h])
        assert v @ G @ v == pytest.approx(sum(a * np.prod(x[list(t)]) for a, t in zip(c, squares.terms, strict=True)))
    change = rng.standard_normal(9)
    assert np.allclose(squares.coefficients(G + squares.spread(change)), c + change)
    assert not Squares(h, [(0, 0, 0, 2, 2)]).complete


def test_half_monomials():
    d, w = np.array([4, 4, 2]), np.array([1, 1, 2])
    assert half_monomials([(0,) * 4, (1,) * 4, (2, 2), (0, 0, 1, 1)], d, w) == [(0, 0), (0, 1), (1, 1), (2,)]
    sixth = MonomialBasis(3, 6, min_degree=6, max_order=1).terms
    assert (0, 1, 2) in half_monomials([*sixth, (0, 0, 1, 1, 2, 2)], np.full(3, 6), np.ones(3, int))
    assert half_monomials([(0,) * 2, (1,) * 2], np.full(2, 2), np.ones(2, int)) == [(0,), (1,)]


@pytest.mark.parametrize("c", [1.9, 1.999, 2.0, 2.001])
def test_a_proof_is_found_where_there_is_one(c):
    """(x² − y²)² + (2 − c) x²y² is a sum of squares with a definite Gram matrix for c < 2 only."""
    assert quartic({(0,) * 4: 1, (1,) * 4: 1, (0, 0, 1, 1): -c}, 2) == (c < 2)


def test_a_positive_form_that_is_no_sum_of_squares_has_no_proof():
    """Motzkin's form plus a share of the sixth powers is positive; a sum of squares only if that is large enough."""
    motzkin = {(0, 0, 0, 0, 1, 1): 1, (0, 0, 1, 1, 1, 1): 1, (2,) * 6: 1, (0, 0, 1, 1, 2, 2): -3}
    for share, proved in [(0.01, False), (0.2, True)]:
        terms = motzkin | {(0,) * 6: share, (1,) * 6: share}
        assert is_sum_of_squares(form(terms), half=(np.full(3, 6), np.ones(3, int))) == proved


def test_rounding_is_part_of_the_proof():
    """A Gram matrix that is off by more than its least eigenvalue proves nothing."""
    squares = Squares([(0, 0), (0, 1), (1, 1)], [(0,) * 4, (0, 0, 1, 1), (1,) * 4])
    target = squares.coefficients(np.eye(3))
    assert squares._is_proof(np.eye(3), target, None)
    off = target + np.eye(len(target))[1] * 1.1
    assert not squares._is_proof(np.eye(3), off, None)
    assert squares._is_proof(np.eye(3), off, free=1)
    singular = np.outer([1, 0, -1], [1, 0, -1.0])
    assert not squares._is_proof(singular, squares.coefficients(singular), None)


@pytest.fixture
def without_iterations(monkeypatch):
    """No Douglas-Rachford iteration is made: what is proved, the solver has found."""
    monkeypatch.setattr(positivity, "_ITERATIONS", (0, 0))


def test_a_solver_is_optional(without_iterations, monkeypatch):
    monkeypatch.setattr(positivity, "solver_is_here", lambda: False)
    assert not quartic({(0,) * 4: 1, (1,) * 4: 1, (0, 0, 1, 1): -1}, 2)


def test_a_solver_finds_what_is_there_and_nothing_else(without_iterations):
    pytest.importorskip("cvxpy")
    pytest.importorskip("clarabel")
    for c in (1.0, 1.99, 1.9999, 2.0, 2.01):
        assert quartic({(0,) * 4: 1, (1,) * 4: 1, (0, 0, 1, 1): -c}, 2) == (c < 2)
    # x²y² + x² + y² + b x²y, plus a constant: definite for b² < 4, where x²(y² + by + 1) is
    for b in (0.5, 1.9, 2.1):
        terms = {(0, 0, 1, 1): 1, (0, 0): 1, (1, 1): 1, (0, 0, 1): b}
        assert is_sum_of_squares(form(terms)) == (b < 2)
    p = 5
    power = {(i,) * 4: 1.0 for i in range(p)}
    cross = {(j, j, i, i): -2 * 0.999 / (p - 1) for i in range(p) for j in range(i)}
    assert quartic(power | cross, p)  # Σ (x_i² − x_j²)²/(p − 1), almost
