"""Whether the density of an energy exists: is exp(−E(x)) integrable over R^p, E(x) = Σ_k θ_k x^{α_k}?

Either answer is proved, or there is none. With x_i^{d_i} the highest pure powers and ω(α) = Σ α_i/d_i:

- E falls without bound along x_i = u_i t^{w_i} where the highest level Σ_{α·w = l} θ_α u^α that does not vanish is
  negative: not integrable.
- No term that can be negative has ω > 1, and the form F of the terms with ω = 1 is positive away from zero: then
  E ≥ ε Σ|x_i|^{d_i} − C, integrable.
- E + C = hᵀGh with G positive definite and 1, x_1 … x_p among the monomials h: then E ≥ ε Σ x_i² − C, integrable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from math import comb, lcm, prod
from typing import Literal

import numpy as np
from scipy import linalg
from scipy.optimize import minimize

from .basis import MonomialBasis
from .energy import descend, energy, gradient
from .positivity import Form, is_positive_definite, is_sum_of_squares, linked, pure_powers_prevail, solver_is_here
from .significance import Covariance, block

__all__ = ["Integrability", "integrability", "looked_at", "stray", "strays"]

_FEWEST, _POINTS = 24, 7000  # samples from which a lower energy is looked for, and most of them, times terms
_STRAY = 3.0  # a variable, how much lower than at the data it may be; it is about ½ where a model fits
_MOST_TERMS = 60_000  # of interacting variables, where the highest are not squares
_HIGHEST = "the highest terms of the energy are positive in every direction"
_SQUARES = "the energy is a sum of squares, less a constant, and at least a positive multiple of the sum of all x²"
_ZERO = 1e-9  # least value of a form, with pure powers of parameter 1, that a proof can tell from zero
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Integrability:
    """Whether ∫ exp(−E(x)) dx is finite.

    Attributes
    ----------
    status : {"integrable", "not integrable", "unknown"}
    direction : ndarray of shape (n_variables,) or None
        Along ``x_i = direction_i * t**exponents_i``, t → ∞, the energy falls without bound or is constant; with
        "unknown", its highest terms are least there.
    reason : str
        One sentence.
    exponents : ndarray of shape (n_variables,) or None
        All equal for a straight line; zero for a variable that stays where it is.
    value, stderr : float or None
        Of a model that is not integrable: the sum of the terms that decide it, those that grow fastest, at t = 1,
        and its standard error where the model has a covariance; held parameters count as known.
    """

    status: Literal["integrable", "not integrable", "unknown"]
    direction: np.ndarray | None
    reason: str
    exponents: np.ndarray | None = None
    value: float | None = None
    stderr: float | None = None


def stray(
    basis: MonomialBasis, theta: np.ndarray, Y: np.ndarray, rng: int | np.random.Generator | None = 0
) -> tuple[float, np.ndarray]:
    """By how much E is lower elsewhere than at data Y, (p, n), at their median, and where it is least; (p,).

    Of samples of the density itself that would be about p/2. It is looked for from the data and from beyond them. What
    is fitted to conditional densities near the data can have its lowest energy, and all its mass, far away.
    """
    beyond = Y * np.resize([2.0, 4.0, 8.0, 16.0], Y.shape[1]) * np.random.default_rng(rng).choice([-1, 1], Y.shape)
    X = descend(basis, theta, np.concatenate([Y, beyond], axis=1), 1e-9)
    E = energy(basis, theta, X)
    return float(np.median(energy(basis, theta, Y)) - E.min()), X[:, np.argmin(E)]


def looked_at(n: int, n_terms: int) -> np.ndarray:
    """Rows of n, spread evenly, from which a lower energy is looked for: the fewer the terms, the more of them."""
    return np.unique(np.linspace(0, n - 1, max(_FEWEST, _POINTS // n_terms)).astype(int))


def strays(basis: MonomialBasis, theta: np.ndarray, Y: np.ndarray) -> tuple[float, np.ndarray] | None:
    """What `stray` gives, if that is far more than a density has; Y: (p, n), a few of the data."""
    lower, y = stray(basis, theta, Y)
    return None if lower <= _STRAY * (len(y) + 10) else (lower, y)


def integrability(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str] | None = None,
    rng: int | np.random.Generator | None = 0,
    covariance: Covariance | None = None,
) -> Integrability:
    """Whether exp(−Σ_k θ_k x^{α_k}) is integrable over R^p; theta: (n_terms,), in the order of the basis.

    Groups of variables that do not interact are judged apart; all must be integrable. covariance: of theta, NaN for
    what is known; then the value of a form that falls comes with its error.
    """
    p, rng = basis.n_variables, np.random.default_rng(rng)
    names = [f"x{i}" for i in range(p)] if names is None else names
    there = np.flatnonzero(theta)
    form = Form(basis.factors, np.asarray(theta, np.float64), tuple(names)).where(there)
    answer = Integrability("integrable", None, _HIGHEST)
    for variables in linked(form):
        found = _decide(form.among(variables), rng)
        if found.status == "integrable" and answer.status == "integrable":
            answer = found if answer.reason == _HIGHEST else answer
        if found.status == "integrable" or found.status == answer.status:
            continue
        answer = found
        if found.direction is not None:
            direction, exponents = np.zeros(p), np.ones(p)
            direction[variables], exponents[variables] = found.direction, found.exponents
            answer = replace(found, direction=direction, exponents=exponents)
        if found.status == "not integrable":
            return _weighed(answer, form, None if covariance is None else block(covariance, there))
    return answer


def _weighed(found: Integrability, form: Form, covariance: np.ndarray | None) -> Integrability:
    """With the value of the terms that decide, Σ_k θ_k v_k, v_k = u^{α_k}, and its standard error √(vᵀCv)."""
    assert found.direction is not None
    assert found.exponents is not None
    k, _ = _deciding(form, found.direction, found.exponents.astype(np.int64))
    v, theta = form.where(k).monomials(found.direction), form.theta[k]
    found = replace(found, value=float(v @ theta))
    if covariance is None:
        return found
    stderr = float(np.sqrt(max(v @ np.nan_to_num(covariance[np.ix_(k, k)]) @ v, 0.0)))
    if stderr == 0:  # nothing that decides was estimated
        return replace(found, stderr=0.0)
    reason = f"{found.reason}, where the terms that decide it sum to {found.value:.3g} ± {stderr:.2g}"
    if abs(v @ theta) <= 2 * stderr:
        reason += ", not distinguishable from zero: lower the degree, or take fewer terms"
    return replace(found, reason=reason, stderr=stderr)


def _decide(form: Form, rng: np.random.Generator) -> Integrability:
    """One group of interacting variables: its axes, then what lies beyond the pure powers, then the form F."""
    q, powers, (d, at) = len(form.names), form.powers(), form.highest_pure_powers()
    own, top = np.append(form.theta, 0.0)[at], np.zeros(q, np.int64)
    np.maximum.at(top, form.factors[form.factors >= 0], powers[form.factors >= 0])

    bad, axes, ones = (own < 0) | (d % 2 == 1) | (top == 0), np.arange(q), np.ones(q, np.int64)
    if bad.any():
        u = np.where(axes == np.argmax(bad), 1.0, 0.0)
        return _diverges(form, -u if _trend(form, u, ones) > 0 else u, ones)
    if np.any(top % 2):  # given the others, E is of odd degree in this variable
        w = np.where(axes == np.argmax(top % 2), 1, 0)
        u = np.where(w, 1.0, rng.uniform(0.5, 1.5, q).round(2))
        u = np.where(w, -_trend(form, u, w), u)
        if _trend(form, u, w) < 0:
            return _diverges(form, u, w)

    w = lcm(*d.tolist()) // d if np.all(d) else ones
    beyond = form.can_fall() & (form.level(w) > w[0] * d[0])
    if len(form.theta) > _MOST_TERMS and (beyond.any() or not np.all(d == 2)):
        size = f"{q} interacting variables with {len(form.theta):,} terms"
        return Integrability("unknown", None, f"{size} are too many to examine")
    if np.all(d) and not beyond.any():
        found = _by_leading_form(form, d, w, own, rng)
    else:
        found = _beyond_pure_powers(form, d, w, form.factors[np.argmax(beyond)], rng)
    # where no term lies beyond F, such a G has one of F in it, which was not found
    if found.status == "unknown" and (not np.all(d) or np.any(form.level(w) > w[0] * d[0])) and _is_bounded(form):
        return Integrability("integrable", None, _SQUARES)
    return found


def _beyond_pure_powers(
    form: Form, d: np.ndarray, w: np.ndarray, term: np.ndarray, rng: np.random.Generator
) -> Integrability:
    """A variable without a pure power, or a term with ω > 1 that can be negative: falls, or unknown."""
    for weights in (w, np.ones_like(w)):
        level = form.level(weights)
        u = _lowest(form.where(level == level.max()), weights, rng)
        if _trend(form, u, weights) < 0:
            return _diverges(form, u, weights)
    if not np.all(d):
        i = int(np.argmin(d))
        axis = np.eye(len(d))[i]
        if _is_channel(form, axis):
            return _diverges(form, axis, np.ones_like(w))
        return Integrability(
            "unknown", None, f"{form.names[i]} has no term of its own, only with other variables{_advice()}"
        )
    named = "·".join(form.names[v] for v in term if v >= 0)
    reason = f"the term {named} grows faster than the pure powers of its variables{_advice()}"
    return Integrability("unknown", None, reason)


def _by_leading_form(
    form: Form, d: np.ndarray, w: np.ndarray, own: np.ndarray, rng: np.random.Generator
) -> Integrability:
    """F = Σ_{ω(α) = 1} θ_α x^α, block by block; own: (q,) parameters of the pure powers."""
    leading, lowest = form.where(form.level(w) == w[0] * d[0]), None
    unit = own ** (-1 / d)  # of variables whose pure powers have parameter 1
    leading = leading._replace(theta=leading.times(unit))
    for variables in linked(leading):
        block = leading.among(variables)
        positive, u = _is_positive(block, d[variables], w[variables], rng)
        if positive:
            continue
        lowest = np.zeros(len(d))
        lowest[variables] = unit[variables] * u
        for x in (*_whole(lowest, unit), lowest):
            if _trend(form, x, w) < 0:
                return _diverges(form, x, w)
            if _is_channel(form, x):
                return _diverges(form, x, np.ones_like(w))
    if lowest is None:
        return Integrability("integrable", None, _HIGHEST)
    flat = _flat_directions(form, unit, rng)
    if flat:
        return _diverges(form, flat[0], np.ones_like(w))
    along, touches = _curve(form.names, lowest, w), leading.times(lowest / unit).sum() < _ZERO
    reason = f"no proof that the highest terms are positive; they are least along {along}{_advice()}"
    if touches:
        reason = f"the highest terms vanish, to rounding, along {along}: there lower ones decide"
    return Integrability("unknown", lowest, reason, w * 1.0)


def _advice() -> str:
    return "" if solver_is_here() else ". `pip install isodus[certify]` may decide it"


def _diverges(form: Form, u: np.ndarray, w: np.ndarray) -> Integrability:
    how = "falls without bound" if _trend(form, u, w) < 0 else "is constant"
    return Integrability("not integrable", u, f"the energy {how} along {_curve(form.names, u, w)}", w * 1.0)


def _curve(names: Sequence[str], u: np.ndarray, w: np.ndarray) -> str:
    """A curve in words, "x0 = 1·t, x1 = -0.5·t^2": its six largest coordinates."""
    shown = np.argsort(-np.abs(u), kind="stable")[: min(6, np.count_nonzero(u))]
    time = {0: "", 1: "·t"}
    parts = [f"{names[i]} = {u[i]:.4g}{time.get(int(w[i]), f'·t^{w[i]}')}" for i in sorted(shown)]
    return ", ".join(parts) + (", …" if np.count_nonzero(u) > 6 else "")


# proofs


def _is_positive(form: Form, d: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> tuple[bool, np.ndarray]:
    """Whether a form, whose pure powers x_i^{d_i} have parameter 1, is proved positive; if not, where it is least."""
    if np.all(d == 2):
        return is_positive_definite(form)
    if pure_powers_prevail(form, d):
        return True, np.zeros(len(d))
    u = _lowest(form, w, rng)
    if _trend(form, u, w) <= 0 or form.times(u).sum() < _ZERO:
        return False, u
    return is_sum_of_squares(form, half=(d, w)), u


def _is_bounded(form: Form) -> bool:
    """Whether E + C is proved to be a sum of squares that is at least ε Σ x_i², for some C."""
    d, at = form.highest_pure_powers()
    unit = np.append(form.theta, 1.0)[at] ** (-1 / np.maximum(d, 1))
    return is_sum_of_squares(form._replace(theta=form.times(unit)))


# where an energy falls or is constant


def _trend(form: Form, u: np.ndarray, w: np.ndarray) -> int:
    """The sign of E(u_i t^{w_i}) as t → ∞, that of its highest level above 0 that does not vanish; 0 if all do.

    Exact, or 0 where rounding hides the sign and the terms are too many for exact arithmetic.
    """
    return _deciding(form, u, w)[1]


def _deciding(form: Form, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, int]:
    """The terms of that level, and its sign; with 0 those of the highest level."""
    level, values = form.level(w), form.times(u)
    here = (np.append(u, 1.0)[form.factors] != 0).all(axis=1) & (level > 0)
    levels = [np.flatnonzero(here & (level == l)) for l in np.unique(level[here])[::-1]]
    for k in levels:
        total = values[k].sum()
        if abs(total) <= 2 * _EPS * (len(k) + form.factors.shape[1]) * np.abs(values[k]).sum():
            if len(k) > _MOST_TERMS:
                break
            total = _exact(form.where(k), u)
        if total != 0:
            return k, 1 if total > 0 else -1
    return (levels[0] if levels else np.flatnonzero(here)), 0


def _exact(form: Form, x: np.ndarray) -> Fraction:
    """E(x) of the floating-point numbers as they are."""
    numbers = [Fraction(v) for v in x.tolist()]
    terms = zip(form.theta.tolist(), form.terms(), strict=True)
    return sum((prod((numbers[v] for v in term), start=Fraction(theta)) for theta, term in terms), Fraction(0))


def _lowest(form: Form, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The u, (q,), of many starts where a form, all of one level l = α·w, is least.

    Minimises F(x)/N(x)^(l/c), N = Σ|x_i|^{c/w_i}, which is constant along curves x_i = u_i t^{w_i}; by Euler,
    l F = Σ_i w_i x_i ∂_i F.
    """
    q, l, c = len(w), int(form.level(w)[0]), 2 * int(w.max())
    basis = MonomialBasis(q, terms=form.terms())
    weight, e = w[:, None] / l, c / w[:, None]

    def ratio(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = x.reshape(q, -1)
        G, N = gradient(basis, form.theta, X), np.sum(np.abs(X) ** e, axis=0)
        F, scale = np.sum(weight * X * G, axis=0), N ** (-l / c)
        return F * scale, (G - (l / c) * F / N * e * np.abs(X) ** (e - 1) * np.sign(X)) * scale

    def total(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = ratio(x)
        return float(value.sum()), slope.ravel()

    x = minimize(total, _starts(form, rng).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
    best = x.reshape(q, -1)[:, np.argmin(ratio(x)[0])]
    best = minimize(total, best, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 300}).x
    return best / np.max(np.abs(best) ** (1 / w)) ** w


def _starts(form: Form, rng: np.random.Generator) -> np.ndarray:
    """(q, 32): at random, half of them then moved to where one of the largest terms is negative."""
    X, powers = rng.standard_normal((len(form.names), 32)), form.powers()
    falling = np.flatnonzero(form.can_fall())
    largest = falling[np.argsort(-np.abs(form.theta[falling]), kind="stable")[:16]]
    X[:, : len(largest)] *= 0.1
    for n, k in enumerate(largest):
        X[form.factors[k][form.factors[k] >= 0], n] = 1.0
        if form.theta[k] > 0:
            X[form.factors[k, np.argmax(powers[k] % 2)], n] = -1.0
    return X


def _whole(u: np.ndarray, unit: np.ndarray) -> list[np.ndarray]:
    """Small whole numbers, in x or in x/unit, that u is almost a multiple of: there exact tests can find a zero."""
    found = []
    for scale in (np.ones_like(unit), unit):
        v = u / scale / np.max(np.abs(u / scale))
        near = (np.round(n * v) for n in range(1, 13) if np.max(np.abs(n * v - np.round(n * v))) < 1e-3)
        found += [sign * scale * v for v in islice(near, 1) for sign in (1.0, -1.0)]
    return found


def _is_channel(form: Form, u: np.ndarray) -> bool:
    """Whether E(x, y) is bounded on |s| ≤ 1/t around the line t u, whose area ∫ dt/t is infinite; exactly.

    E(t u + s v) = Σ c_jk t^j s^k with v across u; it is if j ≤ k in every term.
    """
    if len(u) != 2:
        return False
    x, y = map(Fraction, u.tolist())
    c: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for row, theta in zip(form.factors.tolist(), form.theta.tolist(), strict=True):
        a, b = row.count(0), row.count(1)
        for j, l in product(range(a + 1), range(b + 1)):
            across = (-y) ** (a - j) * x ** (b - l)
            c[j + l, a + b - j - l] += Fraction(theta) * comb(a, j) * comb(b, l) * x**j * y**l * across
    return all(j <= k for (j, k), value in c.items() if value != 0)


def _flat_directions(form: Form, unit: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Some v with Σ_i v_i ∂_i E ≡ 0, exactly; v or v/unit in small whole numbers."""
    q = len(form.names)
    if q * len(form.theta) > 100 * _MOST_TERMS:
        return []
    slopes = gradient(MonomialBasis(q, terms=form.terms()), form.theta, rng.standard_normal((q, q)) * unit[:, None])
    _, size, V = np.linalg.svd((slopes * unit[:, None]).T)
    null = V[size <= 1e-10 * size[0]].T * unit[:, None]
    if null.shape[1] == 0:
        return []
    pivots = linalg.qr(null.T, mode="r", pivoting=True)[1][: null.shape[1]]
    return [v for v in _whole((null @ np.linalg.inv(null[pivots]))[:, 0], unit) if _is_flat(form, v)]


def _is_flat(form: Form, v: np.ndarray) -> bool:
    slope: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for theta, term in zip(form.theta.tolist(), form.terms(), strict=True):
        for n, i in enumerate(term):
            slope[term[:n] + term[n + 1 :]] += Fraction(theta) * Fraction(v[i])
    return not any(slope.values())
