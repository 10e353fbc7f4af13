"""Losses, pointwise in (a, x): a the conditional coefficients of a node, x its own value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..arrays import Array
from ..spaces import Spaces

__all__ = ["Loss", "Pointwise"]


class Pointwise(NamedTuple):
    """A loss at q nodes and n samples, all of it times exp(−shift).

    shift: (q,); value: (q, n). Derivatives by factors f, (s, q, n), and coordinates z, (q, n), along them:
    ∂ℓ/∂a_l = Σ_r z_r f_rl + rest_l and ∂²ℓ/∂a_l∂a_k = Σ_r f_rl f_rk; factors is the list of the pairs
    (z_r, f_r), rest what of the slope does not lie along them, (s, q, n) or None.
    """

    shift: Array
    value: Array
    factors: list[tuple[Array, Array]]
    rest: Array | None = None


class Loss(Protocol):
    """What the objective needs of a loss."""

    @property
    def link(self) -> str:
        """How sums become an objective.

        "mean": the average. "log": its logarithm. "plain": the average too, but of weights that may be of any
        size, so that value and gradient are those of the logarithm, and the Hessian is divided by the average.
        """

    def at(self, nodes: np.ndarray, like: Array, hessian: bool, spaces: Spaces | None) -> Callable[..., Pointwise]:
        """The loss of `nodes` as a function of a, (s, q, n), and x, (q, n); of a pilot's a⁰ too, if it has one.

        Without `hessian` the factors need only give the slope. spaces: what all variables are; None for the line, with
        powers.
        """

    @property
    def known(self) -> int:
        """How many rows a variable the samples carry beside the variables, which the loss is told instead of x."""

    @property
    def pilot(self) -> Sequence[np.ndarray] | None:
        """Local parameters of every node whose a⁰ the loss is to be told, or None."""
