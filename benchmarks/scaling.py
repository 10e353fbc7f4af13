"""How do time and memory grow with the number of samples?

Time: the paper's two-variable case (see paper_2d.py) at n = 1e5 and 1e6, from raw X. Memory: the paper's
four-variable model, all terms of degree 2 to 4, at n = 1e7; peak of the process above the data themselves,
read from the operating system.

    python benchmarks/scaling.py [--repeats 7]
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from isodus import ISODUS
from isodus.datasets import paper_4d, paper_pair


def seconds(X):
    started = time.perf_counter()
    ISODUS(min_degree=2, nu=2.0, center=False, scale=False, refine=0, n_jobs=2).fit(X)
    return time.perf_counter() - started


def memory():
    """Gigabytes above the data of a fit with n = 1e7 and p = 4, and its seconds; in a process of its own."""
    n = 10_000_000
    part = paper_4d().sample(100_000, rng=0)
    X = np.empty((n, 4))
    for start in range(0, n, len(part)):
        X[start : start + len(part)] = np.random.default_rng(start).permutation(part)
    ISODUS(min_degree=2, max_order=None).fit(X[:10_000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    ISODUS(min_degree=2, max_order=None, n_jobs=2).fit(X)
    duration = time.perf_counter() - started
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6, duration)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        return memory()
    X = paper_pair(1).sample(1_000_000, rng=0)
    times = {100_000: [], 1_000_000: []}
    seconds(X[:100_000])
    for _ in range(options.repeats):
        times[1_000_000].append(seconds(X))
        times[100_000] += [seconds(X[:100_000]) for _ in range(5)]
    for n, durations in times.items():
        print(f"n = {n:9,}: median {np.median(durations) * 1e3:7.1f} ms, fastest {np.min(durations) * 1e3:7.1f} ms")
    command = [sys.executable, __file__, "--memory"]
    gigabytes, duration = map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    print(f"n = 10,000,000, p = 4, 65 terms: {duration:.1f} s; the data take {10_000_000 * 4 * 8 / 1e9:.2f} GB")
    print(f"memory above the data at n = 1e7, p = 4: {gigabytes:.2f} GB (wanted: below 1)")
    ratio = np.median(times[1_000_000]) / np.median(times[100_000])
    print(f"time for n = 1e6 / time for n = 1e5: {ratio:.2f} (wanted: at most 10)")


if __name__ == "__main__":
    main()
