"""Missing values from their joint conditional density given the observed ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._core.threads import one_blas_thread, ordered_map
from ..terms import Terms
from .chains import checks, exact_sweep, pick_columns
from .conditionals import Block, Conditionals
from .draws import draw_component, starts
from .elimination import Elimination, can_eliminate, eliminate_for_draws
from .gaussian import Gaussian
from .graph import Component, components, given, given_row
from .windows import on_windows, reaches_end

__all__ = ["fill"]

Array = np.ndarray
_SWEEPS = 100
_ROWS = 256  # in turn, each with a generator of its own


def fill(
    terms: Terms,
    theta: Array,
    X: Array,
    missing: Array,
    rng: np.random.Generator,
    *,
    start: Array | None = None,
    n_sweeps: int = _SWEEPS,
    n_jobs: int | None = 1,
) -> Array:
    """X with one draw of its missing entries from their joint conditional given the observed ones in the same row.

    Exact on the nodes where the missing variables of a row can be summed out (few of them, or trees), in closed form
    for Gaussians, else by `n_sweeps` Gibbs sweeps; then one exact sweep off the nodes.

    Parameters
    ----------
    terms : Terms
    theta : array of shape (products,)
    X : array of shape (n, p)
        What stands in missing entries is not read.
    missing : boolean array of shape (n, p)
    rng : numpy Generator
    start : array of shape (rows, p), optional
        Rows at which Gibbs sweeps start, drawn at random.
    n_sweeps : int
    n_jobs : int, optional

    Returns
    -------
    array of shape (n, p)

    Examples
    --------
    >>> import numpy as np
    >>> from isodus.axes import WholeLine
    >>> from isodus.terms import Terms
    >>> terms = Terms([WholeLine(0.0, 1.0, 2)] * 2, [(0, 0), (1, 1), (0, 1)])
    >>> X = np.array([[1.0, np.nan], [2.0, -3.0]])
    >>> filled = fill(terms, terms.T @ np.array([1.0, 1.0, 0.5]), X, np.isnan(X), np.random.default_rng(0))
    >>> filled[:, 0].tolist(), bool(np.isfinite(filled).all())
    ([1.0, 2.0], True)
    """
    out = np.array(X, float)
    parts = components(terms, theta)
    with one_blas_thread():
        for part, child in zip(parts, rng.spawn(len(parts)), strict=True):
            v = part.variables
            there = missing[:, v]
            if not there.any():
                continue
            values = out[:, v]
            here = None if start is None else np.asarray(start, float)[:, v]
            filler = _Filler(part, child, here, n_sweeps)
            jobs = list(_jobs(there, child))
            for rows, drawn in ordered_map(lambda job, f=filler, x=values: f(x, *job), jobs, n_jobs):  # type: ignore[misc]
                values[np.ix_(rows, np.flatnonzero(there[rows[0]]))] = drawn
            out[:, v] = values
    return out


def _jobs(missing: Array, rng: np.random.Generator) -> Iterator[tuple[Array, Array, np.random.Generator]]:
    """Rows with the same missing variables, these, and a generator."""
    patterns, number = np.unique(missing, axis=0, return_inverse=True)
    number = number.ravel()
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(len(patterns) + 1))
    for pattern, first, last in zip(patterns, ends[:-1], ends[1:], strict=True):
        for k in range(first, last, _ROWS) if pattern.any() else ():
            yield order[k : min(k + _ROWS, last)], pattern, rng.spawn(1)[0]


class _Filler:
    """Draws for one component: rows with the same missing variables at once, or one at a time."""

    def __init__(self, part: Component, rng: np.random.Generator, start: Array | None, n_sweeps: int) -> None:
        self.gaussian = Gaussian.of(part) if part.gaussian and not part.single else None
        self.whole, self.n_sweeps = part, n_sweeps
        if self.gaussian is None:
            self.part = on_windows(part, rng, start)
            self.conditionals = Conditionals(self.part.terms, self.part.theta)
            self.begin = starts(self.part.terms.axes, self.conditionals, start)

    def __call__(self, X: Array, rows: Array, missing: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        if self.gaussian is not None:
            return rows, self.gaussian.fill(X[rows], missing, rng)
        left = [int(i) for i in np.flatnonzero(missing)]
        phi = self.begin(len(rows), rng)
        for i in np.flatnonzero(~missing):
            phi[i] = np.ascontiguousarray(self.part.terms.axes[i].functions(X[rows, i]).T)
        alone = self._draw_on_nodes(phi, left, rng)
        drawn = exact_sweep(Block(self.conditionals, phi), rng, left)
        if len(left) == 1 and alone.any():
            a = Block(self.conditionals, phi).a(left[0])
            drawn[alone, 0] = self.whole.terms.axes[left[0]].draw(a[alone], rng)
            return rows, drawn
        for row in np.flatnonzero(alone):
            part = given_row(self.whole, [values[:, [row]] for values in phi], left)
            drawn[row] = draw_component(part, 1, rng, None, "auto", self.n_sweeps)[0][0]
        return rows, drawn

    def _draw_on_nodes(self, phi: list[Array], left: list[int], rng: np.random.Generator) -> Array:
        """Draws the missing variables, whose functions in phi change; rows that this cannot do.

        These are rows whose observed values are so far out that windows do not hold the missing ones, and rows that
        together take too large tables.
        """
        axes, n, nodes = self.part.terms.axes, phi[0].shape[1], None

        def drawn(tables: Elimination) -> Array:
            for i, values in zip(left, tables.functions(tables.draw(n, rng)), strict=True):
                phi[i] = values
            return checks(Block(self.conditionals, phi), left, tables.counts)

        if len(left) > 1:  # else the sweep off the nodes is all there is to do
            sets = given(self.part.terms, self.part.theta, phi, left)
            mine = [axes[i] for i in left]
            nodes = eliminate_for_draws(mine, sets, drawn)
            if nodes is None and can_eliminate(mine, sets):
                return np.ones(n, bool)
        block = Block(self.conditionals, phi)
        if len(left) > 1 and nodes is None:
            self._sweep(block, left, rng)
            phi[:] = block.phi
        alone = np.zeros(n, bool)
        for i in left:
            if self.whole.terms.axes[i].on_window is not None:
                alone |= reaches_end(axes[i], block.a(i))
        return alone

    def _sweep(self, block: Block, left: list[int], rng: np.random.Generator) -> None:
        for _ in range(self.n_sweeps):
            for i in left:
                axis = block.conditionals.terms.axes[i]
                mass, _ = axis.mass(block.a(i), axis.smallest)
                v: Array = np.asarray(rng.random(block.n))
                index = pick_columns(mass, v)
                block.set(i, axis.table(axis.smallest).nodes.phi.T.take(index, axis=1))
