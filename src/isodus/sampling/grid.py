"""Grids on which a density is summed: equally spaced nodes of every variable, over all of its range.

Sums over such nodes are spectrally accurate where the spacing is below the width of what they sum over and nothing is
left at the ends. Both are looked for, not assumed. A few chains of exact Gibbs steps tell where the density is and how
narrow its conditionals are; then the marginals on the grid itself tell whether it is wide enough, and sums over
grids moved at random whether it is fine enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from .. import univariate
from ..arrays import available_memory
from ..basis import MonomialBasis
from ..energy import cancels, energy
from . import tree
from .sweep import Conditionals, NotExactError, chains

__all__ = ["Grid", "check_rounding", "check_size", "find", "fits"]

_CHAINS, _SWEEPS = 16, 10
_SPACING = 0.7  # of nodes, in widths of a conditional, to begin with
_FINER, _WIDER = 0.85, 0.2
_EDGE = 1e-13  # the probability of a variable's last node that counts as none
_NOTHING = 1e-20
_RARE = 1e-11  # the probability of a node at either end that samples do without
_AGREE, _CLOSE = 3e-6, 1e-7  # log Z on grids moved at random, a root of the number of variables: for samples, for log Z
_CANCELS = 1e-7  # of rounding in the energy
_SHARE = 0.5  # of the free memory that tables may take
_MOST_CELLS = 5e8  # of all tables: about a minute, since they are made a dozen times


class Grid(NamedTuple):
    """nodes: of every variable; steps, messages: how and with what outcome they were summed over; log_z: of exp(−E)."""

    nodes: Sequence[tree.Nodes]
    steps: list[tree.Step]
    messages: list[np.ndarray]
    log_z: float
    conditionals: Conditionals


def find(basis: MonomialBasis, theta: np.ndarray, names: Sequence[str]) -> Grid:
    """The grid of an energy of interacting variables; the same every time.

    The coarsest that is right for samples; log Z is from a finer one, if memory allows.
    """
    rng, conditionals, found = np.random.default_rng(0), Conditionals(basis, theta), None
    low, high, width = _explore(basis, theta, conditionals, names, rng)
    low, high, spacing = _covered(basis, theta, conditionals, names, rng, low, high, _SPACING * width)
    for _ in range(60):
        nodes = _nodes(low, high, spacing)
        steps = tree.plan(basis, theta, [len(g) for g in nodes])
        if found is not None and not fits(steps, nodes):
            return found
        check_size(steps, nodes, names)
        log_z, messages = tree.log_sum(steps, nodes)
        sums, difference = [log_z], 0.0
        while len(sums) < 3 and difference <= _AGREE:
            sums.append(_log_sum_moved(steps, nodes, rng))
            difference = np.ptp(sums) / np.sqrt(len(nodes))
        log_z = float(np.mean(sums) + sum(np.log(g[1] - g[0]) for g in nodes))
        if found is None and difference <= _AGREE:
            found = _trimmed(Grid(nodes, steps, messages, log_z, conditionals))
        if found is not None and difference <= _CLOSE:
            return found._replace(log_z=log_z)
        spacing = spacing * _FINER
    raise NotExactError(f"no grid was found that is fine enough for the density of {_some(names)}")


def _covered(
    basis: MonomialBasis,
    theta: np.ndarray,
    conditionals: Conditionals,
    names: Sequence[str],
    rng: np.random.Generator,
    low: np.ndarray,
    high: np.ndarray,
    spacing: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ranges of all variables, low and high, widened until nothing is left at their ends, and a spacing for them."""
    for _ in range(100):
        nodes = _nodes(low, high, spacing)
        steps = tree.plan(basis, theta, [len(g) for g in nodes])
        check_size(steps, nodes, names)
        log_z, messages = tree.log_sum(steps, nodes)
        if not np.isfinite(log_z):
            raise NotExactError(f"the energy of {_some(names)} is too steep for double precision")
        single = tree.marginals(steps, nodes, messages)
        short = np.array([[single[v][0], single[v][-1]] for v in range(len(nodes))]).T > _EDGE
        if not short.any():
            return low, high, spacing
        # what has no probability beside the rest will not have any in a wider range
        inside = [g[single[v] > _NOTHING] for v, g in enumerate(nodes)]
        first, last = np.array([[g[0], g[-1]] for g in inside]).T
        low, high = first - _WIDER * (last - first) * short[0], last + _WIDER * (last - first) * short[1]
        # where the range is wider than was known, conditionals may be much narrower
        at = tree.draw(steps, nodes, messages, _CHAINS, rng)
        X = np.stack([g[k] for g, k in zip(nodes, at, strict=True)])
        spacing = np.minimum(spacing, 2 * _SPACING * _widths(_coefficients(conditionals, X), len(X)))
    raise NotExactError(f"no range was found that holds the density of {_some(names)}; is it a very thin ridge?")


def _trimmed(whole: Grid) -> Grid:
    """The same without the nodes at the ends that have next to no probability."""
    single = tree.marginals(whole.steps, whole.nodes, whole.messages)
    inside = [np.flatnonzero(single[v] > _RARE) for v in range(len(single))]
    kept = [slice(at[0], at[-1] + 1) for at in inside]
    messages = [
        message[tuple(kept[v] for v in step.parents)] for step, message in zip(whole.steps, whole.messages, strict=True)
    ]
    return whole._replace(nodes=[g[part] for g, part in zip(whole.nodes, kept, strict=True)], messages=messages)


def _log_sum_moved(steps: Sequence[tree.Step], nodes: Sequence[np.ndarray], rng: np.random.Generator) -> float:
    """log Σ exp(−E) over the nodes, those of each variable moved by a random part of their spacing."""
    return tree.log_sum(steps, [g + (rng.random() - 0.5) * (g[1] - g[0]) for g in nodes])[0]


def _nodes(low: np.ndarray, high: np.ndarray, spacing: np.ndarray) -> list[np.ndarray]:
    counts = np.ceil((high - low) / spacing).astype(int) + 1
    return [lo + h * np.arange(max(m, 4)) for lo, h, m in zip(low, spacing, counts, strict=True)]


def _explore(
    basis: MonomialBasis, theta: np.ndarray, conditionals: Conditionals, names: Sequence[str], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A range of every variable, low and high, and its width given the others where that is least; each (p,)."""
    X = chains(basis, theta, conditionals, names, rng, _CHAINS, _SWEEPS)
    check_rounding(basis, theta, X, names, _CANCELS)
    a = _coefficients(conditionals, X)
    low, high = (univariate.quantile(a, np.full(a.shape[1], u)).reshape(len(X), -1) for u in (1e-9, 1 - 1e-9))
    return low.min(axis=1), high.max(axis=1), _widths(a, len(X))


def _coefficients(conditionals: Conditionals, X: np.ndarray) -> np.ndarray:
    """Of the conditional densities of all variables at samples X, (p, n), one variable after the other: (s, p · n)."""
    return np.concatenate([conditionals.coefficients(i, X) for i in range(len(X))], axis=1)


def _widths(a: np.ndarray, p: int) -> np.ndarray:
    """The least width of each variable's conditional densities, (p,); E[q''] is 1/σ² for all wells of width σ."""
    s = len(a)
    moments = np.concatenate([np.ones((1, a.shape[1])), univariate.integrate(a, moments=s - 2).moments])
    curvature = sum(l * (l - 1) * a[l - 1] * moments[l - 2] for l in range(2, s + 1))
    return 1 / np.sqrt(curvature.reshape(p, -1).max(axis=1))


def check_rounding(basis: MonomialBasis, theta: np.ndarray, X: np.ndarray, names: Sequence[str], most: float) -> None:
    """An error where the terms of the energy are so large beside their sum that its rounding is above `most`."""
    size = energy(basis, np.abs(theta), np.abs(X)).max()
    if not size * np.finfo(np.float64).eps <= most:
        raise cancels(f"where the density of {_some(names)} is", size)


def _size(steps: Sequence[tree.Step], nodes: Sequence[tree.Nodes]) -> tuple[float, float]:
    """Bytes of the tables that are in memory at a time, and cells of all tables."""
    sizes = [tree.size(g) for g in nodes]
    _, largest, kept = tree.cells(steps, sizes)
    return 8.0 * (3 * largest + kept), sum(float(prod(sizes[v] for v in step.axes)) for step in steps)


def fits(steps: Sequence[tree.Step], nodes: Sequence[tree.Nodes]) -> bool:
    """Whether the tables fit in memory and do not take too long."""
    need, work = _size(steps, nodes)
    return need <= _SHARE * available_memory() and work <= _MOST_CELLS


def check_size(steps: Sequence[tree.Step], nodes: Sequence[tree.Nodes], names: Sequence[str]) -> None:
    """An error where the tables would not fit in memory or take too long."""
    if not fits(steps, nodes):
        (need, work), free = _size(steps, nodes), _SHARE * available_memory()
        sizes = [tree.size(g) for g in nodes]
        at, largest, _ = tree.cells(steps, sizes)
        axes = steps[at].axes
        raise NotExactError(
            f"exact sums over {_some(names)} need a table with a cell for every combination of values of "
            f"{_some([names[v] for v in axes])}, {' × '.join(str(sizes[v]) for v in axes)} = {largest:.2g} cells: "
            f"{need / 1e9:,.3g} GB, where {free / 1e9:,.3g} GB can be had, and {work:.2g} cells in all, where "
            f"{_MOST_CELLS:.0g} are allowed"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f", … ({len(names)} variables)" if len(names) > 6 else "")
