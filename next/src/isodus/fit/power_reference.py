"""The paper's reference: node by node, and the choice of ν."""

from __future__ import annotations

import numpy as np

from ..losses import PowerScreening
from ..terms import Terms
from .consensus import node_variances
from .gaussian import fitted_gaussian
from .nodewise import NodeFit, learn_nodes
from .objective import Objective

__all__ = ["NUS", "choose_nu", "learn_power"]

Array = np.ndarray
NUS = tuple(np.geomspace(0.003, 3.2, 11).tolist())
_CLOSE = 1.15  # of the smallest variance: the largest ν there; the smallest variance itself has a cliff beside it
_ROWS = 20_000  # on which ν is chosen


def learn_power(g: Objective, tol: float, max_iter: int) -> list[NodeFit]:
    """The optimum of each node, from zero or a Gaussian."""
    X, weight = g.samples.kept
    gaussian, starts = fitted_gaussian(X, weight), [g.terms.zeros()]
    if gaussian is not None:
        starts.append(g.terms.near_gaussian(gaussian.mean, gaussian.precision))
    return learn_nodes(g, starts, tol, max_iter)


def choose_nu(f: Objective, terms: Terms, power: float, tol: float, max_iter: int, seed: int) -> tuple[float, ...]:
    """For each variable, the largest ν of a grid whose sandwich has a trace within 15 % of the smallest.

    Nodes that do not converge count as infinite. The plain minimum is a trap: below it the variance has a cliff that
    the sample does not see.
    """
    samples, n = f.samples, f.samples.n_rows
    if n > _ROWS and samples.in_memory:
        samples = samples.take(np.sort(np.random.default_rng([seed, 3]).permutation(n)[:_ROWS]))
    traces = []
    for nu in NUS:
        g = Objective(PowerScreening((nu,) * len(terms.axes), power), terms, samples, f.n_jobs)
        traces.append(node_variances(g, learn_power(g, max(tol, 0.01), max_iter)))
    table = np.array(traces)  # (ν, variables)
    best = table.min(axis=0)
    good = np.isfinite(table) & (table <= _CLOSE * best)
    last = len(NUS) - 1 - np.argmax(good[::-1], axis=0)
    return tuple(NUS[k] if good[k, i] else NUS[len(NUS) // 2] for i, k in enumerate(last.tolist()))
