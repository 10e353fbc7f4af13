"""Steps of Markov chains that leave exp(−E) as it is: Gibbs sweeps and Hamiltonian trajectories, many chains at a time.

A kernel is made for an energy, is tuned to where chains are, and steps, in place, over X of shape (p, chains).

Gibbs. Given the rest, x_i is drawn anew among the points x_i + h k, k whole, with probability ∝ exp(−q(x_i + h k)).
That leaves P(x_i | rest) as it is whatever h is, since points that can be reached from one another choose among the
same; h is another one in every sweep, so that all points can. Where h is below the width of q, this is a draw from
P(x_i | rest), but for the chance of about h/2.5σ to stay.

Hamiltonian. With a momentum r of precision Σ, the covariance of x or its diagonal, leapfrog steps of
ẋ = Σ r, ṙ = −∂E/∂x keep E + ½ rᵀΣr nearly, and what they miss decides whether their end is taken (Neal, 2011).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import univariate
from ..basis import MonomialBasis
from ..energy import (
    cofactor_matrix,
    conditional_coefficients,
    energy,
    gradient,
    local_parameters,
    of_first,
    of_slopes,
    scatter,
    single,
    thin,
)
from .sweep import TINY, NotExactError, about, choose, precision, sizes

__all__ = ["Gibbs", "Hamiltonian"]

_CELLS = 1 << 17  # of chains and nodes at a time, few enough to stay in cache
_LOOK = 32  # chains whose conditional densities are looked at
_FINE = 0.5  # h over the width of a conditional density
_STRETCH = 1.25  # the largest h over the smallest
_MARGIN = 0.15  # of the range of the chains, added on either side
_EDGE = 1e-6  # probability of an outermost node from which the range is too short
_FEWEST, _MOST = 12, 200  # nodes
_ACCEPT = 0.8  # acceptance that the length of leapfrog steps is tuned to
_DENSE = 500  # variables up to which the momentum may have a full covariance
_ROUGH = 1e4  # sum of the terms of a variable from which its force needs double precision
_STRAIGHT = 4.0  # ratio of the variances of a correlation matrix up to which its diagonal will do


class Gibbs:
    """Sweeps over all variables, colour by colour; groups: `sweep.colours`."""

    acceptance: float | None = None

    def __init__(
        self, basis: MonomialBasis, theta: np.ndarray, names: Sequence[str], groups: Sequence[Sequence[int]]
    ) -> None:
        self.basis, self.names, self._groups = basis, names, groups
        self.move(theta)

    def move(self, theta: np.ndarray) -> None:
        """Take other parameters, with nodes as they are."""
        self.theta, like = theta, np.empty(0)
        self.groups = [
            (np.array(group), thin(scatter(self.basis, group, local_parameters(self.basis, theta, group), like)))
            for group in self._groups
        ]

    def tune(self, X: np.ndarray) -> None:
        """Nodes: their range from that of the chains, their spacing from the widths of conditional densities."""
        some = X[:, :: max(X.shape[1] // _LOOK, 1)]
        H, widths = cofactor_matrix(self.basis, some), np.empty(some.shape)
        low, high = X.min(axis=1), X.max(axis=1)
        for group, C in self.groups:
            a = conditional_coefficients(C, H)
            found = univariate.integrate(a.reshape(len(a), -1), moments=2, tol=1e-4)
            if found.missing.size:
                raise NotExactError(
                    f"the density of {self.names[group[found.missing[0] // some.shape[1]]]} given the other variables "
                    "does not exist, or is too narrow for double precision"
                )
            widths[group] = np.sqrt(found.central[1] - found.central[0] * found.central[0]).reshape(len(group), -1)
            share = np.full(found.central.shape[1], _EDGE)  # where a variable may go, not only where it has been
            ends = [univariate.quantile(a.reshape(len(a), -1), u).reshape(len(group), -1) for u in (share, 1 - share)]
            low[group] = np.minimum(low[group], ends[0].min(axis=1))
            high[group] = np.maximum(high[group], ends[1].max(axis=1))
        margin = _MARGIN * (high - low)
        self.reach(low - margin, high + margin, _FINE * np.quantile(widths, 0.25, axis=1))

    def reach(self, low: np.ndarray, high: np.ndarray, fine: np.ndarray) -> None:
        """Nodes from low to high, spaced by `fine` or, if there were too many, by more; all: (p,)."""
        n = int(np.clip(np.ceil(np.max((high - low) / fine)), _FEWEST, _MOST))
        self.middle, self.h, self.fine = (low + high) / 2, (high - low) / n, fine
        self.far = np.maximum(np.abs(low), np.abs(high))
        k = np.arange(n) - n // 2
        self.nodes = np.vander(k, self.basis.degree + 1, increasing=True).astype(np.float64)
        self.kinds = [precision(sizes(self.basis, self.theta, self.far)[group].max()) for group, _ in self.groups]

    def step(self, X: np.ndarray, rng: np.random.Generator, learn: bool = False) -> None:
        """One sweep; learn: whether ranges that turn out too short are widened."""
        n, K = X.shape[1], len(self.nodes)
        rows = max(_CELLS // (K * n), 1)
        room = np.empty(K * n * min(rows, len(X)))
        short = np.zeros(len(X), bool)
        for (group, C), kind in zip(self.groups, self.kinds, strict=True):
            a = conditional_coefficients(C, cofactor_matrix(self.basis, X))
            V = self.nodes.astype(kind)
            h = (self.h[group] * rng.uniform(1.0, _STRETCH, len(group)))[:, None]
            for first in range(0, len(group), rows):
                part, step = group[first : first + rows], h[first : first + rows]
                x = X[part]
                back = np.rint((self.middle[part, None] - x) / step)  # to the node in the middle
                centre = x + step * back
                u = np.maximum(rng.random(x.size, np.float32), TINY)
                own = a[:, first : first + rows].reshape(len(a), -1)
                q = about(own.astype(kind, copy=False), x.ravel().astype(kind), centre.ravel().astype(kind))
                size = np.repeat(step.astype(kind), n)
                unit = size.copy()
                for l in range(1, len(q)):
                    q[l] *= unit
                    unit *= size
                at, sums = choose(V, q, u, room)
                edge = sums[0] + (sums[-1] - sums[-2]) > _EDGE * sums[-1]
                short[part] = edge.reshape(x.shape).any(axis=1)
                inside = (back >= K // 2 - K + 1) & (back <= K // 2)  # others would not find back to where they are
                X[part] = np.where(inside, centre + step * (at.reshape(x.shape) - float(K // 2)), x)
                short[part] |= ~inside.all(axis=1)
        if learn and short.any():
            half = self.h * K / 2 * np.where(short, 1.2, 1.0)
            self.reach(self.middle - half, self.middle + half, self.fine)


class Hamiltonian:
    """Trajectories of about `length` leapfrog steps."""

    def __init__(self, basis: MonomialBasis, theta: np.ndarray, length: int) -> None:
        self.basis, self.theta, self.length = basis, theta, length
        like = np.empty(0)
        self.slopes, self.first = of_slopes(basis, theta, like), of_first(basis, theta, like)
        self.acceptance: float | None = None
        self._restart(0.5)

    def _restart(self, size: float) -> None:
        """Dual averaging (Hoffman and Gelman, 2014) of the log of the step size, from here."""
        self.size, self._anchor, self._error, self._mean, self._count = size, np.log(3 * size), 0.0, np.log(size), 0

    def tune(self, X: np.ndarray) -> None:
        """The metric: the covariance of the chains, or its diagonal where that is enough or all that they tell."""
        scale = np.maximum(X.std(axis=1), 1e-300)[:, None]
        self._by: np.ufunc = np.multiply
        self.metric, self.root, self.half = scale * scale, scale, 1 / scale
        p, n = X.shape
        if 1 < p <= _DENSE and n > 2 * p:
            Z = (X - X.mean(axis=1, keepdims=True)) / scale
            shrink = p / n
            correlation = (1 - shrink) * (Z @ Z.T) / n + shrink * np.eye(p)
            value, vector = np.linalg.eigh(correlation)
            if value[-1] > _STRAIGHT * value[0]:
                self._by = np.matmul
                self.metric = correlation * scale * scale.T
                self.root = scale * (vector * np.sqrt(value)) @ vector.T
                self.half = (vector / np.sqrt(value)) @ vector.T / scale.T
        rough = sizes(self.basis, self.theta, np.abs(X).max(axis=1)).max() > _ROUGH
        self.forces = self.slopes if rough else single(self.slopes)
        self._restart(self.size)

    def step(self, X: np.ndarray, rng: np.random.Generator, learn: bool = False) -> None:
        """One trajectory of each chain, in x and w = size · Σ r; learn: whether the step size is adapted.

        Forces may be in single precision: a step that adds to w what depends on x alone, and then to x what depends on
        w alone, can be reversed and keeps volumes whatever is added, and energies, in double precision, decide.
        """
        z = rng.standard_normal(X.shape)
        size = self.size * rng.uniform(0.8, 1.2)
        length = max(round(self.length * rng.uniform(0.5, 1.5)), 1)
        before = energy(self.basis, self.theta, X, self.first) + 0.5 * np.einsum("ij,ij->j", z, z)
        kind = self.forces.first.dtype
        force = (self.metric * (size * size)).astype(kind)
        Y, w = X.copy(), self._by(self.root * size, z)
        with np.errstate(over="ignore", invalid="ignore"):  # a trajectory that flies off is not taken
            for k in range(length + 1):
                push = gradient(self.basis, self.theta, Y.astype(kind), self.forces)
                push = self._by(force if 0 < k < length else force / 2, push)
                w -= push
                if k < length:
                    Y += w
            z = self._by(self.half / size, w)
            after = energy(self.basis, self.theta, Y, self.first) + 0.5 * np.einsum("ij,ij->j", z, z)
            chance = np.exp(np.minimum(before - after, 0.0))
        chance[np.isnan(chance)] = 0.0
        np.copyto(X, Y, where=rng.random(X.shape[1]) < chance)
        self.acceptance = float(chance.mean())
        if learn:
            self._adapt(self.acceptance)

    def _adapt(self, acceptance: float) -> None:
        self._count += 1
        k = self._count
        self._error += (_ACCEPT - acceptance - self._error) / (k + 10)
        log_size = self._anchor - np.sqrt(k) / 0.05 * self._error
        self._mean += k**-0.75 * (log_size - self._mean)
        self.size = float(np.exp(log_size))

    def settle(self) -> None:
        """The step size from here on: the mean of those that were tried."""
        self.size = float(np.exp(self._mean))
