"""Error against n for ten Gaussian variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ..datasets import gaussian_10
from . import figures, scaling
from .methods import samples
from .study import Claim, Settings, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "gaussian-scaling"
TITLE = "Error against n, ten Gaussian variables"
STATED = (
    "With δ = ν = 2 the mean absolute error falls as 1/√n and is in absolute terms similar to that of "
    "pseudo-likelihood (10 variables, 25 sets of samples a point)."
)
TIMED = False
_N = [100, 500, 1000, 5000, 10_000, 50_000, 100_000]
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=2, sets=8, n=[100, 500, 1000, 5000, 10_000, 50_000]),
    "standard": dict(seed=2, sets=25, n=_N),
    "full": dict(seed=2, sets=25, n=_N),
}
_TERMS = dict(degree=2, min_degree=2)
_START = 10_000  # 1,000 samples a parameter of a variable


tasks = scaling.tasks


def cost(task: Task) -> float:
    """Seconds, about."""
    return 0.15 + 8e-6 * float(task["n"])


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One set of samples, all methods."""
    truth = gaussian_10()
    return scaling.errors(truth, samples(truth, task["n"], settings["seed"], task["set"]), _TERMS)


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Slopes, and accuracy against pseudo-likelihood."""
    return [
        *scaling.slopes(table, _START),
        scaling.accuracy(table, settings["n"][-1]),
        scaling.objectives(table),
    ]


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """What the choice of ν and δ costs."""
    return scaling.giving_away(table, settings["n"][-1])


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Errors against n."""
    figure, (ax,) = figures.new()
    scaling.draw_errors(ax, table, _START)
    ax.set_title(f"Ten Gaussian variables, {settings['sets']} sets a point", fontsize=10)
    return figure
