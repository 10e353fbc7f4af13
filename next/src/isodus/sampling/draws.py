"""Draws from the density ∝ exp(−Σ θ_k f_k(x)) Π q_i(x_i)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from .._core.threads import one_blas_thread, ordered_map
from ..axes import Axis
from ..terms import Terms
from .chains import Pilot, checks, effective_size, exact_sweep, sweep
from .conditionals import Block, Conditionals
from .elimination import Elimination, eliminate_for_draws
from .gaussian import Gaussian
from .graph import Component, NoDensity, components, interactions, own_coefficients
from .valleys import low_points
from .windows import exact_tables, on_windows, reaches_end

__all__ = ["Draws", "Method", "draw_component", "sample", "starts"]

Array = np.ndarray
Method = Literal["auto", "exact", "chains"]
Progress = Callable[[float, float], object]
_ROWS = 2048  # at most, in turn, each with a generator of its own: draws do not depend on the number of threads
_EXACT_ROWS = 5120  # the same on the nodes of tables, and then _ROWS of these off the nodes
_TOGETHER = 8  # columns that are written at once: rows of 64 bytes
_AHEAD = 128  # draws at which the nodes are checked
_TRACED, _TRACES, _FEWEST = 64, 128, 8  # chains, and sweeps of their second half, that effective sizes are taken from


class Draws(NamedTuple):
    """Draws, and how they were made.

    Attributes
    ----------
    X : array of shape (n, p)
    method : "exact" or "chains"
        "chains" if some variables were drawn by Gibbs sweeps: each draw is the end of a chain of its own.
    effective : array of shape (p,) or None
        Of the n draws, how many count as independent: n where chains leave their starts, which they have done when
        the second half of a chain has five effective draws by arviz-stats; the number of starts where they stay.
        None where draws are independent by construction.
    unresolved : array of shape (p,)
        Draws of each variable from a conditional whose integrals were not resolved.
    """

    X: Array
    method: Literal["exact", "chains"]
    effective: Array | None
    unresolved: Array


def sample(
    terms: Terms,
    theta: Array,
    n: int,
    rng: np.random.Generator,
    *,
    start: Array | None = None,
    method: Method = "auto",
    n_sweeps: int | None = None,
    n_jobs: int | None = 1,
    progress: Progress = lambda done, total: None,
) -> Draws:
    """n draws of all variables; independent parts of the model are drawn each in its own way.

    One variable is drawn by its quantiles, a Gaussian by its precision matrix. Few variables, trees and narrow graphs
    are summed out exactly on the nodes (`Elimination`); elsewhere each draw is the end of its own Gibbs chain on the
    nodes. In both cases one sweep from exact conditionals off the nodes follows, so that no two draws are tied.

    Parameters
    ----------
    terms : Terms
    theta : array of shape (products,)
        T τ.
    n : int
    rng : numpy Generator
        Its children are used, by `spawn`.
    start : array of shape (rows, p), optional
        Rows on which chains start, drawn at random; without them, each variable starts at a draw from its own terms.
    method : "auto", "exact" or "chains"
        "exact" raises an error where only chains are possible; "chains" uses them for all parts of several variables.
    n_sweeps : int, optional
        Of each chain on the nodes; by default ten correlation times, as some chains that run ahead have them.
    n_jobs : int, optional
    progress : callable
        Called with what is done, and the total.

    Returns
    -------
    Draws

    Examples
    --------
    >>> import numpy as np
    >>> from isodus.axes import WholeLine
    >>> from isodus.terms import Terms
    >>> terms = Terms([WholeLine(0.0, 1.0, 4)] * 2, [(0,) * 4, (1,) * 4, (0, 1)])  # E = x⁴ + y⁴ − 2xy
    >>> draws = sample(terms, terms.T @ np.array([1.0, 1.0, -2.0]), 1000, np.random.default_rng(0))
    >>> draws.X.shape, draws.method
    ((1000, 2), 'exact')
    """
    p = len(terms.axes)
    X, effective, unresolved = np.empty((n, p)), np.full(p, float(n)), np.zeros(p, int)
    chains, parts, done = False, components(terms, theta), 0
    with one_blas_thread():
        for part, child in zip(parts, rng.spawn(len(parts)), strict=True):
            v = part.variables
            here = None if start is None else np.asarray(start, float)[:, v]

            def report(share: float, done: int = done, size: int = len(v)) -> None:
                progress(done + share * size, p)

            drawn, size, unresolved[v] = draw_component(part, n, child, here, method, n_sweeps, n_jobs, report)
            if len(parts) == 1:
                X = drawn  # as it is: a copy takes as long as it took to write
            else:
                X[:, v] = drawn
            if size is not None:
                chains, effective[v] = True, size
            done += len(v)
            progress(done, p)
    return Draws(X, "chains" if chains else "exact", effective if chains else None, unresolved)


def draw_component(
    part: Component,
    n: int,
    rng: np.random.Generator,
    start: Array | None,
    method: Method,
    n_sweeps: int | None = None,
    n_jobs: int | None = 1,
    report: Callable[[float], None] = lambda share: None,
) -> tuple[Array, Array | None, Array | int]:
    """Draws of one component (n, variables), effective sizes if by chains, and what was not resolved."""
    if part.single:
        return _draw_single(part, n, rng)
    if part.gaussian and method != "chains":
        gaussian = Gaussian.of(part)
        return (
            _gathered((gaussian.draw(size, child) for size, child in blocks(n, rng)), n, len(part.variables), report),
            None,
            0,
        )
    wide = {i for i, axis in enumerate(part.terms.axes) if axis.on_window is not None}
    start = low_points(part, rng) if start is None else start
    part = on_windows(part, rng, start)
    tables = None
    if method != "chains":
        part, tables = exact_tables(part, partial(_tables, rng=rng.spawn(1)[0]))
    conditionals = Conditionals(part.terms, part.theta)
    if tables is not None:
        return _draw_exact(tables, conditionals, n, rng, n_jobs, report)
    if method == "exact":
        raise ValueError(
            f"{len(part.variables)} variables depend on each other in ways that cannot be summed out exactly. "
            "Use method='auto', which draws them by Gibbs chains."
        )
    return _draw_chains(conditionals, wide, n, rng, start, n_sweeps, n_jobs, report)


def _tables(part: Component, rng: np.random.Generator) -> Elimination | None:
    """Tables whose nodes also resolve conditionals given all others, at some draws."""
    conditionals = Conditionals(part.terms, part.theta)

    def checked(tables: Elimination) -> Array:
        drawn = Block(conditionals, tables.functions(tables.draw(_AHEAD, rng), conditionals.in_cofactors))
        return checks(drawn, range(len(tables.axes)), tables.counts)

    return eliminate_for_draws(part.terms.axes, interactions(part.terms, part.theta), checked)


def _draw_single(part: Component, n: int, rng: np.random.Generator) -> tuple[Array, None, int]:
    a = own_coefficients(part.terms, part.theta)[0][None]
    if not np.isfinite(part.terms.axes[0].integrals(a, second=False).log_Z[0]):
        raise NoDensity("its integral is infinite")
    axis = on_windows(part, rng, None).terms.axes[0]
    rows = [axis.draw(np.repeat(a, size, axis=0), child) for size, child in blocks(n, rng)]
    return np.concatenate([np.empty(0), *rows])[:, None], None, count_unresolved(axis, a, False) * n


def _draw_exact(
    tables: Elimination,
    conditionals: Conditionals,
    n: int,
    rng: np.random.Generator,
    n_jobs: int | None,
    report: Callable[[float], None],
) -> tuple[Array, None, int]:
    """On the nodes from the tables, then one exact sweep."""
    every = range(len(tables.axes))

    def rows(item: tuple[int, np.random.Generator]) -> Array:
        size, child = item
        drawn, X = tables.draw(size, child), np.empty((len(every), size))
        for first in range(0, size, _ROWS):
            nodes = [j[first : first + _ROWS] for j in drawn]
            block = Block(conditionals, tables.functions(nodes, conditionals.in_cofactors))
            X[:, first : first + _ROWS] = exact_sweep(block, child, every, nodes, tables.counts).T
        return X.T

    return _gathered(ordered_map(rows, blocks(n, rng, _EXACT_ROWS), n_jobs), n, len(every), report), None, 0


def _draw_chains(
    conditionals: Conditionals,
    wide: set[int],
    n: int,
    rng: np.random.Generator,
    start: Array | None,
    n_sweeps: int | None,
    n_jobs: int | None,
    report: Callable[[float], None],
) -> tuple[Array, Array, Array]:
    """Each draw the end of its own chain on the nodes, then one exact sweep."""
    axes = conditionals.terms.axes
    begin = starts(axes, conditionals, start)
    pilot = Pilot(conditionals, begin, rng.spawn(1)[0])
    sweeps = pilot.n_sweeps if n_sweeps is None else n_sweeps
    thin = 1 + sweeps // (2 * _TRACES)

    def rows(item: tuple[int, np.random.Generator]) -> tuple[Array, Array, list[Array]]:
        size, child = item
        block, traces = Block(conditionals, begin(size, child)), list[Array]()
        for k in range(sweeps):
            sweep(block, pilot.counts, child, lambda i, mass: None)
            if k >= sweeps // 2 and (k - sweeps // 2) % thin == 0:
                traces.append(np.stack([values[0, :_TRACED] for values in block.phi]))
        wrong = np.array([count_unresolved(axis, block.a(i), i in wide) for i, axis in enumerate(axes)])
        X = exact_sweep(block, child, range(len(axes)))
        return X, np.where(pilot.coarse, size, wrong), traces

    found: list[tuple[Array, Array, list[Array]]] = []
    for k, result in enumerate(ordered_map(rows, blocks(n, rng), n_jobs)):
        found.append(result if k == 0 else (*result[:2], []))
        report(sum(len(X) for X, _, _ in found) / n)
    X = np.concatenate([X for X, _, _ in found]) if found else np.empty((0, len(axes)))
    wrong = np.sum([wrong for _, wrong, _ in found], axis=0) if found else np.zeros(len(axes), int)
    forgotten = _forgotten(found[0][2], len(axes)) if found else np.ones(len(axes))
    return X, n * forgotten + (1 - forgotten) * min(n, 1 if start is None else len(start)), wrong


def _forgotten(traces: list[Array], p: int) -> Array:
    """How far chains have left their starts, (p,): 1 where the second half of a chain has 5 effective draws, 0 where 1.

    A chain that never moves seems to have one.
    """
    if len(traces) < _FEWEST:
        return np.zeros(p)
    kept = np.stack(traces)
    return np.clip((effective_size(kept) / kept.shape[2] - 1) / 4, 0.0, 1.0)


def count_unresolved(axis: Axis, a: Array, window: bool) -> int:
    """Rows whose integrals are not resolved, are infinite, or reach an end of a window."""
    found = axis.integrals(a, second=False)
    wrong = ~(found.error <= axis.tolerance) | ~np.isfinite(found.log_Z)
    return int(np.sum(wrong | reaches_end(axis, a) if window else wrong))


def starts(
    axes: list[Axis], conditionals: Conditionals, start: Array | None
) -> Callable[[int, np.random.Generator], list[Array]]:
    """Functions (J, n) of each variable at which n chains start: rows at random, else draws from own terms."""
    own = own_coefficients(conditionals.terms, conditionals.theta)

    def begin(n: int, rng: np.random.Generator) -> list[Array]:
        if start is not None:
            rows = start[rng.integers(0, len(start), n)]
            return [np.ascontiguousarray(axis.functions(x).T) for axis, x in zip(axes, rows.T, strict=True)]
        phi = []
        for axis, a in zip(axes, own, strict=True):
            mass = np.cumsum(axis.mass(a[None], axis.smallest)[0][:, 0])
            index = np.minimum(np.searchsorted(mass / mass[-1], rng.random(n)), len(mass) - 1)
            phi.append(axis.table(axis.smallest).nodes.phi.T.take(index, axis=1))
        return phi

    return begin


def _gathered(found: Iterable[Array], n: int, p: int, report: Callable[[float], None]) -> Array:
    """Blocks of rows in their order, (n, p)."""
    X, done = np.empty((n, p)), 0
    for rows in found:
        for first in range(0, p, _TOGETHER):
            columns = slice(first, first + _TOGETHER)
            X[done : done + len(rows), columns] = rows[:, columns]
        done += len(rows)
        report(done / n)
    return X


def blocks(n: int, rng: np.random.Generator, most: int = _ROWS) -> list[tuple[int, np.random.Generator]]:
    """Sizes of blocks of rows, as equal as they can be, and a generator for each."""
    count = -(-n // most)
    sizes = [n // count + (k < n % count) for k in range(count)]
    return list(zip(sizes, rng.spawn(len(sizes)), strict=True))
