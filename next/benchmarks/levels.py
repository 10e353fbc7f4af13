"""How often score tests of interactions that are absent reject at 5 %.

Non-neighbours in a chain of four wells of height 1, coupled by +1.5 in even sets and −1.5 in odd ones; four
independent skewed variables. Degree 4, pairs, default fit.

    python benchmarks/levels.py [--tests 4000]
"""

import argparse

import numpy as np
from common import in_processes, share, write_table
from scipy.stats import chi2

from isodus import PseudoLikelihood, datasets

NULL = {"wells": [(0, 2), (0, 3), (1, 3)], "skewed": [(i, j) for i in range(4) for j in range(i + 1, 4)]}


def p_values(model, n, seed):
    """p of score tests and of Wald's for each null pair."""
    if model == "wells":
        X = datasets.double_wells(n, 4, height=1.0, coupling=1.5 * (-1) ** seed, seed=seed)
    else:
        X = datasets.skewed(n, 4, seed=seed)
    est = PseudoLikelihood(4, n_jobs=1).fit(X)
    table = est.model_.interactions()
    covariance, out = est.model_.fitted.tau_covariance(), []
    for pair in NULL[model]:
        block = est.model_.terms.interactions[pair]
        theta = est.model_.tau[block]
        wald = theta @ np.linalg.solve(covariance[np.ix_(block, block)], theta)
        out.append((table.loc[[pair], "p_value"].iloc[0], chi2.sf(wald, len(block))))
    return out


def main():
    """One row per model and size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tests", type=int, default=4000)
    tests, rows = parser.parse_args().tests, []
    for model, null in NULL.items():
        sets = -(-tests // len(null))
        for n in (300, 1000):
            found = np.array(in_processes(p_values, [(model, n, seed) for seed in range(sets)])).reshape(-1, 2)
            score, wald = (found < 0.05).sum(axis=0)
            rows.append((model, n, len(found), share(score, len(found)), share(wald, len(found))))
    header = ("model", "n", "tests", "score tests below 5 %", "Wald below 5 %")
    write_table("levels", header, rows, f"{__doc__.strip()}\n\nSeeds from 0 on.")


if __name__ == "__main__":
    main()
