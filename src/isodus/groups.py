"""Two groups of samples: in which terms their models differ.

With T_g the map from the units of group g to common ones, T₁θ₁ − T₂θ₂ has the covariance T₁C₁T₁ᵀ + T₂C₂T₂ᵀ. Both groups
together decide which terms are compared: if they do not differ, that is independent of their difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f
from sklearn.base import clone

from .arrays import one_blas_thread, to_host
from .basis import MonomialBasis
from .checks import warn
from .energy import raw_matrix
from .estimators import ISODUS
from .inference import MOST_PARAMETERS, degrees_of_freedom, joint_sandwich
from .losses.pseudo_likelihood import PseudoLikelihoodLoss
from .model import PolynomialModel
from .optimum import Task, over
from .samples import ArraySamples, check_variation, standardisation
from .significance import FLAT, WaldTest, check_level, in_other_units, wald
from .validation import check_samples, one_of

__all__ = ["GroupComparison", "compare_groups"]

_ALPHA = 0.05  # a level of tests
_UNEQUAL = 2  # times the rows of the smaller group, from which tests do not hold their level


@dataclass(frozen=True, repr=False)
class GroupComparison:
    """Two groups of samples, term by term; `compare_groups` makes it.

    Attributes
    ----------
    table : DataFrame
        A row a term: term, degree, order, theta_1, theta_2; difference, the first less the second; stderr to q_value,
        as in `PolynomialModel.to_frame`, of the difference: NaN where a parameter is held at a bound in a group.
    test : WaldTest
        That there is no difference at all; the p-value by Hotelling's T².
    models, notes : tuple of PolynomialModel, list of str
        What was compared, each in units of its own, and what is worth knowing about it.
    """

    table: pd.DataFrame
    test: WaldTest
    models: tuple[PolynomialModel, ...]
    notes: list[str]

    def different(self, q: float = 0.05) -> pd.DataFrame:
        """The terms that differ at a false discovery rate q, the surest first."""
        found = self.table["q_value"] <= check_level(q, "q")
        return self.table[found].sort_values("p_value", kind="stable", ignore_index=True)

    @property
    def verdict(self) -> str:
        """What it comes to, in words."""
        found = self.different()
        terms = f"{len(found)} of {self.table['p_value'].count()} terms differ at a false discovery rate of 5 %"
        if len(found):
            top = found.iloc[0]
            terms += f", foremost {top['term']}, by {top['difference']:.3g} ± {top['stderr']:.2g}"
        if self.test.p_value < _ALPHA:
            return f"the groups differ ({self.test.in_words('T²')}): {terms}"
        words = f"no evidence that the groups differ ({self.test.in_words('T²')})"
        return f"{words}, though {terms}" if len(found) else words

    def __repr__(self) -> str:
        return "\n".join([f"GroupComparison: {self.verdict}", *(f"note: {note}" for note in self.notes)])


def compare_groups(
    X1: Any, X2: Any, estimator: Any = None, *, level: float = 0.95, correction: Any = "bh", units: str = "standardized"
) -> GroupComparison:
    """In which terms the models of two independent groups of samples differ.

    The estimator tells which terms there are, from both groups together, after a linear map that gives them one mean
    and one covariance; a mixture would have terms that neither has. These are fitted to each group by
    pseudo-likelihood, whether or not the group by itself supports them: what ISODUS finds, where it does.

    Parameters
    ----------
    X1, X2 : arrays or DataFrames of shape (n_samples, n_variables)
        The groups, of independent rows. Columns of frames are matched by name.
    estimator : estimator, optional
        By default ``ISODUS(select=True)``, which leaves out terms above degree 2 that do not pay for both groups
        together; `notes` counts them. ``ISODUS()`` compares all terms. With a penalty, terms are chosen by it, and
        errors hold nonetheless.
    level, correction : float, {"bh", "by"}
        Of intervals and of q-values, as in `PolynomialModel.to_frame`.
    units : {"standardized", "raw"}
        Of both groups: standardised by all samples, or those of the samples. Terms of the highest degree differ by the
        same but for a factor; below it a difference depends on the origin, and comes with one of the means.

    Examples
    --------
    >>> from isodus.groups import compare_groups
    >>> from isodus.datasets import double_wells
    >>> X1, X2 = (double_wells(2, coupling=c).sample(2000, rng=0) for c in (0.3, 1.0))
    >>> compare_groups(X1, X2).different()["term"].tolist()
    ['x0*x1']
    """
    check_level(level)
    one_of(correction, ("bh", "by"), "correction")
    one_of(units, ("standardized", "raw"), "units")
    estimator = ISODUS(select=True) if estimator is None else estimator
    rows, columns = _same_columns(X1, X2, estimator)
    whole = _together(rows, columns, estimator)
    names = whole.names
    inside, closed = np.flatnonzero(whole.theta), whole.basis.closed_under_translation
    basis = whole.basis.spanned(inside) if closed else whole.basis.only(inside)
    left, few = len(whole.basis) - len(basis), [k for k, X in enumerate(rows, 1) if len(X) < 5 * basis.largest]
    notes = [f"{left} terms, which the samples do not support, are left out; {len(basis)} are compared"] if left else []
    notes += [f"standard errors of group {k} may be too small: it has less than 5 samples a parameter" for k in few]
    least, most = sorted(map(len, rows))
    if most > _UNEQUAL * least:
        notes.append(
            f"the groups have {len(rows[0]):,} and {len(rows[1]):,} rows. Beyond a ratio of {_UNEQUAL} : 1 the level "
            "of the tests does not hold: on skewed variables they reject equal groups several times too often"
        )
        warn(f"{notes[-1]}. Compare equal numbers of rows, such as {least:,} drawn at random from the larger group")
    models = tuple(_refit(X, basis, names, f"group {k}") for k, X in enumerate(rows, 1))
    location, scale = standardisation(np.concatenate(rows), None, names, np.random.default_rng(0))
    scale = np.ones_like(scale) if units == "raw" else scale
    location = location if units != "raw" and closed else np.zeros_like(location)
    maps = [raw_matrix(basis, (model.location - location) / scale, model.scale / scale) for model in models]
    theta_1, theta_2 = (T @ model.theta for T, model in zip(maps, models, strict=True))
    C: Any = [in_other_units(model.covariance, T) for T, model in zip(maps, models, strict=True)]
    less = PolynomialModel(basis, theta_1 - theta_2, location, scale, tuple(names), covariance=C[0] + C[1])
    table = less.to_frame("standardized", level=level, correction=correction)
    table.insert(3, "theta_1", theta_1)
    table.insert(4, "theta_2", theta_2)
    table, test = table.rename(columns={"theta": "difference"}), _hotelling(less.theta, C, [len(X) for X in rows])
    return GroupComparison(table, test, models, notes)


def _hotelling(d: np.ndarray, parts: Sequence[np.ndarray], sizes: Sequence[int]) -> WaldTest:
    """T² = dᵀC⁻¹d, C = C₁ + C₂, by an F distribution, since C is estimated: Yao's (1965), of unequal covariances."""
    C = parts[0] + parts[1]
    statistic, q, p = wald(d, C)
    if not statistic > 0:
        return WaldTest(statistic, q, p)
    at, size = np.ix_(*[np.flatnonzero(np.diagonal(C) > 0)] * 2), np.sqrt(np.diagonal(C)[np.diagonal(C) > 0])
    u = np.linalg.pinv(C[at] / np.outer(size, size), rcond=FLAT, hermitian=True) @ (d[at[1][0]] / size) / size
    nu = 1 / sum((u @ part[at] @ u / statistic) ** 2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
    return WaldTest(statistic, q, float(f.sf(statistic * (nu - q + 1) / (nu * q), q, nu - q + 1)))


def _same_columns(X1: Any, X2: Any, estimator: Any) -> tuple[list[np.ndarray], list[Any]]:
    """The groups, checked, with the same columns in the same order, and the names of these, of whatever type."""
    if all(isinstance(X, pd.DataFrame) for X in (X1, X2)) and set(X1.columns) == set(X2.columns):
        X2 = X2[list(X1.columns)]
    own, rows = clone(estimator), []
    for which, X in enumerate((X1, X2), 1):
        try:
            checked, names = check_samples(own, X, reset=which == 1)
            check_variation(checked, names)
        except ValueError as error:
            raise ValueError(f"group {which}: {error}") from None
        rows.append(to_host(checked))
    return rows, own._columns or names


def _together(rows: Sequence[np.ndarray], columns: Sequence[Any], estimator: Any) -> PolynomialModel:
    """A model of both groups, mapped to one mean and covariance unless terms keep their origin, integrable or not."""
    own, basis = clone(estimator), getattr(estimator, "basis", None)
    given = [getattr(own, name, None) for name in ("support", "functions")] + [getattr(basis, "spaces", None)]
    if any(what is not None for what in given) or getattr(basis, "tied", None) is not None:
        raise ValueError("groups are compared on the whole line, with powers, and no terms tied: leave those out")
    if getattr(own, "dependence", None) is not None:
        raise ValueError("groups are compared as independent samples: set dependence=None, and thin a series")
    closed = getattr(own, "min_degree", 1) == 1 if basis is None else basis.closed_under_translation
    C = [np.atleast_2d(np.cov(X, rowvar=False)) for X in rows]
    if closed and all(np.linalg.cond(part / np.outer(*[np.sqrt(np.diagonal(part))] * 2)) < 1 / FLAT for part in C):
        root = np.linalg.cholesky((C[0] + C[1]) / 2)
        maps = [root @ np.linalg.inv(np.linalg.cholesky(part)) for part in C]
        rows = [(X - X.mean(axis=0)) @ M.T for X, M in zip(rows, maps, strict=True)]
    own.set_params(**{"integrable": "warn"} if "integrable" in own.get_params() else {})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the learned model (is no density|has its mass far)|select=True left out")
        return own.fit(pd.DataFrame(np.concatenate(rows), columns=columns)).model_


def _refit(X: np.ndarray, basis: MonomialBasis, names: Sequence[str], who: str) -> PolynomialModel:
    """Pseudo-likelihood's optimum over all terms of a basis, supported or not."""
    n = len(X)
    few = f"{who}: {n:,} samples for {len(basis):,} terms. Give an estimator with fewer, such as ISODUS(degree=2)"
    if len(basis) > MOST_PARAMETERS or basis.largest >= n:
        raise ValueError(few)
    location, scale = standardisation(X, None, names, np.random.default_rng(0))
    location = location if basis.closed_under_translation else np.zeros_like(location)
    task = Task(PseudoLikelihoodLoss(tol=1e-6), None, 0.01 * np.sqrt(len(basis) / n), 100, 100)
    with one_blas_thread():
        found = over(basis, np.ones(len(scale)), ArraySamples(X, None, location, scale), task)
        theta, metric = found.problem.theta, found.problem.metric
        metric = found.part(theta).hessian if metric is None else metric
        if found.problem.status != "converged" or metric is None:
            raise ValueError(f"{few}: they cannot be told apart")
        C = joint_sandwich(found.part.objective, theta, metric, degrees_of_freedom(basis, n), ~found.problem.on_floor)
    return PolynomialModel(basis, theta, location, scale, tuple(names), n, {"estimator": "PseudoLikelihood"}, C)
