"""Error against the strength λ of the L1 penalty, Gaussians on random regular graphs."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from isodus.datasets import gaussian, regular_precision

from . import figures
from .methods import generator
from .penalized import FORMS, LAMBDA, OF_TEXT, couplings, learned
from .statistics import Claim, Interval, ratio
from .study import Row, Task

TITLE = "Error against λ, Gaussians on 3-regular graphs"
STATED = (
    "For p = 50, λ_IS = 0.35 and λ_PL = 2.3 (times √(log p / n)) minimise the mean absolute error, which is flat "
    "beyond. n is not stated. The authors' code has p = 100 and n = 1e4, does not penalise the diagonal, and uses "
    "λ_IS = 0.2 for n*."
)
PROCESSES = 2
_SIZES = {"tiny": (((8, 300),), 2, 3), "quick": (((20, 1000),), 2, 5), "standard": (((50, 1000), (50, 10_000)), 3, 12)}
_NEAR, _FLAT = 1.05, 1.25


def _grid(points: int) -> list[float]:
    return sorted({*np.geomspace(0.02, 10, points).round(4).tolist(), 0.2, 0.35, 2.3})


def tasks(size: str) -> list[Task]:
    """Every form on every set of samples, for all λ."""
    cases, sets, points = _SIZES[size]
    every = [{"p": p, "n": n, "set": k, "method": m} for p, n in cases for k in range(sets) for m in FORMS]
    return [task | {"points": points} for task in every][::-1]


def repetition(task: Task) -> list[Row]:
    """All λ on one set of samples of one graph."""
    truth, method = regular_precision(task["p"], seed=task["set"]), task["method"]
    X = gaussian(task["n"], truth, generator(3, task["n"], task["p"], task["set"]))
    grid, upper = _grid(task.pop("points")), np.triu_indices(task["p"])
    found = dict(zip(grid, learned(method, X, grid), strict=True))
    return [
        dict(
            strength=strength, error=float(np.abs(at - truth)[upper].mean()), pairs=int(np.count_nonzero(couplings(at)))
        )
        for strength, at in found.items()
    ]


def excess(errors: pd.DataFrame, strength: float) -> Interval:
    """Error at a λ over that at the best λ, which for each set is that of the other sets."""
    best = [errors[k][errors.drop(columns=k).mean(axis=1).idxmin()] for k in errors]
    return ratio(errors.loc[strength], best)


def claims(table: pd.DataFrame) -> list[Claim]:
    """Whether the stated λ is the best, and flatness beyond."""
    found = []
    for (p, n), part in table.groupby(["p", "n"]):
        for form in FORMS:
            errors = part[part["method"] == form].pivot(index="strength", columns="set", values="error")
            pairs = part[part["method"] == form].groupby("strength")["pairs"].max()
            empty = pairs.index[pairs == 0]
            where, stated = f"p = {p}, n = {n:,}, {form}, λ = {LAMBDA[form]}", form in OF_TEXT
            beyond = [v for v in errors.index if LAMBDA[form] <= v <= 4 * LAMBDA[form]]
            found += [
                Claim(
                    f"{where}: the best (here: at most {_NEAR} times the error of the best)",
                    excess(errors, LAMBDA[form]),
                    most=_NEAR,
                    stated=stated,
                    unit="times",
                    remark=f"the best is λ = {errors.mean(axis=1).idxmin():g}",
                ),
                Claim(
                    f"{where}: flat beyond (here: to 4λ at most {_FLAT} times the error of the best)",
                    max((excess(errors, v) for v in beyond), key=lambda figure: figure.value),
                    most=_FLAT,
                    stated=stated,
                    unit="times",
                    remark=f"no pair is left from λ = {empty.min():.3g} on" if len(empty) else "",
                ),
            ]
    return found


def draw(table: pd.DataFrame) -> Figure:
    """Errors against λ."""
    cases = sorted(set(zip(table["p"], table["n"], strict=True)))
    figure, axes = figures.panels(len(cases))
    for ax, (p, n) in zip(axes, cases, strict=True):
        part = table[(table["p"] == p) & (table["n"] == n)]
        figures.curves(ax, part, "error", "strength", FORMS)
        for value in (0.35, 2.3):
            ax.axvline(value, color="#999999", linestyle=":", linewidth=1)
        ax.set(xlabel="λ (dotted: 0.35 and 2.3)", ylabel="mean absolute error of Λ")
        ax.set_title(f"p = {p}, n = {n:,}, {part['set'].nunique()} sets", fontsize=10)
        ax.legend(frameon=False, fontsize=8)
    return figure
