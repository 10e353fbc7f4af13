"""More terms than can be listed: the slopes of all of them, as products of matrices, and which are large.

At node i the slope of a term with function l of variable i and cofactor h is ⟨s h⟩, s = ∂ℓ/∂a_l of a row. A cofactor is
one factor times a product of variables after it. All such products are a matrix for a block of rows, and the first
factor multiplies s instead, so that nothing is made of a term but its slope.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from .._core.threads import one_blas_thread, ordered_map
from ..terms import Key, Product, key_of, keys_up_to, product_of
from ..terms.transform import for_each, powers_of
from .objective import Objective

__all__ = ["Crowd"]

Array = np.ndarray
_NOISE_ROWS = 8192
_NODES = 8  # at which a term is met at most, that its strongest are counted for


class _Part(NamedTuple):
    """Terms with one first factor, some products after it, and functions of one more variable."""

    first: int
    rests: slice
    columns: Array


class Crowd:
    """All interactions up to a degree and an order, as products of powers of y.

    Parameters
    ----------
    f : Objective
        Of terms of one variable; its loss has the link "mean".
    taus : mapping of int to array of shape (m,)
        The optimum of each node without an interaction.
    in_noise : bool
        Whether slopes are in units of their noise there, √⟨s²⟩ over some rows.
    centred : bool
        Whether powers are of y, or of x over its unit.
    """

    def __init__(
        self,
        f: Objective,
        taus: Mapping[int, Array],
        degree: int,
        order: int,
        min_degree: int,
        in_noise: bool,
        centred: bool,
    ) -> None:
        axes = f.terms.axes
        self.factors = [(i, l) for i, axis in enumerate(axes) for l, d in enumerate(axis.degrees) if d < degree]
        self.M = for_each(axes, lambda axis: powers_of(axis, centred))
        degrees = np.array([axes[i].degrees[l] for i, l in self.factors])
        listed = [product_of(key) for key in keys_up_to(axes, degree - 2, order - 2)]
        self.rests: list[Product] = sorted([(), *listed], key=lambda rest: (f.terms.degree_of(rest), rest))
        self.has = np.array([np.isin(np.arange(len(axes)), [i for i, _ in rest]) for rest in self.rests])
        of_rests = np.array([f.terms.degree_of(rest) for rest in self.rests])
        begins = np.array([rest[0][0] if rest else len(axes) for rest in self.rests])
        self.parts = []
        for d in np.unique(of_rests):
            start, stop = np.searchsorted(of_rests, [d, d + 1]).tolist()
            for k, (i, _) in enumerate(self.factors):
                after = slice(start + int(np.searchsorted(begins[start:stop], i, "right")), stop)
                total = degrees + degrees[k] + d
                columns = np.flatnonzero((total <= degree) & (total >= min_degree))
                if after.stop > after.start and len(columns):
                    self.parts.append(_Part(k, after, columns))
        n = f.samples.n_rows
        if n > _NOISE_ROWS and f.samples.in_memory:
            f = f.take(np.sort(np.random.default_rng([n, 1]).permutation(n)[:_NOISE_ROWS]))
        self.noise = [np.sqrt(Q) for Q in self._means(f, taus, 2)] if in_noise else None

    def strongest(self, f: Objective, taus: Mapping[int, Array], most: int) -> dict[Key, float]:
        """The terms with the largest slopes at some node, and these."""
        slopes = self._slopes(f, taus)
        sizes = np.sort(np.concatenate([np.sort(G, axis=None)[-_NODES * most :] for G in slopes]))
        found = self._terms(slopes, float(sizes[-_NODES * most :][0]))
        return {key: found[key] for key in sorted(found, key=lambda key: -found[key])[:most]}

    def above(self, f: Objective, taus: Mapping[int, Array], strength: float) -> set[Key]:
        """The terms whose slopes a penalty of some strength does not hold at some node, f being what was minimised."""
        return set(self._terms(self._slopes(f, taus), strength))

    def _slopes(self, f: Objective, taus: Mapping[int, Array]) -> list[Array]:
        slopes = [np.abs(G) for G in self._means(f, taus)]
        if self.noise is None:
            return slopes
        return [np.divide(G, N, out=np.zeros_like(G), where=N > 0) for G, N in zip(slopes, self.noise, strict=True)]

    def _terms(self, slopes: list[Array], least: float) -> dict[Key, float]:
        """Terms with a slope above some size, and the largest of theirs."""
        found: dict[Key, float] = {}
        for part, G in zip(self.parts, slopes, strict=True):
            for r, c in np.argwhere(G > least).tolist():
                own = self.factors[part.first], self.factors[part.columns[c]]
                key = key_of(tuple(sorted((*own, *self.rests[part.rests][r]))))
                found[key] = max(found.get(key, 0.0), float(G[r, c]))
        return found

    def _means(self, f: Objective, taus: Mapping[int, Array], power: int = 1) -> list[Array]:
        """⟨(s h)^power⟩ of each part, (rests, columns); 0 where a variable would be there twice."""
        place = {factor: k for k, factor in enumerate(self.factors)}
        s = [_slope_of_powers(M, u) for M, u in zip(self.M, f.row_slopes(taus), strict=True)]
        s = [s[i][l] ** power for i, l in self.factors]
        means = [np.zeros((part.rests.stop - part.rests.start, len(part.columns))) for part in self.parts]

        def add(k: int) -> None:
            part = self.parts[k]
            means[k] += R[part.rests] @ (weighted[part.columns] * Phi[part.first]).T

        with one_blas_thread():
            for block in f.samples.blocks():
                phi = [axis.functions(x) for axis, x in zip(f.axes, block.X.T, strict=True)]
                psi = [_powers(M, values) for M, values in zip(self.M, phi, strict=True)]
                Phi = np.stack([psi[i][:, l] for i, l in self.factors]) ** power
                rows = slice(block.start, block.start + len(block.X))
                weighted = np.stack([values[rows] for values in s]) * (block.weight / f.n)
                R = np.ones((len(self.rests), len(block.X)))
                for rest, out in zip(self.rests, R, strict=True):
                    for factor in rest:
                        out *= Phi[place[factor]]
                for _ in ordered_map(add, range(len(self.parts)), f.n_jobs):
                    pass
        variables = np.array([i for i, _ in self.factors])
        for part, G in zip(self.parts, means, strict=True):
            own = variables[part.columns]
            G[self.has[part.rests][:, own] | (own == variables[part.first])] = 0.0
        return means


def _powers(M: Array, phi: Array) -> Array:
    """y, y², … from the functions of an axis, (n, J)."""
    return phi * M if M.ndim == 1 else phi @ M[1:, 1:].T + M[1:, 0]


def _slope_of_powers(M: Array, slope: Array) -> Array:
    """Slopes by coefficients of powers from those by coefficients of functions, (J, n)."""
    return slope * M[:, None] if M.ndim == 1 else M[1:, 1:] @ slope
