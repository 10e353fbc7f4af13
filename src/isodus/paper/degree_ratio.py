"""Run time of pseudo-likelihood over that of ISODUS, against the degree of the energy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .. import PolynomialModel
from . import figures, timing
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE, estimators, learn, paper_isodus, samples
from .statistics import line, means, plain
from .study import Claim, Settings, Task
from .timing import ADAPTIVE, ONCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "degree-ratio"
TITLE = "Run-time ratio against the degree L, one variable"
STATED = (
    "For E = −Σ_{l=2..L} α_l x^l with α_l uniform in [0, 1] and n = 100 the ratio of the run times of "
    "pseudo-likelihood and ISODUS grows with L. (The authors' code: n = 1,000, ν = 0.5, L = 3 … 9.)"
)
TIMED = True
_AGAIN, _REACH = 50, 2.3  # the authors' code integrates over ±2.3
_WAYS = {"text": dict(n=100, nu=2.0), "code": dict(n=1000, nu=0.5)}
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=8, models=3, degrees=[2, 4, 6, 8], ways=_WAYS),
    "standard": dict(seed=8, models=6, degrees=[2, 4, 6, 8], ways=_WAYS),
    "full": dict(seed=8, models=45, degrees=[2, 4, 6, 8], ways=_WAYS),
}


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every random model of every degree, with the text's n and ν and with the code's."""
    return [
        {"model": k, "degree": L, "way": way}
        for k in range(settings["models"])
        for L in settings["degrees"]
        for way in settings["ways"]
    ]


def cost(task: Task) -> float:
    """Seconds, about."""
    return 1.0 if task["way"] == "text" else 8.0


def energy(seed: int, degree: int, number: int, again: int = 0) -> PolynomialModel:
    """A random one-dimensional model of this degree; again: how often it was drawn before."""
    alpha = np.random.default_rng([seed, degree, number, *([again] if again else [])]).random(degree - 1)
    return PolynomialModel.from_dict({(0,) * l: float(a) for l, a in zip(range(2, degree + 1), alpha, strict=True)})


def drawn(settings: Settings, degree: int, number: int) -> tuple[PolynomialModel, int]:
    """The first such model with its mode in reach, and how many were drawn before.

    Where the last α is tiny the density lies far out, where it would take other units, and terms of 1e13 cancel.
    """
    for again in range(_AGAIN):
        model = energy(settings["seed"], degree, number, again)
        turns = np.polynomial.Polynomial([0.0, 0.0, *model.theta]).deriv().roots()
        turns = turns[np.abs(turns.imag) < 1e-9].real
        if abs(turns[np.argmin(model.energy(turns[:, None]))]) <= _REACH:
            return model, again
    raise ValueError(f"none of {_AGAIN} random energies of degree {degree} has its mode within ±{_REACH}")


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One random model, all methods in turn."""
    L, way = task["degree"], settings["ways"][task["way"]]
    truth, _ = drawn(settings, L, task["model"])
    X = samples(truth, way["n"], settings["seed"], L, task["model"])
    terms = dict(degree=L, min_degree=2)
    timing.warm(**terms)
    todo = estimators(**terms) | {
        PAPERS: lambda: paper_isodus(**terms, nu=way["nu"]),
        ADAPTIVE: lambda: timing.adaptive(**terms),
    }
    rows = [{"method": method, "seconds": learn(make, X).seconds} for method, make in todo.items()]
    started = time.perf_counter()
    timing.maximum_likelihood_1d(X[:, 0], L)
    return [*rows, {"method": ONCE, "seconds": time.perf_counter() - started}]


def ratios(table: pd.DataFrame, method: str, way: str) -> pd.DataFrame:
    """Seconds of a method over those of ISODUS with the paper's settings, a row a degree; means are geometric.

    Some random models take a hundred times as long as others. Columns mean, and error: of its logarithm.
    """
    seconds = table[table["way"] == way].pivot(index=["degree", "model"], columns="method", values="seconds")
    logs = means(np.log(seconds[method] / seconds[PAPERS]).rename("log").reset_index(), "log", "degree")
    return logs.assign(mean=np.exp(logs["mean"]), error=logs["stderr"])[["mean", "error", "count"]]


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Does the ratio grow with L?"""
    out = []
    for way, options in settings["ways"].items():
        for method in (ADAPTIVE, ONCE, LIKELIHOOD):
            found = ratios(table, method, way)
            x, y, count = np.log(np.asarray(found.index, float)), np.log(found["mean"]), int(found["count"].sum())
            power = line(x, y.to_numpy(), found["error"].to_numpy(), count)
            listed = ", ".join(f"{L}: {plain(r['mean'], 3)} ×÷ {np.exp(r['error']):.2f}" for L, r in found.iterrows())
            how = f"{method}, n = {options['n']:,}, ν = {options['nu']:g} ({way})"
            out.append(
                Claim(
                    f"{how}: ratio grows with L (here: as a power of L above 0; not if below 0.1)",
                    f"as L to the power {power}; by L {listed}",
                    power.slope,
                    power.stderr,
                    True if power.low > 0 else False if power.high < 0.1 else None,
                    method == ADAPTIVE,
                )
            )
    return out


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """Odd degrees, what is timed, and models that were left out."""
    again = sum(drawn(settings, L, k)[1] for L in settings["degrees"] for k in range(settings["models"]))
    return [
        "Only even L are run: for odd L the energy falls without bound on one side and there is no density on the real "
        "line. (The authors' code samples and integrates on intervals, where there is one.)",
        "A fit of ISODUS with 100 samples takes milliseconds, nearly all of them for checks of data and model that do "
        "not depend on n, so these ratios are below those of bare optimisations.",
        f"{again} of the random energies were drawn anew: α_L was so small that their mode lies beyond ±{_REACH}, "
        "where the authors' code does not integrate.",
        "Ratios are geometric means over random models, with the factor that is their standard error.",
    ]


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Ratios against L, a panel each for the text's and the code's settings."""
    ways = settings["ways"]
    figure, axes = figures.new(len(ways), 5.2)
    for ax, (way, options) in zip(axes, ways.items(), strict=True):
        for k, method in enumerate((ADAPTIVE, ONCE, LIKELIHOOD, SCORE, OURS)):
            figures.curve(ax, ratios(table, method, way), method, method, k)
        ax.axhline(1.0, color="#777777", linewidth=0.8)
        ax.set(yscale="log", xlabel="degree L of the energy", ylabel="seconds / seconds of ISODUS, paper")
        ax.set_xticks(settings["degrees"])
        ax.set_title(f"n = {options['n']:,}, ν = {options['nu']:g} ({way})", fontsize=10)
    axes[0].legend(frameon=False, fontsize=8)
    return figure
