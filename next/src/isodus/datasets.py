"""Models with exact samplers: those of the paper, of physics, and hard ones; and a measured table.

Each sampler, such as `paper_pair(n, seed=0)`, has its parameters next to it: `paper_pair_theta()` is {term: θ} of the
density ∝ exp(−Σ θ x^α), where the term (0, 0, 1) stands for x0² x1. Nothing here uses the rest of the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from importlib import resources
from itertools import pairwise
from math import prod, sqrt
from typing import Any

import numpy as np
import pandas as pd

from ._core.checks import generator, one_of

__all__ = [
    "butterfly",
    "curved",
    "curved_theta",
    "diamond_precision",
    "double_wells",
    "double_wells_theta",
    "gaussian",
    "gaussian_theta",
    "many_body",
    "many_body_theta",
    "paper_1d",
    "paper_1d_theta",
    "paper_4d",
    "paper_4d_theta",
    "paper_pair",
    "paper_pair_theta",
    "paper_precision",
    "phi4",
    "phi4_neighbours",
    "phi4_theta",
    "regular_precision",
    "sachs",
    "skewed",
    "skewed_theta",
]

Array = np.ndarray
Theta = dict[tuple[int, ...], float]

_PAIR: tuple[tuple[int, ...], ...] = ((0, 0), (0, 1), (1, 1), (0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1))
_PAIR += ((0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 1), (0, 1, 1, 1), (1, 1, 1, 1))
_PAIR_VALUES = {
    1: (1.0, 0.1, 0.5, 0.5, 0.05, 0.1, 1.0, 2.0, 0.3, 0.4, 0.5, 2.0),
    2: (1.0, 0.5, 0.1, 0.1, 0.5, 0.6, 1.0, 2.0, 0.3, 0.8, 0.25, 2.0),
}


# The paper (parameters are those of the authors' data files) ---------------------------------------------------------


def paper_1d_theta() -> Theta:
    """The one-dimensional model: E = x² + 0.5 x³ + 2 x⁴."""
    return {(0, 0): 1.0, (0, 0, 0): 0.5, (0, 0, 0, 0): 2.0}


def paper_1d(n: int, seed: Any = 0) -> Array:
    """Samples (n, 1) of the one-dimensional model."""
    return _on_grid(n, paper_1d_theta(), 1, 2.4, 20_000, generator(seed, "seed"))


def paper_pair_theta(which: int = 1) -> Theta:
    """One of the two pairs of the four-dimensional model: all terms of degree 2 to 4. which is 1 or 2."""
    return dict(zip(_PAIR, _PAIR_VALUES[one_of(which, (1, 2), "which")], strict=True))


def paper_pair(n: int, seed: Any = 0, which: int = 1) -> Array:
    """Samples (n, 2) of a pair.

    Examples
    --------
    >>> X, theta = paper_pair(1000), paper_pair_theta()
    >>> X.shape, theta[0, 0, 1]
    ((1000, 2), 0.05)
    """
    return _on_grid(n, paper_pair_theta(which), 2, 2.4, 2_400, generator(seed, "seed"))


def paper_4d_theta() -> Theta:
    """The four-dimensional model: two independent pairs, 24 parameters."""
    second = {tuple(i + 2 for i in term): value for term, value in paper_pair_theta(2).items()}
    return paper_pair_theta(1) | second


def paper_4d(n: int, seed: Any = 0) -> Array:
    """Samples (n, 4) of the four-dimensional model."""
    rng = generator(seed, "seed")
    return np.hstack([paper_pair(n, rng, 1), paper_pair(n, rng, 2)])


def gaussian_theta(precision: Array) -> Theta:
    """A Gaussian of mean zero: θ_ii = Λ_ii/2 and θ_ij = Λ_ij."""
    i, j = np.nonzero(np.triu(precision))
    return {(a, b): float(precision[a, b]) * (0.5 if a == b else 1.0) for a, b in zip(i.tolist(), j.tolist())}  # noqa: B905


def gaussian(n: int, precision: Array, seed: Any = 0) -> Array:
    """Samples (n, p) of the Gaussian with mean zero and this precision matrix.

    Examples
    --------
    >>> gaussian(1000, regular_precision(10)).shape
    (1000, 10)
    """
    z = generator(seed, "seed").standard_normal((len(precision), n))
    return np.linalg.solve(np.linalg.cholesky(precision).T, z).T


def paper_precision(seed: Any = 0) -> Array:
    """Ten variables: 3 on the diagonal, the rest uniform in [0, 1]; drawn until it is positive definite."""
    rng = generator(seed, "seed")
    while True:
        upper = np.triu(rng.random((10, 10)), 1)
        precision = upper + upper.T + 3 * np.eye(10)
        if np.linalg.eigvalsh(precision)[0] > 0.1:
            return precision


def regular_precision(p: int, degree: int = 3, kappa: float = 0.25, seed: Any = 0) -> Array:
    """A random regular graph: 1 on the diagonal, kappa on edges."""
    import networkx

    graph = networkx.random_regular_graph(degree, p, seed=int(generator(seed, "seed").integers(2**31)))
    return np.eye(p) + kappa * networkx.to_numpy_array(graph, nodelist=range(p))


def diamond_precision(rho: float = 0.55) -> Array:
    """The diamond graph, on which the lasso selects the wrong edges in the limit: all pairs but (0, 3) are coupled.

    Covariances: rho on the four sides, 0 between 1 and 2, and 2 rho² between 0 and 3.
    """
    covariance = np.eye(4)
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 3)):
        covariance[i, j] = covariance[j, i] = rho
    covariance[0, 3] = covariance[3, 0] = 2 * rho**2
    precision = np.linalg.inv(covariance)
    precision[0, 3] = precision[3, 0] = 0.0
    return (precision + precision.T) / 2


# Interactions of two, three and four variables ------------------------------------------------------------------------


def many_body_theta(sizes: Sequence[int] = (4, 3, 2), strength: float = 0.8) -> Theta:
    """Groups of variables, in each one the product of them all: E = Σ_i (x_i²/2 + x_i⁴/10) + Σ_g θ_g Π_{i ∈ g} x_i.

    sizes are 2, 3 or 4. θ_g is `strength` (below 1) times the largest value for which the quadratic and quartic terms
    bound the product everywhere; the signs of groups alternate.
    """
    most = {2: 1.0, 3: 6 * sqrt(0.5 * 0.1), 4: 0.4}  # from |Π x_i| ≤ Σ|x_i|^q/q
    theta: Theta = {(i,) * d: c for i in range(sum(sizes)) for d, c in ((2, 0.5), (4, 0.1))}
    for g, group in enumerate(_groups(sizes)):
        theta[group] = (-1) ** g * strength * most[one_of(len(group), (2, 3, 4), "each of sizes")]
    return theta


def many_body(n: int, sizes: Sequence[int] = (4, 3, 2), strength: float = 0.8, seed: Any = 0) -> Array:
    """Samples (n, sum(sizes)) by rejection from (1 − strength) times the bound.

    Examples
    --------
    >>> many_body(1000).shape
    (1000, 9)
    """
    rng, theta = generator(seed, "seed"), many_body_theta(sizes, strength)
    X = np.empty((n, sum(sizes)))
    own = {(0, 0): 0.5 * (1 - strength), (0,) * 4: 0.1 * (1 - strength)}
    for group in _groups(sizes):
        todo = np.arange(n)
        while len(todo):
            x = _on_grid(len(todo) * len(group), own, 1, 10.0, 20_000, rng).reshape(-1, len(group))
            excess = strength * (0.5 * x**2 + 0.1 * x**4).sum(axis=1) + theta[group] * x.prod(axis=1)
            accepted = rng.random(len(todo)) < np.exp(-excess)
            X[np.ix_(todo[accepted], group)] = x[accepted]
            todo = todo[~accepted]
    return X


def _groups(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [tuple(range(a, b)) for a, b in pairwise(ends)]


# Hard ones ------------------------------------------------------------------------------------------------------------


def double_wells_theta(
    p: int = 4, *, height: float | Sequence[float] = 2.0, shift: float = 0.0, coupling: float = 0.0
) -> Theta:
    """A chain of variables with two wells: E = Σ_i height (y_i² − 1)² + Σ_i coupling y_i y_{i+1} with y = x − shift."""
    y, theta = np.polynomial.Polynomial([-shift, 1.0]), Theta()
    for i, h in enumerate(np.broadcast_to(height, p).tolist()):
        own = h * (y**2 - 1) ** 2 + coupling * ((i > 0) + (i < p - 1)) * -shift * (y + shift)
        theta |= {(i,) * d: float(c) for d, c in enumerate(own.coef) if d and c}
    return theta | ({(i, i + 1): float(coupling) for i in range(p - 1)} if coupling else {})


def double_wells(
    n: int,
    p: int = 4,
    *,
    height: float | Sequence[float] = 2.0,
    shift: float = 0.0,
    coupling: float = 0.0,
    seed: Any = 0,
) -> Array:
    """Samples (n, p) of a chain of double wells, by messages on a grid. height may be one number per variable.

    Examples
    --------
    >>> X = double_wells(1000, 2, height=(2.0, 4.0), shift=20.0)
    >>> X.mean(axis=0).round()
    array([20., 20.])
    """
    rng, heights = generator(seed, "seed"), np.broadcast_to(height, p)
    edge = 2.0
    while heights.min() * (edge**2 - 1) ** 2 < 40 + 2 * abs(coupling) * edge**2:
        edge *= 1.05
    g, width = _cells(edge, 1200)
    own = np.exp(-np.multiply.outer(heights, (g**2 - 1) ** 2))  # (p, cells)
    pair = np.exp(-coupling * (np.multiply.outer(g, g) + np.sign(coupling) * edge**2))
    rest = [np.ones(len(g))]  # the sum over all later variables, as a function of this one
    for mass in own[:0:-1]:
        message = pair @ (mass * rest[0])
        rest.insert(0, message / message.max())
    cells = np.empty((n, p), dtype=np.intp)
    cells[:, 0] = _pick(np.tile(own[0] * rest[0], (1, 1)), np.zeros(n, dtype=np.intp), rng)
    for i in range(1, p):
        cells[:, i] = _pick(pair * (own[i] * rest[i]), cells[:, i - 1], rng)
    return g[cells] + width * (rng.random((n, p)) - 0.5) + shift


def skewed_theta(p: int = 4) -> Theta:
    """Independent skewed variables: E = Σ_i x_i²/2 ± 0.15 x_i³ + 0.05 x_i⁴, signs alternating from +."""
    return {(i,) * d: c for i in range(p) for d, c in ((2, 0.5), (3, 0.15 * (-1) ** i), (4, 0.05))}


def skewed(n: int, p: int = 4, seed: Any = 0) -> Array:
    """Samples (n, p) of independent skewed variables."""
    x = _on_grid(n * p, skewed_theta(1), 1, 9.0, 20_000, generator(seed, "seed")).reshape(n, p)
    return x * (-1.0) ** np.arange(p)


def curved_theta() -> Theta:
    """A bent ridge: E = x²/2 + 4 (y − 0.6 x²)²."""
    return {(0, 0): 0.5, (1, 1): 4.0, (0, 0, 1): -4.8, (0, 0, 0, 0): 1.44}


def curved(n: int, seed: Any = 0) -> Array:
    """Samples (n, 2) along a bent ridge."""
    x, e = generator(seed, "seed").standard_normal((2, n))
    return np.column_stack([x, 0.6 * x**2 + e / sqrt(8)])


def butterfly(n: int, pairs: int = 5, seed: Any = 0) -> Array:
    """Samples (n, 2 pairs) of X and Y = WX in turn, X and W independent standard normal.

    X and Y of a pair depend on each other and are uncorrelated. The energy is not a polynomial.
    """
    X, W = generator(seed, "seed").standard_normal((2, n, pairs))
    return np.stack([X, W * X], axis=2).reshape(n, 2 * pairs)


# A lattice field ------------------------------------------------------------------------------------------------------


def phi4_neighbours(size: Sequence[int] = (8, 8)) -> list[tuple[int, int]]:
    """The pairs (i, j), i < j, of neighbouring sites of a periodic lattice, numbered row by row.

    Examples
    --------
    >>> phi4_neighbours((4,))
    [(0, 1), (0, 3), (1, 2), (2, 3)]
    """
    if not size or any(side % 2 or side < 4 for side in size):
        raise ValueError(f"size must be even numbers of at least 4, one per dimension, not {size!r}")
    sites = np.arange(prod(size)).reshape(size)
    ends = [np.stack([sites, np.roll(sites, -1, axis)], axis=-1).reshape(-1, 2) for axis in range(len(size))]
    return sorted(tuple(sorted(pair)) for pair in np.concatenate(ends).tolist())


def phi4_theta(size: Sequence[int] = (8, 8), mass2: float = -1.0, coupling: float = 6.0) -> Theta:
    """φ⁴ theory on a periodic lattice: E = Σ_i (mass2/2 φ_i² + coupling/4! φ_i⁴) + ½ Σ_<ij> (φ_i − φ_j)²."""
    theta: Theta = {}
    for i in range(prod(size)):
        theta |= {(i, i): mass2 / 2 + len(size), (i,) * 4: coupling / 24}
    return theta | dict.fromkeys(phi4_neighbours(size), -1.0)


def phi4(
    n: int,
    size: Sequence[int] = (8, 8),
    mass2: float = -1.0,
    coupling: float = 6.0,
    *,
    sweeps: int = 300,
    seed: Any = 0,
) -> Array:
    """Samples (n, sites) of the lattice field: n independent chains of exact Gibbs sweeps, by the checkerboard.

    Near the critical point a chain needs more sweeps. mass2 must be positive where coupling is 0.
    """
    phi4_neighbours(size)
    if coupling < 0 or (coupling == 0 and mass2 <= 0):
        raise ValueError(f"coupling={coupling!r} with mass2={mass2!r} has no density; coupling must be positive")
    rng, axes = generator(seed, "seed"), range(1, len(size) + 1)
    A, B = mass2 / 2 + len(size), coupling / 24
    odd = np.indices(size).sum(axis=0) % 2 == 1
    field = rng.standard_normal((n, *size))
    envelope = _envelope(A, B)
    for colour in [odd, ~odd] * sweeps:
        force = reduce(np.add, (np.roll(field, step, axis) for axis in axes for step in (-1, 1)))
        field[:, colour] = _quartic(force[:, colour].ravel(), A, B, envelope, rng).reshape(n, -1)
    return field.reshape(n, -1)


def _envelope(A: float, B: float) -> tuple[Array, Array]:
    """t for each |h|: the second moment of the Gaussian exp(−(A + 2Bt) x² + hx) itself, so that much is accepted."""
    h = np.linspace(0.0, 60.0, 600)
    low, high = np.full_like(h, max(0.0, -A / (2 * B) if B else 0.0)), np.full_like(h, 1e4)
    for _ in range(80):
        t = (low + high) / 2
        variance = 1 / (2 * (A + 2 * B * t))
        less = t < variance + (h * variance) ** 2
        low, high = np.where(less, t, low), np.where(less, high, t)
    return h, high


def _quartic(h: Array, A: float, B: float, envelope: tuple[Array, Array], rng: np.random.Generator) -> Array:
    """One draw from exp(−A x² − B x⁴ + hx) for each h, by rejection: B x⁴ = B (x² − t)² + 2Bt x² − Bt²."""
    t = np.interp(np.abs(h), *envelope)
    variance = 1 / (2 * (A + 2 * B * t))
    mean, deviation = h * variance, np.sqrt(variance)
    x, todo = np.empty_like(h), np.arange(len(h))
    while len(todo):
        trial = mean[todo] + deviation[todo] * rng.standard_normal(len(todo))
        accepted = rng.random(len(todo)) < np.exp(-B * (trial**2 - t[todo]) ** 2)
        x[todo[accepted]] = trial[accepted]
        todo = todo[~accepted]
    return x


# Measured -------------------------------------------------------------------------------------------------------------


def sachs(condition: bool = False) -> pd.DataFrame:
    """Flow cytometry of 7,466 cells × 11 proteins: log10 of the intensities, and on request the condition (1 to 9).

    K. Sachs et al., Science 308 (2005) 523; from the package cdt 0.6.0 (Apache License 2.0).

    Examples
    --------
    >>> sachs().shape, sachs(condition=True).columns[-1]
    ((7466, 11), 'condition')
    """
    with resources.files(__package__).joinpath("data_files", "sachs.csv.gz").open("rb") as file:
        table = pd.read_csv(file, compression="gzip")
    intensities = np.log10(table.drop(columns="condition"))
    return intensities.assign(condition=table["condition"]) if condition else intensities


# Grids ----------------------------------------------------------------------------------------------------------------


def _cells(edge: float, count: int) -> tuple[Array, float]:
    """The middles of equal cells of [−edge, edge], and their width."""
    width = 2 * edge / count
    return -edge + width * (np.arange(count) + 0.5), width


def _pick(mass: Array, rows: Array, rng: np.random.Generator) -> Array:
    """For each of the rows of a table of masses, a column at random in proportion to its mass."""
    cdf = np.cumsum(mass, axis=1)
    cdf = cdf / cdf[:, -1:] + np.arange(len(mass))[:, None]
    found = np.searchsorted(cdf.ravel(), rows + rng.random(len(rows)), side="right")
    return np.minimum(found - rows * mass.shape[1], mass.shape[1] - 1)


def _on_grid(n: int, theta: Mapping[tuple[int, ...], float], p: int, edge: float, count: int, rng: Any) -> Array:
    """Draws (n, p) of a density of one or two variables that is constant in each of many cells."""
    g, width = _cells(edge, count)
    places = np.meshgrid(*[g] * p, indexing="ij", sparse=True)
    energy = sum(value * prod(places[i] ** term.count(i) for i in set(term)) for term, value in theta.items())
    mass = np.exp(np.min(energy) - energy)
    marginal = mass.reshape(count, -1).sum(axis=1)
    cells = [_pick(marginal[None], np.zeros(n, dtype=np.intp), rng)]
    if p == 2:
        cells.append(_pick(mass, cells[0], rng))
    return g[np.stack(cells, axis=1)] + width * (rng.random((n, p)) - 0.5)
