"""Run time against n in four dimensions."""

import pandas as pd
from matplotlib.figure import Figure

from isodus.datasets import paper_4d, paper_4d_theta

from . import figures
from .methods import JOINT, OURS
from .scaling import AgainstN
from .statistics import Claim, interval
from .timing import ADAPTIVE, at, draw_seconds, linear, over

TITLE = "Run time against n, four variables of degree 4"
STATED = "The run time of ISODUS is linear in n; pseudo-likelihood is essentially intractable."
PROCESSES = 1
_SIZES = {"tiny": ((200, 400), 2), "quick": ((1000, 3162), 2), "standard": ((10_000, 31_623, 100_000), 10)}
_TERMS = dict(degree=4, max_order=4)
_STUDY = AgainstN(paper_4d, paper_4d_theta, _TERMS, _SIZES, seed=11, adaptive=10, peers=5)
tasks, repetition = _STUDY.tasks, _STUDY.repetition


def claims(table: pd.DataFrame) -> list[Claim]:
    """Linear; intractable by adaptive integrals, not by sums."""
    n = table["n"].max()
    text = f"pseudo-likelihood is intractable (here: takes more than an hour for n = 1e6, scaled from n = {n:,})"
    adaptive, sums = (interval(at(table, n, method) * (1e6 / n)) for method in (ADAPTIVE, JOINT))
    return [
        linear(table),
        Claim(f"{text}, by an adaptive integral per row", adaptive, least=3600, unit="s"),
        Claim(f"{text}, by sums", sums, least=3600, stated=False, unit="s"),
        Claim(
            f"pseudo-likelihood by sums is slower than ISODUS by default (n = {n:,})",
            over(table, n, JOINT, OURS),
            least=1.0,
            stated=False,
            unit="times",
        ),
    ]


def draw(table: pd.DataFrame) -> Figure:
    """Seconds against n."""
    figure, (ax,) = figures.panels()
    draw_seconds(ax, table)
    return figure
