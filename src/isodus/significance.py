"""How sure estimates are: intervals, p-values, false discovery rates, joint tests; from θ and its covariance alone.

A covariance is a matrix (M, M) with NaN for parameters that were held, or a sparse one, which knows only what it holds:
beyond a few thousand parameters that is the blocks of terms with the same variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri, stdtr, stdtrit
from scipy.stats import chi2, f, kstwo

__all__ = [
    "CORRECTIONS",
    "FLAT",
    "Covariance",
    "WaldTest",
    "block",
    "check_level",
    "in_other_units",
    "p_values",
    "q_values",
    "stderr",
    "table_of_tests",
    "uniform_table",
    "wald",
    "width",
]

Covariance: TypeAlias = "np.ndarray | csr_array"
CORRECTIONS = ("bh", "by")
_DRAWS = 20_000
FLAT = 1e-10  # of correlations: directions that have no variance of their own


class WaldTest(NamedTuple):
    """A test that several parameters are zero: θᵀC⁻¹θ is χ² with as many degrees of freedom if they are.

    Where the number of samples is known the p-value is that of Hotelling's T², which allows for C being estimated.
    """

    statistic: float
    df: int
    p_value: float

    def in_words(self, name: str = "Wald χ²") -> str:
        """The test as a text would cite it."""
        p = "p < 1e-100" if self.p_value < 1e-100 else f"p = {self.p_value:.2g}"
        return f"{name} = {self.statistic:.4g}, {self.df:.0f} df, {p}"


def check_level(level: Any, name: str = "level") -> float:
    """A probability between 0 and 1, neither of them."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"{name} must lie between 0 and 1, such as 0.95, not {level!r}")
    return float(level)


def stderr(covariance: Covariance | None, n_terms: int) -> np.ndarray:
    """Standard errors, (M,); NaN where there is none."""
    if covariance is None:
        return np.full(n_terms, np.nan)
    with np.errstate(invalid="ignore"):  # below zero by rounding, where terms could not be told apart: not known
        return np.sqrt(covariance.diagonal())


def in_other_units(covariance: Covariance | None, T: csr_array) -> Covariance | None:
    """T C Tᵀ, with NaN for what was held, and for what takes a part of C that a sparse one does not know."""
    if covariance is None:
        return None
    held = np.isnan(covariance.diagonal())
    if isinstance(covariance, np.ndarray):
        C = np.where(held[:, None] | held, 0.0, covariance)
        out = T @ (T @ C).T
        out[held] = out[:, held] = np.nan
        return out
    C, T = csr_array(covariance), csr_array(T)
    reach = csr_array((np.ones(T.nnz), T.indices, T.indptr), shape=T.shape)
    known = csr_array((np.ones(C.nnz), C.indices, C.indptr), shape=C.shape)
    C = csr_array((np.nan_to_num(C.data), C.indices, C.indptr), shape=C.shape)
    there, needed = (reach @ known @ reach.T).tocoo(), np.diff(reach.indptr)
    rows, columns = there.row, there.col
    values = np.asarray((T @ C @ T.T)[rows, columns]).ravel()
    unknown = held[rows] | held[columns] | (there.data < needed[rows] * needed[columns])
    return csr_array((np.where(unknown, np.nan, values), (rows, columns)), shape=C.shape)


def block(covariance: Covariance, terms: np.ndarray) -> np.ndarray:
    """The covariance of some of the parameters; NaN where it is not known."""
    if isinstance(covariance, np.ndarray):
        return covariance[np.ix_(terms, terms)]
    part = covariance[terms][:, terms].tocoo()
    out = np.full(part.shape, np.nan)
    out[part.row, part.col] = part.data
    return out


def p_values(theta: np.ndarray, errors: np.ndarray, df: float | None = None) -> np.ndarray:
    """Two-sided, of θ = 0, by the normal distribution; NaN where there is no standard error.

    df: the degrees of freedom of the errors, where they are known: then by Student's t.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        z = -np.abs(theta) / errors
        return 2 * (ndtr(z) if df is None else stdtr(df, z))


def q_values(p: np.ndarray, correction: str = "bh") -> np.ndarray:
    """The least false discovery rate at which each is among the discoveries; NaN stays NaN.

    "bh": Benjamini and Hochberg (1995), for tests that are independent or depend on one another positively; "by":
    Benjamini and Yekutieli (2001), whatever their dependence, larger by Σ_k 1/k.
    """
    if correction not in CORRECTIONS:
        raise ValueError(f"correction must be 'bh' or 'by', not {correction!r}")
    out, there = np.full(len(p), np.nan), np.flatnonzero(np.isfinite(p))
    m = len(there)
    if not m:
        return out
    order = there[np.argsort(p[there], kind="stable")]
    rank = np.arange(1, m + 1)
    factor = m * (np.sum(1 / rank) if correction == "by" else 1.0)
    out[order] = np.minimum(np.minimum.accumulate((p[order] * factor / rank)[::-1])[::-1], 1.0)
    return out


def width(covariance: Covariance | None, level: float, simultaneous: bool = False, df: float | None = None) -> float:
    """How many standard errors an interval reaches to either side; df: as in `p_values`.

    simultaneous: so many that all intervals hold at once: the quantile of max|z|, z Gaussian with the correlations of
    the estimates. That is what a Gaussian multiplier bootstrap draws: Σ_i g_i ψ_i, with ψ_i the influence of sample i,
    has the covariance Σ_i ψ_i ψ_iᵀ.
    """
    if not simultaneous:
        return float(ndtri(0.5 + level / 2) if df is None else stdtrit(df, 0.5 + level / 2))
    if not isinstance(covariance, np.ndarray):
        raise ValueError(
            "simultaneous intervals need the covariance of all parameters, and "
            + ("the model has none" if covariance is None else "of so many only blocks are known")
        )
    size = np.sqrt(np.diagonal(covariance))
    known = np.flatnonzero(size > 0)
    if not len(known):
        return float("nan")
    R = covariance[np.ix_(known, known)] / size[known] / size[known, None]
    values, vectors = np.linalg.eigh(R)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(0)
    largest = np.concatenate(
        [np.abs(root @ rng.standard_normal((len(known), part))).max(axis=0) for part in [1000] * (_DRAWS // 1000)]
    )
    if df is not None:
        largest /= np.sqrt(rng.chisquare(df, len(largest)) / df)
    return float(np.quantile(largest, level))


def wald(theta: np.ndarray, covariance: np.ndarray, df: float | None = None) -> WaldTest:
    """That all of θ is zero; directions without a variance are left out, and what was held (NaN) with them.

    df: the degrees of freedom of the covariance, if they are known; n − 1 for independent samples.
    """
    known = np.flatnonzero(np.diagonal(covariance) > 0)
    C = covariance[np.ix_(known, known)]
    if not len(known) or not np.all(np.isfinite(C)):
        return WaldTest(float("nan"), 0, float("nan"))
    size = np.sqrt(np.diagonal(C))
    values, vectors = np.linalg.eigh(C / size / size[:, None])
    good = values > FLAT * values[-1]
    z = vectors[:, good].T @ (theta[known] / size) / np.sqrt(values[good])
    statistic, k = float(z @ z), int(np.count_nonzero(good))
    if df is None:
        return WaldTest(statistic, k, float(chi2.sf(statistic, k)))
    left = df - k + 1
    p = float(f.sf(statistic * left / (k * df), k, left)) if left > 0 else float("nan")
    return WaldTest(statistic, k, p)


def uniform_table(names: Sequence[str], U: np.ndarray) -> pd.DataFrame:
    """Whether each column of U, (n, p), is uniform on (0, 1), by Kolmogorov and Smirnov: exact for independent rows."""
    n = len(U)
    ordered, rank = np.sort(U, axis=0), np.arange(1, n + 1)[:, None] / n
    statistic = np.maximum(rank - ordered, ordered - rank + 1 / n).max(axis=0)
    return table_of_tests(
        names, np.stack([statistic, np.full_like(statistic, _critical(n)), kstwo.sf(statistic, n)], axis=1)
    )


@lru_cache(maxsize=64)
def _critical(n: int) -> float:
    return float(kstwo.isf(0.05, n))


def table_of_tests(names: Sequence[str], found: np.ndarray) -> pd.DataFrame:
    """A row a variable; found: statistic, what it exceeds once in twenty times, and p-value, (p, 3)."""
    table = pd.DataFrame(found, pd.Index(names, name="variable"), ["statistic", "critical", "p_value"])
    return table.assign(q_value=q_values(found[:, 2]))
