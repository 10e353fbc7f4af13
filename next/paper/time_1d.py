"""Run time against n in one dimension."""

import pandas as pd
from matplotlib.figure import Figure

from isodus.datasets import paper_1d, paper_1d_theta

from . import figures
from .methods import JOINT, LIKELIHOOD, OURS, PAPER
from .scaling import AgainstN
from .statistics import Claim
from .timing import ADAPTIVE, ONCE, draw_seconds, linear, over

TITLE = "Run time against n, one variable of degree 4"
STATED = "Pseudo-likelihood is slower than ISODUS, by the adaptive integrals that it takes."
PROCESSES = 1
_SIZES = {"tiny": ((500, 1000), 2), "quick": ((1000, 10_000), 4), "standard": ((3162, 31_623, 316_228), 12)}
_STUDY = AgainstN(paper_1d, paper_1d_theta, dict(degree=4), _SIZES, seed=7, adaptive=20, peers=6)
tasks, repetition = _STUDY.tasks, _STUDY.repetition


def claims(table: pd.DataFrame) -> list[Claim]:
    """Slower by integrals, or by sums."""
    n, text = table["n"].max(), "pseudo-likelihood is slower than ISODUS"
    sums = f"{over(table, n, JOINT, PAPER)} times for one θ"
    return [
        Claim(
            f"{text}, by an adaptive integral per row",
            over(table, n, ADAPTIVE, PAPER),
            1.0,
            unit="times",
            remark=f"n = {n:,}",
        ),
        Claim(f"{text}, by one for all rows", over(table, n, ONCE, PAPER), 1.0, stated=False, unit="times"),
        Claim(f"{text}, by sums", over(table, n, LIKELIHOOD, PAPER), 1.0, stated=False, unit="times", remark=sums),
        Claim(f"{text} by default, by sums", over(table, n, JOINT, OURS), 1.0, stated=False, unit="times"),
        linear(table, stated=False),
    ]


def draw(table: pd.DataFrame) -> Figure:
    """Seconds against n."""
    figure, (ax,) = figures.panels()
    draw_seconds(ax, table)
    return figure
