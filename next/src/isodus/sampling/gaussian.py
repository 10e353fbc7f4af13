"""Gaussian models in closed form, from their precision matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from .graph import Component, NoDensity

__all__ = ["Gaussian"]

Array = np.ndarray
_ROUNDING = 4 * np.finfo(float).eps  # times the variables: an eigenvalue of a precision of unit diagonal that is 0


class Gaussian(NamedTuple):
    """N(mean, precision⁻¹) of y = (x − location)/scale."""

    location: Array
    scale: Array
    precision: Array
    factor: Array  # L with precision = L Lᵀ
    slope: Array  # b of E = bᵀy + yᵀ precision y / 2

    @classmethod
    def of(cls, part: Component) -> Gaussian:
        """The Gaussian of a component; NoDensity where its precision is not positive definite."""
        p = len(part.variables)
        units = [axis.gaussian_moments() for axis in part.terms.axes if axis.gaussian_moments is not None]
        precision, slope = np.zeros((p, p)), np.zeros(p)
        for factors, value in zip(part.terms.products, part.theta, strict=True):
            if len(factors) == 2:
                (i, _), (j, _) = factors
                precision[i, j] = precision[j, i] = value
            elif factors[0][1] == 1:
                precision[factors[0][0], factors[0][0]] = 2 * value
            else:
                slope[factors[0][0]] = value
        location, scale = np.array(units).T
        size = np.sqrt(np.maximum(np.diag(precision), 1e-300))
        least = np.linalg.eigvalsh(precision / size / size[:, None])[0]
        if not least > _ROUNDING * p:
            raise NoDensity(f"the precision matrix is not positive definite (smallest eigenvalue {least:.3g}, scaled)")
        factor = np.linalg.cholesky(precision)
        return cls(location, scale, precision, factor, slope)

    @property
    def log_Z(self) -> float:
        """p/2 log 2π − ½ log det P + ½ bᵀ P⁻¹ b."""
        white = solve_triangular(self.factor, self.slope, lower=True)
        return float(
            0.5 * len(self.slope) * np.log(2 * np.pi) - np.log(np.diag(self.factor)).sum() + 0.5 * white @ white
        )

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """X, (n, p)."""
        z = rng.standard_normal((len(self.slope), n)) - solve_triangular(self.factor, self.slope, lower=True)[:, None]
        return self.location + self.scale * solve_triangular(self.factor.T, z).T

    def fill(self, X: Array, missing: Array, rng: np.random.Generator) -> Array:
        """Values of the missing variables (p,) of rows X (n, p) given the others, (n, missing)."""
        there = ~missing
        inner = np.linalg.cholesky(self.precision[np.ix_(missing, missing)])
        y = (X[:, there] - self.location[there]) / self.scale[there]
        slope = self.slope[missing][:, None] + self.precision[np.ix_(missing, there)] @ y.T
        mean = -cho_solve((inner, True), slope)
        y = mean + solve_triangular(inner.T, rng.standard_normal(mean.shape))
        return self.location[missing] + self.scale[missing] * y.T
