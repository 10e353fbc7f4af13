"""Which way to choose the penalty recovers the structure best: extended BIC, cross-validation or stability?

Four kinds of models, sets of fresh samples of each: a Gaussian on a random 3-regular graph (κ = 0.25, p = 50, n = 500
and 1,000, degree 2), a chain of double wells (p = 20, n = 5,000, height 2, coupling 0.5; all pairs up to degree 4) and
random trees of interactions of up to four variables (`hypertree_polynomial`, p = 20, n = 5,000; all 10,625 terms of
degree up to 4). `ISODUS(…, l1=how)` with how = "ebic", "cv" and "stars", everything else
as it is by default but n_jobs, on the same samples: F1, precision and recall of the groups of variables that interact,
whether they are exactly those of the truth, and seconds. Set k has the model of seed k (the chain is always the same)
and the samples of seed 1000 + k.
`l1="auto"` is to be the one that the last line names.

    python benchmarks/selection.py [--quick] [--sets 20] [--only wells] [--how ebic cv]
"""

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from structure_fourbody import CORES, draw

from isodus import ISODUS
from isodus.datasets import double_wells, regular_gaussian

HOW = ("ebic", "cv", "stars")


class Case(NamedTuple):
    """The truth and samples of every set, and the terms to choose from."""

    name: str
    draw: Any
    terms: dict[str, int]


def gaussian(n, k):
    return sampled(regular_gaussian(50, 3, 0.25, rng=k), n, k)


def sampled(truth, n, k):
    return truth, np.array(truth.sample(n, rng=1000 + k))


CASES = {
    "gaussian-500": Case("Gaussian, p = 50, n = 500", lambda k: gaussian(500, k), dict(degree=2)),
    "gaussian-1000": Case("Gaussian, p = 50, n = 1,000", lambda k: gaussian(1000, k), dict(degree=2)),
    "wells": Case(
        "double wells, p = 20, n = 5,000", lambda k: sampled(double_wells(20), 5000, k), dict(degree=4, max_order=2)
    ),
    "fourbody": Case("four-body, p = 20, n = 5,000", lambda k: draw(20, 5000, k), dict(degree=4, max_order=4)),
}


def judge(found, truth):
    """F1, precision, recall, whether they are the same."""
    right = len(found & truth)
    precision = right / len(found) if found else 0.0
    return 2 * right / (len(found) + len(truth)), precision, right / len(truth), float(found == truth)


def attempt(case, how, truth, X, said):
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        est = ISODUS(l1=how, n_jobs=CORES, **case.terms).fit(X)
    duration = time.perf_counter() - started
    said.update(f"{how}: {w.message}" for w in caught)
    return *judge(set(est.model_.hyperedges()), set(truth.hyperedges())), duration


def compare(case, ways, sets):
    """Prints a table; mean F1 of every way."""
    print(f"\n{case.name}: {sets} sets, seeds 0 … {sets - 1} and 1000 … {999 + sets}", flush=True)
    results, said = {how: [] for how in ways}, set()
    for k in range(sets):
        truth, X = case.draw(k)
        for how in ways:
            results[how].append(attempt(case, how, truth, X, said))
    print("         F1               precision  recall  exact   seconds")
    means = {}
    for how, rows in results.items():
        score, precision, recall, exact, duration = np.mean(rows, axis=0)
        error = np.std([row[0] for row in rows], ddof=1) / np.sqrt(sets) if sets > 1 else np.nan
        rates = f"{precision:.3f}   {recall:.3f}  {exact:5.0%}"
        print(f"  {how:<6} {score:.4f} ± {error:.4f}      {rates}  {duration:8.2f}")
        means[how] = score
    for message in sorted(said)[:5]:
        print(f"  a warning, {message}")
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3 sets, only the Gaussians")
    parser.add_argument("--sets", type=int, help="of every model; 20 unless told")
    parser.add_argument("--only", choices=[*CASES])
    parser.add_argument("--how", nargs="+", choices=HOW, default=HOW)
    options = parser.parse_args()
    sets = options.sets or (3 if options.quick else 20)
    names = [options.only] if options.only else list(CASES)[:2] if options.quick else list(CASES)
    print(f"{CORES} cores, n_jobs={CORES}")
    means = [compare(CASES[name], options.how, sets) for name in names]
    overall = {how: float(np.mean([mean[how] for mean in means])) for how in options.how}
    best = max(overall, key=overall.get)
    listed = ", ".join(f"{how} {value:.4f}" for how, value in overall.items())
    print(f"\nmean F1 over {len(names)} kinds of models: {listed}")
    print(f"best: {best}")


if __name__ == "__main__":
    main()
