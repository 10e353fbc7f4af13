"""Largest error against n on the diamond graph, where sparsistency fails."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from isodus.datasets import diamond_precision, gaussian

from . import figures
from .methods import generator
from .penalized import FORMS, LAMBDA, LOG, OF_TEXT, couplings, learned
from .scaling import HALF_DECADES
from .statistics import Claim, interval, share, slopes, wide
from .study import Row, Task

TITLE = "Largest error against n, diamond graph, ρ = 0.55"
STATED = (
    "On the diamond graph with ρ = 0.55 sparsistency fails, and yet both estimators are consistent: the largest error "
    "falls at the same rate with λ and 2λ, and the structure is found once it is below half the smallest coupling."
)
PROCESSES = 2
_SIZES = {"tiny": ((500, 1000), 2), "quick": ((1000, 10_000), 5), "standard": (HALF_DECADES[:5], 25)}
_RHO, _CONTROL = 0.55, 0.3  # at the second, irrepresentability holds
_FORMS = tuple(form for form in FORMS if form != LOG)


def tasks(size: str) -> list[Task]:
    """Sets of samples on both diamonds."""
    ns, sets = _SIZES[size]
    return [{"n": n, "set": k, "rho": rho} for n in sorted(ns)[::-1] for k in range(sets) for rho in (_RHO, _CONTROL)]


def repetition(task: Task) -> list[Row]:
    """λ and 2λ of each form; on the control λ alone."""
    truth = diamond_precision(task["rho"])
    X = gaussian(task["n"], truth, generator(5, task["n"], task["set"], round(1000 * task["rho"])))
    edges, factors = couplings(truth) > 0, (1, 2) if task["rho"] == _RHO else (1,)
    return [
        dict(
            method=form,
            factor=factor,
            error=float(np.abs(found - truth).max()),
            structure=bool(np.array_equal(couplings(found) > _half(), edges)),
            false_pair=bool(np.any(couplings(found)[~edges] > 0)),
        )
        for form in _FORMS
        for factor, found in zip(factors, learned(form, X, [f * LAMBDA[form] for f in factors]), strict=True)
    ]


def _half() -> float:
    """Half the smallest coupling."""
    pairs = couplings(diamond_precision(_RHO))
    return float(pairs[pairs > 0].min() / 2)


def claims(table: pd.DataFrame) -> list[Claim]:
    """Consistent at one rate, judged by the last decade of n; not sparsistent."""
    n, found = table["n"].max(), []
    first = min(m for m in table["n"].unique() if m >= n / 11)
    main, control = table[table["rho"] == _RHO], table[(table["rho"] == _CONTROL) & (table["n"] == n)]
    ends, last = main[main["n"].isin([first, n])], main[main["n"] == n]
    decade = f"from n = {first:,} to {n:,}"
    for form in _FORMS:
        one, two = (slopes(wide(ends, "error", method=form, factor=k)) for k in (1, 2))
        single, double = (last[(last["method"] == form) & (last["factor"] == k)] for k in (1, 2))
        wrong, other = single["false_pair"], control[control["method"] == form]["false_pair"]
        some = [
            Claim(f"the largest error falls (here: exponent below −0.3 {decade})", interval(one), most=-0.3),
            Claim(
                f"at the same rate with 2λ (here: exponents within 0.05 {decade})",
                interval(two - one),
                -0.05,
                0.05,
                remark=f"errors {double['error'].mean() / single['error'].mean():.2f} times as large at n = {n:,}",
            ),
            Claim(
                f"half the smallest coupling as threshold finds the structure (here: in 80 % of sets, n = {n:,})",
                share(single["structure"]),
                least=0.8,
            ),
            Claim(
                f"sparsistency fails (here: the false pair is found more often than at ρ = {_CONTROL}, n = {n:,})",
                interval(wrong.to_numpy(float) - other.to_numpy(float)),
                least=0.0,
                remark=f"found in {wrong.mean():.0%} and {other.mean():.0%} of sets",
            ),
        ]
        found += [claim._replace(text=f"{form}: {claim.text}", stated=form in OF_TEXT) for claim in some]
    return found


def draw(table: pd.DataFrame) -> Figure:
    """Largest errors against n."""
    figure, (left, right) = figures.panels(2)
    for ax, factor in ((left, 1), (right, 2)):
        figures.curves(ax, table[(table["rho"] == _RHO) & (table["factor"] == factor)], "error", "n", _FORMS)
        ax.axhline(_half(), color="#555555", linestyle="--", linewidth=1, label="half the smallest coupling")
        ax.set(xlabel="samples n", ylabel="largest error of Λ")
        ax.set_title(f"{'λ' if factor == 1 else '2λ'}, {table['set'].nunique()} sets per point", fontsize=10)
        ax.legend(frameon=False, fontsize=8)
    right.set_ylim(left.get_ylim())
    return figure
