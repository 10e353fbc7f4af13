"""Where blocks of samples come from, and how sums over them are formed.

A source of samples gives sums of a function over blocks; how the blocks are visited, in threads here,
is its own affair. Blocks are handed out in standardised variables, a variable a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from array_api_compat import is_array_api_obj
from sklearn.utils import check_random_state

from .arrays import Array, namespace, on_device, to_host, transposed, unmasked, writable

__all__ = [
    "ROWS_IN_ORDER",
    "ArraySamples",
    "by_block",
    "check_variation",
    "floating_rows",
    "generator",
    "matching_rows",
    "no_variation",
    "ordered",
    "part_of",
    "standardisation",
]

_ROWS_FOR_UNITS = 1 << 17
ROWS_IN_ORDER = 8192  # most rows that are sorted, to find quantiles and repeated values
_PARTS = np.array([0.025, 0.975])
_ROWS_FARTHER, _FARTHER = 2000, (1.25, 1.5, 2.0)
_ROWS_OF_PART = 8192  # that curvatures and covariances are taken from, where there are more
_MOST_TASKS = 128  # fixed, so that sums are formed in the same order whatever the number of threads


class ArraySamples:
    """Samples in memory, X of shape (n, p), with repetition counts, seen as y = (x − location)/scale.

    Samples in single precision stay so in memory; y is in double. With `single`, y is handed out in single precision,
    after the subtraction: half the time, for the part of a computation that a later one in double makes good.
    """

    in_memory = True

    def __init__(
        self,
        X: Array,
        weight: Array | None,
        location: np.ndarray,
        scale: np.ndarray,
        pool: ThreadPoolExecutor | None = None,
        *,
        single: bool = False,
    ) -> None:
        self.X, self.weight, self.single = X, weight, single
        self.location, self.scale = location, scale
        self.n_rows, self.n_variables = X.shape
        self.at_hand = self.n_rows  # how many a subsample has at most that costs no pass over all
        self._pool = pool
        xp = namespace(X)
        self._wide = None if X.dtype == xp.float64 else xp.float64
        like = X[:0, :] if self._wide is None else xp.astype(X[:0, :], self._wide)
        self._shift = on_device(location[:, None], like) if np.any(location) else None
        self._factor = on_device(1.0 / scale[:, None], like) if np.any(scale != 1) else None

    @cached_property
    def total(self) -> float:
        """The sum of the counts."""
        return float(self.n_rows) if self.weight is None else float(to_host(self.weight).sum())

    def block(self, start: int, stop: int) -> tuple[Array, Array | None]:
        """Rows start … stop − 1 as standardised variables, shape (p, stop − start), and their counts."""
        X = self.X[start:stop, :]
        Y = transposed(X if self._wide is None else namespace(X).astype(X, self._wide))
        if self._shift is not None:
            Y -= self._shift
        if self._factor is not None:
            Y *= self._factor
        weight = None if self.weight is None else self.weight[start:stop]
        if self.single:
            xp = namespace(Y)
            Y = xp.astype(Y, xp.float32)
            weight = None if weight is None else xp.astype(weight, xp.float32)
        return Y, weight

    def like(self) -> Array:
        """An empty array of the kind that blocks are."""
        xp = namespace(self.X)
        return xp.empty((0,), dtype=xp.float32 if self.single else xp.float64, device=self.X.device)

    def in_single(self) -> ArraySamples:
        """The same samples, handed out in single precision."""
        return ArraySamples(self.X, self.weight, self.location, self.scale, self._pool, single=True)

    def sum(self, function: Callable[[Array, Array | None], Any], rows: int) -> Any:
        """Σ over blocks of at most `rows` samples of function(Y, counts), whose values can be added."""
        starts = range(0, self.n_rows, rows)
        per_task = -(-len(starts) // _MOST_TASKS)

        def one(start: int) -> Any:
            return function(*self.block(start, min(start + rows, self.n_rows)))

        def task(first: int) -> Any:
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows shows in the sum
                return reduce(add, map(one, starts[first : first + per_task]))

        firsts = range(0, len(starts), per_task)
        return reduce(add, (self._pool.map if self._pool and len(firsts) > 1 else map)(task, firsts))

    def each(self, function: Callable[[int, int], Any], rows: int) -> list[Any]:
        """function(start, stop) of every block of at most `rows` samples, in order."""

        def one(start: int) -> Any:
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows shows in the result
                return function(start, min(start + rows, self.n_rows))

        return list((self._pool.map if self._pool else map)(one, range(0, self.n_rows, rows)))

    def beside(self, columns: Array) -> ArraySamples:
        """The same samples with columns, (n, any number), which are handed out as they are, as more rows of blocks."""
        xp, more = namespace(self.X), columns.shape[1]
        X = xp.concat([xp.astype(self.X, columns.dtype, copy=False), columns], axis=1)
        location, scale = np.append(self.location, np.zeros(more)), np.append(self.scale, np.ones(more))
        return ArraySamples(X, self.weight, location, scale, self._pool, single=self.single)

    def take(self, at: np.ndarray) -> ArraySamples:
        """Some of the rows."""
        xp, at = namespace(self.X), on_device(at.astype(np.int64), self.X)
        weight = None if self.weight is None else xp.take(self.weight, at)
        part = xp.take(self.X, at, axis=0)
        return ArraySamples(part, weight, self.location, self.scale, self._pool, single=self.single)

    def folds(self, many: int, together: np.ndarray | None = None) -> Iterator[tuple[ArraySamples, ArraySamples]]:
        """Samples without and with each of so many parts in turn, always the same, whatever the order of the rows.

        together: labels of rows, (n,); those with equal ones are not parted. Without labels, where whole rows are
        repeated, equal ones stay together, as if they were one with a weight: of what was fitted nothing is left to be
        foretold. Where values are few, equal rows are samples like others.
        """
        if together is not None:
            place = np.unique(together, return_inverse=True)[1]
        else:
            place = self._places()
            if place.max(initial=0) + 1 < self.n_rows and not self._repeats(int(place.max()) + 1, many):
                place = np.argsort(np.argsort(place, kind="stable"), kind="stable")
        part = np.random.default_rng(0).permutation(int(place.max(initial=0)) + 1)[place] % many
        for fold in range(many):
            yield self.take(np.flatnonzero(part != fold)), self.take(np.flatnonzero(part == fold))

    def _places(self) -> np.ndarray:
        """The place of every row, (n,), among all that differ, by what it is: not its own, nor by units.

        In the order of Σ_i u_i² + ū_i u_i with u = y/(1 + |y|), ū its mean: variables in another order, or with another
        sign, have the same.
        """

        def bounded(Y: Array) -> Array:
            return Y / (1.0 + namespace(Y).abs(Y))

        def total(Y: Array, weight: Array | None) -> Array:
            u = bounded(Y)
            return namespace(Y).sum(u if weight is None else u * weight, axis=1)

        def keys(start: int, stop: int) -> np.ndarray:
            u = bounded(self.block(start, stop)[0])
            return to_host(namespace(u).sum(u * (u + mean), axis=0))

        mean = self.sum(total, _ROWS_OF_PART)[:, None] / self.total
        return np.unique(np.concatenate(self.each(keys, _ROWS_OF_PART)), return_inverse=True)[1]

    def _repeats(self, different: int, many: int) -> bool:
        """Whether equal rows repeat as wholes: nearly each that differs has a value of its own in every variable."""
        if different < 20 * many:
            return False
        return all(2 * len(np.unique(to_host(self.X[:, i]))) > different for i in range(self.n_variables))

    def drawn(self, n_rows: int, rng: np.random.Generator) -> ArraySamples:
        """So many different rows at random, in their order."""
        return self.take(np.sort(rng.choice(self.n_rows, n_rows, replace=False)))

    def steadied(self, rng: np.random.Generator) -> ArraySamples:
        """With rows that lie farther out, which count as two samples all together.

        A conditional density that fits all samples may be absurd a little beyond them, and a parameter vector may
        gain by it. Each row is moved away from the mean by one of a few factors: correlations stay, and
        what holds there holds for samples to come. Two samples do not bias what many tell.
        """
        xp = namespace(self.X)
        some = self if self.n_rows <= _ROWS_FARTHER else self.subsample(_ROWS_FARTHER, rng)
        each = xp.ones_like(some.X[:, 0], dtype=xp.float64) if some.weight is None else some.weight
        each = each / xp.sum(each)
        mean = xp.sum(each[:, None] * some.X, axis=0)
        factor = on_device(np.asarray(_FARTHER)[some._places() % len(_FARTHER), None], self.X)
        X = xp.astype(xp.concat([self.X, mean + factor * (some.X - mean)]), xp.float64)
        own = xp.ones_like(X[: self.n_rows, 0]) if self.weight is None else self.weight
        weight = xp.concat([own, 2.0 * each])
        return ArraySamples(X, weight, self.location, self.scale, self._pool, single=self.single)

    def subsample(self, n_rows: int, rng: np.random.Generator) -> ArraySamples:
        """One row at random out of each of n_rows equal stretches: spread over the data, without a period."""
        edges = np.linspace(0, self.n_rows, n_rows + 1)
        return self.take(edges[:-1] + rng.random(n_rows) * np.diff(edges))


def part_of(samples: ArraySamples, n_parameters: int, random_state: Any = None) -> ArraySamples:
    """As many samples as curvatures take where a variable has so many parameters, spread over the data, or all."""
    n_rows = max(_ROWS_OF_PART, 30 * n_parameters)
    return samples if samples.n_rows <= 2 * n_rows else samples.subsample(n_rows, generator(random_state))


def generator(random_state: Any) -> np.random.Generator:
    """What chooses subsamples, from scikit-learn's kind of seed; None is always the same."""
    return np.random.default_rng(0 if random_state is None else check_random_state(random_state).randint(2**31))


def check_variation(X: Array, names: Sequence[str]) -> None:
    """Refuse columns that are constant: they have no density."""
    xp = namespace(X)

    def constant_in(rows: Array) -> np.ndarray:
        return np.flatnonzero(to_host(xp.max(rows, axis=0) == xp.min(rows, axis=0)))

    # a glance at a few rows clears nearly every data set without a pass over all of them
    constant = constant_in(X[: min(X.shape[0], 1000), :])
    if len(constant) and len(constant := constant_in(X)):
        raise no_variation([names[i] for i in constant])


def no_variation(names: Sequence[str]) -> ValueError:
    """What is wrong with columns that are constant."""
    return ValueError(f"columns without variation: {', '.join(names[:8])}. They have no density; drop them")


def ordered(X: Array, weight: Array | None) -> Array | None:
    """The values of every variable in order, (p, n), where rows count alike and are few enough to look at them all."""
    if weight is not None or X.shape[0] > ROWS_IN_ORDER:
        return None
    return namespace(X).sort(transposed(X), axis=1)


def standardisation(
    X: Array, weight: Array | None, names: Sequence[str], rng: np.random.Generator, in_order: Array | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A robust location and scale of every variable: the middle of the central 95 % range, and its length / 3.92.

    Both are the mean and the standard deviation of a Gaussian. The wide range, not the quartiles, since a
    regularizing density must reach as far as the data do: quartiles put two wells at 0.7 and two Gaussian
    tails at 2.6 units. From at most _ROWS_FOR_UNITS rows, spread over the data. Where nearly all values are
    equal the standard deviation stands in. in_order: `ordered`, where it is known.
    """
    if in_order is not None:
        at = _below(in_order.shape[1])
        low, high = (to_host(in_order[:, int(k)]).astype(np.float64) for k in at)
        if np.all(high > low):
            return low + (high - low) / 2, (high - low) / 3.92
    if X.shape[0] > _ROWS_FOR_UNITS:
        part = ArraySamples(X, weight, np.zeros(X.shape[1]), np.ones(X.shape[1]))
        part = part.subsample(_ROWS_FOR_UNITS, rng)
        X, weight = part.X, part.weight
    values = to_host(X).astype(np.float64, copy=False)
    count = None if weight is None else to_host(weight)
    location, scale = np.empty(values.shape[1]), np.empty(values.shape[1])
    for i in range(values.shape[1]):
        low, high = _quantiles(values[:, i], count)
        location[i], scale[i] = low + (high - low) / 2, (high - low) / 3.92
        if not scale[i] > 0:
            deviation = values[:, i] - location[i]
            scale[i] = np.sqrt(np.average(deviation * deviation, weights=count))
        if not scale[i] > 0:
            raise ValueError(f"nearly all values of {names[i]} are equal: it has no density; drop it")
    return location, scale


def _quantiles(x: np.ndarray, count: np.ndarray | None) -> np.ndarray:
    """The values below which 2.5 % and 97.5 % of the samples lie; no interpolation."""
    if count is None:
        at = _below(len(x))
        return np.partition(x, at)[at]
    order = np.argsort(x, kind="stable")
    cumulative = np.cumsum(count[order])
    return x[order[np.searchsorted(cumulative, _PARTS * cumulative[-1] * (1 - 1e-12))]]


def _below(n: int) -> np.ndarray:
    """Which of n values in order have 2.5 % and 97.5 % of them below."""
    return np.ceil(_PARTS * n).astype(np.int64) - 1


def floating_rows(X: Any, names: Sequence[str]) -> Array:
    """X as a floating array with a column a variable; the columns of a frame by name."""
    if isinstance(X, pd.DataFrame) and tuple(names) != tuple(map(str, X.columns)):
        columns = dict(zip(map(str, X.columns), X.columns, strict=True))
        missing = [name for name in names if name not in columns]
        if missing and any(isinstance(column, str) for column in X.columns):
            raise ValueError(f"X has no column {', '.join(missing[:8])}; the model has {', '.join(names[:8])}")
        X = X if missing else X[[columns[name] for name in names]]
    X = writable(unmasked(_plain(X) if isinstance(X, pd.DataFrame) else X))
    if is_array_api_obj(X) and not isinstance(X, np.ndarray):
        xp = namespace(X)
        return X if xp.isdtype(X.dtype, "real floating") else xp.astype(X, xp.float64)
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError("X is complex; a model has real variables")
    return array if array.dtype in (np.float64, np.float32) else array.astype(np.float64)


def _plain(X: pd.DataFrame) -> pd.DataFrame | np.ndarray:
    """A frame that NumPy can read: of objects, or types of pandas' own, numbers, NaN where one is missing."""
    if all(isinstance(kind, np.dtype) and kind.kind != "O" for kind in X.dtypes):
        return X
    try:
        return X.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        words = [str(name) for name, kind in X.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
        raise ValueError(f"columns that are not numeric: {', '.join(words[:8])} ({error})") from None


def matching_rows(X: Any, names: Sequence[str]) -> Array:
    """X as `floating_rows` gives it, with as many columns as there are names."""
    X = floating_rows(X, names)
    if X.ndim != 2 or X.shape[1] != len(names):
        raise ValueError(
            f"X has shape {tuple(X.shape)}, the model has {len(names)} variables: "
            f"{', '.join(names[:8])}{', …' if len(names) > 8 else ''}"
        )
    return X


def by_block(X: Array, location: np.ndarray, scale: np.ndarray, rows: int, function: Callable[[Array], Array]) -> Array:
    """function of y = (x − location)/scale, (p, b), that gives (k, b), for all rows of X: (n, k)."""
    xp = namespace(X)
    middle, unit = on_device(location[:, None], X), on_device(scale[:, None], X)
    parts = [
        xp.matrix_transpose(function((transposed(X[start : min(start + rows, X.shape[0]), :]) - middle) / unit))
        for start in range(0, max(X.shape[0], 1), rows)
    ]
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)
