"""How often 95 % intervals of terms in powers of x cover the truth, with the default ridge and without one.

Skewed variables: own terms, E = .5x² ± .15x³ + .05x⁴, p = 4, n = 1,000. The others: all terms, 100 rows per local
parameter, the same samples for both fits.

    python benchmarks/coverage.py [--sets 150]
"""

import argparse

import numpy as np
from common import in_processes, share, write_table
from common.models import quartic_pair, quartic_pair_theta

from isodus import PseudoLikelihood, datasets

MODELS = {
    "skewed, own terms": (lambda s: datasets.skewed(1000, 4, seed=s), datasets.skewed_theta(4), True),
    "½x² + 4(y − .6x²)²": (lambda s: datasets.curved(1000, seed=s), datasets.curved_theta(), False),
    "wells of height 2 and 4, shifted by 20": (
        lambda s: datasets.double_wells(1000, 2, height=(2.0, 4.0), shift=20.0, seed=s),
        datasets.double_wells_theta(2, height=(2.0, 4.0), shift=20.0),
        False,
    ),
    "ρ = .9, quartic terms": (lambda s: quartic_pair(1000, 0.9, s), quartic_pair_theta(0.9), False),
    "ρ = .99, quartic terms": (lambda s: quartic_pair(1000, 0.99, s), quartic_pair_theta(0.99), False),
}


def covered(name, seed):
    """Covered and all intervals, with the ridge and without; and whether both fits converged."""
    draw, truth, own = MODELS[name]
    X, out = draw(seed), []
    for penalty in ("weak", None):
        est = PseudoLikelihood(4, penalty=penalty, n_jobs=1).fit(X)
        view = est.model_.polynomial()
        keep = np.array([not own or len(set(key)) == 1 for key in view.keys])
        z = (view.coefficients - [truth.get(key, 0.0) for key in view.keys]) / view.stderr
        out += [int(np.sum(np.abs(z[keep]) < 1.959964)), int(keep.sum()), est.status_ == "converged"]
    return out


def main():
    """One row per model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=150)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    args = parser.parse_args()
    sets, first = args.sets, args.first
    rows = []
    for name in MODELS:
        found = np.array(in_processes(covered, [(name, seed) for seed in range(first, first + sets)]))
        a, total, done, b, _, done_b = found.sum(axis=0)
        rows.append((name, total, share(a, total), share(b, total), f"{done}, {done_b} of {sets}"))
    header = ("model", "intervals", "default", "no ridge", "converged")
    write_table("coverage", header, rows, f"{__doc__.strip()}\n\n{sets} sets, seeds {first} to {first + sets - 1}.")


if __name__ == "__main__":
    main()
