"""Models beside one another, by what they predict of new samples and by tests of nested terms; and groups of samples.

Scores are s(x), the mean over variables of log P(x_i | rest); two models are compared by s_A(x) − s_B(x) at the same
samples. That parameters of a model are zero is tested by Wald's θᵀC⁻¹θ, C their covariance. Where the terms that are
left hold every divisor of each, they span the same energies whatever the origin: it is one hypothesis in all units.

Of two groups, with T_g the map from the units of group g to common ones, T₁θ₁ − T₂θ₂ has the covariance T₁C₁T₁ᵀ +
T₂C₂T₂ᵀ. Both together decide which terms are compared: if they do not differ, that is independent of their difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f
from sklearn.base import clone

from .arrays import one_blas_thread, to_host
from .basis import MonomialBasis
from .checks import finite_rows, is_index
from .energy import raw_matrix
from .estimators import ISODUS
from .inference import MOST_PARAMETERS, joint_sandwich
from .losses.pseudo_likelihood import PseudoLikelihoodLoss
from .model import PolynomialModel
from .optimum import Task, _over
from .penalties import Terms, _positions
from .samples import ArraySamples, check_variation, floating_rows, standardisation
from .significance import WaldTest, block, check_level, in_other_units, wald
from .validation import check_samples, check_weight, one_of

__all__ = ["Comparison", "GroupComparison", "compare", "compare_groups", "nested_test"]

_TIE, _ALPHA = 2.0, 0.05  # standard errors of a difference within which the simpler model is taken; a level of tests
_FLAT = 1e-10  # of correlations: directions that have no variance of their own


@dataclass(frozen=True, repr=False)
class Comparison:
    """Models beside one another; `compare` makes it.

    Attributes
    ----------
    table : DataFrame
        A row a model, the best first. name; n_terms: parameters that are not zero; degree: of these; score: mean over
        samples and variables of log P(x_i | rest), in nats; stderr; difference: from the best, with the standard error
        difference_stderr of the differences sample by sample; z: their ratio; no_density: variables whose conditional
        density does not exist at so many samples, which makes a score −inf.
    wald : DataFrame
        A row a model with terms beyond degree 2: name; chi2, df, p_value of Wald's test that they are zero; note.
    nested : DataFrame
        A row for two models of which the larger has all terms of the smaller: smaller, larger; n_terms, how many more;
        chi2, df, p_value of Wald's test, in the larger, that those are zero; note.
    recommended, verdict : str
        Of those within two standard errors of the best the model with the fewest terms; what it comes to, in words.
    """

    table: pd.DataFrame
    wald: pd.DataFrame
    nested: pd.DataFrame
    recommended: str | None
    verdict: str

    def __repr__(self) -> str:
        shown = self.table if self.table["no_density"].any() else self.table.drop(columns="no_density")
        return f"Comparison: {self.verdict}\n{shown.to_string(index=False, float_format='{:.4g}'.format)}"


def compare(models: Mapping[str, Any] | Sequence[Any], X: Any, *, sample_weight: Any = None) -> Comparison:
    """Which of several models predicts new samples best, and whether it takes more than a Gaussian.

    A model that is better by less than two standard errors does not count as better: of such the one with the fewest
    terms is recommended. Wald's tests rest on the samples that the models were fitted to. What an estimator left out
    as unsupported is no evidence, with a p-value of 1; where a penalty chose the terms, p-values are too small.

    Parameters
    ----------
    models : dict of names to models, or sequence of models
        Fitted estimators, or `PolynomialModel`, over the same variables.
    X : array or DataFrame of shape (n_samples, n_variables)
        Samples that no model was fitted to: on others the model with the most terms looks best. Standard errors take
        them to be independent of one another.
    sample_weight : array of shape (n_samples,), optional
        Repetition counts.

    Examples
    --------
    >>> from isodus import ISODUS
    >>> from isodus.comparison import compare
    >>> from isodus.datasets import double_wells
    >>> X = double_wells(2).sample(2000, rng=0)
    >>> compare([ISODUS(2).fit(X[:1000]), ISODUS(4).fit(X[:1000])], X[1000:]).recommended
    'ISODUS (degree 4)'
    """
    named = _named(models, X)
    names = next(iter(named.values())).names
    finite_rows(rows := to_host(floating_rows(X, names)), names, "X")
    weight: Any = np.ones(len(rows)) if sample_weight is None else check_weight(sample_weight, rows)[0]
    if len(rows) < 2:
        raise ValueError("X has one row, and a standard error takes two or more")
    densities = [to_host(model.conditional_log_density(X))[weight > 0] for model in named.values()]
    table = _scores(named, densities, weight[weight > 0])
    tied = table[np.isfinite(table["score"]) & (table["difference"] >= -_TIE * table["difference_stderr"])]
    chosen = None if tied.empty else str(tied.sort_values(["n_terms", "degree"], kind="stable")["name"].iloc[0])
    higher = {name: model for name, model in named.items() if model.basis.degree > 2}
    tests = [(name, *_tested(m, np.flatnonzero(m.basis.degrees > 2), False)) for name, m in higher.items()]
    needed = pd.DataFrame(tests, columns=["name", "chi2", "df", "p_value", "note"])
    return Comparison(table, needed, _nested(named), chosen, _verdict(table, needed, chosen))


def nested_test(large: Any, small: Any = None, *, terms: Terms | None = None) -> WaldTest:
    """Wald's test that the terms of a model which a smaller one lacks are zero.

    It wants some fifty samples a term that is tested; with fewer, p-values are too small. Parameters held at a bound or
    left out as unsupported are no evidence: of such alone the p-value is 1. If what is left has a term and not all its
    divisors, it matters where zero is: in the units of `large`, or in those of the samples where `small` is a model
    with such terms, which keeps their origin.

    Parameters
    ----------
    large : PolynomialModel or fitted estimator
        With a covariance.
    small : PolynomialModel, fitted estimator, MonomialBasis, int or sequence of terms
        What is left if they are zero: the terms of a model or basis, those up to a degree, or a list of them, each by
        indices or names: ``(0, 0, 1)`` is x0²·x1.
    terms : sequence of terms, optional
        Instead of `small`, the terms that are to be zero.

    Examples
    --------
    >>> from isodus import ISODUS
    >>> from isodus.comparison import nested_test
    >>> from isodus.datasets import double_wells
    >>> est = ISODUS(4).fit(double_wells(2).sample(1000, rng=0))
    >>> nested_test(est, 2).p_value < 1e-10, nested_test(est, terms=[(0, 0, 1, 1), (0, 0, 0, 1)]).p_value > 0.05
    (True, True)
    """
    model = _model(large, "large")
    if (small is None) == (terms is None):
        raise ValueError(f"give one of small and terms, not {'neither' if small is None else 'both'}")
    if terms is not None:
        return _zero(model, np.unique(_positions(terms, model.basis, model.names, "terms")), False)
    raw, left = False, small
    if isinstance(small, PolynomialModel) or hasattr(small, "fit"):
        less = _model(small, "small")
        raw = not less.basis.closed_under_translation
        left = [[less.names[v] for v in term] for term in less.basis.terms]
    elif isinstance(small, MonomialBasis) or is_index(small):
        left = [term for term in model.basis.terms if len(term) <= small] if is_index(small) else small.terms
    at = _positions(left, model.basis, model.names, "small is not nested in large")
    return _zero(model, np.setdiff1d(np.arange(len(model.basis)), at), raw)


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
            return f"the groups differ ({_words('T²', *self.test)}): {terms}"
        words = f"no evidence that the groups differ ({_words('T²', *self.test)})"
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
        By default ``ISODUS()``. With a penalty, terms are chosen by it, and errors hold nonetheless.
    level, correction : float, {"bh", "by"}
        Of intervals and of q-values, as in `PolynomialModel.to_frame`.
    units : {"standardized", "raw"}
        Of both groups: standardised by all samples, or those of the samples. Terms of the highest degree differ by the
        same but for a factor; below it a difference depends on the origin, and comes with one of the means.

    Examples
    --------
    >>> from isodus.comparison import compare_groups
    >>> from isodus.datasets import double_wells
    >>> X1, X2 = (double_wells(2, coupling=c).sample(2000, rng=0) for c in (0.3, 1.0))
    >>> compare_groups(X1, X2).different()["term"].tolist()
    ['x0*x1']
    """
    check_level(level)
    one_of(correction, ("bh", "by"), "correction")
    one_of(units, ("standardized", "raw"), "units")
    estimator = ISODUS() if estimator is None else estimator
    rows, names = _same_columns(X1, X2, estimator)
    whole = _together(rows, names, estimator)
    inside, closed = np.flatnonzero(whole.theta), whole.basis.closed_under_translation
    basis = whole.basis.spanned(inside) if closed else whole.basis.only(inside)
    left, few = len(whole.basis) - len(basis), [k for k, X in enumerate(rows, 1) if len(X) < 5 * basis.largest]
    notes = [f"{left} terms, which the samples do not support, are left out; {len(basis)} are compared"] if left else []
    notes += [f"standard errors of group {k} may be too small: it has less than 5 samples a parameter" for k in few]
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
    u = np.linalg.pinv(C[at] / np.outer(size, size), rcond=_FLAT, hermitian=True) @ (d[at[1][0]] / size) / size
    nu = 1 / sum((u @ part[at] @ u / statistic) ** 2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
    return WaldTest(statistic, q, float(f.sf(statistic * (nu - q + 1) / (nu * q), q, nu - q + 1)))


def _same_columns(X1: Any, X2: Any, estimator: Any) -> tuple[list[np.ndarray], list[str]]:
    """The groups, checked, with the same columns in the same order, and the names of these."""
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
    return rows, names


def _together(rows: Sequence[np.ndarray], names: Sequence[str], estimator: Any) -> PolynomialModel:
    """A model of both groups, mapped to one mean and covariance unless terms keep their origin, integrable or not."""
    own, basis = clone(estimator), getattr(estimator, "basis", None)
    if getattr(own, "dependence", None) is not None:
        raise ValueError("groups are compared as independent samples: set dependence=None, and thin a series")
    closed = getattr(own, "min_degree", 1) == 1 if basis is None else basis.closed_under_translation
    C = [np.atleast_2d(np.cov(X, rowvar=False)) for X in rows]
    if closed and all(np.linalg.cond(part / np.outer(*[np.sqrt(np.diagonal(part))] * 2)) < 1 / _FLAT for part in C):
        root = np.linalg.cholesky((C[0] + C[1]) / 2)
        maps = [root @ np.linalg.inv(np.linalg.cholesky(part)) for part in C]
        rows = [(X - X.mean(axis=0)) @ M.T for X, M in zip(rows, maps, strict=True)]
    own.set_params(**{"integrable": "warn"} if "integrable" in own.get_params() else {})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the learned model (is no density|has its mass far)")
        return own.fit(pd.DataFrame(np.concatenate(rows), columns=names)).model_


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
        found = _over(basis, np.ones(len(scale)), ArraySamples(X, None, location, scale), task)
        theta, metric = found.problem.theta, found.problem.metric
        metric = found.part(theta).hessian if metric is None else metric
        if found.problem.status != "converged" or metric is None:
            raise ValueError(f"{few}: they cannot be told apart")
        C = joint_sandwich(found.part.objective, theta, metric, n, ~found.problem.on_floor)
    return PolynomialModel(basis, theta, location, scale, tuple(names), n, {"estimator": "PseudoLikelihood"}, C)


def _named(models: Any, X: Any) -> dict[str, PolynomialModel]:
    """Models by name; those of a list by estimator and degree, and more as it takes to tell them apart."""
    if not isinstance(models, Mapping | list | tuple) or not models:
        raise ValueError(f"models must be a dict of names to models, or a list of at least one model, not {models!r}")
    if isinstance(models, Mapping):
        named = {str(name): _model(model, str(name)) for name, model in models.items()}
    else:
        listed = [_model(model, f"models[{k}]") for k, model in enumerate(models)]
        sizes = [(m.settings.get("estimator", "model"), m.basis.degree, np.count_nonzero(m.theta)) for m in listed]
        ways = ("{1} (degree {2})", "{1} (degree {2}, {3} terms)", "{0}: {1} (degree {2}, {3} terms)")
        called = [[way.format(k, *size) for k, size in enumerate(sizes)] for way in ways]
        names = [next(way[k] for way in called if way.count(way[k]) == 1) for k in range(len(sizes))]
        named = dict(zip(names, listed, strict=True))
    first = next(iter(named.values())).names
    for name, model in named.items():
        odd = sorted(set(model.names) ^ set(first))
        if odd:
            raise ValueError(f"{name} has other variables than the first model: {odd[0]} is in one of them only")
        if model.names != first and not isinstance(X, pd.DataFrame):
            raise ValueError("the models have the variables in different orders: give X as a DataFrame, with names")
    return named


def _model(thing: Any, what: str) -> PolynomialModel:
    model = getattr(thing, "model_", thing)
    if not isinstance(model, PolynomialModel):
        raise ValueError(f"{what} must be a fitted estimator or a PolynomialModel, not {thing!r}")
    return model


def _scores(named: Mapping[str, PolynomialModel], densities: Sequence[np.ndarray], weight: np.ndarray) -> pd.DataFrame:
    """The table of `compare`; densities: log P(x_i | rest) of each model, (n, p); weight: (n,)."""
    n, rows = weight.sum(), []

    def mean(values: np.ndarray) -> tuple[float, float]:
        if not np.isfinite(values).all():
            return -np.inf, np.nan
        middle = values @ weight / n
        return float(middle), float(np.sqrt((values - middle) ** 2 @ weight / ((n - 1) * n)))

    scores = [values.mean(axis=1) for values in densities]
    best = max(scores, key=lambda values: mean(values)[0])
    for (name, model), values, own in zip(named.items(), densities, scores, strict=True):
        there, missing = model.theta != 0, np.count_nonzero(~np.isfinite(values), axis=0)
        size = np.count_nonzero(there), int(model.basis.degrees[there].max(initial=0))
        difference, error = mean(own - best) if np.isfinite(best).all() else (np.nan, np.nan)
        z = difference / error if error > 0 else np.nan
        where = ", ".join(f"{model.names[i]} ({missing[i]:,})" for i in np.flatnonzero(missing))
        rows.append((name, *size, *mean(own), difference, error, z, where))
    columns = ["name", "n_terms", "degree", "score", "stderr", "difference", "difference_stderr", "z", "no_density"]
    return pd.DataFrame(rows, columns=columns).sort_values("score", ascending=False, kind="stable", ignore_index=True)


def _zero(model: PolynomialModel, extra: np.ndarray, raw: bool) -> WaldTest:
    """Wald's test that the parameters at `extra` are zero, in the units of the model or of the samples."""
    theta: np.ndarray = model.estimate
    covariance: Any = model.covariance
    if not len(extra):
        raise ValueError("no term is asked to be zero: the smaller model has all terms of the larger")
    if covariance is None or np.isnan(covariance.diagonal()).all():
        raise ValueError("the model has no standard errors: it was not learned, or with l1 and without debias=True")
    if raw:
        T = raw_matrix(model.basis, model.location, model.scale)
        theta, covariance = T @ theta, in_other_units(covariance, T)
    extra = extra[~np.isnan(covariance.diagonal()[extra])]
    if not len(extra):
        return WaldTest(0.0, 0, 1.0)
    if np.isnan(C := block(covariance, extra)).any():
        raise ValueError("of so many terms only parts of the covariance are known: see model.interactions()")
    size = np.sqrt(np.diagonal(C))
    values, vectors = np.linalg.eigh(C / size / size[:, None])
    if not values[0] > _FLAT * values[-1]:
        share = np.abs(vectors[:, 0])
        alike = [model.term_name(model.basis.terms[extra[k]]) for k in np.argsort(-share)[:4] if share[k] > 0.1]
        raise ValueError(f"{', '.join(alike)} cannot be told apart: their covariance is singular. Leave one out")
    return wald(theta[extra], C)


def _tested(model: PolynomialModel, extra: np.ndarray, raw: bool) -> tuple[float, float, float, str]:
    """χ², df and p-value that parameters are zero, and a note: the reason where there is no test."""
    try:
        test = _zero(model, extra, raw)
    except ValueError as error:
        return np.nan, np.nan, np.nan, str(error)
    held = np.count_nonzero(np.isnan(model.stderr("standardized")[extra]))
    notes = ["in the units of the samples"] if raw else []
    notes += [f"{held} of {len(extra)} terms held at a bound, or left out as unsupported"] if held else []
    chosen = model.settings.get("l1") and model.settings.get("debias") != "split"
    notes += ["terms were chosen by a penalty from the same samples"] if chosen else []
    return *test, "; ".join(notes)


def _nested(named: Mapping[str, PolynomialModel]) -> pd.DataFrame:
    rows = []
    for (small, less), (large, more) in permutations(named.items(), 2):
        place = [more.names.index(name) for name in less.names]
        terms = {tuple(sorted(place[v] for v in term)) for term in less.basis.terms}
        extra = np.array([k for k, term in enumerate(more.basis.terms) if term not in terms])
        if len(extra) and len(terms) + len(extra) == len(more.basis):
            rows.append((small, large, len(extra), *_tested(more, extra, not less.basis.closed_under_translation)))
    return pd.DataFrame(rows, columns=["smaller", "larger", "n_terms", "chi2", "df", "p_value", "note"])


def _verdict(table: pd.DataFrame, needed: pd.DataFrame, chosen: str | None) -> str:
    there, without, best = table[table["no_density"] == ""], table[table["no_density"] != ""], table.iloc[0]
    if chosen is None:
        return f"no model has all conditional densities at all samples ({best['name']}: {best['no_density']})"
    take = f"take {chosen}{'' if chosen == best['name'] else ', the simplest within two standard errors of the best'}"
    gauss, other = there[there["degree"] <= 2], there[there["degree"] > 2]
    if other.empty:
        lost = "".join(f"{row.name} has no conditional density of {row.no_density}; " for row in without.itertuples())
        return f"{lost}all {'others' if lost else 'models'} are Gaussian: {take}"
    name = other["name"].iloc[0]
    _, *test, note = needed[needed["name"] == name].iloc[0]
    found = "are not zero" if test[2] < _ALPHA else "cannot be told from zero"
    beyond = f"not tested: {note}" if np.isnan(test[2]) else f"{found} ({_words('Wald χ²', *test)})"
    if gauss.empty:
        return f"no Gaussian to compare with (degree=2); terms of {name} beyond degree 2 {beyond}; {take}"
    gaussian, ahead = f"the Gaussian, {gauss['name'].iloc[0]}", name == best["name"]
    worse = (gauss if ahead else other).iloc[0]  # its difference from the best is that from the better of the two
    by = f"{-worse['difference']:.2g} ± {worse['difference_stderr']:.1g} nats a variable (z = {abs(worse['z']):.2g})"
    said = f"{name} predicts better than {gaussian}, by {by}" if ahead else f"{gaussian}, predicts better, by {by}"
    if worse["difference"] >= -_TIE * worse["difference_stderr"]:
        said = (
            f"no evidence that {name} predicts better than {gaussian}: it is {'ahead' if ahead else 'behind'} by {by}"
        )
    return f"{said}; terms beyond degree 2 {beyond}; {take}"


def _words(name: str, statistic: float, df: float, p: float) -> str:
    return f"{name} = {statistic:.4g}, {df:.0f} df, {'p < 1e-100' if p < 1e-100 else f'p = {p:.2g}'}"
