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
        λ, decreasing; last 0 where, by extended BIC, all candidates at once less those that do not pay are better.
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
        from .plotting import penalty_path

        return penalty_path(self, axes)
