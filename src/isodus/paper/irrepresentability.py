"""Largest error against n on the diamond graph, where sparsistency fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..datasets import diamond_gaussian
from . import figures
from .methods import OURS, SCORE, Make, samples
from .penalized import FORMS, LOG, OF_TEXT, chosen, couplings, learned, papers, precision
from .scaling import HALF_DECADES
from .statistics import Ratio, above, alike, log_slope, means, share, slope_of_ratio
from .study import Claim, Settings, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "irrepresentability"
TITLE = "Largest error against n, diamond graph, ρ = 0.55"
STATED = (
    "On the diamond graph with ρ = 0.55 sparsistency provably fails; yet both estimators are consistent: the largest "
    "error falls at the same rate with λ and with 2λ, and the structure is found once it is below half the least "
    "coupling."
)
TIMED = False
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=5, sets=8, n=HALF_DECADES[:5], rho=0.55, control=0.3),
    "standard": dict(seed=5, sets=25, n=HALF_DECADES, rho=0.55, control=0.3),
    "full": dict(seed=5, sets=45, n=HALF_DECADES, rho=0.55, control=0.3),
}
_START = 3162  # 1,000 samples a parameter of a variable, about
_FORMS = tuple(form for form in FORMS if form != LOG)


def ways() -> dict[str, Make]:
    """λ and 2λ, of the text's forms and the code's; and those that choose by themselves."""
    fixed = {f"{form}, λ": papers(form) for form in _FORMS}
    return fixed | {f"{form}, 2λ": papers(form, 2.0) for form in _FORMS} | chosen()


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every set of samples of every size; and of a diamond on which irrepresentability holds."""
    return [
        {"n": n, "set": k, "rho": rho}
        for n in settings["n"]
        for k in range(settings["sets"])
        for rho in (settings["rho"], settings["control"])
    ]


def cost(task: Task) -> float:
    """Seconds, about."""
    return (0.4 + 1e-5 * float(task["n"])) * (1.0 if task["rho"] > 0.5 else 0.3)


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One set of samples, all methods; of the control only λ: the largest error, and what of the structure is found."""
    truth = diamond_gaussian(task["rho"])
    X = samples(truth, task["n"], settings["seed"], task["set"], round(1000 * task["rho"]))
    true = precision(truth)
    edges, rows = couplings(true, False) > 0, []
    threshold = couplings(true, False)[edges].min() / 2
    for method, make in ways().items():
        if task["rho"] == settings["control"] and not method.endswith(", λ"):
            continue
        found, converged = learned(make, X)
        pairs = couplings(found, False)
        rows.append(
            {
                "method": method,
                "error": float(np.max(np.abs(found - true))),
                "thresholded": bool(np.array_equal(pairs > threshold, edges)),
                "support": bool(np.array_equal(pairs > 0, edges)),
                "false_pair": bool(np.any(pairs[~edges] > 0)),
                "converged": converged,
            }
        )
    return rows


def half(settings: Settings) -> float:
    """Half the least coupling."""
    pairs = couplings(precision(diamond_gaussian(settings["rho"])), False)
    return float(pairs[pairs > 0].min() / 2)


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Consistent, at the same rate for λ and 2λ; not sparsistent.

    Rates are judged by the last decade of n: errors that are mostly the penalty's bend before they fall as a power.
    """
    main, control = table[table["rho"] == settings["rho"]], table[table["rho"] == settings["control"]]
    n = max(settings["n"])
    ends = main[main["n"].isin([n, min(m for m in settings["n"] if m >= n / 11)])]
    late = main[main["n"] >= _START]
    out = [_consistent(late, ends, method) for method in ways()]
    out += [_same_rate(late, ends, form) for form in _FORMS]
    for form in _FORMS:
        part, other = (t[(t["method"] == f"{form}, λ") & (t["n"] == n)] for t in (main, control))
        out += [_thresholded(part, form, n), _not_sparsistent(part, other, form, n, settings["control"])]
    return out


def _consistent(late: pd.DataFrame, ends: pd.DataFrame, method: str) -> Claim:
    whole, last = (log_slope(part[part["method"] == method], "error", "n") for part in (late, ends))
    told = None if not np.isfinite(last.low) else True if last.high < -0.3 else False if last.low > -0.3 else None
    return Claim(
        f"{method}: consistent, the largest error falls (here: by half in the last decade of n, a slope below −0.3)",
        f"slope {last}; from n = {_START:,} on {whole.short}",
        last.slope,
        last.stderr,
        told,
        method.startswith(OF_TEXT),
    )


def _same_rate(late: pd.DataFrame, ends: pd.DataFrame, form: str) -> Claim:
    double, single = f"{form}, 2λ", f"{form}, λ"
    whole, last = (slope_of_ratio(part, "error", "n", double, single) for part in (late, ends))
    n = ends["n"].max()
    at_last = means(ends[ends["n"] == n], "error", "method")["mean"]
    return Claim(
        f"{form}: the same rate with 2λ (here: slopes within 0.05 of one another in the last decade of n)",
        f"slopes differ by {last}, from n = {_START:,} on by {whole.short}; errors by a factor "
        f"{at_last[double] / at_last[single]:.2f} at n = {n:,}",
        last.slope,
        last.stderr,
        alike(last, 0.05),
        form in OF_TEXT,
    )


def _thresholded(part: pd.DataFrame, form: str, n: int) -> Claim:
    found, low, high = share(part["thresholded"])
    return Claim(
        f"{form}, λ: a threshold of half the least coupling finds the structure (n = {n:,}; here: in more than 80 % of "
        "sets)",
        f"found in {found.value:.0%} of {len(part)} sets (95 %: {low:.0%} to {high:.0%})",
        *found[:2],
        True if low > 0.8 else False if high < 0.8 else None,
        form in OF_TEXT,
    )


def _not_sparsistent(part: pd.DataFrame, other: pd.DataFrame, form: str, n: int, control: float) -> Claim:
    wrong, beside = share(part["false_pair"])[0], share(other["false_pair"])[0]
    gap = Ratio(wrong.value - beside.value, float(np.hypot(wrong.stderr, beside.stderr)))
    return Claim(
        f"{form}, λ: sparsistency fails: without a threshold the pair that is no edge is found (n = {n:,}; here: more "
        f"often than at ρ = {control}, where irrepresentability holds)",
        f"in {wrong.value:.0%} ± {wrong.stderr:.0%} of sets, at ρ = {control} in {beside.value:.0%} ± "
        f"{beside.stderr:.0%}",
        *gap[:2],
        above(gap, 0.0),
        form in OF_TEXT,
    )


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """What methods that choose their penalty find."""
    n = max(settings["n"])
    part = table[(table["n"] == n) & (table["rho"] == settings["rho"])].groupby("method")["support"].mean()
    parts = ", ".join(f'{method} with l1="auto" {part[method]:.0%}' for method in (OURS, SCORE))
    return [
        f"Without any threshold, at n = {n:,}, the five edges and no other are found in this share of sets: {parts}. "
        "They refit what the penalty leaves, and choose among refits, which is not bound by irrepresentability."
    ]


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Largest errors against n, and how often the structure is found."""
    figure, (left, right) = figures.new(2, 5.4, 5.0)
    main = table[table["rho"] == settings["rho"]]
    for k, method in enumerate(ways()):
        part = main[main["method"] == method]
        points = means(part, "error", "n")
        line = "--" if ", 2λ" in method else "-"
        figures.curve(left, points, method, method, k, linestyle=line)
        shares = part.groupby("n")["support"].mean()
        color, marker = figures.style(method, k).values()
        right.plot(shares.index, shares, line, color=color, marker=marker, markersize=4.5, linewidth=1.3)
    left.axhline(half(settings), color="#555555", linestyle=(0, (5, 3)), linewidth=1, label="half the least coupling")
    left.set(xscale="log", yscale="log", xlabel="samples n", ylabel="largest error of Λ")
    right.set(
        xscale="log",
        xlabel="samples n",
        ylabel="share of sets",
        ylim=(-0.03, 1.03),
    )
    figures.below(figure, left, 3)
    right.set_title("Exact support without a threshold", fontsize=10)
    left.set_title(f"Diamond, ρ = {settings['rho']}, {settings['sets']} sets a point", fontsize=10)
    return figure
