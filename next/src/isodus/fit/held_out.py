"""How a fit predicts rows that it has not seen, beside a Gaussian's prediction of the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data import Block, Samples
from ..losses import PseudoLikelihoodLoss
from .gaussian import fitted_gaussian
from .learn import learn, no_ridge
from .newton import Fit, newton
from .objective import Objective
from .penalties import Ridge, WeakRidge

__all__ = [
    "HeldOut",
    "Refit",
    "below_reference",
    "fold_objectives",
    "held_out",
    "node_scores",
    "reference_scores",
    "refitted",
]

Array = np.ndarray
Refit = Callable[[Objective, Array, float], Array]
_LOOKED = 20_000  # rows that a first look at a score takes, where it is not known
_OWN = 3  # times the unknowns of a node over the rows: what a reference gains on rows that it alone is fitted to
_ROUNDING = 1e-9  # of a score, of which a Gaussian's own fit may be below it
_STEPS = 50  # of each stage of a fold's fit, which starts from the answer


@dataclass(frozen=True)
class HeldOut:
    """Mean log P(x_i | rest) per variable over folds, in the units of X: higher is better.

    There are five folds, and ten below 20 rows per local parameter, where leaving out a fifth costs too much.

    Attributes
    ----------
    score : float
        Of the model, fitted to the other folds.
    reference_score : float
        Of the reference, fitted to the same rows.
    reference : {"Gaussian", "independent variables"}
        The multivariate Gaussian of the continuous columns; where there are none, the model without interactions.
    gains : tuple of float
        Model minus reference, fold by fold.
    """

    score: float
    reference_score: float
    reference: str
    gains: tuple[float, ...]

    @property
    def gain(self) -> float:
        """Model minus reference."""
        return self.score - self.reference_score


def node_scores(f: Objective, tau: Array, losses: Array | None = None) -> Array:
    """Mean log P(x_i | rest) of each variable in the units of X, (p,), whatever the loss of the fit.

    losses: pseudo-likelihood's of each variable, (p,), where they are known.
    """
    f = f.with_loss(PseudoLikelihoodLoss())

    def log_base(block: Block) -> Array:
        return np.array([block.weight @ axis.log_base(x) for axis, x in zip(f.axes, block.X.T, strict=True)])

    return f.samples.sum(log_base, f.n_jobs) / f.n - (f(tau, 0).nodes if losses is None else losses)


def fold_objectives(
    f: Objective, build: Callable[[Samples], Objective], fold: Array
) -> list[tuple[Objective, Objective]]:
    """Training and validation objectives of each fold, with axes of its own: those of all rows would flatter it.

    fold: of the kept rows. Where the rows of a fold are not enough for axes, they are those of all rows.
    """
    pairs, kept = [], f.samples.kept_samples
    for k in np.unique(fold):
        train, rest = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        try:
            part = build(kept.take(train))
        except ValueError:
            part = f.take(train)
        pairs.append((part, part.on(kept.take(rest))))
    return pairs


def held_out(
    f: Objective,
    fit: Fit,
    refit: Refit,
    build: Callable[[Samples], Objective],
    fold: Array,
) -> HeldOut:
    """Folds, each fitted like the whole, from the answer. refit: τ of an objective, from a start, for so many rows."""
    scores, references, gains, name = [], [], [], "Gaussian"
    for part, rest in fold_objectives(f, build, fold):
        tau = refit(part, part.terms.carried(f.terms, fit.tau), f.n)
        columns, reference, name = reference_scores(part, rest)
        score = float(node_scores(rest, tau)[columns].mean())
        scores.append(score)
        references.append(reference)
        gains.append(score - reference)
    return HeldOut(float(np.mean(scores)), float(np.mean(references)), name, tuple(gains))


def refitted(penalty: WeakRidge | Ridge | None, part: Objective, start: Array, n: float) -> Array:
    """τ of a fold from a start; its weak ridge is that of n rows."""
    penalty = WeakRidge(n) if isinstance(penalty, WeakRidge) else penalty
    again = learn(part, penalty, tol=0.3, max_iter=_STEPS, start=start)
    if again.status == "interrupted":
        raise KeyboardInterrupt
    return again.tau


def below_reference(f: Objective, fit: Fit, by: float = 0.0) -> bool:
    """Whether the fit scores its own rows below the reference, fitted to them too: it will not score new ones above.

    by: how far below, in nats per variable. Where the reference has more unknowns per node, such as beside tied terms,
    their share of its score is taken off. Of many rows a part is looked at, to which the reference alone is fitted.
    """
    more = max(0.0, len(f.axes) + 1 - f.terms.m / f.terms.copies)
    if not np.isfinite(fit.at.value) or more > f.n:
        return False
    known = fit.at.nodes if f.loss == PseudoLikelihoodLoss() and fit.at.hessian is not None else None
    if known is None or f.kept() is not f:
        n, known, fitted_to = f.samples.kept_samples.n_rows, None, f.n
        f = f.take(np.arange(0, n, -(-n // _LOOKED)))
        more += _OWN * (len(f.axes) + 1) * (f.n < fitted_to)
    columns, reference, _ = reference_scores(f, f)
    score = float(node_scores(f, fit.tau, known)[columns].mean())
    return not score >= reference - by - more / f.n - _ROUNDING * abs(reference)


def reference_scores(part: Objective, rest: Objective) -> tuple[Array, float, str]:
    """Columns that are compared, and the mean score of the Gaussian there, fitted to `part` and scored on `rest`.

    Where no column is continuous, or the covariance has no inverse, that of independent variables.
    """
    columns = np.flatnonzero([axis.continuous for axis in part.axes])
    train, valid = part.samples.kept, rest.samples.kept
    gaussian = fitted_gaussian(train.X[:, columns], train.weight) if len(columns) else None
    if gaussian is not None:
        share = valid.weight / valid.weight.sum()
        return columns, float((share @ gaussian.node_scores(valid.X[:, columns])).mean()), "Gaussian"
    alone = part.terms.orders == 1
    tau = part.terms.zeros()
    if alone.any():
        own = part.only(alone)
        tau[alone] = newton(own, own.terms.zeros(), no_ridge(own), tol=0.1).tau
    columns = np.arange(len(part.axes))
    return columns, float(node_scores(rest, tau).mean()), "independent variables"
