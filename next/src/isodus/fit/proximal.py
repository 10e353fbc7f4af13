"""Newton's steps under an L1 penalty: the quadratic model of the loss and the penalty itself."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from .lasso import lassos
from .newton import LEAST_DAMPING, MOST_DAMPING, Quadratic
from .objective import NodeAt

__all__ = ["Proximal"]

Array = np.ndarray
_ROUNDING = 1e-12  # of the unit diagonal: fewer rows than terms leave zeros


class Proximal(Quadratic):
    """Steps to argmin gᵀ(t − τ) + ½ (t − τ)ᵀ(A + damping diag A)(t − τ) + Σ c|t| at one point; c: (m,), finite."""

    def __init__(self, at: NodeAt, cost: Array, tau: Array) -> None:
        self.cost, self.tau = cost, tau
        super().__init__(at, csr_array((len(tau),) * 2), tau)

    def penalty(self, tau: Array) -> float:
        """Σ c|τ|."""
        return float(self.cost @ np.abs(tau))

    def step(self, damping: float) -> tuple[Array | None, float]:
        """A step and the damping that it took; None where the model is not finite, or no damping makes A positive."""
        if not (np.isfinite(self.value) and np.isfinite(self.gradient).all() and np.isfinite(self.scaled).all()):
            return None, damping
        u = self.tau * self.size
        while damping <= MOST_DAMPING:
            share = 1 / (1 + damping)
            A = share * (self.scaled + damping * np.eye(len(u)))
            if _convex(A):
                b, cost = A @ u - share * self.gradient / self.size, share * self.cost / self.size
                return lassos(A[None], b[None], cost[None], u[None])[0] / self.size - self.tau, damping
            damping = max(10 * damping, LEAST_DAMPING)
        return None, damping

    def decrement(self, step: Array) -> float:
        """−gᵀs − Σ c(|τ + s| − |τ|), at least sᵀAs; coordinate by coordinate, as each is of the order of s²."""
        new = self.tau + step
        rise = np.where(new * self.tau > 0, np.sign(new) * step, np.abs(new) - np.abs(self.tau))
        return -float(np.sum(self.gradient * step + self.cost * rise))


def _convex(A: Array) -> bool:
    """Whether A has no negative eigenvalue, up to rounding."""
    try:
        np.linalg.cholesky(A + _ROUNDING * np.eye(len(A)))
    except np.linalg.LinAlgError:
        return False
    return True
