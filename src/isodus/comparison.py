"""Models beside one another, by what they predict of new samples and by tests of nested terms.

Scores are s(x), the mean over variables of log P(x_i | rest); two models are compared by s_A(x) − s_B(x) at the same
samples. That parameters of a model are zero is tested by Wald's θᵀC⁻¹θ, C their covariance. Where the terms that are
left hold every divisor of each, they span the same energies whatever the origin: it is one hypothesis in all units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from .arrays import to_host
from .basis import MonomialBasis
from .checks import finite_rows, is_index, warn
from .description import chosen_from_the_same, selected
from .energy import raw_matrix
from .model import PolynomialModel, as_model
from .penalties import Terms, positions
from .samples import floating_rows, standardisation
from .significance import FLAT, WaldTest, block, in_other_units, wald
from .validation import check_weight
from .wording import listed

__all__ = ["Comparison", "compare", "nested_test", "predicted"]

_NEAR = 0.02  # spreads within which middles are the same
_ALIKE = 1e-3  # nats a variable that hardly matter
_TIE, _ALPHA = 2.0, 0.05  # standard errors of a difference within which the simpler model is taken; a level of tests


@dataclass(frozen=True, repr=False)
class Comparison:
    """Models beside one another; `compare` makes it.

    Attributes
    ----------
    table : DataFrame
        A row a model, the best first. name; n_terms: parameters that are not zero, in standardised variables; degree:
        of these; score: mean over samples and variables of log P(x_i | rest), in nats; stderr; difference: from the
        best, with the standard error difference_stderr of the differences sample by sample; z: their ratio;
        no_density: variables whose conditional density does not exist at so many samples, or that are outside of their
        support there, which makes a score −inf.
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

    A model that is better by less than two standard errors does not count as better: of such the one with the
    fewest terms is recommended. Wald's tests rest on the samples that the models were fitted to. Parameters held at
    a bound are no evidence, with a p-value of 1; terms that ``select=True`` left out were not tested, and have
    none; where a penalty chose the terms, p-values are too small.

    Parameters
    ----------
    models : dict of names to models, or sequence of models
        Fitted estimators, or `PolynomialModel`, over the same variables. Where one gives a variable a density, and
        another probabilities of a few values, their scores are not comparable, which is an error.
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
    same = [name for name, model in named.items() if fitted_to(model, rows)]
    if same:
        warn(
            f"X has the number, middles and spreads of the rows that {listed(same)} was fitted to. On such rows the "
            "model with the most terms looks best, so that no model is recommended. Compare on rows that no model was "
            "fitted to"
        )
    if not weight.sum() > 1:
        raise ValueError(
            f"sample_weight sums to {weight.sum():.3g}: weights count repetitions, and a standard error takes more "
            "than one sample. Give counts, or relative weights divided by their mean"
        )
    some = weight > 0
    densities = [to_host(model.conditional_log_density(X))[some] for model in named.values()]
    outside = [to_host(model.outside(X))[some] for model in named.values()]
    table = _scores(named, densities, outside, weight[some])
    tied = table[np.isfinite(table["score"]) & (table["difference"] >= -_TIE * table["difference_stderr"])]
    chosen = None if tied.empty else str(tied.sort_values(["n_terms", "degree"], kind="stable")["name"].iloc[0])
    higher = {name: model for name, model in named.items() if model.basis.degree > 2}
    tests = [(name, *_tested(m, np.flatnonzero(m.basis.degrees > 2), False)) for name, m in higher.items()]
    needed = pd.DataFrame(tests, columns=["name", "chi2", "df", "p_value", "note"])
    on_line = all(model.basis.spaces is None for model in named.values())
    verdict = _verdict(table, needed, chosen) if on_line else _plain_verdict(table, chosen)
    if same and len(named) > 1:
        chosen, verdict = None, f"no verdict: these are the rows that {listed(same)} was fitted to"
    return Comparison(table, needed, _nested(named), chosen, verdict)


def nested_test(large: Any, small: Any = None, *, terms: Terms | None = None) -> WaldTest:
    """Wald's test that the terms of a model which a smaller one lacks are zero.

    It wants some fifty samples a term that is tested; with fewer, p-values are too small. Parameters held at a
    bound are no evidence: of such alone the p-value is 1. Terms that ``select=True`` left out are an error. If what
    is left has a term and not all its divisors, it matters where zero is: in the units of `large`, or in those of
    the samples where `small` is a model with such terms, which keeps their origin.

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
    model = as_model(large, "large")
    if (small is None) == (terms is None):
        raise ValueError(f"give one of small and terms, not {'neither' if small is None else 'both'}")
    if terms is not None:
        return _zero(model, np.unique(positions(terms, model.basis, model.names, "terms")), False)
    raw, left = False, small
    if isinstance(small, PolynomialModel) or hasattr(small, "fit"):
        less = as_model(small, "small")
        _check_values({"large": model, "small": less})
        raw = not less.basis.closed_under_translation
        left = [[less.names[v] for v in term] for term in less.basis.terms]
    elif isinstance(small, MonomialBasis) or is_index(small):
        left = [term for term in model.basis.terms if len(term) <= small] if is_index(small) else small.terms
    at = positions(left, model.basis, model.names, "small is not nested in large")
    return _zero(model, np.setdiff1d(np.arange(len(model.basis)), at), raw)


def fitted_to(model: PolynomialModel, rows: np.ndarray) -> bool:
    """Whether a model was fitted to these rows, as far as their number, middles and spreads show; rows: (n, p)."""
    if model.n_samples is None or model.n_samples != len(rows):
        return False
    try:
        location, scale = standardisation(rows, None, model.names, np.random.default_rng(0))
    except ValueError:  # a constant column, which no model was fitted to
        return False
    near = np.abs(location - model.location) <= _NEAR * scale
    alike = np.abs(scale / model.scale - 1) <= _NEAR
    return bool(np.all(near | (model.location == 0)) and np.all(alike | (model.scale == 1)))


def predicted(score: float, gaussian: float) -> str:
    """In words, whether a model predicts a variable from the others better than a Gaussian with all pairs.

    Both are means of log P(x_i | rest) a variable, on the same samples.
    """
    if not (np.isfinite(score) and np.isfinite(gaussian)):
        return ""
    ahead = score - gaussian
    if abs(ahead) < _ALIKE:
        return "it predicts a variable from the others as well as a Gaussian with all pairs, and no better"
    how = "better" if ahead > 0 else "worse"
    return f"it predicts a variable from the others {how} than a Gaussian with all pairs, by {abs(ahead):.2g} nats"


def _named(models: Any, X: Any) -> dict[str, PolynomialModel]:
    """Models by name; those of a list by estimator and degree, and more as it takes to tell them apart."""
    if not isinstance(models, Mapping | list | tuple) or not models:
        raise ValueError(f"models must be a dict of names to models, or a list of at least one model, not {models!r}")
    if isinstance(models, Mapping):
        named = {str(name): as_model(model, str(name)) for name, model in models.items()}
    else:
        listed = [as_model(model, f"models[{k}]") for k, model in enumerate(models)]
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
        _check_values(dict([next(iter(named.items())), (name, model)]))
    return named


def _check_values(two: Mapping[str, PolynomialModel]) -> None:
    """Refuse models of which one gives probabilities of values where the other has a density, or other values."""
    found = [{name: _values(model, i) for i, name in enumerate(model.names)} for model in two.values()]
    for name in (name for name, values in found[0].items() if values != found[-1].get(name, values)):
        listed = " and ".join(f"{_on(each[name])} by {who}" for who, each in zip(two, found, strict=True))
        raise ValueError(
            f"{name} has {listed}: probabilities of values are not to be compared with a density, nor with those of "
            "other values. Fit the models with one support of that column"
        )


def _values(model: PolynomialModel, i: int) -> tuple[float, ...] | None:
    """Those that a variable has, in the units of X; None where it has a density."""
    values = None if model.basis.spaces is None else model.basis.spaces[i].support.values
    return None if values is None else tuple(np.round(np.array(values) * model.scale[i] + model.location[i], 9))


def _on(values: tuple[float, ...] | None) -> str:
    if values is None:
        return "a density"
    return f"the values {', '.join(f'{v:g}' for v in values)}" if len(values) < 9 else f"{len(values)} values"


def _scores(
    named: Mapping[str, PolynomialModel],
    densities: Sequence[np.ndarray],
    outside: Sequence[np.ndarray],
    weight: np.ndarray,
) -> pd.DataFrame:
    """The table of `compare`; of each model, (n, p), log P(x_i | rest) and which x_i are `outside`; weight: (n,)."""
    n, rows = weight.sum(), []

    def mean(values: np.ndarray) -> tuple[float, float]:
        if not np.isfinite(values).all():
            return -np.inf, np.nan
        middle = values @ weight / n
        return float(middle), float(np.sqrt((values - middle) ** 2 @ weight / ((n - 1) * n)))

    scores = [values.mean(axis=1) for values in densities]
    best = max(scores, key=lambda values: mean(values)[0])
    for (name, model), values, out, own in zip(named.items(), densities, outside, scores, strict=True):
        there, inside = model.theta != 0, ~out.any(axis=1, keepdims=True)
        lost = {"": ~np.isfinite(values) & inside, " outside of its support": out}
        size = np.count_nonzero(there), int(model.basis.degrees[there].max(initial=0))
        difference, error = mean(own - best) if np.isfinite(best).all() else (np.nan, np.nan)
        z = difference / error if error > 0 else np.nan
        counts = [(i, np.count_nonzero(cells[:, i]), why) for why, cells in lost.items() for i in range(cells.shape[1])]
        where = ", ".join(f"{model.names[i]} ({many:,}{why})" for i, many, why in counts if many)
        rows.append((name, *size, *mean(own), difference, error, z, where))
    columns = ["name", "n_terms", "degree", "score", "stderr", "difference", "difference_stderr", "z", "no_density"]
    return pd.DataFrame(rows, columns=columns).sort_values("score", ascending=False, kind="stable", ignore_index=True)


def _zero(model: PolynomialModel, extra: np.ndarray, raw: bool) -> WaldTest:
    """Wald's test that the parameters at `extra` are zero, in the units of the model or of the samples."""
    theta: np.ndarray = model.estimate
    covariance: Any = model.covariance
    if not len(extra):
        raise ValueError("no term is asked to be zero: the smaller model has all terms of the larger")
    if covariance is None:
        raise ValueError("the model has no standard errors: it was not learned, or with l1 and without debias=True")
    if np.isnan(covariance.diagonal()).all():
        raise ValueError("the model has no standard errors: its terms cannot be told apart, as its fit has warned")
    if raw:
        T = raw_matrix(model.basis, model.location, model.scale)
        theta, covariance = T @ theta, in_other_units(covariance, T)
    known = ~np.isnan(covariance.diagonal()[extra])
    if selected(model) and np.any(~known & (theta[extra] == 0)):
        left_out = int(np.count_nonzero(~known & (theta[extra] == 0)))
        raise ValueError(f"select=True left out {left_out:,} of these terms: fit with select=False to test them")
    extra = extra[known]
    if not len(extra):
        return WaldTest(0.0, 0, 1.0)
    if np.isnan(C := block(covariance, extra)).any():
        raise ValueError("of so many terms only parts of the covariance are known: see model.interactions()")
    size = np.sqrt(np.diagonal(C))
    values, vectors = np.linalg.eigh(C / size / size[:, None])
    if not values[0] > FLAT * values[-1]:
        share = np.abs(vectors[:, 0])
        alike = [model.term_name(model.basis.terms[extra[k]]) for k in np.argsort(-share)[:4] if share[k] > 0.1]
        raise ValueError(f"{', '.join(alike)} cannot be told apart: their covariance is singular. Leave one out")
    return wald(theta[extra], C, model.error_df)


def _tested(model: PolynomialModel, extra: np.ndarray, raw: bool) -> tuple[float, float, float, str]:
    """χ², df and p-value that parameters are zero, and a note: the reason where there is no test."""
    try:
        test = _zero(model, extra, raw)
    except ValueError as error:
        return np.nan, np.nan, np.nan, str(error)
    held = np.count_nonzero(np.isnan(model.stderr("standardized")[extra]))
    notes = ["in the units of the samples"] if raw else []
    notes += [f"{held} of {len(extra)} terms held at a bound"] if held else []
    chosen = chosen_from_the_same(model)
    notes += ["p is too small, as a penalty chose the terms from the same samples"] if chosen else []
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


def _plain_verdict(table: pd.DataFrame, chosen: str | None) -> str:
    """Of models that do not all live on the line, where none is a Gaussian: which to take."""
    if chosen is None:
        best = table.iloc[0]
        return f"no model has all conditional densities at all samples ({best['name']}: {best['no_density']})"
    if len(table) == 1:
        return f"{chosen} is the only model: there is nothing to compare it with"
    best = chosen == table["name"].iloc[0]
    return f"take {chosen}{'' if best else ', the simplest within two standard errors of the best'}"


def _verdict(table: pd.DataFrame, needed: pd.DataFrame, chosen: str | None) -> str:
    there, without, best = table[table["no_density"] == ""], table[table["no_density"] != ""], table.iloc[0]
    if chosen is None:
        return f"no model has all conditional densities at all samples ({best['name']}: {best['no_density']})"
    take = f"take {chosen}{'' if chosen == best['name'] else ', the simplest within two standard errors of the best'}"
    gauss, other = there[there["degree"] <= 2], there[there["degree"] > 2]
    if len(table) == 1 and other.empty:
        return f"{chosen}, a Gaussian, is the only model: there is nothing to compare it with"
    if other.empty:
        lost = "".join(f"{row.name} has no conditional density of {row.no_density}; " for row in without.itertuples())
        return f"{lost}all {'others' if lost else 'models'} are Gaussian: {take}"
    name = other["name"].iloc[0]
    _, *test, note = needed[needed["name"] == name].iloc[0]
    found = "are not zero" if test[2] < _ALPHA else "cannot be told from zero"
    words = WaldTest(*test).in_words("Wald χ²") if np.isfinite(test[2]) else ""
    beyond = f"{found} ({'; '.join(filter(None, (words, note)))})" if words else f"not tested: {note}"
    if len(table) == 1:
        return f"{name} is the only model: there is nothing to compare it with; its terms beyond degree 2 {beyond}"
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
