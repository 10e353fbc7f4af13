"""Run time against n in one dimension."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..datasets import paper_1d
from . import figures, timing
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE, samples
from .statistics import Ratio, above, paired_ratio
from .study import Claim, Settings, Task
from .timing import ADAPTIVE, ONCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "time-1d"
TITLE = "Run time against n, one variable, degree 4"
STATED = "Pseudo-likelihood is slower than ISODUS, by the numerical integrals of its normalisation."
TIMED = True
_N = [1000, 10_000, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000]
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=7, sets=3, n=_N[:5], adaptive_n=[1000], adaptive_sets=1),
    "standard": dict(seed=7, sets=5, n=_N, adaptive_n=[1000, 10_000], adaptive_sets=3),
    "full": dict(seed=7, sets=45, n=_N, adaptive_n=_N[:4], adaptive_sets=5),
}
_TERMS: dict[str, Any] = dict(degree=4, min_degree=2)


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every set of samples of every size, rounds in turn so that a slow hour of the machine meets all sizes."""
    return [{"n": n, "set": k} for k in range(settings["sets"]) for n in settings["n"]]


def cost(task: Task) -> float:
    """Seconds, about; adaptive integrals take longer and are few."""
    return 0.2 + 2.5e-6 * float(task["n"])


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One set of samples, all methods in turn."""
    truth, n = paper_1d(), task["n"]
    X = samples(truth, n, settings["seed"], task["set"])
    with_adaptive = n in settings["adaptive_n"] and task["set"] < settings["adaptive_sets"]
    rows = timing.durations(truth, X, _TERMS, with_adaptive)
    started = time.perf_counter()
    theta = timing.maximum_likelihood_1d(X[:, 0], 4)
    seconds = time.perf_counter() - started
    error = float(np.mean(np.abs(theta - truth.theta)))
    return [*rows, {"method": ONCE, "seconds": seconds, "error": error, "converged": True}]


def _ratio(table: pd.DataFrame, method: str, n: int) -> Ratio:
    seconds = table[table["n"] == n].pivot(index="set", columns="method", values="seconds")
    return paired_ratio(seconds[method].to_numpy(), seconds[PAPERS].to_numpy())


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Linear in n; pseudo-likelihood slower, by adaptive and by batched integrals."""
    out = timing.growths(table, stated=False)
    for method, n in (
        (ADAPTIVE, max(settings["adaptive_n"])),
        (LIKELIHOOD, max(settings["n"])),
        (ONCE, max(settings["n"])),
    ):
        ratio = _ratio(table, method, n)
        out.append(
            Claim(
                f"{_long(method)} is slower than ISODUS (n = {n:,})",
                f"{ratio} times as long as ISODUS with the paper's settings",
                *ratio[:2],
                above(ratio, 1.0),
                method == ADAPTIVE,
            )
        )
    return out


def _long(method: str) -> str:
    return {
        ADAPTIVE: "pseudo-likelihood with an adaptive integral a sample",
        LIKELIHOOD: "pseudo-likelihood with batched integrals",
        ONCE: "maximum likelihood with the adaptive integral that all samples share",
    }[method]


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """What is particular about one dimension."""
    return [
        "In one dimension nothing is conditioned on: all samples share one normalisation, and maximum likelihood needs "
        "a handful of integrals a step whatever n is. An integral a sample is what the same program does with more "
        "variables."
    ]


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Seconds against n."""
    figure, (ax,) = figures.new()
    timing.draw_seconds(ax, table, (PAPERS, LIKELIHOOD, SCORE, OURS, ADAPTIVE, ONCE))
    ax.set_title("One variable, three parameters", fontsize=10)
    return figure
