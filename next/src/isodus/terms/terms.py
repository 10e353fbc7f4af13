"""Which products of functions a model has, what is left of each without a variable, and θ = T τ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import lsqr

from ..axes import Axis
from .keys import Key, Product, closed, key_of, product_of
from .transform import condition, of_powers, on_other_axes

__all__ = ["Local", "Terms"]

Array = np.ndarray
_DENSE = 4096  # entries of a node's T up to which it is an array
_DENSE_WHOLE = 1 << 16  # entries of the whole T up to which it is an array


class Local(NamedTuple):
    """The terms of one node, sorted by the function that the variable has in them.

    A term's value is its cofactor times that function: Σ_k θ_k f_k = Σ_l a_l φ_l + (terms without the variable).
    """

    terms: Array  # (m,) places in θ
    cofactors: Array  # (c,) columns of H that the node needs
    where: Array  # (m,) which of these each term has
    functions: Array  # (m,) l of each term
    starts: Array  # (J + 1,) terms of function l are starts[l] to starts[l + 1]


class Terms:
    """The products of functions in a model, and the unknowns τ, of which θ = T τ are the products' coefficients.

    T is the identity where the keys include every divisor of each term. Elsewhere a key is a product of powers of x,
    and T writes it in the functions of its closure. Keys that are tied share one unknown.

    Parameters
    ----------
    axes : sequence of Axis
    keys : sequence of tuples of int
        The terms, such as (0, 0, 1) for x0² x1.
    ties : sequence of int, optional
        For each key, the number of the unknown that it shares with others.
    in_powers : bool, default=False
        Whether keys are powers of y = (x − location)/scale also where they include every divisor.

    Attributes
    ----------
    products : list of tuples
        What θ are the coefficients of.
    keys : list of tuples
        One for each unknown; where keys are tied, the first.
    identity : bool
        Whether T is the identity.
    copies : int
        The smallest number of terms that share one unknown; tied variables multiply the rows.
    """

    def __init__(
        self, axes: Sequence[Axis], keys: Sequence[Key], ties: Sequence[int] | None = None, in_powers: bool = False
    ) -> None:
        self.axes, self.keys = list(axes), [tuple(sorted(key)) for key in keys]
        whole = ties is None and closed(self.keys, axes)
        self.identity = whole and not in_powers
        self.copies = 1 if ties is None else int(np.bincount(ties).min())
        if self.identity:
            self.products, self.T = [product_of(key) for key in self.keys], csr_array(eye_array(len(keys)))
        else:
            self.products, self.T = of_powers(axes, self.keys, whole)
            if whole:  # the products are those of the keys
                place = {factors: k for k, factors in enumerate(self.products)}
                order = [place[product_of(key)] for key in self.keys]
                self.products, self.T = [self.products[k] for k in order], self.T[order]
        if ties is not None:
            self.T = csr_array(self.T @ csr_array((np.ones(len(keys)), (np.arange(len(keys)), ties))))
            self.keys = [self.keys[list(ties).index(t)] for t in range(self.T.shape[1])]

    @classmethod
    def of(
        cls,
        axes: Sequence[Axis],
        products: Sequence[Product],
        T: csr_array | None = None,
        keys: Sequence[Key] | None = None,
        identity: bool = True,
        copies: int = 1,
    ) -> Self:
        """Terms from all that they hold, such as what a file keeps; by default with T the identity."""
        terms = cls.__new__(cls)
        terms.axes, terms.products = list(axes), list(products)
        terms.T = csr_array(eye_array(len(products))) if T is None else T
        terms.keys = [key_of(factors) for factors in products] if keys is None else list(keys)
        terms.identity, terms.copies = identity, copies
        return terms

    def only(self, keep: Array) -> Self:
        """The terms of some unknowns alone."""
        keep = np.arange(len(self))[keep]
        T = self.T[:, keep]
        rows = np.flatnonzero(np.diff(T.indptr))
        products, keys = [self.products[k] for k in rows], [self.keys[k] for k in keep]
        return self.of(self.axes, products, T[rows], keys, self.identity, self.copies)

    def __len__(self) -> int:
        return len(self.keys)

    # ---------------------------------------------------------------- facts about terms

    @property
    def nodes(self) -> range:
        """The variables whose conditional density is learned."""
        return range(len(self.axes))

    def degree_of(self, factors: Product) -> int:
        """The degree of a product: the sum of its functions' degrees."""
        return int(sum(self.axes[i].degrees[l] for i, l in factors))

    @cached_property
    def degrees(self) -> Array:
        """The degree of each unknown's term, (K,)."""
        return np.array([self.degree_of(product_of(key)) for key in self.keys], int)

    @cached_property
    def product_degrees(self) -> Array:
        """Degree of each product, (P,)."""
        return np.array([self.degree_of(factors) for factors in self.products], int)

    @cached_property
    def roughness(self) -> Array:
        """|α|² = Σ α_i² of each product, (P,)."""
        return np.array([sum(int(self.axes[i].degrees[l]) ** 2 for i, l in f) for f in self.products], float)

    @cached_property
    def blocks(self) -> list[Array]:
        """Products of the same variables in the same degrees, whose ridge is one: cos and sin of a circle."""
        return list(_places(tuple((i, int(self.axes[i].degrees[l])) for i, l in f) for f in self.products).values())

    @cached_property
    def orders(self) -> Array:
        """The number of variables of each unknown's term, (K,)."""
        return np.array([len(set(key)) for key in self.keys], int)

    @cached_property
    def interactions(self) -> dict[Key, Array]:
        """The unknowns of each set of variables, of own terms too."""
        found = _places(tuple(sorted(set(key))) for key in self.keys)
        return {variables: found[variables] for variables in sorted(found, key=lambda v: (len(v), v))}

    @cached_property
    def m(self) -> int:
        """The largest number of unknowns at one node."""
        return max(len(unknowns) for unknowns, _ in self.local_T)

    def rows_per_unknown(self, n: float) -> float:
        """Of n rows, how many there are for each unknown of a node; those of tied variables add up."""
        return n * self.copies / max(self.m, 1)

    def condition(self) -> float:
        """Condition number of T."""
        return 1.0 if self.identity else condition(self.T, list(self.interactions.values()))

    # ---------------------------------------------------------------- one node at a time

    @cached_property
    def cofactors(self) -> dict[Product, int]:
        """Columns of H: what is left of a term without a variable, and the products that it is made from."""
        found: set[Product] = {()}
        for factors in self.products:
            for factor in factors:
                rest = tuple(f for f in factors if f != factor)
                found.update(rest[:size] for size in range(1, len(rest) + 1))
        return {rest: c for c, rest in enumerate(sorted(found, key=lambda r: (len(r), r)))}

    @cached_property
    def local(self) -> list[Local]:
        """The terms of each node."""
        rows: list[list[tuple[int, int, int]]] = [[] for _ in self.axes]
        for k, factors in enumerate(self.products):
            for i, l in factors:
                rows[i].append((l, self.cofactors[tuple(f for f in factors if f[0] != i)], k))
        return [self._local(i, sorted(found)) for i, found in enumerate(rows)]

    def _local(self, i: int, rows: list[tuple[int, int, int]]) -> Local:
        functions, columns, terms = np.array(rows, int).reshape(-1, 3).T
        used, where = np.unique(columns, return_inverse=True)
        starts = np.searchsorted(functions, np.arange(len(self.axes[i].degrees) + 1))
        return Local(terms, used, where, functions, starts)

    @cached_property
    def alike(self) -> list[Hashable]:
        """A label for each node, the same for nodes that share an axis and differ in their cofactors alone."""
        nodes = zip(self.axes, self.local, strict=True)
        return [(id(axis), of.where.tobytes(), of.functions.tobytes()) for axis, of in nodes]

    def H(self, phi: Sequence[Array]) -> Array:
        """The cofactors of a block of rows, one multiplication each; transposed: (cofactors, rows).

        phi: functions of each variable, (rows, J) each.
        """
        H = np.empty((len(self.cofactors), len(phi[0])))
        for rest, c in self.cofactors.items():
            if not rest:
                H[c] = 1.0
            elif len(rest) == 1:
                H[c] = phi[rest[0][0]][:, rest[0][1]]
            else:
                i, l = rest[-1]
                np.multiply(H[self.cofactors[rest[:-1]]], phi[i][:, l], out=H[c])
        return H

    def scatter(self, theta: Array, i: int) -> Array:
        """C_i, (c, J), with a = H C_i the coefficients of the functions of variable i given the rest."""
        return self.scattered(theta[self.local[i].terms], i)

    def scattered(self, own: Array, i: int) -> Array:
        """C_i, (c, J), from θ of the terms of variable i, (m,)."""
        local = self.local[i]
        C = np.zeros((len(local.cofactors), len(self.axes[i].degrees)))
        C[local.where, local.functions] = own
        return C

    def cofactors_of(self, nodes: Sequence[int], H: Array) -> Array:
        """The cofactors of a node, (c, n), or of several that are alike, (nodes, c, n); H: all, (cofactors, n)."""
        used = [self.local[i].cofactors for i in nodes]
        if len(used) > 1:
            return H[np.stack(used)]
        return H if len(used[0]) == len(H) else H[used[0]]

    def gather(self, i: int, G: Array) -> Array:
        """The entries of (c, J) matrices that belong to the terms of node i, (m,)."""
        return G[..., self.local[i].where, self.local[i].functions]

    @cached_property
    def local_T(self) -> list[tuple[Array, Array | csr_array | None]]:
        """For each node, the unknowns that its terms depend on, and the rows of T for its terms over these.

        None in place of T where it is the identity; small ones are arrays.
        """
        if self.identity:
            return [(local.terms, None) for local in self.local]
        found: list[tuple[Array, Array | csr_array | None]] = []
        whole = self.T.toarray() if self.T.shape[0] * self.T.shape[1] <= _DENSE_WHOLE else None
        for local in self.local:
            if whole is not None:
                unknowns = np.flatnonzero(whole[local.terms].any(axis=0))
                found.append((unknowns, whole[np.ix_(local.terms, unknowns)]))
                continue
            rows = self.T[local.terms]
            unknowns = np.unique(rows.indices)
            T = rows[:, unknowns]
            found.append((unknowns, T.toarray() if T.shape[0] * T.shape[1] <= _DENSE else T))
        return found

    # ---------------------------------------------------------------- known points

    def zeros(self) -> Array:
        """τ = 0."""
        return np.zeros(len(self))

    def gaussian(self, mean: Array, precision: Array) -> Array | None:
        """τ of a Gaussian's terms, x'Px/2 − x'P mean, in the functions; None where the terms have no place for it."""
        theta, lost = self._gaussian_theta(mean, precision)
        return None if lost or not self.identity else theta

    def near_gaussian(self, mean: Array, precision: Array) -> Array:
        """τ of the terms nearest to a Gaussian's, by least squares in θ; what has no place is left out."""
        return self._tau(self._gaussian_theta(mean, precision)[0])

    def carried(self, other: Terms, tau: Array) -> Array:
        """τ here of another fit's density, whose terms are the same on other axes: near enough to start from."""
        if all(a is b for a, b in zip(self.axes, other.axes, strict=True)):
            return tau
        found, X = on_other_axes(other.axes, self.axes, other.products)
        return self._tau(self._theta(dict(zip(found, X @ (other.T @ tau), strict=True))))

    def _gaussian_theta(self, mean: Array, precision: Array) -> tuple[Array, bool]:
        """θ of a Gaussian's terms, and whether some had no place.

        It is Σ_ij ½ P_ij y_i y_j − Σ_i (P (m − c))_i y_i with y = x − c = u φ_0, so that y_i y_j is one product.
        """
        power = np.array([axis.powers is not None for axis in self.axes])
        each = {id(axis): axis for axis in self.axes}
        inverse = {k: np.linalg.inv(axis.powers()) if axis.powers else np.eye(2) for k, axis in each.items()}
        B = [inverse[id(axis)] for axis in self.axes]  # (1, x, …) in (1, φ)
        c, u = np.array([b[1, :2] for b in B]).T
        P = np.where(np.outer(power, power), precision, 0.0)
        value: dict[Product, float] = {((i, 0),): -v for i, v in enumerate(u * (P @ (mean - c))) if power[i]}
        for i, b in enumerate(B):
            if len(b) > 2:
                square = 0.5 * P[i, i] * (b[2] - 2 * c[i] * b[1])
                value[((i, 0),)] += square[1]
                value[((i, 1),)] = square[2]
        P *= u * u[:, None]
        theta = self._theta(value)
        pairs = {k: (f[0][0], f[1][0]) for k, f in enumerate(self.products) if [l for _, l in f] == [0, 0]}
        first, second = np.array(list(pairs.values()), int).reshape(-1, 2).T
        theta[list(pairs)] = P[first, second]
        whole = all(len(b) > 2 for b in B) and set(value) <= set(self.products)
        lost = np.count_nonzero(np.triu(P, 1)) - np.count_nonzero(P[first, second])
        return theta, not whole or bool(lost > 0)

    def _theta(self, value: Mapping[Product, float]) -> Array:
        """θ with the coefficients of some products; those that are not here are left out."""
        return np.array([value.get(factors, 0.0) for factors in self.products])

    def _tau(self, theta: Array) -> Array:
        """τ with T τ nearest to θ."""
        return theta if self.identity else lsqr(self.T, theta, atol=1e-12, btol=1e-12)[0]


def _places(labels: Iterable[Hashable]) -> dict[Any, Array]:
    """Where each label stands."""
    found: dict[Any, list[int]] = {}
    for k, label in enumerate(labels):
        found.setdefault(label, []).append(k)
    return {label: np.array(places) for label, places in found.items()}
