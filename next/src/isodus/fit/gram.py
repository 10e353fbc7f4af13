"""Nodes of a Gaussian with an L1 penalty, on the p × p moments: nothing touches the rows again.

Pseudo-likelihood: with θ_ij = −2 a_i β_ij and θ_ii = a_i, node i is

    −½ log a_i + a_i (r_i(β) + 2 Σ_j c_ij |β_ij| + c_ii),   r_i(β) = ⟨(t_i − β·t)²⟩,

so that β_i is a lasso of t_i on the others, whatever a_i, and 1/a_i twice its value. Score matching: with a_i = 2 θ_ii
and u_i = (a_i, θ_ij) node i is ½ uᵀMu − a_i, a lasso as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from ..terms import Key
from .gaussian import variances_left
from .lasso import lassos, missed
from .newton import Status

__all__ = ["GramProblem", "GramSolution"]

Array = np.ndarray
_CELLS = 1e7  # of the matrices of nodes that are solved at once
_SLACK = 1e-9  # of a cost, by which a slope may exceed it
_ROUNDS = 60
_TOL = 1e-3  # standard errors by which conditions of optimality may be missed


@dataclass(frozen=True)
class GramSolution:
    """θ_ij of each node i at one strength, (p, p), with θ_ii on the diagonal, and what its conditions are missed by."""

    strength: float
    theta: Array
    missed: Array
    status: Status = "converged"
    n_iter: int = 0


class GramProblem:
    """All nodes of a Gaussian, with an L1 penalty of any strength on x_i x_j.

    Parameters
    ----------
    M : array of shape (p, p)
        Second moments of t; with linear terms, which are not penalised, around the mean.
    mean : array of shape (p,) or None
        Of t; None without linear terms.
    weight : array of shape (p, p)
        c of each pair, symmetric; on the diagonal that of t_i².
    n : float
    in_noise : bool
        Whether weights are in units of each slope's noise, σ_i σ_j.
    scored : bool
        Whether the loss is score matching's.
    length : array of shape (p,), optional
        Of t = 1 in the units that score matching's derivatives are taken in; by default 1.
    """

    def __init__(
        self,
        M: Array,
        mean: Array | None,
        weight: Array,
        n: float,
        in_noise: bool = True,
        scored: bool = False,
        length: Array | float = 1.0,
    ) -> None:
        self.spread = np.sqrt(np.diagonal(M))
        self.M, self.mean, self.n, self.scored = M / self.spread / self.spread[:, None], mean, n, scored
        # θ_ij t_i t_j costs λ c_ij |θ_ij|; in units of spreads θ_ij is σ_i σ_j times as large
        self.penalised = (weight > 0) & np.isfinite(weight)
        np.fill_diagonal(self.penalised, False)
        self.cost = weight if in_noise else weight / self.spread / self.spread[:, None]
        if scored and not in_noise:  # a row is the node's loss times this
            self.cost = self.cost * ((self.spread * length) ** 2)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            self.largest = float(np.max(np.where(self.penalised, self._empty_slopes() / self.cost, 0.0), initial=0.0))
        self.before = np.zeros_like(self.M)

    def at(self, strength: float) -> GramSolution:
        """The optimum at one strength."""
        return self.solved(strength)

    def path(self, strengths: Sequence[float]) -> Iterator[GramSolution]:
        """The optimum at each of a decreasing sequence of strengths."""
        for strength in strengths:
            yield self.solved(strength)

    def solved(self, strength: float) -> GramSolution:
        """The optimum at one strength, from that of the last."""
        every = np.arange(len(self.M))
        own = strength * self.cost[every, every]
        cost = np.full_like(self.cost, np.inf)
        np.multiply(strength, self.cost, out=cost, where=np.isfinite(self.cost))
        cost[every, every] = own / 2 if self.scored else np.inf
        B, slope = self._lasso_rows(self._rhs(), cost, self.before)
        off, self.before = missed(B, slope, cost).max(axis=1), B
        if self.scored:
            theta = B.copy()
            theta[every, every] /= 2
        else:
            pull = 2 * np.where(B != 0, np.where(np.isfinite(cost), cost, 0.0) * np.abs(B), 0.0).sum(axis=1)
            a = 0.5 / (self._residuals(B) + pull + own)
            theta = -2 * a[:, None] * B
            theta[every, every] = a
        solved = np.max(off, initial=0.0) * np.sqrt(self.n) <= _TOL
        status: Status = "converged" if solved else "iteration limit"
        return GramSolution(strength, theta / self.spread / self.spread[:, None], off, status)

    # ---------------------------------------------------------------- structures

    def kept(self, solution: GramSolution, rule: str) -> Array:
        """The pairs that are in the model, (p, p) of bool, symmetric; without those that have no penalty."""
        inside = (solution.theta != 0) & self.penalised
        return inside & inside.T if rule == "and" else inside | inside.T

    @property
    def candidates(self) -> Array:
        """The penalised pairs."""
        return self.penalised

    def count(self, kept: Array) -> int:
        """How many terms are kept."""
        return int(np.count_nonzero(np.triu(kept, 1)))

    def losses(self, kept: Array) -> Array:
        """Of each node, pseudo-likelihood's least loss with the kept pairs and those that have no penalty, (p,)."""
        inside = kept | (~self.penalised & np.isfinite(self.cost))
        np.fill_diagonal(inside, False)
        B, _ = self._lasso_rows(self.M, np.where(inside, 0.0, np.inf), np.zeros_like(self.M))
        return 0.5 * np.log(self._residuals(B)) + np.log(self.spread)

    def sizes(self, kept: Array) -> tuple[Array, Array]:
        """How many penalised terms each node keeps, and of how many, (p,) each."""
        return np.count_nonzero(kept, axis=1), np.count_nonzero(self.penalised, axis=1)

    def joint(self, solution: GramSolution, rule: str, consensus: str) -> dict[Key, float]:
        """One θ for each pair, each square and, with linear terms, each variable."""
        theta, every = solution.theta, np.arange(len(self.M))
        free = ~self.penalised & np.isfinite(self.cost)
        inside = self.kept(solution, rule) | (free & free.T)
        one = 0.5 * (theta + theta.T)
        if consensus == "geometric":
            both = (theta != 0) & (theta.T != 0)
            size = np.where(both, np.sqrt(np.abs(theta * theta.T)), np.abs(theta) + np.abs(theta.T))
            one = np.sign(one) * size
        one = np.where(inside, one, 0.0)
        one[every, every] = theta[every, every]
        found: dict[Key, float] = {}
        if self.mean is not None:
            linear = -(one + np.diag(one[every, every])) @ self.mean
            found |= {(i,): float(v) for i, v in enumerate(linear)}
        found |= {(i, i): float(one[i, i]) for i in every.tolist()}
        return found | {(i, j): float(one[i, j]) for i, j in np.argwhere(np.triu(inside, 1)).tolist()}

    def joint_losses(self, values: Mapping[Key, float]) -> Array:
        """Pseudo-likelihood's loss of each node at one θ for all, (p,): ½ log(2π/J_ii) + ½ (JMJ)_ii/J_ii, J = ∂²E."""
        pairs = [(*key, value) for key, value in values.items() if len(key) == 2]
        i, j, theta = np.array(pairs).T
        i, j = i.astype(int), j.astype(int)
        J = csr_array((theta * self.spread[i] * self.spread[j], (i, j)), shape=self.M.shape)
        J = J + J.T
        d = J.diagonal()
        r = np.asarray((J * (J @ self.M)).sum(axis=1)).ravel() / d
        return 0.5 * np.log(2 * np.pi / d) + 0.5 * r + np.log(self.spread)

    def gaussian_losses(self) -> Array | None:
        """The same at the inverse of M; None where M is singular."""
        left = variances_left(self.M)
        return None if left is None else 0.5 * (np.log(2 * np.pi * left) + 1) + np.log(self.spread)

    # ---------------------------------------------------------------- inside

    def _empty_slopes(self) -> Array:
        """Of all pairs, where only those without a cost are in the model, (p, p)."""
        cost = np.where(self.penalised | ~np.isfinite(self.cost), np.inf, 0.0)
        np.fill_diagonal(cost, 0.0 if self.scored else np.inf)
        return np.abs(self._lasso_rows(self._rhs(), cost, np.zeros_like(self.M))[1])

    def _rhs(self) -> Array:
        return np.eye(len(self.M)) if self.scored else self.M

    def _residuals(self, B: Array) -> Array:
        """r_i(β), (p,); B: zero on the diagonal."""
        image = csr_array(B) @ self.M
        return np.maximum(1 - 2 * np.einsum("ij,ij->i", B, self.M) + np.einsum("ij,ij->i", B, image), 1e-300)

    def _lasso_rows(self, rhs: Array, cost: Array, start: Array) -> tuple[Array, Array]:
        """argmin ½ βᵀMβ − rhs_i·β + Σ_j cost_ij |β_j| for each row, and the slope Mβ − rhs there."""
        B, M = start.copy(), self.M
        slope = csr_array(B) @ M - rhs
        working = (B != 0) | (cost == 0) | (np.abs(slope) > cost)
        rows = np.flatnonzero(working.any(axis=1))
        for _ in range(_ROUNDS):
            if not len(rows):
                break
            for some in _groups(working, rows):
                self._solve(some, working[some], rhs, cost, B)
            slope = csr_array(B) @ M - rhs
            wrong = (np.abs(slope) > (1 + _SLACK) * cost) & ~working
            rows = np.flatnonzero(wrong.any(axis=1))
            working |= wrong
        return B, slope

    def _solve(self, rows: Array, working: Array, rhs: Array, cost: Array, B: Array) -> None:
        """These rows of B over their working sets, packed side by side."""
        count = working.sum(axis=1)
        width = int(count.max())
        there = np.arange(width) < count[:, None]
        places = np.zeros((len(rows), width), int)
        places[there] = np.nonzero(working)[1]
        A = np.where(there[:, :, None] & there[:, None, :], self.M[places[:, :, None], places[:, None, :]], 0.0)
        A[:, np.arange(width), np.arange(width)] = 1.0
        pick = lambda values, other: np.where(there, values[rows[:, None], places], other)
        found = lassos(A, pick(rhs, 0.0), pick(cost, np.inf), pick(B, 0.0))
        B[rows] = 0.0
        B[np.repeat(rows, count), places[there]] = found[there]


def _groups(working: Array, rows: Array) -> Iterator[Array]:
    """Rows with working sets of like size, as many as fit."""
    count = working[rows].sum(axis=1)
    order = np.argsort(count, kind="stable")
    rows, count = rows[order], np.maximum(count[order], 1)
    while len(rows):
        many = max(int(np.count_nonzero(np.arange(1, len(rows) + 1) * count.astype(float) ** 2 <= _CELLS)), 1)
        yield rows[:many]
        rows, count = rows[many:], count[many:]
