"""Fits of samples that are not in memory, beside the present library's, each in a process of its own.

A pair of correlated Gaussian columns at degree 4, from a function that makes blocks of 2^18 rows, from Parquet (row
groups of 2^18) and from CSV; "memory" is the fit to the same rows in memory. Reads of the source (the present library
counts the calls of the function), seconds of the processor on one thread (the function's included), the largest memory
of the process above that before the fit, in MiB, and how far θ is from that of memory, in standard errors ("off"). A
ratio is new over present.

    python benchmarks/streams.py [--rows 1e6 ...] [--only SOURCE ...] [--estimators NAME ...] [--alone]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from common import HERE, ROOT, machine, write_table

BLOCK = 1 << 18
CODE = """
import json, resource, sys, time
import numpy as np
import isodus
from isodus import ISODUS, PseudoLikelihood, ScoreMatching, open_samples
n, source, name, block, new = json.loads(sys.argv[1])
calls = []
def blocks():
    calls.append(0)
    rng = np.random.default_rng(0)
    for start in range(0, n, block):
        z = rng.standard_normal((min(block, n - start), 2))
        z[:, 1] = 0.5 * z[:, 0] + 0.8 * z[:, 1]
        yield z
power = (lambda **k: ISODUS(reference=isodus.PowerReference(2.0), consensus="precision", **k)) if new else (
    lambda **k: ISODUS(nu=2.0, refine=0, consensus="precision", **k))
make = dict(PL=PseudoLikelihood, SM=ScoreMatching, ISODUS=ISODUS, power=power)[name]
X = np.concatenate(list(blocks())) if source == "memory" else open_samples(blocks if source == "function" else source)
calls.clear()
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, started = peak(), time.process_time()
est = make(degree=4, n_jobs=1).fit(X)
took = time.process_time() - started
model = est.model_
se = np.sqrt(np.diag(model.fitted.covariance)).tolist() if new else []
print(json.dumps([getattr(X, "reads", len(calls)), took, peak() - before, np.asarray(model.theta).tolist(), se]))
"""


def measured(n, source, name, new):
    """Reads, seconds and MiB of one fit, θ and its standard errors."""
    python = sys.executable if new else str(ROOT / ".venv" / "bin" / "python")
    environment = os.environ | {
        "PYTHONPATH": str((HERE.parent if new else ROOT) / "src"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [python, "-W", "ignore", "-c", CODE, json.dumps([n, source, name, BLOCK, new])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def written(folder, n, kind):
    """The rows as a file."""
    path, rng = Path(folder) / f"d.{kind}", np.random.default_rng(0)
    writer, file = None, path.open("w") if kind == "csv" else None
    for start in range(0, n, BLOCK):
        z = rng.standard_normal((min(BLOCK, n - start), 2))
        z[:, 1] = 0.5 * z[:, 0] + 0.8 * z[:, 1]
        if file is not None:
            np.savetxt(file, z, fmt="%.17g", delimiter=",", header="a,b" if start == 0 else "", comments="")
            continue
        table = pa.table({"a": z[:, 0], "b": z[:, 1]})
        writer = writer or pa.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    for opened in (writer, file):
        if opened is not None:
            opened.close()
    return str(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=float, default=[1e6, 1e7])
    parser.add_argument("--only", nargs="+", default=["memory", "function", "parquet", "csv"])
    parser.add_argument("--estimators", nargs="+", default=["PL", "SM", "ISODUS", "power"])
    parser.add_argument("--alone", action="store_true", help="without the present library")
    given, rows, known = parser.parse_args(), [], {}
    for n in map(int, given.rows):
        for kind in given.only:
            with tempfile.TemporaryDirectory() as folder:
                source = kind if kind in ("memory", "function") else written(folder, n, kind)
                for name in given.estimators:
                    reads, took, memory, theta, se = measured(n, source, name, True)
                    whole = known.setdefault((n, name), (theta, se)) if kind == "memory" else known.get((n, name))
                    off = "" if whole is None else f"{np.max(np.abs(np.subtract(theta, whole[0])) / whole[1]):.1g}"
                    row = [f"{n:,}", kind, name, reads, round(took, 2), round(memory), off]
                    if not given.alone:
                        old_reads, old, old_memory, *_ = measured(n, source, name, False)
                        row += [old_reads, round(old, 2), round(old_memory), f"{took / old:.2f}"]
                    rows.append(row)
                    print(*row, flush=True)
    header = ["rows", "source", "estimator", "reads", "s", "MiB", "off"]
    header += [] if given.alone else ["present: reads", "s", "MiB", "ratio of s"]
    write_table("streams", header, rows, f"{__doc__}\n{machine()}; one run each.")


if __name__ == "__main__":
    main()
