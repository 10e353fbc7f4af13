"""How well a model predicts each variable from the others, beside a Gaussian."""

from __future__ import annotations

import numpy as np

from .energy import local_parameters
from .losses.pseudo_likelihood import PseudoLikelihoodLoss
from .model import PolynomialModel
from .objective import Objective
from .regression import second_moments
from .samples import ArraySamples
from .solvers.newton import inverse

__all__ = ["worse_than_gaussian"]

_FEW = 1024  # samples that a model of higher degree is asked about
_ENOUGH = 10  # samples a variable, below which a Gaussian with all pairs is no measure


def worse_than_gaussian(model: PolynomialModel, samples: ArraySamples) -> float:
    """By how much a variable's mean log P(x_i | rest) is below that of the Gaussian with all pairs.

    Both have seen the samples, so this is no comparison to report; it only decides whether `worse_held_out` is asked.
    What the Gaussian gains by having seen them, one per parameter, is taken off. Infinite where variables are linear
    functions of others; 0 where samples are few, or the model has no conditional density to speak of.
    """
    p = samples.n_variables
    if samples.total < _ENOUGH * p or model.basis.spaces is not None:  # where a Gaussian does not live either
        return 0.0
    solve = inverse(second_moments(samples))
    if solve is None:
        return np.inf
    few = samples if samples.n_rows <= _FEW else samples.subsample(_FEW, np.random.default_rng(0))
    # row i of Λ, the inverse of ⟨(1, y)(1, y)ᵀ⟩, is the regression of y_i on the others over its variance
    precision = solve(np.eye(p + 1))[1:]
    variance = 1 / np.diagonal(precision[:, 1:])
    squares = np.einsum("ij,jk,ik->i", precision, second_moments(few), precision, optimize=True) * variance
    gauss = np.mean(0.5 * np.log(2 * np.pi * variance) + 0.5 * squares) + (p + 1) / samples.total
    nodes = range(p)
    objective = Objective(model.basis, PseudoLikelihoodLoss(tol=1e-6), few)
    found = objective.evaluate(nodes, local_parameters(model.basis, model.theta, nodes), hessian=False)
    value = np.mean([node.value for node in found])
    return float(value - gauss) if np.isfinite(value) else 0.0
