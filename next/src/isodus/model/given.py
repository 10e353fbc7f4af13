"""Values that a model is asked about: in the order of its variables, with gaps, and whether they are on its axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from ..data import columns_of
from ..data.tables import numbers
from ..terms import Terms
from .density import on_axes, somewhere

__all__ = ["Gaps", "check_on_axes", "given_rows", "neighbours", "outside", "read_gaps", "variable_number"]

Array = np.ndarray


def variable_number(variable: str | int, names: Sequence[str]) -> int:
    """The number of a variable that is given by name or number."""
    if isinstance(variable, str) and variable in names:
        return list(names).index(variable)
    whole = isinstance(variable, int | np.integer) and not isinstance(variable, bool)
    if whole and 0 <= int(variable) < len(names):
        return int(variable)
    raise ValueError(f"The model has no variable {variable!r}. It has {', '.join(map(repr, names[:12]))}.")


def neighbours(terms: Terms, i: int) -> list[int]:
    """The variables that share a product with variable i."""
    found = {j for k in terms.local[i].terms for j, _ in terms.products[k]}
    return sorted(found - {i})


def check_on_axes(terms: Terms, X: Array, names: Sequence[str], columns: Sequence[int], what: str) -> None:
    """An error that names the first value that is not on its axis, or is missing."""
    off = ~on_axes(terms.axes, X)
    for i in columns:
        if off[:, i].any():
            row, count = int(np.argmax(off[:, i])), int(off[:, i].sum())
            if np.isnan(X[row, i]):
                missing = int(np.isnan(X[:, i]).sum())
                raise ValueError(
                    f"Column {names[i]!r} has no value in row {row} ({missing:,} such rows), so {what} cannot be "
                    "computed there. Drop these rows or fill them in, such as by `model.impute(X)`."
                )
            raise ValueError(
                f"Column {names[i]!r} has the value {X[row, i]:g} in row {row} ({count:,} such rows), "
                f"which is not on its axis of kind {terms.axes[i].kind!r}, so {what} does not exist there. "
                "Drop these rows; `model.outside(X)` lists such values."
            )


def given_rows(terms: Terms, given: Any, names: Sequence[str], i: int) -> Array:
    """Rows of all variables, (n, p), from those of all but variable i; a place on its axis stands for what is not read.

    given: a mapping or frame by names, of all that share a term with i at least, or an array of p − 1 or p columns.
    None where nothing is needed.
    """
    needed = neighbours(terms, i)
    if given is None:
        given = {}
    if isinstance(given, Mapping):
        given = _frame_of(given, names[i])
    frame = _as_frame(given)
    if frame is not None:
        labels = [str(label) for label in frame.columns]
        _check_labels(labels, names, i, needed)
        n, columns = len(frame), {j: frame[:, labels.index(names[j])].to_numpy() for j in needed}
    else:
        values, p = np.asarray(given), len(names)
        values = values[:, None] if values.ndim == 1 and p == 2 else values
        if values.ndim != 2 or values.shape[1] not in (p - 1, p):
            raise ValueError(
                f"The conditional of {names[i]!r} needs a table of its {p - 1} other variables, and given has the "
                f"shape {values.shape}. Pass a frame, a dictionary by name, or an array with one column per variable."
            )
        whole = values.shape[1] == p
        n, columns = len(values), {j: values[:, j if whole or j < i else j - 1] for j in needed}
    if not n:
        raise ValueError(f"The conditional of {names[i]!r} needs at least one row, and given has none.")
    X = np.tile([somewhere(axis) for axis in terms.axes], (n, 1))
    for j, column in columns.items():
        X[:, j] = numbers(column, f"Column {names[j]!r}")
    check_on_axes(terms, X, names, needed, f"the conditional of {names[i]!r}")
    return X


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as narwhals sees it, None for what is not a frame."""
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ValueError(f"Two of the columns {[str(name) for name in X.columns]} have one name. Rename one.") from None
    return frame if isinstance(frame, nw.DataFrame) else None


def _frame_of(given: Mapping[Any, Any], name: str) -> pd.DataFrame:
    """Numbers are repeated for all rows."""
    columns = {str(key): np.atleast_1d(np.asarray(value)) for key, value in given.items()}
    size = max((len(value) for value in columns.values()), default=1)
    odd = [key for key, value in columns.items() if value.ndim > 1 or len(value) not in (1, size)]
    if odd:
        raise ValueError(
            f"The conditional of {name!r} needs columns of one length. That of {odd[0]!r} has the shape "
            f"{columns[odd[0]].shape}, and others have {size:,} values."
        )
    return pd.DataFrame({key: np.resize(value, size) for key, value in columns.items()}, index=range(size))


def _check_labels(labels: Sequence[str], names: Sequence[str], i: int, needed: Sequence[int]) -> None:
    """An error for columns that are unknown or missing."""
    unknown = [label for label in labels if label not in names]
    missing = [names[j] for j in needed if names[j] not in labels]
    if unknown or missing:
        parts = [f"The model has no variable {', '.join(map(repr, unknown))}."] if unknown else []
        parts += [f"Its density depends on {', '.join(map(repr, missing))}, too; add these columns."] if missing else []
        raise ValueError(f"The conditional of {names[i]!r} cannot be computed. {' '.join(parts)}")


class Gaps(NamedTuple):
    """A table with missing values, in the order of the variables."""

    X: Array  # (n, p), NaN where a value is missing
    missing: Array  # (n, p)
    frame: nw.DataFrame[Any] | None  # as given
    order: Array  # (p,) the column of the frame for each variable

    def filled(self, X: Array) -> Any:
        """The same table with other values: a frame of the same kind, or an array."""
        if self.frame is None:
            return X
        names, backend = self.frame.columns, nw.get_native_namespace(self.frame)
        changed = [j for j in range(X.shape[1]) if self.missing[:, j].any()]
        columns = [nw.new_series(names[self.order[j]], X[:, j].copy(), nw.Float64, backend=backend) for j in changed]
        return self.frame.with_columns(*columns).to_native() if columns else self.frame.to_native()


def read_gaps(X: Any, names: Sequence[str]) -> Gaps:
    """A table whose missing values are NaN, None or null; columns are found as in `columns_of`."""
    frame = _as_frame(X)
    if frame is None:
        values = np.ma.filled(X.astype(float), np.nan) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
        if values.ndim == 2 and values.dtype.kind not in "biuf":
            values = np.stack([numbers(column, f"Column {k}") for k, column in enumerate(values.T)], axis=1)
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
        checked = columns_of(np.where(missing, 0.0, values), names, "PolynomialModel")
        return Gaps(np.where(missing, np.nan, checked), missing, None, np.arange(len(names)))
    labels = [str(label) for label in frame.columns]
    columns = [numbers(frame[:, k].to_numpy(), f"Column {label!r}") for k, label in enumerate(labels)]
    table = np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))
    gaps = np.isnan(table)
    checked = columns_of(pd.DataFrame(np.where(gaps, 0.0, table), columns=labels), names, "PolynomialModel")
    places = pd.DataFrame([np.arange(float(len(labels)))], columns=labels)
    order = columns_of(places, names, "PolynomialModel")[0].astype(int)
    missing = gaps[:, order]
    return Gaps(np.where(missing, np.nan, checked), missing, frame, order)


def outside(terms: Terms, X: Array, names: Sequence[str], ranges: tuple[Array, Array] | None) -> pd.DataFrame:
    """One row per value that is not on its axis, or beyond the range of the data: row, variable, value, reason."""
    off = ~on_axes(terms.axes, X)
    reasons = [("not on the axis", off)]
    if ranges is not None:
        known = ~off & [axis.ordered for axis in terms.axes]
        reasons += [("below the data", known & (X < ranges[0])), ("above the data", known & (X > ranges[1]))]
    parts = []
    for reason, where in reasons:
        rows, columns = np.nonzero(where)
        variable = np.array(names, object)[columns]
        parts.append(pd.DataFrame({"row": rows, "variable": variable, "value": X[rows, columns], "reason": reason}))
    return pd.concat(parts).sort_values(["row", "variable"], kind="stable", ignore_index=True)
