"""How strong a penalty is to be: a path of structures, and which of them the data support.

Every λ of a path leaves a structure, the terms that all their nodes keep ("and") or any does ("or"). What a structure
is worth is asked of pseudo-likelihood's estimate over its terms without a penalty: shrunk estimates want more terms
than there are. Three ways to ask:

"ebic"   extended Bayes information criterion (Chen and Chen, 2008; Foygel and Drton, 2010), of all nodes,
         Σ_i 2n F_i + k_i log n + 2γ log C(K_i, k_i), with k_i of K_i penalised terms in node i, γ = 1: the least. Terms
         of a structure that cost more than they gain are taken out of it first: a penalty lets some in for the sake of
         others that it shrinks, and where variables are correlated there may be no λ at which it does not. Then slopes
         are small, too, and what pays enters late: a path goes on as long as all pairs at once are worth more than any
         of its points.
"cv"     F on samples that were left out, in turn: the fewest terms within a standard error of the least.
"stars"  stability (Liu, Roeder and Wasserman, 2010): the weakest penalty at which structures of subsamples hardly
         differ: 2ξ(1 − ξ), averaged over all penalised terms, ξ the share of subsamples that choose one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from .arrays import available_memory
from .basis import MonomialBasis
from .checks import Interrupted, telling_where, warn
from .consensus import agreed
from .losses.pseudo_likelihood import PseudoLikelihoodLoss
from .nodewise import GramNodes, Nodes, SampledNodes, TiltedNodes
from .path import LOOSE, Penalized, Start, begin, follow, over, settled
from .penalty_path import PenaltyPath
from .progress import report
from .regression import moments_there
from .samples import ArraySamples

__all__ = ["METHODS", "Choice", "Task", "choose", "grid", "likelihood_nodes", "settle", "trace", "weakest"]

METHODS = ("ebic", "cv", "stars")
_POINTS = 30
_WEAKEST = 0.5  # of the slope at which a term pays, where a path ends
_GAMMA = 1.0
_ALIKE = 2.0  # differences of EBIC that say nothing
_EXACT = 1e-4  # of the slopes of estimates without a penalty, n times whose squares are differences of EBIC
_FEW_STEPS = 12  # where samples are too few for so many terms there may be no minimum: what it is like is clear by then
_SUBSAMPLES, _FEWEST, _UNSTABLE = 20, 5, 0.05
_LATER, _WORSE = 6, 10.0  # so many points in a row that are so much worse end a path by "ebic"
_FARTHEST, _MANY = 1e-3, 5  # of the first λ, where the last way ends; samples a variable for which there is one


class Task(NamedTuple):
    """A fit with a penalty, for any samples. theta, weight, low: by term, (M,); rule: "and" or "or".

    elsewhere: (p,), how many more penalised terms each variable has, which are not in the basis since none would enter.
    """

    basis: MonomialBasis
    make: Callable[[ArraySamples], Nodes]
    theta: np.ndarray
    weight: np.ndarray
    low: np.ndarray
    raw: bool
    tol: float
    max_iter: int
    rule: str
    likelihood_theta: np.ndarray
    likelihood_low: np.ndarray
    elsewhere: np.ndarray | int = 0

    @property
    def penalised(self) -> np.ndarray:
        """Which terms have a penalty, (M,) of bool."""
        return (self.weight > 0) & np.isfinite(self.weight)

    def start(self, samples: ArraySamples) -> Start:
        """The model without penalised terms."""
        nodes = self.make(samples)
        options: dict[str, Any] = dict(raw=self.raw, tol=self.tol, max_iter=self.max_iter)
        by_term = ((self.theta, 0.0), (self.weight, np.inf), (self.low, -np.inf), (self.basis.orders == 1, False))
        return begin(nodes, *(_in_places(nodes, *pair) for pair in by_term), **options)

    def structure(self, start: Start, found: Penalized) -> np.ndarray:
        """One θ for all nodes, (M,)."""
        return agreed(start.nodes.terms, found.theta, len(self.basis), self.rule)


def likelihood_nodes(basis: MonomialBasis, samples: ArraySamples) -> Nodes:
    """Pseudo-likelihood, which at degree 2 the second moments tell; at higher ones tilted, where memory allows."""
    need = 8 * samples.n_rows * (basis.degree + 2) * basis.n_variables  # bytes of what is kept for all samples
    if _is_gaussian(basis) or need > 0.2 * available_memory() or not samples.in_memory:
        return _exact(basis, samples)
    return TiltedNodes(basis, samples)


def _is_gaussian(basis: MonomialBasis) -> bool:
    return basis.degree == 2 and basis.spaces is None


def _exact(basis: MonomialBasis, samples: ArraySamples) -> Nodes:
    if _is_gaussian(basis):
        return GramNodes(basis, moments_there(samples))
    return SampledNodes(basis, PseudoLikelihoodLoss(tol=1e-8), samples)


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
    end = _WEAKEST * unit * np.sqrt((np.log(n) + 2 * _GAMMA * np.log(many)) / n)
    return float(min(max(end, 1e-3 * top), 0.5 * top))


def trace(
    task: Task, start: Start, l1: np.ndarray, what: str = "penalties", here: Penalized | None = None
) -> Iterator[tuple[Penalized, np.ndarray]]:
    """The solution of all nodes and the structure at each λ, one after the other; here: at a larger one."""
    for k, found in enumerate(follow(start, l1.tolist(), here, tol=max(start.tol, LOOSE * l1.min()))):
        report(what, k + 1, len(l1))
        yield found, task.structure(start, found)


class Choice(NamedTuple):
    """A path with its chosen point, and what is there; `settle` makes it exact.

    solutions: at each point; interrupted: whether there were to be more.
    """

    path: PenaltyPath
    start: Start
    found: Penalized
    judge: _Ebic | _HeldOut | _Stable
    solutions: list[Penalized]
    interrupted: bool


def choose(
    task: Task,
    samples: ArraySamples,
    n: float,
    how: str,
    l1: Sequence[float] | None,
    folds: int = 5,
) -> Choice:
    """Follow a path and choose. how: "ebic", "cv" or "stars"; n: the sum of the weights.

    A Ctrl-C leaves the choice among what was finished, with a warning; where that is nothing, it says where it was.
    """
    with telling_where("before the first penalty was reached: nothing is kept"):
        start = task.start(samples)
        values = np.asarray(grid(task, start, n) if l1 is None else l1, float)
        if not start.l1_max > 0:
            how, values = "ebic", values[:1]
        judge: Any = {
            "ebic": lambda: _Ebic(task, samples, n, ~start.lost),
            "cv": lambda: _HeldOut(task, samples, values, folds, ~start.lost),
            "stars": lambda: _Stable(task, samples, values),
        }[how]()
    solutions, found, interrupted = [], [], False
    try:
        for point, theta in _walk(task, start, values, judge, l1 is None):
            solutions.append(point)
            found.append(theta)
    except KeyboardInterrupt:
        if not found:
            raise KeyboardInterrupt(f"interrupted at penalty 1 of {len(values)}: nothing is kept") from None
        _say_interrupted(len(found), len(values), "penalties")
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
    """The points of a path, until there are enough; if it may, beyond its end, in larger steps."""
    for point, theta in trace(task, start, l1):
        enough = judge.enough(theta)
        yield point, theta
        if enough:
            return
    if not open_ended or len(l1) < 2 or not judge.falls_short():
        return
    ratio = (l1[-1] / l1[-2]) ** 2
    more = l1[-1] * ratio ** np.arange(1, 1 + int(np.log(_FARTHEST * l1[0] / l1[-1]) / np.log(ratio)))
    for weaker, theta in trace(task, start, more, "weaker penalties", point) if len(more) else ():
        enough = judge.enough(theta)
        yield weaker, theta
        if enough or judge.settled():
            return


def settle(task: Task, choice: Choice) -> Choice:
    """What was chosen without the terms that its judge would not pay for, solved to the tolerance of its start."""
    path, start, found, judge = choice[:4]
    theta = task.structure(start, found)
    best = judge.pruned(theta)
    fewer = int(np.count_nonzero(theta) - np.count_nonzero(best))
    pruned, why = start, path.why
    if fewer:
        why += f", after {fewer} term{'s' * (fewer != 1)} that did not pay {'were' if fewer != 1 else 'was'} left out"
        free = task.penalised & (task.low == -np.inf)  # what has a least value is never left out
        out = _in_places(start.nodes, (best == 0) & free, True)
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


def _say_interrupted(done: int, of: int, what: str) -> None:
    count = f"{done} of {of}" if done < of else f"{done}"  # a path may go on beyond its end
    warn(f"interrupted after {count} {what}: the choice is among those", Interrupted)


def _too_early(done: int, l1: np.ndarray, where: str, needed: str) -> KeyboardInterrupt:
    return KeyboardInterrupt(
        f"interrupted after {done} of {len(l1)} penalties of {where}: to choose takes {needed}, so nothing is kept"
    )


class _Refits:
    """Pseudo-likelihood's optimum over a structure, node by node, each from the one before."""

    def __init__(self, task: Task, samples: ArraySamples) -> None:
        self.task, self.nodes = task, likelihood_nodes(task.basis, samples)
        self.low = _in_places(self.nodes, task.likelihood_low, -np.inf)
        theta = _in_places(self.nodes, task.likelihood_theta, 0.0)
        unknown = np.full(len(theta), np.inf)
        self._last = Penalized(0.0, theta, unknown, np.zeros_like(theta), unknown, 0, np.zeros_like(theta))

    def __call__(self, theta: np.ndarray) -> Penalized:
        """At the terms where θ, (M,), is not zero, and those without a penalty."""
        inside = (theta != 0) | (self.task.weight == 0) | (self.task.likelihood_low > -np.inf)
        places = _in_places(self.nodes, inside, False)
        self._last = over(self.nodes, self._last, places, self.low, tol=_EXACT, max_iter=_FEW_STEPS)
        return self._last


class _Ebic:
    def __init__(self, task: Task, samples: ArraySamples, n: float, asked: np.ndarray) -> None:
        """asked: the nodes that count, (p,) of bool."""
        self.n, self.refits, self.paying, self.asked = n, _Refits(task, samples), _Refits(task, samples), asked
        self.samples = samples
        self._pairs: float | None = None
        self.values: list[float] = []
        self.terms = self.refits.nodes.terms
        priced = task.penalised & (task.likelihood_low == -np.inf)
        self.penalised = _in_places(self.refits.nodes, priced, False)
        self.many = np.count_nonzero(self.penalised, axis=1) + task.elsewhere
        one = np.log(n) + 2 * _GAMMA * np.log(np.maximum(self.many, 1))
        self.price = self._by_term(np.where(self.penalised, one[:, None], 0.0))

    def _by_term(self, x: np.ndarray) -> np.ndarray:
        """The sum over its nodes, (M,), of what each term has there, (p, K)."""
        there = x != 0
        return np.bincount(self.terms[there], weights=x[there], minlength=len(self.refits.task.basis))

    def _gain(self, found: Penalized) -> np.ndarray:
        """2n (F without a term − F), (M,), to second order: its squared Wald statistics, added up."""
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = np.where(self.penalised & (found.spread > 0), self.n * found.theta**2 / found.spread, 0.0)
        return self._by_term(squares)

    def _weak(self, theta: np.ndarray, found: Penalized) -> list[int]:
        """Terms that do not pay, one of each group of variables: of two that are nearly the same, one may be needed."""
        gain = self._gain(found)
        weak = np.flatnonzero((theta != 0) & (self.price > 0) & (gain < self.price))
        factors = self.refits.task.basis.factors
        weakest: dict[frozenset[int], int] = {}
        for k in weak[np.argsort(gain[weak] / self.price[weak])].tolist():
            weakest.setdefault(frozenset(factors[k].tolist()), k)
        return list(weakest.values())

    def pruned(self, theta: np.ndarray) -> np.ndarray:
        """θ with zeros for terms that do not pay."""
        theta, found = theta.copy(), self.refits(theta)
        while weak := self._weak(theta, found):
            theta[weak] = 0.0
            found = self.paying(theta)
        return theta

    def _value(self, kept: Penalized) -> float:
        k = np.count_nonzero((kept.theta != 0) & self.penalised, axis=1)
        ways = gammaln(self.many + 1) - gammaln(k + 1) - gammaln(self.many - k + 1)
        value = 2 * self.n * kept.value + k * np.log(self.n) + 2 * _GAMMA * ways
        return float(value[self.asked].sum())

    def enough(self, theta: np.ndarray) -> bool:
        self.values.append(self._value(self.paying(self.pruned(theta))))
        return len(self.values) > _LATER and min(self.values[-_LATER:]) > min(self.values) + _WORSE

    def falls_short(self) -> bool:
        """Whether all pairs, as a Gaussian has them, are worth more than any point of the path."""
        task = self.refits.task
        if self.n < _MANY * task.basis.n_variables:
            return False
        if self._pairs is None:
            inside = (task.basis.degrees <= 2) & np.isfinite(task.weight)
            self._pairs = self._value(_Refits(task, self.samples)(inside.astype(float)))
        return self._pairs < min(self.values) - _ALIKE

    def settled(self) -> bool:
        """Whether the last points are no better than those before, and these no worse than all pairs."""
        return min(self.values[-_LATER:]) > min(self.values[:-_LATER]) - _ALIKE and not self.falls_short()

    def verdict(self, found: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int, str]:
        values = np.array(self.values[: len(found)])
        chosen = int(np.argmax(values <= values.min() + _ALIKE))
        return values, np.full(len(values), np.nan), chosen, "the least extended BIC"


class _HeldOut:
    def __init__(self, task: Task, samples: ArraySamples, l1: np.ndarray, folds: int, asked: np.ndarray) -> None:
        """asked: the nodes that count, (p,) of bool."""
        self.scores = np.empty((folds, len(l1)))
        parts = samples.folds(folds)
        for fold in range(folds):
            what, k = f"penalties, fold {fold + 1} of {folds}", -1
            try:
                train, rest = next(parts)
                refits, unseen = _Refits(task, train), _exact(task.basis, rest)
                for k, (_, theta) in enumerate(trace(task, task.start(train), l1, what)):
                    value, _ = unseen.full(refits(theta).theta)
                    self.scores[fold, k] = value[asked].mean()
            except KeyboardInterrupt:
                if fold < 2:
                    raise _too_early(k + 1, l1, f"fold {fold + 1} of {folds}", "two folds") from None
                _say_interrupted(fold, folds, "folds")
                self.scores = self.scores[:fold]
                break

    def pruned(self, theta: np.ndarray) -> np.ndarray:
        return theta

    def enough(self, theta: np.ndarray) -> bool:
        return False

    def falls_short(self) -> bool:
        return False

    def verdict(self, found: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int, str]:
        scores = self.scores[:, : len(found)]
        mean = scores.mean(axis=0)
        least = int(np.argmin(mean))
        # of the differences from the least: what the folds share does not blur the comparison
        error = (scores - scores[:, least : least + 1]).std(axis=0, ddof=1) / np.sqrt(len(scores))
        chosen = int(np.argmax(mean - mean[least] <= error))
        return mean, error, chosen, f"the strongest penalty within a standard error of the least of {len(scores)} folds"


class _Stable:
    def __init__(self, task: Task, samples: ArraySamples, l1: np.ndarray) -> None:
        rng, size = np.random.default_rng(0), samples.n_rows
        some = int(min(0.8 * size, max(10 * np.sqrt(size), 0.5 * size)))
        counts, done = np.zeros((len(l1), np.count_nonzero(task.penalised)), np.int16), 0
        for k in range(_SUBSAMPLES):
            what, chosen = f"penalties, subsample {k + 1} of {_SUBSAMPLES}", []
            try:
                part = task.start(samples.drawn(some, rng))
                for _, theta in trace(task, part, l1, what):
                    chosen.append(theta[task.penalised] != 0)
            except KeyboardInterrupt:
                if k < _FEWEST:
                    where = f"subsample {k + 1} of {_SUBSAMPLES}"
                    raise _too_early(len(chosen), l1, where, f"{_FEWEST} subsamples") from None
                _say_interrupted(k, _SUBSAMPLES, "subsamples")
                break
            counts += np.array(chosen)
            done += 1
        share = counts / done
        self.values = np.maximum.accumulate((2 * share * (1 - share)).mean(axis=1))

    def pruned(self, theta: np.ndarray) -> np.ndarray:
        return theta

    def enough(self, theta: np.ndarray) -> bool:
        return False

    def falls_short(self) -> bool:
        return False

    def verdict(self, found: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int, str]:
        values = self.values[: len(found)]
        chosen = int(np.flatnonzero(values <= _UNSTABLE)[-1]) if (values <= _UNSTABLE).any() else 0
        why = f"the weakest penalty with an instability below {_UNSTABLE}"
        if chosen + 1 < len(values):
            why += f"; at the next it is {values[chosen + 1]:.2g}"
        return values, np.full(len(values), np.nan), chosen, why


def _in_places(nodes: Nodes, by_term: np.ndarray, otherwise: Any) -> np.ndarray:
    """What is given by term, (M,), in the places of the nodes, (p, K)."""
    return np.where(nodes.terms >= 0, by_term[nodes.terms], otherwise)
