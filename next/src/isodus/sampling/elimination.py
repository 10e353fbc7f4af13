"""Exact sums over all nodes of few variables, trees and narrow graphs: one variable is summed out after the other."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..axes import Axis
from .graph import Sets

__all__ = ["Elimination", "can_eliminate", "eliminate", "eliminate_for_draws", "pick_rows"]

Array = np.ndarray
_LARGEST = 5_000_000  # entries of one table: 3 variables on 128 nodes, 2 on 2,048
_ALL = 60_000_000  # entries of all tables
_UNSEEN_GIVEN_ALL = 1e-4  # the same of each variable given all others
_UNSEEN = 1e-6  # expected last coefficients of the conditional masses; sums err by their square
_MOST_ERROR = 1e-2  # of log Z on as many nodes as there may be, by its difference from half as many


class _Plan(NamedTuple):
    order: list[int]
    neighbours: dict[int, tuple[int, ...]]  # of each variable when it is summed out, ascending


class Elimination:
    """Tables P(x_i | neighbours that are still there) on the nodes, and log Z.

    A leading index b stands for rows with coefficients of their own; it has length 1 where all rows share them.
    `error` is that of log Z, where `eliminate` made the tables.
    """

    error = 0.0

    def __init__(self, axes: Sequence[Axis], counts: Sequence[int], plan: _Plan, sets: Sets) -> None:
        self.axes, self.counts, self.plan = axes, counts, plan
        self.nodes = [axis.table(count).nodes for axis, count in zip(axes, counts, strict=True)]
        self.shares: dict[int, Array] = {}
        self._cumulative: dict[int, Array] = {}
        position = {i: at for at, i in enumerate(plan.order)}
        waiting: dict[int, list[tuple[tuple[int, ...], Array]]] = {i: [] for i in plan.order}
        for variables, tensor in sets.items():
            waiting[min(variables, key=position.__getitem__)].append((variables, self._energy(variables, tensor)))
        self.log_Z: Array = np.zeros(1)
        for i in plan.order:
            message = self._sum_out(i, waiting.pop(i))
            if plan.neighbours[i]:
                waiting[min(plan.neighbours[i], key=position.__getitem__)].append((plan.neighbours[i], message))
            else:
                self.log_Z = self.log_Z + message

    def _energy(self, variables: tuple[int, ...], tensor: Array) -> Array:
        """−Σ θ φ … φ on the nodes, (b, N, …, N)."""
        for i in variables:
            tensor = tensor.transpose(0, *range(2, tensor.ndim), 1) @ self.nodes[i].phi.T
        return -tensor

    def _sum_out(self, i: int, tables: list[tuple[tuple[int, ...], Array]]) -> Array:
        """The logarithm of the sum over the nodes of i, (b, N, …) over its neighbours; keeps the shares."""
        dims = (*self.plan.neighbours[i], i)
        sizes = [len(self.nodes[j].places) for j in dims]
        batch = max((len(table) for _, table in tables), default=1)
        few = self.nodes[i].log_weights
        for variables, table in sorted(tables, key=lambda found: found[1].size):
            few = few + _aligned(table, variables, dims)  # what is added last is the largest
        total = few if few.shape == (batch, *sizes) else np.array(np.broadcast_to(few, (batch, *sizes)))
        top = total.max(axis=-1, keepdims=True)
        total -= top
        np.exp(total, out=total)
        Z = total.sum(axis=-1, keepdims=True)
        total /= Z
        self.shares[i] = total
        return (np.log(Z) + top)[..., 0]

    @cached_property
    def _joint(self) -> dict[int, tuple[Array, Array]]:
        """For each variable P(neighbours), (b, N, …), and its marginal, (b, N), the last summed out first."""
        cliques: dict[int, tuple[tuple[int, ...], Array]] = {}
        position = {i: at for at, i in enumerate(self.plan.order)}
        found: dict[int, tuple[Array, Array]] = {}
        for i in reversed(self.plan.order):
            near = self.plan.neighbours[i]
            before = np.ones(1)
            if near:
                dims, joint = cliques[min(near, key=position.__getitem__)]
                before = joint.sum(axis=tuple(1 + at for at, j in enumerate(dims) if j not in near))
                left = tuple(j for j in dims if j in near)
                before = _aligned(before, left, near)
            joint = before[..., None] * self.shares[i]
            cliques[i] = (*near, i), joint
            found[i] = before, joint.sum(axis=tuple(range(1, joint.ndim - 1)))
        return found

    def marginals(self) -> list[Array]:
        """The mass of each variable on its nodes, (b, N)."""
        found = self._joint
        return [found[i][1] for i in range(len(self.axes))]

    def unseen(self) -> Array:
        """For each variable, the checks of its conditional masses, on average over its neighbours, (p,)."""
        out = np.zeros(len(self.axes))
        for i, (before, _) in self._joint.items():
            check = self.nodes[i].check
            if check.shape[1]:
                worst = np.abs(self.shares[i] @ check).max(axis=-1)
                out[i] = (before * worst).reshape(len(worst), -1).sum(axis=1).max()
        return out

    def functions(self, drawn: Sequence[Array], sizes: Sequence[int] | None = None) -> list[Array]:
        """The functions of each variable at nodes that were drawn, (J, n) each, or the first ones, (size, n) each."""
        sizes = [len(axis.degrees) for axis in self.axes] if sizes is None else sizes
        return [at.phi.T[:size].take(j, axis=1) for at, size, j in zip(self.nodes, sizes, drawn, strict=True)]

    def draw(self, n: int, rng: np.random.Generator) -> list[Array]:
        """The nodes of each variable in n draws, (n,) each; draw b has the coefficients b where there are several."""
        found: dict[int, Array] = {}
        for i in reversed(self.plan.order):
            if i not in self._cumulative:
                self._cumulative[i] = np.cumsum(self.shares[i], axis=-1)
            table = self._cumulative[i]
            row = np.arange(n) if len(table) > 1 else np.zeros(n, int)
            for j in self.plan.neighbours[i]:
                row *= len(self.nodes[j].places)
                row += found[j]
            found[i] = pick_rows(table.reshape(-1, table.shape[-1]), row, rng.random(n))
        return [found[i] for i in range(len(self.axes))]


def eliminate(
    axes: Sequence[Axis], sets: Sets, counts: Sequence[int] | None = None, resolve: bool = True
) -> Elimination | None:
    """The tables, on twice the nodes for variables that are not resolved; None where they would be too large.

    counts: of nodes at first; resolve: False leaves them as they are.
    """
    counts = [axis.smallest for axis in axes] if counts is None else list(counts)
    batch = max((len(tensor) for tensor in sets.values()), default=1)
    while True:
        sizes = [len(axis.table(count).nodes.places) for axis, count in zip(axes, counts, strict=True)]
        plan = _make_plan(sets, sizes, batch)
        if plan is None:
            return None
        tables = Elimination(axes, counts, plan, sets)
        if not resolve:
            return tables
        unseen = tables.unseen()
        coarse = _coarse(axes, counts, unseen, _UNSEEN)
        if not coarse:
            break
        for i in coarse:
            counts[i] *= 2
    if unseen.max() < _UNSEEN:
        return tables
    fewer = [count // 2 if u >= _UNSEEN else count for count, u in zip(counts, unseen, strict=True)]
    half = eliminate(axes, sets, fewer, resolve=False)
    assert half is not None
    tables.error = float(np.abs(tables.log_Z - half.log_Z).max())
    return tables if tables.error < _MOST_ERROR else None


def eliminate_for_draws(axes: Sequence[Axis], sets: Sets, checks: Callable[[Elimination], Array]) -> Elimination | None:
    """Tables whose nodes also resolve each variable given all others, as the sweep off the nodes takes it.

    The nodes of a variable are integrated over once more when others are drawn anew, and what is summed then is as
    narrow as its conditional; its share in the tables may be wide. checks: of the conditionals at draws, (p,).
    """
    tables = eliminate(axes, sets)
    while tables is not None:
        unseen, counts = checks(tables), list(tables.counts)
        coarse = _coarse(axes, counts, unseen, _UNSEEN_GIVEN_ALL)
        if not coarse:
            return tables if unseen.max() < _MOST_ERROR else None
        for i in coarse:
            counts[i] *= 2
        tables = eliminate(axes, sets, counts)
    return None


def _coarse(axes: Sequence[Axis], counts: Sequence[int], unseen: Array, enough: float) -> list[int]:
    """Variables that are not resolved and may have more nodes."""
    return [i for i, axis in enumerate(axes) if not unseen[i] < enough and counts[i] < axis.largest]


def can_eliminate(axes: Sequence[Axis], sets: Sets) -> bool:
    """Whether one row could be summed out."""
    return _make_plan(sets, [len(axis.table(axis.smallest).nodes.places) for axis in axes], 1) is not None


def _make_plan(sets: Sets, sizes: Sequence[int], batch: int) -> _Plan | None:
    """Sums out next what makes the smallest table."""
    near: list[set[int]] = [set() for _ in sizes]
    for variables in sets:
        for i in variables:
            near[i].update(variables)
    for i, others in enumerate(near):
        others.discard(i)

    def entries(i: int) -> int:
        return batch * prod(sizes[j] for j in near[i]) * sizes[i]

    heap = [(entries(i), i) for i in range(len(sizes))]
    heapq.heapify(heap)
    order, neighbours, all_entries = [], {}, 0
    while heap:
        size, i = heapq.heappop(heap)
        if i in neighbours or size != entries(i):
            continue
        all_entries += size
        if size > _LARGEST or all_entries > _ALL:
            return None
        order.append(i)
        neighbours[i] = tuple(sorted(near[i]))
        for j in near[i]:
            near[j].update(near[i])
            near[j] -= {i, j}
        for j in near[i]:
            heapq.heappush(heap, (entries(j), j))
    return _Plan(order, neighbours)


def _aligned(table: Array, variables: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    """A table (b, N, …) over some of the variables in dims, with its indices in their order and 1 elsewhere."""
    there = [j for j in dims if j in variables]
    if variables != tuple(there):
        table = table.transpose(0, *(1 + variables.index(j) for j in there))
    where: Any = (slice(None), *(slice(None) if j in variables else None for j in dims))
    return table[where] if len(there) < len(dims) else table


def pick_rows(cumulative: Array, row: Array, v: Array) -> Array:
    """The first column in the given row of (rows, N) cumulative shares that is at least v, else the last, (n,)."""
    flat, size = cumulative.ravel(), cumulative.shape[1]
    first = row * size
    at = first.copy()
    while size > 1:
        half = size // 2
        at += half * (flat[half - 1 :].take(at) < v)
        size -= half
    return at - first
