"""scikit-learn estimators: validation and wiring, no formula."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from . import consensus as _consensus
from .arrays import Array
from .basis import MonomialBasis
from .fitting import Setting, judge, minimize, prepare, sources
from .losses.screening import Screening
from .model import PolynomialModel
from .solvers.newton import Problem
from .validation import check_samples, one_of, per_variable, positive_integer, positive_number

__all__ = ["ISODUS"]

_REACH = 1.8  # spreads at which the regularizing density with nu="auto" falls to 1/e


class PolynomialEstimator(BaseEstimator):
    """What the estimators share: from node estimates to a model, and what a fitted one can do."""

    def _learn(self, setting: Setting, problems: Sequence[Problem], nu: np.ndarray | None = None) -> Self:
        """Judge the node problems, make their estimates one, and keep the model."""
        self.location_, self.scale_ = setting.location, setting.scale
        self.n_iter_ = np.array([problem.n_iter for problem in problems])
        self.status_, self.effective_samples_ = judge(problems, setting.basis, setting.names, nu)
        theta = _consensus.combine(setting.basis, [problem.theta for problem in problems], self.consensus)
        self.model_ = PolynomialModel(
            setting.basis, theta, setting.location, setting.scale, tuple(setting.names), setting.n, self._settings()
        )
        return self

    def score_samples(self, X: Array) -> Array:
        """Mean over variables of log P(x_i | rest) at every row of X, in the units of X; shape (n,).

        The pseudo-log-likelihood a variable: comparable between estimators, degrees and settings. −inf,
        with a warning, where a conditional density of the model does not exist.
        """
        check_is_fitted(self, "model_")
        X, names = check_samples(self, X, reset=False)
        values = self.model_.conditional_log_density(X)
        missing = np.flatnonzero(np.any(np.isneginf(values), axis=0))
        if len(missing):
            warnings.warn(
                f"the model has no conditional density for {', '.join(names[i] for i in missing)} at some of the "
                "samples, which score −inf: lower the degree, or raise nu",
                UserWarning,
                stacklevel=2,
            )
        return values.mean(axis=1)

    def score(self, X: Array, y: None = None, sample_weight: Array | None = None) -> float:
        """Mean of `score_samples`; higher is better."""
        values = self.score_samples(X)
        return float(np.average(values, weights=sample_weight))

    def sample(self, n: int, rng: int | np.random.Generator | None = None) -> np.ndarray:
        """n new samples from the learned model, as `PolynomialModel.sample`."""
        check_is_fitted(self, "model_")
        return self.model_.sample(n, rng)

    @property
    def precision_(self) -> np.ndarray:
        """Precision matrix in the units of X, for degree 2: twice θ_(i,i) on the diagonal."""
        check_is_fitted(self, "model_")
        if self.model_.basis.degree > 2:
            raise AttributeError(f"precision_ exists for degree 2 only, this is {self.model_.basis.degree}")
        return self.model_.precision()

    def _settings(self) -> dict[str, Any]:
        plain = (bool, int, float, str, type(None))
        return {"estimator": type(self).__name__} | {
            name: value if isinstance(value, plain) else np.asarray(value).tolist()
            for name, value in self.get_params(deep=False).items()
            if name not in ("basis", "n_jobs", "random_state")
        }


class ISODUS(PolynomialEstimator):
    """Learn a polynomial exponential family by interaction screening.

    The model is μ(x) ∝ exp(−Σ_k θ_k x^{α_k}) over all monomials up to a degree, or over a given list. Every
    variable i minimises the ISODUS objective of Ren, Misra, Vuffray and Lokhov, "Learning Continuous
    Exponential Families Beyond Gaussian",

        ⟨ exp( Σ_{k ∋ i} θ_k (f_k − ∫ f_k R_i dx_i) ) R_i(x_i) ⟩,    R_i(x) ∝ exp(−ν|x|^{degree + δ}),

    a convex problem without any integral; a term's estimates from its variables are then made one.

    Parameters
    ----------
    degree : int, default=4
        Highest degree of a term; even, since an odd degree has no density on the real line.
    max_order : int or None, default=2
        Most distinct variables in a term; None for no limit.
    min_degree : int, default=1
        Lowest degree of a term.
    basis : MonomialBasis, optional
        The terms, instead of the three parameters above.
    nu : float, array of shape (n_features,) or "auto", default="auto"
        Strength of the regularizing density R, in scaled variables when `scale` is set. Larger values weigh
        the samples near the centre more: safer, and less efficient. "auto" is 1.8^−(degree + delta) in scaled
        variables: R then falls to 1/e at 1.8 spreads.
    delta : float or array of shape (n_features,), default=2.0
        Excess of R's power over the degree.
    refine : 0
        Refinement steps of the regularizing density; 0, the paper's estimator, is the one there is.
    objective : {"log", "plain"}, default="log"
        Minimise the objective or its logarithm; the minimiser is the same, the logarithm converges faster.
    consensus : {"mean", "geometric"}, default="mean"
        How the estimates of a term from its variables become one; "geometric" is the paper's.
    center, scale : bool, default=True
        Work in y = (x − location)/scale, with the median and the interquartile range. Parameters are
        returned in the units of X either way. A basis that is not closed under translation (no linear
        terms, say) keeps its origin; then only R is centred.
    tol : float, default=1e-8
        Newton decrement at which a variable has converged; it has no units.
    max_iter : int, default=100
        Most Newton iterations on the whole sample.
    n_jobs : int, optional
        Threads. None is one; -1 is one a core. They are used where a variable has two dozen parameters
        or more: smaller problems are not faster for it. The answer is the same to the bit.
    random_state : int, RandomState or None
        Chooses the subsamples on which the fit starts; None always takes the same. The answer does not
        depend on it beyond `tol`.

    Attributes
    ----------
    model_ : PolynomialModel
        The learned model.
    location_, scale_ : ndarrays of shape (n_features,)
        Units of the standardised variables.
    status_ : list of str
        How each variable ended: "converged", "iteration limit", "weights collapsed", "singular" or
        "non-finite". Anything but the first comes with a warning.
    effective_samples_ : ndarray of shape (n_features,)
        Effective sample size (Σw)²/Σw² of each variable's weights.
    n_iter_ : ndarray of shape (n_features,)
        Newton iterations of each variable, on subsamples and on all samples.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from isodus import ISODUS
    >>> from isodus.datasets import paper_pair
    >>> truth = paper_pair(1)
    >>> est = ISODUS(degree=4, min_degree=2).fit(truth.sample(100_000, rng=0))
    >>> round(truth.to_dict()[(0, 0, 0)], 1), round(est.model_.to_dict()[(0, 0, 0)], 1)
    (0.5, 0.5)
    """

    def __init__(
        self,
        degree: int = 4,
        *,
        max_order: int | None = 2,
        min_degree: int = 1,
        basis: MonomialBasis | None = None,
        nu: float | Sequence[float] | str = "auto",
        delta: float | Sequence[float] = 2.0,
        refine: int = 0,
        objective: str = "log",
        consensus: str = "mean",
        center: bool = True,
        scale: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.degree = degree
        self.max_order = max_order
        self.min_degree = min_degree
        self.basis = basis
        self.nu = nu
        self.delta = delta
        self.refine = refine
        self.objective = objective
        self.consensus = consensus
        self.center = center
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Array, y: None = None, sample_weight: Array | None = None) -> ISODUS:
        """Learn the model behind the rows of X.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Samples.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Repetition counts: a weight of 2 is the sample twice.

        Returns
        -------
        self
        """
        positive_number(self.tol, "tol")
        positive_integer(self.max_iter, "max_iter")
        one_of(self.objective, ("log", "plain"), "objective")
        one_of(self.consensus, _consensus.METHODS, "consensus")
        if self.refine != 0:
            raise ValueError(f"refine={self.refine!r}: only refine=0, the paper's estimator, exists")
        auto = isinstance(self.nu, str) and self.nu == "auto"
        setting = prepare(self, X, sample_weight, units=auto)
        basis, scale = setting.basis, setting.scale
        delta = per_variable(self.delta, setting.names, "delta")
        if auto:
            nu = (_REACH * setting.width / scale) ** -(basis.degree + delta)
        else:
            nu = per_variable(self.nu, setting.names, "nu")
        # a basis that is not closed under translation keeps its origin: then the density alone is centred
        centre = (setting.centre - setting.location) / scale if self.center else np.zeros(len(scale))
        loss = Screening.of_degree(basis.degree, nu, delta, centre, self.objective)  # type: ignore[arg-type]
        starts = [np.zeros(len(basis.local(i).terms)) for i in range(basis.n_variables)]
        with sources(setting, self.n_jobs) as samples:
            problems = minimize(
                samples,
                basis,
                loss,
                starts,
                tol=self.tol,
                max_iter=self.max_iter,
                random_state=self.random_state,
                single=True,
            )
        return self._learn(setting, problems, nu)
