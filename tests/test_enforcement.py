import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching
from isodus.datasets import gaussian_10, load_sachs
from isodus.diagnostics import integrability
from isodus.enforcement import enforce
from isodus.objective import Evaluation

X4, Y4, X2Y2 = (0,) * 4, (1,) * 4, (0, 0, 1, 1)


def quadratic(gradient, A):
    """The objective g·Δ + ½ΔᵀAΔ at its centre."""
    return Evaluation(0.0, np.asarray(gradient, float), np.asarray(A, float), 1000.0)


def model(terms):
    basis = MonomialBasis(1 + max(max(term) for term in terms), terms=terms)
    return basis, np.array([terms[term] for term in basis.terms], np.float64)


def least_on_circle(basis, theta):
    """The minimum over the circle of a form in two variables."""
    angle = np.linspace(0, np.pi, 4001)
    U = np.stack([np.cos(angle), np.sin(angle)])
    return np.min(theta @ np.array([U[list(term)].prod(axis=0) for term in basis.terms]))


def test_the_nearest_point_of_a_known_cone():
    """a x⁴ + b x²y² + a y⁴ is positive where b > −2a: from (1, −2.5, 1) the nearest point is (7, −14, 7)/6.

    Minimise 2(a − 1)² + (b + 2.5)² on b = −2a: 4(a − 1) − 4(2.5 − 2a) = 0.
    """
    basis, theta = model({X4: 1, X2Y2: -2.5, Y4: 1})
    moved = enforce(basis, theta, quadratic(np.zeros(3), np.eye(3)), 1e6)
    assert integrability(basis, moved).status == "integrable"
    assert np.allclose(moved, np.array([7, -14, 7]) / 6, atol=5e-3)


@pytest.mark.parametrize("seed", [1, 2, 3, 5])
def test_against_a_general_solver(seed):
    """All quartic forms of two variables, a random metric and slope: SciPy's SLSQP over positivity at 200 angles."""
    rng = np.random.default_rng(seed)
    basis = MonomialBasis(2, 4, min_degree=4)
    theta = np.where(basis.orders == 1, 1.0, 2 * rng.standard_normal(len(basis)))
    theta[2] -= 3
    L = rng.standard_normal((5, 8))
    A, g = L @ L.T / 8, 0.05 * rng.standard_normal(5)
    angle = np.linspace(0, np.pi, 200, endpoint=False)
    U = np.stack([np.cos(angle), np.sin(angle)])
    rows = np.array([U[list(term)].prod(axis=0) for term in basis.terms]).T
    q = lambda D: g @ D + 0.5 * D @ A @ D
    rule = {"type": "ineq", "fun": lambda D: rows @ (theta + D), "jac": lambda D: rows}
    best = minimize(q, np.zeros(5), jac=lambda D: g + A @ D, constraints=rule, method="SLSQP", options={"ftol": 1e-12})
    moved = enforce(basis, theta, quadratic(g, A), 1e5)
    assert best.success
    assert least_on_circle(basis, theta) < 0 < least_on_circle(basis, moved)
    assert q(moved - theta) == pytest.approx(best.fun, abs=0.02 * abs(best.fun) + 5e-3)


def test_terms_below_follow_where_the_metric_ties_them():
    """Δ_below = −A⁻¹(g + A Δ_lead): at the point found the slope along every lower term vanishes."""
    basis, theta = model({X4: 1, X2Y2: -2.5, Y4: 1, (0, 0): 0.3, (0, 1): -1, (0,): 0.1})
    rng = np.random.default_rng(0)
    L = rng.standard_normal((6, 9))
    A, g = L @ L.T / 9, 0.01 * rng.standard_normal(6)
    moved = enforce(basis, theta, quadratic(g, A), 1e6)
    slope = g + A @ (moved - theta)
    assert np.max(np.abs(slope[basis.degrees < 4])) < 1e-8
    assert np.max(np.abs(slope[basis.degrees == 4])) > 1e-2
    assert integrability(basis, moved).status == "integrable"


def test_what_is_proved_is_left_and_absent_terms_stay_absent():
    """Two blocks, one of them positive; no x³y in the basis; pure powers that are negative are raised."""
    basis, theta = model({X4: 1, X2Y2: -3, Y4: -0.2, (2, 2): 1, (3, 3): 1, (2, 3): 1.9, (0, 2): 5})
    moved = enforce(basis, theta, quadratic(np.zeros(7), np.eye(7)), 1e6)
    assert integrability(basis, moved).status == "integrable"
    block = [basis.terms.index(term) for term in [(2, 2), (3, 3), (2, 3)]]
    assert np.array_equal(moved[block], theta[block])
    assert moved[basis.terms.index(Y4)] > 0


def test_quadratic_forms():
    """The nearest matrix without negative eigenvalues, in the metric of the sum of squares of its entries."""
    basis = MonomialBasis(3, 2, min_degree=2)
    i, j = basis.factors.T
    M = 1.8 * np.eye(3) - 0.8
    theta, metric = np.where(i == j, 1, 2) * M[i, j], np.where(i == j, 1.0, 0.5)
    moved = enforce(basis, theta, quadratic(np.zeros(6), np.diag(metric)), 1e6)
    value, vector = np.linalg.eigh(M)
    nearest = (vector * np.maximum(value, 0)) @ vector.T
    assert np.allclose(moved, np.where(i == j, 1, 2) * nearest[i, j], atol=5e-3)
    assert integrability(basis, moved).status == "integrable"
    assert enforce(basis, moved, quadratic(np.zeros(6), np.eye(6)), 1e6) is None  # nothing is left to do


def test_what_cannot_be_made_integrable_is_left():
    for terms in ({X4: 1, Y4: 1, (0, 0, 0, 1, 1): 0.1}, {(0, 0): 1, (0, 1): 3}, {(0,) * 3: 1, (1, 1): 1}):
        basis, theta = model(terms)
        assert enforce(basis, theta, quadratic(np.zeros(len(theta)), np.eye(len(theta))), 1e3) is None
    basis, theta = model({X4: 1, X2Y2: -2.5, Y4: 1})
    assert enforce(basis, theta, quadratic(np.zeros(3), np.full((3, 3), np.nan)), 1e3) is None


def test_an_objective_that_is_not_quadratic():
    """Σ w(e^{Δ} − Δ): far steeper upwards than its quadratic; the constrained minimum by SLSQP."""
    basis, theta = model({X4: 1, X2Y2: -6, Y4: 1})
    w = np.array([1.0, 1.0, 1.0])

    def evaluate(point, hessian):
        D = 3 * (point - theta)
        return Evaluation(float(w @ (np.exp(D) - D)), 3 * w * (np.exp(D) - 1), np.diag(9 * w * np.exp(D)), 1e3)

    moved = enforce(basis, theta, evaluate(theta, True), 1e4, evaluate)
    rule = {"type": "ineq", "fun": lambda t: t[1] + 2 * np.sqrt(np.maximum(t[0] * t[2], 0))}
    best = minimize(lambda t: evaluate(t, False).value, [4.0, -5.0, 4.0], constraints=rule, method="SLSQP")
    assert best.success
    assert evaluate(moved, False).value == pytest.approx(best.fun, rel=0.02)


@pytest.fixture(scope="module")
def sachs():
    """Some of the proteins, as they are learned: no density."""
    X = load_sachs()[["praf", "pmek", "plcg", "PIP2", "PIP3"]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return X, ISODUS(integrable="warn").fit(X), [str(w.message) for w in caught]


def test_proteins_as_learned_are_no_density(sachs):
    X, learned, said = sachs
    verdict = learned.model_.integrability()
    assert verdict.status == "not integrable"
    assert any("no density on the whole space" in message for message in said)
    named = [name for name, u in zip(X.columns, verdict.direction, strict=True) if u]
    assert any(f"{name} = " in verdict.reason for name in named)
    t = np.array([1e2, 1e3, 1e4])
    along = learned.model_.energy(learned.location_ + t[:, None] * verdict.direction)
    assert np.all(np.diff(along) < 0)
    assert along[-1] < -1e6
    assert along[-1] == pytest.approx(verdict.value * t[-1] ** 4, rel=0.05)
    assert verdict.stderr > 0


def test_proteins_made_integrable(sachs, tmp_path):
    X, learned, _ = sachs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        enforced = ISODUS().fit(X)
    assert enforced.integrability_.status == "integrable"
    assert any(note.startswith("made integrable: ") for note in enforced.notes_)
    assert enforced.model_.settings["notes"] == enforced.notes_
    path = tmp_path / "m.json"
    enforced.model_.save(path)
    assert PolynomialModel.load(path).integrability().status == "integrable"
    U = np.random.default_rng(0).standard_normal((2000, X.shape[1]))
    far = enforced.model_.energy(enforced.location_ + 1e3 * enforced.scale_ * U / np.linalg.norm(U, axis=1)[:, None])
    assert np.all(far > 0)
    assert learned.score(X) - 0.01 < enforced.score(X) < learned.score(X) + 1e-3
    assert np.array_equal(learned.model_.covariance, enforced.model_.covariance)


@pytest.mark.parametrize(
    "estimator",
    [ScoreMatching(integrable="enforce"), ISODUS(refine=0, nu=0.1), PseudoLikelihood()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_all_estimators_can(estimator):
    X = gaussian_10(0).sample(3000, rng=3)[:, :3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X)
    assert estimator.integrability_.status == "integrable"
    assert np.isfinite(estimator.score(X))


def test_a_large_move_is_said():
    """The spread of one variable grows with the other: what a density needs is far from what was learned."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 2))
    X[:, 1] *= np.exp(0.7 * np.abs(X[:, 0]))
    X = np.sign(X) * np.abs(X) ** 0.8
    with pytest.warns(UserWarning, match="made integrable.*do not support a density of this form") as caught:
        estimator = ScoreMatching(integrable="enforce").fit(X)
    assert estimator.integrability_.status == "integrable"
    assert {w.filename for w in caught if "made integrable" in str(w.message)} == {__file__}


def test_weights_that_collapsed_tell_no_price_and_are_told():
    """With too small a ν for a Gaussian of ten variables Hessians vanish; there is a model, and a word about it."""
    X = np.asarray(gaussian_10().sample(1000, rng=0))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator = ISODUS(2, refine=0, nu=0.003, min_degree=2).fit(X)
    assert any("the screening weights collapsed" in str(w.message) for w in said)
    assert not any(w.category is RuntimeWarning for w in said)
    assert "weights collapsed" in estimator.status_
    assert np.all(np.isfinite(estimator.model_.theta))
