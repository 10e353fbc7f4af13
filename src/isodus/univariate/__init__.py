"""The one-dimensional polynomial family, batched over samples: log Z, moments, distribution, draws.

Row j has the density f_j(x) ∝ exp(−q_j(x)) on the real line,

    q_j(x) = Σ_{l=1..s} a[l−1, j] x^l + nu |x − centre|^power,        a: (s, n), power > s.

How: outside of the intervals where q ≤ min q + level nothing is left in double precision. On such an
interval, mapped to u ∈ [−1, 1], q is a polynomial between 0 and `level`, so it cannot vary faster than its
degree allows and a few dozen fixed nodes integrate exp(−q): energies and moments of all rows are two matrix
products with one exp between them (`rules`).

Three roads lead to the intervals, told apart row by row (`rows`). `quick` takes rows with one interval, well
conditioned, and uses the trapezoid sum (spectrally accurate, since the density vanishes at both ends). `wells`
takes all other quartics, ill conditioned or with an interval about each of two wells, with compensated Taylor
shifts, so that q near the mode is that of the given doubles, and the same sum. `careful` takes what is left:
the same shifts, and a double exponential rule on each monotone piece of q. Each rule is doubled until it agrees
with its own half. Distribution and draws know `quick` and `careful` only. On a half line or an interval any
polynomial will do that falls nowhere without end: `truncated`, pieces as `careful` has them. On a few values integrals
are sums: `values`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from ..arrays import Array, namespace, on_device, to_host
from ..supports import LINE, Support
from .distribution import LEVEL, cdf_rows, quantile_rows
from .pieces import Pieces
from .rows import Family, each_row
from .rules import moment_rows, raw_moments
from .values import cdf_of_values, moments_of_values, quantile_of_values

__all__ = ["Integrals", "cdf", "draw", "integrate", "quantile"]


@dataclass(frozen=True)
class Integrals:
    """Normalisers and moments of n rows.

    log_z (n,): log ∫ exp(−q) dx.  mode (n,): where the density is highest.  central (m, n): E[(x − mode)^l],
    l = 1..m, for covariances where the mass is narrow and far from zero.
    missing: host indices of rows with no density (q not confining, or not finite), or whose density
    double precision cannot resolve; there log_z = +inf and everything else is 0.
    """

    log_z: Array
    mode: Array
    central: Array
    missing: np.ndarray

    @cached_property
    def moments(self) -> Array:
        """E[x^l], l = 1..m, (m, n)."""
        return raw_moments(self.central, self.mode)


def integrate(
    a: Array,
    *,
    moments: int = 0,
    nu: float = 0.0,
    power: float = 0.0,
    centre: float = 0.0,
    support: Support = LINE,
    tol: float = 1e-10,
) -> Integrals:
    """The log of Z = ∫ exp(−q) dx and E[x^l], l = 1..moments, of every row; relative errors below `tol`.

    The error of an odd moment is relative to E|x|^l. Mass more than log(1/tol) + 15 + 1.25·moments above the
    lowest energy may be dropped.
    """
    xp = namespace(a)
    if support.values is not None:
        a = xp.astype(a, xp.float64, copy=False)
        log_z, mode, central, exists = moments_of_values(a, support.values, moments)
        return Integrals(log_z, mode, central, np.nonzero(~to_host(exists))[0])
    family = Family.of(a, nu, power, centre, support)

    def kernel(p: Pieces, out: Array) -> Array:
        return moment_rows(p, out, moments, tol)

    out, exists = each_row(kernel, 2 + moments, family, (), 15.0 - log(tol) + 1.25 * moments)
    log_z = xp.where(exists, out[0, ...] - family.origin, xp.inf)
    return Integrals(log_z, out[1, ...], out[2:, ...], np.nonzero(~to_host(exists))[0])


def quantile(
    a: Array, u: Array, *, nu: float = 0.0, power: float = 0.0, centre: float = 0.0, support: Support = LINE
) -> Array:
    """The x with ∫_{−∞}^x f / ∫ f = u, for u (n,) in (0, 1); the error, as a probability, is below 1e-10."""
    return _existing(quantile_rows, quantile_of_values, a, u, nu, power, centre, support)


def cdf(
    a: Array, x: Array, *, nu: float = 0.0, power: float = 0.0, centre: float = 0.0, support: Support = LINE
) -> Array:
    """∫_{−∞}^x f / ∫ f for x (n,); absolute error below 1e-10."""
    return _existing(cdf_rows, cdf_of_values, a, x, nu, power, centre, support)


def draw(
    a: Array,
    rng: np.random.Generator,
    *,
    nu: float = 0.0,
    power: float = 0.0,
    centre: float = 0.0,
    support: Support = LINE,
) -> Array:
    """One exact draw from each row, (n,): the quantile at a uniform variate made on the host."""
    u = 1.0 - rng.random(a.shape[1])  # in (0, 1]; the clip keeps 1 out
    return quantile(a, on_device(np.minimum(u, 1.0 - 2.0**-53), a), nu=nu, power=power, centre=centre, support=support)


def _existing(
    kernel: Callable, of_values: Callable, a: Array, v: Array, nu: float, power: float, centre: float, support: Support
) -> Array:
    """The kernel's one result for every row, or an error that names the first row without a density."""
    if support.values is not None:
        return of_values(a, v, support.values)
    out, exists = each_row(kernel, 1, Family.of(a, nu, power, centre, support), (v,), LEVEL)
    missing = np.nonzero(~to_host(exists))[0]
    if missing.size:
        raise ValueError(
            f"{missing.size} of {a.shape[1]} rows have no density (the first: row {missing[0]}): "
            f"with nu = {nu}, the highest non-zero coefficient must be of even degree, positive, all finite"
        )
    return out[0, ...]
