"""The paper's reference: the choice of ν."""

from __future__ import annotations

import numpy as np

from ..losses import PowerScreening
from .consensus import node_variances
from .learn import starts
from .nodewise import learn_nodes
from .objective import Objective

__all__ = ["NUS", "choose_nu"]

Array = np.ndarray
NUS = tuple(np.geomspace(0.003, 3.2, 11).tolist())
_CLOSE = 1.15  # of the smallest variance: the largest ν there; the smallest variance itself has a cliff beside it
_ROWS, _STEPS = 20_000, 30  # on which ν is chosen, and Newton steps beyond which a node has no answer at some ν


def choose_nu(f: Objective, power: float, tol: float, max_iter: int, seed: int) -> tuple[float, ...]:
    """For each variable, the largest ν of a grid whose sandwich has a trace within 15 % of the smallest.

    f: with unknowns that are coefficients of powers. Nodes that do not converge count as infinite. The plain minimum is
    a trap: below it the variance has a cliff that the sample does not see.
    """
    n, p = f.samples.kept_samples.n_rows, len(f.axes)
    f = f.take(np.sort(np.random.default_rng([seed, 3]).permutation(n)[:_ROWS])) if n > _ROWS else f.kept()
    traces = []
    for nu in NUS:
        g = f.with_loss(PowerScreening((nu,) * p, power))
        traces.append(node_variances(g, learn_nodes(g, starts(g), max(tol, 0.01), min(max_iter, _STEPS))))
    table = np.array(traces)  # (ν, variables)
    best = table.min(axis=0)
    good = np.isfinite(table) & (table <= _CLOSE * best)
    last = len(NUS) - 1 - np.argmax(good[::-1], axis=0)
    return tuple(NUS[k] if good[k, i] else NUS[len(NUS) // 2] for i, k in enumerate(last.tolist()))
