"""Gibbs chains on the nodes, one for each draw; how many sweeps they need, and their effective sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from arviz_stats.base import array_stats

from .conditionals import Block, Conditionals

__all__ = ["SWEEPS", "Pilot", "checks", "effective_size", "exact_sweep", "pick_columns", "sweep"]

Array = np.ndarray
Start = Callable[[int, np.random.Generator], list[Array]]
SWEEPS = (30, 64, 512)  # least number of sweeps of a chain; of the pilot at first, and at most
_PILOT = 32  # chains of the pilot
_MEMORY = 10.0  # correlation times in a chain
_COARSE = 1e-4  # check of a conditional mass above which a draw on the nodes is off
_SHARE = 0.01  # of the pilot's rows that may be so before a variable gets twice the nodes
_MOST_NODES = 512
_CELLS = 16_384  # values that are drawn at once


def pick_columns(mass: Array, v: Array) -> Array:
    """In each column of (N, n) masses the first row up to which the share v of the column lies, (n,).

    Sums over some √N rows in turn, then rows of one such part: a cumulative sum of all would take longer than all else.
    """
    N, n = mass.shape
    size = max(1, round(np.sqrt(N)))
    upto, within = _lower(N, size)
    below = upto @ mass
    target = v * below[-1]
    part = (below[:-1] < target).sum(axis=0)
    columns, first = np.arange(n), part * size
    places = np.minimum(first + np.arange(size)[:, None], N - 1)
    inside = within @ mass.ravel().take(places * n + columns)
    before = np.where(part > 0, below[part - 1, columns], 0.0)
    return np.minimum(first + (inside[:-1] + before < target).sum(axis=0), N - 1)


@cache
def _lower(N: int, size: int) -> tuple[Array, Array]:
    """0/1 rows that sum the first size, 2 size, …, N entries, and those that sum the first 1, 2, …, size."""
    ends = np.append(np.arange(size, N, size), N)
    return (np.arange(N) < ends[:, None]).astype(float), np.tril(np.ones((size, size)))


def sweep(block: Block, counts: Sequence[int], rng: np.random.Generator, see: Callable[[int, Array], object]) -> None:
    """Each variable once from its conditional on the nodes; see(i, mass) is called with the masses, (N, n)."""
    for i, (axis, count) in enumerate(zip(block.conditionals.terms.axes, counts, strict=True)):
        mass, _ = axis.mass(block.a(i), count)
        see(i, mass)
        v: Array = np.asarray(rng.random(block.n))
        block.set(i, axis.table(count).nodes.phi.T.take(pick_columns(mass, v), axis=1))


def exact_sweep(
    block: Block,
    rng: np.random.Generator,
    variables: Sequence[int],
    nodes: Sequence[Array] | None = None,
    counts: Sequence[int] | None = None,
) -> Array:
    """Values off the grid, each variable from its exact conditional, (n, variables), column by column in memory.

    Variables that share no term and have one axis are drawn at once.

    nodes: of each variable of the block, (n,) each, where they were drawn from exact sums over `counts` nodes.
    """
    axes, colours, n = block.conditionals.terms.axes, block.conditionals.colours, block.n
    place, alike = {i: k for k, i in enumerate(variables)}, dict[tuple[int, int, int], list[int]]()
    for i in variables:
        alike.setdefault((colours[i], id(axes[i]), counts[i] if counts else 0), []).append(i)
    out, most = np.empty((len(variables), n)), max(1, _CELLS // max(n, 1))
    for (_, _, count), group in alike.items():
        axis = axes[group[0]]
        for first in range(0, len(group), most):
            some = group[first : first + most]
            a = np.concatenate([block.a(i) for i in some])
            if nodes is None or axis.draw_near is None:
                x = axis.draw(a, rng)
            else:
                x = axis.draw_near(a, np.concatenate([nodes[i] for i in some]), count, rng)
            block.move(some, x)
            out[[place[i] for i in some]] = x.reshape(len(some), n)
    return out.T


def checks(block: Block, variables: Sequence[int], counts: Sequence[int]) -> Array:
    """The checks of the masses of variables given all others, on average over rows, (variables,)."""
    out = np.zeros(len(variables))
    for k, (i, count) in enumerate(zip(variables, counts, strict=True)):
        axis = block.conditionals.terms.axes[i]
        check = axis.table(count).nodes.check
        if check.shape[1]:
            mass, _ = axis.mass(block.a(i), count)
            out[k] = np.mean(np.abs(check.T @ mass).max(axis=0) / mass.sum(axis=0))
    return out


def effective_size(traces: Array) -> Array:
    """Effective sample sizes by arviz-stats of (sweeps, variables, chains), (variables,); all where nothing moves."""
    sweeps, variables, chains = traces.shape
    out = np.full(variables, float(sweeps * chains))
    moving = np.flatnonzero(np.ptp(traces, axis=(0, 2)) > 0)
    if len(moving):
        out[moving] = array_stats.ess(traces[:, moving].transpose(2, 0, 1), chain_axis=0, draw_axis=1)
    return out


class Pilot:
    """Some chains run ahead: the nodes that conditionals take, and how many sweeps forget the start."""

    def __init__(
        self,
        conditionals: Conditionals,
        start: Callable[[int, np.random.Generator], list[Array]],
        rng: np.random.Generator,
    ) -> None:
        axes = conditionals.terms.axes
        self.counts = [axis.smallest for axis in axes]
        block, coarse = Block(conditionals, start(_PILOT, rng)), np.zeros(len(axes))

        def see(i: int, mass: Array) -> None:
            check = axes[i].table(self.counts[i]).nodes.check
            if check.shape[1]:
                coarse[i] += np.mean(np.abs(check.T @ mass).max(axis=0) > _COARSE * mass.sum(axis=0))

        traces: list[Array] = []
        total = SWEEPS[1]
        while len(traces) < total:
            coarse[:] = 0
            for _ in range(8):
                sweep(block, self.counts, rng, see)
                traces.append(np.stack([values[0] for values in block.phi]))
            for i in np.flatnonzero(coarse > 8 * _SHARE):
                if 2 * self.counts[i] <= min(axes[i].largest, _MOST_NODES):
                    self.counts[i] *= 2
            if len(traces) == total:
                kept = np.stack(traces[total // 4 :])
                time = kept.shape[0] * kept.shape[2] / effective_size(kept).min()
                if _MEMORY * time > total and total < SWEEPS[2]:
                    total *= 2
        self.coarse = coarse > 8 * _SHARE
        """Which variables have conditionals that their nodes do not resolve."""
        self.n_sweeps = int(np.clip(np.ceil(_MEMORY * time), SWEEPS[0], SWEEPS[2]))
