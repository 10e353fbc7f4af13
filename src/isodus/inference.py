"""Uncertainty without a likelihood: the sandwich A⁻¹ B A⁻¹ / n, A the mean curvature, B the slopes' covariance.

The influence of sample t on θ is ψ_t = −A⁻¹ s_t, s_t the slope of its loss: θ − θ_true ≈ ⟨ψ⟩. With weights w, B is
Σ w s sᵀ / Σ w where they count repetitions, Σ w² s sᵀ / Σ w where they are ratios of densities, and what
`dependence` makes of the sums where samples depend on one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array, tril

from .arrays import Array, namespace, on_device, to_host
from .basis import MonomialBasis
from .consensus import places
from .dependence import INDEPENDENT, Dependence, Grouped, Series, automatic_lags, of_groups, of_series
from .energy import local_parameters
from .objective import Objective
from .solvers.newton import inverse

__all__ = [
    "MOST_PARAMETERS",
    "degrees_of_freedom",
    "influence",
    "joint_sandwich",
    "lags_of",
    "left_open",
    "neighbours",
    "node_blocks",
    "node_inverses",
    "node_sandwich",
    "node_variances",
    "sandwich",
    "slope_covariance",
]

MOST_PARAMETERS = 4000  # beyond which a covariance of all of them is not formed
_BLOCK = 1 << 23  # numbers in a block of influences
_OPEN = 0.15  # of A⁻¹/n, below which a variance is too good to be true
_PRODUCTS = 4096  # pairs of them that are multiplied at once


def degrees_of_freedom(basis: MonomialBasis, n: float) -> float:
    """n less the parameters of a variable, by which a sandwich is divided.

    Slopes at the estimate are smaller than at the truth, as residuals of a regression are: of a Gaussian, where each
    variable is regressed on the others, by this factor on average.
    """
    return max(n - basis.largest, 1.0)


def joint_sandwich(
    objective: Objective,
    theta: np.ndarray,
    hessian: np.ndarray,
    n: float,
    free: np.ndarray,
    how: Dependence = INDEPENDENT,
) -> np.ndarray:
    """Covariance of one θ that minimises the sum of the objectives of all nodes; NaN where it is singular.

    n: how many samples, or degrees of freedom; free: (M,), which parameters were estimated; the others, held at a
    bound, have NaN. how: where samples depend on one another the objective must be that of all of them, in their order.
    """
    at = np.ix_(free, free)
    covariance = np.full((len(theta), len(theta)), np.nan)
    covariance[at] = sandwich(objective, *_jointly(objective.basis, theta), hessian[at], n, how, free)
    return covariance


def left_open(inverse_: np.ndarray, covariance: np.ndarray, n: float) -> np.ndarray:
    """Which parameters the samples do not bound: where what they explain leaves nothing over, as of values never seen.

    The curvature A and the slopes' covariance B both vanish there, and B faster: the sandwich is far below A⁻¹/n, which
    at a model that is nearly right it is not.
    """
    with np.errstate(invalid="ignore"):
        return np.diagonal(covariance) < _OPEN * np.diagonal(inverse_) / n


def slope_covariance(objective: Objective, theta: np.ndarray, how: Dependence = INDEPENDENT) -> np.ndarray:
    """B, (M, M): the covariance over samples of the slope of the sum of all nodes' losses by one θ."""
    return _slope_covariance(objective, *_jointly(objective.basis, theta), how)


def influence(objective: Objective, theta: np.ndarray, hessian: np.ndarray, free: np.ndarray) -> np.ndarray:
    """ψ, (n, M): how each sample moves one θ that minimises the sum of the objectives; zero for what was held."""

    def keep(S: Array, X: Array, count: Array | None) -> list[np.ndarray]:
        return [to_host(S[1:, :])]

    parts = objective.over_slopes(*_jointly(objective.basis, theta), keep)
    psi = np.zeros((objective.samples.n_rows, len(theta)))
    psi[:, free] = -np.concatenate(parts, axis=1)[free].T @ _inverse(hessian[np.ix_(free, free)])
    return psi


def _jointly(
    basis: MonomialBasis, theta: np.ndarray
) -> tuple[Sequence[int], list[np.ndarray], list[float], list[np.ndarray]]:
    nodes = range(basis.n_variables)
    return nodes, local_parameters(basis, theta, nodes), [0.0] * len(nodes), [basis.local(i).terms for i in nodes]


def sandwich(
    objective: Objective,
    nodes: Sequence[int],
    thetas: Sequence[np.ndarray],
    values: Sequence[float],
    rows: Sequence[np.ndarray],
    hessian: np.ndarray,
    n: float,
    how: Dependence,
    free: np.ndarray,
) -> np.ndarray:
    """Covariance of parameters that stand in `rows` of the nodes' slopes and may be shared; those that are free."""
    B = _slope_covariance(objective, nodes, thetas, values, rows, how)
    return _sandwich(_inverse(hessian), B[np.ix_(free, free)], n)


def node_sandwich(
    objective: Objective,
    thetas: Sequence[np.ndarray],
    values: Sequence[float],
    inverses: Sequence[np.ndarray],
    n: float,
    how: Dependence = INDEPENDENT,
) -> np.ndarray | None:
    """Covariance of the local parameters of all nodes, one after the other, (L, L); NaN where there is none.

    inverses: A⁻¹ of each node, as `node_inverses` makes them.
    """
    nodes = range(objective.basis.n_variables)
    ends = np.cumsum([0, *map(len, thetas)])
    if ends[-1] > MOST_PARAMETERS:
        return None
    rows = [np.arange(a, b) for a, b in pairwise(ends.tolist())]
    B = _slope_covariance(objective, nodes, thetas, values, rows, how)
    whole = np.zeros((ends[-1], ends[-1]))
    for at, inverse_ in zip(rows, inverses, strict=True):
        whole[np.ix_(at, at)] = inverse_
    return _sandwich(whole, B, n)


def node_inverses(hessians: Sequence[np.ndarray], free: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A⁻¹ of each node over the parameters that were estimated, `free`; those held at a bound have NaN."""
    out = []
    for hessian, estimated in zip(hessians, free, strict=True):
        out.append(np.diag(np.where(estimated, 0.0, np.nan)))
        out[-1][np.ix_(estimated, estimated)] = _inverse(hessian[np.ix_(estimated, estimated)])
    return out


def node_blocks(
    objective: Objective,
    thetas: Sequence[np.ndarray],
    values: Sequence[float],
    inverses: Sequence[np.ndarray],
    share: np.ndarray,
    n: float,
    how: Dependence = INDEPENDENT,
) -> csr_array:
    """Covariance of Θ, (M,), made from local parameters v with ∂Θ/∂v = share, of terms with the same or two variables.

    For more parameters than `node_sandwich` takes: influences are formed block by block of the samples, and of their
    products only those that are asked for.
    """
    basis = objective.basis
    nodes, ends = range(basis.n_variables), np.cumsum([0, *map(len, thetas)])
    local = [np.arange(a, b) for a, b in pairwise(ends.tolist())]
    held = np.zeros(len(basis), bool)
    for i in nodes:
        held[basis.local(i).terms] |= np.isnan(np.diagonal(inverses[i])) & (share[local[i]] != 0)
    inverses = [np.nan_to_num(inverse_) for inverse_ in inverses]
    rows, columns = neighbours(basis)
    terms, width = places(basis), len(basis)

    def fold(S: Array, X: Array, count: Array | None) -> np.ndarray:
        P = np.zeros((width, S.shape[1]))
        for i in nodes:
            psi = inverses[i] @ to_host(S[1 + int(ends[i]) : 1 + int(ends[i + 1]), :])
            P[terms[local[i]]] += share[local[i], None] * psi  # a node has a term once
        weight = 1.0 if count is None else to_host(count)
        P *= weight if how.importance else np.sqrt(weight)
        some = [slice(k, k + _PRODUCTS) for k in range(0, len(rows), _PRODUCTS)]
        return np.concatenate([np.einsum("kb,kb->k", P[rows[at]], P[columns[at]]) for at in some])

    total = objective.over_slopes(nodes, thetas, values, local, fold, max(_BLOCK // (width + int(ends[-1])), 16))
    known = np.where(held[rows] | held[columns], np.nan, total / objective.samples.total / n)
    lower = csr_array((known, (rows, columns)), shape=(width, width))
    return csr_array(lower + tril(lower, -1).T)


def neighbours(basis: MonomialBasis) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of terms with the same variables, and of those among the same two; the lower triangle, rows and columns."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, term in enumerate(basis.terms):
        groups.setdefault(tuple(sorted(set(term))), []).append(k)
    found: set[tuple[int, int]] = set()
    for variables, terms in groups.items():
        own = [k for v in variables for k in groups.get((v,), [])] if len(variables) == 2 else []
        here = sorted(terms + own)
        found.update((a, b) for a in here for b in here if b <= a)
    rows, columns = np.array(sorted(found)).T
    return rows, columns


def node_variances(
    objective: Objective, i: int, theta: np.ndarray, value: float, hessian: np.ndarray, n: float
) -> np.ndarray:
    """The diagonal of the covariance of one node's local parameters; NaN where it is singular."""
    every = np.arange(len(theta))
    return np.diagonal(sandwich(objective, [i], [theta], [value], [every], hessian, n, INDEPENDENT, every))


def _slope_covariance(
    objective: Objective,
    nodes: Sequence[int],
    thetas: Sequence[np.ndarray],
    values: Sequence[float],
    rows: Sequence[np.ndarray],
    how: Dependence,
) -> np.ndarray:
    """B of slopes that stand in `rows`, about their mean."""
    if how.groups is not None:
        order = np.argsort(how.groups, kind="stable")
        number = on_device(how.groups[order, None].astype(np.float64), objective.samples.like())
        objective = Objective(objective.basis, objective.loss, objective.samples.take(order).beside(number))
    if not how.between_rows and not how.importance:
        mean, second = objective.slopes(nodes, thetas, values, rows)
        return second - np.outer(mean, mean)

    def summed(S: Array, X: Array, count: Array | None) -> Array:
        return namespace(S).sum(S if count is None else S * count, axis=1)

    sums = to_host(objective.over_slopes(nodes, thetas, values, rows, summed))
    mean = on_device(sums[1:, None] / sums[0], objective.samples.like())

    def fold(S: Array, X: Array, count: Array | None) -> Series | Grouped:
        S = S[1:, :] - mean
        S = S if count is None else S * count
        if how.groups is not None:
            return of_groups(S, to_host(X[-1, :]))
        return of_series(S, how.lags or 0)

    total = objective.over_slopes(nodes, thetas, values, rows, fold).total()
    if how.groups is not None:
        many = len(np.unique(how.groups))
        total = total * (many / (many - 1))
    return total / sums[0]


def lags_of(objective: Objective, thetas: Sequence[np.ndarray], values: Sequence[float]) -> int:
    """How many lags the slopes of all nodes' local parameters ask for, as `automatic_lags` tells."""
    nodes = range(objective.basis.n_variables)
    rows = [np.arange(a, b) for a, b in pairwise(np.cumsum([0, *map(len, thetas)]).tolist())]

    def fold(S: Array, X: Array, count: Array | None) -> np.ndarray:
        xp = namespace(S)
        s = S[1:, :] if count is None else S[1:, :] * count
        return np.stack([to_host(xp.vecdot(s, s)), to_host(xp.vecdot(s[:, 1:], s[:, :-1]))])

    variance, next_to = objective.over_slopes(nodes, thetas, values, rows, fold)
    return automatic_lags(variance, next_to, objective.samples.n_rows)


def _inverse(hessian: np.ndarray) -> np.ndarray:
    solve = inverse(hessian)
    return np.full_like(hessian, np.nan) if solve is None else solve(np.eye(len(hessian)))


def _sandwich(A_inverse: np.ndarray, B: np.ndarray, n: float) -> np.ndarray:
    covariance = A_inverse @ B @ A_inverse.T / n
    return (covariance + covariance.T) / 2
