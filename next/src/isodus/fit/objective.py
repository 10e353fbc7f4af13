"""The objective of every estimator: blocks outside, nodes inside. The only products with H."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from .._core.threads import one_blas_thread
from ..axes import Axis, packed_pairs
from ..data import Block, Samples
from ..losses import Loss, Pointwise
from ..terms import Terms

__all__ = ["At", "Objective"]

Array = np.ndarray
_KEPT_BYTES = 4 * 2**30  # of what is prepared per row, up to which it is kept between passes


@dataclass
class At:
    """The objective at one τ: value, gradient (K,), Hessian (K, K), and what is known of their errors."""

    value: float
    nodes: Array  # (p,) each node's part of the value
    gradient: Array
    hessian: Array | None
    unresolved: Array  # (p,) rows of each node whose integrals are not resolved
    rounding: float  # of the value: ε⟨Σ |a_l φ_l|⟩
    product: Callable[[Array], Array] | None = None  # v → A v, where `hessian` is that of a part of the rows


class _Made(NamedTuple):
    """What is prepared once for a block of rows."""

    H: Array  # (cofactors, rows)
    prepared: list[Any]  # of the loss, for each node


@dataclass
class _Sums:
    """Sums over rows, node by node; those of a log link are over exp(shift)."""

    shift: Array  # (p,)
    value: Array  # (p,)
    gradient: list[Array]  # (m,) for each node
    hessian: list[Array]  # (m, m) for each node
    unresolved: Array  # (p,)
    rounding: float

    def __add__(self, other: _Sums) -> _Sums:
        shift = np.maximum(self.shift, other.shift)
        left, right = np.exp(self.shift - shift), np.exp(other.shift - shift)

        def merged(mine: list[Array], theirs: list[Array]) -> list[Array]:
            return [f * a + g * b for f, a, g, b in zip(left, mine, right, theirs, strict=True)] if mine else []

        return _Sums(
            shift,
            left * self.value + right * other.value,
            merged(self.gradient, other.gradient),
            merged(self.hessian, other.hessian),
            self.unresolved + other.unresolved,
            self.rounding + other.rounding,
        )


class Objective:
    """Σ_i link⟨ℓ(a_i, φ_i)⟩ with a_i = H C_i(T τ), the sum over nodes of the mean loss.

    Calling it gives value, gradient and Hessian at any τ. Sums over rows are taken block by block, in the order of the
    blocks, whatever the number of threads.
    """

    def __init__(self, loss: Loss, terms: Terms, samples: Samples, n_jobs: int = 1) -> None:
        self.loss, self.terms, self.samples, self.n_jobs = loss, terms, samples, n_jobs
        self.n = samples.n
        self.passes = 0  # over the rows, so far
        self._keep_made()

    @property
    def axes(self) -> list[Axis]:
        """The axes of all variables."""
        return self.terms.axes

    def _keep_made(self) -> None:
        columns = len(self.terms.cofactors) + 2 * sum(len(axis.degrees) for axis in self.axes)
        fits = self.samples.in_memory and 8 * columns * self.samples.n_rows < _KEPT_BYTES
        self._kept: dict[int, _Made] | None = {} if fits else None

    def only(self, keep: Array) -> Self:
        """The objective of some unknowns, the others zero."""
        part = copy.copy(self)
        part.terms = self.terms.only(keep)
        part._keep_made()
        return part

    def take(self, rows: Array) -> Self:
        """The objective on some rows."""
        return self.on(self.samples.take(rows))

    def on(self, samples: Samples) -> Self:
        """The objective on other samples."""
        part = copy.copy(self)
        part.samples, part.n = samples, samples.n
        part._keep_made()
        return part

    def with_loss(self, loss: Loss) -> Self:
        """The objective with another loss; itself where it has this one."""
        if type(loss) is type(self.loss):
            return self
        part = copy.copy(self)
        part.loss = loss
        part._keep_made()
        return part

    def diagonal(self, theta: Array) -> Array:
        """The diagonal of the Hessian in θ, (P,), at θ."""
        self.passes += 1

        def summed(block: Block) -> Array:
            made, out = self._made(block), np.zeros(len(theta))
            for i in self.terms.nodes:
                local = self.terms.local[i]
                H, _, point = self._pointwise(i, made, theta, True)
                assert point.curvature is not None
                own = np.diagonal(_packed_places(len(self.axes[i].degrees)))
                curvature = point.curvature.T[own] * block.weight
                out[local.terms] += np.einsum("kn,kn->k", H[local.where] ** 2, curvature[local.functions])
            return out

        with one_blas_thread():
            return self.samples.sum(summed, self.n_jobs) / self.n

    # ---------------------------------------------------------------- at one point

    def __call__(self, tau: Array, order: int = 2) -> At:
        """Value, and with `order` 1 the gradient, with 2 the Hessian."""
        self.passes += 1
        theta = self.terms.T @ tau

        def sums(block: Block) -> _Sums:
            made = self._made(block)
            nodes = [self._node(i, made, block.weight, theta, order) for i in self.terms.nodes]
            shift, value, gradient, hessian, unresolved, rounding = zip(*nodes, strict=True)
            return _Sums(
                np.array(shift),
                np.array(value),
                list(gradient) if order else [],
                list(hessian) if order > 1 else [],
                np.array(unresolved),
                sum(rounding),
            )

        with one_blas_thread():
            return self._linked(self.samples.sum(sums, self.n_jobs), order)

    def _made(self, block: Block) -> _Made:
        made = None if self._kept is None else self._kept.get(block.number)
        if made is None:
            phi = [axis.functions(x) for axis, x in zip(self.axes, block.X.T, strict=True)]
            prepare = self.loss.prepare
            prepared = [prepare(self.axes[i], block.X[:, i], phi[i]) for i in self.terms.nodes]
            made = _Made(self.terms.H(phi), prepared)
            if self._kept is not None:
                self._kept[block.number] = made
        return made

    def _pointwise(self, i: int, made: _Made, theta: Array, second: bool) -> tuple[Array, Array, Pointwise]:
        """The cofactors of node i in these rows, (c, n), a = H C_i, (n, J), and the loss there."""
        local = self.terms.local[i]
        H = made.H if len(local.cofactors) == len(made.H) else made.H[local.cofactors]
        a = (self.terms.scatter(theta, i).T @ H).T
        return H, a, self.loss.at(self.axes[i], a, made.prepared[i], second)

    def _node(self, i: int, made: _Made, weight: Array, theta: Array, order: int) -> tuple:
        """Shift, weighted sums of value, gradient (m,) and Hessian (m, m), unresolved rows and rounding of one node."""
        H, _, point = self._pointwise(i, made, theta, order > 1)
        rounding = np.finfo(float).eps * (weight @ point.magnitude)
        shift, value, w = 0.0, weight @ point.value, weight
        if self.loss.link == "log_mean":
            shift = point.value.max()
            w = weight * np.exp(point.value - shift)
            value = w.sum()
        gradient = hessian = None
        if order:
            gradient = self.terms.gather(i, H @ (point.slope * w[:, None]))
        if order > 1 and point.curvature is not None:
            hessian = self._gram(i, H, point.curvature * w[:, None])
        return shift, value, gradient, hessian, point.unresolved, rounding

    def _gram(self, i: int, H: Array, curvature: Array) -> Array:
        """Σ_n h hᵀ ⊗ curvature over the terms of node i, (m, m): a product for each function."""
        local = self.terms.local[i]
        terms, packed = H[local.where], _packed_places(len(self.axes[i].degrees))
        out = np.empty((len(terms), len(terms)))
        for l, (start, stop) in enumerate(zip(local.starts[:-1], local.starts[1:], strict=True)):
            if stop > start:
                right = terms[start:] * curvature.T[packed[l, local.functions[start:]]]
                block = terms[start:stop] @ right.T
                out[start:stop, start:] = block
                out[start:, start:stop] = block.T
        return out

    def _linked(self, sums: _Sums, order: int) -> At:
        """The link, after all blocks, and the sum over nodes, in τ."""
        K, log = len(self.terms), self.loss.link == "log_mean"
        gradient, hessian = np.zeros(K), np.zeros((K, K)) if order > 1 else None
        values = sums.shift + np.log(sums.value / self.n) if log else sums.value / self.n
        for node, (unknowns, T) in enumerate(self.terms.local_T):
            if not order:
                break
            scale = sums.value[node] if log else self.n
            g = sums.gradient[node] / scale
            gradient[unknowns] += g if T is None else T.T @ g
            if hessian is not None:
                A = sums.hessian[node] / scale
                if log:
                    A -= np.outer(g, g)
                hessian[np.ix_(unknowns, unknowns)] += A if T is None else T.T @ (T.T @ A).T
        return At(float(values.sum()), values, gradient, hessian, sums.unresolved, sums.rounding / self.n)

    # ---------------------------------------------------------------- row by row

    def scores(self, tau: Array, f: Callable[[Block, Array], Any]) -> Any:
        """Σ over blocks of f(block, S), S (K, rows) the scores of the rows: gradients of their loss, unweighted.

        With a log link they are those of the logarithm, node by node (w/w̄)(g − ḡ).
        """
        theta, log = self.terms.T @ tau, self.loss.link == "log_mean"
        linked = self._log_means(theta) if log else None

        def scored(block: Block) -> Any:
            made = self._made(block)
            S = np.zeros((len(self.terms), len(block.X)))
            for i, (unknowns, T) in zip(self.terms.nodes, self.terms.local_T, strict=True):
                local = self.terms.local[i]
                H, _, point = self._pointwise(i, made, theta, False)
                G = H[local.where] * point.slope.T[local.functions]
                if linked is not None:
                    mean, g = linked[i]
                    G = np.exp(point.value - mean) * (G - g[:, None])
                S[unknowns] += G if T is None else T.T @ G
            return f(block, S)

        with one_blas_thread():
            return self.samples.sum(scored, self.n_jobs)

    def losses(self, tau: Array) -> tuple[Array, Array]:
        """ℓ of each row and node, (n_rows, p), and each node's rows whose integrals are not resolved, (p,)."""
        theta = self.terms.T @ tau

        def rows(block: Block) -> list[tuple[Array, Array]]:
            made = self._made(block)
            points = [self._pointwise(i, made, theta, False)[2] for i in self.terms.nodes]
            return [(np.stack([point.value for point in points], axis=1), np.array([p.unresolved for p in points]))]

        with one_blas_thread():
            values, unresolved = zip(*self.samples.sum(rows, self.n_jobs), strict=True)
        return np.concatenate(values), np.sum(unresolved, axis=0)

    def _log_means(self, theta: Array) -> list[tuple[float, Array]]:
        """For each node log⟨exp ℓ⟩ and its gradient in θ."""

        def sums(block: Block) -> _Sums:
            made = self._made(block)
            nodes = [self._node(i, made, block.weight, theta, 1) for i in self.terms.nodes]
            shift, value, gradient, _, unresolved, _ = zip(*nodes, strict=True)
            return _Sums(np.array(shift), np.array(value), list(gradient), [], np.array(unresolved), 0.0)

        total = self.samples.sum(sums, self.n_jobs)
        means = total.shift + np.log(total.value / self.n)
        return [(m, g / v) for m, g, v in zip(means, total.gradient, total.value, strict=True)]

    def curvature_product(self, tau: Array) -> Callable[[Array], Array]:
        """v → A v with A the Hessian at τ (link: mean), from curvatures that are kept for each row."""
        theta = self.terms.T @ tau
        kept: dict[int, list[Array]] = {}

        def curvatures(block: Block) -> int:
            made = self._made(block)
            kept[block.number] = [
                np.ascontiguousarray(self._pointwise(i, made, theta, True)[2].curvature) for i in self.terms.nodes
            ]
            return 0

        with one_blas_thread():
            self.samples.sum(curvatures, self.n_jobs)

        def product(v: Array) -> Array:
            direction = self.terms.T @ v

            def summed(block: Block) -> Array:
                made, out = self._made(block), np.zeros(len(self.terms.products))
                for i in self.terms.nodes:
                    local = self.terms.local[i]
                    H = made.H if len(local.cofactors) == len(made.H) else made.H[local.cofactors]
                    b = (self.terms.scatter(direction, i).T @ H).T
                    slope = _packed_product(kept[block.number][i], b) * block.weight[:, None]
                    out[local.terms] += self.terms.gather(i, H @ slope)
                return out

            with one_blas_thread():
                return self.terms.T.T @ (self.samples.sum(summed, self.n_jobs) / self.n)

        return product


def _packed_places(size: int) -> Array:
    """Where (l, m) stands in a packed matrix, (size, size)."""
    places = np.empty((size, size), int)
    l, m = packed_pairs(size)
    places[l, m] = places[m, l] = np.arange(len(l))
    return places


def _packed_product(packed: Array, b: Array) -> Array:
    """Row by row a packed symmetric matrix times b, (n, J)."""
    places = _packed_places(b.shape[1])
    return np.stack([np.einsum("nm,nm->n", packed[:, places[l]], b) for l in range(b.shape[1])], axis=1)
