"""What is checked at the door: samples, weights, parameters. Errors name columns, rows and remedies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import array_api_compat
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .arrays import Array, namespace, to_host, unmasked, writable
from .blocks import Blocked, Reweighted, Source
from .checks import warn
from .cluster import DaskSource, is_dask
from .dependence import Dependence, group_codes
from .streams import SampleStream

__all__ = [
    "check_blocked",
    "check_counts",
    "check_dependence",
    "check_powers",
    "check_samples",
    "check_weight",
    "one_of",
    "per_variable",
    "positive_integer",
    "positive_number",
    "source_of",
    "true_or_false",
]

_FAR = 1e300  # most that a square of a power of a sample may be


def source_of(X: Any, weight: Any = None) -> Source | None:
    """Samples of a stream or a cluster as a source of blocks; None for all others."""
    if is_dask(X):
        return DaskSource(X, weight)
    if isinstance(X, SampleStream):
        return X.weighted_by(weight)
    return X if isinstance(X, DaskSource | Reweighted) else None


def check_blocked(estimator: Any, X: Any, weight: Any, reset: bool = True) -> Blocked | None:
    """Samples of a stream or a cluster, looked at; None for all others."""
    source = source_of(X, weight)
    if source is None:
        return None
    names, p = source.columns, len(source.columns)
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        estimator.n_features_in_, estimator._columns = p, source.labels
        if source.labels is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
    elif p != estimator.n_features_in_:
        raise ValueError(
            f"the samples have columns {', '.join(names[:12])}, {p} in all; the model was fitted to "
            f"{estimator.n_features_in_}"
        )
    elif source.labels is not None:
        _check_same_names(estimator, names)
    device = getattr(estimator, "device", None)
    if device is not None and not source.here:
        raise ValueError(
            "device is for samples of this process: the blocks of a Dask collection are computed on where they are"
        )
    move = None if device is None else partial(_moved, device=device)
    return Blocked(source, getattr(estimator, "weights", "counts") == "importance", move)


def check_samples(
    estimator: BaseEstimator, X: Any, reset: bool = True, single: bool = False
) -> tuple[Array, list[str]]:
    """X as a finite floating array of shape (n, p), and the names of its columns.

    NumPy input and what becomes NumPy goes through scikit-learn's own check; arrays of other libraries
    stay where they are. single: whether X may stay in single precision, if it is.
    """
    columns, X = None, np.asarray(X) if isinstance(X, list | tuple) else unmasked(X)
    if isinstance(X, pd.DataFrame):
        X, columns = X.infer_objects(), list(X.columns)  # columns of objects that are all numbers
        _check_columns(X)
        X = _with_strings(estimator, X, reset)
    if array_api_compat.is_jax_array(X):
        X = _check_jax(X)
    foreign = array_api_compat.is_array_api_obj(X) and not isinstance(X, np.ndarray)
    _check_kind(X)
    if foreign:
        X = _check_foreign(estimator, X, reset, single)
    else:
        X = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32] if single else np.float64,
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
    if columns is None and hasattr(estimator, "feature_names_in_"):  # of a frame that is not pandas'
        columns = estimator.feature_names_in_.tolist()
    if reset:
        estimator._columns = columns
    columns = columns or getattr(estimator, "_columns", None)
    names = [f"x{i}" for i in range(X.shape[1])] if columns is None else [str(name) for name in columns]
    _check_finite(X, names)
    device = getattr(estimator, "device", None)
    return X if device is None or (device == "cpu" and not foreign) else _moved(X, device), names


def check_powers(X: Any, location: np.ndarray, scale: np.ndarray, degree: int, names: Sequence[str]) -> None:
    """Refuse samples so far out that the squares of their powers, by which terms are weighed, are no numbers."""
    xp = None if isinstance(X, Blocked) else namespace(X)
    low, high = (X.low, X.high) if xp is None else (to_host(xp.min(X, axis=0)), to_host(xp.max(X, axis=0)))
    with np.errstate(over="ignore"):
        far = np.maximum(np.abs(low - location), np.abs(high - location)) / scale
        bad = np.flatnonzero(~(far ** (2.0 * degree) < _FAR))
    if len(bad):
        i = int(bad[0])
        value = low[i] if location[i] - low[i] > high[i] - location[i] else high[i]
        row = "" if xp is None else f" in row {int(np.argmax(to_host(X[:, i]) == value))}"
        raise ValueError(
            f"{names[i]} is {value:.4g}{row}, {far[i]:.2g} spreads from the middle: its powers are too large for a "
            "computer. Leave that row out, or transform the column"
        )


def _moved(X: Array, device: Any) -> Array:
    """X on a device, by its own library, or, if it is NumPy's, by PyTorch or CuPy."""
    if not isinstance(device, str):
        raise ValueError(f'device must be None, "cpu" or a device such as "cuda", not {device!r}')
    try:
        if not isinstance(X, np.ndarray):
            return to_host(X) if device == "cpu" else array_api_compat.to_device(X, device)
        try:
            return import_module("torch").asarray(X, device=device)
        except ImportError:
            cupy = import_module("cupy")
        number = device.partition(":")[2]
        with cupy.cuda.Device(int(number) if number else None):
            return cupy.asarray(X)
    except ImportError:
        raise ValueError(
            f"device={device!r} needs PyTorch or CuPy, and neither is installed: pip install isodus[torch]"
        ) from None
    except Exception as error:
        raise ValueError(f"device={device!r} cannot be used: {' '.join(str(error).split())[:200]}") from None


def _check_kind(X: Any) -> None:
    """Refuse what is no table of real numbers, in words: scikit-learn's check shows the whole array."""
    shape, kind = getattr(X, "shape", None), getattr(getattr(X, "dtype", None), "kind", "")
    if kind == "c" or "complex" in str(getattr(X, "dtype", "")):
        raise ValueError("Complex data not supported: give real and imaginary parts as columns of their own")
    if shape is not None and len(shape) != 2:  # what has none is for scikit-learn to judge
        raise ValueError(
            f"X has shape {tuple(shape)}: two dimensions are wanted, a row a sample and a column a variable. Reshape "
            "your data: X.reshape(-1, 1) is one variable, X.reshape(1, -1) one sample"
        )
    if isinstance(X, np.ndarray) and kind in "OUS":
        for (row, column), value in np.ndenumerate(X):
            if isinstance(value, str | bytes) and not _is_number(value):
                raise ValueError(f"X has {str(value)!r} in row {row}, column {column}, which is no number")


def _is_number(word: str | bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _with_strings(estimator: Any, X: pd.DataFrame, reset: bool) -> pd.DataFrame:
    """A frame whose names scikit-learn can compare with those of the fit, which it does if all are strings.

    Others, or of a fit to others, are compared here, as strings, and then hidden from it.
    """
    names, compared = [str(name) for name in X.columns], hasattr(estimator, "feature_names_in_")
    if all(isinstance(name, str) for name in X.columns) and (reset or compared):
        return X
    if not reset:
        _check_same_names(estimator, names)
    X = X.copy(deep=False)
    X.columns = pd.Index(names) if compared and not reset else pd.RangeIndex(len(names))
    return X


def _check_same_names(estimator: Any, names: Sequence[str]) -> None:
    """Refuse columns, given as strings, that are not those of the fit, if it had names."""
    known = [str(name) for name in getattr(estimator, "_columns", None) or names]
    if list(names) != known:
        what = "Put them in that order" if sorted(names) == sorted(known) else "Give those columns, or rename them"
        raise ValueError(
            "The feature names should match those that were passed during fit: the samples have columns "
            f"{', '.join(names[:12])}; the model was fitted to {', '.join(known[:12])}. {what}"
        )


def _check_columns(X: pd.DataFrame) -> None:
    names = pd.Index([str(name) for name in X.columns])
    twice = names[names.duplicated()].unique()
    if len(twice):
        raise ValueError(f"duplicate column names: {', '.join(map(repr, twice))}. Rename or drop them")
    words = [name for name, kind in X.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    if words:
        raise ValueError(
            f"columns that are not numeric: {', '.join(map(repr, words))}. Drop them, or convert them to numbers"
        )


def _check_jax(X: Array) -> Array:
    if X.dtype == np.float32 and not import_module("jax").config.jax_enable_x64:
        warn(
            "X is a JAX array of single precision, and JAX rounds all numbers to that until "
            'jax.config.update("jax_enable_x64", True) is called: if the data had more digits, they are lost'
        )
    return writable(X)


def _check_foreign(estimator: Any, X: Array, reset: bool, single: bool) -> Array:
    xp = namespace(X)
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        estimator.n_features_in_ = X.shape[1]
        if X.shape[0] < 2:
            raise ValueError(f"Found array with n_samples = {X.shape[0]}; a minimum of 2 is required")
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, expecting {estimator.n_features_in_}")
    return X if single and X.dtype == xp.float32 else xp.astype(X, xp.float64)


def _check_finite(X: Array, names: Sequence[str]) -> None:
    xp = namespace(X)
    # a finite sum shows that all is well without an array of flags; huge values get a second look
    with np.errstate(over="ignore", invalid="ignore"):
        if bool(xp.isfinite(xp.sum(X))):
            return
    bad = ~xp.isfinite(X)
    columns = np.flatnonzero(to_host(xp.any(bad, axis=0)))
    if not len(columns):
        return
    rows = [int(np.argmax(to_host(bad[:, int(i)]))) for i in columns[:5]]
    where = ", ".join(f"{names[int(i)]} (first in row {r})" for i, r in zip(columns, rows, strict=False))
    more = f" and {len(columns) - 5} more columns" if len(columns) > 5 else ""
    raise ValueError(f"Input contains NaN or infinity: {where}{more}. Drop those rows or fill in the values")


def check_weight(weight: Any, X: Array, importance: bool = False) -> tuple[Array | None, float]:
    """Weights as an array beside X, or None, and their sum.

    They count repetitions; ratios of densities, `importance`, are made to sum to (Σw)²/Σw², what they are worth.
    """
    n = X.shape[0]
    if weight is None:
        return None, float(n)
    host = np.asarray(to_host(weight) if array_api_compat.is_array_api_obj(weight) else weight)
    if host.shape != (n,):
        raise ValueError(f"sample_weight has shape {host.shape}, X has {n} rows: it must have one weight a row")
    host = host.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(host) & (host >= 0)))
    if len(bad):
        raise ValueError(f"sample_weight is negative or not finite at row {bad[0]}: {host[bad[0]]}")
    total = float(host.sum())
    if total == 0:
        raise ValueError("sample_weight is zero everywhere: no sample is left")
    if np.count_nonzero(host) < 2:
        raise ValueError("sample_weight leaves n_samples = 1; at least 2 are needed")
    if importance:
        host = host * (total / float(np.square(host).sum()))
        total = float(host.sum())
    else:
        check_counts(total, int(np.count_nonzero(host)))
    if isinstance(X, np.ndarray):
        return host, total
    return namespace(X).asarray(host, dtype=namespace(X).float64, device=array_api_compat.device(X)), total


def check_counts(total: float, rows: int) -> None:
    """A warning where weights are not what counts are like."""
    if total < 0.5 * rows:
        warn(
            f"sample_weight sums to {total:.4g} for {rows} rows. Weights count repetitions, so this says that there "
            f'are only {total:.4g} samples; if they are relative weights, say weights="importance"',
        )


def check_dependence(lags: Any, weights: Any, groups: Any, n: int) -> Dependence:
    """How rows depend on one another, from what an estimator was told."""
    one_of(weights, ("counts", "importance"), "weights")
    importance = weights == "importance"
    if groups is None:
        if lags is None:
            return Dependence(importance=importance)
        if isinstance(lags, str) and lags == "auto":
            return Dependence(-1, importance=importance)
        if isinstance(lags, bool) or not isinstance(lags, Integral) or not 0 <= int(lags) < n / 2:
            raise ValueError(f'dependence must be None, "auto" or a number of rows below half of the {n}, not {lags!r}')
        return Dependence(int(lags), importance=importance)
    if lags is not None:
        raise ValueError("rows are a series (dependence) or come in groups, not both: leave one out")
    return Dependence(groups=group_codes(groups, n), importance=importance)


def positive_number(value: Any, name: str) -> float:
    """A finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < float("inf"):
        raise ValueError(f"{name} must be a positive number, not {value!r}")
    return float(value)


def positive_integer(value: Any, name: str) -> int:
    """An integer above zero."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be an integer of at least 1, not {value!r}")
    return int(value)


def true_or_false(value: Any, name: str) -> None:
    """True or False, not something that merely counts as such."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {value!r}")


def per_variable(value: Any, names: Sequence[str], name: str) -> np.ndarray:
    """A positive number for all variables, or one each, as an array of shape (p,)."""
    p = len(names)
    if isinstance(value, str) or np.ndim(value) == 0:
        return np.full(p, positive_number(value.item() if isinstance(value, np.ndarray) else value, name))
    values = np.asarray(value, dtype=np.float64)
    if values.shape != (p,):
        raise ValueError(f"{name} has shape {values.shape}: it must be one number, or one for each of {p} variables")
    bad = np.flatnonzero(~((values > 0) & np.isfinite(values)))
    if len(bad):
        raise ValueError(f"{name} must be positive, but is {values[bad[0]]} for {names[bad[0]]}")
    return values


def one_of(value: Any, options: Sequence[str], name: str, otherwise: str = "") -> None:
    """One of several words; otherwise: what else it may be, for the message."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(map(repr, options)) + (f", {otherwise}" if otherwise else "")
        raise ValueError(f"{name} must be one of {listed}, not {value!r}")
