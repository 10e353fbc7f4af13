"""Every node with unknowns of its own: Newton's method for all of them in one pass over the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from .newton import LEAST_DAMPING, Quadratic, Status
from .objective import NodeAt, Objective
from .proximal import Proximal

__all__ = ["NodeFit", "learn_nodes"]

Array = np.ndarray
_NEAR = 0.03  # standard errors: after a shorter step the Hessian is the one before


@dataclass
class NodeFit:
    """Where the minimisation of one node ended; `at` was taken one step before `tau` where it converged."""

    tau: Array
    at: NodeAt
    status: Status = "iteration limit"
    n_iter: int = 0
    damping: float = 0.0


@np.errstate(over="ignore", invalid="ignore")
def learn_nodes(
    f: Objective,
    starts: Sequence[Array | Mapping[int, Array]],
    tol: float = 1e-3,
    max_iter: int = 100,
    progress: Callable[[int], None] = lambda left: None,
    costs: Mapping[int, Array] | None = None,
    nodes: Sequence[int] | None = None,
    keep: bool = False,
) -> list[NodeFit]:
    """The optimum of each node, or of some; as `newton`, with a damping for each node.

    starts: joint unknowns (K,), or those of each node; the best is taken, node by node. costs: c of an L1 penalty
    Σ c|τ| on each node's unknowns. keep: whether an interrupt ends with the last iterates, or is passed on.
    """
    nodes = list(f.terms.nodes) if nodes is None else list(nodes)
    tried = [_at_nodes(f, start, nodes) for start in starts]

    def model(i: int, tau: Array, at: NodeAt) -> Quadratic:
        return Quadratic(at, csr_array((len(tau),) * 2), tau) if costs is None else Proximal(at, costs[i], tau)

    taus = tried[0]
    if len(tried) > 1:
        values = [f.at_nodes(start, 0) for start in tried]
        for i in nodes:
            at = [value[i].value for value in values]
            taus[i] = tried[int(np.argmin(np.where(np.isfinite(at), at, np.inf)))][i]
    fits = {i: NodeFit(taus[i], at) for i, at in f.at_nodes(taus).items()}
    steps: dict[int, Array] = {}
    active = nodes
    while active:
        here = {i: model(i, fits[i].tau, fits[i].at) for i in active}
        for i in active:
            if i not in steps:
                _next_step(fits[i], here[i], f.n, tol, max_iter, steps, i)
        active = [i for i in active if i in steps]
        progress(len(active))
        near = costs is None and all(here[i].decrement(steps[i]) * f.n <= _NEAR**2 for i in active)
        try:
            trials = f.at_nodes({i: fits[i].tau + steps[i] for i in active}, 1 if near else 2) if active else {}
        except KeyboardInterrupt:
            if not keep:
                raise
            for i in active:
                fits[i].status = "interrupted"
            break
        for i, new in trials.items():
            fit, quadratic, step = fits[i], here[i], steps.pop(i)
            new = new._replace(hessian=fit.at.hessian) if near else new
            gain = quadratic.value - new.value - quadratic.penalty(fit.tau + step)
            if gain >= 1e-4 * quadratic.decrement(step) - 4 * new.rounding:
                quality = gain / max(quadratic.promised(step), 1e-300)
                damping = fit.damping * (0.1 if quality > 0.8 else 0.3 if quality > 0.3 else 1 if quality > 0.1 else 3)
                fits[i] = NodeFit(
                    fit.tau + step, new, fit.status, fit.n_iter + 1, damping if damping > LEAST_DAMPING else 0.0
                )
                continue
            shorter, fit.damping = quadratic.shorter(step, fit.damping)
            if shorter is None or not shorter.any():
                fit.status = "stalled"
            else:
                steps[i] = shorter
        active = [i for i in active if fits[i].status == "iteration limit" and fits[i].n_iter < max_iter]
    return [fits[i] for i in nodes]


def _at_nodes(f: Objective, start: Array | Mapping[int, Array], nodes: Sequence[int]) -> dict[int, Array]:
    """The unknowns of each node."""
    if isinstance(start, Mapping):
        return {i: start[i] for i in nodes}
    return {i: start[f.terms.local_T[i][0]] for i in nodes}


def _next_step(
    fit: NodeFit, here: Quadratic, n: float, tol: float, max_iter: int, steps: dict[int, Array], i: int
) -> None:
    """A step for node i, or the end of its minimisation."""
    step, least = here.step(0.0)
    if step is None:
        fit.status = "singular"
        return
    if least == 0 and here.decrement(step) * n <= tol**2:
        fit.tau, fit.status = fit.tau + step, "converged"
        return
    if fit.n_iter >= max_iter:
        return
    if fit.damping > least:
        step, least = here.step(fit.damping)
    fit.damping = least
    if step is None:
        fit.status = "singular"
    else:
        steps[i] = step
