"""Figures with 95 % intervals from repeated sets of samples, and the verdict that an interval gives on a claim."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest, t

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told"


class Interval(NamedTuple):
    """A figure and the ends of its 95 % interval, not a number where there is none."""

    value: float
    low: float = np.nan
    high: float = np.nan

    def __str__(self) -> str:
        interval = f" ({plain(self.low)} to {plain(self.high)})" if np.isfinite(self.low) else ""
        return plain(self.value) + interval

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else str(self)


class Claim(NamedTuple):
    """What is claimed, the figure that judges it, and the range in which the claim is true.

    stated: whether the paper states it; otherwise it is what the paper did not show.
    """

    text: str
    figure: Interval
    least: float = -np.inf
    most: float = np.inf
    stated: bool = True
    unit: str = ""
    remark: str = ""

    @property
    def measured(self) -> str:
        """The figure in words."""
        value, *interval = str(self.figure).split(" (")
        unit, rest = f" {self.unit}" if self.unit else "", f" ({interval[0]}" if interval else ""
        return f"{value}{unit}{rest}{'; ' if self.remark else ''}{self.remark}"

    @property
    def verdict(self) -> str:
        """By the whole interval, or by neither."""
        _, low, high = self.figure
        if self.least <= low and high <= self.most:
            return HOLDS
        return FAILS if high < self.least or low > self.most else OPEN


def plain(value: float) -> str:
    """Three digits, without powers of ten."""
    if not np.isfinite(value):
        return "–"
    digits = 0 if abs(value) < 1e-6 else max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{float(f'{value:.3g}'):,.{digits}f}".replace("-", "−")


def interval(values: Any) -> Interval:
    """The mean of the finite values, with Student's interval."""
    v = np.asarray(values, float)
    v = v[np.isfinite(v)]
    if len(v) < 2:
        return Interval(float(v.mean()) if len(v) else np.nan)
    reach = float(t.ppf(0.975, len(v) - 1) * v.std(ddof=1) / np.sqrt(len(v)))
    return Interval(float(v.mean()), float(v.mean() - reach), float(v.mean() + reach))


def ratio(a: Any, b: Any) -> Interval:
    """Mean of a over mean of b, on the same sets."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    value = a.mean() / b.mean() if len(a) else np.nan
    _, low, high = interval(a - value * b)
    return Interval(float(value), float(value + low / b.mean()), float(value + high / b.mean()))


def times(a: Any, b: Any) -> Interval:
    """The geometric mean of a/b."""
    return Interval(*np.exp(interval(np.log(np.asarray(a, float) / np.asarray(b, float)))))


def share(yes: Any) -> Interval:
    """A share, with the interval of Clopper and Pearson."""
    found = binomtest(int(np.sum(yes)), len(yes))
    return Interval(found.statistic, *found.proportion_ci())


def wide(table: pd.DataFrame, column: str, *, by: str = "n", per: str = "set", **where: Any) -> pd.DataFrame:
    """A column of some rows: one row per set, one column per n. Sets that are not whole are left out."""
    for name, value in where.items():
        table = table[table[name] == value]
    return table.pivot(index=per, columns=by, values=column).dropna()


def slopes(found: pd.DataFrame) -> pd.Series:
    """For each row of a table by `wide`, the exponent of its values against the columns."""
    x = np.log(np.asarray(found.columns, float))
    x = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    return np.log(found) @ pd.Series(x, found.columns)


def means(table: pd.DataFrame, column: str, by: str) -> pd.DataFrame:
    """Columns mean and stderr."""
    grouped = table.groupby(by)[column]
    return pd.DataFrame({"mean": grouped.mean(), "stderr": grouped.sem(ddof=1)})
