"""Sums over all variables of an energy on a grid, one variable after another: log Z, marginals, exact draws.

To eliminate x_i is to sum exp(−E) over its nodes, where E holds the terms with x_i that are left and what earlier
sums have become; a *message* over the variables that x_i then has beside it, its parents, takes their place. In the
opposite order every variable is drawn given its parents. The tables have a cell for every combination of nodes of a
variable and its parents: as many as the junction tree's cliques have, with the same cliques.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from ..basis import MonomialBasis

__all__ = ["Nodes", "Part", "Place", "Step", "Weighted", "cells", "draw", "log_sum", "marginals", "plan", "size"]


_AT_ONCE = 4096  # samples, few enough to stay in cache


class Weighted(NamedTuple):
    """Nodes of a variable with weights and functions of their own: x (m,), φ_l there (s, m), logs of weights (m,)."""

    x: np.ndarray
    phi: np.ndarray
    log_weight: np.ndarray


Nodes = np.ndarray | Weighted


def size(nodes: Nodes) -> int:
    """How many nodes."""
    return len(nodes.x) if isinstance(nodes, Weighted) else len(nodes)


class Place(NamedTuple):
    """How an array over some variables broadcasts over a table: the order of its axes, and where new ones go."""

    order: tuple[int, ...]
    where: tuple[slice | None, ...]

    @classmethod
    def of(cls, variables: Sequence[int], axes: Sequence[int]) -> Place:
        """The place of an array over `variables` in a table over `axes`."""
        order = sorted(range(len(variables)), key=lambda k: axes.index(variables[k]))
        return cls(tuple(order), tuple(slice(None) if v in variables else None for v in axes))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """The array, as it broadcasts over the table."""
        return values.transpose(self.order)[self.where]


class Part(NamedTuple):
    """The terms of a step over one set of variables: their θ and powers."""

    variables: tuple[int, ...]
    terms: tuple[tuple[float, tuple[int, ...]], ...]
    place: Place


class Step(NamedTuple):
    """The elimination of one variable.

    parents: variables, those eliminated first come first; children: earlier steps whose message is over variables of
    this one.
    """

    variable: int
    parents: tuple[int, ...]
    parts: tuple[Part, ...]
    children: tuple[tuple[int, Place], ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """The variables of its table, its own last."""
        return (*self.parents, self.variable)


def plan(basis: MonomialBasis, theta: np.ndarray, sizes: Sequence[int]) -> list[Step]:
    """An order of elimination, always of the variable with the smallest table; sizes: (p,) nodes of every variable."""
    terms = [(tuple(dict.fromkeys(term)), term, float(value)) for term, value in zip(basis.terms, theta, strict=True)]
    order, parents = _order(basis.n_variables, [v for v, _, value in terms if value != 0], sizes)
    rank = {v: k for k, v in enumerate(order)}
    parts: list[dict[tuple[int, ...], list[tuple[float, tuple[int, ...]]]]] = [{} for _ in order]
    for variables, term, value in terms:
        if value != 0:
            at = parts[min(rank[v] for v in variables)]
            at.setdefault(variables, []).append((value, tuple(term.count(v) for v in variables)))
    above = [tuple(sorted(parents[v], key=rank.__getitem__)) for v in order]
    axes = [(*found, v) for found, v in zip(above, order, strict=True)]
    children: list[list[tuple[int, Place]]] = [[] for _ in order]
    for k, found in enumerate(above):
        if found:
            to = rank[found[0]]
            children[to].append((k, Place.of(found, axes[to])))
    frozen = [
        tuple(Part(v, tuple(these), Place.of(v, axes[k])) for v, these in part.items()) for k, part in enumerate(parts)
    ]
    return [Step(*step) for step in zip(order, above, frozen, map(tuple, children), strict=True)]


def _order(p: int, together: list[tuple[int, ...]], sizes: Sequence[int]) -> tuple[list[int], list[set[int]]]:
    """Which variable goes when, and the variables that each has beside it then: of two greedy orders the better."""

    def table(v: int, near: list[set[int]]) -> float:
        return sizes[v] * prod(float(sizes[u]) for u in near[v])

    def links(v: int, near: list[set[int]]) -> float:
        """How many pairs of its neighbours become neighbours."""
        return len(near[v]) * (len(near[v]) - 1) - sum(len(near[u] & near[v]) for u in near[v])

    found = [_greedy(p, together, cost) for cost in (table, links)]
    return min(found, key=lambda order: sum(table(v, order[1]) for v in order[0]))


def _greedy(
    p: int, together: list[tuple[int, ...]], cost: Callable[[int, list[set[int]]], float]
) -> tuple[list[int], list[set[int]]]:
    """Always the variable with the least cost."""
    near: list[set[int]] = [set() for _ in range(p)]
    for variables in together:
        for v in variables:
            near[v].update(variables)
    for v in range(p):
        near[v].discard(v)
    costs = [cost(v, near) for v in range(p)]
    queue, order, gone = [(costs[v], v) for v in range(p)], [], [False] * p
    heapq.heapify(queue)
    while queue:
        least, v = heapq.heappop(queue)
        if gone[v] or least != costs[v]:
            continue
        order.append(v)
        gone[v] = True
        for u in near[v]:
            near[u] |= near[v]
            near[u] -= {u, v}
        for u in near[v].union(*(near[u] for u in near[v])):
            costs[u] = cost(u, near)
            heapq.heappush(queue, (costs[u], u))
    return order, near


def cells(steps: Sequence[Step], sizes: Sequence[int]) -> tuple[int, int, int]:
    """Of the largest table, its step; its cells; and the cells of all messages, which are kept."""
    tables = [prod(sizes[v] for v in step.axes) for step in steps]
    largest = int(np.argmax([float(many) for many in tables]))
    kept = sum(many // sizes[step.variable] for many, step in zip(tables, steps, strict=True))
    return largest, tables[largest], kept


def log_sum(steps: Sequence[Step], nodes: Sequence[Nodes]) -> tuple[float, list[np.ndarray]]:
    """log Σ exp(−E) over all nodes, and the messages: of step k, over its parents."""
    total = 0.0
    messages: list[np.ndarray] = []
    for step in steps:
        table = _table(step, nodes, messages)
        top = table.max(axis=-1, keepdims=True)
        np.exp(np.subtract(table, top, out=table), out=table)
        message = np.log(table.sum(axis=-1)) + top[..., 0]
        if not step.parents:
            total += float(message)
        messages.append(message)
    return total, messages


def _table(step: Step, nodes: Sequence[Nodes], messages: Sequence[np.ndarray]) -> np.ndarray:
    """log of what is summed over the step's variable, on the nodes of its parents and, last, its own."""
    table = np.zeros([size(nodes[v]) for v in step.axes])
    own = nodes[step.variable]
    if isinstance(own, Weighted):
        table += own.log_weight
    for part in step.parts:
        table -= part.place.spread(reduce(np.add, (_term(nodes, part.variables, *term) for term in part.terms)))
    for child, place in step.children:
        table += place.spread(messages[child])
    return table


def _term(nodes: Sequence[Nodes], variables: Sequence[int], value: float, powers: Sequence[int]) -> np.ndarray:
    """θ Π_v x_v^{l_v}, or θ Π_v φ_{l_v}(x_v), on all nodes of its variables."""
    out = np.asarray(value)
    for v, l in zip(variables, powers, strict=True):
        out = np.multiply.outer(out, _power(nodes[v], l))
    return out


def _power(nodes: Nodes, l: int) -> np.ndarray:
    """x^l, or φ_l(x), on all nodes of a variable."""
    if isinstance(nodes, Weighted):
        return nodes.phi[l - 1]
    return reduce(np.multiply, [nodes] * l)


def _given_parents(table: np.ndarray) -> np.ndarray:
    """The probabilities of the last axis given the others, in place."""
    np.exp(np.subtract(table, table.max(axis=-1, keepdims=True), out=table), out=table)
    table /= table.sum(axis=-1, keepdims=True)
    return table


def marginals(steps: Sequence[Step], nodes: Sequence[Nodes], messages: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """The probability of every node of every variable."""
    beside: dict[int, np.ndarray] = {}  # of steps not reached yet: the joint probability of their parents
    single = {}
    for k in range(len(steps) - 1, -1, -1):
        step = steps[k]
        joint = _given_parents(_table(step, nodes, messages))
        if step.parents:
            joint *= beside.pop(k)[..., None]
        last = len(step.parents)
        single[step.variable] = joint.sum(axis=tuple(range(last)))
        for child, _ in step.children:
            wanted = [step.axes.index(v) for v in steps[child].parents]
            rest = tuple(a for a in range(last + 1) if a not in wanted)
            beside[child] = joint.sum(axis=rest).transpose(np.argsort(np.argsort(wanted)))
    return single


def draw(
    steps: Sequence[Step], nodes: Sequence[Nodes], messages: Sequence[np.ndarray], n: int, rng: np.random.Generator
) -> np.ndarray:
    """n independent samples, exact on the grid: which node, (p, n)."""
    at = np.empty((len(nodes), n), np.min_scalar_type(max(map(size, nodes))))
    for step in reversed(steps):
        if n < prod(size(nodes[v]) for v in step.parents):
            _draw_few(step, steps, nodes, messages, at, rng)
        else:
            _draw_many(step, nodes, messages, at, rng)
    return at


def _chunks(n: int) -> Iterator[slice]:
    return (slice(first, min(first + _AT_ONCE, n)) for first in range(0, n, _AT_ONCE))


def _uniform(n: int, rng: np.random.Generator) -> np.ndarray:
    """With so few digits a sum with an integer never rounds up; at 0 a node of no probability would be found."""
    return np.maximum(rng.random(n, np.float32), 2.0**-25)


def _draw_many(
    step: Step, nodes: Sequence[Nodes], messages: Sequence[np.ndarray], at: np.ndarray, rng: np.random.Generator
) -> None:
    """A step's variable given its parents, into its row of `at`, (p, n): from the table of all that these can be."""
    table = _given_parents(_table(step, nodes, messages))
    m = table.shape[-1]
    edges = np.minimum(np.cumsum(table.reshape(-1, m), axis=1), 1.0)
    edges[:, -1] = 1.0
    edges = (edges + np.arange(len(edges))[:, None]).ravel()  # sorted: in row r the distribution function, plus r
    start = np.searchsorted(edges, np.arange(len(edges)) / m, side="right")
    for columns in _chunks(at.shape[1]):
        row = np.zeros(columns.stop - columns.start, np.intp)
        for v, many in zip(step.parents, table.shape[:-1], strict=True):
            row = row * many + at[v, columns]
        goal = row + _uniform(len(row), rng)
        found = start[(goal * m).astype(np.intp)]
        later = np.flatnonzero(edges[found] <= goal)
        while later.size:
            found[later] += 1
            later = later[edges[found[later]] <= goal[later]]
        at[step.variable, columns] = found - row * m


def _draw_few(
    step: Step,
    steps: Sequence[Step],
    nodes: Sequence[Nodes],
    messages: Sequence[np.ndarray],
    at: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """The same from the rows of the table that are asked for, where these are fewer."""
    m = size(nodes[step.variable])
    for columns in _chunks(at.shape[1]):
        place = {v: at[v, columns, None] for v in step.parents} | {step.variable: np.arange(m)}
        rows = np.zeros((columns.stop - columns.start, m))
        own = nodes[step.variable]
        if isinstance(own, Weighted):
            rows += own.log_weight
        for part in step.parts:
            for value, powers in part.terms:
                factors = (_power(nodes[v], l)[place[v]] for v, l in zip(part.variables, powers, strict=True))
                rows -= reduce(np.multiply, factors, value)
        for child, _ in step.children:
            rows += messages[child][tuple(place[v] for v in steps[child].parents)]
        edges = np.cumsum(_given_parents(rows), axis=1)
        edges[:, -1] = 1.0
        at[step.variable, columns] = np.argmax(edges > _uniform(len(rows), rng)[:, None], axis=1)
