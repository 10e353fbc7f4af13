"""How do isodus and its peers compare, in accuracy and in time, on the same samples?

Five tasks: the graph of a Gaussian (p = 100, 300 and 1,000; with a penalty that is told, and with one that is chosen
from the samples), the graph of a lattice of double wells, interactions of up to four variables, the parameters of the
paper's models, and the fit to held-out halves of real data. Everything runs on one core, ours and theirs, and seconds
are those of the processor. Every method
gets the raw samples of the same sets; set k has the model of seed k and the samples of seed 1000 + k. A fit that takes
longer than 60 s is stopped, and larger sizes are not tried; a method that took 30 s at a size gets no more sets there.
What is not installed is said to be so. A peer is better or worse if it is so by two standard errors of the paired
differences (by any, where there is one set) and by 0.1 %.

With --write, the tables go between two markers of a page, and nothing else of it changes. Every figure of every set is
kept in benchmarks/results/peers.json; with --only, those of the other tasks are taken from there.

    python benchmarks/peers.py [--quick] [--only wells] [--write docs/benchmarks.md]
"""

import argparse
import datetime
import os
import platform
import time
from pathlib import Path

import r_huge
from peers_fit import HELD_OUT, PARAMETERS, held_out, parameters
from peers_structure import CHOSEN, FOURBODY, TOLD, WELLS, fourbody, gaussian, gaussian_chosen, wells
from peers_table import ABSENT, block, installed, keep, replace, say
from threadpoolctl import threadpool_limits

import isodus

PEERS = ("scikit-learn", "skglm", "gglasso", "casadi", "numpyro", "jax", "numba")
RESULTS = Path(__file__).parent / "results" / "peers.json"
TASKS = {
    "gaussian": gaussian,
    "gaussian_chosen": gaussian_chosen,
    "wells": wells,
    "fourbody": fourbody,
    "parameters": parameters,
    "held_out": held_out,
}


def header(quick):
    """What was run, when and where."""
    versions = ", ".join(f"{name} {installed(name) or ABSENT}" for name in PEERS)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    r = f"R's huge {r_huge.version() or ABSENT}"
    return (
        f"`python benchmarks/peers.py{' --quick' if quick else ''} --write docs/benchmarks.md` on "
        f"{datetime.date.today()}: isodus {isodus.__version__}, Python {platform.python_version()}, {versions}, {r}; "
        f"{processor}, {os.cpu_count()} cores, every fit on one. Means over sets with their "
        "standard errors; seconds are processor time of a fit from raw samples, means too. A peer is more or less "
        "accurate if it is so by two standard errors of the differences set by set, and by 0.1 %."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, two sets")
    parser.add_argument("--only", nargs="+", choices=[*TASKS], default=[*TASKS])
    parser.add_argument("--write", help="a page with the markers")
    options = parser.parse_args()
    rows = []
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # of JAX and numba, too
    with threadpool_limits(1):
        for name in options.only:
            began = time.perf_counter()
            own = list(TASKS[name](options.quick))
            say(f"{name}: {time.perf_counter() - began:.0f} s")
            rows = keep(RESULTS, own) if options.write else [*rows, *own]
    text = block((TOLD, CHOSEN, WELLS, FOURBODY, PARAMETERS, HELD_OUT), rows, header(options.quick))
    print(text)
    if options.write:
        replace(options.write, text)


if __name__ == "__main__":
    main()
