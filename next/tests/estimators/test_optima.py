"""The paper's estimators against the library before this one, and against optima of formulas that are written out."""

from pathlib import Path

import numpy as np
import pytest
from estimators.papers_formulas import geometric, keys, likelihood_node, score_system, screening_node

from isodus import ISODUS, PowerReference, PseudoLikelihood, ScoreMatching, datasets
from isodus.axes import Line

ORACLE = np.load(Path(__file__).parents[1] / "data" / "oracle" / "oracle.npz")
OPTIONS = {"min_degree": 2, "scale": None, "penalty": None, "tol": 1e-10, "n_jobs": 1}
PAIR = datasets.paper_pair(1500, seed=5)
pytestmark = pytest.mark.filterwarnings("ignore:Held out")  # of 1,500 rows


def oracle(name, consensus):
    """Samples, and θ of the library before this one by key."""
    powers = ORACLE[f"{name} keys"]
    terms = [tuple(int(i) for i in np.repeat(np.arange(len(row)), row)) for row in powers]
    return ORACLE[f"{name} X"].astype(float), dict(zip(terms, ORACLE[f"{name} {consensus}"], strict=True))


def agree(est, expected, tolerance=1e-8):
    """θ in powers of x, each term of `expected`."""
    view = est.model_.polynomial()
    found = dict(zip(view.keys, view.coefficients, strict=True))
    assert set(found) == set(expected)
    worst = max(abs(found[key] - value) / max(1.0, abs(value)) for key, value in expected.items())
    assert worst < tolerance, worst


@pytest.mark.parametrize("consensus", ["geometric", "mean"])
@pytest.mark.parametrize(("name", "order"), [("one", 1), ("pair", 2), ("four", 2)])
def test_the_library_before_this_one(name, order, consensus):
    X, expected = oracle(name, consensus)
    est = ISODUS(4, max_order=order, reference=PowerReference(nu=2.0, delta=2.0), consensus=consensus, **OPTIONS)
    agree(est.fit(X), expected)
    assert est.nu_.tolist() == [2.0] * X.shape[1]


@pytest.mark.filterwarnings("ignore:The weights of columns")  # one row decides at ν = .5
@pytest.mark.parametrize(("nu", "delta"), [((2.0, 2.0), 2.0), ((0.5, 4.0), 1.0)])
def test_the_papers_objective_written_out(nu, delta):
    terms = keys(2, 4)
    expected = geometric([screening_node(PAIR, terms, i, nu[i], 4 + delta) for i in range(2)])
    est = ISODUS(4, reference=PowerReference(nu=nu, delta=delta), consensus="geometric", **OPTIONS)
    agree(est.fit(PAIR), expected)


def test_pseudo_likelihood_of_single_variables():
    """On the window of a column powers are held at its ends, and tails have their length in mass."""
    terms, nodes, X = keys(2, 4), [], PAIR[:500]
    for i in range(2):
        axis = Line.fit(X[:, i], 4)
        u, w = np.polynomial.legendre.leggauss(200)
        low, high = axis.location + axis.scale * np.array([axis.low, axis.high])
        places = np.concatenate([[low], low + (high - low) * (u + 1) / 2, [high]])
        mass = np.concatenate([[axis.tail * axis.scale], w * (high - low) / 2, [axis.tail * axis.scale]])
        nodes.append(likelihood_node(X, terms, i, places, np.log(mass)))
    agree(PseudoLikelihood(4, consensus="geometric", **OPTIONS).fit(X), geometric(nodes))


def test_score_matching_is_a_linear_system():
    terms = keys(2, 4)
    systems = [score_system(PAIR, terms, i) for i in range(2)]
    alone = geometric([(own, np.linalg.solve(A, b)) for own, A, b in systems])
    agree(ScoreMatching(4, consensus="geometric", **OPTIONS).fit(PAIR), alone)
    A, b = np.zeros((len(terms),) * 2), np.zeros(len(terms))
    for own, at, right in systems:
        place = [terms.index(key) for key in own]
        A[np.ix_(place, place)] += at
        b[place] += right
    agree(ScoreMatching(4, **OPTIONS).fit(PAIR), dict(zip(terms, np.linalg.solve(A, b), strict=True)))


def test_score_matching_between_ends():
    """h is a parabola of the distance to both ends, in units of half the interval."""
    X = np.random.default_rng(8).beta(2.0, 3.0, (800, 2))
    X[:, 1] = 0.7 * X[:, 1] + 0.3 * X[:, 0]
    terms = keys(2, 3, least=1)
    A, b = np.zeros((len(terms),) * 2), np.zeros(len(terms))
    est = ScoreMatching(3, support=(0, 1), penalty=None, tol=1e-10, n_jobs=1).fit(X)
    for i, axis in enumerate(est.model_.terms.axes):
        u = 2 * X[:, i] - 1
        # derivatives of an axis are by its own coordinate, so that each node counts by the square of its unit
        own, at, right = score_system(X, terms, i, 1 - u**2, -4 * u)
        place = [terms.index(key) for key in own]
        A[np.ix_(place, place)] += axis.scale**2 * at
        b[place] += axis.scale**2 * right
    agree(est, dict(zip(terms, np.linalg.solve(A, b), strict=True)))


def test_consensus_of_importance_weights_is_that_of_the_weighted_objective():
    w, terms = np.exp(PAIR[:, 0]), keys(2, 4)
    expected = geometric([screening_node(PAIR, terms, i, 2.0, 6.0, w) for i in range(2)])
    est = ISODUS(4, reference=PowerReference(nu=2.0), consensus="geometric", **OPTIONS)
    agree(est.fit(PAIR, sample_weight=w, weights="importance"), expected)


@pytest.mark.parametrize("make", [
    lambda c: ISODUS(4, reference=PowerReference(nu=2.0), consensus=c, **OPTIONS),
    lambda c: PseudoLikelihood(4, consensus=c, **OPTIONS),
    lambda c: ScoreMatching(4, consensus=c, **OPTIONS),
])  # fmt: skip
def test_each_consensus_is_between_the_nodes_and_unlike_the_others(make):
    found = {c: make(c).fit(PAIR).model_.tau for c in ("geometric", "mean", "precision")}
    assert not np.allclose(found["geometric"], found["mean"], rtol=1e-6)
    assert not np.allclose(found["precision"], found["mean"], rtol=1e-6)
    own = [k for k, key in enumerate(make("mean").fit(PAIR).model_.terms.keys) if len(set(key)) == 1]
    for tau in found.values():
        np.testing.assert_allclose(tau[own], found["mean"][own], rtol=1e-10)
