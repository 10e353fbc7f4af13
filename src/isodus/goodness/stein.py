"""A kernel test that samples come from a model, from its score alone.

With the score s_a = −∂E/∂y_a and test functions f_a of all variables, E[s_a f_a + ∂_a f_a] = 0 under the model. Of all
f_a with norm 1 in a space with kernel k_a, those that break this most give V = ⟨h_ij⟩, the mean over all pairs of rows,

    h = Σ_a (s_a s_a' k_a + s_a ∂'_a k_a + s_a' ∂_a k_a + ∂_a ∂'_a k_a)

(Liu, Lee and Jordan; Chwialkowski, Strathmann and Gretton; both 2016). The kernel decides what is seen. Made of
distances in all variables it sees little: beyond a few variables all rows are equally far apart, and functions of one
variable, which a fit has matched, outweigh those of several. Here

    k_a = ω_a κ_a w_a,     w_a = ½ + Σ_b κ̃_b/√r₁ + ½ Σ_{b<c} κ̃_b κ̃_c/√r₂,     κ(y, y') = (1 + (y − y')²/c²)^{−1/2},

b and c other variables, r₁ and r₂ the numbers of summands: functions of y_a and of none, one or two others. κ is the
inverse multiquadric of one variable, c the median distance of two of its values. κ̃ is κ with its mean over rows taken
out, so that what one variable more can tell counts by itself, over its root mean square, so that each order has about
the noise of its factor. Pairs count most: residuals look at single variables already. ω_a gives all variables the same
share, such that E[nV] = 1 under a model that is given.

Learned from the same rows, θ̂ − θ ≈ ⟨ψ_j⟩ with ψ_j the influence of row j. V = |⟨ξ_j⟩|² and h_ij = ⟨ξ_i, ξ_j⟩ of
features ξ_j = s k(x_j, ·) + ∂k(x_j, ·). The score is linear in θ, so ⟨ξ_j⟩ at θ̂ is that at θ and D⟨ψ_j⟩, with
D_k = ⟨∂ξ_j/∂θ_k⟩ = −⟨Σ_a ∂_a t_k(x_j) k_a(x_j, ·)⟩, t_k the monomial. For m rows S of n, and random signs g_j, the
bootstrap draws

    |m^{−1/2} Σ_{j∈S} g_j ξ_j + D v|² = (1/m) Σ_ij g_i g_j h_ij + 2 m^{−1/2} Σ_j g_j d_jᵀv + vᵀQv,
    v = (√m/n) Σ_{j≤n} g_j ψ_j,     d_jk = ⟨D_k, ξ_j⟩,     Q_kl = ⟨D_k, D_l⟩.

θ̂ comes from all rows, so all of them have a sign, and those in S the same one in both sums. In d and Q the mean that D
is leaves out the row it meets: with it, draws would be too small by a share of about M/m. Where rows depend on one
another, g_j are sums of neighbouring signs: their correlation falls linearly with the distance (Shao, 2010; Leucht and
Neumann, 2013), as in the weights of Newey and West.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..basis import MonomialBasis
from ..checks import count, generator
from ..energy import cofactor_matrix, gradient
from ..model import PolynomialModel
from ..progress import Progress, Show
from .rows import FEWEST, by_power, checked, evenly, signs

__all__ = ["Kernel", "SteinTest", "stein_test"]

_WEIGHTS = 0.5, 1.0, 0.5  # of functions of a variable and none, one and two others
_REFERENCE = 256  # rows whose mean kernel is taken out
_BLOCK = 1 << 21  # numbers at a time


@dataclass(frozen=True, repr=False, eq=False)
class SteinTest:
    """What `stein_test` found.

    Attributes
    ----------
    statistic : float
        nV of the rows that were used. If the model is true it is about 1 where it is given and rows are independent,
        and less on rows that it was learned from.
    p_value : float
        The share of bootstrap draws that are as large, the statistic counted among them.
    by_variable : Series
        What each variable's score adds, in the same units: their mean is `statistic`.
    n_samples, n_rows : int
        How many rows were used, evenly spaced, and how many there are.
    n_bootstrap : int
        How many draws the p-value is made of.
    learned : bool
        Whether it allows for a model that was learned from the same rows.
    """

    statistic: float
    p_value: float
    by_variable: pd.Series
    n_samples: int
    n_rows: int
    n_bootstrap: int
    learned: bool

    def __repr__(self) -> str:
        part = f"{self.n_samples:,}" + (f" of {self.n_rows:,}" if self.n_samples < self.n_rows else "")
        how = "the model learned from them" if self.learned else "the model taken as given"
        return f"SteinTest: p = {self.p_value:.2g}, statistic {self.statistic:.3g} ({part} rows, {how})"


def stein_test(
    model: PolynomialModel,
    X: Any,
    *,
    influence: Any = None,
    dependence: int | None = None,
    n_bootstrap: int = 1000,
    max_samples: int = 2000,
    rng: int | np.random.Generator | None = 0,
    progress: Show = None,
) -> SteinTest:
    """A test that samples come from the model, by the kernel Stein discrepancy: it needs no normalisation.

    It sees what a variable has to do with up to two others, whatever its form: broad, and therefore not sharp. The
    more variables there are, the larger must a single missing interaction be to stand out from all that is looked at.
    The p-value is from a wild bootstrap, right for many rows. A few samples far out, where the score is large, can
    drown all others: look at residuals too.

    Parameters
    ----------
    model, X, influence, dependence
        As in `residual_test`; but no density need exist.
    n_bootstrap : int
        Draws of the statistic.
    max_samples : int
        Of more rows so many are used, evenly spaced; time grows with its square. `influence` is that of all rows.
    rng : int or numpy.random.Generator
        Where signs come from.
    progress : bool or callable, optional
        A bar, by default on a terminal after a second, or a function, as in `ISODUS`.

    Examples
    --------
    >>> from isodus.datasets import paper_pair
    >>> from isodus.goodness import stein_test
    >>> X = paper_pair(1).sample(1500, rng=0)
    >>> stein_test(paper_pair(1), X).p_value > 0.05, stein_test(paper_pair(2), X).p_value < 0.05
    (True, True)
    """
    if model.basis.spaces is not None:
        raise ValueError("the Stein test is for variables on the whole line, with powers; look at residuals")
    Y, psi, lags = checked(model, X, influence, dependence)
    n, B, most, rng = len(Y), count(n_bootstrap, "n_bootstrap"), count(max_samples, "max_samples"), generator(rng)
    if most < FEWEST:
        raise ValueError(f"max_samples is {most}: a test needs {FEWEST} rows or more")
    at = evenly(n, most)
    m = len(at)
    if psi is None:  # rows that are not used need no sign
        G, v = signs(rng, B, m, -(-lags * m // n)), None
    else:
        G, v = _signed(psi, at, lags, B, rng)
    kernel = Kernel.of(model, np.ascontiguousarray(Y[at].T))
    with Progress(progress) as bar:
        sums = _sums(kernel, None if psi is None else kernel.slopes(model.basis), len(model.basis), G, bar)
    drawn = sums.drawn
    if v is not None:
        drawn += 2 / np.sqrt(m) * np.einsum("bk,bk->b", G @ sums.d, v) + np.einsum("bk,bk->b", v @ sums.Q, v)
    statistic = float(sums.parts.mean())
    p_value = float((1 + np.count_nonzero(drawn >= statistic)) / (1 + B))
    shares = pd.Series(sums.parts, pd.Index(model.names, name="variable"), name="statistic")
    return SteinTest(statistic, p_value, shares, m, n, B, psi is not None)


def _signed(
    psi: np.ndarray, at: np.ndarray, lags: int, B: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The signs of the rows `at`, (B, m), and v, (B, M), from those of all rows."""
    n, M = psi.shape
    G, v, step = np.empty((B, len(at))), np.empty((B, M)), max(_BLOCK // n, 1)
    for some in (slice(b, min(b + step, B)) for b in range(0, B, step)):
        g = signs(rng, some.stop - some.start, n, lags)
        G[some], v[some] = g[:, at], g @ psi * (np.sqrt(len(at)) / n)
    return G, v


class _Sums(NamedTuple):
    """drawn: (1/m) Σ_ij g_i g_j h_ij, (B,); parts: p m V of each variable, (p,); d: (m, M); Q: (M, M)."""

    drawn: np.ndarray
    parts: np.ndarray
    d: np.ndarray
    Q: np.ndarray


def _sums(
    kernel: Kernel, slopes: list[tuple[np.ndarray, np.ndarray]] | None, M: int, G: np.ndarray, progress: Progress
) -> _Sums:
    """Sums over pairs of rows, block by block; slopes: None where d and Q are not asked for."""
    p, m = kernel.z.shape
    M = 0 if slopes is None else M
    drawn, parts, d, Q = np.zeros(len(G)), np.zeros(p), np.zeros((m, M)), np.zeros((M, M))
    step = max(_BLOCK // (p * m), 1)
    for rows in (slice(b, min(b + step, m)) for b in range(0, m, step)):
        progress("Stein test", rows.start, m)
        h = np.zeros((rows.stop - rows.start, m))
        for a, w, kappa, D in kernel.pieces(rows):
            part = kernel.stein(a, rows, w, kappa, D)
            parts[a] += part.sum() * p / m
            h += part
            if slopes is not None:
                terms, T = slopes[a]
                w *= kappa
                w[np.arange(len(w)), np.arange(rows.start, rows.stop)] = 0.0
                Q[np.ix_(terms, terms)] += T[rows].T @ (w @ T) / (m * (m - 1))
                w *= kernel.s[a, rows, None] - D * kappa**2
                d[rows, terms] -= w @ T / (m - 1)
        drawn += np.einsum("bi,bi->b", G[:, rows] @ h, G) / m
    return _Sums(drawn, parts, d, Q)


@dataclass(frozen=True, eq=False)
class Kernel:
    """The kernels of m rows, in z = y/c; arrays are (p, m) or (p,).

    z, s: values, and the score by z. mean: the mean κ of each value with those of reference rows; grand: that of these
    with one another; spread: the root mean square of κ − mean − mean' + grand.
    """

    z: np.ndarray
    s: np.ndarray
    c: np.ndarray
    mean: np.ndarray
    grand: np.ndarray
    spread: np.ndarray
    omega: np.ndarray

    @classmethod
    def of(cls, model: PolynomialModel, Y: np.ndarray) -> Kernel:
        """Of the rows in Y, (p, m), standardised as the model's are."""
        p, m = Y.shape
        some = evenly(m, _REFERENCE)
        pairs = np.triu_indices(len(some), 1)
        deviation = Y.std(axis=1)
        apart = np.array([np.median(np.abs(y[some][pairs[0]] - y[some][pairs[1]])) for y in Y])
        c = np.where(apart > 0, apart, np.where(deviation > 0, deviation, 1.0))
        z, s = Y / c[:, None], -c[:, None] * gradient(model.basis, model.theta, Y)
        kappa = _imq(z[:, :, None] - z[:, None, some])
        mean = kappa.mean(axis=2)
        grand = mean[:, some].mean(axis=1)
        centred = kappa - mean[:, :, None] - mean[:, None, some] + grand[:, None, None]
        spread = np.maximum(np.sqrt(np.square(centred).mean(axis=(1, 2))), 1e-12)  # of a column that is constant: 0
        own = (1.0 - 2.0 * mean + grand[:, None]) / spread[:, None]
        total, squares = own.sum(axis=0), np.square(own).sum(axis=0)
        w = np.stack([_others(own[a], total, squares, p) for a in range(p)])
        omega = 1.0 / (p * np.mean(w * (s * s + 1.0), axis=1))
        return cls(z, s, c, mean, grand, spread, omega)

    def pieces(self, rows: slice) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """For every variable a: ω_a w_a, κ_a and z_a − z_a' of some rows with all."""
        p, D = len(self.z), self.z[:, rows, None] - self.z[:, None, :]
        kappa = _imq(D)
        centred = kappa - self.mean[:, rows, None]
        centred += (self.grand[:, None] - self.mean)[:, None, :]
        centred /= self.spread[:, None, None]
        total, squares = centred.sum(axis=0), np.einsum("aij,aij->ij", centred, centred)
        for a in range(p):
            yield a, self.omega[a] * _others(centred[a], total, squares, p), kappa[a], D[a]

    def stein(self, a: int, rows: slice, w: np.ndarray, kappa: np.ndarray, D: np.ndarray) -> np.ndarray:
        """w (s s' κ + s ∂'κ + s' ∂κ + ∂∂'κ) of one variable; κ = (1 + D²)^{−1/2}, ∂κ = −Dκ³."""
        s, other = self.s[a, rows, None], self.s[a]
        return w * kappa * (s * other + kappa**2 * ((s - other) * D + 1.0 - 3.0 * (D * kappa) ** 2))

    def slopes(self, basis: MonomialBasis) -> list[tuple[np.ndarray, np.ndarray]]:
        """For every variable a its terms, and ∂t/∂z_a of them at every row, (m, K)."""
        Y, found = self.z * self.c[:, None], []
        H = cofactor_matrix(basis, Y)
        for a, y in enumerate(Y):
            T = [l * self.c[a] * y ** (l - 1) * H[cofactors] for l, _, cofactors in by_power(basis, a)]
            found.append((basis.local(a).terms, np.ascontiguousarray(np.concatenate(T).T)))
        return found


def _imq(D: np.ndarray) -> np.ndarray:
    """The inverse multiquadric, (1 + D²)^{−1/2}."""
    return 1.0 / np.sqrt(1.0 + D * D)


def _others(own: np.ndarray, total: np.ndarray, squares: np.ndarray, p: int) -> np.ndarray:
    """w_a from κ̃_a and from the sums of κ̃ and of κ̃² over all variables."""
    none, one, two = _WEIGHTS
    rest, pairs = total - own, (p - 1) * (p - 2) / 2
    w = none + one / np.sqrt(max(p - 1, 1)) * rest
    return w + two / np.sqrt(pairs) * (rest * rest - squares + own * own) / 2 if pairs else w
