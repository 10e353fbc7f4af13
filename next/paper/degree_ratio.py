"""Run time of pseudo-likelihood over that of ISODUS, against the degree of the energy."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from isodus import PolynomialModel

from . import figures
from .methods import JOINT, LIKELIHOOD, PAPER, Theta, estimators, generator, learn, paper_isodus
from .statistics import Claim, interval, slopes, times, wide
from .study import Row, Task
from .timing import ADAPTIVE, ONCE, adaptive_seconds

TITLE = "Run-time ratio against the degree L, one variable"
STATED = (
    "For E = −Σ_{l=2..L} α_l x^l with α_l uniform in [0, 1] and n = 100, the ratio of the run times of "
    "pseudo-likelihood and ISODUS grows with L. (The authors' code has n = 1,000, ν = 0.5, L = 3 to 9.)"
)
PROCESSES = 1
_MODELS = {"tiny": 2, "quick": 3, "standard": 10}
_DEGREES = (2, 4, 6, 8)  # for odd L there is no density on the line
_WAYS = {"text": dict(n=100, nu=2.0), "code": dict(n=1000, nu=0.5)}
_REACH, _ROWS = 2.3, 30  # the authors' code integrates over ±2.3; rows with adaptive integrals


def tasks(size: str) -> list[Task]:
    """Random models of each degree, as the text has them and as the code does."""
    models = range(_MODELS[size])
    return [{"model": k, "degree": L, "way": way, **_WAYS[way]} for k in models for L in _DEGREES for way in _WAYS]


def energy(degree: int, number: int) -> Theta:
    """Random coefficients; drawn again while the mode is beyond ±2.3, as it is where the last of them is tiny."""
    rng = generator(8, degree, number)
    while True:
        alpha = rng.random(degree - 1)
        E = np.polynomial.Polynomial([0.0, 0.0, *alpha])
        turns = E.deriv().roots()
        turns = turns[np.abs(turns.imag) < 1e-9].real
        if abs(turns[np.argmin(E(turns))]) <= _REACH:
            return {(0,) * l: float(a) for l, a in enumerate(alpha, 2)}


def repetition(task: Task) -> list[Row]:
    """All methods in turn on one set of samples."""
    L, truth = task["degree"], energy(task["degree"], task["model"])
    X = PolynomialModel.from_dict(truth).sample(task["n"], random_state=task["model"])
    todo = estimators(degree=L) | {PAPER: lambda: paper_isodus(degree=L, nu=task["nu"])}
    for make in todo.values():
        learn(make, X)
    fits = {method: learn(make, X) for method, make in todo.items()}
    adaptive = adaptive_seconds(fits[LIKELIHOOD], X, _ROWS)
    rows = [dict(method=method, seconds=fit.seconds, converged=fit.converged) for method, fit in fits.items()]
    once = dict(method=ONCE, seconds=adaptive / len(X), converged=True)
    return [*rows, dict(method=ADAPTIVE, seconds=adaptive, converged=True), once]


def ratios(table: pd.DataFrame, method: str, way: str) -> pd.DataFrame:
    """Seconds of a method over those of ISODUS with the paper's settings: one row per model, one column per degree."""
    part = table[table["way"] == way]
    one, other = (wide(part, "seconds", by="degree", per="model", method=m) for m in (method, PAPER))
    return one / other


def claims(table: pd.DataFrame) -> list[Claim]:
    """Growth of the ratio as a power of L."""
    return [
        Claim(
            f"{method}, n = {options['n']:,}, ν = {options['nu']:g} ({way}): the ratio grows with L (here: as a power "
            "of L above 0)",
            interval(slopes(found := ratios(table, method, way))),
            least=0.0,
            stated=method == ADAPTIVE,
            remark="ratios by L: " + ", ".join(f"{L}: {times(found[L], 1.0).value:.3g}" for L in found),
        )
        for way, options in _WAYS.items()
        for method in (ADAPTIVE, ONCE, LIKELIHOOD, JOINT)
    ]


def draw(table: pd.DataFrame) -> Figure:
    """Ratios against L."""
    figure, axes = figures.panels(2)
    for ax, (way, options) in zip(axes, _WAYS.items(), strict=True):
        for k, method in enumerate((ADAPTIVE, ONCE, LIKELIHOOD, JOINT)):
            found = ratios(table, method, way)
            points = [times(found[L], 1.0) for L in found]
            middle, low, high = np.array(points).T
            look = dict(markersize=5, linewidth=1.3, capsize=2) | figures.style(method, k)
            ax.errorbar(found.columns, middle, [middle - low, high - middle], label=method, **look)
        ax.set(yscale="log", xlabel="degree L", ylabel="seconds / seconds of ISODUS, paper", xticks=_DEGREES)
        ax.set_title(f"n = {options['n']:,}, ν = {options['nu']:g} ({way})", fontsize=10)
        ax.axhline(1.0, color="#777777", linewidth=0.8)
    axes[0].legend(frameon=False, fontsize=8)
    return figure
