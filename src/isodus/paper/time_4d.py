"""Run time against n in four dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..datasets import paper_4d
from . import figures, timing
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE, samples
from .statistics import medians
from .study import Claim, Settings, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "time-4d"
TITLE = "Run time against n, four variables, degree 4"
STATED = "The run time of ISODUS is linear in the number of samples; pseudo-likelihood is essentially intractable."
TIMED = True
_N = [10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278]
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=11, sets=2, n=_N[:4]),
    "standard": dict(seed=11, sets=5, n=_N),
    "full": dict(seed=11, sets=45, n=_N),
}
_TERMS: dict[str, Any] = dict(degree=4, min_degree=2, max_order=None)


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every set of samples of every size, rounds in turn so that a slow hour of the machine meets all sizes."""
    return [{"n": n, "set": k} for k in range(settings["sets"]) for n in settings["n"]]


def cost(task: Task) -> float:
    """Seconds, about."""
    return 0.5 + 2e-5 * float(task["n"])


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One set of samples, all methods in turn."""
    truth = paper_4d()
    return timing.durations(truth, samples(truth, task["n"], settings["seed"], task["set"]), _TERMS)


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Linear in n; and whether pseudo-likelihood can be had."""
    n = max(settings["n"])
    seconds = medians(table[table["n"] == n], "seconds", "method")
    likelihood, papers = seconds.loc[LIKELIHOOD], seconds.loc[PAPERS]
    return [
        *timing.growths(table),
        Claim(
            "pseudo-likelihood is essentially intractable (here: takes more than an hour)",
            f"{likelihood['median']:.1f} ± {likelihood['stderr']:.1f} s at n = {n:,}, integrals batched; ISODUS with "
            f"the paper's settings {papers['median']:.1f} ± {papers['stderr']:.1f} s",
            float(likelihood["median"]),
            float(likelihood["stderr"]),
            bool(np.isfinite(likelihood["median"]) and likelihood["median"] > 3600),
        ),
    ]


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """How the times compare."""
    n = max(settings["n"])
    seconds = medians(table[table["n"] == n], "seconds", "method")["median"]
    return [f"At n = {n:,}: " + ", ".join(f"{m} {seconds[m]:.2f} s" for m in (PAPERS, OURS, LIKELIHOOD, SCORE)) + "."]


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Seconds against n."""
    figure, (ax,) = figures.new()
    timing.draw_seconds(ax, table, (PAPERS, LIKELIHOOD, SCORE, OURS))
    ax.set_title("Four variables, 65 terms", fontsize=10)
    return figure
