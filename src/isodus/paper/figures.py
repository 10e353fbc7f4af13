"""What figures of studies share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .. import plotting
from ..plotting import guide, plain_log
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["below", "curve", "guide", "levels", "look", "new", "plain_ticks", "style"]

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


def curve(ax: Axes, points: pd.DataFrame, label: str, method: str, more: int = 0, **options: Any) -> None:
    """Points with error bars, as `isodus.plotting.curve` has them, in the style of a method."""
    plotting.curve(ax, points, label=label, **(look(method, more) | options))


def look(method: str, more: int = 0) -> dict[str, Any]:
    """How the curve of a method is drawn."""
    if method == OURS:  # often on another curve, which is to be seen
        return style(method, more) | {"markerfacecolor": "none", "markersize": 6.5, "linestyle": "--"}
    return dict(style(method, more))


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
    from matplotlib.ticker import NullLocator

    ax.set_xticks(values, [str(value) for value in values])
    ax.xaxis.set_minor_locator(NullLocator())
    plain_log(ax.yaxis)
