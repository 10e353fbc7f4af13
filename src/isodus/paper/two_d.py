"""Error and run time against n in two dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..datasets import paper_pair
from . import figures, scaling, timing
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE, samples
from .statistics import Ratio, above, below, median_at, medians
from .study import Claim, Settings, Task
from .timing import ADAPTIVE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "two-d"
TITLE = "Error and run time against n, two variables, degree 4"
STATED = (
    "For a general energy of degree 4 in two variables results are very similar to those in one dimension: both "
    "estimators have a similar accuracy. At n = 1e5 ISODUS takes 9 s and pseudo-likelihood 7,000 times as long; the "
    "run time of ISODUS is linear in n (45 sets of samples a point)."
)
TIMED = True
_N = scaling.HALF_DECADES
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=9, sets=8, n=_N[:5], adaptive_n=[1000], adaptive_sets=1),
    "standard": dict(seed=9, sets=45, n=_N, adaptive_n=_N[:2], adaptive_sets=3),
    "full": dict(seed=9, sets=45, n=_N, adaptive_n=_N[:5], adaptive_sets=3),
}
_TERMS: dict[str, Any] = dict(degree=4, min_degree=2)
_START = 10_000  # 1,000 samples a parameter of a variable, about
_HEADLINE, _THEIRS, _TIMES = 100_000, 9.0, 7000.0


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every set of samples of every size, rounds in turn so that a slow hour of the machine meets all sizes."""
    return [{"n": n, "set": k} for k in range(settings["sets"]) for n in settings["n"]]


def cost(task: Task) -> float:
    """Seconds, about."""
    return 0.2 + 8e-6 * float(task["n"])


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One set of samples, all methods in turn."""
    truth, n = paper_pair(1), task["n"]
    X = samples(truth, n, settings["seed"], task["set"])
    with_adaptive = n in settings["adaptive_n"] and task["set"] < settings["adaptive_sets"]
    return timing.durations(truth, X, _TERMS, with_adaptive)


def headline(table: pd.DataFrame) -> dict[str, Ratio]:
    """Median seconds at n = 1e5; adaptive integration scaled to it from the largest n it ran at."""
    out = {}
    for method in (PAPERS, OURS, LIKELIHOOD, SCORE, ADAPTIVE):
        points = medians(table[table["method"] == method], "seconds", "n")
        if len(points):
            n = _HEADLINE if _HEADLINE in points.index else points.index.max()
            out[method] = median_at(points, n).times(_HEADLINE / n)
    return out


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Slopes, accuracy, linear run time, and the headline: 9 s, and 7,000 times as long."""
    seconds = headline(table)
    papers = seconds[PAPERS]
    out = [
        *scaling.slopes(table, _START),
        scaling.accuracy(table, settings["n"][-1]),
        *timing.growths(table),
        Claim(
            "at n = 1e5 ISODUS takes 9 s (here: or less)",
            f"{papers} s with the paper's settings, {seconds[OURS]} s by default",
            *papers[:2],
            below(papers, _THEIRS),
            True,
        ),
    ]
    scaled = max(settings["adaptive_n"])
    how = {
        ADAPTIVE: "an adaptive integral a sample"
        + (f", scaled from n = {scaled:,} as if it took the same number of steps" if scaled < _HEADLINE else ""),
        LIKELIHOOD: "batched integrals",
    }
    for method, words in how.items():
        if method not in seconds:
            continue
        times = _over(seconds[method], papers)
        out.append(
            Claim(
                f"at n = 1e5 pseudo-likelihood takes 7,000 times as long; with {words} (here: at least 3,500)",
                f"{times} times as long ({seconds[method]} s)",
                *times[:2],
                above(times, _TIMES / 2),
                method == ADAPTIVE,
            )
        )
    return out


def _over(one: Ratio, other: Ratio) -> Ratio:
    """One figure over another."""
    error = float(np.hypot(one.stderr / one.value, other.stderr / other.value))
    return Ratio(1.0, error, min(one.freedom, other.freedom)).times(one.value / other.value)


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """What the choice of ν and δ costs, and where the 7,000 go."""
    seconds = headline(table)
    said = scaling.giving_away(table, settings["n"][-1])
    if ADAPTIVE in seconds:
        gain = seconds[ADAPTIVE].value / seconds[LIKELIHOOD].value
        said.append(
            f"Batched integrals make pseudo-likelihood {gain:,.0f} times as fast as one adaptive integral after the "
            f"other, and it is then {seconds[LIKELIHOOD].value / seconds[PAPERS].value:.1f} times as slow as ISODUS "
            f"with the paper's settings, {seconds[LIKELIHOOD].value / seconds[OURS].value:.1f} times as slow as by "
            "default. Adaptive Newton steps take an integral for Z and one for each of eight moments, to 1e-7, a "
            "sample and variable; counting only that of Z would divide their time by up to nine."
        )
    return said


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Run time, and error."""
    figure, (left, right) = figures.new(2, 5.2)
    timing.draw_seconds(left, table, (PAPERS, LIKELIHOOD, SCORE, OURS, ADAPTIVE))
    scaling.draw_errors(right, table, _START)
    left.set_title("Two variables, 12 terms", fontsize=10)
    right.set_title(f"{settings['sets']} sets a point", fontsize=10)
    return figure
