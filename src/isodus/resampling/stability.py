"""Which terms an estimator with a penalty keeps in halves of the samples.

Stability selection (Meinshausen and Bühlmann, 2010) with complementary pairs of halves (Shah and Samworth, 2013): a
term that most halves keep is there for more than one sample's sake.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import clone

from ..basis import MonomialBasis
from ..checks import count
from ..model import PolynomialModel
from ..penalties import weights
from ..progress import Show
from ..significance import check_level
from .trials import Generator, counts, positions, repeat

__all__ = ["expected_false", "selection_frequencies"]


def selection_frequencies(
    estimator: Any,
    X: Any,
    n_draws: int = 100,
    *,
    share: float = 0.5,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    rng: int | Generator | None = 0,
    progress: Show = None,
) -> pd.DataFrame:
    """In which share of random halves of the samples an estimator with a penalty keeps each term.

    A half is fitted as all samples are: ``l1="auto"`` chooses its penalty again, a number stays. (What all chose would
    not do: of penalties that leave the same terms it is the strongest, and halves would drop clear ones.)

    Parameters
    ----------
    estimator : ISODUS, PseudoLikelihood or ScoreMatching
        With a penalty, such as ``l1="auto"``.
    n_draws, share : int, float
        How many halves, an even number, and which share of the rows each has, at most 0.5.
    X, sample_weight, n_jobs, rng, progress
        As in `bootstrap`.

    Returns
    -------
    DataFrame
        A row a penalised term, the most frequent first: term, variables, order; selected, whether the fit to all has
        it; frequency, with a standard error that vanishes with more halves of the same samples; and set_selected,
        set_frequency, set_stderr, the same of the set of its variables, which is there if any of its terms is.

    Examples
    --------
    >>> from isodus import PseudoLikelihood
    >>> from isodus.datasets import regular_gaussian
    >>> X = regular_gaussian(10).sample(2000, rng=0)
    >>> table = selection_frequencies(PseudoLikelihood(degree=2, l1="auto"), X, n_draws=4)
    >>> len(table), int(table.selected.sum()), int((table.frequency > 0.9).sum())
    (45, 15, 15)
    """
    if count(n_draws, "n_draws") < 4 or n_draws % 2:
        raise ValueError(f"n_draws must be even, 4 or more, as halves come in complementary pairs; not {n_draws}")
    if check_level(share, "share") > 0.5:
        raise ValueError(f"share must be at most 0.5, since two parts have no common row; not {share!r}")
    if not getattr(estimator, "l1", None):
        raise ValueError(f'{type(estimator).__name__} has no penalty and keeps every term: set l1="auto" or a number')
    full = clone(estimator).fit(X, sample_weight=sample_weight)
    limits = dict(min_degree=full.min_degree, max_order=full.max_order)
    basis = full.basis or MonomialBasis(full.n_features_in_, full.degree, **limits)
    columns = full._columns or full.model_.names
    cost = weights(basis, columns, full.l1_weights, full.include, full.exclude, full.penalize_self)
    if not np.any((cost > 0) & np.isfinite(cost)):
        raise ValueError("no term is penalised, so that all are kept: leave some out of include and l1_weights")
    candidates, weight = basis.only(np.flatnonzero((cost > 0) & np.isfinite(cost))), counts(sample_weight, len(X))
    task = partial(_halves, estimator, X, weight, int(share * len(weight)), candidates)
    pairs, *_ = repeat(task, n_draws // 2, rng, n_jobs, progress, "pairs of halves")
    return _frequency_table(candidates, full.model_, np.array(pairs))


def expected_false(frequencies: pd.DataFrame, threshold: float = 0.9, low: float | None = None) -> float:
    """A bound on how many terms are frequent by chance; frequencies: what `selection_frequencies` found.

    Of the terms that a half keeps with a probability of at most `low`, no more than low·min(q, low·M)/(2 threshold − 1)
    reach the threshold on average; M: the number of terms, q: how many a half keeps (Shah and Samworth, 2013). With low
    = q/M, the default, that is q²/((2 threshold − 1) M), as Meinshausen and Bühlmann have it: of use if q² is below M.

    >>> import pandas as pd
    >>> from isodus.resampling import expected_false
    >>> expected_false(pd.DataFrame({"frequency": [1.0, 0.5, 0.5, 0.0]}), threshold=0.75)
    2.0
    """
    if check_level(threshold, "threshold") <= 0.5:
        raise ValueError(f"threshold must lie above 0.5, not {threshold!r}")
    M, q = len(frequencies), float(frequencies["frequency"].sum())
    low = q / M if low is None else check_level(low, "low")
    return low * min(q, low * M) / (2 * threshold - 1)


def _halves(estimator: Any, X: Any, weight: np.ndarray, size: int, basis: MonomialBasis, rng: Generator) -> np.ndarray:
    """Which terms the fits to two parts without a common row keep, (2, M)."""
    own = np.zeros((2, len(weight)))
    for row, part in zip(own, rng.permutation(len(weight))[: 2 * size].reshape(2, size), strict=True):
        row[part] = weight[part]
    return np.array([_kept(basis, clone(estimator).fit(X, sample_weight=row).model_) for row in own])


def _kept(candidates: MonomialBasis, model: PolynomialModel) -> np.ndarray:
    """Which candidates a model has, (M,)."""
    at, kept = positions(candidates, model.basis.factors)[model.estimate != 0], np.zeros(len(candidates), bool)
    kept[at[at >= 0]] = True
    return kept


def _frequency_table(candidates: MonomialBasis, full: PolynomialModel, pairs: np.ndarray) -> pd.DataFrame:
    """pairs: (B, 2, M), which candidates are kept in halves."""
    M, own = len(candidates), _kept(candidates, full)
    table = pd.DataFrame({"term": [full.term_name(term) for term in candidates.terms]})
    table["variables"] = [full.term_name(tuple(sorted(set(term)))) for term in candidates.terms]
    table["order"], (codes, _) = candidates.orders, pd.factorize(table["variables"])
    member = csr_array((np.ones(M), (np.arange(M), codes)))
    any_of = lambda kept: (kept.reshape(-1, M) @ member > 0).reshape(*kept.shape[:-1], -1)[..., codes]
    for prefix, selected, kept in (("", own, pairs), ("set_", any_of(own), any_of(pairs))):
        by_pair = kept.mean(axis=1)
        table[f"{prefix}selected"], table[f"{prefix}frequency"] = selected, by_pair.mean(axis=0)
        table[f"{prefix}stderr"] = by_pair.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return table.sort_values("frequency", ascending=False, kind="stable", ignore_index=True)
