"""Newton's method with a Levenberg damping, for every objective and ridge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from ..terms import Terms
from .conjugate_gradients import conjugate_gradients
from .objective import At, NodeAt, Objective

__all__ = ["LEAST_DAMPING", "MOST_DAMPING", "Fit", "Quadratic", "Status", "better", "newton"]

Array = np.ndarray
Status = Literal["converged", "iteration limit", "stalled", "singular", "interrupted"]
_MANY = 120  # unknowns per node from which a Hessian costs three times its integrals: the value of a trial comes first
_FORMED = 400  # unknowns per node up to which the Hessian is formed on all rows
_PART = 4  # every how many rows have a Hessian beyond, which preconditions conjugate gradients on all
_CG_TOLERANCE, _CG_PRODUCTS = 0.02, 60
MOST_DAMPING = 1e8
"""In units of the diagonal of A; beyond it there is no step."""
LEAST_DAMPING = 1e-10
"""Below it there is none."""


@dataclass
class Fit:
    """Where a minimisation ended.

    `at` was taken at `point`; `tau` is one Newton step further where the fit converged.
    """

    tau: Array
    at: At
    point: Array
    status: Status
    n_iter: int
    ridge: csr_array
    trace: list[tuple[str, float, int]] = field(default_factory=list)
    """What was solved, on how many rows, in how many steps."""
    covariance: Array | None = None
    """Of τ by the sandwich of single rows, where it is known."""

    @classmethod
    def none(cls, terms: Terms) -> Self:
        """Where a minimisation begins: zero, not yet looked at."""
        K = len(terms)
        at = At(np.inf, np.full(len(terms.axes), np.inf), np.zeros(K), None, np.zeros(len(terms.axes), int), 0.0)
        return cls(terms.zeros(), at, terms.zeros(), "interrupted", 0, csr_array((K, K)))

    @property
    def hessian(self) -> Array:
        """A: the Hessian of loss and ridge, (K, K)."""
        assert self.at.hessian is not None
        return self.at.hessian + self.ridge.toarray()


@np.errstate(over="ignore", invalid="ignore")  # a trial may be anywhere; one without a finite value is rejected
def newton(
    f: Objective, tau: Array, ridge: csr_array, tol: float = 1e-3, max_iter: int = 100, at: At | None = None
) -> Fit:
    """Minimise f(τ) + ½ τᵀRτ; stop when the next step is below `tol` standard errors, √(n gᵀA⁻¹g), and take it.

    A step that is rejected raises a damping in units of the diagonal of A; one that gains what the quadratic model
    promised lowers it. A step is accepted within the rounding of the value. at: f at tau, with its Hessian, where it is
    known.

    With many unknowns per node the Hessian is that of a quarter of the rows, and a step solves A s = −g on all rows by
    conjugate gradients. `at.hessian` of the answer is then that of the part.
    """
    order = 0 if f.terms.m > _MANY else 2
    look = _part_hessian(f) if f.terms.m > _FORMED else f
    damping = 0.0
    fit = Fit(tau, look(tau) if at is None else at, tau, "iteration limit", 0, ridge)
    try:
        while fit.n_iter < max_iter:
            here = Quadratic(fit.at, ridge, fit.tau)
            step, least = here.step(0.0)
            if step is None:
                fit.status = "singular"
                return fit
            if least == 0 and here.decrement(step) * f.n <= tol**2:
                fit.tau, fit.status = fit.tau + step, "converged"
                return fit
            if damping > least:
                step, least = here.step(damping)
            damping = least
            while step is not None:
                trial = fit.tau + step
                new = f(trial, order)
                gain = here.value - new.value - here.penalty(trial)
                if gain >= 1e-4 * here.decrement(step) - 4 * new.rounding:
                    break
                step, damping = here.shorter(step, damping)
            if step is None:
                fit.status = "stalled"
                return fit
            quality = gain / here.promised(step)
            damping *= 0.1 if quality > 0.8 else 0.3 if quality > 0.3 else 1.0 if quality > 0.1 else 3.0
            damping = damping if damping > LEAST_DAMPING else 0.0
            fit = Fit(trial, look(trial) if order == 0 else new, trial, "iteration limit", fit.n_iter + 1, ridge)
    except KeyboardInterrupt:
        fit.status = "interrupted"
    return fit


def _part_hessian(f: Objective) -> Callable[[Array], At]:
    """Value and gradient on all rows, the Hessian on a part of them, and products with that of all."""
    part = f.kept()
    part = part.take(np.arange(0, part.samples.n_rows, _PART)) if part is f else part
    return lambda tau: replace(f(tau, 1), hessian=part(tau).hessian, product=f.curvature_product(tau))


def better(f: Objective, ridge: csr_array, *candidates: Array, enough: float = -np.inf) -> tuple[Array, At | None]:
    """The start with the smallest value, and f there if it has been looked at with its Hessian.

    On near-copies of columns a small rung is worse than degree 2. enough: a value of the first at which it is taken.
    """
    first = candidates[0]
    if all(candidate is first for candidate in candidates):
        return first, None
    at = f(first, 0 if f.terms.m > _MANY else 2)
    values = [at.value + 0.5 * first @ (ridge @ first)]
    if not values[0] < enough:
        values += [f(tau, 0).value + 0.5 * tau @ (ridge @ tau) for tau in candidates[1:]]
    best = int(np.argmin(np.where(np.isfinite(values), values, np.inf)))
    return candidates[best], at if best == 0 and at.hessian is not None else None


class Quadratic:
    """Steps −(A + damping diag A)⁻¹ g at one point; A scaled to a unit diagonal."""

    def __init__(self, at: At | NodeAt, ridge: csr_array, tau: Array) -> None:
        assert at.hessian is not None
        self.ridge = ridge
        self.value = at.value + self.penalty(tau)
        self.gradient = at.gradient + ridge @ tau
        A = at.hessian + ridge
        self.size = np.sqrt(np.maximum(A.diagonal(), 1e-300))
        self.scaled = A / self.size / self.size[:, None]
        of_all = at.product
        self.product: Callable[[Array], Array] | None = None
        if of_all is not None:
            self.product = lambda v: (of_all(v / self.size) + ridge @ (v / self.size)) / self.size

    def penalty(self, tau: Array) -> float:
        """½ τᵀRτ."""
        return float(0.5 * tau @ (self.ridge @ tau))

    def step(self, damping: float) -> tuple[Array | None, float]:
        """A step and the damping that it took; None where no damping makes A positive."""
        while damping <= MOST_DAMPING and np.isfinite(self.value):
            try:
                factor = cho_factor(self.scaled + damping * np.eye(len(self.size)), check_finite=True)
                return -self._solved(factor, damping) / self.size, damping
            except (np.linalg.LinAlgError, ValueError):
                damping = max(10 * damping, LEAST_DAMPING)
        return None, damping

    def shorter(self, step: Array, damping: float) -> tuple[Array | None, float]:
        """A step whose decrement is at most a quarter of that of the given one, and its damping."""
        enough, found = 0.25 * self.decrement(step), None
        while found is None or self.decrement(found) > enough:
            found, damping = self.step(max(10 * damping, LEAST_DAMPING))
            if found is None:
                break
        return found, damping

    def decrement(self, step: Array) -> float:
        """−gᵀs."""
        return float(-self.gradient @ step)

    def _solved(self, factor: tuple, damping: float) -> Array:
        """(A + damping)⁻¹ g in scaled units: by the factor, or by conjugate gradients that it preconditions."""
        g, product = self.gradient / self.size, self.product
        if product is None:
            return cho_solve(factor, g)
        return conjugate_gradients(
            lambda v: product(v) + damping * v, g, lambda r: cho_solve(factor, r), _CG_TOLERANCE, _CG_PRODUCTS
        )[0]

    def promised(self, step: Array) -> float:
        """By how much the quadratic model falls."""
        scaled = step * self.size
        image = self.scaled @ scaled if self.product is None else self.product(scaled)
        return self.decrement(step) - 0.5 * float(scaled @ image)
