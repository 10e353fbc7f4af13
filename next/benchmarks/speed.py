"""Times of fits and draws beside the present library's, in one run, best of three.

python benchmarks/speed.py [--only NAME ...]
"""

import argparse
import time
import warnings

import numpy as np
from common import best_of, machine, present, write_table

from isodus import PolynomialModel, PseudoLikelihood, datasets
from isodus._core.threads import one_blas_thread
from isodus.fit.learn import learn
from isodus.fit.penalties import WeakRidge

PRESENT = """
import json, time, numpy as np
from isodus import PseudoLikelihood, PolynomialModel
X = np.load({path!r})
times = []
for _ in range({times}):
    started = time.perf_counter()
    PseudoLikelihood(4).fit(X)
    times.append(time.perf_counter() - started)
print(json.dumps(min(times)))
"""
CHAIN = """
import json, time, numpy as np
from isodus import PolynomialModel
theta = {{(i, i): 1.0 for i in range({sites})}} | {{(i,) * 4: 0.25 for i in range({sites})}}
theta |= {{(i, i + 1): -1.0 for i in range({sites} - 1)}}
model = PolynomialModel.from_dict(theta)
times = []
for _ in range({times}):
    started, worked = time.perf_counter(), time.process_time()
    model.sample({draws}, 0)
    times.append((time.perf_counter() - started, time.process_time() - worked))
print(json.dumps([min(column) for column in zip(*times)]))
"""
SITES, DRAWS = 1000, 20_000


def fit(X, degree=4, scale="robust"):
    """Seconds of a default fit with standard errors, and of the fit alone."""

    @one_blas_thread()  # as in a fit
    def alone():
        return learn(PseudoLikelihood(degree, scale=scale).objective(X), WeakRidge())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole, est = best_of(lambda: PseudoLikelihood(degree, scale=scale).fit(X))
        return whole, best_of(alone)[0], f"{est.status_}, {len(est.model_.tau):,} unknowns"


def old(X, times=3):
    """Seconds of the present library's PseudoLikelihood(4)."""
    path = "/tmp/isodus_speed.npy"
    np.save(path, X)
    return present(PRESENT.format(path=path, times=times))


def sachs4():
    """Default fit of Sachs."""
    X = datasets.sachs().to_numpy()
    whole, alone, said = fit(X)
    return whole, alone, old(X), f"{said}; goal: half of the present library's"


def pair():
    """The pair of the paper."""
    X = datasets.paper_pair(100_000)
    whole, alone, said = fit(X)
    return whole, alone, old(X), f"{said}; goal: 1.5 times the present library's"


def sachs4_bounded():
    """Sachs on bounded axes."""
    return (*fit(datasets.sachs().to_numpy(), 4, "cdf")[:2], None, "")


def sachs8():
    """Sachs at degree 8 on bounded axes."""
    whole, alone, said = fit(datasets.sachs().to_numpy(), 8, "cdf")
    return whole, alone, None, f"{said}; goal 8 s"


def three():
    """Three variables at degree 8."""
    X = datasets.skewed(8540, 3, seed=1) @ np.array([[1, 0.4, 0.2], [0, 1, 0.4], [0, 0, 1]])
    whole, alone, said = fit(X, 8, "cdf")
    return whole, alone, None, f"{said}; goal 2 s"


def gibbs():
    """Gibbs sweeps on Sachs at degree 8, microseconds per cell and sweep."""
    X = datasets.sachs().to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PseudoLikelihood(8, scale="cdf").fit(X).model_
    from isodus.sampling import sample

    n, sweeps = 4096, 40
    few = best_of(
        lambda: sample(
            model.terms, model.theta, n, np.random.default_rng(0), start=X, method="chains", n_sweeps=2, n_jobs=2
        )
    )[0]
    many = best_of(
        lambda: sample(
            model.terms,
            model.theta,
            n,
            np.random.default_rng(0),
            start=X,
            method="chains",
            n_sweeps=2 + sweeps,
            n_jobs=2,
        )
    )[0]
    per = (many - few) / (n * 11 * sweeps) * 1e6
    return many, None, None, f"{per:.2f} µs per cell and sweep; goal 1"


def chain():
    """Exact draws of a chain of φ⁴ sites, best of five; the processor's seconds beside those of the clock."""
    theta = {(i, i): 1.0 for i in range(SITES)} | {(i,) * 4: 0.25 for i in range(SITES)}
    theta |= {(i, i + 1): -1.0 for i in range(SITES - 1)}
    model = PolynomialModel.from_dict(theta)
    times = []
    for _ in range(5):
        started, worked = time.perf_counter(), time.process_time()
        model.sample(DRAWS, random_state=0)
        times.append((time.perf_counter() - started, time.process_time() - worked))
    clock, processor = np.min(times, axis=0)
    before = present(CHAIN.format(sites=SITES, draws=DRAWS, times=5))
    said = f"processor {processor:.2f} s" + ("" if before is None else f", present library {before[1]:.2f} s")
    return clock, None, None if before is None else before[0], f"{said}; goal: not slower"


ROWS = {
    "Sachs 7,466 × 11, degree 4": sachs4,
    "pair of the paper, n = 1e5": pair,
    "Sachs, degree 4, bounded": sachs4_bounded,
    "Sachs, degree 8, bounded": sachs8,
    "three variables, n = 8,540, degree 8, bounded": three,
    "Gibbs on Sachs at degree 8": gibbs,
    "1,000 φ⁴ sites, 20,000 exact draws": chain,
}


def main():
    """One row per task."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", help="parts of names")
    only, rows = parser.parse_args().only, []
    for name, task in ROWS.items():
        if only is None or any(part in name for part in only):
            whole, alone, before, said = task()
            ratio = "" if before is None else f"{whole / before:.2f}"
            shown = ["" if value is None else f"{value:.2f}" for value in (whole, alone, before)]
            rows.append((name, *shown, ratio, said))
    header = ("task", "s", "fit alone, s", "present library, s", "ratio", "")
    write_table("speed", header, rows, f"{__doc__.strip()}\n\n{machine()}.")


if __name__ == "__main__":
    main()
