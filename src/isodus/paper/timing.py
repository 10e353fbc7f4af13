"""Seconds: what the studies of run time share. Every fit is a whole one, from raw samples, on one thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.integrate import quad

from .. import PolynomialModel, PseudoLikelihood
from . import figures
from .methods import LIKELIHOOD, OURS, PAPERS, SCORE, estimators, learn, mean_error
from .statistics import alike, growth, medians
from .study import Claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ADAPTIVE", "ONCE", "adaptive", "draw_seconds", "durations", "growths", "maximum_likelihood_1d", "warm"]

ADAPTIVE = "pseudo-likelihood, adaptive"  # one integral after the other to 1e-7, as in the paper's baseline
ONCE = "maximum likelihood, adaptive"  # in one dimension all samples have the same integral


def adaptive(**terms: Any) -> PseudoLikelihood:
    """Pseudo-likelihood with an adaptive integral for every sample and variable, as in the paper."""
    return PseudoLikelihood(**terms, consensus="geometric", integrable="warn", integration="adaptive")


@cache
def warm(**terms: Any) -> None:
    """The first fit of a process is slower."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    for make in estimators(**terms).values():
        learn(make, X)


def durations(
    truth: PolynomialModel, X: np.ndarray, terms: Mapping[str, Any], with_adaptive: bool = False
) -> list[dict[str, Any]]:
    """Seconds and error of every method, one after the other on the same samples."""
    warm(**terms)
    todo = estimators(**terms) | ({ADAPTIVE: lambda: adaptive(**terms)} if with_adaptive else {})
    rows = []
    for method, make in todo.items():
        fit = learn(make, X)
        error = mean_error(fit.estimator.model_, truth)
        rows.append({"method": method, "seconds": fit.seconds, "error": error, "converged": fit.converged})
    return rows


def maximum_likelihood_1d(x: np.ndarray, degree: int, tol: float = 1e-8) -> np.ndarray:
    """θ_2 … θ_degree of exp(−Σ θ_l x^l)/Z by Newton steps; Z and the moments by adaptive integrals, once a step.

    The samples enter by their moments alone.
    """
    powers = np.arange(2, degree + 1)
    observed, power = np.empty(len(powers)), x
    for k in range(len(powers)):
        power = power * x
        observed[k] = np.mean(power)
    reach = 1.5 * float(np.max(np.abs(x)))
    theta = np.zeros(len(powers))
    theta[-1:] = 0.05 / observed[-1]
    theta[0] = 0.5 / observed[0]

    def moments(theta: np.ndarray) -> tuple[float, np.ndarray]:
        energy = lambda t: float(theta @ t**powers)
        integral = lambda l: quad(lambda t: t**l * np.exp(-energy(t)), -reach, reach, epsrel=1e-7, limit=200)[0]
        Z = integral(0)
        return float(np.log(Z)), np.array([integral(l) for l in range(2, 2 * degree + 1)]) / Z

    for _ in range(100):
        log_z, m = moments(theta)
        value = float(theta @ observed) + log_z
        g = observed - m[: len(powers)]
        A = m[powers[:, None] + powers - 2] - np.outer(m[: len(powers)], m[: len(powers)])
        step = np.linalg.solve(A + 1e-12 * np.trace(A) * np.eye(len(A)), g)
        decrement = float(g @ step)
        if decrement < tol:
            break
        size = 1.0
        while size > 1e-6:  # on [−reach, reach] every θ has a density
            trial = theta - size * step
            z, _ = moments(trial)
            if trial @ observed + z <= value - 0.25 * size * decrement:
                break
            size /= 2
        theta = theta - size * step
    return theta


def growths(table: pd.DataFrame, stated: bool = True) -> list[Claim]:
    """Whether seconds are linear in n beyond a fixed cost: an exponent within 0.1 of 1, its whole interval.

    stated: whether the paper says so.
    """
    out = []
    for method in (PAPERS, LIKELIHOOD, SCORE, OURS):
        points = medians(table[table["method"] == method], "seconds", "n")
        if len(points) < 4:
            continue
        line = growth(*(np.asarray(v) for v in (points.index, points["median"], points["stderr"])))
        last = np.log(points["median"].iloc[-1] / points["median"].iloc[-2]) / np.log(
            points.index[-1] / points.index[-2]
        )
        out.append(
            Claim(
                f"{method}: run time linear in n (here: beyond a fixed cost, an exponent within 0.1 of 1)",
                f"exponent {line}; between the last two n {last:.2f}",
                line.slope,
                line.stderr,
                alike(line.less(1.0), 0.1),
                stated and method == PAPERS,
            )
        )
    return out


def draw_seconds(ax: Axes, table: pd.DataFrame, methods: Sequence[str]) -> None:
    """Median seconds against n."""
    for k, method in enumerate(methods):
        points = medians(table[table["method"] == method], "seconds", "n")
        if len(points):
            figures.curve(ax, points, method, method, k)
    n = np.unique(table["n"]).astype(float)
    lowest = medians(table[table["n"] == n[-1]], "seconds", "method")["median"].min()
    n = n[n >= n[-1] / 11]
    figures.guide(ax, n, 0.5 * lowest * n[0] / n[-1], 1.0, "∝ n")
    ax.set(xscale="log", yscale="log", xlabel="samples n", ylabel="seconds of a fit, one thread")
    ax.legend(frameon=False, fontsize=8)
