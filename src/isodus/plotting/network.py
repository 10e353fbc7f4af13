"""The interaction graph: variables on a circle, pairs as lines, sets of three and more as small nodes inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..checks import count
from ..significance import check_level
from .layout import around_circle, circle_order, spread
from .sets import PARTIAL, SIGNS, interacting_sets, strongest
from .style import (
    GREY,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    label,
    legend,
    limit,
    listed,
    new_axes,
    note,
    text_size,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["graph"]

_VARIABLES = 150  # that have room for their names
_LEVEL = 12  # variables up to which names are horizontal
_MARKERS = {3: "s", 4: "D"}
_CALLED = {2: "pair", 3: "three", 4: "four"}
_COLOURS = {1: POSITIVE, -1: NEGATIVE, 0: NEUTRAL}
_FAINT = 0.22


def graph(
    model: Any,
    ax: Axes | Any = None,
    *,
    threshold: float = 0.0,
    level: float = 0.05,
    most: int | None = None,
    key: bool = True,
) -> Axes:
    """Which variables interact: a line a pair; for a set of three or four a square or diamond, joined to its variables.

    Width is strength, and colour the sign: blue where the product of the variables, each less its location, tends to
    be positive, orange where negative. Sets whose terms are not surely other than zero are faint, where the model
    has a covariance. Variables without interactions are listed below.

    Parameters
    ----------
    model : PolynomialModel
        Of its sets of variables those with a parameter that is not zero.
    ax : matplotlib axes, optional
        To draw in; or a figure to make them in. A new figure by default.
    threshold : float
        Sets that are weaker are left out.
    level : float
        The false discovery rate from which on sets are faint.
    most : int, optional
        How many sets to draw at most, those that are sure first, then the strongest; by default the larger of 60 and
        three for every variable.
    key : bool
        Whether to draw a legend.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isodus import PolynomialModel
    >>> from isodus.plotting import graph
    >>> model = PolynomialModel.from_dict({(0, 0): 1, (1, 1): 1, (2, 2): 1, (0, 0, 1): 0.1, (0, 1, 2): 0.2})
    >>> graph(model, Figure()).get_title()
    '3 variables: 1 pair, 1 three'
    """
    level, threshold = check_level(level), limit(threshold, "threshold")
    frame, measure = interacting_sets(model)
    names, p = model.names, len(model.names)
    most = max(60, 3 * p) if most is None else count(most, "most")
    frame = strongest(frame[frame["strength"] >= threshold], level)
    shown = _fitting(frame, most)
    own = not hasattr(ax, "transAxes")
    side = 6.4 if p <= 30 else 8.0
    ax = new_axes(ax, side + 1.7 if key else side, side)
    ax.set_axis_off()
    used = sorted({v for variables in shown["variables"] for v in variables})
    where = {v: k for k, v in enumerate(used)}
    sets = [tuple(where[v] for v in variables) for variables in shown["variables"]]
    places = around_circle(circle_order(len(used), sets, shown["strength"].tolist()))
    _lines(ax, shown.assign(nodes=sets, faint=shown["q_value"] >= level), places)
    ax.scatter(
        places[:, 0], places[:, 1], s=_node_size(len(used)), c="white", edgecolors="#333333", linewidths=1.0, zorder=4
    )
    texts = _names(ax, [names[v] for v in used], places)
    ax.set_title(wrapped(_title(p, frame, shown), 70), fontsize=10, pad=12)
    alone = [names[v] for v in range(p) if v not in where]
    if alone:
        many = "no interactions" if threshold == 0 and len(shown) == len(frame) else "none of these interactions"
        note(ax, wrapped(f"{many}: {listed(alone, 60)}", 100))
    if key and len(shown):
        _key(ax, shown, measure, level)
    _fit(ax, texts, settle=own)
    return ax


def _fitting(frame: pd.DataFrame, most: int) -> pd.DataFrame:
    """The first sets: so many at most, and no more variables than have room."""
    seen: set[int] = set()
    for k, variables in enumerate(frame["variables"].iloc[:most]):
        seen.update(variables)
        if len(seen) > _VARIABLES:
            return frame.iloc[:k]
    return frame.iloc[:most]


def _title(p: int, frame: pd.DataFrame, shown: pd.DataFrame) -> str:
    orders = frame["order"].value_counts().sort_index()
    parts = []
    for order, many in orders.items():
        called = _CALLED.get(order, f"set of {order}")
        plural = called if many == 1 else called.replace("set", "sets") if order > 4 else f"{called}s"
        parts.append(f"{many:,} {plural}")
    left = f"; drawn are {len(shown):,} of the {len(frame):,} sets" if len(shown) < len(frame) else ""
    return f"{p} variable{'s' if p > 1 else ''}: {', '.join(parts) or 'no interactions'}{left}"


def _widths(strength: Any, shown: pd.DataFrame) -> np.ndarray:
    """In points; thinner where there are many."""
    widest = float(np.clip(6.0 - 0.04 * len(shown), 2.0, 5.0))
    return 0.5 + (widest - 0.5) * np.asarray(strength, float) / shown["strength"].max()


def _node_size(n: int) -> float:
    return float(np.clip(1500 / max(n, 1), 18, 130))


def _lines(ax: Axes, shown: pd.DataFrame, places: np.ndarray) -> None:
    """Pairs, weak ones below; then sets of three and more."""
    from matplotlib.collections import LineCollection

    if not len(shown):
        return
    shown = shown.iloc[::-1]
    shown = shown.assign(
        width=_widths(shown["strength"], shown),
        alpha=np.where(shown["faint"], _FAINT, 0.9),
    )
    pairs, larger = shown[shown["order"] == 2], shown[shown["order"] > 2]
    curves = [_curve(places[i], places[j]) for i, j in pairs["nodes"]]
    colours = [_COLOURS[sign] for sign in pairs["sign"]]
    looks: dict[str, Any] = dict(linewidths=pairs["width"].tolist(), zorder=2, capstyle="round", gid="pairs")
    ax.add_collection(LineCollection(curves, colors=_with_alpha(colours, pairs["alpha"]), **looks))
    if not len(larger):
        return
    centres = np.array([places[list(nodes)].mean(axis=0) for nodes in larger["nodes"]])
    centres = spread(0.9 * centres, places, float(np.clip(2.2 / np.sqrt(len(larger)) / 3, 0.05, 0.16)))
    spokes, tints, widths = [], [], []
    for (_, row), centre in zip(larger.iterrows(), centres, strict=True):
        spokes += [np.array([centre, places[node]]) for node in row["nodes"]]
        tints += _with_alpha([_COLOURS[row["sign"]]], [0.8 * row["alpha"]]) * len(row["nodes"])
        widths += [0.45 * row["width"] + 0.4] * len(row["nodes"])
    ax.add_collection(LineCollection(spokes, colors=tints, linewidths=widths, zorder=2.5, gid="spokes"))
    size = float(np.clip(700 / len(larger), 16, 60))
    for (_, row), centre in zip(larger.iterrows(), centres, strict=True):
        fill = _with_alpha([_COLOURS[row["sign"]]], [max(row["alpha"], 0.3)])
        marker = _MARKERS.get(row["order"], "p")
        ax.scatter(
            centre[0], centre[1], s=size, c=fill, marker=marker, edgecolors="white", linewidths=0.8, zorder=3, gid="set"
        )


def _with_alpha(colours: list[str], alphas: Any) -> list[tuple[float, ...]]:
    from matplotlib.colors import to_rgba

    return [to_rgba(colour, alpha) for colour, alpha in zip(colours, alphas, strict=True)]


def _curve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """From one place on the circle to another, bent to its centre the more the farther they are apart."""
    t = np.linspace(0.0, 1.0, 25)[:, None]
    through = (a + b) / 2 * (1 - 0.3 * np.linalg.norm(a - b))
    return (1 - t) ** 2 * a + 2 * t * (1 - t) * through + t**2 * b


def _names(ax: Axes, names: list[str], places: np.ndarray) -> list[Annotation]:
    """Outside of the circle: level if they are few, along its radii if many."""
    texts = []
    gap = np.sqrt(_node_size(len(names))) / 2 + (4 if len(names) <= _LEVEL else 3)  # points from the middle of a node
    for name, (x, y) in zip(names, places, strict=True):
        if len(names) <= _LEVEL:
            side = "left" if x > 0.05 else "right" if x < -0.05 else "center"
            height = "center" if abs(y) < 0.6 else "bottom" if y > 0 else "top"
            looks: dict[str, Any] = dict(ha=side, va=height, fontsize=10, linespacing=0.95)
        else:
            angle = float(np.degrees(np.arctan2(y, x)))
            right = abs(angle) <= 90
            looks = dict(ha="left" if right else "right", va="center", rotation=angle if right else angle - 180)
            looks |= dict(rotation_mode="anchor", fontsize=9)
        words = wrapped(label(name), 14) if len(names) <= _LEVEL else label(name)
        looks |= dict(textcoords="offset points", annotation_clip=False, zorder=5)
        texts.append(ax.annotate(words, (x, y), (gap * x, gap * y), **looks))
    return texts


def _fit(ax: Axes, texts: list[Annotation], settle: bool) -> None:
    """Limits such that circle and names are inside of the axes; settle: let the layout find its sizes first."""
    ax.set(aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
    at = np.array([text.xy for text in texts]).reshape(-1, 2)
    before = 0.0
    for _ in range(4):
        if settle:
            ax.figure.figure.draw_without_rendering()
        size = np.array(ax.figure.transSubfigure.transform_bbox(ax.get_position(original=True)).size)
        u = ax.transData.transform(at)
        ends = np.array([text.get_window_extent().get_points() for text in texts]).reshape(-1, 2, 2)
        beyond = np.where(at > 0, ends[:, 1] - u, u - ends[:, 0])  # a name from where it begins, in pixels
        beyond = np.where(np.abs(at) < 0.05, (ends[:, 1] - ends[:, 0]) / 2, beyond)
        scale = np.min((size / 2 - beyond) / np.maximum(np.abs(at), 0.05), initial=size.min() / 2.2)
        scale = max(scale, 0.15 * size.min())  # pixels a unit; names that are too long for that stick out
        far = np.max(np.abs(at) + beyond / scale, axis=0, initial=1.1)
        ax.set(xlim=(-far[0], far[0]), ylim=(-far[1], far[1]))
        room = 2 * np.pi * scale / ax.figure.dpi * 72 / max(len(texts), 1)
        for text in texts if len(texts) > _LEVEL else ():
            text.set_fontsize(min(text_size(room) or 3.0, text.get_fontsize()))
        if abs(scale - before) < 0.01 * scale:
            break
        before = scale


def _key(ax: Axes, shown: pd.DataFrame, measure: str, level: float) -> None:
    """What colours, widths and shapes mean."""
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    labels: list[str] = []
    largest = float(shown["strength"].max())
    for value in (largest, largest / 2, largest / 8):
        handles.append(Line2D([], [], color=GREY, linewidth=float(_widths(value, shown))))
        labels.append(f"{value:.2g}")
    for sign, words in SIGNS.items():
        if (shown["sign"] == sign).any():
            handles.append(Line2D([], [], color=_COLOURS[sign], linewidth=3))
            labels.append(words)
    if (shown["q_value"] >= level).any():
        handles.append(Line2D([], [], color=GREY, linewidth=3, alpha=_FAINT))
        labels.append(f"not sure (q ≥ {level:g})")
    for order, words in ((3, "three variables"), (4, "four variables"), (5, "five or more")):
        if ((shown["order"] == order) | ((order == 5) & (shown["order"] > 5))).any():
            handles.append(Line2D([], [], color=GREY, marker=_MARKERS.get(order, "p"), linestyle="", markersize=6))
            labels.append(words)
    title = (
        "width: size of the\npartial correlation"
        if measure == PARTIAL
        else "width: strength, √Σθ² of\na set's terms, standardised"
    )
    options: dict[str, Any] = dict(loc="center left", bbox_to_anchor=(1.03, 0.5), title=title, title_fontsize=8)
    legend(ax, handles, labels, alignment="left", borderaxespad=0.2, **options)
