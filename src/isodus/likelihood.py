"""Maximum likelihood by Markov chains: the model whose moments are those of the data.

The log likelihood of E(y) = Σ_k θ_k t_k(y), t_k the monomials, has the gradient ⟨t⟩_model − ⟨t⟩_data. Chains that are
kept from step to step tell ⟨t⟩_model (Younes, 1988). Steps are Newton's, with the covariance of t in the chains, to
which that in the data is added: it keeps steps short where chains have not been. At first they go on with half of each,
and no further than a relative entropy of 0.1; then less and less, so that the noise of the chains is averaged.

Estimators from conditional densities know of a model only what it is near the data; away from there it may have more
mass than at them. Chains go there, and the likelihood falls. Those that are caught in a mode that has vanished since
would not find back: a few start anew from the data at every step. A mode that no chain has found is looked for by
descents from far away at the end, and by new samples that do not start from the data; if there is one, all is done
again with highest powers that confine more.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import one_blas_thread
from .basis import MonomialBasis
from .checks import generator, warn
from .energy import descend, energy
from .model import PolynomialModel
from .progress import Progress, Show
from .sampling.kernels import Gibbs
from .sampling.sweep import colours

__all__ = ["match_moments"]

_CHAINS = 4096
_GAIN, _ENTROPY = 0.5, 0.1  # of a step: its share, and its size at most
_RIDGE = 3e-3  # of correlations, where terms can hardly be told apart
_FLOORS = (1e-3, 5e-3, 0.025, 0.1)  # least parameters of the highest powers, in standardised units
_SEARCH, _SETTLE = 80, 160  # steps with full gain, and with a gain that falls
_ANEW = 0.01  # of the chains, at every step but the last ones
_DESCENTS = 256  # that look for minima far from the data
_OUTSIDE = 1.2  # times the farthest sample: is far from the data
_QUIET = 40  # last steps, without either
_RETUNE = 10
_DRAWS = 10_000  # of the model found, to see whether it is one
_CLOSE, _USEFUL = 0.1, 0.2  # standard deviations that their moments may be off: to be content, and to warn


def match_moments(
    model: PolynomialModel, X: Any, *, rng: int | np.random.Generator | None = None, progress: Show = None
) -> PolynomialModel:
    """A model whose samples have the moments of X, with the terms of another: maximum likelihood, by Markov chains.

    For models that are to be sampled from. What is learned from conditional densities, as all estimators here do, can
    have its mass far from the data if the data do not follow the model (estimators warn of it); this cannot. It has
    more terms than the model: a highest power of every variable is added, two degrees above the model's, so that the
    density exists whatever the other terms are. It takes seconds to minutes, for up to a few hundred terms.

    Parameters
    ----------
    model : PolynomialModel
        Its terms, names and units are taken; its parameters are not looked at.
    X : array or DataFrame of shape (n_samples, n_variables)
        The data.
    rng : int or numpy.random.Generator, optional
        For the chains; the same gives the same model.
    progress : bool or callable, optional
        A bar, by default on a terminal after a second, or a function, as in `ISODUS`.

    Returns
    -------
    PolynomialModel
        With the covariance of its parameters' errors, and a note on how well its moments agree.
    """
    rng, Y = generator(rng), np.ascontiguousarray(model._standardised(X, "X").T)
    p, n = Y.shape
    if model.basis.spaces is not None:
        raise ValueError("moments are matched on the whole line, with powers; this model lives elsewhere")
    degree = model.basis.degree
    top = degree + 2 - degree % 2
    own = {(i,) * d for i in range(p) for d in range(degree + 1, top + 1)}
    basis = MonomialBasis(p, terms={*model.basis.terms, *own})
    free = np.flatnonzero((basis.degrees <= degree) | (basis.degrees == top))  # odd powers above would not confine
    if n <= len(free):
        raise ValueError(f"{n} samples do not tell {len(free)} parameters: take fewer terms or more samples")
    T = statistics(basis, Y)[free]
    spread = T.std(axis=1)
    if np.any(spread == 0):
        term = basis.terms[free[int(np.argmin(spread))]]
        raise ValueError(f"{model.term_name(term)} is the same in all samples: leave it out")
    found: list[tuple[float, float, np.ndarray, np.ndarray]] = []
    with one_blas_thread(), Progress(progress) as bar:
        for floor in _FLOORS:
            theta, chains = _climb(basis, free, model.names, Y, T, floor, rng, bar)
            far = _elsewhere(basis, theta, Y, rng)
            if far.shape[1] and energy(basis, theta, far).min() < np.median(energy(basis, theta, chains)):
                continue
            off = (_sampled(basis, theta, rng)[free].mean(axis=1) - T.mean(axis=1)) / spread
            found.append((float(np.sqrt(np.mean(off * off))), float(np.abs(off).max()), theta, chains))
            if found[-1][0] < _CLOSE:
                break
    if not found:
        raise ValueError("no such model was found: all that were tried have mass far from the data. Take fewer terms")
    square, largest, theta, chains = min(found, key=lambda candidate: candidate[0])
    note = (
        f"maximum likelihood by chains: means of the terms in its samples are off by {square:.2g} standard deviations "
        f"from those in the data (root mean square; at most {largest:.2g})"
    )
    if square > _USEFUL:
        warn(f"{note}: not what it should be. Take fewer terms, or others")

    A, B = np.cov(statistics(basis, chains)[free]), np.cov(T)
    inverse = np.linalg.pinv(A / spread / spread[:, None], rcond=1e-10, hermitian=True) / spread / spread[:, None]
    covariance = np.full((len(basis), len(basis)), np.nan)
    covariance[np.ix_(free, free)] = inverse @ B @ inverse / n
    settings = {"estimator": "match_moments", "notes": [note]}
    return PolynomialModel(basis, theta, model.location, model.scale, model.names, n, settings, covariance)


def _sampled(basis: MonomialBasis, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Monomials in new samples, which do not start from the data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what has not mixed has not the moments of the data either
        drawn = PolynomialModel(basis, theta).sample(_DRAWS, rng, progress=False)
    return statistics(basis, np.asarray(drawn).T)


def _climb(
    basis: MonomialBasis,
    free: np.ndarray,
    names: Sequence[str],
    Y: np.ndarray,
    T: np.ndarray,
    floor: float,
    rng: np.random.Generator,
    bar: Progress,
) -> tuple[np.ndarray, np.ndarray]:
    """θ where the likelihood is highest, and the chains there, (p, chains).

    T: (free, n), the monomials in the data; floor: the least parameter of the highest powers.
    """
    n, mean, spread = Y.shape[1], T.mean(axis=1), T.std(axis=1)
    wanted = np.corrcoef(T) + _RIDGE * np.eye(len(free))
    highest = np.flatnonzero((basis.degrees == basis.degree) & (basis.orders == 1))
    theta = _gaussian(basis, Y)
    theta[highest] = 10 * floor
    kernel = Gibbs(basis, theta, names, colours(basis, np.ones(len(basis))))
    Z, total = Y[:, rng.integers(n, size=_CHAINS)], _SEARCH + _SETTLE
    average, averaged = np.zeros(len(theta)), 0
    for k in range(total):
        if k % _RETUNE == 0:
            kernel.tune(Z)
        kernel.step(Z, rng, learn=True)
        t = statistics(basis, Z)[free]
        now = t.mean(axis=1)
        t -= now[:, None]
        t /= spread[:, None]
        A = t @ t.T / _CHAINS + wanted
        step = np.linalg.solve(A, (now - mean) / spread)
        entropy = 0.5 * float(step @ A @ step)
        settling = max(k - _SEARCH, 0)
        gain = _GAIN * min(1.0, np.sqrt(_ENTROPY / entropy)) * 20 / (20 + settling)
        theta = theta.copy()
        theta[free] += gain * step / spread
        theta[highest] = np.maximum(theta[highest], floor)
        kernel.move(theta)
        if k < total - _QUIET:
            some = rng.choice(_CHAINS, int(_ANEW * _CHAINS), replace=False)
            Z[:, some] = Y[:, rng.integers(n, size=len(some))]
        if settling > _SETTLE // 2:
            averaged += 1
            average += (theta - average) / averaged
        bar("matching moments", k + 1, total)
    return average, Z


def _elsewhere(basis: MonomialBasis, theta: np.ndarray, Y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Minima of the energy, (p, some), outside of the data, downhill from far away."""
    starts = Y[:, rng.integers(Y.shape[1], size=_DESCENTS)] * np.resize([2.0, 4.0, 8.0, 16.0], _DESCENTS)
    ends = descend(basis, theta, starts, 1e-6)
    outside = np.any(np.abs(ends) > _OUTSIDE * np.abs(Y).max(axis=1, keepdims=True), axis=0)
    return ends[:, outside]


def statistics(basis: MonomialBasis, Y: np.ndarray) -> np.ndarray:
    """Every monomial of the basis at every sample, (M, n); Y: (p, n)."""
    padded = np.vstack([Y, np.ones((1, Y.shape[1]))])
    T = padded[basis.factors[:, 0]]
    for factor in basis.factors[:, 1:].T:
        some = factor >= 0
        T[some] *= padded[factor[some]]
    return T


def _gaussian(basis: MonomialBasis, Y: np.ndarray) -> np.ndarray:
    """θ of the Gaussian with the mean and covariance of Y, as far as the basis has its terms."""
    p = len(Y)
    precision = np.linalg.inv(np.cov(Y).reshape(p, p))
    known: dict[tuple[int, ...], float] = {(i,): v for i, v in enumerate(-precision @ Y.mean(axis=1))}
    known |= {(i, j): precision[i, j] / (2 if i == j else 1) for i in range(p) for j in range(i, p)}
    return np.array([known.get(term, 0.0) for term in basis.terms])
