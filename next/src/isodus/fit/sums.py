"""What an objective gives at a point, the sums over rows that this is made of, and the products in them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from ..axes import packed_pairs
from ..terms import Local, Terms

__all__ = ["At", "NodeAt", "Pilot", "Shared", "Sums", "gram", "packed_product", "squares"]

Array = np.ndarray
T = TypeVar("T")


class Pilot(NamedTuple):
    """The τ⁰ that a loss is tilted by, one for all nodes or one for each, and its terms."""

    terms: Terms
    tau: Array | Mapping[int, Array]

    def local(self) -> list[Array]:
        """θ⁰ of the terms of each node."""
        if isinstance(self.tau, Mapping):
            parts = [(self.tau[i], T) for i, (_, T) in enumerate(self.terms.local_T)]
            return [tau if T is None else T @ tau for tau, T in parts]
        theta = self.terms.T @ self.tau
        return [theta[local.terms] for local in self.terms.local]


class Shared(dict[int, T]):
    """What is known of blocks by their numbers. Copies in another process are one there, which begins empty."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self.name = uuid.uuid4().hex if name is None else name

    def __reduce__(self) -> tuple[Callable[[str], Shared], tuple[str]]:
        return _of_name, (self.name,)


_MOST_SHARED = 2
_shared: dict[str, Shared] = {}  # the last ones to arrive here


def _of_name(name: str) -> Shared:
    found = _shared.pop(name, None)
    found = _shared[name] = Shared(name) if found is None else found
    for old in list(_shared)[:-_MOST_SHARED]:
        _shared.pop(old, None)
    return found


@dataclass
class At:
    """The objective at one τ: value, gradient (K,), Hessian (K, K), and what is known of their errors."""

    value: float
    nodes: Array  # (p,) each node's part of the value
    gradient: Array
    hessian: Array | None
    unresolved: Array  # (p,) rows of each node whose integrals are not resolved
    rounding: float  # of the value: ε⟨1 + Σ |a_l φ_l|⟩
    product: Callable[[Array], Array] | None = None  # v → A v, where `hessian` is that of a part of the rows
    n: float = np.nan  # weight of the rows, where these are a part


class NodeAt(NamedTuple):
    """One node's part of the objective: value, gradient (m,) and Hessian (m, m) in its own unknowns."""

    value: float
    gradient: Array
    hessian: Array | None
    unresolved: int
    rounding: float
    product: None = None


@dataclass
class Sums:
    """Sums over rows, node by node; those of a log link are over exp(shift)."""

    shift: Array  # (nodes,)
    value: Array  # (nodes,)
    unresolved: Array  # (nodes,)
    rounding: Array  # (nodes,)
    gradient: list[Array]  # (m,) for each node
    second: list[Array]  # (m, m) for each node, or its diagonal

    def __add__(self, other: Sums) -> Sums:
        shift = np.maximum(self.shift, other.shift)
        left, right = np.exp(self.shift - shift), np.exp(other.shift - shift)

        def merged(mine: list[Array], theirs: list[Array]) -> list[Array]:
            return [f * a + g * b for f, a, g, b in zip(left, mine, right, theirs, strict=True)] if mine else []

        return Sums(
            shift,
            left * self.value + right * other.value,
            self.unresolved + other.unresolved,
            self.rounding + other.rounding,
            merged(self.gradient, other.gradient),
            merged(self.second, other.second),
        )


def gram(local: Local, H: Array, curvature: Array) -> Array:
    """Σ_n h hᵀ ⊗ curvature over the terms of a node, (m, m): a product for each function."""
    terms, packed = H[..., local.where, :], _packed_places(len(local.starts) - 1)
    out = np.empty((*terms.shape[:-1], terms.shape[-2]))
    for l, (start, stop) in enumerate(pairwise(local.starts)):
        if stop > start:
            right = terms[..., start:, :] * curvature.mT[..., packed[l, local.functions[start:]], :]
            block = terms[..., start:stop, :] @ right.mT
            out[..., start:stop, start:] = block
            out[..., start:, start:stop] = block.mT
    return out


def squares(local: Local, H: Array, curvature: Array) -> Array:
    """The diagonal of `gram`, (m,)."""
    own = np.diagonal(_packed_places(len(local.starts) - 1))
    return np.einsum("...n,...n->...", H[..., local.where, :] ** 2, curvature.mT[..., own[local.functions], :])


@cache
def _packed_places(size: int) -> Array:
    """Where (l, m) stands in a packed matrix, (size, size)."""
    places = np.empty((size, size), int)
    l, m = packed_pairs(size)
    places[l, m] = places[m, l] = np.arange(len(l))
    return places


def packed_product(packed: Array, b: Array) -> Array:
    """Row by row a packed symmetric matrix times b, (n, J)."""
    places = _packed_places(b.shape[1])
    return np.stack([np.einsum("nm,nm->n", packed[:, places[l]], b) for l in range(b.shape[1])], axis=1)
