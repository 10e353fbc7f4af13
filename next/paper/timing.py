"""Run times beside the library's: pseudo-likelihood by adaptive integrals, and the paper's problem by Ipopt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import exp

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.integrate import quad
from scipy.special import gamma

from . import figures
from .methods import METHODS, PAPER, Fit, Theta
from .statistics import Claim, Interval, interval, times, wide

try:
    import casadi
except ImportError:  # its rows are then missing
    casadi = None

ADAPTIVE, ONCE = "pseudo-likelihood, adaptive per row", "pseudo-likelihood, adaptive once"
IPOPT = "ISODUS, paper, by Ipopt"


def peers(X: np.ndarray, by_sums: Fit, ours: Fit, count: int) -> dict[str, Fit]:
    """What the library is compared with; θ is that of the library where it is not computed again."""
    took = adaptive_seconds(by_sums, X, count)
    fits = {ADAPTIVE: Fit({}, took, by_sums.steps, True)}
    if X.shape[1] == 1:  # no other variables, so that the integrals of all rows are the same
        fits[ONCE] = Fit({}, took / len(X), by_sums.steps, True)
    elif X.shape[1] == 2 and casadi is not None:  # with more it takes gigabytes
        started = time.process_time()
        fits[IPOPT] = Fit(ipopt(X, list(ours.theta)), time.process_time() - started, 0, True)
    return fits


def adaptive_seconds(fit: Fit, X: np.ndarray, count: int) -> float:
    """One pass over some rows, scaled to all rows and to the passes of a fit by sums on 64 nodes."""
    started = time.process_time()
    adaptive_pass(fit.theta, X[:count], 1.5 * float(np.abs(X).max()))
    return (time.process_time() - started) * len(X) / min(count, len(X)) * (fit.steps + 1)


def adaptive_pass(theta: Theta, X: np.ndarray, reach: float) -> np.ndarray:
    """log Z and the means of powers of each variable at each row, (n, p, L + 1): each an adaptive integral to 1e-7."""
    degree = max(map(len, theta))
    found, lowest = np.empty((*X.shape, degree + 1)), np.empty(X.shape)
    grid = np.linspace(-reach, reach, 33)
    for r, i in np.ndindex(X.shape):
        a = conditional(theta, i, X[r])
        low = lowest[r, i] = _horner(a, grid).min()  # an energy may fall far below zero where there are no rows
        for l in range(degree + 1):
            f = lambda t, l=l, a=a, low=low: t**l * exp(low - _horner(a, t))
            found[r, i, l] = quad(f, -reach, reach, epsrel=1e-7, epsabs=1e-7 if l else 0.0, limit=200)[0]
    found[:, :, 1:] /= found[:, :, :1]
    found[:, :, 0] = np.log(found[:, :, 0]) - lowest
    return found


def conditional(theta: Theta, i: int, row: np.ndarray) -> list[float]:
    """Coefficients of the energy as a polynomial in variable i, from the constant, which is 0, to the highest."""
    a = [0.0] * (max(map(len, theta)) + 1)
    for term, value in theta.items():
        if power := term.count(i):
            a[power] += value * float(np.prod([row[j] for j in term if j != i]))
    return a


def _horner(a: Sequence[float], t: float | np.ndarray) -> float | np.ndarray:
    value = 0.0
    for coefficient in reversed(a):
        value = value * t + coefficient
    return value


def ipopt(X: np.ndarray, keys: Sequence[tuple[int, ...]], nu: float = 2.0, delta: float = 2.0) -> Theta:
    """The paper's estimator by Ipopt through CasADi, tolerance 1e-8: every variable's problem, the geometric mean."""
    power, answers = max(map(len, keys)) + delta, {key: [] for key in keys}
    moment = lambda l: 0.0 if l % 2 else nu ** (-l / power) * gamma((l + 1) / power) / gamma(1 / power)
    for i in range(X.shape[1]):
        local, x = [key for key in keys if i in key], X[:, i]
        rest = [X[:, [j for j in key if j != i]].prod(axis=1) for key in local]
        columns = [(x ** key.count(i) - moment(key.count(i))) * h for key, h in zip(local, rest, strict=True)]
        theta = casadi.MX.sym("theta", len(local))
        exponent = casadi.DM(np.stack(columns, axis=1)) @ theta + casadi.DM(-nu * np.abs(x) ** power)
        problem = {"x": theta, "f": casadi.log(casadi.sum1(casadi.exp(exponent)) / len(x))}
        options = {"ipopt.tol": 1e-8, "ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
        found = casadi.nlpsol("solver", "ipopt", problem, options)(x0=np.zeros(len(local)))["x"]
        for key, value in zip(local, found.full().ravel(), strict=True):
            answers[key].append(float(value))
    return {key: float(np.sign(np.mean(v)) * np.exp(np.mean(np.log(np.abs(v))))) for key, v in answers.items()}


def linear(table: pd.DataFrame, stated: bool = True) -> Claim:
    """Run time ∝ n beyond a fixed cost, which the increments between the last n, equally far apart, do not have."""
    t = wide(table, "seconds", method=PAPER).iloc[:, -3:]
    rise = t.diff(axis=1).iloc[:, 1:].clip(lower=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(rise.iloc[:, -1] / rise.iloc[:, 0]) / np.log(t.columns[-1] / t.columns[-2])
    text = (
        f"{PAPER}: run time linear in n (here: beyond a fixed cost, exponent within 0.1 of 1 to n = {t.columns[-1]:,})"
    )
    return Claim(text, interval(found), 0.9, 1.1, stated)


def at(table: pd.DataFrame, n: int, method: str) -> pd.Series:
    """Seconds of a method at one n, by set."""
    return wide(table[table["n"] == n], "seconds", method=method)[n]


def over(table: pd.DataFrame, n: int, one: str, other: str) -> Interval:
    """How many times as long one method takes as another, on the sets that have both."""
    return times(*pd.concat([at(table, n, one), at(table, n, other)], axis=1).dropna().to_numpy().T)


def draw_seconds(ax: Axes, table: pd.DataFrame) -> None:
    """Mean seconds against n."""
    figures.curves(ax, table, "seconds", "n", [m for m in table["method"].unique() if m != IPOPT])
    n = np.sort(table["n"].unique())
    low = table[(table["n"] == n[-1]) & table["method"].isin(METHODS)].groupby("method")["seconds"].mean().min()
    figures.guide(ax, n[n >= n[-1] / 11], 0.05 * low, 1.0, "∝ n")
    ax.set(xlabel="samples n", ylabel="seconds per fit, one thread")
    ax.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
