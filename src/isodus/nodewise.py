"""The objectives of all nodes as arrays, (p, K): every local parameter in a place, for fits with a penalty.

A penalty leaves few parameters that are not zero. Their values and curvatures are needed often, `on` those alone; the
slopes by all the others only to see that they may stay zero, `full`, in one pass for all nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from .arrays import Array, contract, empty, namespace, on_accelerator, on_device, rows_at_once, set_rows, to_host
from .basis import MonomialBasis
from .energy import cofactor_matrix, conditional_coefficients, rows, scatter
from .losses import Loss
from .losses.pseudo_likelihood import PseudoLikelihoodLoss
from .losses.screening import Tilted
from .objective import Objective
from .samples import ArraySamples
from .solvers.proximal import Point, Solved, lasso, minimize
from .spaces import PLAIN, batches

__all__ = ["GramNodes", "Nodes", "Problem", "SampledNodes", "TiltedNodes", "packed"]

_FEW = 4  # times the places of a node that all pairs must be, for those to be picked one by one
_CELLS = 2e6  # moments that are picked at once

Evaluate = Callable[[np.ndarray, np.ndarray], Point]


class Problem(NamedTuple):
    """Where a solver starts, what each parameter costs, its least value and its slope's unit; all (rows, A)."""

    theta: np.ndarray
    cost: np.ndarray
    low: np.ndarray
    unit: np.ndarray


class Nodes(Protocol):
    """What a fit with a penalty needs of the objectives of all nodes.

    terms: (p, K), which term of the basis has each place, -1 for none.
    """

    terms: np.ndarray

    def full(self, theta: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Values, (p,), and slopes by all parameters, (p, K), at θ, (p, K); of some nodes, (rows,) and (rows, K)."""

    def solve(self, rows: np.ndarray, places: np.ndarray, problem: Problem, tol: float, max_iter: int) -> Solved:
        """The minimum of some nodes over some parameters: places, (rows, A), padded with -1."""

    def noise(self, theta: np.ndarray, value: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Root of the mean square over samples of each slope, (p, K), where the places `free` are fitted."""

    def effective(self, theta: np.ndarray) -> np.ndarray | None:
        """Effective sample sizes of the weights, (p,); None where there are none."""


class GramNodes:
    """Pseudo-likelihood at degree 2, from second moments M = ⟨(1, y)(1, y)ᵀ⟩ alone.

    With a the parameter of x_i² and c those of 1 and of the other variables, x_i given the rest is Gaussian, and

        F_i = c·M_i + a M_ii + cᵀMc/(4a) − ½ log a + ½ log π.

    columns: (p, K), that of M which belongs to each place of a node: 0 for x_i, 1 + j for x_i x_j; -1 for none; own:
    (p,), the place of x_i². M may lie on an accelerator, and stays there where nodes have few of all pairs.
    """

    def __init__(self, basis: MonomialBasis, moments: Array) -> None:
        p, here = basis.n_variables, np.arange(len(basis))
        one, two = here[basis.degrees == 1], here[basis.degrees == 2]
        i, j = basis.factors[two, 0], basis.factors[two, 1]
        node = np.concatenate([basis.factors[one, 0], i, j[i != j]])
        column = np.concatenate([np.zeros_like(one), 1 + j, 1 + i[i != j]])
        term = np.concatenate([one, two, two[i != j]])
        order, count = np.argsort(node * np.int64(p + 1) + column), np.bincount(node, minlength=p)
        at = node[order], np.arange(len(node)) - np.repeat(np.cumsum(count) - count, count)
        self.terms, self.columns = np.full((2, p, int(count.max())), -1)
        self.terms[at], self.columns[at] = term[order], column[order]
        self._few = _FEW * self.columns.shape[1] <= p
        self.moments = moments if self._few else to_host(moments)
        self.own = np.argmax(self.columns == 1 + np.arange(p)[:, None], axis=1)
        self._mean, self._square = to_host(moments[0, 1:]), to_host(namespace(moments).linalg.diagonal(moments))[1:]
        self._beside = np.where(self.columns >= 0, self._moments(1 + np.arange(p)[:, None], self.columns), 0.0)

    def _moments(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """M_ij on the host, wherever M lies; of a column -1 anything."""
        M, at = self.moments, np.maximum(i, 0) * np.int64(self.moments.shape[0]) + np.maximum(j, 0)
        xp = namespace(M)
        return to_host(xp.take(xp.reshape(M, (-1,)), on_device(at.ravel(), M))).reshape(at.shape)

    def _product(self, c: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """c M at the places of each node, (rows, K), by the few of c, (rows, K), that are not zero."""
        if not self._few:
            r, k = np.nonzero(c)
            C = csr_array((c[r, k], (r, columns[r, k])), shape=(len(c), len(self.moments)))
            return np.take_along_axis(C @ self.moments, np.maximum(columns, 0), axis=1)
        at, out = packed(c != 0), np.empty_like(c)
        values = np.where(at >= 0, np.take_along_axis(c, at, axis=1), 0.0)
        those = np.take_along_axis(columns, at, axis=1)
        step = max(int(_CELLS / (at.shape[1] * c.shape[1])), 1)
        for some in (slice(start, start + step) for start in range(0, len(c), step)):
            M = self._moments(those[some, :, None], columns[some, None, :])
            out[some] = np.matmul(values[some, None, :], M)[:, 0]
        return out

    def full(self, theta: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Values, (p,), and slopes by all parameters, (p, K), at θ, (p, K); of some nodes, (rows,) and (rows, K)."""
        rows = np.arange(len(theta)) if rows is None else rows
        nodes, own, columns, beside = np.arange(len(rows)), self.own[rows], self.columns[rows], self._beside[rows]
        c = theta[rows]
        a = c[nodes, own]
        c[nodes, own] = 0.0
        gradient = self._product(c, columns)
        quadratic = np.einsum("ij,ij->i", c, gradient)
        gradient /= 2 * a[:, None]
        gradient += beside
        gradient[columns < 0] = 0.0
        gradient[nodes, own] = self._square[rows] - quadratic / (4 * a * a) - 1 / (2 * a)
        return _gaussian_value(np.einsum("ij,ij->i", c, beside), a, self._square[rows], quadratic), gradient

    def solve(self, rows: np.ndarray, places: np.ndarray, problem: Problem, tol: float, max_iter: int) -> Solved:
        """The minimum of some nodes over some parameters: places, (rows, A), padded with -1."""
        there, nodes = places >= 0, np.arange(len(rows))
        own = np.argmax(places == self.own[rows][:, None], axis=1)
        columns = np.where(there, self.columns[rows[:, None], places], -1)
        M, m = self._moments(columns[:, :, None], columns[:, None, :]), self._beside[rows[:, None], places]
        none = ~there
        none[nodes, own] = True  # the square is no column of the regression
        M[none[:, :, None] | none[:, None, :]] = 0.0
        m[none] = 0.0
        part = _Part(M, m, own, self._square[rows], (~there).astype(float))
        return minimize(part, part.minimum(*problem[:3]), *problem[1:], tol=tol, max_iter=max_iter)

    def noise(self, theta: np.ndarray, value: np.ndarray, free: np.ndarray) -> np.ndarray:
        """That of the Gaussian without interactions: σ_i σ_j for the slope by x_i x_j, √2 σ_i² for x_i².

        Without a free linear term its mean is zero, and so σ_i² = M_ii.
        """
        deviation = self.deviations(free)
        noise = deviation[:, None] * np.append(np.append(1.0, deviation), 1.0)[self.columns]
        noise[np.arange(len(theta)), self.own] = np.sqrt(2.0) * deviation * deviation
        return noise

    def deviations(self, free: np.ndarray) -> np.ndarray:
        """σ_i, (p,), where the places `free` are fitted."""
        mean = np.where((free & (self.columns == 0)).any(axis=1), self._mean, 0.0)
        return np.sqrt(np.maximum(self._square - mean * mean, 1e-300))

    def effective(self, theta: np.ndarray) -> None:
        """There are no weights."""
        return None


@dataclass(frozen=True)
class _Part:
    """Some nodes by some parameters: M (rows, A, A), m (rows, A), zero at padding and at `own`, the place of x_i²."""

    M: np.ndarray
    m: np.ndarray
    own: np.ndarray
    square: np.ndarray
    padding: np.ndarray

    def minimum(self, theta: np.ndarray, cost: np.ndarray, low: np.ndarray) -> np.ndarray:
        """Where F_i + Σ cost|θ| is least; θ where that is not finite. What has a least value is a alone.

        With c = −2aβ it is a Q(β) − ½ log a, Q = M_ii − 2β·m + βᵀMβ + 2Σ cost|β|: a lasso that does not know of a,
        and a = 1/(2Q).
        """
        nodes, own = np.arange(len(theta)), self.own
        H, costs = self.M.copy(), cost.copy()
        np.einsum("ijj->ij", H)[:] += self.padding
        H[nodes, own, own], costs[nodes, own] = 1.0, 0.0
        beta = lasso(H, -self.m, np.zeros_like(theta), costs, np.full_like(theta, -np.inf))
        residual = np.einsum("ij,ij->i", beta, np.matmul(self.M, beta[:, :, None])[:, :, 0] - 2 * self.m)
        Q = self.square + residual + 2 * np.einsum("ij,ij->i", costs, np.abs(beta)) + cost[nodes, own]
        with np.errstate(divide="ignore", invalid="ignore"):
            a = np.maximum(1 / (2 * Q), low[nodes, own])
            found = -2 * a[:, None] * beta
        found[nodes, own] = a
        good = (Q > 0) & np.isfinite(found).all(axis=1)
        return np.where(good[:, None], found, theta)

    def __call__(self, which: np.ndarray, theta: np.ndarray) -> Point:
        """Values, slopes and curvatures of those of the nodes, each at its own point."""
        q, k, G, m, square = np.arange(len(which)), self.own[which], self.M[which], self.m[which], self.square[which]
        a, c = theta[q, k], theta.copy()
        c[q, k] = 0.0
        Mc = np.matmul(G, c[:, :, None])[:, :, 0]
        quadratic = np.einsum("ij,ij->i", c, Mc)
        gradient = m + Mc / (2 * a[:, None])
        gradient[q, k] = square - quadratic / (4 * a * a) - 1 / (2 * a)
        H = G / (2 * a[:, None, None])
        H[q, k, :] = H[q, :, k] = -Mc / (2 * a * a)[:, None]
        H[q, k, k] = quadratic / (2 * a * a * a) + 1 / (2 * a * a)
        np.einsum("ijj->ij", H)[:] += self.padding[which]
        return Point(_gaussian_value(np.einsum("ij,ij->i", c, m), a, square, quadratic), gradient, H)


def _gaussian_value(linear: np.ndarray, a: np.ndarray, diagonal: np.ndarray, quadratic: np.ndarray) -> np.ndarray:
    return linear + a * diagonal + quadratic / (4 * a) - 0.5 * np.log(a / np.pi)


class SampledNodes:
    """Any loss, from passes over samples: the objective of the whole basis, and of small ones made of its terms.

    The plain screening objective is its average here, not the logarithm: with a penalty the two differ.
    """

    def __init__(self, basis: MonomialBasis, loss: Loss, samples: ArraySamples) -> None:
        p = basis.n_variables
        self.objective, self._nodes = Objective(basis, loss, samples), range(p)
        self._lengths = [len(basis.local(i).terms) for i in self._nodes]
        self.terms = np.full((p, max(self._lengths)), -1)
        for i, length in enumerate(self._lengths):
            self.terms[i, :length] = basis.local(i).terms
        own = basis.orders == 1  # so that no node is ever without a term
        self._always = np.flatnonzero(own) if own.any() else np.unique(self.terms[:, 0])

    def full(self, theta: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Values, (p,), and slopes by all parameters, (p, K), at θ, (p, K); of some nodes, (rows,) and (rows, K)."""
        nodes = list(self._nodes) if rows is None else rows.tolist()
        found = self.objective.evaluate(nodes, [theta[i, : self._lengths[i]] for i in nodes], hessian=False)
        value, gradient = np.array([e.value for e in found]), np.zeros((len(nodes), theta.shape[1]))
        for row, i, e in zip(gradient, nodes, found, strict=True):
            row[: self._lengths[i]] = e.gradient
        factor = self._factor(value)
        return value if factor is None else factor, gradient if factor is None else gradient * factor[:, None]

    def small(self, rows: np.ndarray, places: np.ndarray) -> tuple[MonomialBasis, list[int], list[np.ndarray]]:
        """A basis of the terms in these places, how many a node has of them, and which of those has each place."""
        whole = self.objective.basis
        wanted = np.where(places < 0, -1, self.terms[rows[:, None], places])
        used = np.union1d(wanted[wanted >= 0], self._always)
        kept = [tuple(row[row >= 0].tolist()) for row in whole.factors[used]]
        basis = MonomialBasis(whole.n_variables, whole.degree, terms=kept).within(whole.spaces)
        used = used[np.argsort(basis.positions(whole.factors[used]), kind="stable")]
        sizes, at = [], []
        for i, row in zip(rows.tolist(), wanted, strict=True):
            mine = used[basis.local(i).terms]
            order = np.argsort(mine)
            at.append(order[np.minimum(np.searchsorted(mine[order], row[row >= 0]), len(mine) - 1)])
            sizes.append(len(mine))
        return basis, sizes, at

    def solve(self, rows: np.ndarray, places: np.ndarray, problem: Problem, tol: float, max_iter: int) -> Solved:
        """The minimum of some nodes over some parameters: places, (rows, A), padded with -1."""
        return minimize(self._on(rows, places), *problem, tol=tol, max_iter=max_iter)

    def _on(self, rows: np.ndarray, places: np.ndarray) -> Evaluate:
        """evaluate(which, theta) of some nodes by some parameters."""
        basis, sizes, at = self.small(rows, places)
        objective, A = Objective(basis, self.objective.loss, self.objective.samples), places.shape[1]

        def evaluate(which: np.ndarray, theta: np.ndarray) -> Point:
            thetas = []
            for j, row in zip(which, theta, strict=True):
                small = np.zeros(sizes[j])
                small[at[j]] = row[places[j] >= 0]
                thetas.append(small)
            found = objective.evaluate(rows[which].tolist(), thetas)
            gradient, hessian = np.zeros((len(which), A)), np.tile(np.eye(A), (len(which), 1, 1))
            for k, (j, e) in enumerate(zip(which, found, strict=True)):
                there = np.flatnonzero(places[j] >= 0)
                gradient[k, there] = e.gradient[at[j]]
                if e.hessian is not None:
                    hessian[k, there[:, None], there] = e.hessian[np.ix_(at[j], at[j])]
            value = np.array([e.value for e in found])
            factor = self._factor(value)
            if factor is None:
                return Point(value, gradient, hessian)
            return Point(factor, gradient * factor[:, None], hessian * factor[:, None, None])

        return evaluate

    def noise(self, theta: np.ndarray, value: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Root of the mean square over samples of each slope, (p, K), where the places `free` are fitted."""
        plain, basis = self.objective.loss.link == "plain", self.objective.basis
        thetas = [row[:length] for row, length in zip(theta, self._lengths, strict=True)]
        powers = [
            [l for l, (a, b) in enumerate(pairwise(local.ends)) if b > a and local.cofactors[a] == 0 and free[i, a]]
            for i, local in enumerate(map(basis.local, self._nodes))
        ]
        values = (np.log(value) if plain else value).tolist()
        found, noise = self.objective.noise(self._nodes, thetas, values, powers), np.ones_like(theta)
        for i, length in enumerate(self._lengths):
            noise[i, :length] = found[i] * (value[i] if plain else 1.0)
        return np.maximum(noise, 1e-300)

    def effective(self, theta: np.ndarray) -> np.ndarray | None:
        """Effective sample sizes of the weights, (p,); None where there are none."""
        if self.objective.loss.link == "mean":
            return None
        thetas = [row[:length] for row, length in zip(theta, self._lengths, strict=True)]
        return np.array([e.ess for e in self.objective.evaluate(self._nodes, thetas, hessian=False)])

    def _factor(self, value: np.ndarray) -> np.ndarray | None:
        """The average, where the objective speaks of its logarithm."""
        if self.objective.loss.link != "plain":
            return None
        with np.errstate(over="ignore"):
            return np.exp(value)


class TiltedNodes(SampledNodes):
    """The screening objective tilted by a pilot, ν → 0, with the integrals of the pilot done once and kept.

    Values and curvatures then cost no more than those of the paper's objective. At the pilot its slopes are those of
    pseudo-likelihood, `exact`.
    """

    def __init__(self, basis: MonomialBasis, samples: ArraySamples, tol: float = 1e-8) -> None:
        xp, p, s = namespace(samples.X), basis.n_variables, basis.degree
        self.exact = SampledNodes(basis, PseudoLikelihoodLoss(tol=tol), samples)
        beside = xp.zeros((samples.n_rows, (s + 1) * p), dtype=xp.float64, device=samples.X.device)
        super().__init__(basis, Tilted(s + 1), samples.beside(beside))
        self.pilot = np.full(self.terms.shape, np.nan)
        self.value = np.full(p, np.nan)

    def tilt(self, theta: np.ndarray) -> np.ndarray:
        """Make θ, (p, K), the pilot; pseudo-likelihood's values there, (p,)."""
        changed = np.flatnonzero((theta != self.pilot).any(axis=1))
        if not len(changed):
            return self.value.copy()
        samples, tol = self.exact.objective.samples, self.exact.objective.loss.tol  # type: ignore[attr-defined]
        places = packed(theta[changed] != 0)
        basis, sizes, at = self.small(changed, places)
        thetas = [np.zeros(size) for size in sizes]
        for small, where, row, place in zip(thetas, at, theta[changed], places, strict=True):
            small[where] = row[place[place >= 0]]
        p, s, q = basis.n_variables, basis.degree, len(changed)
        ways = batches(basis.spaces or (PLAIN,) * p, changed.tolist())
        C, table = scatter(basis, changed.tolist(), thetas, samples.like()), self.objective.samples.X

        def fill(start: int, stop: int) -> tuple[np.ndarray, float]:
            Y, count = samples.block(start, stop)
            xp, n = namespace(Y), stop - start
            a, x = conditional_coefficients(C, cofactor_matrix(basis, Y)), rows(Y, changed)
            u, value = empty((s, q, n), Y), empty((q, n), Y)
            for space, at in ways:
                here = on_device(at, Y)
                own = xp.take(a, here, axis=1)
                found, phi = space.expectations(xp.reshape(own, (s, -1)), tol=tol), space.features(rows(x, at), s)
                set_rows(value, at, contract(own, phi) + xp.reshape(found.log_z, (-1, n)))
                set_rows(u, at, phi - xp.reshape(found.mean, phi.shape), axis=1)
            known = [*(u[l, ...] for l in range(s)), contract(a, u)]
            for l, one in enumerate(known):
                _put_columns(table[start:stop, (1 + l) * p : (2 + l) * p], changed, one)
            total = xp.sum(value, axis=1) if count is None else value @ count
            return to_host(total), float(n) if count is None else float(xp.sum(count))

        width = 8 * (len(basis.cofactors) + 3 * s * q)
        done = samples.each(fill, rows_at_once(samples.like(), 4096, width))
        self.pilot[changed] = theta[changed]
        self.value[changed] = sum(total for total, _ in done) / sum(n for _, n in done)
        return self.value.copy()


def _put_columns(table: Array, columns: np.ndarray, values: Array) -> None:
    """Rows of values, (q, b), into columns of a table, (b, p), in place."""
    turned = namespace(values).matrix_transpose(values)
    if len(columns) == table.shape[1]:
        table[...] = turned
    elif on_accelerator(table):
        table[:, on_device(columns, table)] = turned
    else:
        for j, i in enumerate(columns.tolist()):
            table[:, i] = turned[:, j]


def packed(inside: np.ndarray) -> np.ndarray:
    """The places that are in, row by row, padded with -1."""
    count = np.count_nonzero(inside, axis=1)
    row, place = np.nonzero(inside)
    out = np.full((len(inside), max(int(count.max(initial=0)), 1)), -1)
    out[row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)] = place
    return out
