"""Is exp(−E) integrable on the whole line? Facts about a polynomial, on which nothing depends.

A polynomial is (exponents (K, p), coefficients (K,)). With d_i the highest pure power of x_i, a term has the weight
ω(α) = Σ α_i/d_i: along x_i = t^{1/d_i} u_i it grows as t^ω. Terms of ω = 1 decide where no other is above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from .._core.notes import Note
from ..terms import Key
from .forms import LARGEST, is_positive, least

__all__ = ["Integrability", "integrability"]

Array = np.ndarray
_MOST = 1e200  # of coefficients, whose inverse is the least
_FACES = 300  # sets of two and three variables that are looked at
_REMEDY = "Lower the degree or use penalty=Ridge('cv')."


@dataclass(frozen=True)
class Integrability:
    """Whether exp(−E) is integrable over ℝᵖ, with E the polynomial of a model.

    Attributes
    ----------
    verdict : {"integrable", "not integrable", "unknown"}
    reason : str
        The reason, in a sentence or two.
    direction : dict of str to float
        Where E does not grow, by variable; empty unless the verdict is "not integrable".

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> PolynomialModel.from_dict({("a", "a"): 1.0, ("a", "b"): 3.0, ("b", "b"): 1.0}).integrability().verdict
    'not integrable'
    """

    verdict: Literal["integrable", "not integrable", "unknown"]
    reason: str
    direction: Mapping[str, float] = field(default_factory=dict)


def no_density(problem: object, verdict: Integrability) -> ValueError:
    """An error that gives the verdict."""
    return ValueError(f"{problem} Its polynomial on the whole line: {verdict.verdict}. {verdict.reason}")


def check(theta: Array, verdict: Integrability) -> list[Note]:
    """An error where there is no integral, or none that can be computed; a warning where that is not known."""
    size = np.abs(theta[theta != 0])
    if not np.all((size > 1 / _MOST) & (size < _MOST)):
        raise ValueError(f"Coefficients from {size.min():.2g} to {size.max():.2g} are out of range. Use other units.")
    if verdict.verdict == "not integrable":
        raise no_density("The model has no density. Draws and log Z do not exist.", verdict)
    if verdict.verdict == "integrable":
        return []
    text = (
        "isodus cannot tell whether this model has a density: its polynomial on the whole line may have no integral. "
        f"{verdict.reason} Draws and log Z exist only if it has. Add terms that grow in every direction."
    )
    return [Note("integrability", "warning", (), {}, text)]


class _Part(NamedTuple):
    """A polynomial of some variables, with the covariance of its coefficients' errors."""

    exponents: Array  # (K, p)
    theta: Array  # (K,)
    covariance: Array | None  # (K, K)
    names: Sequence[str]

    def on(self, rows: Array, variables: Array) -> _Part:
        covariance = None if self.covariance is None else self.covariance[np.ix_(rows, rows)]
        names = [self.names[i] for i in variables]
        return _Part(self.exponents[np.ix_(rows, variables)], self.theta[rows], covariance, names)


def integrability(keys: Sequence[Key], theta: Array, covariance: Array | None, names: Sequence[str]) -> Integrability:
    """The verdict on a polynomial: every connected component must pass."""
    there = np.flatnonzero(theta).tolist()
    rows, columns = [], []
    for k, place in enumerate(there):
        rows += [k] * len(keys[place])
        columns += list(keys[place])
    counts = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(there), len(names)))
    verdicts = []
    for component in _components(counts):
        inside = np.flatnonzero(np.asarray(counts[:, component].sum(axis=1)).ravel())
        places = np.array(there)[inside]
        part = _Part(
            counts[inside][:, component].toarray().astype(int),
            theta[places],
            None if covariance is None else covariance[np.ix_(places, places)],
            [names[i] for i in component],
        )
        verdicts.append(_component(part))
        if verdicts[-1].verdict == "not integrable":
            return verdicts[-1]
    unknown = [verdict for verdict in verdicts if verdict.verdict == "unknown"]
    return unknown[0] if unknown else verdicts[0]


def _components(counts: csr_array) -> list[Array]:
    """Variables that are connected by terms, each set in order."""
    labels = connected_components(counts.T @ counts, directed=False)[1]
    return [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]


def _component(part: _Part) -> Integrability:
    flat = _flat_direction(part)
    if flat is not None:
        return _not(f"E does not change along {_words(part.names, flat)}.", part.names, flat)
    pure = _pure(part)
    for i, (degree, value, row) in enumerate(pure):
        if degree % 2 or value < 0:
            what = f"{value:.3g} {part.names[i]}^{degree}" if degree > 1 else f"{value:.3g} {part.names[i]}"
            u = np.eye(len(pure))[i] * (-np.sign(value) if degree % 2 else 1.0)
            text = f"Along {part.names[i]!r} alone, E is led by {what} and falls without bound."
            return _not(text + _doubt(part, np.array([row]), u, "The value of this term"), part.names, u)
    d = np.array([degree for degree, _, _ in pure])
    found = _falling(part, d)
    if found is not None:
        return found
    lacking = [name for name, degree in zip(part.names, d, strict=True) if not degree]
    if lacking:
        return _unknown(f"There is no pure power of {', '.join(map(repr, lacking[:4]))}, so no simple rule decides.")
    omega = (part.exponents / d).sum(axis=1)
    helps = (part.exponents % 2 == 0).all(axis=1) & (part.theta > 0)
    if np.any((omega > 1 + 1e-12) & ~helps):
        return _unknown("Mixed terms grow faster than the pure powers, and no direction was found where E falls.")
    return _leading(part, d, np.abs(omega - 1) < 1e-12)


def _flat_direction(part: _Part) -> Array | None:
    """v ≠ 0 with Σ v_i ∂_i E ≡ 0, from the coefficients of the derivatives; None if there is none."""
    place: dict[Key, int] = {}
    rows, columns, values = [], [], []
    for exponents, theta in zip(part.exponents, part.theta, strict=True):
        variables = np.flatnonzero(exponents)
        key = np.repeat(variables, exponents[variables]).tolist()
        for i, power in zip(variables.tolist(), exponents[variables].tolist(), strict=True):
            lower = list(key)
            lower.remove(i)
            rows.append(place.setdefault(tuple(lower), len(place)))
            columns.append(i)
            values.append(theta * power)
    D = csr_array((values, (rows, columns)), shape=(max(len(place), 1), len(part.names)))
    size = np.sqrt(D.multiply(D).sum(axis=0))
    if not np.all(size):
        return np.eye(len(size))[int(np.argmin(size))]
    D = D @ csr_array((1 / size, (range(len(size)),) * 2))
    v = np.linalg.eigh((D.T @ D).toarray())[1][:, 0]
    if np.abs(D @ v).max() > 1e-12 * np.abs(D.data).max():
        return None
    return (v / size) / np.abs(v / size).max()


def _pure(part: _Part) -> list[tuple[int, float, int]]:
    """Degree, coefficient and row of the highest pure power of each variable; 0 where there is none."""
    found = [(0, 0.0, -1)] * len(part.names)
    for row in np.flatnonzero((part.exponents > 0).sum(axis=1) == 1):
        i = int(np.argmax(part.exponents[row]))
        found[i] = max(found[i], (int(part.exponents[row, i]), float(part.theta[row]), int(row)))
    return found


def _falling(part: _Part, d: Array) -> Integrability | None:
    """A curve x_i = t^{1/d_i} u_i along which E falls, in the space of some variables where the others are zero.

    Nearby, exp(−E) grows faster than the volume shrinks in which the other terms can be neglected.
    """
    total = part.exponents.sum(axis=1)
    if total.max() <= 2 and d.all():
        return None  # by eigenvalues
    for variables in _faces(part, d):
        inside = np.flatnonzero(part.exponents[:, variables].sum(axis=1) == total)
        face = part.on(inside, variables)
        if not len(inside):
            continue
        known = d[variables].all()
        weights = 1 / d[variables] if known else np.ones(len(variables))
        omega = face.exponents @ weights
        top = np.flatnonzero(omega > omega.max() - 1e-12)
        form = face.on(top, np.arange(len(variables)))
        if np.all(form.theta > 0) and np.all(form.exponents % 2 == 0):
            continue
        value, u = least(form.exponents, form.theta, d[variables] if known else np.full(len(variables), omega.max()))
        if value < -1e-9 * np.abs(form.theta).max():
            text = f"E falls without bound toward {_words(face.names, u)}, where its leading terms are negative."
            return _not(text + _doubt(form, np.arange(len(top)), u), face.names, u)
    return None


def _faces(part: _Part, d: Array) -> Iterator[Array]:
    """All variables, and the pairs and triples that share a term."""
    everything = np.arange(len(d))
    if len(d) <= LARGEST:
        yield everything
    sets = {tuple(np.flatnonzero(e)) for e in part.exponents}
    smaller = {pair for variables in sets for pair in combinations(variables, 2)} | {s for s in sets if len(s) == 3}
    for variables in sorted(smaller, key=lambda s: (len(s), s))[:_FACES]:
        if len(variables) < len(d):
            yield np.array(variables)


def _leading(part: _Part, d: Array, leading: Array) -> Integrability:
    """Whether the terms of ω = 1 are positive away from 0, block by block."""
    rows = np.flatnonzero(leading)
    counts = csr_array(part.exponents[rows].astype(float))
    for variables in _components(counts):
        inside = rows[part.exponents[np.ix_(rows, variables)].any(axis=1)]
        block = part.on(inside, variables)
        verdict, u = is_positive(block.exponents, block.theta, d[variables])
        if verdict is False:
            assert u is not None
            text = f"The leading terms of E are negative toward {_words(block.names, u)}."
            return _not(text + _doubt(block, np.arange(len(inside)), u), block.names, u)
        if verdict is None:
            of = ", ".join(map(repr, block.names[:6]))
            return _unknown(f"Whether the leading terms of {of} are positive in every direction could not be decided.")
    return Integrability("integrable", "The leading terms of E are positive in every direction.")


def _doubt(part: _Part, rows: Array, u: Array, what: str = "Their value") -> str:
    """The value of these terms at u, with its standard error."""
    powers = np.prod(u ** part.exponents[rows], axis=1)
    value = float(part.theta[rows] @ powers)
    if part.covariance is None:
        return f" {what} there is {value:.3g}."
    error = float(np.sqrt(max(powers @ part.covariance[np.ix_(rows, rows)] @ powers, 0.0)))
    text = f" {what} there is {value:.3g}, with a standard error of {error:.2g}."
    return text + (f" This is not distinguishable from zero. {_REMEDY}" if abs(value) <= 2 * error else "")


def _words(names: Sequence[str], u: Array) -> str:
    """The largest entries of a direction."""
    largest = np.argsort(-np.abs(u), kind="stable")[:4].tolist()
    shown = [f"{names[i]}: {u[i]:.3g}" for i in sorted(largest) if abs(u[i]) > 1e-12]
    return f"({', '.join(shown)}{', …' if len(names) > 4 else ''})"


def _not(reason: str, names: Sequence[str], u: Array) -> Integrability:
    direction = {name: float(value) for name, value in zip(names, u, strict=True) if abs(value) > 1e-12}
    return Integrability("not integrable", reason, direction)


def _unknown(reason: str) -> Integrability:
    return Integrability("unknown", reason)
