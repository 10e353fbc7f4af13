"""What figures share: colours that the colour-blind can tell apart (Okabe and Ito), curves with errors, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .methods import JOINT, LIKELIHOOD, OURS, PAPER, SCORE
from .statistics import means

_STYLES: dict[str, dict[str, Any]] = {
    PAPER: dict(color="#D55E00", marker="o"),
    LIKELIHOOD: dict(color="#0072B2", marker="s"),
    SCORE: dict(color="#009E73", marker="^"),
    OURS: dict(color="#000000", marker="D", markerfacecolor="none", markersize=7, linestyle="--"),
    JOINT: dict(color="#56B4E9", marker="v", linestyle="--"),
}
_MORE = ("#CC79A7", "#E69F00", "#999999", "#8C510A", "#882255", "#117733")


def style(label: str, number: int = 0) -> dict[str, Any]:
    """Of a method; others by a number."""
    return _STYLES.get(label, dict(color=_MORE[number % len(_MORE)], marker="pXP*hd"[number % 6]))


def panels(count: int = 1, width: float = 5.6, height: float = 4.4) -> tuple[Figure, list[Axes]]:
    """Panels side by side."""
    figure = Figure(figsize=(width * count, height), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, count)).tolist()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(True, color="#E5E5E5", linewidth=0.6)
    return figure, axes


def curves(ax: Axes, table: pd.DataFrame, y: str, x: str, methods: Sequence[str], **options: Any) -> None:
    """The mean of each method with its standard error, on axes of logarithms."""
    for k, method in enumerate(methods):
        points = means(table[table["method"] == method], y, x)
        look = dict(markersize=5, linewidth=1.3, capsize=2) | style(method, k) | options
        if len(points):
            ax.errorbar(points.index, points["mean"], points["stderr"], label=method, **look)
    ax.set(xscale="log", yscale="log")
    ax.legend(frameon=False, fontsize=8)


def guide(ax: Axes, x: Sequence[float], start: float, power: float, label: str) -> None:
    """A power law to compare with."""
    ends = np.array([min(x), max(x)], float)
    ax.plot(ends, start * (ends / ends[0]) ** power, color="#777777", linestyle=":", linewidth=1.2, label=label)
    ax.legend(frameon=False, fontsize=8)


def save(figure: Figure, stem: Path) -> None:
    """An SVG, the same for the same figure, and a PNG to look at."""
    with matplotlib.rc_context({"svg.hashsalt": "isodus", "svg.fonttype": "none"}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(stem.with_suffix(".png"), dpi=90)
