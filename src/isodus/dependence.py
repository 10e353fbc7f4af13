"""Sums over samples that depend on one another: the covariance of Σ_t s_t, summed block by block.

s_t are slopes, columns of S, whose mean is zero. Of a series, with weights that fall linearly to zero at a lag of
m = lags + 1 (Newey and West, 1987),

    Σ_k (1 − |k|/m) Σ_t s_t s_{t+k}ᵀ  =  (1/m) Σ_t W_t W_tᵀ,     W_t = s_t + … + s_{t+m−1},

windows at the ends being cut short: positive semidefinite, and no dearer than for independent samples. Of groups,
Σ over groups of (Σ_{t in group} s_t)(…)ᵀ. Stretches of samples are added with what crosses the border between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .arrays import Array, namespace, to_host

__all__ = [
    "INDEPENDENT",
    "Dependence",
    "Grouped",
    "Series",
    "automatic_lags",
    "check_groups",
    "group_codes",
    "of_groups",
    "of_series",
    "windows",
]


def group_codes(groups: Any, n: int) -> np.ndarray:
    """The number of each row's group, (n,), from labels of any kind; at least two groups."""
    if np.shape(groups) != (n,):
        raise ValueError(f"groups has shape {np.shape(groups)}, X has {n} rows: it must have one label a row")
    codes, _ = pd.factorize(pd.Series(groups) if isinstance(groups, list) else groups)
    if np.any(codes < 0):
        raise ValueError(f"groups has no label in row {int(np.argmax(codes < 0))}: every row needs one")
    check_groups(codes)
    return np.asarray(codes)


def check_groups(codes: np.ndarray) -> int:
    """How many groups there are, two or more."""
    many = len(np.unique(codes))
    if many < 2:
        raise ValueError("groups has one group only: nothing tells how much groups differ. Leave it out")
    return many


class Dependence(NamedTuple):
    """How samples depend on one another, and what their weights are.

    lags: how many rows apart samples of a series still do, −1 for as many as the data tell, None where there is no
    series; groups: (n,), the number of the group of each row, or None. importance: whether weights are ratios of
    densities; otherwise they count repetitions.
    """

    lags: int | None = None
    groups: np.ndarray | None = None
    importance: bool = False

    def error_df(self, n_rows: int) -> float | None:
        """Degrees of freedom of what it gives, where they are few; None for independent samples.

        Groups less one; of a series 3n/2m, for which a χ² has the variance that the sum has (Priestley, 1981).
        """
        if self.groups is not None:
            return float(len(np.unique(self.groups)) - 1)
        return None if self.lags is None else 1.5 * n_rows / (self.lags + 1)

    def independent(self, n_rows: int) -> tuple[int, str]:
        """How many there are of what errors are made of, and its name: samples, groups, or stretches of a series."""
        if self.groups is not None:
            return len(np.unique(self.groups)), "groups"
        if self.lags:
            return max(n_rows // (self.lags + 1), 1), "stretches of a series that are independent of one another"
        return n_rows, "samples"

    def together(self, n_rows: int, many: int) -> np.ndarray | None:
        """Labels of rows that are not to be parted where samples are cut into so many, (n,): groups, or stretches."""
        if self.groups is not None:
            return self.groups
        return None if self.lags is None else np.arange(n_rows) * many // n_rows

    @property
    def between_rows(self) -> bool:
        """Whether rows depend on one another."""
        return self.lags is not None or self.groups is not None


INDEPENDENT = Dependence()


@dataclass
class Series:
    """A stretch of a series: Σ W Wᵀ over the windows inside, and its first and last columns, m − 1 or all of them."""

    inside: Array
    head: Array
    tail: Array
    m: int

    def __add__(self, other: Series) -> Series:
        xp = namespace(self.head)
        crossing = xp.concat([self.tail, other.head], axis=1)
        head = xp.concat([self.head, other.head], axis=1) if self.head.shape[1] < self.m - 1 else self.head
        tail = xp.concat([self.tail, other.tail], axis=1) if other.tail.shape[1] < self.m - 1 else other.tail
        inside = self.inside + other.inside + _squares(crossing, self.m)
        return Series(inside, head[:, : self.m - 1], tail[:, max(tail.shape[1] - self.m + 1, 0) :], self.m)

    def total(self) -> np.ndarray:
        """(1/m) Σ W Wᵀ over all windows, those at the ends cut short."""
        xp = namespace(self.head)
        nothing = xp.zeros((self.head.shape[0], self.m - 1), dtype=self.head.dtype, device=self.head.device)
        whole = Series(xp.zeros_like(self.inside), nothing, nothing, self.m)
        return to_host((whole + self + whole).inside) / self.m


def of_series(S: Array, lags: int) -> Series:
    """Columns of S, (M, b), one after the other in time."""
    m, b = lags + 1, S.shape[1]
    return Series(_squares(S, m), S[:, : m - 1], S[:, max(b - m + 1, 0) :], m)


def windows(S: Array, m: int) -> Array:
    """W: the sums of m columns of S that follow one another, (M, b − m + 1)."""
    if m == 1:
        return S
    xp = namespace(S)
    running = xp.cumulative_sum(S, axis=1)
    return xp.concat([running[:, m - 1 : m], running[:, m:] - running[:, :-m]], axis=1)


def _squares(S: Array, m: int) -> Array:
    """Σ W Wᵀ over all windows of m columns, if there are any."""
    xp = namespace(S)
    if S.shape[1] < m:
        return xp.zeros((S.shape[0], S.shape[0]), dtype=S.dtype, device=S.device)
    W = windows(S, m)
    return W @ xp.matrix_transpose(W)


@dataclass
class Grouped:
    """A stretch of samples sorted by group: Σ g gᵀ over the groups inside, and the sums g of the first and the last.

    first, last: (number of the group, its sum so far, (M,)); the same where there is only one.
    """

    inside: Array
    first: tuple[int, Array]
    last: tuple[int, Array]

    def __add__(self, other: Grouped) -> Grouped:
        inside, first, last = self.inside + other.inside, self.first, other.last
        alone, its_alone = self.first[0] == self.last[0], other.first[0] == other.last[0]
        if self.last[0] == other.first[0]:
            joined = (self.last[0], self.last[1] + other.first[1])
            if not (alone or its_alone):
                inside = inside + _square(joined[1])
            return Grouped(inside, joined if alone else first, joined if its_alone else last)
        inside = inside if alone else inside + _square(self.last[1])
        inside = inside if its_alone else inside + _square(other.first[1])
        return Grouped(inside, first, last)

    def total(self) -> np.ndarray:
        """Σ g gᵀ over all groups."""
        out = self.inside + _square(self.first[1])
        return to_host(out if self.first[0] == self.last[0] else out + _square(self.last[1]))


def of_groups(S: Array, groups: np.ndarray) -> Grouped:
    """Columns of S, (M, b), sorted by group."""
    xp = namespace(S)
    ends = np.flatnonzero(np.append(groups[1:] != groups[:-1], True))
    running = xp.take(xp.cumulative_sum(S, axis=1), xp.asarray(ends, device=S.device), axis=1)
    G = xp.concat([running[:, :1], running[:, 1:] - running[:, :-1]], axis=1)
    inside = G[:, 1:-1]
    return Grouped(inside @ xp.matrix_transpose(inside), (int(groups[0]), G[:, 0]), (int(groups[-1]), G[:, -1]))


def _square(g: Array) -> Array:
    return g[:, None] * g[None, :]


def automatic_lags(variance: np.ndarray, next_to: np.ndarray, n: int) -> int:
    """How many lags a series takes (Andrews, 1991, for weights that fall linearly), from ⟨s_t²⟩ and ⟨s_t s_{t+1}⟩.

    As if each slope were autoregressive: 1.1447 (α n)^{1/3} with α = Σ 4ρ²/((1 − ρ)⁶(1 + ρ)²) / Σ 1/(1 − ρ)⁴.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = np.nan_to_num(next_to / variance)
    rho = np.clip(rho, -0.97, 0.97)
    alpha: Any = np.sum(4 * rho**2 / ((1 - rho) ** 6 * (1 + rho) ** 2)) / np.sum((1 - rho) ** -4.0)
    return int(min(np.ceil(1.1447 * (alpha * n) ** (1 / 3)), n // 4))
