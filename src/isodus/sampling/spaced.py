"""Exact sums and draws where variables do not all live on the line: nodes with weights, of every variable.

Among a few values the nodes are those values, and sums over them are exact. Elsewhere they are those of a rule for
integrals (`univariate.table`), with more and more panels until log Z agrees; samples are drawn on the nodes and then
once more, variable by variable, from their exact conditionals, as in `grid`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..basis import MonomialBasis
from ..spaces import Space, powers
from ..univariate.table import NOTHING, nodes_of, open_ends
from . import tree
from .grid import Grid, check_rounding, check_size, fits
from .sweep import Conditionals, NotExactError, sweep

__all__ = ["find", "redraw"]

_FIRST, _MOST = 1, 256  # panels: at first, where x has bounds; at most
_UNBOUNDED = 8  # times as many where it has none: most of them lie far out
_DRAWS = 64  # samples at which rounding is looked at
_CANCELS = 1e-3  # of rounding in the energy
_RARE = 1e-18  # the probability of a node that sums can do without
_CLOSE = 1e-6  # of two sums; to double the nodes squares the error, so that the second has less than 1e-10


def find(basis: MonomialBasis, theta: np.ndarray, names: Sequence[str]) -> Grid:
    """The nodes of an energy of interacting variables, fine enough that log Z does not change with more."""
    assert basis.spaces is not None
    conditionals, panels, before = Conditionals(basis, theta), _FIRST, np.nan
    inside: list[tuple[float, float]] = [(-np.inf, np.inf)] * len(basis.spaces)
    discrete = all(space.support.values is not None for space in basis.spaces)
    while True:
        ends = zip(basis.spaces, inside, strict=True)
        nodes: list[tree.Nodes] = [_nodes(space, basis.degree, panels, *both) for space, both in ends]
        steps = tree.plan(basis, theta, [tree.size(g) for g in nodes])
        check_size(steps, nodes, names)
        log_z, messages = tree.log_sum(steps, nodes)
        if not np.isfinite(log_z):
            raise NotExactError(f"the density of {', '.join(names[:6])} has no finite sum")
        if discrete or abs(log_z - before) <= _CLOSE * np.sqrt(len(nodes)):
            found = Grid(nodes, steps, messages, log_z, conditionals)
            if not basis.featured:
                check_rounding(basis, theta, _some(found), names, _CANCELS)
            return found
        single = tree.marginals(steps, nodes, messages)
        _check_ends(basis.spaces, inside, single, names)
        inside = _where(basis.spaces, nodes, single)
        panels, before = 2 * panels, log_z
        if panels > _MOST or not fits(steps, nodes):
            raise NotExactError(f"no nodes were found that are fine enough for the density of {', '.join(names[:6])}")


def _some(found: Grid) -> np.ndarray:
    """A few samples on the nodes, (p, n)."""
    at = tree.draw(found.steps, found.nodes, found.messages, _DRAWS, np.random.default_rng(0))
    return np.stack([g.x[k] for g, k in zip(found.nodes, at, strict=True)])  # type: ignore[union-attr]


def _nodes(space: Space, s: int, panels: int, low: float, high: float) -> tree.Weighted:
    many = 1 if space.support.values is not None else panels * (1 if space.support.bounded else _UNBOUNDED)
    found = nodes_of(space.support, space.functions or powers, s, many)
    some = np.isfinite(found.log_weight) & (found.x >= low) & (found.x <= high)
    return tree.Weighted(found.x[some], found.phi[:, some], found.log_weight[some])


def _check_ends(
    spaces: Sequence[Space], inside: Sequence[tuple[float, float]], single: dict[int, np.ndarray], names: Sequence[str]
) -> None:
    """An error where a variable has probability at its last node before infinity, or before an end that is no value."""
    for v, (space, ends) in enumerate(zip(spaces, inside, strict=True)):
        left = [share for share, end in zip(single[v][[0, -1]], ends, strict=True) if np.isinf(end)]
        if open_ends(space.support, space.functions) and max(left, default=0.0) > NOTHING:
            raise ValueError(
                f"the model is no probability distribution: the sum over {', '.join(names[:6])} is largest where "
                f"{names[v]} is as far out as numbers go. Change the terms that hold it"
            )


def _where(
    spaces: Sequence[Space], nodes: Sequence[tree.Nodes], single: dict[int, np.ndarray]
) -> list[tuple[float, float]]:
    """Where every variable is, with a node to spare on either side; its probability elsewhere is none."""
    out = []
    for v, (space, g) in enumerate(zip(spaces, nodes, strict=True)):
        assert isinstance(g, tree.Weighted)
        at = np.flatnonzero(single[v] > _RARE)
        if space.support.values is not None or space.support.bounded or not len(at):
            out.append((-np.inf, np.inf))
            continue
        first, last = max(at[0] - 2, 0), min(at[-1] + 2, len(g.x) - 1)
        out.append((float(g.x[first]) if at[0] > 1 else -np.inf, float(g.x[last]) if at[-1] < len(g.x) - 2 else np.inf))
    return out


def redraw(found: Grid, Y: np.ndarray, rng: np.random.Generator) -> None:
    """One sweep over the variables of Y, (p, n), in place, that have more values than there are nodes."""
    spaces = found.conditionals.spaces
    groups = [[i] for i, space in enumerate(spaces) if space.support.values is None]
    sweep(found.conditionals, groups, [f"variable {i}" for i in range(len(spaces))], Y, rng, 1.0)
