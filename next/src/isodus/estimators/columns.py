"""From columns to axes and terms; what ends a fit is named here, before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.checks import one_of, positive_integer
from .._core.notes import Note
from ..axes import Axis
from ..axes.choose import Scale, Support, choose_axis, takes
from ..data import ColumnFacts, Samples
from ..fit.rank import dependent_columns, dependent_terms
from ..terms import Key, MonomialBasis, Terms, count_up_to, keys_up_to

__all__ = ["Spec", "check_columns", "column_notes", "make_terms"]

Array = np.ndarray
_MOST_TERMS = 20_000
_MOST_CONDITION = 3e8  # of T: the Hessian has its square, which float64 holds up to here
_PILE, _PILED_ROWS = 0.05, 5  # share and number of equal values
_NEAR = 1e-3  # of a column's variance: what the others leave of a near-copy


class Spec(NamedTuple):
    """Which axes and terms a user asked for."""

    degree: int
    max_order: int
    min_degree: int
    basis: MonomialBasis | Sequence[Sequence[int | str]] | None
    support: Support | Mapping[Any, Support]
    scale: Scale

    def checked(self) -> Spec:
        """Itself, if every argument means something."""
        degree = positive_integer(self.degree, "degree")
        least = positive_integer(self.min_degree, "min_degree")
        if least > degree:
            raise ValueError(f"min_degree is {least}, above degree, {degree}, so no term is left. Lower min_degree.")
        one_of(self.scale, ("robust", "center", "spread", "cdf", None), "scale")
        basis = self.basis
        if basis is not None and not isinstance(basis, MonomialBasis):
            basis = MonomialBasis(basis)
        return self._replace(
            degree=degree, max_order=positive_integer(self.max_order, "max_order"), min_degree=least, basis=basis
        )

    def supports(self, names: Sequence[str]) -> list[Support]:
        """The support of each column."""
        if not isinstance(self.support, Mapping):
            return [_support(self.support, None)] * len(names)
        found: list[Support] = ["line"] * len(names)
        for key, support in self.support.items():
            if str(key) in names:  # labels of frames that are numbers, too
                place = list(names).index(str(key))
            elif isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names):
                place = key
            else:
                raise ValueError(
                    f"support names a column {key!r}, which X does not have. Its columns: {_listed(names)}."
                )
            found[place] = _support(support, names[place])
        return found

    def keys(self, names: Sequence[str]) -> list[Key] | None:
        """The terms of a basis; None where degree and order choose them."""
        return self.basis.keys(names) if isinstance(self.basis, MonomialBasis) else None

    @property
    def ties(self) -> list[int] | None:
        """Which terms of a basis share a parameter."""
        return self.basis.ties if isinstance(self.basis, MonomialBasis) else None


def _support(support: Any, name: str | None) -> Support:
    if not takes(support):
        where = "" if name is None else f" of column {name!r}"
        raise ValueError(
            f"support{where} is {support!r}. Use 'line', 'positive', 'circle', 'values', 'spin', two ends such as "
            "(0, 1), or an axis."
        )
    return support


def check_columns(samples: Samples, facts: Sequence[ColumnFacts], spec: Spec, ridge: bool) -> None:
    """An error for columns that have no density, or that others determine.

    ridge: whether a user's ridge decides between columns that the data cannot tell apart.
    """
    supports = spec.supports(samples.names)
    if samples.n_rows == 1:
        raise ValueError("X has 1 sample (n_samples = 1), from which no density can be estimated. Use more rows.")
    for fact, support in zip(facts, supports, strict=True):
        if fact.constant:
            raise ValueError(f"Column {fact.name!r} is constant, so its density does not exist. Drop it.")
        if fact.values is not None and len(fact.values) == 2 and support == "line":
            low, high = fact.values
            raise ValueError(
                f"Column {fact.name!r} has two values, {low:g} and {high:g}, and so no density on the line. "
                f"Use support={{{fact.name!r}: 'values'}} or drop it."
            )
    if ridge or spec.ties is not None:
        return
    if samples.n_rows <= len(samples.names):
        raise ValueError(
            f"{samples.n_rows} rows are too few for {len(samples.names)} columns: each column is then a sum of the "
            "others. Use more rows, fewer columns, or penalty=Ridge('cv')."
        )
    copies = dependent_columns(*samples.kept, samples.names)
    if copies:
        said = [f"column {name!r} is a sum or copy of {_listed(of)}" for name, of in list(copies.items())[:5]]
        more = f"; and {len(copies) - 5} more columns are" if len(copies) > 5 else ""
        raise ValueError(
            f"In these data {'; '.join(said)}{more}. Interactions of such columns cannot be identified. "
            "Drop them, or use Ridge('cv')."
        )


def make_axes(
    samples: Samples, spec: Spec, keys: Sequence[Key] | None, known: Sequence[Axis] | None = None
) -> list[Axis]:
    """The axis of each column; variables whose terms are tied share one, made of their pooled rows.

    known: axes of other rows, of which those of discrete variables are kept: their values are no estimate.
    """
    supports, p = spec.supports(samples.names), len(samples.names)
    degrees = [spec.degree] * p if keys is None else [max([1, *(key.count(i) for key in keys)]) for i in range(p)]
    gaussian = _is_gaussian(spec, keys, p)
    X, weight = samples.kept
    axes: list[Axis | None] = [None] * p
    for group in _tied_variables(keys, spec.ties, p):
        if known is not None and not known[group[0]].continuous:
            for i in group:
                axes[i] = known[i]
            continue
        x = X[:, group[0]] if len(group) == 1 else X[:, group].T.ravel()
        w = weight if len(group) == 1 else np.tile(weight, len(group))
        ends = (float(samples.minima[group].min()), float(samples.maxima[group].max()))
        degree = max(degrees[i] for i in group)
        try:
            axis = choose_axis(x, degree, supports[group[0]], spec.scale, w, ends, gaussian)
        except ValueError as error:
            shown = f"Column {samples.names[group[0]]!r}" if len(group) == 1 else f"Columns {_named(samples, group)}"
            raise ValueError(f"{shown}: {error}") from None
        for i in group:
            axes[i] = axis
    return [axis for axis in axes if axis is not None]


def _is_gaussian(spec: Spec, keys: Sequence[Key] | None, p: int) -> bool:
    """Whether the terms are a Gaussian's, with the square of each variable among them."""
    if keys is None:
        return spec.degree == 2
    return max(map(len, keys)) <= 2 and {(i, i) for i in range(p)} <= set(keys)


def make_terms(samples: Samples, spec: Spec, axes: Sequence[Axis] | None = None) -> Terms:
    """Axes of the samples, and the terms on them. axes: see `known` of `make_axes`."""
    keys = spec.keys(samples.names)
    made = make_axes(samples, spec, keys, axes)
    size = (spec.degree, spec.max_order, spec.min_degree)
    count = count_up_to(made, *size) if keys is None else len(keys)
    if count == 0:
        raise ValueError("degree, min_degree and max_order leave no term. Raise degree or lower min_degree.")
    if count > _MOST_TERMS and spec.ties is None:
        raise ValueError(
            f"These are {count:,} terms, and their Hessian would take {8e-9 * count**2:,.0f} GB. "
            "Lower degree or max_order, or give the terms that matter as basis."
        )
    keys = keys_up_to(made, *size) if keys is None else keys
    _check_functions(keys, made, samples.names)
    return Terms(made, keys, spec.ties)


def check_terms(terms: Terms, samples: Samples, ridge: bool) -> None:
    """An error where the terms cannot be told apart."""
    condition = terms.condition()
    if condition > _MOST_CONDITION:
        raise ValueError(
            "Terms without their lower degrees are nearly the same this far from zero "
            f"(condition number {condition:.0e}), so that they cannot be told apart. "
            "Include the lower degrees, or shift the columns toward zero."
        )
    if ridge:
        return
    X = samples.kept.X
    phi = [axis.functions(x) for axis, x in zip(terms.axes, X.T, strict=True)]
    same = [] if terms.copies > 1 else dependent_terms(terms, X, phi, samples.names)
    if same:
        raise ValueError(
            f"In these data the terms {_listed(same)} are constant or sums of lower terms of the same columns, so they "
            "cannot be identified. Drop them (basis=), or use Ridge('cv')."
        )


def column_notes(samples: Samples, facts: Sequence[ColumnFacts], axes: Sequence[Axis]) -> list[Note]:
    """What users should know of their columns: few values, piles, near-copies."""
    notes = []
    for fact, axis in zip(facts, axes, strict=True):
        if not axis.continuous:
            continue
        if fact.values is not None and 3 * len(fact.values) <= samples.n_rows:
            count = len(fact.values)
            text = (
                f"Column {fact.name!r} has only {count} values and is taken for continuous. "
                f"If it is discrete, use support={{{fact.name!r}: 'values'}}; if values were rounded, add jitter."
            )
            notes.append(Note("few values", "warning", (fact.name,), {"values": count}, text))
        elif fact.share > _PILE and fact.share * samples.n >= _PILED_ROWS:
            text = (
                f"Column {fact.name!r} has the value {fact.mode:g} in {100 * fact.share:.0f} % of its rows. "
                "A continuous density only smooths such a pile, which censoring or rounding leaves behind."
            )
            notes.append(Note("pile", "info", (fact.name,), {"value": fact.mode, "share": fact.share}, text))
    return [*notes, *_near_copies(samples)]


def _near_copies(samples: Samples) -> list[Note]:
    """Columns of which the others leave less than a thousandth of the variance."""
    X, weight = samples.kept
    if samples.n_rows <= len(samples.names):
        return []
    share = weight / weight.sum()
    Z = X - share @ X
    size = np.sqrt(share @ Z**2)
    R = (Z * share[:, None]).T @ Z / size / size[:, None]
    if len(R) < 2 or np.linalg.eigvalsh(R)[0] < 1e-13:
        return []
    left = 1 / np.diag(np.linalg.inv(R))
    near = tuple(name for name, rest in zip(samples.names, left, strict=True) if rest < _NEAR)
    if not near:
        return []
    text = (
        f"Columns {_listed(near)} are nearly determined by other columns. With few rows the ridge shrinks their terms "
        "visibly, and their standard errors are large. Drop near-copies if their interaction is not the question."
    )
    return [Note("near-copies", "info", near, {"variance left": float(left.min())}, text)]


def _check_functions(keys: Sequence[Key], axes: Sequence[Axis], names: Sequence[str]) -> None:
    """An error for a term of a function that its axis does not have."""
    for key in keys:
        for i in set(key):
            there = len(axes[i].degrees)
            if key.count(i) > there:
                raise ValueError(
                    f"The term {key} has function {key.count(i)} of column {names[i]!r}, which has {there} "
                    "functions. Lower its degree."
                )


def _tied_variables(keys: Sequence[Key] | None, ties: Sequence[int] | None, p: int) -> list[list[int]]:
    """Variables that share an axis: those of terms that share a parameter."""
    parent = list(range(p))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    if ties is not None and keys is not None:
        first: dict[int, Key] = {}
        for key, tie in zip(keys, ties, strict=True):
            other = first.setdefault(tie, key)
            if other is not key:
                for i in (*key, *other[1:]):
                    parent[root(i)] = root(other[0])
    groups: dict[int, list[int]] = {}
    for i in range(p):
        groups.setdefault(root(i), []).append(i)
    return list(groups.values())


def _named(samples: Samples, group: Sequence[int]) -> str:
    return _listed([samples.names[i] for i in group])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
