"""One variable given the others: a one-dimensional density for each row of the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.checks import generator, positive_integer
from .._core.notes import Note, announce
from ..axes import Axis

__all__ = ["Conditional"]

Array = np.ndarray


class Conditional:
    """P(x_i | rest) for each of n rows of the other variables, from integrals on the axis of x_i.

    Made by `PolynomialModel.conditional`.

    Attributes
    ----------
    variable : str
        The name of x_i.
    n : int
        The number of rows.
    error : array of shape (n,)
        The stated error of log Z of each row's density, and of its moments relative to 1 + the largest of them.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> model = PolynomialModel.from_dict({("a", "a"): 1.0, ("a", "b"): -1.0, ("b", "b"): 1.0})
    >>> given = model.conditional("a", {"b": [0.0, 1.0]})
    >>> given.mean().tolist(), given.variance().tolist()
    ([0.0, 0.5], [0.5, 0.5])
    """

    def __init__(self, variable: str, axis: Axis, a: Array) -> None:
        self.variable, self.axis, self._a = variable, axis, a
        self.n = len(a)
        self._log_Z, _, _, self.error = axis.integrals(a, second=False)
        _check(variable, axis, self._log_Z, self.error)

    def mean(self) -> Array:
        """The mean of each row, (n,); on a circle, the mean direction."""
        return self.axis.mean_variance(self._a)[0]

    def variance(self) -> Array:
        """The variance of each row, (n,); on a circle, 1 − R with R the mean resultant length."""
        return self.axis.mean_variance(self._a)[1]

    def quantile(self, v: Any) -> Array:
        """Where the distribution function is v.

        Parameters
        ----------
        v : float or array
            Probabilities: one for all rows; one per row, (n,); or several for each row, (1, m) or (n, m). With a
            single row, any shape (m,).

        Returns
        -------
        array of shape (n,) or (n, m)
        """
        v = np.asarray(v, float)
        if not np.all((v >= 0) & (v <= 1)):
            raise ValueError("Quantiles are at probabilities from 0 to 1, and v holds other numbers.")
        return self._each(self.axis.quantile, v, "v")

    def cdf(self, x: Any) -> Array:
        """P(x_i ≤ x | rest); x as v in `quantile`."""
        return self._each(self._below, np.asarray(x, float), "x")

    def logpdf(self, x: Any) -> Array:
        """The logarithm of the density at x, −∞ off the axis; x as v in `quantile`."""
        return self._each(self._log_density, np.asarray(x, float), "x")

    def pdf(self, x: Any) -> Array:
        """The density at x; x as v in `quantile`."""
        return np.exp(self.logpdf(x))

    def sample(self, n: int | None = None, random_state: Any = None) -> Array:
        """Exact draws: one per row, (rows,), or n per row, (rows, n)."""
        rng = generator(random_state)
        count = 1 if n is None else positive_integer(n, "n")
        draws = self.axis.draw(np.repeat(self._a, count, axis=0), rng).reshape(self.n, count)
        return draws[:, 0] if n is None else draws

    def __repr__(self) -> str:
        return f"Conditional of {self.variable!r} given the others, {self.n:,} rows"

    def _below(self, a: Array, x: Array) -> Array:
        """The distribution function at x, which may be infinite."""
        out, finite = np.where(x > 0, 1.0, 0.0), np.isfinite(x)
        out[finite] = self.axis.cdf(a[finite], x[finite])
        return out

    def _log_density(self, a: Array, x: Array) -> Array:
        out, inside = np.full(len(x), -np.inf), self.axis.contains(x)
        log_Z = np.repeat(self._log_Z, len(x) // max(self.n, 1))[inside]
        x, a = x[inside], a[inside]
        out[inside] = self.axis.log_base(x) - (a * self.axis.functions(x)).sum(axis=1) - log_Z
        return out

    def _each(self, f: Any, values: Array, name: str) -> Array:
        """f(a, values) row by row; values: (), (n,), (1, m) or (n, m), and any (m,) where n is 1."""
        if np.isnan(values).any():
            raise ValueError(f"{name} holds NaN. Drop these values.")
        if values.ndim == 0 or values.shape == (self.n,):
            return f(self._a, np.array(np.broadcast_to(values, self.n)))
        if values.ndim == 1 and self.n == 1:
            return f(np.repeat(self._a, len(values), axis=0), values)
        if values.ndim != 2 or len(values) not in (1, self.n):
            raise ValueError(
                f"{name} has the shape {values.shape}, and there are {self.n:,} rows. Pass one value, one per row, or "
                f"several for each row as an array of shape (1, m) or ({self.n}, m)."
            )
        count = values.shape[1]
        values = np.array(np.broadcast_to(values, (self.n, count)))
        return f(np.repeat(self._a, count, axis=0), values.ravel()).reshape(self.n, count)


def _check(variable: str, axis: Axis, log_Z: Array, error: Array) -> None:
    """An error where there is no integral, and a warning where it is not resolved."""
    wrong = ~np.isfinite(log_Z)
    if wrong.any():
        raise ValueError(
            f"The conditional density of {variable!r} is not integrable in {int(wrong.sum()):,} of {len(wrong):,} rows "
            f"(first in row {int(np.argmax(wrong))}), so it has no mean, quantiles or draws there. "
            "Give the model an even leading power with a positive coefficient, or axes that end."
        )
    unresolved = error > axis.tolerance
    if unresolved.any():
        count = int(unresolved.sum())
        text = (
            f"The conditional density of {variable!r} is too narrow to be integrated in {count:,} of {len(error):,} "
            "rows, so its values there are not reliable. The column is nearly determined by others. Drop near-copies."
        )
        announce(Note("unresolved integrals", "warning", (variable,), {"rows": count}, text))
