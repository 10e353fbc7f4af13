"""θ with its basis: the energy E(x) = Σ_k θ_k x^{α_k}, its gradient, its conditional coefficients.

Variables are rows here, X has shape (p, n): powers and cofactors are then products of contiguous
rows. Seen from node i,

    E(x) = Σ_{l=1..s} a_l x_i^l + (terms without x_i),      a_l = Σ_{k : x_i^l in k} θ_k · (k without x_i),

so that a = C H with H the cofactors and C the parameters of node i put in their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from .arrays import Array, empty, matmul_into, multiply_into, namespace, on_device, set_rows, to_host
from .basis import Local, MonomialBasis
from .factors import Index
from .spaces import PLAIN, batches, powers

__all__ = [
    "Coefficients",
    "Cofactors",
    "cancels",
    "cofactor_matrix",
    "conditional_coefficients",
    "conditional_log_density",
    "descend",
    "energy",
    "features",
    "gather",
    "gradient",
    "local_parameters",
    "of_first",
    "of_slopes",
    "powers",
    "raw_matrix",
    "raw_units",
    "rows",
    "scatter",
    "single",
    "thin",
    "transpose_product",
]


_THIN = 0.1  # share of parameters below which sparse products are quicker


def rows(A: Array, index: Index) -> Array:
    """``A[index]`` for a slice (a view) or an index array (a copy)."""
    if isinstance(index, slice):
        return A[index, ...]
    return namespace(A).take(A, on_device(index, A), axis=0)


def features(basis: MonomialBasis, X: Array, s: int, slopes: bool = False) -> Array:
    """φ_l(x_i) of every variable and sample, (s, p, n), or φ_l'; X: (p, n), or with more rows."""
    X = X[: basis.n_variables, :]
    if basis.spaces is None and not slopes:
        return powers(X, s)
    spaces = basis.spaces or (PLAIN,) * basis.n_variables
    out = empty((s, *X.shape), X)
    for space, at in batches(spaces, range(basis.n_variables)):
        x = rows(X, at)
        set_rows(out, at, space.slopes(x, s)[0] if slopes else space.features(x, s), axis=1)
    return out


def cofactor_matrix(basis: MonomialBasis, X: Array, most: int | None = None) -> Array:
    """H, shape (m, n): every cofactor of the basis at every sample; X has shape (p, n). most: the first so many."""
    H = empty((most or len(basis.cofactors), X.shape[1]), X)
    H[:1, :] = 1.0
    X = _factors(basis, X)
    for columns, variables, parents in basis.recipes:
        if columns.stop <= H.shape[0]:
            multiply_into(H[columns, :], rows(X, variables), rows(H, parents))
    return H


def _factors(basis: MonomialBasis, X: Array) -> Array:
    """What cofactors are products of: the variables, or, where there are other functions than powers, all of those."""
    if not basis.featured or basis.degree == 1:
        return X
    return namespace(X).reshape(features(basis, X, basis.degree - 1), (-1, X.shape[1]))


class Cofactors(NamedTuple):
    """H of which only the rows of degree ≤ s − 2 are made: most are of degree s − 1, a variable times one of those."""

    basis: MonomialBasis
    X: Array
    lower: Array

    @classmethod
    def of(cls, basis: MonomialBasis, X: Array) -> Cofactors:
        """At samples X, (p, n)."""
        lower = cofactor_matrix(basis, X, int(basis.cofactor_ends[max(basis.degree - 2, 0)]))
        return cls(basis, _factors(basis, X[: basis.n_variables, :]), lower)

    def squared(self) -> Cofactors:
        """H²."""
        return Cofactors(self.basis, self.X * self.X, self.lower * self.lower)

    def product(self, v: Array) -> Array:
        """v Hᵀ, v of shape (q, n): that with x_j h is that of v x_j with h, many h at once."""
        xp, m = namespace(v), self.lower.shape[0]
        out = empty((v.shape[0], len(self.basis.cofactors)), v)
        out[:, :m] = v @ xp.matrix_transpose(self.lower)
        for columns, variables, parents in self.basis.recipes:
            if columns.start < m:
                continue
            x, lower = rows(self.X, variables), rows(self.lower, parents)
            v_x, h = (v * x, lower) if x.shape[0] == 1 else (v, x * lower)
            out[:, columns] = v_x @ xp.matrix_transpose(h)
        return out


def local_parameters(basis: MonomialBasis, theta: np.ndarray, nodes: Sequence[int]) -> list[np.ndarray]:
    """The parameters of the terms of each node, in the order of `basis.local`."""
    return [theta[basis.local(i).terms] for i in nodes]


class Coefficients(NamedTuple):
    """C: the parameters of q nodes in the places of their cofactors.

    A term with x_i^l has a cofactor of degree ≤ s − l. So the first power needs every cofactor,
    first: (q, m), and the higher ones only those of degree ≤ s − 2, higher: (s − 1, q, m₂).
    """

    first: Array
    higher: Array  # or, of `thin` ones, a list


def scatter(basis: MonomialBasis, nodes: Sequence[int], thetas: Sequence[np.ndarray], like: Array) -> Coefficients:
    """Local parameters of several nodes as coefficients of their cofactors, on the device of `like`."""
    s, q = basis.degree, len(nodes)
    first = np.zeros((q, len(basis.cofactors)))
    higher = np.zeros((s - 1, q, int(basis.cofactor_ends[max(s - 2, 0)])))
    for j, (i, theta) in enumerate(zip(nodes, thetas, strict=True)):
        local = basis.local(i)
        for l, (start, stop) in enumerate(pairwise(local.ends)):
            target = higher[l - 1, j] if l else first[j]
            target[local.cofactors[start:stop]] = theta[start:stop]
    return Coefficients(on_device(first, like), on_device(higher, like))


def gather(local: Local, j: int, C: Coefficients) -> np.ndarray:
    """The parameters of one node, the j-th of C, on the host: the opposite of `scatter`."""
    theta = np.empty(len(local.terms))
    for l, (start, stop) in enumerate(pairwise(local.ends)):
        source = C.higher[l - 1, j, :] if l else C.first[j, :]
        theta[start:stop] = to_host(source)[local.cofactors[start:stop]]
    return theta


def conditional_coefficients(C: Coefficients, H: Array) -> Array:
    """a = C H, shape (s, q, n): the coefficient of x_i^l at every sample."""
    if isinstance(C.higher, list):
        return np.stack([c @ H[: c.shape[1]] for c in (C.first, *C.higher)])
    xp = namespace(H)
    higher, q, m = C.higher.shape
    a = empty((higher + 1, q, H.shape[1]), H)
    matmul_into(a[0, :, :], C.first, H)
    if higher:
        rest = xp.reshape(a[1:, :, :], (higher * q, H.shape[1]))
        matmul_into(rest, xp.reshape(C.higher, (higher * q, m)), H[:m, :])
    return a


def conditional_log_density(basis: MonomialBasis, theta: np.ndarray, X: Array) -> Array:
    """log P(x_i | rest) of every variable at every sample of X, both (p, n); −inf where it does not exist."""
    nodes = range(basis.n_variables)
    C = scatter(basis, nodes, local_parameters(basis, theta, nodes), X)
    a = conditional_coefficients(C, cofactor_matrix(basis, X))
    xp, spaces = namespace(X), basis.spaces or (PLAIN,) * len(nodes)
    log_z = xp.stack([spaces[i].expectations(a[:, i, :], means=False).log_z for i in nodes])
    a *= features(basis, X, basis.degree)
    return -xp.sum(a, axis=0) - log_z


def transpose_product(v: Array, H: Array | Cofactors, m: int) -> Coefficients:
    """v Hᵀ for v of shape (s, q, n): how derivatives by a become those by θ; m: cofactors of degree ≤ s − 2."""
    xp = namespace(v)
    s, q, n = v.shape
    if isinstance(H, Cofactors):
        first, lower = H.product(v[0, :, :]), H.lower
    else:
        first, lower = v[0, :, :] @ xp.matrix_transpose(H), H[:m, :]
    rest = xp.reshape(v[1:, :, :], ((s - 1) * q, n)) @ xp.matrix_transpose(lower)
    return Coefficients(first, xp.reshape(rest, (s - 1, q, m)))


def of_slopes(basis: MonomialBasis, theta: np.ndarray, like: Array) -> Coefficients:
    """The coefficients of ∂E/∂x_i = Σ_l l a_l x_i^{l−1}, all nodes: those of the energy times l.

    Of ∂E/∂x_i = Σ_l a_l φ_l'(x_i), where there are other functions: those of the energy.
    """
    nodes, slopes = range(basis.n_variables), []
    if basis.featured:
        return thin(scatter(basis, nodes, local_parameters(basis, theta, nodes), like))
    for i in nodes:
        local = basis.local(i)
        slopes.append(theta[local.terms] * np.repeat(np.arange(1, len(local.ends)), np.diff(local.ends)))
    return thin(scatter(basis, nodes, slopes, like))


def of_first(basis: MonomialBasis, theta: np.ndarray, like: Array) -> Coefficients:
    """The coefficients of all nodes, each term only at its first variable."""
    nodes = range(basis.n_variables)
    first = [np.where(basis.factors[basis.local(i).terms, 0] == i, theta[basis.local(i).terms], 0.0) for i in nodes]
    return thin(scatter(basis, nodes, first, like))


def thin(C: Coefficients) -> Coefficients:
    """The same where most variables do not interact: sparse, or, for powers of x_i alone, of one column or none."""
    if type(C.first) is not np.ndarray or np.count_nonzero(C.first) > _THIN * C.first.size:
        return C
    lean = [csr_array(c) if c[:, 1:].any() else c[:, : int(c.any())] for c in (C.first, *C.higher)]
    return Coefficients(lean[0], lean[1:])


def single(C: Coefficients) -> Coefficients:
    """The same in single precision; NumPy and SciPy arrays only."""
    higher = [c.astype(np.float32) for c in C.higher] if isinstance(C.higher, list) else C.higher.astype(np.float32)
    return Coefficients(C.first.astype(np.float32), higher)


def _horner(C: Coefficients, H: Array, X: Array) -> Array:
    """Σ_l a_l x_i^{l−1}, a = C H, shape (p, n); where a_l is a constant there is no product."""
    higher = C.higher if isinstance(C.higher, list) else [C.higher[l, ...] for l in range(C.higher.shape[0])]
    value, fresh = None, False  # fresh: not the coefficients themselves
    for c in (*higher[::-1], C.first):
        if fresh:
            value *= X
        elif value is not None:
            value, fresh = value * X, True
        m = c.shape[1]
        if m > 1:
            a = c @ H[:m, :]
            if value is not None:
                a += value
            value, fresh = a, True
        elif m and fresh:
            value += c
        elif m:
            value = c
    return value if fresh else namespace(X).zeros_like(X) + (0.0 if value is None else value)


def energy(basis: MonomialBasis, theta: np.ndarray, X: Array, C: Coefficients | None = None) -> Array:
    """E(x) at every sample, shape (n,); X has shape (p, n). C: `of_first`, where it is known."""
    C = C or of_first(basis, theta, X)
    if basis.featured:
        a = conditional_coefficients(C, cofactor_matrix(basis, X))
        return namespace(X).sum(a * features(basis, X, basis.degree), axis=(0, 1))
    value = _horner(C, cofactor_matrix(basis, X), X)
    value *= X
    return namespace(X).sum(value, axis=0)


def cancels(where: str, size: float) -> ValueError:
    """What to raise where terms of this size add up to an energy that is lost in their rounding."""
    return ValueError(
        f"the energy cancels: {where}, terms of size {size:.1e} add up to it, more than double precision can tell. "
        "If it is where it should be, write the model in variables centred there (location, scale). If it was learned "
        "and is not there, isodus.match_moments finds one that is"
    )


def gradient(basis: MonomialBasis, theta: np.ndarray, X: Array, C: Coefficients | None = None) -> Array:
    """∂E/∂x_i = Σ_l l a_l x_i^{l−1} for every variable and sample, shape (p, n). C: `of_slopes`, where it is known."""
    C = C or of_slopes(basis, theta, X)
    if basis.featured:
        a = conditional_coefficients(C, cofactor_matrix(basis, X))
        return namespace(X).sum(a * features(basis, X, basis.degree, slopes=True), axis=0)
    return _horner(C, cofactor_matrix(basis, X), X)


def descend(basis: MonomialBasis, theta: np.ndarray, X: np.ndarray, ftol: float) -> np.ndarray:
    """Points near minima of E, (p, n), downhill from each of X; ftol: the relative change of their sum that ends it."""
    first, slopes = of_first(basis, theta, X), of_slopes(basis, theta, X)

    def total(x: np.ndarray) -> tuple[float, np.ndarray]:
        at = x.reshape(X.shape)
        return float(energy(basis, theta, at, first).sum()), gradient(basis, theta, at, slopes).ravel()

    options = {"maxiter": 200, "ftol": ftol}
    return minimize(total, X.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(X.shape)


def raw_units(basis: MonomialBasis, theta: np.ndarray, location: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """θ of the same energy (up to a constant) written in x, where `theta` belongs to y = (x − c)/d.

    Π_j (x_j − c_j) = Σ over subsets of the factors kept, Π kept x · Π dropped (−c); the basis must be
    closed under translation where c ≠ 0.
    """
    pieces = (
        np.bincount(to, theta[source] * entries, len(theta))
        for to, source, entries in _expansion(basis, location, scale)
    )
    return sum(pieces, np.zeros(len(theta)))


def raw_matrix(basis: MonomialBasis, location: np.ndarray, scale: np.ndarray) -> csr_array:
    """The linear map of `raw_units` as a sparse (M, M) matrix."""
    to, source, entries = map(np.concatenate, zip(*_expansion(basis, location, scale), strict=True))
    T = csr_array((entries, (to, source)), shape=(len(basis), len(basis)))
    T.eliminate_zeros()
    return T


def _expansion(
    basis: MonomialBasis, location: np.ndarray, scale: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The entries of that map: (which terms they go to, which they come from, factors), piece by piece."""
    everything = np.arange(len(basis))
    # factors are padded with -1, which picks the 1 appended last
    unit = 1 / np.append(scale, 1.0)[basis.factors].prod(axis=1)
    yield everything, everything, unit
    for d in range(2, basis.degree + 1) if np.any(location) else ():
        terms = everything[basis.degrees == d]
        factors = basis.factors[terms, :d]
        for n_kept in range(1, d):
            for kept in combinations(range(d), n_kept):
                dropped = np.setdiff1d(np.arange(d), kept)
                factor = unit[terms] * np.prod(-location[factors[:, dropped]], axis=1)
                yield basis.positions(factors[:, list(kept)]), terms, factor
