"""What a loss gives for one node and a block of rows, and how sums over rows become one number."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from ..axes import Axis

__all__ = ["Loss", "NodeRows", "Pointwise"]

Array = np.ndarray


class NodeRows(NamedTuple):
    """One node in a block of rows: what a loss can prepare from."""

    node: int
    axis: Axis
    x: Array  # (n,)
    phi: Array  # (n, J)
    pilot: Array | None  # (n, J) a⁰ = H C_i(θ⁰), where the objective has a pilot θ⁰


class Pointwise(NamedTuple):
    """ℓ(a, φ) of each row, its derivatives by a, and the error of its integrals.

    Curvature is ∂²ℓ; with the links of exp ℓ it is that of exp ℓ over exp ℓ, ∂²ℓ + slope slopeᵀ.
    """

    value: Array  # (n,)
    slope: Array  # (n, J)
    curvature: Array | None  # (n, J(J+1)/2), packed as `packed_pairs` lists them
    unresolved: Array  # (n,) whether the integrals of a row are not resolved
    magnitude: Array  # (n,) Σ_l |a_l φ_l|: what the value's rounding is relative to


class Loss(Protocol):
    """One node's loss: a few lines in (a, φ).

    `link` says what becomes of the rows' values: their mean, the mean of exp(value), or the logarithm of that.
    `unclamped` says whether functions go on beyond the window of a line: they need not stay where nothing is
    integrated. `quadratic` says that ℓ is quadratic in a, so that one step from anywhere solves the problem.
    """

    unclamped: ClassVar[bool]
    quadratic: ClassVar[bool]

    @property
    def link(self) -> Literal["mean", "log_mean", "mean_exp"]:
        """What becomes of the rows' values."""

    def prepare(self, rows: NodeRows) -> tuple[Any, ...]:
        """What the loss needs of each row beside a, made once: arrays with an entry per row."""

    def at(self, axis: Axis, a: Array, prepared: tuple[Any, ...], second: bool) -> Pointwise:
        """ℓ and its derivatives by a, (n, J); curvature only if `second`."""
