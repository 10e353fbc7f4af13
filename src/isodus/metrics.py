"""How well a structure was found, against a known one; and which interactions of a model are too weak to count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from .checks import distinct_names, is_index
from .model import PolynomialModel, as_model
from .significance import block, check_level, p_values, q_values, width

if TYPE_CHECKING:
    import networkx

__all__ = ["StructureComparison", "compare_structures", "normalized_couplings", "partial_correlations", "threshold"]

Level = Literal["hyperedges", "terms", "graph"]

_CALLED = {"hyperedges": "hyperedges", "terms": "terms", "graph": "edges"}


@dataclass(frozen=True, repr=False)
class StructureComparison:
    """A found structure beside a known one; `compare_structures` makes it.

    Attributes
    ----------
    level : str
        What was compared: "hyperedges", "terms" or "graph".
    precision, recall, f1 : float
        hits / found, hits / true, and 2 hits / (found + true). Of nothing, everything is right: precision is 1 where
        nothing was found, recall is 1 where there was nothing to find, F1 is 1 where both are so.
    exact : bool
        Whether the two are the same.
    found, true : int
        How many there are in the found structure and in the known one.
    missed, added : list of tuples
        What only the known structure has, and what only the found one has; small ones first.
    by_order : dict
        (hits, missed, added) by order, the number of distinct variables.
    """

    level: str
    precision: float
    recall: float
    f1: float
    exact: bool
    found: int
    true: int
    missed: list[tuple[Any, ...]]
    added: list[tuple[Any, ...]]
    by_order: dict[int, tuple[int, int, int]]

    def __repr__(self) -> str:
        return (
            f"StructureComparison: {self.true - len(self.missed)} of {self.true} {_CALLED[self.level]} found, "
            f"{len(self.added)} added{'; exact' if self.exact else ''}; "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, F1 {self.f1:.3f}"
        )


def compare_structures(found: Any, truth: Any, *, level: Level = "hyperedges") -> StructureComparison:
    """What of a known structure was found, and what was found beside it.

    Parameters
    ----------
    found, truth : PolynomialModel, networkx.Graph, matrix, mapping, or iterable of tuples
        Zeros do not count. Of a model, terms count whose parameter in standardised variables is not zero; of a matrix
        (symmetric: an array, a sparse matrix, or a DataFrame with names), entries off the diagonal that are not; of
        a graph, edges, unless they have a "weight" of zero; of a mapping such as ``model.to_dict()``, keys whose value
        is not zero. Tuples, and the keys, hold variables by index or name: (0, 1), ("a", "b").
    level : {"hyperedges", "terms", "graph"}
        Sets of variables that share a term, whatever their powers; or terms themselves, (0, 0, 1) for x0²·x1, with
        those of one variable (models, mappings and tuples only); or pairs of variables that share a term. Terms of one
        variable are no interactions: all but "terms" ignore them.

    Returns
    -------
    StructureComparison
        With names, if a side knows them (a model, a DataFrame): indices on the other side are positions among them.
        With two such sides variables are matched by name, in whatever order. If no side knows names, both must use
        indices, or both names.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> from isodus.metrics import compare_structures
    >>> theta = {(0, 0): 1.0, (1, 1): 1.0, (2, 2): 1.0, (0, 1): 0.3, (1, 2): 0.0}
    >>> model = PolynomialModel.from_dict(theta, names=["a", "b", "c"])
    >>> result = compare_structures(model, [(0, 1), ("b", "c")])
    >>> result
    StructureComparison: 1 of 2 hyperedges found, 0 added; precision 1.000, recall 0.500, F1 0.667
    >>> result.missed
    [('b', 'c')]
    """
    if level not in _CALLED:
        raise ValueError(f'level must be "hyperedges", "terms" or "graph", not {level!r}')
    sides = {"found": _read(found, "found", level), "truth": _read(truth, "truth", level)}
    names, size = _variables(sides["found"], sides["truth"])
    left, right = (_elements(_placed(side, names, size, name), level) for name, side in sides.items())
    _one_kind(left | right, size)
    hits, missed, added = left & right, right - left, left - right
    orders = sorted({len(set(element)) for element in left | right})
    by_order = {
        q: tuple(sum(len(set(element)) == q for element in group) for group in (hits, missed, added)) for q in orders
    }
    return StructureComparison(
        level,
        len(hits) / len(left) if left else 1.0,
        len(hits) / len(right) if right else 1.0,
        2 * len(hits) / (len(left) + len(right)) if left or right else 1.0,
        left == right,
        len(left),
        len(right),
        _called(missed, names),
        _called(added, names),
        by_order,  # type: ignore[arg-type]
    )


class _Structure(NamedTuple):
    """Terms as they were given; the names of all variables, and how many there are, where that is known."""

    terms: list[tuple[Any, ...]]
    names: tuple[str, ...] | None = None
    size: int | None = None


def _read(structure: Any, side: str, level: str) -> _Structure:
    import networkx

    if isinstance(structure, PolynomialModel) or hasattr(structure, "model_"):
        return _of_model(as_model(structure, side))
    graphical = isinstance(structure, np.ndarray | pd.DataFrame | networkx.Graph) or issparse(structure)
    if graphical and level == "terms":
        raise ValueError(f'{side} has pairs of variables, no terms: compare at level="hyperedges" or "graph"')
    if isinstance(structure, networkx.Graph):
        return _of_graph(structure, side)
    if graphical:
        return _of_matrix(structure, side)
    if isinstance(structure, Mapping):
        bad = [value for value in structure.values() if not isinstance(value, Real) or not isfinite(value)]
        if bad:
            raise ValueError(f"{side} maps a term to {bad[0]!r}; parameters must be finite numbers")
        structure = [term for term, value in structure.items() if value != 0]
    if isinstance(structure, str) or not isinstance(structure, Iterable):
        raise ValueError(
            f"{side} must be a PolynomialModel, a fitted estimator, a networkx graph, a symmetric matrix or "
            f"tuples of variables such as [(0, 1), (1, 2)], not {structure!r}"
        )
    terms = list(structure)
    odd = [term for term in terms if not isinstance(term, tuple | list | set | frozenset) or not term]
    if odd:
        raise ValueError(f"{side} has {odd[0]!r} for a term; a term is a tuple of variables such as (0, 1)")
    return _Structure([tuple(term) for term in terms])


def _of_model(model: PolynomialModel) -> _Structure:
    at = np.flatnonzero(model.theta)
    rows = zip(model.basis.factors[at].tolist(), model.basis.degrees[at].tolist(), strict=True)
    terms = [tuple(model.names[v] for v in row[:degree]) for row, degree in rows]
    return _Structure(terms, model.names, len(model.names))


def _of_graph(graph: networkx.Graph, side: str) -> _Structure:
    """Its nodes need not be all variables: those without an edge are often left out."""
    if graph.is_directed():
        raise ValueError(f"{side} is a directed graph, and interactions have no direction: use {side}.to_undirected()")
    return _Structure([(a, b) for a, b, weight in graph.edges(data="weight", default=1) if weight != 0])


def _of_matrix(matrix: Any, side: str) -> _Structure:
    names = _names(matrix, side) if isinstance(matrix, pd.DataFrame) else None
    values = matrix.toarray() if issparse(matrix) else np.asarray(matrix)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(
            f"{side} has shape {values.shape}; a matrix must be square. Give edges as tuples: [(0, 1), (1, 2)]"
        )
    if values.dtype.kind not in "biuf" or not np.all(np.isfinite(values)):
        raise ValueError(f"{side} must be a matrix of finite numbers")
    there = values != 0
    uneven = (there != there.T) | ~np.isclose(values, values.T)
    if uneven.any():
        i, j = np.argwhere(uneven)[0].tolist()
        raise ValueError(f"{side} is not symmetric: {values[i, j]} at ({i}, {j}), {values[j, i]} at ({j}, {i})")
    pairs = np.argwhere(np.triu(there, 1)).tolist()
    terms = [(i, j) if names is None else (names[i], names[j]) for i, j in pairs]
    return _Structure(terms, names, len(values))


def _names(frame: pd.DataFrame, side: str) -> tuple[str, ...] | None:
    """The columns, if they have names; rows must have the same, or none."""
    if isinstance(frame.columns, pd.RangeIndex):
        return None
    if not isinstance(frame.index, pd.RangeIndex) and list(frame.index) != list(frame.columns):
        raise ValueError(f"the rows and columns of {side} have different names, or the same in another order")
    return distinct_names(list(frame.columns), len(frame.columns))


def _variables(found: _Structure, truth: _Structure) -> tuple[tuple[str, ...] | None, int | None]:
    """The names of all variables and their number, as far as a side knows them."""
    if found.size is not None and truth.size is not None and found.size != truth.size:
        raise ValueError(f"found has {found.size} variables and truth has {truth.size}")
    if found.names and truth.names and set(found.names) != set(truth.names):
        others = sorted(set(truth.names) - set(found.names))
        raise ValueError(
            f"truth has the variable {others[0]!r}, found has {_listed(found.names)}. To match variables by position "
            "give one side by index, as model.to_dict() does"
        )
    return found.names or truth.names, found.size if found.size is not None else truth.size


def _placed(
    structure: _Structure, names: tuple[str, ...] | None, size: int | None, side: str
) -> list[tuple[int | str, ...]]:
    """Terms whose variables are positions; or names, where it is not known where these stand."""
    place = {name: k for k, name in enumerate(names or ())}

    def position(variable: Any) -> int | str:
        if isinstance(variable, str):
            if names is not None and variable not in place:
                raise ValueError(f"{side} has an unknown variable {variable!r}; there are {_listed(names)}")
            return place.get(variable, variable)
        if not is_index(variable):
            raise ValueError(f"{side} has {variable!r} for a variable; variables are names, or indices from 0")
        if size is not None and variable >= size:
            raise ValueError(f"{side} has an unknown variable {variable}; there are {size}, 0 to {size - 1}")
        return int(variable)

    return [tuple(position(variable) for variable in term) for term in structure.terms]


def _elements(terms: Iterable[tuple[Any, ...]], level: str) -> set[tuple[Any, ...]]:
    """What is compared, each in one form."""
    if level == "terms":
        return {tuple(sorted(term, key=_place)) for term in terms}
    edges = {tuple(sorted(set(term), key=_place)) for term in terms if len(set(term)) > 1}
    return edges if level == "hyperedges" else {pair for edge in edges for pair in combinations(edge, 2)}


def _place(variable: int | str) -> tuple[bool, int | str]:
    """A key to sort by, whatever is there."""
    return isinstance(variable, str), variable


def _one_kind(elements: Iterable[tuple[Any, ...]], size: int | None) -> None:
    """Names and indices cannot be matched by themselves; a matrix has indices."""
    kinds = {type(variable) for element in elements for variable in element} | ({int} if size is not None else set())
    if len(kinds) > 1:
        raise ValueError(
            "some variables are given by name and some by index: one side must know both, as a PolynomialModel or a "
            "DataFrame does"
        )


def _called(elements: Iterable[tuple[Any, ...]], names: tuple[str, ...] | None) -> list[tuple[Any, ...]]:
    ordered = sorted(elements, key=lambda element: (len(element), element))
    return ordered if names is None else [tuple(names[v] for v in element) for element in ordered]


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def normalized_couplings(model: Any) -> dict[tuple[str, str], float]:
    """θ_(i,j) / (2 √(θ_(i,i) θ_(j,j))) of every pair of a model of degree 2, zeros too: minus the partial correlation.

    θ_(i,i) multiplies x_i², so this is Λ_ij/√(Λ_ii Λ_jj) of the precision matrix Λ; it does not depend on units.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> from isodus.metrics import normalized_couplings
    >>> normalized_couplings(PolynomialModel.from_dict({(0, 0): 2.0, (1, 1): 0.5, (0, 1): 0.6}))
    {('x0', 'x1'): 0.3}
    """
    model = as_model(model, "model")
    at, values = _couplings(model)
    pairs = model.basis.factors[at].tolist()
    return {(model.names[i], model.names[j]): value for (i, j), value in zip(pairs, values.tolist(), strict=True)}


def partial_correlations(model: Any, *, level: float = 0.95, correction: Literal["bh", "by"] = "bh") -> pd.DataFrame:
    """A row a pair of a model of degree 2: its partial correlation, interval, p-value and false discovery rate.

    model: a `PolynomialModel`, or a fitted estimator.
    Errors by the delta method from the covariance of the parameters; intervals and tests on the scale of atanh, where
    they are symmetric and stay inside (−1, 1). Of a Gaussian all pairs of which were fitted the standard error is
    (1 − r²)/√n, as in the textbook; of other data it is not, and this is right all the same.

    Examples
    --------
    >>> from isodus import PseudoLikelihood
    >>> from isodus.datasets import regular_gaussian
    >>> from isodus.metrics import partial_correlations
    >>> est = PseudoLikelihood(degree=2).fit(regular_gaussian(10, rng=0).sample(5000, rng=0))
    >>> int((partial_correlations(est.model_)["q_value"] < 0.05).sum())  # a graph with 15 edges
    15
    """
    model = as_model(model, "model")
    at, couplings = _couplings(replace(model, theta=model.estimate, moved_from=None))
    if model.covariance is None:
        raise ValueError("the model has no standard errors: it was not learned, or learned without")
    df = model.error_df
    reach = width(None, check_level(level), df=df)
    r, pairs, theta = -couplings, model.basis.factors[at], model.estimate
    if np.any(np.abs(r) >= 1):
        i, j = pairs[int(np.argmax(np.abs(r)))]
        raise ValueError(f"{model.names[i]} and {model.names[j]}: the parameters are those of no Gaussian")
    own = model.basis.positions(np.repeat(np.arange(model.basis.n_variables)[:, None], 2, axis=1))
    variance = np.empty(len(at))
    for k, (place, (i, j)) in enumerate(zip(at, pairs, strict=True)):
        terms = np.array([place, own[i], own[j]])
        slope = np.array([0.0, *(-r[k] / (2 * theta[terms[1:]]))])
        slope[0] = -1 / (2 * np.sqrt(theta[own[i]] * theta[own[j]]))
        C = block(model.covariance, terms)
        variance[k] = slope @ C @ slope
    errors = np.sqrt(variance)
    z, spread = np.arctanh(r), errors / (1 - r * r)
    p = p_values(z, spread, df)
    return pd.DataFrame(
        {
            "a": [model.names[i] for i, _ in pairs],
            "b": [model.names[j] for _, j in pairs],
            "partial_correlation": r,
            "stderr": errors,
            "ci_low": np.tanh(z - reach * spread),
            "ci_high": np.tanh(z + reach * spread),
            "p_value": p,
            "q_value": q_values(p, correction),
        }
    )


def _couplings(model: PolynomialModel) -> tuple[np.ndarray, np.ndarray]:
    """The places of the pairs in the basis, and their normalised couplings."""
    basis = model.basis
    if basis.degree != 2:
        raise ValueError(
            f"a model of degree {basis.degree} has no normalised couplings; fit with degree=2 for a Gaussian"
        )
    at = np.flatnonzero(basis.orders == 2)
    own = np.zeros(basis.n_variables)
    alone = (basis.degrees == 2) & (basis.orders == 1)
    own[basis.factors[alone, 0]] = model.theta[alone]
    pairs = basis.factors[at]
    bad = np.unique(pairs[own[pairs] <= 0])
    if len(bad):
        name = model.names[bad[0]]
        raise ValueError(f"the parameter of {name}^2 is {own[bad[0]]:.3g}; it must be positive to normalise by it")
    return at, model.theta[at] / (2 * np.sqrt(own[pairs[:, 0]] * own[pairs[:, 1]]))


def threshold(
    model: Any,
    *,
    value: float | None = None,
    coupling: float | None = None,
    significance: float | None = None,
) -> PolynomialModel:
    """The model without its weak interactions: their parameters are zero, terms of one variable stay as they are.

    Its covariance stays that of the estimates, and a note in its settings tells how many terms went. The density of
    what is left need not exist: `PolynomialModel.integrability` tells.

    Parameters
    ----------
    value : float, optional
        Interactions go whose parameter in standardised variables is smaller than this, whatever its sign.
    coupling : float, optional
        Pairs of a model of degree 2 go whose normalised coupling is smaller, whatever its sign: the paper's κ/2.
    significance : float, optional
        Interactions go whose two-sided p-value, of θ over its standard error by the normal distribution, is larger.
        Each is tested by itself: among many terms that are zero in truth, this share stays.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> from isodus.metrics import threshold
    >>> model = PolynomialModel.from_dict({(0, 0): 1, (1, 1): 1, (2, 2): 1, (0, 1): 0.3, (1, 2): 0.1})
    >>> threshold(model, value=0.2).hyperedges()
    {('x0', 'x1'): 0.3}
    """
    given = {"value": value, "coupling": coupling, "significance": significance}
    chosen = {name: number for name, number in given.items() if number is not None}
    if len(chosen) != 1:
        raise ValueError(f"give one of value, coupling and significance, not {' and '.join(chosen) or 'none'}")
    ((name, limit),) = chosen.items()
    if isinstance(limit, bool) or not isinstance(limit, Real) or not isfinite(limit) or limit < 0:
        raise ValueError(f"{name} must be a number of at least zero, not {limit!r}")
    model = as_model(model, "model")
    interactions = (model.basis.orders > 1) & (model.theta != 0)
    weak, reason = {"value": _small, "coupling": _loose, "significance": _doubtful}[name](model, float(limit))
    gone = interactions & weak
    note = f"{gone.sum():,} of {interactions.sum():,} interactions were set to zero: {reason}"
    settings = dict(model.settings) | {"notes": [*model.settings.get("notes", []), note]}
    theta = np.where(gone, 0.0, model.theta)
    return replace(model, theta=theta, moved_from=model.estimate, settings=settings)


def _small(model: PolynomialModel, limit: float) -> tuple[np.ndarray, str]:
    return np.abs(model.theta) < limit, f"standardised parameters below {limit:g}"


def _loose(model: PolynomialModel, limit: float) -> tuple[np.ndarray, str]:
    at, values = _couplings(model)
    weak = np.zeros(len(model.basis), dtype=bool)
    weak[at] = np.abs(values) < limit
    return weak, f"normalised couplings below {limit:g}"


def _doubtful(model: PolynomialModel, limit: float) -> tuple[np.ndarray, str]:
    if not 0 < limit < 1:
        raise ValueError(f"significance must lie between 0 and 1, not {limit!r}")
    if model.covariance is None:
        raise ValueError("the model has no standard errors, so no p-values: it was not learned, or learned without")
    stderr = model.stderr("standardized")
    asked = (model.basis.orders > 1) & (model.theta != 0)
    without = np.flatnonzero(asked & np.isnan(stderr))
    if len(without):
        terms = ", ".join(model.term_name(model.basis.terms[k]) for k in without[:8])
        more = ", …" if len(without) > 8 else ""
        raise ValueError(f"no standard error, so no p-value, of {terms}{more}; use value, or leave these terms out")
    weak = np.zeros(len(model.theta), dtype=bool)
    weak[asked] = p_values(model.estimate[asked], stderr[asked], model.error_df) > limit
    return weak, f"p-values above {limit:g}"
