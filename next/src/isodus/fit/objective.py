"""The objective of every estimator: blocks outside, nodes inside. The only products with H."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from .._core.threads import one_blas_thread
from ..axes import Axis
from ..data import Block, Samples, in_task
from ..losses import Loss, NodeRows, Pointwise
from ..terms import Terms
from .sums import At, NodeAt, Pilot, Shared, Sums, gram, packed_product, squares

__all__ = ["At", "NodeAt", "Objective", "Pilot"]

Array = np.ndarray
_TOGETHER = 4096  # rows of nodes that are alike which are taken together
_KEPT_BYTES = 4 * 2**30  # of what is prepared per row, up to which it is kept between passes


class _Made(NamedTuple):
    """What is prepared once for a block of rows."""

    H: Array  # (cofactors, rows)
    prepared: list[Any]  # of the loss, for each node: the same for all terms


_Point = tuple[Sequence[int], Array, Pointwise]  # nodes, their cofactors, their loss


class Objective:
    """Σ_i link⟨ℓ(a_i, φ_i)⟩ with a_i = H C_i(T τ), the sum over nodes of the mean loss.

    Calling it gives value, gradient and Hessian at any τ; `at_nodes` those of nodes with unknowns of their own. Sums
    over rows are taken block by block, in the order of the blocks, whatever the number of threads.
    """

    def __init__(self, loss: Loss, terms: Terms, samples: Samples, n_jobs: int = 1, pilot: Pilot | None = None) -> None:
        self.loss, self.terms, self.samples, self.n_jobs, self.pilot = loss, terms, samples, n_jobs, pilot
        self.n, self.passes = samples.n, 0  # passes over the rows so far
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        """Without what is known of single rows; in a task for other processes without samples, too."""
        return vars(self) | {"_latest": None} | ({"samples": None, "n_jobs": 1, "_linked": {}} if in_task.get() else {})

    def _forget(self) -> None:
        """Start without prepared rows; they are kept from now on, if there is room."""
        axes = {id(axis): axis.unclamped() if self.loss.unclamped else axis for axis in self.terms.axes}
        self.axes: list[Axis] = [axes[id(axis)] for axis in self.terms.axes]
        columns = len(self.terms.cofactors) + 3 * sum(len(axis.degrees) + 1 for axis in self.axes)
        fits = self.samples.kept_between_passes and 8 * columns * self.samples.n_rows < _KEPT_BYTES
        self._kept: Shared[_Made] | None = Shared() if fits else None
        self._prepared: Mapping[int, _Made] = {}
        self._latest: tuple[list[Array], dict[int, list[Pointwise]]] | None = None
        self._linked: dict[bytes, list[NodeAt]] = {}

    def _with(self, **changes: Any) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self) | changes)
        other._forget()
        return other

    def only(self, keep: Array) -> Self:
        """The objective of some unknowns, the others zero."""
        other = self._with(terms=self.terms.only(keep))
        other._prepared = {} if self._kept is None else self._kept
        return other

    def kept(self) -> Self:
        """The objective on the kept rows; itself where these are all."""
        return self if self.samples.kept_samples is self.samples else self.on(self.samples.kept_samples)

    def take(self, rows: Array) -> Self:
        """The objective on some of the kept rows."""
        return self.on(self.samples.kept_samples.take(rows))

    def on(self, samples: Samples) -> Self:
        """The objective on other samples."""
        return self._with(samples=samples, n=samples.n)

    def with_loss(self, loss: Loss) -> Self:
        """The objective with another loss; itself where it has this one."""
        return self if loss == self.loss else self._with(loss=loss, pilot=None)

    def tilted(self, tau: Array | Mapping[int, Array], terms: Terms | None = None) -> Self:
        """The objective with the pilot τ, or with one for each node; terms: the pilot's, where these are others."""
        return self._with(pilot=Pilot(self.terms if terms is None else terms, tau))

    def built(self, terms: Terms, samples: Samples) -> Self:
        """The objective of the same terms on other axes, and of other rows; its pilot is carried to them."""
        pilot = None
        if self.pilot is not None:
            assert not isinstance(self.pilot.tau, Mapping)
            pilot = Pilot(terms, terms.carried(self.pilot.terms, self.pilot.tau))
        return self._with(terms=terms, samples=samples, n=samples.n, pilot=pilot)

    # ---------------------------------------------------------------- at one point

    def __call__(self, tau: Array, order: int = 2) -> At:
        """Value, and with `order` 1 the gradient, with 2 the Hessian."""
        nodes = self._at(self.terms.nodes, self._local(tau), order)
        K = len(self.terms)
        gradient, hessian = np.zeros(K), np.zeros((K, K)) if order > 1 else None
        for at, (unknowns, T) in zip(nodes, self.terms.local_T if order else (), strict=bool(order)):
            gradient[unknowns] += at.gradient if T is None else T.T @ at.gradient
            if hessian is not None:
                hessian[np.ix_(unknowns, unknowns)] += _transformed(at.hessian, T)
        values = np.array([at.value for at in nodes])
        unresolved = np.array([at.unresolved for at in nodes])
        return At(float(values.sum()), values, gradient, hessian, unresolved, sum(at.rounding for at in nodes))

    def at_nodes(self, taus: Mapping[int, Array], order: int = 2) -> dict[int, NodeAt]:
        """Value, gradient and Hessian of some nodes, each in unknowns of its own, those of `terms.local_T`."""
        nodes = sorted(taus)
        local = self._local_of_nodes(taus)
        found = {}
        for i, at in zip(nodes, self._at(nodes, [local[i] for i in nodes], order), strict=True):
            T = self.terms.local_T[i][1]
            gradient = at.gradient if T is None or not order else T.T @ at.gradient
            found[i] = at._replace(gradient=gradient, hessian=_transformed(at.hessian, T) if order > 1 else None)
        return found

    @np.errstate(over="ignore", invalid="ignore")  # where integrals are not resolved, which is found out later
    def diagonal(self, theta: Array) -> Array:
        """The diagonal of the Hessian in θ, (P,), at θ."""
        out, local = np.zeros(len(theta)), [theta[local.terms] for local in self.terms.local]
        for at, of in zip(self._at(self.terms.nodes, local, 2, diagonal=True), self.terms.local, strict=True):
            out[of.terms] += at.hessian
        return out

    def _local(self, tau: Array) -> list[Array]:
        """θ of the terms of each node."""
        theta = self.terms.T @ tau
        return [theta[local.terms] for local in self.terms.local]

    def _local_of_nodes(self, taus: Mapping[int, Array]) -> dict[int, Array]:
        """θ of the terms of some nodes, each from its own unknowns."""
        at = {i: self.terms.local_T[i][1] for i in taus}
        return {i: tau if at[i] is None else at[i] @ tau for i, tau in taus.items()}

    def _at(self, nodes: Sequence[int], local: Sequence[Array], order: int, diagonal: bool = False) -> list[NodeAt]:
        """Some nodes at θ of their own; the link comes after all blocks."""
        with one_blas_thread():
            sums = self._sums(nodes, local, order, diagonal)
        log, found = self.loss.link == "log_mean", []
        for k, top in enumerate(np.exp(sums.shift) if self.loss.link == "mean_exp" else np.ones(len(nodes))):
            scale = sums.value[k] if log else self.n / top
            value = sums.shift[k] + np.log(sums.value[k] / self.n) if log else sums.value[k] / scale
            g = sums.gradient[k] / scale if order else np.zeros(0)
            A = sums.second[k] / scale if order > 1 else None
            if A is not None and log:
                A -= g * g if diagonal else np.outer(g, g)
            rounding = sums.rounding[k] / self.n * (value if self.loss.link == "mean_exp" else 1.0)
            found.append(NodeAt(float(value), g, A, int(sums.unresolved[k]), rounding))
        return found

    def _sums(self, nodes: Sequence[int], local: Sequence[Array], order: int, diagonal: bool) -> Sums:
        self.passes += 1
        points = self._points(nodes, local, order > 1)

        def sums(block: Block) -> Sums:
            parts = [part for point in points(block) for part in self._nodes(*point, block.weight, order, diagonal)]
            shift, value, unresolved, rounding, *lists = (list(each) for each in zip(*parts, strict=True))
            numbers = np.array(shift), np.array(value), np.array(unresolved), np.array(rounding)
            return Sums(*numbers, lists[0] if order else [], lists[1] if order > 1 else [])

        return self.samples.sum(sums, self.n_jobs)

    def _made(self, block: Block) -> _Made:
        made = None if self._kept is None else self._kept.get(block.number)
        if made is None:
            phi = [axis.functions(x) for axis, x in zip(self.axes, block.X.T, strict=True)]
            H = self.terms.H(phi)
            known = self._prepared.get(block.number)
            made = _Made(H, self._prepare(block, phi, H) if known is None else known.prepared)
            if self._kept is not None:
                self._kept[block.number] = made
        return made

    def _prepare(self, block: Block, phi: Sequence[Array], H: Array) -> list[Any]:
        """What the loss prepares of each node; H: the cofactors of `terms`."""
        pilots: list[Array | None] = [None] * len(self.axes)
        if self.pilot is not None:
            terms = self.pilot.terms
            H0 = H if terms is self.terms else terms.H(phi)
            C = [terms.scattered(theta, i) for i, theta in enumerate(self.pilot.local())]
            pilots = [(C[i].T @ terms.cofactors_of([i], H0)).T for i in terms.nodes]
        rows = zip(self.axes, block.X.T, phi, pilots, strict=True)
        return [self.loss.prepare(NodeRows(i, *row)) for i, row in enumerate(rows)]

    def _points(
        self, nodes: Sequence[int], local: Sequence[Array], second: bool
    ) -> Callable[[Block], Iterator[_Point]]:
        """The loss of some nodes at a = H C_i. Few rows of nodes that are alike are taken together, with a new axis.

        What the latest pass over all nodes has found is kept beside the rows, and not computed again at the same θ.
        """
        C = [self.terms.scattered(theta, i) for i, theta in zip(nodes, local, strict=True)]
        kept: dict[int, list[Pointwise]] | None = None
        if self._kept is not None and self.samples.in_memory and len(nodes) == len(self.axes):
            if self._latest is None or not all(map(np.array_equal, self._latest[0], local)):
                self._latest = [theta.copy() for theta in local], {}
            kept = self._latest[1]

        def points(block: Block) -> Iterator[_Point]:
            made, k, found = self._made(block), 0, list[Pointwise]()
            known = None if second or kept is None else kept.get(block.number)
            most = max(1, _TOGETHER // made.H.shape[1])
            while k < len(nodes):
                stop = k + 1
                while stop < min(k + most, len(nodes)) and self.terms.alike[nodes[stop]] == self.terms.alike[nodes[k]]:
                    stop += 1
                run = nodes[k:stop]
                H = self.terms.cofactors_of(run, made.H)
                point = self._point(run, H, C[k:stop], made.prepared, second) if known is None else known[len(found)]
                yield run, H, point
                found.append(point._replace(curvature=None))
                k = stop
            if kept is not None:
                kept[block.number] = found

        return points

    def _point(
        self, run: Sequence[int], H: Array, C: Sequence[Array], prepared: Sequence[Any], second: bool
    ) -> Pointwise:
        """The loss of nodes that are alike."""
        axis = self.axes[run[0]]
        if len(run) == 1:
            return self.loss.at(axis, (C[0].T @ H).T, prepared[run[0]], second)
        a = (np.stack(C).mT @ H).mT.reshape(-1, len(axis.degrees))
        rows = tuple(np.concatenate(parts) for parts in zip(*(prepared[i] for i in run), strict=True))
        point = self.loss.at(axis, a, rows, second)
        return Pointwise._make(v if v is None else v.reshape(len(run), -1, *v.shape[1:]) for v in point)

    def _nodes(
        self, nodes: Sequence[int], H: Array, point: Pointwise, weight: Array, order: int, diagonal: bool
    ) -> list[tuple]:
        """Shift, value, unresolved rows, rounding, gradient and Hessian of nodes that are alike: weighted sums."""
        rounding = np.finfo(float).eps * ((1 + point.magnitude) @ weight)  # 1: of exp and log
        shift, value, w = np.zeros(point.value.shape[:-1]), point.value @ weight, weight
        if self.loss.link != "mean":
            shift = point.value.max(axis=-1)
            w = weight * np.exp(point.value - shift[..., None])
            value = w.sum(axis=-1)
        gradient = second = None
        if order:
            gradient = self.terms.gather(nodes[0], H @ (point.slope * w[..., None]))
        if order > 1 and point.curvature is not None:
            second = (squares if diagonal else gram)(self.terms.local[nodes[0]], H, point.curvature * w[..., None])
        sums = (shift, value, np.count_nonzero(point.unresolved, axis=-1), rounding, gradient, second)
        return [sums] if len(nodes) == 1 else [_entry(sums, k) for k in range(len(nodes))]

    # ---------------------------------------------------------------- row by row

    def scores(self, tau: Array, f: Callable[[Block, Array], Any]) -> Any:
        """Σ over blocks of f(block, S), S (K, rows) the scores of the rows: gradients of their loss, unweighted.

        With a log link they are those of the logarithm, node by node (w/w̄)(g − ḡ).
        """

        def joint(block: Block, parts: Iterator[Array]) -> Any:
            S = np.zeros((len(self.terms), len(block.X)))
            for G, (unknowns, _) in zip(parts, self.terms.local_T, strict=True):
                S[unknowns] += G
            return f(block, S)

        return self._scored(self._local(tau), joint)

    def node_scores(self, taus: Mapping[int, Array], f: Callable[[Block, Iterator[Array]], Any]) -> Any:
        """Σ over blocks of f(block, S_i …), S_i (m, rows) the scores of each node in its own unknowns, in turn."""
        local = self._local_of_nodes(taus)
        return self._scored([local[i] for i in self.terms.nodes], f)

    def _scored(self, local: Sequence[Array], f: Callable[[Block, Iterator[Array]], Any]) -> Any:
        linked = self._at_link(local)

        def of_nodes(points: Iterator[tuple[Array, Pointwise]]) -> Iterator[Array]:
            for i, ((H, point), (_, T)) in enumerate(zip(points, self.terms.local_T, strict=True)):
                of = self.terms.local[i]
                G = H[of.where] * point.slope.T[of.functions]
                if linked is not None:
                    G = np.exp(point.value - linked[i].value) * (G - linked[i].gradient[:, None])
                elif self.loss.link == "mean_exp":
                    G *= np.exp(point.value)
                yield G if T is None else T.T @ G

        return self._each(local, lambda block, points: f(block, of_nodes(points)))

    def _at_link(self, local: Sequence[Array]) -> list[NodeAt] | None:
        """Value and gradient of each node where the link is a logarithm: scores are relative to them."""
        key = b"".join(theta.tobytes() for theta in local)
        if self.loss.link == "log_mean" and key not in self._linked:
            self._linked = {key: self._at(self.terms.nodes, local, 1)}
        return self._linked.get(key)

    def _each(
        self, local: Sequence[Array], f: Callable[[Block, Iterator[tuple[Array, Pointwise]]], Any], second: bool = False
    ) -> Any:
        """Σ over blocks of f(block, the cofactors and the loss of each node, in turn)."""
        points = self._points(self.terms.nodes, local, second)

        def alone(points: Iterator[_Point]) -> Iterator[tuple[Array, Pointwise]]:
            for run, H, point in points:
                for k in range(len(run)):
                    yield (H, point) if len(run) == 1 else (H[k], Pointwise(*_entry(point, k)))

        def seen(block: Block) -> Any:
            return f(block, alone(points(block)))

        with one_blas_thread():
            return self.samples.sum(seen, self.n_jobs)

    def losses(self, tau: Array) -> tuple[Array, Array]:
        """ℓ of each row and node, (n_rows, p), and each node's rows whose integrals are not resolved, (p,)."""

        def rows(block: Block, points: Iterator[tuple[Array, Pointwise]]) -> list[tuple[Array, Array]]:
            values, unresolved = zip(*((point.value, point.unresolved.sum()) for _, point in points), strict=True)
            return [(np.stack(values, axis=1), np.array(unresolved))]

        values, unresolved = zip(*self._each(self._local(tau), rows), strict=True)
        return np.concatenate(values), np.sum(unresolved, axis=0)

    def row_slopes(self, taus: Mapping[int, Array]) -> list[Array]:
        """∂ℓ/∂a of each row, (J, n_rows) for each node: a term's slope is their weighted mean times its cofactor."""
        local = self._local_of_nodes(taus)
        own = [local[i] for i in self.terms.nodes]
        linked = self._at_link(own)

        def slopes(block: Block, points: Iterator[tuple[Array, Pointwise]]) -> list[list[Array]]:
            found = []
            for i, (_, point) in enumerate(points):
                w = 1.0 if self.loss.link == "mean" else np.exp(point.value - (linked[i].value if linked else 0.0))
                found.append(point.slope.T * w)
            return [found]

        return [np.concatenate(parts, axis=1) for parts in zip(*self._each(own, slopes), strict=True)]

    def effective_rows(self, taus: Mapping[int, Array]) -> Array:
        """(Σ w)²/Σ w² of each node's weights exp ℓ: how many rows the mean of exp ℓ counts, (p,)."""
        local = self._local_of_nodes(taus)
        own = [local[i] for i in self.terms.nodes]
        top = np.array([at.value for at in self._at_link(own) or self._at(self.terms.nodes, own, 0)])
        top = np.log(top) if self.loss.link == "mean_exp" else top

        def sums(block: Block, points: Iterator[tuple[Array, Pointwise]]) -> Array:
            w = np.exp(np.stack([point.value for _, point in points]) - top[:, None])
            return np.array([w @ block.weight, w**2 @ block.square])

        first, second = self._each(own, sums)
        return first**2 / second

    def curvature_product(self, tau: Array) -> Callable[[Array], Array]:
        """v → A v with A the Hessian at τ, from curvatures that are kept for each row in memory."""
        local = self._local(tau)
        linked = self._at_link(local)
        kept = dict[int, list[Array]]()

        def curvatures(points: Iterator[tuple[Array, Pointwise]]) -> Iterator[Array]:
            for i, (_, point) in enumerate(points):
                assert point.curvature is not None
                w = 1.0 if linked is None else np.exp(point.value - linked[i].value)[:, None]
                yield np.ascontiguousarray(point.curvature * w)

        if self.samples.in_memory:
            kept = dict(self._each(local, lambda block, points: [(block.number, [*curvatures(points)])], second=True))

        def product(v: Array) -> Array:
            direction = self.terms.T @ v
            B = [self.terms.scatter(direction, i) for i in self.terms.nodes]

            def summed(block: Block, points: Iterator[tuple[Array, Pointwise]]) -> Array:
                made, out = self._made(block), np.zeros(len(self.terms.products))
                for i, curvature in enumerate(kept.get(block.number) or curvatures(points)):
                    H = self.terms.cofactors_of([i], made.H)
                    slope = packed_product(curvature, (B[i].T @ H).T) * block.weight[:, None]
                    out[self.terms.local[i].terms] += self.terms.gather(i, H @ slope)
                return out

            image = self._each(local, summed, second=True) / self.n
            for at, of in zip(linked or (), self.terms.local, strict=linked is not None):
                image[of.terms] -= at.gradient * (at.gradient @ direction[of.terms])
            return self.terms.T.T @ image

        return product


def _entry(values: tuple, k: int) -> tuple:
    """Entry k of each array."""
    return tuple(v if v is None else v[k] for v in values)


def _transformed(A: Array | None, T: Any) -> Array:
    """TᵀAT."""
    assert A is not None
    return A if T is None else T.T @ (T.T @ A).T
