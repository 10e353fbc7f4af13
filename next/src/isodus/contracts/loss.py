"""The contract of a loss, checked by finite differences."""

from __future__ import annotations

import numpy as np

from ..axes import Axis, packed_pairs
from ..losses import Loss, NodeRows

__all__ = ["check_loss"]

Array = np.ndarray
_STEP = 1e-4
_ENOUGH = 1e-8


def check_loss(loss: Loss, axis: Axis, x: Array, *, a: Array | None = None, seed: int = 0) -> None:
    """Raise an AssertionError where a loss breaks the contract of `Loss`.

    Slopes and curvatures are compared with finite differences of values and slopes; rows must not depend on each other.

    Parameters
    ----------
    loss : Loss
    axis : Axis
    x : array of shape (n,)
        Some values of the variable.
    a : array of shape (n, J), optional
        Coefficients at which to check; by default small random ones, the last of them positive.
    seed : int, default=0

    Raises
    ------
    AssertionError
        With the property that does not hold, and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from isodus.axes import Line
    >>> from isodus.contracts import check_loss
    >>> from isodus.losses import PseudoLikelihoodLoss
    >>> x = np.random.default_rng(0).standard_normal(200)
    >>> check_loss(PseudoLikelihoodLoss(), Line.fit(x, 4), x)
    """
    rng, J = np.random.default_rng(seed), len(axis.degrees)
    if a is None:
        a = rng.normal(0.0, 0.4, (len(x), J))
        a[:, -1] = np.abs(a[:, -1]) + 0.2  # also for a whole line
    phi, pilot = axis.functions(x), 0.5 * a
    prepared = loss.prepare(NodeRows(0, axis, x, phi, pilot))
    point, first = (loss.at(axis, a, prepared, second) for second in (True, False))
    assert first.curvature is None, "curvature is None unless it is asked for"
    assert point.curvature is not None, "curvature is there if it is asked for"
    l, m = packed_pairs(J)
    shapes = ("value", (len(x),)), ("slope", (len(x), J)), ("curvature", (len(x), len(l))), ("magnitude", (len(x),))
    for name, shape in shapes:
        assert np.shape(getattr(point, name)) == shape, (
            f"{name} has shape {np.shape(getattr(point, name))}, not {shape}"
        )
    assert np.all(point.magnitude >= 0), "magnitude is a sum of sizes"

    def value(a: Array) -> Array:
        return loss.at(axis, a, prepared, False).value

    def slope(a: Array) -> Array:
        at = loss.at(axis, a, prepared, False)
        return at.slope * np.exp(at.value - point.value)[:, None] if loss.link != "mean" else at.slope

    for k in range(J):
        _agree("slope", point.slope[:, k], _derivative(value, a, k))
        _agree("curvature", point.curvature[:, l == k], _derivative(slope, a, k)[:, m[l == k]])
    some = np.arange(len(x) // 3, len(x) // 2 + 1)
    part = loss.at(axis, a[some], loss.prepare(NodeRows(0, axis, x[some], phi[some], pilot[some])), True)
    for name in ("value", "slope", "curvature", "magnitude"):
        _agree(f"{name} of rows alone", getattr(part, name), getattr(point, name)[some])
        if name != "curvature":
            _agree(f"{name} without curvature", getattr(first, name), getattr(point, name))


def _derivative(f, a: Array, k: int) -> Array:  # type: ignore[no-untyped-def]
    """Central differences of fourth order by a_k."""
    step = np.zeros(a.shape)
    step[:, k] = _STEP
    return (8 * (f(a + step) - f(a - step)) - (f(a + 2 * step) - f(a - 2 * step))) / (12 * _STEP)


def _agree(what: str, found: Array, expected: Array) -> None:
    worst = float(np.abs(found - expected).max(initial=0.0))
    enough = _ENOUGH * (1 + float(np.abs(expected).max(initial=0.0)))
    assert worst <= enough, f"{what} is off by {worst:.2g}, where {enough:.2g} is allowed"
