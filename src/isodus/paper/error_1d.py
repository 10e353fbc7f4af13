"""Error against n in one dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ..datasets import paper_1d
from . import figures, scaling
from .methods import samples
from .study import Claim, Settings, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "error-1d"
TITLE = "Error against n, one variable, degree 4"
STATED = (
    "For E = −x² − 0.5x³ − 2x⁴ both estimators have a similar accuracy, and their errors fall as 1/√n (45 sets of "
    "samples a point)."
)
TIMED = False
_N = [1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000]
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=6, sets=12, n=_N[:5]),
    "standard": dict(seed=6, sets=45, n=_N),
    "full": dict(seed=6, sets=45, n=_N),
}
_TERMS = dict(degree=4, min_degree=2)
_START = 3162  # 1,000 samples a parameter


tasks = scaling.tasks


def cost(task: Task) -> float:
    """Seconds, about."""
    return 0.1 + 2.5e-6 * float(task["n"])


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One set of samples, all methods."""
    truth = paper_1d()
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
    ax.set_title(f"x² + 0.5 x³ + 2 x⁴, {settings['sets']} sets a point", fontsize=10)
    return figure
