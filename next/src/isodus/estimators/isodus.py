"""ISODUS: interaction screening, the paper's estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core.notes import Note, listed
from ..data import Samples, Weights
from ..fit.objective import Objective
from ..fit.penalties import Penalty
from ..fit.power_reference import choose_reference
from ..fit.tilted import learn_tilted, tilted_by
from ..losses import PowerReference, Reference, ReferenceScreening, TiltedReference, TiltedScreening
from ..model import PolynomialModel
from .base import PolynomialEstimator
from .by_nodes import Solved, by_nodes, in_powers
from .columns import Spec

__all__ = ["ISODUS"]

Array = np.ndarray
_MOST_LEVERAGE = 0.5  # of one row, above which weights have collapsed


@dataclass(eq=False, repr=False)
class ISODUS(PolynomialEstimator):
    """Estimate a polynomial exponential family by interaction screening.

    ISODUS (Ren, Misra, Vuffray and Lokhov, "Learning Continuous Exponential Families Beyond Gaussian") minimises for
    each variable the mean of exp(Σ_k θ_k g_k) R/q, where g_k is the term less its mean under a reference density R of
    that variable. Any R gives a consistent estimate; how exact it is depends on R. The default tilts R by a pilot,
    which makes the estimate as exact as pseudo-likelihood's. With `PowerReference` it is the paper's estimator.

    Parameters
    ----------
    degree, max_order, min_degree, basis, support, scale, penalty, tol, max_iter, n_jobs, progress, random_state
        As in `PseudoLikelihood`.
    reference : TiltedReference, PowerReference or another Reference, optional
        R; by default ``TiltedReference()``.
    consensus : {"geometric", "mean", "precision"}, optional
        How the answers of several variables for one term are combined, with `PowerReference`: "geometric" is the
        paper's; by default "precision", which weighs them by their covariance.

    Attributes
    ----------
    pilot_rows_ : int
        Rows of the pilot. Where these are all rows, the estimate is pseudo-likelihood's.
    n_tilts_ : int
        Problems that were solved, each tilted by the answer before.
    reference_ : PolynomialModel or PowerReference
        The pilot of the last problem, or the reference with the ν that was taken.
    nu_, effective_samples_ : array of shape (p,)
        With `PowerReference`: ν of each variable, and how many rows its weights count.
    model_, status_, notes_, held_out_, path_, ridge_, n_iter_, n_features_in_, feature_names_in_
        As in `PseudoLikelihood`.

    Examples
    --------
    >>> from isodus import ISODUS
    >>> from isodus.datasets import paper_pair
    >>> est = ISODUS(degree=4).fit(paper_pair(8000))
    >>> est.status_, est.pilot_rows_, est.n_tilts_
    ('converged', 2000, 2)
    """

    _after: ClassVar[tuple[str, ...]] = ("pilot_rows_", "n_tilts_", "reference_", "nu_", "effective_samples_")

    _: KW_ONLY
    reference: TiltedReference | Reference | None = None

    def objective(self, X: Any, sample_weight: Any = None, weights: Weights = "counts") -> Objective:
        """The screening objective on some rows, with the reference of the fit: value, gradient and Hessian at any τ.

        Parameters
        ----------
        X : array or frame of shape (n, p)
        sample_weight : array of shape (n,), optional
        weights : {"counts", "importance"}, default="counts"

        Returns
        -------
        Objective
            With a tilted reference, of the unknowns of the model; with the paper's, `at_nodes` has those of each node.
        """
        check_is_fitted(self, "model_")
        return super().objective(X, sample_weight, weights)

    # ---------------------------------------------------------------- inside

    def _reference(self) -> TiltedReference | Reference:
        return TiltedReference() if self.reference is None else self.reference

    def _samples(self, X: Any, sample_weight: Any, weights: Weights, groups: Any = None) -> tuple[Samples, Spec]:
        samples, spec = super()._samples(X, sample_weight, weights, groups)
        reference = self._reference()
        if not isinstance(reference, TiltedReference | Reference):
            raise ValueError(f"reference must be a TiltedReference or a PowerReference, not {reference!r:.60}.")
        reference.check(samples.names)
        if self.consensus is not None and isinstance(reference, TiltedReference):
            raise ValueError(
                "consensus combines the estimates of single variables, and TiltedReference has one estimate for all. "
                "Use reference=PowerReference(), or leave out consensus."
            )
        return samples, spec

    @property
    def _by_nodes(self) -> bool:
        return isinstance(self._reference(), Reference)

    def _checked_penalty(self) -> Penalty | None:
        penalty = super()._checked_penalty()
        if penalty is not None and penalty.by_folds:
            raise ValueError(
                "Ridge('cv') chooses its strength by pseudo-likelihood. Use PseudoLikelihood(penalty=Ridge('cv')), or "
                "a number here."
            )
        return penalty

    def _check_axes(self, f: Objective) -> None:
        reference = self._reference()
        if not isinstance(reference, Reference):
            return
        for name, axis, local in zip(f.samples.names, f.axes, f.terms.local, strict=True):
            try:
                reference.check_axis(axis.unclamped(), int(axis.degrees[local.functions.max()]))
            except ValueError as error:
                raise ValueError(f"Column {name!r} has no {type(reference).__name__}: {error}.") from None

    @property
    def _on_moments(self) -> Literal["pseudo-likelihood"] | None:
        reference = self._reference()
        return None if isinstance(reference, Reference) or reference.pilot is not None else "pseudo-likelihood"

    def _nodewise(self, f: Objective, seed: int, say: Callable[[str], None]) -> tuple[Objective, int]:
        reference = self._reference()
        if isinstance(reference, Reference):
            return in_powers(f, self._screening(f, reference, seed, say, own=True)), 0
        return in_powers(f, f.loss), reference.n_tilts

    def _screening(
        self, f: Objective, reference: Reference, seed: int, say: Callable[[str], None], own: bool = False
    ) -> ReferenceScreening:
        """The paper's loss. What the data choose is chosen once per fit; own: by terms of one variable alone."""
        degree = int(f.terms.degrees.max())
        if not hasattr(self, "reference_"):
            if isinstance(reference, PowerReference):
                if isinstance(reference.nu, str):
                    say("choosing ν")
                    g = in_powers(f, f.loss)
                    g = g.only(g.terms.orders == 1) if own else g
                    moved = self.scale in ("robust", "center")
                    reference = choose_reference(g, reference, degree, self.max_iter, seed, moved)
                self.nu_ = np.array(reference.nus(len(f.axes)))
            self.reference_: PolynomialModel | Reference = reference
        assert isinstance(self.reference_, Reference)
        return ReferenceScreening(self.reference_, degree, "mean_exp" if reference.link == "plain" else "log_mean")

    def _solve(self, f: Objective, penalty: Penalty | None, seed: int, say: Callable[[str], None]) -> Solved:
        reference = self._reference()
        if isinstance(reference, Reference):
            return self._screened(f, reference, seed, say)
        if reference.pilot is not None:
            return self._given(f, reference, penalty)
        found = learn_tilted(f, penalty, reference.n_tilts, self.tol, self.max_iter, seed, say)
        self.pilot_rows_, self.n_tilts_ = found.pilot_rows, found.n_tilts
        notes = []
        if found.n_tilts == 0 and found.fit.status != "interrupted":
            why = "rows are too few for a pilot on a part of them"
            if not np.isnan(found.distance):
                far = f"was {found.distance:.2g} standard errors from the fixed point"
                why = f"the tilted answer {far if np.isfinite(found.distance) else 'was not found'}"
            if found.distance == 0:
                why = "the fixed point of a Gaussian is its inverse covariance"
            text = f"The pilot took all rows, because {why}. The estimate is pseudo-likelihood's."
            notes = [Note("pilot on all rows", "info", (), {"distance": found.distance}, text)]
        solved = self._solved(f, found.fit, penalty)
        return solved._replace(notes=notes, minimised=self._tilted(f, found.pilot))

    def _tilted(self, f: Objective, pilot: Array) -> Objective:
        self.reference_ = PolynomialModel(f.terms, pilot, f.samples.names)
        return f.with_loss(TiltedScreening()).tilted(pilot)

    def _given(self, f: Objective, reference: TiltedReference, penalty: Penalty | None) -> Solved:
        """Tilts of a user's pilot."""
        terms, pilot = f.terms, reference.pilot
        lost = [key for key in pilot.terms.keys if key not in set(terms.keys)]
        if lost:
            raise ValueError(
                f"pilot of TiltedReference has {len(lost)} terms that this fit has not, such as {lost[0]}. "
                "Raise the degree, or use a pilot of fewer terms."
            )
        start = terms.carried(pilot.terms, pilot.tau)
        g, fit = tilted_by(f, start, reference.n_tilts, penalty, self.tol, self.max_iter)
        self.pilot_rows_, self.n_tilts_ = 0, reference.n_tilts
        assert g.pilot is not None
        assert not isinstance(g.pilot.tau, Mapping)
        return self._solved(g, fit, penalty)._replace(minimised=self._tilted(f, g.pilot.tau))

    def _screened(self, f: Objective, reference: Reference, seed: int, say: Callable[[str], None]) -> Solved:
        """The paper's estimator: node by node in powers of y, then the consensus."""
        loss = replace(self._screening(f, reference, seed, say), link="log_mean")  # the same minimiser
        say("screening")
        found, fits, leverage = by_nodes(
            f, loss, self.consensus or "precision", self.tol, self.max_iter, "use TiltedReference"
        )
        assert found.minimised is not None
        self.effective_samples_ = found.minimised.effective_rows({i: fit.tau for i, fit in enumerate(fits)})
        return found._replace(notes=found.notes + _collapsed(f, leverage, self.effective_samples_))


def _collapsed(f: Objective, leverage: Array, effective: Array) -> list[Note]:
    """A warning of columns where single rows decide."""
    names = f.samples.names
    few = [name for name, h in zip(names, leverage, strict=True) if not h <= _MOST_LEVERAGE]
    if not few:
        return []
    worst = int(np.argmax(np.nan_to_num(leverage, nan=-1.0)))
    if not leverage[worst] > _MOST_LEVERAGE:  # the others have no answer, which another note says
        return []
    text = (
        f"The weights of columns {listed(few)} have collapsed: those of {names[worst]!r} count {effective[worst]:.0f} "
        f"of {f.n:,.0f} rows, and one row has {100 * leverage[worst]:.0f} % of its own fit. Standard errors may be too "
        "small. Use another nu, or TiltedReference."
    )
    numbers = {"effective": float(effective[worst]), "leverage": float(leverage[worst])}
    return [Note("collapsed weights", "warning", tuple(few), numbers, text)]
