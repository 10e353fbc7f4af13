"""Which of very many terms a penalty might let in: a list that is short, and a look at all others.

A penalty leaves few terms of a complete basis in the model, and those that are far from entering at the model without
interactions hardly ever do. So the terms with the largest slopes there are listed, everything is solved over them, and
then the slopes by all terms say whether any other would enter. Those join the list, and it is solved again. What is
found is what the whole basis would give, without an array over all its terms on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from .arrays import Array, namespace, on_accelerator, on_device, to_host
from .basis import MonomialBasis
from .nodewise import GramNodes, SampledNodes, TiltedNodes, packed
from .path import LOOSE, Penalized, Start
from .regression import moments_there
from .samples import ArraySamples

__all__ = ["PairSlopes", "Shortlist", "Slopes", "TermSlopes"]

_CELLS = (2e5, 4e7)  # slopes that are looked at together, so that they stay in cache; on an accelerator
_A_NODE = 40  # places of a variable that a list begins with, at most, on average
_SHORT = 0.25  # of all terms, above which a list saves nothing


class Above(NamedTuple):
    """Slopes above a limit: their nodes (N,), terms as rows of factors (N, s), sizes in the unit of λ, and noise."""

    node: np.ndarray
    factors: np.ndarray
    size: np.ndarray
    noise: np.ndarray


class Slopes(Protocol):
    """The slopes by all terms of a basis that have more than one variable, at points of problems over some of them."""

    def largest(self, start: Start, theta: np.ndarray) -> float:
        """The largest, in the unit of λ."""

    def above(self, start: Start, theta: np.ndarray, limit: float) -> Above:
        """Those above a limit, in the unit of λ."""


class PairSlopes:
    """The slopes of pseudo-likelihood at degree 2 by all x_i x_j, from second moments, where the samples lie.

    raw: whether weights are costs themselves, not in units of noise, σ_i σ_j.
    """

    def __init__(self, samples: ArraySamples, raw: bool) -> None:
        self.moments, self.raw = moments_there(samples), raw

    def blocks(self, start: Start, theta: np.ndarray) -> Iterator[tuple[int, Array]]:
        """|slope| in the unit of λ, some nodes at a time: the first of them, (nodes, p); for x_i² it means nothing."""
        M, nodes, p, every = self.moments, start.nodes, len(theta), np.arange(len(theta))
        assert isinstance(nodes, GramNodes)
        xp, inside = namespace(M), theta != 0
        inside[every, nodes.own] = False
        at = packed(inside)
        c = np.where(at >= 0, np.take_along_axis(theta, at, axis=1), 0.0) / (2 * theta[every, nodes.own][:, None])
        columns = np.maximum(np.take_along_axis(nodes.columns, at, axis=1), 0)
        scale = on_device(1 / (np.ones(p) if self.raw else self._noise(nodes)), M)
        step = max(int(_CELLS[on_accelerator(M)] / p), 1)
        for first in range(0, p, step):
            some = slice(first, min(first + step, p))
            slope = xp.abs(M[1 + first : 1 + some.stop, 1:] + _combined(c[some], columns[some], M)[:, 1:])
            slope *= scale[some, None]
            slope *= scale
            yield first, slope

    def largest(self, start: Start, theta: np.ndarray) -> float:
        """The largest, in the unit of λ."""
        most = 0.0
        for first, slope in self.blocks(start, theta):
            xp = namespace(slope)
            slope *= 1 - xp.eye(*slope.shape, k=first, dtype=slope.dtype, device=slope.device)
            most = max(most, float(xp.max(slope)))
        return most

    def above(self, start: Start, theta: np.ndarray, limit: float) -> Above:
        """Those above a limit, in the unit of λ."""
        found, noise, p = [], self._noise(start.nodes), len(theta)
        for first, slope in self.blocks(start, theta):
            xp, flat = namespace(slope), namespace(slope).reshape(slope, (-1,))
            (at,) = xp.nonzero(flat > limit)
            found.append((to_host(at) + first * p, to_host(xp.take(flat, at))))
        at, size = map(np.concatenate, zip(*found, strict=True))
        i, j = np.divmod(at, p)
        i, j, size = i[i != j], j[i != j], size[i != j]
        return Above(i, np.stack([np.minimum(i, j), np.maximum(i, j)], axis=1), size, noise[i] * noise[j])

    @staticmethod
    def _noise(nodes: object) -> np.ndarray:
        assert isinstance(nodes, GramNodes)
        return nodes.deviations(nodes.columns == 0)


def _combined(c: np.ndarray, columns: np.ndarray, M: Array) -> Array:
    """Σ_k c_ik M_k, (q, p + 1), of the rows `columns`, (q, A), of M."""
    if isinstance(M, np.ndarray):
        C = csr_array((c.ravel(), columns.ravel(), np.arange(0, c.size + 1, c.shape[1])), shape=(len(c), len(M)))
        return C @ M
    xp, values, out = namespace(M), on_device(c, M), 0.0
    for k in range(c.shape[1]):
        out = out + values[:, k : k + 1] * xp.take(M, on_device(columns[:, k], M), axis=0)
    return out


class TermSlopes:
    """The slopes of pseudo-likelihood by all terms of a basis of any degree, in a pass over the samples.

    They stand in the places of cofactors (see `energy.Coefficients`), where the samples lie. raw: as in `PairSlopes`.
    """

    def __init__(self, whole: MonomialBasis, raw: bool) -> None:
        self.whole, self.raw = whole, raw
        self._noise: Array = None
        self._last: tuple[np.ndarray, Array] | None = None

    def _sizes(self, start: Start, theta: np.ndarray) -> Array:
        """|slope| in the unit of λ, (p, L)."""
        if self._last is not None and np.array_equal(self._last[0], theta):
            return self._last[1]
        assert isinstance(start.nodes, SampledNodes)
        objective, nodes = start.nodes.objective, range(len(theta))
        # at its pilot the slopes of a tilted objective are those of pseudo-likelihood, and its weights are all 1
        tilt = start.nodes.tilt if isinstance(start.nodes, TiltedNodes) else np.copy
        if self._noise is None:
            tilt(start.empty.theta)
            own, empty = range(self.whole.min_degree - 1, self.whole.degree), _local(objective.basis, start.empty.theta)
            self._noise = objective.noise_by(self.whole, nodes, empty, [0.0] * len(theta), [own] * len(theta))
            self._noise += 1e-300
        tilt(theta)
        slope = objective.slopes_by(self.whole, nodes, _local(objective.basis, theta))
        size = namespace(slope).abs(slope)
        size = size if self.raw else size / self._noise
        self._last = theta.copy(), size
        return size

    def largest(self, start: Start, theta: np.ndarray) -> float:
        """The largest, in the unit of λ."""
        size = self._sizes(start, theta)
        limit = float(namespace(size).max(size))  # of a place that may stand for no term
        while not len(found := self.above(start, theta, limit).size):
            limit /= 1.2
        return float(found.max())

    def above(self, start: Start, theta: np.ndarray, limit: float) -> Above:
        """Those above a limit, in the unit of λ."""
        size = self._sizes(start, theta)
        xp, width, s = namespace(size), size.shape[1], self.whole.degree
        flat = xp.reshape(size, (-1,))
        (at,) = xp.nonzero(flat > limit)
        sizes, noise = to_host(xp.take(flat, at)), to_host(xp.take(xp.reshape(self._noise, (-1,)), at))
        node, place = np.divmod(to_host(at), width)
        rest, m = self.whole.cofactors, (width - len(self.whole.cofactors)) // max(s - 1, 1)
        power = np.where(place < len(rest), 1, 2 + (place - len(rest)) // max(m, 1))
        rest = rest[np.where(place < len(rest), place, (place - len(rest)) % max(m, 1))]
        # rows of x_i^l times a cofactor, in order, with the padding last
        own = np.where(np.arange(s) < power[:, None], node[:, None], -1)
        factors = np.sort(np.concatenate([rest, own], axis=1).astype(np.uint32), axis=1).astype(np.int32)
        there = (factors[:, s:] < 0).all(axis=1) & (factors[:, self.whole.min_degree - 1] >= 0)
        there &= (rest[:, 0] >= 0) & (rest != node[:, None]).all(axis=1)
        return Above(node[there], factors[there, :s], sizes[there], noise[there])


def _local(basis: MonomialBasis, theta: np.ndarray) -> list[np.ndarray]:
    """Parameters in the places of `SampledNodes`, (p, K), node by node."""
    return [row[: len(basis.local(i).terms)] for i, row in enumerate(theta)]


class Shortlist:
    """The terms of a complete basis that are looked at, with all of one variable; `basis` has them.

    raw: whether weights are costs themselves, not in units of noise. alone, theta: the terms of one variable, and what
    they are without penalised terms.
    """

    def __init__(self, whole: MonomialBasis, slopes: Slopes, raw: bool) -> None:
        p = whole.n_variables
        self.whole, self.slopes, self.raw, self.least = whole, slopes, raw, 0.0
        self.basis = self.alone = MonomialBasis.listed(p, _of_one(p, whole.min_degree, whole.degree))
        self.theta = np.zeros(len(self.alone))

    @property
    def elsewhere(self) -> np.ndarray:
        """How many terms that are not on the list contain each variable, (p,)."""
        return self.whole.largest - self.basis.counts

    @property
    def pays(self) -> bool:
        """Whether it is so short that it saves something."""
        return len(self.basis) <= _SHORT * len(self.whole)

    def begin(self, start: Start, l1: float, share: float) -> None:
        """List terms with slopes above a share of the least λ; of very many the largest, and all above λ.

        The largest of all is always there.
        """
        self.least = l1
        there = start.nodes.terms >= 0
        self.theta[start.nodes.terms[there]] = start.empty.theta[there]
        found = self.slopes.above(start, start.empty.theta, share * l1)
        if not len(found.size):
            largest = self.slopes.largest(start, start.empty.theta)
            found = self.slopes.above(start, start.empty.theta, 0.99 * largest)
        most = _A_NODE * self.whole.n_variables
        inside = np.ones(len(found.size), bool)
        if len(inside) > most:
            inside = found.size >= min(np.partition(found.size, -most)[-most], l1)
        self._join(found.factors[inside])

    def grow(self, start: Start, visited: Sequence[Penalized], found: Penalized, tol: float) -> np.ndarray:
        """Take in what would enter, at a λ on the way or at the one that was found.

        By how much terms that were not listed miss the conditions of optimality there, in units of noise, (p,).
        """
        above, missed = self.slopes.above(start, found.theta, found.l1), np.zeros(len(found.theta))
        excess = np.where(self._new(above.factors), above.size - found.l1, 0.0) / (above.noise if self.raw else 1.0)
        np.maximum.at(missed, above.node, excess)
        self._join(above.factors[excess > tol])
        for point in visited:
            above = self.slopes.above(start, point.theta, point.l1 + max(tol, LOOSE * self.least))
            self._join(above.factors[self._new(above.factors)])
        return missed

    def _new(self, factors: np.ndarray) -> np.ndarray:
        return self.basis.positions(self.basis.padded(factors)) < 0

    def _join(self, factors: np.ndarray) -> None:
        if len(factors):
            self.basis = MonomialBasis.listed(self.whole.n_variables, np.concatenate([self.basis.factors, factors]))


def _of_one(p: int, min_degree: int, degree: int) -> np.ndarray:
    """All powers of each variable, as rows of factors."""
    return np.concatenate(
        [np.where(np.arange(degree) < d, np.arange(p)[:, None], -1) for d in range(min_degree, degree + 1)]
    )
