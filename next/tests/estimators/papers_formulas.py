"""Objectives of the paper in powers of x, written out with numpy, and their optimum by scipy."""

from itertools import combinations_with_replacement

import numpy as np
from numpy.polynomial import polynomial
from scipy.optimize import minimize
from scipy.special import gamma, logsumexp


def keys(p, degree, order=2, least=2):
    """All terms, as sorted tuples of variables."""
    found = [key for d in range(least, degree + 1) for key in combinations_with_replacement(range(p), d)]
    return [key for key in found if len(set(key)) <= order]


def product(X, key, i=None):
    """x^α of each row without variable i, and the power of variable i."""
    value = np.ones(len(X))
    for j in key:
        value = value * (1 if j == i else X[:, j])
    return value, key.count(i)


def optimum(value, size):
    """The minimum of a convex function that gives value, gradient and Hessian, to 1e-12 of its last Newton step."""
    start = minimize(lambda t: value(t)[:2], np.zeros(size), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    for _ in range(4):
        _, g, A = value(start)
        start = start - np.linalg.solve(A, g)
    return start


def screening_node(X, terms, i, nu, power, weight=None):
    """θ of the terms of node i: the minimum of log⟨exp(Σ θ_k x^{α_k∖i}(x_i^l − m_l) − ν|x_i|^power)⟩."""
    own = [key for key in terms if i in key]
    w = np.log(np.ones(len(X)) if weight is None else weight)
    columns = []
    for key in own:
        rest, l = product(X, key, i)
        m = 0.0 if l % 2 else nu ** (-l / power) * gamma((l + 1) / power) / gamma(1 / power)
        columns.append(rest * (X[:, i] ** l - m))
    G, base = np.stack(columns, axis=1), w - nu * np.abs(X[:, i]) ** power
    return own, optimum(lambda t: log_mean(G, base, t), len(own))


def log_mean(G, base, t):
    """log Σ exp(base + G t), its gradient and Hessian."""
    e = base + G @ t
    top = logsumexp(e)
    share = np.exp(e - top)
    mean = share @ G
    return top, mean, (G * share[:, None]).T @ G - np.outer(mean, mean)


def likelihood_node(X, terms, i, places, log_weights):
    """θ of node i by pseudo-likelihood, its integrals sums over places with log weights."""
    own = [key for key in terms if i in key]
    rests, powers = zip(*(product(X, key, i) for key in own), strict=True)
    H, powers = np.stack(rests, axis=1), np.array(powers)
    G, U = H * X[:, [i]] ** powers, places[:, None] ** np.arange(2 * powers.max() + 1)  # (n, K), (N, 2s + 1)

    def value(t):
        e = log_weights - (H * t) @ U[:, powers].T
        log_Z = logsumexp(e, axis=1)
        moments = np.exp(e - log_Z[:, None]) @ U  # of each row
        mean = H * moments[:, powers]
        second = np.einsum("nk,nl,nkl->kl", H, H, moments[:, powers[:, None] + powers])
        return (G @ t + log_Z).mean(), (G - mean).mean(axis=0), (second - mean.T @ mean) / len(X)

    return own, optimum(value, len(own))


def score_system(X, terms, i, weight=None, slope=None):
    """A and b of node i: score matching minimises ½ θᵀAθ − bᵀθ; weight h and slope h′, (n,), 1 and 0 on the line."""
    own = [key for key in terms if i in key]
    h, h1 = np.ones(len(X)) if weight is None else weight, np.zeros(len(X)) if slope is None else slope
    first, second = [], []
    for key in own:
        rest, l = product(X, key, i)
        d1, d2 = (polynomial.polyval(X[:, i], polynomial.polyder(np.eye(l + 1)[l], m)) for m in (1, 2))
        first.append(rest * d1)
        second.append(rest * (h * d2 + h1 * d1))
    D = np.stack(first, axis=1)
    return own, (D * h[:, None]).T @ D / len(X), np.mean(second, axis=1)


def geometric(found):
    """sign(mean v) exp(mean log|v|) of each term, from [(keys, θ)] of the nodes."""
    values = {}
    for own, theta in found:
        for key, v in zip(own, theta, strict=True):
            values.setdefault(key, []).append(v)
    return {key: np.sign(np.mean(v)) * np.exp(np.mean(np.log(np.abs(v)))) for key, v in values.items()}
