"""Samples that come in blocks: from files, from a generator, from the workers of a cluster.

All that is learned from samples are sums over them, so rows need not be in memory, nor in one place. A source can go
through its blocks again and again, adding up a function of each, always in the same order: what is learned depends on
how rows are cut into blocks by rounding alone. A first pass looks at every row: how many there are, whether all are
finite, and some of them, spread at random, which serve wherever part of the samples will do. Which rows are chosen
follows from their numbers, not from the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import poisson

from .arrays import Array
from .samples import ArraySamples

__all__ = ["Block", "Blocked", "BlockedSamples", "Reweighted", "Source", "uniform"]

_FEW = 1 << 15  # rows up to which all are taken into memory
_SOME = 1 << 17  # most rows that are kept
_SHARE = 8  # of the memory for those
_POISSON = poisson.cdf(np.arange(20), 1.0)
_NARROW = 24  # columns up to which each is gone through by itself
_AT_ONCE = 1 << 20  # rows whose numbers are drawn at once

Move = Callable[[np.ndarray], Array]
Keep = Callable[[np.ndarray], np.ndarray]


class Block(NamedTuple):
    """Rows of X, (n, p), with the number of the first; weight: (n,) or None; where: they come from, in words."""

    X: np.ndarray
    weight: np.ndarray | None
    start: int
    where: str


class Source(Protocol):
    """Blocks of rows, the same in every pass.

    labels: the names that columns have of their own, of whatever type, or None; memory: bytes that a pass may take
    here; here: whether blocks are computed on in this process.
    """

    columns: list[str]
    labels: list[Any] | None
    memory: int
    here: bool

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if it is known yet."""

    def reduce(self, function: Callable[[Block], Any]) -> Any:
        """Σ over blocks of function(block), whose values can be added, in the order of the blocks."""


class Reweighted:
    """A source with weights drawn for its rows, from their numbers: Poisson counts, or exponential ones.

    What a bootstrap fits to: where n is large a row is drawn a Poisson number of times, whatever the others are. A row
    that counts as w has Poisson counts of mean w, or a gamma weight of shape w; if weights are ratios of densities,
    what is drawn multiplies them.
    """

    def __init__(self, source: Source, kind: str, seed: int, ratios: bool = False) -> None:
        self.source, self.kind, self.seed, self.ratios = source, kind, seed, ratios
        self.columns, self.memory, self.here, self.labels = source.columns, source.memory, source.here, source.labels
        self.n_rows: int | None = None  # those that are drawn are fewer

    def reduce(self, function: Callable[[Block], Any]) -> Any:
        """Σ over blocks of function(block), with other weights."""
        return self.source.reduce(partial(_reweighted, function, self.kind, self.seed, self.ratios))


def _reweighted(function: Callable[[Block], Any], kind: str, seed: int, ratios: bool, block: Block) -> Any:
    u = uniform(block.start + np.arange(len(block.X)), seed)
    counts, given = kind == "nonparametric", block.weight
    if given is None or ratios:
        drawn = np.searchsorted(_POISSON, u, side="right").astype(np.float64) if counts else -np.log1p(-u)
        return function(block._replace(weight=drawn if given is None else drawn * given))
    drawn = poisson.ppf(u, given) if counts else gammaincinv(given, u)
    return function(block._replace(weight=np.where(given > 0, drawn, 0.0)))


@dataclass
class Look:
    """What one glance at rows shows; two of them, of rows that follow one another, add up to that of both."""

    n_rows: int
    total: float
    squares: float
    low: np.ndarray
    high: np.ndarray
    draw: np.ndarray
    rows: np.ndarray
    X: np.ndarray
    weight: np.ndarray | None
    most: int

    def __add__(self, other: Look) -> Look:
        joined = Look(
            self.n_rows + other.n_rows,
            self.total + other.total,
            self.squares + other.squares,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            np.append(self.draw, other.draw),
            np.append(self.rows, other.rows),
            np.concatenate([self.X, other.X]),
            None if self.weight is None or other.weight is None else np.append(self.weight, other.weight),
            self.most,
        )
        return joined.fewest()

    def fewest(self) -> Look:
        """With the rows whose numbers have the least draws, at most so many, in their order."""
        if len(self.draw) <= self.most:
            return self
        at = np.sort(np.argpartition(self.draw, self.most)[: self.most])
        weight = None if self.weight is None else self.weight[at]
        return replace(self, draw=self.draw[at], rows=self.rows[at], X=self.X[at], weight=weight)


def uniform(rows: np.ndarray, seed: int) -> np.ndarray:
    """A random number in [0, 1) for each row, from its number (splitmix64, of Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        z = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed % (1 << 64)) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)) * 2.0**-53


class Blocked:
    """Rows that were looked at: shape, column names, extremes, and some of them.

    kept, kept_weight, kept_rows: some of the rows, spread over all, their weights and their numbers. Rows that have no
    weight are not among the samples. importance: whether weights are ratios of densities, and made to sum to what they
    are worth, (Σw)²/Σw². move: puts a block where it is to be computed on.
    """

    def __init__(self, source: Source, importance: bool = False, move: Move | None = None) -> None:
        p = len(source.columns)
        most = int(np.clip(source.memory / _SHARE / (8 * p), 1024, _SOME))
        below = 1.0 if source.n_rows is None else 1.2 * (most + 1000) / source.n_rows
        look = source.reduce(partial(_looked, most=most, below=below, columns=source.columns))
        self.source, self.columns, self.move = source, source.columns, move
        self.shape, self.weighted = (look.n_rows, p), look.weight is not None
        self.factor = look.total / look.squares if importance and look.squares else 1.0
        self.total = look.total * self.factor
        self.low, self.high = look.low, look.high
        self.kept, self.kept_rows = look.X, look.rows
        self.kept_weight = None if look.weight is None else look.weight * self.factor

    @property
    def few(self) -> bool:
        """Whether they are so few that memory is the place for them."""
        return self.shape[0] <= _FEW

    def gathered(self) -> tuple[np.ndarray, np.ndarray | None]:
        """All rows, and their weights, in memory."""
        found = self.source.reduce(lambda block: _Gathered([_positive(block)]))
        weights = [block.weight for block in found.parts]
        return np.concatenate([block.X for block in found.parts]), np.concatenate(weights) if self.weighted else None


@dataclass
class _Gathered:
    parts: list[Block]

    def __add__(self, other: _Gathered) -> _Gathered:
        return _Gathered(self.parts + other.parts)


class BlockedSamples(ArraySamples):
    """`Blocked` rows seen as y = (x − location)/scale; keep: which rows, of their numbers, if not all."""

    in_memory = False

    def __init__(
        self,
        data: Blocked,
        location: np.ndarray,
        scale: np.ndarray,
        pool: ThreadPoolExecutor | None = None,
        *,
        single: bool = False,
        keep: Keep | None = None,
        n_rows: int | None = None,
    ) -> None:
        super().__init__(*self._few(data, keep), location, scale, pool, single=single)
        self.data, self.keep = data, keep
        self.at_hand, self.n_rows = self.n_rows, data.shape[0] if n_rows is None else n_rows
        self.total = data.total * self.n_rows / data.shape[0]

    @staticmethod
    def _few(data: Blocked, keep: Keep | None) -> tuple[Array, Array | None]:
        """Those of the rows that were kept, where they are computed on."""
        X, weight, move = data.kept, data.kept_weight, data.move
        if keep is not None:
            inside = keep(data.kept_rows)
            X, weight = X[inside], None if weight is None else weight[inside]
        return (X, weight) if move is None else (move(X), None if weight is None else move(weight))

    def sum(self, function: Callable[[Array, Array | None], Any], rows: int) -> Any:
        """Σ over blocks of at most `rows` samples of function(Y, counts), whose values can be added."""
        spread = (self.location, self.scale, self.single, self.keep, self.data.move, self.data.factor)
        pool = self._pool if self.data.source.here else None
        return self.data.source.reduce(partial(_summed, function, rows, spread, pool)).total

    def in_single(self) -> BlockedSamples:
        """The same samples, handed out in single precision."""
        return self._with(single=True)

    def subsample(self, n_rows: int, rng: np.random.Generator) -> ArraySamples:
        """So many rows at random, spread over the data: of those that were kept, as far as these go."""
        if n_rows > self.at_hand:
            return self.drawn(n_rows, rng)
        kept = ArraySamples(self.X, self.weight, self.location, self.scale, self._pool, single=self.single)
        return kept.subsample(n_rows, rng) if n_rows < self.at_hand else kept

    def drawn(self, n_rows: int, rng: np.random.Generator) -> ArraySamples:
        """About so many different rows at random."""
        return self._where(partial(_below, n_rows / self.n_rows, int(rng.integers(2**63))))

    def folds(self, many: int, together: np.ndarray | None = None) -> Iterator[tuple[ArraySamples, ArraySamples]]:
        """Samples without and with each of so many parts in turn; together: labels of rows that are not parted."""
        place = None if together is None else (np.unique(together, return_inverse=True)[1] % many).astype(np.int8)
        for fold in range(many):
            rest, part = (
                partial(_in_fold, many, fold, inside) if place is None else partial(_placed, place, fold, inside)
                for inside in (False, True)
            )
            yield self._where(rest), self._where(part)

    def take(self, at: np.ndarray) -> ArraySamples:
        """Some of the rows, in memory."""
        return self._here().take(at)

    def beside(self, columns: Array) -> ArraySamples:
        """The same samples with columns beside them, in memory."""
        return self._here().beside(columns)

    def steadied(self, rng: np.random.Generator) -> ArraySamples:
        """With rows that lie farther out, in memory: it is done to few samples."""
        return self._here().steadied(rng)

    def _here(self) -> ArraySamples:
        X, weight = self.data.gathered()
        move = self.data.move or (lambda x: x)
        weight = None if weight is None else move(weight * self.data.factor)
        return ArraySamples(move(X), weight, self.location, self.scale, self._pool)

    def _where(self, keep: Keep) -> BlockedSamples:
        n = self.data.shape[0]
        both = keep if self.keep is None else partial(_both, self.keep, keep)
        starts = range(0, n, _AT_ONCE)
        many = sum(int(np.count_nonzero(both(np.arange(a, min(a + _AT_ONCE, n))))) for a in starts)
        return self._with(keep=both, n_rows=many)

    def _with(self, **changed: Any) -> BlockedSamples:
        given = dict(single=self.single, keep=self.keep, n_rows=self.n_rows) | changed
        return BlockedSamples(self.data, self.location, self.scale, self._pool, **given)


@dataclass
class _Sum:
    """A sum, or nothing yet."""

    total: Any = None

    def __add__(self, other: _Sum) -> _Sum:
        if self.total is None or other.total is None:
            return other if self.total is None else self
        return _Sum(self.total + other.total)


def _summed(
    function: Callable[[Array, Array | None], Any],
    rows: int,
    spread: tuple[np.ndarray, np.ndarray, bool, Keep | None, Move | None, float],
    pool: ThreadPoolExecutor | None,
    block: Block,
) -> _Sum:
    """The sum over one block of the source."""
    location, scale, single, keep, move, factor = spread
    X, weight, _, _ = _positive(block, keep)
    if not len(X):
        return _Sum()
    if weight is not None and factor != 1:
        weight = weight * factor
    if move is not None:
        X, weight = move(X), None if weight is None else move(weight)
    return _Sum(ArraySamples(X, weight, location, scale, pool, single=single).sum(function, rows))


def _positive(block: Block, keep: Keep | None = None) -> Block:
    """The rows that have a weight, and are to be kept."""
    X, weight, start, _ = block
    if keep is None and (weight is None or (weight > 0).all()):
        return block
    there = np.ones(len(X), bool) if weight is None else weight > 0
    if keep is not None:
        there &= keep(start + np.arange(len(X)))
    return block._replace(X=X[there], weight=None if weight is None else weight[there])


def _looked(block: Block, most: int, below: float, columns: Sequence[str]) -> Look:
    """A glance at one block; an error where it holds what no sample may be. below: draws of rows that may be kept."""
    X, weight = block.X, block.weight
    with np.errstate(over="ignore", invalid="ignore"):
        fine = np.isfinite(X.sum()) or np.isfinite(X).all()
    if not fine:
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise ValueError(
            f"Input contains NaN or infinity: {columns[column]} is {X[row, column]} in row {block.start + row:,} "
            f"({block.where}). Drop such rows or fill in the values"
        )
    if weight is not None and not np.all(np.isfinite(weight) & (weight >= 0)):
        row = int(np.argmin(np.isfinite(weight) & (weight >= 0)))
        raise ValueError(
            f"sample_weight is negative or not finite in row {block.start + row:,} ({block.where}): {weight[row]}"
        )
    rows = block.start + np.arange(len(X))
    if weight is not None and not (weight > 0).all():
        there = weight > 0
        X, weight, rows = X[there], weight[there], rows[there]
    p = len(columns)
    low, high = _extremes(X) if len(X) else (np.full(p, np.inf), np.full(p, -np.inf))
    total, squares = (len(X), len(X)) if weight is None else (weight.sum(), np.square(weight).sum())
    draw, n = uniform(rows, 0), len(X)
    if below < 1 and weight is None:
        some = draw < below
        draw, rows, X, weight = draw[some], rows[some], X[some], None if weight is None else weight[some]
    return Look(n, float(total), float(squares), low, high, draw, rows, X, weight, most).fewest()


def _extremes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest of every column; by columns where these are few, which is many times as fast."""
    if X.shape[1] > _NARROW:
        return X.min(axis=0), X.max(axis=0)
    return np.array([x.min() for x in X.T]), np.array([x.max() for x in X.T])


def _below(share: float, seed: int, rows: np.ndarray) -> np.ndarray:
    return uniform(rows, seed) < share


def _placed(place: np.ndarray, fold: int, inside: bool, rows: np.ndarray) -> np.ndarray:
    return (place[rows] == fold) == inside


def _in_fold(many: int, fold: int, inside: bool, rows: np.ndarray) -> np.ndarray:
    return ((uniform(rows, 1) * many).astype(int) == fold) == inside


def _both(one: Keep, other: Keep, rows: np.ndarray) -> np.ndarray:
    return one(rows) & other(rows)
