import re
from fractions import Fraction
from math import factorial, prod
from types import SimpleNamespace

import numpy as np
import pytest

from isodus import MonomialBasis, PolynomialModel, diagnostics, positivity
from isodus.datasets import double_wells, phi4_lattice, sparse_polynomial
from isodus.diagnostics import integrability
from isodus.energy import raw_units
from isodus.fitting import stray_note

X, Y, Z = (0,), (1,), (2,)
X4, Y4, Z4 = X * 4, Y * 4, Z * 4
X2Y2 = X * 2 + Y * 2

YES, NO, OPEN = "integrable", "not integrable", "unknown"

# energies by term, and what is known of exp(−E)
KNOWN = {
    "one variable": ({X4: 1, X: 3}, YES),
    "double well": ({X4: 1, X * 2: -5}, YES),
    "one variable, odd": ({X * 3: 1, X * 2: 1}, NO),
    "one variable, negative": ({X4: -1, X * 2: 5}, NO),
    "negative sextic": ({X * 6: -0.001, X4: 1, Y4: 1}, NO),
    "x⁴ + y²": ({X4: 1, Y * 2: 1}, YES),
    "x⁴ + y² with xy": ({X4: 1, Y * 2: 1, X + Y: 9}, YES),
    "1.9": ({X4: 1, Y4: 1, X2Y2: -1.9}, YES),
    "2.1": ({X4: 1, Y4: 1, X2Y2: -2.1}, NO),
    "1.9, with a large cubic term": ({X4: 1, Y4: 1, X2Y2: -1.9, X + Y * 2: 50}, YES),
    "(x² − y²)²: log-divergent": ({X4: 1, Y4: 1, X2Y2: -2}, NO),
    "(x² − y²)² + x": ({X4: 1, Y4: 1, X2Y2: -2, X: 1}, NO),
    "(x² − y²)² − x²": ({X4: 1, Y4: 1, X2Y2: -2, X * 2: -0.1}, NO),
    "(x² − y²)² + z⁴, no interaction": ({X4: 1, Y4: 1, X2Y2: -2, Z4: 1}, NO),
    "(x − y)⁴: flat": ({X4: 1, X * 3 + Y: -4, X2Y2: 6, X + Y * 3: -4, Y4: 1}, NO),
    "(x − y)⁴ + (x − y)²": (
        {X4: 1, X * 3 + Y: -4, X2Y2: 6, X + Y * 3: -4, Y4: 1, X * 2: 1, X + Y: -2, Y * 2: 1},
        NO,
    ),
    "(x + y + z)²": ({X * 2: 1, Y * 2: 1, Z * 2: 1, X + Y: 2, X + Z: 2, Y + Z: 2}, NO),
    "(x + y + z)² + x": ({X * 2: 1, Y * 2: 1, Z * 2: 1, X + Y: 2, X + Z: 2, Y + Z: 2, X: 1}, NO),
    "x²y² + x²: a channel along y": ({X2Y2: 1, X * 2: 1}, NO),
    "x²y² + x² + y²": ({X2Y2: 1, X * 2: 1, Y * 2: 1}, YES),
    "x² + xy: no y²": ({X * 2: 1, X + Y: 1}, NO),
    "x²y⁴ helps": ({X4: 1, Y4: 1, X2Y2: -1.9, X * 2 + Y4: 3}, YES),
    "x⁴ + xy³ + y²": ({X4: 1, X + Y * 3: 1, Y * 2: 1}, NO),
    "x⁴ + y⁴ + x³y²": ({X4: 1, Y4: 1, X * 3 + Y * 2: 0.01}, NO),
    "x⁴ + y² − x²y²": ({X4: 1, Y * 2: 1, X2Y2: -0.01}, NO),
    "x⁴ + 1.9 x²y + y²": ({X4: 1, X * 2 + Y: 1.9, Y * 2: 1}, YES),
    "x⁴ + 2.1 x²y + y²: falls along a parabola": ({X4: 1, X * 2 + Y: 2.1, Y * 2: 1}, NO),
    "x²yz at 2√2 − 0.02": ({X4: 1, Y4: 1, Z4: 1, X * 2 + Y + Z: 2 * 2**0.5 - 0.02}, YES),
    "x²yz at 2√2 + 0.02": ({X4: 1, Y4: 1, Z4: 1, X * 2 + Y + Z: 2 * 2**0.5 + 0.02}, NO),
    "xyzw at 3.9": ({X4: 1, Y4: 1, Z4: 1, (3,) * 4: 1, (0, 1, 2, 3): 3.9}, YES),
    "xyzw at 4.1": ({X4: 1, Y4: 1, Z4: 1, (3,) * 4: 1, (0, 1, 2, 3): 4.1}, NO),
    "two blocks": ({X4: 1, Y4: 1, X2Y2: -1.9, Z * 2: 1, (3, 3): 1, (2, 3): 1.9, (0, 2): 5}, YES),
    "two blocks, one negative": ({X4: 1, Y4: 1, X2Y2: -1.9, Z * 2: 1, (3, 3): 1, (2, 3): 2.1, (0, 2): 5}, NO),
    "two groups, one negative": ({X4: 1, Y4: 1, X2Y2: -2.1, Z * 2: 1}, NO),
    # only a sum of squares of the whole energy can decide these
    "x²y² + x² + y² + 1.5x²y": ({X2Y2: 1, X * 2: 1, Y * 2: 1, X * 2 + Y: 1.5}, YES),
    "x²y² + x⁴ − xy + y²/10": ({X2Y2: 1, X4: 1, X + Y: -1, Y * 2: 0.1}, YES),
    "x⁴y² + x²y⁴ − 2.9x²y² + x² + y²": ({X4 + Y * 2: 1, X * 2 + Y4: 1, X2Y2: -2.9, X * 2: 1, Y * 2: 1}, YES),
    "x²y² + y²z² + x²z² + 2xyz + x² + y² + z²": (
        {X2Y2: 1, Y * 2 + Z * 2: 1, X * 2 + Z * 2: 1, X + Y + Z: 2, X * 2: 1, Y * 2: 1, Z * 2: 1},
        YES,
    ),
    "x⁴y⁴ over x⁴ + y⁴ − 3x²y²": ({X4 + Y4: 1, X4: 1, Y4: 1, X2Y2: -3}, YES),
}
# true or false, these must not be claimed: forms that touch zero with more below, Motzkin's form made positive
UNPROVED = {
    "(x² − y²)² + x²": ({X4: 1, Y4: 1, X2Y2: -2, X * 2: 1}, {YES, OPEN}),
    "(x² + y)²": ({X4: 1, X * 2 + Y: 2, Y * 2: 1}, {NO, OPEN}),
    "(x² − 2y²)²": ({X4: 1, X2Y2: -4, Y4: 4}, {NO, OPEN}),
    "Motzkin": (
        {X4 + Y * 2: 1, X * 2 + Y4: 1, Z * 6: 1, X * 2 + Y * 2 + Z * 2: -3, X * 6: 0.0, Y * 6: 0.0},
        {YES, OPEN},  # it touches zero, in channels that are thin enough
    ),
    "Motzkin and all sixth powers": (
        {X4 + Y * 2: 1, X * 2 + Y4: 1, Z * 6: 1, X * 2 + Y * 2 + Z * 2: -3, X * 6: 0.01, Y * 6: 0.01},
        {YES, OPEN},
    ),
}


def model(terms, p=None):
    basis = MonomialBasis(p or 1 + max(max(term) for term in terms), terms=terms)
    return basis, np.array([terms[term] for term in basis.terms], np.float64)


def energy(basis, theta, points):
    """E at points (n, p), one term after the other."""
    return sum(t * np.prod([points[:, v] for v in term], axis=0) for t, term in zip(theta, basis.terms, strict=True))


def falls(basis, theta, result):
    """Whether the energy falls without bound, or is constant, where the result says so; in exact arithmetic."""
    along = []
    for t in (10**12, 10**15, 10**18):
        x = [Fraction(u) * t ** int(e) for u, e in zip(result.direction, result.exponents, strict=True)]
        along.append(sum(Fraction(c) * prod(x[v] for v in term) for c, term in zip(theta, basis.terms, strict=True)))
    return along[0] == along[1] == along[2] or (along[2] < 10 * along[1] < 100 * along[0] and along[0] < 0)


@pytest.mark.parametrize("name", KNOWN)
def test_known_energies(name):
    terms, status = KNOWN[name]
    basis, theta = model(terms)
    result = integrability(basis, theta)
    assert result.status == status, result
    assert result.reason
    if status == YES:
        assert result.direction is None
    else:
        assert falls(basis, theta, result), result


@pytest.mark.parametrize("name", UNPROVED)
def test_what_cannot_be_proved_is_not_claimed(name):
    terms, allowed = UNPROVED[name]
    assert integrability(*model(terms)).status in allowed


@pytest.mark.parametrize("here", [True, False])
def test_a_solver_is_recommended_where_it_could_help(monkeypatch, here):
    """Not where the highest terms vanish: no positive definite G can tell what lower ones do."""
    for module in (diagnostics, positivity):
        monkeypatch.setattr(module, "solver_is_here", lambda: here)
    monkeypatch.setattr(positivity.Squares, "_solved", lambda *_: None)
    motzkin = integrability(*model(UNPROVED["Motzkin and all sixth powers"][0]))
    assert motzkin.status == OPEN
    assert ("pip install isodus[certify]" in motzkin.reason) != here
    flat = integrability(*model(UNPROVED["(x² − y²)² + x²"][0]))
    assert "vanish" in flat.reason
    assert "install" not in flat.reason


@pytest.mark.parametrize("c", [-1.0, 0.0, 1.0, 1.99, 1.9999, 2.0, 2.0001, 2.01, 3.0])
def test_both_sides_of_the_boundary(c):
    """x⁴ + y⁴ − c x²y² is positive for c < 2 and negative on the diagonal for c > 2."""
    result = integrability(*model({X4: 1, Y4: 1, X2Y2: -c} if c else {X4: 1, Y4: 1}))
    assert result.status == (YES if c < 2 else NO)
    if c > 2:  # 2 − c where both coordinates are 1
        assert result.value == pytest.approx(2 - c, rel=1e-6)


def moved(name, location, scale):
    """A known energy of (x − location)/scale."""
    terms, _ = KNOWN[name]
    p = 1 + max(max(term) for term in terms)
    basis = MonomialBasis(p, max(map(len, terms)))
    theta = np.zeros(len(basis))
    theta[[basis.terms.index(term) for term in terms]] = list(terms.values())
    return basis, raw_units(basis, theta, np.resize(location, p), np.resize(scale, p))


@pytest.mark.parametrize("name", KNOWN)
def test_units_and_translation_do_not_matter(name):
    _, status = KNOWN[name]
    assert integrability(*moved(name, 0, [256, 0.125, 2, 1])).status == status
    # a channel that is elsewhere, and pure powers from products of others, are not recognised
    assert integrability(*moved(name, [1, -2, 3, 0.5], 1)).status in (status, OPEN)


@pytest.mark.parametrize("name", ["double well", "1.9", "2.1", "x⁴ + 1.9 x²y + y²", "xyzw at 3.9", "two blocks"])
def test_translated_wells(name):
    _, status = KNOWN[name]
    assert integrability(*moved(name, [3, -7, 0.3, 11], [0.7, 1.3])).status == status


def test_gaussian_models_by_their_eigenvalues():
    rng = np.random.default_rng(0)
    for p in (1, 2, 5, 20):
        basis = MonomialBasis(p, 2)
        i, j = basis.factors.T
        for shift in (-0.1, -1e-6, 1e-6, 0.1):
            A = rng.standard_normal((p, p))
            A = A @ A.T
            A += (shift - np.linalg.eigvalsh(A)[0]) * np.eye(p)
            theta = np.where(j < 0, 1.0, np.where(i == j, 1.0, 2.0) * A[i, j])
            result = integrability(basis, theta)
            assert result.status == (YES if shift > 0 else NO)
            assert shift > 0 or falls(basis, theta, result)


def test_the_value_that_decides_has_its_standard_error():
    """F(u) = Σ θ_k u^α along the direction: its standard error is √(vᵀCv), v_k = u^{α_k}; what is held is known."""
    basis, theta = model({X4: 1, Y4: 1, X2Y2: -2.1, X * 2: 5})
    C = np.diag([0.3, 0.01, 0.02, 0.03])  # x², x⁴, x²y², y⁴
    C[1, 2] = C[2, 1] = 0.01
    result = integrability(basis, theta, covariance=C)
    u = result.direction
    v = np.array([0, u[0] ** 4, u[0] ** 2 * u[1] ** 2, u[1] ** 4])
    assert result.value == pytest.approx(v @ theta)
    assert result.stderr == pytest.approx(np.sqrt(v @ C @ v))
    assert "not distinguishable from zero: lower the degree" in result.reason
    certain = integrability(basis, theta, covariance=1e-4 * C)
    assert certain.stderr == pytest.approx(0.01 * result.stderr)
    assert "not distinguishable" not in certain.reason
    C[1] = C[:, 1] = np.nan
    held = integrability(basis, theta, covariance=C)
    assert held.stderr == pytest.approx(np.sqrt(v[2:] @ C[2:, 2:] @ v[2:]))
    assert integrability(basis, theta).stderr is None


def test_variables_are_named():
    basis = MonomialBasis(2, 4)
    theta = np.where(basis.factors[:, 0] == 0, 0.0, np.array(basis.degrees == 4, float))
    unused = integrability(basis, theta, names=["height", "weight"])
    assert unused.status == NO
    assert "height" in unused.reason
    assert "weight" not in unused.reason
    assert np.array_equal(unused.direction, [1, 0])
    assert integrability(basis, np.zeros(len(basis))).status == NO


def test_too_many_terms_are_refused():
    basis = MonomialBasis(150, 4, max_order=2)
    theta = np.where((basis.orders == 1) & (basis.degrees == 4), 1.0, 1e-9)
    result = integrability(basis, theta)
    assert result.status == OPEN
    assert "too many" in result.reason


def least(function, p):
    """The minimum of a function on the unit sphere: at random, then closer and closer around the ten best."""
    rng = np.random.default_rng(0)
    U = rng.standard_normal((4000, p))
    for radius in 0.3 * 0.5 ** np.arange(25):
        U /= np.linalg.norm(U, axis=1, keepdims=True)
        best = U[np.argsort(function(U))[:10]]
        U = np.concatenate([best, np.repeat(best, 40, axis=0) + radius * rng.standard_normal((400, p))])
    return function(best).min()


def boundary_model(basis, rng):
    """Random terms; those of the fourth degree with several variables times the factor at which E stops rising."""
    top, pure = basis.degrees == 4, basis.orders == 1
    theta = rng.standard_normal(len(basis))
    theta[top & pure] = rng.uniform(0.3, 3, basis.n_variables)
    parts = [np.where(top & which, theta, 0.0) for which in (pure, ~pure)]
    ratio = least(lambda U: energy(basis, parts[1], U) / energy(basis, parts[0], U), basis.n_variables)
    return np.where(top & ~pure, -theta / ratio, theta)


@pytest.mark.parametrize(("p", "order", "n"), [(2, 2, 8), (3, 2, 5), (3, 3, 3)])
def test_random_models_beside_the_boundary(p, order, n):
    basis = MonomialBasis(p, 4, max_order=order)
    mixed = (basis.degrees == 4) & (basis.orders > 1)
    rng = np.random.default_rng(p + order)
    found = []
    for _ in range(n):
        theta = boundary_model(basis, rng)
        for gap in (-0.1, -1e-2, -1e-4, 1e-4, 1e-2, 0.1):
            near = np.where(mixed, theta * (1 - gap), theta)
            result = integrability(basis, near)
            found.append(result.status)
            assert result.status in ((YES, OPEN) if gap > 0 else (NO, OPEN))
            if result.status == NO:
                assert falls(basis, near, result)
            elif result.status == YES:
                # on a large sphere lower terms are below 1e-5 of the highest
                assert least(lambda U, near=near: energy(basis, near, 1e8 * U) / 1e32, p) > 0
    assert found.count(OPEN) <= 0.02 * len(found)


def squares(p, rng, zero=None):
    """Random positive (or, at `zero`, vanishing) sum of squares of quadratic forms, as a model of degree 4."""
    basis, pairs = MonomialBasis(p, 4, min_degree=4), MonomialBasis(p, 2, min_degree=2).factors
    Q = rng.standard_normal((len(pairs) + 2, len(pairs)))
    if zero is not None:
        h = zero[pairs].prod(axis=1)
        Q -= np.outer(Q @ h, h) / (h @ h)
    G = Q.T @ Q
    products = np.sort(np.concatenate([np.repeat(pairs, len(pairs), 0), np.tile(pairs, (len(pairs), 1))], axis=1))
    return basis, np.bincount(basis.positions(products), G.ravel(), len(basis))


@pytest.mark.parametrize("p", [2, 4, 6])
def test_sums_of_squares(p):
    rng = np.random.default_rng(p)
    for _ in range(3):
        basis, theta = squares(p, rng)
        assert integrability(basis, theta).status == YES
        u = rng.standard_normal(p)
        u /= np.linalg.norm(u)
        basis, theta = squares(p, rng, zero=u)
        assert integrability(basis, theta).status != YES
        fourth = [24 / prod(factorial(term.count(v)) for v in set(term)) for term in basis.terms]  # of (u·x)⁴
        below = theta - 1e-3 * np.array(fourth) * u[basis.factors].prod(axis=1)
        result = integrability(basis, below)
        assert result.status == NO
        assert falls(basis, below, result)


def test_degree_six():
    basis = MonomialBasis(2, 6, min_degree=6)
    angle = np.linspace(0, np.pi, 10_000)
    U = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rng = np.random.default_rng(0)
    statuses = []
    for _ in range(20):
        theta = np.where(basis.orders == 1, 1.0, 0.8 * rng.standard_normal(len(basis)))
        statuses.append(integrability(basis, theta).status)
        assert statuses[-1] in ({YES, OPEN} if energy(basis, theta, U).min() > 0 else {NO, OPEN})
    assert statuses.count(OPEN) <= 1
    assert {YES, NO} <= set(statuses)


def test_a_sparse_model_of_many_variables():
    """Σ (x² + ¾xy − y²)² + x²y²/10 around a ring: positive, by a small margin."""
    p = 40
    terms = {(i,) * 4: 2.0 for i in range(p)}
    for i in range(p):
        x, y = sorted((i, (i + 1) % p))
        terms |= {(x, x, x, y): 1.5, (x, x, y, y): -1.4375 + 0.1, (x, y, y, y): -1.5}
    assert integrability(*model(terms)).status == YES
    terms |= {(0, 0, 1, 1): -1.4375 - 1.5}
    assert integrability(*model(terms)).status == NO


def test_mass_far_from_the_data_is_found():
    """E = x²/2 − 0.05 x³ + 0.001 x⁴ has a well at 0, and its lowest at 28.83."""
    basis, theta = MonomialBasis(1, 4), np.array([0.0, 0.5, -0.05, 0.001])
    data = np.random.default_rng(0).standard_normal((1, 24))
    lower, place = diagnostics.stray(basis, theta, data)
    roots = np.roots([0.004, -0.15, 1.0])
    lowest = np.polyval([0.001, -0.05, 0.5, 0.0, 0.0], roots.max())
    assert place[0] == pytest.approx(roots.max(), rel=1e-3)
    assert lower == pytest.approx(np.median(np.polyval([0.001, -0.05, 0.5, 0.0, 0.0], data)) - lowest, rel=1e-6)

    model = PolynomialModel(basis, theta, [100.0], [2.0], ["level"])
    setting = SimpleNamespace(X=100.0 + 2.0 * data.T)
    assert re.search(r"mass far from the data: about level = 158, its energy is 9\d lower", stray_note(setting, model))
    steady = PolynomialModel(basis, [0.0, 0.5, -0.01, 0.001], [100.0], [2.0], ["level"])
    assert stray_note(setting, steady) == ""


@pytest.mark.parametrize("model", [double_wells(4), phi4_lattice((2, 2)), sparse_polynomial(5, max_order=3)])
def test_samples_of_a_model_are_where_its_mass_is(model):
    X = model.sample(200, rng=0)
    lower, _ = diagnostics.stray(model.basis, model.theta, X.T)
    assert 0 < lower < model.basis.n_variables
