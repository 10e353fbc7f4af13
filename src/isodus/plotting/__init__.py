"""Pictures of models: graphs, tables, densities, residuals; matplotlib axes in, axes out.

Every function takes axes, or a figure to make them in, and gives them back; without any it makes a figure of pyplot's.
Nothing is shown, and no setting of matplotlib's is changed. `plot` and `draw` find a plot by name, and `draw` makes
a figure of its own, without a window, and saves it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..io import is_stream, writing
from .curves import curve, error_scaling, guide, penalty_path, plain_log, plot_residuals, residuals
from .densities import marginals, pairs
from .network import graph
from .tables import couplings, forest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "KINDS",
    "Kind",
    "couplings",
    "curve",
    "draw",
    "error_scaling",
    "forest",
    "graph",
    "guide",
    "marginals",
    "pairs",
    "penalty_path",
    "plain_log",
    "plot",
    "plot_residuals",
    "residuals",
]

_DPI = 150


class Kind(NamedTuple):
    """A plot of a model: what it shows, whether it takes samples and whether it needs them, and what draws it."""

    description: str
    takes_data: bool
    needs_data: bool
    function: Callable[..., Any]


KINDS = {
    "graph": Kind("which variables interact, in pairs, threes and fours", False, False, graph),
    "couplings": Kind("a heatmap: how strongly each pair interacts", False, False, couplings),
    "forest": Kind("the largest terms with their intervals", False, False, forest),
    "marginals": Kind("the density of each variable, over the data", True, False, marginals),
    "pairs": Kind("the density of pairs of variables, over the data", True, False, pairs),
    "residuals": Kind("whether each variable given the others fits the data", True, True, residuals),
}


def plot(kind: str, model: Any, X: Any = None, ax: Any = None, **options: Any) -> Any:
    """A plot by name, one of `KINDS`; X is left aside where it takes no samples. Returns the axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isodus import PolynomialModel
    >>> from isodus.plotting import plot
    >>> model = PolynomialModel.from_dict({(0, 0): 1, (1, 1): 1, (2, 2): 1, (0, 0, 1): 0.1, (0, 1, 2): 0.2})
    >>> plot("forest", model, ax=Figure(), n=1).get_title()
    'the 1 largest of 2 interactions'
    """
    if kind not in KINDS:
        raise ValueError(f"there is no plot {kind!r}; there are {', '.join(KINDS)}")
    found = KINDS[kind]
    if found.needs_data and X is None:
        raise ValueError(f"the plot {kind!r} needs samples: give X (on the command line: --data FILE)")
    known = [name for name, one in inspect.signature(found.function).parameters.items() if one.kind is one.KEYWORD_ONLY]
    odd = [name for name in options if name not in known]
    if odd:
        raise ValueError(f"the plot {kind!r} has no option {odd[0]!r}; it has {', '.join(known) or 'none'}")
    return found.function(model, *((X,) if found.takes_data else ()), ax, **options)


def draw(kind: str, model: Any, X: Any = None, path: str | PathLike[str] | None = None, **options: Any) -> Figure:
    """A figure with a plot, one of `KINDS`, without any window; saved to `path`, as its ending says.

    Pipes, devices and "-", standard output, receive PNG unless they have an ending.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> from isodus.plotting import draw
    >>> model = PolynomialModel.from_dict({(0, 0): 1, (1, 1): 1, (2, 2): 1, (0, 0, 1): 0.1, (0, 1, 2): 0.2})
    >>> draw("graph", model).axes[0].get_title()
    '3 variables: 1 pair, 1 three'
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    formats = FigureCanvasAgg(figure).get_supported_filetypes()
    ending = None if path is None else Path(path).suffix.lower()[1:]
    if path is not None and not ending and is_stream(Path(path)):
        ending = "png"
    if ending is not None and ending not in formats:
        raise ValueError(f"{path}: pictures end in .png, .svg or .pdf, or one of {', '.join(sorted(formats))}")
    plot(kind, model, X, figure, **options)
    if path is not None:
        with writing(path, binary=True) as f:
            figure.savefig(f, format=ending, dpi=_DPI)
    return figure
