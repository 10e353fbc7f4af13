"""Gibbs sweeps: every variable drawn anew given all others, many samples at a time.

On nodes g_k of spacing h, moved by δ uniform in (−h/2, h/2), one is chosen with probability w_k/Σw, w_k =
exp(−q(g_k + δ)). The sum Σ_k w_k h is ∫ exp(−q) for every δ, with an error that falls faster than any power of h, so
x = g_k + δ has the density exp(−q)/∫exp(−q) to the same error: a draw without a root to find (`redraw`). Where no
nodes are known yet, draws are quantiles (`sweep`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from .. import energy as _energy
from ..basis import MonomialBasis
from ..spaces import PLAIN, Spaces, batches

__all__ = [
    "Conditionals",
    "NotExactError",
    "about",
    "alone",
    "chains",
    "check_all_held",
    "choose",
    "colours",
    "precision",
    "redraw",
    "sizes",
    "sweep",
]


TINY = 2.0**-25  # for a uniform variate that is 0, which would choose a node of no probability
_SMALL = 100.0  # terms of an energy that single precision tells to 1e-5
_HIGH = 80.0  # exponents that single precision holds; those of samples of the model are far lower


class NotExactError(ValueError):
    """Sums over all variables that would take too much memory or time, or that double precision cannot tell."""


class Conditionals:
    """P(x_i | rest) ∝ exp(−Σ_l a_l x_i^l) of every variable, from the terms that it is in alone."""

    def __init__(self, basis: MonomialBasis, theta: np.ndarray) -> None:
        self.degree, self._basis, self._theta = basis.degree, basis, theta
        self.spaces = basis.spaces or (PLAIN,) * basis.n_variables
        self.near: list[np.ndarray] = []  # variables that share a term with each, itself among them
        self._parts = []
        for i in range(basis.n_variables):
            terms = basis.local(i).terms
            terms = np.sort(terms[theta[terms] != 0] if np.any(theta[terms]) else terms[:1])
            near = np.unique(basis.factors[terms])
            near = near[near >= 0]
            place = {int(v): k for k, v in enumerate(near)}
            together = len(near) == near[-1] - near[0] + 1
            own = tuple(tuple(place[v] for v in row if v >= 0) for row in basis.factors[terms].tolist())
            spaces = None if basis.spaces is None else tuple(basis.spaces[v] for v in near)
            part = _basis(len(near), own, self.degree, spaces)
            values = dict(zip(own, theta[terms], strict=True))
            node = [place[i]]
            local = _energy.local_parameters(part, np.array([values[term] for term in part.terms]), node)
            self.near.append(near)
            rows = slice(near[0], near[-1] + 1) if together else near
            self._parts.append((part, _energy.scatter(part, node, local, theta), rows))

    def colours(self) -> list[list[int]]:
        """Variables of one colour share no term."""
        return colours(self._basis, self._theta)

    def sizes(self, nodes: Sequence[np.ndarray]) -> np.ndarray:
        """A bound, (p,), on the sum of the terms of each variable, each taken positive, at the nodes."""
        return sizes(self._basis, self._theta, np.array([np.abs(g).max() for g in nodes]))

    def coefficients(self, i: int, X: np.ndarray) -> np.ndarray:
        """a, (s, n), at samples X, (p, n)."""
        part, C, rows = self._parts[i]
        return _energy.conditional_coefficients(C, _energy.cofactor_matrix(part, X[rows]))[:, 0, :]


def sizes(basis: MonomialBasis, theta: np.ndarray, far: np.ndarray) -> np.ndarray:
    """A bound, (p,), on the sum of the terms of each variable, each taken positive, where |x| ≤ far, (p,)."""
    terms = np.abs(theta) * np.append(far, 1.0)[basis.factors].prod(axis=1)
    new = _distinct(basis)
    return np.bincount(basis.factors[new], np.repeat(terms, new.sum(axis=1)), len(far))


def check_all_held(basis: MonomialBasis, theta: np.ndarray, names: Sequence[str]) -> None:
    """An error where no term holds a variable that has no bounds."""
    unused = set(range(basis.n_variables)) - set(basis.factors[theta != 0].ravel().tolist())
    unused = {v for v in unused if basis.spaces is None or not basis.spaces[v].support.bounded}
    if unused:
        raise ValueError(f"no term contains {names[min(unused)]}: its density is flat and does not exist")


def colours(basis: MonomialBasis, theta: np.ndarray) -> list[list[int]]:
    """Variables of one colour share no term."""
    near: list[set[int]] = [set() for _ in range(basis.n_variables)]
    linked = (theta != 0) & (basis.orders > 1)
    for row, new in zip(basis.factors[linked], _distinct(basis)[linked], strict=True):
        together = row[new].tolist()
        for i in together:
            near[i].update(together)
    colour: dict[int, int] = {}
    groups: list[list[int]] = []
    for i, others in enumerate(near):
        taken = {colour[v] for v in others if v in colour}
        colour[i] = next(c for c in range(len(groups) + 1) if c not in taken)
        if colour[i] == len(groups):
            groups.append([])
        groups[colour[i]].append(i)
    return groups


def _distinct(basis: MonomialBasis) -> np.ndarray:
    """Where the factors of a term name a variable for the first time: it counts once, however high its power."""
    changes = basis.factors[:, 1:] != basis.factors[:, :-1]
    return (basis.factors >= 0) & np.insert(changes, 0, True, axis=1)


@lru_cache(maxsize=4096)
def _basis(p: int, terms: tuple[tuple[int, ...], ...], degree: int, spaces: Spaces | None) -> MonomialBasis:
    return MonomialBasis(p, degree, terms=terms).within(spaces)


def chains(
    basis: MonomialBasis,
    theta: np.ndarray,
    conditionals: Conditionals,
    names: Sequence[str],
    rng: np.random.Generator,
    n: int,
    sweeps: int,
) -> np.ndarray:
    """The last states, (p, n), of chains that start far apart and warm, cool down, and go on from where E is least.

    Gibbs steps are short where variables are strongly tied: from the slope of a long valley they would not find its
    bottom.
    """
    if basis.spaces is not None:
        X = alone(basis.spaces, basis.degree, n, rng)
        for _ in range(sweeps):
            sweep(conditionals, conditionals.colours(), names, X, rng, 1.0)
        return X
    reach = np.ones(basis.n_variables)  # θ^(−1/d) of the highest pure power d: how far a variable goes by itself
    for term, value in zip(basis.terms, theta, strict=True):
        if len(set(term)) == 1 and value > 0:
            reach[term[0]] = value ** (-1 / len(term))
    reach = reach[:, None] * np.resize([0.5, 1.0, 2.0, 4.0], n)
    X = reach * rng.standard_normal(reach.shape)
    groups = conditionals.colours()
    for k in range(sweeps // 2):
        sweep(conditionals, groups, names, X, rng, 2 * (k + 1) / sweeps)

    X = _energy.descend(basis, theta, X, 1e-6)
    for _ in range(sweeps // 2):
        sweep(conditionals, groups, names, X, rng, 1.0)
    return X


def sweep(
    conditionals: Conditionals,
    groups: Sequence[Sequence[int]],
    names: Sequence[str],
    X: np.ndarray,
    rng: np.random.Generator,
    beta: float,
    first: np.ndarray | None = None,
) -> None:
    """One sweep over all variables of X, (p, n), in place, colour by colour, with the energy β E + (1 − β) E₀.

    first: (p, s), coefficients of E₀ by variable, if there is one.
    """
    for group in groups:
        a = np.concatenate([conditionals.coefficients(i, X) for i in group], axis=1)
        a *= beta
        if first is not None:
            a += (1 - beta) * np.repeat(first[group].T, X.shape[1], axis=1)
        for space, at in batches(conditionals.spaces, group):
            some, here = np.array(group)[at], a
            if len(at) < len(group):
                here = np.concatenate([a[:, k * X.shape[1] : (k + 1) * X.shape[1]] for k in at], axis=1)
            try:
                X[some] = space.draw(here, rng).reshape(len(some), -1)
            except ValueError:
                bad = space.expectations(here).missing[0]
                raise NotExactError(
                    f"the density of {names[some[bad * len(some) // here.shape[1]]]} given the other variables does "
                    "not exist, or is too narrow for double precision"
                ) from None


def alone(spaces: Spaces, s: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """n draws of every variable by itself, (p, n), from the density that its space begins with."""
    return np.stack([space.draw(np.repeat(space.start(s)[:, None], n, axis=1), rng) for space in spaces])


def redraw(conditionals: Conditionals, nodes: Sequence[np.ndarray], X: np.ndarray, rng: np.random.Generator) -> None:
    """One sweep over all variables of X, (p, n), in place; nodes: equally spaced, of every variable.

    Weights are in single precision where the terms of q are small enough for it: their errors, 1e-5 at most, change
    sign from one δ to the next.
    """
    n, bounds = X.shape[1], conditionals.sizes(nodes)
    room = np.empty((max(map(len, nodes)), n))
    for i, g in enumerate(nodes):
        u = np.maximum(rng.random((n,), np.float32), TINY)
        v = rng.random(n)
        delta = (v - 0.5) * (g[1] - g[0])
        kind = precision(bounds[i])
        q = about(conditionals.coefficients(i, X).astype(kind, copy=False), X[i].astype(kind), delta.astype(kind))
        at, _ = choose(np.vander(g, len(q), increasing=True).astype(kind), q, u, room)
        X[i] = g[at]
        X[i] += delta


def precision(bound: float) -> type[np.floating]:
    """In what to weigh nodes, by a bound on the terms of their energies."""
    return np.float32 if bound < _SMALL else np.float64


def choose(V: np.ndarray, q: np.ndarray, u: np.ndarray, room: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of K nodes the one where the sum of exp(V q) passes the share u of it all, a column of q; and the running sums.

    V: (K, s + 1), powers of the nodes; q: (s + 1, n); room: at least K·n numbers, to be overwritten.
    """
    K, n = len(V), q.shape[1]
    weights = room.reshape(-1).view(q.dtype)[: K * n].reshape(K, n)
    np.matmul(V, q, out=weights)
    np.minimum(weights, _HIGH, out=weights)
    np.exp(weights, out=weights)
    for k in range(1, K):
        weights[k] += weights[k - 1]
    below = (weights < u * weights[-1]).view(np.uint8)
    return below.sum(axis=0, dtype=np.min_scalar_type(K)), weights


def about(a: np.ndarray, x: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """Coefficients of −q(· + δ) + q(x), of powers 0 to s: a sample's own energy is zero, so that none overflows."""
    c = np.empty((len(a) + 1, a.shape[1]), a.dtype)
    np.negative(a, out=c[1:])
    for j in range(len(a)):  # synthetic division by (· − δ), again and again
        for k in range(len(a) - 1, max(j, 1) - 1, -1):
            c[k] += delta * c[k + 1]
    at = x - delta
    own = c[-1] * at
    for k in range(len(a) - 1, 0, -1):
        own += c[k]
        own *= at
    np.negative(own, out=c[0])
    return c
