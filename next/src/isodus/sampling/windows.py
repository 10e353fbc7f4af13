"""Where the mass of a model on the whole line is, and whether it has a density."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations

import numpy as np

from ..axes import Axis
from .chains import sweep
from .conditionals import Block, Conditionals
from .elimination import Elimination, eliminate
from .graph import Component, NoDensity, interactions, own_coefficients

__all__ = ["check_leading", "exact_tables", "on_windows", "reaches_end"]

Array = np.ndarray
_DEPTH = 36.0  # log density below its largest value at which a window ends: 2e-16
_EMPTY = np.exp(-30.0)  # of the largest density, at an end of a window given all others
_START = 8.0  # standard deviations of own terms
_ROUNDS, _WIDENED = 40, 20
_WIDEST = 1e4  # times the first window
_CHAINS, _SWEEPS = 64, 6  # where elimination is not possible
_DIRECTIONS = 64


def on_windows(part: Component, rng: np.random.Generator, start: Array | None) -> Component:
    """The component with a window in place of each whole line; NoDensity where the mass does not end.

    Windows grow or shrink until the marginal densities at their ends are a factor of 2e-16 below their largest values.
    """
    axes = part.terms.axes
    wide = [i for i, axis in enumerate(axes) if axis.on_window is not None]
    if not wide:
        return part
    check_leading(part, wide, rng)
    own = own_coefficients(part.terms, part.theta)
    windows = _first(axes, wide, own, start)
    widest = {i: _WIDEST * (high - low) for i, (low, high) in windows.items()}
    marginals = _Marginals(part, rng, start)
    for k in range(_ROUNDS):
        here = _placed(axes, windows)
        moved = False
        for i, mass in marginals.on(here, wide).items():
            nodes = here[i].table(here[i].smallest).nodes
            with np.errstate(divide="ignore"):
                depth = np.log(mass) - nodes.log_weights
            new = _adjusted(windows[i], depth - depth.max(), 2 * k < _ROUNDS)
            moved |= new is not None
            windows[i] = new or windows[i]
            if windows[i][1] - windows[i][0] > widest[i]:
                raise NoDensity("its mass does not fall off, however wide the window")
        if not moved:
            return part.on(_placed(axes, windows))
    raise NoDensity("no window holds its mass")


def _first(axes: list[Axis], wide: list[int], own: list[Array], start: Array | None) -> dict[int, tuple[float, float]]:
    """Eight standard deviations of the density of own terms, else of the rows, else 1, in y; and so around each row."""
    windows, same = {}, dict[tuple, list[int]]()
    for i in wide:
        same.setdefault(_line(axes[i]), []).append(i)
    for variables in same.values():
        axis = axes[variables[0]]
        found = axis.integrals(np.stack([own[i] for i in variables]))
        assert found.covariance is not None
        for k, i in enumerate(variables):
            y = np.empty(0) if start is None else axis.functions(start[:, i])[:, 0]
            mean, sd = 0.0, 1.0 / _START
            if np.isfinite(found.log_Z[k]):
                mean, sd = float(found.mean[k, 0]), float(np.sqrt(found.covariance[k, 0]))
            elif len(y):
                mean, sd = float(np.mean(y)), max(float(np.std(y)), 1e-3)
            y = np.append(mean, y)
            windows[i] = _snapped(y.min() - _START * sd, y.max() + _START * sd)
    return windows


def _snapped(low: float, high: float) -> tuple[float, float]:
    """Outward to multiples of a sixteenth, so that like variables share a window."""
    step = 2.0 ** np.floor(np.log2(high - low)) / 16
    return float(np.floor(low / step) * step), float(np.ceil(high / step) * step)


def _line(axis: Axis) -> tuple:
    """What two whole lines have in common if they are the same."""
    return axis.coordinate(np.array([0.0, 1.0])).tobytes(), len(axis.degrees)


def _placed(axes: list[Axis], windows: dict[int, tuple[float, float]]) -> list[Axis]:
    """Windows in their places; the same window of the same axis is one object, whose tables are made once."""
    out, made = list(axes), {}
    for i, (low, high) in windows.items():
        key = (*_line(axes[i]), low, high)
        if key not in made:
            place = axes[i].on_window
            assert place is not None
            made[key] = place(low, high)
        out[i] = made[key]
    return out


def _adjusted(window: tuple[float, float], depth: Array, shrink: bool) -> tuple[float, float] | None:
    """A window that ends where the log density on its nodes is `_DEPTH` below the top; None if this one will do.

    shrink: whether it may, as marginals on few nodes can ask for more and less in turn.
    """
    low, high = window
    width = high - low
    above = np.flatnonzero(depth > -_DEPTH)
    grow = [0.0 if depth[end] < -_DEPTH else width * (1.0 if depth[end] > -_DEPTH / 4 else 0.25) for end in (0, -1)]
    if any(grow):
        return _snapped(low - grow[0], high + grow[1])
    gap = width / len(depth)
    new = _snapped(low + gap * (above[0] - 0.5), low + gap * (above[-1] + 1.5))
    return new if shrink and new[1] - new[0] < 0.75 * width else None


def exact_tables(
    part: Component, make: Callable[[Component], Elimination | None]
) -> tuple[Component, Elimination | None]:
    """The tables that `make` gives, and the component on windows at whose ends their marginals have no mass.

    Windows were placed by marginals on few nodes, which may miss where the mass is.
    """
    for _ in range(_WIDENED):
        tables, axes, moved = make(part), list(part.terms.axes), False
        if tables is None:
            return part, None
        for i, (mass, nodes) in enumerate(zip(tables.marginals(), tables.nodes, strict=True)):
            density, wider = mass[0] * np.exp(-nodes.log_weights), axes[i].wider
            if wider is not None and max(density[0], density[-1]) > _EMPTY * density.max():
                axes[i], moved = wider(), True
        if not moved:
            return part, tables
        part = part.on(axes)
    raise NoDensity("its mass does not fall off, however wide the window")


def reaches_end(axis: Axis, a: Array) -> Array:
    """Rows whose conditional density at an end of a window is more than e^−30 of its largest value, (n,)."""
    count = axis.smallest
    mass, _ = axis.mass(a, count)
    density = mass * np.exp(-axis.table(count).nodes.log_weights)[:, None]
    return np.maximum(density[0], density[-1]) > _EMPTY * density.max(axis=0)


class _Marginals:
    """Marginal masses on the nodes: exact ones, else averages of conditionals over short chains."""

    def __init__(self, part: Component, rng: np.random.Generator, start: Array | None) -> None:
        self.part, self.rng, self.sets = part, rng, interactions(part.terms, part.theta)
        self.conditionals: Conditionals | None = None
        rows = None if start is None else start[rng.integers(0, len(start), _CHAINS)]
        self.rows = rows

    def on(self, axes: list[Axis], wide: list[int]) -> dict[int, Array]:
        """The mass of each wide variable on the nodes of these axes, (N,)."""
        tables = None if self.conditionals else eliminate(axes, self.sets, resolve=False)
        if tables is not None:
            marginals = tables.marginals()
            return {i: marginals[i][0] for i in wide}
        part = self.part.on(axes)
        self.conditionals = Conditionals(part.terms, part.theta)
        places = [axis.table(axis.smallest).nodes.places for axis in axes]
        if self.rows is None:
            self.rows = np.stack(
                [self.rng.choice(at[len(at) // 4 : -len(at) // 4 or None], _CHAINS) for at in places], 1
            )
        block = Block(self.conditionals, [axis.functions(x).T for axis, x in zip(axes, self.rows.T, strict=True)])
        found: dict[int, Array] = {i: np.zeros(len(at)) for i, at in enumerate(places)}

        def see(i: int, mass: Array) -> None:
            found[i] += (mass / mass.sum(axis=0)).sum(axis=1)

        for k in range(_SWEEPS):
            if k == _SWEEPS // 2:
                for mass in found.values():
                    mass[:] = 0.0
            sweep(block, [axis.smallest for axis in axes], self.rng, see)
        firsts = [axis.table(axis.smallest).nodes.phi[:, 0] for axis in axes]
        index = [np.abs(first[:, None] - phi[0]).argmin(axis=0) for first, phi in zip(firsts, block.phi, strict=True)]
        self.rows = np.stack([at[j] for at, j in zip(places, index, strict=True)], axis=1)
        return {i: found[i] for i in wide}


def check_leading(part: Component, wide: list[int], rng: np.random.Generator) -> None:
    """NoDensity where E falls to −∞ along some direction: its leading power there is odd or its coefficient negative.

    Directions are random ones of all variables on whole lines, and of those of each interaction alone.
    """
    powers = {i: part.terms.axes[i].degrees.tolist() for i in wide}
    of: dict[tuple[int, ...], list[int]] = {}
    for k, factors in enumerate(part.terms.products):
        of.setdefault(tuple(i for i, _ in factors if i in powers), []).append(k)

    def rises(k: int) -> bool:
        """Whether a product is positive along all directions."""
        return part.theta[k] > 0 and all(i in powers and powers[i][l] % 2 == 0 for i, l in part.terms.products[k])

    for subset in [tuple(wide), *sorted(of)]:
        parts = of if len(subset) == len(wide) else chain(*(combinations(subset, k + 1) for k in range(len(subset))))
        inside = [k for variables in parts if variables for k in of.get(variables, ())]
        degrees = [sum(powers[i][l] for i, l in part.terms.products[k] if i in powers) for k in inside]
        highest = max(degrees, default=0)
        if all(rises(k) for k, degree in zip(inside, degrees, strict=True) if degree == highest > 0):
            continue
        at = rng.standard_normal((len(subset), _DIRECTIONS))
        direction = dict(zip(subset, at / np.sqrt((at**2).sum(axis=0)), strict=True))
        leading, size = np.zeros((2, highest + 1, _DIRECTIONS))
        for k, degree in zip(inside, degrees, strict=True):
            at = np.full(_DIRECTIONS, part.theta[k])
            for i, l in part.terms.products[k]:
                at *= direction[i] ** powers[i][l] if i in powers else _anywhere(part.terms.axes[i], l, rng)
            leading[degree] += at
            size[degree] += np.abs(at)
        top = np.where(np.abs(leading) > 1e-12 * size, np.arange(len(leading))[:, None], 0).max(axis=0)
        if np.any((top % 2 == 1) | (leading[top, np.arange(_DIRECTIONS)] < 0)):
            raise NoDensity("along some direction its energy falls without bound")


def _anywhere(axis: Axis, l: int, rng: np.random.Generator) -> Array:
    """A function of another axis at random nodes."""
    return rng.choice(axis.table(axis.smallest).nodes.phi[:, l], _DIRECTIONS)
