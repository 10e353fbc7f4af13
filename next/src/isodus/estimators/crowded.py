"""Candidates of an L1 penalty that are more than can be listed: the strongest are, and all are looked at again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..data import Samples
from ..fit.crowd import Crowd
from ..fit.l1 import L1
from ..fit.objective import Objective
from ..fit.sparse import Sparse, SparseProblem
from ..terms import Key, MonomialBasis, Terms, count_up_to, product_of
from ..terms.transform import of_powers
from .columns import Spec

if TYPE_CHECKING:
    from .base import PolynomialEstimator

__all__ = ["Crowded"]

Array = np.ndarray
_STRONGEST = 500
_MOST_MISSING = 5000


class Crowded:
    """Terms of one variable, the strongest interactions, and all others by their slopes.

    Attributes
    ----------
    f : Objective
        Of the terms of one variable.
    count : int
        How many penalised terms there are in all.
    least : float
        The strength from which on all terms are listed that the penalty would let in beside those of one variable.
    """

    def __init__(
        self, est: PolynomialEstimator, samples: Samples, spec: Spec, l1: L1, seed: int, say: Callable[[str], None]
    ) -> None:
        self.est, self.l1, self.say, size = est, l1, say, (spec.degree, spec.max_order, spec.min_degree)
        self.f = f = est._objective_of(samples, spec._replace(max_order=1))
        g, self.n_tilts = est._nodewise(f, seed, say)
        self.loss, axes = g.loss, f.terms.axes
        count = count_up_to(axes, *size)
        if self.loss.link != "mean" or l1.weights is not None:
            raise ValueError(
                f"These are {count:,} terms, too many for PowerReference and for weights of L1. "
                "Lower degree or max_order, or give the terms that matter as basis."
            )
        if l1.strength == "stars":
            raise ValueError(
                f"These are {count:,} terms, and strength='stars' of L1 has to list them all. "
                "Use 'ebic', 'cv' or a number, or lower degree or max_order."
            )
        include, self.exclude = (
            _keys(getattr(l1, what), samples.names, f.terms, size, what, count) for what in ("include", "exclude")
        )
        self.listed, self.of_nodes = [*f.terms.keys, *sorted(include - set(f.terms.keys))], np.zeros(len(axes), int)
        base = self.problem(self.exclude - set(self.listed))
        say(f"slopes of {count:,} terms")
        self.crowd = Crowd(base.f, base.empty.taus, *size, l1.units == "noise", f.terms.identity)
        found = self.crowd.strongest(base.f, base.empty.taus, _STRONGEST)
        self.least, self.strongest = min(found.values()), found.keys() - set(self.listed)
        free = include | self.exclude | (set() if l1.penalize_self else set(f.terms.keys))
        self.count = count - len(free)
        self.of_nodes = count - np.array([count_up_to(axes[:i] + axes[i + 1 :], *size) for i in range(len(axes))])

    def problem(self, more: Collection[Key]) -> SparseProblem:
        """The problem of the terms that were listed so far, and of more."""
        self.listed += sorted(more)
        axes, est = self.f.terms.axes, self.est
        products, T = of_powers(axes, self.listed, self.f.terms.identity)
        terms = Terms.of(axes, products, T, self.listed, identity=False)
        there = np.array([len(unknowns) for unknowns, _ in terms.local_T])
        return SparseProblem(
            Objective(self.loss, terms, self.f.samples, self.f.n_jobs),
            self.l1.weight(self.listed, self.f.samples.names),
            self.l1.units == "noise",
            self.n_tilts,
            est.tol,
            est.max_iter,
            self.say,
            np.maximum(self.of_nodes - there, 0),
        )

    def missing(self, problem: SparseProblem, solution: Sparse) -> set[Key]:
        """Terms that are not listed and that the penalty does not hold at a solution."""
        strength = solution.strength + self.est.tol / np.sqrt(problem.n)
        more = self.crowd.above(problem.screening, solution.taus, strength) - set(self.listed)
        if len(more) > _MOST_MISSING:
            raise ValueError(
                f"An L1 penalty of strength {solution.strength:.3g} lets in over {_MOST_MISSING:,} of {self.count:,} "
                "terms. Use a larger strength, or a lower degree or max_order."
            )
        return more


def _keys(
    terms: Collection[Sequence[int | str]] | None,
    names: Sequence[str],
    own: Terms,
    size: tuple[int, int, int],
    what: str,
    count: int,
) -> set[Key]:
    """The keys of terms that a user lists; an error for one that is no candidate. own: terms of one variable."""
    keys = set() if terms is None or not len(terms) else set(MonomialBasis(list(terms)).keys(names))
    degree, order, least = size
    for key in keys:
        factors = product_of(key)
        there = len(factors) <= order and all(l < len(own.axes[i].degrees) for i, l in factors)
        if not there or not least <= own.degree_of(factors) <= degree:
            raise ValueError(
                f"{what} of L1 has the term {key!r}, which is not one of the {count:,} terms of this fit. "
                "Raise degree or max_order, or leave the term out."
            )
    return keys
