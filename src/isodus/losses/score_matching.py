"""Score matching (Hyvärinen), pointwise in (a, x)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite

import numpy as np

from ..arrays import Array, contract, empty, namespace, on_device, set_rows
from ..spaces import Space, Spaces, batches, powers
from . import Pointwise

__all__ = ["ScoreMatchingLoss"]


@dataclass(frozen=True)
class ScoreMatchingLoss:
    """½ (∂E/∂x)² − ∂²E/∂x² = ½ (Σ_l l a_l x^{l−1})² − Σ_l l(l−1) a_l x^{l−2}: quadratic in a.

    Where x has an end it is ½ h(∂E/∂x)² − h ∂²E/∂x² − h' ∂E/∂x with a weight h that is zero there (Hyvärinen, 2007; Yu,
    Drton and Shojaie, 2019): the distance to the end, at most one on a half line, or, where functions are infinite at
    the end, its square.
    """

    link: str = "mean"
    pilot: None = None
    known: int = 0

    def at(
        self, nodes: np.ndarray, like: Array, hessian: bool, spaces: Spaces | None
    ) -> Callable[[Array, Array], Pointwise]:
        """The pointwise loss; it is the same for all nodes that live alike."""
        return _pointwise if spaces is None else partial(_weighted, batches(spaces, nodes))


def _pointwise(a: Array, x: Array) -> Pointwise:
    """The one factor is v_l = l x^{l−1}, t = Σ_l a_l v_l the coordinate along it; a: (s, q, n); x: (q, n)."""
    xp = namespace(x)
    s = a.shape[0]
    v, rest = empty((s, *x.shape), x), empty((s, *x.shape), x)
    v[0, ...] = 1.0
    rest[0, ...] = 0.0
    if s > 1:
        v[1:, ...] = powers(x, s - 1)
        for l in range(2, s + 1):  # ∂v_l/∂x from the powers before v is multiplied by l
            rest[l - 1, ...] = v[l - 2, ...] * (-float(l * (l - 1)))

        for l in range(2, s + 1):
            v[l - 1, ...] *= float(l)
    t = contract(a, v)
    value = 0.5 * t * t + contract(a, rest)
    return Pointwise(xp.zeros(x.shape[0], dtype=x.dtype, device=x.device), value, [(t, v)], rest)


def _weighted(ways: list[tuple[Space, np.ndarray]], a: Array, x: Array) -> Pointwise:
    """As `_pointwise`, with v_l = √h φ_l' and rest_l = −h φ_l'' − h' φ_l'."""
    xp, s = namespace(x), a.shape[0]
    v, rest = empty((s, *x.shape), x), empty((s, *x.shape), x)
    for space, at in ways:
        own = xp.take(x, on_device(at, x), axis=0)
        h, h_slope = _boundary(space, own)
        first, second = space.slopes(own, s)
        set_rows(v, at, xp.sqrt(h) * first, axis=1)
        set_rows(rest, at, -h * second - h_slope * first, axis=1)
    t = contract(a, v)
    value = 0.5 * t * t + contract(a, rest)
    return Pointwise(xp.zeros(x.shape[0], dtype=x.dtype, device=x.device), value, [(t, v)], rest)


def _boundary(space: Space, x: Array) -> tuple[Array, Array]:
    """h and h' at x."""
    xp, (low, high, _, circle) = namespace(x), space.support
    one, zero = xp.ones_like(x), xp.zeros_like(x)
    if circle or not isfinite(low):
        return one, zero
    unit = (high - low) / 2 if isfinite(high) else 1.0
    t = (x - low) / unit
    rising = one / unit
    if isfinite(high):
        right = t > 1
        t, rising = xp.where(right, 2 - t, t), xp.where(right, -rising, rising)
    else:
        far = t > 1
        t, rising = xp.where(far, one, t), xp.where(far, zero, rising)
    if getattr(space.functions, "ends", False):
        return t * t, 2 * t * rising
    return t, rising
