"""Weights of rows, checked at the door."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .tables import numbers

__all__ = ["Weights", "check_counts", "checked_weights"]

Array = np.ndarray

Weights = Literal["counts", "importance"]
"""What weights are: how often a row was seen, or ratios of densities."""

_MOST_WEIGHT = 1e12


def checked_weights(sample_weight: Any, n: int, weights: Weights = "counts", start: int | None = None) -> Array:
    """The weights of n rows, (n,), or an error. start: the number of the first, where these are not all rows."""
    weight = np.asarray(sample_weight) if not isinstance(sample_weight, np.ma.MaskedArray) else sample_weight
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, but X has {n} rows. Pass one weight per row.")
    weight, first = numbers(weight, "sample_weight", start or 0), start or 0
    too_many = (weight > _MOST_WEIGHT) & (weights == "counts")
    meaning = "count repetitions" if weights == "counts" else "are ratios of densities"
    for wrong, kind in (
        (~np.isfinite(weight), "NaN or infinite (inf)"),
        (weight < 0, "negative"),
        (too_many, f"above {_MOST_WEIGHT:.0e}"),
    ):
        if wrong.any():
            raise ValueError(
                f"sample_weight is {kind} in row {first + int(np.argmax(wrong))} ({int(wrong.sum()):,} such rows). "
                f"Weights {meaning}; pass finite numbers of at least 0."
            )
    if start is None and not weight.any():
        raise ValueError("sample_weight is zero in all rows, so there are no samples. Pass a positive weight.")
    return weight


def check_counts(total: float, n_rows: int) -> None:
    """An error for weights that cannot be counts."""
    if 2 * total < n_rows:
        raise ValueError(
            f"sample_weight sums to {total:g} over {n_rows:,} rows, but weights count how often a row was "
            "seen. Multiply them so that they sum to the number of observations, or use weights='importance'."
        )
