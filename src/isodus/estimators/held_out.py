"""How well an estimator predicts rows that it was not fitted to, beside a Gaussian."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from ..arrays import to_host
from ..samples import ArraySamples

__all__ = ["worse_held_out"]

_FOLDS = 5  # of which one is held out


def worse_held_out(estimator: Any, samples: ArraySamples, together: np.ndarray | None) -> float:
    """By how much its mean log P(x_i | rest) per variable is below a Gaussian's on a fifth of the rows.

    Both are fitted to the others; together: labels of rows that are not parted. 0 where it cannot be asked:
    samples that are not in memory, or too few of them.
    """
    if not samples.in_memory or getattr(estimator, "_is_held_out", False):
        return 0.0
    from .pseudo_likelihood import PseudoLikelihood

    own = clone(estimator).set_params(progress=False)
    own._is_held_out = True  # does not ask again
    if getattr(estimator, "l1", 0.0):
        debias = isinstance(estimator.l1, str) if estimator.debias == "auto" else estimator.debias
        own.set_params(l1=estimator.l1_, debias=debias)
    names = estimator._columns or [f"x{i}" for i in range(samples.n_variables)]
    train, rest = (
        (pd.DataFrame(to_host(part.X), columns=names), None if part.weight is None else to_host(part.weight))
        for part in next(samples.folds(_FOLDS, together))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fits = [fit.fit(train[0], sample_weight=train[1]) for fit in (own, PseudoLikelihood(degree=2))]
            score, gaussian = (fit.score(rest[0], sample_weight=rest[1]) for fit in fits)
        except ValueError:
            return 0.0
    return float(gaussian - score)
