"""From columns to axes and terms; what ends a fit is named here, before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .._core.checks import one_of, positive_integer
from .._core.notes import listed
from ..axes import Axis
from ..axes.choose import Scale, Support, choose_axis, takes
from ..data import ColumnFacts, Samples
from ..fit.penalties import Penalty
from ..fit.rank import dependent_columns, dependent_terms
from ..terms import Key, MonomialBasis, Terms, count_up_to, keys_up_to

__all__ = ["MOST_TERMS", "Spec", "check_columns", "check_terms", "make_terms"]

MOST_TERMS = 20_000
_MOST_DIGITS = 290  # of variances of coefficients
_MOST_CONDITION = 3e8  # of T: the Hessian has its square, which float64 holds up to here


class Spec(NamedTuple):
    """Which axes and terms a user asked for. keys and ties are those of a basis; without, degree and order choose."""

    degree: int
    max_order: int
    min_degree: int
    keys: list[Key] | None
    ties: list[int] | None
    supports: list[Support]  # of each column
    scale: Scale

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        degree: int,
        max_order: int,
        min_degree: int,
        basis: MonomialBasis | Sequence[Sequence[int | str]] | None,
        support: Support | Mapping[Any, Support],
        scale: Scale,
    ) -> Self:
        """Checked arguments, for columns of these names."""
        degree, min_degree = positive_integer(degree, "degree"), positive_integer(min_degree, "min_degree")
        if min_degree > degree:
            raise ValueError(
                f"min_degree is {min_degree}, above degree, {degree}, so no term is left. Lower min_degree."
            )
        max_order = positive_integer(max_order, "max_order")
        one_of(scale, ("robust", "center", "spread", "cdf", None), "scale")
        basis = basis if basis is None or isinstance(basis, MonomialBasis) else MonomialBasis(basis)
        keys, ties = (None, None) if basis is None else (basis.keys(names), basis.ties)
        return cls(degree, max_order, min_degree, keys, ties, _supports(support, names), scale)


def _supports(support: Support | Mapping[Any, Support], names: Sequence[str]) -> list[Support]:
    """The support of each column."""
    if not isinstance(support, Mapping):
        return [_checked(support, "")] * len(names)
    found: list[Support] = ["line"] * len(names)
    for key, value in support.items():
        if str(key) in names:  # labels of frames that are numbers, too
            place = list(names).index(str(key))
        elif isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names):
            place = key
        else:
            raise ValueError(f"support names a column {key!r}, which X does not have. Its columns: {listed(names)}.")
        found[place] = _checked(value, f" of column {names[place]!r}")
    return found


def _checked(support: Any, where: str) -> Support:
    if not takes(support):
        raise ValueError(
            f"support{where} is {support!r}. Use 'line', 'positive', 'circle', 'values', 'spin', two ends such as "
            "(0, 1), or an axis."
        )
    return support


def make_terms(samples: Samples, spec: Spec, known: Sequence[Axis] | None = None, most: int = MOST_TERMS) -> Terms:
    """Axes of the samples, and the terms on them.

    known: axes of other rows, of which those of discrete variables are kept: their values are no estimate. most: terms.
    """
    axes = _make_axes(samples, spec, known)
    size = (spec.degree, spec.max_order, spec.min_degree)
    count = count_up_to(axes, *size) if spec.keys is None else len(spec.keys)
    if count == 0:
        raise ValueError("degree, min_degree and max_order leave no term. Raise degree or lower min_degree.")
    if count > most and spec.ties is None:
        raise ValueError(
            f"These are {count:,} terms, and at most {most:,} can be estimated. "
            "Lower degree or max_order, or give the terms that matter as basis."
        )
    for key in spec.keys or ():
        for i in set(key):
            if key.count(i) > len(axes[i].degrees):
                raise ValueError(
                    f"The term {key} has function {key.count(i)} of column {samples.names[i]!r}, which has "
                    f"{len(axes[i].degrees)} functions. Lower its degree."
                )
    return Terms(axes, keys_up_to(axes, *size) if spec.keys is None else spec.keys, spec.ties)


def _make_axes(samples: Samples, spec: Spec, known: Sequence[Axis] | None) -> list[Axis]:
    """The axis of each column; variables whose terms are tied share one, made of their pooled rows."""
    keys, p = spec.keys, len(samples.names)
    degrees = [spec.degree if keys is None else 1] * p
    for key in keys or ():
        for i in set(key):
            degrees[i] = max(degrees[i], key.count(i))
    degrees_of_terms = spec.degree if keys is None else max(map(len, keys))
    if keys is None:
        gaussian = spec.degree == 2
    else:
        gaussian = max(map(len, keys)) <= 2 and {(i, i) for i in range(p)} <= set(keys)
    X, weight = samples.kept
    axes: dict[int, Axis] = {}
    for group in _tied_variables(spec, p):
        first = group[0]
        if any(spec.supports[i] != spec.supports[first] for i in group):
            raise ValueError(
                f"Columns {listed([samples.names[i] for i in group])} share parameters, and so one axis, but have "
                "different supports. Use one support for all of them."
            )
        if known is not None and not known[first].continuous:
            axes |= {i: known[i] for i in group}
            continue
        x, w = X[:, group].ravel("F"), np.tile(weight, len(group))
        ends = (float(samples.minima[group].min()), float(samples.maxima[group].max()))
        degree = max(degrees[i] for i in group)
        try:
            axis = choose_axis(x, degree, spec.supports[first], spec.scale, w, ends, gaussian)
        except ValueError as error:
            kind = "Column" if len(group) == 1 else "Columns"
            raise ValueError(f"{kind} {listed([samples.names[i] for i in group])}: {error}") from None
        extent = np.log10([axis.unit, *np.maximum(np.abs(ends), axis.unit)])
        if axis.powers is not None and np.any(2 * degrees_of_terms * np.abs(extent) > _MOST_DIGITS):
            raise ValueError(
                f"Column {samples.names[first]!r} has values around {max(map(abs, ends)):.2g} with a spread of "
                f"{axis.unit:.2g}, whose powers of degree {degrees_of_terms} are beyond the range of numbers. "
                "Multiply it by a constant."
            )
        axes |= dict.fromkeys(group, axis)
    return [axes[i] for i in range(p)]


def _tied_variables(spec: Spec, p: int) -> list[list[int]]:
    """Variables that share an axis: those of terms that share a parameter."""
    if spec.keys is None or spec.ties is None:
        return [[i] for i in range(p)]
    count, first = np.bincount(spec.ties), dict[int, int]()
    pairs = [
        (first.setdefault(tie, key[0]), i)
        for key, tie in zip(spec.keys, spec.ties, strict=True)
        if count[tie] > 1
        for i in key
    ]
    graph = coo_array((np.ones(len(pairs)), np.reshape(pairs, (-1, 2)).T), shape=(p, p))
    label = connected_components(graph, directed=False)[1]
    return [np.flatnonzero(label == k).tolist() for k in range(label.max() + 1)]


def check_columns(samples: Samples, facts: Sequence[ColumnFacts], spec: Spec, penalty: Penalty | None) -> None:
    """An error for columns that have no density, or that others determine."""
    if samples.n_rows == 1:
        raise ValueError("X has 1 sample (n_samples = 1), from which no density can be estimated. Use more rows.")
    for fact, support in zip(facts, spec.supports, strict=True):
        if fact.constant:
            raise ValueError(f"Column {fact.name!r} is constant, so its density does not exist. Drop it.")
        if len(fact.values) == 2 and support == "line":
            low, high = fact.values
            raise ValueError(
                f"Column {fact.name!r} has two values, {low:g} and {high:g}, and so no density on the line. "
                f"Use support={{{fact.name!r}: 'values'}} or drop it."
            )
    few = samples.n_rows <= len(samples.names)
    if spec.ties is not None or (penalty is not None and (penalty.decides or (few and penalty.selects))):
        return
    if few:
        raise ValueError(
            f"{samples.n_rows} rows are too few for {len(samples.names)} columns: each column is then a sum of the "
            "others. Use more rows, fewer columns, or penalty=Ridge('cv') or L1()."
        )
    copies = dependent_columns(samples)
    if copies:
        first = "; ".join(f"column {name!r} is a sum or copy of {listed(of)}" for name, of in list(copies.items())[:5])
        more = f"; and {len(copies) - 5} more columns are" if len(copies) > 5 else ""
        raise ValueError(
            f"In these data {first}{more}. Interactions of such columns cannot be identified. "
            "Drop them, or use PseudoLikelihood(penalty=Ridge('cv'))."
        )


def check_terms(terms: Terms, samples: Samples, penalty: Penalty | None) -> None:
    """An error where the rows cannot tell the terms apart."""
    condition = terms.condition()
    if condition > _MOST_CONDITION:
        raise ValueError(
            "Terms without their lower degrees are nearly the same this far from zero "
            f"(condition number {condition:.0e}), so that they cannot be told apart. "
            "Include the lower degrees, or shift the columns toward zero."
        )
    if penalty is None and terms.rows_per_unknown(samples.n) < 1:
        raise ValueError(
            f"{samples.n_rows:,} rows are too few for {terms.m:,} terms per variable without a penalty. "
            "Use penalty='weak' (without consensus and PowerReference), a lower degree, or more rows."
        )
    if terms.copies > 1 or (penalty is not None and penalty.decides):
        return
    same = dependent_terms(terms, samples.kept.X, samples.names)
    if same:
        raise ValueError(
            f"In these data the terms {listed(same)} are constant or sums of lower terms of the same columns, so they "
            "cannot be identified. Drop them (basis=), or use PseudoLikelihood(penalty=Ridge('cv'))."
        )
