"""Value, gradient and Hessian of the node objectives: the products with H, summed over blocks.

For node i with cofactors H and parameters θ in their places C, a = C H are the conditional
coefficients, and

    gradient = Σ_n (∂ℓ/∂a_l)(n) · H(n),     Hessian = Σ_n Σ_r G_r(n) G_r(n)ᵀ,  G = f_l · H,

where the loss gives ∂ℓ/∂a_l and the factors f of ∂²ℓ/∂a². Sums carry a log-shift, so that they cannot
overflow whatever the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from .arrays import Array, gram, multiply_into, namespace, to_host
from .basis import Index, Local, MonomialBasis
from .energy import (
    Coefficients,
    cofactor_matrix,
    conditional_coefficients,
    gather,
    rows,
    scatter,
    transpose_product,
)
from .losses import Loss, Pointwise
from .samples import ArraySamples

__all__ = ["Evaluation", "Objective"]

_BLOCK_BYTES = 3000 << 10  # what a block's cofactors and features may take: about the second-level cache


@dataclass
class Evaluation:
    """A node's objective at one point.

    value: log of the average loss; gradient and Hessian of that logarithm. With the "plain" link the
    Hessian is that of the average itself divided by the average, so that a Newton step is the plain
    objective's, on a scale that cannot overflow. ess: effective sample size (Σw)²/Σw² of the weights.
    """

    value: float
    gradient: np.ndarray
    hessian: np.ndarray | None
    ess: float


@dataclass
class Sums:
    """Sums over samples for q nodes, all times exp(−shift) of the node.

    shift: (q,); count: how many samples; squares: (q,), of the values, times exp(−2 shift); linear:
    (q, L), a node's value, gradient in the places of `scatter`, and Hessian one after the other.
    """

    shift: Array
    count: float
    squares: Array
    linear: Array

    def __add__(self, other: Sums) -> Sums:
        xp = namespace(self.shift)
        shift = xp.maximum(self.shift, other.shift)
        mine, its = xp.exp(self.shift - shift), xp.exp(other.shift - shift)
        linear = self.linear
        linear *= mine[:, None]
        linear += other.linear * its[:, None]
        squares = self.squares * mine * mine + other.squares * its * its
        return Sums(shift, self.count + other.count, squares, linear)


class Objective:
    """The objective of every node of a basis, for one loss, on one source of samples."""

    def __init__(self, basis: MonomialBasis, loss: Loss, samples: ArraySamples) -> None:
        self.basis, self.loss, self.samples = basis, loss, samples

    def evaluate(
        self, nodes: Sequence[int], thetas: Sequence[np.ndarray], hessians: Sequence[bool] | None = None
    ) -> list[Evaluation]:
        """The objectives of `nodes` at local parameters `thetas`, in one pass over the samples.

        hessians: for which nodes the Hessian is wanted; for all of them by default.
        """
        locals_ = [self.basis.local(i) for i in nodes]
        C = scatter(self.basis, nodes, thetas, self.samples.X)
        pointwise = self.loss.at(np.asarray(nodes), self.samples.X)
        wanted = [True] * len(nodes) if hessians is None else hessians
        plans = [_feature_plan(local) if want else None for local, want in zip(locals_, wanted, strict=True)]
        block = partial(_block_sums, self.basis, pointwise, as_index(np.asarray(nodes)), plans, C)
        sums = self.samples.sum(block, self.block_rows(locals_))
        return _evaluations(sums, locals_, wanted, C, self.loss.link)

    def block_rows(self, locals_: Sequence[Local]) -> int:
        """How many samples a block holds, so that its cofactors and features stay in cache."""
        width = len(self.basis.cofactors) + max(len(local.terms) for local in locals_)
        width += 4 * self.basis.degree * len(locals_)
        return int(np.clip(_BLOCK_BYTES // (8 * width), 256, 8192))


def _block_sums(
    basis: MonomialBasis,
    pointwise: Callable[[Array, Array], Pointwise],
    nodes: Index,
    plans: Sequence[Plan | None],
    C: Coefficients,
    X: Array,
    count: Array | None,
) -> Sums:
    xp = namespace(X)
    H = cofactor_matrix(basis, X)
    shift, value, slope, factors = pointwise(conditional_coefficients(C, H), rows(X, nodes))
    if count is None:
        n, squares = float(X.shape[1]), xp.sum(value * value, axis=1)
    else:
        n, squares = float(xp.sum(count)), xp.sum(value * value * count, axis=1)
        root = xp.sqrt(count)
        value = value * count
        slope = slope * count
        factors = [factor * root for factor in factors]
    gradient = transpose_product(slope, C, H)
    higher = xp.reshape(xp.permute_dims(gradient.higher, (1, 0, 2)), (C.first.shape[0], -1))
    parts = [xp.sum(value, axis=1)[:, None], gradient.first, higher]
    width = max((plan[-1][0].stop for plan in plans if plan), default=0)
    if width:
        hessian = xp.zeros((len(plans), width, width), dtype=X.dtype, device=X.device)
        for j, plan in enumerate(plans):
            if plan is None:
                continue
            for factor in factors:
                G = _features(H, factor, j, plan)
                hessian[j, : G.shape[0], : G.shape[0]] += gram(G)
        parts.append(xp.reshape(hessian, (len(plans), width * width)))
    return Sums(shift, n, squares, xp.concat(parts, axis=1))


Plan = list[tuple[slice, int, Index]]
"""A node's terms by the power of its variable: where they stand, l − 1, and which cofactors they have."""


def _feature_plan(local: Local) -> Plan:
    stretches = ((l, int(start), int(stop)) for l, (start, stop) in enumerate(pairwise(local.ends)) if stop > start)
    return [(slice(start, stop), l, as_index(local.cofactors[start:stop])) for l, start, stop in stretches]


def _features(H: Array, factor: Array, j: int, plan: Plan) -> Array:
    """G, shape (K, n): for each term of node j with x_i^l, the factor f_l times its cofactor."""
    G = namespace(H).empty((plan[-1][0].stop, H.shape[1]), dtype=H.dtype, device=H.device)
    for here, l, cofactors in plan:
        multiply_into(G[here, :], rows(H, cofactors), factor[l, j, :])
    return G


def as_index(positions: np.ndarray) -> Index:
    """The slice that picks the positions where there is one: a view instead of a copy."""
    if len(positions) == 1:
        return slice(int(positions[0]), int(positions[0]) + 1)
    step = int(positions[1] - positions[0])
    if step > 0 and np.all(np.diff(positions) == step):
        return slice(int(positions[0]), int(positions[-1]) + 1, step)
    return positions


def _evaluations(
    sums: Sums, locals_: Sequence[Local], wanted: Sequence[bool], C: Coefficients, link: str
) -> list[Evaluation]:
    """The sums of several nodes as objectives on the host."""
    shift, squares, linear = to_host(sums.shift), to_host(sums.squares), to_host(sums.linear)
    q, m, m_higher = C.first.shape[0], C.first.shape[1], C.higher.shape[2]
    ends = np.cumsum([1, m, C.higher.shape[0] * m_higher])
    higher = linear[:, ends[1] : ends[2]].reshape(q, -1, m_higher).transpose(1, 0, 2)
    gradients = Coefficients(linear[:, 1 : ends[1]], higher)
    width = int(np.sqrt(linear.shape[1] - ends[2]))
    hessians = linear[:, ends[2] :].reshape(q, width, width)
    return [
        _evaluation(
            shift[j],
            linear[j, 0],
            sums.count,
            squares[j],
            gather(local, j, gradients),
            hessians[j, : len(local.terms), : len(local.terms)] if wanted[j] else None,
            link,
        )
        for j, local in enumerate(locals_)
    ]


def _evaluation(
    shift: float,
    total: float,
    count: float,
    squares: float,
    gradient: np.ndarray,
    hessian: np.ndarray | None,
    link: str,
) -> Evaluation:
    if not (np.isfinite(total) and total > 0 and np.all(np.isfinite(gradient))):
        return Evaluation(np.inf, np.full_like(gradient, np.nan), None, 0.0)
    gradient = gradient / total
    if hessian is not None:
        hessian = hessian / total
        if link == "log":
            hessian -= np.outer(gradient, gradient)
    return Evaluation(float(shift + np.log(total / count)), gradient, hessian, float(total * total / squares))
