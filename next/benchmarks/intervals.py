"""How often 95 % intervals cover the truth: all estimators, beside the present library's on the same samples.

Terms in powers of x, default penalties. Each cell is the mean over terms and sets with the standard error of the sets,
and the term that is farthest from 95 % in binomial standard errors. "power" is ISODUS with PowerReference("auto") and
consensus by precision; in the present library with refine=0. Skewed variables: own terms. A cell is marked where less
than 92.5 % are covered.

    python benchmarks/intervals.py [--sets 100] [--quick] [--only NAME ...]
"""

import argparse
import sys
import warnings

import numpy as np
from common import Present, in_processes, write_table
from common.models import OFF_CENTRE, PAPER, WELLS, Known, quartic_pair, quartic_pair_theta

from isodus import ISODUS, PowerReference, PseudoLikelihood, ScoreMatching, datasets

_SHIFTED = dict(p=2, height=(2.0, 4.0), shift=20.0)
MODELS = {
    **{f"{name}, n = 10,000": (model, 10_000) for name, model in PAPER.items()},
    "wells, h = 2, coupling .5, n = 10,000": (WELLS["wells, h = 2, coupling 0.5"], 10_000),
    "off centre, n = 1,000": (OFF_CENTRE["off centre"], 1_000),
    "skewed, n = 1,000": (
        Known(lambda n, seed: datasets.skewed(n, 4, seed), datasets.skewed_theta(4), {}),
        1_000,
    ),
    "½x² + 4(y − .6x²)², n = 1,000": (Known(datasets.curved, datasets.curved_theta(), {}), 1_000),
    "wells of 2 and 4 at 20, n = 1,000": (
        Known(
            lambda n, seed: datasets.double_wells(n, seed=seed, **_SHIFTED),
            datasets.double_wells_theta(**_SHIFTED),
            {},
        ),
        1_000,
    ),
    **{
        f"ρ = {rho}, quartic terms, n = 1,000": (
            Known(lambda n, seed, rho=rho: quartic_pair(n, rho, seed), quartic_pair_theta(rho), {}),
            1_000,
        )
        for rho in (0.9, 0.99)
    },
}
ESTIMATORS = {
    "ISODUS": ISODUS,
    "PL": PseudoLikelihood,
    "SM": ScoreMatching,
    "power": lambda **terms: ISODUS(**terms, reference=PowerReference("auto"), consensus="precision"),
}
PRESENT = """
import isodus
ESTIMATORS = {
    "ISODUS": isodus.ISODUS,
    "PL": isodus.PseudoLikelihood,
    "SM": isodus.ScoreMatching,
    "power": lambda **terms: isodus.ISODUS(**terms, refine=0, consensus="precision"),
}
def answer(job):
    found = {}
    for name, make in ESTIMATORS.items():
        model = make(**job["terms"], n_jobs=1).fit(job["X"]).model_
        frame = model.to_frame()
        found[name] = [[list(key) for key in model.to_dict()], frame["theta"].tolist(), frame["stderr"].tolist()]
    return found
"""
_QUANTILE = 1.959964


def inside(keys, theta, stderr, model, own):
    """Whether the interval of each term, in the order of the terms, holds the truth; NaN where it has none."""
    z = {}
    for key, value, error in zip(map(tuple, keys), theta, stderr, strict=True):
        if not own or len(set(key)) == 1:
            z[key] = (value - model.theta.get(key, 0.0)) / error if error else np.nan
    values = np.array([z[key] for key in sorted(z)])
    return sorted(z), np.where(np.isfinite(values), np.abs(values) < _QUANTILE, np.nan)


def one_row(name, sets, first):
    """Cells of one model."""
    (model, n), own, found, other = MODELS[name], name.startswith("skewed"), {}, {}
    failed = dict.fromkeys(ESTIMATORS, 0)
    with Present(PRESENT) as present:
        for seed in range(first, first + sets):
            X = model.draw(n, seed)
            for label, make in ESTIMATORS.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    est = make(**model.terms, n_jobs=1).fit(X)
                view = est.model_.polynomial()
                failed[label] += est.status_ != "converged"
                keys, right = inside(view.keys, view.coefficients, view.stderr, model, own)
                found.setdefault(label, []).append(right)
            for label, answer in present.ask(X=X, terms=model.terms).items():
                _, right = inside(*answer, model, own)
                other.setdefault(label, []).append(right)
    cells = [cell(keys, found[label]) for label in ESTIMATORS] + [cell(keys, other[label]) for label in ESTIMATORS]
    misses = [f"{label}: {count} not converged" for label, count in failed.items() if count]
    row = name, *cells, ", ".join(misses)
    print(*row, sep=" | ", file=sys.stderr, flush=True)
    return row


def cell(keys, sets):
    """Share of intervals that hold the truth, and the worst term."""
    right = np.array(sets)
    each, per_set = np.nanmean(right, axis=0), np.nanmean(right, axis=1)
    there = np.isfinite(right).sum(axis=0)
    off = (each - 0.95) / np.sqrt(0.95 * 0.05 / np.maximum(there, 1))
    worst = int(np.argmax(np.abs(off)))
    term = " ".join(f"x{i}^{keys[worst].count(i)}" for i in sorted(set(keys[worst])))
    share = f"{100 * per_set.mean():.1f} ± {100 * per_set.std(ddof=1) / np.sqrt(len(per_set)):.1f}"
    missing = f", {100 * np.mean(np.isnan(right)):.1f} % without" if np.isnan(right).any() else ""
    return f"{f'**{share}**' if per_set.mean() < 0.925 else share} ({term} {off[worst]:+.1f}{missing})"


def main():
    """One row per model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--quick", action="store_true", help="10 sets")
    parser.add_argument("--only", nargs="+", help="parts of names")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    sets = 10 if args.quick else args.sets
    names = [name for name in MODELS if args.only is None or any(part in name for part in args.only)]
    rows = in_processes(one_row, [(name, sets, args.first) for name in names], args.processes)
    header = ("model", *ESTIMATORS, *(f"present {label}" for label in ESTIMATORS), "misses")
    about = f"{__doc__.strip()}\n\n{sets} sets, seeds {args.first} to {args.first + sets - 1}. In percent."
    write_table("intervals", header, rows, about)


if __name__ == "__main__":
    main()
