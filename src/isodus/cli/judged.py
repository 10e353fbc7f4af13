"""What isodus fit says of a model beside its terms: rows held out, and draws."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from ..checks import warn
from ..comparison import predicted
from ..description import FAR_AWAY
from ..tables import Table
from .common import counted

if TYPE_CHECKING:
    from .. import PolynomialModel

__all__ = ["held_out_in_words", "held_out_scores", "rounded", "with_draws_judged"]

_OUTSIDE = 0.5  # share of draws outside the range of the samples from which the mass is elsewhere
_DRAWS = 4000  # of the model, that are held against the samples
_FOLDS = 5  # one of them is held out, to compare with a Gaussian
_MOST_TERMS = 20_000  # of a model that is fitted once more


def held_out_scores(learner: Any, table: Table) -> dict[str, Any] | None:
    """What the same fit to four fifths of the rows scores on the others, and a Gaussian with all pairs beside it.

    Identical rows are on one side. None where the model is itself a Gaussian, or is not compared with one.
    """
    from .. import PseudoLikelihood

    basis = learner.model_.basis
    if basis.degree <= 2 or basis.spaces is not None or len(basis) > _MOST_TERMS:
        return None
    rows = np.unique(table.frame.to_numpy(np.float64), axis=0, return_inverse=True)[1].ravel()
    out = np.random.default_rng(0).permutation(rows.max() + 1)[rows] % _FOLDS == 0
    count = np.ones(len(rows)) if table.weight is None else np.asarray(table.weight, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is to be said of the samples has been said
        try:
            fits = [clone(learner), PseudoLikelihood(degree=2)]
            scores = [
                fit.fit(table.frame[~out], sample_weight=count[~out]).score_samples(table.frame[out]) for fit in fits
            ]
        except ValueError:  # too few rows for so many columns
            return None
    model, gaussian = (float(np.average(score, weights=count[out])) for score in scores)
    ahead, n = model - gaussian, float(count[out].sum())
    spread = np.average(np.square(scores[0] - scores[1] - ahead), weights=count[out])
    return {"n_rows": int(out.sum()), "score": model, "gaussian_score": gaussian, "stderr": float(np.sqrt(spread / n))}


def held_out_in_words(held_out: Mapping[str, Any]) -> str:
    """Whether the model predicts rows that were held out better than a Gaussian."""
    score, gaussian = held_out["score"], held_out["gaussian_score"]
    return (
        f"held out, {held_out['n_rows']:,} rows predicted by a fit to the others: {rounded(score)}, a Gaussian "
        f"{rounded(gaussian)} (± {held_out['stderr']:.2g} for their difference; higher is better): "
        f"{predicted(score, gaussian)}"
    )


def with_draws_judged(model: PolynomialModel, verdict: Any, table: Table) -> PolynomialModel:
    """Warn if draws of the model are unlike the samples, and note it if most lie outside of them.

    Only where draws are exact, which is quick.
    """
    from ..goodness import unlike

    if model.basis.degree < 3 or verdict is None or verdict.status == "not integrable":
        return model
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draws = np.asarray(model.sample(_DRAWS, rng=0, method="exact", progress=False))
    except ValueError:  # no exact ones, or, as a warning has said, none at all
        return model
    rows = table.frame.to_numpy(np.float64)
    outside = float(np.mean(((draws < rows.min(axis=0)) | (draws > rows.max(axis=0))).any(axis=1)))
    found = unlike(draws, rows, model.names, table.weight)
    if outside > _OUTSIDE:
        note = f"{FAR_AWAY}: {outside:.0%} of its draws are outside the range of the samples"
        settings = {**model.settings, "notes": [*model.settings.get("notes", []), note]}
        model = replace(model, settings=settings)
    if found.names:
        warn(
            f"draws of the model are unlike the samples in {counted(len(found.names), 'variable')}: {found.words}. "
            "Each variable given the others may fit, but all together do not: read its terms, and do not sample from "
            "it. A Gaussian (--degree 2) can be sampled from, and what --match-moments finds (isodus.match_moments)"
        )
    return model


def rounded(score: float) -> str:
    """A score with four decimals, or, where it is huge, four digits."""
    return f"{score:.4f}" if abs(score) < 1e6 else f"{score:.4g}"
