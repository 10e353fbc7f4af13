"""Error against the number of samples: what the studies of it in one, two, four and ten dimensions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .. import PolynomialModel
from ..plotting import error_scaling
from . import figures
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE, estimators, learn, mean_error, paper_isodus, samples
from .statistics import Ratio, alike, below, log_slope, paired_ratio, slope_of_ratio
from .study import Claim, Settings, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["HALF_DECADES", "SIMILAR", "ErrorStudy", "accuracy", "draw_errors", "giving_away", "slopes"]

GAP = "plain less log"  # largest difference of a parameter between the two objectives, in the column of errors
METHODS = (PAPERS, LIKELIHOOD, SCORE, OURS)
SIMILAR = 1.5  # as large an error counts as similar
HALF_DECADES = [1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000]


@dataclass(frozen=True)
class ErrorStudy:
    """A study of nothing but errors: its module takes all but its name, its words and its sizes from here.

    terms: those that are learned. start: the n from which 1/√n may be expected, about 1,000 samples a parameter of a
    variable. seconds: of a set of samples, about, whatever its size, and more a sample. title: of the figure.
    compared: whether the paper has pseudo-likelihood beside its own. papers: how many sets of samples a point it has.
    """

    truth: Callable[[], PolynomialModel]
    terms: Mapping[str, Any]
    start: int
    seconds: tuple[float, float]
    title: str
    papers: int
    compared: bool = True

    def tasks(self, settings: Settings) -> list[dict[str, Any]]:
        """Every set of samples of every size."""
        return [{"n": n, "set": k} for n in settings["n"] for k in range(settings["sets"])]

    def cost(self, task: Task) -> float:
        """Seconds, about."""
        return self.seconds[0] + self.seconds[1] * float(task["n"])

    def repetition(self, settings: Settings, task: Task) -> list[dict[str, Any]]:
        """One set of samples, all methods."""
        truth = self.truth()
        return errors(truth, samples(truth, task["n"], settings["seed"], task["set"]), self.terms)

    def claims(self, table: pd.DataFrame, settings: Settings) -> list[Claim]:
        """Slopes; accuracy against pseudo-likelihood where the paper has it; and the two objectives."""
        beside = [accuracy(table, settings["n"][-1])] if self.compared else []
        return [*slopes(table, self.start, self.compared), *beside, objectives(table)]

    def remarks(self, table: pd.DataFrame, settings: Settings) -> list[str]:
        """What the choice of ν and δ costs; and what the paper's number of sets says, where there are more."""
        out, first = giving_away(table, settings["n"][-1]), self.papers
        if settings["sets"] > first:
            part = of(table[table["set"] < first], PAPERS)
            found = [str(log_slope(part[part["n"] >= n], "error", "n")) for n in (settings["n"][0], self.start)]
            out.append(
                f"The paper has {first} sets of samples a point. As many were run first; they left slopes open, so "
                f"there are {settings['sets']} now. From the first {first} alone ISODUS with the paper's settings "
                f"has a slope of {found[0]} over all n, and of {found[1]} from n = {self.start:,} on."
            )
        return out

    def draw(self, table: pd.DataFrame, settings: Settings) -> Figure:
        """Errors against n."""
        figure, (ax,) = figures.new()
        draw_errors(ax, table, self.start)
        ax.set_title(f"{self.title}, {settings['sets']} sets a point", fontsize=10)
        return figure


def errors(truth: PolynomialModel, X: np.ndarray, terms: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row a method, on the same samples; and by how much the plain and the log objective differ."""
    rows, papers = [], None
    for method, make in estimators(**terms).items():
        fit = learn(make, X)
        papers = fit if method == PAPERS else papers
        rows.append(_row(method, mean_error(fit.estimator.model_, truth), fit))
    assert papers is not None
    logarithm = learn(lambda: paper_isodus(**terms, objective="log"), X)
    gap = np.max(np.abs(logarithm.estimator.model_.theta - papers.estimator.model_.theta))
    both = logarithm.converged and papers.converged
    return [*rows, _row(GAP, float(gap), logarithm._replace(converged=both))]


def _row(method: str, error: float, fit: Any) -> dict[str, Any]:
    return {"method": method, "error": error, "converged": fit.converged, "warned": fit.warned}


def of(table: pd.DataFrame, method: str, **where: Any) -> pd.DataFrame:
    """Rows of a method, and of these values."""
    part = table[table["method"] == method]
    for column, value in where.items():
        part = part[part[column] == value]
    return part


def slopes(table: pd.DataFrame, start: int, compared: bool = True) -> list[Claim]:
    """Error ∝ 1/√n: the slope is within 0.05 of −1/2, its whole interval; over all n, and from some n on.

    Whether −1/2 is in the interval is told too. With many samples it may not be, for a slope that is all but that.
    compared: whether the paper has pseudo-likelihood too.
    """
    out = []
    for method in METHODS:
        for first in sorted({int(table["n"].min()), start}):
            line = log_slope(of(table, method).query("n >= @first"), "error", "n")
            claim = f"{method}: error ∝ 1/√n, from n = {first:,} on (here: a slope within 0.05 of −1/2)"
            holds = alike(line.less(-0.5), 0.05)
            inside = (
                ""
                if not np.isfinite(line.low)
                else f"; −1/2 is {'' if line.low <= -0.5 <= line.high else 'not '}inside"
            )
            papers = first == start and (method == PAPERS or (compared and method == LIKELIHOOD))
            out.append(Claim(claim, f"slope {line}{inside}", line.slope, line.stderr, holds, papers))
    gap = slope_of_ratio(table.query("n >= @start"), "error", "n", PAPERS, LIKELIHOOD)
    claim = f"the same scaling as pseudo-likelihood's, from n = {start:,} on (here: slopes within 0.05 of one another)"
    out.append(Claim(claim, f"slopes differ by {gap}", gap.slope, gap.stderr, alike(gap, 0.05), compared))
    return out


def ratio_at(table: pd.DataFrame, method: str, other: str, n: int) -> Ratio:
    """Error of a method over another's, on the same sets."""
    a, b = (of(table, m, n=n).set_index("set")["error"] for m in (method, other))
    return paired_ratio(a.to_numpy(), b.reindex(a.index).to_numpy())


def accuracy(table: pd.DataFrame, n: int) -> Claim:
    """The paper's estimator against pseudo-likelihood, at one n."""
    ratio = ratio_at(table, PAPERS, LIKELIHOOD, n)
    return Claim(
        f"absolute accuracy similar to pseudo-likelihood's (here: at most {SIMILAR} times its error, at n = {n:,})",
        f"{ratio} times its error, as if from {ratio.value**2:.2f} times fewer samples",
        *ratio[:2],
        below(ratio, SIMILAR),
        True,
    )


def objectives(table: pd.DataFrame) -> Claim:
    """Without a penalty it is the same whether the objective or its logarithm is minimised."""
    part = table[(table["method"] == GAP) & table["converged"].astype(bool)]
    gap, scale = float(part["error"].max()), float(of(table, PAPERS)["error"].min())
    told = len(part) > 0
    return Claim(
        "text minimises the average, code its logarithm: without a penalty both have the same minimum",
        f"largest difference of a parameter {gap:.1e}, smallest mean error {scale:.1e}",
        gap,
        0.0,
        gap < scale / 10 if told else None,
    )


def giving_away(table: pd.DataFrame, n: int) -> list[str]:
    """How much accuracy ν = δ = 2 gives away, and to whom."""
    parts = [f"{ratio_at(table, PAPERS, other, n)} times that of {other}" for other in (OURS, LIKELIHOOD, SCORE)]
    said = [f"With ν = δ = 2 in raw units the error at n = {n:,} is {', '.join(parts)}."]
    fits = table[table["method"] != GAP]
    stuck = fits[~fits["converged"].astype(bool)]
    if len(stuck):
        listed = ", ".join(f"{method} {count}" for method, count in stuck.groupby("method").size().items())
        said.append(f"Not converged in some variable, of {len(fits):,} fits: {listed}; all are in the averages.")
    return said


def draw_errors(ax: Axes, table: pd.DataFrame, start: int, methods: Sequence[str] = METHODS) -> None:
    """Mean errors against n, with the slopes in the legend."""
    parts = pd.concat([of(table, method) for method in methods])
    error_scaling(parts, ax, start=start, looks={method: figures.look(method) for method in methods})
