"""New samples from an energy, and its normalisation: exact, group by group of interacting variables.

A group with terms up to degree 2 is a Gaussian. Any other is summed over on a grid (`grid`, `tree`); samples are drawn
on its nodes and then once more from their exact conditionals (`sweep`). On the nodes a sum over one variable has the
value of the integral, so a draw of x_i given grid values of the others has the density that it should have, and so,
one after the other, have all. What is left are the errors of sums over the grid: biases of 1e-6 standard deviations
(measured, for moments up to the fourth, in tests/test_sampling.py), where a million samples have errors of 1e-3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .. import univariate
from ..arrays import one_blas_thread
from ..basis import MonomialBasis
from . import annealing, gaussian, grid, tree
from .grid import Grid
from .sweep import NotExactError, redraw

__all__ = [
    "Group",
    "NotExactError",
    "components",
    "draw",
    "estimate_log_partition",
    "log_partition",
    "prepare",
    "restrict",
]

_CELLS = 1 << 18  # of samples and nodes at a time: few enough for the cache, many enough for two threads
_LONG = 2000  # nodes of a single variable from which its quantiles are quicker


class Group(NamedTuple):
    """Interacting variables, their energy, and, unless it is quadratic, how it is summed over."""

    variables: np.ndarray
    basis: MonomialBasis
    theta: np.ndarray
    grid: Grid | None = None


def components(basis: MonomialBasis, theta: np.ndarray) -> list[np.ndarray]:
    """Groups of variables that do not interact with one another, each as sorted indices."""
    factors = basis.factors[(theta != 0) & (basis.orders > 1)]
    first = np.repeat(factors[:, :1], factors.shape[1], axis=1)
    linked = factors >= 0
    edges = (np.ones(linked.sum()), (first[linked], factors[linked]))
    p = basis.n_variables
    _, label = connected_components(coo_array(edges, shape=(p, p)), directed=False)
    return np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])


def restrict(basis: MonomialBasis, theta: np.ndarray, variables: np.ndarray) -> tuple[MonomialBasis, np.ndarray]:
    """The non-zero terms of one group of variables, as an energy of its own."""
    place = {int(v): k for k, v in enumerate(variables)}
    here = np.flatnonzero((theta != 0) & np.isin(basis.factors[:, 0], variables))
    terms = [tuple(place[v] for v in row if v >= 0) for row in basis.factors[here].tolist()]
    part = MonomialBasis(len(variables), terms=terms)
    values = dict(zip(terms, theta[here], strict=True))
    return part, np.array([values[term] for term in part.terms])


def prepare(basis: MonomialBasis, theta: np.ndarray, names: Sequence[str]) -> list[Group]:
    """What exact sampling and normalisation need of an energy; NotExactError where it would be too large."""
    with one_blas_thread():
        return [_summed(group, names) for group in _split(basis, theta, names)]


def _split(basis: MonomialBasis, theta: np.ndarray, names: Sequence[str]) -> list[Group]:
    unused = sorted(set(range(basis.n_variables)) - set(basis.factors[theta != 0].ravel().tolist()))
    if unused:
        raise ValueError(f"no term contains {names[unused[0]]}: its density is flat and does not exist")
    return [Group(variables, *restrict(basis, theta, variables)) for variables in components(basis, theta)]


def _summed(group: Group, names: Sequence[str]) -> Group:
    if group.basis.degree <= 2:
        return group
    return group._replace(grid=grid.find(group.basis, group.theta, [names[v] for v in group.variables]))


def log_partition(groups: Sequence[Group]) -> float:
    """log ∫ exp(−E(x)) dx; the error is about 1e-7 times the root of the number of variables."""
    return sum(gaussian.log_z(g.basis, g.theta) if g.grid is None else g.grid.log_z for g in groups)


def estimate_log_partition(
    basis: MonomialBasis, theta: np.ndarray, names: Sequence[str], rng: np.random.Generator
) -> tuple[float, float]:
    """log ∫ exp(−E(x)) dx and its standard error: groups that have no exact sum by annealed importance sampling."""
    total, variance = 0.0, 0.0
    with one_blas_thread():
        for group in _split(basis, theta, names):
            try:
                total += log_partition([_summed(group, names)])
            except NotExactError:
                called = [names[v] for v in group.variables]
                value, error = annealing.log_partition(group.basis, group.theta, called, rng)
                total, variance = total + value, variance + error**2
    return total, float(np.sqrt(variance))


def draw(
    groups: Sequence[Group], n: int, rng: np.random.Generator, location: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """n independent samples of location + scale·y, shape (n, p), y of density ∝ exp(−E)."""
    out = np.empty((n, sum(len(group.variables) for group in groups)))
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:

        def each(function: Callable, blocks: Sequence) -> Iterable:
            if len(blocks) < 2:
                return map(function, blocks)
            shares = [blocks[k::threads] for k in range(min(threads, len(blocks)))]
            return pool.map(lambda share: [function(block) for block in share], shares)

        for group in groups:
            to = slice(None) if len(groups) == 1 else group.variables
            to_units = _Units(location[group.variables, None], scale[group.variables, None])

            def put(rows: slice, Y: np.ndarray, to: slice | np.ndarray = to, units: _Units = to_units) -> None:
                Y *= units.scale
                Y += units.location
                out[rows, to] = Y.T

            if group.grid is None:
                put(slice(0, n), gaussian.draw(group.basis, group.theta, n, rng))
            else:
                _draw_on_grid(group.grid, n, rng, each, put)
    return out


class _Units(NamedTuple):
    location: np.ndarray
    scale: np.ndarray


def _draw_on_grid(
    found: Grid, n: int, rng: np.random.Generator, each: Callable, put: Callable[[slice, np.ndarray], None]
) -> None:
    """n samples of one group, handed to `put` as (rows, values (q, rows)), block by block.

    Every block has a generator of its own, so that the samples do not depend on the number of threads.
    """
    nodes, conditionals = found.nodes, found.conditionals
    longest = max(map(len, nodes))
    if len(nodes) == 1 and longest > _LONG:
        a = np.repeat(conditionals.coefficients(0, np.zeros((1, 1))), n, axis=1)
        put(slice(0, n), univariate.draw(a, rng)[None, :])
        return
    rows = int(np.clip(_CELLS // longest, 64, 16384))
    starts = range(0, n, rows)
    seeds = np.random.SeedSequence(rng.integers(2**32, size=4).tolist()).spawn(len(starts))
    blocks = [(slice(k, min(k + rows, n)), np.random.default_rng(seed)) for k, seed in zip(starts, seeds, strict=True)]
    at = tree.draw(found.steps, nodes, found.messages, blocks, each)

    def sweep(block: tuple[slice, np.random.Generator]) -> None:
        columns, own = block
        Y = np.stack([g[k] for g, k in zip(nodes, at[:, columns], strict=True)])
        redraw(conditionals, nodes, Y, own)
        put(columns, Y)

    for _ in each(sweep, blocks):
        pass
