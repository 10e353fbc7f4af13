"""Objectives and fits for tests, from the rooms below the estimators."""

import numpy as np

from isodus.axes import Line
from isodus.data import as_samples
from isodus.fit.learn import learn, no_ridge
from isodus.fit.newton import newton
from isodus.fit.objective import Objective
from isodus.losses import PseudoLikelihoodLoss
from isodus.terms import Terms, keys_up_to, to_powers


def objective(X, degree=4, order=2, axes=None, keys=None, ties=None, weight=None, block=2048, n_jobs=1, least=1):
    """Pseudo-likelihood of all terms up to a degree and order, or of `keys`, on `Line` unless there are axes."""
    if axes is None:
        axes = [Line.fit(x, degree, weight) for x in X.T]
    keys = keys_up_to(axes, degree, order, least) if keys is None else keys
    return Objective(PseudoLikelihoodLoss(), Terms(axes, keys, ties), as_samples(X, weight, block=block), n_jobs)


def grouped(f, groups):
    """The objective on the same rows with labels, and their clusters."""
    f = f.on(as_samples(f.samples.X, f.samples.weight, block=f.samples.block, groups=groups))
    return f, f.samples.clusters


def optimum(f, tol=1e-8):
    """The fit without a ridge."""
    return learn(f, None, tol=tol)


def from_zero(f, tol=1e-8):
    """The same, by Newton's method from zero."""
    return newton(f, f.terms.zeros(), no_ridge(f), tol)


def in_powers(f, tau, covariance):
    """Keys, coefficients of powers of x, and their covariance."""
    keys, B = to_powers(f.axes, f.terms.products)
    M = (B @ f.terms.T).toarray()
    return keys, M @ tau, M @ covariance @ M.T


def skewed(n, p=2, coupling=0.4, seed=0):
    """Correlated columns with different skewness and spread."""
    rng = np.random.default_rng(seed)
    common, own = rng.standard_normal((n, 1)), rng.gamma(3.0, size=(n, p))
    return np.arange(1, p + 1) * (own + coupling * common) + 0.2 * rng.standard_normal((n, p))
