"""From how few samples is the graph of a Gaussian recovered? The paper's n*, against graphical lasso.

The smallest n from which the graph is recovered 45 times in a row, mean over five graphs, p = 50 and 200, for the
paper's form, tilted ISODUS with a constant and with l1="auto", pseudo-likelihood and graphical lasso. A pair is an edge
if its coupling |Λ_ij|/√(Λ_ii Λ_jj), in this library's terms |θ_ij|/(2√(θ_ii θ_jj)), is above κ/2. The penalty is
c √(log p / n) with c from {0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1, 1.7}: that with the largest margin (of the weakest edge
above κ/2, or of the strongest other pair below, whichever is less; its mean less two standard deviations) over 20 sets
of 1,000 samples (4,000 for the paper's form) at p = 50 of a graph that is not used again. The search begins below n*,
at the last n of a ladder of 15 % a rung, from 300 on, that does not recover the graph so often.

    python benchmarks/structure_samples.py [--quick] [--only 50] [--successes 45] [--graphs 5] [--forms …]
"""

import argparse
import time
import warnings
from functools import partial

import numpy as np
from sklearn.covariance import graphical_lasso
from structure_gaussian import CORES, KAPPA, edges, gram, seconds

from isodus import ISODUS, PseudoLikelihood
from isodus.datasets import regular_gaussian
from isodus.sample_complexity import smallest_n

PAPERS = dict(refine=0, objective="plain", l1_scaling="paper", nu=2.0, delta=2.0, center=False, scale=False)
PAPERS |= dict(integrable="warn", consensus="geometric")
CONSTANTS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.7)


def paper_form(X, c):
    return ISODUS(2, l1=c, **PAPERS).fit(X).precision_


def tilted_form(X, c):
    return ISODUS(2, l1=c * np.sqrt(np.log(X.shape[1]) / len(X))).fit(X).precision_


def chosen_form(X, c):
    return ISODUS(2, l1="auto").fit(X).precision_


def likelihood_form(X, c):
    return PseudoLikelihood(2, l1=c * np.sqrt(np.log(X.shape[1]) / len(X))).fit(X).precision_


def covariance_form(X, c):
    return graphical_lasso(gram(X), c * np.sqrt(np.log(X.shape[1]) / len(X)))[1]


COVARIANCE = "graphical lasso, scikit-learn"
FORMS = {
    "ISODUS, the paper's form": paper_form,
    "ISODUS, tilted": tilted_form,
    'ISODUS, l1="auto"': chosen_form,
    "pseudo-likelihood": likelihood_form,
    COVARIANCE: covariance_form,
}


def margin(form, c, truth, n, seed):
    """How far edges are above κ/2 and other pairs below it, at the worst; negative: the graph is not recovered."""
    X = np.array(truth.sample(n, rng=seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a trial that does not converge has failed
        try:
            precision = form(X, c)
        except (FloatingPointError, ValueError):  # of graphical_lasso, where the penalty is too weak
            return -KAPPA
    d = np.sqrt(np.abs(np.diagonal(precision)))
    coupling, graph = np.abs(precision) / np.outer(d, d), edges(truth)
    np.fill_diagonal(coupling, 0.0)
    value = min(coupling[graph].min() - KAPPA / 2, KAPPA / 2 - coupling[~graph].max())
    return value if np.isfinite(value) else -KAPPA


def succeeds(form, c, truth, n, seed):
    return bool(margin(form, c, truth, n, seed) > 0)


def constant(form, sets):
    """The c with the largest margin; (c, its margin)."""
    truth, worth = regular_gaussian(50, 3, KAPPA, rng=1000), {}
    n = 4000 if form is paper_form else 1000
    for c in CONSTANTS if form is not chosen_form else (1.0,):
        margins = [margin(form, c, truth, n, seed) for seed in range(sets)]
        worth[c] = np.mean(margins) - 2 * np.std(margins)
    c = max(worth, key=worth.get)
    return c, worth[c]


def below(trial, successes):
    """The last n of a ladder at which some trial fails, before one at which none does."""
    n, before = 300, 300
    while not all(trial(n, seed) for seed in range(successes)):
        n, before = int(1.15 * n), n
    return before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="p = 50, 10 successes, one graph")
    parser.add_argument("--only", type=int, help="one p")
    parser.add_argument("--successes", type=int, help="in a row; 45, as in the paper, unless told")
    parser.add_argument("--forms", nargs="+", help="only those with such words in their names")
    parser.add_argument("--graphs", type=int, help="a size; 5 unless told")
    options = parser.parse_args()
    options.successes = options.successes or (10 if options.quick else 45)
    options.graphs = options.graphs or (1 if options.quick else 5)
    graphs, successes = options.graphs, options.successes
    sizes = [options.only] if options.only else [50] if options.quick else [50, 200]
    print(f"n*: {successes} recoveries in a row, graphs a size: {graphs}; {CORES} trials at once", flush=True)
    best, found = {}, {}
    words = options.forms or [""]
    forms = {name: form for name, form in FORMS.items() if any(word in name for word in words)}
    for name, form in forms.items():
        duration, (best[name], worth) = seconds(constant, form, 5 if options.quick else 20)
        found_at = f"margin {worth:+.3f} at p = 50; {duration:.0f} s"
        print(f"  {name:<30} c = {best[name]:<4g} ({found_at})", flush=True)
    for p in sizes:
        truths = [regular_gaussian(p, 3, KAPPA, rng=seed) for seed in range(graphs)]
        for name, form in forms.items():
            started, values = time.perf_counter(), []
            for seed, truth in enumerate(truths):
                trial = partial(succeeds, form, best[name], truth)
                found_n = smallest_n(trial, start=below(trial, successes), successes=successes, n_jobs=CORES, rng=seed)
                values.append(found_n.n)
            found[p, name] = np.mean(values)
            error = np.std(values, ddof=1) / np.sqrt(graphs) if graphs > 1 else np.nan
            taken = time.perf_counter() - started
            print(f"  p = {p:<4} {name:<30} n* = {found[p, name]:6.0f} ± {error:.0f}  ({taken:.0f} s)", flush=True)
    print()
    for p in sizes if COVARIANCE in forms else ():
        least = found[p, COVARIANCE]
        for name in [name for name in forms if name != COVARIANCE]:
            print(f"p = {p}, n* of {name} / of graphical lasso: {found[p, name] / least:.2f}")


if __name__ == "__main__":
    main()
