"""scikit-learn estimators: validation and wiring, no formula."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from . import consensus as _consensus
from .arrays import Array, namespace, to_host
from .basis import MonomialBasis
from .energy import local_parameters
from .fitting import Setting, add_nodes, judge, judge_joint, minimize, minimize_jointly, prepare, sources
from .losses.pseudo_likelihood import PseudoLikelihoodLoss
from .losses.score_matching import ScoreMatchingLoss
from .losses.screening import Screening
from .model import PolynomialModel, term_name
from .objective import Evaluation, Objective
from .regression import gaussian_parameters, second_moments
from .solvers.newton import Problem, newton_step
from .validation import check_samples, check_weight, one_of, per_variable, positive_integer, positive_number

__all__ = ["ISODUS", "PseudoLikelihood", "ScoreMatching"]

_FLOOR, _START = 1e-3, 0.3  # least and first value of the highest pure power, in standardised variables
MOST_JOINT_TERMS = 4000  # beyond which all variables are not solved for jointly, but one by one
_REACH = 1.8  # spreads at which the regularizing density with nu="auto" falls to 1/e


class PolynomialEstimator(BaseEstimator):
    """What the estimators share: from node estimates to a model, and what a fitted one can do."""

    def _learn(self, setting: Setting, problems: Sequence[Problem], nu: np.ndarray | None = None) -> Self:
        """Judge the node problems, make their estimates one, and keep the model."""
        basis = setting.basis
        status, effective = judge(setting, problems, nu)
        trusted = [word in ("converged", "weights concentrated") for word in status]
        theta = _consensus.combine(basis, [problem.theta for problem in problems], self.consensus, trusted)
        held = np.concatenate([basis.local(i).terms[problem.on_floor] for i, problem in enumerate(problems)])
        self._keep(setting, theta, held)
        self.status_, self.effective_samples_ = status, effective
        self.n_iter_ = np.array([problem.n_iter for problem in problems])
        return self

    def _learn_jointly(self, setting: Setting, problem: Problem) -> Self:
        """Judge the one problem that all variables share, and keep the model."""
        p = setting.basis.n_variables
        status = judge_joint(problem, setting.basis, setting.names)
        self._keep(setting, problem.theta, np.flatnonzero(problem.on_floor))
        self.status_, self.effective_samples_ = status, np.full(p, setting.n)
        self.n_iter_ = np.full(p, problem.n_iter)
        return self

    def _keep(self, setting: Setting, theta: np.ndarray, held: np.ndarray) -> None:
        basis, names = setting.basis, setting.names
        self.location_, self.scale_ = setting.location, setting.scale
        self.notes_ = [
            f"the data do not support {term_name(basis.terms[k], names)}: its parameter is held at the least value at "
            "which the conditional density is sure to exist"
            for k in held
        ]
        settings = self._settings() | ({"notes": self.notes_} if self.notes_ else {})
        self.model_ = PolynomialModel(basis, theta, setting.location, setting.scale, tuple(names), setting.n, settings)

    def score_samples(self, X: Array) -> Array:
        """Mean over variables of log P(x_i | rest) at every row of X, in the units of X; shape (n,).

        The pseudo-log-likelihood a variable: comparable between estimators, degrees and settings. −inf,
        with a warning, where a conditional density of the model does not exist.
        """
        check_is_fitted(self, "model_")
        X, names = check_samples(self, X, reset=False)
        xp = namespace(X)
        values = self.model_.conditional_log_density(X)
        missing = np.flatnonzero(to_host(xp.any(xp.isinf(values), axis=0)))
        if len(missing):
            warnings.warn(
                f"the model has no conditional density for {', '.join(names[i] for i in missing)} at some of the "
                "samples, which score −inf: lower the degree, or raise nu",
                UserWarning,
                stacklevel=2,
            )
        return xp.mean(values, axis=1)

    def score(self, X: Array, y: None = None, sample_weight: Array | None = None) -> float:
        """Mean of `score_samples`; higher is better."""
        values = to_host(self.score_samples(X))
        weight, _ = check_weight(sample_weight, values[:, None])
        return float(np.average(values, weights=weight))

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
        """How the model was learned, in plain values."""
        plain = (bool, int, float, str, type(None))
        left_out = {"n_jobs", "random_state", *(("degree", "max_order", "min_degree") if self.basis else ("basis",))}
        return {"estimator": type(self).__name__} | {
            name: value if isinstance(value, plain) else repr(value) if name == "basis" else np.asarray(value).tolist()
            for name, value in self.get_params(deep=False).items()
            if name not in left_out
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
        Work in y = (x − location)/scale, with the median and the central 95 % range / 3.92. Parameters are
        returned in the units of X either way. A basis that is not closed under translation (no linear
        terms, say) keeps its origin; then only R is centred.
    tol : float, default=1e-8
        Newton decrement at which a variable has converged; it has no units.
    max_iter : int, default=100
        Most Newton iterations on each subsample and on all samples.
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
        How each variable ended: "converged", "weights concentrated", "weights collapsed", "iteration limit",
        "singular" or "non-finite". Anything but the first comes with a warning.
    nu_ : ndarray of shape (n_features,)
        The strength of the regularizing density that was used.
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
        self.nu_ = nu
        return self._learn(setting, problems, nu)


class PseudoLikelihood(PolynomialEstimator):
    """Learn a polynomial exponential family by pseudo-likelihood.

    Maximises the mean of Σ_i log P(x_i | rest), whose normalisers are one-dimensional integrals at every sample:
    as accurate as anything short of maximum likelihood, and slower than `ISODUS` by its integrals. All variables
    share one θ, so that no consensus is needed and the model scores as well as it can; only where there are more
    than 4,000 terms is each variable solved by itself. At degree 2 it is a linear regression from the Gram matrix
    and costs next to nothing. The highest pure power of each variable is kept positive, without which its
    conditional density would not exist; where the data ask for less it stays at its least value, and `notes_`
    says so.

    Parameters
    ----------
    degree, max_order, min_degree, basis, consensus, center, scale, max_iter, n_jobs, random_state
        As in `ISODUS`; `consensus` matters only where variables are solved one by one.
    tol : float, default=1e-6
        Newton decrement at which the problem has converged; it has no units. A standard error is of the size
        √(1/n) on this scale.

    Attributes
    ----------
    model_, location_, scale_, status_, n_iter_, n_features_in_, feature_names_in_
        As in `ISODUS`.
    notes_ : list of str
        What is worth knowing about the answer.

    Examples
    --------
    >>> from isodus import PseudoLikelihood
    >>> from isodus.datasets import gaussian_10
    >>> truth = gaussian_10()
    >>> est = PseudoLikelihood(degree=2).fit(truth.sample(10_000, rng=0))
    >>> bool(abs(est.precision_ - truth.precision()).max() < 0.2)
    True
    """

    def __init__(
        self,
        degree: int = 4,
        *,
        max_order: int | None = 2,
        min_degree: int = 1,
        basis: MonomialBasis | None = None,
        consensus: str = "mean",
        center: bool = True,
        scale: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.degree = degree
        self.max_order = max_order
        self.min_degree = min_degree
        self.basis = basis
        self.consensus = consensus
        self.center = center
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Array, y: None = None, sample_weight: Array | None = None) -> PseudoLikelihood:
        """Learn the model behind the rows of X; parameters as in `ISODUS.fit`."""
        positive_number(self.tol, "tol")
        positive_integer(self.max_iter, "max_iter")
        one_of(self.consensus, _consensus.METHODS, "consensus")
        setting = prepare(self, X, sample_weight)
        basis = setting.basis
        nodes = range(basis.n_variables)
        options: dict[str, Any] = dict(tol=self.tol, max_iter=self.max_iter, random_state=self.random_state)
        with sources(setting, self.n_jobs) as samples:
            moments = second_moments(samples)
            found = [gaussian_parameters(basis, moments, i) for i in nodes]
            locals_ = [np.zeros(len(basis.local(i).terms)) if theta is None else theta for i, theta in enumerate(found)]
            start = _consensus.combine(basis, locals_, "mean")
            if basis.degree == 2 and all(theta is not None for theta in found):
                agree = all(np.allclose(start[basis.local(i).terms], locals_[i], rtol=1e-6) for i in nodes)
                if agree and all((i, i) in basis.terms for i in nodes):
                    return self._learn(setting, [Problem(theta, status="converged", n_iter=1) for theta in locals_])
            floor = np.full(len(basis), -np.inf)
            for i in nodes:
                unit = (setting.scale[i] / setting.width[i]) ** basis.degree
                top = (basis.factors == i).all(axis=1)
                floor[top], start[top] = _FLOOR * unit, np.maximum(start[top], _START * unit)
            loss = PseudoLikelihoodLoss()
            if len(basis) <= MOST_JOINT_TERMS:
                return self._learn_jointly(setting, minimize_jointly(samples, basis, loss, start, floor, **options))
            starts, floors = local_parameters(basis, start, nodes), local_parameters(basis, floor, nodes)
            return self._learn(setting, minimize(samples, basis, loss, starts, floors, single=False, **options))


class ScoreMatching(PolynomialEstimator):
    """Learn a polynomial exponential family by score matching (Hyvärinen, 2005).

    Minimises the mean of Σ_i ½(∂E/∂x_i)² − ∂²E/∂x_i², quadratic in θ: one pass over the samples and one linear
    system for all variables jointly (node by node, and then a consensus, where it would be too large). The
    cheapest estimator, often a good one; it loses where modes are well separated, since it does not see how
    they are weighted against one another, and it may return a model whose conditional densities do not exist.

    Parameters
    ----------
    degree, max_order, min_degree, basis, consensus, center, scale, n_jobs
        As in `ISODUS`; `consensus` matters only where the system is solved node by node.

    Attributes
    ----------
    model_, location_, scale_, status_, n_iter_, n_features_in_, feature_names_in_
        As in `ISODUS`.

    Examples
    --------
    >>> from isodus import ScoreMatching
    >>> from isodus.datasets import paper_1d
    >>> est = ScoreMatching(degree=4).fit(paper_1d().sample(100_000, rng=0))
    >>> round(est.model_.to_dict()[(0, 0, 0, 0)], 0)
    2.0
    """

    def __init__(
        self,
        degree: int = 4,
        *,
        max_order: int | None = 2,
        min_degree: int = 1,
        basis: MonomialBasis | None = None,
        consensus: str = "mean",
        center: bool = True,
        scale: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.degree = degree
        self.max_order = max_order
        self.min_degree = min_degree
        self.basis = basis
        self.consensus = consensus
        self.center = center
        self.scale = scale
        self.n_jobs = n_jobs

    def fit(self, X: Array, y: None = None, sample_weight: Array | None = None) -> ScoreMatching:
        """Learn the model behind the rows of X; parameters as in `ISODUS.fit`."""
        one_of(self.consensus, _consensus.METHODS, "consensus")
        setting = prepare(self, X, sample_weight)
        basis = setting.basis
        nodes = range(basis.n_variables)
        zeros = [np.zeros(len(basis.local(i).terms)) for i in nodes]
        with sources(setting, self.n_jobs) as samples:
            evaluations = Objective(basis, ScoreMatchingLoss(), samples).evaluate(nodes, zeros)
        if len(basis) <= MOST_JOINT_TERMS:
            return self._learn_jointly(setting, _quadratic_minimum(add_nodes(basis, evaluations)))
        return self._learn(setting, [_quadratic_minimum(evaluation) for evaluation in evaluations])


def _quadratic_minimum(at_zero: Evaluation) -> Problem:
    """The minimum −A⁻¹g of a quadratic objective, from its derivatives at zero."""
    zeros = np.zeros_like(at_zero.gradient)
    theta = None if at_zero.hessian is None else newton_step(at_zero.hessian, at_zero.gradient, zeros)
    if theta is None:
        return Problem(zeros, status="singular", evaluation=at_zero, n_iter=1)
    return Problem(theta, status="converged", evaluation=at_zero, n_iter=1)
