"""The models of the paper, to draw samples from and to hold estimates against; and measured data.

Parameters are those of the authors' data files (Ren, Misra, Vuffray and Lokhov, "Learning Continuous
Exponential Families Beyond Gaussian"). Every function but `load_sachs` returns a `PolynomialModel`;
``.sample(n, rng)`` gives samples.
"""

from __future__ import annotations

from importlib import resources

import numpy as np
import pandas as pd

from .basis import MonomialBasis
from .model import PolynomialModel

__all__ = [
    "diamond_gaussian",
    "gaussian",
    "gaussian_10",
    "load_sachs",
    "paper_1d",
    "paper_4d",
    "paper_pair",
    "regular_gaussian",
]

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
    if np.linalg.eigvalsh(precision)[0] <= 0:
        raise ValueError("the precision matrix must be positive definite")
    p = len(precision)
    theta: dict[tuple[int, ...], float] = {
        (i, j): precision[i, j] / (2 if i == j else 1) for i in range(p) for j in range(i, p) if precision[i, j] != 0
    }
    return PolynomialModel.from_dict(theta)


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
