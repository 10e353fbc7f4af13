"""The contract of an axis, checked against independent calculations."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable

import numpy as np

from ..axes.base import Array, Axis
from .reference import LEVELS, Case, agree

__all__ = ["PROPERTIES", "check_axis"]

_NEAR = 1e75  # functions above it at places far away are cut
_SHARE = 1e-7  # what a distribution function may be off


def check_axis(axis: Axis, *, x: Array | None = None, seed: int = 0) -> None:
    """Raise an AssertionError where an axis breaks the contract of `Axis`.

    The integrals of random exponents (flat, with one peak, with two) are compared with those of an independent rule in
    x, which knows only `functions`, `log_base` and `ends`; distribution functions with the same rule, quantiles and
    draws with distribution functions, and derivatives with finite differences.

    Parameters
    ----------
    axis : Axis
        The axis.
    x : array of shape (n,), optional
        Some values of the variable; by default the middle ones of the nodes.
    seed : int, default=0
        Seed of exponents and draws.

    Raises
    ------
    AssertionError
        With the property that does not hold, the row and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from isodus.axes import Line
    >>> from isodus.contracts import check_axis
    >>> x = np.random.default_rng(0).standard_normal(1000)
    >>> check_axis(Line.fit(x, 4), x=x)
    """
    if x is None:
        places = axis.nodes(axis.smallest).places
        x = places if len(places) < axis.smallest else places[len(places) // 4 : -(len(places) // 4)]
    case = Case(axis, np.asarray(x, float), seed)
    for holds in PROPERTIES:
        holds(case)


# ------------------------------------------------------------------------------------------------- properties


def shapes(case: Case) -> None:
    """Degrees, functions, base and nodes have their shapes; functions are finite, degrees rise, names differ."""
    axis, x = case.axis, case.x
    J, nodes = len(axis.degrees), axis.nodes(axis.smallest)
    N = len(nodes.places)
    got = {
        "degrees": (np.shape(axis.degrees), (J,)),
        "functions(x)": (np.shape(axis.functions(x)), (len(x), J)),
        "log_base(x)": (np.shape(axis.log_base(x)), (len(x),)),
        "nodes().places": (np.shape(nodes.places), (N,)),
        "nodes().log_weights": (np.shape(nodes.log_weights), (N,)),
        "nodes().phi": (np.shape(nodes.phi), (N, J)),
        "nodes().check": (np.shape(nodes.check), (N, *np.shape(nodes.check)[1:2])),
    }
    for what, (shape, right) in got.items():
        assert shape == right, f"shapes: {what} has shape {shape}, not {right}"
    rising = J > 0 and np.all(np.diff(axis.degrees) >= 0) and np.min(axis.degrees) >= 1
    assert rising, f"shapes: degrees must start at 1 or more and not fall, not {list(axis.degrees)}"
    assert np.all(np.diff(nodes.places) >= 0), "shapes: places of nodes must be in order"
    for what, values in (("functions(x)", axis.functions(x)), ("log_base(x)", axis.log_base(x))):
        assert np.all(np.isfinite(values)), (
            f"shapes: {what} is not finite in row {np.argwhere(~np.isfinite(values))[0][0]}"
        )
    names = [axis.name(l, "x") for l in range(J)]
    assert len(set(names)) == J, f"shapes: the functions have the same name twice: {names}"


def functions_at_nodes(case: Case) -> None:
    """`nodes().phi` are the functions at `nodes().places`."""
    nodes = case.axis.nodes(case.axis.smallest)
    near = np.abs(nodes.phi) < _NEAR
    phi = np.where(near, case.axis.functions(nodes.places), nodes.phi)
    agree("functions at nodes", nodes.phi, phi, 1e-8 * (1 + np.abs(phi)))


def ends_and_base(case: Case) -> None:
    """`log_base` is −∞ exactly where `contains` says that x is not on the axis; none lies beyond an end."""
    axis = case.axis
    start, end = axis.ends
    far = [-np.inf, np.inf, np.nan, -1e300, 1e300]
    x = np.concatenate([case.x, axis.nodes(axis.smallest).places, far])
    log_base = axis.log_base(x)
    wrong = np.isneginf(log_base) == axis.contains(x)
    assert not wrong.any(), f"base: log_base is {log_base[wrong][0]} at {x[wrong][0]}, contains says otherwise"
    on = x[axis.contains(x)]
    away = 1e-9 * (abs(start) + abs(end)) if np.isfinite([start, end]).all() else 0.0
    beyond = (on < start - away) | (on > end + away)
    assert case.periodic or not beyond.any(), f"ends: {on[beyond][:1]} is on the axis but beyond its ends, {axis.ends}"
    if case.periodic:
        agree("ends: functions one turn further", axis.functions(case.x + end - start), axis.functions(case.x), 1e-9)


def integrals(case: Case) -> None:
    """Log Z, E[φ] and Cov[φ] are those of the reference, within ten times what each row states."""
    got, reference = case.integrals, case.reference
    size = 1 + np.maximum(np.abs(reference.mean).max(axis=1), np.abs(reference.covariance).max(axis=1))  # type: ignore[arg-type]
    allowed = 10 * got.error + 1e-13 + 10 * reference.error
    agree("log Z", got.log_Z, reference.log_Z, allowed + 1e-15 * np.abs(reference.log_Z))
    agree("E[φ]", got.mean, reference.mean, (allowed * size)[:, None])
    agree("Cov[φ]", got.covariance, reference.covariance, (allowed * size)[:, None])


def first_integrals(case: Case) -> None:
    """Without second moments, log Z and E[φ] are the same."""
    got, first = case.integrals, case.axis.integrals(case.a, second=False)
    assert first.covariance is None, "integrals: second=False must give no covariance"
    agree("log Z with second=False", first.log_Z, got.log_Z, 1e-10 * (1 + np.abs(got.log_Z)))
    agree("E[φ] with second=False", first.mean, got.mean, 1e-10 * (1 + np.abs(got.mean)))


def distribution(case: Case) -> None:
    """`cdf` is the integral of the density."""
    rows, places, below = case.levels
    allowed = _SHARE + 10 * (case.integrals.error + case.reference.error)[rows]
    agree("cdf", case.axis.cdf(case.a[rows], places), below, allowed, rows)


def quantiles(case: Case) -> None:
    """`quantile` inverts `cdf`, and lies on the axis."""
    axis = case.axis
    rows, v = np.repeat(np.arange(len(case.a)), len(LEVELS)), np.tile(LEVELS, len(case.a))
    x = axis.quantile(case.a[rows], v)
    assert axis.contains(x).all(), f"quantile: {x[~axis.contains(x)][0]} does not lie on the axis"
    a, rounding = case.a[rows], 4 * np.finfo(float).eps * (np.abs(x) + np.abs(case.x).max())
    limits = axis.ends if case.periodic else (-np.inf, np.inf)
    before, after = (axis.cdf(a, np.clip(x + side * rounding, *limits)) for side in (-1, 1))
    at = np.clip(v, np.minimum(before, after), np.maximum(before, after))
    agree("cdf of quantile", at, v, _SHARE + 10 * case.integrals.error[rows], rows)


def draws(case: Case) -> None:
    """Draws follow `cdf` (Kolmogorov and Smirnov's distance)."""
    axis, rng, n = case.axis, np.random.default_rng(case.seed), 1000
    for row in range(0, len(case.a), 3):
        a = np.repeat(case.a[row : row + 1], n, axis=0)
        x = axis.draw(a, rng)
        assert axis.contains(x).all(), f"draws: some of row {row} do not lie on the axis"
        values, counts = np.unique(x, return_counts=True)
        distance = np.abs(counts.cumsum() / n - axis.cdf(a[: len(values)], values)).max()
        assert distance < 2.5 / np.sqrt(n), (
            f"draws: those of row {row} are {distance:.3f} from cdf (Kolmogorov-Smirnov)"
        )


def derivatives(case: Case) -> None:
    """`derivatives` are those of the functions in the axis's coordinate (central differences)."""
    axis = case.axis
    if axis.derivatives is None:
        return
    at, (left, right), run = axis.derivatives(case.inside), case.beside, case.run
    below, above = axis.derivatives(left), axis.derivatives(right)
    slope = (axis.functions(right) - axis.functions(left)) / run[:, None]
    bend = (above.first - below.first) / run[:, None]
    agree("φ′", at.first, slope, 1e-4 * np.abs(slope).max(axis=0) + 1e-9)
    agree("φ″", at.second, bend, 1e-4 * np.abs(bend).max(axis=0) + 1e-9)


def boundary(case: Case) -> None:
    """The weight h of score matching is not negative, vanishes where the axis ends, and has the stated slope."""
    axis = case.axis
    if axis.boundary is None:
        return
    h, (left, right) = axis.boundary(case.inside), case.beside
    assert np.all(h.weight >= 0), f"boundary: the weight is negative at {case.inside[h.weight < 0][0]}"
    ends = np.array([] if case.periodic else axis.ends)
    ends = ends[axis.contains(ends)]
    agree("boundary: h at the ends", axis.boundary(ends).weight, 0 * ends, 1e-9)
    slope = (axis.boundary(right).weight - axis.boundary(left).weight) / case.run
    agree("boundary: h′", h.slope, slope, 1e-4 * np.abs(slope).max() + 1e-9)


def powers(case: Case) -> None:
    """`powers()` is triangular and writes all functions in powers of one variable."""
    if case.axis.powers is None:
        return
    M, phi = case.axis.powers(), case.axis.functions(case.inside)
    triangular = M.shape == (phi.shape[1] + 1,) * 2 and np.allclose(M, np.tril(M)) and M[0, 0] == 1
    assert triangular, "powers: not a triangular matrix with a row for the constant and for each function"
    z = (phi[:, 0] - M[1, 0]) / M[1, 1]
    terms = M[1:] * (z[:, None, None] ** np.arange(len(M)))
    agree("powers", phi, terms.sum(axis=2), 1e-9 * np.abs(terms).sum(axis=2))


def files(case: Case) -> None:
    """What `to_dict` writes is read again as the same axis; an axis that no file keeps raises a ValueError."""
    try:
        data = case.axis.to_dict()
    except ValueError:
        return
    _same(case, Axis.from_dict(json.loads(json.dumps(data))), "files")


def pickles(case: Case) -> None:
    """A pickled axis is the same."""
    try:
        data = pickle.dumps(case.axis)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"pickling: {error}; define classes and functions in a module") from error
    _same(case, pickle.loads(data), "pickling")


PROPERTIES: list[Callable[[Case], None]] = [
    shapes,
    functions_at_nodes,
    ends_and_base,
    integrals,
    first_integrals,
    distribution,
    quantiles,
    draws,
    derivatives,
    boundary,
    powers,
    files,
    pickles,
]


def _same(case: Case, other: Axis, what: str) -> None:
    assert type(other) is type(case.axis), f"{what}: read as {type(other).__name__}, not {type(case.axis).__name__}"
    for name, f in (("functions", Axis.functions), ("log_base", Axis.log_base)):
        mine, read = (getattr(axis, f.__name__)(case.x) for axis in (case.axis, other))
        assert np.array_equal(mine, read), f"{what}: {name} differ by {np.abs(mine - read).max():.1e}"
    mine, read = (axis.integrals(case.a, second=False).log_Z for axis in (case.axis, other))
    assert np.array_equal(mine, read), f"{what}: log Z differs by {np.abs(mine - read).max():.1e}"
