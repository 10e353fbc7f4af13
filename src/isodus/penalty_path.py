"""What a choice of the penalty leaves behind: the path, the chosen point and why, as a table and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PenaltyPath"]


@dataclass(frozen=True, repr=False)
class PenaltyPath:
    """The penalties that were looked at and what each leaves, from the strongest on.

    Attributes
    ----------
    l1 : ndarray of shape (n_points,)
        λ, decreasing.
    n_terms : ndarray of shape (n_points,)
        How many penalised terms are in the structure.
    values : ndarray of shape (n_points,)
        The criterion, by which less is better; NaN where it was not computed.
    errors : ndarray of shape (n_points,)
        Its standard errors, for cross-validation.
    chosen : int
        Which point was taken.
    why : str
        The reason in words.
    terms : list of ndarrays
        Positions of the terms in the structure at each point, in the basis that was searched.
    thetas : list of ndarrays
        Their penalised parameters, in standardised variables.
    residuals : ndarray of shape (n_points,)
        By how much the conditions of optimality are missed at each point, at most, in the units of λ.
    """

    l1: np.ndarray
    n_terms: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    chosen: int
    why: str
    criterion: str
    terms: list[np.ndarray]
    thetas: list[np.ndarray]
    residuals: np.ndarray

    def __repr__(self) -> str:
        at, many = self.chosen, len(self.l1)
        return (
            f"PenaltyPath: {many} penalties from {self.l1[0]:.3g} to {self.l1[-1]:.3g}; {self.n_terms[at]} terms at "
            f"l1 = {self.l1[at]:.3g}, {self.why}"
        )

    def to_frame(self) -> pd.DataFrame:
        """A row a point: l1, n_terms, value, error, chosen."""
        import pandas as pd

        columns = {"l1": self.l1, "n_terms": self.n_terms, self.criterion: self.values, "error": self.errors}
        return pd.DataFrame(columns | {"chosen": np.arange(len(self.l1)) == self.chosen})

    def plot(self, axes: Any = None) -> Any:
        """The criterion and the parameters against λ, with the chosen point marked; two matplotlib axes, returned."""
        import matplotlib.pyplot as plt

        if axes is None:
            axes = plt.subplots(2, 1, sharex=True, figsize=(6.4, 6.0), layout="constrained")[1]
        top, bottom = axes
        known = np.isfinite(self.values)
        error = self.errors[known] if np.isfinite(self.errors[known]).all() else None
        top.errorbar(self.l1[known], self.values[known], error, marker="o", markersize=3, linewidth=1, capsize=2)
        top.set_ylabel(self.criterion)
        top.set_title(f"{self.n_terms[self.chosen]} terms at l1 = {self.l1[self.chosen]:.3g}")
        used = np.unique(np.concatenate([*self.terms, np.empty(0, int)]).astype(int))
        values = np.zeros((len(self.l1), len(used)))
        for row, at, theta in zip(values, self.terms, self.thetas, strict=True):
            row[np.searchsorted(used, at)] = theta
        inside = np.isin(used, self.terms[self.chosen])
        for mask, options in ((~inside, dict(color="0.8", linewidth=0.6)), (inside, dict(linewidth=1.0))):
            if mask.any():
                bottom.plot(self.l1, values[:, mask], **options)
        if self.l1[-1] > 0:
            bottom.set_xscale("log")
        bottom.invert_xaxis()
        bottom.set_xlabel("l1")
        bottom.set_ylabel("parameter, standardised")
        for one in (top, bottom):
            one.axvline(self.l1[self.chosen], color="0.3", linestyle=":", linewidth=1)
        return axes
