"""log Z = log ∫ exp(−Σ θ_k f_k(x)) Π q_i(x_i) dx: exact where the sums are, else an estimate with its error."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._core.threads import one_blas_thread
from ..terms import Terms
from .chains import Pilot, sweep
from .conditionals import Block, Conditionals
from .draws import starts
from .elimination import eliminate
from .gaussian import Gaussian
from .graph import Component, NoDensity, components, interactions, own_coefficients
from .valleys import low_points
from .windows import exact_tables, on_windows

__all__ = ["LogPartition", "annealed", "log_partition"]

Array = np.ndarray
_STEPS = (32, 2048)  # at first, and at most
_UPDATES = 200_000  # of variables, which also limit the steps
_ERROR = 0.05  # of an estimate in one direction above which steps are doubled
_DRAWS = 256
_ROUNDING = 1e-9  # error of sums over nodes below which they count as exact


class LogPartition(NamedTuple):
    """log Z, its standard error (0 where sums over nodes are exact), and how it was found: "exact" or "annealed"."""

    value: float
    stderr: float
    method: str


def log_partition(
    terms: Terms,
    theta: Array,
    rng: np.random.Generator,
    *,
    start: Array | None = None,
    n_draws: int = _DRAWS,
    progress: Callable[[float, float], object] = lambda done, total: None,
) -> LogPartition:
    """log Z; +inf where there is no density. Independent parts of the model add up.

    Exact where `sample` is. Elsewhere by annealed importance sampling: `n_draws` chains go from the independent model
    of own terms, whose log Z is known, to the model in steps, and as many go back from draws of the model. The value is
    the mean of both estimates, and half of their difference is part of the stated error: where chains miss a mode, they
    disagree. Steps double until the estimates agree within their errors, up to 2,048.

    start: rows that tell where the model's mass may be, (rows, p).

    Examples
    --------
    >>> import numpy as np
    >>> from isodus.axes import WholeLine
    >>> from isodus.terms import Terms
    >>> terms = Terms([WholeLine(0.0, 1.0, 2)], [(0, 0)])
    >>> found = log_partition(terms, terms.T @ np.array([0.5]), np.random.default_rng(0))
    >>> round(found.value, 6), found.method  # log √(2π)
    (0.918939, 'exact')
    """
    total, variance, method, parts = 0.0, 0.0, "exact", components(terms, theta)
    with one_blas_thread():
        for done, (part, child) in enumerate(zip(parts, rng.spawn(len(parts)), strict=True)):
            here = None if start is None else np.asarray(start, float)[:, part.variables]
            try:
                found = _of_part(part, child, here, n_draws)
            except NoDensity:
                return LogPartition(np.inf, 0.0, "exact")
            total, variance = total + found.value, variance + found.stderr**2
            method = found.method if found.method == "annealed" else method
            progress(done + 1, len(parts))
    return LogPartition(float(total), float(np.sqrt(variance)), method)


def _of_part(part: Component, rng: np.random.Generator, start: Array | None, n_draws: int) -> LogPartition:
    if part.single:
        a = own_coefficients(part.terms, part.theta)[0][None]
        return LogPartition(float(part.terms.axes[0].integrals(a, second=False).log_Z[0]), 0.0, "exact")
    if part.gaussian:
        return LogPartition(Gaussian.of(part).log_Z, 0.0, "exact")
    start = low_points(part, rng) if start is None else start
    part = on_windows(part, rng, start)
    part, tables = exact_tables(part, lambda at: eliminate(at.terms.axes, interactions(at.terms, at.theta)))
    if tables is not None:
        return LogPartition(float(tables.log_Z[0]), tables.error if tables.error > _ROUNDING else 0.0, "exact")
    return LogPartition(*annealed(part, rng, start, n_draws), "annealed")


def annealed(part: Component, rng: np.random.Generator, start: Array | None, n_draws: int) -> tuple[float, float]:
    """log Z and its standard error, by chains from own terms to all terms and by chains back.

    The first estimate is low and the second high where chains cannot follow, as where they miss a mode; half of their
    difference is part of the error.
    """
    terms, theta = part.terms, part.theta
    own = np.array([len(factors) == 1 for factors in terms.products], bool)
    first, rest = np.where(own, theta, 0.0), np.where(own, 0.0, theta)
    conditionals = Conditionals(terms, theta)
    pilot = Pilot(conditionals, starts(terms.axes, conditionals, start), rng)
    there = Block(conditionals, starts(terms.axes, conditionals, start)(n_draws, rng))
    for _ in range(pilot.n_sweeps):
        sweep(there, pilot.counts, rng, lambda i, mass: None)

    def path(block: Block, shares: Array) -> tuple[float, float]:
        """log mean weight and its error along shares of the coupling, with a sweep at each but the first and last."""
        log_weight = np.zeros(n_draws)
        for k, (share, after) in enumerate(pairwise(shares)):
            if k:
                conditionals.set(first + share * rest)
                sweep(block, pilot.counts, rng, lambda i, mass: None)
            log_weight -= (after - share) * block.energy(rest)
        top = log_weight.max()
        weight = np.exp(log_weight - top)
        return top + float(np.log(weight.mean())), float(weight.std() / weight.mean() / np.sqrt(n_draws - 1))

    log_Z = sum(
        float(axis.integrals(a[None], second=False).log_Z[0])
        for axis, a in zip(terms.axes, own_coefficients(terms, theta), strict=True)
    )
    steps, most = _STEPS[0], int(np.clip(_UPDATES / len(terms.axes), 2 * _STEPS[0], _STEPS[1]))
    while True:
        shares = np.linspace(0, 1, steps + 1)
        forth, error = path(Block(conditionals, starts(terms.axes, conditionals, None)(n_draws, rng)), shares)
        back, other = path(Block(conditionals, there.phi), shares[::-1])
        difference, both = abs(forth + back), float(np.hypot(error, other))
        if 2 * steps > most or (max(error, other) <= _ERROR and difference <= 3 * both):
            return log_Z + (forth - back) / 2, float(np.hypot(both, difference)) / 2
        steps *= 2
