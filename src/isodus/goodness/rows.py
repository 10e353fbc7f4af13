"""Rows to hold a model against: what is asked of them, parts of them, and sums where they depend on one another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..basis import MonomialBasis
from ..checks import is_index
from ..dependence import windows
from ..model import PolynomialModel

__all__ = ["by_power", "checked", "evenly", "neighbours", "signs"]

FEWEST = 10


def checked(
    model: PolynomialModel, X: Any, influence: Any, dependence: Any
) -> tuple[np.ndarray, np.ndarray | None, int]:
    """X in standardised variables, (n, p), the influence of its rows, (n, M) or None, and how far they depend."""
    if not isinstance(model, PolynomialModel):
        raise ValueError(f"model must be a PolynomialModel, such as the model_ of an estimator, not {model!r}")
    Y = model._standardised(X, "X")
    n = len(Y)
    if n < FEWEST:
        raise ValueError(f"X has {n} rows: a test needs {FEWEST} or more")
    if dependence is not None and (not is_index(dependence) or not dependence < n / 2):
        raise ValueError(f"dependence must be None or a number of rows below half of the {n}, not {dependence!r}")
    return Y, None if influence is None else _influence(model, influence, n), int(dependence or 0)


def _influence(model: PolynomialModel, influence: Any, n: int) -> np.ndarray:
    psi, shape = np.asarray(influence, dtype=np.float64), (n, len(model.basis))
    if psi.shape != shape:
        raise ValueError(f"influence has shape {psi.shape}; with a row a sample and a column a term it has {shape}")
    bad = ~np.isfinite(psi)
    if bad.any():
        row, k = np.argwhere(bad)[0]
        term = model.term_name(model.basis.terms[k])
        raise ValueError(
            f"influence holds {psi[row, k]} for {term}, the first in row {row}: "
            "it must be finite, and is zero for parameters that were held"
        )
    return psi


def evenly(n: int, most: int) -> np.ndarray:
    """All rows, or so many of them, evenly spaced."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


def neighbours(W: np.ndarray, lags: int) -> np.ndarray:
    """Sums of m = lags + 1 rows that follow one another, over √m, (n + lags, k); at the ends of fewer.

    The sum of their squares is that of Newey and West (1987): Σ_k (1 − |k|/m) Σ_t W_t W_{t+k}ᵀ.
    """
    if not lags:
        return W
    return windows(np.pad(W, ((lags, lags), (0, 0))).T, lags + 1).T / np.sqrt(lags + 1)


def signs(rng: np.random.Generator, draws: int, n: int, lags: int) -> np.ndarray:
    """Random signs, (draws, n); where rows depend on one another, sums of lags + 1 neighbouring ones, of variance 1."""
    g = 2.0 * rng.integers(0, 2, (n + lags, draws)) - 1.0
    return neighbours(g, lags)[lags : lags + n].T


def by_power(basis: MonomialBasis, i: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """(l, terms with the power l of variable i, their cofactors), in the order of `basis.local`."""
    local = basis.local(i)
    ends = enumerate(zip(local.ends[:-1], local.ends[1:], strict=True), 1)
    return [(l, local.terms[a:b], local.cofactors[a:b]) for l, (a, b) in ends if b > a]
