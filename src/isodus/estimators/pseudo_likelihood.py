"""Pseudo-likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import consensus as _consensus
from ..arrays import Array
from ..basis import MonomialBasis
from ..criteria import likelihood_nodes
from ..energy import local_parameters
from ..fitting import minimize, sources
from ..losses.pseudo_likelihood import PseudoLikelihoodLoss
from ..optimum import Task, optimum
from ..penalties import Terms, Weights
from ..pilots import confined, floors, gaussian, in_spaces
from ..preparation import Setting, prepare
from ..progress import Show, shown
from ..samples import ArraySamples
from ..validation import one_of, positive_integer, positive_number
from .candidates import Form
from .penalized import PenalizedEstimator
from .polynomial import MOST_JOINT_TERMS

__all__ = ["PseudoLikelihood"]


class PseudoLikelihood(PenalizedEstimator):
    """Learn a polynomial exponential family by pseudo-likelihood.

    Maximises the mean of Σ_i log P(x_i | rest), whose normalisers are one-dimensional integrals at every sample:
    as accurate as anything short of maximum likelihood, and slower than `ISODUS` by its integrals. All variables
    share one θ, so that no consensus is needed and the model scores as well as it can; only where there are more
    than 4,000 terms is each variable solved by itself. At degree 2 it is a linear regression from the Gram matrix
    and costs next to nothing. The highest pure power of each variable is kept positive, without which its
    conditional density would not exist; where the data ask for less it stays at its least value, and `notes_` says
    so.

    Parameters
    ----------
    degree, max_order, min_degree, basis, support, functions, consensus, select, integrable, center, scale
    max_iter, n_jobs
    device, progress, random_state
        As in `ISODUS`; `consensus` matters only where variables are solved one by one.
    dependence, weights
        As in `ISODUS`.
    l1, l1_scaling, l1_weights, l1_path, penalize_self, include, exclude, rule, folds, debias
        As in `ISODUS`. With a penalty each variable is solved by itself.
    tol : float, default=1e-6
        Newton decrement at which the problem has converged; it has no units. A standard error is of the size
        √(1/n) on this scale.

    integration : {"batched", "adaptive"}, default="batched"
        How the integrals are done: for thousands of samples at once, or each by itself with SciPy's adaptive
        Gauss-Kronrod rule, as the paper's baseline does. The latter is for comparison, and a thousand times slower.

    Attributes
    ----------
    model_, location_, scale_, status_, n_iter_, integrability_, l1_, l1_max_, kkt_, path_, n_features_in_
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
        support: Any = None,
        functions: Any = None,
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
        tol: float = 1e-6,
        max_iter: int = 100,
        integration: str = "batched",
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
        self.integration = integration
        self.n_jobs = n_jobs
        self.device = device
        self.progress = progress
        self.random_state = random_state

    @shown
    def fit(self, X: Array, y: None = None, sample_weight: Array | None = None, groups: Any = None) -> PseudoLikelihood:
        """Learn the model behind the rows of X; parameters as in `ISODUS.fit`."""
        positive_number(self.tol, "tol")
        positive_integer(self.max_iter, "max_iter")
        one_of(self.consensus, _consensus.METHODS, "consensus")
        one_of(self.integrable, ("enforce", "warn"), "integrable")
        if not isinstance(self.select, bool):
            raise ValueError(f"select must be True or False, not {self.select!r}")
        one_of(self.integration, ("batched", "adaptive"), "integration")
        self._check_penalty()
        setting = prepare(self, X, sample_weight, groups, penalised=self._has_penalty)
        with sources(setting, self.n_jobs) as samples:
            if not self._has_penalty:
                return self._unpenalised(samples, setting, setting)
            form = Form(likelihood_nodes, likelihood=True)
            return self._learn_sparse(setting, samples, form, self._unpenalised, self.tol, self.max_iter)

    def _unpenalised(self, samples: ArraySamples, setting: Setting, whole: Setting) -> PseudoLikelihood:
        """The estimate over the terms of `setting`, as a model over those of `whole`."""
        basis = setting.basis
        adaptive = self.integration == "adaptive"
        loss = (
            PseudoLikelihoodLoss(tol=1e-7, adaptive=True) if adaptive else PseudoLikelihoodLoss()
        )  # 1e-7: the paper's
        unit = setting.scale / setting.width
        if basis.tied is not None:
            return self._learn_tied(setting, samples, loss, self.tol, self.max_iter)
        if len(basis) <= MOST_JOINT_TERMS:
            task = Task(loss, None, self.tol, self.max_iter, self.max_iter, self.random_state, setting.how, self.select)
            return self._learn_jointly(setting, samples, optimum(basis, unit, samples, "auto", task), whole)
        nodes = range(basis.n_variables)
        least = floors(basis, unit)
        start = confined(gaussian(basis, samples)[0], least) if basis.spaces is None else in_spaces(basis, unit)
        starts = local_parameters(basis, start, nodes)
        low = [*local_parameters(basis, least, nodes)]
        options: dict[str, Any] = dict(tol=self.tol, max_iter=self.max_iter, random_state=self.random_state)
        problems = minimize(samples, basis, loss, starts, low, single=False, **options)
        return self._learn(setting, samples, loss, problems, whole=whole)
