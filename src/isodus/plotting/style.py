"""What all plots share: colours, names as labels, axes to draw in, notes and legends."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap

__all__ = [
    "COLOURS",
    "GREY",
    "NEGATIVE",
    "NEUTRAL",
    "POSITIVE",
    "check_model",
    "diverging",
    "inside",
    "label",
    "legend",
    "limit",
    "listed",
    "new_axes",
    "new_panels",
    "note",
    "remark",
    "text_size",
    "wrapped",
]

# colours that the colour-blind tell apart (Okabe and Ito)
POSITIVE, NEGATIVE, NEUTRAL, GREY = "#0072B2", "#D55E00", "#8A8A8A", "#555555"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A", "#999933")

_LONGEST = 24  # characters of a name


def check_model(model: Any) -> None:
    """Whether it is a model, and not what holds one."""
    if not hasattr(model, "basis") or not hasattr(model, "conditional"):
        raise ValueError(f"a PolynomialModel is wanted (of an estimator: est.model_), not {type(model).__name__}")


def label(name: Any, most: int = _LONGEST) -> str:
    """A name as it is drawn: in one line, its middle left out if it is long, and `$` not taken for mathematics."""
    text = " ".join(str(name).split())
    if len(text) > most:
        keep = most - 1
        text = f"{text[: keep - keep // 2]}…{text[len(text) - keep // 2 :]}"
    return text.replace("$", r"\$")


def wrapped(text: str, width: int) -> str:
    """In lines of at most so many characters."""
    return "\n".join(textwrap.wrap(text, width, break_long_words=True))


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(label(name) for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def limit(value: Any, name: str) -> float:
    """A number of at least zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
        raise ValueError(f"{name} must be a number of at least zero, not {value!r}")
    return float(value)


def new_axes(ax: Any, width: float, height: float) -> Axes:
    """The axes that were given; in a figure that was given, or a new one of pyplot's, new ones of this size."""
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    if hasattr(ax, "add_subplot"):
        _resize(ax, width, height)
        return ax.add_subplot()
    if not hasattr(ax, "transAxes"):
        what = f"{len(ax)} axes" if isinstance(ax, list | tuple | np.ndarray) else repr(ax)
        raise ValueError(
            f"ax must be matplotlib axes, such as plt.subplots()[1], or a figure to make them in, not {what}"
        )
    return ax


def new_panels(axes: Any, many: int, columns: int, width: float, height: float) -> np.ndarray:
    """Flat array of so many axes: those that were given, or new ones, each of this size."""
    columns = min(columns, many)
    rows = -(-many // columns)
    if axes is None or hasattr(axes, "add_subplot"):
        figure = axes
        if figure is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(layout="constrained")
        _resize(figure, width * columns, height * rows)
        made = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for spare in made[many:]:
            spare.remove()
        return made[:many]
    given = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(given) < many or not all(hasattr(one, "transAxes") for one in given):
        raise ValueError(
            f"{many} matplotlib axes are needed, and {len(given)} were given; choose fewer panels, or leave axes out"
        )
    for spare in given[many:]:
        spare.set_axis_off()
    return given[:many]


def _resize(figure: Any, width: float, height: float) -> None:
    if hasattr(figure, "set_size_inches"):  # a SubFigure has the size that it has
        figure.set_size_inches(width, height)


def inside(ax: Axes) -> np.ndarray:
    """Width and height of the axes, in points."""
    return np.asarray(ax.get_window_extent().size) / ax.figure.dpi * 72


def text_size(room: float, largest: float = 9.0, smallest: float = 3.5) -> float | None:
    """A font size, in points, of lines that have so much room each; None where they would not be read."""
    size = min(largest, 0.82 * room)
    return None if size < smallest else size


def note(ax: Axes, text: str, size: float = 8.0) -> None:
    """A line or more below the axes."""
    if text:
        ax.annotate(
            text, (0.5, 0), (0, -6), "axes fraction", textcoords="offset points",
            ha="center", va="top", fontsize=size, color=GREY, annotation_clip=False,
        )  # fmt: skip


def remark(panels: np.ndarray, text: str) -> None:
    """A title over panels: of their figure, if nothing else is in it."""
    figure = panels[0].figure
    if len(figure.axes) == len(panels):
        figure.suptitle(text, fontsize=10)
    else:
        panels[0].annotate(text, (0, 1), (0, 16), "axes fraction", textcoords="offset points", fontsize=8, color=GREY)


def legend(ax: Axes, handles: Sequence[Any], labels: Sequence[str], **options: Any) -> Any:
    """A legend with these labels, also where they begin with an underscore, which matplotlib takes for none."""
    made = ax.legend(handles, [f"{k}" for k in range(len(labels))], **({"frameon": False, "fontsize": 8} | options))
    for text, one in zip(made.get_texts(), labels, strict=True):
        text.set_text(one)
    return made


def diverging() -> LinearSegmentedColormap:
    """From orange, negative, through white to blue."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("isodus", ["#8A3A00", NEGATIVE, "#F7F7F7", POSITIVE, "#00334F"])
