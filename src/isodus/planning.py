"""How many samples it takes to know a parameter well enough, or to find it, planned from a model before there are data.

An estimator that minimises Σ_i ⟨ℓ_i⟩ over one θ has, by the delta method, errors of covariance V/n,

    V = A⁻¹ B A⁻¹,    A = E ∇² Σ_i ℓ_i,    B = Var ∇ Σ_i ℓ_i,    both at the true θ.

The model takes the place of the truth, and averages over samples of it that of expectations. With v the term's entry of
the diagonal of V, its standard error is √(v/n), and θ is told from zero at the level α, two-sided, with probability

    Φ(δ − z) + Φ(−δ − z),    δ = |θ| √(n/v),    z = Φ⁻¹(1 − α/2).

For a Gaussian with all pairs v is known: pseudo-likelihood is maximum likelihood there, and v = Λ_ii Λ_jj + Λ_ij² for
the entry Λ_ij of the precision matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from .arrays import one_blas_thread
from .basis import MonomialBasis
from .checks import count
from .energy import raw_matrix, raw_units
from .inference import MOST_PARAMETERS, slope_covariance
from .losses import Loss
from .losses.pseudo_likelihood import PseudoLikelihoodLoss
from .losses.score_matching import ScoreMatchingLoss
from .model import PolynomialModel, Units
from .penalties import positions
from .progress import Show
from .refinement import Joint
from .samples import ArraySamples, standardisation
from .significance import check_level
from .solvers.newton import inverse

__all__ = ["SampleSize", "sample_size"]

Term = tuple[int | str, ...]

_LOSSES: dict[str, Loss] = {"pseudo-likelihood": PseudoLikelihoodLoss(), "score matching": ScoreMatchingLoss()}
_BATCHES = 10
_ENOUGH = 10  # samples a parameter of the model, below which errors are larger than the limit of many samples says


class _Goal(NamedTuple):
    """What n is to bring about: a standard error, or a probability to find the term at p < alpha."""

    error: float | None
    power: float | None
    alpha: float

    def samples(self, theta: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """n, not rounded, of parameters with the limits `variance` of n times their variances; infinite for θ = 0."""
        if self.error is not None:
            return variance / self.error**2
        with np.errstate(divide="ignore"):
            return variance * (self._distance() / theta) ** 2

    def _distance(self) -> float:
        """δ, how many standard errors θ must be from zero."""
        assert self.power is not None
        z = -ndtri(self.alpha / 2)
        far = z + max(float(ndtri(self.power)), 0.0)  # without the other tail, whose power is to be added
        return float(brentq(lambda delta: _power(delta, self.alpha) - self.power, 0.0, far + 1.0, xtol=1e-12))

    def __str__(self) -> str:
        if self.error is not None:
            return f"to have a standard error of {self.error:g}"
        return f"to be found, at p < {self.alpha:.3g}, with probability {self.power:g}"


@dataclass(frozen=True, repr=False)
class SampleSize:
    """How many samples a term takes; `sample_size` makes it.

    Attributes
    ----------
    n : int
        The number of samples. At least what a fit of the model's terms needs.
    n_error : float
        Relative standard error of n: the samples that the calculation rests on are finite.
    term : str
        The term, by name.
    theta : float
        Its parameter in the model.
    sd : float
        Asymptotic standard deviation: the standard error is sd/√n.
    goal : str
        What n brings about, in words.
    alpha : float
        The p-value below which the term counts as found; with a correction that of one test.
    units : str
        Those of theta and sd.
    loss : str
        What the estimator minimises.
    n_terms : int
        How many parameters are estimated with it.
    """

    n: int
    n_error: float
    term: str
    theta: float
    sd: float
    goal: str
    alpha: float
    units: str
    loss: str
    n_terms: int

    def stderr(self, n: float) -> float:
        """The standard error of the term with n samples."""
        return float(self.sd / np.sqrt(_some(n)))

    def power(self, n: float) -> float:
        """The probability to find the term, at p < alpha, with n samples."""
        return float(_power(abs(self.theta) / self.stderr(n), self.alpha))

    def curve(self, n: Any = None) -> pd.DataFrame:
        """A row for each n, by default from a tenth of this n to ten times as many: n, stderr, power."""
        values = np.geomspace(self.n / 10, 10 * self.n, 41).round() if n is None else np.atleast_1d(n)
        rows = [(value, self.stderr(value), self.power(value)) for value in np.maximum(values, 1).tolist()]
        return pd.DataFrame(rows, columns=["n", "stderr", "power"])

    def __repr__(self) -> str:
        few = (
            f". So few for {self.n_terms} terms that errors will be larger than this: simulate it"
            if self.n < _ENOUGH * self.n_terms
            else ""
        )
        return (
            f"SampleSize: n = {self.n:,} (± {100 * self.n_error:.2g} %) for {self.term} {self.goal}; it is "
            f"{self.theta:.3g} with a standard error of {self.sd:.3g}/√n, by {self.loss} in {self.units} units{few}"
        )


def sample_size(
    model: PolynomialModel,
    term: Term | None = None,
    *,
    error: float | None = None,
    power: float | None = None,
    significance: float = 0.05,
    correction: Literal["bonferroni"] | None = None,
    basis: MonomialBasis | None = None,
    units: Units = "raw",
    loss: Literal["pseudo-likelihood", "score matching"] = "pseudo-likelihood",
    n_draws: int = 20_000,
    rng: int | np.random.Generator | None = 0,
    progress: Show = None,
) -> Any:
    """How many samples it takes for a term to have a standard error, or to be found with a probability.

    The model is what is believed before there are data, made by `PolynomialModel.from_dict` or learned in a pilot
    study. The answer holds for many samples. With few, errors are larger, and estimators that leave out what the data
    do not support find less; `SampleSize` says so below ten samples a term.

    Parameters
    ----------
    model : PolynomialModel
        The distribution that samples will come from.
    term : tuple of int or str, optional
        The term in question, by indices or names of variables: ``(0, 0, 1)`` is x0²·x1. None for a table of all.
    error : float, optional
        The standard error that is wanted, in `units`.
    power : float, optional
        The probability that is wanted of finding the term, so that θ = 0 is rejected. Give either this or `error`.
    significance : float, default=0.05
        The two-sided p-value below which a term counts as found.
    correction : {None, "bonferroni"}
        "bonferroni": `significance` is shared among all interactions that are estimated.
    basis : MonomialBasis, optional
        The terms that will be estimated, by default those of the model. More of them cost samples, even where their
        parameters are zero: ``ISODUS()`` estimates ``MonomialBasis(p, 4, max_order=2)``.
    units : {"raw", "standardized"}
        Of `error` and the answer: those of the samples, or the model's y = (x − location)/scale. Below the highest
        degree whether a term is zero depends on them.
    loss : {"pseudo-likelihood", "score matching"}
        What the estimator minimises: that of `PseudoLikelihood` and of `ISODUS`, or that of `ScoreMatching`.
    n_draws : int, default=20_000
        Samples of the model that the calculation rests on; `n_error` tells whether they are enough.
    rng : int or numpy.random.Generator, default=0
        For these samples.
    progress : bool or callable, optional
        A bar, by default on a terminal after a second, or a function, as in `ISODUS`.

    Returns
    -------
    SampleSize or DataFrame
        Of one term, a `SampleSize`. Of all, a frame with a row a term: term, degree, order, theta, sd, n, n_error; n is
        infinite where power is asked for and θ is zero.

    Examples
    --------
    >>> from isodus import PolynomialModel
    >>> from isodus.planning import sample_size
    >>> model = PolynomialModel.from_dict({(0, 0): 0.5, (1, 1): 0.5, (0, 1): 0.2}, names=["a", "b"])
    >>> plan = sample_size(model, ("a", "b"), power=0.9)
    >>> 0.95 < plan.n / 273.2 < 1.05  # (1.960 + 1.282)² (1 + 0.2²) / 0.2²
    True
    >>> round(plan.power(100), 1)
    0.5
    """
    model = model if basis is None else _within(basis, model)
    goal = _goal(model, error, power, significance, correction)
    if units not in ("raw", "standardized"):
        raise ValueError(f'units must be "raw" or "standardized", not {units!r}')
    if loss not in _LOSSES:
        raise ValueError(f"loss must be one of {', '.join(map(repr, _LOSSES))}, not {loss!r}")
    theta = np.array(list(model.to_dict(units).values()))
    at = None if term is None else int(positions([term], model.basis, model.names, "term")[0])
    if at is not None and goal.power is not None and theta[at] == 0:
        raise ValueError(
            f"{model.term_name(model.basis.terms[at])} is zero in the model, in {units} units: no number of samples "
            "finds it. Give it the size that would matter, or ask for a standard error (error=)"
        )
    variance, spread = _asymptotic(model, _drawn(model, count(n_draws, "n_draws"), rng, progress), loss, units)
    n, least = goal.samples(theta, variance), model.basis.largest + 1  # fewer samples are refused by estimators
    sizes = np.array([max(ceil(value), least) if np.isfinite(value) else np.inf for value in n])
    if at is None:
        table = model.to_frame(units)[["term", "degree", "order", "theta"]]
        return table.assign(sd=np.sqrt(variance), n=sizes, n_error=spread / variance)
    name, sd = model.term_name(model.basis.terms[at]), float(np.sqrt(variance[at]))
    how = (str(goal), goal.alpha, units, loss, len(model.basis))
    return SampleSize(int(sizes[at]), float(spread[at] / variance[at]), name, float(theta[at]), sd, *how)


def _within(basis: Any, model: PolynomialModel) -> PolynomialModel:
    """The same model with more terms, whose parameters are zero."""
    if not isinstance(basis, MonomialBasis) or basis.n_variables != model.basis.n_variables:
        raise ValueError(f"basis must be a MonomialBasis of {model.basis.n_variables} variables, not {basis!r}")
    theta = np.zeros(len(basis))
    theta[positions(model.basis.terms, basis, model.names, "basis")] = model.theta
    return PolynomialModel(basis, theta, model.location, model.scale, model.names)


def _goal(model: PolynomialModel, error: Any, power: Any, significance: Any, correction: Any) -> _Goal:
    if (error is None) == (power is None):
        raise ValueError(f"give one of error and power, not {'neither' if error is None else 'both'}")
    alpha = check_level(significance, "significance")
    if correction not in (None, "bonferroni"):
        raise ValueError(f'correction must be None or "bonferroni", not {correction!r}')
    if correction is not None:
        alpha /= max(int(np.count_nonzero(model.basis.orders > 1)), 1)
    if error is not None:
        if isinstance(error, bool) or not isinstance(error, int | float | np.number) or not 0 < float(error) < np.inf:
            raise ValueError(f"error must be a positive number, a standard error, not {error!r}")
        return _Goal(float(error), None, alpha)
    power = check_level(power, "power")
    if power <= alpha:
        raise ValueError(f"power={power:g} is not above {alpha:g}, the probability to find what is not there")
    return _Goal(None, power, alpha)


def _drawn(model: PolynomialModel, n: int, rng: Any, progress: Show) -> np.ndarray:
    if len(model.basis) > MOST_PARAMETERS:
        raise ValueError(
            f"the model has {len(model.basis):,} terms, and a covariance of all of them is formed up to "
            f"{MOST_PARAMETERS:,}. Take fewer variables, or only the terms that are to be estimated"
        )
    if n < _BATCHES * (model.basis.largest + 1):
        raise ValueError(f"n_draws={n} is too few: {len(model.basis)} terms take {100 * len(model.basis):,} or more")
    try:
        return np.asarray(model.sample(n, rng, progress=progress))
    except ValueError as error:
        raise ValueError(f"without samples of the model nothing can be planned: {error}") from None


def _asymptotic(model: PolynomialModel, X: np.ndarray, loss: str, units: str) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of V, (M,), and its standard error, by a jackknife over batches of the samples X, (n, p).

    In the units of an estimator, which sees these samples: score matching is another one in other units. Chains go on
    along the rows, so that batches of consecutive ones hardly depend on one another.
    """
    basis = model.basis
    location, scale = standardisation(X, None, model.names, np.random.default_rng(0))
    location = location if basis.closed_under_translation else np.zeros_like(location)
    theta = raw_units(basis, model.theta, (model.location - location) / scale, model.scale / scale)
    A, B = [], []
    with one_blas_thread():
        for part in np.array_split(X, _BATCHES):
            joint = Joint(basis, _LOSSES[loss], ArraySamples(part, None, location, scale))
            curvature = joint(theta).hessian
            if curvature is None:
                raise ValueError("the model has no conditional density at some of its own samples: see integrability()")
            A.append(curvature)
            B.append(slope_covariance(joint.objective, theta))
    own = (model.location, model.scale) if units == "standardized" else (np.zeros_like(location), np.ones_like(scale))
    T = raw_matrix(basis, (location - own[0]) / own[1], scale / own[1])
    total_A, total_B = np.sum(A, axis=0), np.sum(B, axis=0)
    fewer = [_variances(T, total_A - a, total_B - b, _BATCHES - 1) for a, b in zip(A, B, strict=True)]
    spread = np.sqrt(_BATCHES - 1) * np.std(fewer, axis=0)
    variance = _variances(T, total_A, total_B, _BATCHES)
    if not np.all(variance > 0):
        bad = [model.term_name(basis.terms[k]) for k in np.flatnonzero(~(variance > 0))[:5]]
        raise ValueError(
            f"terms cannot be told apart on {len(X):,} samples of the model ({', '.join(bad)}): raise n_draws, or take "
            "fewer terms"
        )
    return variance, spread


def _variances(T: Any, A: np.ndarray, B: np.ndarray, k: int) -> np.ndarray:
    """The diagonal of T A⁻¹ B A⁻¹ Tᵀ, A and B sums over k batches; NaN where A is singular."""
    solve = inverse(A / k)
    if solve is None:
        return np.full(len(A), np.nan)
    half = T @ solve(np.eye(len(A)))
    return np.einsum("ij,ij->i", half @ (B / k), half)


def _power(delta: float, alpha: float) -> float:
    z = -ndtri(alpha / 2)
    return float(ndtr(delta - z) + ndtr(-delta - z))


def _some(n: Any) -> float:
    if isinstance(n, bool) or not isinstance(n, int | float | np.number) or not 0 < float(n) < np.inf:
        raise ValueError(f"n must be a positive number of samples, not {n!r}")
    return float(n)
