"""scikit-learn estimators: validation and wiring, no formula."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from . import consensus as _consensus
from .arrays import Array, available_memory, to_host
from .basis import MonomialBasis, n_monomials
from .losses.screening import Screening
from .model import PolynomialModel, term_name
from .objective import MANY, Objective
from .samples import ArraySamples, check_variation, standardisation
from .solvers.newton import Problem, Rung, ladder
from .validation import check_samples, check_weight, one_of, per_variable, positive_number

__all__ = ["ISODUS"]

_RUNGS = (64, 8)  # fractions of the samples on which a fit starts
_REACH = 1.8  # spreads at which the regularizing density with nu="auto" falls to 1/e
_SINGLE = 1e-5  # relative change of a value that sums in single precision cannot resolve
_ROWS_PER_PARAMETER = 30  # how many a subsample must have
_NODES_AT_ONCE = 8  # nodes that share one pass over the samples, where memory allows


class ISODUS(BaseEstimator):
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
        self._check_parameters()
        X, names = check_samples(self, X)
        weight, n = check_weight(sample_weight, X)
        n_rows, p = X.shape
        s = self._check_size(p, n_rows if weight is None else int(np.count_nonzero(to_host(weight))))
        delta = per_variable(self.delta, names, "delta")
        nu = None if isinstance(self.nu, str) and self.nu == "auto" else per_variable(self.nu, names, "nu")
        basis = self.basis or MonomialBasis(p, self.degree, min_degree=self.min_degree, max_order=self.max_order)
        check_variation(X, names)
        centre, width = np.zeros(p), np.ones(p)
        if self.center or self.scale or nu is None:
            centre, width = standardisation(X, weight, names, rng=np.random.default_rng(0))
        self.scale_ = width if self.scale else np.ones(p)
        if nu is None:
            nu = (_REACH * width / self.scale_) ** -(s + delta)
        shifted = self.center and basis.closed_under_translation
        self.location_ = centre if shifted else np.zeros(p)
        r_centre = centre / self.scale_ if self.center and not shifted else np.zeros(p)
        loss = Screening.of_degree(s, nu, delta, r_centre, self.objective)  # type: ignore[arg-type]

        problems = self._solve(X, weight, basis, loss)
        thetas = [problem.theta for problem in problems]
        self.n_iter_ = np.array([problem.n_iter for problem in problems])
        self._judge(problems, basis, names, nu)
        self.model_ = PolynomialModel(
            basis,
            _consensus.combine(basis, thetas, self.consensus),
            self.location_,
            self.scale_,
            tuple(names),
            n,
            self._settings(),
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

    # what fit is made of

    def _check_parameters(self) -> None:
        positive_number(self.tol, "tol")
        one_of(self.objective, ("log", "plain"), "objective")
        one_of(self.consensus, _consensus.METHODS, "consensus")
        if self.refine != 0:
            raise ValueError(f"refine={self.refine!r}: only refine=0, the paper's estimator, exists")
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ValueError(f"max_iter must be an integer of at least 1, not {self.max_iter!r}")
        if self.basis is not None and not isinstance(self.basis, MonomialBasis):
            raise ValueError(f"basis must be a MonomialBasis, not {type(self.basis).__name__}")
        degree = self.degree if self.basis is None else self.basis.degree
        if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree < 1:
            raise ValueError(f"degree must be an even integer of at least 2, not {degree!r}")
        if degree % 2:
            raise ValueError(
                f"degree={degree} is odd: exp(−x^{degree}) grows without bound on one side, so no density of that "
                f"degree exists on the real line. Use degree={degree + 1}, or {max(degree - 1, 2)}"
            )

    def _check_size(self, p: int, n: int) -> int:
        """The degree, if every variable has more samples than parameters and the work fits in memory."""
        if self.basis is not None:
            if self.basis.n_variables != p:
                raise ValueError(f"the basis has {self.basis.n_variables} variables, X has {p} columns")
            largest = max(len(self.basis.local(i).terms) for i in range(p))
            degree = self.basis.degree
        else:
            count = partial(n_monomials, degree=self.degree, min_degree=self.min_degree, max_order=self.max_order)
            largest, degree = count(p) - count(p - 1), self.degree
        gigabytes = 3 * 8 * largest**2 / 1e9
        minutes = 20 * p * n * largest**2 / 5e9 / 60
        if largest >= n:
            raise ValueError(
                f"{largest:,} parameters at each variable and n_samples = {n:,}: without a penalty there is no "
                f"estimate. (With samples enough this size would take about {minutes:,.1g} minutes and "
                f"{gigabytes:,.1g} GB.) Use more samples, degree=2, max_order=2, or a basis with fewer terms"
            )
        if gigabytes * 1e9 > available_memory():
            raise ValueError(
                f"{largest:,} parameters at each variable need about {gigabytes:,.3g} GB for a Hessian matrix, and "
                f"{available_memory() / 1e9:,.3g} GB are free. Use degree=2, max_order=2, or fewer terms"
            )
        return degree

    def _solve(self, X: Array, weight: Array | None, basis: MonomialBasis, loss: Screening) -> list[Problem]:
        """Minimise the node objectives, several nodes to a pass over the samples."""
        p = basis.n_variables
        sizes = [len(basis.local(i).terms) for i in range(p)]
        at_once = max(1, min(_NODES_AT_ONCE, int(256e6 / (8 * max(sizes) ** 2))))
        seed = 0 if self.random_state is None else check_random_state(self.random_state).randint(2**31)
        rng = np.random.default_rng(seed)
        with ExitStack() as stack:
            stack.enter_context(_blas().limit(limits=1, user_api="blas"))
            n_threads = effective_n_jobs(self.n_jobs) if max(sizes) >= MANY else 1
            pool = stack.enter_context(ThreadPoolExecutor(n_threads)) if n_threads > 1 else None
            everything = ArraySamples(X, weight, self.location_, self.scale_, pool)
            stages = _stages(everything, max(sizes), self.tol, rng)
            problems: list[Problem] = []
            for first in range(0, p, at_once):
                nodes = range(first, min(first + at_once, p))
                rungs = [
                    Rung(partial(_evaluate, Objective(basis, loss, samples), nodes), tol, rounding)
                    for samples, tol, rounding in stages
                ]
                problems += ladder(rungs, [np.zeros(sizes[i]) for i in nodes], max_iter=self.max_iter)
        return problems

    def _judge(self, problems: list[Problem], basis: MonomialBasis, names: Sequence[str], nu: np.ndarray) -> None:
        """Give every variable its status, and warn about those whose answer is not to be trusted."""
        self.status_, sizes = [], []
        for i, problem in enumerate(problems):
            K = len(problem.theta)
            ess = getattr(problem.evaluation, "ess", 0.0)
            collapsed = problem.evaluation is not None and ess < 2 * K
            self.status_.append("weights collapsed" if collapsed else problem.status)
            sizes.append(ess)
            if message := _explanation(self.status_[-1], problem, i, basis, names, ess, nu[i]):
                warnings.warn(f"{names[i]}: {message}", ConvergenceWarning, stacklevel=4)
        self.effective_samples_ = np.array(sizes)

    def _settings(self) -> dict[str, Any]:
        plain = (bool, int, float, str, type(None))
        return {"estimator": type(self).__name__} | {
            name: value if isinstance(value, plain) else np.asarray(value).tolist()
            for name, value in self.get_params(deep=False).items()
            if name not in ("basis", "n_jobs", "random_state")
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


def _stages(
    samples: ArraySamples, n_parameters: int, tol: float, rng: np.random.Generator
) -> list[tuple[ArraySamples, float, float]]:
    """Samples to minimise on one after the other, each with its tolerance and rounding.

    A subsample is solved to a fraction of its own statistical error; then all samples in single precision,
    to what that can tell; then all in double precision, which is the answer.
    """
    sizes = [samples.n_rows // part for part in _RUNGS]
    sizes = [size for size in sizes if size >= _ROWS_PER_PARAMETER * n_parameters]
    parts = [samples.subsample(size, rng).in_single() for size in sizes]
    stages = [(part, 0.3 * np.sqrt(n_parameters / part.n_rows), _SINGLE) for part in parts]
    if stages:
        stages.append((samples.in_single(), 1e-4, _SINGLE))
    return [*stages, (samples, tol, 1e-12)]


def _evaluate(objective: Objective, nodes: range, which: list[int], points: list[np.ndarray], hessian: bool) -> Any:
    return objective.evaluate([nodes[j] for j in which], points, hessian)


@cache
def _blas() -> ThreadpoolController:
    """Looking for the loaded BLAS libraries takes a millisecond: once is enough."""
    return ThreadpoolController()


def _explanation(
    status: str, problem: Problem, i: int, basis: MonomialBasis, names: Sequence[str], ess: float, nu: float
) -> str:
    """What a status means and what to do about it; empty for a good one."""
    if status == "weights collapsed":
        return (
            f"the screening weights collapsed: effective sample size {ess:.1f} for {len(problem.theta)} parameters. "
            f"Its estimates are not trustworthy. Raise nu (here {nu:.2g}), lower the degree or the number of terms, "
            "transform heavy tails (log, asinh, ranks), or use more samples"
        )
    if status == "iteration limit":
        return (
            f"no convergence in {problem.n_iter} iterations (Newton decrement {problem.decrement:.1e}). "
            "Raise max_iter or nu; with scale=False, try scale=True"
        )
    if status == "non-finite":
        return (
            "the objective is not finite at the start. Values too large for powers of this degree? "
            "Use center=True and scale=True"
        )
    if status == "singular":
        hessian = getattr(problem.evaluation, "hessian", None)
        group = ""
        if hessian is not None:
            scale = np.sqrt(np.maximum(np.diagonal(hessian), np.finfo(float).tiny))
            vector = np.abs(np.linalg.eigh(hessian / scale / scale[:, None])[1][:, 0])
            terms = basis.local(i).terms
            listed = [basis.terms[terms[k]] for k in np.argsort(-vector)[:4] if vector[k] > 0.1]
            group = ": " + ", ".join(term_name(term, names) for term in listed)
        return (
            f"terms cannot be told apart on these samples{group}. Drop a collinear column, one with few distinct "
            "values, or terms; transform heavy tails (log, asinh, ranks)"
        )
    return ""
