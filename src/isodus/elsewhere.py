"""Whether a density exists where variables do not all live on the line, or have functions other than powers.

Variables without bounds decide it. First by growth, where those within bounds cannot change what grows fastest. Then
group by group of variables that share terms, and there value by value: where the others of a group have a few values,
it is asked for all combinations of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from .basis import MonomialBasis
from .diagnostics import Integrability, integrability
from .sampling import components, restrict
from .sampling.sweep import Conditionals
from .spaces import PLAIN, Space, Spaces

__all__ = ["in_spaces"]

_MOST = 4096  # combinations of values that are looked at


def in_spaces(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str],
    values: Sequence[Sequence[float]] | None = None,
    rng: int | np.random.Generator | None = 0,
) -> Integrability:
    """Where variables do not all live on the line; values: what those that have a few are called, in the same order."""
    spaces = basis.spaces or (PLAIN,) * basis.n_variables
    called = [space.support.values or () for space in spaces] if values is None else values
    return _decided(basis, theta, names, called, _MOST, np.random.default_rng(rng))


def _decided(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str],
    called: Sequence[Sequence[float]],
    most: int,
    rng: np.random.Generator,
) -> Integrability:
    """By growth, or else each group of variables that terms with one without bounds tie together."""
    free = _free(basis)
    if not free:
        return Integrability("integrable", None, "all variables live within bounds")
    featured = any(space.functions is not None for v, space in enumerate(basis.spaces or ()) if v in free)
    whole = None if featured else _by_growth(basis, theta, names, free, rng)
    if whole is not None and whole.status != "unknown":
        return whole
    theta = np.where(np.isin(basis.factors, free).any(axis=1), theta, 0.0)
    verdict = None
    for variables in components(basis, theta):
        if not set(free) & set(variables.tolist()):
            continue
        own = [names[v] for v in variables], [called[v] for v in variables]
        found = _of_group(*restrict(basis, theta, variables), *own, most, rng)
        if found.direction is not None:
            direction, exponents = np.zeros(basis.n_variables), np.ones(basis.n_variables)
            direction[variables] = found.direction
            exponents[variables] = 1.0 if found.exponents is None else found.exponents
            found = replace(found, direction=direction, exponents=exponents)
        if found.status == "not integrable":
            return found
        verdict = found if verdict is None or verdict.status == "integrable" else verdict
    assert verdict is not None
    return verdict


def _free(basis: MonomialBasis) -> list[int]:
    """Variables without bounds."""
    spaces = basis.spaces or (PLAIN,) * basis.n_variables
    return [i for i, space in enumerate(spaces) if not space.support.bounded]


def _of_group(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str],
    called: Sequence[Sequence[float]],
    most: int,
    rng: np.random.Generator,
) -> Integrability:
    """Variables that are tied together, some of them without bounds: at all values of those that have a few."""
    spaces, free = basis.spaces or (PLAIN,) * basis.n_variables, _free(basis)
    few = [v for v, space in enumerate(spaces) if space.support.values is not None]
    if len(free) == 1 and len(few) == len(spaces) - 1 and prod(len(called[v]) for v in few) <= most:
        return _alone(basis, theta, names, called, free[0], spaces)
    odd = [names[v] for v in free if spaces[v].functions is not None]
    if odd:
        told = f"{', '.join(odd[:6])} have functions other than powers, of which nothing is proved"
        return Integrability("unknown", None, told)
    found = _by_growth(basis, theta, names, free, rng)
    if found.status != "unknown" or not few or len(called[few[0]]) > most:
        return found
    v, verdict = few[0], None
    support = spaces[v].support.values or ()
    for value, name in zip(support, called[v], strict=True):
        found = _decided(*_fixed(basis, theta, v, value), names, called, most // len(support), rng)
        if found.status == "not integrable":
            return replace(found, reason=f"where {names[v]} is {name:g}, {found.reason}")
        verdict = found if verdict is None or verdict.status == "integrable" else verdict
    assert verdict is not None
    return verdict


def _alone(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str],
    called: Sequence[Sequence[float]],
    i: int,
    spaces: Spaces,
) -> Integrability:
    """One variable without bounds, i, whose others all have a few values: its density given each combination."""
    few = [v for v in range(len(spaces)) if v != i]
    X = np.full((len(spaces), prod(len(called[v]) for v in few)), spaces[i].inside)
    X[few] = np.array(list(product(*(spaces[v].support.values or () for v in few)))).reshape(X.shape[1], -1).T
    a = Conditionals(basis, theta).coefficients(i, X)
    diverges = _falls(spaces[i], a)
    if not diverges.any():
        where = f" at all values of {', '.join(names[v] for v in few[:6])}" if few else ""
        return Integrability("integrable", None, f"the density of {names[i]} has a finite integral{where}")
    at = int(np.argmax(diverges != 0))
    values = list(product(*(called[v] for v in few)))[at]
    where = ", ".join(f"{names[v]} is {value:g}" for v, value in zip(few, values, strict=True))
    reason = f"the density of {names[i]} has no finite integral{f' where {where}' if where else ''}"
    return Integrability("not integrable", diverges[at] * np.eye(len(spaces))[i], reason)


def _falls(space: Space, a: np.ndarray) -> np.ndarray:
    """Which of exp(−Σ_l a_l φ_l(x)), a: (s, n), have no integral: 1 or −1, by the side where they do not fall, or 0."""
    if space.functions is not None:
        return np.isin(np.arange(a.shape[1]), space.expectations(a).missing) * 1
    last = len(a) - np.argmax(a[::-1] != 0, axis=0)  # the highest power that is there, if any is
    top = np.take_along_axis(a, last[None, :] - 1, axis=0)[0]
    odd = (last % 2 == 1) & (top != 0) & ~np.isfinite(space.support.low)
    return np.where(odd, -np.sign(top), top <= 0).astype(int)


def _fixed(basis: MonomialBasis, theta: np.ndarray, v: int, value: float) -> tuple[MonomialBasis, np.ndarray]:
    """The energy of the others where variable v has this value, which has no terms then; without the constant."""
    spaces = basis.spaces or (PLAIN,) * basis.n_variables
    own: dict[tuple[int, ...], float] = {(_free(basis)[0],): 0.0}
    phi = spaces[v].features(np.array([value]), basis.degree)[:, 0]
    for term, c in zip(basis.terms, theta.tolist(), strict=True):
        rest = tuple(u for u in term if u != v)
        if rest:
            own[rest] = own.get(rest, 0.0) + c * (phi[len(term) - len(rest) - 1] if len(rest) < len(term) else 1.0)
    part = MonomialBasis(basis.n_variables, terms=own).within(basis.spaces)
    return part, np.array([own[term] for term in part.terms])


def _by_growth(
    basis: MonomialBasis, theta: np.ndarray, names: Sequence[str], free: Sequence[int], rng: np.random.Generator
) -> Integrability:
    """Those within bounds cannot make an integral diverge by themselves; free: the others, which have powers.

    On a half line x = z² has an energy on the line, whose integral is finite if that of x is: growth decides both. A
    term with a variable within bounds must grow more slowly than the pure powers of the others.
    """
    spaces = basis.spaces or (PLAIN,) * basis.n_variables
    times = {v: 1 + np.isfinite(spaces[v].support.low) for v in free}
    d = {
        v: times[v] * max((len(t) for t, c in zip(basis.terms, theta, strict=True) if c and set(t) == {v}), default=0)
        for v in free
    }
    own: dict[tuple[int, ...], float] = {}
    place = {v: k for k, v in enumerate(free)}
    for term, value in zip(basis.terms, theta.tolist(), strict=True):
        far = [v for v in term if v in place for _ in range(times[v])]
        if not value or not far:
            continue
        if len({v for v in term if v in place}) == len(set(term)):
            own[tuple(place[v] for v in far)] = value
        elif sum(1 / d[v] if d[v] else np.inf for v in far) >= 1:
            named = "·".join(names[v] for v in term)
            return Integrability("unknown", None, f"the term {named} grows as fast as the pure powers of its variables")
    called = [names[v] for v in free]
    if len({v for term in own for v in term}) < len(free):
        lost = next(name for k, name in enumerate(called) if not any(k in term for term in own))
        return Integrability("not integrable", None, f"no term holds {lost}")
    part = MonomialBasis(len(free), terms=own)
    values = np.array([own[term] for term in part.terms])
    found = integrability(
        part, values, [f"√{name}" if times[v] > 1 else name for v, name in zip(free, called, strict=True)], rng
    )
    if found.direction is None or found.exponents is None:
        return found
    direction, exponents = np.zeros(basis.n_variables), np.ones(basis.n_variables)
    for v, u, w in zip(free, found.direction, found.exponents, strict=True):
        direction[v], exponents[v] = u ** times[v], w * times[v]
    return replace(found, direction=direction, exponents=exponents)
