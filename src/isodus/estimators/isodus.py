"""ISODUS: interaction screening, plain as in the paper, or with a tilted regularizing density."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from .. import consensus as _consensus
from ..arrays import Array
from ..basis import MonomialBasis
from ..checks import warn
from ..criteria import likelihood_nodes
from ..energy import local_parameters
from ..fitting import minimize, pilot_parameters, sources
from ..losses.pseudo_likelihood import PseudoLikelihoodLoss
from ..losses.screening import Screening
from ..model import PolynomialModel
from ..nodewise import SampledNodes
from ..optimum import Task, optimum
from ..penalties import Terms, Weights
from ..pilots import floors
from ..preparation import Setting, prepare
from ..progress import Show, shown
from ..references import bounded
from ..samples import ArraySamples, part_of
from ..solvers.newton import Problem
from ..strength import by_reach, choose_nu
from ..validation import one_of, per_variable, positive_integer, positive_number
from .candidates import Form
from .penalized import PenalizedEstimator
from .polynomial import MOST_JOINT_TERMS

__all__ = ["ISODUS"]


class ISODUS(PenalizedEstimator):
    """Learn a polynomial exponential family by interaction screening.

    The model is μ(x) ∝ exp(−Σ_k θ_k x^{α_k}) over all monomials up to a degree, or over a given list. Every
    variable i minimises the ISODUS objective of Ren, Misra, Vuffray and Lokhov, "Learning Continuous
    Exponential Families Beyond Gaussian",

        ⟨ exp( Σ_{k ∋ i} θ_k (f_k − ∫ f_k R_i dx_i) ) R_i(x_i) ⟩,    R_i(x) ∝ exp(−ν|x|^{degree + δ}),

    a convex problem without any integral; a term's estimates from its variables are then made one. That is
    ``refine=0``. By default its outcome, or another's, is a pilot: the density R_i is tilted by it, which takes one
    integral a sample and variable, and the estimate is then as accurate as pseudo-likelihood. All variables share
    one θ there, and each step must raise the pseudo-likelihood.

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
    support : optional
        Where variables live, if not on the whole line: ``(0, inf)``, ``(a, b)``, a list of values such as
        ``[0, 1, 2]``, or "positive", "spin" ([-1, 1]) or "circle". One for all columns, a list of one a column, or a
        mapping from names. The density is then one on these supports; powers that a few values cannot tell apart are
        left out (`notes_`). R is uniform within bounds, so that `nu` is 0 there; with spins and ``refine=0`` the
        objective is that of RISE.
    functions : optional
        What stands in the place of powers x^l, of `isodus.functions` or of your own; for all columns, a list, or a
        mapping from names. Such columns are not centred or scaled.
    nu : float, array of shape (n_features,) or "auto", default="auto"
        Strength of the regularizing density R, in scaled variables when `scale` is set. Larger values weigh
        the samples near the centre more: safer, and less efficient. With ``refine=0``, "auto" takes for each
        variable the largest of a grid whose estimated variance is within 15 % of the smallest; for a pilot, and with
        a penalty, it is 1.8^−(degree + delta) in scaled variables: R then falls to 1/e at 1.8 spreads.
    delta : float or array of shape (n_features,), default=2.0
        Excess of R's power over the degree.
    pilot : {"auto", "isodus", "score_matching"} or PolynomialModel, default="auto"
        What tilts the regularizing density first. "auto" is score matching where its model has conditional
        densities and is near the optimum, and otherwise what scores better of score matching with a bound and a
        Gaussian with a confining term. So is a pilot that turns out to have no conditional densities, or to score
        no better than a Gaussian; `pilot_` tells.
    refine : int or "auto", default="auto"
        How often the density is tilted anew, each time with one pass of integrals over all samples. 0 is the
        paper's estimator. "auto" goes on until a step is below a tenth of a standard error, the root mean square
        over terms, which on samples of a model of the family is once. With more than 4,000 terms there is no
        refinement, and a warning says so.
    objective : {"log", "plain"}, default="log"
        Minimise the objective or its logarithm; without a penalty the minimiser is the same, and the logarithm
        converges faster. The paper penalises the plain one.
    l1 : float, "auto", "ebic", "cv" or "stars", default=0.0
        An L1 penalty, by which most terms become exactly zero: each variable adds λ Σ_k ω_k |θ_k| to its objective.
        By default ω_k is the noise of the objective's slope by θ_k where nothing interacts, so λ√n is how many
        standard errors a term must show to be taken in, whatever its degree; 2/√n is a weak and 5/√n a strong
        penalty. Terms of one variable are not penalised. "auto" looks along a path of λ and takes the one that the
        extended BIC prefers ("ebic"); "cv" is cross-validation with the one-standard-error rule, "stars" stability
        under subsampling. `path_` keeps the path. θ is penalised in standardised variables, and below the highest
        degree which terms are zero depends on the origin (`center`).

        Refinement with a penalty goes on to its fixed point, whatever `refine` is but 0: the optimum of the penalised
        pseudo-likelihood. What tilts the density is the solution at a stronger penalty, from the model without
        interactions on. `refine=0` with ``objective="plain"`` and ``l1_scaling="paper"`` is the paper's form.
    l1_scaling : {None, "raw", "paper"}, default=None
        None: ω is in units of noise, as above. "raw": ω is 1, so `l1` multiplies Σ|θ_k|. "paper": as "raw", and `l1`
        is multiplied by √(log p / n).
    l1_weights : dict or callable, optional
        Factors of ω, by term: ``{(0, 1): 0.5}``, with names of columns, or else their indices; or a function of the
        tuple of indices, which then gives those of all terms, of one variable too. 0 keeps a term in, infinity
        leaves it out.
    l1_path : sequence of float, optional
        What "auto", "ebic", "cv" and "stars" choose from, decreasing, instead of 30 values of their own.
    penalize_self : bool, default=False
        Whether terms of one variable are penalised too.
    include, exclude : sequences of terms, optional
        Terms that are in the model whatever they cost, and terms that never are, in standardised variables: in the
        units of X a term that is left out may appear, if it divides one that is in.
    rule : {"and", "or"}, default="and"
        A term survives if all its variables keep it, or if any does.
    folds : int, default=5
        Folds of ``l1="cv"``.
    debias : bool, "auto" or "split", default="auto"
        Whether the terms that survive are fitted once more, without the penalty: estimates that are not shrunk, with
        standard errors. These are those of a model that was given beforehand, not of one that was chosen by the same
        data. "auto" does so where `l1` is chosen by the data, since that is what the choice is judged by. "split":
        terms are chosen on one half of the samples and fitted on the other, so that standard errors are right. For
        intervals of all terms, whether they were chosen or not, see `debiased`.
    consensus : {"mean", "geometric", "precision"}, default="mean"
        How, without refinement, the estimates of a term from its variables become one: averaged, or as the
        paper does ("geometric"), or weighted by their covariance (with a penalty, averaged).
    select : bool, default=False
        Whether terms above degree 2 are left out where they do not lower the estimated loss on new samples: those of
        some variables, or all. A warning then counts them, and they are zero and untested. By default all terms that
        were asked for are estimated.
    integrable : {"enforce", "warn"}, default="enforce"
        "enforce": a model that is not proved integrable is moved by the smallest change that makes it a density, as
        far as the objective tells; `notes_` says how far that was in standard errors, and a warning where it was far.
        Without refinement the highest pure power of each variable is kept positive too. The standard errors stay those
        of the estimate. "warn": what was learned is kept, and a warning says if it is no density.
    dependence : int, "auto" or None, default=None
        Whether rows are a series in the order of time, as of a simulation or of measurements, and how many rows apart
        they still depend on one another: standard errors then allow for it (Newey and West). "auto" lets the slopes of
        the objective tell; `notes_` says how many it were. Estimates are the same. For rows in groups give `fit` the
        groups.
    weights : {"counts", "importance"}, default="counts"
        What `sample_weight` means: how often each row was seen, or ratios of densities, of which only the proportions
        count; they leave as much as (Σw)²/Σw² samples.
    center, scale : bool, default=True
        Work in y = (x − location)/scale, with the middle and the length / 3.92 of the central 95 % range.
        Parameters are returned in the units of X either way. A basis that is not closed under translation (no
        linear terms, say) keeps its origin; then only R is centred.
    tol : float, default=1e-8
        Newton decrement at which a variable has converged without refinement; it has no units.
    max_iter : int, default=100
        Most Newton iterations on each subsample and on all samples.
    n_jobs : int, optional
        Threads. None is one; -1 is one a core. They are used where a variable has two dozen parameters
        or more: smaller problems are not faster for it. The answer is the same to the bit.
    device : str, optional
        Where to compute: "cuda", "cuda:1" or "cpu". None is where X is: arrays of PyTorch, CuPy and JAX stay on their
        device. To another one X is moved, NumPy's by PyTorch or else by CuPy.
    progress : bool or callable, optional
        How far a fit has come: None shows a bar on a terminal after a second, True anywhere, False never. A function is
        called with what is being done, how much of it is done and how much there is (None where that is not known); an
        error that it raises ends the fit.
    random_state : int, RandomState or None
        Chooses the subsamples on which the fit starts; None always takes the same. The answer does not
        depend on it beyond `tol`, or, with refinement, a tenth of a standard error (root mean square).

    Attributes
    ----------
    model_ : PolynomialModel
        The learned model.
    location_, scale_ : ndarrays of shape (n_features,)
        Units of the standardised variables.
    status_ : list of str
        How each variable ended: "converged", "weights concentrated", "weights collapsed", "iteration limit",
        "singular" or "non-finite". Anything but the first comes with a warning.
    notes_ : list of str
        What is worth knowing about the answer.
    integrability_ : Integrability or None
        Whether the density exists, as `PolynomialModel.integrability` tells; None beyond 20,000 terms.
    l1_, l1_max_ : float
        With a penalty: what it was, in the units of `l1`, and the least at which the model is empty.
    kkt_ : ndarray of shape (n_features,)
        With a penalty: by how much each variable misses the conditions of optimality, in the units of λ.
    path_ : PenaltyPath
        With "auto", "ebic", "cv" or "stars": the λ that were looked at, what each leaves and which was chosen; it has
        `to_frame` and `plot`.
    shared_ : DataFrame
        Where the basis ties terms: each parameter that they share, its standard error, both in the units of X, and how
        many terms have it; `shared_covariance_` is the covariance.
    pilot_ : str
        What the refinement started from; "none" without one, "path" with a penalty.
    nu_ : ndarray of shape (n_features,)
        The strength of the regularizing density that was used, for the pilot where there is one.
    effective_samples_ : ndarray of shape (n_features,)
        Effective sample size (Σw)²/Σw² of each variable's weights.
    n_iter_ : ndarray of shape (n_features,)
        Passes over all samples where there was a refinement; otherwise Newton iterations of each variable, on
        subsamples and on all samples.
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
        support: Any = None,
        functions: Any = None,
        nu: float | Sequence[float] | str = "auto",
        delta: float | Sequence[float] = 2.0,
        pilot: str | PolynomialModel = "auto",
        refine: int | str = "auto",
        objective: str = "log",
        l1: float | str = 0.0,
        l1_scaling: str | None = None,
        l1_weights: Weights | None = None,
        l1_path: Sequence[float] | None = None,
        penalize_self: bool = False,
        include: Terms | None = None,
        exclude: Terms | None = None,
        rule: str = "and",
        folds: int = 5,
        debias: bool | str = "auto",
        consensus: str = "mean",
        select: bool = False,
        integrable: str = "enforce",
        dependence: int | str | None = None,
        weights: str = "counts",
        center: bool = True,
        scale: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        n_jobs: int | None = None,
        device: str | None = None,
        progress: Show = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.degree = degree
        self.max_order = max_order
        self.min_degree = min_degree
        self.basis = basis
        self.support = support
        self.functions = functions
        self.nu = nu
        self.delta = delta
        self.pilot = pilot
        self.refine = refine
        self.objective = objective
        self.l1 = l1
        self.l1_scaling = l1_scaling
        self.l1_weights = l1_weights
        self.l1_path = l1_path
        self.penalize_self = penalize_self
        self.include = include
        self.exclude = exclude
        self.rule = rule
        self.folds = folds
        self.debias = debias
        self.consensus = consensus
        self.select = select
        self.integrable = integrable
        self.dependence = dependence
        self.weights = weights
        self.center = center
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.device = device
        self.progress = progress
        self.random_state = random_state

    @shown
    def fit(self, X: Array, y: None = None, sample_weight: Array | None = None, groups: Any = None) -> ISODUS:
        """Learn the model behind the rows of X.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
            Samples.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            Repetition counts: a weight of 2 is the sample twice; or what `weights` says.
        groups : array of shape (n_samples,), optional
            A label a row: rows of one group depend on one another, and standard errors allow for it. Labels may be
            numbers or words, in any order; thirty groups or more are wanted.

        Returns
        -------
        self
        """
        positive_number(self.tol, "tol")
        positive_integer(self.max_iter, "max_iter")
        one_of(self.objective, ("log", "plain"), "objective")
        one_of(self.consensus, _consensus.METHODS, "consensus")
        one_of(self.integrable, ("enforce", "warn"), "integrable")
        if not isinstance(self.select, bool):
            raise ValueError(f"select must be True or False, not {self.select!r}")
        steps = self._steps()
        if not isinstance(self.pilot, PolynomialModel):
            one_of(self.pilot, ("auto", "isodus", "score_matching"), "pilot", "or a PolynomialModel")
        self._check_penalty()
        auto = isinstance(self.nu, str) and self.nu == "auto"
        if self._has_penalty and self.pilot != "auto":
            raise ValueError(
                'with l1, what tilts the density is the solution at a stronger penalty: leave pilot="auto"'
            )
        units = auto or steps > 0 or self.integrable == "enforce" or self._has_penalty
        setting = prepare(self, X, sample_weight, groups, units=units, penalised=self._has_penalty)
        delta = per_variable(self.delta, setting.names, "delta")
        with sources(setting, self.n_jobs) as samples:
            if self._has_penalty:
                return self._fit_sparse(samples, setting, delta, steps)
            return self._unpenalised(samples, setting, setting, delta, steps)

    def _fit_sparse(self, samples: ArraySamples, setting: Setting, delta: np.ndarray, steps: int) -> ISODUS:
        """With a penalty: the tilted estimator at its fixed point, or the paper's."""
        refit = partial(self._unpenalised, delta=delta, steps=steps)
        self.nu_, self.pilot_ = self._nu(setting, delta), "path" if steps else "none"
        if steps:
            form = Form(likelihood_nodes, likelihood=True)
        else:
            loss = self._loss(setting, self.nu_, delta)
            form = Form(lambda basis, some: SampledNodes(basis, loss, some), False, self.integrable == "enforce")
        return self._learn_sparse(setting, samples, form, refit, self.tol, self.max_iter)

    def _unpenalised(
        self, samples: ArraySamples, setting: Setting, whole: Setting, delta: np.ndarray, steps: int
    ) -> ISODUS:
        """The estimate over the terms of `setting`, as a model over those of `whole`."""
        basis = setting.basis
        if basis.tied is not None:
            self.nu_ = self._nu(setting, delta)
            if not steps:
                return self._learn_tied(setting, samples, self._loss(setting, self.nu_, delta), self.tol, self.max_iter)
            return self._learn_tied(setting, samples, PseudoLikelihoodLoss(tol=1e-6), 1e-6, self.max_iter)
        if steps == 0 or len(basis) > MOST_JOINT_TERMS:
            if steps:
                warn(
                    f"{len(basis):,} terms are too many to refine, which is done for all of them jointly, "
                    f"up to {MOST_JOINT_TERMS:,}: this is the estimate of refine=0",
                )
            self.pilot_ = "none"
            screening, problems, self.nu_ = self._screened(setting, samples, delta)
            return self._learn(setting, samples, screening, problems, self.nu_, whole)
        pilot = self.pilot if isinstance(self.pilot, str) else pilot_parameters(self.pilot, setting)
        loss, tol = PseudoLikelihoodLoss(tol=1e-6), 0.1 * np.sqrt(len(basis) / setting.n)
        isodus = partial(self._pilot, setting, delta)
        task = Task(loss, isodus, tol, steps, self.max_iter, self.random_state, setting.how, self.select)
        found = optimum(basis, setting.scale / setting.width, samples, pilot, task)
        self.pilot_, self.nu_ = found.pilot, self._nu(setting, delta)
        return self._learn_jointly(setting, samples, found, whole)

    def _steps(self) -> int:
        """How many refinements there may be."""
        if isinstance(self.refine, str) and self.refine == "auto":
            return self.max_iter
        if isinstance(self.refine, bool) or not isinstance(self.refine, Integral) or self.refine < 0:
            raise ValueError(
                f'refine must be "auto", 0 (the paper\'s estimator) or a number of steps, not {self.refine!r}'
            )
        return int(self.refine)

    def _nu(self, setting: Setting, delta: np.ndarray) -> np.ndarray:
        """ν of every variable where it does not depend on the data."""
        if isinstance(self.nu, str) and self.nu == "auto":
            nu = by_reach(setting.basis.degree, delta, setting.width / setting.scale)
        else:
            nu = per_variable(self.nu, setting.names, "nu")
        spaces = setting.basis.spaces
        return nu if spaces is None else np.where(bounded(spaces), 0.0, nu)

    def _screened(
        self, setting: Setting, samples: ArraySamples, delta: np.ndarray
    ) -> tuple[Screening, list[Problem], np.ndarray]:
        """The paper's estimator, every variable by itself: its loss, the solved problems, and ν."""
        basis = setting.basis
        nodes = range(basis.n_variables)
        nu = self._nu(setting, delta)
        low: list[np.ndarray | None] = [None] * len(nodes)
        starts = [np.zeros(len(basis.local(i).terms)) for i in nodes]
        if self.integrable == "enforce":
            least = floors(basis, setting.scale / setting.width)
            own = local_parameters(basis, least, nodes)
            low, starts = [*own], [np.where(floor > -np.inf, 100 * floor, 0.0) for floor in own]
        if isinstance(self.nu, str):
            part = part_of(samples, basis.largest)
            unit = setting.width / setting.scale
            nu = choose_nu(basis, part, delta, self._centre(setting), unit, starts, low) * (nu > 0)
        loss = self._loss(setting, nu, delta)
        options: dict[str, Any] = dict(tol=self.tol, max_iter=self.max_iter, random_state=self.random_state)
        return loss, minimize(samples, basis, loss, starts, low, single=True, **options), nu

    def _pilot(self, setting: Setting, delta: np.ndarray, basis: MonomialBasis, samples: ArraySamples) -> np.ndarray:
        """The paper's estimator as a pilot over some terms; zeros where a variable did not converge."""
        loss = self._loss(setting, self._nu(setting, delta), delta)
        starts = [np.zeros(len(basis.local(i).terms)) for i in range(basis.n_variables)]
        options: dict[str, Any] = dict(tol=1e-4, max_iter=15, random_state=self.random_state)
        problems = minimize(samples, basis, loss, starts, single=True, **options)
        if any(problem.status != "converged" for problem in problems):
            return np.zeros(len(basis))
        return _consensus.combine(basis, [problem.theta for problem in problems], "mean")[0]

    def _loss(self, setting: Setting, nu: np.ndarray, delta: np.ndarray) -> Screening:
        link: Any = self.objective
        basis = setting.basis
        return Screening.of_degree(basis.degree, nu, delta, self._centre(setting), link, basis.spaces)

    def _centre(self, setting: Setting) -> np.ndarray:
        """Of R: a basis that is not closed under translation keeps its origin, and the density alone is centred."""
        return (setting.centre - setting.location) / setting.scale if self.center else np.zeros(len(setting.scale))
