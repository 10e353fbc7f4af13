"""From what a user gives to samples, terms and units that a fit can trust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import effective_n_jobs

from .arrays import Array, available_memory, namespace, on_device, to_host
from .basis import MonomialBasis, n_monomials
from .blocks import Blocked
from .checks import warn
from .dependence import INDEPENDENT, Dependence, check_groups
from .samples import check_variation, no_variation, ordered, standardisation
from .spaces import PLAIN, Space, Spaces, as_spaces, check_inside
from .suitability import check_relations, check_suitability
from .validation import (
    check_blocked,
    check_counts,
    check_dependence,
    check_powers,
    check_samples,
    check_weight,
    positive_integer,
    true_or_false,
)

__all__ = ["Setting", "prepare"]

_FEW_GROUPS = 30
_TURNED = 0.1  # of the angles, beyond two turns, from which on they may be degrees
_LARGE = 0.1  # minutes or GB from which a size is worth telling


class Setting(NamedTuple):
    """Validated samples with their terms and units.

    X: (n, p), or `Blocked`, with the weights of some rows; weight: (n,) or None; n: the sum of the weights; centre,
    width: a robust location and scale of every variable; location, scale: those of them that are used for
    y = (x − location)/scale, in which the basis is written. how: samples depend on one another. said: what is worth
    knowing.
    """

    X: Any
    weight: Array | None
    n: float
    names: list[str]
    basis: MonomialBasis
    centre: np.ndarray
    width: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    how: Dependence = INDEPENDENT
    said: tuple[str, ...] = ()


def prepare(
    estimator: Any,
    X: Array,
    sample_weight: Array | None,
    groups: Any = None,
    *,
    units: bool = True,
    penalised: bool = False,
) -> Setting:
    """Check samples, weights, terms and sizes of an estimator's fit, and find its units.

    units: whether centre and width are wanted even if the estimator uses neither. penalised: whether most parameters
    will be zero, so that they may be more than the samples.
    """
    degree = _check_terms(estimator)
    for name in ("center", "scale"):
        true_or_false(getattr(estimator, name), name)
    effective_n_jobs(estimator.n_jobs)
    blocked = check_blocked(estimator, X, sample_weight)
    if blocked is not None and blocked.few:
        X, sample_weight = blocked.gathered()
        X = X if estimator._columns is None else pd.DataFrame(X, columns=estimator._columns)
        blocked = None
    if blocked is None:
        X, names = check_samples(estimator, X, single=True)
        how = check_dependence(estimator.dependence, estimator.weights, groups, X.shape[0])
        weight, n = check_weight(sample_weight, X, how.importance)
        spaces = _spaces(estimator, names)
        check_inside(X, names, spaces)
        in_order = ordered(X, weight) if spaces is None else None
        _check_suitability(X, weight, names, spaces, in_order)
        if weight is not None and bool(namespace(X).any(weight == 0)):  # what has no weight is not there
            there = on_device(np.flatnonzero(to_host(weight)), X)
            X, weight = namespace(X).take(X, there, axis=0), namespace(X).take(weight, there)
            how = how if how.groups is None else how._replace(groups=how.groups[to_host(there)])
        check_variation(X, names)
        some = X
    else:
        X, names, how, n, spaces = _check_blocked(estimator, blocked, groups)
        some, weight, in_order = blocked.kept, blocked.kept_weight, None
    _question_angles(some, spaces, names)
    if spaces is None:
        check_relations(some, names, degree, in_order, penalised)
    elif ordinary := _ordinary(spaces):
        check_relations(_columns(some, ordinary), [names[i] for i in ordinary], degree, None, penalised)
    _check_how(how, weight)
    _check_size(estimator, X.shape[1], X.shape[0], penalised, spaces)
    basis, said = _basis(estimator, X.shape[1], spaces)
    if estimator.basis is not None:
        _check_all_used(basis, names)
    if basis.tied is not None and penalised:
        raise ValueError("terms that share a parameter (tied) are not chosen one by one: leave l1 = 0")
    centre, width = np.zeros(len(names)), np.ones(len(names))
    if (units or estimator.center or estimator.scale) and spaces is None:
        centre, width = standardisation(some, weight, names, np.random.default_rng(0), in_order)
    elif units or estimator.center or estimator.scale:
        centre, width = _middles(some, weight, names, spaces or ())
    basis, location, scale = _in_units(estimator, basis, spaces, centre, width)
    if penalised:
        check_powers(X, location, scale, basis.degree, names)
    return Setting(X, weight, n, names, basis, centre, width, location, scale, how, said)


def _check_how(how: Dependence, weight: Array | None) -> None:
    """Warn of few groups, and refuse counts of the rows of a series."""
    if how.groups is not None and (many := check_groups(how.groups)) < _FEW_GROUPS:
        warn(
            f"standard errors from {many} groups are themselves uncertain, and too small on average; "
            f"{_FEW_GROUPS} groups or more are wanted",
        )
    if how.lags is not None and weight is not None and not how.importance:
        raise ValueError("counts say nothing of when a row of a series was seen: repeat it in X, and leave weights out")


def _in_units(
    estimator: Any, basis: MonomialBasis, spaces: Spaces | None, centre: np.ndarray, width: np.ndarray
) -> tuple[MonomialBasis, np.ndarray, np.ndarray]:
    """The location and scale of y that the estimator asks for and the terms allow, and the basis written in y."""
    p = len(centre)
    location = centre if estimator.center and basis.closed_under_translation else np.zeros(p)
    scale = width if estimator.scale else np.ones(p)
    if spaces is not None:
        location, scale = np.where(_fixed(spaces), 0.0, location), np.where(_featured(spaces), 1.0, scale)
        each = zip(spaces, location, scale, strict=True)
        basis = basis.within(tuple(space.standardised(float(c), float(d)) for space, c, d in each))
    if basis.tied is not None:
        location, scale = np.zeros(p), _shared_scale(basis, scale)
    return basis, location, scale


def _spaces(estimator: Any, names: Sequence[str]) -> Spaces | None:
    """What variables are: as the estimator says, or its basis."""
    given = as_spaces(estimator.support, estimator.functions, estimator._columns or names)
    own = None if estimator.basis is None else estimator.basis.spaces
    if given is not None and own is not None:
        raise ValueError("the basis says where variables live already: leave out support and functions")
    spaces = given or own
    if spaces is not None and len(spaces) != len(names):
        return None  # which is said where sizes are checked
    on_line = [name for name, space in zip(names, spaces or (PLAIN,) * len(names), strict=True) if space == PLAIN]
    degree = estimator.degree if estimator.basis is None else estimator.basis.degree
    if on_line and degree % 2:
        where = "" if spaces is None else f", where {on_line[0]} lives"
        lower = f", or {degree - 1}" if degree > 1 else ""
        raise ValueError(
            f"degree={degree} is odd: exp(−x^{degree}) grows without bound on one side, so no density of that "
            f"degree exists on the real line{where}. Use degree={degree + 1}{lower}"
        )
    if spaces is not None and estimator._needs_slopes:
        _check_slopes(spaces, names)
    return spaces


def _check_slopes(spaces: Spaces, names: Sequence[str]) -> None:
    for name, (support, functions) in zip(names, spaces, strict=True):
        if support.values is not None:
            raise ValueError(
                f"score matching takes derivatives, and {name} has values that lie apart, {support}: use ISODUS or "
                "PseudoLikelihood"
            )
        if functions is not None and not hasattr(functions, "derivatives"):
            raise ValueError(
                f"score matching takes derivatives, and the functions of {name} ({type(functions).__name__}) have "
                "none: give them derivatives(x, s), or use ISODUS or PseudoLikelihood"
            )


def _basis(estimator: Any, p: int, spaces: Spaces | None) -> tuple[MonomialBasis, tuple[str, ...]]:
    """The terms, and what is to be said of those that were left out."""
    limits = dict(min_degree=estimator.min_degree, max_order=estimator.max_order)
    whole = estimator.basis or MonomialBasis(p, estimator.degree, **limits)
    if spaces is None:
        return whole, ()
    basis = whole.within(spaces)
    gone = len(whole) - len(basis)
    if not gone:
        return basis, ()
    left = f"{gone} term{'s are' if gone > 1 else ' is'} left out"
    return basis, (f"{left}: the values of the variables cannot tell such powers from lower ones",)


def _fixed(spaces: Spaces) -> np.ndarray:
    """Variables whose origin stays where it is."""
    return np.array([space.tabled for space in spaces])


def _featured(spaces: Spaces) -> np.ndarray:
    """Variables whose units stay as they are: their functions are of x."""
    return np.array([space.functions is not None for space in spaces])


def _ordinary(spaces: Spaces | None) -> list[int] | None:
    """Variables that are asked what powers of real numbers are asked; None for all."""
    return None if spaces is None else [i for i, space in enumerate(spaces) if not space.tabled]


def _check_suitability(
    X: Array,
    weight: Array | None,
    names: Sequence[str],
    spaces: Spaces | None,
    in_order: Array | None = None,
    numbers: np.ndarray | None = None,
) -> None:
    some = _ordinary(spaces)
    if some is None:
        check_suitability(X, weight, names, in_order, numbers)
        return
    assert spaces is not None
    for bounded in (False, True):
        here = [i for i in some if spaces[i].support.bounded is bounded]
        if here:
            # on a half line the energy of √x is what that of x is on the line
            low = np.array([spaces[i].support.low for i in here])
            part = _columns(X, here)
            if not bounded and np.isfinite(low).any():
                xp, ends = namespace(part), on_device(np.where(np.isfinite(low), low, 0.0), part)
                half = on_device(np.isfinite(low), part)
                part = xp.where(half, xp.sqrt(xp.maximum(part - ends, 0.0 * part)), part)
            check_suitability(part, weight, [names[i] for i in here], None, numbers, tails=not bounded)


def _columns(X: Array, some: Sequence[int]) -> Array:
    return namespace(X).take(X, on_device(np.array(some), X), axis=1)


def _question_angles(X: Array, spaces: Spaces | None, names: Sequence[str]) -> None:
    """Ask of angles of which many lie turns away whether they are degrees."""
    for i, (name, space) in enumerate(zip(names, spaces or (), strict=False)):
        if space.support.circle:
            share = float(np.mean(np.abs(to_host(X[:, i])) > 4 * np.pi))
            if share > _TURNED:
                warn(
                    f"{name}: angles are in radians, and {share:.0%} of its values lie beyond ±4π. Are they degrees? "
                    "Then give np.deg2rad of the column; if they count whole turns, all is well"
                )


def _middles(X: Array, weight: Array | None, names: Sequence[str], spaces: Spaces) -> tuple[np.ndarray, np.ndarray]:
    """Where each variable is, and how wide, as `standardisation` tells, or as its support does."""
    centre, width = np.zeros(len(names)), np.ones(len(names))
    some = [i for i, space in enumerate(spaces) if not space.tabled and not space.support.bounded]
    if some:
        found = standardisation(_columns(X, some), weight, [names[i] for i in some], np.random.default_rng(0))
        centre[some], width[some] = found
    for i, space in enumerate(spaces):
        low, high, values, _ = space.support
        if values is not None:
            width[i] = 2.0 ** np.ceil(np.log2(max(abs(low), abs(high))))  # so that values are exact in any units
        elif space.functions is None and space.support.bounded:
            centre[i], width[i] = low + (high - low) / 2, (high - low) / 2
        elif space.functions is None and np.isfinite(low):
            width[i] = max(width[i], abs(centre[i] - low) / 2)  # a few spreads from the end, where the density may be
            centre[i] = low
    return centre, width


def _shared_scale(basis: MonomialBasis, scale: np.ndarray) -> np.ndarray:
    """One scale for all variables, so that terms that share a parameter share it in any units; 1 where none can be."""
    assert basis.tied is not None
    low, high = (np.full(len(basis.tied.labels), fill) for fill in (np.iinfo(int).max, -1))
    np.minimum.at(low, basis.tied.codes, basis.degrees)
    np.maximum.at(high, basis.tied.codes, basis.degrees)
    alike = bool(np.all((low == high) | (high < 0)))
    return np.full_like(scale, float(np.median(scale)) if alike and basis.spaces is None else 1.0)


def _check_all_used(basis: MonomialBasis, names: Sequence[str]) -> None:
    used = np.bincount(basis.factors[basis.factors >= 0], minlength=len(names))
    unused = [name for name, count in zip(names, used, strict=True) if not count]
    if unused:
        raise ValueError(f"no term of the basis contains {', '.join(unused)}: drop the columns, or add terms")


def _check_blocked(
    estimator: Any, X: Blocked, groups: Any
) -> tuple[Blocked, list[str], Dependence, float, Spaces | None]:
    """What is asked of samples that are not in memory; suitability is judged by some of them."""
    if groups is not None:
        raise ValueError(
            "groups are for samples in memory: give sums or means of each group, or whole groups that fit in memory"
        )
    names, (n, _) = X.columns, X.shape
    if n < 2:
        raise ValueError(f"n_samples = {n}; a minimum of 2 is required")
    how = check_dependence(estimator.dependence, estimator.weights, None, n)
    if X.weighted and not how.importance:
        check_counts(X.total, n)
    spaces = _spaces(estimator, names)
    for name, space, low, high in zip(names, spaces or (), X.low, X.high, strict=False):
        if not np.all(_without_values(space).holds(np.array([low, high]))):
            raise ValueError(
                f"{name} lives on {space.support}, and its values go from {low:g} to {high:g}. Mend them, or give it "
                "another support"
            )
    check_inside(X.kept, names, spaces)
    _check_suitability(X.kept, X.kept_weight, names, spaces, numbers=X.kept_rows)
    constant = np.flatnonzero(X.low == X.high)
    if len(constant):
        raise no_variation([names[i] for i in constant])
    return X, names, how, X.total, spaces


def _without_values(space: Space) -> Space:
    return space._replace(support=space.support._replace(values=None))


def _check_terms(estimator: Any) -> int:
    if estimator.basis is not None and not isinstance(estimator.basis, MonomialBasis):
        raise ValueError(f"basis must be a MonomialBasis, not {type(estimator.basis).__name__}")
    if estimator.basis is None:
        positive_integer(estimator.min_degree, "min_degree")
        if estimator.max_order is not None:
            positive_integer(estimator.max_order, "max_order")
    degree = estimator.degree if estimator.basis is None else estimator.basis.degree
    if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree < 1:
        raise ValueError(f"degree must be an even integer of at least 2, not {degree!r}")
    return int(degree)


def _check_size(estimator: Any, p: int, n: int, penalised: bool, spaces: Spaces | None) -> None:
    """Every variable has more samples than parameters, and the work fits in memory; with a penalty it will."""
    if estimator.basis is not None:
        if estimator.basis.n_variables != p:
            raise ValueError(f"the basis has {estimator.basis.n_variables} variables, X has {p} columns")
        largest = estimator.basis.largest
    elif spaces is not None:
        largest = _basis(estimator, p, spaces)[0].largest
    else:
        options = dict(degree=estimator.degree, min_degree=estimator.min_degree, max_order=estimator.max_order)
        largest = n_monomials(p, **options) - n_monomials(p - 1, **options)
    if penalised:
        if n <= (degree := (estimator.basis or estimator).degree) and not estimator.penalize_self and spaces is None:
            raise ValueError(f"n_samples = {n}: powers of one variable have no penalty; {degree + 1} are the least")
        return
    gigabytes = 3 * 8 * largest**2 / 1e9
    minutes = 20 * p * n * largest**2 / 5e9 / 60
    if largest >= n:
        large = max(minutes, gigabytes) > _LARGE
        cost = f" (With samples enough this size would take about {minutes:,.1g} minutes and {gigabytes:,.1g} GB.)"
        raise ValueError(
            f"{largest:,} parameters at each variable and n_samples = {n:,}: without a penalty there is no "
            f'estimate.{cost if large else ""} Use l1="auto", more samples, degree=2, max_order=2, or a basis with '
            "fewer terms"
        )
    if gigabytes * 1e9 > available_memory():
        raise ValueError(
            f"{largest:,} parameters at each variable need about {gigabytes:,.3g} GB for a Hessian matrix, and "
            f'{available_memory() / 1e9:,.3g} GB are free. Use l1="auto", degree=2, max_order=2, or fewer terms'
        )
