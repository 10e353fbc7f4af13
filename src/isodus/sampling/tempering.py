"""Parallel tempering: chains at several temperatures that trade places, for modes that no single chain would leave.

Level r has the energy E_r = (1 − β_r) E₀ + β_r E, 0 = β_0 < … < β_R = 1, with E₀ a wide Gaussian from which level 0 is
drawn afresh at every step. Neighbours at x and x′ trade with probability min(1, exp((β_r − β_s)(D(x) − D(x′)))),
D = E − E₀: even and odd pairs in turn, so that states travel one way instead of diffusing (Syed, Bouchard-Côté,
Deligiannidis and Doucet, 2022). Also from there: with rejection rates s_r between neighbours, Λ = Σ s_r does not depend
on the ladder; levels at equal steps of the running sum make the rates equal, and 2Λ + 1 of them are best.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..basis import MonomialBasis
from ..energy import energy, of_first

__all__ = ["Kernel", "Ladder"]

_FIRST = 9  # levels to begin with
_FEWEST, _MOST = 4, 60
_ROUNDS = (10, 20, 30, 40)  # steps between changes of the ladder
_WIDER = 2.0  # the variances of E₀ over those of the chains


class Kernel(Protocol):
    """Something that steps."""

    acceptance: float | None

    def tune(self, X: np.ndarray) -> None:
        """To where chains are, (p, chains)."""

    def step(self, X: np.ndarray, rng: np.random.Generator, learn: bool = False) -> None:
        """In place; learn: whether it goes on tuning itself."""


class Ladder:
    """As many ladders as there are chains in X, (p, chains), which must be spread over all modes.

    kernel(basis, θ): makes one for a level. A tempered energy is another polynomial: θ_r = (1 − β_r) θ₀ + β_r θ.
    """

    def __init__(
        self,
        basis: MonomialBasis,
        theta: np.ndarray,
        X: np.ndarray,
        kernel: Callable[[MonomialBasis, np.ndarray], Kernel],
    ) -> None:
        p = basis.n_variables
        own = [(i,) * d for i in range(p) for d in (1, 2)]
        self.basis = MonomialBasis(p, basis.degree, terms={*basis.terms, *own})
        known = dict(zip(basis.terms, theta.tolist(), strict=True))
        self.mean, variance = X.mean(axis=1), _WIDER * X.var(axis=1)
        self.width = np.sqrt(variance)
        gaussian: dict[tuple[int, ...], float] = {
            (i,): -m / v for i, (m, v) in enumerate(zip(self.mean, variance, strict=True))
        }
        gaussian |= {(i, i): 0.5 / v for i, v in enumerate(variance)}
        self.theta = np.array([known.get(term, 0.0) for term in self.basis.terms])
        self.theta0 = np.array([gaussian.get(term, 0.0) for term in self.basis.terms])
        self.kernel = kernel
        self.difference = of_first(self.basis, self.theta - self.theta0, X)
        self.odd = False
        self._set(np.linspace(0.0, 1.0, _FIRST), [X.copy() for _ in range(_FIRST)])

    def _set(self, betas: np.ndarray, states: list[np.ndarray]) -> None:
        self.betas, self.states = betas, states
        self.kernels = [self.kernel(self.basis, (1 - b) * self.theta0 + b * self.theta) for b in betas[1:]]
        for kernel, X in zip(self.kernels, states[1:], strict=True):
            kernel.tune(X)
        self._forget()

    def _forget(self) -> None:
        self.rejected, self.tried = np.zeros(len(self.betas) - 1), np.zeros(len(self.betas) - 1)

    @property
    def X(self) -> np.ndarray:
        """The states, (p, chains), at β = 1."""
        return self.states[-1]

    @property
    def swap_rates(self) -> np.ndarray:
        """How often neighbours traded, (levels − 1,), since the ladder was last changed."""
        return 1 - self.rejected / np.maximum(self.tried, 1)

    def step(self, rng: np.random.Generator, learn: bool = False) -> None:
        """A step of every level, and a trade between neighbours."""
        X = self.states[0]
        X[:] = self.mean[:, None] + self.width[:, None] * rng.standard_normal(X.shape)
        for kernel, X in zip(self.kernels, self.states[1:], strict=True):
            kernel.step(X, rng, learn)
        self.odd = not self.odd
        D = [energy(self.basis, self.theta, X, self.difference) for X in self.states]
        for r in range(int(self.odd), len(self.kernels), 2):
            low, high = self.states[r], self.states[r + 1]
            chance = np.exp(np.minimum((self.betas[r + 1] - self.betas[r]) * (D[r + 1] - D[r]), 0.0))
            trade = rng.random(len(chance)) < chance
            low[:, trade], high[:, trade] = high[:, trade], low[:, trade]
            self.rejected[r] += 1 - chance.mean()
            self.tried[r] += 1

    def adapt(self, rng: np.random.Generator) -> None:
        """Choose the levels by the rates of trades between them, and tune the kernels."""
        for steps in _ROUNDS:
            for _ in range(steps):
                self.step(rng, learn=True)
            barrier = np.concatenate([[0.0], np.cumsum(np.maximum(1 - self.swap_rates, 1e-3))])
            levels = int(np.clip(np.ceil(2 * barrier[-1]) + 1, _FEWEST, _MOST))
            betas = np.interp(np.linspace(0.0, barrier[-1], levels), barrier, self.betas)
            betas[0], betas[-1] = 0.0, 1.0
            nearest = [int(np.argmin(np.abs(self.betas - b))) for b in betas]
            self._set(betas, [self.states[r].copy() for r in nearest])
        for _ in range(_ROUNDS[-1]):
            self.step(rng, learn=True)
        for kernel in self.kernels:
            if hasattr(kernel, "settle"):
                kernel.settle()
        self._forget()
