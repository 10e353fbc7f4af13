"""The paper's reference: influences of rows, the choice of ν, and an origin of its own."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isodus import ISODUS, PowerReference, datasets
from isodus.axes import Line, WholeLine
from isodus.data import as_samples
from isodus.fit.consensus import combined, influences
from isodus.fit.learn import starts
from isodus.fit.nodewise import learn_nodes
from isodus.fit.objective import Objective
from isodus.fit.power_reference import NUS, choose_reference
from isodus.losses import PseudoLikelihoodLoss, ReferenceScreening
from isodus.terms import Terms, keys_up_to

POWER = 6.0


def quietly(est, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return est.fit(X)


def screening(X, nu=0.5, origin=None, rows=None):
    """Its objective in powers of y, on the axes of all rows."""
    axes = [Line.fit(x, 4) for x in X.T]
    terms = Terms(axes, keys_up_to(axes, 4, 2), in_powers=True)
    loss = ReferenceScreening(PowerReference(nu, POWER - 4, origin=origin), 4)
    return Objective(loss, terms, as_samples(X if rows is None else X[rows]))


def solved(f, tol=1e-8):
    return learn_nodes(f, starts(f), tol, 200)


@pytest.mark.parametrize("axis", [Line.fit(np.random.default_rng(0).exponential(size=300), 4), WholeLine(2.0, 3.0, 4)])
@pytest.mark.parametrize("origin", [0.0, -0.7])
def test_moments_of_the_reference_around_its_origin(axis, origin):
    """E_R[φ] by a fine sum."""
    axis = axis.unclamped()
    log_r, m = axis.power_reference(0.4, POWER, origin)
    x = axis.location + axis.scale * np.linspace(-8, 8, 40_001)
    mass = np.exp(log_r(x))
    assert_allclose(m, mass @ axis.functions(x) / mass.sum(), rtol=1e-9, atol=1e-9)
    peak = (x[np.argmax(log_r(x))] - axis.location) / axis.scale
    assert abs(peak - origin) < 1e-3


def test_influences_are_newton_steps_without_a_row():
    """For rows of large weight these are several times as long as those of the plain sandwich."""
    X = datasets.curved(300, 5)
    f = screening(X, nu=0.3)
    fits = solved(f)
    parts = influences(f, fits)(lambda block, parts: [[psi for psi, _ in parts]])[0]
    longest = 0.0
    for row in np.argsort([np.abs(parts[0]).sum(axis=0)])[0][-3:].tolist():
        rest = screening(X, nu=0.3, rows=np.flatnonzero(np.arange(300) != row))
        for i, at in rest.at_nodes({i: fit.tau for i, fit in enumerate(fits)}).items():
            step = -np.linalg.solve(at.hessian, at.gradient)
            assert_allclose(parts[i][:, row], step, rtol=0.05, atol=0.01 * np.abs(step).max())
            plain = -np.linalg.solve(fits[i].at.hessian, at.gradient)
            longest = max(longest, np.linalg.norm(step) / np.linalg.norm(plain))
    assert longest > 1.5


def test_influences_of_importance_weights_are_of_whole_rows():
    """A row of weight c goes with all of it; repeated rows go one at a time."""
    X, weight = datasets.curved(300, 5), np.random.default_rng(0).exponential(size=300)
    axes = [Line.fit(x, 4) for x in X.T]
    terms = Terms(axes, keys_up_to(axes, 4, 2), in_powers=True)

    def of(rows):
        samples = as_samples(X[rows], weight[rows], weights="importance")
        return Objective(ReferenceScreening(PowerReference(0.6, POWER - 4), 4), terms, samples)

    f = of(np.arange(300))
    fits = solved(f)
    parts = influences(f, fits)(lambda block, parts: [[psi for psi, _ in parts]])[0]
    row = int(np.argmax(np.abs(parts[0]).sum(axis=0) * f.samples.weight))
    rest = of(np.flatnonzero(np.arange(300) != row))
    for i, at in rest.at_nodes({i: fit.tau for i, fit in enumerate(fits)}).items():
        step = -np.linalg.solve(at.hessian, at.gradient)
        assert_allclose(f.samples.weight[row] * parts[i][:, row], step, rtol=0.05, atol=0.01 * np.abs(step).max())


def test_influences_of_light_weights_are_the_sandwich():
    X = datasets.paper_pair(20_000, 3)
    f = screening(X, nu=2.0)
    fits = solved(f)
    V = influences(f, fits)(lambda block, parts: np.array([psi @ psi.T for psi, _ in parts]))
    for i, fit in enumerate(fits):
        S = f.node_scores(
            {k: fit.tau for k, fit in enumerate(fits)}, lambda b, parts: np.array([s @ s.T for s in parts])
        )
        bread = np.linalg.inv(fit.at.hessian) / f.n
        assert_allclose(np.sqrt(np.diag(V[i])), np.sqrt(np.diag(bread @ S[i] @ bread)), rtol=0.02)


def test_consensus_is_the_same_whether_influences_are_kept(monkeypatch):
    f = screening(datasets.paper_pair(5_000, 3), nu=2.0)
    fits = solved(f)
    tau, covariance, leverage = combined("precision", f, fits)
    monkeypatch.setattr("isodus.fit.consensus._KEPT_BYTES", 0)
    again, other, same = combined("precision", f, fits)
    assert_allclose(same, leverage)
    assert_allclose(again, tau, rtol=1e-12)
    assert_allclose(other(None, 0), covariance(None, 0), rtol=1e-10, atol=1e-15)


def test_a_median_between_wells_is_no_origin():
    """Wells of unequal weight: at the middle of the quantiles the energy is symmetric, and more rows decide."""
    X = datasets.double_wells(1000, p=2, height=(2.0, 4.0), shift=20.0, seed=0)
    est = quietly(ISODUS(4, reference=PowerReference(), n_jobs=1), X)
    middle = (np.quantile(X, 0.025, axis=0) + np.quantile(X, 0.975, axis=0)) / 2
    medians, scales = np.array([(axis.location, axis.scale) for axis in est.model_.terms.axes]).T
    origin = np.array(est.reference_.origin)
    moved = origin != 0
    assert moved.any()
    assert_allclose((medians + scales * origin)[moved], middle[moved], atol=0.02)
    again = quietly(ISODUS(4, reference=est.reference_, n_jobs=1), X)
    assert_allclose(again.model_.theta, est.model_.theta)
    plain = quietly(ISODUS(4, reference=PowerReference(est.nu_.tolist()), n_jobs=1), X)
    far = np.argmax(np.abs(origin))
    assert est.effective_samples_[far] > 1.2 * plain.effective_samples_[far]


@pytest.mark.parametrize("scale", [None, "spread"])
def test_columns_that_are_not_moved_have_no_other_origin(scale):
    X = datasets.double_wells(1000, p=2, height=2.0, seed=2) + np.array([0.5, -0.5])
    assert quietly(ISODUS(4, reference=PowerReference(), scale=scale, n_jobs=1), X).reference_.origin is None


def test_curved_data_have_a_narrow_reference():
    """Of ½x² + 4(y − .6x²)²: below ν = 1 half of the intervals miss."""
    X = datasets.curved(1000, 1)
    axes = [Line.fit(x, 4) for x in X.T]
    f = Objective(PseudoLikelihoodLoss(), Terms(axes, keys_up_to(axes, 4, 2), in_powers=True), as_samples(X))
    nus = choose_reference(f, PowerReference(), 4, 100, 0, moved=True).nu
    assert set(nus) <= set(NUS)
    assert nus[1] > 2


def test_intervals_cover_on_curved_data_and_wells():
    """20 sets of each, 14 terms: 280 intervals; the sandwich at the smallest variance covers 70 %."""
    for draw, theta in (
        (datasets.curved, datasets.curved_theta()),
        (
            lambda n, seed: datasets.double_wells(n, p=2, height=(2.0, 4.0), shift=20.0, seed=seed),
            datasets.double_wells_theta(p=2, height=(2.0, 4.0), shift=20.0),
        ),
    ):
        right = []
        for seed in range(20):
            view = quietly(ISODUS(4, reference=PowerReference(), n_jobs=1), draw(1000, seed)).model_.polynomial()
            away = view.coefficients - [theta.get(tuple(key), 0.0) for key in view.keys]
            right.append(np.abs(away) < 1.96 * np.asarray(view.stderr))
        assert np.mean(right) > 0.88


def test_a_warning_where_one_row_decides():
    """Columns correlated by .95: every ν that the data can bear leaves single rows with half of their own fit."""
    X = np.random.default_rng(3).multivariate_normal([0, 0], [[1, 0.98], [0.98, 1]], 400)
    note = next(
        n for n in quietly(ISODUS(4, reference=PowerReference(), n_jobs=1), X).notes_ if n.kind == "collapsed weights"
    )
    assert note.numbers["leverage"] > 0.5
    easy = quietly(ISODUS(4, reference=PowerReference(), n_jobs=1), datasets.paper_pair(5000, 1))
    assert not any(n.kind == "collapsed weights" for n in easy.notes_)
