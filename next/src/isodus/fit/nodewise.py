"""Every node with unknowns of its own: Newton's method for all of them in one pass over the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from .newton import Quadratic, Status
from .objective import NodeAt, Objective

__all__ = ["NodeFit", "learn_nodes"]

Array = np.ndarray


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
    starts: Sequence[Array],
    tol: float = 1e-3,
    max_iter: int = 100,
    progress: Callable[[int], None] = lambda left: None,
) -> list[NodeFit]:
    """The optimum of each node, from the best of some starts (K,); as `newton`, with a damping for each node."""
    unknowns = [places for places, _ in f.terms.local_T]
    tried = [f.at_nodes({i: start[places] for i, places in enumerate(unknowns)}, 0) for start in starts]
    values = np.array([[at[i].value for i in f.terms.nodes] for at in tried])
    best = np.where(np.isfinite(values), values, np.inf).argmin(axis=0)
    taus = {i: starts[best[i]][places] for i, places in enumerate(unknowns)}
    fits = [NodeFit(taus[i], at) for i, at in sorted(f.at_nodes(taus).items())]
    steps: dict[int, Array] = {}
    active = list(f.terms.nodes)
    while active:
        here = {i: Quadratic(fits[i].at, csr_array((len(fits[i].tau),) * 2), fits[i].tau) for i in active}
        for i in active:
            if i not in steps:
                _next_step(fits[i], here[i], f.n, tol, max_iter, steps, i)
        active = [i for i in active if i in steps]
        progress(len(active))
        trials = f.at_nodes({i: fits[i].tau + steps[i] for i in active}) if active else {}
        for i, new in trials.items():
            fit, quadratic, step = fits[i], here[i], steps.pop(i)
            gain = fit.at.value - new.value
            if gain >= 1e-4 * quadratic.decrement(step) - 4 * new.rounding:
                quality = gain / quadratic.promised(step)
                damping = fit.damping * (0.1 if quality > 0.8 else 0.3 if quality > 0.3 else 1 if quality > 0.1 else 3)
                fits[i] = NodeFit(fit.tau + step, new, fit.status, fit.n_iter + 1, damping if damping > 1e-10 else 0.0)
                continue
            shorter, fit.damping = quadratic.shorter(step, fit.damping)
            if shorter is None:
                fit.status = "stalled"
            else:
                steps[i] = shorter
        active = [i for i in active if fits[i].status == "iteration limit" and fits[i].n_iter < max_iter]
    return fits


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
