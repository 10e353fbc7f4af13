"""The smallest n at which the graph is recovered 45 times in a row, against the number of variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from .. import ScoreMatching
from ..datasets import regular_gaussian
from ..sample_complexity import smallest_n
from . import figures
from .methods import OURS, SCORE, Make
from .penalized import (
    CODE,
    LIKELIHOOD_CODE,
    LIKELIHOOD_TEXT,
    LOG,
    TEXT,
    chosen,
    couplings,
    forms,
    learned,
    papers,
    precision,
)
from .statistics import Ratio, above, below, log_slope, means, paired_ratio, straight
from .study import Claim, Settings, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .. import PolynomialModel

NAME = "n-star"
TITLE = "Samples needed to recover a 3-regular Gaussian graph, against p"
STATED = (
    "n* ∝ log p for both estimators: random 3-regular graphs, κ = 0.25, pairs above κ/2 = 0.125 are edges, 45 "
    "recoveries in a row, n + 25 after a failure and − 10 after a success, 5 graphs a size, λ_IS = 0.35 and λ_PL = "
    "2.3. (The authors' code: λ_IS = 0.2, the diagonal not penalised, the threshold on √(θ_ij θ_ji / (θ_ii θ_jj)); in "
    "the loop for pseudo-likelihood it calls ISODUS.)"
)
TIMED = False
KAPPA = 0.25
_MOST = 100_000
_TEXT, _CODE = "ISODUS, text: λ = 0.35, |θ|", "ISODUS, code: λ = 0.2, coupling"
_LIKELIHOOD = "pseudo-likelihood, text: λ = 2.3, |θ|"


class Way(NamedTuple):
    """How to learn, and whether the coupling that is cut off is normalised."""

    make: Make
    normalised: bool


def _score_matching() -> ScoreMatching:
    """With one λ, 1.5 √(log p / n) in standardised variables, and a refit: choosing it each time takes seconds."""
    return ScoreMatching(2, min_degree=2, l1=1.5, l1_scaling="paper", debias=True)


def ways() -> dict[str, Way]:
    """As the text has it, as the code does, and what the paper could not show."""
    return {
        _TEXT: Way(papers(TEXT), False),
        "ISODUS, diagonal free: λ = 0.35, |θ|": Way(papers(CODE), False),
        "ISODUS, diagonal free: λ = 0.35, coupling": Way(papers(CODE), True),
        "ISODUS, log objective: λ = 0.35, coupling": Way(papers(LOG), True),
        _CODE: Way(forms(0.2)[CODE], True),
        _LIKELIHOOD: Way(papers(LIKELIHOOD_TEXT), False),
        "pseudo-likelihood, diagonal free: λ = 2.3, coupling": Way(papers(LIKELIHOOD_CODE), True),
        OURS: Way(chosen()[OURS], True),
        SCORE: Way(_score_matching, True),
    }


_P = list(range(10, 101, 10))
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=4, graphs=1, successes=5, up=100, down=40, rung=1.2, p=[10, 14, 20, 28]),
    "standard": dict(seed=4, graphs=5, successes=15, up=100, down=40, rung=1.15, p=[10, 16, 22, 32, 44, 64]),
    "full": dict(seed=4, graphs=5, successes=45, up=25, down=10, rung=1.1, p=_P),
}


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every search: a graph, a size and a way."""
    return [
        {"p": p, "graph": k, "method": way} for p in settings["p"] for k in range(settings["graphs"]) for way in ways()
    ]


def cost(task: Task) -> float:
    """In no unit."""
    return float(task["p"]) ** 1.7 * (4.0 if "ISODUS, " in str(task["method"]) else 1.0)


def recovers(way: Way, truth: PolynomialModel, n: int, seed: int) -> bool:
    """Whether the pairs above κ/2 are the edges."""
    matrix, _ = learned(way.make, np.array(truth.sample(n, rng=seed)))
    found = couplings(matrix, way.normalised) > KAPPA / 2
    return bool(np.array_equal(found, couplings(precision(truth), False) > 0))


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One search. It begins below n*, at the last n of a ladder where not all trials succeed."""
    truth, way, wanted = regular_gaussian(task["p"], rng=task["graph"]), ways()[task["method"]], settings["successes"]
    trial = lambda n, seed: recovers(way, truth, n, seed)
    n, start = 100, 100
    while n < _MOST and not all(trial(n, seed) for seed in range(wanted)):
        n, start = int(settings["rung"] * n), n
    steps = dict(up=settings["up"], down=settings["down"])
    found = smallest_n(
        trial,
        start=start,
        successes=wanted,
        rng=settings["seed"] + task["graph"],
        progress=False,
        maximum=_MOST,
        **steps,
    )
    if not found.complete:
        raise KeyboardInterrupt
    return [{"n": found.n, "trials": found.trials}]


def fits(table: pd.DataFrame, method: str) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Intercept, slope and R² of mean n* against log p, and against p."""
    points = means(table[table["method"] == method], "n", "p")
    p, n = np.asarray(points.index, float), points["mean"].to_numpy()
    return straight(np.log(p), n), straight(p, n)


def advantage(table: pd.DataFrame, method: str) -> Ratio:
    """R² of a line in log p less that of a line in p; its error by drawing each mean n* anew, as graphs scatter."""
    part = table[table["method"] == method]
    points = means(part, "n", "p")
    p, n = np.asarray(points.index, float), points["mean"].to_numpy()
    gain = lambda y: straight(np.log(p), y)[2] - straight(p, y)[2]
    relative = (part.groupby("p")["n"].std(ddof=1) / points["mean"]).pow(2).mean() ** 0.5
    graphs = points["count"].min()
    if not (np.all(np.isfinite(n)) and graphs >= 2 and np.isfinite(relative)):
        return Ratio(float(gain(n)), float("nan"))
    rng = np.random.default_rng(0)
    drawn = [gain(n * (1 + relative / graphs**0.5 * rng.standard_normal(len(n)))) for _ in range(400)]
    return Ratio(float(gain(n)), float(np.std(drawn)), float((points["count"] - 1).sum()))


def _line(a: float, b: float) -> str:
    return f"{a:.0f} {'−' if b < 0 else '+'} {abs(b):.0f} log p".replace("-", "−")


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Logarithmic growth: a line in log p fits better than one in p. Similar numbers. What 45 in a row show."""
    out = []
    for method in ways():
        (a, b, logarithmic), (_, _, linear) = fits(table, method)
        gain = advantage(table, method)
        part = table[table["method"] == method]
        power = log_slope(part, "n", "p")
        last = means(part, "n", "p").iloc[-1]
        out.append(
            Claim(
                f"{method}: n* grows as log p (here: n* = a + b log p fits better than a + b p)",
                f"R² {logarithmic:.3f} against {linear:.3f}, difference {gain}; n* = {_line(a, b)}; as a "
                f"power, p to the {power.slope:.2f} ± {power.stderr:.2f}; at p = {settings['p'][-1]} "
                f"{last['mean']:.0f} ± {last['stderr']:.0f}",
                *gain[:2],
                above(gain, 0.0) if len(settings["p"]) >= 4 else None,
                method in (_TEXT, _LIKELIHOOD),
            )
        )
    p = settings["p"][-1]
    n = table[table["p"] == p].pivot(index="graph", columns="method", values="n")
    ratio = paired_ratio(n[_TEXT].to_numpy(), n[_LIKELIHOOD].to_numpy())
    out.append(
        Claim(
            f"both estimators need similar numbers of samples (here: ISODUS at most 1.5 times as many, p = {p})",
            f"{ratio} times as many",
            *ratio[:2],
            below(ratio, 1.5),
        )
    )
    chance = 0.95 ** settings["successes"]
    out.append(
        Claim(
            f"{settings['successes']} in a row show a probability above 0.95 with a confidence of 90 %",
            f"of {1 - chance:.1%} at one n; n* is the least of several that were tried, and so had some luck",
            1 - chance,
            0.0,
            1 - chance >= 0.9,
            settings["successes"] == 45,
        )
    )
    return out


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """What text and code differ by, and what others need."""
    p = settings["p"][-1]
    at = means(table[table["p"] == p], "n", "method")
    listed = "; ".join(f"{way} {at.loc[way, 'mean']:.0f} ± {at.loc[way, 'stderr']:.0f}" for way in ways())
    return [f"n* at p = {p}: {listed}."]


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """n* against p, with the lines in log p."""
    figure, (ax,) = figures.new(1, 7.2, 6.0)
    p = np.geomspace(min(settings["p"]), max(settings["p"]), 50)
    for k, method in enumerate(ways()):
        (a, b, r), _ = fits(table, method)
        figures.curve(
            ax, means(table[table["method"] == method], "n", "p"), f"{method} (R² {r:.2f})", method, k, linestyle=""
        )
        ax.plot(p, a + b * np.log(p), "-", linewidth=1, color=figures.style(method, k)["color"])
    ax.set(xscale="log", yscale="log", xlabel="variables p", ylabel="n*")
    figures.plain_ticks(ax, settings["p"])
    graphs = f"{settings['graphs']} graph{'s' if settings['graphs'] > 1 else ''} of each size"
    ax.set_title(f"{settings['successes']} recoveries in a row, {graphs}; lines: a + b log p", fontsize=10)
    figures.below(figure, ax, 2)
    return figure
