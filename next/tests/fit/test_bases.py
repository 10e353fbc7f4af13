"""Fits through T: bases without lower terms, lists, terms left out, and what ends a fit."""

import warnings

import numpy as np
import pytest
from fit.build import from_zero, in_powers, objective, optimum
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from isodus import PseudoLikelihood, lattice
from isodus.axes import Line
from isodus.datasets import paper_pair, phi4
from isodus.fit.sandwich import sandwich
from isodus.terms import key_of, keys_up_to

# Version 0.2 of this library, PseudoLikelihood(degree=4, min_degree=2, tol=1e-12) on paper_pair(30_000, seed=1): a
# fit on the whole line by integrals of its own. The sum of all values of these samples is SUM.
SUM = -3965.2137596468447
PAIR = {
    (0, 0): 0.9567352120137822,
    (0, 1): 0.08590640233618776,
    (1, 1): 0.5545488574204975,
    (0, 0, 0): 0.537653174661115,
    (0, 0, 1): 0.10227999915840198,
    (0, 1, 1): 0.041513256198246674,
    (1, 1, 1): 0.9568312605396088,
    (0, 0, 0, 0): 2.0809749695103736,
    (0, 0, 0, 1): 0.3269917560688774,
    (0, 0, 1, 1): 0.40790188706177416,
    (0, 1, 1, 1): 0.4494924450445391,
    (1, 1, 1, 1): 1.8963578810693715,
}


def powers_of(f, fit):
    """Coefficients and standard errors of powers of x, by key."""
    keys, c, C = in_powers(f, fit.tau, sandwich(f, fit))
    return dict(zip(keys, zip(c, np.sqrt(np.maximum(np.diag(C), 0)), strict=True), strict=True))


def test_the_pair_of_the_paper_on_a_window_and_on_the_whole_line():
    X = paper_pair(30_000, seed=1)
    assert X.sum() == pytest.approx(SUM, rel=1e-12)
    f = objective(X, least=2)
    found = powers_of(f, optimum(f))
    assert not f.terms.identity
    for key, expected in PAIR.items():
        value, error = found[key]
        assert abs(value - expected) < 1e-3 * error
        assert 0.001 < error < 0.2


CLOSED = {"pairs": keys_up_to([Line.fit(np.arange(9.0), 4)] * 2, 4, 2), "a list": [(0,), (1,), (0, 0), (1, 1), (0, 1)]}


@pytest.mark.parametrize("offset", [0.0, 2.0])
@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_basis_through_T_is_the_orthonormal_road(name, offset):
    """The same model in powers of x and in orthonormal functions; ties that tie nothing force T."""
    X, keys = paper_pair(2000, seed=2) + offset, CLOSED[name]
    straight, through = objective(X, keys=keys), objective(X, keys=keys, ties=range(len(keys)))
    assert straight.terms.identity
    assert not through.terms.identity
    one, other = powers_of(straight, optimum(straight)), powers_of(through, optimum(through))
    for key in keys:
        assert abs(one[key][0] - other[key][0]) < 1e-6 * one[key][1]
        assert other[key][1] == pytest.approx(one[key][1], rel=1e-5)


def test_leaving_out_a_term_near_zero_moves_no_other():
    """Each term within .1 standard errors of zero, left out in turn, moves no other by more than .1."""
    tried = 0
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((1500, 3)) @ np.array([[1, 0.4, 0], [0, 1, 0], [0, 0.3, 1]])
        f = objective(X + 0.3, 4, 2, least=2)
        fit = from_zero(f)
        se = np.sqrt(np.diag(sandwich(f, fit)))
        for k in np.flatnonzero(np.abs(fit.tau) < 0.1 * se):
            keys = [key for j, key in enumerate(f.terms.keys) if j != k]
            part = objective(X + 0.3, 4, 2, axes=f.axes, keys=keys)
            others = np.delete(np.arange(len(se)), k)
            moved = np.abs(from_zero(part).tau - fit.tau[others]) / se[others]
            assert moved.max() < 0.1
            tried += 1
    assert tried >= 4


def test_only_and_fewer_keys_are_the_same_fit():
    X = paper_pair(1500, seed=3)
    f = objective(X, 4, 2, least=2)
    keep = np.arange(len(f.terms)) % 4 != 2
    part = f.only(keep)
    fewer = objective(X, axes=f.axes, keys=part.terms.keys)
    assert_allclose(from_zero(part).tau, from_zero(fewer).tau, rtol=1e-8, atol=1e-8)


def test_tied_parameters_are_the_constrained_optimum():
    """Ties on a lattice of four sites against a minimisation over the free parameters with equal values."""
    X, basis = phi4(300, (4,), sweeps=50, seed=1), lattice((4,))
    axis = Line.fit(X.T.ravel(), 4)
    keys = basis.keys([f"x{i}" for i in range(4)])
    tied = objective(X, axes=[axis] * 4, keys=keys, ties=basis.ties)
    free = objective(X, axes=[axis] * 4, keys=keys)
    S = np.eye(3)[basis.ties]

    def value(t):
        at = free(S @ t, 1)
        return at.value, S.T @ at.gradient

    fit = from_zero(tied)
    expected = minimize(value, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert_allclose(fit.tau, expected.x, rtol=1e-6)
    assert_allclose(fit.at.hessian, S.T @ free(S @ fit.point).hessian @ S, rtol=1e-9)
    se = np.sqrt(np.diag(sandwich(tied, fit))) / axis.unit ** np.array([2, 4, 2])
    assert np.all(np.abs(fit.tau / axis.unit ** np.array([2, 4, 2]) - [0.5, 0.25, -1.0]) < 3 * se)


def test_a_phi4_field_of_1024_sites():
    """Three parameters of 30 fields of 32 × 32 sites, within 4 standard errors of the truth, in units of x."""
    X, basis = phi4(30, (32, 32), sweeps=60, seed=2), lattice((32, 32))
    axis = Line.fit(X.T.ravel(), 4)
    f = objective(X, axes=[axis] * 1024, keys=basis.keys([f"x{i}" for i in range(1024)]), ties=basis.ties)
    fit = optimum(f, 1e-3)
    units = axis.unit ** np.array([2, 4, 2])
    se = np.sqrt(np.diag(sandwich(f, fit))) / units
    assert fit.status == "converged"
    assert np.all(se < 0.05)
    assert np.all(np.abs(fit.tau / units - [1.5, 0.25, -1.0]) < 4 * se)


def newton_in_the_span(f, tau):
    """θ at the optimum over the span of T's columns, in an orthonormal basis of the span."""
    T = f.terms.T.toarray()
    Q = np.linalg.qr(T / np.sqrt((T**2).sum(axis=0)))[0]
    whole = objective(f.samples.X, axes=f.axes, keys=[key_of(factors) for factors in f.terms.products])
    theta = Q @ (Q.T @ (f.terms.T @ tau))
    for _ in range(4):
        at = whole(theta)
        theta = theta - Q @ np.linalg.solve(Q.T @ at.hessian @ Q, Q.T @ at.gradient)
    return theta, at.hessian


@pytest.mark.parametrize("offset", [3.0, 10.0, 30.0])
def test_powers_away_from_zero_are_right(offset):
    X = paper_pair(2000, seed=4) + 0.43 * offset
    est = PseudoLikelihood(4, min_degree=2, penalty=None, n_jobs=1).fit(X)
    assert est.status_ == "converged"
    f = objective(X, least=2)
    theta, A = newton_in_the_span(f, est.model_.tau)
    away = f.terms.T @ est.model_.tau - theta
    assert np.sqrt(len(X) * away @ A @ away) < 2e-3  # standard errors


@pytest.mark.parametrize("offset", [1000.0, 1e4])
@pytest.mark.parametrize("penalty", ["weak", None])
def test_powers_far_from_zero_end_the_fit_with_what_to_do(offset, penalty):
    X = paper_pair(2000, seed=4) + 0.43 * offset
    est = PseudoLikelihood(4, min_degree=2, penalty=penalty, n_jobs=1)
    with pytest.raises(ValueError, match="Include the lower degrees, or shift the columns toward zero"):
        est.fit(X)


@pytest.mark.parametrize("offset", [100.0, 300.0, 500.0])
def test_in_between_no_answer_is_wrong_without_a_word(offset):
    """An error, a status other than converged with its warning, or the optimum over the span."""
    X = paper_pair(2000, seed=4) + 0.43 * offset
    est = PseudoLikelihood(4, min_degree=2, penalty=None, n_jobs=1)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            est.fit(X)
        except ValueError as error:
            given.append(error)
    if given:
        assert offset > 100
        return
    f = objective(X, least=2)
    theta, A = newton_in_the_span(f, est.model_.tau)
    away = f.terms.T @ est.model_.tau - theta
    assert est.status_ == "converged"
    assert np.sqrt(len(X) * away @ A @ away) < 1e-2
