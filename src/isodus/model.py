"""PolynomialModel: what a user holds, an energy with its names and units."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from . import description, diagnostics, elsewhere, formula, model_file, rounding, significance
from . import energy as _energy
from .arrays import Array, on_device, one_blas_thread, to_host
from .basis import MonomialBasis
from .checks import distinct_names, finite_rows, index_terms, square, vector
from .density import Density
from .diagnostics import Integrability
from .samples import by_block, floating_rows, matching_rows
from .sampling.gaussian import precision_matrix
from .spaces import as_spaces, check_inside

if TYPE_CHECKING:
    import networkx

__all__ = ["PolynomialModel", "as_model"]

Term = tuple[int, ...]
Units = Literal["raw", "standardized"]

_BLOCK_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class PolynomialModel(Density):
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
    covariance : array or sparse array of shape (n_terms, n_terms), optional
        Covariance of the errors of theta; NaN for parameters that were not estimated, but held. A sparse one holds what
        is known of it: beyond 4,000 terms, the blocks of terms with the same variables.
    moved_from : array of shape (n_terms,), optional
        What was estimated, where theta is something else: moved to be a density, or cut off. Intervals and tests are
        about `estimate`, which is this, or theta.

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
    covariance: significance.Covariance | None = None
    moved_from: np.ndarray | None = None

    def __post_init__(self) -> None:
        p = self.basis.n_variables
        put = lambda name, value: object.__setattr__(self, name, value)
        put("theta", vector(self.theta, len(self.basis), "theta"))
        put("location", vector(np.zeros(p) if self.location is None else self.location, p, "location"))
        put("scale", vector(np.ones(p) if self.scale is None else self.scale, p, "scale"))
        put("names", distinct_names(self.names, p))
        put("n_samples", None if self.n_samples is None else float(self.n_samples))
        put("settings", MappingProxyType(dict(self.settings)))
        if self.moved_from is not None:
            put("moved_from", vector(self.moved_from, len(self.basis), "moved_from"))
        put("covariance", None if self.covariance is None else square(self.covariance, len(self.basis)))
        if np.any(self.scale <= 0):
            raise ValueError("scale must be positive")
        if np.any(self.location) and not self.basis.closed_under_translation:
            raise ValueError("a location other than zero needs a basis that is closed under translation")

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.basis, self.theta, self.location, self.scale, self.names, self.n_samples)
        return type(self), (*parts, dict(self.settings), self.covariance, self.moved_from)

    @classmethod
    def from_dict(
        cls,
        theta: Mapping[Term, float],
        *,
        names: Sequence[str] | None = None,
        n_variables: int | None = None,
        support: Any = None,
        functions: Any = None,
    ) -> PolynomialModel:
        """A model with known parameters: index tuples to values, ``{(0, 0): 1.0, (0, 0, 1): 0.05}``.

        support, functions: what variables are, as in `ISODUS`.
        """
        index_terms(theta)
        p = len(names) if names is not None else 1 + max(max(term) for term in theta)
        p = p if n_variables is None else n_variables
        names = distinct_names(names, p)
        basis = MonomialBasis(p, terms=theta).within(as_spaces(support, functions, names))
        values = {tuple(sorted(term)): value for term, value in theta.items()}
        if len(basis) < len(values):
            gone = [description.term_name(term, names) for term in values if term not in basis.terms]
            raise ValueError(f"{gone[0]}: the values of its variables cannot tell that power from lower ones")
        return cls(basis, np.array([values[term] for term in basis.terms]), names=names)

    def __repr__(self) -> str:
        return description.in_a_line(self)

    def __rich__(self) -> Any:
        """What ``rich.print`` shows: the energy, and the strongest terms."""
        return formula.rich_table(self)

    def _repr_html_(self) -> str:
        return formula.html_table(self)

    # parameters

    def to_dict(self, units: Units = "raw") -> dict[Term, float]:
        """θ by index tuple: in the units of X ("raw"), or in y = (x − location)/scale ("standardized")."""
        return dict(zip(self.basis.terms, self.parameters(units).tolist(), strict=True))

    def to_frame(
        self,
        units: Units = "raw",
        *,
        level: float = 0.95,
        correction: Literal["bh", "by"] = "bh",
        simultaneous: bool = False,
    ) -> pd.DataFrame:
        """A row a term: its name, degree, order (number of variables), θ, and how sure it is.

        stderr: standard error; ci_low, ci_high: an interval at `level`; p_value: of θ = 0, two-sided; q_value: the
        false discovery rate at which the term counts as found, by Benjamini and Hochberg ("bh") or Benjamini and
        Yekutieli ("by"), among the interactions, and for terms of one variable among those. With `simultaneous` all
        intervals hold at once with that probability. They are of what was estimated, also where θ was moved to make
        the model a density, and missing (NaN) where nothing was: in models that were not learned, and for parameters
        that were held. In the units of X, whether a term below the highest degree is zero depends on where zero is.
        """
        return description.term_table(self, units, level, correction, simultaneous)

    def interactions(self, *, correction: Literal["bh", "by"] = "bh") -> pd.DataFrame:
        """A row a set of interacting variables: its terms tested at once, all in standardised variables.

        strength: as in `hyperedges`; chi2, df, p_value: Wald's test that all of its terms that were estimated, df of
        them, are zero; q_value: as in `to_frame`, among these rows. Sorted by p-value.
        """
        return description.interaction_table(self, correction)

    @property
    def estimate(self) -> np.ndarray:
        """The θ that was estimated, in standardised variables."""
        return self.theta if self.moved_from is None else self.moved_from

    def stderr(self, units: Units = "raw") -> np.ndarray:
        """Standard error of every θ, in the order of the basis; NaN where there is none."""
        return significance.stderr(self.covariance_in(units), len(self.theta))

    @property
    def error_df(self) -> float | None:
        """Degrees of freedom of standard errors: few for groups, series and draws, n − 1 for independent samples."""
        return self.settings.get("error_df", None if self.n_samples is None else self.n_samples - 1)

    def covariance_in(self, units: Units) -> significance.Covariance | None:
        """The covariance of θ in these units; None where there is none."""
        self.parameters(units)  # which checks units
        if units == "standardized" or self.covariance is None:
            return self.covariance
        T = _energy.raw_matrix(self.basis, self.location, self.scale)
        return significance.in_other_units(self.covariance, T)

    def precision(self) -> np.ndarray:
        """The precision matrix of a model of degree 2; θ_(i,i) multiplies x_i², so its diagonal is 2θ_(i,i)."""
        return precision_matrix(self.basis, self.parameters("raw"))

    def term_name(self, term: Term) -> str:
        """A term in words: (0, 0, 1) is ``x0^2*x1``."""
        return description.term_name(term, self.names, self.basis.spaces)

    def parameters(self, units: Units = "raw", theta: np.ndarray | None = None) -> np.ndarray:
        """θ, or another in standardised variables, as an array in these units, in the order of the basis."""
        theta = self.theta if theta is None else theta
        if units == "standardized":
            return theta
        if units != "raw":
            raise ValueError(f'units must be "raw" or "standardized", not {units!r}')
        return _energy.raw_units(self.basis, theta, self.location, self.scale)

    # structure

    def hyperedges(self) -> dict[tuple[str, ...], float]:
        """Sets of interacting variables by name, with the root of the sum of squares of their terms' θ.

        In standardised variables, where terms of different degree can be compared.
        """
        return description.hyperedges(self.basis, self.theta, self.names)

    def graph(self) -> networkx.Graph:
        """Variables that share a term, as a networkx graph; "weight" as in `hyperedges`, over shared terms."""
        return description.graph(self.names, self.hyperedges())

    def summary(self, n_terms: int = 10, level: float = 0.95) -> str:
        """What the model says, in a few lines to read, with intervals at a level."""
        return description.summary(self, n_terms, level)

    def formula(
        self, style: Literal["text", "html", "latex"] = "text", *, n_terms: int | None = None, units: Units = "raw"
    ) -> str:
        """The energy as mathematics, with all its terms, or those that are strongest in standardised variables."""
        return formula.energy(self, style, n_terms, units)

    def plot(self, kind: str = "graph", X: Any = None, ax: Any = None, **options: Any) -> Any:
        """A picture, one of `isodus.plotting.KINDS`: "graph", "couplings", "forest", "marginals", "pairs", "residuals".

        X: samples, for the last three. ax: matplotlib axes, which are returned; options are those of the function of
        that name in `isodus.plotting`.
        """
        from . import plotting

        return plotting.plot(kind, self, X, ax, **options)

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
        """log P(x_i | rest) of every variable at every row of X, shape (n, p); −inf where it does not exist.

        So it is of all variables in rows where one of them is `outside` of its support.
        """
        log_density = lambda Y: _energy.conditional_log_density(self.basis, self.theta, Y)

        def found(rows: Array) -> Array:
            value, units = self._by_block(rows, log_density), (self.location, self.scale)
            value = rounding.mended(self.basis, self.theta, self.names, rows, units, value)
            return value - on_device(self._log_volume, value)

        return self._inside(X, found)

    def integrability(self) -> Integrability:
        """Whether the density exists: "integrable" or "not integrable", both proved, or "unknown", with the reason.

        Along `direction`, in the units of X and from `location`, the energy of a model that is not integrable falls
        without bound or does not rise. The reason speaks of standardised variables, and tells how sure it is where the
        model has a covariance.
        """
        if self.basis.spaces is not None:
            values = [space.support.values or () for space in self._where[0] or ()]
            verdict = elsewhere.in_spaces(self.basis, self.theta, self.names, values)
            return replace(verdict, direction=None if verdict.direction is None else verdict.direction * self.scale)
        with one_blas_thread():
            verdict = diagnostics.integrability(self.basis, self.theta, self.names, covariance=self.covariance)
        direction = None if verdict.direction is None else verdict.direction * self.scale
        return replace(verdict, direction=direction)

    def _standardised(self, X: Any, name: str, missing: bool = False) -> np.ndarray:
        """X, checked, as (n, p) in y on the host; missing: whether NaN is allowed."""
        rows = to_host(floating_rows(X, self.names)).astype(np.float64, copy=False)
        finite_rows(rows, self.names, name, missing)
        check_inside(rows, self.names, *self._where)
        return (rows - self.location) / self.scale

    def _by_block(self, X: Array, function: Any, location: np.ndarray | None = None) -> Array:
        """function of standardised variables (p, b), returning (k, b), for all rows of X, as (n, k)."""
        location = self.location if location is None else location
        width = len(self.basis.cofactors) + 3 * self.basis.degree * self.basis.n_variables
        rows = max(_BLOCK_BYTES // (8 * width), 1)
        return by_block(matching_rows(X, self.names), location, self.scale, rows, function)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON; an existing file is replaced only by a complete one."""
        model_file.write(path, {name: getattr(self, name) for name in model_file.FIELDS})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PolynomialModel:
        """Read a model that `save` wrote."""
        fields = model_file.read(path)
        try:
            return cls(**fields)
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None


def as_model(thing: Any, what: str) -> PolynomialModel:
    """A model, or that of a fitted estimator; what: how the argument is called."""
    model = getattr(thing, "model_", thing)
    if not isinstance(model, PolynomialModel):
        raise ValueError(f"{what} must be a fitted estimator or a PolynomialModel, not {thing!r}")
    return model
