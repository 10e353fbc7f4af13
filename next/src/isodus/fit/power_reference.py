"""The paper's reference: the choice of ν and of its origin."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ..losses import PowerReference, ReferenceScreening
from .consensus import node_variances
from .learn import starts
from .nodewise import NodeFit, learn_nodes
from .objective import Objective

__all__ = ["NUS", "choose_reference"]

Array = np.ndarray
NUS = tuple(np.geomspace(0.003, 50.0, 15).tolist())
_CLOSE = 2.0  # of the smallest variance: the largest ν there; below, the weights of few rows decide
_FAR = 4.0  # of the smallest variance: smaller ν are not tried beyond
_ROWS, _STEPS = 20_000, 30  # on which ν is chosen, and Newton steps beyond which a node has no answer at some ν
_TOL = 0.1  # standard errors
_ASIDE = 0.1  # spreads: an origin nearer to 0 is 0


def choose_reference(
    f: Objective, reference: PowerReference, degree: int, max_iter: int, seed: int, moved: bool
) -> PowerReference:
    """For each variable, the largest ν of a grid with at most twice the smallest variance, and the origin of R.

    f: with unknowns that are coefficients of powers. The origin, where it is not given, is 0, or where columns were
    `moved` also the middle of their 2.5 and 97.5 % quantiles, if the smallest variance is smaller there. The variance
    is the trace of the node's covariance by influences, whose leverage shows where a few rows decide; the plain
    sandwich does not see that. Nodes that do not converge count as infinite.
    """
    n, p = f.samples.kept_samples.n_rows, len(f.axes)
    f = f.take(np.sort(np.random.default_rng([seed, 3]).permutation(n)[:_ROWS])) if n > _ROWS else f.kept()
    origin = reference.origins(p)
    origins = np.zeros((1, p)) if origin is None else np.array([origin])
    variances_at = partial(_variances, f, reference.delta, degree, max_iter)
    table = [variances_at(origins[0], list(f.terms.nodes))]
    if origin is None and moved:
        middles = _middles(f)
        if middles.any():
            origins = np.vstack([origins, middles])
            table.append(variances_at(middles, np.flatnonzero(middles).tolist()))
    variances = np.array(table)  # (origins, ν, variables)
    which = variances.min(axis=1).argmin(axis=0)
    variance = np.take_along_axis(variances, which[None, None], axis=0)[0]
    good = np.isfinite(variance) & (variance <= _CLOSE * variance.min(axis=0))
    last = len(NUS) - 1 - np.argmax(good[::-1], axis=0)
    nus = [NUS[k] if good[k, i] else NUS[len(NUS) // 2] for i, k in enumerate(last.tolist())]
    found = origins[which, np.arange(p)]
    return PowerReference(nus, reference.delta, reference.link, found.tolist() if found.any() else None)


@np.errstate(over="ignore", invalid="ignore")  # of nodes that are left where they were
def _variances(f: Objective, delta: float, degree: int, max_iter: int, origin: Array, active: list[int]) -> Array:
    """Those of each ν and of some nodes, from the largest ν on, each from the answer before; (ν, p), +∞ elsewhere."""
    p = len(f.axes)
    found = np.full((len(NUS), p), np.inf)
    fits: dict[int, NodeFit] = {}
    for k in reversed(range(len(NUS))):
        g = f.with_loss(ReferenceScreening(PowerReference(NUS[k], delta, origin=origin.tolist()), degree))
        begin: list[Array | Mapping[int, Array]] = [*starts(g)]
        if fits and all(fits[i].status == "converged" for i in active):
            begin = [{i: fits[i].tau for i in active}]
        nodes = list(f.terms.nodes) if not fits else active
        fits |= dict(zip(nodes, learn_nodes(g, begin, _TOL, min(max_iter, _STEPS), nodes=nodes), strict=True))
        found[k, active] = node_variances(g, [fits[i] for i in f.terms.nodes])[active]
        best = found.min(axis=0)
        active = [i for i in active if not np.isfinite(best[i]) or found[k, i] <= _FAR * best[i]]
        if not active:
            break
    return found


def _middles(f: Objective) -> Array:
    """The middle of the 2.5 and 97.5 % quantiles, in units of y, (p,); 0 near 0, and on axes with an end."""
    X, weight = f.samples.kept
    found = np.zeros(len(f.axes))
    for i, (axis, x) in enumerate(zip(f.terms.axes, X.T, strict=True)):
        if axis.unit_powers is not None and np.all(np.isinf(axis.ends)):
            low, high = np.quantile(x, [0.025, 0.975], method="inverted_cdf", weights=weight)
            M, phi = axis.unit_powers(), axis.functions(np.array([(low + high) / 2]))
            y = (phi[0, 0] - M[1, 0]) / M[1, 1]
            found[i] = y if abs(y) > _ASIDE else 0.0
    return found
