"""The strength of an L1 penalty from the data: an information criterion, held-out scores, or what halves agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import pandas as pd
from scipy.special import gammaln

from ..terms import Key

__all__ = ["Problem", "SparsePath", "by_ebic", "by_folds", "by_stability", "default_path"]

Array = np.ndarray
_POINTS, _LEAST, _FEWEST = 40, 0.7, 3e-3  # of a path: its last strength in units of 1/√n, and of its first
_GAMMA = 1.0  # of the extended criterion
_LATER, _WORSE = 5, 10.0  # so many points in a row that are so much worse end a path
_UNSTABLE = 0.05


class Problem(Protocol):
    """Nodes with an L1 penalty of any strength: `SparseProblem` or `GramProblem`."""

    n: float
    largest: float

    @property
    def candidates(self) -> Array:
        """The penalised terms."""

    def at(self, strength: float) -> Any:
        """The optimum at one strength."""

    def path(self, strengths: Sequence[float]) -> Iterator[Any]:
        """The optimum at each of a decreasing sequence of strengths."""

    def kept(self, solution: Any, rule: str) -> Array:
        """Which penalised terms are in the model."""

    def count(self, kept: Array) -> int:
        """How many terms these are."""

    def losses(self, kept: Array) -> Array:
        """Pseudo-likelihood's least loss of each node with the kept terms alone, (p,)."""

    def sizes(self, kept: Array) -> tuple[Array, Array]:
        """How many penalised terms each node keeps, and of how many, (p,) each."""

    def joint(self, solution: Any, rule: str, consensus: str) -> dict[Key, float]:
        """One value for each term that is in the model, and for each that has no penalty."""


@dataclass(frozen=True)
class SparsePath:
    """Strengths that were tried, from the largest on, and which was taken.

    Attributes
    ----------
    criterion : {"ebic", "cv", "stars"}
    strengths : tuple of float
    n_terms : tuple of int
        Penalised terms in the model.
    scores : tuple of float
        The criterion: of "ebic" and "stars" (the instability) less is better, of "cv" more.
    chosen : int
    interrupted : bool
    """

    criterion: str
    strengths: tuple[float, ...]
    n_terms: tuple[int, ...]
    scores: tuple[float, ...]
    chosen: int
    interrupted: bool = False

    @property
    def strength(self) -> float:
        """The strength that was taken."""
        return self.strengths[self.chosen]

    def in_units(self, unit: float) -> Self:
        """The same strengths over a unit."""
        return replace(self, strengths=tuple(strength / unit for strength in self.strengths))

    def to_frame(self) -> pd.DataFrame:
        """One row per strength: strength, n_terms, the criterion, chosen."""
        columns = {"strength": self.strengths, "n_terms": self.n_terms, self.criterion: self.scores}
        return pd.DataFrame(columns | {"chosen": np.arange(len(self.strengths)) == self.chosen})


def default_path(problem: Problem, in_noise: bool) -> list[float]:
    """Strengths from the first at which no penalised term is in the model down to what chance alone lets in."""
    largest = problem.largest
    if not largest > 0:
        return []
    least = max(_LEAST / np.sqrt(problem.n), _FEWEST * largest) if in_noise else 0.01 * largest
    return np.geomspace(largest, min(least, 0.5 * largest), _POINTS).tolist()


def by_ebic(problem: Problem, strengths: Sequence[float], rule: str) -> SparsePath:
    """Σ_i 2n F_i + k_i log n + 2γ log C(K_i, k_i): F_i the least loss of node i with its k_i of K_i terms, γ = 1.

    A node with more terms than half the rows is out of its reach: the loss of as many terms as rows has no bound. Ends
    where the criterion has become much worse. An interrupt keeps the path so far.
    """
    found: list[tuple[float, int, float]] = []
    stopped, known = False, dict[bytes, float]()
    try:
        for solution in problem.path(strengths):
            kept = problem.kept(solution, rule)
            mark = np.packbits(kept).tobytes()
            if mark not in known:
                k, K = problem.sizes(kept)
                choices = gammaln(K + 1) - gammaln(k + 1) - gammaln(K - k + 1)
                losses = 2 * problem.n * problem.losses(kept)
                worth = float(np.sum(losses + k * np.log(problem.n) + 2 * _GAMMA * choices))
                known[mark] = worth if k.max(initial=0) <= problem.n / 2 else np.inf
            found.append((solution.strength, problem.count(kept), known[mark]))
            best = min(score for *_, score in found)
            if len(found) > _LATER and all(not score < best + _WORSE for *_, score in found[-_LATER:]):
                break
    except KeyboardInterrupt:
        if not found:
            raise
        stopped = True
    return _path("ebic", found, int(np.argmin([_finite(score, np.inf) for *_, score in found])), stopped)


def by_folds(
    whole: Problem,
    folds: Sequence[tuple[Problem, Callable[[Any], float]]],
    strengths: Sequence[float],
    rule: str,
) -> SparsePath:
    """The largest mean score over folds, each a problem on its rows and the score of a solution on the others."""
    found: list[tuple[float, int, float]] = []
    stopped = False
    try:
        paths = [(problem.path(strengths), score) for problem, score in folds]
        for solution in whole.path(strengths):
            mean = float(np.mean([score(next(path)) for path, score in paths]))
            found.append((solution.strength, whole.count(whole.kept(solution, rule)), mean))
    except KeyboardInterrupt:
        if not found:
            raise
        stopped = True
    return _path("cv", found, int(np.argmax([_finite(score, -np.inf) for *_, score in found])), stopped)


def by_stability(whole: Problem, halves: Iterator[Problem], strengths: Sequence[float], rule: str) -> SparsePath:
    """The smallest strength down to which halves of the rows disagree on at most 5 % of the penalised terms.

    Two halves disagree with chance 2ξ(1 − ξ) on a term that the share ξ of them keeps (Liu, Roeder and Wasserman 2010).
    """
    found: list[tuple[float, int, float]] = []
    stopped, worst, penalised = False, 0.0, max(int(np.count_nonzero(whole.candidates)), 1)
    try:
        paths = [half.path(strengths) for half in halves]
        for solution in whole.path(strengths):
            kept = whole.kept(solution, rule)
            share = np.mean([whole.kept(next(path), rule) for path in paths], axis=0)
            worst = max(worst, float(np.sum(2 * share * (1 - share))) / penalised)
            found.append((solution.strength, whole.count(kept), worst))
            if worst > _UNSTABLE:
                break
    except KeyboardInterrupt:
        if not found:
            raise
        stopped = True
    fine = [k for k, (*_, score) in enumerate(found) if score <= _UNSTABLE]
    return _path("stars", found, fine[-1] if fine else 0, stopped)


def _path(criterion: str, found: Sequence[tuple[float, int, float]], chosen: int, stopped: bool) -> SparsePath:
    strengths, counts, scores = zip(*found, strict=True)
    return SparsePath(criterion, strengths, counts, scores, chosen, stopped)


def _finite(value: float, other: float) -> float:
    return value if np.isfinite(value) else other
