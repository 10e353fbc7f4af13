"""The paper's headline case side by side: how fast are the estimators, against Ipopt and adaptive integration?

The paper: ISODUS takes 9 s and pseudo-likelihood 7,000 times as long. Pair (1, 2), all terms of degree 2 to 4, n = 1e5,
from raw X. Ipopt through CasADi solves the node problems of the
paper's estimator (see paper_2d.py). All run in turn, several times, and medians are compared. Pseudo-likelihood
with SciPy's adaptive rule at every sample, as in the paper's baseline, is one pass over fewer samples, scaled by
their number and by the passes over all samples that the batched fit took. Last, the default fit of the eleven
Sachs proteins (log10, degree 4, pairs: 64 parameters a variable).

    python benchmarks/paper_speed.py [--repeats 5] [--adaptive 500]
"""

import argparse
import warnings

import numpy as np
from paper_2d import BASIS, MISSING, casadi, ipopt, seconds

from isodus import ISODUS, PseudoLikelihood, ScoreMatching
from isodus.datasets import load_sachs, paper_pair
from isodus.energy import local_parameters
from isodus.losses.pseudo_likelihood import PseudoLikelihoodLoss
from isodus.objective import Objective
from isodus.paper.methods import paper_isodus
from isodus.samples import ArraySamples


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--adaptive", type=int, default=500, help="samples for adaptive integration")
    options = parser.parse_args()
    if casadi is None:
        return print(MISSING)
    n = 100_000
    X = paper_pair(1).sample(n, rng=0)
    peers = {
        "ISODUS, paper's settings": lambda: paper_isodus(basis=BASIS).fit(X),
        "ISODUS, default": lambda: ISODUS(basis=BASIS).fit(X),
        "pseudo-likelihood": lambda: PseudoLikelihood(basis=BASIS).fit(X),
        "score matching": lambda: ScoreMatching(basis=BASIS).fit(X),
    }
    durations = {name: [] for name in ("Ipopt", *peers)}
    for function in peers.values():
        function()
    for _ in range(options.repeats):
        durations["Ipopt"].append(seconds(lambda: [ipopt(X, i) for i in (0, 1)])[0])
        for name, function in peers.items():
            durations[name] += [seconds(function)[0] for _ in range(3)]
    batched = peers["pseudo-likelihood"]()
    thetas = local_parameters(BASIS, batched.model_.theta, (0, 1))
    few = ArraySamples(X[: options.adaptive], None, batched.location_, batched.scale_)
    one_pass = Objective(BASIS, PseudoLikelihoodLoss(tol=1e-7, adaptive=True), few).evaluate
    passes = int(batched.n_iter_[0])
    slow = seconds(one_pass, (0, 1), thetas, True)[0] * n / few.n_rows * passes
    medians = {name: np.median(values) for name, values in durations.items()}
    papers = medians["ISODUS, paper's settings"]
    print(f"n = {n:,}, pair (1, 2), both nodes, from raw X; {options.repeats} rounds\n")
    print("| estimator | median, s | fastest, s | times ISODUS with the paper's settings |")
    print("| --- | --- | --- | --- |")
    for name, median in medians.items():
        print(f"| {name} | {median:.3f} | {min(durations[name]):.3f} | {median / papers:,.1f} |")
    print(f"| pseudo-likelihood, adaptive, {passes} passes, scaled | {slow:,.0f} | | {slow / papers:,.0f} |\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the data; real_data.py counts them
        sachs = min(seconds(lambda: ISODUS(n_jobs=2).fit(load_sachs()))[0] for _ in range(2))
    print(f"Sachs, default fit of all 11 variables, two threads: {sachs:.1f} s (wanted: below 15)")
    print(f"adaptive pseudo-likelihood / ISODUS, paper's settings: {slow / papers:,.0f}")
    print(f"adaptive pseudo-likelihood / pseudo-likelihood: {slow / medians['pseudo-likelihood']:,.0f}")
    for name, wanted in (("ISODUS, paper's settings", 40), ("ISODUS, default", 8), ("pseudo-likelihood", 3)):
        print(f"Ipopt / {name}: {medians['Ipopt'] / medians[name]:.1f} (wanted: at least {wanted})")


if __name__ == "__main__":
    main()
