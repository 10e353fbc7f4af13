"""Rules and polynomials on [−1, 1] against numpy's, and the inversion of rising functions."""

import numpy as np
import pytest
from numpy.polynomial import legendre as series
from scipy.special import ndtr, ndtri

from isodus.axes.polynomial import _graded, _graded_slope, _ungraded
from isodus.axes.quadrature import gauss_legendre, invert, legendre, legendre_derivatives, legendre_integrals


@pytest.mark.parametrize("count", [1, 2, 9, 64, 200])
def test_gauss_legendre(count):
    places, weights = np.polynomial.legendre.leggauss(count)
    np.testing.assert_allclose(gauss_legendre(count)[0], places, atol=1e-14)
    np.testing.assert_allclose(gauss_legendre(count)[1], weights, rtol=1e-10)


def test_the_finest_rule_is_exact_for_polynomials():
    u, w = gauss_legendre(2048)
    for k in (0, 2, 40, 1000):
        assert abs(w @ u**k - 2 / (k + 1)) < 1e-13


def test_legendre_with_derivatives_and_integrals():
    u = np.linspace(-1, 1, 31)
    values, first, second = legendre(u, range(2, 9)), *legendre_derivatives(u, range(2, 9))
    below = legendre_integrals(u, 9)[1]
    for k in range(2, 9):
        c = np.sqrt(2 * k + 1) * np.eye(9)[k]
        np.testing.assert_allclose(values[:, k - 2], series.legval(u, c), atol=1e-12)
        np.testing.assert_allclose(first[:, k - 2], series.legval(u, series.legder(c)), atol=1e-10)
        np.testing.assert_allclose(second[:, k - 2], series.legval(u, series.legder(c, 2)), atol=1e-9)
        np.testing.assert_allclose(below[k], series.legval(u, series.legint(c, lbnd=-1)), atol=1e-13)


def test_places_are_graded_and_back():
    u = np.concatenate([np.linspace(-1, 1, 401), 1 - np.logspace(-12, -1, 30)])
    h = 1e-6
    np.testing.assert_allclose(_graded_slope(u), (_graded(u + h) - _graded(u - h)) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(_graded(_ungraded(_graded(u))), _graded(u), atol=4e-16)
    assert _graded(np.array([-1.0, 1.0])).tolist() == [-1, 1] == _ungraded(np.array([-1.0, 1.0])).tolist()


def test_what_has_arrived_stays_while_others_go_on():
    """Rows that converge at once beside rows that take bisection: none may move away from its place again."""
    v = np.concatenate([np.linspace(0.1, 0.9, 9), [1e-30, 1e-12, 0.0, 1.0]])
    x = invert(lambda x: (ndtr(x), np.exp(-x * x / 2) / np.sqrt(2 * np.pi)), v, np.full(13, -40.0), np.full(13, 40.0))
    np.testing.assert_allclose(x[:-2], ndtri(v[:-2]), rtol=1e-12, atol=1e-12)
    assert ndtr(x[-2]) < 1e-30
    assert ndtr(x[-1]) == 1
    exact = invert(
        lambda x: (x ** np.array([1, 3]), [1, 3] * x ** np.array([0, 2])), np.array([0.5, 0.3]), np.zeros(2), np.ones(2)
    )
    np.testing.assert_allclose(exact, [0.5, 0.3 ** (1 / 3)], rtol=1e-14)  # the first at once
    coarse = invert(lambda x: (np.floor(8 * x) / 8, 0 * x), np.array([0.3, 0.5]), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(coarse, [0.375, 0.5], atol=1e-12)
