"""Samples that are not in memory: a generated stream of any length, and Dask with 1, 2 and 4 worker processes.

    python benchmarks/streams.py            n = 2e6 to 8e6, and Dask; two minutes
    python benchmarks/streams.py --rows 2e8 the stream alone, with so many rows

The stream is the paper's four-dimensional model, degree 4, sampled exactly, block by block, each from its number. Peak
memory is that of the process, all of it; seconds of sampling alone, as many passes as the fit made, are beside those of
the fit. z: root mean square over terms of (estimate − truth)/standard error, about 1 where both are right.
"""

import argparse
import resource
import time

import numpy as np

from isodus import ISODUS, open_samples
from isodus.datasets import paper_4d

BLOCK = 200_000
ROUNDS = 7
TERMS = dict(degree=4, min_degree=2)


def blocks(truth, rows, passes):
    """Blocks of so many rows in all; passes: a list that counts how often they were made."""

    def make():
        passes.append(0)
        for k in range(rows // BLOCK):
            yield truth.sample(BLOCK, rng=k)

    return make


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # kilobytes on Linux


def stream(rows, memory):
    truth, passes = paper_4d(), []
    started = time.perf_counter()
    for _ in range(5):
        truth.sample(BLOCK, rng=1)
    sampling = (time.perf_counter() - started) / 5 / BLOCK
    source = open_samples(blocks(truth, rows, passes), memory=memory)
    passes.clear()
    started = time.perf_counter()
    est = ISODUS(**TERMS, n_jobs=2).fit(source)
    took = time.perf_counter() - started
    model, known = est.model_, truth.to_dict()
    error = np.array([theta - known.get(term, 0.0) for term, theta in model.to_dict().items()])
    z = np.sqrt(np.nanmean((error / model.stderr()) ** 2))
    print(
        f"{rows:>12,} {rows * 32 / 1e9:>8.2f} {peak():>8.2f} {len(passes):>7} {took:>9.1f} "
        f"{sampling * rows * len(passes):>9.1f} {z:>6.2f}",
        flush=True,
    )


def dask(rows):
    import dask.array as da
    from distributed import Client, LocalCluster

    X = np.asarray(paper_4d().sample(rows, rng=0))

    def seconds(data):
        started = time.perf_counter()
        est = ISODUS(**TERMS, n_jobs=1).fit(data)
        return time.perf_counter() - started, est.model_.theta

    print(f"\nDask, n = {rows:,}, p = 4, degree 4; {ROUNDS} times in turn, medians (least) in seconds")
    print(f"{'processes':>12} {'Dask':>14} {'in memory':>14} {'as a stream':>14} {'Dask / memory':>16} differs by")
    for workers in (1, 2, 4):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
            Client(cluster) as client,
        ):
            data = da.from_array(X, chunks=(rows // 8, 4)).persist()
            client.cancel([])
            seconds(data)
            stream = open_samples(lambda: [X])
            turns = [(seconds(data), seconds(X), seconds(stream)) for _ in range(ROUNDS)]
            took = np.array([[one[0] for one in turn] for turn in turns])
            middle, least = np.median(took, axis=0), took.min(axis=0)
            off = np.max(np.abs(turns[0][0][1] / turns[0][2][1] - 1))
            shown = " ".join(f"{m:>7.2f} ({b:.2f})" for m, b in zip(middle, least, strict=True))
            ratio = f"{middle[0] / middle[1]:.2f} ({least[0] / least[1]:.2f})"
            print(f"{workers:>12} {shown} {ratio:>16} {off:.0e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float)
    parser.add_argument("--memory", default="500MB")
    options = parser.parse_args()
    print(f"stream, p = 4, degree 4, blocks of {BLOCK:,} rows, memory={options.memory}, two threads")
    print(f"{'n':>12} {'data GB':>8} {'peak GB':>8} {'passes':>7} {'seconds':>9} {'sampling':>9} {'z':>6}")
    for rows in [int(options.rows)] if options.rows else [2_000_000, 4_000_000, 8_000_000]:
        stream(rows, options.memory)
    if not options.rows:
        dask(1_000_000)


if __name__ == "__main__":
    main()
