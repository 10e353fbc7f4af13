"""Models to draw samples from and to hold estimates against: of the paper, of physics, at random; and measured data.

Parameters of the paper's models are those of the authors' data files (Ren, Misra, Vuffray and Lokhov, "Learning
Continuous Exponential Families Beyond Gaussian"). Every function but `load_sachs` returns a `PolynomialModel`;
``.sample(n, rng)`` gives samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources
from itertools import cycle
from math import comb, isfinite, prod, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .basis import MonomialBasis
from .model import PolynomialModel

if TYPE_CHECKING:
    import networkx

__all__ = [
    "diamond_gaussian",
    "double_wells",
    "gaussian",
    "gaussian_10",
    "hypertree_polynomial",
    "load_sachs",
    "paper_1d",
    "paper_4d",
    "paper_pair",
    "phi4_lattice",
    "regular_gaussian",
    "sparse_polynomial",
]

Term = tuple[int, ...]

_1D = {(0, 0): 1.0, (0, 0, 0): 0.5, (0, 0, 0, 0): 2.0}

# terms (0,0), (0,1), (1,1), (0,0,0), (0,0,1), (0,1,1), (1,1,1), (0,0,0,0), …, (1,1,1,1)
_PAIRS = (
    (1.0, 0.1, 0.5, 0.5, 0.05, 0.1, 1.0, 2.0, 0.3, 0.4, 0.5, 2.0),
    (1.0, 0.5, 0.1, 0.1, 0.5, 0.6, 1.0, 2.0, 0.3, 0.8, 0.25, 2.0),
)


def paper_1d() -> PolynomialModel:
    """The one-dimensional model, E = x² + 0.5 x³ + 2 x⁴."""
    return PolynomialModel.from_dict(_1D)


def paper_pair(which: int = 1) -> PolynomialModel:
    """One of the two pairs, all terms of degree 2 to 4: 1 for the pair (1, 2), 2 for the pair (3, 4)."""
    if which not in (1, 2):
        raise ValueError(f"which must be 1 or 2, not {which!r}")
    terms = MonomialBasis(2, 4, min_degree=2).terms
    return PolynomialModel.from_dict(dict(zip(terms, _PAIRS[which - 1], strict=True)))


def paper_4d() -> PolynomialModel:
    """The four-dimensional model: two independent pairs, 24 parameters."""
    first, second = paper_pair(1).to_dict(), paper_pair(2).to_dict()
    return PolynomialModel.from_dict(first | {tuple(v + 2 for v in k): value for k, value in second.items()})


def gaussian(precision: np.ndarray) -> PolynomialModel:
    """The Gaussian with mean zero and this precision matrix: θ_(i,i) = Λ_ii/2, θ_(i,j) = Λ_ij."""
    precision = np.asarray(precision, dtype=float)
    if precision.ndim != 2 or precision.shape[0] != precision.shape[1] or not np.allclose(precision, precision.T):
        raise ValueError("the precision must be a symmetric matrix")
    precision = (precision + precision.T) / 2
    try:
        np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        raise ValueError("the precision matrix must be positive definite") from None
    i, j = np.nonzero(np.triu(precision))
    values = np.where(i == j, 0.5, 1.0) * precision[i, j]
    terms: list[tuple[int, ...]] = list(zip(i.tolist(), j.tolist(), strict=True))
    return PolynomialModel.from_dict(dict(zip(terms, values.tolist(), strict=True)))


def gaussian_10(rng: int | np.random.Generator | None = 0) -> PolynomialModel:
    """The ten-variable Gaussian: diagonal 3, off-diagonal uniform in [0, 1]; drawn until positive definite."""
    rng = np.random.default_rng(rng)
    for _ in range(10_000):
        upper = np.triu(rng.random((10, 10)), 1)
        precision = upper + upper.T + 3 * np.eye(10)
        if np.linalg.eigvalsh(precision)[0] > 0.1:
            return gaussian(precision)
    raise RuntimeError("no positive definite precision matrix found")


def regular_gaussian(
    p: int, degree: int = 3, kappa: float = 0.25, rng: int | np.random.Generator | None = 0
) -> PolynomialModel:
    """A Gaussian on a random regular graph: precision one on the diagonal, `kappa` on edges."""
    import networkx

    seed = int(np.random.default_rng(rng).integers(2**31))
    adjacency = networkx.to_numpy_array(networkx.random_regular_graph(degree, p, seed=seed), nodelist=range(p))
    return gaussian(np.eye(p) + kappa * adjacency)


def diamond_gaussian(rho: float = 0.55) -> PolynomialModel:
    """The diamond graph on which sparsistency fails (Ravikumar, Wainwright, Raskutti and Yu, 2008).

    Covariance: one on the diagonal, rho on the four sides, 0 between the two middle variables, and 2rho²
    between the two ends, the one pair without an edge.
    """
    if not abs(rho) < 1 / np.sqrt(2):
        raise ValueError(f"rho must lie between −0.707 and 0.707, not {rho!r}")
    covariance = np.eye(4)
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 3)):
        covariance[i, j] = covariance[j, i] = rho
    covariance[0, 3] = covariance[3, 0] = 2 * rho**2
    precision = np.linalg.inv(covariance)
    precision[0, 3] = precision[3, 0] = 0.0  # zero exactly, as it is by construction
    return gaussian((precision + precision.T) / 2)


def sparse_polynomial(
    p: int,
    degree: int = 4,
    *,
    max_order: int = 2,
    n_interactions: int | None = None,
    strength: float = 0.8,
    treewidth: int | None = None,
    rng: int | np.random.Generator | None = 0,
) -> PolynomialModel:
    """A random model of p variables with few interactions, integrable by construction.

        E(x) = U(x) + Σ_a θ_a x^{α_a},    U(x) = Σ_i Σ_{d = 2, 4, …} c_d x_i^d,    c_d = 2/(degree · d · (d − 1)!!)

    with |Σ_a θ_a x^{α_a}| ≤ strength · U(x) for every x. Alone, a variable has a standard deviation of about one.

    degree: the highest degree of a term; even.
    max_order: the most distinct variables in a term. Groups of 2, 3 … max_order variables are equally many, as far as
        there are enough.
    n_interactions: how many groups of variables interact, each by one monomial of all its variables, of random degree.
        By default a variable is in three groups on average, or else there are as many groups as there can be.
    strength: between 0 and 1, the share in the bound above; it is used up at the variable where most interactions
        meet. Their signs are random, and so are their sizes, within a factor of two and what the bound leaves them.
    treewidth: the interaction graph is part of a random k-tree with this k, so its treewidth is at most this.
    """
    p, degree, max_order = _whole(p, "p", 2), _whole(degree, "degree", 2), _whole(max_order, "max_order", 2)
    if degree % 2:
        raise ValueError(f"degree must be even, not {degree}: an energy of odd degree falls without bound")
    if not 0 < _number(strength, "strength") < 1:
        raise ValueError(f"strength must lie between 0 and 1, not {strength!r}: at 1 the model may not be integrable")
    k = p - 1 if treewidth is None else min(_whole(treewidth, "treewidth", 1), p - 1)
    if max_order > min(p, degree):
        raise ValueError(
            f"max_order={max_order}, but a term of degree {degree} has at most {min(p, degree)} of {p} variables"
        )
    if max_order > k + 1:
        raise ValueError(
            f"max_order={max_order} takes a treewidth of {max_order - 1} or more: a term links all its variables"
        )
    rng = np.random.default_rng(rng)
    terms = [_random_monomial(group, degree, rng) for group in _random_groups(p, k, max_order, n_interactions, rng)]
    c = {d: 2 / (degree * d * prod(range(1, d, 2))) for d in range(2, degree + 1, 2)}
    own = {(i,) * d: c[d] for i in range(p) for d in c}
    return PolynomialModel.from_dict(own | _random_parameters(terms, p, c, strength, rng))


def hypertree_polynomial(
    p: int,
    degree: int = 4,
    *,
    max_order: int = 4,
    strength: float = 0.9,
    rng: int | np.random.Generator | None = 0,
) -> PolynomialModel:
    """A random model whose groups of interacting variables form a tree, strong enough to be found.

        E(x) = U(x) + Σ_a θ_a x^{α_a},    U(x) = Σ_i Σ_{d = 2, 4, …} 0.1 x_i^d,    |Σ_a θ_a x^{α_a}| ≤ strength · U(x)

    Groups of max_order, …, 3, 2 variables take turns until all variables have one; each but the first shares one
    variable with the groups before it, and no variable is in more than two. Each has one monomial of all its variables,
    of random degree. All are as large as the bound allows, with random signs.
    """
    p, degree, max_order = _whole(p, "p", 2), _whole(degree, "degree", 2), _whole(max_order, "max_order", 2)
    if degree % 2:
        raise ValueError(f"degree must be even, not {degree}: an energy of odd degree falls without bound")
    if not 0 < _number(strength, "strength") < 1:
        raise ValueError(f"strength must lie between 0 and 1, not {strength!r}: at 1 the model may not be integrable")
    if max_order > min(p, degree):
        raise ValueError(
            f"max_order={max_order}, but a term of degree {degree} has at most {min(p, degree)} of {p} variables"
        )
    rng = np.random.default_rng(rng)
    waiting: list[int] = rng.permutation(p).tolist()
    once: list[int] = []
    groups: list[Term] = []
    for q in cycle(range(max_order, 1, -1)):
        if not waiting:
            break
        shared = [once.pop(rng.integers(len(once)))] if once else []
        new = [waiting.pop() for _ in range(min(q - len(shared), len(waiting)))]
        groups.append(tuple(sorted(shared + new)))
        once += new
    terms = [_random_monomial(group, degree, rng) for group in groups]
    c = dict.fromkeys(range(2, degree + 1, 2), 0.1)
    own = {(i,) * d: c[d] for i in range(p) for d in c}
    return PolynomialModel.from_dict(own | _random_parameters(terms, p, c, strength, rng, smallest=1.0))


def _random_parameters(
    terms: list[Term],
    p: int,
    c: dict[int, float],
    strength: float,
    rng: np.random.Generator,
    smallest: float = 0.5,
) -> dict[Term, float]:
    """θ_a with |Σ_a θ_a x^{α_a}| ≤ strength · Σ_i Σ_d c_d x_i^d, by the inequality of the means, twice:

    |x^α| ≤ Σ_i α_i/d |x_i|^d with d = |α|, and for odd d, whose neighbours are even,
    2√(c_{d−1} c_{d+1}) |x|^d ≤ c_{d−1} |x|^{d−1} + c_{d+1} |x|^{d+1}.
    """
    sizes, signs = rng.uniform(smallest, 1.0, len(terms)), rng.choice([-1.0, 1.0], len(terms))
    even = [(len(term) - len(term) % 2, len(term) + len(term) % 2) for term in terms]
    load = np.zeros((p, max(c) + 1))  # how often c_d x_i^d is taken by terms with these sizes
    for term, size, powers in zip(terms, sizes, even, strict=True):
        for d in powers:
            np.add.at(load[:, d], list(term), size / (2 * len(term)))
    return {
        term: strength * size * sqrt(c[low] * c[high]) / load[list(term)][:, [low, high]].max()
        for term, size, (low, high) in zip(terms, (sizes * signs).tolist(), even, strict=True)
    }


def _random_groups(p: int, k: int, max_order: int, count: int | None, rng: np.random.Generator) -> list[Term]:
    """Distinct cliques of 2 … max_order vertices of a random k-tree on p vertices, `count` in all."""
    earlier = _random_k_tree(p, k, rng)
    ways = {q: [comb(len(before), q - 1) for before in earlier] for q in range(max_order, 1, -1)}
    most = sum(map(sum, ways.values()))
    if count is None:
        count = min(most, -(-6 * p // (2 + max_order)))
    if _whole(count, "n_interactions", 0) > most:
        raise ValueError(f"n_interactions={count}, but there are {most} groups of variables that can interact")
    wanted = dict.fromkeys(ways, 0)
    for q in cycle(ways):
        if sum(wanted.values()) == count:
            break
        wanted[q] += wanted[q] < sum(ways[q])

    groups: list[Term] = []
    label = rng.permutation(p)
    for q, n in wanted.items():
        found: dict[Term, None] = {}  # a set that keeps its order
        last = np.array(ways[q], float) / sum(ways[q])
        while len(found) < n:  # each clique is its last vertex with some of the earlier neighbours of that
            for v in rng.choice(p, n - len(found), p=last).tolist():
                others = rng.choice(len(earlier[v]), q - 1, replace=False)
                found[tuple(sorted(label[[v, *(earlier[v][j] for j in others)]].tolist()))] = None
        groups += found
    return groups


def _random_k_tree(p: int, k: int, rng: np.random.Generator) -> list[Sequence[int]]:
    """The earlier neighbours of each vertex, a clique: all of the first k + 1 vertices, later k of them.

    A new vertex links to a vertex with fewer than two such successors and to that one's k − 1 latest earlier
    neighbours, so no vertex becomes a hub, at which every interaction would be weak.
    """
    earlier: list[Sequence[int]] = [range(v) for v in range(k + 1)]
    successors = [k, k]
    for v in range(k + 1, p):
        u = successors.pop(rng.integers(len(successors)))
        earlier.append([*earlier[u][1:], u])
        successors += [v, v]
    return earlier


def _random_monomial(group: Term, degree: int, rng: np.random.Generator) -> Term:
    """All variables of a group, and some of them again: its degree, then its powers, are uniform."""
    d = int(rng.integers(len(group), degree + 1))
    cuts = np.sort(rng.choice(d - 1, len(group) - 1, replace=False)) + 1
    return tuple(np.repeat(group, np.diff(cuts, prepend=0, append=d)).tolist())


def phi4_lattice(
    size: int | Iterable[int], *, mass2: float = -1.0, coupling: float = 6.0, periodic: bool = False
) -> PolynomialModel:
    """The lattice field theory φ⁴ with a real field on a chain, or on a lattice of two or more dimensions.

        E(φ) = Σ_i (mass2/2 φ_i² + coupling/4! φ_i⁴) + ½ Σ_<ij> (φ_i − φ_j)²

    size: sites of a chain, or along each side of a lattice: 16, (8, 8). Variables are called phi_0 … or phi_0_0 …
    mass2: the bare mass squared. Below zero a site alone has two wells, at φ² = −6 mass2/coupling.
    coupling: positive, or 0 for the free field, a Gaussian, with mass2 above zero.
    periodic: sites at opposite ends are neighbours. Along a side of length 2 they are already: counted once.
    """
    sides = [_whole(n, "size", 1) for n in (size if isinstance(size, Iterable) else [size])]
    if not sides:
        raise ValueError("size is empty: give a number of sites, or one for each side, such as (4, 4)")
    mass2, coupling = _number(mass2, "mass2"), _number(coupling, "coupling")
    if coupling < 0 or (coupling == 0 and mass2 <= 0):
        raise ValueError(
            f"mass2={mass2!r} with coupling={coupling!r} has no density: coupling must be positive, or zero and mass2 "
            "positive"
        )
    if not isinstance(periodic, bool):
        raise ValueError(f"periodic must be True or False, for all sides, not {periodic!r}")
    sites = np.arange(prod(sides)).reshape(sides)
    bonds = []
    for axis, n in enumerate(sides):
        last = n if periodic and n > 2 else n - 1
        first = np.moveaxis(sites, axis, 0)
        bonds.append(np.stack([first[:last], np.roll(first, -1, axis=0)[:last]], axis=-1).reshape(-1, 2))
    pairs = np.concatenate(bonds)
    neighbours = np.bincount(pairs.ravel(), minlength=sites.size)
    theta: dict[Term, float] = {(i, i): (mass2 + n) / 2 for i, n in enumerate(neighbours.tolist())}
    theta |= dict.fromkeys(map(tuple, pairs.tolist()), -1.0)
    if coupling > 0:
        theta |= {(i,) * 4: coupling / 24 for i in range(sites.size)}
    names = ["_".join(map(str, ("phi", *place))) for place in np.ndindex(*sides)]
    return PolynomialModel.from_dict(theta, names=names)


def double_wells(
    graph: int | networkx.Graph | Iterable[tuple[Any, Any]], *, height: float = 2.0, coupling: float = 0.5
) -> PolynomialModel:
    """Variables with a well at −1 and one at +1 each, coupled along the edges of a graph.

        E(x) = Σ_i height (x_i² − 1)² + Σ_<ij> coupling x_i x_j      (without the constant)

    graph: how many variables, on a chain; or a networkx graph; or its edges, as pairs. Nodes 0, 1, … p − 1 are the
        variables x0, x1, …; other nodes, in the order of the graph, give theirs their names. An edge counts once.
    height: of the barrier between the wells of a variable; positive.
    coupling: θ_(i,j) of every edge. If positive, neighbours prefer opposite wells; if negative, the same.
    """
    height, coupling = _number(height, "height"), _number(coupling, "coupling")
    if height <= 0:
        raise ValueError(f"height must be positive, not {height!r}: there are no wells without a barrier")
    links = _graph(graph)
    p = len(links)
    numbered = set(links.nodes) == set(range(p))
    place = {node: i for i, node in enumerate(range(p) if numbered else links.nodes)}
    theta: dict[Term, float] = {(i,) * d: c for i in range(p) for d, c in ((2, -2 * height), (4, height))}
    for a, b in links.edges():
        i, j = sorted((place[a], place[b]))
        theta[i, j] = coupling
    return PolynomialModel.from_dict(theta, names=None if numbered else [str(node) for node in place])


def _graph(graph: int | networkx.Graph | Iterable[tuple[Any, Any]]) -> networkx.Graph:
    """A chain of so many nodes, a graph as it is, or the graph with these edges."""
    import networkx

    if isinstance(graph, networkx.Graph):
        links = graph
    elif isinstance(graph, Iterable):
        pairs = [tuple(edge) for edge in graph]
        if any(len(pair) != 2 for pair in pairs):
            raise ValueError("an edge is a pair of nodes such as (0, 1)")
        links = networkx.Graph(pairs)
    else:
        links = networkx.path_graph(_whole(graph, "graph", 1))
    if not links:
        raise ValueError("the graph is empty: give at least one edge, or how many variables a chain has")
    loop = next(networkx.selfloop_edges(links), None)
    if loop:
        raise ValueError(f"the edge {loop} links a node to itself")
    return links


def _whole(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def _number(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return float(value)


def load_sachs(*, log10: bool = True, condition: bool = False) -> pd.DataFrame:
    """Eleven proteins in 7,466 single cells, by flow cytometry: the data of Sachs et al. (2005).

    K. Sachs, O. Perez, D. Pe'er, D. A. Lauffenburger and G. P. Nolan, "Causal Protein-Signaling Networks Derived from
    Multiparameter Single-Cell Data", Science 308 (2005) 523; taken from the package cdt 0.6.0 (Apache-2.0).

    log10: decimal logarithms, without which the tails are far too heavy for a polynomial energy (kurtosis up to
    1,523); False for the instrument's units. Its floor of 1.0, where 1,669 of the 82,126 values sit, is then 0.
    condition: with a last column "condition", under which of nine treatments, 1 to 9, a cell was measured.
    """
    with (resources.files(__package__) / "data" / "sachs.csv.gz").open("rb") as f:
        cells = pd.read_csv(f, compression="gzip")
    treatment = cells.pop("condition")
    if log10:
        cells = cells.apply(np.log10)
    return cells.assign(condition=treatment) if condition else cells
