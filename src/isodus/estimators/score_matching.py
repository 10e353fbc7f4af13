"""Score matching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import consensus as _consensus
from ..arrays import Array
from ..basis import MonomialBasis
from ..checks import warn
from ..fitting import sources
from ..losses.score_matching import ScoreMatchingLoss
from ..nodewise import SampledNodes
from ..objective import Objective
from ..optimum import Optimum
from ..penalties import Terms, Weights
from ..pilots import quadratic_minimum
from ..prediction import worse_than_gaussian
from ..preparation import Setting, prepare
from ..progress import Show, shown
from ..refinement import Joint, add_nodes
from ..samples import ArraySamples, part_of
from ..validation import one_of
from .candidates import Form
from .held_out import worse_held_out
from .penalized import PenalizedEstimator
from .polynomial import MOST_JOINT_TERMS

__all__ = ["ScoreMatching"]

_TOL, _MAX_ITER = 1e-8, 50  # of fits with a penalty
_WORSE = 0.01  # in log P a variable


class ScoreMatching(PenalizedEstimator):
    """Learn a polynomial exponential family by score matching (Hyvärinen, 2005).

    Minimises the mean of Σ_i ½(∂E/∂x_i)² − ∂²E/∂x_i², quadratic in θ: one pass over the samples and one linear
    system for all variables jointly (node by node, and then a consensus, where it would be too large). The
    cheapest estimator, often a good one; it loses where modes are well separated, since it does not see how
    they are weighted against one another, and it may return a model whose conditional densities do not exist.

    Parameters
    ----------
    degree, max_order, min_degree, basis, consensus, dependence, weights, center, scale, n_jobs, device, progress
        As in `ISODUS`; `consensus` matters only where the system is solved node by node.
    support, functions
        As in `ISODUS`, but not for values that lie apart, where there are no derivatives. Where a variable has an end,
        what is minimised has a weight that is zero there (generalised score matching). Functions need derivatives.
    l1, l1_scaling, l1_weights, l1_path, penalize_self, include, exclude, rule, folds, debias
        As in `ISODUS`. With a penalty each variable is solved by itself.
    integrable : {"warn", "enforce"}, default="warn"
        As in `ISODUS`, where "enforce" is the default. Here it can take longer than the rest of the fit.

    Attributes
    ----------
    model_, location_, scale_, status_, n_iter_, integrability_, l1_, l1_max_, kkt_, path_, n_features_in_
        As in `ISODUS`.

    Examples
    --------
    >>> from isodus import ScoreMatching
    >>> from isodus.datasets import paper_1d
    >>> est = ScoreMatching(degree=4).fit(paper_1d().sample(100_000, rng=0))
    >>> round(est.model_.to_dict()[(0, 0, 0, 0)], 0)
    2.0
    """

    _node_loss = ScoreMatchingLoss()
    _rows_a_parameter = 100  # few rows far out have much of the say
    _needs_slopes = True

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
        integrable: str = "warn",
        dependence: int | str | None = None,
        weights: str = "counts",
        center: bool = True,
        scale: bool = True,
        n_jobs: int | None = None,
        device: str | None = None,
        progress: Show = None,
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
        self.integrable = integrable
        self.dependence = dependence
        self.weights = weights
        self.center = center
        self.scale = scale
        self.n_jobs = n_jobs
        self.device = device
        self.progress = progress

    @shown
    def fit(self, X: Array, y: None = None, sample_weight: Array | None = None, groups: Any = None) -> ScoreMatching:
        """Learn the model behind the rows of X; parameters as in `ISODUS.fit`."""
        one_of(self.consensus, _consensus.METHODS, "consensus")
        one_of(self.integrable, ("enforce", "warn"), "integrable")
        self._check_penalty()
        setting = prepare(self, X, sample_weight, groups, penalised=self._has_penalty)
        with sources(setting, self.n_jobs) as samples:
            if self._has_penalty:
                form = Form(lambda basis, some: SampledNodes(basis, ScoreMatchingLoss(), some), False, False)
                return self._learn_sparse(setting, samples, form, self._unpenalised, _TOL, _MAX_ITER)
            self._unpenalised(samples, setting, setting)
            worse = worse_than_gaussian(self.model_, samples) if setting.basis.spaces is None else 0.0
            if _WORSE < worse < np.inf:
                worse = worse_held_out(self, samples, setting.how.together(samples.n_rows, 5))
        if _WORSE < worse < np.inf:
            warn(
                "on rows held out the model predicts a variable from the others worse than a Gaussian does, by "
                f"{worse:.2g} nats per variable: score matching does not see how separated modes are "
                "weighted. Use ISODUS",
            )
        return self

    def _unpenalised(self, samples: ArraySamples, setting: Setting, whole: Setting) -> ScoreMatching:
        """The estimate over the terms of `setting`, as a model over those of `whole`."""
        basis, loss = setting.basis, ScoreMatchingLoss()
        if basis.tied is not None:
            return self._learn_tied(setting, samples, loss, _TOL, _MAX_ITER)
        nodes = range(basis.n_variables)
        zeros = [np.zeros(len(basis.local(i).terms)) for i in nodes]
        evaluations = Objective(basis, loss, samples).evaluate(nodes, zeros)
        if len(basis) > MOST_JOINT_TERMS:
            problems = [quadratic_minimum(evaluation) for evaluation in evaluations]
            return self._learn(setting, samples, loss, problems, whole=whole)
        at_zero = add_nodes(basis, evaluations)
        problem = quadratic_minimum(at_zero)
        if at_zero.hessian is not None:
            problem.evaluation = replace(at_zero, gradient=at_zero.gradient + at_zero.hessian @ problem.theta)
        part = Joint(basis, loss, part_of(samples, basis.largest))
        return self._learn_jointly(setting, samples, Optimum(problem, part, "none"), whole)
