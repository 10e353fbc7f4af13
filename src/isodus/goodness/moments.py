"""Moments of the samples and of the model, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..checks import count
from ..energy import cofactor_matrix, features
from ..model import PolynomialModel
from ..progress import Show
from .rows import by_power, checked, neighbours

__all__ = ["Unlike", "moment_table", "side_by_side", "unlike"]

_OFF, _RATIO, _ERRORS = 0.5, 1.5, 4.0  # a mean that is off by so many spreads, a ratio of spreads; standard errors


def moment_table(
    model: PolynomialModel,
    X: Any,
    *,
    influence: Any = None,
    dependence: int | None = None,
    n_draws: int = 10_000,
    rng: int | np.random.Generator | None = 0,
    progress: Show = None,
) -> pd.DataFrame:
    """The mean of every monomial of the model, in standardised variables, in the samples and in draws of the model.

    It shows where a model is off, not whether: there are many moments, and those that were fitted agree.

    Parameters
    ----------
    model, X, influence, dependence
        As in `residual_test`. With `influence`, stderr is that of the difference, θ̂ moving both: under the model
        ∂E[t_k]/∂θ_l = −Cov(t_k, t_l), so that it is that of the mean of t + Cov(t) ψ over rows.
    n_draws : int
        Samples of the model, as `PolynomialModel.sample` makes them.
    rng : int or numpy.random.Generator
        Where these come from.
    progress : bool or callable, optional
        A bar, by default on a terminal after a second, or a function, as in `ISODUS`.

    Returns
    -------
    DataFrame
        A row a term: observed and its stderr; model and its model_stderr (of chains, from the least effective sample
        size of the term's variables); z, the difference over the root of the sum of squares of both errors.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> from isodus.goodness import moment_table
    >>> coupled = PolynomialModel.from_dict({(0, 0): 0.5, (0, 1): 0.3, (1, 1): 0.5})
    >>> free = PolynomialModel.from_dict({(0, 0): 0.5, (0, 1): 0.0, (1, 1): 0.5})
    >>> moment_table(free, coupled.sample(1000, rng=0)).z.abs().idxmax()
    'x0*x1'
    """
    return side_by_side(model, X, influence, dependence, n_draws, rng, progress).table


class Unlike(NamedTuple):
    """Variables whose draws have another mean or spread than the samples, the worst first; and how, of the first."""

    names: list[str]
    words: str


class Moments(NamedTuple):
    """The table; whether the draws of the model are to be trusted; what they are beyond and unlike; they themselves.

    beyond: variables for which most of them are beyond all samples.
    """

    table: pd.DataFrame
    trustworthy: bool
    beyond: list[str]
    unlike: Unlike
    draws: np.ndarray


def side_by_side(
    model: PolynomialModel, X: Any, influence: Any, dependence: Any, n_draws: int, rng: Any, progress: Show
) -> Moments:
    """What `moment_table` gives, and what else draws of the model tell."""
    Y, psi, lags = checked(model, X, influence, dependence)
    draws = model.sample(count(n_draws, "n_draws"), rng=rng, progress=progress, force=True)  # to be judged
    new, info = (np.asarray(draws) - model.location) / model.scale, draws.info
    t, T = _monomials(model, Y), _monomials(model, new)
    observed, expected = t.mean(axis=1), T.mean(axis=1)
    W = (t - observed[:, None]).T
    if psi is not None:
        W += psi @ np.atleast_2d(np.cov(T))
    stderr = np.sqrt(np.square(neighbours(W, lags)).sum(axis=0)) / len(Y)
    share = np.minimum(np.minimum(info.ess, info.tail_ess) / info.n_draws, 1.0)
    least = np.append(share, 1.0)[model.basis.factors].min(axis=1)  # factors are padded with -1
    error = T.std(axis=1) / np.sqrt(np.maximum(least * len(new), 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (observed - expected) / np.hypot(stderr, error)
    columns = dict(observed=observed, stderr=stderr, model=expected, model_stderr=error, z=z)
    table = pd.DataFrame(columns, pd.Index([model.term_name(term) for term in model.basis.terms], name="term"))
    beyond = np.mean((new < Y.min(axis=0)) | (new > Y.max(axis=0)), axis=0) > 0.5
    drawn = np.asarray(draws)
    apart = unlike(drawn, Y * model.scale + model.location, model.names)
    return Moments(table, info.trustworthy, [model.names[i] for i in np.flatnonzero(beyond)], apart, drawn)


def unlike(draws: np.ndarray, X: np.ndarray, names: Sequence[str], weight: np.ndarray | None = None) -> Unlike:
    """In which variables draws of a model are unlike the samples, and how.

    A mean is off by half a spread, or a spread by half of it, and by four standard errors: each variable given the
    others may fit, and all together not. draws: (any, p); X: (n, p); weight: repetition counts (n,).
    """
    mean = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average(np.square(X - mean), axis=0, weights=weight))
    error = _ERRORS / np.sqrt(len(X))
    off, ratio = np.abs(draws.mean(axis=0) - mean) / spread, draws.std(axis=0) / spread
    far = np.abs(np.log(ratio))
    bad = np.flatnonzero((off > max(_OFF, error)) | (far > max(np.log(_RATIO), error)))
    worst = bad[np.argsort(-np.maximum(off[bad], far[bad]))]
    figures = "; ".join(
        f"{names[i]} {draws[:, i].mean():.3g} ± {draws[:, i].std():.2g}, the samples {mean[i]:.3g} ± {spread[i]:.2g}"
        for i in worst[:3]
    )
    return Unlike([names[i] for i in worst], figures)


def _monomials(model: PolynomialModel, Y: np.ndarray) -> np.ndarray:
    """Every monomial at every row, (M, n); Y: (n, p)."""
    basis, rows = model.basis, np.ascontiguousarray(Y.T)
    H, t = cofactor_matrix(basis, rows), np.empty((len(basis), len(Y)))
    phi = features(basis, rows, basis.degree)
    for i in range(len(rows)):
        for l, terms, cofactors in by_power(basis, i):
            t[terms] = phi[l - 1, i] * H[cofactors]
    return t
