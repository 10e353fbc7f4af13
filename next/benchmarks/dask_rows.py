"""Fits of Dask arrays beside the present library's, on the same rows in one run; seconds of the processor.

PseudoLikelihood and ISODUS of degree 4 with standard errors, on a pair of the paper and four variables with two
products, in ten partitions: "local" without a cluster (one thread), "workers" on two worker processes of one thread
each, whose seconds are added. Each number is the least of some fits. "memory" is this library's fit of the same rows in
memory (131,072 rows or fewer are in memory anyway), and the last column the
largest difference of an estimate to it in standard errors, at the default `tol`.

    python benchmarks/dask_rows.py [--times 2] [--rows 200000]
"""

import argparse
import inspect
import sys
import time
import warnings

import numpy as np

sys.modules["sparse"] = None  # a benchmark has the name of a library that Dask looks for

import dask  # noqa: E402
import dask.array as da  # noqa: E402
from common import Present, machine, write_table  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from isodus import ISODUS, PseudoLikelihood, datasets  # noqa: E402

PARTITIONS = 10
SAMPLES = {"pair": datasets.paper_pair, "four": lambda n: datasets.butterfly(n, pairs=2)}
ESTIMATORS = {"PseudoLikelihood": PseudoLikelihood, "ISODUS": ISODUS}


def seconds(make, X, times, client=None):
    """The least of some fits of a Dask array, workers included, and the estimator."""
    D = da.from_array(X, chunks=(-(-len(X) // PARTITIONS), X.shape[1]))
    D = D.persist() if client is not None else D
    now = lambda: time.process_time() + (0 if client is None else sum(client.run(time.process_time).values()))
    found = []
    for _ in range(times):
        started = now()
        est = make().fit(D)
        found.append(now() - started)
    return min(found), est


PRESENT = f"""
import warnings
warnings.simplefilter("ignore")
import time
import dask, isodus
import dask.array as da
from distributed import Client, LocalCluster
PARTITIONS = {PARTITIONS}
{inspect.getsource(seconds)}
def answer(job):
    make = lambda: getattr(isodus, job["estimator"])(degree=4, n_jobs=1)
    if not job["workers"]:
        with dask.config.set(scheduler="synchronous"):
            return seconds(make, job["X"], job["times"])[0]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        with Client(cluster) as client:
            seconds(make, job["X"][:20_000], 1, client)
            return seconds(make, job["X"], job["times"], client)[0]
"""


def here(make, X, times, workers):
    """Seconds and the estimator."""
    if not workers:
        with dask.config.set(scheduler="synchronous"):
            return seconds(make, X, times)
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        seconds(make, X[:20_000], 1, client)  # imports
        return seconds(make, X, times, client)


def in_memory(make, X, times):
    found = []
    for _ in range(times):
        started = time.process_time()
        est = make().fit(X)
        found.append(time.process_time() - started)
    return min(found), est


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--rows", type=int, default=200_000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    with Present(PRESENT) as present:
        for task, sample in SAMPLES.items():
            X = sample(args.rows)
            for name, estimator in ESTIMATORS.items():
                make = lambda estimator=estimator: estimator(4, n_jobs=1)
                memory, reference = in_memory(make, X, args.times)
                se = np.sqrt(np.diag(reference.model_.fitted.covariance))
                for workers in (False, True):
                    new, est = here(make, X, args.times, workers)
                    old = present.ask(X=X, estimator=name, workers=workers, times=args.times)
                    ratio = f"{new / old:.2f}" + " (!)" * (new > 1.2 * old)
                    apart = f"{np.abs((est.model_.theta - reference.model_.theta) / se).max():.1e}"
                    rows.append((task, name, "workers" if workers else "local", new, old, ratio, memory, apart))
                    print(*rows[-1], flush=True)
    header = ("samples", "estimator", "where", "Dask (s)", "present (s)", "ratio", "memory (s)", "apart (SE)")
    about = f"{__doc__}\nn = {args.rows:,}, the least of {args.times} fits; {machine()}."
    write_table("dask_rows", header, rows, about)


if __name__ == "__main__":
    main()
