"""Error against the penalty λ, Gaussians on random regular graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..datasets import regular_gaussian
from . import figures
from .methods import LIKELIHOOD, OURS, SCORE, samples
from .penalized import CODE, LAMBDA_IS, LAMBDA_PL, LOG, TEXT, chosen, forms, learned, precision
from .statistics import Ratio, below, means, paired_ratio
from .study import Claim, Settings, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "lambda-sweep"
TITLE = "Error against the penalty λ, Gaussians on 3-regular graphs"
STATED = (
    "For p = 50, λ_IS = 0.35 and λ_PL = 2.3 (times √(log p / n)) minimise the mean absolute error, which is flat "
    "beyond. n is not stated; the authors' code has p = 100, n = 1e4, does not penalise the diagonal, and "
    "uses λ_IS = 0.2 later."
)
TIMED = False
_BOTH, _TEXT = [[50, 1000], [50, 10_000], [100, 10_000]], [[50, 1000], [50, 10_000]]


def _grid(points: int) -> list[float]:
    return sorted({*np.geomspace(0.005, 10, points).round(6).tolist(), 0.2, LAMBDA_IS, LAMBDA_PL})


SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=3, sets=3, cases=[[50, 1000]], penalty=_grid(10)),
    "standard": dict(seed=3, sets=6, cases=_BOTH, penalty=_grid(20)),
    "full": dict(seed=3, sets=45, cases=_BOTH, penalty=_grid(40)),
}
_FORMS = (TEXT, CODE, LOG, LIKELIHOOD)
_NEAR, _FLAT = 1.05, 1.25  # times the least error


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every form on every set of samples, for all λ."""
    return [
        {"p": p, "n": n, "set": k, "form": form}
        for p, n in settings["cases"]
        for k in range(settings["sets"])
        for form in (*_FORMS, "chosen")
    ]


def cost(task: Task) -> float:
    """In no unit."""
    return float(task["p"]) ** 2 * float(task["n"]) * (0.1 if task["form"] == "chosen" else 1.0)


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One form, all λ, on one set of samples of one graph."""
    truth = regular_gaussian(task["p"], rng=task["set"])
    X = samples(truth, task["n"], settings["seed"], task["p"], task["set"])
    if task["form"] == "chosen":
        todo = {(method, None): make for method, make in chosen().items()}
    else:
        todo = {(task["form"], penalty): forms(penalty)[task["form"]] for penalty in settings["penalty"]}
    true, upper, rows = precision(truth), np.triu_indices(task["p"]), []
    for (method, penalty), make in todo.items():
        found, converged = learned(make, X)
        error = float(np.mean(np.abs(found - true)[upper]))
        rows.append({"method": method, "penalty": penalty, "error": error, "converged": converged})
    return rows


def sweep(table: pd.DataFrame, p: int, n: int, method: str) -> pd.DataFrame:
    """Errors, a row a λ and a column a set."""
    part = table[(table["p"] == p) & (table["n"] == n) & (table["method"] == method)]
    return part.pivot(index="penalty", columns="set", values="error")


def excess(errors: pd.DataFrame, penalty: float) -> Ratio:
    """Error at a λ over the least of the sweep, both as means over sets."""
    least = errors.mean(axis=1).idxmin()
    return paired_ratio(errors.loc[penalty].to_numpy(), errors.loc[least].to_numpy())


def near(errors: pd.DataFrame) -> tuple[float, float]:
    """The λ whose mean error is within `_NEAR` of the least: from, to."""
    mean = errors.mean(axis=1)
    inside = mean.index[mean <= _NEAR * mean.min()]
    return float(inside.min()), float(inside.max())


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Whether the stated λ are optimal, for the text's form and the code's, and flatness beyond."""
    out = []
    for p, n in settings["cases"]:
        for method in _FORMS:
            stated = LAMBDA_PL if method == LIKELIHOOD else LAMBDA_IS
            errors = sweep(table, p, n, method)
            mean = errors.mean(axis=1)
            at, (low, high) = excess(errors, stated), near(errors)
            case = f"p = {p}, n = {n:,}, {method}"
            out.append(
                Claim(
                    f"{case}: λ = {stated} is optimal (here: at most {_NEAR} times the least error)",
                    f"{at} times the least, which is at λ = {mean.idxmin():.3g} (within {_NEAR} times from {low:.3g} "
                    f"to {high:.3g})",
                    *at,
                    below(at, _NEAR),
                )
            )
            beyond = [penalty for penalty in errors.index if stated <= penalty <= 4 * stated]
            ratio = max((excess(errors, penalty) for penalty in beyond), key=lambda r: r.value)
            out.append(
                Claim(
                    f"{case}: flat beyond (here: up to 4 λ at most {_FLAT} times the least error)",
                    f"up to {ratio} times the least",
                    *ratio,
                    below(ratio, _FLAT),
                )
            )
    return out


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """The code's λ, and what methods that choose their penalty reach."""
    said = []
    for p, n in settings["cases"]:
        errors = sweep(table, p, n, CODE)
        least = errors.mean(axis=1).min()
        both = f"λ = 0.2 has {excess(errors, 0.2)} times the least error, λ = 0.35 {excess(errors, 0.35)} times"
        others = []
        for method in (OURS, SCORE):
            part = table[(table["p"] == p) & (table["n"] == n) & (table["method"] == method)].set_index("set")["error"]
            here = errors.loc[errors.mean(axis=1).idxmin()].reindex(part.index)
            others.append(f'{method} with l1="auto" {paired_ratio(part.to_numpy(), here.to_numpy())}')
        said.append(
            f"p = {p}, n = {n:,}, {CODE}: {both}; the least is {least:.4f}. As multiples of that: {', '.join(others)}."
        )
    return said


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Errors against λ, a panel a case."""
    cases = settings["cases"]
    figure, axes = figures.new(len(cases), 5.2 if len(cases) > 1 else 6.4)
    for ax, (p, n) in zip(axes, cases, strict=True):
        part = table[(table["p"] == p) & (table["n"] == n)]
        for k, method in enumerate(_FORMS):
            points = means(part[part["method"] == method], "error", "penalty")
            figures.curve(ax, points, method, method, k)
        for method in (OURS, SCORE):
            level = part[part["method"] == method]["error"].mean()
            ax.axhline(level, color=figures.style(method)["color"], linestyle="--", label=f'{method}, l1="auto"')
        for value in (LAMBDA_IS, LAMBDA_PL):
            ax.axvline(value, color="#999999", linestyle=":", linewidth=1)
        ax.set(xscale="log", yscale="log", xlabel="λ (dotted: 0.35 and 2.3)", ylabel="mean absolute error of θ")
        ax.set_title(f"p = {p}, n = {n:,}, {settings['sets']} sets", fontsize=10)
    axes[0].legend(frameon=False, fontsize=7.5)
    return figure
