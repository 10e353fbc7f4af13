"""From the estimates of the nodes to one Θ: each term is estimated at every variable it contains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .basis import MonomialBasis

__all__ = ["METHODS", "combine"]

METHODS = ("geometric", "mean")


def combine(
    basis: MonomialBasis, thetas: Sequence[np.ndarray], method: str, trusted: Sequence[bool] | None = None
) -> np.ndarray:
    """One parameter a term from the local parameters of all nodes.

    "mean": the average v̄. "geometric", the paper's: sign(v̄) exp(mean log|v|), zero if any v is zero. Nodes that
    are not trusted are left out of a term that has others.
    """
    terms = np.concatenate([basis.local(i).terms for i in range(basis.n_variables)])
    v = np.concatenate(list(thetas))
    weight = np.ones(len(v))
    if trusted is not None:
        good = np.repeat(np.asarray(trusted), [len(theta) for theta in thetas])
        has_good = np.bincount(terms, weights=good, minlength=len(basis)) > 0
        weight = np.where(has_good[terms], good, 1.0)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(terms, weights=weight * values, minlength=len(basis))

    count = total(np.ones(len(v)))
    mean = total(v) / count
    if method == "mean":
        return mean
    size = np.exp(total(np.log(np.abs(np.where(v == 0, 1.0, v)))) / count)
    return np.where(total(v == 0) > 0, 0.0, np.sign(mean) * size)
