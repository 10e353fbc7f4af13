"""Whether a polynomial energy can hold the samples at all: heavy tails, repeated values, coarse or repeated columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from .arrays import Array, namespace, on_device, to_host, transposed
from .checks import warn
from .samples import ROWS_IN_ORDER as _SORTED

__all__ = ["ROWS_A_TERM", "check_independence", "check_suitability", "few_rows"]

ROWS_A_TERM = 20  # of a variable, that a fit without a penalty wants at degrees above 2

_ROWS, _VALUES = 100_000, 10_000_000  # most rows, and most values in all, that are looked at for tails
_EXCESS, _ERRORS = 1.5, 10.0  # excess kurtosis, and how many standard errors of it, that make a heavy tail
_SHARE, _COUNT = 0.01, 10  # a value repeated in this share, and so often, may be an atom
_BESIDE = 5  # values on either side that it is held against
_INSIDE, _AT_END = 5.0, 2.5  # how many times as frequent as those it must be, inside the range and at an end of it
_FEW = 20  # so few distinct values are no density
_REPEATED = 1e-13  # share of a variance that others do not explain, below which it is rounding
_LISTED = 8  # variables that a warning names


# what is wrong, and what to do about it
_WORDS = {
    "tail": (
        "tails heavier than a Gaussian's, whose kurtosis is 3",
        "A polynomial energy holds a rare second mode, but no heavy tail. Take logarithms, asinh or ranks of such a "
        "variable, or look at its outlying rows",
    ),
    "end": (
        "values that pile up at an end of the range, as at a detection limit",
        "A density has no such pile, and is bent by it. If they are few, see whether the answer changes without those "
        "rows, which biases it too; if they are many, leave the variable out",
    ),
    "inside": (
        "values far more frequent than those next to them",
        "A density has none. If they were filled in, make them missing values again; if they were rounded, add random "
        "digits within the rounding. To leave rows out by their value biases the answer",
    ),
    "few": (
        "few distinct values, as of counts, classes or coarse rounding",
        "They have no density, and their powers may not be told apart. Leave such a variable out, or fit a model to "
        "each of its values",
    ),
}


def few_rows(n: int, terms: int, degree: int) -> str:
    """What there is to say of too few rows for the terms of a variable; nothing if there are enough."""
    if degree < 3 or n >= ROWS_A_TERM * terms:
        return ""
    return (
        f"{terms} terms a variable up to degree {degree} are too many for {n:,} rows ({ROWS_A_TERM} a term are wanted)"
    )


def check_suitability(
    X: Array,
    weight: Array | None,
    names: Sequence[str],
    in_order: Array | None = None,
    numbers: np.ndarray | None = None,
    tails: bool = True,
) -> None:
    """Warn of what no polynomial energy can hold, once for each kind: which variables, how bad, what to do.

    X: (n, p); weight: repetition counts (n,), or None for one each. Large samples are judged by part of them:
    tails by at most 100,000 rows, repeated values by at most 8,192, spread evenly. in_order: `samples.ordered`,
    where it is known; numbers: of the rows, if X has some of all; tails: whether there can be any.
    """
    n, p = X.shape
    rows = _spread(n, min(_ROWS, max(_VALUES // p, _SORTED)))
    part = _take(X, rows)
    count = None if weight is None else to_host(_take(weight, rows)).astype(np.float64)
    if count is not None:
        rows, part, count = rows[count > 0], to_host(part)[count > 0], count[count > 0]
    some = _spread(len(rows), _SORTED)
    called = rows if numbers is None else numbers[rows]
    found: dict[str, list[tuple[float, str]]] = {kind: [] for kind in _WORDS}
    for i in range(len(names)) if count is not None else _suspects(part, some, in_order):
        name, x = names[i], np.ascontiguousarray(to_host(part[:, i]), np.float64)
        for kind, severity, words in _complaints(x, count, called, some):
            found[kind].append((severity, f"{name} ({words})"))
    for kind, (what, remedy) in _WORDS.items():
        if found[kind] and (tails or kind != "tail"):
            worst = [words for _, words in sorted(found[kind], reverse=True)]
            more = f" and {len(worst) - _LISTED} more" if len(worst) > _LISTED else ""
            message = f"{what}: {', '.join(worst[:_LISTED])}{more}. {remedy}"
            warn(message)


def check_independence(X: Array, names: Sequence[str]) -> None:
    """Warn of columns that are linear functions of others, and of which; X: (n, p)."""
    n, p = X.shape
    if p == 1 or n <= p:
        return
    Z = to_host(_take(X, _spread(n, max(2 * p, 1024)))).astype(np.float64)
    Z = Z - Z.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        Z /= np.abs(Z).max(axis=0)  # keeps squares finite
        Z /= np.sqrt(np.square(Z).sum(axis=0))
    if not np.isfinite(Z).all():
        return
    factor, order, rank, _ = lapack.dpstrf(Z.T @ Z, tol=_REPEATED)
    if rank == p:
        return
    order = order - 1
    share = np.abs(solve_triangular(factor[:rank, :rank], factor[:rank, rank:]))
    found = []
    for k, i in enumerate(order[rank:].tolist()):
        others = [names[order[j]] for j in np.flatnonzero(share[:, k] > 1e-6 * share[:, k].max())]
        more = f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
        found.append(f"{names[i]} of {', '.join(others[:_LISTED])}{more}")
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    warn(
        f"columns that are linear functions of others: {'; '.join(found[:_LISTED])}{more}. There is no density then, "
        "and what interacts with what cannot be told apart. Leave out one column of each such group"
    )


def _suspects(part: Array, some: np.ndarray, in_order: Array | None) -> list[int]:
    """Variables that there may be a complaint about; most are cleared all at once, where they lie. part: (n, p)."""
    xp, X = namespace(part), transposed(part)
    Z = in_order
    if Z is None or Z.shape[1] != len(some):
        Z = xp.sort(X if len(some) == X.shape[1] else xp.take(X, on_device(some, X), axis=1), axis=1)
    n = Z.shape[1]
    often = max(_COUNT, int(np.ceil(_SHARE * n)))
    suspect = xp.count_nonzero(Z[:, 1:] != Z[:, :-1], axis=1) + 1 <= min(_FEW, n / 3)
    if n >= often:
        suspect |= xp.any(Z[:, often - 1 :] == Z[:, : n + 1 - often], axis=1)
    X = X - xp.mean(X, axis=1, keepdims=True)
    largest = xp.max(xp.abs(X), axis=1, keepdims=True)
    X /= xp.where(largest > 0, largest, xp.ones_like(largest))  # keeps fourth powers finite
    X *= X
    m2, m4 = xp.mean(X, axis=1), xp.vecdot(X, X) / X.shape[1]
    heavy = float(0.999 * (3 + max(_EXCESS, _ERRORS * np.sqrt(24 / X.shape[1]))))
    suspect |= m4 >= heavy * m2 * m2
    return np.flatnonzero(to_host(suspect)).tolist()


def _complaints(
    x: np.ndarray, count: np.ndarray | None, rows: np.ndarray, some: np.ndarray
) -> Iterator[tuple[str, float, str]]:
    """What is wrong with one variable: which kind, how bad, and the figures in words.

    x, rows: values and their rows; some: those among them to look for repeated values in.
    """
    values, times = _repeats(x[some], None if count is None else count[some])
    if len(values) <= min(_FEW, times.sum() / 3):
        yield "few", -len(values), f"{len(values)} values"
        return
    if tail := _heavy_tail(x, count, values, times):
        one = f", {100 * tail.share:.0f} % of it from row {rows[tail.at]}, {x[tail.at]:.4g}"
        yield "tail", tail.kurtosis, f"kurtosis {tail.kurtosis:,.1f}{one if tail.share > 0.5 else ''}"
    low, inside, high = _atoms(times)
    percent = 100 * times / times.sum()
    if low or high:
        words = [f"{percent[k]:.2g} % at its lowest, {values[k]:.4g}" for k in low]
        words += [f"{percent[k]:.2g} % at its highest, {values[k]:.4g}" for k in high]
        yield "end", percent[low + high].sum(), "; ".join(words)
    if inside:
        most = max(inside, key=lambda k: percent[k])
        more = f" and {len(inside) - 1} more such values" if len(inside) > 1 else ""
        yield "inside", percent[most], f"{percent[most]:.2g} % equal {values[most]:.4g}{more}"


def _spread(n: int, most: int) -> np.ndarray:
    """Rows to look at: all, or one at random out of each of `most` equal stretches, always the same."""
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, most + 1)
    return (edges[:-1] + np.random.default_rng(0).random(most) * np.diff(edges)).astype(np.int64)


def _take(x: Array, rows: np.ndarray) -> Array:
    return x if len(rows) == x.shape[0] else namespace(x).take(x, on_device(rows, x), axis=0)


def _repeats(x: np.ndarray, count: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values in order, and how often each of them occurs."""
    order = None if count is None else np.argsort(x)
    x = np.sort(x) if order is None else x[order]
    starts = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    if count is None:
        return x[starts], np.diff(starts, append=len(x)).astype(np.float64)
    return x[starts], np.add.reduceat(count[order], starts)


class Tail(NamedTuple):
    """A kurtosis, the sample that adds most to it, and the share it adds."""

    kurtosis: float
    at: int
    share: float


def _heavy_tail(x: np.ndarray, count: np.ndarray | None, values: np.ndarray, times: np.ndarray) -> Tail | None:
    """The tail, if it is heavier than a Gaussian's.

    The kurtosis must exceed a Gaussian's by 1.5 and by ten standard errors, √(24/n), as hardly one Gaussian variable
    in a hundred thousand does. And the fourth moment must exceed that of the Gaussian with the same central 95 %
    range: otherwise a narrow peak, not far values, makes the kurtosis. Counts that are far from equal leave fewer
    samples than they count.
    """
    total, n = (len(x), len(x)) if count is None else (count.sum(), count.sum() ** 2 / np.square(count).sum())
    y = x - np.average(x, weights=count)
    unit = np.max(np.abs(y))  # keeps fourth powers finite
    y /= unit
    y *= y
    fourth = y * y
    if count is not None:
        y *= count
        fourth *= count
    m2, m4 = y.sum() / total, fourth.sum() / total
    low, high = values[np.searchsorted(np.cumsum(times), np.array([0.025, 0.975]) * times.sum())]
    width = (high - low) / 3.92 / unit
    kurtosis = m4 / m2**2
    if kurtosis - 3 < max(_EXCESS, _ERRORS * np.sqrt(24 / n)) or m4 < 3 * width**4:
        return None
    at = int(np.argmax(fourth))
    return Tail(float(kurtosis), at, float(fourth[at] / fourth.sum()))


def _atoms(times: np.ndarray) -> tuple[list[int], list[int], list[int]]:
    """Which of the distinct values are unlikely frequent: at the low end, inside, at the high end.

    At an end: next to nothing lies beyond.
    """
    found: tuple[list[int], list[int], list[int]] = ([], [], [])
    for k in np.flatnonzero(times >= max(_COUNT, _SHARE * times.sum())).tolist():
        beside = np.concatenate([times[max(k - _BESIDE, 0) : k], times[k + 1 : k + 1 + _BESIDE]])
        little = 0.1 * times[k]
        where = 0 if times[:k].sum() < little else 2 if times[k + 1 :].sum() < little else 1
        if times[k] >= (_INSIDE if where == 1 else _AT_END) * beside.mean():
            found[where].append(k)
    return found
