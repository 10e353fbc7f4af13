"""New samples from an energy, and its normalisation, group by group of interacting variables: exact, or by chains.

A group with terms up to degree 2 is a Gaussian. Any other is summed over on a grid (`grid`, `tree`); samples are drawn
on its nodes and then once more from their exact conditionals (`sweep`). On the nodes a sum over one variable has the
value of the integral, so a draw of x_i given grid values of the others has the density that it should have, and so,
one after the other, have all. What is left are the errors of sums over the grid: biases below 1e-5 standard deviations
(computed, for moments up to the fourth, in tests/test_sampling.py), where a million samples have errors of 1e-3.
Groups too large for that are sampled by Markov chains (`chains`, `kernels`, `tempering`, `convergence`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .. import univariate
from ..arrays import one_blas_thread
from ..basis import MonomialBasis
from ..progress import Progress
from . import annealing, chains, gaussian, grid, spaced, tree
from .chains import METHODS
from .draws import Draws, SamplingInfo, require_arviz, to_arviz
from .grid import Grid
from .sweep import NotExactError, check_all_held, redraw

__all__ = [
    "METHODS",
    "Draws",
    "Group",
    "NotExactError",
    "SamplingInfo",
    "check_method",
    "components",
    "draw",
    "estimate_log_partition",
    "log_partition",
    "prepare",
    "require_arviz",
    "restrict",
    "sample",
    "to_arviz",
]

_CELLS = 1 << 17  # of samples and nodes at a time, few enough to stay in cache
_ROWS = 8192  # samples that a job makes, or more
_LONG = 2000  # nodes of a single variable from which its quantiles are quicker


class Group(NamedTuple):
    """Interacting variables, their energy, and, unless it is quadratic, how it is summed over or why it cannot be."""

    variables: np.ndarray
    basis: MonomialBasis
    theta: np.ndarray
    grid: Grid | None = None
    why: str = ""  # there is no exact way

    @property
    def gaussian(self) -> bool:
        """Whether the energy is quadratic, on the line."""
        return self.grid is None and not self.why


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
    if not terms:  # a variable within bounds may have none: it is uniform
        terms, here = [(0,)], np.empty(0, int)
    part = MonomialBasis(len(variables), terms=terms)
    if basis.spaces is not None:
        part = part.within(tuple(basis.spaces[v] for v in variables))
    values = dict(zip(terms, theta[here], strict=False))
    return part, np.array([values.get(term, 0.0) for term in part.terms])


def prepare(basis: MonomialBasis, theta: np.ndarray, names: Sequence[str]) -> list[Group]:
    """Groups of interacting variables, each with what exact sampling and normalisation need or why there is none."""
    check_all_held(basis, theta, names)
    groups = []
    with one_blas_thread():
        for variables in components(basis, theta):
            group = Group(variables, *restrict(basis, theta, variables))
            plain = group.basis.spaces is None
            if group.basis.degree > 2 or not plain:
                try:
                    find = grid.find if plain else spaced.find
                    found = find(group.basis, group.theta, [names[v] for v in variables])
                    group = group._replace(grid=found)
                except NotExactError as error:
                    group = group._replace(why=str(error))
            groups.append(group)
    return groups


def log_partition(groups: Sequence[Group]) -> float:
    """log ∫ exp(−E(x)) dx, a sum over variables that have a few values.

    The error is about 1e-7 times the root of the number of variables.
    """
    _check_exact(groups)
    return sum(g.grid.log_z if g.grid is not None else gaussian.log_z(g.basis, g.theta) for g in groups)


def _check_exact(groups: Sequence[Group]) -> None:
    for group in groups:
        if group.why:
            raise NotExactError(group.why)


def estimate_log_partition(
    groups: Sequence[Group], names: Sequence[str], rng: np.random.Generator
) -> tuple[float, float]:
    """log ∫ exp(−E(x)) dx and its standard error: groups that have no exact sum by annealed importance sampling."""
    total, variance = 0.0, 0.0
    with one_blas_thread():
        for group in groups:
            if not group.why:
                total += log_partition([group])
                continue
            called = [names[v] for v in group.variables]
            value, error = annealing.log_partition(group.basis, group.theta, called, rng)
            total, variance = total + value, variance + error**2
    return total, float(np.sqrt(variance))


def check_method(method: str) -> None:
    """Whether there is such a one."""
    known = ("auto", "exact", *METHODS)
    if method not in known:
        raise ValueError(f"there is no method {method!r}; there are {', '.join(map(repr, known))}")


def sample(
    groups: Sequence[Group],
    names: Sequence[str],
    n: int,
    rng: np.random.Generator,
    location: np.ndarray,
    scale: np.ndarray,
    *,
    method: str = "auto",
    start: np.ndarray | None = None,
    n_jobs: int | None = None,
    progress: Progress,
    chosen: dict[int, str],
) -> tuple[np.ndarray, SamplingInfo]:
    """Samples of location + scale·y, shape (chains, draws, p), y of density ∝ exp(−E): exact ones are one chain.

    At least n; fewer if they were interrupted. method: "auto", "exact" or one of `chains.METHODS`; start: (p, any
    number), where chains begin; chosen: kinds of chains that were found quickest before, by the first variable of their
    group, and to be added to.
    """
    by_chains = [group for group in groups if method in METHODS or (method == "auto" and group.why)]
    exact = [] if method in METHODS else [group for group in groups if method == "exact" or not group.why]
    _check_exact(exact)
    if not by_chains:
        X = draw(exact, n, rng, location, scale, n_jobs, progress)
        ones = np.ones(len(names))
        info = SamplingInfo("exact", names, ones, ones * len(X), ones * len(X), len(X), complete=len(X) == n)
        return X[None, :, :], info

    runs = []
    for group in by_chains:
        called, own = [names[v] for v in group.variables], None if start is None else start[group.variables]
        options: dict[str, Any] = dict(method=method, start=own, n_jobs=n_jobs, progress=progress)
        prefer = chosen.get(int(group.variables[0]))
        runs.append(chains.run(group.basis, group.theta, called, n, rng, prefer=prefer, **options))
        if method in ("auto", "tempering"):  # these chose
            chosen[int(group.variables[0])] = runs[-1].kind
        n = min(n, runs[-1].draws.shape[0] * runs[-1].draws.shape[1])  # what was interrupted needs no more of others
    many, draws = runs[0].draws.shape[0], min(found.draws.shape[1] for found in runs)
    X, total = np.empty((many, draws, len(names))), many * draws
    whole = True
    r_hat, ess, tail_ess = np.ones(len(names)), np.full(len(names), float(total)), np.full(len(names), float(total))
    for group, found in zip(by_chains, runs, strict=True):
        v = group.variables
        X[:, :, v] = location[v] + scale[v] * found.draws[:, :draws]
        r_hat[v], ess[v], tail_ess[v] = found.r_hat[:-1], found.ess[:-1], found.tail_ess[:-1]
    if exact:
        v = np.concatenate([group.variables for group in exact])
        others = draw(exact, total, rng, location, scale, n_jobs, progress)[:, v]
        whole, draws = len(others) == total, len(others) // many
        X, total = X[:, :draws], many * draws
        X[:, :, v] = others[:total].reshape(many, draws, -1)
    info = SamplingInfo(
        "; ".join(found.method for found in runs) + ("; others exact" if exact else ""),
        names,
        r_hat,
        ess,
        tail_ess,
        total,
        all(found.mixed for found in runs),
        whole and all(found.complete for found in runs),
        [found.details([names[v] for v in group.variables]) for group, found in zip(by_chains, runs, strict=True)],
    )
    return X, info


def draw(
    groups: Sequence[Group],
    n: int,
    rng: np.random.Generator,
    location: np.ndarray,
    scale: np.ndarray,
    n_jobs: int | None,
    progress: Progress,
) -> np.ndarray:
    """n independent samples of location + scale·y, shape (n, p): exact; fewer if the last group was interrupted.

    Columns of variables that are in no group are left as they come.
    """
    done = n
    with one_blas_thread(), _shared((n, len(location)), effective_n_jobs(n_jobs)) as out:
        for group in groups:
            to = slice(None) if len(group.variables) == len(location) else group.variables
            units = location[group.variables, None], scale[group.variables, None]
            if group.grid is None:
                _put(out, slice(0, n), to, units, gaussian.draw(group.basis, group.theta, n, rng))
                continue
            jobs = _jobs(group.grid, n, rng)
            calls = (delayed(_part)(group.grid, out, rows, to, units, seed) for rows, seed in jobs)
            done = 0
            try:
                for rows in Parallel(n_jobs=n_jobs, return_as="generator")(calls):
                    done = rows.stop
                    progress("drawing on a grid", done, n)
            except KeyboardInterrupt:
                if not done or group is not groups[-1]:
                    raise
        return np.array(out[:done]) if isinstance(out, np.memmap) else out[:done]


@contextmanager
def _shared(shape: tuple[int, int], n_jobs: int) -> Iterator[np.ndarray]:
    """An array to fill; for several processes a file, in memory where the system has such files."""
    if n_jobs == 1:
        yield np.empty(shape)
        return
    memory = "/dev/shm"
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2 * 8 * shape[0] * shape[1]
    with tempfile.TemporaryDirectory(dir=memory if roomy else None, ignore_cleanup_errors=True) as folder:
        yield np.memmap(os.path.join(folder, "samples"), np.float64, "w+", shape=shape)


def _jobs(found: Grid, n: int, rng: np.random.Generator) -> list[tuple[slice, np.random.SeedSequence]]:
    """Rows, each with a seed of their own, so that samples do not depend on the number of processes."""
    tables = sum(prod(tree.size(found.nodes[v]) for v in step.axes) for step in found.steps)
    rows = max(_ROWS, 2 * tables // len(found.nodes))  # the tables are made anew by every job
    starts = range(0, n, rows)
    seeds = np.random.SeedSequence(rng.integers(2**32, size=4).tolist()).spawn(len(starts))
    return [(slice(first, min(first + rows, n)), seed) for first, seed in zip(starts, seeds, strict=True)]


def _part(
    found: Grid,
    out: np.ndarray,
    rows: slice,
    to: slice | np.ndarray,
    units: tuple[np.ndarray, np.ndarray],
    seed: np.random.SeedSequence,
) -> slice:
    """Samples of one group, into some rows, which come back: on the nodes, then from their exact conditionals."""
    rng, nodes, n = np.random.default_rng(seed), found.nodes, rows.stop - rows.start
    longest = max(map(tree.size, nodes))
    if isinstance(nodes[0], tree.Weighted):
        with one_blas_thread():
            at = tree.draw(found.steps, nodes, found.messages, n, rng)
            Y = np.stack([g.x[k] for g, k in zip(nodes, at, strict=True)])  # type: ignore[union-attr]
            spaced.redraw(found, Y, rng)
        _put(out, rows, to, units, Y)
        return rows
    if len(nodes) == 1 and longest > _LONG:
        a = np.repeat(found.conditionals.coefficients(0, np.zeros((1, 1))), n, axis=1)
        _put(out, rows, to, units, univariate.draw(a, rng)[None, :])
        return rows
    with one_blas_thread():
        at = tree.draw(found.steps, nodes, found.messages, n, rng)
        step = int(np.clip(_CELLS // longest, 64, 4096))
        for first in range(0, n, step):
            Y = np.stack([g[k] for g, k in zip(nodes, at[:, first : first + step], strict=True)])
            redraw(found.conditionals, nodes, Y, rng)  # type: ignore[arg-type]
            start = rows.start + first
            _put(out, slice(start, start + Y.shape[1]), to, units, Y)
    return rows


def _put(
    out: np.ndarray, rows: slice, to: slice | np.ndarray, units: tuple[np.ndarray, np.ndarray], Y: np.ndarray
) -> None:
    """Samples Y, (q, rows), in their units and place."""
    location, scale = units
    Y *= scale
    Y += location
    out[rows, to] = Y.T
