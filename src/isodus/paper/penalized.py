"""The L1-regularised estimators of the paper, as its text has them and as its code does; precisions of Gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ISODUS, PolynomialModel, PseudoLikelihood, ScoreMatching
from .methods import OURS, SCORE, Fit, Make, learn, paper_isodus

__all__ = [
    "CODE",
    "FORMS",
    "LAMBDA_IS",
    "LAMBDA_PL",
    "LIKELIHOOD_CODE",
    "LIKELIHOOD_TEXT",
    "LOG",
    "OF_TEXT",
    "TEXT",
    "chosen",
    "couplings",
    "forms",
    "learned",
    "papers",
    "precision",
    "stated",
]

TEXT = "ISODUS, paper, all penalised"  # the L1 term is over all of K_i, the diagonal too
CODE = "ISODUS, paper, diagonal free"
LOG = "ISODUS, paper, log objective"
LIKELIHOOD_TEXT = "pseudo-likelihood, all penalised"
LIKELIHOOD_CODE = "pseudo-likelihood, diagonal free"
FORMS = (TEXT, CODE, LOG, LIKELIHOOD_TEXT, LIKELIHOOD_CODE)
OF_TEXT = (TEXT, LIKELIHOOD_TEXT)
LAMBDA_IS, LAMBDA_PL = 0.35, 2.3

_ALL: dict[str, Any] = dict(penalize_self=True, l1_weights=lambda term: 2.0 if term[0] == term[-1] else 1.0)
_GEOMETRIC: dict[str, Any] = dict(center=False, scale=False, consensus="geometric", integrable="warn")
_RAW: dict[str, Any] = dict(degree=2, min_degree=2, l1_scaling="paper", debias=False)


def forms(penalty: float) -> dict[str, Make]:
    """The paper's with this λ, times √(log p / n), on θ in its convention ½ θ_ii x_i²: weight 2 on θ_(i,i)."""
    return {
        TEXT: lambda: paper_isodus(**_RAW, l1=penalty, **_ALL),
        CODE: lambda: paper_isodus(**_RAW, l1=penalty),
        LOG: lambda: paper_isodus(**_RAW, l1=penalty, objective="log"),
        LIKELIHOOD_TEXT: lambda: PseudoLikelihood(**_RAW, **_GEOMETRIC, l1=penalty, **_ALL),
        LIKELIHOOD_CODE: lambda: PseudoLikelihood(**_RAW, **_GEOMETRIC, l1=penalty),
    }


def stated(form: str) -> float:
    """The paper's λ."""
    return LAMBDA_PL if form in (LIKELIHOOD_TEXT, LIKELIHOOD_CODE) else LAMBDA_IS


def papers(form: str, times: float = 1.0) -> Make:
    """A form with the paper's λ, or some times that."""
    return forms(times * stated(form))[form]


def chosen() -> dict[str, Make]:
    """Those that choose their penalty by themselves."""
    return {
        OURS: lambda: ISODUS(2, min_degree=2, l1="auto"),
        SCORE: lambda: ScoreMatching(2, min_degree=2, l1="auto"),
    }


def learned(make: Make, X: np.ndarray) -> tuple[np.ndarray, bool]:
    """Λ, and whether every variable converged; zero where the penalty, which is on all terms, leaves none."""
    try:
        fit: Fit = learn(make, X)
    except ValueError as error:
        if "no term is left: every one is penalised" not in str(error):
            raise
        return np.zeros((X.shape[1],) * 2), True
    return precision(fit.estimator.model_), fit.converged


def precision(model: PolynomialModel) -> np.ndarray:
    """Λ of a model of degree 2: Λ_ij = θ_(i,j), Λ_ii = 2 θ_(i,i)."""
    out = np.zeros((len(model.names),) * 2)
    for term, value in model.to_dict().items():
        out[term] = out[term[::-1]] = value * (2.0 if term[0] == term[1] else 1.0)
    return out


def couplings(matrix: np.ndarray, normalised: bool) -> np.ndarray:
    """|Λ_ij|, or |Λ_ij|/√(Λ_ii Λ_jj), of all pairs i < j."""
    upper = np.triu_indices(len(matrix), 1)
    values = np.abs(matrix[upper])
    if normalised:
        d = np.sqrt(np.abs(np.diagonal(matrix)))
        with np.errstate(divide="ignore", invalid="ignore"):
            values = values / (d[upper[0]] * d[upper[1]])
    return np.nan_to_num(values, nan=np.inf)
