"""Error against n in four dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ..datasets import paper_4d
from . import figures, scaling
from .methods import samples
from .study import Claim, Settings, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "error-4d"
TITLE = "Error against n, four variables, degree 4"
STATED = (
    "On a four-dimensional four-body distribution that is two independent pairs, which the estimator is not told, the "
    "error falls as 1/√n (45 sets of samples a point)."
)
TIMED = False
_N = [1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000]
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=10, sets=6, n=_N[:5]),
    "standard": dict(seed=10, sets=45, n=_N),
    "full": dict(seed=10, sets=45, n=_N),
}
_TERMS = dict(degree=4, min_degree=2, max_order=None)
_START = 31_623  # 1,000 samples a parameter of a variable, about


tasks = scaling.tasks


def cost(task: Task) -> float:
    """Seconds, about."""
    return 0.4 + 2e-5 * float(task["n"])


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One set of samples, all methods."""
    truth = paper_4d()
    return scaling.errors(truth, samples(truth, task["n"], settings["seed"], task["set"]), _TERMS)


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Slopes."""
    return [*scaling.slopes(table, _START), scaling.objectives(table)]


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """What the choice of ν and δ costs."""
    return scaling.giving_away(table, settings["n"][-1])


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Errors against n."""
    figure, (ax,) = figures.new()
    scaling.draw_errors(ax, table, _START)
    ax.set_title(f"Four variables, 65 terms of degree 2 to 4, {settings['sets']} sets a point", fontsize=10)
    return figure
