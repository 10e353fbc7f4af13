"""What the model says of the data: densities of one variable and of two, over the data.

They are means over rows of the others: ⟨P(x_i | rest)⟩ and ⟨P(x_i, x_j | rest)⟩. With the data for rows they are what
the data have if the conditional densities are right, which is what was fitted: quick, and there even where the joint
density is not or cannot be sampled. With draws of the model they are its own marginals. Both are means of smooth
functions, which some hundred rows tell well, and no mode is smeared out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import to_host
from ..checks import count, finite_rows, positions
from ..samples import floating_rows
from .sets import interacting_sets, pair_matrix
from .style import COLOURS, GREY, check_model, label, new_panels, remark

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["marginals", "pairs"]

_Look = tuple[str, str]  # a colour and a kind of line
_Averaged = list[tuple[np.ndarray, _Look]]  # rows of the others, and how the mean over them is drawn

_PANELS = 64  # of single variables, by default
_POINTS = 161  # of a line
_CELLS = 61  # of a pair density, along a side
_DOTS = 1500  # of data, in a panel
_MASSES = (0.95, 0.75, 0.5, 0.25)  # inside of contours
_FEWER = (0.95, 0.5)  # where there are two sets of them
_MARGIN = 0.08
_PLAIN: _Look = (COLOURS[0], "-")
_LOOKS: dict[str, _Look] = {"model": _PLAIN, "data": (COLOURS[1], "--")}


def marginals(
    model: Any,
    X: Any = None,
    axes: Any = None,
    *,
    variables: Any = None,
    rest: Any = None,
    force: bool = False,
) -> np.ndarray:
    """The density of each variable under the model, over a histogram of the data; a panel a variable.

    Parameters
    ----------
    model : PolynomialModel
        Whose densities of a variable given the others exist.
    X : array or DataFrame of shape (n, p), optional
        Samples; without them the model alone is drawn.
    axes : matplotlib axes, optional
        At least one a variable; or a figure to make them in. A new figure by default.
    variables : sequence of names or indices, optional
        By default the first 64.
    rest : {"data", "model", "both"}, array of shape (n, p) or dict, optional
        Rows of the other variables, over which conditional densities are averaged: the data, which is the default where
        there are any; or draws of the model, which may take long; or these, from ``model.sample(1000)``. With "both",
        or rows of each, ``{"model": draws, "data": X}``, both are drawn, that of the data dashed.
    force : bool, default=False
        Draw also from a model whose fit found its mass far from the data, as in `PolynomialModel.sample`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isodus.datasets import paper_pair
    >>> from isodus.plotting import marginals
    >>> len(marginals(paper_pair(), paper_pair().sample(100, rng=0), Figure()))
    2
    """
    check_model(model)
    rows = _rows(model, X)
    at = positions(variables, model.names)
    left = len(at) - _PANELS if variables is None else 0
    at = at[:_PANELS] if variables is None else at
    others, words = _others(model, rows, rest, 1000, force)
    many = len(at)
    columns = int(np.ceil(np.sqrt(1.4 * many)))
    size = (4.4, 3.2) if many == 1 else (2.2, 1.7) if many <= 20 else (1.45, 1.15)
    panels = new_panels(axes, many, columns, *size)
    for ax, i in zip(panels, at, strict=True):
        _marginal(ax, model, i, rows, others, small=many > 20)
    remark(panels, words + (f"; {_PANELS} of {len(model.names):,} variables" if left > 0 else ""))
    return panels


def _marginal(ax: Axes, model: Any, i: int, rows: np.ndarray | None, others: _Averaged, small: bool) -> None:
    grid = _range(i, rows, others, _POINTS)
    if rows is not None:
        inside = rows[:, i]
        bins = int(np.clip(1.6 * len(inside) ** (1 / 3), 8, 20 if small else 50))
        ax.hist(inside, bins=bins, density=True, color="#CCCCCC", edgecolor="white", linewidth=0.2)
    for rest, (colour, dash) in others:
        density = model.conditional(i, rest).pdf(grid[None, :]).mean(axis=0)
        ax.plot(grid, density, dash, color=colour, linewidth=1.2 if small else 1.7)
    _plain(ax, small)
    ax.set_yticks([])
    ax.set_ylim(bottom=0)
    ax.spines["left"].set_visible(False)
    ax.set_title(label(model.names[i], 14 if small else 24), fontsize=7 if small else 9, pad=3)


def pairs(
    model: Any,
    X: Any = None,
    axes: Any = None,
    *,
    variables: Any = None,
    most: int = 12,
    rest: Any = None,
    force: bool = False,
) -> np.ndarray:
    """The density of two variables under the model, over the data; a panel a pair, the strongest first.

    Contours have 25, 50, 75 and 95 % of the probability inside; where there are two sets of them, 50 and 95 %.

    Parameters
    ----------
    model, X, axes, rest, force
        As in `marginals`.
    variables : sequence of names or indices, optional
        All pairs of these; by default those pairs of all variables that interact most.
    most : int
        How many pairs, where `variables` does not say.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isodus.datasets import paper_pair
    >>> from isodus.plotting import pairs
    >>> pairs(paper_pair(), paper_pair().sample(100, rng=0), Figure())[0].get_xlabel()
    'x0'
    """
    check_model(model)
    at = positions(variables, model.names)
    if len(at) < 2:
        raise ValueError(f'{model.names[at[0]]} alone is no pair: name two variables or more, or plot "marginals"')
    rows, most = _rows(model, X), count(most, "most")
    every = [(i, j) for k, i in enumerate(at) for j in at[k + 1 :]]
    chosen = every if variables is not None else _most_coupled(model, every, most)
    others, words = _others(model, rows, rest, 400, force)
    panels = new_panels(axes, len(chosen), min(4, int(np.ceil(np.sqrt(len(chosen))))), 2.7, 2.5)
    for ax, (i, j) in zip(panels, chosen, strict=True):
        _pair(ax, model, i, j, rows, others)
    left = f"; {len(chosen)} of {len(every):,} pairs" if len(chosen) < len(every) else ""
    remark(panels, words + left)
    return panels


def _most_coupled(model: Any, every: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Pairs with the strongest terms, then those that share some with others."""
    own, _, shared, _ = pair_matrix(interacting_sets(model)[0], len(model.names))
    own, shared = np.abs(np.nan_to_num(own)), np.nan_to_num(shared)
    return sorted(every, key=lambda pair: (-own[pair], -shared[pair]))[:most]


def _pair(ax: Axes, model: Any, i: int, j: int, rows: np.ndarray | None, others: _Averaged) -> None:
    x, y = (_range(v, rows, others, _CELLS) for v in (i, j))
    if rows is not None:
        some = rows[_some(len(rows), _DOTS)]
        dots: dict[str, Any] = dict(s=6, c="#555555", alpha=float(np.clip(300 / len(some), 0.2, 0.8)), linewidths=0)
        ax.scatter(some[:, i], some[:, j], rasterized=True, **dots)
    for rest, (colour, dash) in others:
        density = _pair_density(model, i, j, x, y, rest)
        levels = _levels(density, _MASSES if len(others) == 1 else _FEWER)
        if len(levels):
            look: dict[str, Any] = dict(colors=colour, linestyles=dash, linewidths=np.linspace(0.8, 1.6, len(levels)))
            ax.contour(x, y, density.T, levels=levels, **look)
    _plain(ax, False)
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    ax.set_xlabel(label(model.names[i]), fontsize=9)
    ax.set_ylabel(label(model.names[j]), fontsize=9)


def _pair_density(model: Any, i: int, j: int, x: np.ndarray, y: np.ndarray, others: np.ndarray) -> np.ndarray:
    """⟨P(x_i, x_j | rest)⟩ over rows of the rest, on a grid, up to a factor; (len(x), len(y)).

    E = Σ_{a,b} c_ab y_i^a y_j^b + terms without both, with c_ab a sum over terms of θ times what they have of the rest.
    """
    Y = (others - model.location) / model.scale
    u, v = (x - model.location[i]) / model.scale[i], (y - model.location[j]) / model.scale[j]
    coefficients: dict[tuple[int, int], np.ndarray] = {}
    for k in np.flatnonzero(model.theta):
        term = model.basis.terms[k]
        powers = term.count(i), term.count(j)
        if any(powers):
            rest = [w for w in term if w not in (i, j)]
            value = model.theta[k] * np.prod(Y[:, rest], axis=1)
            coefficients[powers] = coefficients.get(powers, 0.0) + value
    C = np.stack(list(coefficients.values()), axis=1)
    M = np.stack([np.multiply.outer(u**a, v**b).ravel() for a, b in coefficients])
    density = np.zeros(M.shape[1])
    for part in np.array_split(C, -(-len(C) // 200)):
        energy = part @ M
        weight = np.exp(energy.min(axis=1, keepdims=True) - energy)
        density += (weight / weight.sum(axis=1, keepdims=True)).sum(axis=0)
    return density.reshape(len(u), len(v))


def _levels(density: np.ndarray, masses: Sequence[float]) -> np.ndarray:
    """Heights that have so much of the probability above, increasing."""
    heights = np.sort(density.ravel())[::-1]
    mass = np.cumsum(heights) / heights.sum()
    return np.unique(heights[np.minimum(np.searchsorted(mass, masses), len(heights) - 1)])


def _rows(model: Any, X: Any) -> np.ndarray | None:
    if X is None:
        return None
    rows = to_host(floating_rows(X, model.names)).astype(np.float64, copy=False)
    finite_rows(rows, model.names, "X")
    return rows


def _others(model: Any, rows: np.ndarray | None, rest: Any, most: int, force: bool) -> tuple[_Averaged, str]:
    """Rows to average over, at most so many, how that is drawn, and what it is in words."""
    data = "the data (grey) and " if rows is not None else ""
    words = {"model": "the model", "data": "the model given the other variables, averaged over the data"}
    if rest is None:
        rest = "model" if rows is None else "data"
    if isinstance(rest, str):
        found, several = _named_rows(model, rows, rest, most, force), rest == "both"
    elif isinstance(rest, Mapping):
        if not rest or not set(rest) <= set(_LOOKS):
            raise ValueError(f'a dict of rows has "model", "data" or both, not {", ".join(map(repr, rest)) or "none"}')
        found, several = {name: _rows(model, one) for name, one in rest.items()}, True
    else:
        found, several = {"": _rows(model, rest)}, False
    averaged = [
        (one[_some(len(one), most)], _LOOKS[name] if several else _PLAIN)
        for name, one in found.items()
        if one is not None
    ]
    if several:
        words = {"model": f"{words['model']} (blue)", "data": f"{words['data']} (dashed)"}
    return averaged, data + " and ".join(
        words.get(name, "the model given rows of the other variables") for name in found
    )


def _named_rows(model: Any, rows: np.ndarray | None, rest: str, most: int, force: bool) -> dict[str, np.ndarray | None]:
    if rest not in ("data", "model", "both"):
        raise ValueError(f'rest must be "data", "model", "both", an array of rows or a dict of them, not {rest!r}')
    if rest != "model" and rows is None:
        raise ValueError(f'rest="{rest}" takes data: give X')
    found = {}
    if rest != "data":
        found["model"] = np.asarray(model.sample(most, rng=0, start=rows, progress=False, force=force))
    return found | ({} if rest == "model" else {"data": rows})


def _some(n: int, most: int) -> np.ndarray:
    """All rows, or so many of them, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)


def _range(i: int, data: np.ndarray | None, others: _Averaged, points: int) -> np.ndarray:
    """From below to above what there is of a variable, but for the outermost thousandth."""
    there = [rest for rest, _ in others] + ([] if data is None else [data])
    ends = [np.quantile(values[:, i], (0.001, 0.999)) for values in there]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    wide = _MARGIN * (high - low) or 1.0
    return np.linspace(low - wide, high + wide, points)


def _plain(ax: Axes, small: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=6 if small else 8, length=2, pad=1.5, color=GREY)
    ax.xaxis.set_major_locator(MaxNLocator(2 if small else 4))
    ax.yaxis.set_major_locator(MaxNLocator(4))
