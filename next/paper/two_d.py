"""Error and run time against n in two dimensions."""

import pandas as pd
from matplotlib.figure import Figure

from isodus.datasets import paper_pair, paper_pair_theta

from . import figures
from .methods import JOINT, LIKELIHOOD, OURS, PAPER
from .scaling import HALF_DECADES, AgainstN, draw_errors
from .statistics import Claim, interval
from .timing import ADAPTIVE, IPOPT, at, draw_seconds, linear, over

TITLE = "Error and run time against n, two variables of degree 4"
STATED = (
    "For a general energy of degree 4 in two variables the accuracy of both estimators is similar. At n = 1e5 ISODUS "
    "takes 9 s and pseudo-likelihood 7,000 times as long; run time is linear in n (45 sets of samples per point)."
)
PROCESSES = 1
_SIZES = {"tiny": ((500, 1000), 2), "quick": ((1000, 10_000), 6), "standard": (HALF_DECADES[:5], 45)}
_STUDY = AgainstN(paper_pair, paper_pair_theta, dict(degree=4), _SIZES, seed=9, start=10_000, adaptive=50, peers=5)
tasks, repetition = _STUDY.tasks, _STUDY.repetition


def claims(table: pd.DataFrame) -> list[Claim]:
    """Accuracy; the paper's run times beside ours."""
    n = table["n"].max()
    seven, ours = f"at n = {n:,} pseudo-likelihood takes 7,000 times as long (here: at least 3,500)", dict(stated=False)
    joint = f"{over(table, n, JOINT, PAPER)} times for one θ"
    found = [
        *_STUDY.claims(table),
        linear(table),
        Claim(f"at n = {n:,} ISODUS takes 9 s (here: at most)", interval(at(table, n, PAPER)), most=9.0, unit="s"),
        Claim(f"{seven}, by an adaptive integral per row", over(table, n, ADAPTIVE, PAPER), 3500, unit="times"),
        Claim(f"{seven}, by sums", over(table, n, LIKELIHOOD, PAPER), 3500, unit="times", remark=joint, **ours),
        Claim(
            f"{JOINT} takes 0.5 to 2 times as long as {OURS}",
            over(table, n, JOINT, OURS),
            0.5,
            2.0,
            unit="times",
            **ours,
        ),
    ]
    if (table["method"] == IPOPT).any():
        text = f"at n = {n:,} Ipopt takes at least 24 times as long on the same problems"
        found.append(Claim(text, over(table, n, IPOPT, PAPER), 24.0, unit="times", **ours))
    return found


def draw(table: pd.DataFrame) -> Figure:
    """Seconds and errors."""
    figure, (left, right) = figures.panels(2)
    draw_seconds(left, table)
    draw_errors(right, table)
    return figure
