"""Sets of interacting variables as plots want them: how strong, of which sign, how sure."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from ..basis import MonomialBasis
from ..description import interacting, interaction_tests
from .style import check_model

__all__ = ["PARTIAL", "SIGNS", "STRENGTH", "interacting_sets", "pair_matrix", "strongest"]

PARTIAL = "partial correlation"
STRENGTH = "strength: root of the sum of squares of a set's θ, standardised"
SIGNS = {1: "product tends to be positive", -1: "product tends to be negative", 0: "of no one sign"}
_ONE_SIGN = 0.1  # of the strength, below which a mean mixed derivative has no sign
_NORMAL = (1.0, 0.0, 1.0, 0.0, 3.0, 0.0, 15.0)  # moments


def interacting_sets(model: Any) -> tuple[pd.DataFrame, str]:
    """A row a set with a parameter that is not zero, and what its strength is called.

    variables: indices; order; strength: of a model of degree 2 the size of the partial correlation, else the root of
    the sum of squares of θ, as in `PolynomialModel.hyperedges`; sign: of −∂^q E/∂y_1…∂y_q of the q variables, its mean
    over a standard normal; zero where that is small beside the strength; q_value: NaN where nothing is known.
    """
    check_model(model)
    frame = interaction_tests(model)
    frame["sign"] = [_sign(model.basis, model.theta, terms) for terms in interacting(model.basis).values()]
    frame = frame[frame["strength"] > 0].reset_index(drop=True)
    r = _partial(model)
    if r is None:
        return frame, STRENGTH
    at = np.array(frame["variables"].tolist(), dtype=np.int64).reshape(-1, 2)
    return frame.assign(strength=np.abs(r[at[:, 0], at[:, 1]])), PARTIAL


def _sign(basis: MonomialBasis, theta: np.ndarray, terms: Sequence[int]) -> int:
    mean = 0.0
    for k in terms:
        powers = [basis.terms[k].count(v) for v in set(basis.terms[k])]
        mean -= theta[k] * prod(l * _NORMAL[l - 1] if l <= len(_NORMAL) else 0.0 for l in powers)
    size = float(np.sqrt(np.sum(np.square(theta[list(terms)]))))
    return 0 if abs(mean) <= _ONE_SIGN * size else int(np.sign(mean))


def _partial(model: Any) -> np.ndarray | None:
    """Partial correlations of a model of degree 2, (p, p); None of others, and where they do not exist."""
    if model.basis.degree != 2:
        return None
    precision = model.precision()
    own = np.diagonal(precision)
    if np.any(own <= 0):
        return None
    r = -precision / np.sqrt(own * own[:, None])
    return r if np.all(np.abs(r - np.diag(np.diagonal(r))) <= 1) else None


def strongest(frame: pd.DataFrame, level: float) -> pd.DataFrame:
    """Those that count first, then by strength."""
    doubtful = (frame["q_value"] >= level).to_numpy()
    return frame.iloc[np.lexsort([-frame["strength"], doubtful])]


def pair_matrix(frame: pd.DataFrame, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of pairs the strength with its sign, and the q-value; of higher orders the strength of what a pair shares.

    And which pairs have no sign, whose strength is positive here. Each (p, p), symmetric; NaN where there is no term.
    """
    pairs, q, shared = (np.full((p, p), np.nan) for _ in range(3))
    for row in frame[frame["order"] > 2].itertuples():
        at = np.ix_(row.variables, row.variables)
        shared[at] = np.hypot(np.nan_to_num(shared[at]), row.strength)
    np.fill_diagonal(shared, np.nan)
    own = frame[frame["order"] == 2]
    i, j = np.array(own["variables"].tolist(), dtype=np.int64).reshape(-1, 2).T
    sign = own["sign"].to_numpy()
    pairs[i, j] = pairs[j, i] = own["strength"] * np.where(sign == 0, 1, sign)
    q[i, j] = q[j, i] = own["q_value"]
    plain = np.zeros((p, p), bool)
    plain[i, j] = plain[j, i] = sign == 0
    return pairs, q, shared, plain
