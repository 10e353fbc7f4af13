"""Conjugate gradients with a preconditioner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["conjugate_gradients"]

Array = np.ndarray


def conjugate_gradients(
    product: Callable[[Array], Array],
    b: Array,
    precondition: Callable[[Array], Array],
    tol: float = 1e-2,
    max_iter: int = 100,
) -> tuple[Array, int]:
    """x with A x = b, and the number of products with A, a positive matrix.

    Ends when the residual r has √(rᵀP r) ≤ tol √(bᵀP b), P the preconditioner, or after `max_iter` products.
    """
    x, residual = np.zeros_like(b), b.copy()
    z = precondition(residual)
    direction, size = z, residual @ z
    enough = tol**2 * size
    for done in range(max_iter):
        if size <= enough:
            return x, done
        image = product(direction)
        curvature = direction @ image
        if not curvature > 0:
            return x, done + 1
        step = size / curvature
        x, residual = x + step * direction, residual - step * image
        z = precondition(residual)
        size, last = residual @ z, size
        direction = z + (size / last) * direction
    return x, max_iter
