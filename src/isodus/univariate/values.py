"""The family on a few values: sums instead of integrals, P(v) ∝ exp(−Σ_l a_l v^l)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, empty, multiply_into, namespace, on_device

__all__ = ["cdf_of_values", "moments_of_values", "quantile_of_values"]


def _weights(a: Array, values: Sequence[float]) -> tuple[Array, Array, Array]:
    """−log of the greatest weight (n,), its value (n,), and all weights over it, (m, n); a: (s, n)."""
    xp = namespace(a)
    V = np.asarray(values)[:, None] ** np.arange(1, a.shape[0] + 1)
    energy = on_device(V, a) @ a
    least, mode = energy[0, ...], xp.full_like(a[0, ...], float(values[0]))
    for k, value in enumerate(values):
        lower = energy[k, ...] < least
        least, mode = xp.where(lower, energy[k, ...], least), xp.where(lower, float(value), mode)
    energy -= least
    return least, mode, xp.exp(-energy)


def moments_of_values(a: Array, values: Sequence[float], moments: int) -> tuple[Array, Array, Array, Array]:
    """log Z (n,), the mode (n,), E[(x − mode)^l], l = 1..moments, and which rows are finite."""
    xp = namespace(a)
    with np.errstate(all="ignore"):
        least, mode, w = _weights(a, values)
        Z = xp.sum(w, axis=0)
        log_z = xp.log(Z) - least
        exists = xp.isfinite(log_z) & xp.all(xp.isfinite(a), axis=0)
        central = empty((moments, a.shape[1]), a)
        v = on_device(np.asarray(values, dtype=np.float64)[:, None], a) - mode
        w /= Z
        for l in range(moments):
            multiply_into(w, w, v)
            central[l, ...] = xp.sum(w, axis=0)
        return xp.where(exists, log_z, xp.inf), mode, xp.where(exists, central, 0.0), exists


def cdf_of_values(a: Array, x: Array, values: Sequence[float]) -> Array:
    """P(value ≤ x) of every row, (n,)."""
    xp, (_, _, w) = namespace(a), _weights(a, values)
    below = xp.zeros_like(x)
    for k, value in enumerate(values):
        below = below + xp.where(x >= value, w[k, ...], 0.0)
    return below / xp.sum(w, axis=0)


def quantile_of_values(a: Array, u: Array, values: Sequence[float]) -> Array:
    """The least value up to which the probability is u or more, (n,)."""
    xp, (_, _, w) = namespace(a), _weights(a, values)
    goal, passed, out = u * xp.sum(w, axis=0), xp.zeros_like(u), xp.full_like(u, float(values[-1]))
    undecided = u == u
    for k, value in enumerate(values[:-1]):
        passed = passed + w[k, ...]
        here = undecided & (passed >= goal)
        out, undecided = xp.where(here, float(value), out), undecided & ~here
    return out
