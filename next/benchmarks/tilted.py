"""How far ISODUS with a tilted reference ends from pseudo-likelihood's optimum, and how often its pilot is of a part.

Where the pilot is fitted on a part of the rows the answer is interaction screening's, else pseudo-likelihood's. Both
are fitted to the same rows with tol = 1e-6; a distance is that of the term that is farthest, in its standard errors:
over the fitted functions, and over the coefficients in powers of x.

Models of the family, 200 and 800 rows per local parameter: the goal is a part of the rows in 95 % of the sets. The
others are not of the family (t3, lognormal, Cauchy, clusters: three columns), or hard: the goal is never above .5, and
that every fit converges.

    python benchmarks/tilted.py [--sets 45] [--hard 10] [--quick]
"""

import argparse
import sys
import time
import warnings

import numpy as np
from common import in_processes, share, write_table
from common.models import OFF_CENTRE, PAPER, WELLS, Known, clusters, lognormal, quartic_pair, student

from isodus import ISODUS, IsodusWarning, PseudoLikelihood, datasets

_SHIFTED = dict(p=2, height=(2.0, 4.0), shift=20.0)
FAMILY = (
    {name: model for name, model in PAPER.items() if "Gaussian" not in name}  # which has a closed form, and no pilot
    | {
        "pair (2, 2)": Known(
            lambda n, seed: datasets.paper_pair(n, seed, 2), datasets.paper_pair_theta(2), dict(min_degree=2)
        )
    }
    | WELLS
    | OFF_CENTRE
    | {
        "skewed, p = 4": Known(lambda n, seed: datasets.skewed(n, 4, seed), datasets.skewed_theta(4), {}),
        "wells of 2 and 4 at 20": Known(
            lambda n, seed: datasets.double_wells(n, seed=seed, **_SHIFTED),
            datasets.double_wells_theta(**_SHIFTED),
            {},
        ),
    }
)
HARD = {
    "t3": lambda n, seed: student(3.0)(n, 3, np.random.default_rng(seed)),
    "lognormal": lambda n, seed: lognormal(n, 3, np.random.default_rng(seed)),
    "Cauchy": lambda n, seed: student(1.0)(n, 3, np.random.default_rng(seed)),
    "clusters": lambda n, seed: clusters(n, 3, np.random.default_rng(seed)),
    "½x² + 4(y − .6x²)²": lambda n, seed: datasets.curved(n, seed),
    "ρ = .99, quartic terms": lambda n, seed: quartic_pair(n, 0.99, seed),
}
SIZES, DEGREES = (500, 1_000, 4_000, 16_000), (4, 6)
PER_PARAMETER = (200, 800)


def compared(X, terms):
    """Both fits: a part of the rows or not, distances in τ and in powers, converged both, raw warnings, seconds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.process_time()
        screening = ISODUS(**terms, tol=1e-6, n_jobs=1).fit(X)
        between = time.process_time()
        exact = PseudoLikelihood(**terms, tol=1e-6, n_jobs=1).fit(X)
        seconds = between - started, time.process_time() - between
    a, b = screening.model_.polynomial(), exact.model_.polynomial()
    error = np.sqrt(np.diagonal(exact.model_.fitted.tau_covariance()))
    tau = np.max(np.abs(screening.model_.tau - exact.model_.tau) / error)
    powers = np.max(np.abs(a.coefficients - b.coefficients) / b.stderr)
    raw = [w.category.__name__ for w in caught if not issubclass(w.category, IsodusWarning)]
    return (
        screening.pilot_rows_ < len(X),
        float(tau),
        float(powers),
        screening.status_ == exact.status_ == "converged",
        raw,
        *seconds,
    )


def of_family(name, per, seeds):
    """The row of a model of the family."""
    model, m = FAMILY[name], local_parameters(name)
    found = [compared(model.draw(per * m, seed), model.terms) for seed in seeds]
    return shown(name, f"{per * m:,} = {per} × {m}", *row(found, "part"))


def local_parameters(name):
    """Unknowns of the node that has most."""
    model = FAMILY[name]
    return PseudoLikelihood(**model.terms).objective(model.draw(1000, 0)).terms.m


def of_hard(name, n, degree, seeds):
    """The row of a hard model."""
    found = [compared(HARD[name](n, seed), dict(degree=degree)) for seed in seeds]
    return shown(f"{name}, degree {degree}", f"{n:,}", *row(found, "distance"))


def shown(*cells):
    """A row, printed as soon as it is there."""
    print(*cells, sep=" | ", file=sys.stderr, flush=True)
    return cells


def row(found, goal):
    """Cells: part of the rows, distances, statuses, seconds."""
    part, tau, powers, converged, raw, s, s_exact = zip(*found, strict=True)
    misses = [] if all(converged) else [f"{len(found) - sum(converged)} not converged"]
    misses += [*dict.fromkeys(category for each in raw for category in each)]
    if goal == "part" and np.mean(part) < 0.95:
        misses.append("**not a part**")
    if goal == "distance" and not max(tau) <= 0.5:
        misses.append("**too far**")
    worst = f"{np.median(tau):.3f}", f"{max(tau):.3f}", f"{max(powers):.3f}"
    return share(sum(part), len(part)), *worst, f"{np.mean(s):.2f} {np.mean(s_exact):.2f}", ", ".join(misses)


def main():
    """One row per model and size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=45)
    parser.add_argument("--hard", type=int, default=10, help="sets of each hard model, size and degree")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--quick", action="store_true", help="5 sets of each, n up to 4,000")
    parser.add_argument("--only", nargs="+", help="parts of names")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    sets, hard, sizes = (5, 5, SIZES[:3]) if args.quick else (args.sets, args.hard, SIZES)

    def wanted(models):
        return [name for name in models if args.only is None or any(part in name for part in args.only)]

    seeds, few = range(args.first, args.first + sets), range(args.first, args.first + hard)
    family = [(name, per, seeds) for name in wanted(FAMILY) for per in PER_PARAMETER]
    others = [(name, n, degree, few) for name in wanted(HARD) for degree in DEGREES for n in sizes]
    rows = in_processes(of_family, family, args.processes) + in_processes(of_hard, others, args.processes)
    header = ("model", "n", "part of the rows", "median", "worst", "worst in powers", "s: ISODUS PL", "misses")
    write_table("tilted", header, rows, f"{__doc__.strip()}\n\n{sets} and {hard} sets.")


if __name__ == "__main__":
    main()
