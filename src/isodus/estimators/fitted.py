"""What a fitted estimator can do: score, tell how rows moved it, whether it fits, and new samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, namespace, one_blas_thread, to_host
from ..blocks import Block
from ..checks import warn
from ..dependence import INDEPENDENT
from ..goodness import GoodnessOfFit, goodness_of_fit
from ..inference import influence
from ..losses import Loss
from ..model import PolynomialModel
from ..refinement import Joint
from ..samples import ArraySamples
from ..validation import check_blocked, check_samples, check_weight

__all__ = ["Fitted"]


class Fitted(BaseEstimator):
    """An estimator that has learned a `PolynomialModel`."""

    model_: PolynomialModel
    weights: str
    _joint_loss: Loss | None
    _how = INDEPENDENT
    _weighted = _split = False
    _columns: list[Any] | None = None  # of the frame that was fitted, as they are called there

    def score_samples(self, X: Array) -> Array:
        """Mean over variables of log P(x_i | rest) at every row of X, in the units of X; shape (n,).

        The pseudo-log-likelihood a variable: comparable between estimators, degrees and settings. −inf,
        with a warning, where a conditional density of the model does not exist, or a variable is outside of its
        support.
        """
        check_is_fitted(self, "model_")
        X, names = check_samples(self, X, reset=False)
        values = self.model_.conditional_log_density(X)
        self._warn_of_missing(*_lost(self.model_, X, values), names)
        return namespace(X).mean(values, axis=1)

    def score(self, X: Array, y: None = None, sample_weight: Array | None = None) -> float:
        """Mean of `score_samples`; higher is better. X may also be a stream (`open_samples`) or a Dask collection."""
        check_is_fitted(self, "model_")
        blocked = check_blocked(self, X, sample_weight, reset=False)
        if blocked is not None:
            total, count, outside, missing = blocked.source.reduce(partial(_scored, self.model_))
            self._warn_of_missing(outside, missing, blocked.columns)
            return float(total / count)
        values = to_host(self.score_samples(X))
        weight, _ = check_weight(sample_weight, values[:, None], self.weights == "importance")
        if weight is not None:
            values = np.where(weight > 0, values, 0.0)  # −inf of what has no weight is not there
        return float(np.average(values, weights=weight))

    def _warn_of_missing(self, outside: np.ndarray, missing: np.ndarray, names: Sequence[str]) -> None:
        """outside, missing: which variables, (p,), are outside of their support, or have no density, somewhere."""
        if outside.any():
            warn(
                f"values of {', '.join(compress(names, outside))} are outside of the support at some of the samples, "
                "which score −inf: mend them, or give another support. model_.outside(X) tells which",
            )
        if missing.any():
            warn(
                f"the model has no conditional density for {', '.join(compress(names, missing))} at some of the "
                "samples, which score −inf: lower the degree, or raise nu",
            )

    def influence(self, X: Array, sample_weight: Array | None = None) -> np.ndarray:
        """How each of the samples that were fitted moves the estimate, (n, n_terms), in standardised variables.

        A row with a little more weight, 1 + ε, moves θ by ε/n times its influence. The mean of the influences is zero,
        and that of their products, over n less the parameters of a variable, the covariance of θ. X and weights as
        they were given to `fit`.
        """
        check_is_fitted(self, "model_")
        if self._joint_loss is None:
            raise ValueError("influence is known of estimates of all variables jointly: refine, and no penalty alone")
        X, _ = check_samples(self, X, reset=False)
        if self._split:
            raise ValueError("of the samples one half was fitted: influence is known where all were")
        self._check_given_again(sample_weight is not None)
        weight, _ = check_weight(sample_weight, X, self.weights == "importance")
        model = self.model_
        joint = Joint(model.basis, self._joint_loss, ArraySamples(X, weight, model.location, model.scale))
        hessian = joint(model.estimate).hessian
        if hessian is None:
            raise ValueError("the objective is not finite at these samples: give those that were fitted")
        with one_blas_thread():
            return influence(joint.objective, model.estimate, hessian, ~np.isnan(model.stderr("standardized")))

    def _check_given_again(self, weighted: bool, grouped: bool = True) -> None:
        """Refuse the samples of the fit without the weights or groups that it had."""
        lost = [] if weighted or not self._weighted else ["sample_weight"]
        lost += [] if grouped or self._how.groups is None else ["groups"]
        if lost:
            raise ValueError(
                f"the fit had {' and '.join(lost)}: give {' and '.join(f'{name}=…' for name in lost)} here too, as "
                "they were given to fit. Without, rows would count as independent samples, one each"
            )

    def goodness_of_fit(self, X: Array, *, new: bool = False, **options: Any) -> GoodnessOfFit:
        """Whether the learned model fits X, as `isodus.goodness.goodness_of_fit` tells, with its options.

        X: the samples that were fitted, whose influence on the model is allowed for, and that of a series' lags; or,
        with ``new=True``, others.
        Where the model was moved to be a density (`notes_`), p-values on the samples that were fitted are approximate.
        """
        check_is_fitted(self, "model_")
        if new:
            return goodness_of_fit(self.model_, X, **options)
        if self._weighted or self._how.groups is not None or self._joint_loss is None or self._split:
            what = "weights" if self._weighted else "groups" if self._how.groups is not None else "a penalty alone"
            what = "half of the samples" if self._split else what
            raise ValueError(
                f"fitted with {what}: the tests know of independent samples or a series, all of which were fitted, "
                "without weights. Give others, that are so, with new=True"
            )
        return goodness_of_fit(self.model_, X, influence=self.influence(X), **{"dependence": self._how.lags, **options})

    def sample(self, n: int, rng: int | np.random.Generator | None = None, **options: Any) -> Any:
        """n new samples from the learned model, with the options of `PolynomialModel.sample`."""
        check_is_fitted(self, "model_")
        return self.model_.sample(n, rng, **options)

    @property
    def precision_(self) -> np.ndarray:
        """Precision matrix in the units of X, for degree 2: twice θ_(i,i) on the diagonal."""
        check_is_fitted(self, "model_")
        if self.model_.basis.degree > 2:
            raise AttributeError(f"precision_ exists for degree 2 only, this is {self.model_.basis.degree}")
        return self.model_.precision()


def _scored(model: PolynomialModel, block: Block) -> np.ndarray:
    """Of a block: the sum of its scores and of its weights, and which variables are lost to them."""
    values = model.conditional_log_density(block.X)
    weight = np.ones(len(values)) if block.weight is None else block.weight
    found = np.empty(4, dtype=object)
    scores = np.where(weight > 0, values.mean(axis=1), 0.0)
    found[:] = weight @ scores, weight.sum(), *_lost(model, block.X, values)
    return found


def _lost(model: PolynomialModel, X: Array, values: Array) -> tuple[np.ndarray, np.ndarray]:
    """Which variables, (p,), are outside of their support at some rows, and which have no density at some others."""
    outside = to_host(model.outside(X))
    inside = ~np.any(outside, axis=1, keepdims=True)
    return np.any(outside, axis=0), np.any(np.isinf(to_host(values)) & inside, axis=0)
