"""Node-wise linear regression from the Gram matrix: the Gaussian part of a model, in closed form.

For a Gaussian the conditional of x_i is a regression on the others, x_i = β₀ + Σ_j β_j x_j + noise of variance
σ², so that θ_(i,i) = 1/(2σ²), θ_(i,j) = −β_j/σ², θ_(i) = −β₀/σ²: pseudo-likelihood's optimum, from the second
moments alone.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from .arrays import Array, namespace, rows_at_once, to_host
from .basis import MonomialBasis
from .samples import ArraySamples
from .solvers.newton import inverse

__all__ = ["gaussian_parameters", "independent", "moments_there", "second_moments"]

_KNOWN: WeakKeyDictionary[ArraySamples, Array] = WeakKeyDictionary()


def second_moments(samples: ArraySamples) -> np.ndarray:
    """⟨(1, y)(1, y)ᵀ⟩ over samples, shape (p + 1, p + 1)."""
    return to_host(moments_there(samples))


def moments_there(samples: ArraySamples) -> Array:
    """The same, left where the samples lie; asked for often, and made once."""
    if samples not in _KNOWN:
        _KNOWN[samples] = _moments(samples)
    return _KNOWN[samples]


def _moments(samples: ArraySamples) -> Array:

    def block(Y: Array, count: Array | None) -> Array:
        xp = namespace(Y)
        Z = xp.concat([xp.ones((1, Y.shape[1]), dtype=Y.dtype, device=Y.device), Y], axis=0)
        return (Z if count is None else Z * count) @ xp.matrix_transpose(Z)

    total = samples.sum(block, rows_at_once(samples.like(), 1024, 16 * samples.n_variables))
    total /= float(total[0, 0])
    if isinstance(total, np.ndarray):
        total.flags.writeable = False
    return total


def independent(basis: MonomialBasis, samples: ArraySamples) -> np.ndarray:
    """θ, (M,), of the Gaussian with the means and variances of the samples and no interactions."""
    mean, square = _mean_and_square(samples)
    variance = np.maximum(square - mean * mean, 1e-12 * square)
    theta, first = np.zeros(len(basis)), basis.factors[:, 0]
    one, two = basis.degrees == 1, (basis.degrees == 2) & (basis.orders == 1)
    theta[two] = 1 / (2 * variance[first[two]])
    theta[one] = np.where(np.bincount(first[two], minlength=len(mean)) > 0, -mean / variance, 0.0)[first[one]]
    return theta


def _mean_and_square(samples: ArraySamples) -> tuple[np.ndarray, np.ndarray]:
    """⟨y_i⟩ and ⟨y_i²⟩, (p,) each."""
    if samples in _KNOWN:
        M = _KNOWN[samples]
        return to_host(M[0, 1:]), to_host(namespace(M).linalg.diagonal(M))[1:]

    def block(Y: Array, count: Array | None) -> Array:
        xp = namespace(Y)
        count = xp.ones_like(Y[0, :]) if count is None else count
        one = xp.sum(count) * xp.ones_like(Y[:, 0])
        return xp.stack([one, Y @ count, (Y * Y) @ count])

    n, total, squares = to_host(samples.sum(block, rows_at_once(samples.like(), 4096, 16 * samples.n_variables)))
    return total / n, squares / n


def gaussian_parameters(basis: MonomialBasis, moments: np.ndarray, i: int) -> np.ndarray | None:
    """Local parameters of node i for the Gaussian with these second moments; None where it is degenerate.

    Terms of degree above 2 get zero. A basis without x_i² has no Gaussian part: all zeros.
    """
    terms = [basis.terms[k] for k in basis.local(i).terms]
    theta = np.zeros(len(terms))
    if (i, i) not in terms:
        return theta
    # the constant stands for the term (i,), the other variable for a term (i, j)
    places = [k for k, term in enumerate(terms) if len(term) <= 2 and term != (i, i)]
    columns = [0 if len(terms[k]) == 1 else 1 + sum(terms[k]) - i for k in places]
    variance = moments[i + 1, i + 1]
    if columns:
        solve = inverse(moments[np.ix_(columns, columns)])
        if solve is None:
            return None
        beta = solve(moments[columns, i + 1])
        variance = variance - beta @ moments[columns, i + 1]
        if not variance > 1e-12 * moments[i + 1, i + 1]:
            return None
        theta[places] = -beta / variance
    theta[terms.index((i, i))] = 1 / (2 * variance)
    return theta
