"""Where the terms of an energy cancel: sums of doubles that are large beside what they add up to.

log P(x_i | rest) = −Σ_l a_l x_i^l − log Z is the difference of two such sums where a density is far from zero beside
its width. About its mode m it is one of small numbers (`Conditional`), and what is left is the rounding of a itself,

    eps Σ_l d_l |x_i^l − m^l|,      d_l = Σ_{k : x_i^l in k} |θ_k · (k without x_i)|,

which no evaluation makes good: those digits are not in the parameters. Functions other than powers are not asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import Array, namespace, on_device, to_host
from .basis import MonomialBasis
from .conditional import Conditional
from .energy import (
    Coefficients,
    cancels,
    cofactor_matrix,
    conditional_coefficients,
    local_parameters,
    powers,
    scatter,
)
from .sampling.sweep import sizes
from .spaces import PLAIN

__all__ = ["LOST", "check_given", "mended"]

LOST = 1e-3  # of a log density, or of it itself where that is more: an error that is refused
_NONE = 1e-6  # that is not looked at
_EPS = float(np.finfo(np.float64).eps)
_NUMBERS = 1 << 23  # at a time


def mended(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str],
    X: Array,
    units: tuple[np.ndarray, np.ndarray],
    values: Array,
) -> Array:
    """log P(x_i | rest), values: (n, p), of y = (x − location)/scale, with those that cancel about their mode.

    An error where not even that tells them. A bound of all terms at the farthest of all samples comes first: on data
    near zero, as standardised ones are, it is all that is looked at.
    """
    if basis.featured or not X.shape[0]:
        return values
    xp, (location, scale) = namespace(X), units
    ends = np.stack([to_host(end(X, axis=0)) for end in (xp.min, xp.max)])
    far = (np.abs(ends - location) / scale).max(axis=0)
    with np.errstate(all="ignore"):  # of samples whose powers are no numbers
        if _EPS * sizes(basis, theta, far).max() <= _NONE:
            return values
        out, Y = np.array(to_host(values), dtype=np.float64), ((to_host(X) - location) / scale).T
        step = max(_NUMBERS // (2 * len(basis.cofactors) + 4 * basis.degree * len(Y)), 1)
        for start in range(0, Y.shape[1], step):
            _mend(basis, theta, names, Y[:, start : start + step], out[start : start + step].T, start)
    return on_device(out, values)


def _mend(
    basis: MonomialBasis, theta: np.ndarray, names: Sequence[str], Y: np.ndarray, values: np.ndarray, start: int
) -> None:
    """The same for some rows, in place; Y, values: (p, n)."""
    nodes, spaces = range(len(Y)), basis.spaces or (PLAIN,) * len(Y)
    a, d = _coefficients(basis, theta, nodes, Y)
    y = powers(Y, basis.degree)
    size = (d * np.abs(y)).sum(axis=0)
    for i in nodes:
        at = np.flatnonzero(np.isfinite(values[i]) & (_EPS * size[i] > _NONE * (1 + np.abs(values[i]))))
        if not len(at):
            continue
        left = size[i, at]
        if spaces[i] == PLAIN:
            one = Conditional(names[i], a[:, i, at])
            values[i, at] = one.logpdf(Y[i, at])
            left = _left(d[:, i, at], one.mode(), np.abs(Y[i, at] - one.mode()) + one.std())
        bad = np.flatnonzero(~(_EPS * left <= LOST * (1 + np.abs(values[i, at]))))
        if len(bad):
            j = at[bad[0]]
            raise cancels(f"in row {start + j}, where the density of {names[i]} given the others is", size[i, j])


def check_given(basis: MonomialBasis, theta: np.ndarray, i: int, Y: np.ndarray, found: Conditional) -> None:
    """An error where P(x_i | rest) is lost in the rounding of its coefficients; Y: (p, n), the others standardised."""
    if basis.featured or not Y.shape[1]:
        return
    mode, width = (found.mode() - found.location) / found.scale, found.std() / found.scale
    far = np.abs(Y).max(axis=1)
    far[i] = np.max(np.abs(mode) + width)
    if _EPS * sizes(basis, theta, far)[i] <= _NONE:
        return
    d = _coefficients(basis, theta, [i], Y)[1][:, 0]
    size = (d * powers(np.abs(mode) + width, basis.degree)).sum(axis=0)
    left = _left(d, mode, width) if found.space == PLAIN else size  # elsewhere it is not evaluated about the mode
    bad = np.flatnonzero(~(_EPS * left <= LOST))
    if len(bad):
        raise cancels(f"in row {bad[0]}, where the density of {found.name} given the others is", size[bad[0]])


def _left(d: np.ndarray, mode: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Σ_l d_l l (|m| + r)^{l−1} r, a bound on Σ_l d_l |x^l − m^l| up to r from the mode; d: (s, n)."""
    l = np.arange(1, len(d) + 1)[:, None]
    return (d * l * (np.abs(mode) + reach) ** (l - 1)).sum(axis=0) * reach


def _coefficients(
    basis: MonomialBasis, theta: np.ndarray, nodes: Sequence[int], Y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """a and d, (s, q, n), at samples Y, (p, n)."""
    C, H = scatter(basis, nodes, local_parameters(basis, theta, nodes), Y), cofactor_matrix(basis, Y)
    sizes_of = Coefficients(np.abs(C.first), np.abs(C.higher))
    return conditional_coefficients(C, H), conditional_coefficients(sizes_of, np.abs(H))
