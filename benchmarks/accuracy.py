"""How accurate are the estimators, against each other and against exact maximum likelihood?

Samples of known models, every estimator on the same sets. The figure is the mean absolute error over all terms of the
fit, averaged over sets; a ratio of two estimators' errors has the standard error of the paired sets. Exact maximum
likelihood is computed here where it can be: Gaussians in closed form, one and two variables by sums over a grid.

    python benchmarks/accuracy.py [--sets 45] [--quick] [--only pair] [--jobs 2] [--save accuracy.csv]
    python benchmarks/accuracy.py --table     (the table of docs/benchmarks.md alone, some minutes)
"""

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import track

from isodus import ISODUS, PolynomialModel, PseudoLikelihood, ScoreMatching
from isodus.datasets import gaussian_10, paper_1d, paper_4d, paper_pair

SIZES = (3_000, 30_000, 100_000)
GRID = (3.2, 0.8, 0.2, 0.05, 0.0125, 0.003)  # of ν, in scaled variables


def double_well(h, coupling):
    """h(x² − 1)² + h(y² − 1)² + coupling·xy."""
    return PolynomialModel.from_dict(
        {(0, 0): -2 * h, (1, 1): -2 * h, (0, 1): coupling, (0, 0, 0, 0): h, (1, 1, 1, 1): h}
    )


def off_centre():
    """Pair (1, 2) with linear terms, so that its mean lies off zero."""
    return PolynomialModel.from_dict(paper_pair(1).to_dict() | {(0,): 2.0, (1,): -1.5})


# name: (model, terms of the fit)
MODELS = {
    "1D": (paper_1d, dict(min_degree=2)),
    "pair (1,2)": (partial(paper_pair, 1), dict(min_degree=2)),
    "4D, 65 terms": (paper_4d, dict(min_degree=2, max_order=None)),
    "Gaussian, p = 10": (gaussian_10, dict(degree=2, min_degree=2)),
    **{
        f"double wells, h = {h}, coupling {c}": (partial(double_well, h, c), dict(min_degree=2))
        for h in (1.0, 2.0, 4.0)
        for c in (0.5, 2.0)
    },
    "off centre, with linear terms": (off_centre, dict()),
}

PAPER = dict(nu=2.0, center=False, scale=False, refine=0, integrable="warn")
ESTIMATORS = {
    "ISODUS": lambda terms: ISODUS(**terms),
    "pseudo-likelihood": lambda terms: PseudoLikelihood(**terms),
    "score matching": lambda terms: ScoreMatching(**terms),
    "paper": lambda terms: ISODUS(**terms, **PAPER, consensus="geometric"),
    "nu 2": lambda terms: ISODUS(**terms, **PAPER),
    "nu auto": lambda terms: ISODUS(**terms, refine=0),
    "nu auto, geometric": lambda terms: ISODUS(**terms, refine=0, consensus="geometric"),
    "nu auto, precision": lambda terms: ISODUS(**terms, refine=0, consensus="precision"),
    **{f"nu {nu}": partial(lambda nu, terms: ISODUS(**terms, refine=0, nu=nu), nu) for nu in GRID},
}
IN_THE_DOCS = ("ISODUS", "pseudo-likelihood", "score matching", "paper")


def on_a_grid(X, terms):
    """The terms at the points of a grid of one or two variables, and their means over X."""
    p = X.shape[1]
    low, high = X.min(axis=0), X.max(axis=0)
    reach = 0.4 * (high - low)
    axes = [np.linspace(a, b, 2001 if p == 1 else 241) for a, b in zip(low - reach, high + reach, strict=True)]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
    statistic = lambda x: np.stack([np.prod([x[v] for v in term], axis=0) for term in terms])
    return statistic(grid), statistic(X.T).mean(axis=1)


def maximum_likelihood(X, terms, truth):
    """Exact maximum likelihood over `terms`, by Newton from the truth; sums over a grid of 1 or 2 variables."""
    if all(len(term) == 2 for term in terms):
        precision = np.linalg.inv(X.T @ X / len(X))
        return {(i, j): precision[i, j] / (2 if i == j else 1) for i, j in terms}
    F, mean = on_a_grid(X, terms)
    theta = np.array([truth.get(term, 0.0) for term in terms])
    for _ in range(50):
        log_w = -theta @ F
        w = np.exp(log_w - log_w.max())
        w /= w.sum()
        expected = F @ w
        A = (F * w) @ F.T - np.outer(expected, expected)
        step = np.linalg.solve(A, expected - mean)
        theta = theta + step * min(1.0, 1.0 / np.sqrt(step @ A @ step + 1e-300))
        if step @ A @ step < 1e-18:
            return dict(zip(terms, theta, strict=True))
    raise RuntimeError("maximum likelihood did not converge")


def one_set(job, labels=tuple(ESTIMATORS)):
    """Errors of estimators on one set of samples, a row each."""
    name, n, seed = job
    model, options = MODELS[name]
    truth = model()
    X, true = truth.sample(n, rng=np.random.default_rng([seed, n])), truth.to_dict()
    rows = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for label in labels:
            caught.clear()
            estimator = ESTIMATORS[label](options).fit(X)
            values = estimator.model_.to_dict()
            error = np.mean([abs(value - true.get(term, 0.0)) for term, value in values.items()])
            rows.append((name, n, seed, label, error, set(estimator.status_) == {"converged"}))
        if len(X.T) <= 2 or options.get("degree") == 2:
            values = maximum_likelihood(X, list(values), true)
            error = np.mean([abs(value - true.get(term, 0.0)) for term, value in values.items()])
            rows.append((name, n, seed, "maximum likelihood", error, True))
    return rows


def ratio(a, b):
    """Mean of a over mean of b, and its standard error from the pairs."""
    r = a.mean() / b.mean()
    return r, np.std(a - r * b, ddof=1) / b.mean() / np.sqrt(len(a))


def gaussian_at_degree_4(job):
    """A Gaussian of six variables fitted at degree 4: did it end, is it integrable, held-out score less degree 2's."""
    n, seed = job
    rng = np.random.default_rng([seed, n])
    A = 0.4 * rng.standard_normal((6, 6)) + np.eye(6)
    X, unseen = (rng.standard_normal((size, 6)) @ A.T for size in (n, 20_000))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        four = ISODUS(degree=4).fit(X)
    two = PseudoLikelihood(degree=2).fit(X)
    ended = set(four.status_) == {"converged"} and not caught
    return n, ended, four.model_.integrability().status == "integrable", four.score(unseen) - two.score(unseen)


def show(table, sets):
    """The errors, and what they must show; returns how much of it does not hold."""
    misses = []
    for (name, n), part in table.groupby(["model", "n"], sort=False):
        errors = part.pivot(index="set", columns="estimator", values="error")
        bad = part[~part.converged].groupby("estimator").size()
        floor = "maximum likelihood" if "maximum likelihood" in errors else "pseudo-likelihood"
        print(f"\n{name}, n = {n:,}, {sets} sets: mean absolute error, and its ratio to that of {floor}")
        for label in errors:
            r, e = ratio(errors[label], errors[floor])
            said = f"   {bad[label]} sets with a status other than converged" if label in bad.index else ""
            print(f"  {label:<20} {errors[label].mean():9.5f}   {r:7.3f} ± {e:.3f}{said}")

        def must(a, b, most, what, name=name, n=n, errors=errors):
            r, e = ratio(errors[a], errors[b])
            if r > most + e:
                misses.append(f"{name}, n = {n:,}: {what}: {r:.3f} ± {e:.3f}, wanted at most {most}")

        must("ISODUS", "score matching", 1.02, "ISODUS / score matching")
        if n >= 30_000:
            must("ISODUS", "pseudo-likelihood", 1.02, "ISODUS / pseudo-likelihood")
        if n >= 30_000 and "maximum likelihood" in errors:
            most = 1.02 if "Gaussian" in name else 1.05
            must("ISODUS", "maximum likelihood", most, "ISODUS / maximum likelihood")
        must("nu auto", "nu 2", 1.03, "nu auto / nu 2")
        best = min((f"nu {nu}" for nu in GRID), key=lambda label, errors=errors: errors[label].mean())
        must("nu auto", best, 1.10, f"nu auto / best of the grid ({best})")
        r, e = ratio(errors["nu auto, precision"], errors["nu auto"])
        print(f"  consensus: precision / mean {r:.3f} ± {e:.3f}")
    return misses


def table_of_the_docs(table):
    """The ratios as docs/benchmarks.md has them, and which fits did not converge."""
    print(f"| model | {' | '.join(IN_THE_DOCS)} |\n| --- |{' --- |' * len(IN_THE_DOCS)}")
    for name, part in table.groupby("model", sort=False):
        errors = part.pivot(index="set", columns="estimator", values="error")
        floor = "maximum likelihood" if "maximum likelihood" in errors else "pseudo-likelihood"
        cells = ("{:.3f} ± {:.3f}".format(*ratio(errors[label], errors[floor])) for label in IN_THE_DOCS)
        print(f"| {name} | {' | '.join(cells)} |")
    bad = table[~table.converged].groupby(["model", "estimator"]).size()
    print(f"\nsets with a status other than converged:\n{bad.to_string()}" if len(bad) else "\nall converged")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=45)
    parser.add_argument("--quick", action="store_true", help="10 sets, n up to 30,000")
    parser.add_argument("--table", action="store_true", help="four estimators at n = 30,000, as in docs/benchmarks.md")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--save", help="a CSV file for the errors of every set")
    options = parser.parse_args()
    sets, sizes = (10, SIZES[:2]) if options.quick else (options.sets, SIZES[1:2] if options.table else SIZES)
    names = [name for name in MODELS if options.only in name]
    # the longest first, so that no process is left with one at the end
    jobs = [(name, n, seed) for n in sizes[::-1] for name in names for seed in range(sets)]
    with ProcessPoolExecutor(options.jobs) as pool:
        work = partial(one_set, labels=IN_THE_DOCS) if options.table else one_set
        sets_done = track(pool.map(work, jobs), "sets", len(jobs), console=Console(stderr=True))
        rows = [row for part in sets_done for row in part]
        alone = options.only or options.table
        gaussians = [] if alone else [(n, seed) for n in (1_000, 10_000, 100_000) for seed in range(sets)]
        fits = pd.DataFrame(
            pool.map(gaussian_at_degree_4, gaussians), columns=["n", "ended", "integrable", "difference"]
        )
    table = pd.DataFrame(rows, columns=["model", "n", "set", "estimator", "error", "converged"])
    table = table.sort_values(["n", "set"], kind="stable")
    if options.save:
        table.to_csv(options.save, index=False)
    if options.table:
        return table_of_the_docs(table)
    misses = show(table, sets)
    for n, part in fits.groupby("n"):
        worst = part.difference.abs().max()
        print(
            f"\nGaussian, p = 6, n = {n:,}, degree 4, {len(part)} sets: {part.ended.sum()} ended without a warning, "
            f"{part.integrable.sum()} integrable, held-out score at most {worst:.4f} from that of degree 2"
        )
        if not (part.ended.all() and part.integrable.all() and worst <= 0.01):
            misses.append(f"Gaussian at degree 4, n = {n:,}")
    print("\n" + ("\n".join(["does not hold:", *misses]) if misses else "all that must hold does"))


if __name__ == "__main__":
    main()
