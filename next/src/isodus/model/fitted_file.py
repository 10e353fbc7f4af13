"""What a file keeps of a fit."""

from __future__ import annotations

import base64
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from .._core.notes import Note
from ..axes import packed_pairs
from ..fit.held_out import HeldOut
from ..fit.score_tests import InteractionTest
from ..terms import Terms
from .fitted import Fitted
from .reading import Reader

__all__ = ["fitted_from", "fitted_to"]

Array = np.ndarray


def fitted_to(fitted: Fitted) -> dict[str, Any]:
    """In types that JSON has. The covariance is its upper triangle, row by row."""
    covariance, tests = fitted.tau_covariance(), fitted.interaction_tests()
    if covariance is not None and not np.all(np.isfinite(covariance)):
        covariance = None
    return {
        "estimator": fitted.estimator,
        "n": float(fitted.n),
        "n_rows": int(fitted.n_rows),
        "status": fitted.status,
        "penalty": fitted.penalty,
        "selected": fitted.selected,
        "columns": None if fitted.columns is None else list(fitted.columns),
        "minima": fitted.minima.tolist(),
        "maxima": fitted.maxima.tolist(),
        "means": None if fitted.means is None else np.asarray(fitted.means).tolist(),
        "sds": None if fitted.sds is None else np.asarray(fitted.sds).tolist(),
        "covariance": None if covariance is None else _packed(covariance),
        "tests": None if tests is None else [[float(t.statistic), t.df, float(t.p_value), t.method] for t in tests],
        "held_out": None if fitted.held_out is None else _held_out_to(HeldOut(**fitted.held_out)),
    }


def fitted_from(part: Reader, terms: Terms, notes: list[Note]) -> Fitted:
    """The same again; a ValueError for anything that does not fit the terms."""
    p = len(terms.axes)
    columns, covariance, tests, scored = (part[name] for name in ("columns", "covariance", "tests", "held_out"))
    interactions = [v for v in terms.interactions if len(v) > 1]
    ranges = {name: part[name].numbers(p) for name in ("minima", "maxima")}
    if not np.all(ranges["minima"] <= ranges["maxima"]):
        raise ValueError(f"{part.where}.minima are not below the maxima")
    return Fitted(
        estimator=part["estimator"].text(),
        n=part["n"].number(0.0),
        n_rows=part["n_rows"].integer(0, 10**15),
        status=part["status"].text(),
        selected=part["selected"].flag(),
        **ranges,
        notes=notes,
        covariance=None if covariance.value is None else _unpacked(covariance, len(terms)),
        penalty=part["penalty"].text(),
        columns=None if columns.value is None else tuple(name.text() for name in columns.parts(p)),
        tests=None if tests.value is None else [_test(test) for test in tests.parts(len(interactions))],
        held_out=None if scored.value is None else asdict(_held_out(scored)),
        means=None if part["means"].value is None else part["means"].numbers(p),
        sds=None if part["sds"].value is None else part["sds"].numbers(p),
    )


def _packed(covariance: Array) -> str:
    symmetric = (covariance + covariance.T) / 2
    return base64.b64encode(symmetric[packed_pairs(len(covariance))].astype("<f8").tobytes()).decode()


def _unpacked(part: Reader, size: int) -> Array:
    values = part.packed(size * (size + 1) // 2)
    out, (l, m) = np.empty((size, size)), packed_pairs(size)
    out[l, m] = out[m, l] = values
    return out


def _test(part: Reader) -> InteractionTest:
    statistic, df, p_value, method = part.parts(4)
    if method.value not in ("score", "one-step"):
        raise ValueError(f"{method.where} must be 'score' or 'one-step', not {method.value!r:.40}")
    p = p_value.number(finite=False)
    if p < 0 or p > 1:
        raise ValueError(f"{p_value.where} is not a probability: {p:g}")
    return InteractionTest(statistic.number(finite=False), df.integer(0, 10**9), p, method.value)


def _held_out_to(scored: HeldOut) -> dict[str, Any]:
    return {field.name: _listed(getattr(scored, field.name)) for field in fields(HeldOut)}


def _listed(value: Any) -> Any:
    return [float(v) for v in value] if isinstance(value, tuple | list) else value


def _held_out(part: Reader) -> HeldOut:
    return HeldOut(
        part["score"].number(finite=False),
        part["reference_score"].number(finite=False),
        part["reference"].text(),
        tuple(part["gains"].numbers(finite=False).tolist()),
    )
