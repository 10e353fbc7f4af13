"""PolynomialModel: what a user holds, an energy with its names and units."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from array_api_compat import is_array_api_obj

from . import diagnostics, model_file, sampling, univariate
from . import energy as _energy
from .arrays import Array, namespace, on_device, one_blas_thread, transposed
from .basis import MonomialBasis
from .diagnostics import Integrability
from .sampling.gaussian import precision_matrix

if TYPE_CHECKING:
    import networkx

__all__ = ["PolynomialModel", "term_name"]

Term = tuple[int, ...]
Units = Literal["raw", "standardized"]

_BLOCK_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class PolynomialModel:
    """A density μ(x) ∝ exp(−E(x)) with a polynomial energy E(x) = Σ_k θ_k y^{α_k}, y = (x − location)/scale.

    Estimators make models (``est.model_``); `from_dict` makes one from known parameters, `load` from a
    file. A model does not change. The energy is kept and evaluated in the standardised variables y:
    written out in x it would cancel badly where the mean is large beside the spread.

    Parameters
    ----------
    basis : MonomialBasis
        The terms.
    theta : array of shape (n_terms,)
        Parameters in standardised variables, in the order of the basis.
    location, scale : arrays of shape (n_variables,)
        Units of the standardised variables; zeros and ones by default.
    names : sequence of str, optional
        Names of the variables; x0, x1, … by default.
    n_samples : float, optional
        How many samples (the sum of the weights) it was learned from.
    settings : mapping, optional
        How it was learned: plain values only, they go into the file.
    covariance : array of shape (n_terms, n_terms), optional
        Covariance of the errors of theta; NaN for parameters that were not estimated, but held.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> model = PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0}, names=["a", "b"])
    >>> model
    PolynomialModel: 2 variables (a, b), 3 terms up to degree 2
    >>> model.to_dict()
    {(0, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0}
    >>> model.energy([[1.0, 2.0]])
    array([6.])
    """

    basis: MonomialBasis
    theta: np.ndarray
    location: np.ndarray = None  # type: ignore[assignment]
    scale: np.ndarray = None  # type: ignore[assignment]
    names: tuple[str, ...] = None  # type: ignore[assignment]
    n_samples: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    covariance: np.ndarray | None = None

    def __post_init__(self) -> None:
        p = self.basis.n_variables
        put = lambda name, value: object.__setattr__(self, name, value)
        put("theta", _vector(self.theta, len(self.basis), "theta"))
        put("location", _vector(np.zeros(p) if self.location is None else self.location, p, "location"))
        put("scale", _vector(np.ones(p) if self.scale is None else self.scale, p, "scale"))
        put("names", _names(self.names, p))
        put("n_samples", None if self.n_samples is None else float(self.n_samples))
        put("settings", MappingProxyType(dict(self.settings)))
        put("covariance", None if self.covariance is None else _square(self.covariance, len(self.basis)))
        if np.any(self.scale <= 0):
            raise ValueError("scale must be positive")
        if np.any(self.location) and not self.basis.closed_under_translation:
            raise ValueError("a location other than zero needs a basis that is closed under translation")

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.basis, self.theta, self.location, self.scale, self.names, self.n_samples)
        return type(self), (*parts, dict(self.settings), self.covariance)

    @classmethod
    def from_dict(
        cls,
        theta: Mapping[Term, float],
        *,
        names: Sequence[str] | None = None,
        n_variables: int | None = None,
    ) -> PolynomialModel:
        """A model with known parameters: index tuples to values, ``{(0, 0): 1.0, (0, 0, 1): 0.05}``."""
        if not theta:
            raise ValueError("theta is empty: give at least one term, such as {(0, 0): 1.0}")
        odd = [term for term in theta if not isinstance(term, tuple) or not term or not all(map(_is_index, term))]
        if odd:
            raise ValueError(f"a term is a tuple of variable indices such as (0, 0, 1), not {odd[0]!r}")
        p = len(names) if names is not None else 1 + max(max(term) for term in theta)
        p = p if n_variables is None else n_variables
        basis = MonomialBasis(p, terms=theta)
        values = {tuple(sorted(term)): value for term, value in theta.items()}
        return cls(basis, np.array([values[term] for term in basis.terms]), names=_names(names, p))

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:4]) + (", …" if len(self.names) > 4 else "")
        return (
            f"PolynomialModel: {len(self.names)} variables ({shown}), "
            f"{len(self.basis)} terms up to degree {self.basis.degree}"
        )

    # parameters

    def to_dict(self, units: Units = "raw") -> dict[Term, float]:
        """θ by index tuple: in the units of X ("raw"), or in y = (x − location)/scale ("standardized")."""
        return dict(zip(self.basis.terms, self._parameters(units).tolist(), strict=True))

    def to_frame(self, units: Units = "raw") -> pd.DataFrame:
        """A row a term: its name, degree, order (number of variables), θ and its standard error.

        The standard error is missing (NaN) for models that were not learned and for parameters that were held.
        """
        return pd.DataFrame(
            {
                "term": [self.term_name(term) for term in self.basis.terms],
                "degree": self.basis.degrees.astype(np.int64),
                "order": self.basis.orders,
                "theta": self._parameters(units),
                "stderr": self.stderr(units),
            }
        )

    def stderr(self, units: Units = "raw") -> np.ndarray:
        """Standard error of every θ, in the order of the basis; NaN where there is none."""
        theta = self._parameters(units)
        if self.covariance is None:
            return np.full(len(theta), np.nan)
        variance = np.diagonal(self.covariance)
        if units == "raw":
            held = np.isnan(variance)
            C = np.where(held[:, None] | held, 0.0, self.covariance)
            T = _energy.raw_matrix(self.basis, self.location, self.scale)
            variance = np.where(held, np.nan, T.multiply(T @ C).sum(axis=1))
        return np.sqrt(variance)

    def precision(self) -> np.ndarray:
        """The precision matrix of a model of degree 2; θ_(i,i) multiplies x_i², so its diagonal is 2θ_(i,i)."""
        if self.basis.degree > 2:
            raise ValueError(
                f"a model of degree {self.basis.degree} has no precision matrix; fit with degree=2 for a Gaussian"
            )
        return precision_matrix(self.basis, self._parameters("raw"))

    def term_name(self, term: Term) -> str:
        """A term in words: (0, 0, 1) is ``x0^2*x1``."""
        return term_name(term, self.names)

    def _parameters(self, units: Units) -> np.ndarray:
        if units == "standardized":
            return self.theta
        if units != "raw":
            raise ValueError(f'units must be "raw" or "standardized", not {units!r}')
        return _energy.raw_units(self.basis, self.theta, self.location, self.scale)

    # structure

    def hyperedges(self) -> dict[tuple[str, ...], float]:
        """Sets of interacting variables by name, with the root of the sum of squares of their terms' θ.

        In standardised variables, where terms of different degree can be compared.
        """
        squares: dict[tuple[str, ...], float] = {}
        for term, value in zip(self.basis.terms, self.theta.tolist(), strict=True):
            variables = tuple(self.names[v] for v in sorted(set(term)))
            if len(variables) > 1 and value != 0:
                squares[variables] = squares.get(variables, 0.0) + value * value
        return {variables: float(np.sqrt(square)) for variables, square in squares.items()}

    def graph(self) -> networkx.Graph:
        """Variables that share a term, as a networkx graph; "weight" as in `hyperedges`, over shared terms."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self.names)
        for variables, weight in self.hyperedges().items():
            for k, a in enumerate(variables):
                for b in variables[k + 1 :]:
                    before = graph.edges[a, b]["weight"] if graph.has_edge(a, b) else 0.0
                    graph.add_edge(a, b, weight=float(np.hypot(before, weight)))
        return graph

    def summary(self, n_terms: int = 10) -> str:
        """What the model says, in a few lines to read."""
        learned = "" if self.n_samples is None else f", learned from {self.n_samples:,.10g} samples"
        order = np.argsort(-np.abs(np.where(self.basis.orders > 1, self.theta, 0.0)))[:n_terms]
        order = order[(self.basis.orders[order] > 1) & (self.theta[order] != 0)]
        raw = self._parameters("raw")
        names = [self.term_name(self.basis.terms[k]) for k in order]
        width = max(map(len, names), default=0)
        lines = [f"{self!r}{learned}"]
        if self.settings:
            lines.append("settings: " + ", ".join(f"{k}={v}" for k, v in self.settings.items() if k != "notes"))
        if len(order):
            lines.append(f"strongest interactions, by standardised size (of {np.sum(self.basis.orders > 1)}):")
            own, its = self.stderr("standardized"), self.stderr("raw")
            lines += [
                f"  {name:<{width}}  standardised {_with_error(self.theta[k], own[k])}, "
                f"in the units of the data {_with_error(raw[k], its[k])}"
                for name, k in zip(names, order, strict=True)
            ]
        else:
            lines.append("no variables interact")
        return "\n".join([*lines, *(f"note: {note}" for note in self.settings.get("notes", []))])

    # functions of x

    def energy(self, X: Array) -> Array:
        """E(x) at every row of X, up to a constant: zero at x = location. The density is exp(−E)/Z."""
        return self._by_block(X, lambda Y: _energy.energy(self.basis, self.theta, Y)[None, :])[:, 0]

    def score_function(self, X: Array) -> Array:
        """Gradient of the log density, −∂E/∂x, at every row of X; shape (n, p)."""
        factor = -1 / self.scale[:, None]
        return self._by_block(X, lambda Y: _energy.gradient(self.basis, self.theta, Y) * on_device(factor, Y))

    def conditional_coefficients(self, i: int, X: Array) -> Array:
        """a_1 … a_s with P(x_i | rest) ∝ exp(−Σ_l a_l y_i^l) at every row of X, shape (n, s)."""
        nodes = [range(self.basis.n_variables)[i]]
        local = _energy.local_parameters(self.basis, self.theta, nodes)

        def block(Y: Array) -> Array:
            C = _energy.scatter(self.basis, nodes, local, Y)
            H = _energy.cofactor_matrix(self.basis, Y)
            return _energy.conditional_coefficients(C, H)[:, 0, :]

        return self._by_block(X, block)

    def conditional_log_density(self, X: Array) -> Array:
        """log P(x_i | rest) of every variable at every row of X, shape (n, p); −inf where it does not exist."""
        return self._by_block(X, self._conditional_log_density)

    def _conditional_log_density(self, Y: Array) -> Array:
        xp = namespace(Y)
        nodes = range(self.basis.n_variables)
        C = _energy.scatter(self.basis, nodes, _energy.local_parameters(self.basis, self.theta, nodes), Y)
        a = _energy.conditional_coefficients(C, _energy.cofactor_matrix(self.basis, Y))
        log_z = xp.stack([univariate.integrate(a[:, i, :]).log_z for i in nodes])
        a *= _energy.powers(Y, self.basis.degree)
        return -xp.sum(a, axis=0) - log_z - on_device(np.log(self.scale)[:, None], Y)

    def integrability(self) -> Integrability:
        """Whether the density exists: "integrable" or "not integrable", both proved, or "unknown", with the reason.

        Along `direction`, in the units of X and from `location`, the energy of a model that is not integrable falls
        without bound or does not rise. The reason speaks of standardised variables, and tells how sure it is where the
        model has a covariance.
        """
        with one_blas_thread():
            verdict = diagnostics.integrability(self.basis, self.theta, self.names, covariance=self.covariance)
        direction = None if verdict.direction is None else verdict.direction * self.scale
        return replace(verdict, direction=direction)

    # the density itself

    def sample(self, n: int, rng: int | np.random.Generator | None = None, *, n_jobs: int | None = None) -> np.ndarray:
        """n independent samples, shape (n, p): exact.

        Gaussian models of any size, and others whose interacting variables form a tree or nearly (see
        `isodus.sampling`). The first call finds the grid on which the density is summed; the model remembers it.
        The same `rng` gives the same samples, whatever `n_jobs`: processes, as everywhere in joblib; -1 is one a core.
        They pay from some ten million values.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a positive integer, not {n!r}")
        rng = _generator(rng)
        return sampling.draw(self._groups, int(n), rng, self.location, self.scale, n_jobs)

    def log_partition(
        self, *, return_error: bool = False, rng: int | np.random.Generator | None = 0
    ) -> float | tuple[float, float]:
        """log Z, Z = ∫ exp(−E(x)) dx over the variables in the units of X, E as `energy` gives it.

        Exact wherever `sample` is, to about 1e-7 times the root of the number of variables. Elsewhere it is estimated
        by annealed importance sampling from `rng`, with a warning, or with ``return_error=True`` its standard error.
        """
        value, error = self._normalised(rng)
        if error and not return_error:
            warnings.warn(
                f"log Z is an estimate, by annealed importance sampling: {value:.6g} ± {error:.2g}. "
                "return_error=True gives both",
                UserWarning,
                stacklevel=2,
            )
        return (value, error) if return_error else value

    def logpdf(self, X: Array, *, rng: int | np.random.Generator | None = 0) -> Array:
        """The log density −E(x) − log Z at every row of X; the normalisation as in `log_partition`."""
        return -self.energy(X) - self.log_partition(rng=rng)

    def _normalised(self, rng: int | np.random.Generator | None) -> tuple[float, float]:
        """log Z and its standard error; an estimate is remembered with its seed."""
        volume = float(np.log(self.scale).sum())
        try:
            return sampling.log_partition(self._groups) + volume, 0.0
        except sampling.NotExactError:
            seed, known = rng if isinstance(rng, int) else None, self._estimates
            if seed is None or seed not in known:
                value, error = sampling.estimate_log_partition(self.basis, self.theta, self.names, _generator(rng))
                known[seed] = value + volume, error
            return known[seed]

    @cached_property
    def _estimates(self) -> dict[int | None, tuple[float, float]]:
        return {}

    @cached_property
    def _groups(self) -> list[sampling.Group]:
        """What exact sampling needs, if the density exists."""
        verdict = self.integrability()
        if verdict.status == "not integrable":
            raise ValueError(f"the model is no probability distribution: {verdict.reason}")
        return sampling.prepare(self.basis, self.theta, self.names)

    def _samples(self, X: Any) -> Array:
        """X as a floating array with a column a variable; the columns of a frame by name."""
        if isinstance(X, pd.DataFrame) and self.names != tuple(map(str, X.columns)):
            columns = dict(zip(map(str, X.columns), X.columns, strict=True))
            missing = [name for name in self.names if name not in columns]
            if missing and any(isinstance(column, str) for column in X.columns):
                raise ValueError(f"X has no column {', '.join(missing[:8])}; the model has {', '.join(self.names[:8])}")
            X = X if missing else X[[columns[name] for name in self.names]]
        if is_array_api_obj(X) and not isinstance(X, np.ndarray):
            xp = namespace(X)
            return X if xp.isdtype(X.dtype, "real floating") else xp.astype(X, xp.float64)
        array = np.asarray(X)
        if array.dtype.kind == "c":
            raise ValueError("X is complex; a model has real variables")
        return array if array.dtype in (np.float64, np.float32) else array.astype(np.float64)

    def _by_block(self, X: Array, function: Any) -> Array:
        """function of standardised variables (p, b), returning (k, b), for all rows of X, as (n, k)."""
        X = self._samples(X)
        if X.ndim != 2 or X.shape[1] != self.basis.n_variables:
            raise ValueError(
                f"X has shape {tuple(X.shape)}, the model has {self.basis.n_variables} variables: "
                f"{', '.join(self.names[:8])}{', …' if len(self.names) > 8 else ''}"
            )
        xp = namespace(X)
        location, scale = on_device(self.location[:, None], X), on_device(self.scale[:, None], X)
        width = len(self.basis.cofactors) + 3 * self.basis.degree * self.basis.n_variables
        rows = max(_BLOCK_BYTES // (8 * width), 1)
        parts = [
            xp.matrix_transpose(function((transposed(X[start : min(start + rows, X.shape[0]), :]) - location) / scale))
            for start in range(0, max(X.shape[0], 1), rows)
        ]
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)

    # files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON; an existing file is replaced only by a complete one."""
        model_file.write(path, {name: getattr(self, name) for name in model_file.FIELDS})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PolynomialModel:
        """Read a model that `save` wrote."""
        fields = model_file.read(path)
        try:
            return cls(**fields)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None


def term_name(term: Term, names: Sequence[str]) -> str:
    """A term in words: (0, 0, 1) is ``x0^2*x1``."""
    powers = {v: term.count(v) for v in sorted(set(term))}
    return "*".join(names[v] + (f"^{power}" if power > 1 else "") for v, power in powers.items())


def _with_error(value: float, stderr: float) -> str:
    return f"{value:+.4g}" if np.isnan(stderr) else f"{value:+.4g} ± {stderr:.2g}"


def _generator(rng: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ValueError(f"rng must be what numpy.random.default_rng takes, a seed or a Generator: {error}") from None


def _is_index(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 0


def _vector(values: Iterable[float], length: int, name: str) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, it should have {length} values")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds a value that is not finite, at position {np.argmin(np.isfinite(array))}")
    array.flags.writeable = False
    return array


def _square(values: Any, length: int) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    if array.shape != (length, length):
        raise ValueError(f"covariance has shape {array.shape}, it should have ({length}, {length})")
    array.flags.writeable = False
    return array


def _names(names: Sequence[str] | None, p: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"x{i}" for i in range(p))
    names = tuple(map(str, names))
    if len(names) != p:
        raise ValueError(f"{len(names)} names for {p} variables: {', '.join(names[:8])}")
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < p else []
    if twice:
        raise ValueError(f"names must differ; more than one variable is called {', '.join(twice)}")
    return names
