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
    """Consistent, at the same rate for λ and 2λ; not sparsistent."""
    out, n = [], max(settings["n"])
    main, control = table[table["rho"] == settings["rho"]], table[table["rho"] == settings["control"]]
    late = main[main["n"] >= _START]
    for method in ways():
        line = log_slope(late[late["method"] == method], "error", "n")
        last = log_slope(late[(late["method"] == method) & (late["n"] >= n / 11)], "error", "n")
        claim = f"{method}: consistent, the largest error falls (here: a slope below −0.3 from n = {_START:,} on)"
        told = None if not np.isfinite(line.low) else True if line.high < -0.3 else False if line.low > -0.3 else None
        said = f"slope {line}; in the last decade {last.slope:.3f} ± {last.stderr:.3f}"
        of_paper = method.startswith(OF_TEXT)
        out.append(Claim(claim, said, line.slope, line.stderr, told, of_paper))
    at_last = means(main[main["n"] == n], "error", "method")["mean"]
    for form in _FORMS:
        gap = slope_of_ratio(late, "error", "n", f"{form}, 2λ", f"{form}, λ")
        factor = at_last[f"{form}, 2λ"] / at_last[f"{form}, λ"]
        said = f"slopes differ by {gap}; errors by a factor {factor:.2f} at n = {n:,}"
        claim = f"{form}: the same rate with 2λ (here: slopes within 0.05 of one another)"
        out.append(Claim(claim, said, gap.slope, gap.stderr, alike(gap, 0.05), form in OF_TEXT))
    for form in _FORMS:
        part, other = (t[(t["method"] == f"{form}, λ") & (t["n"] == n)] for t in (main, control))
        found, low, high = share(part["thresholded"])
        out.append(
            Claim(
                f"{form}, λ: a threshold of half the least coupling finds the structure (n = {n:,}; here: in more than "
                "80 % of sets)",
                f"found in {found.value:.0%} of {len(part)} sets (95 %: {low:.0%} to {high:.0%})",
                *found,
                True if low > 0.8 else False if high < 0.8 else None,
                form in OF_TEXT,
            )
        )
        wrong, beside = share(part["false_pair"])[0], share(other["false_pair"])[0]
        gap_ = Ratio(wrong.value - beside.value, float(np.hypot(wrong.stderr, beside.stderr)))
        out.append(
            Claim(
                f"{form}, λ: sparsistency fails: without a threshold the pair that is no edge is found (n = {n:,}; "
                f"here: more often than at ρ = {settings['control']}, where irrepresentability holds)",
                f"in {wrong.value:.0%} ± {wrong.stderr:.0%} of sets, at ρ = {settings['control']} in "
                f"{beside.value:.0%} ± {beside.stderr:.0%}",
                *gap_,
                above(gap_, 0.0),
                form in OF_TEXT,
            )
        )
    return out


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
        ylabel="share of sets with the exact support, no threshold",
        ylim=(-0.03, 1.03),
    )
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    left.set_title(f"Diamond, ρ = {settings['rho']}, {settings['sets']} sets a point", fontsize=10)
    return figure
