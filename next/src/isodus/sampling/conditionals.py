"""The coefficients of each variable given the others, kept for a block of rows while variables change in turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..terms import Terms

__all__ = ["Block", "Conditionals"]

Array = np.ndarray
_WHOLE = 0.6  # share of all cofactors from which on a node's are not copied out first


class Conditionals:
    """a = C_iᵀ H for each variable, and which cofactors change with it."""

    def __init__(self, terms: Terms, theta: Array) -> None:
        self.terms = terms
        self.changes: list[list[tuple[int, int, int, int]]] = [[] for _ in terms.nodes]
        self.in_cofactors = [0] * len(terms.axes)
        """How many of each variable's functions, from the first on, cofactors of others are made from."""
        for rest, c in terms.cofactors.items():
            if rest:
                parent, (j, l) = terms.cofactors[rest[:-1]], rest[-1]
                self.in_cofactors[j] = max(self.in_cofactors[j], l + 1)
                for i, _ in rest:
                    self.changes[i].append((c, parent, j, l))
        self.colours = _colours(terms)
        """A number for each variable; those of one number share no term."""
        self.set(theta)

    def set(self, theta: Array) -> None:
        """Take other coefficients."""
        self.theta = theta
        self.matrices: list[tuple[Array | slice, Array]] = []
        for i in self.terms.nodes:
            used, C = self.terms.local[i].cofactors, self.terms.scatter(theta, i)
            columns: Array | slice = used
            if len(used) > _WHOLE * len(self.terms.cofactors):
                C_all = np.zeros((len(self.terms.cofactors), C.shape[1]))
                C_all[used] = C
                columns, C = slice(None), C_all
            self.matrices.append((columns, np.ascontiguousarray(C.T)))


class Block:
    """Rows: functions of each variable, (J, n) each, and the cofactors H, (c, n).

    Where only coefficients are asked for, the first `in_cofactors` functions are enough.
    """

    def __init__(self, conditionals: Conditionals, phi: Sequence[Array]) -> None:
        self.conditionals, self.phi = conditionals, list(phi)
        self.H = conditionals.terms.H([values.T for values in phi])
        self.n = self.H.shape[1]

    def a(self, i: int) -> Array:
        """Coefficients of the functions of variable i given the others, (n, J)."""
        columns, C = self.conditionals.matrices[i]
        return (C @ self.H[columns]).T

    def set(self, i: int, phi: Array) -> None:
        """Variable i has the functions (J, n) now."""
        self.phi[i] = phi
        for c, parent, j, l in self.conditionals.changes[i]:
            np.multiply(self.H[parent], self.phi[j][l], out=self.H[c])

    def energy(self, theta: Array) -> Array:
        """Σ θ_k f_k of each row, (n,)."""
        terms = self.conditionals.terms
        value = np.zeros(self.n)
        last = np.array([factors[-1][0] for factors in terms.products], int)
        for i in terms.nodes:  # each term once, as one of its last variable
            C = terms.scatter(np.where(last == i, theta, 0.0), i)
            if C.any():
                value += ((C.T @ self.H[terms.local[i].cofactors]) * self.phi[i]).sum(axis=0)
        return value

    def move(self, variables: Sequence[int], x: Array) -> None:
        """Variables of one axis have the values x now, (n,) of one after the other."""
        phi = self.conditionals.terms.axes[variables[0]].functions(x).T
        for k, i in enumerate(variables):
            self.set(i, np.ascontiguousarray(phi[: len(self.phi[i]), k * self.n : (k + 1) * self.n]))


def _colours(terms: Terms) -> list[int]:
    """The least number that no variable before has with which a variable shares a term."""
    near: list[set[int]] = [set() for _ in terms.axes]
    for factors in terms.products:
        for i, _ in factors:
            near[i].update(j for j, _ in factors)
    colours: list[int] = []
    for i, others in enumerate(near):
        taken = {colours[j] for j in others if j < i}
        colours.append(next(k for k in range(len(taken) + 1) if k not in taken))
    return colours
