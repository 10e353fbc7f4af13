"""One step from a penalised estimate towards the unpenalised one: intervals for all terms, in the model or not.

For node i with the estimate θ̂ (K parameters, most of them zero), slope g and curvature H of its objective there,

    θ = θ̂ − M g,

M being an inverse of H that is as sparse as |H m_k − e_k| ≤ μ allows, in units in which H has ones on its diagonal.
What a penalty has shrunk is undone to first order; what is left of it, at most μ|θ̂ − θ_true|, vanishes faster than a
standard error where the truth has few terms (van de Geer, Bühlmann, Ritov and Dezeure, 2014; Javanmard and Montanari,
2014). The influence of sample t is −M s_t. Estimates of a term at its variables are averaged, and influences with them.
"""

from __future__ import annotations

import numpy as np

from .basis import MonomialBasis
from .consensus import carry, combine
from .dependence import Dependence
from .energy import local_parameters
from .inference import lags_of, node_blocks, node_sandwich
from .losses import Loss
from .objective import Objective
from .progress import Progress
from .samples import ArraySamples
from .significance import Covariance
from .solvers.proximal import sparse_inverse

__all__ = ["one_step"]

_AT_ONCE = 8  # nodes a pass over the samples


def one_step(
    basis: MonomialBasis,
    loss: Loss,
    samples: ArraySamples,
    theta: np.ndarray,
    n: float,
    how: Dependence,
    progress: Progress,
) -> tuple[np.ndarray, Covariance, Dependence]:
    """De-biased θ, (M,), and its covariance, from an estimate θ̂ over the terms of the basis, most of it zero.

    And how samples depend on one another, with the lags that the data ask for. Errors are over n: θ̂ has few terms.
    """
    objective, p = Objective(basis, loss, samples), basis.n_variables
    local = local_parameters(basis, theta, range(p))
    values, steps, inverses = [], [], []
    for first in range(0, p, _AT_ONCE):
        nodes = range(first, min(first + _AT_ONCE, p))
        for i, found in zip(nodes, objective.evaluate(nodes, local[nodes.start : nodes.stop]), strict=True):
            if found.hessian is None:
                raise ValueError(f"the objective of variable {i} is not finite at the estimate")
            M = sparse_inverse(found.hessian, _mu(len(found.gradient), n))
            values.append(found.value)
            steps.append(local[i] - M @ found.gradient)
            inverses.append(M)
            progress("inverses", i + 1, p)
    new, share = combine(basis, steps, "mean")
    if how.lags is not None and how.lags < 0:
        how = how._replace(lags=lags_of(objective, local, values))
    whole = node_sandwich(objective, local, values, inverses, n, how)
    if whole is not None:
        return new, carry(basis, share, whole), how
    if how.between_rows:
        raise ValueError(
            f"of {len(basis):,} candidate terms errors are known for independent samples only: exclude terms, or leave "
            "out groups and dependence"
        )
    return new, node_blocks(objective, local, values, inverses, share, n, how), how


def _mu(K: int, n: float) -> float:
    """How far from an inverse M may be: what correlations of K statistics are by chance, at the most."""
    return float(np.sqrt(2 * np.log(max(K, 2)) / n))
