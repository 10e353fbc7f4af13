"""Are standard errors, intervals, false discovery rates and tests what they say they are?

Samples of known models, the same sets for every estimator; seeds 0, 1, …

- coverage: 95 % intervals of every term in the units of X, n = 10,000: the mean over terms, and the term that is
  farthest from 95 % in binomial standard errors, √(0.95 · 0.05 / sets).
- fdr: p = 20, n = 2,000, all 1,220 terms of pairs up to degree 4; independent skewed double wells, and a chain of
  double wells: the mean share of wrong ones among terms with q < 0.05 (Benjamini and Hochberg), and among pairs.
- debiased: `PseudoLikelihood(2, l1="auto").debiased` on a random 3-regular Gaussian, p = 100, n = 1,000: intervals of
  edges and of all other pairs.
- tests: how often the Stein test and the residual tests reject at 5 %: the true model, a model fitted to the samples,
  and models that lack a quartic coupling, given or fitted.

    python benchmarks/intervals.py [--sets 500] [--only coverage fdr debiased tests] [--quick]
"""

import argparse
import os
import time
import warnings
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching
from isodus.datasets import double_wells, gaussian_10, paper_4d, paper_pair, regular_gaussian
from isodus.goodness import residual_test, stein_test

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
WELLS = PolynomialModel.from_dict({(0, 0): -4.0, (1, 1): -4.0, (0, 1): 0.5, (0, 0, 0, 0): 2.0, (1, 1, 1, 1): 2.0})
MODELS = {
    "2D, pair (1, 2)": (partial(paper_pair, 1), dict(min_degree=2)),
    "4D, 65 terms": (paper_4d, dict(min_degree=2, max_order=None)),
    "Gaussian, p = 10": (gaussian_10, dict(degree=2)),
    "double wells, h = 2": (lambda: WELLS, dict()),
}
ESTIMATORS = {
    "ISODUS": ISODUS,
    "ISODUS, refine=0": partial(ISODUS, refine=0),
    "pseudo-likelihood": PseudoLikelihood,
    "score matching": ScoreMatching,
}


def quietly(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


def repeated(function, sets, what):
    """function(seed) for every seed, in processes."""
    runs = Parallel(CORES, return_as="generator")(delayed(quietly)(function, seed) for seed in range(sets))
    return list(track(runs, what, sets, console=Console(stderr=True), transient=True))


def rate(values):
    """A mean and its standard error, as percentages."""
    values = np.asarray(values, float)
    return f"{100 * values.mean():5.1f} ± {100 * values.std(ddof=1) / np.sqrt(len(values)):.1f} %"


# coverage


def covered(name, seed):
    """Whether each term's interval holds the truth, for every estimator; None where a fit has no errors."""
    make, terms = MODELS[name]
    truth = make()
    X = np.array(truth.sample(10_000, rng=seed))
    inside = []
    for estimator in ESTIMATORS.values():
        model = estimator(**terms).fit(X).model_
        value = np.array([truth.to_dict().get(term, 0.0) for term in model.basis.terms])
        frame = model.to_frame()
        right = (frame["ci_low"] <= value) & (value <= frame["ci_high"])
        inside.append(np.where(frame["stderr"].isna(), np.nan, right))
    return inside


def coverage(sets):
    print(f"\n95 % intervals, n = 10,000, {sets} sets")
    print(f"  {'':<24}{'':<20} covered          worst term, in binomial s.e.   without an interval")
    for name, (make, terms) in MODELS.items():
        found = np.array(repeated(partial(covered, name), sets, name), float)  # (sets, estimators, terms)
        names = PseudoLikelihood(**terms).fit(np.array(make().sample(2000, rng=0))).model_.to_frame()["term"]
        for j, label in enumerate(ESTIMATORS):
            each = np.nanmean(found[:, j], axis=0)
            many = np.maximum(np.sum(np.isfinite(found[:, j]), axis=0), 1)
            off = (each - 0.95) / np.sqrt(0.95 * 0.05 / many)
            worst = int(np.nanargmax(np.abs(off)))
            missing = np.isnan(found[:, j]).mean()
            print(
                f"  {name:<24}{label:<20} {rate(np.nanmean(found[:, j], axis=1))}  "
                f"{names[worst]:>12}: {100 * each[worst]:.1f} %, {off[worst]:+.1f}   {missing:14.1%}",
                flush=True,
            )


# false discoveries

INDEPENDENT = {(i,) * k: v for i in range(20) for k, v in ((2, -1.0), (3, 0.2), (4, 0.5))}
SPARSE = {
    "independent": lambda: PolynomialModel.from_dict(INDEPENDENT),
    "chain of double wells": lambda: double_wells(20),
}


def discoveries(name, seed):
    """For every estimator: the shares of wrong terms and of wrong pairs among those found, and that of edges found."""
    truth = SPARSE[name]()
    X = np.array(truth.sample(2000, rng=seed))
    known, edges = truth.to_dict(), {"*".join(e) for e in truth.hyperedges()}
    rows = []
    for estimator in (ISODUS, PseudoLikelihood, ScoreMatching):
        model = estimator(4).fit(X).model_
        frame, pairs = model.to_frame("standardized"), model.interactions()
        at = np.flatnonzero((frame["order"] > 1) & (frame["q_value"] < 0.05))
        wrong = [k for k in at if model.basis.terms[k] not in known]
        joined = set(pairs["variables"][pairs["q_value"] < 0.05])
        shares = (wrong, at), (joined - edges, joined), (joined & edges, edges)
        rows.append([len(some) / max(len(all_), 1) for some, all_ in shares])
    return rows


def fdr(sets):
    print(f"\nfalse discovery rate at q < 0.05, p = 20, n = 2,000, {sets} sets")
    print(f"  {'':<24}{'':<20} of terms         of pairs         pairs found")
    for name in SPARSE:
        found = np.array(repeated(partial(discoveries, name), sets, name))
        for j, label in enumerate(("ISODUS", "pseudo-likelihood", "score matching")):
            rates = "  ".join(rate(found[:, j, k]) for k in range(3))
            print(f"  {name:<24}{label:<20} {rates}", flush=True)


# after selection


def after_selection(seed):
    truth = regular_gaussian(100, rng=0)
    X = np.array(truth.sample(1000, rng=seed))
    frame = PseudoLikelihood(2, l1="auto").fit(X).debiased(X).to_frame()
    known = truth.to_dict()
    value = np.array([known.get(term, 0.0) for term in MonomialBasis(100, 2).terms])
    pair = (frame["order"] == 2).to_numpy()
    inside = (np.abs(frame["theta"] - value) <= frame["ci_high"] - frame["theta"]).to_numpy()
    found, edge = pair & (frame["q_value"] < 0.05).to_numpy(), pair & (value != 0)
    wrong = (found & ~edge).sum() / max(found.sum(), 1)
    return inside[edge].mean(), inside[pair & ~edge].mean(), wrong, found[edge].mean()


def debiased(sets):
    found = np.array(repeated(after_selection, sets, "after selection"))
    print(f"\nde-biased, 3-regular Gaussian, p = 100, n = 1,000, {sets} sets")
    for k, what in enumerate(("edges covered", "other pairs covered", "false discovery rate, q < 0.05", "edges found")):
        print(f"  {what:<32} {rate(found[:, k])}")


# goodness of fit


def coupled(c):
    """Two variables with the coupling c x0² x1²."""
    own = {(0, 0): 0.5, (1, 1): 0.5, (0, 1): 0.3, (0, 0, 0, 0): 0.25, (1, 1, 1, 1): 0.25}
    return PolynomialModel.from_dict(own | {(0, 0, 1, 1): c})


WITHOUT = MonomialBasis(2, terms=[t for t in MonomialBasis(2, 4).terms if t != (0, 0, 1, 1)])
# name: (coupling of the truth, n, what is tested: a model as given, or an estimator of one)
TESTED = {
    "true model, coupling 0.5": (0.5, 2000, coupled(0.5)),
    "fitted to the samples, coupling 0.5": (0.5, 2000, PseudoLikelihood(4)),
    "true model less the coupling, 0.5": (0.5, 2000, coupled(0.0)),
    "fitted without the coupling, 0.5": (0.5, 2000, PseudoLikelihood(basis=WITHOUT)),
    "fitted without the coupling, 8, n = 4,000": (8.0, 4000, PseudoLikelihood(basis=WITHOUT)),
}


def tested(seed):
    """p-values, of the Stein test, the least of the two residual tests times two, and these, for every model."""
    rows = []
    for c, n, what in TESTED.values():
        X = np.array(coupled(c).sample(n, rng=seed))
        given = isinstance(what, PolynomialModel)
        model = what if given else what.fit(X).model_
        psi = None if given else what.influence(X)
        stein = stein_test(model, X, influence=psi, rng=seed).p_value
        residual = residual_test(model, X, influence=psi, rng=seed)["p_value"]
        rows.append((stein, min(1.0, 2 * residual.min()), *residual))
    return rows


def tests(sets):
    print(f"\nrejected at 5 %, two variables, n = 2,000, {sets} sets; the quartic coupling multiplies x0² x1²")
    print(f"  {'':<44} Stein            residuals (both)  residuals (each)")
    found = np.array(repeated(tested, sets, "tests")) < 0.05
    for j, label in enumerate(TESTED):
        each = rate(found[:, j, 2:].mean(axis=1))
        print(f"  {label:<44} {rate(found[:, j, 0])}  {rate(found[:, j, 1])}  {each}", flush=True)


SECTIONS = {"coverage": coverage, "fdr": fdr, "debiased": debiased, "tests": tests}
SETS = {"coverage": 500, "fdr": 200, "debiased": 100, "tests": 300}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 sets")
    parser.add_argument("--sets", type=int, help=", ".join(f"{k} {v}" for k, v in SETS.items()) + " unless told")
    parser.add_argument("--only", nargs="+", choices=[*SECTIONS], default=[*SECTIONS])
    options = parser.parse_args()
    print(f"{CORES} processes")
    for name in options.only:
        started = time.perf_counter()
        SECTIONS[name](options.sets or (20 if options.quick else SETS[name]))
        print(f"  ({time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
