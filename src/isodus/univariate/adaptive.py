"""Each row by itself, with SciPy's adaptive Gauss-Kronrod rule: how the paper's baseline integrates, for comparison."""

from __future__ import annotations

from math import exp, log

import numpy as np
from scipy.integrate import quad

from . import Integrals

__all__ = ["integrate_each"]

_LEVEL = 60.0  # energies so far above the lowest add nothing


def integrate_each(a: np.ndarray, *, moments: int = 0, tol: float = 1e-10) -> Integrals:
    """As `integrate`, for NumPy arrays and without a regularizing density, one row after the other."""
    n = a.shape[1]
    log_z, mode, central = np.full(n, np.inf), np.zeros(n), np.zeros((moments, n))
    for j in range(n):
        q = np.trim_zeros(np.append(a[::-1, j], 1.0), "f")[:-1]  # from the highest power down to the first
        if len(q) % 2 == 0 and len(q) and q[0] > 0 and np.all(np.isfinite(q)):
            try:
                log_z[j], mode[j], central[:, j] = _row(np.append(q, 0.0), moments, tol)
            except ArithmeticError:  # so far out that double precision does not resolve it: as if there were none
                log_z[j] = np.inf
    return Integrals(log_z, mode, central, np.flatnonzero(np.isinf(log_z)))


def _row(q: np.ndarray, moments: int, tol: float) -> tuple[float, float, np.ndarray]:
    """log ∫ exp(−q), the mode, and E[(x − mode)^l], l = 1 … moments."""
    mode, low, high = _window(q)
    least, coefficients = float(np.polyval(q, mode)), q.tolist()

    def integrand(x: float, k: int) -> float:
        energy = 0.0
        for c in coefficients:
            energy = energy * x + c
        return exp(least - energy) * (x - mode) ** k

    def integral(k: int) -> float:
        # an odd moment may be zero: then its error is small beside the even one above it
        small = 0.0 if k % 2 == 0 else tol * sums[0]
        return quad(integrand, low, high, (k,), epsabs=small, epsrel=tol, limit=200, points=[mode])[0]

    sums: list[float] = []
    for k in range(moments + 1):
        sums.append(integral(k))
        if not sums[0] > 0:
            raise ArithmeticError
    return log(sums[0]) - least, mode, np.array(sums[1:]) / sums[0]


def _window(q: np.ndarray) -> tuple[float, float, float]:
    """The lowest point of a polynomial that rises on both sides, and where it is _LEVEL above that at the outside."""
    turns = np.roots(np.polyder(q))
    turns = turns[np.abs(turns.imag) <= 1e-9 * (1 + np.abs(turns))].real
    mode = float(turns[np.argmin(np.polyval(q, turns))])
    shifted = q.copy()
    shifted[-1] -= np.polyval(q, mode) + _LEVEL
    if not np.all(np.isfinite(shifted)):
        raise ArithmeticError
    ends = np.roots(shifted)
    ends = ends[np.abs(ends.imag) <= 1e-9 * (1 + np.abs(ends))].real
    if not len(ends):
        raise ArithmeticError
    return mode, float(ends.min()), float(ends.max())
