"""Whether the density of an energy exists: is exp(−E(x)) integrable over R^p, E(x) = Σ_k θ_k x^{α_k}?

Either answer is proved, or there is none. With x_i^{d_i} the highest pure powers and ω(α) = Σ α_i/d_i:

- E falls without bound along x_i = u_i t^{w_i} where the highest level Σ_{α·w = l} θ_α u^α that does not vanish is
  negative: not integrable.
- No term that can be negative has ω > 1, and the form F of the terms with ω = 1 is positive away from zero: then
  E ≥ ε Σ|x_i|^{d_i} − C, integrable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, islice, product
from math import comb, lcm, prod
from typing import Literal, NamedTuple

import numpy as np
from scipy import linalg
from scipy.optimize import minimize
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .basis import MonomialBasis
from .energy import gradient

__all__ = ["Integrability", "integrability"]

_MOST_TERMS = 60_000  # of interacting variables, where the highest are not squares
_MOST_SQUARES = 500  # rows of a Gram matrix
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
    """

    status: Literal["integrable", "not integrable", "unknown"]
    direction: np.ndarray | None
    reason: str
    exponents: np.ndarray | None = None


class _Form(NamedTuple):
    """A polynomial. factors: (K, s) in graded order, padded with -1; theta: (K,), none zero; names: (q,)."""

    factors: np.ndarray
    theta: np.ndarray
    names: tuple[str, ...]

    def level(self, w: np.ndarray) -> np.ndarray:
        """α·w of every term, (K,)."""
        return np.append(w, 0)[self.factors].sum(axis=1)

    def powers(self) -> np.ndarray:
        """(K, s): the power in its term of the variable at each position; 0 at padding."""
        return np.where(self.factors >= 0, (self.factors[:, :, None] == self.factors[:, None, :]).sum(axis=2), 0)

    def can_fall(self) -> np.ndarray:
        """(K,): which terms are negative somewhere, all but even monomials with a positive parameter."""
        return (self.theta < 0) | (self.powers() % 2).any(axis=1)

    def where(self, here: np.ndarray) -> _Form:
        return self._replace(factors=self.factors[here], theta=self.theta[here])

    def among(self, variables: np.ndarray) -> _Form:
        """The terms of a group of variables that no term links to others, numbered anew."""
        place = np.full(len(self.names) + 1, -1)
        place[variables] = np.arange(len(variables))
        here = place[self.factors[:, 0]] >= 0
        return _Form(place[self.factors[here]], self.theta[here], tuple(self.names[v] for v in variables))

    def times(self, x: np.ndarray) -> np.ndarray:
        """θ_k x^{α_k} of every term, (K,)."""
        return self.theta * np.append(x, 1.0)[self.factors].prod(axis=1)

    def terms(self) -> list[tuple[int, ...]]:
        return [tuple(v for v in row if v >= 0) for row in self.factors.tolist()]


def integrability(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str] | None = None,
    rng: int | np.random.Generator | None = 0,
) -> Integrability:
    """Whether exp(−Σ_k θ_k x^{α_k}) is integrable over R^p; theta: (n_terms,), in the order of the basis.

    Groups of variables that do not interact are judged apart; all must be integrable.
    """
    p, rng = basis.n_variables, np.random.default_rng(rng)
    names = [f"x{i}" for i in range(p)] if names is None else names
    form = _Form(basis.factors, np.asarray(theta, np.float64), tuple(names)).where(np.asarray(theta) != 0)
    answer = Integrability("integrable", None, "the highest terms of the energy are positive in every direction")
    for variables in _linked(form):
        found = _decide(form.among(variables), rng)
        if found.status == "integrable" or found.status == answer.status:
            continue
        answer = found
        if found.direction is not None:
            direction, exponents = np.zeros(p), np.ones(p)
            direction[variables], exponents[variables] = found.direction, found.exponents
            answer = replace(found, direction=direction, exponents=exponents)
        if found.status == "not integrable":
            break
    return answer


def _linked(form: _Form) -> list[np.ndarray]:
    """Groups of variables that share terms, each as sorted indices."""
    q, inside = len(form.names), form.factors >= 0
    first = np.repeat(form.factors[:, :1], form.factors.shape[1], axis=1)
    links = coo_array((np.ones(inside.sum()), (first[inside], form.factors[inside])), shape=(q, q))
    _, label = connected_components(links, directed=False)
    return np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])


def _decide(form: _Form, rng: np.random.Generator) -> Integrability:
    """One group of interacting variables: its axes, then what lies beyond the pure powers, then the form F."""
    q, powers = len(form.names), form.powers()
    pure = ((form.factors == form.factors[:, :1]) | (form.factors < 0)).all(axis=1)
    d, own, top = np.zeros(q, np.int64), np.zeros(q), np.zeros(q, np.int64)
    d[form.factors[pure, 0]] = powers[pure, 0]  # of several the last stays, in graded order the highest
    own[form.factors[pure, 0]] = form.theta[pure]
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
        return _by_leading_form(form, d, w, own, rng)
    return _beyond_pure_powers(form, d, w, form.factors[np.argmax(beyond)], rng)


def _beyond_pure_powers(
    form: _Form, d: np.ndarray, w: np.ndarray, term: np.ndarray, rng: np.random.Generator
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
        return Integrability("unknown", None, f"{form.names[i]} has no term of its own, only with other variables")
    named = "·".join(form.names[v] for v in term if v >= 0)
    return Integrability("unknown", None, f"the term {named} grows faster than the pure powers of its variables")


def _by_leading_form(
    form: _Form, d: np.ndarray, w: np.ndarray, own: np.ndarray, rng: np.random.Generator
) -> Integrability:
    """F = Σ_{ω(α) = 1} θ_α x^α, block by block; own: (q,) parameters of the pure powers."""
    leading, lowest = form.where(form.level(w) == w[0] * d[0]), None
    unit = own ** (-1 / d)  # of variables whose pure powers have parameter 1
    leading = leading._replace(theta=leading.times(unit))
    for variables in _linked(leading):
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
        return Integrability("integrable", None, "")
    flat = _flat_directions(form, unit, rng)
    if flat:
        return _diverges(form, flat[0], np.ones_like(w))
    reason = f"no proof that the highest terms are positive; they are least along {_curve(form.names, lowest, w)}"
    return Integrability("unknown", lowest, reason, w * 1.0)


def _diverges(form: _Form, u: np.ndarray, w: np.ndarray) -> Integrability:
    how = "falls without bound" if _trend(form, u, w) < 0 else "is constant"
    return Integrability("not integrable", u, f"the energy {how} along {_curve(form.names, u, w)}", w * 1.0)


def _curve(names: Sequence[str], u: np.ndarray, w: np.ndarray) -> str:
    """A curve in words, "x0 = 1·t, x1 = -0.5·t^2": its six largest coordinates."""
    shown = np.argsort(-np.abs(u), kind="stable")[: min(6, np.count_nonzero(u))]
    time = {0: "", 1: "·t"}
    parts = [f"{names[i]} = {u[i]:.4g}{time.get(int(w[i]), f'·t^{w[i]}')}" for i in sorted(shown)]
    return ", ".join(parts) + (", …" if np.count_nonzero(u) > 6 else "")


# proofs that a form is positive away from zero; its pure powers x_i^{d_i} have parameter 1


def _is_positive(form: _Form, d: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> tuple[bool, np.ndarray]:
    """Whether a form is proved to be positive, and if not where it is least."""
    if np.all(d == 2):
        return _is_positive_definite(form)
    if _pure_powers_prevail(form, d):
        return True, np.zeros(len(d))
    u = _lowest(form, w, rng)
    return _trend(form, u, w) > 0 and _is_sum_of_squares(form, d, w), u


def _is_positive_definite(form: _Form) -> tuple[bool, np.ndarray]:
    """Whether a quadratic form has only positive eigenvalues, beyond rounding, and the vector of the lowest."""
    q, (i, j) = len(form.names), form.factors[:, :2].T
    A = np.zeros((q, q))
    A[i, j] = form.theta / 2
    A += A.T
    value, vector = linalg.eigh(A, subset_by_index=[0, 0])
    return bool(value[0] > 8 * _EPS * q * np.linalg.norm(A, np.inf)), vector[:, 0]


def _pure_powers_prevail(form: _Form, d: np.ndarray) -> bool:
    """Whether the terms that can fall are at least −Σ_i c_i x_i^{d_i} with all c_i < 1, by the inequality of the means,

        |θ x^α| ≤ |θ| z^{α/d} Σ_i (α_i/d_i) x_i^{d_i}/z_i.

    The best units z > 0 are a nonlinear Perron vector: the power iteration increases z_i where c_i is large.
    """
    q, falling = len(d), form.where(form.can_fall())
    f, each, z = falling.factors, np.append(1 / d, 0.0)[falling.factors], np.ones(q)
    for _ in range(200):
        size = np.abs(falling.times(z ** (1 / d)))
        c = np.bincount(f.ravel() % (q + 1), (size[:, None] * each).ravel(), q + 1)[:q] / z
        if c.max() < 1 - 1e-9:
            return True
        z *= np.sqrt(c + 1e-3)
        z = np.maximum(z / z.max(), 1e-12)
    return False


def _is_sum_of_squares(form: _Form, d: np.ndarray, w: np.ndarray) -> bool:
    """Whether F = hᵀGh with G positive definite, h monomials of half the weight.

    Douglas-Rachford iterations between the matrices that give F and those with no eigenvalue below 1e-3. If rounding
    leaves a difference Σ r_α x^α, that is at most Σ|r_α| Σ_i x_i^{d_i}, and hᵀGh is at least λ Σ_i x_i^{d_i}.
    """
    terms, h = form.terms(), _half_monomials(form, d, w)
    place: dict[tuple[int, ...], int] = {}
    index = np.array([place.setdefault(tuple(sorted(a + b)), len(place)) for a, b in product(h, h)])
    if not place.keys() >= set(terms):
        return False
    target, count = np.zeros(len(place)), np.bincount(index)
    target[[place[term] for term in terms]] = form.theta
    Z = np.zeros((len(h), len(h)))
    for _ in range(20 + 6000 // len(h)):
        G = Z + ((target - np.bincount(index, Z.ravel())) / count)[index].reshape(Z.shape)
        difference = np.abs(target - np.bincount(index, G.ravel())).sum() + 8 * _EPS * len(h) * np.abs(G).sum()
        if linalg.eigvalsh(G, subset_by_index=[0, 0])[0] > difference:
            return True
        value, vector = np.linalg.eigh(2 * G - Z)
        Z += (vector * np.maximum(value, 1e-3)) @ vector.T - G
    return False


def _half_monomials(form: _Form, d: np.ndarray, w: np.ndarray) -> list[tuple[int, ...]]:
    """The monomials with ω = ½: all, or of many variables those that divide a term; none if they are too many."""
    q, lengths = len(d), range(1, int(d.max()) // 2 + 1)
    if comb(q + lengths[-1], q) <= _MOST_SQUARES:
        candidates = {h for n in lengths for h in combinations_with_replacement(range(q), n)}
    else:
        candidates = {h for term in form.terms() for n in lengths for h in combinations(term, n)}
    halves = sorted(h for h in candidates if 2 * w[list(h)].sum() == w[0] * d[0])
    return halves if len(halves) <= _MOST_SQUARES else []


# where an energy falls or is constant


def _trend(form: _Form, u: np.ndarray, w: np.ndarray) -> int:
    """The sign of E(u_i t^{w_i}) as t → ∞, that of its highest level above 0 that does not vanish; 0 if all do.

    Exact, or 0 where rounding hides the sign and the terms are too many for exact arithmetic.
    """
    level, values = form.level(w), form.times(u)
    here = (np.append(u, 1.0)[form.factors] != 0).all(axis=1) & (level > 0)
    for l in np.unique(level[here])[::-1]:
        k = np.flatnonzero(here & (level == l))
        total = values[k].sum()
        if abs(total) <= 2 * _EPS * (len(k) + form.factors.shape[1]) * np.abs(values[k]).sum():
            if len(k) > _MOST_TERMS:
                return 0
            total = _exact(form.where(k), u)
        if total != 0:
            return 1 if total > 0 else -1
    return 0


def _exact(form: _Form, x: np.ndarray) -> Fraction:
    """E(x) of the floating-point numbers as they are."""
    numbers = [Fraction(v) for v in x.tolist()]
    terms = zip(form.theta.tolist(), form.terms(), strict=True)
    return sum((prod((numbers[v] for v in term), start=Fraction(theta)) for theta, term in terms), Fraction(0))


def _lowest(form: _Form, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
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


def _starts(form: _Form, rng: np.random.Generator) -> np.ndarray:
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


def _is_channel(form: _Form, u: np.ndarray) -> bool:
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


def _flat_directions(form: _Form, unit: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
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


def _is_flat(form: _Form, v: np.ndarray) -> bool:
    slope: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for theta, term in zip(form.theta.tolist(), form.terms(), strict=True):
        for n, i in enumerate(term):
            slope[term[:n] + term[n + 1 :]] += Fraction(theta) * Fraction(v[i])
    return not any(slope.values())
