"""A variable on the circle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from .base import Array, Axis, Derivatives, Nodes, endless
from .quadrature import invert

__all__ = ["Circle"]


@dataclass(frozen=True, eq=False)
class Circle(Axis):
    """√2 cos kx and √2 sin kx, both of degree k, on angles in radians; nothing depends on where zero is.

    Parameters
    ----------
    degree : int
        The largest k.

    Examples
    --------
    >>> import numpy as np
    >>> axis = Circle(2)
    >>> axis.degrees.tolist(), [axis.name(l, "x") for l in range(4)]
    ([1, 1, 2, 2], ['cos(x)', 'sin(x)', 'cos(2 x)', 'sin(2 x)'])
    """

    degree: int

    kind: ClassVar[str] = "circle"
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.degree < 1 or self.degree != int(self.degree):
            raise ValueError(f"the degree of a circle must be a whole number from 1 on, not {self.degree}")
        object.__setattr__(self, "degree", int(self.degree))

    @classmethod
    def fit(
        cls, x: Array, degree: int, weight: Array | None = None, extremes: tuple[float, float] | None = None
    ) -> Self:
        """The axis; it does not depend on the rows."""
        return cls(degree)

    @property
    def degrees(self) -> Array:  # type: ignore[override]
        """1, 1, 2, 2, …, degree, degree."""
        return np.repeat(np.arange(1, self.degree + 1), 2)

    def name(self, l: int, variable: str) -> str:
        """Cos and sin of a multiple of the angle."""
        k = l // 2 + 1
        return f"{'sin' if l % 2 else 'cos'}({variable if k == 1 else f'{k} {variable}'})"

    @property
    def norms(self) -> Array:
        """√2."""
        return np.full(len(self.degrees), np.sqrt(2))

    @property
    def ends(self) -> tuple[float, float]:
        """One turn."""
        return 0.0, 2 * np.pi

    def functions(self, x: Array) -> Array:
        """φ_l(x), (n, J), cosine and sine by turns."""
        return np.sqrt(2) * _interleaved(*_multiples(x, self.degree))

    def log_base(self, x: Array) -> Array:
        """0: uniform in the angle; −inf at what is not finite."""
        return np.where(self.contains(x), 0.0, -np.inf)

    def nodes(self, count: int) -> Nodes:
        """Equispaced angles from 0 on.

        Checks are the highest Fourier coefficients of the mass, as many consecutive ones as there are degrees: a
        density of cos kx alone has coefficients at the multiples of k only.
        """
        x = 2 * np.pi * np.arange(count) / count
        k = x[:, None] * np.arange(count // 2 - max(4, self.degree), count // 2)
        check = np.sqrt(2) * np.hstack([np.cos(k), np.sin(k)])
        return Nodes(x, np.full(count, np.log(2 * np.pi / count)), self.functions(x), check)

    def derivatives(self, x: Array) -> Derivatives:
        """φ′ and φ″ in the angle."""
        k = np.arange(1, self.degree + 1)
        cos, sin = _multiples(x, self.degree)
        return Derivatives(
            np.sqrt(2) * _interleaved(-k * sin, k * cos), -np.sqrt(2) * _interleaved(k * k * cos, k * k * sin)
        )

    boundary = endless

    def mean_variance(self, a: Array) -> tuple[Array, Array]:
        """Mean direction, an angle in [0, 2π), and 1 − R with R = |E exp(ix)|."""
        cos, sin = self.integrals(a, second=False).mean[:, :2].T / np.sqrt(2)
        return np.mod(np.arctan2(sin, cos), 2 * np.pi), 1 - np.hypot(cos, sin)

    def pooled_mean(self, mean: Array, variance: Array) -> Array:
        """Direction of the sum of the mean resultant vectors."""
        return np.mod(np.angle(((1 - variance) * np.exp(1j * mean)).sum(axis=1)), 2 * np.pi)

    def cdf(self, a: Array, x: Array) -> Array:
        """Probability of the angles from 0 to x, row by row; x is taken modulo 2π."""
        out, x = np.empty(len(a)), np.mod(x, 2 * np.pi)
        for rows, mass, _ in self.resolved(a):
            out[rows] = _series(np.fft.rfft(mass, axis=0), x[rows])[0]
        return np.clip(out, 0.0, 1.0)

    def quantile(self, a: Array, v: Array) -> Array:
        """The angle in [0, 2π] up to which, from 0 on, the probability is v: Newton on the Fourier series."""
        out = np.empty(len(a))
        for rows, mass, _ in self.resolved(a):
            coefficients, step = np.fft.rfft(mass, axis=0), 2 * np.pi / len(mass)
            j = (mass.cumsum(axis=0) < v[rows]).sum(axis=0)
            low, high = np.maximum(j - 1, 0) * step, np.minimum(j + 2, len(mass)) * step
            low = np.where(_series(coefficients, low)[0] > v[rows], 0.0, low)
            high = np.where(_series(coefficients, high)[0] < v[rows], 2 * np.pi, high)
            out[rows] = invert(lambda x, c=coefficients: _series(c, x), v[rows], low, high, 1e-15)  # type: ignore[misc]
        return out


def _multiples(x: Array, degree: int) -> tuple[Array, Array]:
    """Cos kx and sin kx for k = 1, …, degree, (..., degree) each."""
    angle = np.asarray(x, float)[..., None] * np.arange(1, degree + 1)
    return np.cos(angle), np.sin(angle)


def _interleaved(cos: Array, sin: Array) -> Array:
    return np.stack([cos, sin], axis=-1).reshape(*cos.shape[:-1], 2 * cos.shape[-1])


def _series(coefficients: Array, x: Array) -> tuple[Array, Array]:
    """Mass between 0 and x, and density, of a Fourier series c_k = Σ_j mass_j exp(−ikx_j), (1 + N/2, n); x: (n,)."""
    k = np.arange(1, len(coefficients) - 1)[:, None]
    turn = np.exp(1j * k * x)
    c = coefficients[1:-1]
    below = x * coefficients[0].real + 2 * np.sum((c * (turn - 1)).imag / k, axis=0)
    density = coefficients[0].real + 2 * np.sum((c * turn).real, axis=0)
    return below / (2 * np.pi), density / (2 * np.pi)
