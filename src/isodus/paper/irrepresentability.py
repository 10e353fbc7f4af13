"""Largest error against n on the diamond graph, where sparsistency fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..datasets import diamond_gaussian
from . import figures
from .methods import LIKELIHOOD, OURS, SCORE, Make, samples
from .penalized import CODE, LAMBDA_IS, LAMBDA_PL, TEXT, chosen, couplings, forms, learned, precision
from .statistics import Ratio, below, log_slope, means
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
_N = [1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000]
SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=5, sets=8, n=_N[:5], rho=0.55),
    "standard": dict(seed=5, sets=25, n=_N, rho=0.55),
    "full": dict(seed=5, sets=45, n=_N, rho=0.55),
}
_START = 10_000  # the rate is that of large n


def ways() -> dict[str, Make]:
    """λ and 2λ, of the text's form and the code's; and those that choose by themselves."""
    out = {}
    for factor, name in ((1, "λ"), (2, "2λ")):
        for form in (TEXT, CODE):
            out[f"{form}, {name}"] = forms(factor * LAMBDA_IS)[form]
        out[f"{LIKELIHOOD}, {name}"] = forms(factor * LAMBDA_PL)[LIKELIHOOD]
    return out | chosen()


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every set of samples of every size."""
    return [{"n": n, "set": k} for n in settings["n"] for k in range(settings["sets"])]


def cost(task: Task) -> float:
    """Seconds, about."""
    return 0.3 + 4e-6 * float(task["n"])


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One set of samples, all methods: largest error, and whether the structure is found with a threshold, without."""
    truth = diamond_gaussian(settings["rho"])
    X = samples(truth, task["n"], settings["seed"], task["set"])
    true = precision(truth)
    edges, rows = couplings(true, False) > 0, []
    threshold = half(settings)
    for method, make in ways().items():
        found, converged = learned(make, X)
        pairs = couplings(found, False)
        rows.append(
            {
                "method": method,
                "error": float(np.max(np.abs(found - true))),
                "thresholded": bool(np.array_equal(pairs > threshold, edges)),
                "support": bool(np.array_equal(pairs > 0, edges)),
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
    lines = {m: log_slope(table[(table["method"] == m) & (table["n"] >= _START)], "error", "n") for m in ways()}
    for method, line in lines.items():
        told = np.isfinite(line.slope) and line.high - line.low <= 0.5
        said = f"slope {line}"
        claim = f"{method}: largest error ∝ 1/√n (from n = {_START:,})"
        out.append(Claim(claim, said, line.slope, line.stderr, line.low <= -0.5 <= line.high if told else None))
    for form in (TEXT, CODE, LIKELIHOOD):
        one, two = lines[f"{form}, λ"], lines[f"{form}, 2λ"]
        gap, error = two.slope - one.slope, float(np.hypot(one.stderr, two.stderr))
        worse = means(table[table["n"] == n], "error", "method")["mean"]
        factor = worse[f"{form}, 2λ"] / worse[f"{form}, λ"]
        out.append(
            Claim(
                f"{form}: the same rate with 2λ",
                f"slopes differ by {gap:.3f} ± {error:.3f}; errors by a factor {factor:.2f} at n = {n:,}",
                gap,
                error,
                None if not np.isfinite(error) else abs(gap) <= 2 * error,
            )
        )
    for form in (TEXT, CODE, LIKELIHOOD):
        part = table[(table["method"] == f"{form}, λ") & (table["n"] == n)]
        for column, words, wanted in (
            ("thresholded", "the structure is found by a threshold of half the least coupling", True),
            ("support", "sparsistency fails: without a threshold the structure is not found", False),
        ):
            share, sets = float(part[column].mean()), len(part)
            error = (share * (1 - share) / sets) ** 0.5
            out.append(
                Claim(
                    f"{form}, λ: {words} (n = {n:,})",
                    f"found in {share:.0%} ± {error:.0%} of {sets} sets",
                    share,
                    error,
                    share > 0.95 if wanted else below(Ratio(share, error), 0.95),
                )
            )
    return out


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """What methods that choose their penalty find."""
    n = max(settings["n"])
    part = table[table["n"] == n].groupby("method")["support"].mean()
    parts = ", ".join(f'{method} with l1="auto" {part[method]:.0%}' for method in (OURS, SCORE))
    return [
        f"Without any threshold, at n = {n:,}, the four edges and no other are found in this share of sets: {parts}. "
        "They refit what the penalty leaves, and choose among refits, which is not bound by irrepresentability."
    ]


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Largest errors against n, and how often the structure is found."""
    figure, (left, right) = figures.new(2, 5.4, 5.0)
    for k, method in enumerate(ways()):
        part = table[table["method"] == method]
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
