"""Slopes of lines through logarithms, with their errors: how a mean grows or falls with something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t

__all__ = ["Line", "line", "log_slope", "means"]

_FEW = 5


class Line(NamedTuple):
    """A slope, its standard error and the ends of its 95 % interval; excess: χ²/df of the points about the line."""

    slope: float
    stderr: float
    low: float
    high: float
    excess: float = float("nan")

    def less(self, value: float) -> Line:
        """The difference to a value."""
        return self._replace(slope=self.slope - value, low=self.low - value, high=self.high - value)

    @property
    def short(self) -> str:
        """The slope and its standard error."""
        error = f" ± {self.stderr:.3f}" if np.isfinite(self.stderr) else ""
        return f"{self.slope:.3f}{error}".replace("-", "−")

    def __str__(self) -> str:
        if not np.isfinite(self.stderr):
            return self.short
        scatter = f", χ²/df {self.excess:.1f}" if np.isfinite(self.excess) else ""
        return f"{self.short} (95 %: {self.low:.3f} to {self.high:.3f}{scatter})".replace("-", "−")


def means(table: pd.DataFrame, column: str, by: str | Sequence[str]) -> pd.DataFrame:
    """Columns mean, stderr and count, of the finite values."""
    grouped = table.groupby(by, sort=True)[column]
    out = grouped.agg(["mean", "std", "count"])
    return out.assign(stderr=out["std"] / np.sqrt(out["count"]))[["mean", "stderr", "count"]]


def log_slope(table: pd.DataFrame, column: str, against: str) -> Line:
    """Exponent of the mean of a column against another: a line through log means, weighted by their errors.

    If points lie farther off the line than their errors, those are taken as larger by that factor. Where a point has
    fewer than five values, which hardly tell their own scatter, that of all is taken, relative to the mean.
    """
    found = means(table, column, against)
    x, y = np.log(np.asarray(found.index, float)), np.log(found["mean"].to_numpy())
    count = found["count"].to_numpy()
    error = (found["stderr"] / found["mean"]).to_numpy()
    if len(count) and count.min() < _FEW:
        error = np.sqrt(np.mean(error**2 * count) / count)
    return line(x, y, error, int(count.sum()))


def line(x: np.ndarray, y: np.ndarray, error: np.ndarray, count: int) -> Line:
    """Through points with these errors, which come from `count` values in all; without errors there is only a slope."""
    if len(x) < 2 or not np.all(np.isfinite(y)):
        return Line(*[float("nan")] * 4)
    if not (np.all(np.isfinite(error)) and np.all(error > 0)):
        return Line(float(np.polyfit(x, y, 1)[0]), *[float("nan")] * 3)
    w = 1 / error**2
    middle = w @ x / w.sum()
    spread = w @ (x - middle) ** 2
    slope = float(w @ ((x - middle) * y) / spread)
    residual = y - w @ y / w.sum() - slope * (x - middle)
    freedom = len(x) - 2
    excess = float(w @ residual**2 / freedom) if freedom else float("nan")
    scatter = float(np.fmax(excess, 1.0))
    stderr = float(np.sqrt(scatter / spread))
    # of Welch and Satterthwaite: the values' where points scatter as they should, the line's where far more
    degrees = scatter**2 / (1 / max(count - len(x), 1) + ((scatter - 1) ** 2 / freedom if freedom else 0.0))
    reach = stderr * float(t.ppf(0.975, degrees))
    return Line(slope, stderr, slope - reach, slope + reach, excess)
