"""Lines: the path of a penalty, residuals of the conditional densities, errors against the number of samples."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..arrays import to_host
from ..checks import finite_rows
from ..samples import floating_rows
from ..significance import uniform_table
from ..slopes import log_slope, means
from .style import COLOURS, GREY, NEGATIVE, POSITIVE, check_model, label, legend, new_axes, new_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["curve", "error_scaling", "guide", "penalty_path", "plain_log", "plot_residuals", "residuals"]

_LEVEL = 0.05  # a false discovery rate
_POINTS = 500  # of a line
_STYLES = [(line, colour) for line in ("-", "--") for colour in COLOURS]
_MARKERS = "osD^vPX*p"


def penalty_path(path: Any, axes: Any = None) -> np.ndarray:
    """The criterion and the parameters against λ, with the chosen point marked; two matplotlib axes.

    Parameters
    ----------
    path : PenaltyPath or estimator with one
        ``est.path_``, of an estimator with l1="auto" and the like.
    axes : two matplotlib axes, optional
        The upper and the lower; or a figure to make them in. A new figure by default.
    """
    path = getattr(path, "path_", path)
    if not hasattr(path, "l1") or not hasattr(path, "thetas"):
        raise ValueError(
            f"{type(path).__name__} has no path of penalties: give est.path_ of an estimator whose penalty was chosen, "
            'such as ISODUS(l1="auto")'
        )
    top, bottom = axes = new_panels(axes, 2, 1, 6.4, 3.1)
    known, at = np.isfinite(path.values), path.chosen
    error = path.errors[known] if np.isfinite(path.errors[known]).all() else None
    options: dict[str, Any] = dict(marker="o", markersize=3, linewidth=1, capsize=2, color="#333333")
    top.errorbar(path.l1[known], path.values[known], error, **options)
    if known[at]:
        top.plot(path.l1[at], path.values[at], "o", color=NEGATIVE, markersize=7, zorder=3)
    top.set_ylabel(path.criterion)
    top.set_title(f"{path.n_terms[at]} terms at l1 = {path.l1[at]:.3g}: {path.why}", fontsize=9, wrap=True)
    _parameters(bottom, path)
    for ax in axes:
        _penalties(ax, path.l1)
        ax.axvline(path.l1[at], color=GREY, linestyle=":", linewidth=1)
        ax.spines[["top", "right"]].set_visible(False)
    top.tick_params(labelbottom=False, which="both")
    bottom.set_xlabel("l1")
    bottom.set_ylabel("parameter, standardised")
    return axes


def _penalties(ax: Axes, l1: np.ndarray) -> None:
    """A logarithmic axis from the strongest penalty on; where the last is none, with a place for it."""
    positive = l1[l1 > 0]
    if not len(positive):
        return
    if len(positive) == len(l1):
        ax.set_xscale("log")
        plain_log(ax.xaxis)
        ax.set_xlim(l1[0] * 1.05, l1[-1] / 1.05)
        return
    ax.set_xscale("symlog", linthresh=positive[-1], linscale=0.15)
    ticks = [digit * 10.0**power for power in range(-9, 9) for digit in (1, 2, 5)]
    ticks = [0.0, *(tick for tick in ticks if positive[-1] <= tick <= positive[0])]
    ax.set_xticks(ticks, [f"{tick:,.12g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlim(positive[0] * 1.05, -0.3 * positive[-1])


def plain_log(axis: Any) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_locator(NullLocator())


def _parameters(ax: Axes, path: Any) -> None:
    """A line a term, coloured where it is in the structure that was chosen."""
    used = np.unique(np.concatenate([*path.terms, np.empty(0, int)]).astype(int))
    values = np.zeros((len(path.l1), len(used)))
    for row, at, theta in zip(values, path.terms, path.thetas, strict=True):
        row[np.searchsorted(used, at)] = theta
    inside = np.isin(used, path.terms[path.chosen])
    thin = float(np.clip(1.6 - 0.01 * inside.sum(), 0.6, 1.4))
    sign = np.sign(values[path.chosen])
    kinds = {
        "not chosen": (~inside, "#CCCCCC", 0.6),
        "chosen, θ > 0": (inside & (sign > 0), NEGATIVE, thin),
        "chosen, θ < 0": (inside & (sign <= 0), POSITIVE, thin),
    }
    lines = {words: ax.plot(path.l1, values[:, mask], color=colour, linewidth=width)[0]
             for words, (mask, colour, width) in kinds.items() if mask.any()}  # fmt: skip
    ax.axhline(0.0, color="#999999", linewidth=0.6)
    if lines:  # at the left all are zero
        loc = "upper left" if values.max() >= -values.min() else "lower left"
        legend(ax, list(lines.values()), list(lines), loc=loc)


def residuals(fit: Any, X: Any = None, ax: Axes | Any = None) -> Axes:
    """Whether each variable given the others is distributed as the model says: lines that leave the band are not.

    Residuals are P(X_i ≤ x_i | rest), uniform if the model is right; a line a variable shows the ordered ones less what
    they should be. The band is left once in twenty times under the model.

    Parameters
    ----------
    fit : PolynomialModel or GoodnessOfFit
        Of a model the band is that for new samples: those that it was learned from look better than they are.
        ``est.goodness_of_fit(X)`` allows for that.
    X : array or DataFrame of shape (n, p)
        Samples; not with a GoodnessOfFit, which has its own.
    ax : matplotlib axes, optional
        To draw in; or a figure to make them in. A new figure by default.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isodus.datasets import paper_pair
    >>> from isodus.plotting import residuals
    >>> residuals(paper_pair(), paper_pair().sample(200, rng=0), Figure()).get_title()
    '0 of 2 variables off (q < 0.05)'
    """
    if hasattr(fit, "values") and hasattr(fit, "residuals"):
        return fit.plot(ax)
    check_model(fit)
    if X is None:
        raise ValueError("residuals are those of samples: give X")
    rows = to_host(floating_rows(X, fit.names)).astype(np.float64, copy=False)
    finite_rows(rows, fit.names, "X")
    U = np.column_stack([fit.conditional(i, rows).cdf(rows[:, i]) for i in range(len(fit.names))])
    return plot_residuals(U, uniform_table(fit.names, U), ax=ax)


def plot_residuals(
    U: np.ndarray, table: pd.DataFrame | None = None, *, ax: Axes | Any = None, level: float = _LEVEL
) -> Axes:
    """Ordered residuals less what they should be, against that, a line a variable; returns the axes.

    Parameters
    ----------
    U : array of shape (n, p)
        From `isodus.goodness.residuals`.
    table : DataFrame, optional
        From `isodus.goodness.residual_test`, for names and for the band, which a true model's line leaves once in
        twenty times; its lighter part is that of some of the variables only. Without it, for a model that is given and
        rows that are independent. Lines that are off have a colour and a name, at most 18, the worst first.
    ax : matplotlib axes, optional
        To draw in; or a figure to make them in. A new figure by default.
    level : float
        The false discovery rate below which a line is off.
    """
    n, p = U.shape
    table = uniform_table([f"x{i}" for i in range(p)], U) if table is None else table
    ax = new_axes(ax, 7.2, 4.8)
    limits, q = table["critical"].to_numpy(), table["q_value"].to_numpy()
    for edge in dict.fromkeys((limits.max(), limits.min())):
        ax.axhspan(-edge, edge, color="0.5", alpha=0.15, linewidth=0)
    ax.axhline(0.0, color="0.3", linewidth=0.7)
    at = np.linspace(0, n - 1, min(n, _POINTS)).astype(np.int64)
    expected, ordered = (at + 0.5) / n, np.sort(U, axis=0)[at]
    off = [i for i in np.lexsort([-table["statistic"] / limits, q]).tolist() if q[i] < level]
    for i in set(range(p)) - set(off[: len(_STYLES)]):
        ax.plot(expected, ordered[:, i] - expected, "0.45", linewidth=0.7)
    lines, labels = [], []
    for i, (dash, colour) in zip(off, _STYLES, strict=False):
        labels.append(f"{label(table.index[i])} (q = {q[i]:.2g})")
        lines += ax.plot(expected, ordered[:, i] - expected, dash, color=colour, linewidth=1.4, label=labels[-1])
    ax.set(xlim=(0, 1), xlabel="expected under the model", ylabel="ordered residual − expected")
    ax.set_title(f"{len(off)} of {p} variables off (q < {level:g})", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    if off:
        more = f"and {len(off) - len(lines)} more" if len(off) > len(lines) else None
        legend(ax, lines, labels, loc="center left", bbox_to_anchor=(1.0, 0.5), title=more, title_fontsize=8)
    return ax


def error_scaling(
    table: pd.DataFrame,
    ax: Axes | Any = None,
    *,
    start: float = 0.0,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
) -> Axes:
    """Errors against the number of samples, both logarithmic, with slopes in the legend and a line of 1/√n.

    Parameters
    ----------
    table : DataFrame
        A row a fit: columns n and error, and method where there are several, in the order of their first rows.
    ax : matplotlib axes, optional
        To draw in; or a figure to make them in. A new figure by default.
    start : float
        The n from which on slopes are those of.
    looks : mapping, optional
        Options of matplotlib's errorbar, by method.

    Examples
    --------
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure
    >>> from isodus.plotting import error_scaling
    >>> ax = error_scaling(pd.DataFrame({"n": [100, 400, 1600], "error": [0.4, 0.2, 0.1]}), Figure())
    >>> ax.get_legend().get_texts()[0].get_text()
    'slope −0.500'
    """
    lacking = [column for column in ("n", "error") if column not in getattr(table, "columns", ())]
    if lacking:
        raise ValueError(f"table must be a DataFrame with columns n and error, a row a fit; it has no {lacking[0]}")
    if len(table) == 0 or not (table["n"] > 0).all():
        raise ValueError("table has no rows" if len(table) == 0 else "n must be positive, in every row of the table")
    ax = new_axes(ax, 6.4, 4.4)
    parts = dict(list(table.groupby("method", sort=False))) if "method" in table else {"": table}
    lines, labels, lowest = [], [], np.inf
    for k, ((name, part), colour, marker) in enumerate(zip(parts.items(), cycle(COLOURS), cycle(_MARKERS))):
        slope = log_slope(part[part["n"] >= start], "error", "n").short
        points = means(part, "error", "n")
        wide = 1.5 * (len(parts) - 1 - k)  # those drawn first, as curves may coincide
        look = {"color": colour, "marker": marker, "linewidth": 1.3 + wide, "markersize": 4.5 + wide}
        look = dict((looks or {}).get(str(name), look))
        lines.append(curve(ax, points, **look))
        labels.append(f"{label(name, 40)}: {slope}" if name else f"slope {slope}")
        lowest = min(lowest, float(points["mean"].iloc[0]))
    n = np.unique(table["n"])
    guide(ax, n, 0.7 * lowest, -0.5, "1/√n")
    ax.set(xscale="log", yscale="log", xlabel="samples n", ylabel="mean absolute error of θ")
    plain_log(ax.yaxis)
    ax.spines[["top", "right"]].set_visible(False)
    title = f"slope from n = {start:,.0f} on" if start > n[0] else "slope" if "" not in parts else None
    legend(ax, lines, labels, title=title, title_fontsize=8, alignment="left")
    return ax


def curve(ax: Axes, points: pd.DataFrame, **look: Any) -> Any:
    """Points with error bars of a standard error; points: index x, columns mean or median, and stderr.

    Or, instead of that, error: of the logarithm.
    """
    middle = points["mean"] if "mean" in points else points["median"]
    if "error" in points:
        factor = np.exp(points["error"])
        bars = np.array([middle - middle / factor, middle * factor - middle])
    else:
        bars = points["stderr"].to_numpy()
    look = {"markersize": 4.5, "linewidth": 1.3, "capsize": 2.0} | look
    return ax.errorbar(np.asarray(points.index, float), middle, yerr=bars, **look)


def guide(ax: Axes, x: np.ndarray, at: float, power: float, words: str) -> None:
    """A dotted line of this power through the first point (x[0], at), with its name there."""
    x = np.asarray(x, float)
    ax.plot(x, at * (x / x[0]) ** power, ":", color="#777777", linewidth=1.2)
    place, ha, va = ((-4, 0), "right", "center") if power > 0 else ((0, -6), "center", "top")
    ax.annotate(words, (x[0], at), place, textcoords="offset points", ha=ha, va=va, color="#555555", fontsize=8)
