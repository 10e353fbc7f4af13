"""What a user holds: the density of a fit, or of coefficients given by hand."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import networkx as nx
import numpy as np
import pandas as pd

from .. import sampling
from .._core.checks import generator, one_of, positive_integer
from .._core.notes import Note, announce
from .._core.progress import Progress, Show
from .._core.threads import workers
from ..axes import Axis
from ..data import columns_of, over_rows
from ..data.tables import default_names
from ..terms import Key, Terms
from . import density, existence, files, graph, tables, words
from .by_hand import terms_by_hand
from .conditional import Conditional
from .existence import Integrability
from .fitted import Fitted
from .given import check_on_axes, given_rows, outside, read_gaps, variable_number
from .impute import imputed
from .mass import draw_notes, partition_notes
from .polynomial import PolynomialView, polynomial_view

__all__ = ["PolynomialModel"]

Array = np.ndarray


class PolynomialModel:
    """A density exp(−E(x))/Z with E(x) = Σ_k θ_k f_k(x) − Σ_i log q_i(x_i), in the units of X.

    The f_k are products of functions of the axes and the q_i their base measures. Fits return models; `from_dict` makes
    one of given coefficients.

    Parameters
    ----------
    terms : Terms
        Axes, products of functions, and T.
    tau : array of shape (K,)
        The unknowns.
    names : sequence of str
        The variables.
    fitted : Fitted, optional
        What is known of the fit.

    Attributes
    ----------
    terms, tau, names, fitted
        As given.
    theta : array of shape (P,)
        T τ, the coefficients of the products of functions. See `polynomial` for those of powers of x.
    notes : list of Note
        What the fit, and later draws, had to report.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> model = PolynomialModel.from_dict({("a", "a"): 1.0, ("a", "b"): 0.5, ("b", "b"): 1.0})
    >>> print(model.formula())
    p(a, b) ∝ exp(−[a^2 + b^2 + 0.5 a*b])
    >>> model.energy([[1.0, 1.0]]).tolist()
    [2.5]
    """

    def __init__(self, terms: Terms, tau: Array, names: Sequence[str], fitted: Fitted | None = None) -> None:
        self.terms, self.tau, self.names, self.fitted = terms, np.asarray(tau, float), tuple(names), fitted
        self.theta = terms.T @ self.tau
        self.notes: list[Note] = [] if fitted is None else fitted.notes
        self._log_partition, self._checked = dict[Any, sampling.LogPartition](), False

    @classmethod
    def from_dict(
        cls,
        coefficients: Mapping[Any, float],
        names: Sequence[str] | None = None,
        axes: Sequence[Axis] | None = None,
    ) -> Self:
        """The model exp(−Σ_k θ_k x^α_k)/Z with given coefficients.

        Parameters
        ----------
        coefficients : dict
            θ by term. A term lists variables by name or number as often as their power: ("a", "a", "b") or (0, 0, 1).
        names : sequence of str, optional
            The variables in order. By default in the order in which keys name them, or x0, x1, … for numbers.
        axes : sequence of Axis, optional
            One axis per variable. By default the whole line, where the density need not exist: see `integrability`.

        Examples
        --------
        >>> PolynomialModel.from_dict({(0, 0): 0.5, (0, 1): -0.2, (1, 1): 0.5}).names
        ('x0', 'x1')
        """
        return cls(*terms_by_hand(coefficients, names, axes))

    def __repr__(self) -> str:
        p, K = len(self.names), len(self.terms)
        return f"PolynomialModel of {p:,} variable{'s' * (p != 1)}, {K:,} term{'s' * (K != 1)}"

    # ---------------------------------------------------------------- terms and interactions

    def polynomial(self) -> PolynomialView:
        """Coefficients of powers of x with their covariance: what the energy is where no window ends."""
        covariance = None if self.fitted is None else self.fitted.tau_covariance()
        return polynomial_view(self.terms, self.tau, self.names, covariance)

    def to_dict(self) -> dict[Key, float]:
        """Coefficients in powers of x by key; (0, 0, 1) is x0² x1."""
        return self.polynomial().to_dict()

    @property
    def stderr(self) -> Array:
        """Standard errors of the coefficients in powers of x, in the order of `to_frame`; NaN where there are none."""
        return self.polynomial().stderr

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """One row per term in powers of x: term, degree, order, theta, stderr, ci_low, ci_high, z, p_value.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the intervals.
        """
        return tables.term_table(self.terms, self.polynomial(), tables.check_share(level, "level"))

    def interactions(self, q: float | None = None) -> pd.DataFrame:
        """One row per interaction, sorted by p: variables, order, strength, statistic, df, p_value, q_value, method.

        The strength is √(Σ θ²) over the products of functions of the interaction. Tests are score tests of all its
        terms, and q_value is over the whole table (Benjamini and Hochberg). The index holds the variables by number.

        Parameters
        ----------
        q : float, optional
            Only interactions with q_value at most q: significant at this false discovery rate. A model that was not
            fitted has no tests, and all its interactions that are not zero.
        """
        table = tables.interaction_table(self.terms, self.tau, self.names, self.fitted)
        return table if q is None else graph.significant(table, q, self.fitted)

    def hyperedges(self, q: float | None = 0.05) -> list[tuple[str, ...]]:
        """The variables of each interaction that is significant at the false discovery rate q; None: of all."""
        table = graph.significant(self.interactions(), q, self.fitted)
        return [tuple(self.names[i] for i in key) for key in table.index]

    def graph(self, q: float | None = 0.05) -> nx.Graph:
        """The significant interactions as a graph whose nodes are all variables.

        Parameters
        ----------
        q : float or None, default=0.05
            False discovery rate; None for all interactions that are not zero. A model that was not fitted has no tests,
            and all its interactions.

        Returns
        -------
        networkx.Graph
            Pairs are edges with strength, p_value and q_value. Larger sets are in ``graph.graph["hyperedges"]``, a
            dictionary each with the same entries and "variables".
        """
        return graph.graph_of(graph.significant(self.interactions(), q, self.fitted), self.names)

    def summary(self, q: float = 0.05) -> str:
        """The model in words, in 80 columns: terms, fit, held-out score, significant interactions and notes.

        Parameters
        ----------
        q : float, default=0.05
            False discovery rate of the interactions.
        """
        q = tables.check_share(q, "q")
        return words.summary(self.terms, self.names, self.fitted, self.interactions(), self.notes, q)

    def formula(self, digits: int = 3, max_terms: int | None = 30, latex: bool = False) -> str:
        """The density in powers of x on one line; q is a base measure that changes with x, as with scale="cdf".

        Parameters
        ----------
        digits : int, default=3
        max_terms : int or None, default=30
            How many terms to show; where there are more, those that are largest in standard errors.
        latex : bool, default=False
        """
        positive_integer(digits, "digits")
        most = None if max_terms is None else positive_integer(max_terms, "max_terms")
        return words.formula(self.polynomial(), self.terms, self.names, digits, most, latex)

    def integrability(self) -> Integrability:
        """Whether exp(−E) is integrable on the whole line, with E the polynomial of `polynomial`.

        A fact about the polynomial. The density itself is the one of the axes, whose windows always have an integral.
        """
        other = [name for name, axis in zip(self.names, self.terms.axes, strict=True) if axis.powers is None]
        if other:
            text = f"The functions of {', '.join(map(repr, other[:4]))} are no powers of x, so there is no polynomial."
            return Integrability("unknown", text)
        view = self.polynomial()
        return existence.integrability(view.keys, view.coefficients, view.covariance, self.names)

    # ---------------------------------------------------------------- the density

    def energy(self, X: Any) -> Array:
        """E(x) up to a constant, (n,), so that energy + log Z = −logpdf; +∞ where a value is not on its axis."""
        return density.energy(self.terms, self.theta, self._columns(X))

    def score_function(self, X: Any) -> Array:
        """∂ log density/∂x_i, (n, p).

        Parameters
        ----------
        X : array or frame of shape (n, p)
        """
        lacking = [n for n, axis in zip(self.names, self.terms.axes, strict=True) if axis.derivatives is None]
        if lacking:
            raise ValueError(f"The functions of {lacking[0]!r} have no derivatives, so the score does not exist.")
        X = self._columns(X)
        check_on_axes(self.terms, X, self.names, range(len(self.names)), "the score")
        score = density.score_function(self.terms, self.theta, X)
        if np.isnan(score).any():
            row, i = np.argwhere(np.isnan(score))[0]
            raise ValueError(
                f"Column {self.names[i]!r} has the value {X[row, i]:g} in row {row}, where its axis ends, so the score "
                "does not exist there. Drop such rows."
            )
        return score

    def log_partition(self, random_state: Any = 0, return_stderr: bool = False) -> float | tuple[float, float]:
        """Log Z, exact for few variables and on trees, else estimated by draws.

        Parameters
        ----------
        random_state : int, Generator or None, default=0
            The value for an integer is kept.
        return_stderr : bool, default=False
            Whether to return the standard error, too; 0 where the value is exact.
        """
        found = self._log_partition.get(random_state) if isinstance(random_state, int) else None
        if found is None:
            self._check_integral()
            found = sampling.log_partition(self.terms, self.theta, generator(random_state))
            if not np.isfinite(found.value):
                raise existence.no_density("The model has no density.", self.integrability())
            notes = partition_notes(found)
            if self.fitted is not None or found.method == "annealed":  # where is the mass, and do chains mix?
                draws = sampling.sample(self.terms, self.theta, 1000, np.random.default_rng(0))
                notes = [*draw_notes(draws, self.fitted, self.names, self.terms.axes), *partition_notes(found, draws)]
            self._report(notes)
            self._log_partition |= {random_state: found} if isinstance(random_state, int) else {}
        return (float(found.value), float(found.stderr)) if return_stderr else float(found.value)

    def logpdf(self, X: Any, log_partition: float | None = None) -> Array:
        """The logarithm of the density in the units of X, (n,); −∞ where a value is not on its axis.

        Parameters
        ----------
        X : array or frame of shape (n, p), of Dask too, or samples of `open_samples`
        log_partition : float, optional
            Log Z where it is known; by default `log_partition()`.
        """
        terms, theta, log_Z = self.terms, self.theta, self.log_partition() if log_partition is None else log_partition
        parts = over_rows(lambda rows, _: density.energy(terms, theta, rows), X, self.names, type(self).__name__)
        return -(np.concatenate(list(parts)) + log_Z)

    def outside(self, X: Any) -> pd.DataFrame:
        """One row per value that is not on its axis, or beyond the data of the fit: row, variable, value, reason."""
        ranges = None if self.fitted is None else (self.fitted.minima, self.fitted.maxima)
        return outside(self.terms, self._columns(X), self.names, ranges)

    # ---------------------------------------------------------------- conditionals and draws

    def conditional(self, variable: str | int, given: Any = None) -> Conditional:
        """P(variable | rest), for each row of the other variables.

        Parameters
        ----------
        variable : str or int
        given : frame, dictionary or array, optional
            Values of the other variables. A frame or dictionary needs those that share a term with the variable; an
            array has a column for each other variable, or for all.

        Returns
        -------
        Conditional
            With mean, variance, quantile, cdf, pdf, logpdf and sample.
        """
        i = variable_number(variable, self.names)
        X = given_rows(self.terms, given, self.names, i)
        a = density.coefficients(self.terms, self.theta, X, i)
        return Conditional(self.names[i], self.terms.axes[i], a)

    def sample(
        self,
        n: int,
        random_state: Any = None,
        method: Literal["auto", "exact", "chains"] = "auto",
        n_jobs: int | None = None,
        progress: Show = None,
    ) -> Array | pd.DataFrame:
        """Draws from the density: a frame if the columns have names, else an array of shape (n, p).

        Where draws are not where the data were, the model warns and keeps a note in `notes`.

        Parameters
        ----------
        n : int
        random_state : int, Generator or None
        method : {"auto", "exact", "chains"}, default="auto"
            "auto" is exact on few variables, on trees and for Gaussians, and the ends of Gibbs chains elsewhere;
            "exact" raises an error there, and "chains" uses them for all interacting variables.
        n_jobs : int or None, default=None
            Threads; None for all cores. Draws do not depend on their number.
        progress : bool, callable or None
            As in estimators.
        """
        one_of(method, ("auto", "exact", "chains"), "method")
        n, rng = positive_integer(n, "n"), generator(random_state)
        self._check_integral()
        with Progress(progress, "drawing") as bar:
            try:
                draws = sampling.sample(
                    self.terms, self.theta, n, rng, method=method, n_jobs=workers(n_jobs), progress=bar
                )
            except sampling.NoDensity as error:
                raise existence.no_density(error, self.integrability()) from None
        self._report(draw_notes(draws, self.fitted, self.names, self.terms.axes))
        return self._as_table(draws.X)

    def impute(
        self, X: Any, method: Literal["draw", "mean"] = "draw", random_state: Any = None, n_jobs: int | None = None
    ) -> Any:
        """X with its missing values filled in, given the other values of their rows.

        Parameters
        ----------
        X : array or frame of shape (n, p)
            Missing values are NaN, None or null. What is not missing stays as it is.
        method : {"draw", "mean"}, default="draw"
            A draw from the conditional density, for multiple imputation; or its mean, by integrals where one value of a
            row is missing and by draws of the others where several are.
        random_state : int, Generator or None
        n_jobs : int or None, default=None

        Returns
        -------
        array or frame like X
        """
        one_of(method, ("draw", "mean"), "method")
        gaps = read_gaps(X, self.names)
        if not gaps.missing.any():
            return gaps.filled(gaps.X)
        rng = generator(random_state)
        try:
            filled = imputed(self.terms, self.theta, self.names, gaps, method, rng, workers(n_jobs))
        except sampling.NoDensity as error:
            raise existence.no_density(error, self.integrability()) from None
        return gaps.filled(filled)

    # ---------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, compressed if the name ends in .gz; the file is whole or not written."""
        files.write_model(path, files.Content(self.terms, self.tau, self.names, self.fitted, self.notes))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The model that `save` wrote; a ValueError names the file and what is wrong with it."""
        content = files.read_model(path)
        model = cls(content.terms, content.tau, content.names, content.fitted)
        model.notes = content.notes
        return model

    # ---------------------------------------------------------------- inside

    def _columns(self, X: Any) -> Array:
        return columns_of(X, self.names, type(self).__name__)

    def _as_table(self, X: Array) -> Array | pd.DataFrame:
        """A frame where a user gave names."""
        named = self.names != default_names(len(self.names)) if self.fitted is None else bool(self.fitted.columns)
        return pd.DataFrame(X, columns=list(self.names)) if named else X

    def _check_integral(self) -> None:
        """On whole lines, an error where the polynomial has no integral, and a warning where that is not known."""
        if self.fitted is None and not self._checked and all(axis.on_window for axis in self.terms.axes):
            self._report(existence.check(self.theta, self.integrability()))
        self._checked = True

    def _report(self, notes: Sequence[Note]) -> None:
        """Keep notes in place of earlier ones of their kind, and announce them."""
        for note in notes:
            self.notes[:] = [old for old in self.notes if old.kind != note.kind] + [note]
            announce(note)
