"""From the estimates of the nodes to one Θ: each term is estimated at every variable it contains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .basis import MonomialBasis

__all__ = ["METHODS", "combine"]

METHODS = ("geometric", "mean")


def combine(basis: MonomialBasis, thetas: Sequence[np.ndarray], method: str) -> np.ndarray:
    """One parameter a term from the local parameters of all nodes.

    "mean": the average v̄. "geometric", the paper's: sign(v̄) exp(mean log|v|), zero if any v is zero.
    """
    terms = np.concatenate([basis.local(i).terms for i in range(basis.n_variables)])
    v = np.concatenate(list(thetas))
    count = np.bincount(terms, minlength=len(basis))
    mean = np.bincount(terms, weights=v, minlength=len(basis)) / count
    if method == "mean":
        return mean
    zero = np.bincount(terms, weights=v == 0, minlength=len(basis)) > 0
    logs = np.log(np.abs(np.where(v == 0, 1.0, v)))
    size = np.exp(np.bincount(terms, weights=logs, minlength=len(basis)) / count)
    return np.where(zero, 0.0, np.sign(mean) * size)
