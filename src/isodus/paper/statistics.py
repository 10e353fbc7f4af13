"""Slopes, ratios and their errors, from repeated sets of samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import OptimizeWarning, curve_fit
from scipy.stats import binomtest, t

from ..slopes import Line, line, log_slope, means

__all__ = [
    "Line",
    "Ratio",
    "above",
    "alike",
    "below",
    "growth",
    "line",
    "log_slope",
    "means",
    "median_at",
    "medians",
    "paired_ratio",
    "plain",
    "share",
    "slope_of_ratio",
    "straight",
]


class Ratio(NamedTuple):
    """A figure, its standard error, and how many degrees of freedom that has."""

    value: float
    stderr: float
    freedom: float = float("inf")

    def times(self, factor: float) -> Ratio:
        """Both."""
        return self._replace(value=factor * self.value, stderr=factor * self.stderr)

    def __str__(self) -> str:
        value, stderr = (plain(v, digits) for v, digits in ((self.value, 3), (self.stderr, 2)))
        return f"{value} ± {stderr}" if np.isfinite(self.stderr) else value


def plain(value: float, digits: int) -> str:
    """A number with so many digits, without powers of ten if it is large."""
    text = f"{float(f'{value:.{digits}g}'):,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
    return text.replace("-", "−")


def below(found: Ratio, limit: float) -> bool | None:
    """Whether a figure is below a limit; None where that is in its 95 % interval, or if there is none."""
    if not np.isfinite(found.stderr) or abs(found.value - limit) <= found.stderr * float(t.ppf(0.975, found.freedom)):
        return None
    return bool(found.value < limit)


def alike(gap: Line, margin: float) -> bool | None:
    """Whether a difference is nearer to zero than a margin; None where its interval reaches the margin."""
    if not np.isfinite(gap.low):
        return None
    if max(abs(gap.low), abs(gap.high)) < margin:
        return True
    return False if gap.low > margin or gap.high < -margin else None


def share(found: pd.Series) -> tuple[Ratio, float, float]:
    """A share of yes with its standard error, and its exact 95 % interval (Clopper and Pearson)."""
    k, n = int(found.sum()), len(found)
    interval = binomtest(k, n).proportion_ci()
    return Ratio(k / n, float(np.sqrt(k / n * (1 - k / n) / n))), float(interval.low), float(interval.high)


def above(found: Ratio, limit: float) -> bool | None:
    """Whether a figure is above a limit; None where that is in its 95 % interval, or if there is none."""
    under = below(found, limit)
    return None if under is None else not under


def medians(table: pd.DataFrame, column: str, by: str | Sequence[str]) -> pd.DataFrame:
    """Columns median and stderr (1.2533 σ/√count, σ by the median deviation; not below three values).

    The median deviation of few values is too small on average, by (count − 0.8)/count or so.
    """
    grouped = table.groupby(by, sort=True)[column]
    out = grouped.agg(["median", "count"])
    spread = grouped.agg(lambda v: 1.4826 * np.median(np.abs(v - np.median(v)))).where(out["count"] >= 3)
    stderr = 1.2533 * spread / np.sqrt(out["count"]) * out["count"] / (out["count"] - 0.8)
    return out.assign(stderr=stderr)[["median", "stderr", "count"]]


def median_at(points: pd.DataFrame, key: Any) -> Ratio:
    """A row of `medians`."""
    row = points.loc[key]
    return Ratio(float(row["median"]), float(row["stderr"]), float(row["count"]) - 1)


def slope_of_ratio(table: pd.DataFrame, column: str, against: str, one: str, other: str) -> Line:
    """Exponent of the ratio of the means of two methods on the same sets: the difference of their slopes."""
    points = []
    for value, part in table.groupby(against, sort=True):
        wide = part.pivot(index="set", columns="method", values=column)
        points.append((float(value), *paired_ratio(wide[one].to_numpy(), wide[other].to_numpy())[:2], len(wide)))
    x, ratio, stderr, count = np.array(points, float).reshape(-1, 4).T
    return line(np.log(x), np.log(ratio), stderr / ratio, int(count.sum()))


def growth(n: np.ndarray, seconds: np.ndarray, stderr: np.ndarray) -> Line:
    """The exponent c of seconds = a + b n^c: how they grow beyond a fixed cost a ≥ 0."""
    n, seconds = np.asarray(n, float), np.asarray(seconds, float)
    relative = np.maximum(np.asarray(stderr, float) / seconds, 0.02)
    curve = lambda m, log_a, log_b, c: np.logaddexp(log_a, log_b + c * np.log(m))
    start = np.log(seconds[0]), np.log(seconds[-1] / n[-1]), 1.0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", OptimizeWarning)  # no covariance
            best, covariance = curve_fit(curve, n, np.log(seconds), p0=start, sigma=relative, maxfev=20_000)
    except (RuntimeError, OptimizeWarning):
        return Line(*[float("nan")] * 4)
    c, stderr_c = float(best[2]), float(np.sqrt(covariance[2, 2]))
    reach = stderr_c * float(t.ppf(0.975, max(len(n) - 3, 1)))
    return Line(c, stderr_c, c - reach, c + reach)


def paired_ratio(a: np.ndarray, b: np.ndarray) -> Ratio:
    """Mean of a over mean of b, on the same sets, and its standard error."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    ok = np.isfinite(a) & np.isfinite(b)
    a, b = a[ok], b[ok]
    if not len(a):
        return Ratio(float("nan"), float("nan"))
    r = float(a.mean() / b.mean())
    if len(a) < 2:
        return Ratio(r, float("nan"))
    return Ratio(r, float(np.std(a - r * b, ddof=1) / abs(b.mean()) / np.sqrt(len(a))), len(a) - 1)


def straight(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Intercept, slope and R² of a line."""
    A = np.column_stack([np.ones(len(x)), x])
    coefficients = np.linalg.lstsq(A, y, rcond=None)[0]
    left, spread = y - A @ coefficients, float(np.sum((y - np.mean(y)) ** 2))
    r = 1 - float(left @ left) / spread if spread else float("nan")
    return float(coefficients[0]), float(coefficients[1]), r
