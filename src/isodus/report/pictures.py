"""Pictures of a report as data URIs: a panel a variable or pair, so that they wrap on a small screen."""

from __future__ import annotations

import base64
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np

from ..description import far_away
from ..diagnostics import Integrability
from ..model import PolynomialModel
from ..plotting import marginals, pairs
from ..plotting.sets import interacting_sets
from .fit import Checked

__all__ = ["gather"]

_MARGINALS, _PAIRS = 36, 12
_ROWS = 1000  # to average over
_TYPES, _DPI = {"svg": "svg+xml", "png": "png"}, {"svg": 130, "png": 180}
_UNDATED: dict[str, Any] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
_LOOKS = {"svg.fonttype": "none", "svg.hashsalt": "isodus", "font.family": "sans-serif", "axes.unicode_minus": True}


def gather(
    model: PolynomialModel, rows: np.ndarray | None, verdict: Integrability, checked: Checked | None
) -> dict[str, Any]:
    """Marginals, pairs and residuals, or why there are none; rows: samples, each a row."""
    import matplotlib

    p = len(model.names)
    try:
        rest = _rest(model, rows, verdict, checked)
        with matplotlib.rc_context(_LOOKS):  # type: ignore[arg-type]
            shown = _worst(checked, p)[:_MARGINALS]
            singles = [_marginal(model, rows, rest, i) for i in shown]
            doubles = [_pair(model, rows, rest, i, j) for i, j in _coupled(model)[:_PAIRS]]
            residuals = _residuals(checked)
    except ValueError as error:
        return {"marginals": [], "pairs": [], "residuals": None, "why": " ".join(str(error).split()), "of": []}
    return {"marginals": singles, "pairs": doubles, "residuals": residuals, "why": "", "of": list(rest)}


def _rest(
    model: PolynomialModel, rows: np.ndarray | None, verdict: Integrability, checked: Checked | None
) -> dict[str, np.ndarray]:
    """Rows over which conditional densities are averaged: of the data, and draws of the model where there are any."""
    if rows is not None:
        drawn = None if checked is None or checked.found is None else checked.found.draws
        found = {"data": rows} if drawn is None else {"model": drawn, "data": rows}
        evenly = lambda all_rows: np.linspace(0, len(all_rows) - 1, min(len(all_rows), _ROWS)).astype(np.int64)
        return {name: each[evenly(each)] for name, each in found.items()}
    if verdict.status == "not integrable":
        raise ValueError("it is no density")
    if far_away(model):
        raise ValueError("its mass is far from the samples that it was learned from")
    try:
        return {"model": np.asarray(model.sample(_ROWS, rng=0, method="exact", progress=False))}
    except ValueError:
        raise ValueError("it takes Markov chains to draw from it, and a report without samples makes none") from None


def _worst(checked: Checked | None, p: int) -> list[int]:
    """Variables in their order; if there are too many for all to be shown, those that fit worst first."""
    if checked is None or checked.found is None or p <= _MARGINALS:
        return list(range(p))
    return np.argsort(checked.found.residuals["p_value"].to_numpy(), kind="stable").tolist()


def _coupled(model: PolynomialModel) -> list[tuple[int, int]]:
    """Pairs that interact, the strongest first; where there are none, those of larger sets."""
    frame = interacting_sets(model)[0].sort_values("strength", ascending=False, kind="stable")
    twos = [variables for variables in frame["variables"] if len(variables) == 2]
    more = [(v[i], v[i + 1]) for v in frame["variables"] if len(v) > 2 for i in range(len(v) - 1)]
    return list(dict.fromkeys([*twos, *more]))


def _marginal(model: PolynomialModel, rows: np.ndarray | None, rest: dict[str, np.ndarray], i: int) -> dict[str, Any]:
    def draw(ax: Any) -> None:
        marginals(model, rows, [ax], variables=[i], rest=rest)
        ax.set_title("")

    return {"v": [i], "n": None if rows is None else len(rows), "src": _uri(draw, 2.6, 1.6, (0.04, 0.15, 0.92, 0.82))}


def _pair(
    model: PolynomialModel, rows: np.ndarray | None, rest: dict[str, np.ndarray], i: int, j: int
) -> dict[str, Any]:
    def draw(ax: Any) -> None:
        pairs(model, rows, [ax], variables=[i, j], rest=rest)
        ax.set(xlabel="", ylabel="")

    return {
        "v": [i, j],
        "n": None if rows is None else len(rows),
        "src": _uri(draw, 2.6, 2.2, (0.13, 0.11, 0.85, 0.87)),
    }


def _residuals(checked: Checked | None) -> str | None:
    if checked is None or checked.found is None:
        return None
    found = checked.found
    return _uri(found.plot, 7.6, 3.6, (0.09, 0.14, 0.7, 0.77), "png", whole=True)  # lines of thousands of points


def _uri(
    draw: Callable[[Any], Any],
    width: float,
    height: float,
    place: tuple[float, float, float, float],
    kind: str = "svg",
    whole: bool = False,
) -> str:
    """A figure with one pair of axes as a data URI; whole: as large as it takes to hold what is beside the axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    draw(figure.add_axes(place))
    figure.suptitle("")
    out = BytesIO()
    room: Any = "tight" if whole else None
    figure.savefig(out, format=kind, dpi=_DPI[kind], metadata=_UNDATED[kind], bbox_inches=room)
    return f"data:image/{_TYPES[kind]};base64,{base64.b64encode(out.getvalue()).decode('ascii')}"
