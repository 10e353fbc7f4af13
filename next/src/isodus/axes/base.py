"""What every axis is: one variable, its functions, its base measure, and integrals that know their error."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

__all__ = ["Axis", "Boundary", "Derivatives", "Integrals", "Nodes", "endless", "exponentials", "packed_pairs"]

Array = np.ndarray
_SERIES_TOLERANCE = 1e-9  # of the checks, where a series of the mass is inverted
_HIGH = 1e30  # of the mass over that on every eighth node

# glibc hands freed arrays above a threshold back to the system, and every call would page them in again, which doubles
# the time of `integrals`; freeing one large array (never touched, so never there) raises the threshold for the process.
np.empty(1 << 21)


class Nodes(NamedTuple):
    """Where the one-dimensional integrals are sums.

    The integral of f under the base measure is Σ_j exp(log_weights_j) f(places_j). `check` has a column for each
    property of a resolved mass: its product with the mass must vanish.
    """

    places: Array  # (N,) in the units of x
    log_weights: Array  # (N,)
    phi: Array  # (N, J)
    check: Array  # (N, c)


class Integrals(NamedTuple):
    """log Z, E[φ] and Cov[φ] of q exp(−Σ a_l φ_l) for each row, and a stated error of each row.

    The error is of log Z, and relative to 1 + its largest entry of E[φ] and Cov[φ]. Covariances are packed: the
    entries (l, m) with l ≤ m, row by row, as `packed_pairs` lists them.
    """

    log_Z: Array  # (n,)  # noqa: N815
    mean: Array  # (n, J)
    covariance: Array | None  # (n, J(J+1)/2)
    error: Array  # (n,)


class Derivatives(NamedTuple):
    """φ′ and φ″, (n, J) each."""

    first: Array
    second: Array


class Boundary(NamedTuple):
    """The weight h of score matching, which vanishes where the axis ends, and h′."""

    weight: Array
    slope: Array


def endless(axis: Axis, x: Array) -> Boundary:
    """The weight of an axis without ends: 1."""
    return Boundary(np.ones_like(x, float), np.zeros_like(x, float))


@functools.cache
def packed_pairs(size: int) -> tuple[Array, Array]:
    """Rows and columns (l, m), l ≤ m, of a packed symmetric matrix."""
    return np.triu_indices(size)


def rounding(exponent: Array, mean: Array) -> Array:
    """Rounding of an exponent Σ a_l φ_l, and of a covariance as the difference E[φφᵀ] − E[φ]E[φ]ᵀ, row by row.

    exponent: Σ |a_l φ_l| at its largest, (n,); mean: (n, J). Relative to 1 + the largest entry of E[φ] and Cov[φ], the
    difference loses ε (1 + |E[φ]|).
    """
    return np.finfo(float).eps * (exponent + np.abs(mean).max(axis=1, initial=0.0))


class _Table(NamedTuple):
    """Nodes, and the matrices whose products with rows and with the mass are the integrals."""

    nodes: Nodes
    exponents: Array  # (N, J + 2): −φ, log weights, −1
    sums: Array  # (1 + J + c + J(J+1)/2, N): 1, φ, checks, φ_l φ_m with l ≤ m
    size: Array  # (J,): largest |φ_l|


def exponentials(exponents: Array, a: Array) -> tuple[Array, Array]:
    """exp(exponents (a, 1, top)) for each row of a, (N, n), and top, (n,); as `Axis.mass` states."""
    rows = np.concatenate([a.T, np.ones((1, len(a))), np.zeros((1, len(a)))])
    rows[-1] = (exponents[::8] @ rows).max(axis=0)
    mass = exponents @ rows
    with np.errstate(over="ignore"):
        np.exp(mass, out=mass)
    high = np.flatnonzero(mass.max(axis=0) > _HIGH)
    if len(high):
        rows[-1, high] = 0.0
        exact = exponents @ rows[:, high]
        rows[-1, high] = exact.max(axis=0)
        mass[:, high] = np.exp(exact - rows[-1, high])
    return mass, rows[-1]


class Axis(ABC):
    """One variable: functions φ_l, a base measure q, and the nodes on which integrals under q are sums.

    A subclass gives `degrees`, `functions`, `log_base` and `nodes`, as a frozen dataclass whose fields are what a file
    keeps; integrals, distribution functions and quantiles are derived. What an axis does not have is None: derivatives
    and boundary (score matching), powers (monomials of x), unit_powers (of its coordinate y), in_units (another y),
    on_window, wider, draw_near (a draw given a node that was drawn).
    """

    kind: ClassVar[str]
    """Its name in files."""
    kinds: ClassVar[dict[str, type[Axis]]] = {}
    smallest: ClassVar[int] = 64
    largest: ClassVar[int] = 2048

    degrees: Array
    """What each function counts for in the degree of a term, (J,)."""
    unit: float = 1.0
    """The spread of the variable, in whose units powers of x are well conditioned."""
    location: float
    """Where y is zero, of axes that have `in_units`."""
    continuous: ClassVar[bool] = True
    """Whether log_base is a density; else it is a probability."""
    ordered: ClassVar[bool] = True
    """Whether a value may lie below or above others, as an angle does not."""

    derivatives: Callable[[Array], Derivatives] | None = None
    boundary: Callable[[Array], Boundary] | None = None
    powers: Callable[[], Array] | None = None
    unit_powers: Callable[[], Array] | None = None
    gaussian_moments: Callable[[], tuple[float, float]] | None = None
    in_units: Callable[[float, float], Axis] | None = None
    on_window: Callable[[float, float], Axis] | None = None
    wider: Callable[[], Axis] | None = None
    draw_near: Callable[[Array, Array, int, np.random.Generator], Array] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            Axis.kinds[cls.kind] = cls

    # ---------------------------------------------------------------- what a subclass gives

    @abstractmethod
    def functions(self, x: Array) -> Array:
        """φ_l(x), (n, J)."""

    @abstractmethod
    def log_base(self, x: Array) -> Array:
        """log q(x), a density in the units of x, (n,); −inf where x is not on the axis."""

    @abstractmethod
    def nodes(self, count: int) -> Nodes:
        """At least `count` nodes, or all there are."""

    @abstractmethod
    def quantile(self, a: Array, v: Array) -> Array:
        """x with distribution function v, row by row; a: (n, J), v: (n,)."""

    @abstractmethod
    def cdf(self, a: Array, x: Array) -> Array:
        """P(variable ≤ x) under q exp(−Σ a_l φ_l), row by row."""

    # ---------------------------------------------------------------- what follows

    def contains(self, x: Array) -> Array:
        """Which values lie on the axis."""
        return np.isfinite(x)

    @property
    def ends(self) -> tuple[float, float]:
        """Least and largest value, ∓∞ where there is none; of a circle, one turn."""
        return -np.inf, np.inf

    @property
    def norms(self) -> Array:
        """φ_l over the function that `name` names, (J,), where an axis has no powers."""
        return np.ones(len(self.degrees))

    def coordinate(self, x: Array) -> Array:
        """What derivatives are taken with respect to: x itself unless an axis has units of its own."""
        return np.asarray(x, float)

    def name(self, l: int, variable: str) -> str:
        """The l-th function of a variable, for people."""
        if self.powers is None:
            return f"f{l + 1}({variable})"
        return variable if l == 0 else f"{variable}^{l + 1}"

    @property
    def tolerance(self) -> float:
        """The stated error above which a row is not resolved."""
        return 1e-4 if max(self.degrees, default=0) <= 4 else 1e-6

    def unclamped(self) -> Axis:
        """The axis whose functions go on beyond the window, for losses without integrals; itself where they do."""
        return self

    def power_reference(self, nu: float, power: float, origin: float = 0.0) -> tuple[Callable[[Array], Array], Array]:
        """The paper's reference R of one variable: log R/q up to a constant, and E_R[φ], (J,).

        It is the base measure itself, uniform on a circle, an interval and a few values; on a line
        exp(−ν|y − origin|^power). Where the axis has an end, that is the origin.
        """
        found = self.integrals(np.zeros((1, len(self.degrees))), second=False)
        if not np.isfinite(found.log_Z[0]):
            raise ValueError("its base measure has no integral, so it is no reference; use TiltedReference")
        return lambda x: np.zeros(len(x)), found.mean[0]

    def table(self, count: int) -> _Table:
        """Nodes and the matrices of `integrals`, made once."""
        tables = self.__dict__.setdefault("_tables", {})
        if count not in tables:
            nodes = self.nodes(count)
            phi, ones = nodes.phi, np.ones((len(nodes.phi), 1))
            l, m = packed_pairs(phi.shape[1])
            tables[count] = _Table(
                nodes,
                np.hstack([-phi, nodes.log_weights[:, None], -ones]),
                np.ascontiguousarray(np.hstack([ones, phi, nodes.check, phi[:, l] * phi[:, m]]).T),
                np.abs(phi).max(axis=0, initial=0.0),
            )
        return tables[count]

    def mass(self, a: Array, count: int | None = None) -> tuple[Array, Array]:
        """exp(−Σ a_l φ_l) times the weights on the nodes, over exp(top): (N, n), and top, (n,).

        top is the largest exponent on every eighth node, so that one product gives exponents that only `exp` is left to
        read; where the mass in between rises far above it, top is the largest on all nodes.
        """
        return exponentials(self.table(count or self.smallest).exponents, a)

    def integrals(self, a: Array, second: bool = True, count: int | None = None) -> Integrals:
        """log Z, E[φ], Cov[φ] = E[φφᵀ] − E[φ]E[φ]ᵀ and a stated error for each row of a, (n, J).

        Rows that are not resolved on `count` nodes get twice as many, up to `largest`; where the error is above
        `tolerance` even there, the row is not resolved.
        """
        count = count or self.smallest
        out, unseen = self.sums(a, second, count)
        finer = np.flatnonzero(unseen > self.tolerance) if count < self.largest else np.arange(0)
        for rows in np.array_split(finer, 1 + len(finer) * count // 500_000) if len(finer) else ():
            again = self.integrals(a[rows], second, 2 * count)
            for values, better in zip(out, again, strict=True):
                if values is not None:
                    values[rows] = better
        return out

    def sums(self, a: Array, second: bool, count: int) -> tuple[Integrals, Array]:
        """The integrals as sums over `count` nodes, and the largest check of each row, (n,)."""
        mass, top = self.mass(a, count)
        return self.moments(a, mass, top, second, count)

    def moments(self, a: Array, mass: Array, top: Array, second: bool, count: int) -> tuple[Integrals, Array]:
        """The integrals of a mass over exp(top) on the nodes, and the largest check of each row."""
        table, J = self.table(count), a.shape[1]
        first = 1 + J + table.nodes.check.shape[1]
        sums = (table.sums if second else table.sums[:first]) @ mass
        Z = sums[0]
        mean = sums[1 : J + 1] / Z
        covariance = None
        if second:
            l, m = packed_pairs(J)
            covariance = sums[first:]
            covariance /= Z
            covariance -= mean[l] * mean[m]
        unseen = np.abs(sums[J + 1 : first]).max(axis=0, initial=0.0)
        unseen /= Z
        error = unseen + rounding(np.abs(a) @ table.size, mean.T)
        return Integrals(np.log(Z) + top, mean.T, None if covariance is None else covariance.T, error), unseen

    def resolved(self, a: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Rows in turn, their normalised mass on as many nodes as a series takes, (N, rows), and the places, (N,).

        A sum over nodes errs by the square of the last coefficients, a series by the coefficients themselves.
        """
        waiting, count = np.arange(len(a)), self.smallest
        while len(waiting):
            later = []
            for rows in np.array_split(waiting, 1 + len(waiting) * count // 2_000_000):
                mass, _ = self.mass(a[rows], count)
                mass /= mass.sum(axis=0)
                nodes = self.table(count).nodes
                fine = np.abs(nodes.check.T @ mass).max(axis=0, initial=0.0) < _SERIES_TOLERANCE
                if count >= self.largest:
                    fine[:] = True
                if fine.any():
                    yield rows[fine], mass[:, fine], nodes.places
                later.append(rows[~fine])
            waiting, count = np.concatenate(later), 2 * count

    def mean_variance(self, a: Array) -> tuple[Array, Array]:
        """Mean and variance of x, row by row, (n,) each; NaN where there is no integral."""
        mean, variance = np.empty(len(a)), np.empty(len(a))
        for rows, mass, places in self.resolved(a):
            middle, width = self.within(places)
            mean[rows] = middle @ mass
            away = middle[:, None] - mean[rows]
            variance[rows] = np.einsum("kn,kn->n", mass, away * away) + width @ mass
        return mean, variance

    def pooled_mean(self, mean: Array, variance: Array) -> Array:
        """Mean of equal shares of densities with these means and variances, (n, k) each: (n,)."""
        return mean.mean(axis=1)

    def within(self, places: Array) -> tuple[Array, Array]:
        """Mean and variance of x in the mass that each node stands for, (N,) each.

        The place itself, unless an axis knows more: what lies beyond the last nodes counts as lying there.
        """
        return places, np.zeros(len(places))

    def draw(self, a: Array, rng: np.random.Generator) -> Array:
        """One exact draw per row of a."""
        return self.quantile(a, np.maximum(rng.random(len(a)), 2.0**-54))  # never 0, which is −∞ in a tail

    # ---------------------------------------------------------------- files

    def to_dict(self) -> dict[str, Any]:
        """The axis as plain lists and numbers; `Axis.from_dict` reads it."""
        found: dict[str, Any] = {"kind": self.kind}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Axis):
                value = value.to_dict()
            found[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
        return found

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Axis:
        """The axis that `to_dict` wrote."""
        kind = data.get("kind") if isinstance(data, Mapping) else data
        if not isinstance(kind, str) or kind not in Axis.kinds:
            there = ", ".join(sorted(Axis.kinds))
            raise ValueError(f"no axis is of kind {kind!r}; there are {there}. Import the module of a class of yours")
        cls = Axis.kinds[kind]
        given = {key: value for key, value in data.items() if key != "kind"}
        names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        if set(given) != names:
            raise ValueError(f"an axis of kind {cls.kind!r} has {', '.join(sorted(names))}, not {', '.join(given)}")
        return cls.from_fields(given)

    @classmethod
    def from_fields(cls, given: dict[str, Any]) -> Self:
        """From what a file holds; lists become arrays, and numbers must be finite."""
        read = {key: _read(key, value) for key, value in given.items()}
        try:
            return cls(**read)
        except (TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"an axis of kind {cls.kind!r} cannot be made of these values: {error}") from None

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, len(self.degrees)))


def _read(key: str, value: Any) -> Any:
    """One field of a file: a number, a list of numbers, a word or an axis."""
    if isinstance(value, Mapping):
        return Axis.from_dict(value)
    if isinstance(value, str) or value is None:
        return value
    try:
        number = np.asarray(value, float)
    except (TypeError, ValueError):
        raise ValueError(f"{key} of an axis must be a number or a list of numbers, not {value!r:.50}") from None
    if not np.all(np.isfinite(number)):
        raise ValueError(f"{key} of an axis must be finite, not {value!r:.50}")
    return number if number.ndim else number.item()
