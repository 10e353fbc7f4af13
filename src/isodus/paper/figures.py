"""What figures of studies share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .methods import LIKELIHOOD, OURS, PAPERS, SCORE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["below", "curve", "guide", "levels", "new", "plain_ticks", "style"]

# colours that the colour-blind tell apart (Okabe and Ito)
_STYLES = {
    PAPERS: ("#D55E00", "o"),
    LIKELIHOOD: ("#0072B2", "s"),
    SCORE: ("#009E73", "^"),
    OURS: ("#000000", "D"),
}
_BEGINNINGS = {
    "ISODUS, paper, all penalised": ("#D55E00", "o"),
    "ISODUS, paper, diagonal free": ("#E69F00", "P"),
    "ISODUS, paper, log objective": ("#CC79A7", "v"),
    f"{LIKELIHOOD}, all penalised": ("#56B4E9", "X"),
    f"{LIKELIHOOD}, diagonal free": _STYLES[LIKELIHOOD],
    "ISODUS, text": ("#D55E00", "o"),  # these of n*
    "ISODUS, diagonal free: λ = 0.35, |θ|": ("#E69F00", "P"),
    "ISODUS, diagonal free: λ = 0.35, coupling": ("#8C510A", "p"),
    "ISODUS, log objective": ("#CC79A7", "v"),
    "ISODUS, code": ("#999999", "*"),
    f"{LIKELIHOOD}, text": ("#56B4E9", "X"),
}
_OTHERS = (("#CC79A7", "v"), ("#E69F00", "P"), ("#56B4E9", "X"), ("#999999", "*"))


def style(label: str, more: int = 0) -> dict[str, str]:
    """Colour and marker of a method; others have those of a number."""
    found = [look for beginning, look in _BEGINNINGS.items() if label.startswith(beginning)]
    color, marker = found[0] if found else _STYLES.get(label, _OTHERS[more % len(_OTHERS)])
    return {"color": color, "marker": marker}


def new(panels: int = 1, width: float = 6.4, height: float = 4.4) -> tuple[Figure, list[Axes]]:
    """A figure of panels side by side, without any window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * panels if panels > 1 else width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(1, panels)).ravel().tolist()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(True, which="major", color="#E5E5E5", linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, axes


def curve(ax: Axes, points: pd.DataFrame, label: str, method: str, more: int = 0, **options: object) -> None:
    """Points with error bars of a standard error; points: index x, columns mean or median, and stderr.

    Or, instead of that, error: of the logarithm.
    """
    middle = points["mean"] if "mean" in points else points["median"]
    if "error" in points:
        factor = np.exp(points["error"])
        bars = np.array([middle - middle / factor, middle * factor - middle])
    else:
        bars = points["stderr"].to_numpy()
    look: dict[str, Any] = style(method, more) | {"markersize": 4.5, "linewidth": 1.3, "capsize": 2.0}
    if method == OURS:  # often on another curve, which is to be seen
        look |= {"markerfacecolor": "none", "markersize": 6.5, "linestyle": "--"}
    look |= options
    ax.errorbar(np.asarray(points.index, float), middle, yerr=bars, label=label, **look)


def guide(ax: Axes, x: np.ndarray, at: float, power: float, label: str) -> None:
    """A dotted line of this power through the first point (x[0], at), with a label there."""
    x = np.asarray(x, float)
    ax.plot(x, at * (x / x[0]) ** power, ":", color="#777777", linewidth=1.2)
    place, ha, va = ((-4, 0), "right", "center") if power > 0 else ((0, -6), "center", "top")
    ax.annotate(label, (x[0], at), place, textcoords="offset points", ha=ha, va=va, color="#555555", fontsize=8)


def levels(ax: Axes, of: dict[str, float], labels: str = "{}") -> None:
    """A line a method; those that are drawn first are wider and the last is dashed, as they may coincide."""
    for k, (method, level) in enumerate(of.items()):
        width = 1.2 + 1.6 * (len(of) - 1 - k)
        dashes = "--" if k == len(of) - 1 else "-"
        ax.axhline(level, color=style(method)["color"], linestyle=dashes, linewidth=width, label=labels.format(method))


def below(figure: Figure, ax: Axes, columns: int) -> None:
    """The legend of a panel below all."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


def plain_ticks(ax: Axes, values: list[int]) -> None:
    """Of n, at 1, 2 and 5 times powers of ten, as plain numbers; and of x at these values."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set_xticks(values, [str(value) for value in values])
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
