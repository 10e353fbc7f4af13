"""The objectives of all nodes as arrays, (p, K): every local parameter in a place, for fits with a penalty.

A penalty leaves few parameters that are not zero. Their values and curvatures are needed often, `on` those alone; the
slopes by all the others only to see that they may stay zero, `full`, in one pass for all nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from . import univariate
from .arrays import contract, namespace, to_host
from .basis import MonomialBasis
from .energy import cofactor_matrix, conditional_coefficients, powers, rows, scatter
from .losses import Loss
from .losses.pseudo_likelihood import PseudoLikelihoodLoss
from .losses.screening import Tilted
from .objective import Objective
from .samples import ArraySamples
from .solvers.proximal import Point

__all__ = ["GramNodes", "Nodes", "SampledNodes", "TiltedNodes", "packed"]

Evaluate = Callable[[np.ndarray, np.ndarray], Point]


class Nodes(Protocol):
    """What a fit with a penalty needs of the objectives of all nodes.

    terms: (p, K), which term of the basis has each place, -1 for none.
    """

    terms: np.ndarray

    def full(self, theta: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Values, (p,), and slopes by all parameters, (p, K), at θ, (p, K); of some nodes, (rows,) and (rows, K)."""

    def on(self, rows: np.ndarray, places: np.ndarray) -> Evaluate:
        """evaluate(which, theta) of some nodes by some parameters: places, (rows, A), padded with -1."""

    def noise(self, theta: np.ndarray, value: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Root of the mean square over samples of each slope, (p, K), where the places `free` are fitted."""

    def effective(self, theta: np.ndarray) -> np.ndarray | None:
        """Effective sample sizes of the weights, (p,); None where there are none."""


class GramNodes:
    """Pseudo-likelihood at degree 2, from second moments M = ⟨(1, y)(1, y)ᵀ⟩ alone.

    With a the parameter of x_i² and c those of 1 and of the other variables, x_i given the rest is Gaussian, and

        F_i = c·M_i + a M_ii + cᵀMc/(4a) − ½ log a + ½ log π.

    The places of node i: 0 for x_i, 1 + j for x_i x_j, so 1 + i for x_i².
    """

    def __init__(self, basis: MonomialBasis, moments: np.ndarray) -> None:
        p = basis.n_variables
        self.moments, self.terms = moments, np.full((p, p + 1), -1)
        here = np.arange(len(basis))
        one, two = basis.degrees == 1, basis.degrees == 2
        self.terms[basis.factors[one, 0], 0] = here[one]
        i, j = basis.factors[two].T
        self.terms[i, 1 + j] = self.terms[j, 1 + i] = here[two]
        self._own = 1 + np.arange(p)

    def full(self, theta: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Values, (p,), and slopes by all parameters, (p, K), at θ, (p, K); of some nodes, (rows,) and (rows, K)."""
        rows = np.arange(len(theta)) if rows is None else rows
        nodes, M, columns = np.arange(len(rows)), self.moments, self._own[rows]
        c = theta[rows]
        a = c[nodes, columns]
        c[nodes, columns] = 0.0
        Mc = csr_array(c) @ M
        quadratic = np.einsum("ij,ij->i", c, Mc)
        own, diagonal = M[columns], np.diagonal(M)[columns]
        gradient = Mc
        gradient /= 2 * a[:, None]
        gradient += own
        gradient[nodes, columns] = diagonal - quadratic / (4 * a * a) - 1 / (2 * a)
        return _gaussian_value(np.einsum("ij,ij->i", c, own), a, diagonal, quadratic), gradient

    def on(self, rows: np.ndarray, places: np.ndarray) -> Evaluate:
        """evaluate(which, theta) of some nodes by some parameters: places, (rows, A), padded with -1."""
        none = places < 0
        own = np.argmax(places == self._own[rows][:, None], axis=1)
        at = np.where(none, 0, places)
        M = self.moments[at[:, :, None], at[:, None, :]]
        m = self.moments[self._own[rows][:, None], at]
        none[np.arange(len(rows)), own] = True  # the square is no column of the regression
        M[none[:, :, None] | none[:, None, :]] = 0.0
        m[none] = 0.0
        padding = np.where(places < 0, 1.0, 0.0)
        diagonal = np.diagonal(self.moments)[self._own[rows]]

        def evaluate(which: np.ndarray, theta: np.ndarray) -> Point:
            q, k = np.arange(len(which)), own[which]
            a, G = theta[q, k], M[which]
            c = theta.copy()
            c[q, k] = 0.0
            Mc = np.matmul(G, c[:, :, None])[:, :, 0]
            quadratic = np.einsum("ij,ij->i", c, Mc)
            gradient = m[which] + Mc / (2 * a[:, None])
            gradient[q, k] = diagonal[which] - quadratic / (4 * a * a) - 1 / (2 * a)
            H = G / (2 * a[:, None, None])
            H[q, k, :] = H[q, :, k] = -Mc / (2 * a * a)[:, None]
            H[q, k, k] = quadratic / (2 * a**3) + 1 / (2 * a * a)
            np.einsum("ijj->ij", H)[:] += padding[which]
            value = _gaussian_value(np.einsum("ij,ij->i", c, m[which]), a, diagonal[which], quadratic)
            return Point(value, gradient, H)

        return evaluate

    def noise(self, theta: np.ndarray, value: np.ndarray, free: np.ndarray) -> np.ndarray:
        """That of the Gaussian without interactions: σ_i σ_j for the slope by x_i x_j, √2 σ_i² for x_i².

        Without a free linear term its mean is zero, and so σ_i² = M_ii.
        """
        mean, second = np.where(free[:, 0], self.moments[0, 1:], 0.0), np.diagonal(self.moments)[1:]
        deviation = np.sqrt(np.maximum(second - mean * mean, 1e-300))
        noise = deviation[:, None] * np.append(1.0, deviation)
        noise[np.arange(len(theta)), self._own] = np.sqrt(2.0) * deviation * deviation
        return noise

    def effective(self, theta: np.ndarray) -> None:
        """There are no weights."""
        return None


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
        basis = MonomialBasis(whole.n_variables, whole.degree, terms=kept)
        used = used[np.argsort(basis.positions(whole.factors[used]), kind="stable")]
        sizes, at = [], []
        for i, row in zip(rows.tolist(), wanted, strict=True):
            mine = used[basis.local(i).terms]
            order = np.argsort(mine)
            at.append(order[np.minimum(np.searchsorted(mine[order], row[row >= 0]), len(mine) - 1)])
            sizes.append(len(mine))
        return basis, sizes, at

    def on(self, rows: np.ndarray, places: np.ndarray) -> Evaluate:
        """evaluate(which, theta) of some nodes by some parameters: places, (rows, A), padded with -1."""
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
        samples, loss, integral = self.exact.objective.samples, self.exact.objective.loss, univariate.integrate
        places = packed(theta[changed] != 0)
        basis, sizes, at = self.small(changed, places)
        thetas = [np.zeros(size) for size in sizes]
        for small, where, row, place in zip(thetas, at, theta[changed], places, strict=True):
            small[where] = row[place[place >= 0]]
        p, s, q = basis.n_variables, basis.degree, len(changed)
        C, table = scatter(basis, changed.tolist(), thetas, samples.like()), self.objective.samples.X

        def fill(start: int, stop: int) -> tuple[np.ndarray, float]:
            Y, count = samples.block(start, stop)
            xp, n = namespace(Y), stop - start
            a, x = conditional_coefficients(C, cofactor_matrix(basis, Y)), rows(Y, changed)
            found = integral(xp.reshape(a, (s, q * n)), moments=s, tol=loss.tol)  # type: ignore[attr-defined]
            u = powers(x, s)
            value = contract(a, u) + xp.reshape(found.log_z, (q, n))
            u -= xp.reshape(found.moments, (s, q, n))
            known = [*(u[l, ...] for l in range(s)), contract(a, u)]
            for l, one in enumerate(known):
                for j, i in enumerate(changed.tolist()):
                    table[start:stop, p + l * p + i] = one[j, :]
            total = xp.sum(value, axis=1) if count is None else value @ count
            return to_host(total), float(n) if count is None else float(xp.sum(count))

        done = samples.each(fill, 4096)
        self.pilot[changed] = theta[changed]
        self.value[changed] = sum(total for total, _ in done) / sum(n for _, n in done)
        return self.value.copy()


def packed(inside: np.ndarray) -> np.ndarray:
    """The places that are in, row by row, padded with -1."""
    count = np.count_nonzero(inside, axis=1)
    row, place = np.nonzero(inside)
    out = np.full((len(inside), max(int(count.max(initial=0)), 1)), -1)
    out[row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)] = place
    return out
