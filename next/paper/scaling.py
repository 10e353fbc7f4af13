"""Error and run time against the number of samples: what the studies in one, two, four and ten dimensions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import figures, timing
from .methods import JOINT, LIKELIHOOD, METHODS, OURS, PAPER, SCORE, Theta, estimators, generator, learn, mean_error
from .statistics import Claim, interval, ratio, slopes, wide
from .study import Row, Task

HALF_DECADES = (1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000)
SIMILAR = 1.5  # as large an error counts as similar


@dataclass(frozen=True)
class AgainstN:
    """Samples of one model in several sizes.

    samples: (n, generator) → X. sizes: for each size the n and the number of sets. start: the n from which 1/√n may be
    expected, about 1,000 samples per term of a variable. compared: whether the paper has pseudo-likelihood. adaptive:
    rows on which adaptive integrals are timed. peers: sets on which these and Ipopt are.
    """

    samples: Callable[[int, Any], np.ndarray]
    truth: Callable[[], Theta]
    terms: Mapping[str, int]
    sizes: Mapping[str, tuple[Sequence[int], int]]
    seed: int
    start: int = 0
    compared: bool = True
    adaptive: int = 0
    peers: int = 0

    def tasks(self, size: str) -> list[Task]:
        """Sets of samples, the largest first."""
        ns, sets = self.sizes[size]
        return [{"n": n, "set": k} for n in sorted(ns)[::-1] for k in range(sets)]

    def repetition(self, task: Task) -> list[Row]:
        """All methods in turn on one set of samples."""
        X, truth = self.samples(task["n"], generator(self.seed, task["n"], task["set"])), self.truth()
        todo = estimators(**self.terms)
        if self.adaptive:
            learn(todo[PAPER], X[:1000])  # the first fit of a process takes longer
        fits = {method: learn(make, X) for method, make in todo.items() if self.adaptive or method != JOINT}
        if task["set"] < self.peers:
            fits |= timing.peers(X, fits[LIKELIHOOD], fits[PAPER], self.adaptive)
        return [
            dict(method=name, error=mean_error(fit.theta, truth), seconds=fit.seconds, converged=fit.converged)
            for name, fit in fits.items()
        ]

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Error ∝ 1/√n; the paper's estimator and the default beside pseudo-likelihood."""
        start, last = min(self.start, sorted(table["n"].unique())[-2]), table["n"].max()
        late = table[table["n"] >= start]
        exponents = {method: slopes(wide(late, "error", method=method)) for method in METHODS}
        error = {method: wide(table[table["n"] == last], "error", method=method)[last] for method in METHODS}
        every = interval(slopes(wide(table, "error", method=PAPER)))
        from_n, at_n = f"from n = {start:,} on", f"at n = {last:,}"
        law = f"error ∝ 1/√n {from_n} (here: exponent within 0.05 of −1/2)"
        others = f"{ratio(error[PAPER], error[SCORE]):.2f} times that of score matching"
        return [
            Claim(f"{PAPER}: {law}", interval(exponents[PAPER]), -0.55, -0.45, remark=f"over all n {every}"),
            *(
                Claim(f"{m}: {law}", interval(exponents[m]), -0.55, -0.45, self.compared and m == LIKELIHOOD)
                for m in METHODS[1:]
            ),
            Claim(
                f"{PAPER} and {LIKELIHOOD}: the same exponent {from_n} (here: within 0.05)",
                interval(exponents[PAPER] - exponents[LIKELIHOOD]),
                -0.05,
                0.05,
                self.compared,
            ),
            Claim(
                f"accuracy similar to that of pseudo-likelihood (here: {at_n} at most {SIMILAR} times the error)",
                ratio(error[PAPER], error[LIKELIHOOD]),
                most=SIMILAR,
                stated=self.compared,
                unit="times",
                remark=others,
            ),
            Claim(
                f"{OURS}: as accurate as pseudo-likelihood (here: {at_n} at most 1.01 times the error)",
                ratio(error[OURS], error[LIKELIHOOD]),
                most=1.01,
                stated=False,
                unit="times",
            ),
        ]

    def draw(self, table: pd.DataFrame) -> Figure:
        """Errors against n."""
        figure, (ax,) = figures.panels()
        draw_errors(ax, table)
        return figure


def draw_errors(ax: Axes, table: pd.DataFrame) -> None:
    """Mean errors against n, with a guide ∝ 1/√n."""
    figures.curves(ax, table, "error", "n", METHODS)
    mean = table[table["method"] == LIKELIHOOD].groupby("n")["error"].mean()
    figures.guide(ax, mean.index, 0.6 * mean.iloc[-1] * (mean.index[-1] / mean.index[0]) ** 0.5, -0.5, "∝ 1/√n")
    ax.set(xlabel="samples n", ylabel="mean absolute error of θ")
    ax.set_title(f"{table['set'].nunique()} sets of samples per point", fontsize=10)
