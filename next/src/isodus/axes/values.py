"""A variable of a few values: spins, alphabets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from .base import Array, Nodes
from .discrete import Discrete
from .polynomial import polynomials, recurrence, to_powers

__all__ = ["Values"]


@dataclass(frozen=True, eq=False)
class Values(Discrete):
    """Polynomials on a few values, orthonormal under their shares; sums are exact, and densities are probabilities.

    Parameters
    ----------
    values : array of shape (m,)
        The values, in order.
    location, scale : float
        The units of y = (x − location)/scale.
    alpha, beta : array of shape (J,)
        The recurrence β_k φ_{k+1} = (y − α_k) φ_k − β_{k−1} φ_{k−1} with φ_0 = 1; J < m.

    Examples
    --------
    >>> import numpy as np
    >>> spin = Values.fit(np.array([-1.0, 1.0, 1.0, -1.0]), 2)
    >>> spin.functions(np.array([-1.0, 1.0])).ravel().tolist()
    [-1.0, 1.0]
    """

    values: Array
    location: float
    scale: float
    alpha: Array
    beta: Array

    kind: ClassVar[str] = "values"

    def __post_init__(self) -> None:
        if np.ndim(self.values) != 1 or len(self.values) < 2 or not np.all(np.diff(self.values) > 0):
            raise ValueError("an axis of values needs two or more of them, in order")
        if not self.scale > 0 or np.shape(self.alpha) != np.shape(self.beta) or not np.all(self.beta > 0):
            raise ValueError("an axis of values needs a positive scale and alpha and beta of one length")

    @classmethod
    def fit(
        cls,
        x: Array,
        degree: int,
        weight: Array | None = None,
        extremes: tuple[float, float] | None = None,
        values: Sequence[float] | None = None,
    ) -> Self:
        """The axis of a column: its own values, or the given ones.

        The functions are orthonormal under the rows' shares; if a given value does not occur in the rows, under equal
        shares, as otherwise its functions would not be defined. The degree is at most the number of values − 1.
        """
        places = np.unique(x if values is None else np.asarray(values, float))
        if len(places) < 2:
            raise ValueError("the column is constant, so nothing depends on it; drop it")
        counts = np.bincount(_index(places, x), np.ones(len(x)) if weight is None else weight, len(places))
        share = counts if np.all(counts > 0) else np.ones(len(places))
        location = float(np.average(places, weights=share))
        scale = float(np.sqrt(np.average((places - location) ** 2, weights=share)))
        y = (places - location) / scale
        return cls(places, location, scale, *recurrence(y, share, min(degree, len(places) - 1)))

    def in_units(self, location: float, scale: float) -> Self:
        """The same functions with another y."""
        ratio, shift = self.scale / scale, (self.location - location) / scale
        return replace(self, location=location, scale=scale, alpha=ratio * self.alpha + shift, beta=ratio * self.beta)

    @property
    def degrees(self) -> Array:  # type: ignore[override]
        """1, …, J."""
        return np.arange(1, len(self.alpha) + 1)

    @property
    def unit(self) -> float:  # type: ignore[override]
        """The scale."""
        return self.scale

    def functions(self, x: Array) -> Array:
        """φ_l(x), (n, J); a ValueError names a value that is not one of the axis."""
        return self._phi[_index(self.values, np.asarray(x, float))]

    def log_base(self, x: Array) -> Array:
        """0, as densities are probabilities; −inf at other values."""
        return np.where(self.contains(x), 0.0, -np.inf)

    def nodes(self, count: int) -> Nodes:
        """All values; nothing to check."""
        return Nodes(self.values, np.zeros(len(self.values)), self._phi, np.zeros((len(self.values), 0)))

    def powers(self) -> Array:
        """M, (J+1, J+1), with (1, φ_1, …, φ_J) = M (1, x, …, x^J)."""
        return to_powers(self.alpha, self.beta, self.location, self.scale)

    def unit_powers(self) -> Array:
        """The same with powers of (x − location)/scale."""
        return to_powers(self.alpha, self.beta, 0.0, 1.0)

    @property
    def _phi(self) -> Array:
        return polynomials((self.values - self.location) / self.scale, self.alpha, self.beta)


def _index(values: Array, x: Array) -> Array:
    """Where each x is among the values."""
    index = np.minimum(np.searchsorted(values, x), len(values) - 1)
    other = values[index] != x
    if np.any(other):
        shown = ", ".join(f"{value:g}" for value in values[:10])
        raise ValueError(
            f"{np.asarray(x)[other].flat[0]!s} is not one of the values of this axis: {shown}. Drop such rows"
        )
    return index
