"""The estimators with an L1 penalty, as the paper's text has them and as the authors' code does, on Gaussians.

The paper's screening is solved here without an estimator: its answers need not be densities, as the text penalises
the diagonal too. A test compares the two where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isodus import L1, PseudoLikelihood
from isodus.axes.choose import whole_line
from isodus.data import as_samples
from isodus.fit.objective import Objective
from isodus.fit.sparse import SparseProblem
from isodus.losses import PowerReference, ReferenceScreening
from isodus.terms import Terms

from .methods import Theta

TEXT, CODE, LOG = "ISODUS, text", "ISODUS, diagonal free", "ISODUS, diagonal free, log"
LIKELIHOOD_TEXT, LIKELIHOOD_CODE = "pseudo-likelihood, text", "pseudo-likelihood, diagonal free"
FORMS = (TEXT, CODE, LOG, LIKELIHOOD_TEXT, LIKELIHOOD_CODE)
OF_TEXT = (TEXT, LIKELIHOOD_TEXT)
LAMBDA = {form: 2.3 if form.startswith("pseudo") else 0.35 for form in FORMS}


def weight(term: tuple[int, ...]) -> float:
    """What the text's penalty costs: the paper's θ_ii belongs to ½ x_i²."""
    return 2.0 if term[0] == term[-1] else 1.0


def learned(form: str, X: np.ndarray, strengths: Sequence[float]) -> list[np.ndarray]:
    """Λ of a form at some λ, each times √(log p / n); a pair needs both of its variables, as in a geometric mean."""
    p = X.shape[1]
    if form in (LIKELIHOOD_TEXT, LIKELIHOOD_CODE):
        every = dict(weights=weight, penalize_self=True) if form == LIKELIHOOD_TEXT else {}
        raw = dict(degree=2, min_degree=2, scale=None, consensus="geometric", n_jobs=1)
        penalties = [L1(strength, units="paper", rule="and", refit=False, **every) for strength in strengths]
        fits = [PseudoLikelihood(penalty=penalty, **raw).fit(X) for penalty in penalties]
        return [precision(fit.model_.to_dict(), p) for fit in fits]
    problem, unit, order = screening(form, X), np.sqrt(np.log(p) / len(X)), sorted(set(strengths), reverse=True)
    path = problem.path([s * unit for s in order]) if len(order) > 2 else (problem.at(s * unit) for s in order)
    found = {s: precision(problem.joint(at, "and", "geometric"), p) for s, at in zip(order, path, strict=True)}
    return [found[strength] for strength in strengths]


def screening(form: str, X: np.ndarray) -> SparseProblem:
    """The paper's problems, ν = δ = 2."""
    p = X.shape[1]
    keys = [(i, j) for i in range(p) for j in range(i, p)]
    terms = Terms([whole_line(2)] * p, keys, None, in_powers=True)
    loss = ReferenceScreening(PowerReference(2.0), 2, "log_mean" if form == LOG else "mean_exp")
    cost = [weight(key) if form == TEXT else float(key[0] != key[1]) for key in keys]
    return SparseProblem(Objective(loss, terms, as_samples(X), 1), np.array(cost), in_noise=False)


def precision(theta: Theta, p: int) -> np.ndarray:
    """Λ: θ_ij beside the diagonal, 2 θ_ii on it."""
    out = np.zeros((p, p))
    for term, value in theta.items():
        if len(term) == 2:
            out[term] = out[term[::-1]] = value * weight(term)
    return out


def couplings(matrix: np.ndarray, normalised: bool = False) -> np.ndarray:
    """|Λ_ij|, or |Λ_ij|/√(Λ_ii Λ_jj) as in the authors' code, of all pairs."""
    i, j = np.triu_indices(len(matrix), 1)
    values, d = np.abs(matrix[i, j]), np.sqrt(np.abs(np.diagonal(matrix)))
    if not normalised:
        return values
    return np.divide(values, d[i] * d[j], out=np.full(len(values), np.inf), where=d[i] * d[j] > 0)
