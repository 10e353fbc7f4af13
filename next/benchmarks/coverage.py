"""How often 95 % intervals of terms in powers of x cover the truth, with the default ridge and without one.

Skewed variables: own terms, E = .5x² ± .15x³ + .05x⁴, p = 4, n = 1,000. The others: all terms, 100 rows per local
parameter, the same samples for both fits. Standard errors of a share, and of the difference, are those over sets.
The ridge was chosen on these seeds.

    python benchmarks/coverage.py [--sets 150] [--first 0 1000]
"""

import argparse

import numpy as np
from common import in_processes, mean_se, write_table
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
    """The share of covered intervals and whether the fit converged, with the ridge and without."""
    draw, truth, own = MODELS[name]
    X, out = draw(seed), []
    for penalty in ("weak", None):
        est = PseudoLikelihood(4, penalty=penalty, n_jobs=1).fit(X)
        view = est.model_.polynomial()
        keep = np.array([not own or len(set(key)) == 1 for key in view.keys])
        z = (view.coefficients - [truth.get(key, 0.0) for key in view.keys]) / view.stderr
        out += [float(np.mean(np.abs(z[keep]) < 1.959964)), est.status_ == "converged"]
    return out


def main():
    """One row per model and first seed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=150)
    parser.add_argument("--first", type=int, nargs="+", default=[0, 1000], help="the first seed of each row")
    args = parser.parse_args()
    sets, rows = args.sets, []
    for name in MODELS:
        for first in args.first:
            last = first + sets - 1
            found = np.array(in_processes(covered, [(name, seed) for seed in range(first, last + 1)]))
            a, done, b, done_b = found.T
            shares = ["{:.1f} ± {:.1f} %".format(*mean_se(100 * x)) for x in (a, b, a - b)]
            rows.append((name, f"{first} to {last}", *shares, f"{done.sum():.0f}, {done_b.sum():.0f} of {sets}"))
    header = ("model", "seeds", "default", "no ridge", "difference", "converged")
    write_table("coverage", header, rows, __doc__)


if __name__ == "__main__":
    main()
