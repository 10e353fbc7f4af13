"""Value, gradient and Hessian of the node objectives: the products with H, summed over blocks.

For node i with cofactors H and parameters θ in their places C, a = C H are the conditional coefficients.
The loss gives factors f_r of its second derivative and coordinates z_r of its first along them, so with
G_r = f_rl · H, a row a term,

    gradient = Σ_n Σ_r G_r z_r,     Hessian = Σ_n Σ_r G_r G_rᵀ:

both are in the product G_r (z_r; G_r)ᵀ, one a node. Without the Hessian it is cheaper
to form Σ_r z_r f_r first and multiply by H. Sums carry a log-shift, so that they cannot overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .arrays import (
    Array,
    add_to_rows,
    empty,
    gram,
    multiply_into,
    namespace,
    on_accelerator,
    on_device,
    rows_at_once,
    to_host,
)
from .basis import Local, MonomialBasis
from .energy import (
    Coefficients,
    Cofactors,
    cofactor_matrix,
    conditional_coefficients,
    gather,
    rows,
    scatter,
    thin,
    transpose_product,
)
from .factors import Index
from .losses import Loss, Pointwise
from .samples import ArraySamples

__all__ = ["MANY", "Evaluation", "Objective"]

MANY = 24  # parameters of a node from which its products take longer than handing them to a thread
_BLOCK_BYTES = (3 << 19, 9 << 19)  # what a block may take with fewer and with many: about a cache; long products


@dataclass
class Evaluation:
    """A node's objective at one point.

    With the "mean" link the average loss and its derivatives. With "log" those of its logarithm. With "plain"
    the same, but the Hessian is that of the average itself divided by the average, so that a Newton step is
    the plain objective's, on a scale that cannot overflow. ess: effective sample size (Σw)²/Σw² of
    the weights that the latter two average.
    """

    value: float
    gradient: np.ndarray
    hessian: np.ndarray | None
    ess: float


@dataclass
class Sums:
    """Sums over samples for q nodes, all times exp(−shift) of the node.

    shift, value: (q,); squares: (q,), of the values, times exp(−2 shift); count: how many samples;
    derivatives: (q, L), a node's gradient, with or without its Hessian, in one row.
    """

    shift: Array
    count: float
    value: Array
    squares: Array
    derivatives: Array

    def __add__(self, other: Sums) -> Sums:
        xp = namespace(self.shift)
        shift = xp.maximum(self.shift, other.shift)
        mine, its = xp.exp(self.shift - shift), xp.exp(other.shift - shift)
        derivatives = self.derivatives
        derivatives *= mine[:, None]
        derivatives += other.derivatives * its[:, None]
        return Sums(
            shift,
            self.count + other.count,
            self.value * mine + other.value * its,
            self.squares * (mine * mine) + other.squares * (its * its),
            derivatives,
        )


Plan = list[tuple[slice, int, Index]]
"""A node's terms by the power of its variable: their rows of G, l − 1, and which cofactors they have."""

Seen = Callable[[Array], tuple[Array, Pointwise]]
"""From a block of samples to its cofactors H and a loss there."""


class Objective:
    """The objective of every node of a basis, for one loss, on one source of samples."""

    def __init__(self, basis: MonomialBasis, loss: Loss, samples: ArraySamples) -> None:
        self.basis, self.loss, self.samples = basis, loss, samples
        self._plans: dict[int, Plan] = {}

    def evaluate(self, nodes: Sequence[int], thetas: Sequence[np.ndarray], hessian: bool = True) -> list[Evaluation]:
        """The objectives of `nodes` at local parameters `thetas`, in one pass over the samples."""
        locals_ = [self.basis.local(i) for i in nodes]
        plans = [self._plan(i, local) for i, local in zip(nodes, locals_, strict=True)] if hessian else None
        C = scatter(self.basis, nodes, thetas, self.samples.like())
        seen = self._pointwise(nodes, C if hessian else thin(C), hessian)
        block = partial(_block_sums, seen, plans, C.higher.shape[-1])
        sums = self.samples.sum(block, self.block_rows(locals_, hessian))
        sums = Sums(to_host(sums.shift), sums.count, *map(to_host, (sums.value, sums.squares, sums.derivatives)))
        derivatives, link = sums.derivatives, self.loss.link
        split = [
            _split_gram(derivatives[j], local) if hessian else (self._split_gradient(derivatives[j], local), None)
            for j, local in enumerate(locals_)
        ]
        return [_evaluation(sums, j, gradient, matrix, link) for j, (gradient, matrix) in enumerate(split)]

    def noise(
        self, nodes: Sequence[int], thetas: Sequence[np.ndarray], values: Sequence[float], free: Sequence[Sequence[int]]
    ) -> list[np.ndarray]:
        """Root of the mean square over samples of the slope by each parameter, less what free powers of x_i explain.

        values: as in `slopes`; free: for each node the l − 1 of the powers x_i^l whose parameters are fitted. The slope
        by these is zero on average then, and so is what a slope has along them.
        """
        locals_, places = [self.basis.local(i) for i in nodes], self.noise_by(self.basis, nodes, thetas, values, free)
        return [self._split_gradient(row, local) for row, local in zip(to_host(places), locals_, strict=True)]

    def noise_by(
        self,
        whole: MonomialBasis,
        nodes: Sequence[int],
        thetas: Sequence[np.ndarray],
        values: Sequence[float],
        free: Sequence[Sequence[int]],
    ) -> Array:
        """As `noise`, by all terms of a larger basis too: (q, L), in the places of its cofactors, where samples lie."""
        logs, s, (m, wide) = None if self.loss.link == "mean" else np.asarray(values), self.basis.degree, _widths(whole)
        block = partial(_block_squares, self._wide(whole, nodes, thetas), logs, m)
        total = self.samples.sum(block, self._wide_rows(whole, nodes, 3))
        xp, total = namespace(total), total[:, :, 1:] / total[0, 0, 0]
        # the constant is the first cofactor, so ⟨s_l s_k⟩ stands in its places
        at, held = [0, *(wide + l * m for l in range(s - 1))], np.zeros((len(nodes), s))
        for row, some in zip(held, free, strict=True):
            row[list(some)] = 1.0
        G = to_host(xp.stack([total[1:, :, k] for k in at])).transpose(2, 0, 1) * held[:, :, None] * held[:, None, :]
        inverse = on_device(np.linalg.pinv(G, rcond=1e-10), total)
        explained = xp.zeros_like(total[0, ...])
        for l in range(s):
            along = xp.zeros_like(explained)
            for k in range(s):
                along += inverse[:, l, k][:, None] * total[1 + k, ...]
            explained += along * total[1 + l, ...]
        for k in at:
            explained[:, k] = 0.0  # those powers themselves, which have no interaction
        return xp.sqrt(xp.maximum(total[0, ...] - explained, 1e-6 * total[0, ...]))

    def slopes_by(self, whole: MonomialBasis, nodes: Sequence[int], thetas: Sequence[np.ndarray]) -> Array:
        """Slopes by all terms of a larger basis: (q, L), in the places of its cofactors, where the samples lie."""
        block = partial(_block_sums, self._wide(whole, nodes, thetas), None, _widths(whole)[0])
        sums = self.samples.sum(block, self._wide_rows(whole, nodes, 1))
        return sums.derivatives / (sums.count if self.loss.link == "mean" else sums.value[:, None])

    def _wide(self, whole: MonomialBasis, nodes: Sequence[int], thetas: Sequence[np.ndarray]) -> Seen:
        """From a block to the cofactors of a larger basis and the loss there, by the few terms of this one."""
        seen = self._pointwise(nodes, thin(scatter(self.basis, nodes, thetas, self.samples.like())), False)
        return lambda X: (Cofactors.of(whole, X), seen(X)[1])

    def _wide_rows(self, whole: MonomialBasis, nodes: Sequence[int], arrays: int) -> int:
        """How many samples a block holds that has so many arrays of the lower cofactors."""
        return self._rows(arrays * _widths(whole)[0] + len(self.basis.cofactors), 0, len(nodes), False)

    def slopes(
        self, nodes: Sequence[int], thetas: Sequence[np.ndarray], values: Sequence[float], rows: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and second moment over samples of the slopes ∂ℓ/∂θ, those of all nodes in one vector."""
        total = to_host(self.over_slopes(nodes, thetas, values, rows, _second_moments))
        return total[1:, 0] / total[0, 0], total[1:, 1:] / total[0, 0]

    def over_slopes(
        self,
        nodes: Sequence[int],
        thetas: Sequence[np.ndarray],
        values: Sequence[float],
        rows: Sequence[np.ndarray],
        fold: Callable[[Array, Array, Array | None], Any],
        most: int | None = None,
    ) -> Any:
        """Σ over blocks of fold(S, X, count), S: (1 + M, b), a row of ones and under it the slopes ∂ℓ/∂θ.

        values: the objectives there, by whose averages the slopes are divided where the loss has weights
        ("log" and "plain"). rows: where in the vector the terms of each node stand; what stands in one place is added.
        most: rows of a block, if there are to be fewer.
        """
        locals_ = [self.basis.local(i) for i in nodes]
        C = scatter(self.basis, nodes, thetas, self.samples.like())
        plans = [self._plan(i, local) for i, local in zip(nodes, locals_, strict=True)]
        logs = None if self.loss.link == "mean" else np.asarray(values)
        seen = self._pointwise(nodes, C, False)

        def block(X: Array, count: Array | None) -> Any:
            return fold(_slopes(seen, plans, logs, rows, X), X, count)

        return self.samples.sum(block, min(self.block_rows(locals_), most or self.samples.n_rows))

    def _pointwise(self, nodes: Sequence[int], C: Coefficients, hessian: bool) -> Seen:
        """From a block to its cofactors and the loss of `nodes` there."""
        basis, like, at = self.basis, self.samples.like(), np.asarray(nodes)
        pointwise = self.loss.at(at, like, hessian, basis.spaces)
        pilot = self.loss.pilot
        tilt = None if pilot is None else scatter(basis, nodes, [pilot[i] for i in nodes], like)
        own = as_index(at)

        p, known = basis.n_variables, self.loss.known

        def seen(X: Array) -> tuple[Array, Pointwise]:
            H = cofactor_matrix(basis, X)
            a = conditional_coefficients(C, H)
            if known:
                beside = namespace(X).reshape(X[p:, :], (known, p, X.shape[1]))
                picked = (
                    beside[:, own, :]
                    if isinstance(own, slice)
                    else namespace(X).take(beside, on_device(own, X), axis=1)
                )
                return H, pointwise(a, picked)
            if tilt is None:
                return H, pointwise(a, rows(X, own))
            return H, pointwise(a, rows(X, own), conditional_coefficients(tilt, H))

        return seen

    def _split_gradient(self, row: np.ndarray, local: Local) -> np.ndarray:
        """A node's derivatives, from the places of their cofactors."""
        m, ends, s = len(self.basis.cofactors), self.basis.cofactor_ends, self.basis.degree
        return gather(local, 0, Coefficients(row[None, :m], row[m:].reshape(s - 1, 1, ends[max(s - 2, 0)])))

    def block_rows(self, locals_: Sequence[Local], hessian: bool = False) -> int:
        """How many samples a block holds, so that its arrays stay in cache, or in the memory of an accelerator."""
        return self._rows(len(self.basis.cofactors), max(len(local.terms) for local in locals_), len(locals_), hessian)

    def _rows(self, cofactors: int, most: int, q: int, hessian: bool) -> int:
        width = cofactors + most + 3 * self.basis.degree * q
        width *= 4 if self.samples.single else 8
        on_host = int(np.clip(_BLOCK_BYTES[most >= MANY] // (16 * width) * 16, 256, 16384))  # whole cache lines
        return rows_at_once(self.samples.like(), on_host, width + 32 * hessian * most * q)

    def _plan(self, i: int, local: Local) -> Plan:
        if i not in self._plans:
            stretches = [(l, a, b) for l, (a, b) in enumerate(pairwise(local.ends)) if b > a]
            self._plans[i] = [(slice(a + 1, b + 1), l, as_index(local.cofactors[a:b])) for l, a, b in stretches]
        return self._plans[i]


def _block_sums(seen: Seen, plans: Sequence[Plan] | None, m: int, X: Array, count: Array | None) -> Sums:
    xp = namespace(X)
    H, (shift, value, factors, rest) = seen(X)
    weighted = value
    if count is not None:
        root = xp.sqrt(count)
        weighted = value * count
        factors = [(z * root, f * root) for z, f in factors]
        rest = None if rest is None else rest * count
    derivatives = _in_places(_slope(factors, rest), H, m) if plans is None else _grams(factors, rest, plans, H)
    n = float(X.shape[1]) if count is None else float(xp.sum(count))
    sums = (xp.sum(weighted, axis=1), xp.vecdot(weighted, value), derivatives)
    return Sums(xp.astype(shift, xp.float64), n, *(xp.astype(part, xp.float64, copy=False) for part in sums))


def _slopes(
    seen: Seen, plans: Sequence[Plan], logs: np.ndarray | None, places: Sequence[np.ndarray], X: Array
) -> Array:
    """S: a row of ones, and under it the slopes of all nodes in their places."""
    xp = namespace(X)
    H, (shift, _, factors, rest) = seen(X)
    slope = _slope(factors, rest)
    if logs is not None:
        slope = slope * xp.exp(shift - on_device(logs, X))[:, None]
    width = 2 + max(int(np.max(place)) for place in places)
    S = xp.zeros((width, X.shape[1]), dtype=X.dtype, device=X.device)
    S[0, :] = 1.0
    for j, (plan, place) in enumerate(zip(plans, places, strict=True)):
        for here, l, cofactors in plan:
            to = 1 + place[here.start - 1 : here.stop - 1]
            add_to_rows(S, as_index(to), rows(H, cofactors) * slope[l, j, :])
    return S


def _second_moments(S: Array, X: Array, count: Array | None) -> Array:
    """(1; s)(1; s)ᵀ summed over a block."""
    if count is not None:
        S *= namespace(S).sqrt(count)
    return S @ namespace(S).matrix_transpose(S)


def _block_squares(seen: Seen, logs: np.ndarray | None, m: int, X: Array, count: Array | None) -> Array:
    """Squares of slopes, and their products with those by each power of x_i alone, in the places of cofactors.

    (1 + s, q, L), a row a node, before which stands the number of samples of the block.
    """
    xp = namespace(X)
    H, (shift, _, factors, rest) = seen(X)
    slope = _slope(factors, rest)
    if logs is not None:
        slope = slope * xp.exp(shift - on_device(logs, X))[:, None]
    weighted = slope if count is None else slope * count
    n = float(X.shape[1]) if count is None else float(xp.sum(count))
    parts = [_in_places(slope * weighted, H.squared(), m)]
    parts += [_in_places(slope[l : l + 1, ...] * weighted, H, m) for l in range(slope.shape[0])]
    products = xp.stack(parts)
    return xp.concat([xp.full_like(products[:, :, :1], n), products], axis=2)


def _widths(basis: MonomialBasis) -> tuple[int, int]:
    """How many cofactors of a basis have degree ≤ s − 2, and how many there are."""
    return int(basis.cofactor_ends[max(basis.degree - 2, 0)]), len(basis.cofactors)


def _slope(factors: list[tuple[Array, Array]], rest: Array | None) -> Array:
    """∂ℓ/∂a = Σ_r z_r f_r + rest, (s, q, n)."""
    return sum((z * f for z, f in factors), start=0.0 if rest is None else rest)


def _grams(factors: list[tuple[Array, Array]], rest: Array | None, plans: Sequence[Plan], H: Array) -> Array:
    """For each node Σ_r G_r (z_r; G_r)ᵀ as one row: gradient and Hessian at once."""
    xp = namespace(H)
    width = max(plan[-1][0].stop for plan in plans)
    if on_accelerator(H):
        return _batched_grams(factors, rest, plans, H, width)
    out = xp.zeros((len(plans), width - 1, width), dtype=H.dtype, device=H.device)
    features = empty((width, H.shape[1]), H)
    for j, plan in enumerate(plans):
        K = plan[-1][0].stop
        G = features[:K, :]
        for z, f in factors:
            G[0, :] = z[j, :]
            for here, l, cofactors in plan:
                multiply_into(G[here, :], rows(H, cofactors), f[l, j, :])
            out[j, : K - 1, :K] += gram(G)
        if rest is not None:
            for here, l, cofactors in plan:
                out[j, here.start - 1 : here.stop - 1, 0] += rows(H, cofactors) @ rest[l, j, :]
    return xp.reshape(out, (len(plans), (width - 1) * width))


def _batched_grams(
    factors: list[tuple[Array, Array]], rest: Array | None, plans: Sequence[Plan], H: Array, width: int
) -> Array:
    """As `_grams`, all nodes in one product: an accelerator would wait for one node after the other."""
    xp, q, b = namespace(H), len(plans), H.shape[1]
    cofactor, power = np.zeros((2, q, width - 1), np.int64)
    there = np.zeros((q, width - 1, 1))
    for j, plan in enumerate(plans):
        for here, l, index in plan:
            at = slice(here.start - 1, here.stop - 1)
            cofactor[j, at] = np.arange(index.start, index.stop, index.step or 1) if isinstance(index, slice) else index
            power[j, at], there[j, at] = l * q + j, 1.0
    picked = xp.reshape(rows(H, cofactor.ravel()), (q, width - 1, b))
    if not there.all():  # nodes with fewer terms
        picked = picked * on_device(there, H)

    def spread(v: Array) -> Array:
        """Of v, (s, q, b), what belongs to each term of each node."""
        return xp.reshape(rows(xp.reshape(v, (v.shape[0] * q, b)), power.ravel()), (q, width - 1, b))

    out = xp.zeros((q, width - 1, width), dtype=H.dtype, device=H.device)
    for z, f in factors:
        G = picked * spread(f)
        out += G @ xp.matrix_transpose(xp.concat([z[:, None, :], G], axis=1))
    if rest is not None:
        out[:, :, 0] += xp.sum(picked * spread(rest), axis=2)
    return xp.reshape(out, (q, (width - 1) * width))


def _in_places(v: Array, H: Array, m: int) -> Array:
    """v Hᵀ for v of shape (s, q, n), a row a node: in the places of all cofactors, then by power of the first m."""
    xp = namespace(v)
    first, higher = transpose_product(v, H, m)
    return xp.concat([first, xp.reshape(xp.permute_dims(higher, (1, 0, 2)), (first.shape[0], -1))], axis=1)


def as_index(positions: np.ndarray) -> Index:
    """The slice that picks the positions where there is one: a view instead of a copy."""
    if len(positions) == 1:
        return slice(int(positions[0]), int(positions[0]) + 1)
    step = int(positions[1] - positions[0])
    if step > 0 and np.all(np.diff(positions) == step):
        return slice(int(positions[0]), int(positions[-1]) + 1, step)
    return positions


def _split_gram(row: np.ndarray, local: Local) -> tuple[np.ndarray, np.ndarray]:
    K = len(local.terms)
    matrix = row.reshape(-1, int(np.sqrt(len(row))) + 1)
    return matrix[:K, 0], matrix[:K, 1 : K + 1]


def _evaluation(sums: Sums, j: int, gradient: np.ndarray, hessian: np.ndarray | None, link: str) -> Evaluation:
    """The sums of node j as an objective on the host."""
    total = float(sums.value[j])
    finite = np.isfinite(total) and np.all(np.isfinite(gradient))
    finite = finite and (hessian is None or bool(np.all(np.isfinite(hessian))))
    if not (finite and (link == "mean" or (total > 0 and float(sums.squares[j]) > 0))):
        return Evaluation(np.inf, np.full_like(gradient, np.nan), None, 0.0)
    size = sums.count if link == "mean" else total
    gradient = gradient / size
    if hessian is not None:
        hessian = hessian / size
        if link == "log":
            hessian -= np.outer(gradient, gradient)
    value = total / sums.count if link == "mean" else float(sums.shift[j]) + np.log(total / sums.count)
    ess = sums.count if link == "mean" else total * total / float(sums.squares[j])
    return Evaluation(value, gradient, hessian, ess)
