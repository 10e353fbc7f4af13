"""Error against ν and δ of the reference, ten Gaussian variables."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from isodus.datasets import gaussian, gaussian_theta, paper_precision

from . import figures
from .methods import LIKELIHOOD, OURS, PAPER, estimators, generator, learn, mean_error, paper_isodus
from .scaling import SIMILAR
from .statistics import Claim, interval, ratio
from .study import Row, Task

TITLE = "Error against ν and δ, ten Gaussian variables"
STATED = (
    "Near δ = 0 errors blow up. Beyond there is a flat valley with weak dependence on ν and δ, and as δ grows almost "
    "any ν > 0 gives a small error (p = 10, 50 × 50 grid, 80 sets of 1e5 samples per point). δ = ν = 2 from then on."
)
PROCESSES = 2
_SIZES = {"tiny": (2, 2, 500), "quick": (3, 2, 1000), "standard": (12, 6, 10_000)}  # grid points, sets, n
_BLOWN_UP, _FLAT = 3.0, 2.0  # times the error at ν = δ = 2, or that of the best


def _grid(points: int) -> tuple[list[float], list[float]]:
    """The authors' ranges, evenly, and the fixed choice."""
    nu, delta = np.linspace(0.01, 10.0, points), np.linspace(0.01, 3.0, points)
    return sorted({*nu.round(3).tolist(), 0.1, 0.5, 2.0}), sorted({*delta.round(3).tolist(), 2.0})


def tasks(size: str) -> list[Task]:
    """Every ν on every set of samples, for all δ; and other methods, as ν = 0."""
    points, sets, n = _SIZES[size]
    nus, deltas = _grid(points)
    return [{"n": n, "set": k, "nu": nu, "deltas": deltas} for k in range(sets) for nu in (*nus, 0.0)]


def repetition(task: Task) -> list[Row]:
    """One ν, all δ; or the other methods."""
    precision = paper_precision()
    X, truth = gaussian(task["n"], precision, generator(1, task["set"])), gaussian_theta(precision)
    todo: dict[tuple[str, float], Any] = {
        (PAPER, delta): lambda delta=delta: paper_isodus(task["nu"], delta, degree=2) for delta in task.pop("deltas")
    }
    if task["nu"] == 0:
        todo = {(method, 0.0): estimators(degree=2)[method] for method in (LIKELIHOOD, OURS)}
    fits = {key: learn(make, X) for key, make in todo.items()}
    return [
        dict(method=method, delta=delta, error=mean_error(fit.theta, truth), converged=fit.converged)
        for (method, delta), fit in fits.items()
    ]


def grids(table: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Errors of each set, one row per ν and one column per δ."""
    part = table[table["method"] == PAPER]
    return {
        k: rows.pivot(index="nu", columns="delta", values="error").fillna(np.inf) for k, rows in part.groupby("set")
    }


def claims(table: pd.DataFrame) -> list[Claim]:
    """The wall at δ = 0, the valley, and the fixed choice."""
    found = grids(table)
    first, last = found[0].columns[[0, -1]]
    blown = interval([_share(g, g[first] > _BLOWN_UP * g.loc[2.0, 2.0]) for g in found.values()])
    good = interval([_share(g, g[last] <= _FLAT * g[last].min()) for g in found.values()])
    valley = lambda g: g.loc[g.index >= 1, g.columns >= 1].stack()
    low = min(found[0].index)
    error = table[table["nu"] == 0].pivot(index="set", columns="method", values="error")
    fixed = [g.loc[2.0, 2.0] for g in found.values()]
    return [
        Claim(
            f"near δ = 0 errors blow up (here: at δ = {first:g}, above {_BLOWN_UP:g} times that at ν = δ = 2 for more "
            "than half of the range of ν)",
            blown,
            least=0.5,
            unit="of the range",
            remark=f"at ν = {low:g} {_mean(found)[first][low] / np.mean(fixed):.3g} times",
        ),
        Claim(
            f"beyond there is a flat valley (here: for ν, δ ≥ 1 the largest error is at most {_FLAT:g} times the best)",
            ratio(*_ends(found, valley)),
            most=_FLAT,
            unit="times",
            remark="largest at ν = {:g}, δ = {:g}".format(*valley(_mean(found)).idxmax()),
        ),
        Claim(
            f"as δ grows almost any ν gives a small error (here: at δ = {last:g} at most {_FLAT:g} times the least for "
            "at least 90 % of the range of ν)",
            good,
            least=0.9,
            unit="of the range",
            remark=f"at ν = {low:g} {_mean(found)[last][low] / _mean(found)[last].min():.3g} times",
        ),
        Claim(
            f"accuracy at ν = δ = 2 similar to that of pseudo-likelihood (here: at most {SIMILAR} times the error)",
            ratio(fixed, error[LIKELIHOOD]),
            most=SIMILAR,
            stated=False,
            unit="times",
            remark=f"{ratio(fixed, error[OURS]).value:.2f} times that of ISODUS by default",
        ),
    ]


def _mean(found: dict[int, pd.DataFrame]) -> pd.DataFrame:
    return sum(found.values()) / len(found)


def _share(g: pd.DataFrame, yes: pd.Series) -> float:
    """Of the range of ν; each ν stands for what is nearest to it."""
    nu = g.index.to_numpy()
    length = np.diff([nu[0], *(nu[1:] + nu[:-1]) / 2, nu[-1]])
    return float(length @ yes / length.sum())


def _ends(found: dict[int, pd.DataFrame], valley: Callable[[pd.DataFrame], pd.Series]) -> np.ndarray:
    """Largest and least error, where they are for the other sets: (2, sets)."""
    rest = {k: valley(_mean({j: g for j, g in found.items() if j != k})) for k in found}
    return np.array([[valley(g)[rest[k].idxmax()], valley(g)[rest[k].idxmin()]] for k, g in found.items()]).T


def draw(table: pd.DataFrame) -> Figure:
    """Errors over ν and δ, and along ν."""
    figure, (left, right) = figures.panels(2)
    mean = _mean(grids(table))
    least = float(mean.min(axis=None))
    norm = LogNorm(least, 10 * least)
    mesh = left.pcolormesh(
        mean.columns, mean.index, mean, norm=norm, cmap="cividis", shading="nearest", rasterized=True
    )
    figure.colorbar(mesh, ax=left, label="mean absolute error (top: 10 times the least, or more)")
    left.plot(2, 2, "o", markerfacecolor="none", markeredgecolor="white", markersize=9)
    left.set(xlabel="δ", ylabel="ν")
    left.set_title(f"{table['set'].nunique()} sets of {table['n'].max():,} samples; ring: ν = δ = 2", fontsize=10)
    for k, delta in enumerate(mean.columns[:: max(1, len(mean.columns) // 5)]):
        right.plot(mean.index, mean[delta], color=(0.1 + 0.14 * k, 0.1 + 0.11 * k, 0.55), label=f"δ = {delta:.2g}")
    level = table[table["method"] == LIKELIHOOD]["error"].mean()
    right.axhline(level, label=LIKELIHOOD, color=figures.style(LIKELIHOOD)["color"], linestyle="--")
    right.set(xscale="log", yscale="log", xlabel="ν", ylabel="mean absolute error of θ")
    right.legend(frameon=False, fontsize=8)
    return figure
