"""Error against ν and δ of the regularizing density, ten Gaussian variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..datasets import gaussian_10
from . import figures
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE, estimators, learn, mean_error, paper_isodus, samples
from .scaling import SIMILAR
from .statistics import Ratio, above, below, paired_ratio, plain
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
Pick = Callable[[pd.DataFrame], Any]  # a ν and δ, by the mean errors
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


def cell(table: pd.DataFrame, nu: float, delta: float) -> pd.Series:
    """Errors at one ν and δ, by set."""
    here = table[(table["method"] == PAPERS) & np.isclose(table["nu"], nu) & np.isclose(table["delta"], delta)]
    return here.set_index("set")["error"]


def ratio(table: pd.DataFrame, place: tuple[float, float], method: str) -> Ratio:
    """Error at one ν and δ over that of a method, on the same sets."""
    here = cell(table, *place)
    return paired_ratio(
        here.to_numpy(), table[table["method"] == method].set_index("set")["error"][here.index].to_numpy()
    )


def shares(table: pd.DataFrame, delta: float, limit: float, reference: str) -> Ratio:
    """Share of the range of ν, at one δ, whose error is above `limit` times the fixed choice's, or the least there.

    By length: a ν stands for all that are nearer to it than to others, however many of those were run.
    """
    found = []
    for k in table["set"].unique():
        errors = grid(table[table["set"] == k])
        base = errors.loc[2.0, 2.0] if reference == "fixed" else errors[delta].min()
        nu = errors.index.to_numpy()
        length = np.diff([nu[0], *(nu[1:] + nu[:-1]) / 2, nu[-1]])
        found.append(float(length @ (errors[delta] > limit * base) / length.sum()))
    spread = float(np.std(found, ddof=1) / len(found) ** 0.5) if len(found) > 1 else float("nan")
    return Ratio(float(np.mean(found)), spread, len(found) - 1)


def chosen_ratio(table: pd.DataFrame, one: Pick, other: Pick) -> Ratio:
    """Error at one ν and δ over that at another, on every set as the other sets choose them."""
    if table["set"].nunique() < 2:
        return Ratio(float("nan"), float("nan"))
    pairs = []
    for k in table["set"].unique():
        here, others = grid(table[table["set"] == k]), grid(table[table["set"] != k])
        pairs.append([float(here.loc[pick(others)]) for pick in (one, other)])
    return paired_ratio(*np.array(pairs).T)


def _valley(errors: pd.DataFrame) -> pd.Series:
    return errors.loc[errors.index >= 1.0, errors.columns >= 1.0].stack()


def first_infinite_moment(nu: float = 2.0, theta: float = 0.5) -> int:
    """The least m for which E[(exp(…) R)^m] is infinite at δ = 0, in the paper's example of two Gaussian variables.

    exp(−x² − θxy − y²) exp(m(x² + θxy) − mνx²) is integrable while 1 + m(ν − 1) > ((1 − m)θ/2)².
    """
    return next(m for m in range(1, 10_000) if 1 + m * (nu - 1) <= ((1 - m) * theta / 2) ** 2)


def claims(table: pd.DataFrame, settings: Settings) -> list[Claim]:
    """A wall at δ = 0, a flat valley beyond, and what ν = δ = 2 costs."""
    return [*_landscape(table), _moments(), *_fixed_choice(table)]


def _landscape(table: pd.DataFrame) -> list[Claim]:
    """The wall, the valley, and all ν at the largest δ."""
    errors = grid(table)
    edge, last = float(errors.columns[0]), float(errors.columns[-1])
    times = errors[edge] / errors.loc[2.0, 2.0]
    where = ", ".join(f"{nu:g}" for nu in errors.index[times > _BLOWN_UP])
    blown, poor = shares(table, edge, _BLOWN_UP, "fixed"), shares(table, last, _FLAT, "least")
    top, bottom = _valley(errors).idxmax(), _valley(errors).idxmin()
    flat = chosen_ratio(table, lambda e: _valley(e).idxmax(), lambda e: _valley(e).idxmin())
    return [
        Claim(
            f"near δ = 0 errors blow up (here: at δ = {edge:g}, for more than half of the range of ν to more than "
            f"{_BLOWN_UP:g} times that at ν = δ = 2)",
            f"for {blown.value:.1%} ± {blown.stderr:.1%} of the range; on average "
            + (f"at ν = {where}, up to {plain(times.max(), 3)} times" if where else "at none that was run"),
            *blown[:2],
            above(blown, 0.5),
            True,
        ),
        Claim(
            f"beyond, a flat valley (here: for ν, δ ≥ 1 the largest error is at most {_FLAT:g} times the smallest)",
            f"{flat} times; ν = {top[0]:g}, δ = {top[1]:g} against ν = {bottom[0]:g}, δ = {bottom[1]:g}",
            *flat[:2],
            below(flat, _FLAT),
            True,
        ),
        Claim(
            f"as δ grows almost any ν > 0 gives a small error (here: at δ = {last:g}, for at least 90 % of the range "
            f"of ν at most {_FLAT:g} times the least)",
            f"for {1 - poor.value:.1%} ± {poor.stderr:.1%}; at ν = {errors.index[0]:g} "
            f"{errors[last].iloc[0] / errors[last].min():.3g} times the least",
            1 - poor.value,
            poor.stderr,
            below(poor, 0.1),
            True,
        ),
    ]


def _moments() -> Claim:
    """By a formula, not from the table."""
    moment = first_infinite_moment()
    return Claim(
        "any ν, δ > 0 gives finite moments, δ = 0 does not (the paper's example, ν = 2, θ = 0.5)",
        f"by its quadratic form: at δ = 0 the moment of order {moment} is infinite; for δ > 0 |x|^(2 + δ) outweighs it",
        float(moment),
        0.0,
        moment > 0,
        True,
    )


def _fixed_choice(table: pd.DataFrame) -> list[Claim]:
    """ν = δ = 2 against the best, and against the other methods."""
    at, least = grid(table).stack().idxmin(), lambda e: e.stack().idxmin()
    best = chosen_ratio(table, lambda e: (2.0, 2.0), least)
    ours, peer = (ratio(table, (2.0, 2.0), method) for method in (OURS, LIKELIHOOD))
    return [
        Claim(
            f"ν = δ = 2 is not far from the best (here: at most {_FLAT:g} times its error)",
            f"{best} times that at ν = {at[0]:g}, δ = {at[1]:g}",
            *best[:2],
            below(best, _FLAT),
        ),
        Claim(
            f"accuracy similar to pseudo-likelihood's (here: at most {SIMILAR} times its error)",
            f"ν = δ = 2 has {peer} times its error, and {ours} times that of ISODUS by default",
            *peer[:2],
            below(peer, SIMILAR),
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
    figures.levels(right, {method: table[table["method"] == method]["error"].mean() for method in _OTHERS})
    right.set(xscale="log", yscale="log", xlabel="ν", ylabel="mean absolute error of θ")
    right.legend(frameon=False, fontsize=8)
    return figure
