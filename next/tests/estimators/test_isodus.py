"""ISODUS: the tilted objective at its answer, pilots, other supports, and what a fit says of itself."""

import warnings
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError

from isodus import (
    ISODUS,
    IsodusWarning,
    PolynomialModel,
    PowerReference,
    PseudoLikelihood,
    Ridge,
    ScoreMatching,
    TiltedReference,
    datasets,
    lattice,
)
from isodus.axes import Functions

RNG = np.random.default_rng(40)
SETS = {
    "pair": cache(lambda: datasets.paper_pair(4000, seed=6)),
    "wells": cache(lambda: datasets.double_wells(4000, 2, height=2.0, coupling=0.8, seed=6)),
    "skewed": cache(lambda: datasets.skewed(4000, 2, seed=6)),
}


def errors(est):
    return np.sqrt(np.diag(est.model_.fitted.tau_covariance()))


def quietly(est, X, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsodusWarning)
        return est.fit(X, **kwargs)


# ---------------------------------------------------------------- tilted


@pytest.mark.parametrize("name", SETS)
def test_the_gradient_of_screening_vanishes_at_the_answer(name):
    X = SETS[name]()
    est = ISODUS(4, penalty=None, tol=1e-8, n_jobs=1).fit(X)
    at = est.objective(X)(est.model_.tau)
    assert est.n_tilts_ == 2
    assert est.pilot_rows_ < len(X)
    assert isinstance(est.reference_, PolynomialModel)
    assert_allclose(np.linalg.solve(at.hessian, at.gradient) / errors(est), 0.0, atol=1e-6)
    assert_allclose(at.nodes, 0.0, atol=0.05)  # weights of the last tilt are near 1
    other = PseudoLikelihood(4, penalty=None, tol=1e-8, n_jobs=1).fit(X)
    assert np.max(np.abs(est.model_.tau - other.model_.tau) / errors(other)) < 0.5


def test_the_screening_objective_written_out():
    """Σ_i log⟨exp(Σ_k (θ_k − θ⁰_k)(f_k − E_R f_k))⟩, R ∝ q exp(−Σ θ⁰_k f_k), by sums on 4,001 places and two tails."""
    X = SETS["wells"]()[:1500]
    est = quietly(ISODUS(4, penalty=None, n_jobs=1, reference=TiltedReference(PseudoLikelihood(2).fit(X).model_, 1)), X)
    rows, tau, value = X[:60], 1.1 * est.model_.tau, 0.0
    for i in range(2):
        axis, other = est.model_.terms.axes[i], est.model_.terms.axes[1 - i]
        y = np.linspace(axis.low, axis.high, 4001)
        weight = np.full(4001, y[1] - y[0])
        weight[[0, -1]] = weight[[0, -1]] / 2 + axis.tail
        on_places, here = axis.functions(axis.location + axis.scale * y), axis.functions(rows[:, i])
        rest = np.column_stack([np.ones(60), other.functions(rows[:, 1 - i])])
        gap, pilot, at = np.zeros((60, 4001)), np.zeros((60, 4001)), np.zeros(60)
        for key, t, t0 in zip(est.model_.terms.keys, tau, est.reference_.tau, strict=True):
            l, m = key.count(i), key.count(1 - i)
            if l:
                gap += (t - t0) * np.outer(rest[:, m], on_places[:, l - 1])
                pilot += t0 * np.outer(rest[:, m], on_places[:, l - 1])
                at += (t - t0) * rest[:, m] * here[:, l - 1]
        R = weight * np.exp(-pilot)
        value += np.log(np.mean(np.exp(at - (gap * R).sum(axis=1) / R.sum(axis=1))))
    assert est.objective(rows)(tau, 0).value == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("n_tilts", [1, 3])
def test_a_pilot_of_the_users(n_tilts):
    X = SETS["pair"]()
    pilot = PseudoLikelihood(2).fit(X).model_
    est = ISODUS(4, reference=TiltedReference(pilot=pilot, n_tilts=n_tilts), penalty=None, tol=1e-8, n_jobs=1)
    est.fit(X)
    assert (est.n_tilts_, est.pilot_rows_, est.status_) == (n_tilts, 0, "converged")
    at = est.objective(X)(est.model_.tau)
    assert_allclose(np.linalg.solve(at.hessian, at.gradient) / errors(est), 0.0, atol=1e-6)
    if n_tilts == 1:
        rows = X[:5]
        expected = pilot.conditional(0, rows[:, [1]]).logpdf(rows[:, 0])  # x_1 is x0 of the Gaussian on the whole line
        found = est.reference_.conditional(0, rows[:, [1]]).logpdf(rows[:, 0])
        assert_allclose(found, expected, atol=0.02)


def test_a_pilot_at_the_optimum_is_the_fixed_point():
    X = SETS["pair"]()
    other = PseudoLikelihood(4, penalty=None, tol=1e-9, n_jobs=1).fit(X)
    est = ISODUS(4, reference=TiltedReference(other.model_, 1), penalty=None, tol=1e-9, n_jobs=1).fit(X)
    assert_allclose((est.model_.tau - other.model_.tau) / errors(other), 0.0, atol=1e-6)
    assert_allclose(est.objective(X)(other.model_.tau, 0).nodes, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["t", "lognormal", "clusters", "curved"])
def test_hostile_rows_are_never_far_from_the_fixed_point(name):
    rng, degree = np.random.default_rng(7), 4
    z = rng.standard_normal((1500, 2))
    X = {
        "t": z / np.sqrt(rng.chisquare(2, (1500, 1)) / 2),
        "lognormal": np.exp(z),
        "clusters": z + 12.0 * rng.integers(0, 2, (1500, 1)) * [1, -1],
        "curved": datasets.curved(1500, seed=degree),
    }[name]
    est, other = (quietly(cls(degree, n_jobs=1), X) for cls in (ISODUS, PseudoLikelihood))
    assert np.max(np.abs(est.model_.tau - other.model_.tau) / errors(other)) < 0.5
    if est.n_tilts_ == 0:
        assert est.pilot_rows_ == len(X)
        note = next(note for note in est.notes_ if note.kind == "pilot on all rows")
        assert note.text.endswith("The estimate is pseudo-likelihood's.")


def test_an_interrupt_has_an_answer(monkeypatch):
    from isodus.fit.objective import Objective

    plain, calls = Objective.__call__, []

    def interrupted(self, tau, order=2):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return plain(self, tau, order)

    monkeypatch.setattr(Objective, "__call__", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        est = ISODUS(4, n_jobs=1).fit(SETS["pair"]())
    assert est.status_ == "interrupted"
    assert np.abs(est.model_.tau).max() > 0.1  # the last iterate


def test_ties_of_a_lattice():
    X, many = (datasets.phi4(n, (4, 4), sweeps=50, seed=3) for n in (200, 1500))
    fits = [quietly(cls(basis=lattice((4, 4)), tol=1e-6, n_jobs=1), X) for cls in (PseudoLikelihood, ISODUS)]
    assert np.max(np.abs(fits[0].model_.tau - fits[1].model_.tau) / errors(fits[0])) < 0.05
    for est in (
        *fits,
        quietly(ScoreMatching(basis=lattice((4, 4)), n_jobs=1), X),
        quietly(ISODUS(basis=lattice((4, 4)), reference=PowerReference(0.3), n_jobs=1), many),
        quietly(PseudoLikelihood(basis=lattice((4, 4)), consensus="precision", n_jobs=1), X),
    ):
        assert est.status_ == "converged"
        scale = est.model_.terms.axes[0].unit ** np.array([2, 4, 2])
        z = (est.model_.tau / scale - [0.5 * -1 + 2, 0.25, -1.0]) / (errors(est) / scale)
        assert np.abs(z).max() < 4


# ---------------------------------------------------------------- other supports, with each reference


def spins(n=600):
    s = RNG.choice([-1.0, 1.0], (n, 3))
    s[:, 1] = np.where(RNG.random(n) < 0.7, s[:, 0], s[:, 1])
    return s


def inside(low, high, n=800):
    """A Gaussian pair between ends, which is of the family."""
    X = RNG.multivariate_normal([0.5, 0.5], [[0.3, 0.15], [0.15, 0.3]], 40 * n)
    return X[np.all((low < X) & (high > X), axis=1)][:n]


def angles(n=800):
    first = RNG.vonmises(0.0, 1.0, n)
    return np.column_stack([first, first + RNG.vonmises(1.0, 2.0, n)])


OTHERS = {
    "positive": (lambda: inside(0.0, np.inf), 4, "positive"),
    "interval": (lambda: inside(0.0, 1.0), 4, (0, 1)),
    "circle": (angles, 2, "circle"),
    "values": (lambda: RNG.integers(0, 4, (800, 2)).astype(float), 3, "values"),
    "spins": (spins, 2, "spin"),
}


@pytest.mark.parametrize("reference", [None, PowerReference(0.5), PowerReference()], ids=["tilted", "power", "auto"])
@pytest.mark.parametrize("name", OTHERS)
def test_other_supports(name, reference):
    """Near pseudo-likelihood's estimate, in standard errors of the less exact of the two."""
    draw, degree, support = OTHERS[name]
    X = draw()
    est = quietly(ISODUS(degree, support=support, reference=reference, penalty=None, n_jobs=1), X)
    other = quietly(PseudoLikelihood(degree, support=support, penalty=None, n_jobs=1), X)
    assert est.status_ == "converged"
    away = np.abs(est.model_.tau - other.model_.tau) / np.maximum(errors(est), errors(other))
    assert away.max() < (0.5 if reference is None else 4.0)
    assert np.isfinite(est.score(X))


@pytest.mark.parametrize("link", ["log", "plain"])
def test_spins_are_rise(link):
    """log⟨exp(Σ_j θ_ij s_i s_j + θ_i s_i)⟩, each spin by itself, and the mean of both estimates."""
    S = spins()
    est = ISODUS(2, support="spin", reference=PowerReference(link=link), consensus="mean", tol=1e-9, n_jobs=1).fit(S)
    nodes = []
    for i in range(3):
        G = S[:, [i]] * np.column_stack([np.ones(len(S)), np.delete(S, i, axis=1)])
        value = lambda t, G=G: np.mean(np.exp(G @ t))
        slope = lambda t, G=G: np.mean(np.exp(G @ t)[:, None] * G, axis=0)
        nodes.append(minimize(value, np.zeros(3), jac=slope, method="BFGS", options={"gtol": 1e-11}).x)
    view = est.model_.polynomial()
    found = dict(zip(view.keys, view.coefficients, strict=True))
    for i in range(3):
        assert found[i,] == pytest.approx(nodes[i][0], abs=1e-7)
        for j in range(i + 1, 3):
            pair = (nodes[i][j], nodes[j][i + 1])  # the place of the other spin among those that are not i
            assert found[i, j] == pytest.approx(np.mean(pair), abs=1e-7)


# ---------------------------------------------------------------- what is refused


def test_refused():
    X = SETS["pair"]()[:400]
    refused = [
        ({"reference": PowerReference(nu=0.0)}, "nu of PowerReference"),
        ({"reference": PowerReference(nu=-1.0)}, "nu of PowerReference"),
        ({"reference": PowerReference(nu=(1.0, np.nan))}, "nu of PowerReference"),
        ({"reference": PowerReference(nu=(1.0, 1.0, 1.0))}, "3 values for 2 columns"),
        ({"reference": PowerReference(nu="best")}, "nu of PowerReference"),
        ({"reference": PowerReference(delta=0.0)}, "delta of PowerReference"),
        ({"reference": PowerReference(delta=-2.0)}, "delta of PowerReference"),
        ({"reference": PowerReference(link="exp")}, "link of PowerReference"),
        (
            {"reference": PowerReference(), "degree": 3},
            "'x0' has no PowerReference: its highest power is 3, which is odd",
        ),
        ({"reference": PowerReference(), "penalty": Ridge(1.0)}, "have no ridge"),
        ({"reference": TiltedReference(n_tilts=0)}, "n_tilts"),
        ({"reference": TiltedReference(pilot=3)}, "pilot of TiltedReference is a PolynomialModel"),
        ({"reference": "power"}, "reference must be a TiltedReference or a PowerReference"),
        ({"penalty": Ridge("cv")}, "Use PseudoLikelihood"),
        ({"consensus": "mean"}, "TiltedReference has one estimate for all"),
        ({"consensus": "median", "reference": PowerReference()}, "consensus must be"),
    ]
    for options, message in refused:
        with pytest.raises(ValueError, match=message):
            ISODUS(**{"n_jobs": 1} | options).fit(X)


def test_a_pilot_of_other_columns_or_more_terms():
    X = SETS["pair"]()[:400]
    model = quietly(PseudoLikelihood(2), np.column_stack([X, RNG.standard_normal(400)])).model_
    with pytest.raises(ValueError, match="is a model of 'x0', 'x1', 'x2', and X has the columns 'x0', 'x1'"):
        ISODUS(4, reference=TiltedReference(model)).fit(X)
    higher = quietly(PseudoLikelihood(6), X).model_
    with pytest.raises(ValueError, match="terms that this fit has not"):
        ISODUS(4, reference=TiltedReference(higher)).fit(X)


def test_columns_without_the_papers_reference_are_named():
    """Functions of a user's on a half line, under whose base measure nothing has an integral."""
    x = RNG.gamma(2.0, size=300)
    f = lambda x: np.stack([x, np.log(x)], axis=1)
    axis = Functions.fit(x, f, (0.0, np.inf), [1, 1])
    X = np.column_stack([RNG.standard_normal(300), x])
    with pytest.raises(ValueError, match="Column 'x1' has no PowerReference: .*use TiltedReference"):
        ISODUS(2, support={1: axis}, reference=PowerReference()).fit(X)


def test_collapsed_weights_are_named():
    X = np.random.default_rng(3).standard_normal((400, 2))
    est = quietly(ISODUS(4, reference=PowerReference(nu=1e7), n_jobs=1), X)
    note = next(note for note in est.notes_ if note.kind == "collapsed weights")
    assert note.text.startswith("The weights of columns 'x0', 'x1' have collapsed: those of 'x")
    assert np.all(est.effective_samples_ < 75)


def test_a_consensus_that_is_no_density_is_named():
    rng = np.random.default_rng(0)  # two values apart, which no Gaussian has
    X = rng.choice([-1.0, 1.0], (300, 2)) + 0.1 * rng.standard_normal((300, 2))
    with pytest.raises(ValueError, match="The consensus cannot be integrated in columns 'x0', 'x1', where its energy"):
        quietly(ISODUS(2, reference=PowerReference(1.0), n_jobs=1), X)


def test_score_matching_needs_derivatives():
    X = np.column_stack([RNG.standard_normal(300), RNG.integers(0, 3, 300)])
    with pytest.raises(ValueError, match="Column 'x1' is on an axis without derivatives"):
        ScoreMatching(2, support={1: "values"}).fit(X)


def test_there_is_no_objective_before_a_fit():
    with pytest.raises(NotFittedError):
        ISODUS().objective(SETS["pair"]())
