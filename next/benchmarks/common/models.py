"""Models and tables that benchmarks fit: each has a generator, and its own score where that is known."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import sklearn.datasets as sk

from isodus import datasets

Array = np.ndarray


def quartic_pair(n: int, rho: float, seed: int, quartic: float = 0.05) -> Array:
    """Two variables, E = ½ x'Px + quartic (x⁴ + y⁴) with correlation rho in P⁻¹: rejection from the Gaussian."""
    rng, out, got = np.random.default_rng(seed), np.empty((n, 2)), 0
    L = np.linalg.cholesky([[1, rho], [rho, 1]])
    while got < n:
        x = rng.standard_normal((2 * n, 2)) @ L.T
        x = x[rng.random(2 * n) < np.exp(-quartic * (x**4).sum(axis=1))][: n - got]
        out[got : got + len(x)] = x
        got += len(x)
    return out


def quartic_pair_theta(rho: float, quartic: float = 0.05) -> dict[tuple[int, ...], float]:
    """Its coefficients."""
    P = np.linalg.inv([[1, rho], [rho, 1]])
    return {
        (0, 0): P[0, 0] / 2,
        (1, 1): P[1, 1] / 2,
        (0, 1): P[0, 1],
        (0, 0, 0, 0): quartic,
        (1, 1, 1, 1): quartic,
    }


def random_precision(p: int, seed: int, share: float = 1.0, size: float = 0.3) -> Array:
    """Unit diagonal and a share of the pairs coupled by ±size/√(p·share), up to what keeps it positive."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((p, p)) < share, 1) * rng.choice([-1, 1], (p, p)) * size
    P = upper + upper.T
    return np.eye(p) + P * min(1.0, 0.8 / max(1e-9, -np.linalg.eigvalsh(P)[0]))


# Invented tables of p columns --------------------------------------------------------------------------------------


def gaussian(n: int, p: int, rng: np.random.Generator) -> Array:
    """Correlated normal variables."""
    return rng.standard_normal((n, p)) @ _mixing(p).T


def independent(n: int, p: int, rng: np.random.Generator) -> Array:
    """Independent normal variables."""
    return rng.standard_normal((n, p))


def student(df: float) -> Callable[[int, int, np.random.Generator], Array]:
    """Multivariate t of `df` degrees of freedom."""

    def draw(n: int, p: int, rng: np.random.Generator) -> Array:
        return rng.standard_normal((n, p)) @ _mixing(p).T / np.sqrt(rng.chisquare(df, (n, 1)) / df)

    return draw


def outliers(n: int, p: int, rng: np.random.Generator) -> Array:
    """Normal variables, 3 % of the rows ten times as wide."""
    return gaussian(n, p, rng) * np.where(rng.random((n, 1)) < 0.03, 10.0, 1.0)


def ring(n: int, p: int, rng: np.random.Generator) -> Array:
    """Pairs of columns on noisy circles."""
    angle = rng.uniform(0, 2 * np.pi, (n, p // 2))
    radius = 1 + 0.1 * rng.standard_normal((n, p // 2))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2).reshape(n, -1)


def wells(n: int, p: int, rng: np.random.Generator) -> Array:
    """A chain of double wells."""
    return datasets.double_wells(n, p, height=2.0, coupling=0.8, seed=rng)


def clusters(n: int, p: int, rng: np.random.Generator) -> Array:
    """Three clusters."""
    centres = 3 * np.random.default_rng(5).standard_normal((3, p))
    return centres[rng.integers(0, 3, n)] + rng.standard_normal((n, p))


def squares(n: int, p: int, rng: np.random.Generator) -> Array:
    """Every second column is the square of the one before, with noise."""
    x = rng.standard_normal((n, p // 2))
    return np.stack([x, x**2 + 0.5 * rng.standard_normal(x.shape)], axis=2).reshape(n, -1)


def lognormal(n: int, p: int, rng: np.random.Generator) -> Array:
    """Exponentials of correlated normal variables."""
    return np.exp(gaussian(n, p, rng))


def heteroscedastic(n: int, p: int, rng: np.random.Generator) -> Array:
    """Each column is as wide as the one before is far out."""
    x = rng.standard_normal((n, p))
    for i in range(1, p):
        x[:, i] *= 0.5 + 0.5 * np.abs(x[:, i - 1])
    return x


def copula(n: int, p: int, rng: np.random.Generator) -> Array:
    """Gamma columns joined by a normal copula."""
    from scipy.stats import gamma, norm

    return gamma.ppf(norm.cdf(gaussian(n, p, rng) / np.sqrt((_mixing(p) ** 2).sum(axis=1))), 2.0)


def uniform_rotated(n: int, p: int, rng: np.random.Generator) -> Array:
    """A cube, turned."""
    turn = np.linalg.qr(np.random.default_rng(8).standard_normal((p, p)))[0]
    return rng.uniform(-1, 1, (n, p)) @ turn


def laplace_chain(n: int, p: int, rng: np.random.Generator) -> Array:
    """A random walk with Laplace steps and a pull to zero."""
    x = rng.laplace(size=(n, p))
    for i in range(1, p):
        x[:, i] += 0.7 * x[:, i - 1]
    return x


def triple(n: int, p: int, rng: np.random.Generator) -> Array:
    """Every third column is the product of the two before, with noise."""
    x = rng.standard_normal((n, p))
    x[:, 2::3] = x[:, 0::3][:, : p // 3] * x[:, 1::3][:, : p // 3] + 0.5 * x[:, 2::3]
    return x


def _mixing(p: int) -> Array:
    rng = np.random.default_rng(3)
    return np.eye(p) + 0.4 * rng.standard_normal((p, p)) / np.sqrt(p)


INVENTED = {
    "Gaussian": gaussian,
    "independent": independent,
    "t3": student(3.0),
    "t1.5": student(1.5),
    "3 % outliers": outliers,
    "ring": ring,
    "wells": wells,
    "clusters": clusters,
    "squares": squares,
    "lognormal": lognormal,
}
FIVE_MORE = {
    "heteroscedastic": heteroscedastic,
    "gamma copula": copula,
    "turned cube": uniform_rotated,
    "Laplace chain": laplace_chain,
    "products": triple,
}


# Measured tables ---------------------------------------------------------------------------------------------------


def jittered(X: Array, seed: int = 0) -> Array:
    """Columns with uniform noise of the width of their rounding."""
    rng, X = np.random.default_rng(seed), np.array(X, float)
    for j in range(X.shape[1]):
        step = np.diff(np.unique(X[:, j])).min()
        X[:, j] += rng.uniform(-step / 2, step / 2, len(X))
    return X


def breast_cancer(columns: int = 10) -> Array:
    """Logarithms of the first columns without zeros."""
    X = sk.load_breast_cancer().data
    return np.log(X[:, (X > 0).all(axis=0)])[:, :columns]


def diabetes() -> Array:
    """Without sex, which has two values; rounding jittered."""
    return jittered(np.delete(sk.load_diabetes(scaled=False).data, 1, axis=1))


def pixels(name: str, step: int = 16) -> Array:
    """Colours of every 16th pixel of a sample image, jittered within their rounding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rgb = sk.load_sample_image(name).reshape(-1, 3)[::step].astype(float)
    return rgb + np.random.default_rng(0).uniform(-0.5, 0.5, rgb.shape)


def sachs() -> Array:
    """7,466 cells of 11 proteins, log10."""
    return datasets.sachs().to_numpy()


MEASURED = {
    "wine": lambda: jittered(sk.load_wine().data),
    "iris": lambda: jittered(sk.load_iris().data),
    "diabetes": diabetes,
    "breast cancer, log": breast_cancer,
    "Sachs": sachs,
    "china.jpg": lambda: pixels("china.jpg"),
    "flower.jpg": lambda: pixels("flower.jpg"),
}


# Models whose θ is known ---------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """A model, its sampler (n, seed) → rows, and the terms that a fit of it has."""

    draw: Callable[[int, int], Array]
    theta: dict[tuple[int, ...], float]
    terms: dict[str, int]


def off_centre_theta() -> dict[tuple[int, ...], float]:
    """The paper's first pair with linear terms, so that its mean lies off zero."""
    return datasets.paper_pair_theta(1) | {(0,): 2.0, (1,): -1.5}


def off_centre(n: int, seed: int) -> Array:
    """Its samples: of many rows of the pair, those kept with probability exp(−2x + 1.5y − 5), at most 1."""
    rng, out, got = np.random.default_rng(seed), np.empty((n, 2)), 0
    while got < n:
        x = datasets.paper_pair(min(120 * n, 4_000_000), rng)  # 1.2 % of them are kept
        keep = x[rng.random(len(x)) < np.exp(x @ [-2.0, 1.5] - 5.0)][: n - got]
        out[got : got + len(keep)] = keep
        got += len(keep)
    return out


def _wells(height: float, coupling: float) -> Known:
    sizes = dict(p=2, height=height, coupling=coupling)
    return Known(
        lambda n, seed: datasets.double_wells(n, seed=seed, **sizes),
        datasets.double_wells_theta(**sizes),
        dict(min_degree=2),
    )


_PRECISION = datasets.paper_precision(0)
PAPER = {
    "1D": Known(datasets.paper_1d, datasets.paper_1d_theta(), dict(min_degree=2)),
    "pair (1, 2)": Known(datasets.paper_pair, datasets.paper_pair_theta(), dict(min_degree=2)),
    "4D, 65 terms": Known(datasets.paper_4d, datasets.paper_4d_theta(), dict(min_degree=2, max_order=4)),
    "Gaussian, p = 10": Known(
        lambda n, seed: datasets.gaussian(n, _PRECISION, seed),
        datasets.gaussian_theta(_PRECISION),
        dict(degree=2, min_degree=2),
    ),
}
WELLS = {f"wells, h = {h:g}, coupling {c:g}": _wells(h, c) for h in (1.0, 2.0, 4.0) for c in (0.5, 2.0)}
OFF_CENTRE = {"off centre": Known(off_centre, off_centre_theta(), {})}
