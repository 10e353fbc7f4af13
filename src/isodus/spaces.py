"""What one variable of an energy is: where it lives, and which functions of it the terms are made of.

Everything that is asked of P(x_i | rest) ∝ exp(−Σ_l a_l φ_l(x_i)) is asked here, and answered by `univariate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from . import univariate
from .arrays import Array, empty, multiply_into, namespace, on_device, to_host
from .checks import column_finder
from .supports import LINE, Support, as_support
from .univariate.table import Expectations, cdf_of_table, expectations, quantile_of_table

__all__ = ["PLAIN", "Space", "Spaces", "as_spaces", "batches", "check_inside", "powers"]


def powers(x: Array, s: int) -> Array:
    """x, x², …, x^s along a new first axis, each by one multiplication."""
    out = empty((s, *x.shape), x)
    out[0, ...] = x
    for l in range(1, s):
        multiply_into(out[l, ...], out[l - 1, ...], x)
    return out


class Space(NamedTuple):
    """A support, and functions of `isodus.functions`, or of that kind; None for powers."""

    support: Support = LINE
    functions: Any = None

    @property
    def tabled(self) -> bool:
        """Whether integrals are sums over nodes that are the same for all rows."""
        return self.functions is not None or self.support.values is not None

    @property
    def has_slopes(self) -> bool:
        """Whether there are derivatives, which score matching takes."""
        return self.support.values is None and (self.functions is None or hasattr(self.functions, "derivatives"))

    @property
    def most(self) -> float:
        """How many functions can be told apart."""
        return min(getattr(self.functions, "count", np.inf), self.support.powers)

    def standardised(self, location: float, scale: float) -> Space:
        """The same in y = (x − location)/scale."""
        return self._replace(support=self.support.standardised(location, scale))

    def holds(self, x: Array, slack: float = 0.0) -> Array:
        """Which of x it may be, or is by no more than `slack` beside; not the ends where functions are infinite."""
        low, high = self.support[:2]
        inside = self.support.holds(x, slack)
        return inside & (x > low) & (x < high) if getattr(self.functions, "ends", False) else inside

    def in_units(self, location: float, scale: float) -> Space:
        """The same in x = location + scale·y, to rounding."""
        return self._replace(support=self.support.in_units(location, scale))

    @property
    def inside(self) -> float:
        """A value that it may have."""
        low, high, values, _ = self.support
        if values is not None:
            return values[0]
        if self.support.bounded:
            return (low + high) / 2
        return low + 1.0 if np.isfinite(low) else 0.0

    def start(self, s: int, unit: float = 1.0) -> np.ndarray:
        """Coefficients, (s,), of a density: uniform, exponential, Gaussian, or what functions say; unit: 1/spread."""
        a = np.zeros(s)
        if self.support.bounded:
            return a
        if self.functions is not None:
            return self.functions.start(s)
        power = min(1 if np.isfinite(self.support.low) else 2, s)
        a[power - 1] = unit**power / power
        return a

    def features(self, x: Array, s: int) -> Array:
        """φ_1(x) … φ_s(x), along a new first axis."""
        return powers(x, s) if self.functions is None else self.functions(x, s)

    def slopes(self, x: Array, s: int) -> tuple[Array, Array]:
        """φ' and φ''."""
        if self.functions is not None:
            return self.functions.derivatives(x, s)
        first, second = empty((s, *x.shape), x), empty((s, *x.shape), x)
        first[0, ...], second[0, ...] = 1.0, 0.0
        for l in range(2, s + 1):
            second[l - 1, ...] = first[l - 2, ...] * l  # (l − 1)x^{l−2} · l
            first[l - 1, ...] = first[l - 2, ...] * x * (l / (l - 1))
        return first, second

    def expectations(self, a: Array, *, means: bool = True, second: bool = False, tol: float = 1e-10) -> Expectations:
        """log Z of every column of a, (s, n), and E φ_l, unless means are not wanted; with `second` E φ_l φ_k too."""
        if self.tabled:
            return expectations(a, self.support, self.functions or powers, second=second, tol=tol)
        s, xp = a.shape[0], namespace(a)
        moments = 2 * s if second else s if means else 0
        found = univariate.integrate(a, moments=moments, support=self.support, tol=tol)
        m = found.moments
        both = xp.stack([xp.stack([m[j + k + 1, :] for k in range(s)]) for j in range(s)]) if second else None
        return Expectations(found.log_z, m[:s, :] if moments else m, both, found.mode, found.missing)

    def quantile(self, a: Array, u: Array) -> Array:
        """The x below which the probability is u, for every column of a."""
        if self.functions is None:
            return univariate.quantile(a, u, support=self.support)
        return on_device(quantile_of_table(to_host(a), to_host(u), *self), a)

    def cdf(self, a: Array, x: Array) -> Array:
        """The probability of values up to x, for every column of a."""
        if self.functions is None:
            return univariate.cdf(a, x, support=self.support)
        return on_device(cdf_of_table(to_host(a), to_host(x), *self), a)

    def draw(self, a: Array, rng: np.random.Generator) -> Array:
        """One exact draw from each column of a: the quantile at a uniform variate made on the host."""
        u = 1.0 - rng.random(a.shape[1])  # in (0, 1]; the clip keeps 1 out
        return self.quantile(a, on_device(np.minimum(u, 1.0 - 2.0**-53), a))


PLAIN = Space()
Spaces = tuple[Space, ...]


def batches(spaces: Spaces, nodes: Iterable[int]) -> list[tuple[Space, np.ndarray]]:
    """Nodes that live alike: each space, and the positions among `nodes` of those that have it."""
    groups: dict[int, tuple[Space, list[int]]] = {}
    seen: list[Space] = []
    for k, i in enumerate(nodes):
        space = spaces[i]
        at = next((j for j, other in enumerate(seen) if other is space or other == space), None)
        if at is None:
            at = len(seen)
            seen.append(space)
            groups[at] = (space, [])
        groups[at][1].append(k)
    return [(space, np.array(at)) for space, at in groups.values()]


def as_spaces(support: Any, functions: Any, names: Sequence[Any]) -> Spaces | None:
    """The spaces of all variables from what a user gives; None where all are the line, with powers.

    support, functions: one for all, a list of one a variable, or a mapping from names, of whatever type, or indices,
    where the others have the usual.
    """
    supports = _each(support, names, "support", _is_support)
    kinds = _each(functions, names, "functions", lambda given: callable(given) or given is None)
    found = []
    for name, where, what in zip(names, supports, kinds, strict=True):
        if what is not None and not callable(what):
            raise ValueError(f"{name}: functions are called as functions(x, s); {what!r} cannot be called")
        where = getattr(what, "support", None) if where is None else where
        try:
            space = Space(as_support(where), what)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if space.support.circle and what is None:
            from .functions import Fourier

            space = space._replace(functions=Fourier())
        if what is not None and not space.support.bounded and not hasattr(what, "start"):
            raise ValueError(
                f"{name}: functions on {space.support}, which has no bounds, must say by start(s) which coefficients "
                "have a density"
            )
        if getattr(what, "ends", False) and getattr(what, "support", space.support).low > space.support.low:
            raise ValueError(f"{name}: {type(what).__name__} has no values below {what.support.low:g}")
        found.append(space)
    return None if all(space == PLAIN for space in found) else tuple(found)


def check_inside(X: Array, names: Sequence[str], spaces: Spaces | None, slack: Sequence[float] | None = None) -> None:
    """Refuse values where a variable cannot be, X: (n, p), NaN for those that are not known; slack: by rounding."""
    for i, (name, space) in enumerate(zip(names, spaces or (), strict=False)):
        values = to_host(X[:, i])
        outside = np.flatnonzero(~space.holds(values, slack[i] if slack is not None else 0.0) & ~np.isnan(values))
        if len(outside):
            shown = ", ".join(f"{values[k]:g} in row {k}" for k in outside[:3])
            raise ValueError(
                f"{name} lives on {space.support}, and {len(outside)} of {len(values)} values do not: {shown}"
                f"{', …' if len(outside) > 3 else ''}. Mend them, or give it another support"
            )


def _is_support(given: Any) -> bool:
    """Whether this is one support, rather than a list of them."""
    if given is None or isinstance(given, str | Support):
        return True
    return isinstance(given, list | tuple | np.ndarray) and all(isinstance(v, Real) for v in given)


def _each(given: Any, names: Sequence[Any], what: str, is_one: Any) -> list[Any]:
    if isinstance(given, Mapping):
        find, found = column_finder(names), dict[int, Any]()
        for key, value in given.items():
            at = find(key)
            if at is None:
                raise ValueError(f"{what} names {key!r}; the columns are {', '.join(map(str, names[:8]))}")
            if at in found:
                raise ValueError(f"{what} names the column {names[at]} more than once, the last time as {key!r}")
            found[at] = value
        return [found.get(i) for i in range(len(names))]
    if is_one(given):
        return [given] * len(names)
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ValueError(
            f"{what} is one for all columns, a list of one a column, or a mapping from names to it; not {given!r}"
        )
    if len(given) != len(names):
        raise ValueError(f"{what} has {len(given)} entries, and there are {len(names)} columns")
    return list(given)
