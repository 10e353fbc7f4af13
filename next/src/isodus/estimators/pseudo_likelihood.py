"""Pseudo-likelihood: one θ for all variables, by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

from ..losses import PseudoLikelihoodLoss
from .base import PolynomialEstimator

__all__ = ["PseudoLikelihood"]


@dataclass(eq=False, repr=False)
class PseudoLikelihood(PolynomialEstimator):
    """Estimate a polynomial exponential family by maximum pseudo-likelihood.

    The density is μ(x) ∝ exp(−Σ_k θ_k x^α_k). The estimator minimises Σ_i ⟨−log P(x_i | rest)⟩, the mean over rows of
    the conditional negative log-likelihood of each variable, over one θ that all variables share.

    Parameters
    ----------
    degree : int, default=4
        The largest degree of a term.
    max_order : int, default=2
        The largest number of variables in a term: 2 for pairs, 3 for triples.
    min_degree : int, default=1
        The smallest degree of a term.
    basis : MonomialBasis or list of tuples, optional
        The terms, one by one, in place of degree and order: (0, 0, 1) or ("a", "a", "b") is a² b.
    support : str, tuple, Axis or dict, default="line"
        What values a variable may have: "line", "positive", "circle" (angles), "values" (the column's own few values),
        "spin" (−1 and 1), two ends such as (0, 1), or an axis. A dictionary gives it by column; others are on the line.
    scale : {"robust", "center", "spread", "cdf", None}, default="robust"
        Units of the line: location and spread, one of them, or none; they matter where terms lack their lower degrees.
        "cdf" uses functions of the distribution function of each column, which suits tails of any weight.
    penalty : {"weak"}, Ridge or None, default="weak"
        "weak" steadies the fit of few rows and vanishes with many. `Ridge` predicts; ``Ridge("cv")`` chooses its
        strength by five folds. None is no penalty.
    consensus : {"geometric", "mean", "precision"}, optional
        Each variable is then fitted by itself, in powers of y and without a ridge, and its estimates of a term are
        combined with those of the term's other variables: "geometric" as in the paper, sign(mean v) exp(mean log|v|);
        "precision" weighs them by their covariance. By default all variables share one estimate.
    tol : float, default=1e-3
        Distance from the optimum, in standard errors, at which the fit ends.
    max_iter : int, default=100
        The largest number of Newton steps on all rows, in each stage of the ridge.
    n_jobs : int, optional
        Threads; None and −1 use all cores.
    progress : bool or callable, optional
        None shows a bar on a terminal after a second.
    random_state : int, optional
        Chooses the rows that large samples start from, and the folds.

    Attributes
    ----------
    model_ : PolynomialModel
        The fitted model: terms, interactions, densities, draws.
    status_ : str
        "converged", "iteration limit", "stalled", "singular" or "interrupted".
    notes_ : list of Note
        What the fit has to report; those of severity "warning" were also given as warnings.
    held_out_ : HeldOut or None
        Scores of folds beside a Gaussian's, where rows are fewer than 100 per local parameter.
    path_ : Path or None
        Strengths that were tried with ``Ridge("cv")``.
    ridge_ : array of shape (K,)
        The diagonal of the ridge in the unknowns: ½ Σ r_k τ_k² is added to the objective.
    n_iter_ : int
        Newton steps over all stages.
    precision_ : array of shape (p, p)
        The precision matrix in the units of X, where no term is above degree 2 and variables are on the line.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.

    Examples
    --------
    >>> from isodus import PseudoLikelihood
    >>> from isodus.datasets import paper_pair
    >>> est = PseudoLikelihood(degree=4).fit(paper_pair(5000))
    >>> est.status_
    'converged'
    """

    def _loss(self) -> PseudoLikelihoodLoss:
        return PseudoLikelihoodLoss()

    @property
    def _predicting(self) -> str:
        return super()._predicting if self._by_nodes else "penalty=Ridge(strength='cv')"
