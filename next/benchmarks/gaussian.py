"""Gaussian data fitted at degree 4: p = 6, the score on 20,000 new rows below the truth's, nats per variable.

python benchmarks/gaussian.py [--sets 50]
"""

import argparse
import warnings

import numpy as np
from common import in_processes, mean_se, write_table
from common.models import random_precision

from isodus import PseudoLikelihood, datasets
from isodus.fit.gaussian import Gaussian


def loss(n, seed):
    """The loss, notes of severity warning, and the held-out gain."""
    P = random_precision(6, seed)
    X, new = (
        datasets.gaussian(n, P, seed=np.random.default_rng([seed, 1])),
        datasets.gaussian(20_000, P, seed=np.random.default_rng([seed, 2])),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = PseudoLikelihood(4, n_jobs=1).fit(X)
        score = est.score_samples(new)
    truth = Gaussian(np.zeros(6), P).node_scores(new).mean(axis=1)
    kinds = [note.kind for note in est.notes_ if note.severity == "warning"]
    return float(np.mean(truth - score)), kinds, bool(np.isfinite(score).all()), est.status_


def main():
    """One row per size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=50)
    sets, rows = parser.parse_args().sets, []
    for n, goal in ((1000, 0.022), (10_000, 0.002), (100_000, 0.0005)):
        found = in_processes(loss, [(n, seed) for seed in range(sets)])
        losses = [row[0] for row in found]
        warned = [row for row in found if row[1]]
        other = sorted({kind for row in found for kind in row[1]} - {"held out"})
        true = sum(row[0] > 0.01 for row in warned)
        converged = sum(row[3] == "converged" and row[2] for row in found)
        mean, se = mean_se(losses)
        said = f"{len(warned)} of {sets}, true in {true}; others: {', '.join(other) or 'none'}"
        rows.append((n, f"{mean:.5f} ± {se:.5f}", goal, f"{max(losses):.4f}", said, f"{converged} of {sets}"))
    header = ("n", "mean loss", "goal", "worst", "held-out warnings", "converged, finite scores")
    write_table("gaussian", header, rows, f"{__doc__.strip()}\n\n{sets} sets, seeds 0 to {sets - 1}.")


if __name__ == "__main__":
    main()
