"""How sure estimates are, by making them again: fits to samples drawn anew.

The bootstrap (Efron, 1979) draws from the samples as they were drawn from the population: θ_b, learned from draw b,
scatters about θ̂ as θ̂ does about the truth. What is drawn are weights of the rows, so that no row is copied:

    nonparametric   rows with replacement, as many as there are: how often each was drawn
    multiplier      independent, exponential with mean one, made to sum to the same: no row is lost (Rubin, 1981)

of rows, or of what is independent where rows are not: groups of rows, or blocks of consecutive ones, the first row
following the last (Politis and Romano, 1992). A row that counts as w is w rows: its weight is multinomial with mean w,
or gamma of shape w. With groups or blocks, or where w is a ratio of densities, it multiplies what is drawn.

The sandwich of `inference` is the same to first order in 1/n. A bootstrap sees more, has intervals that need not be
symmetric, and chooses terms again where a penalty does. Where draws hit a bound or drop terms, neither is right.

Every fit has a location c_b and a scale d_b of its own. Its θ is carried over, exactly, to those of the fit to all
rows, c and d: y_b = (x − c_b)/d_b is (y − (c_b − c)/d)/(d_b/d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from scipy.sparse import diags_array
from scipy.special import ndtri
from sklearn.base import clone

from ..basis import MonomialBasis
from ..blocks import Reweighted, Source
from ..checks import count, is_index, warn
from ..dependence import INDEPENDENT, group_codes
from ..energy import raw_matrix, raw_units
from ..inference import MOST_PARAMETERS
from ..model import PolynomialModel, Units
from ..progress import Show
from ..significance import Covariance, check_level
from ..validation import source_of
from .trials import Generator, counts, positions, repeat

__all__ = ["Bootstrap", "bootstrap"]

Interval = Literal["percentile", "basic", "normal", "simultaneous"]
_Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # factors of terms, their θ, location, scale

_OFF, _ENOUGH = 0.1, 20  # share of the terms whose draws lie to one side that is worth a warning, if draws are so many


@dataclass(frozen=True, repr=False, eq=False)
class Bootstrap:
    """What `bootstrap` found.

    Attributes
    ----------
    model : PolynomialModel
        The fit to all rows, with the covariance of the draws instead of the sandwich: its tests and intervals, and the
        file it is saved in, are the bootstrap's. Terms that only draws have are in it as zeros.
    terms, estimate, draws : list of tuples, ndarrays of shape (n_terms,) and (n_draws, n_terms)
        Its terms, its θ, and that of every draw, as estimated, in the standardised variables of `model`.
    selected, sandwich : ndarrays of shape (n_terms,)
        The share of draws with θ ≠ 0, each in its own standardised variables; the standard errors that the fit to all
        rows came with, in those of `model`, NaN where it had none.
    warnings, failures : mappings of str to int
        What fits warned of, and why some failed, which are left out; in how many draws. Numbers are blotted out.
    not_converged, complete : int, bool
        How many draws come from a fit that warned of it; False if it was interrupted.
    """

    model: PolynomialModel
    terms: list[tuple[int, ...]]
    estimate: np.ndarray
    draws: np.ndarray
    selected: np.ndarray
    sandwich: np.ndarray
    warnings: Mapping[str, int]
    failures: Mapping[str, int]
    not_converged: int
    complete: bool

    def __repr__(self) -> str:
        ratio, failed = self.stderr("standardized") / self.sandwich, sum(self.failures.values())
        words = f"Bootstrap: {self.model.settings['covariance']}, {len(self.selected):,} terms"
        if np.any(np.isfinite(ratio)):
            low, middle, high = np.nanquantile(ratio, [0.0, 0.5, 1.0])
            words += f"; standard errors {middle:.2f} times the sandwich's ({low:.2f} to {high:.2f})"
        words += f"; {failed:,} more failed" * (failed > 0)
        words += f"; {self.not_converged:,} did not converge" * (self.not_converged > 0)
        return words + "; interrupted" * (not self.complete)

    def covariance(self, units: Units = "raw") -> Covariance:
        """The covariance of the draws; NaN for terms that no draw moves. Beyond 4,000 terms its diagonal."""
        return _covariance(self._in(units)[1])

    def stderr(self, units: Units = "raw") -> np.ndarray:
        """Standard error of every θ: the standard deviation of its draws; NaN for terms that no draw moves."""
        return _spread(self._in(units)[1])

    def to_frame(self, units: Units = "raw", level: float = 0.95, kind: Interval = "percentile") -> pd.DataFrame:
        """A row a term: its name, degree, order, θ, and what the draws say of it.

        stderr: their standard deviation; bias: their mean less θ; selected: the share that has the term. ci_low and
        ci_high, with q the quantiles of the draws: from q_low to q_high ("percentile"); from 2θ − q_high to 2θ − q_low
        ("basic", which makes good for a bias that the former doubles); θ ∓ z stderr, z of the normal distribution
        ("normal") or such that in a share `level` of the draws no term is farther off ("simultaneous").
        """
        if kind not in get_args(Interval):
            raise ValueError(f"kind must be one of {', '.join(map(repr, get_args(Interval)))}, not {kind!r}")
        basis, (theta, draws) = self.model.basis, self._in(units)
        table = pd.DataFrame({"term": [self.model.term_name(term) for term in basis.terms]})
        table["degree"], table["order"] = basis.degrees.astype(np.int64), basis.orders
        table["theta"], table["stderr"], table["bias"] = theta, _spread(draws), draws.mean(axis=0) - theta
        table["ci_low"], table["ci_high"] = _interval(theta, draws, check_level(level), kind)
        return table.assign(selected=self.selected)

    def _in(self, units: Units) -> tuple[np.ndarray, np.ndarray]:
        """The estimate and the draws."""
        if units == "standardized":
            return self.estimate, self.draws
        if units != "raw":
            raise ValueError(f'units must be "raw" or "standardized", not {units!r}')
        T = raw_matrix(self.model.basis, self.model.location, self.model.scale)
        return T @ self.estimate, (T @ self.draws.T).T


def bootstrap(
    estimator: Any,
    X: Any,
    n_draws: int = 200,
    *,
    kind: Literal["nonparametric", "multiplier"] = "nonparametric",
    groups: Any = None,
    block_length: int | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    rng: int | Generator | None = 0,
    progress: Show = None,
) -> Bootstrap:
    """Fit an estimator to samples and to draws from them, and tell how its parameters scatter.

    Parameters
    ----------
    estimator : ISODUS, PseudoLikelihood or ScoreMatching
        What is fitted, with all its options: with ``l1="auto"`` every draw chooses its penalty and its terms.
    X, sample_weight : arrays of shape (n_samples, n_features) and (n_samples,)
        As in `fit`: weights are repetition counts, or what the estimator's option `weights` says. X may be a stream
        (`open_samples`) or a Dask collection: a row is then drawn a Poisson number of times, whatever the others are,
        which is the same where n is large, and fits are spread over the cluster.
    n_draws : int
        200 tell standard errors to 5 %; percentiles at 95 % want 1,000.
    kind : {"nonparametric", "multiplier"}
        What is drawn: rows with replacement, or exponential weights. With many terms for the rows, draws of the former
        scatter too widely (El Karoui and Purdom, 2018), and those of the latter about right.
    groups : array of shape (n_samples,), optional
        Labels of rows that belong together, say to one patient: whole groups are drawn. Thirty or more are wanted.
    block_length : int, optional
        For time series: blocks of so many rows are drawn. Several times what it remembers, and small beside n.
    n_jobs, rng, progress
        Fits that run at once, in processes, as everywhere in joblib, with the same result; where draws come from, each
        by its number alone; a progress bar, by default on a terminal after a second. Ctrl-C leaves the draws there are.

    Examples
    --------
    >>> from isodus import PseudoLikelihood
    >>> from isodus.datasets import gaussian_10
    >>> result = bootstrap(PseudoLikelihood(degree=2), gaussian_10().sample(1000, rng=0), n_draws=50)
    >>> result.to_frame(kind="normal").columns.tolist()
    ['term', 'degree', 'order', 'theta', 'stderr', 'bias', 'ci_low', 'ci_high', 'selected']
    """
    if count(n_draws, "n_draws") < 2:
        raise ValueError("n_draws must be 2 or more, as one draw does not scatter; 200 tell standard errors to 5 %")
    if (source := source_of(X, sample_weight)) is not None:
        return _of_blocks(estimator, source, n_draws, kind, groups, block_length, n_jobs, rng, progress)
    labels: Any = _labels(kind, len(X), groups, block_length)
    if groups is None:
        _check_no_groups(estimator, len(X))
    given = dict(sample_weight=sample_weight) | ({} if groups is None else dict(groups=groups))
    reference = clone(estimator).fit(X, **given).model_
    if labels is None and getattr(estimator, "weights", "counts") == "importance":
        labels = np.arange(len(X))
    weight = partial(_weights, kind, counts(sample_weight, len(X)), labels, block_length)
    found, *outcome = repeat(partial(_drawn, estimator, X, weight), n_draws, rng, n_jobs, progress, "draws")
    what = "rows" if groups is None else f"{len(set(labels)):,} groups"
    what = what if block_length is None else f"blocks of {block_length:,} rows"
    how = "with replacement" if kind == "nonparametric" else "by exponential weights"
    return Bootstrap(*_side_by_side(reference, found, f"{what} {how}"), *outcome)


def _of_blocks(
    estimator: Any,
    source: Source,
    n_draws: int,
    kind: Any,
    groups: Any,
    block_length: int | None,
    n_jobs: int | None,
    rng: Any,
    progress: Show,
) -> Bootstrap:
    """Of samples that are not in memory; where they are on a cluster, that is where fits are spread over."""
    _labels(kind, 2, None, None)
    if groups is not None or block_length is not None:
        raise ValueError("groups and block_length are for samples in memory")
    reference = clone(estimator).fit(source).model_
    task = partial(_drawn_of_blocks, estimator, source, kind, getattr(estimator, "weights", "counts") == "importance")
    found, *outcome = repeat(task, n_draws, rng, n_jobs if source.here else 1, progress, "draws")
    how = "rows by Poisson counts" if kind == "nonparametric" else "rows by exponential weights"
    return Bootstrap(*_side_by_side(reference, found, how), *outcome)


def _drawn_of_blocks(estimator: Any, source: Source, kind: str, ratios: bool, rng: Generator) -> _Draw:
    drawn = Reweighted(source, kind, int(rng.integers(2**63)), ratios)
    model = clone(estimator).fit(drawn).model_
    return model.basis.factors, model.estimate, model.location, model.scale


def _weights(kind: str, weight: np.ndarray, groups: Any, length: int | None, rng: Generator) -> np.ndarray:
    """Weights of all rows, (n,). weight: those that are given; groups: numbers of groups; length: of blocks."""
    n, total = len(weight), weight.sum()
    if kind == "multiplier":
        if length is not None:  # blocks that begin anywhere
            groups = (np.arange(n) + rng.integers(n)) % n // length
        drawn = rng.standard_gamma(weight) if groups is None else weight * rng.standard_exponential(n)[groups]
        return drawn * (total / drawn.sum())
    if length is not None:
        starts = rng.integers(n, size=-(-n // length))
        return weight * np.bincount((starts[:, None] + np.arange(length)).ravel()[:n] % n, minlength=n)
    if groups is not None:
        many = int(groups.max()) + 1
        return weight * np.bincount(rng.integers(many, size=many), minlength=many)[groups]
    many = max(round(total), 1)
    return rng.multinomial(many, weight / total) * (total / many)


def _labels(kind: Any, n: int, groups: Any, block_length: Any) -> np.ndarray | None:
    """The number of each row's group, (n,), if there are groups."""
    if kind not in ("nonparametric", "multiplier"):
        raise ValueError(f"kind must be 'nonparametric' or 'multiplier', not {kind!r}")
    if groups is not None and block_length is not None:
        raise ValueError("give groups or block_length, not both: what is drawn is whole groups, or blocks of rows")
    if block_length is not None and (not is_index(block_length) or not 1 <= block_length <= n // 2):
        raise ValueError(f"block_length must be a number of rows from 1 to {n // 2}, half of all; not {block_length!r}")
    return None if groups is None else group_codes(groups, n)


def _check_no_groups(estimator: Any, n: int) -> None:
    """Refuse an estimator that was fitted to as many rows in groups, which then depend on one another."""
    known = getattr(estimator, "_how", INDEPENDENT).groups
    if known is not None and len(known) == n:
        raise ValueError(
            "the estimator was fitted with groups, to as many rows: give groups=… here too, so that whole groups are "
            "drawn, or sklearn.base.clone(estimator), which knows of none"
        )


def _drawn(estimator: Any, X: Any, weight: Callable[[Generator], np.ndarray], rng: Generator) -> _Draw:
    model = clone(estimator).fit(X, sample_weight=weight(rng)).model_
    return model.basis.factors, model.estimate, model.location, model.scale


def _side_by_side(reference: PolynomialModel, found: list[_Draw], how: str) -> Any:
    """The first attributes of a `Bootstrap`: everything in one basis and in the units of the reference."""
    basis, c, d = reference.basis, reference.location, reference.scale
    every = [(basis.factors, reference.estimate, c, d), *found]
    if not all(np.array_equal(factors, basis.factors) for factors, *_ in found):
        terms = {tuple(v for v in row if v >= 0) for factors, *_ in every for row in factors.tolist()}
        basis = MonomialBasis(basis.n_variables, terms=terms).within(basis.spaces)
        if any(np.any(location != c) for _, _, location, _ in found):  # as all are, where a location is zero by chance
            basis = basis.spanned(np.arange(len(basis)))
    own, estimates = np.zeros((len(every), len(basis))), []
    for row, (factors, values, location, scale) in zip(own, every, strict=True):
        row[positions(basis, factors)] = values
        estimates.append(raw_units(basis, row, (location - c) / d, scale / d))
    estimate, draws = estimates[0], np.array(estimates[1:])
    _warn_of_others(draws, estimate)
    theta, sandwich, at = np.zeros(len(basis)), np.full(len(basis), np.nan), positions(basis, reference.basis.factors)
    theta[at], sandwich[at] = reference.theta, reference.stderr("standardized")
    settings = {**reference.settings, "covariance": f"{len(found):,} draws of {how}", "error_df": len(found) - 1}
    covariance = _covariance(draws)
    model = replace(reference, basis=basis, theta=theta, moved_from=estimate, settings=settings, covariance=covariance)
    return model, basis.terms, estimate, draws, np.mean(own[1:] != 0, axis=0), sandwich


def _warn_of_others(draws: np.ndarray, estimate: np.ndarray) -> None:
    """Say so where draws, if they are enough to tell, lie to one side of the estimate."""
    off = np.abs(draws.mean(axis=0) - estimate) > np.nan_to_num(_spread(draws))
    if len(draws) >= _ENOUGH and np.mean(off) > _OFF:
        how = "lie off the fit to all rows by more than they scatter, as they hit bounds or drop terms"
        warn(f"draws of {np.count_nonzero(off)} of {len(off)} terms {how}: their errors mean little. Use fewer terms")


def _spread(draws: np.ndarray) -> np.ndarray:
    return np.where(np.ptp(draws, axis=0) > 0, draws.std(axis=0, ddof=1), np.nan)


def _covariance(draws: np.ndarray) -> Covariance:
    if draws.shape[1] > MOST_PARAMETERS:
        return diags_array(_spread(draws) ** 2, format="csr")
    Z = np.where(np.ptp(draws, axis=0) > 0, draws - draws.mean(axis=0), np.nan)
    return Z.T @ Z / (len(draws) - 1)


def _interval(theta: np.ndarray, draws: np.ndarray, level: float, kind: str) -> np.ndarray:
    """The lower ends and the upper ones, (2, M); NaN where no draw moves anything."""
    errors, reach = _spread(draws), float(ndtri(0.5 + level / 2))
    if kind in ("normal", "simultaneous"):
        if kind == "simultaneous":
            farthest = np.max(np.abs(draws - theta) / errors, axis=1, initial=0.0, where=errors > 0)
            reach = float(np.quantile(farthest, level))
        return np.array([theta - reach * errors, theta + reach * errors])
    ends = np.where(errors > 0, np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0), np.nan)
    return ends if kind == "percentile" else 2 * theta - ends[::-1]
