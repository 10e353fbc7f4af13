"""The smallest n at which a graph is recovered many times in a row, against the number of variables."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from isodus.datasets import gaussian, regular_precision

from . import figures
from .methods import generator
from .penalized import CODE, LIKELIHOOD_CODE, LIKELIHOOD_TEXT, LOG, TEXT, couplings, learned
from .statistics import Claim, Interval, interval, means, ratio, slopes, wide
from .study import Row, Task

TITLE = "Samples needed to recover a 3-regular Gaussian graph, against p"
STATED = (
    "n* ∝ log p for both estimators: κ = 0.25, pairs above κ/2 are edges, 45 recoveries in a row, n + 25 after a "
    "failure and − 10 after a success, 5 graphs per p, λ_IS = 0.35 and λ_PL = 2.3. (The authors' code: λ_IS = 0.2, the "
    "diagonal not penalised, the threshold on √(θ_ij θ_ji / (θ_ii θ_jj)); its loop for pseudo-likelihood calls ISODUS.)"
)
PROCESSES = 2
_SIZES = {  # p, graphs, successes in a row, steps up and down
    "tiny": ((4, 6), 2, 1, 2000, 1000),
    "quick": ((6, 8, 10), 2, 2, 1000, 500),
    "standard": ((8, 12, 18, 28), 3, 10, 400, 160),
}
_KAPPA, _MOST, _RUNG = 0.25, 100_000, 1.25
_IS, _PL = "ISODUS, text: λ = 0.35, |θ|", "pseudo-likelihood, text: λ = 2.3, |θ|"
_WAYS = {  # form, λ, and whether the threshold is on normalised couplings
    _IS: (TEXT, 0.35, False),
    "ISODUS, code: λ = 0.2, normalised": (CODE, 0.2, True),
    "ISODUS, log: λ = 0.35, normalised": (LOG, 0.35, True),
    _PL: (LIKELIHOOD_TEXT, 2.3, False),
    "pseudo-likelihood, diagonal free: λ = 2.3, normalised": (LIKELIHOOD_CODE, 2.3, True),
}


def tasks(size: str) -> list[Task]:
    """Every search, the longest first."""
    ps, graphs, successes, up, down = _SIZES[size]
    how = dict(successes=successes, up=up, down=down)
    return [{"p": p, "graph": k, "method": way, **how} for p in ps[::-1] for k in range(graphs) for way in _WAYS]


def repetition(task: Task) -> list[Row]:
    """One search, from the last n of a ladder at which not all trials succeed."""
    truth, (form, strength, normalised) = regular_precision(task["p"], seed=task["graph"]), _WAYS[task["method"]]
    rng, edges, wanted = generator(4, task["p"], task["graph"]), couplings(truth) > 0, task.pop("successes")
    up, down = task.pop("up"), task.pop("down")

    def recovered(n: int) -> bool:
        """All trials at one n."""
        trials = (learned(form, gaussian(n, truth, rng), [strength])[0] for _ in range(wanted))
        return all(np.array_equal(couplings(found, normalised) > _KAPPA / 2, edges) for found in trials)

    n = start = up
    while n < _MOST and not recovered(n):
        n, start = int(_RUNG * n), n
    n, best = start, _MOST
    while 0 < n < best:  # up after a failure, down after a success, until a success was followed by failures up to it
        if recovered(n):
            best, n = n, n - down
        else:
            n += up
    return [dict(n=best)]


def advantage(found: pd.DataFrame) -> Interval:
    """R² of a line in log p less that of one in p, by graph."""
    p = np.asarray(found.columns, float)
    with np.errstate(invalid="ignore"):  # none where n* is the same for all p
        return interval(
            [np.corrcoef(np.log(p), n)[0, 1] ** 2 - np.corrcoef(p, n)[0, 1] ** 2 for n in found.to_numpy(float)]
        )


def claims(table: pd.DataFrame) -> list[Claim]:
    """A line in log p fits better than one in p; both need similar numbers; what 45 in a row show."""
    by_way = {way: wide(table, "n", by="p", per="graph", method=way) for way in _WAYS}
    last = table["p"].max()
    found = [
        Claim(
            f"{way}: n* grows as log p (here: a + b log p has a larger R² than a + b p)",
            advantage(n),
            least=0.0,
            stated=way in (_IS, _PL),
            remark=f"as a power p to the {interval(slopes(n))}; n* = {interval(n[last])} at p = {last}",
        )
        for way, n in by_way.items()
    ]
    chance = 1 - 0.95**45
    return [
        *found,
        Claim(
            f"both need similar numbers of samples (here: ISODUS at most 1.5 times as many, p = {last})",
            ratio(by_way[_IS][last], by_way[_PL][last]),
            most=1.5,
            stated=False,
            unit="times",
        ),
        Claim(
            "45 recoveries in a row show a probability above 0.95 with a confidence of 90 %",
            Interval(chance, chance, chance),
            least=0.9,
            remark="at one n; n* is the least of several that were tried",
        ),
    ]


def draw(table: pd.DataFrame) -> Figure:
    """n* against p, with lines in log p."""
    figure, (ax,) = figures.panels(1, 7.0, 5.5)
    figures.curves(ax, table, "n", "p", tuple(_WAYS), linestyle="")
    ps = np.sort(table["p"].unique())
    for k, way in enumerate(_WAYS):
        mean = means(table[table["method"] == way], "n", "p")["mean"]
        line = np.polyval(np.polyfit(np.log(mean.index), mean, 1), np.log(ps))
        ax.plot(ps, line, color=figures.style(way, k)["color"], linewidth=1)
    ax.set(xlabel="variables p", ylabel="n*", yscale="linear", xticks=ps, xticklabels=ps)
    ax.minorticks_off()
    ax.set_title(f"{table['graph'].nunique()} graphs per p; lines: a + b log p", fontsize=10)
    return figure
