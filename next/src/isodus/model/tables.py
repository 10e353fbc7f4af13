"""Tables: one row per term, one row per interaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from scipy.stats import false_discovery_control

from .._core.checks import finite_number
from ..fit.score_tests import InteractionTest
from ..terms import Key, Terms, product_of
from .fitted import Fitted
from .polynomial import PolynomialView, interacting_sets

__all__ = ["check_share", "interaction_table", "strengths", "term_table"]

Array = np.ndarray


def check_share(value: Any, name: str) -> float:
    """A number between 0 and 1, neither of them."""
    share = finite_number(value, name, above=0.0)
    if share >= 1:
        raise ValueError(f"{name} must lie between 0 and 1, such as 0.05, not {value!r}")
    return share


def term_table(terms: Terms, view: PolynomialView, level: float) -> pd.DataFrame:
    """One row per term in powers of x: term, degree, order, theta, stderr, interval, z, p_value (Wald, two-sided)."""
    theta, stderr = view.coefficients, view.stderr
    reach = ndtri(0.5 + level / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = theta / stderr
    return pd.DataFrame(
        {
            "term": view.terms,
            "degree": [terms.degree_of(product_of(key)) for key in view.keys],
            "order": [len(set(key)) for key in view.keys],
            "theta": theta,
            "stderr": stderr,
            "ci_low": theta - reach * stderr,
            "ci_high": theta + reach * stderr,
            "z": z,
            "p_value": 2 * ndtr(-np.abs(z)),
        }
    )


def strengths(terms: Terms, tau: Array) -> dict[Key, float]:
    """√(Σ θ²) over the products of functions of each interaction's variables.

    On axes whose functions are orthonormal it is the standard deviation of these products' part of the energy, were
    the variables independent.
    """
    places: dict[Key, list[int]] = {}
    for k, factors in enumerate(terms.products):
        places.setdefault(tuple(i for i, _ in factors), []).append(k)
    found = {}
    for variables, unknowns in interacting_sets(terms).items():
        theta = terms.T[:, unknowns] @ tau[unknowns]
        found[variables] = float(np.linalg.norm(theta[places[variables]]))
    return found


def interaction_table(terms: Terms, tau: Array, names: Sequence[str], fitted: Fitted | None) -> pd.DataFrame:
    """One row per interaction, sorted by p; q is over all tests. Interactions that are tied share a test."""
    sets, size = interacting_sets(terms), strengths(terms, tau)
    tests = _tests(terms, fitted)
    tested = [key for key, test in tests.items() if np.isfinite(test.p_value)]
    q = false_discovery_control([tests[key].p_value for key in tested]) if tested else []
    q_value = dict(zip(tested, q, strict=True))
    rows = []
    for variables, unknowns in sets.items():
        key = tuple(unknowns.tolist())
        test = tests.get(key)
        words = "*".join(names[i] for i in variables)
        found = (test.statistic, test.df, test.p_value) if test else (np.nan, len(unknowns), np.nan)
        method = test.method if test else ""
        rows.append((words, len(variables), size[variables], *found, float(q_value.get(key, np.nan)), method))
    columns = ["variables", "order", "strength", "statistic", "df", "p_value", "q_value", "method"]
    table = pd.DataFrame(rows, columns=columns)
    table.insert(0, "key", list(sets))
    table = table.sort_values(["p_value", "strength"], ascending=[True, False], kind="stable", ignore_index=True)
    return table.set_index("key")


def _tests(terms: Terms, fitted: Fitted | None) -> dict[Key, InteractionTest]:
    """The tests by their unknowns."""
    tests = fitted.interaction_tests() if fitted else None
    if tests is None:
        return {}
    tested = [unknowns for variables, unknowns in terms.interactions.items() if len(variables) > 1]
    return {tuple(unknowns.tolist()): test for unknowns, test in zip(tested, tests, strict=True)}
