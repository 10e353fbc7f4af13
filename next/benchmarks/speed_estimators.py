"""Times of the estimators beside the present library's on the same samples, in one run, the best of some.

Whole fits with standard errors. "power" is ISODUS with PowerReference(nu=2) and consensus by precision; in the present
library nu=2 with refine=0. Seconds of the clock use all cores; those of the processor, which other work on the machine
disturbs less, are of fits on one thread. A ratio is marked above 1.2.

    python benchmarks/speed_estimators.py [--times 3] [--only NAME ...]
"""

import argparse
import sys
import time
import warnings

from common import Present, best_of, machine, write_table

from isodus import ISODUS, PowerReference, PseudoLikelihood, ScoreMatching, datasets

TASKS = {
    "Sachs 7,466 × 11, degree 4": (lambda: datasets.sachs().to_numpy(), {}),
    "pair of the paper, n = 1e5": (lambda: datasets.paper_pair(100_000), {}),
    "4D of the paper, 65 terms, n = 1e5": (lambda: datasets.paper_4d(100_000), dict(min_degree=2, max_order=4)),
    "Gaussian p = 10, degree 2, n = 1e5": (
        lambda: datasets.gaussian(100_000, datasets.paper_precision()),
        dict(degree=2),
    ),
}
ESTIMATORS = {
    "ISODUS": ISODUS,
    "PL": PseudoLikelihood,
    "SM": ScoreMatching,
    "power": lambda **terms: ISODUS(**terms, reference=PowerReference(2.0), consensus="precision"),
}
PRESENT = """
import time
import isodus
ESTIMATORS = {
    "ISODUS": isodus.ISODUS,
    "PL": isodus.PseudoLikelihood,
    "SM": isodus.ScoreMatching,
    "power": lambda **terms: isodus.ISODUS(**terms, refine=0, nu=2.0, consensus="precision"),
}
def answer(job):
    times = []
    for n_jobs, clock in ((None, time.perf_counter), (1, time.process_time)):
        runs = []
        for _ in range(job['times']):
            started = clock()
            ESTIMATORS[job["estimator"]](**job["terms"], n_jobs=n_jobs).fit(job["X"])
            runs.append(clock() - started)
        times.append(min(runs))
    return times
"""


def processor(make, terms, X, times):
    """The least seconds of the processor of a few fits on one thread."""
    least = float("inf")
    for _ in range(times):
        started = time.process_time()
        make(**terms, n_jobs=1).fit(X)
        least = min(least, time.process_time() - started)
    return least


def one_row(task, label, present, times):
    """Seconds of both libraries."""
    draw, terms = TASKS[task]
    X, make = draw(), ESTIMATORS[label]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clock, est = best_of(lambda: make(**terms).fit(X), times)
        alone = processor(make, terms, X, times)
    clock_before, before = present.ask(X=X, terms=terms, estimator=label, times=times)
    shown = [f"{seconds:.3f}" for seconds in (clock, clock_before, alone, before)]
    ratios = [f"{r:.2f}" if r <= 1.2 else f"**{r:.2f}**" for r in (clock / clock_before, alone / before)]
    row = task, label, *shown[:2], ratios[0], *shown[2:], ratios[1], est.status_
    print(*row, sep=" | ", file=sys.stderr, flush=True)
    return row


def main():
    """One row per task and estimator."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", help="parts of names")
    parser.add_argument("--times", type=int, default=3, help="of which the best counts")
    args = parser.parse_args()
    only, rows = args.only, []
    with Present(PRESENT) as present:
        for task in TASKS:
            if only is None or any(part in task for part in only):
                rows += [one_row(task, label, present, args.times) for label in ESTIMATORS]
    header = ("task", "estimator", "s", "present, s", "ratio", "processor, s", "present, s", "ratio", "status")
    write_table("speed_estimators", header, rows, f"{__doc__.strip()}\n\nBest of {args.times}. {machine()}.")


if __name__ == "__main__":
    main()
