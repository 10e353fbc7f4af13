"""The smallest n at which the graph is recovered 45 times in a row, against the number of variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from .. import ScoreMatching
from ..datasets import regular_gaussian
from ..sample_complexity import smallest_n
from . import figures
from .methods import LIKELIHOOD, OURS, SCORE, Make
from .penalized import CODE, LAMBDA_IS, LAMBDA_PL, LOG, TEXT, chosen, couplings, forms, learned, precision
from .statistics import means, straight
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
        "text: λ = 0.35, |θ|": Way(forms(LAMBDA_IS)[TEXT], False),
        "diagonal free: λ = 0.35, coupling": Way(forms(LAMBDA_IS)[CODE], True),
        "log objective: λ = 0.35, coupling": Way(forms(LAMBDA_IS)[LOG], True),
        "code: λ = 0.2, coupling": Way(forms(0.2)[CODE], True),
        LIKELIHOOD: Way(forms(LAMBDA_PL)[LIKELIHOOD], False),
        OURS: Way(chosen()[OURS], True),
        SCORE: Way(_score_matching, True),
    }


_P = list(range(10, 101, 10))
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=4, graphs=1, successes=10, up=100, down=40, rung=1.15, p=[10, 16, 26, 40]),
    "standard": dict(seed=4, graphs=2, successes=45, up=25, down=10, rung=1.1, p=[10, 20, 40, 80]),
    "full": dict(seed=4, graphs=5, successes=45, up=25, down=10, rung=1.1, p=_P),
}


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every search: a graph, a size and a way."""
    return [
        {"p": p, "graph": k, "method": way} for p in settings["p"] for k in range(settings["graphs"]) for way in ways()
    ]


def cost(task: Task) -> float:
    """In no unit."""
    return float(task["p"]) ** 1.7 * (3.0 if "λ" in str(task["method"]) else 1.0)


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
    while not all(trial(n, seed) for seed in range(wanted)):
        n, start = int(settings["rung"] * n), n
    steps = dict(up=settings["up"], down=settings["down"])
    found = smallest_n(
        trial, start=start, successes=wanted, rng=settings["seed"] + task["graph"], progress=False, **steps
    )
    return [{"n": found.n, "trials": found.trials}]


def fits(table: pd.DataFrame, method: str) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Intercept, slope and R² of mean n* against log p, and against p."""
    points = means(table[table["method"] == method], "n", "p")
    p, n = np.asarray(points.index, float), points["mean"].to_numpy()
    return straight(np.log(p), n), straight(p, n)


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Logarithmic growth: a line in log p fits better than one in p."""
    out = []
    for method in ways():
        (a, b, logarithmic), (_, _, linear) = fits(table, method)
        last = means(table[(table["method"] == method)], "n", "p").iloc[-1]
        enough = (
            len(settings["p"]) >= 4 and len(table[table["method"] == method]) == len(settings["p"]) * settings["graphs"]
        )
        out.append(
            Claim(
                f"{method}: n* ∝ log p (here: a line in log p fits better than a line in p)",
                f"R² {logarithmic:.3f} against {linear:.3f}; n* = {a:.0f} + {b:.0f} log p; at p = {settings['p'][-1]} "
                f"{last['mean']:.0f} ± {last['stderr']:.0f}",
                logarithmic - linear,
                float("nan"),
                logarithmic > linear if enough else None,
            )
        )
    p = settings["p"][-1]
    at = means(table[table["p"] == p], "n", "method")
    text, code, likelihood = (at.loc[m] for m in ("text: λ = 0.35, |θ|", "code: λ = 0.2, coupling", LIKELIHOOD))
    ratio = float(text["mean"] / likelihood["mean"])
    error = ratio * float(np.hypot(text["stderr"] / text["mean"], likelihood["stderr"] / likelihood["mean"]))
    out.append(
        Claim(
            f"both estimators need similar numbers of samples (here: within a factor 1.5, p = {p})",
            f"ISODUS {ratio:.2f} ± {error:.2f} times as many; as in the code {code['mean']:.0f}",
            ratio,
            error,
            1 / 1.5 <= ratio <= 1.5,
        )
    )
    return out


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """What text and code differ by, and what others need."""
    p = settings["p"][-1]
    at = means(table[table["p"] == p], "n", "method")
    listed = "; ".join(f"{way} {at.loc[way, 'mean']:.0f} ± {at.loc[way, 'stderr']:.0f}" for way in ways())
    probability = 0.95 ** settings["successes"]
    return [
        f"n* at p = {p}: {listed}.",
        f"{settings['successes']} recoveries in a row happen with probability {probability:.3f} if each has 0.95: at "
        f"one n they show a larger probability with a confidence of {1 - probability:.0%}. As the least n of many that "
        "were tried, n* had some luck.",
    ]


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """n* against p, with the lines in log p."""
    figure, (ax,) = figures.new(1, 6.8, 4.6)
    p = np.geomspace(min(settings["p"]), max(settings["p"]), 50)
    for k, method in enumerate(ways()):
        (a, b, r), _ = fits(table, method)
        figures.curve(
            ax, means(table[table["method"] == method], "n", "p"), f"{method} (R² {r:.2f})", method, k, linestyle=""
        )
        ax.plot(p, a + b * np.log(p), "-", linewidth=1, color=figures.style(method, k)["color"])
    ax.set(xscale="log", yscale="log", xlabel="variables p", ylabel="n*")
    ax.set_xticks(settings["p"], [str(q) for q in settings["p"]])
    ax.minorticks_off()
    ax.set_title(
        f"{settings['successes']} recoveries in a row, graphs a size: {settings['graphs']}; lines in log p", fontsize=10
    )
    ax.legend(frameon=False, fontsize=8)
    return figure
