"""Errors of three estimators beside one another and beside the present library's, on the same samples.

The error is the mean of |θ̂ − θ| over the terms of the fit, in powers of x, with the default penalty and tolerance.
A ratio of two errors is that of their means over sets, with the standard error of the paired sets. "ISODUS / PL" is
that of ISODUS over pseudo-likelihood, of this core; its goal is at most 1.01 and two standard errors. The next three
are those of this core over the present library; a row is named where one is above 1 by more than two standard errors.
"part" is the share of sets in which ISODUS' pilot is fitted on a part of the rows. Seconds are those of the processor,
on one thread, per fit with its standard errors; "I / PL" is of ISODUS over pseudo-likelihood in this core.

    python benchmarks/accuracy.py [--sets 45] [--many 15] [--quick] [--only NAME ...]
"""

import argparse
import sys
import warnings

import numpy as np
from common import Present, in_processes, one_thread_seconds, ratio_of_means, write_table
from common.models import OFF_CENTRE, PAPER, WELLS

from isodus import ISODUS, IsodusWarning, PseudoLikelihood, ScoreMatching

MODELS = PAPER | WELLS | OFF_CENTRE
SIZES = (3_000, 30_000, 100_000)
ESTIMATORS = {"ISODUS": ISODUS, "PL": PseudoLikelihood, "SM": ScoreMatching}
PRESENT = """
import time
import isodus
ESTIMATORS = {"ISODUS": isodus.ISODUS, "PL": isodus.PseudoLikelihood, "SM": isodus.ScoreMatching}
def answer(job):
    found = {}
    for name, make in ESTIMATORS.items():
        started = time.process_time()
        est = make(**job["terms"], n_jobs=1).fit(job["X"])
        seconds = time.process_time() - started
        status = getattr(est, "status_", ["converged"])
        keys = [[list(key), value] for key, value in est.model_.to_dict().items()]
        found[name] = [keys, seconds, set(np.atleast_1d(status).tolist()) == {"converged"}]
    return found
"""


def error(theta, truth):
    """Mean absolute error over the terms of a fit."""
    return np.mean([abs(value - truth.get(key, 0.0)) for key, value in theta.items()])


def fitted(est, X):
    """Seconds of a fit, the fit, and the categories of warnings that are not the library's own."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seconds, est = one_thread_seconds(lambda: est.fit(X))
    return seconds, est, [w.category.__name__ for w in caught if not issubclass(w.category, IsodusWarning)]


def one_row(name, n, sets, first):
    """A row of the table: all sets of one model and size."""
    model, e, s = MODELS[name], {}, {}
    parts, wrong = [], []
    with Present(PRESENT) as present:
        present.ask(X=model.draw(2000, 10**6), terms=model.terms)  # what is imported late
        for seed in range(first, first + sets):
            X = model.draw(n, seed)
            for label, make in ESTIMATORS.items():
                seconds, est, raw = fitted(make(**model.terms, n_jobs=1), X)
                e.setdefault(("next", label), []).append(error(est.model_.polynomial().to_dict(), model.theta))
                s.setdefault(("next", label), []).append(seconds)
                wrong += [f"{label} {est.status_}"] * (est.status_ != "converged")
                wrong += [f"{label} {category}" for category in raw]
                if label == "ISODUS":
                    parts.append(est.pilot_rows_ < n)
            for label, (theta, seconds, converged) in present.ask(X=X, terms=model.terms).items():
                theta = {tuple(key): value for key, value in theta}
                e.setdefault(("present", label), []).append(error(theta, model.theta))
                s.setdefault(("present", label), []).append(seconds)
                wrong += [f"present {label} not converged"] * (not converged)
    return summary(name, n, sets, e, s, parts, wrong)


def summary(name, n, sets, e, s, parts, wrong):
    """The cells of a row, with what misses its goal."""
    r, se = ratio_of_means(e["next", "ISODUS"], e["next", "PL"])
    if r > 1.01 + 2 * se:
        wrong.append("**ISODUS / PL**")
    cells = [f"{np.mean(e['next', 'PL']):.3g}", f"{r:.3f} ± {se:.3f}"]
    for label in ESTIMATORS:
        r, se = ratio_of_means(e["next", label], e["present", label])
        cells.append(f"{r:.3f} ± {se:.3f}")
        if r > 1 + 2 * se + 1e-6:
            wrong.append(f"**{label} less accurate**")
    cells += [f"{100 * np.mean(parts):.0f} %"]
    cells += [" ".join(f"{np.mean(s['next', label]):.2f}" for label in ESTIMATORS)]
    cells += [f"{np.mean(s['next', 'ISODUS']) / np.mean(s['next', 'PL']):.2f}"]
    times = {label: np.mean(s["next", label]) / np.mean(s["present", label]) for label in ESTIMATORS}
    cells += [" ".join(f"{ratio:.2f}" for ratio in times.values())]
    wrong += [f"**{label} slower**" for label, ratio in times.items() if ratio > 1.2]
    counted = [what if wrong.count(what) == 1 else f"{what} ({wrong.count(what)})" for what in dict.fromkeys(wrong)]
    row = name, f"{n:,}", sets, *cells, ", ".join(counted)
    print(*row, sep=" | ", file=sys.stderr, flush=True)
    return row


def main():
    """One row per model and size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=45)
    parser.add_argument("--many", type=int, default=15, help="sets of 100,000 rows")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--quick", action="store_true", help="10 sets, n up to 30,000")
    parser.add_argument("--only", nargs="+", help="parts of names")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    names = [name for name in MODELS if args.only is None or any(part in name for part in args.only)]
    sizes, sets = (SIZES[:2], 10) if args.quick else (SIZES, args.sets)
    jobs = [(name, n, args.many if n == SIZES[2] else sets, args.first) for n in sizes for name in names]
    rows = in_processes(one_row, jobs, args.processes)
    header = ("model", "n", "sets", "error of PL", "ISODUS / PL", "ISODUS", "PL", "SM", "part", "s: I PL SM", "I / PL")
    write_table("accuracy", (*header, "s over present: I PL SM", "misses"), rows, __doc__)


if __name__ == "__main__":
    main()
