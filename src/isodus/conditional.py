"""One variable given all others: densities on the line, one a row of data, in the units of the data.

Row j has, in y = (x − location)/scale,

    P(x | rest) = exp(−Σ_{l=1..s} a[l−1, j] y^l) / (scale Z_j),        a: (s, n).

The density itself is computed about the mode m, as exp(−Σ_l b_l v^l), v = y − m, with the Taylor coefficients b:
where it is narrow and far from zero, Σ_l a_l y^l and log Z are large and cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, log
from typing import Any

import numpy as np
import pandas as pd

from .arrays import Array, to_host
from .spaces import PLAIN, Space
from .univariate import Integrals, integrate
from .univariate.polynomials import listed, polynomial, taylor_exact
from .univariate.table import moments_of_table

__all__ = ["Conditional"]

_BLOCK = 1 << 18  # densities at a time, where each row has many values


@dataclass(frozen=True, eq=False, repr=False)
class Conditional:
    """The distribution of one variable given all others, one a row of data; values in the units of the data.

    Where `cdf`, `pdf` and `logpdf` take x, a number is put to every row and an array of shape (n,) holds one value a
    row; both give (n,). In two dimensions it is one row of points for each row, (n, k), or one for all, (1, k), as for
    plotting: ``pdf(grid[None, :])``; both give (n, k). NaN gives NaN.

    Parameters
    ----------
    name : str
        The variable.
    a : array of shape (s, n)
        Row j of the data has the density exp(−Σ_l a[l − 1, j] y^l), up to a factor, in y = (x − location)/scale. If it
        cannot be normalised, that is a ValueError.
    location, scale : float
        Units of the standardised variable.
    given : sequence of str, optional
        The other variables.
    space : Space, optional
        Where y lives, and what stands in the place of its powers; the line, and powers, by default.

    Examples
    --------
    >>> from isodus.conditional import Conditional
    >>> a = [[0.0, -2.0], [1.0, 1.0]]  # exp(−y²) and exp(2y − y²)
    >>> height = Conditional("height", a, location=170.0, scale=10.0, given=["age"])
    >>> height
    Conditional distribution of height given age, 2 rows
    >>> height.mean().round(6)
    array([170., 180.])
    >>> height.interval(0.9).round(2)
    array([[158.37, 181.63],
           [168.37, 191.63]])
    >>> height.pdf([[160.0, 170.0, 180.0]]).round(4)
    array([[0.0208, 0.0564, 0.0208],
           [0.001 , 0.0208, 0.0564]])
    """

    name: str
    a: np.ndarray
    location: float = 0.0
    scale: float = 1.0
    given: tuple[str, ...] = ()
    space: Space = PLAIN
    _integrals: Integrals = field(init=False)

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)
        put("a", np.array(to_host(self.a), dtype=np.float64, order="C"))
        put("location", float(self.location))
        put("scale", float(self.scale))
        put("given", tuple(map(str, self.given)))
        if self.a.ndim != 2 or not self.a.shape[0]:
            raise ValueError(f"a has shape {self.a.shape}: it must have a row a power and a column a row of the data")
        if not (isfinite(self.location) and isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"location must be finite and scale positive, not {self.location} and {self.scale}")
        self.a.flags.writeable = False
        self._check(self.space.expectations(self.a, means=False).missing)
        if self.space.functions is None:
            put("_integrals", integrate(self.a, moments=2, support=self.space.support))

    def _check(self, missing: np.ndarray) -> None:
        if missing.size:
            j = int(missing[0])
            coefficients = ", ".join(f"{value:.3g}" for value in self.a[:, j])
            raise ValueError(
                f"{self.name} has no distribution given the other variables in {missing.size} of "
                f"{len(self)} rows, the first: row {j}, where −log density is Σ_l a_l y^l with a = ({coefficients}). "
                "These must be finite, the last that is not zero positive and of an even power, and the density "
                "not too narrow for double precision"
            )

    @cached_property
    def _about_mode(self) -> tuple[np.ndarray, np.ndarray]:
        """b (s, n), and log ∫ exp(−Σ_l b_l v^l) dv (n,); of the line."""
        high, low = taylor_exact([np.zeros(len(self)), *listed(self.a)], None, self._integrals.mode)
        b = np.stack(high[1:]) + np.stack(low[1:])
        return b, integrate(b).log_z

    @cached_property
    def _first_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """E y and E y², of functions other than powers; NaN where tails are so heavy that there are none."""
        return moments_of_table(self.a, *self.space)

    def __len__(self) -> int:
        return self.a.shape[1]

    def __repr__(self) -> str:
        others = ", ".join(self.given) if len(self.given) <= 4 else f"{len(self.given)} variables"
        given, rows = f" given {others}" if others else "", "1 row" if len(self) == 1 else f"{len(self)} rows"
        return f"Conditional distribution of {self.name}{given}, {rows}"

    # one value a row

    def mean(self) -> np.ndarray:
        """The mean of every row, (n,)."""
        if self.space.functions is not None:
            return self._in_units(self._first_moments[0])
        return self._in_units(self._integrals.mode + self._integrals.central[0])

    def var(self) -> np.ndarray:
        """The variance of every row, (n,)."""
        if self.space.functions is not None:
            first, second = self._first_moments
            return self.scale * self.scale * (second - first * first)
        first, second = self._integrals.central
        return self.scale * self.scale * (second - first * first)

    def std(self) -> np.ndarray:
        """The standard deviation of every row, (n,)."""
        return np.sqrt(self.var())

    def mode(self) -> np.ndarray:
        """Where the density of every row is highest, (n,); one such place if there are several."""
        if self.space.functions is not None:
            return self._in_units(to_host(self.space.expectations(self.a).mode))
        return self._in_units(self._integrals.mode)

    def median(self) -> np.ndarray:
        """The median of every row, (n,)."""
        return self.quantile(0.5)

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Both ends of the interval that leaves (1 − level)/2 of the probability on either side, (n, 2)."""
        if not 0 <= level <= 1:
            raise ValueError(f"level must lie between 0 and 1, not {level}")
        return self.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level])

    def to_frame(self, q: Array = (0.025, 0.5, 0.975)) -> pd.DataFrame:
        """Mean, standard deviation and quantiles, these named as percentages, of every row."""
        q = np.ravel(q)
        quantiles = {f"{100 * level:g}%": values for level, values in zip(q, self.quantile(q).T, strict=True)}
        return pd.DataFrame({"mean": self.mean(), "std": self.std(), **quantiles})

    # the distribution

    def pdf(self, x: Array) -> np.ndarray:
        """The density at x, per unit of x."""
        return np.exp(self.logpdf(x))

    def logpdf(self, x: Array) -> np.ndarray:
        """The log of the density at x, per unit of x; where there are a few values, of the probability."""
        if self.space != PLAIN:
            return self._in_space(self._from_units(x)).T
        b, log_z = self._about_mode
        v = self._from_units(x) - self._integrals.mode
        far = np.isinf(v)
        with np.errstate(over="ignore"):
            energy = polynomial([0.0, *listed(b)], np.where(far, 0.0, v))
        return np.where(far, -np.inf, -energy - log_z - log(self.scale)).T

    def _in_space(self, y: np.ndarray) -> np.ndarray:
        """The log of the density at y, (n,) or (k, n), where it is not on the line or not of powers."""
        support, log_z = self.space.support, to_host(self.space.expectations(self.a, means=False).log_z)
        inside = support.holds(y, support.in_units(self.location, self.scale).slack(self.location) / self.scale)
        with np.errstate(all="ignore"):  # what is outside counts for nothing
            phi = self.space.features(np.where(inside, y, support.low if isfinite(support.low) else 0.0), len(self.a))
        value = -np.einsum("l...n,ln->...n", phi, self.a) - log_z
        value = value if support.values is not None else value - log(self.scale)
        return np.where(np.isnan(y), np.nan, np.where(inside, value, -np.inf))

    def cdf(self, x: Array) -> np.ndarray:
        """The probability of values up to x; absolute error below 1e-10."""
        y = self._from_units(x)
        unknown = np.isnan(y)
        return np.where(unknown, np.nan, self._each(self.space.cdf, np.where(unknown, 0.0, y))).T

    def quantile(self, q: Array) -> np.ndarray:
        """The x at which `cdf` is q; the error, as a probability, is below 1e-10. For 0 and 1 the ends of the support.

        A number is put to every row and gives (n,), k numbers give (n, k). In two dimensions each row has its own.
        """
        q = np.asarray(q, dtype=np.float64)
        wrong = q[~((q >= 0) & (q <= 1))]
        if wrong.size:
            raise ValueError(f"q must lie between 0 and 1, not {wrong[0]}")
        u = self._by_row(q[None, :] if q.ndim == 1 else q, "q")
        x = self._in_units(self._each(self.space.quantile, np.where((u > 0) & (u < 1), u, 0.5)))
        low, high = (self._in_units(end) for end in self.space.support[:2])
        return np.where(u == 0, low, np.where(u == 1, high, x)).T

    def sample(self, n_draws: int | None = None, rng: int | np.random.Generator | None = None) -> np.ndarray:
        """Exact and independent draws, n_draws a row, (n, n_draws); without it, one a row, (n,).

        The same `rng`, a seed or a Generator, gives the same draws.
        """
        whole = isinstance(n_draws, int | np.integer) and not isinstance(n_draws, bool)
        if n_draws is not None and not (whole and n_draws > 0):
            raise ValueError(f"n_draws must be a positive integer or None, not {n_draws!r}")
        shape = (len(self),) if n_draws is None else (len(self), n_draws)
        u = 1.0 - np.random.default_rng(rng).random(shape).T  # in (0, 1]; the clip keeps 1 out
        return self._in_units(self._each(self.space.quantile, np.minimum(u, 1.0 - 2.0**-53))).T

    # within, rows of the data come last: (n,), or (k, n) where there are several values a row

    def _in_units(self, y: Any) -> Any:
        return self.location + self.scale * y

    def _from_units(self, x: Array) -> np.ndarray:
        return (self._by_row(np.asarray(x, dtype=np.float64), "x") - self.location) / self.scale

    def _by_row(self, values: np.ndarray, name: str) -> np.ndarray:
        """A number or (n,) as (n,), (n, k) or (1, k) as (k, n)."""
        n, shape = len(self), values.shape
        if len(shape) == 1 and shape != (n,):
            raise ValueError(
                f"{name} has {len(values)} values for {n} rows: give one a row, or {name}[None, :] for all at every row"
            )
        if len(shape) > 2 or (len(shape) == 2 and shape[0] not in (1, n)):
            raise ValueError(f"{name} has shape {shape}: with {n} rows, two dimensions must be (1, k) or ({n}, k)")
        return np.broadcast_to(values, (n, *shape[1:])).T

    def _each(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray], values: np.ndarray) -> np.ndarray:
        """`function`, of `univariate`, of every row at its values."""
        several = np.atleast_2d(values)
        step = max(_BLOCK // max(len(self), 1), 1)
        parts = [several[i : i + step] for i in range(0, max(len(several), 1), step)]
        done = [function(np.tile(self.a, len(part)), part.ravel()) for part in parts]
        return np.concatenate(done).reshape(values.shape)
