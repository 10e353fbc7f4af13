"""Uncertainty without a likelihood: the sandwich A⁻¹ B A⁻¹ / n, A the mean curvature, B the slopes' covariance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from .energy import local_parameters
from .objective import Objective
from .solvers.newton import inverse

__all__ = ["MOST_PARAMETERS", "joint_sandwich", "node_sandwich", "node_variances", "slope_covariance"]

MOST_PARAMETERS = 4000  # beyond which a covariance of all of them is not formed


def joint_sandwich(
    objective: Objective, theta: np.ndarray, hessian: np.ndarray, n: float, free: np.ndarray
) -> np.ndarray:
    """Covariance of one θ that minimises the sum of the objectives of all nodes; NaN where it is singular.

    free: (M,), which parameters were estimated; the others, held at a bound, have NaN.
    """
    at = np.ix_(free, free)
    covariance = np.full((len(theta), len(theta)), np.nan)
    covariance[at] = _sandwich(_inverse(hessian[at]), slope_covariance(objective, theta)[at], n)
    return covariance


def slope_covariance(objective: Objective, theta: np.ndarray) -> np.ndarray:
    """B, (M, M): the covariance over samples of the slope of the sum of all nodes' losses by one θ."""
    basis = objective.basis
    nodes = range(basis.n_variables)
    terms = [basis.local(i).terms for i in nodes]
    mean, second = objective.slopes(nodes, local_parameters(basis, theta, nodes), [0.0] * len(terms), terms)
    return second - np.outer(mean, mean)


def node_sandwich(
    objective: Objective,
    thetas: Sequence[np.ndarray],
    values: Sequence[float],
    hessians: Sequence[np.ndarray],
    free: Sequence[np.ndarray],
    n: float,
) -> np.ndarray | None:
    """Covariance of the local parameters of all nodes, one after the other, (L, L); NaN where there is none.

    free: which parameters of each node were estimated; the others are held at a bound.
    """
    nodes = range(objective.basis.n_variables)
    ends = np.cumsum([0, *map(len, thetas)])
    if ends[-1] > MOST_PARAMETERS:
        return None
    rows = [np.arange(a, b) for a, b in pairwise(ends.tolist())]
    mean, second = objective.slopes(nodes, thetas, values, rows)
    inverses = np.zeros((ends[-1], ends[-1]))
    for at, hessian, estimated in zip(rows, hessians, free, strict=True):
        inverses[at[~estimated], at[~estimated]] = np.nan
        inverses[np.ix_(at[estimated], at[estimated])] = _inverse(hessian[np.ix_(estimated, estimated)])
    return _sandwich(inverses, second - np.outer(mean, mean), n)


def node_variances(
    objective: Objective, i: int, theta: np.ndarray, value: float, hessian: np.ndarray, n: float
) -> np.ndarray:
    """The diagonal of the covariance of one node's local parameters; NaN where it is singular."""
    mean, second = objective.slopes([i], [theta], [value], [np.arange(len(theta))])
    return np.diagonal(_sandwich(_inverse(hessian), second - np.outer(mean, mean), n))


def _inverse(hessian: np.ndarray) -> np.ndarray:
    solve = inverse(hessian)
    return np.full_like(hessian, np.nan) if solve is None else solve(np.eye(len(hessian)))


def _sandwich(A_inverse: np.ndarray, B: np.ndarray, n: float) -> np.ndarray:
    covariance = A_inverse @ B @ A_inverse.T / n
    return (covariance + covariance.T) / 2
