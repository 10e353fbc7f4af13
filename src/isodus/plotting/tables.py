"""Tables as pictures: couplings of all pairs of variables, and terms with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from ..checks import count, positions
from ..significance import check_level
from .sets import PARTIAL, interacting_sets, pair_matrix
from .style import COLOURS, GREY, check_model, diverging, inside, label, legend, new_axes, text_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["couplings", "forest"]

_VARIABLES = 120  # whose names can be read
_VALUES = 12  # variables up to which cells hold numbers
_FAINT = 0.35
_LOOKS = {1: ("#000000", "|"), 2: (COLOURS[0], "o"), 3: (COLOURS[1], "s"), 4: (COLOURS[2], "D")}
_ORDERS = {1: "one variable", 2: "pairs", 3: "threes", 4: "fours"}
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def couplings(model: Any, ax: Axes | Any = None, *, variables: Any = None, level: float = 0.05) -> Axes:
    """A heatmap with a cell a pair of variables: how strongly they interact, and with which sign.

    Of a model of degree 2 these are partial correlations. Of others it is the strength of the pair's terms, as in
    `PolynomialModel.hyperedges`, with the sign that `graph` has; and where sets of three and more interact, the upper
    triangle has the strength of those that a pair shares, which has no sign. Pairs that are not sure are pale, where
    the model has a covariance.

    Parameters
    ----------
    model : PolynomialModel
        In its order of the variables.
    ax : matplotlib axes, optional
        To draw in; or a figure to make them in. A new figure by default.
    variables : sequence of names or indices, optional
        By default all, or the 120 that interact most.
    level : float
        The false discovery rate from which on pairs are pale.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isodus.datasets import diamond_gaussian
    >>> from isodus.plotting import couplings
    >>> couplings(diamond_gaussian(), Figure()).get_title()
    'partial correlations'
    """
    level = check_level(level)
    frame, measure = interacting_sets(model)
    pairs, q, shared, plain = pair_matrix(frame, len(model.names))
    at = positions(variables, model.names)
    left = ""
    if len(at) > _VARIABLES:
        size = np.nansum(np.square(pairs), axis=0) + np.nansum(np.square(shared), axis=0)
        at = sorted(sorted(at, key=lambda v: -size[v])[:_VARIABLES])
        left = f": the {_VARIABLES} of {len(model.names):,} variables that interact most"
    p, cut = len(at), np.ix_(at, at)
    pairs, q, shared = pairs[cut], q[cut], shared[cut]
    higher = bool(np.isfinite(shared).any())
    side = float(np.clip(0.3 * p + 2.2, 4.2, 9.0))
    ax = new_axes(ax, side + (2.0 if higher else 1.2), side)
    if higher:
        pairs[np.triu_indices(p)] = np.nan
        shared[np.tril_indices(p)] = np.nan
    pale, grey = q >= level, plain[cut] & np.isfinite(pairs)
    _image(ax, pairs, pale, grey, measure)
    if higher:
        _shared(ax, shared)
    _cells(ax, p, [model.names[v] for v in at])
    if p <= _VALUES:
        _values(ax, pairs, pale, grey)
    what = (
        "partial correlations" if measure == PARTIAL else "strength of pairs" + (" and higher sets" if higher else "")
    )
    ax.set_title(what + left if frame.size else f"no interactions{left}", fontsize=10)
    said = [f"pale: not sure (q ≥ {level:g})"] if np.any(pale & np.isfinite(pairs)) else []
    ax.set_xlabel("; ".join(said + (["grey: of no one sign"] if grey.any() else [])), fontsize=8, color=GREY)
    return ax


def _image(ax: Axes, pairs: np.ndarray, pale: np.ndarray, grey: np.ndarray, measure: str) -> None:
    """Cells by strength and sign, grey where there is none."""
    largest = _largest(pairs)
    alpha, there = np.where(pale, _FAINT, 1.0), np.isfinite(pairs)
    for cells, cmap, least in ((there & grey, "Greys", -0.2 * largest), (there & ~grey, diverging(), -largest)):
        options: dict[str, Any] = dict(alpha=np.where(cells, alpha, 0.0), cmap=cmap, vmin=least, vmax=largest)
        image = ax.imshow(np.where(cells, pairs, 0.0), interpolation="nearest", **options)
    _bar(
        ax,
        image,
        PARTIAL if measure == PARTIAL else "pairs: strength, √Σθ² standardised,\nwith the sign of the product",
    )


def _shared(ax: Axes, shared: np.ndarray) -> None:
    values = np.ma.masked_invalid(shared)
    image = ax.imshow(values, cmap="Greens", vmin=0.0, vmax=float(values.max()) * 1.1, interpolation="nearest")
    _bar(ax, image, "above the diagonal: strength of sets\nof three and more that both are in")


def _bar(ax: Axes, image: Any, words: str) -> None:
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02, aspect=30)
    bar.set_label(words, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)


def _largest(pairs: np.ndarray) -> float:
    return float(np.nanmax(np.abs(pairs), initial=0.0)) or 1.0


def _cells(ax: Axes, p: int, names: list[str]) -> None:
    """Names along both sides, and lines between cells."""
    room = float(inside(ax).min()) / p
    size = text_size(room) or 3.0
    shown = [label(name) for name in names]
    ax.set_yticks(np.arange(p), shown, fontsize=size)
    ax.set_xticks(np.arange(p), shown, fontsize=size, rotation=90)
    ax.tick_params(length=0, pad=2)
    ax.set_xticks(np.arange(p + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(p + 1) - 0.5, minor=True)
    ax.tick_params(which="minor", length=0)
    ax.grid(which="minor", color="#E2E2E2", linewidth=0.5)
    ax.plot([-0.5, p - 0.5], [-0.5, p - 0.5], color="#BBBBBB", linewidth=0.8, scalex=False, scaley=False)
    ax.spines[:].set_visible(False)


def _values(ax: Axes, pairs: np.ndarray, pale: np.ndarray, grey: np.ndarray) -> None:
    """Numbers in cells, where they have room."""
    largest, size = _largest(pairs), min(9.0, 0.27 * float(inside(ax).min()) / len(pairs))
    if size < 4.5:
        return
    for i, j in np.argwhere(np.isfinite(pairs)):
        dark = abs(pairs[i, j]) > 0.45 * largest and not pale[i, j]
        colour = "white" if dark else "#777777" if pale[i, j] else "black"
        value = abs(pairs[i, j]) if grey[i, j] else pairs[i, j]
        ax.text(j, i, f"{value:.2f}".replace("-", "−"), ha="center", va="center", fontsize=size, color=colour)


def forest(
    model: Any,
    ax: Axes | Any = None,
    *,
    n: int = 30,
    units: Literal["raw", "standardized"] = "standardized",
    level: float = 0.95,
    simultaneous: bool = False,
    terms: Literal["interactions", "all"] = "interactions",
) -> Axes:
    """Terms with their parameters and intervals, the largest on top.

    Parameters
    ----------
    model : PolynomialModel
        Without a covariance there are no intervals.
    ax : matplotlib axes, optional
        To draw in; or a figure to make them in. A new figure by default.
    n : int
        How many terms at most: those with the largest θ in standardised variables.
    units, level, simultaneous
        As in `PolynomialModel.to_frame`.
    terms : {"interactions", "all"}
        Whether terms of one variable are among them.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isodus import PolynomialModel
    >>> from isodus.plotting import forest
    >>> model = PolynomialModel.from_dict({(0, 0): 1, (1, 1): 1, (2, 2): 1, (0, 0, 1): 0.1, (0, 1, 2): 0.2})
    >>> [text.get_text() for text in forest(model, Figure()).get_yticklabels()]
    ['x0·x1·x2', 'x0²·x1']
    """
    if terms not in ("interactions", "all"):
        raise ValueError(f'terms must be "interactions" or "all", not {terms!r}')
    check_model(model)
    n = count(n, "n")
    table = model.to_frame(units, level=level, simultaneous=simultaneous).assign(size=np.abs(model.theta))
    table["name"] = [_term_label(term, model.names) for term in model.basis.terms]
    table = table[(table["size"] > 0) & ((table["order"] > 1) | (terms == "all"))]
    shown = table.sort_values("size", ascending=False, kind="stable").head(n)
    ax = new_axes(ax, 6.4, float(np.clip(0.21 * len(shown) + 1.5, 2.4, 14.0)))
    _rows(ax, shown)
    sure = bool(shown["ci_low"].notna().any())
    words = "interactions" if terms == "interactions" else "terms"
    some = (
        f"the {len(shown):,} largest of {len(table):,} {words}"
        if len(shown) < len(table)
        else f"{len(table):,} {words}"
    )
    ax.set_title(some if len(table) else f"no {words}", fontsize=10)
    said = f" and {100 * level:g} % intervals{', all at once' if simultaneous else ''}" if sure else ""
    ax.set_xlabel(
        f"θ{said}, {'standardised' if units == 'standardized' else 'in the units of the data'}\n"
        "θ < 0: the term tends to be large; θ > 0: to be small"
    )
    if len(shown):
        _orders(ax, shown, sure)
    return ax


def _term_label(term: tuple[int, ...], names: Any) -> str:
    """x0²·x1."""
    parts = []
    for v in sorted(set(term)):
        power = term.count(v)
        parts.append(
            label(names[v], 24 if len(set(term)) < 3 else 16) + (str(power).translate(_RAISED) if power > 1 else "")
        )
    return "·".join(parts)


def _look(order: int) -> tuple[str, str]:
    return _LOOKS.get(order, (COLOURS[3], "p"))


def _rows(ax: Axes, shown: pd.DataFrame) -> None:
    """A point and a line each; hollow where the false discovery rate is 5 % or more."""
    y = np.arange(len(shown))
    ax.axvline(0.0, color="#999999", linewidth=0.8, zorder=1)
    for k, row in zip(y, shown.itertuples(), strict=True):
        colour, marker = _look(int(row.order))
        ax.hlines(k, row.ci_low, row.ci_high, color=colour, linewidth=1.5, zorder=2)
        face = "white" if row.q_value >= 0.05 else colour
        ax.plot(row.theta, k, marker, color=colour, markerfacecolor=face, markersize=5, zorder=3)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    room = float(inside(ax)[1]) / max(len(shown), 1)
    ax.set_yticks(y, shown["name"], fontsize=text_size(room, 9.0) or 3.0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color="#EEEEEE", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.margins(x=0.06)


def _orders(ax: Axes, shown: pd.DataFrame, sure: bool) -> None:
    """What shapes mean, where there are several."""
    from matplotlib.lines import Line2D

    handles, labels = [], []
    for order in sorted(set(shown["order"])):
        colour, marker = _look(order)
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle="-" if sure else "", markersize=5))
        labels.append(_ORDERS.get(order, f"sets of {order}"))
    if (shown["q_value"] >= 0.05).any():
        handles.append(Line2D([], [], color=GREY, marker="o", markerfacecolor="white", linestyle="", markersize=5))
        labels.append("hollow: not sure (q ≥ 0.05)")
    if len(handles) > 1:
        legend(ax, handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0))
