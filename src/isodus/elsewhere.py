"""Whether a density exists where variables do not all live on the line, or have functions other than powers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .basis import MonomialBasis
from .diagnostics import Integrability, integrability

__all__ = ["in_spaces"]


def in_spaces(
    basis: MonomialBasis, theta: np.ndarray, names: Sequence[str], rng: int | np.random.Generator | None = 0
) -> Integrability:
    """Where variables do not all live on the line: those within bounds cannot make an integral diverge by themselves.

    On a half line x = z² has an energy on the line, whose integral is finite if that of x is: growth decides both. A
    term with a variable within bounds must grow more slowly than the pure powers of the others.
    """
    assert basis.spaces is not None
    free = [i for i, space in enumerate(basis.spaces) if not space.support.bounded]
    if not free:
        return Integrability("integrable", None, "all variables live within bounds")
    other = [i for i in free if basis.spaces[i].functions is not None]
    if other:
        return _by_conditionals(basis, theta, names, other)
    times = {v: 1 + np.isfinite(basis.spaces[v].support.low) for v in free}
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


def _by_conditionals(
    basis: MonomialBasis, theta: np.ndarray, names: Sequence[str], other: Sequence[int]
) -> Integrability:
    """With functions other than powers: a variable that is alone is integrated; of others nothing is proved."""
    assert basis.spaces is not None
    there = theta != 0
    apart = [i for i in other if not np.any(there[basis.local(i).terms] & (basis.orders[basis.local(i).terms] > 1))]
    for i in apart:
        a = np.zeros((basis.degree, 1))
        for term, value in zip(basis.terms, theta.tolist(), strict=True):
            if set(term) == {i}:
                a[len(term) - 1] = value
        if len(basis.spaces[i].expectations(a).missing):
            axis = np.eye(basis.n_variables)[i]
            return Integrability("not integrable", axis, f"the density of {names[i]} has no finite integral")
    if len(apart) == basis.n_variables:
        return Integrability("integrable", None, "no variables interact, and the density of each has a finite integral")
    listed = ", ".join(names[i] for i in other[:6])
    return Integrability("unknown", None, f"{listed} have functions other than powers, of which nothing is proved")
