"""What the structures of a path are worth, by three criteria; selection.py says which.

Each is asked for a verdict on all structures that were found; "ebic", point by point, also when a path is long enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from .arrays import available_memory
from .basis import MonomialBasis
from .checks import Interrupted, warn
from .consensus import agreed
from .losses.pseudo_likelihood import PseudoLikelihoodLoss
from .nodewise import GramNodes, Nodes, SampledNodes, TiltedNodes
from .path import LOOSE, Penalized, Start, begin, follow, over
from .progress import report
from .regression import moments_there
from .samples import ArraySamples

__all__ = ["GAMMA", "Ebic", "HeldOut", "Stable", "Task", "in_places", "likelihood_nodes", "say_interrupted", "trace"]

GAMMA = 1.0
_ALIKE = 2.0  # differences of EBIC that say nothing
_EXACT = 1e-4  # of the slopes of estimates without a penalty, n times whose squares are differences of EBIC
_FEW_STEPS = 12  # where samples are too few for so many terms there may be no minimum: what it is like is clear by then
_MANY_STEPS, _SOLVED = 50, 1e-2  # where the start is far; and the slopes beyond which it has not come to an end
_SUBSAMPLES, _FEWEST, _UNSTABLE = 20, 5, 0.05
_LATER, _WORSE = 6, 10.0  # so many points in a row that are so much worse end a path by "ebic"
_MANY = 5  # samples a term of a variable from which on all terms at once are worth asking for
_EFFORT = 1e8  # multiplications of a pass over all terms at once, beyond which it takes longer than a path


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
        return begin(nodes, *(in_places(nodes, *pair) for pair in by_term), **options)

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


def trace(task: Task, start: Start, l1: np.ndarray, what: str = "penalties") -> Iterator[tuple[Penalized, np.ndarray]]:
    """The solution of all nodes and the structure at each λ, one after the other."""
    for k, found in enumerate(follow(start, l1.tolist(), tol=max(start.tol, LOOSE * l1.min()))):
        report(what, k + 1, len(l1))
        yield found, task.structure(start, found)


def in_places(nodes: Nodes, by_term: np.ndarray, otherwise: Any) -> np.ndarray:
    """What is given by term, (M,), in the places of the nodes, (p, K)."""
    return np.where(nodes.terms >= 0, by_term[nodes.terms], otherwise)


def say_interrupted(done: int, of: int, what: str) -> None:
    """A warning of how far it came."""
    count = f"{done} of {of}" if done < of else f"{done}"
    warn(f"interrupted after {count} {what}: the choice is among those", Interrupted)


def _too_early(done: int, l1: np.ndarray, where: str, needed: str) -> KeyboardInterrupt:
    return KeyboardInterrupt(
        f"interrupted after {done} of {len(l1)} penalties of {where}: to choose takes {needed}, so nothing is kept"
    )


class _Refits:
    """Pseudo-likelihood's optimum over a structure, node by node, each from the one before."""

    def __init__(self, task: Task, samples: ArraySamples) -> None:
        self.task, self.nodes = task, likelihood_nodes(task.basis, samples)
        self.low = in_places(self.nodes, task.likelihood_low, -np.inf)
        theta = in_places(self.nodes, task.likelihood_theta, 0.0)
        unknown = np.full(len(theta), np.inf)
        self._last = Penalized(0.0, theta, unknown, np.zeros_like(theta), unknown, 0, np.zeros_like(theta))

    def __call__(self, theta: np.ndarray, far: bool = False) -> Penalized:
        """At the terms where θ, (M,), is not zero, and those without a penalty; far: from the one before."""
        inside = (theta != 0) | (self.task.weight == 0) | (self.task.likelihood_low > -np.inf)
        places = in_places(self.nodes, inside, False)
        nodes = self.nodes.exact if far and isinstance(self.nodes, TiltedNodes) else self.nodes
        steps = _MANY_STEPS if far else _FEW_STEPS
        self._last = over(nodes, self._last, places, self.low, tol=_EXACT, max_iter=steps)
        return self._last


class Ebic:
    """The extended Bayes information criterion, without terms that do not pay."""

    def __init__(self, task: Task, samples: ArraySamples, n: float, asked: np.ndarray) -> None:
        """asked: the nodes that count, (p,) of bool."""
        self.n, self.refits, self.paying, self.asked = n, _Refits(task, samples), _Refits(task, samples), asked
        self.values: list[float] = []
        self.points, self.best = 0, np.zeros(len(task.basis))  # how many had a penalty; the best of those
        self.terms = self.refits.nodes.terms
        priced = task.penalised & (task.likelihood_low == -np.inf)
        self.penalised = in_places(self.refits.nodes, priced, False)
        self.many = np.count_nonzero(self.penalised, axis=1) + task.elsewhere
        one = np.log(n) + 2 * GAMMA * np.log(np.maximum(self.many, 1))
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
        return self._shrunk(theta, self.refits(theta), self.paying)[0]

    def _shrunk(
        self, theta: np.ndarray, found: Penalized, refits: Callable[[np.ndarray], Penalized]
    ) -> tuple[np.ndarray, Penalized]:
        theta = theta.astype(float)
        while weak := self._weak(theta, found):
            theta[weak] = 0.0
            found = refits(theta)
        return theta, found

    def _value(self, kept: Penalized) -> float:
        k = np.count_nonzero((kept.theta != 0) & self.penalised, axis=1)
        ways = gammaln(self.many + 1) - gammaln(k + 1) - gammaln(self.many - k + 1)
        value = 2 * self.n * kept.value + k * np.log(self.n) + 2 * GAMMA * ways
        return float(value[self.asked].sum())

    def enough(self, theta: np.ndarray) -> bool:
        """Take in the next structure; whether more would be of no use."""
        kept = self.pruned(theta)
        self.values.append(self._value(self.paying(kept)))
        self.points += 1
        self.best = kept if self.values[-1] <= min(self.values) else self.best
        return len(self.values) > _LATER and min(self.values[-_LATER:]) > min(self.values) + _WORSE

    def without_penalty(self) -> Penalized | None:
        """All candidates at once, or all pairs, less what does not pay, if that is worth more than any point so far."""
        task, found = self.refits.task, None
        if np.any(task.elsewhere) or not self.asked.all():
            return None
        sets = [some & np.isfinite(task.weight) for some in (task.basis.degrees <= 2, task.basis.degrees > 0)]
        sets = [inside for inside in sets if self._affordable(inside)]
        if not sets:
            return None
        report("all candidates at once", 0)
        path = partial(copy(self.refits), far=True)(self.best)
        best = min(*self.values, self._value(path))
        for inside in sets:
            exactly = partial(copy(self.refits), far=True)
            kept = exactly(inside)
            if kept.residual.max() <= _SOLVED:
                _, kept = self._shrunk(inside, kept, exactly)
            if kept.residual.max() <= _SOLVED and self._value(kept) < best - _ALIKE:
                found, best = replace(kept, l1=0.0), self._value(kept)
        if found is not None:
            self.values.append(best)
        return found

    def _affordable(self, inside: np.ndarray) -> bool:
        """Whether samples are many enough for these terms, (M,) of bool, at once, and few enough to ask."""
        nodes = self.refits.nodes
        many = np.count_nonzero(in_places(nodes, inside, False), axis=1).astype(float)
        passed = 1.0 if isinstance(nodes, GramNodes) else self.n
        return self.n >= _MANY * many.max() and passed * np.sum(many**2) <= _EFFORT

    def verdict(self, found: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int, str]:
        """The value of each structure, its error, which one is chosen, and why."""
        values = np.array(self.values[: len(found)])
        chosen = int(np.argmax(values <= values.min() + _ALIKE))
        why = "the least extended BIC" + ", without a penalty" * (chosen >= self.points)
        return values, np.full(len(values), np.nan), chosen, why


class _AtTheEnd:
    """A criterion that has nothing to say before a path is finished, nor of single terms."""

    def pruned(self, theta: np.ndarray) -> np.ndarray:
        return theta

    def enough(self, theta: np.ndarray) -> bool:
        return False

    def without_penalty(self) -> None:
        return None


class HeldOut(_AtTheEnd):
    """−log P a variable of samples that were left out."""

    def __init__(self, task: Task, l1: np.ndarray, parts: Iterator[Any], folds: int, asked: np.ndarray) -> None:
        """parts: pairs of samples, without and with each fold in turn; asked: the nodes that count, (p,) of bool."""
        self.scores = np.empty((folds, len(l1)))
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
                say_interrupted(fold, folds, "folds")
                self.scores = self.scores[:fold]
                break

    def verdict(self, found: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int, str]:
        """The value of each structure, its error, which one is chosen, and why."""
        scores = self.scores[:, : len(found)]
        mean = scores.mean(axis=0)
        least = int(np.argmin(mean))
        # of the differences from the least: what the folds share does not blur the comparison
        error = (scores - scores[:, least : least + 1]).std(axis=0, ddof=1) / np.sqrt(len(scores))
        chosen = int(np.argmax(mean - mean[least] <= error))
        return mean, error, chosen, f"the strongest penalty within a standard error of the least of {len(scores)} folds"


class Stable(_AtTheEnd):
    """How much structures of subsamples differ."""

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
                say_interrupted(k, _SUBSAMPLES, "subsamples")
                break
            counts += np.array(chosen)
            done += 1
        share = counts / done
        self.values = np.maximum.accumulate((2 * share * (1 - share)).mean(axis=1))

    def verdict(self, found: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int, str]:
        """The value of each structure, its error, which one is chosen, and why."""
        values = self.values[: len(found)]
        chosen = int(np.flatnonzero(values <= _UNSTABLE)[-1]) if (values <= _UNSTABLE).any() else 0
        why = f"the weakest penalty with an instability below {_UNSTABLE}"
        if chosen + 1 < len(values):
            why += f"; at the next it is {values[chosen + 1]:.2g}"
        return values, np.full(len(values), np.nan), chosen, why
