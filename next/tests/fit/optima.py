"""Independent optima of smooth functions with an L1 penalty, and the losses of single nodes written out."""

from math import gamma

import numpy as np
from scipy.optimize import minimize, root

ROUND = 3e-9


def penalised(F, cost, start=None):
    """argmin F(t) + Σ c|t| with F(t) = (value, gradient): L-BFGS-B on t = u − v, then a root of its signs.

    An infinite cost leaves a coordinate at 0. The conditions of optimality are checked.
    """
    there = np.isfinite(cost)
    if not there.any():
        return np.zeros(len(cost))
    c, size = cost[there], int(there.sum())

    def whole(t):
        out = np.zeros(len(cost))
        out[there] = t
        return out

    def split(z):
        value, g = F(whole(z[:size] - z[size:]))
        return value + np.r_[c, c] @ z, np.r_[g[there] + c, -g[there] + c]

    t0 = np.zeros(size) if start is None else start[there]
    z0 = np.r_[np.maximum(t0, 0), np.maximum(-t0, 0)]
    z = minimize(split, z0, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * size),
                 options=dict(maxiter=20_000, maxfun=40_000, ftol=1e-16, gtol=1e-10, maxcor=30)).x  # fmt: skip
    t = z[:size] - z[size:]
    on = (np.abs(t) > 1e-7) | (c == 0)
    for _ in range(10):
        signs = np.where(c > 0, np.sign(t), 0.0)
        if on.any():
            t = _root(lambda t, pull=c * signs: F(whole(t))[1][there] + pull, t, on)
        slope = F(whole(t))[1][there]
        flipped = on & (c > 0) & (np.sign(t) != signs)
        over = ~on & (np.abs(slope) > c * (1 + 1e-9))
        if not flipped.any() and not over.any():
            break
        t[over] = -1e-6 * np.sign(slope[over])
        on = (on & ~flipped) | over
    assert np.all(np.abs(slope[on] + (c * np.sign(t))[on]) < ROUND)
    assert np.all(np.abs(slope[~on]) <= c[~on] + ROUND)
    return whole(t)


def _root(slope, t, on):
    """Where some coordinates of a slope are zero, the others being 0."""

    def some(part):
        at = np.zeros(len(t))
        at[on] = part
        return at

    return some(root(lambda part: slope(some(part))[on], t[on], method="hybr", options=dict(xtol=1e-15)).x)


class Rows:
    """Products of powers of y for node i: a key's value is `rest` × y_i^l; weights sum to 1."""

    def __init__(self, Y, keys, i, weight=None):
        self.y, self.i = Y[:, i], i
        self.l = np.array([key.count(i) for key in keys])
        self.rest = np.stack(
            [np.prod([Y[:, j] for j in key if j != i] or [np.ones(len(Y))], axis=0) for key in keys], 1
        )
        self.w = np.full(len(Y), 1 / len(Y)) if weight is None else weight / weight.sum()


def screening(rows, nu, power, log):
    """⟨exp(Σ θ rest (y^l − m_l) − ν|y|^power)⟩ or its logarithm, m_l the moments of exp(−ν|y|^power)."""
    moment = lambda l: 0.0 if l % 2 else nu ** (-l / power) * gamma((l + 1) / power) / gamma(1 / power)
    G = rows.rest * (rows.y[:, None] ** rows.l - np.array([moment(l) for l in rows.l]))
    return _exponential(G, -nu * np.abs(rows.y) ** power, rows.w, log)


def spins(rows, log):
    """⟨exp Σ θ s⟩ or its logarithm: RISE and logRISE."""
    return _exponential(rows.rest * rows.y[:, None], np.zeros(len(rows.y)), rows.w, log)


def _exponential(G, offset, w, log):
    def F(t):
        weights = w * np.exp(G @ t + offset)
        value, gradient = weights.sum(), weights @ G
        return (np.log(value), gradient / value) if log else (value, gradient)

    def scores(t):
        """Of each row, of the value or its logarithm."""
        e = np.exp(G @ t + offset)
        mean = w @ e
        g = (w * e) @ G / mean
        return e[:, None] / mean * (G - g) if log else e[:, None] * G

    return F, scores


def conditional_spins(rows):
    """⟨log(1 + exp(2 Σ θ s))⟩."""
    G = 2 * rows.rest * rows.y[:, None]

    def scores(t):
        return G / (1 + np.exp(-G @ t))[:, None]

    return lambda t: (rows.w @ np.logaddexp(0, G @ t), rows.w @ scores(t)), scores


def conditional(rows, low, high, tail):
    """⟨E(y) + log(∫ exp(−E) + tail (exp(−E(low)) + exp(−E(high))))⟩ with E = Σ θ rest y^l, by 30 nodes on 8 panels."""
    u, weights = np.polynomial.legendre.leggauss(30)
    edges = np.linspace(low, high, 9)
    half = np.diff(edges)[:, None] / 2
    places = np.r_[low, (edges[:-1, None] + half * (u + 1)).ravel(), high]
    mass = np.r_[tail, (half * weights).ravel(), tail]
    powers = places ** np.arange(rows.l.max() + 1)[:, None]

    def parts(t):
        a = np.stack([(rows.rest * t * (rows.l == l)).sum(axis=1) for l in range(len(powers))], 1)
        E = a @ powers
        p = mass * np.exp(-(E - E.min(axis=1, keepdims=True)))
        Z = p.sum(axis=1, keepdims=True)
        return (rows.rest * rows.y[:, None] ** rows.l) @ t, np.log(Z[:, 0]) - E.min(axis=1), (p / Z) @ powers.T

    def scores(t):
        return rows.rest * (rows.y[:, None] ** rows.l - parts(t)[2][:, rows.l])

    def F(t):
        energy, log_Z, _ = parts(t)
        return rows.w @ (energy + log_Z), rows.w @ scores(t)

    return F, scores


def gaussian(rows):
    """⟨E(y) + log Z⟩ on the whole line with E = h y + a y²; +∞ where a is not positive."""

    def parts(t):
        h, a = ((rows.rest * t * (rows.l == l)).sum(axis=1) for l in (1, 2))
        return h, a, (rows.rest * rows.y[:, None] ** rows.l) @ t

    def scores(t):
        h, a, _ = parts(t)
        mean = -h / (2 * a)
        moments = np.stack([mean, mean**2 + 1 / (2 * a)], 1)
        return rows.rest * (rows.y[:, None] ** rows.l - moments[:, rows.l - 1])

    def F(t):
        h, a, energy = parts(t)
        if not np.all(a > 0):
            return 1e10, np.zeros(len(t))
        return rows.w @ (energy + h**2 / (4 * a) + 0.5 * np.log(np.pi / a)), rows.w @ scores(t)

    return F, scores


def score_matching(rows):
    """⟨½ (Σ θ rest l y^(l−1))² − Σ θ rest l (l−1) y^(l−2)⟩."""
    y, l = rows.y[:, None], rows.l
    first = rows.rest * l * y ** (l - 1)
    second = rows.rest * l * (l - 1) * y ** np.maximum(l - 2, 0)

    def scores(t):
        return first * (first @ t)[:, None] - second

    return lambda t: (rows.w @ (0.5 * (first @ t) ** 2 - second @ t), rows.w @ scores(t)), scores
