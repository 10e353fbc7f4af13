"""How strong a penalty is to be: a path of structures, and which of them the data support.

Every λ of a path leaves a structure, the terms that all their nodes keep ("and") or any does ("or"). What a structure
is worth is asked of pseudo-likelihood's estimate over its terms without a penalty: shrunk estimates want more terms
than there are. Three ways to ask:

"ebic"   extended Bayes information criterion (Chen and Chen, 2008; Foygel and Drton, 2010), of all nodes,
         Σ_i 2n F_i + k_i log n + 2γ log C(K_i, k_i), with k_i of K_i penalised terms in node i, γ = 1: the least. Terms
         of a structure that cost more than they gain are taken out of it first: a penalty lets some in for the sake of
         others that it shrinks, and where variables are correlated there may be no λ at which it does not. Then slopes
         are small, too, and what pays enters long after a path has ended. So, where samples are many enough, all
         candidates at once, and all pairs, are asked as well, without those that do not pay: the last point, λ = 0.
"cv"     F on samples that were left out, in turn: the fewest terms within a standard error of the least.
"stars"  stability (Liu, Roeder and Wasserman, 2010): the weakest penalty at which structures of subsamples hardly
         differ: 2ξ(1 − ξ), averaged over all penalised terms, ξ the share of subsamples that choose one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .checks import telling_where
from .criteria import GAMMA, Ebic, HeldOut, Stable, Task, in_places, say_interrupted, trace
from .path import Penalized, Start, settled
from .penalty_path import PenaltyPath
from .samples import ArraySamples

__all__ = ["METHODS", "Choice", "choose", "grid", "settle", "weakest"]

METHODS = ("ebic", "cv", "stars")
_POINTS = 30
_WEAKEST = 0.5  # of the slope at which a term pays, where a path ends


def grid(task: Task, start: Start, n: float, points: int = _POINTS) -> np.ndarray:
    """λ from where the model is empty to half the slope at which a term would pay by "ebic"."""
    penalised = start.penalised
    if not start.l1_max > 0:
        return np.zeros(1)
    many = (np.count_nonzero(penalised, axis=1) + task.elsewhere).max(initial=1)
    unit = float(np.median(start.unit[penalised] / start.weight[penalised])) if task.raw else 1.0
    return np.geomspace(start.l1_max, weakest(start.l1_max, many, n, unit), points)


def weakest(top: float, many: int, n: float, unit: float = 1.0) -> float:
    """Where a path ends that begins at `top`; many: the penalised terms of a variable; unit: of λ, in noise."""
    end = _WEAKEST * unit * np.sqrt((np.log(n) + 2 * GAMMA * np.log(many)) / n)
    return float(min(max(end, 1e-3 * top), 0.5 * top))


class Choice(NamedTuple):
    """A path with its chosen point, and what is there; `settle` makes it exact.

    solutions: at each point; interrupted: whether there were to be more.
    """

    path: PenaltyPath
    start: Start
    found: Penalized
    judge: Ebic | HeldOut | Stable
    solutions: list[Penalized]
    interrupted: bool


def choose(
    task: Task,
    samples: ArraySamples,
    n: float,
    how: str,
    l1: Sequence[float] | None,
    folds: int = 5,
    together: np.ndarray | None = None,
) -> Choice:
    """Follow a path and choose. how: "ebic", "cv" or "stars"; n: the sum of the weights.

    together: labels of rows that "cv" does not part.

    A Ctrl-C leaves the choice among what was finished, with a warning; where that is nothing, it says where it was.
    """
    with telling_where("before the first penalty was reached: nothing is kept"):
        start = task.start(samples)
        values = np.asarray(grid(task, start, n) if l1 is None else l1, float)
        if not start.l1_max > 0:
            how, values = "ebic", values[:1]
        judge: Any = {
            "ebic": lambda: Ebic(task, samples, n, ~start.lost),
            "cv": lambda: HeldOut(task, values, samples.folds(folds, together), folds, ~start.lost),
            "stars": lambda: Stable(task, samples, values),
        }[how]()
    solutions, found, interrupted = [], [], False
    try:
        for point, theta in _walk(task, start, values, judge, l1 is None):
            solutions.append(point)
            found.append(theta)
    except KeyboardInterrupt:
        if not found:
            raise KeyboardInterrupt(f"interrupted at penalty 1 of {len(values)}: nothing is kept") from None
        say_interrupted(len(found), len(values), "penalties")
        interrupted = True
    path_values, errors, chosen, why = judge.verdict(found)
    terms = [np.flatnonzero((theta != 0) & task.penalised) for theta in found]
    count = len(found)
    path = PenaltyPath(
        np.array([point.l1 for point in solutions]),
        np.array([len(at) for at in terms]),
        path_values[:count],
        errors[:count],
        chosen,
        why,
        {"ebic": "EBIC", "cv": "held-out −log P a variable", "stars": "instability"}[how],
        terms,
        [theta[at] for theta, at in zip(found, terms, strict=True)],
        np.array([point.residual.max() for point in solutions]),
    )
    return Choice(path, start, solutions[chosen], judge, solutions, interrupted)


def _walk(task: Task, start: Start, l1: np.ndarray, judge: Any, open_ended: bool) -> Iterator[tuple[Penalized, Any]]:
    """The points of a path, until there are enough; then, if it may end so, what is better without a penalty."""
    for point, theta in trace(task, start, l1):
        enough = judge.enough(theta)
        yield point, theta
        if enough:
            break
    better = judge.without_penalty() if open_ended and start.l1_max > 0 else None
    if better is not None:
        yield better, task.structure(start, better)


def settle(task: Task, choice: Choice) -> Choice:
    """What was chosen without the terms that its judge would not pay for, solved to the tolerance of its start."""
    path, start, found, judge = choice[:4]
    theta = task.structure(start, found)
    best = judge.pruned(theta) if found.l1 else theta
    fewer = int(np.count_nonzero(theta) - np.count_nonzero(best))
    pruned, why = start, path.why
    if fewer:
        why += f", after {fewer} term{'s' * (fewer != 1)} that did not pay {'were' if fewer != 1 else 'was'} left out"
    if fewer or found.l1 == 0:  # without a penalty all others would come in
        free = task.penalised & (task.low == -np.inf)  # what has a least value is never left out
        out = in_places(start.nodes, (best == 0) & free, True)
        pruned = replace(start, weight=np.where(out, np.inf, start.weight))
        found = replace(found, theta=np.where(out, 0.0, found.theta))
    found = settled(pruned, found)
    inside = np.flatnonzero((best != 0) & task.penalised)
    at = path.chosen
    path = replace(
        path,
        why=why,
        n_terms=_put(path.n_terms, at, len(inside)),
        terms=_put(path.terms, at, inside),
        thetas=_put(path.thetas, at, best[inside]),
        residuals=_put(path.residuals, at, found.residual.max()),
    )
    return choice._replace(path=path, found=found)


def _put(values: Any, at: int, value: Any) -> Any:
    """A copy with one value changed."""
    values = values.copy()
    values[at] = value
    return values
