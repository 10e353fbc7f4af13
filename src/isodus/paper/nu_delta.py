"""Error against ν and δ of the regularizing density, ten Gaussian variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..datasets import gaussian_10
from . import figures
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE, estimators, learn, mean_error, paper_isodus, samples
from .statistics import Ratio, above, below, paired_ratio
from .study import Claim, Settings, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "nu-delta"
TITLE = "Error against ν and δ, ten Gaussian variables"
STATED = (
    "Near δ = 0 errors blow up; beyond, there is a flat valley with a weak dependence on ν and δ, and almost any ν > 0 "
    "gives a small error as δ grows (p = 10, 50 × 50 grid, 80 sets of 1e5 samples a point). δ = ν = 2 from then on."
)
TIMED = False


def _grid(points: int, sets: int, n: int) -> dict[str, Any]:
    """The authors' ranges of ν and δ, evenly, more of ν near 0, and the fixed choice ν = δ = 2."""
    nu = sorted({*np.linspace(0.01, 10.0, points).round(6).tolist(), 0.1, 0.25, 0.5, 1.0, 2.0})
    delta = sorted({*np.linspace(0.01, 3.0, points).round(6).tolist(), 2.0})
    return dict(seed=1, sets=sets, n=n, nu=nu, delta=delta)


SIZES: dict[str, dict[str, Any]] = {
    "quick": _grid(7, 3, 10_000),
    "standard": _grid(20, 5, 100_000),
    "full": _grid(50, 80, 100_000),
}
_TERMS: dict[str, Any] = dict(degree=2, min_degree=2)
_OTHERS = (LIKELIHOOD, SCORE, OURS)
_BLOWN_UP, _FLAT = 3.0, 2.0  # times the error at ν = δ = 2, or at the valley's bottom


def tasks(settings: Settings) -> list[dict[str, Any]]:
    """Every ν on every set of samples, for all δ; and the other methods."""
    return [{"set": k, "nu": nu} for k in range(settings["sets"]) for nu in (None, *settings["nu"])]


def cost(task: Task) -> float:
    """Of equal length, nearly."""
    return 0.2 if task["nu"] is None else 1.0


def repetition(settings: Settings, task: Task) -> list[dict[str, Any]]:
    """One ν, all δ, on one set of samples; or the other methods, on it."""
    truth = gaussian_10()
    X = samples(truth, settings["n"], settings["seed"], task["set"])
    if task["nu"] is None:
        todo = {(method, None): make for method, make in estimators(**_TERMS).items() if method in _OTHERS}
    else:
        todo = {(PAPERS, delta): _at(task["nu"], delta) for delta in settings["delta"]}
    rows = []
    for (method, delta), make in todo.items():
        fit = learn(make, X)
        error = mean_error(fit.estimator.model_, truth)
        rows.append({"method": method, "delta": delta, "error": error, "converged": fit.converged})
    return rows


def _at(nu: float, delta: float) -> Any:
    return lambda: paper_isodus(**_TERMS, nu=nu, delta=delta)


def grid(table: pd.DataFrame) -> pd.DataFrame:
    """Mean errors, a row a ν and a column a δ."""
    papers = table[table["method"] == PAPERS]
    return papers.pivot_table(index="nu", columns="delta", values="error", aggfunc="mean")


def against(table: pd.DataFrame, nu: float, delta: float, method: str) -> Ratio:
    """Error at one ν and δ over that of another method, or over that at ν = δ = 2, on the same sets."""
    papers = table[table["method"] == PAPERS]
    here = papers[np.isclose(papers["nu"], nu) & np.isclose(papers["delta"], delta)].set_index("set")["error"]
    other = papers[(papers["nu"] == 2.0) & (papers["delta"] == 2.0)] if method == PAPERS else table
    there = other[other["method"] == method].set_index("set")["error"].reindex(here.index)
    return paired_ratio(here.to_numpy(), there.to_numpy())


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """A wall at δ = 0, a flat valley beyond, and what ν = δ = 2 costs."""
    errors = grid(table)
    edge, fixed_error = errors.columns[0], errors.loc[2.0, 2.0]
    high = errors.index[errors[edge] > _BLOWN_UP * fixed_error]
    middle = float(errors.index[len(errors) // 2])
    blown = against(table, middle, float(edge), PAPERS)
    best_nu, best_delta = errors.stack().idxmin()
    valley = errors.loc[errors.index >= 1.0, errors.columns >= 1.0]
    flat = float(valley.max().max() / valley.min().min())
    low = valley.stack().idxmax()
    spread = against(table, float(low[0]), float(low[1]), PAPERS).stderr
    strong = errors[errors.columns[-1]]
    poor = strong.index[strong > _FLAT * strong.min()]
    reach = float(strong.index[strong.index > poor.max()].min()) if len(poor) else float(strong.index[0])
    fixed, peer = (against(table, 2.0, 2.0, method) for method in (OURS, LIKELIHOOD))
    best = against(table, float(best_nu), float(best_delta), PAPERS)
    return [
        Claim(
            f"near δ = 0 errors blow up (here: at δ = {edge:g}, for half of all ν to more than {_BLOWN_UP:g} times "
            "that at ν = δ = 2)",
            f"{blown} times at ν = {middle:g}; more than {_BLOWN_UP:g} times "
            + (
                f"for ν ≤ {high.max():g} only, there up to {errors[edge].max() / fixed_error:.3g}"
                if len(high)
                else "nowhere"
            ),
            *blown,
            above(blown, _BLOWN_UP),
        ),
        Claim(
            f"beyond, a flat valley (here: for ν, δ ≥ 1 the largest error is at most {_FLAT:g} times the smallest)",
            f"{flat:.3g} ± {spread:.2g} times, at ν = {low[0]:g}, δ = {low[1]:g}",
            flat,
            spread,
            below(Ratio(flat, spread), _FLAT),
        ),
        Claim(
            f"as δ grows almost any ν > 0 gives a small error (here: at δ = {errors.columns[-1]:g}, within a factor "
            f"{_FLAT:g} of the least from ν = 1 on)",
            f"within it from ν = {reach:g} on; at ν = {strong.index[0]:g} {strong.iloc[0] / strong.min():.3g} times "
            "the least",
            reach,
            0.0,
            reach <= 1.0,
        ),
        Claim(
            f"ν = δ = 2 is not far from the best (here: at most {_FLAT:g} times its error)",
            f"the best of the grid is ν = {best_nu:g}, δ = {best_delta:g}, with {best} times the error at ν = δ = 2",
            *best,
            above(best, 1 / _FLAT),
        ),
        Claim(
            "the accuracy of pseudo-likelihood (here: at most 1.5 times its error)",
            f"ν = δ = 2 has {peer} times its error, and {fixed} times that of ISODUS by default",
            *peer,
            below(peer, 1.5),
        ),
    ]


def remarks(table: pd.DataFrame, settings: Settings) -> list[str]:
    """Fits that did not converge."""
    papers = table[table["method"] == PAPERS]
    stuck = papers[~papers["converged"].astype(bool)]
    if not len(stuck):
        return []
    return [
        f"{len(stuck):,} of {len(papers):,} fits did not converge in some variable, or had their weights on a few "
        f"samples, and said so: all with δ ≤ {stuck['delta'].max():g} and ν ≤ {stuck['nu'].max():g}."
    ]


def draw(table: pd.DataFrame, settings: Settings) -> Figure:
    """Errors over ν and δ, and along ν for some δ with the other methods."""
    from matplotlib.colors import LogNorm

    errors = grid(table)
    figure, (left, right) = figures.new(2, 5.2)
    left.grid(False)
    base = float(errors.min().min())
    mesh = left.pcolormesh(
        errors.columns,
        errors.index,
        errors.to_numpy(),
        norm=LogNorm(base, 10 * base),
        cmap="cividis",
        shading="nearest",
    )
    figure.colorbar(mesh, ax=left, label="mean absolute error (yellow: ≥ 10 times the least)")
    left.plot(2, 2, "o", markerfacecolor="none", markeredgecolor="white", markersize=9)
    left.set(xlabel="δ", ylabel="ν", title=f"{settings['sets']} sets of {settings['n']:,} samples; ring: ν = δ = 2")
    left.title.set_fontsize(10)
    columns = errors.columns.to_numpy()
    for k, wanted in enumerate((columns[0], 0.5, 1.0, 2.0, columns[-1])):
        delta = columns[np.argmin(np.abs(columns - wanted))]
        shade = 0.15 + 0.17 * k
        right.plot(errors.index, errors[delta], "-", color=(shade, shade * 0.8, 0.55), label=f"δ = {delta:.2g}")
    for method in _OTHERS:
        level = table[table["method"] == method]["error"].mean()
        right.axhline(level, color=figures.style(method)["color"], linestyle="--", linewidth=1.1, label=method)
    right.set(xscale="log", yscale="log", xlabel="ν", ylabel="mean absolute error of θ")
    right.legend(frameon=False, fontsize=8)
    return figure
