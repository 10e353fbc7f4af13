"""Held-out scores and strengths by folds, against fits of each fold that are made by other means."""

from functools import partial

import numpy as np
import pytest
from fit.build import objective, skewed
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from isodus.axes import Bounded, Line, Values
from isodus.data import as_samples
from isodus.fit.folds import folds
from isodus.fit.held_out import held_out, node_scores, refitted
from isodus.fit.learn import learn
from isodus.fit.objective import Objective
from isodus.fit.path import ridge_by_folds
from isodus.fit.penalties import WeakRidge, ridge_matrix
from isodus.losses import PseudoLikelihoodLoss
from isodus.terms import Terms, keys_up_to

X = skewed(120, 2, 1.5, seed=1)
FOLD = folds(X)


def same_axes(f):
    """What makes the objective of a fold, on the axes of all rows."""
    return f.on


def minimum(f, ridge):
    R = ridge.toarray()
    value = lambda t: f(t, 0).value + 0.5 * t @ R @ t
    slope = lambda t: f(t, 1).gradient + R @ t
    found = minimize(value, f.terms.zeros(), jac=slope, hess=lambda t: f(t).hessian + R, method="trust-exact")
    return found.x


def gaussian_score(train, test):
    """Mean of log P(x_i | rest) by joint minus marginal densities of the sample's Gaussian, p = 2."""
    mean, S = train.mean(axis=0), np.cov(train.T, bias=True)
    joint = multivariate_normal(mean, S).logpdf(test)
    return np.mean([joint - norm(mean[1 - i], np.sqrt(S[1 - i, 1 - i])).logpdf(test[:, 1 - i]) for i in range(2)])


def test_scores_are_mean_log_densities_in_the_units_of_x():
    f = objective(X, 3)
    tau = learn(f, None).tau
    base = np.column_stack([axis.log_base(x) for axis, x in zip(f.axes, X.T, strict=True)])
    assert_allclose(node_scores(f, tau), (base - f.losses(tau)[0]).mean(axis=0), rtol=1e-10)
    scaled = objective(X * [10.0, 0.1], 3)
    shift = node_scores(scaled, learn(scaled, None).tau) - node_scores(f, tau)
    assert_allclose(shift, -np.log([10.0, 0.1]), atol=1e-6)


def test_the_held_out_check():
    f, penalty = objective(X, 3), WeakRidge()
    fit = learn(f, penalty)
    found = held_out(f, fit, partial(refitted, penalty), same_axes(f), FOLD)
    scores, references = [], []
    for k in range(5):
        train, rest = np.flatnonzero(FOLD != k), np.flatnonzero(FOLD == k)
        part = f.take(train)
        tau = minimum(part, learn(part, penalty).ridge)
        scores.append(node_scores(f.take(rest), tau).mean())
        references.append(gaussian_score(X[train], X[rest]))
    assert found.reference == "Gaussian"
    assert found.reference_score == pytest.approx(np.mean(references), rel=1e-9)
    assert found.score == pytest.approx(np.mean(scores), abs=0.01)  # each fold ends .3 standard errors from there
    assert found.gain == pytest.approx(found.score - found.reference_score)
    assert_allclose(found.gains, np.array(scores) - references, atol=0.03)


@pytest.mark.parametrize("kind", [Bounded, Line])
def test_axes_are_made_of_each_fold(kind):
    made = []

    def build(rows):
        made.append(len(rows.X))
        axes = [kind.fit(x, 3) for x in rows.X.T]
        return Objective(PseudoLikelihoodLoss(), Terms(axes, keys_up_to(axes, 3, 2)), rows)

    f = build(as_samples(X))
    found = held_out(f, learn(f, WeakRidge()), partial(refitted, WeakRidge()), build, FOLD)
    assert made == [120] + [96] * 5
    assert found.reference == "Gaussian"
    assert np.isfinite(found.score)


def test_without_continuous_columns_the_reference_is_independence():
    """Shares of the training rows, scored on the others."""
    Y = np.random.default_rng(0).integers(0, 3, (200, 2)).astype(float)
    Y[:, 1] = np.where(np.random.default_rng(1).random(200) < 0.5, Y[:, 0], Y[:, 1])
    axes = [Values.fit(y, 2) for y in Y.T]
    f, fold = objective(Y, axes=axes), np.arange(200) % 5
    found = held_out(f, learn(f, WeakRidge()), partial(refitted, WeakRidge()), same_axes(f), fold)
    expected = []
    for k in range(5):
        train, rest = Y[fold != k], Y[fold == k]
        shares = [np.bincount(y.astype(int), minlength=3) / len(train) for y in train.T]
        expected.append(np.mean([np.log(shares[i][rest[:, i].astype(int)]) for i in range(2)]))
    assert found.reference == "independent variables"
    assert found.reference_score == pytest.approx(np.mean(expected), abs=1e-3)
    assert found.gain > 0.05


def test_strengths_by_folds():
    """The scores of both paths, each strength solved by itself, and the answer at the best one."""
    f = objective(X, 3)
    fit, path = ridge_by_folds(f, same_axes(f), FOLD)
    scores = {(p.strength, p.free): p.score for p in path.points}
    assert max(scores.values()) == path.best.score
    parts = [(f.take(np.flatnonzero(FOLD != k)), f.take(np.flatnonzero(FOLD == k))) for k in range(5)]
    gaussian = np.mean([gaussian_score(X[FOLD != k], X[FOLD == k]) for k in range(5)])
    assert path.reference_score == pytest.approx(gaussian, rel=1e-9)
    assert scores[np.inf, "Gaussian"] == pytest.approx(gaussian, rel=1e-9)
    for free in ("quadratic", "own"):
        for strength in (1e8, 100.0, 1.0):
            if (strength, free) not in scores:
                continue
            held = []
            for part, rest in parts:
                keep = part.terms.degrees <= 2
                if free == "own":
                    keep &= part.terms.orders == 1
                low = part.terms.zeros()
                low[keep] = minimum(part.only(keep), ridge_matrix(part.terms.only(keep), np.ones(keep.sum()), 1.0, 0.0))
                ridge = ridge_matrix(part.terms, part(low).hessian.diagonal(), part.n, strength, free)
                held.append(node_scores(rest, minimum(part, ridge)).mean())
            assert scores[strength, free] == pytest.approx(np.mean(held), abs=0.01)
    assert fit.status == "converged"
    assert {p.free for p in path.points} == {"quadratic", "own", "Gaussian"}


def test_the_gaussian_is_chosen_for_gaussian_data():
    """At p = 3 and degree 4 with 60 rows; the model is then the inverse covariance in the functions."""
    Y = np.random.default_rng(3).multivariate_normal(np.zeros(3), [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]], 60)
    f = objective(Y, axes=[Line.fit(y, 4) for y in Y.T])
    fit, path = ridge_by_folds(f, same_axes(f), folds(Y))
    assert path.best.free == "Gaussian"
    assert path.best.score == path.reference_score
    expected = f.terms.gaussian(Y.mean(axis=0), np.linalg.inv(np.cov(Y.T, bias=True)))
    assert_allclose(fit.tau, expected, rtol=1e-8)
