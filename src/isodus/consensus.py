"""From the estimates of the nodes to one Θ: each term is estimated at every variable it contains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from .basis import MonomialBasis

__all__ = ["METHODS", "RULES", "agreed", "carry", "combine", "places"]

METHODS = ("precision", "geometric", "mean")
RULES = ("and", "or")
_RIDGE = 0.05  # of the mean variance of a term's estimates: they may coincide, and C be singular


def places(basis: MonomialBasis) -> np.ndarray:
    """The term of each local parameter, all nodes one after the other, (L,)."""
    return np.concatenate([basis.local(i).terms for i in range(basis.n_variables)])


def combine(
    basis: MonomialBasis,
    thetas: Sequence[np.ndarray],
    method: str,
    trusted: Sequence[bool] | None = None,
    covariance: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """One parameter a term, Θ (M,), from the local parameters v of all nodes, and ∂Θ/∂v, (L,).

    "mean": the average v̄. "geometric", the paper's: sign(v̄) exp(mean log|v|), zero if any v is zero. "precision":
    Σ_i u_i v_i with u ∝ (C + 0.05 tr(C)/q I)⁻¹ 1, C the covariance of the q estimates of the term: a block of
    `covariance`, (L, L), that of v; without it the mean. Nodes that are not trusted are left out of a term that
    has others.
    """
    terms, v = places(basis), np.concatenate(list(thetas))

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(terms, weights=values, minlength=len(basis))

    good = np.ones(len(v))
    if trusted is not None:
        good = np.repeat(np.asarray(trusted, float), [len(theta) for theta in thetas])
        good = np.where(total(good)[terms] > 0, good, 1.0)
    share = good / total(good)[terms]
    if method == "precision" and covariance is not None:
        share = _by_precision(terms, good > 0, covariance)
    theta = total(share * v)
    if method != "geometric":
        return theta, share
    zero = v == 0
    size = np.exp(total(share * np.log(np.abs(np.where(zero, 1.0, v)))))
    theta = np.where(total(share * zero) > 0, 0.0, np.sign(theta) * size)
    return theta, np.where(zero, 0.0, share * theta[terms] / np.where(zero, 1.0, v))


def agreed(terms: np.ndarray, theta: np.ndarray, n_terms: int, rule: str, method: str = "mean") -> np.ndarray:
    """One parameter a term, (M,), from penalised ones, (p, K), in places that belong to `terms`, (p, K), -1 for none.

    A term survives if all its nodes keep it ("and"), or any does ("or"); it is then as in `combine`.
    """
    there = np.flatnonzero(terms >= 0)
    t, v = terms.ravel()[there], theta.ravel()[there]
    nodes = np.bincount(t, minlength=n_terms)
    t, v = t[v != 0], v[v != 0]
    keeping = np.bincount(t, minlength=n_terms)
    kept = (keeping == nodes) & (nodes > 0) if rule == "and" else keeping > 0
    mean = np.bincount(t, weights=v, minlength=n_terms) / np.maximum(nodes, 1)
    if method == "geometric":
        size = np.exp(np.bincount(t, weights=np.log(np.abs(v)), minlength=n_terms) / np.maximum(keeping, 1))
        mean = np.sign(mean) * size
    return np.where(kept, mean, 0.0)


def _by_precision(terms: np.ndarray, good: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """u ∝ (C + 0.05 tr(C)/q I)⁻¹ 1 for the q good estimates of each term, terms of equal q at once."""
    share = np.zeros(len(terms))
    used = np.flatnonzero(good)
    used = used[np.argsort(terms[used], kind="stable")]
    _, first, count = np.unique(terms[used], return_index=True, return_counts=True)
    for q in np.unique(count):
        group = used[first[count == q][:, None] + np.arange(q)]
        C = covariance[group[:, :, None], group[:, None, :]]
        trace = np.trace(C, axis1=1, axis2=2)
        flat = ~(np.isfinite(trace) & (trace > 0))  # estimates without a variance count alike
        C = np.where(flat[:, None, None], np.eye(q), C)
        C += (_RIDGE / q) * np.where(flat, 1.0, trace)[:, None, None] * np.eye(q)
        u = np.linalg.solve(C, np.ones((len(C), q, 1)))[:, :, 0]
        share[group] = u / u.sum(axis=1, keepdims=True)
    return share


def carry(basis: MonomialBasis, share: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The covariance of Θ, (M, M), from that of the local parameters, (L, L), and ∂Θ/∂v."""
    W = csr_array((share, (places(basis), np.arange(len(share)))), shape=(len(basis), len(share)))
    used = share != 0  # what has no share may have no covariance either
    return W @ (W @ np.where(used[:, None] & used, covariance, 0.0)).T
