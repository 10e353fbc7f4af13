"""The missing cells of rows of data, drawn given the cells that are there.

Given all other cells of its row, a cell has a one-dimensional density, which is drawn from exactly (`univariate`).
Where it shares no term with another missing cell, this is its density given what is there: its draws are independent.
Missing cells that are tied by a term are drawn in turn, sweep after sweep (Gibbs), by several chains a row, many rows
at a time.

Chains start from N(0, 2²), where data have a variance of one: further apart than the density is wide, so that chains
that have not forgotten where they began disagree, which R̂ shows. As in `chains`, rounds follow: so many draws of every
chain are kept, one every `thin` sweeps. Where they are not nearly independent, or the chains of a row do not agree,
`thin` grows by what was measured, for all rows, and the round was warm-up.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from ..arrays import one_blas_thread
from ..basis import MonomialBasis
from ..progress import Progress
from ..spaces import PLAIN, Space, batches
from . import convergence
from .sweep import Conditionals, NotExactError, check_all_held

__all__ = ["Filled", "fill", "warn"]

_CHAINS, _MANY = 16, 1024  # of a row: the fewest and the most; many at a time take little longer than few
_DRAWS = 16  # of a chain, or more
_START = 2.0  # standard deviation
_WARM = 8  # sweeps before the first round
_TAU, _SQUARE = 1.5, 1.1  # of a good round; independent draws have a 95 % quantile of τ of 1.1 and a mean R̂² of 1.02
_MOST = 64  # sweeps between draws
_STUCK = 1.2  # R̂ of a cell from which chains do not agree; several thousand that do reach 1.13
_BYTES = 100 << 20  # of the rows that are drawn at a time; diagnostics take as much again


class Filled(NamedTuple):
    """Rows with their missing cells drawn.

    values: (n_draws, p, n). r_hat: (p, n), R̂ of each missing cell; 1 where it was drawn exactly or is not missing.
    thin: sweeps between draws of a chain; sweeps: of a chain in all, 0 where no chain was needed.
    complete: False after an interruption: some draws, or all, may be less independent than they were to be.
    """

    values: np.ndarray
    r_hat: np.ndarray
    thin: int
    sweeps: int
    complete: bool


def fill(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str],
    Y: np.ndarray,
    n_draws: int,
    rng: np.random.Generator,
    progress: Progress,
) -> Filled:
    """Draws of the cells of Y, (p, n), that are NaN, given the others of their row, a column of Y; standardised.

    An interruption (KeyboardInterrupt) ends it with what there is, once every cell has been drawn.
    """
    missing = np.isnan(Y)
    found = Filled(np.repeat(np.asarray(Y, np.float64)[None], n_draws, axis=0), np.ones(Y.shape), 1, 0, True)
    if not missing.any():
        return found
    check_all_held(basis, theta, names)
    with one_blas_thread():
        somewhere = 0.0 if basis.spaces is None else np.array([[space.inside] for space in basis.spaces])
        rows = _Rows(basis, theta, names, np.where(missing, somewhere, Y))
        tied = rows.tied(missing)
        _independent(rows, missing & ~tied, found.values, rng, progress)
        return _chains(rows, tied, found, rng, progress) if tied.any() else found


class _Rows:
    """The data, (p, n), any value where cells are missing, and the conditional densities of cells."""

    def __init__(self, basis: MonomialBasis, theta: np.ndarray, names: Sequence[str], Y: np.ndarray) -> None:
        self.Y, self.names, self.degree = Y, names, basis.degree
        self.conditionals = Conditionals(basis, theta)
        self.groups = self.conditionals.colours()
        terms = max(np.count_nonzero(theta[basis.local(i).terms]) for i in range(len(Y)))
        self.width = 2 * len(Y) + basis.degree * terms  # numbers a column of X, at most, for the coefficients

    def tied(self, missing: np.ndarray) -> np.ndarray:
        """Missing cells, (p, n), that share a term with another missing cell of their row."""
        tied = np.zeros_like(missing)
        for i, near in enumerate(self.conditionals.near):
            at = np.flatnonzero(missing[i])
            tied[i, at] = missing[near[near != i][:, None], at].any(axis=0)
        return tied

    def coefficients(self, i: int, X: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Of the density of variable i given the others, at some columns of X: (s, columns)."""
        near, some = self.conditionals.near[i], np.empty((len(X), len(columns)))  # others than near are not looked at
        some[near] = X[near[:, None], columns]
        return self.conditionals.coefficients(i, some)

    def draw(self, a: np.ndarray, rng: np.random.Generator, variables: np.ndarray, at: np.ndarray) -> np.ndarray:
        """From each column of a, (s, cells · k): k draws of each cell, (cells, k), given its variable and row."""
        cells = a.reshape(len(a), len(at), -1)
        out = np.empty(cells.shape[1:])
        for space, some in batches(self.conditionals.spaces, variables.tolist()):
            own = cells[:, some].reshape(len(a), -1)
            try:
                out[some] = space.draw(own, rng).reshape(len(some), -1)
            except ValueError:
                cell = some[_without_density(space, own) * len(some) // own.shape[1]]
                raise NotExactError(
                    f"row {at[cell]}: the density of {self.names[variables[cell]]} given the other variables does not "
                    "exist, or is too narrow for double precision"
                ) from None
        return out

    def begin(self, variables: np.ndarray, chains: int, rng: np.random.Generator) -> np.ndarray:
        """Where chains of cells start, (cells, chains)."""
        out = _START * rng.standard_normal((len(variables), chains))
        for space, some in batches(self.conditionals.spaces, variables.tolist()):
            if space != PLAIN:
                a = np.repeat(space.start(self.degree)[:, None], len(some) * chains, axis=1)
                out[some] = space.draw(a, rng).reshape(len(some), chains)
        return out


def _without_density(space: Space, a: np.ndarray) -> int:
    """The first column of a, (s, n), that cannot be drawn from; there is one."""
    first, last = 0, a.shape[1]
    while last - first > 1:
        middle = (first + last) // 2
        try:
            space.quantile(a[:, first:middle], np.full(middle - first, 0.5))
            first = middle
        except ValueError:
            last = middle
    return first


def _independent(
    rows: _Rows, cells: np.ndarray, values: np.ndarray, rng: np.random.Generator, progress: Progress
) -> None:
    """Independent draws of cells, (p, n), that are not tied, into values."""
    step = max(_BYTES // (8 * (rows.width + 4 * rows.degree * len(values))), 1)
    done, total = 0, int(cells.sum())
    for i in np.flatnonzero(cells.any(axis=1)).tolist():
        its = np.flatnonzero(cells[i])
        for at in np.split(its, range(step, len(its), step)):
            a = np.repeat(rows.coefficients(i, rows.Y, at), len(values), axis=1)
            values[:, i, at] = rows.draw(a, rng, np.full(len(at), i), at).T
            done += len(at)
            progress("imputing, independent draws", done, total)


class _Block:
    """Chains of the tied cells of some rows: variables, at: (cells,), where each is; x: (cells, chains), its values."""

    def __init__(self, rows: _Rows, tied: np.ndarray, some: np.ndarray, chains: int, rng: np.random.Generator) -> None:
        order = np.concatenate(rows.groups)
        place, self._column = np.nonzero(tied[order[:, None], some])  # colour by colour, variable by variable
        self._rows, self._some, self.variables, self.at = rows, some, order[place], some[self._column]
        self.x = rows.begin(self.variables, chains, rng)
        ends = np.searchsorted(place, np.arange(len(order) + 1))  # of the cells of each variable
        each = iter([(int(i), slice(*both)) for i, both in zip(order, pairwise(ends.tolist()), strict=True)])
        self._steps = [
            [(i, its) for i, its in islice(each, len(group)) if its.start < its.stop] for group in rows.groups
        ]

    def advance(self, sweeps: int, rng: np.random.Generator) -> np.ndarray:
        """The values of all cells, so many sweeps later."""
        chains = self.x.shape[1]
        X = np.repeat(self._rows.Y[:, self._some], chains, axis=1)
        columns = self._column[:, None] * chains + np.arange(chains)
        X[self.variables[:, None], columns] = self.x
        for step in [step for step in self._steps if step] * sweeps:
            a = np.concatenate([self._rows.coefficients(i, X, columns[its].ravel()) for i, its in step], axis=1)
            its = slice(step[0][1].start, step[-1][1].stop)
            self.x[its] = self._rows.draw(a, rng, self.variables[its], self.at[its])
            X[self.variables[its, None], columns[its]] = self.x[its]
        return self.x.copy()


def _chains(rows: _Rows, tied: np.ndarray, found: Filled, rng: np.random.Generator, progress: Progress) -> Filled:
    """Rounds of draws of tied cells, with more and more sweeps between them, until they are nearly independent."""
    n = len(found.values)
    chains = min(max(-(-n // _DRAWS), _CHAINS), _MANY)
    draws, thin, sweeps = max(-(-n // chains), _DRAWS), 1, _WARM
    some = np.flatnonzero(tied.any(axis=0))
    numbers = rows.width + int(tied.sum(axis=0).max()) * (draws + 2 * rows.degree + 4)
    step = max(_BYTES // (8 * chains * numbers), 1)
    blocks = [_Block(rows, tied, part, chains, rng) for part in np.split(some, range(step, len(some), step))]
    while True:
        try:
            need, square = _round(blocks, draws, thin, found, rng, progress)
        except KeyboardInterrupt:
            if not found.sweeps:
                raise
            return found._replace(complete=False)
        sweeps += draws * thin
        found = found._replace(thin=thin, sweeps=sweeps)
        if thin >= _MOST or (need <= _TAU and square <= _SQUARE):
            return found
        thin = min(int(np.ceil(thin * np.clip(0.8 * need, 1.5, 8.0))), _MOST)


def _round(
    blocks: list[_Block], draws: int, thin: int, found: Filled, rng: np.random.Generator, progress: Progress
) -> tuple[float, float]:
    """So many draws of every chain; some of them, and R̂, into found. The 95 % quantile of τ, and the mean of R̂²."""
    k, chains = np.arange(len(found.values)), blocks[0].x.shape[1]
    chain, which = k % chains, (k // chains + 1) * draws // -(-len(k) // chains) - 1  # of all chains, far apart in each
    tau, R = [], []
    for j, block in enumerate(blocks):
        if not found.sweeps:
            block.advance(_WARM, rng)
        x = np.empty((draws, *block.x.shape))
        for draw in range(draws):
            x[draw] = block.advance(thin, rng)
            progress(f"imputing, a draw every {thin} sweeps", j * draws + draw + 1, draws * len(blocks))
        tau.append(convergence.autocorrelation_time(x.transpose(2, 0, 1)))
        R.append(convergence.r_hat(x.transpose(2, 0, 1)))
        found.values[:, block.variables, block.at] = x[which, :, chain]
        found.r_hat[block.variables, block.at] = R[-1]
    return float(np.quantile(np.concatenate(tau), 0.95)), float(np.mean(np.concatenate(R) ** 2))


def warn(found: Filled, names: Sequence[str]) -> None:
    """Of cells on which the chains of a row do not agree, and of an interruption."""
    if not found.complete:
        warnings.warn("interrupted: draws may be less independent than they were to be", UserWarning, stacklevel=3)
    bad = np.argwhere(found.r_hat > _STUCK)
    if len(bad):
        i, row = bad[np.argmax(found.r_hat[tuple(bad.T)])]
        warnings.warn(
            f"{len(bad)} of the missing cells are not to be trusted: chains from different starts do not agree on "
            f"them, least on {names[i]} in row {row} (R-hat {found.r_hat[i, row]:.2f}): they have modes that "
            "chains do not leave. Give more of the row, or leave it out",
            UserWarning,
            stacklevel=3,
        )
