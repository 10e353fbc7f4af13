"""Structure without correlations: five pairs Y = WX, W and X independent standard normal, at q < 5 %.

Degree 4, pairs, 45 score tests per set.

    python benchmarks/butterfly.py [--sets 20] [--rows 500]
"""

import argparse
import warnings

from common import in_processes, write_table

from isodus import PseudoLikelihood, datasets

PAIRS = [(2 * k, 2 * k + 1) for k in range(5)]


def found(scale, n, seed):
    """True and false interactions, and status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = PseudoLikelihood(4, scale=scale, n_jobs=1).fit(datasets.butterfly(n, seed=seed))
        table = est.model_.interactions()
    keys = set(table.index[table["q_value"] < 0.05])
    return len(keys & set(PAIRS)), len(keys - set(PAIRS)), est.status_


def main():
    """One row per scale."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rows", type=int, default=500)
    args, rows = parser.parse_args(), []
    for scale in ("robust", "cdf"):
        each = in_processes(found, [(scale, args.rows, seed) for seed in range(args.first, args.first + args.sets)])
        true, false = (sum(row[k] for row in each) for k in (0, 1))
        converged = sum(row[2] == "converged" for row in each)
        false_share = 100 * false / max(1, true + false)
        rows.append((scale, f"{true} of {5 * args.sets}", f"{false} ({false_share:.0f} % of what is found)", converged))
    header = ("scale", "found", "false", "converged")
    about = f"{__doc__.strip()}\n\nn = {args.rows}, {args.sets} sets, seeds from {args.first} on."
    write_table("butterfly", header, rows, about)


if __name__ == "__main__":
    main()
