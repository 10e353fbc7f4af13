"""Whether a polynomial energy can hold the samples at all: heavy tails, repeated values, coarse or repeated columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular
from scipy.sparse.csgraph import connected_components

from .arrays import Array, namespace, on_device, to_host, transposed
from .checks import warn
from .samples import ROWS_IN_ORDER as _SORTED

__all__ = ["ROWS_A_TERM", "check_relations", "check_suitability", "few_rows"]

ROWS_A_TERM = 20  # of a variable, that a fit without a penalty wants at degrees above 2

_ROWS, _VALUES = 100_000, 10_000_000  # most rows, and most values in all, that are looked at for tails
_EXCESS, _ERRORS = 1.5, 10.0  # excess kurtosis, and how many standard errors of it, that make a heavy tail
_SHARE, _COUNT = 0.01, 10  # a value repeated in this share, and so often, may be an atom
_BESIDE = 5  # values on either side that it is held against
_INSIDE, _AT_END = 5.0, 2.5  # how many times as frequent as those it must be, inside the range and at an end of it
_FEW = 20  # so few distinct values are no density
_REPEATED = 1e-13  # share of a variance that others do not explain, below which it is rounding
_NEARLY = 1e-6  # likewise, below which powers of a column and of the others are alike
_OUTLYING = 20.0  # distances between quartiles beyond which a row says nothing of how columns are related
_APART = 2.5  # spreads within clusters that a gap between them must have
_MOST_PRODUCTS = 500  # squares and products of columns that are looked at
_MOST_COLUMNS = 2000  # that are held against one another where there is a penalty
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


def check_relations(
    X: Array, names: Sequence[str], degree: int, in_order: Array | None = None, penalised: bool = False
) -> None:
    """Warn of columns that others explain, and of clusters that no variable leads from one to another; X: (n, p)."""
    n, p = X.shape
    if p == 1:
        return
    if n > p and (p <= _MOST_COLUMNS or not penalised):
        _check_independence(to_host(_take(X, _spread(n, max(2 * p, 1024)))).astype(np.float64), names, degree)
    if degree > 2:
        _check_clusters(X, names, in_order)


def _check_independence(X: np.ndarray, names: Sequence[str], degree: int) -> None:
    """Warn of columns that are linear functions of others, and of which; of their squares and products, too.

    Columns that nearly are can be told apart, and their higher powers cannot: at ε from one another these differ by ε
    to that power.
    """
    Z, p = _in_units(_without_outlying_rows(X)), len(names)
    found, nearly = _explained(Z, _REPEATED if degree <= 2 else _NEARLY)
    words = list(names)
    if not found and degree > 2 and 2 * p + p * (p - 1) // 2 < min(len(Z), _MOST_PRODUCTS):
        i, j = np.triu_indices(p)
        words += [
            f"{names[a]}^2" if a == b else f"{names[a]}*{names[b]}" for a, b in zip(i.tolist(), j.tolist(), strict=True)
        ]
        found, _ = _explained(np.concatenate([Z, _in_units(Z[:, i] * Z[:, j])], axis=1), _REPEATED)
        first, second = np.append(np.arange(p), i), np.append(np.arange(p), j)
        found = [some for some in found if len({*first[some], *second[some]}) > 1]  # not those of few values
    if not found:
        return
    listed = "; ".join(f"{words[k]} of {_some([words[j] for j in others])}" for k, *others in found[:_LISTED])
    listed += f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    if nearly:
        warn(
            f"columns that are nearly linear functions of others: {listed}. Powers of them can hardly be told apart, "
            "and interactions neither. Leave out one column of each such group, or take degree=2"
        )
    else:
        warn(
            f"columns that are linear functions of others: {listed}. There is no density then, and what interacts with "
            "what cannot be told apart. Leave out one column of each such group"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def _in_units(X: np.ndarray) -> np.ndarray:
    """Columns of mean zero and length one."""
    Z = X - X.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        Z /= np.abs(Z).max(axis=0)  # keeps squares finite
        return Z / np.sqrt(np.square(Z).sum(axis=0))


def _explained(Z: np.ndarray, tol: float) -> tuple[list[list[int]], bool]:
    """Columns whose variance others explain but for a share `tol`, each before these; whether any is not exactly so."""
    if not np.isfinite(Z).all():
        return [], False
    factor, order, rank, _ = lapack.dpstrf(Z.T @ Z, tol=tol)
    if rank == Z.shape[1]:
        return [], False
    order = order - 1
    left = 1 - np.square(factor[:rank, rank:]).sum(axis=0)
    share = np.abs(solve_triangular(factor[:rank, :rank], factor[:rank, rank:]))
    share /= np.maximum(1e-6, np.sqrt(np.maximum(left, 0.0))) * share.max(axis=0)
    found = [[i, *order[:rank][share[:, k] > 1].tolist()] for k, i in enumerate(order[rank:].tolist())]
    return found, bool(left.max() > _REPEATED)


def _without_outlying_rows(X: np.ndarray) -> np.ndarray:
    """The rows in which no column is far out, if there is something left of every column: one row makes two alike."""
    low, middle, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        far = (np.abs(X - middle) > _OUTLYING * (high - low)) & (high > low)
    inside = X[~far.any(axis=1)]
    enough = len(inside) > max(X.shape[1], len(X) // 2)
    return inside if enough and np.all(inside.max(axis=0) > inside.min(axis=0)) else X


def _check_clusters(X: Array, names: Sequence[str], in_order: Array | None) -> None:
    """Warn of clusters so far apart that how probable each of them is cannot be learned from conditional densities.

    A variable with a gap has two sides. Rows that are on the same sides of all gaps are a cluster, and clusters that
    differ in one side are joined: the density of that variable, given the others, has both.
    """
    part = _take(X, _spread(X.shape[0], _SORTED))
    xp, n = namespace(part), part.shape[0]
    Z = in_order if in_order is not None and in_order.shape[1] == n else xp.sort(transposed(part), axis=1)
    least = max(_COUNT, int(np.ceil(_SHARE * n)))
    if n < 4 * least:
        return
    gap = Z[:, least : n + 1 - least] - Z[:, least - 1 : n - least]
    widest = xp.max(gap, axis=1)
    wide = to_host(widest > 0.1 * (Z[:, n - least] - Z[:, least - 1]))
    found, sides = [], []
    for i in np.flatnonzero(wide).tolist():
        z = to_host(Z[i, :]).astype(np.float64)
        z = (z - z[0]) / (z[-1] - z[0])  # keeps squares finite
        k = least + int(np.argmax(np.diff(z)[least - 1 : n - least]))
        if z[k] - z[k - 1] > _APART * max(z[:k].std(), z[k:].std()):
            found.append(names[i])
            sides.append(to_host(part[:, i] >= Z[i, k]))
    many = 0 if len(found) < 2 else _unjoined(np.stack(sides, axis=1), least)
    if many > 1:
        warn(
            f"samples in {many} clusters that are far apart in {_some(found)}: nothing lies between them, and no "
            "variable alone leads from one to another. How probable each cluster is cannot be learned from the density "
            "of a variable given the others. Fit a model to each cluster, or do not sample from this one"
        )


def _unjoined(sides: np.ndarray, least: int) -> int:
    """How many sets of clusters, with so many rows or more each, are not joined; sides: (n, variables)."""
    patterns, counts = np.unique(sides, axis=0, return_counts=True)
    if len(patterns) > _MOST_COLUMNS:
        return 1
    apart = patterns.astype(np.float64) @ (1.0 - patterns.T)  # in how many variables one is high and the other low
    _, label = connected_components(apart + apart.T == 1)
    return int(np.count_nonzero(np.bincount(label, weights=counts) >= least))


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
