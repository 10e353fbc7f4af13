"""The family with functions other than powers, exp(−Σ_l a_l φ_l(x)), on any support: sums over nodes with weights.

The nodes do not depend on a, so that energies of all rows are one product of φ at the nodes with a. On an interval or a
circle they are Gauss and Legendre's on equal panels. Elsewhere x(t) is a double exponential: sinh sinh t on the line,
exp sinh t on a half line, tanh sinh t where functions are infinite at the ends of an interval. Then tails that fall as
a power, and functions such as log x at zero, do no harm, and equal steps of t converge fastest (Takahasi and Mori,
1974). Steps are halved until log Z agrees. The distribution is summed over panels of t, to one end and within the last.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, namespace, on_device, to_host
from ..supports import Support

__all__ = [
    "NOTHING",
    "Expectations",
    "Nodes",
    "cdf_of_table",
    "expectations",
    "moments_of_table",
    "nodes_of",
    "open_ends",
    "quantile_of_table",
]

_ORDER = 16  # nodes of a panel
_FIRST, _LAST = 4, 512  # panels: to begin with, and at most
_CLOSE = 1e-9  # relative error of the mass of panels
_CELLS = 1 << 20  # nodes and rows at a time
NOTHING = 1e-13  # of the mass, at an end where x has no bound, that counts as none
_STEPS = 60
_NO_WEIGHT = 1e-25  # of a node: finer nodes about it are left out
_LARGEST = 1e120  # value of a function whose square is still a number


class Expectations(NamedTuple):
    """log_z (n,), mean (s, n) of φ, second (s, s, n) of φ_l φ_k or None, mode (n,), and rows without a density."""

    log_z: Array
    mean: Array
    second: Array | None
    mode: Array
    missing: np.ndarray


class _Map(NamedTuple):
    """x(t) from `start` to `stop`, its derivative's log, and whether nothing may be left at either end."""

    x: Callable[[np.ndarray], np.ndarray]
    log_slope: Callable[[np.ndarray], np.ndarray]
    start: float
    stop: float
    open_ends: bool


def _map(support: Support, ends: bool) -> _Map:
    low, high = support.low, support.high
    cosh = lambda t: np.log(np.cosh(t))
    if isfinite(low) and isfinite(high):
        if not ends:
            return _Map(lambda t: t, np.zeros_like, low, high, False)
        half, middle = (high - low) / 2, (high + low) / 2

        def within(t: np.ndarray) -> np.ndarray:
            g = 1 / (1 + np.exp(2 * np.abs(np.sinh(t))))  # from the nearer end, so that x − low keeps its digits
            return np.where(t < 0, low + 2 * half * g, np.where(t > 0, high - 2 * half * g, middle))

        def slope(t: np.ndarray) -> np.ndarray:
            u = np.abs(np.sinh(t))
            return np.log(4 * half) - 2 * u - 2 * np.log1p(np.exp(-2 * u)) + cosh(t)

        # beyond, x is the end itself in double precision, unless that is zero
        return _Map(within, slope, -3.6 if low else -6.0, 3.6 if high else 6.0, True)
    if isfinite(low):
        return _Map(lambda t: low + np.exp(np.sinh(t)), lambda t: np.sinh(t) + cosh(t), -7.2, 7.2, True)
    return _Map(
        lambda t: np.sinh(np.sinh(t)), lambda t: np.abs(np.sinh(t)) - np.log(2.0) + cosh(t) + _tail(t), -7.2, 7.2, True
    )


def _tail(t: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(-2 * np.abs(np.sinh(t))))


class Nodes(NamedTuple):
    """x (N,), the logs of their weights (N,), φ there (s, N), the edges of panels in t, and the ends of what is finite.

    Where a function is infinite, or too large to be squared, a node has no weight.
    """

    x: np.ndarray
    log_weight: np.ndarray
    phi: np.ndarray
    edges: np.ndarray
    first: int
    last: int


@lru_cache(maxsize=64)
def nodes_of(support: Support, functions: Any, s: int, panels: int, whole: bool = False) -> Nodes:
    """The rule of so many panels for functions φ_1 … φ_s, or, unless they are to be whole, as many equal steps of t.

    Of a few values, those.
    """
    if support.values is not None:
        x = np.array(support.values)
        return Nodes(x, np.zeros(len(x)), np.asarray(functions(x, s)), np.empty(0), 0, len(x) - 1)
    way, (u, w) = _map(support, _ends(functions)), np.polynomial.legendre.leggauss(_ORDER)
    edges = np.linspace(way.start, way.stop, panels + 1)
    if whole or not way.open_ends:
        t = (edges[:-1, None] + np.diff(edges)[:, None] * (u + 1) / 2).ravel()
        log_steps = np.log(np.diff(edges)[:, None] * w / 2).ravel()
    else:
        t = np.linspace(way.start, way.stop, panels * _ORDER + 1)
        log_steps = np.full(len(t), np.log(t[1] - t[0]))
    x = way.x(t)
    with np.errstate(all="ignore"):
        phi = np.asarray(functions(x, s))
    finite = (np.abs(phi) < _LARGEST).all(axis=0)
    weight = np.where(finite, log_steps + way.log_slope(t), -inf)
    first, *_, last = np.flatnonzero(finite)
    return Nodes(x, weight, np.where(finite, phi, 0.0), edges, int(first), int(last))


def open_ends(support: Support, functions: Any) -> bool:
    """Whether nothing may be left at the first and last of the nodes, beyond which x goes on."""
    return support.values is None and _map(support, _ends(functions)).open_ends


def _ends(functions: Any) -> bool:
    return bool(getattr(functions, "ends", False))


def expectations(
    a: Array, support: Support, functions: Any, *, second: bool = False, tol: float = 1e-10
) -> Expectations:
    """Normalisers and expectations of φ_1 … φ_s, a: (s, n)."""
    xp, n = namespace(a), a.shape[1]
    panels = 1 if support.values is not None else _FIRST
    found, ends = _summed(a, support, functions, second, panels, (-inf, inf))
    if support.values is not None:
        return found
    rows = np.arange(n)
    while True:
        panels *= 2
        here = a if len(rows) == n else xp.take(a, on_device(rows, a), axis=1)
        finer, ends = _summed(here, support, functions, second, panels, ends)
        before = to_host(found.log_z)[rows]
        missing = np.zeros(len(rows), bool)
        missing[finer.missing] = True
        with np.errstate(invalid="ignore"):
            agree = (np.abs(to_host(finer.log_z) - before) <= tol) | (missing & np.isin(rows, found.missing))
        found = _put(found, finer, rows, missing)
        rows = rows[~agree]
        if not len(rows):
            return found
        if panels >= _LAST:
            return _without(found, rows)


def _put(found: Expectations, finer: Expectations, rows: np.ndarray, missing: np.ndarray) -> Expectations:
    """With the rows that were computed anew in their places."""
    if len(rows) == found.log_z.shape[0]:
        return finer
    gone = np.union1d(np.setdiff1d(found.missing, rows), rows[missing])

    def put(old: Array, new: Array) -> Array:
        host = np.array(to_host(old))
        host[..., rows] = to_host(new)
        return on_device(host, old)

    second = None if found.second is None else put(found.second, finer.second)
    log_z, mean, mode = put(found.log_z, finer.log_z), put(found.mean, finer.mean), put(found.mode, finer.mode)
    return Expectations(log_z, mean, second, mode, gone.astype(int))


def _without(found: Expectations, rows: np.ndarray) -> Expectations:
    """With no density at some rows."""
    log_z = np.array(to_host(found.log_z))
    log_z[rows] = inf
    return found._replace(log_z=on_device(log_z, found.log_z), missing=np.union1d(found.missing, rows).astype(int))


def _summed(
    a: Array, support: Support, functions: Any, second: bool, panels: int, ends: tuple[float, float]
) -> tuple[Expectations, tuple[float, float]]:
    """Sums over the nodes between these ends, and the ends beyond which no row has any weight."""
    xp, (s, n) = namespace(a), a.shape
    nodes = _between(nodes_of(support, functions, s, panels), *ends)
    step = max(_CELLS // len(nodes.x), 1)
    opened = open_ends(support, functions)
    parts = [_some(a[:, k : min(k + step, n)], nodes, second, opened) for k in range(0, max(n, 1), step)]
    joined = [xp.concat([part[i] for part in parts], axis=-1) for i in range(5) if parts[0][i] is not None]
    log_z, mean, mode, exists = joined[0], joined[1], joined[-2], to_host(joined[-1])
    used = np.flatnonzero(np.any([to_host(part[5]) for part in parts], axis=0)) if opened else np.empty(0, int)
    if len(used):
        first, last = max(used[0] - 1, 0), min(used[-1] + 1, len(nodes.x) - 1)
        ends = (nodes.x[first] if first else ends[0], nodes.x[last] if last < len(nodes.x) - 1 else ends[1])
    return Expectations(log_z, mean, joined[2] if second else None, mode, np.flatnonzero(~exists)), ends


def _between(nodes: Nodes, low: float, high: float) -> Nodes:
    """The nodes between these."""
    at = np.flatnonzero((nodes.x >= low) & (nodes.x <= high))
    if len(at) == len(nodes.x) or not len(at):
        return nodes
    some = slice(at[0], at[-1] + 1)
    good = np.flatnonzero(np.isfinite(nodes.log_weight[some]))
    return Nodes(nodes.x[some], nodes.log_weight[some], nodes.phi[:, some], nodes.edges, int(good[0]), int(good[-1]))


def _weights(a: Array, nodes: Nodes) -> tuple[Array, Array, Array]:
    """−log of the greatest weight (n,), where the density is highest (n,), and all weights over it (N, n)."""
    xp = namespace(a)
    energy = xp.matrix_transpose(on_device(nodes.phi, a)) @ a
    energy += on_device(np.where(np.isfinite(nodes.log_weight), 0.0, inf)[:, None], a)
    mode = xp.take(on_device(nodes.x, a), xp.argmin(energy, axis=0))
    energy -= on_device(np.maximum(nodes.log_weight, -1e300)[:, None], a)
    least = xp.min(energy, axis=0)
    return least, mode, xp.exp(least - energy)


def _some(a: Array, nodes: Nodes, second: bool, open_ends: bool) -> tuple[Any, ...]:
    xp = namespace(a)
    with np.errstate(all="ignore"):
        least, mode, w = _weights(a, nodes)
        Z = xp.sum(w, axis=0)
        log_z = xp.log(Z) - least
        exists = xp.isfinite(log_z)
        if open_ends:
            exists = exists & (w[nodes.first, :] <= NOTHING * Z) & (w[nodes.last, :] <= NOTHING * Z)
        w /= Z
        phi, squares = on_device(nodes.phi, a), None
        mean = phi @ w
        if second:
            squares = xp.stack([(phi[j : j + 1, :] * phi) @ w for j in range(a.shape[0])])
            squares = xp.where(exists, squares, xp.zeros_like(squares))
        log_z = xp.where(exists, log_z, xp.full_like(log_z, inf))
        mean = xp.where(exists, mean, xp.zeros_like(mean))
        used = xp.any(~(w <= _NO_WEIGHT), axis=1)
    return log_z, mean, squares, mode, exists, used


def moments_of_table(a: np.ndarray, support: Support, functions: Any) -> tuple[np.ndarray, np.ndarray]:
    """E x and E x², (n,); NaN where tails are so heavy that they do not exist."""
    nodes, mass = _panels(a, support, functions, whole=False)
    out, opened = [], open_ends(support, functions)
    for power in (1, 2):
        with np.errstate(over="ignore", invalid="ignore"):
            part = mass * (np.sign(nodes.x) ** power * np.abs(nodes.x) ** power)[:, None]
            part = np.where(mass > 0, part, 0.0)
            ends = np.abs(part[nodes.first]) + np.abs(part[nodes.last])
            exists = (ends <= 1e-9 * np.abs(part).sum(axis=0)) | (not opened)
            out.append(np.where(exists, part.sum(axis=0), np.nan))
    return out[0], out[1]


def _panels(a: np.ndarray, support: Support, functions: Any, whole: bool = True) -> tuple[Nodes, np.ndarray]:
    """Nodes fine enough for all rows, and the mass of every whole panel of them, or every node; its sum is one."""
    if len(expectations(a, support, functions).missing):
        raise ValueError("there is no density")
    panels, before = _FIRST, None
    while True:
        nodes = nodes_of(support, functions, len(a), panels, whole)
        with np.errstate(all="ignore"):
            least, _, w = _weights(a, nodes)
        log_z = np.log(w.sum(axis=0)) - least
        if panels >= _LAST or (before is not None and np.all(np.abs(log_z - before) <= _CLOSE)):
            mass = w.reshape(panels, _ORDER, -1).sum(axis=1) if whole else w
            return nodes, mass / mass.sum(axis=0)
        panels, before = 2 * panels, log_z


def _up_to(
    t: np.ndarray, at: np.ndarray, nodes: Nodes, way: _Map, a: np.ndarray, functions: Any, log_z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mass from the left edge of panel `at` to t, and the density there, in t; all (n,)."""
    u, w = np.polynomial.legendre.leggauss(_ORDER + 4)
    left = nodes.edges[at]
    points = np.concatenate([left + (t - left) * (u[:, None] + 1) / 2, t[None, :]])
    with np.errstate(all="ignore"):
        phi = np.asarray(functions(way.x(points), len(a)))
        energy = np.einsum("lkn,ln->kn", np.where(np.isfinite(phi), phi, 0.0), a)
        energy = np.where(np.isfinite(phi).all(axis=0), energy, inf)
        f = np.exp(way.log_slope(points) - energy - log_z)
    return (w[:, None] * f[:-1]).sum(axis=0) * (t - left) / 2, f[-1]


def quantile_of_table(a: np.ndarray, u: np.ndarray, support: Support, functions: Any) -> np.ndarray:
    """The x below which the probability is u, (n,); a: (s, n). Newton's steps within a panel, kept inside."""
    a = np.ascontiguousarray(to_host(a), dtype=np.float64)
    step = max(_CELLS // (_LAST * _ORDER // 8), 1)
    u = to_host(u)
    parts = [_quantile(a[:, k : k + step], u[k : k + step], support, functions) for k in range(0, a.shape[1], step)]
    return np.concatenate(parts) if parts else np.empty(0)


def _quantile(a: np.ndarray, u: np.ndarray, support: Support, functions: Any) -> np.ndarray:
    nodes, mass = _panels(a, support, functions)
    way, log_z = _map(support, _ends(functions)), to_host(expectations(a, support, functions).log_z)
    total = np.cumsum(mass, axis=0)
    at = np.minimum((total < u * total[-1]).sum(axis=0), len(mass) - 1)
    below = np.where(at > 0, total[at - 1, np.arange(len(u))], 0.0)
    goal = u * total[-1] - below
    lo, hi = nodes.edges[at].copy(), nodes.edges[at + 1].copy()
    t = lo + (hi - lo) * np.clip(goal / np.maximum(mass[at, np.arange(len(u))], 1e-300), 0.0, 1.0)
    for _ in range(_STEPS):
        value, slope = _up_to(t, at, nodes, way, a, functions, log_z)
        miss = value - goal
        lo, hi = np.where(miss < 0, t, lo), np.where(miss > 0, t, hi)
        with np.errstate(all="ignore"):
            new = t - miss / slope
        new = np.where((new > lo) & (new < hi), new, (lo + hi) / 2)
        done = (np.abs(miss) <= 1e-12) | (hi - lo <= 1e-14 * np.maximum(np.abs(t), 1.0))
        if done.all():
            break
        t = np.where(done, t, new)
    return way.x(t)


def cdf_of_table(a: np.ndarray, x: np.ndarray, support: Support, functions: Any) -> np.ndarray:
    """The probability of values up to x, (n,); on a circle from −π on."""
    a, x = np.ascontiguousarray(to_host(a), dtype=np.float64), np.asarray(to_host(x), np.float64)
    if support.circle:
        x = x - 2 * np.pi * np.floor((x + np.pi) / (2 * np.pi))
    step = max(_CELLS // (_LAST * _ORDER // 8), 1)
    parts = [_cdf(a[:, k : k + step], x[k : k + step], support, functions) for k in range(0, a.shape[1], step)]
    return np.concatenate(parts) if parts else np.empty(0)


def _cdf(a: np.ndarray, x: np.ndarray, support: Support, functions: Any) -> np.ndarray:
    nodes, mass = _panels(a, support, functions)
    way, log_z = _map(support, _ends(functions)), to_host(expectations(a, support, functions).log_z)
    ends = way.x(nodes.edges)
    at = np.clip(np.searchsorted(ends, x, side="right") - 1, 0, len(mass) - 1)
    lo, hi = nodes.edges[at].copy(), nodes.edges[at + 1].copy()
    t = lo + (hi - lo) * np.clip((x - ends[at]) / (ends[at + 1] - ends[at]), 0.0, 1.0)
    if way.open_ends:  # where x(t) is not t itself
        for _ in range(_STEPS):
            short = way.x(t) < x
            lo, hi = np.where(short, t, lo), np.where(short, hi, t)
            t = (lo + hi) / 2
    total = np.cumsum(mass, axis=0)
    below = np.where(at > 0, total[at - 1, np.arange(len(x))], 0.0)
    return np.clip(below + _up_to(t, at, nodes, way, a, functions, log_z)[0], 0.0, 1.0)
