"""Run time against n in four dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ..datasets import paper_4d
from . import figures, timing
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE, samples
from .statistics import above, median_at, medians
from .study import Claim, Settings, Task
from .timing import ADAPTIVE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "time-4d"
TITLE = "Run time against n, four variables, degree 4"
STATED = "The run time of ISODUS is linear in the number of samples; pseudo-likelihood is essentially intractable."
TIMED = True
_N = [10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278]
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=11, sets=3, n=_N[:4], adaptive_n=316, adaptive_sets=1),
    "standard": dict(seed=11, sets=5, n=_N, adaptive_n=316, adaptive_sets=3),
    "full": dict(seed=11, sets=45, n=_N, adaptive_n=1000, adaptive_sets=3),
}
_TERMS: dict[str, Any] = dict(degree=4, min_degree=2, max_order=None)


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every set of samples of every size, rounds in turn so that a slow hour of the machine meets all sizes.

    And some of few samples, for adaptive integrals.
    """
    few = [{"n": settings["adaptive_n"], "set": k} for k in range(settings["adaptive_sets"])]
    return few + [{"n": n, "set": k} for k in range(settings["sets"]) for n in settings["n"]]


def cost(task: Task) -> float:
    """Seconds, about."""
    return 0.5 + 2e-5 * float(task["n"])


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One set of samples, all methods in turn."""
    truth, n = paper_4d(), task["n"]
    X = samples(truth, n, settings["seed"], task["set"])
    if n == settings["adaptive_n"]:
        return timing.durations(truth, X, _TERMS, with_adaptive=True)[-1:]
    return timing.durations(truth, X, _TERMS)


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Linear in n; and whether pseudo-likelihood can be had."""
    n = max(settings["n"])
    few = median_at(medians(table[table["method"] == ADAPTIVE], "seconds", "method"), ADAPTIVE)
    scaled = few.times(n / settings["adaptive_n"])
    batched = median_at(medians(table[table["n"] == n], "seconds", "method"), LIKELIHOOD)
    limit = f"at n = {n:,} pseudo-likelihood is essentially intractable (here: takes more than an hour)"
    return [
        *timing.growths(table),
        Claim(
            f"{limit}; with one adaptive integral after the other",
            f"{scaled} s, scaled from n = {settings['adaptive_n']:,}, as if it took the same number of steps",
            *scaled[:2],
            above(scaled, 3600.0),
            True,
        ),
        Claim(f"{limit}; with batched integrals", f"{batched} s", *batched[:2], above(batched, 3600.0)),
    ]


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """How the times compare."""
    n = max(settings["n"])
    seconds = medians(table[table["n"] == n], "seconds", "method")["median"]
    return [f"At n = {n:,}: " + ", ".join(f"{m} {seconds[m]:.2f} s" for m in (PAPERS, OURS, LIKELIHOOD, SCORE)) + "."]


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Seconds against n."""
    figure, (ax,) = figures.new()
    timing.draw_seconds(ax, table, (PAPERS, LIKELIHOOD, SCORE, OURS, ADAPTIVE))
    ax.set_title("Four variables, 65 terms", fontsize=10)
    return figure
