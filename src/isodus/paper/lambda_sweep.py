"""Error against the penalty λ, Gaussians on random regular graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..datasets import regular_gaussian
from . import figures
from .methods import OURS, SCORE, samples
from .penalized import CODE, FORMS, LAMBDA_IS, LAMBDA_PL, OF_TEXT, chosen, couplings, forms, learned, precision, stated
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
_CASES = [[50, 1000], [50, 10_000], [100, 10_000]]


def _grid(points: int) -> list[float]:
    return sorted({*np.geomspace(0.005, 10, points).round(6).tolist(), 0.2, LAMBDA_IS, LAMBDA_PL})


SIZES: dict[str, dict[str, Any]] = {
    "quick": dict(seed=3, sets=3, cases=[[50, 1000]], penalty=_grid(10)),
    "standard": dict(seed=3, sets=4, cases=_CASES, penalty=_grid(20)),
    "full": dict(seed=3, sets=45, cases=_CASES, penalty=_grid(40)),
}
_NEAR, _FLAT = 1.05, 1.25  # times the least error


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every form on every set of samples, for all λ."""
    return [
        {"p": p, "n": n, "set": k, "form": form}
        for p, n in settings["cases"]
        for k in range(settings["sets"])
        for form in (*FORMS, "chosen")
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
        pairs = int(np.count_nonzero(couplings(found, False)))
        rows.append({"method": method, "penalty": penalty, "error": error, "pairs": pairs, "converged": converged})
    return rows


def sweep(table: pd.DataFrame, p: int, n: int, method: str) -> pd.DataFrame:
    """Errors, a row a λ and a column a set."""
    part = table[(table["p"] == p) & (table["n"] == n) & (table["method"] == method)]
    return part.pivot(index="penalty", columns="set", values="error")


def excess(errors: pd.DataFrame, penalty: float) -> Ratio:
    """Error at a λ over that at the best λ, which for each set is the best of the other sets."""
    if errors.shape[1] < 2:
        return Ratio(float("nan"), float("nan"))
    best = [errors[k].loc[errors.drop(columns=k).mean(axis=1).idxmin()] for k in errors]
    return paired_ratio(errors.loc[penalty].to_numpy(), np.array(best))


def optimum(errors: pd.DataFrame) -> Ratio:
    """The best λ, by a parabola in log λ through the three lowest means around the least; its error by jackknife."""
    sets, left = errors.shape[1], []
    for k in [None, *errors] if sets > 1 else [None]:
        mean = (errors if k is None else errors.drop(columns=k)).mean(axis=1)
        at = int(np.clip(np.argmin(mean), 1, len(mean) - 2))
        x = np.log(np.asarray(mean.index[at - 1 : at + 2], float))
        a, b, _ = np.polyfit(x, mean.iloc[at - 1 : at + 2], 2)
        left.append(float(np.clip(-b / (2 * a), x[0], x[2])) if a > 0 else float(x[1]))
    spread = np.sqrt((sets - 1) * np.var(left[1:])) if sets > 1 else float("nan")
    return Ratio(float(np.exp(left[0])), float(np.exp(left[0]) * spread))


def _emptied(table: pd.DataFrame, p: int, n: int, method: str) -> str:
    """From which λ on no coupling is left."""
    part = table[(table["p"] == p) & (table["n"] == n) & (table["method"] == method)]
    empty = part.groupby("penalty")["pairs"].max()
    none = empty.index[empty == 0]
    return f"no coupling is left from λ = {none.min():.3g} on" if len(none) else "couplings are left for all λ"


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """Whether the stated λ are optimal, for the text's form and the code's, and flatness beyond."""
    out = []
    for p, n in settings["cases"]:
        for method in FORMS:
            errors, papers = sweep(table, p, n, method), stated(method)
            at, of_paper = excess(errors, papers), p == 50 and method in OF_TEXT
            case = f"p = {p}, n = {n:,}, {method}"
            out.append(
                Claim(
                    f"{case}: λ = {papers} is optimal (here: at most {_NEAR} times the error of the best λ)",
                    f"{at} times that of the best, which is λ = {optimum(errors)}",
                    *at[:2],
                    below(at, _NEAR),
                    of_paper,
                )
            )
            beyond = [penalty for penalty in errors.index if papers <= penalty <= 4 * papers]
            ratio = max((excess(errors, penalty) for penalty in beyond), key=lambda r: r.value)
            out.append(
                Claim(
                    f"{case}: flat beyond (here: up to 4 λ at most {_FLAT} times the error of the best)",
                    f"up to {ratio} times that of the best; {_emptied(table, p, n, method)}",
                    *ratio[:2],
                    below(ratio, _FLAT),
                    of_paper,
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
    figure, axes = figures.new(len(cases), 5.2 if len(cases) > 1 else 6.4, 5.0)
    for ax, (p, n) in zip(axes, cases, strict=True):
        part = table[(table["p"] == p) & (table["n"] == n)]
        for k, method in enumerate(FORMS):
            points = means(part[part["method"] == method], "error", "penalty")
            figures.curve(ax, points, method, method, k)
        chose = {method: part[part["method"] == method]["error"].mean() for method in (SCORE, OURS)}
        figures.levels(ax, chose, '{}, l1="auto"')
        for value in (LAMBDA_IS, LAMBDA_PL):
            ax.axvline(value, color="#999999", linestyle=":", linewidth=1)
        ax.set(xscale="log", yscale="log", xlabel="λ (dotted: 0.35 and 2.3)", ylabel="mean absolute error of θ")
        ax.set_title(f"p = {p}, n = {n:,}, {settings['sets']} sets", fontsize=10)
    figures.below(figure, axes[0], 4 if len(cases) > 1 else 2)
    return figure
