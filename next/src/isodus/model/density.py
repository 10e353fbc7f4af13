"""The energy of a model at rows of X, its gradient, and the coefficients of each variable given the rest.

E(x) = Σ_k θ_k f_k(x) − Σ_i log q_i(x_i), with f_k the products of functions and q_i the base measures of the axes, so
that the density is exp(−E)/Z in the units of X. Rows: X (n, p), finite, columns in the order of the axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..axes import Axis
from ..terms import Terms

__all__ = ["coefficients", "energy", "on_axes", "score_function", "somewhere"]

Array = np.ndarray
_ROWS = 4096  # in turn
_STEP = 1e-4  # units of an axis, of differences


def on_axes(axes: Sequence[Axis], X: Array) -> Array:
    """Which values lie on their axes, (n, p)."""
    return np.stack([axis.contains(x) for axis, x in zip(axes, X.T, strict=True)], axis=1)


def energy(terms: Terms, theta: Array, X: Array) -> Array:
    """E(x), (n,); +inf where a value is not on its axis."""
    out = np.full(len(X), np.inf)
    inside = np.flatnonzero(on_axes(terms.axes, X).all(axis=1))
    last = [np.array([factors[-1][0] == i for factors in terms.products]) for i in terms.nodes]
    for rows in _parts(inside):
        phi, H = _functions(terms, X[rows])
        value = -sum(axis.log_base(x) for axis, x in zip(terms.axes, X[rows].T, strict=True))
        for i in terms.nodes:  # each term once, as one of its last variable
            value = value + (_coefficients(terms, np.where(last[i], theta, 0.0), H, i) * phi[i]).sum(axis=1)
        out[rows] = value
    return out


def coefficients(terms: Terms, theta: Array, X: Array, i: int) -> Array:
    """a with P(x_i | rest) ∝ q_i exp(−Σ_l a_l φ_il), (n, J). Column i is not read, nor those that do not matter."""
    local, rest = terms.local[i], np.zeros(len(terms.axes), bool)
    for k in local.terms:
        rest[[j for j, _ in terms.products[k] if j != i]] = True
    X = np.where(rest, X, [somewhere(axis) for axis in terms.axes])
    out = np.empty((len(X), len(terms.axes[i].degrees)))
    for rows in _parts(np.arange(len(X))):
        out[rows] = _coefficients(terms, theta, _functions(terms, X[rows])[1], i)
    return out


def score_function(terms: Terms, theta: Array, X: Array) -> Array:
    """∂ log density/∂x_i, (n, p), of axes that have derivatives; NaN in rows with a value that is not on its axis.

    Functions have derivatives by the axis' coordinate; those of the coordinate and of the base measure are central
    differences of fourth order.
    """
    out = np.full(X.shape, np.nan)
    for rows in _parts(np.flatnonzero(on_axes(terms.axes, X).all(axis=1))):
        _, H = _functions(terms, X[rows])
        for i, axis in enumerate(terms.axes):
            assert axis.derivatives is not None
            x = X[rows, i]
            a = _coefficients(terms, theta, H, i)
            inner = (a * axis.derivatives(x).first).sum(axis=1)
            out[rows, i] = _slope(axis, axis.log_base, x) - inner * _slope(axis, axis.coordinate, x)
    return out


def _functions(terms: Terms, X: Array) -> tuple[list[Array], Array]:
    """The functions of each variable, (n, J) each, and the cofactors, (cofactors, n)."""
    phi = [axis.functions(x) for axis, x in zip(terms.axes, X.T, strict=True)]
    return phi, terms.H(phi)


def _coefficients(terms: Terms, theta: Array, H: Array, i: int) -> Array:
    return (terms.scatter(theta, i).T @ H[terms.local[i].cofactors]).T


def somewhere(axis: Axis) -> float:
    """A value on the axis."""
    places = axis.nodes(axis.smallest).places
    return float(places[len(places) // 2])


def _slope(axis: Axis, f: Callable[[Array], Array], x: Array) -> Array:
    """f′(x) by values around x that lie on the axis; closer to x where an end is near, NaN on it."""
    out, h = np.full(len(x), np.nan), np.full(len(x), _STEP * axis.unit)
    for _ in range(4):
        at = [x + k * h for k in (-2, -1, 1, 2)]
        waiting = np.isnan(out) & np.all([axis.contains(place) for place in at], axis=0)
        if waiting.any():
            lower, low, high, higher = (f(place[waiting]) for place in at)
            near, far = (high - low) / (at[2] - at[1])[waiting], (higher - lower) / (at[3] - at[0])[waiting]
            out[waiting] = (4 * near - far) / 3
        h = h / 100
    return out


def _parts(rows: Array) -> Iterator[Array]:
    for start in range(0, len(rows), _ROWS):
        yield rows[start : start + _ROWS]
