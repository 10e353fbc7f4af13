"""Residuals that are uniform if the model is true, variable by variable.

U_i = F(x_i | rest), F the conditional distribution function, is uniform on (0, 1) under the model, whatever the rest
(Rosenblatt, 1952). With θ̂ learned from the same n rows, θ̂ − θ ≈ ⟨ψ_j⟩, ψ_j the influence of row j, and F_n(u) the
share of residuals up to u,

    √n (F_n(u) − u) ≈ n^{−1/2} Σ_j (1{U_j ≤ u} − u + D(u)ᵀψ_j),
    D_k(u) = −⟨∂F/∂θ_k⟩ = ⟨c_k (E[y^l 1{y ≤ q} | rest] − u E[y^l | rest])⟩,     F(q | rest) = u,

for a term with the power l of y = y_i and the cofactor c_k, ⟨·⟩ the mean over rows: θ̂ moves the quantile q, and with it
what lies below. In the limit the sum is Gaussian with the covariance of its summands, so that a multiplier bootstrap
with Gaussian multipliers is a draw from that Gaussian; the largest of |·| over a grid of u is compared. Where rows
depend on one another the covariance is that of Newey and West.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..checks import count, generator
from ..energy import cofactor_matrix
from ..model import PolynomialModel
from ..significance import table_of_tests, uniform_table
from ..spaces import PLAIN, Space
from .rows import by_power, checked, evenly, neighbours

__all__ = ["residual_test", "residuals", "uniformity"]

_LEVEL = 0.05  # of the critical value
_CELLS = 64  # of (0, 1), narrower to its ends
_DRIFT_ROWS = 2000  # that D is the mean of
_BLOCK = 1 << 14  # rows


def residuals(model: PolynomialModel, X: Any) -> np.ndarray:
    """P(X_i ≤ x_i | rest) of every variable at every row, (n, p): uniform on (0, 1) under the model.

    The values of a column are independent where rows are; the columns depend on one another.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> from isodus.goodness import residuals
    >>> model = PolynomialModel.from_dict({(0, 0): 0.5, (1, 1): 0.5})  # two standard normals
    >>> residuals(model, [[0.0, 1.96]]).round(3)
    array([[0.5  , 0.975]])
    """
    Y, rng = model._standardised(X, "X"), np.random.default_rng(0)
    U = np.empty_like(Y)
    for start in range(0, len(Y), _BLOCK):
        part = np.ascontiguousarray(Y[start : start + _BLOCK].T)
        H = cofactor_matrix(model.basis, part)
        for i, y in enumerate(part):
            try:
                U[start : start + _BLOCK, i] = _distribution(space_of(model, i), _conditional(model, i, H), y, rng)
            except ValueError:
                model.conditional(i, X)  # its error tells the variable, and the rows of all blocks
                raise
    return U


def space_of(model: PolynomialModel, i: int) -> Space:
    """Where a variable of a model lives."""
    return PLAIN if model.basis.spaces is None else model.basis.spaces[i]


def _distribution(space: Space, a: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """P(y' ≤ y); among a few values, a random number up to there from the value below (Dunn and Smyth, 1996)."""
    up_to = space.cdf(a, y)
    if space.support.values is None:
        return up_to
    values = np.array(space.support.values)
    step = np.diff(values).min() / 2
    below = space.cdf(a, y - step)
    return below + rng.random(len(y)) * (up_to - below)


def _conditional(model: PolynomialModel, i: int, H: np.ndarray) -> np.ndarray:
    """a_1 … a_s with P(x_i | rest) ∝ exp(−Σ_l a_l y_i^l), (s, n); H: the cofactors at every row."""
    a = np.zeros((model.basis.degree, H.shape[1]))
    for l, terms, cofactors in by_power(model.basis, i):
        a[l - 1] = model.theta[terms] @ H[cofactors]
    return a


def residual_test(
    model: PolynomialModel,
    X: Any,
    *,
    influence: Any = None,
    dependence: int | None = None,
    n_bootstrap: int = 10_000,
    rng: int | np.random.Generator | None = 0,
) -> pd.DataFrame:
    """Whether the residuals of each variable are uniform, by Kolmogorov and Smirnov.

    Parameters
    ----------
    model : PolynomialModel
        Its conditional densities must exist at every row.
    X : array or DataFrame of shape (n, p)
        Samples.
    influence : array of shape (n, n_terms), optional
        If the model was learned from these very rows: the influence of each on θ in standardised variables, so that
        θ̂ − θ ≈ its mean over rows; zero for parameters that were held. Without it the model is taken as given, as it
        is for new samples; the residuals of samples that it was learned from would look better than they are.
    dependence : int, optional
        How many rows apart rows of a series still depend on one another.
    n_bootstrap : int
        Draws of the statistic, where its distribution is not known exactly.
    rng : int or numpy.random.Generator
        Where these come from.

    Returns
    -------
    DataFrame
        A row a variable. statistic: the largest |F_n(u) − u|, over all u, or over 63 where the distribution is drawn;
        critical: what it exceeds once in twenty times under the model; p_value; q_value: the false discovery rate over
        variables, by Benjamini and Hochberg.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> from isodus.goodness import residual_test
    >>> wells = PolynomialModel.from_dict({(0, 0): -1.0, (0, 0, 0, 0): 0.5, (1, 1): 0.5}, names=["a", "b"])
    >>> normal = PolynomialModel.from_dict({(0, 0): 0.5, (1, 1): 0.5}, names=["a", "b"])
    >>> table = residual_test(normal, wells.sample(1000, rng=0))
    >>> list(table.index[table.q_value < 0.05])
    ['a']
    """
    Y, psi, lags = checked(model, X, influence, dependence)
    n_bootstrap, rng = count(n_bootstrap, "n_bootstrap"), generator(rng)
    return uniformity(model, Y, residuals(model, X), psi, lags, n_bootstrap, rng)


def uniformity(
    model: PolynomialModel,
    Y: np.ndarray,
    U: np.ndarray,
    psi: np.ndarray | None,
    lags: int,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """The table of `residual_test`; U: the residuals of Y, (n, p)."""
    if psi is None and not lags:
        return uniform_table(model.names, U)
    n, u, found = len(U), _edges(_CELLS)[1:-1], []
    some = Y[evenly(n, _DRIFT_ROWS)]
    for i in range(U.shape[1]):
        W = (U[:, i, None] <= u) - u
        statistic = np.abs(W.mean(axis=0)).max()
        if psi is not None:
            W += psi[:, model.basis.local(i).terms] @ drift(model, i, some)
        W = neighbours(W, lags)
        values, vectors = np.linalg.eigh(W.T @ W)
        root = vectors * np.sqrt(np.maximum(values, 0.0)) / n
        drawn = np.abs(rng.standard_normal((n_bootstrap, len(u))) @ root.T).max(axis=1)
        p = (1 + np.count_nonzero(drawn >= statistic)) / (1 + n_bootstrap)
        found.append((statistic, np.quantile(drawn, 1 - _LEVEL), p))
    return table_of_tests(model.names, np.array(found))


def drift(model: PolynomialModel, i: int, Y: np.ndarray) -> np.ndarray:
    """D of the terms of variable i at the inner edges of the cells, (K, cells − 1); Y: (n, p).

    E[y^l 1{y ≤ q_u}] = ∫_0^u (q_v)^l dv, a sum over cells of (0, 1).
    """
    basis, n = model.basis, len(Y)
    H = cofactor_matrix(basis, np.ascontiguousarray(Y.T))
    u, middle = _edges(_CELLS), _edges(2 * _CELLS)[1::2]
    space = space_of(model, i)
    q = space.quantile(np.tile(_conditional(model, i, H), _CELLS), np.repeat(middle, n)).reshape(_CELLS, n)
    below = np.cumsum(space.features(q, basis.degree) * np.diff(u)[:, None], axis=1)
    B = below[:, :-1] - u[1:-1, None] * below[:, -1:]
    return np.concatenate([H[cofactors] @ B[l - 1].T for l, _, cofactors in by_power(basis, i)]) / n


def _edges(cells: int) -> np.ndarray:
    """Of cells of (0, 1), crowded to both ends, where powers of quantiles grow."""
    t = np.linspace(0.0, 1.0, cells + 1)
    return t * t * (3.0 - 2.0 * t)
