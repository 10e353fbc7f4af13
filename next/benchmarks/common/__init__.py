"""What benchmarks share: tables that are written, the present library in the same run, and two processes."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]
RESULTS = HERE / "results"


def write_table(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]], about: str) -> None:
    """Print a table and keep it in results/NAME.md, with what it is about and how it was made."""
    about = "\n".join(line for line in about.splitlines() if not line.strip().startswith("python benchmarks/"))
    lines = [f"<!-- python benchmarks/{name}.py -->", "", about.strip(), ""]
    lines += ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    lines += ["| " + " | ".join(_shown(value) for value in row) + " |" for row in rows]
    text = "\n".join(lines) + "\n"
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, "utf-8")


def _shown(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def present(code: str, *, timeout: float = 3600) -> Any:
    """What the present library prints as its last line, as JSON; None where it is not installed.

    code: Python that prints. It runs in the environment of the root, with PYTHONPATH=src.
    """
    python = ROOT / ".venv" / "bin" / "python"
    if not python.exists():
        print("The present library is not installed: run `make .venv/.installed-test` in the root.", file=sys.stderr)
        return None
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, timeout=timeout
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def in_processes(f: Callable[..., Any], arguments: Iterable[tuple], processes: int = 2) -> list[Any]:
    """[f(*a) for a in arguments], each process with one thread."""
    with ProcessPoolExecutor(processes, initializer=_one_thread) as pool:
        waiting = [pool.submit(f, *a) for a in arguments]
        return [future.result() for future in waiting]


def _one_thread() -> None:
    threadpool_limits(1)
    warnings.simplefilter("ignore")


def best_of(f: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least seconds of a few runs, and the last result."""
    least, result = np.inf, None
    for _ in range(times):
        started = time.perf_counter()
        result = f()
        least = min(least, time.perf_counter() - started)
    return least, result


def machine() -> str:
    """Cores, nanoseconds per exp and GFLOP/s of one core, in words."""
    x = np.random.default_rng(0).random((64, 2048))
    A = np.random.default_rng(0).random((1000, 1000))
    with threadpool_limits(1):
        exp = best_of(lambda: [np.exp(x) for _ in range(20)], 5)[0] / 20 / x.size * 1e9
        gemm = 2e-9 * 1000**3 / best_of(lambda: A @ A, 5)[0]
    return f"{os.cpu_count()} cores ({platform.machine()}), {exp:.2f} ns per exp, {gemm:.0f} GFLOP/s per core"


def share(count: int, total: int) -> str:
    """A percentage with its standard error."""
    p = count / total
    return f"{100 * p:.1f} ± {100 * np.sqrt(p * (1 - p) / total):.1f} %"


def mean_se(values: Sequence[float]) -> tuple[float, float]:
    """A mean and its standard error."""
    v = np.asarray(values, float)
    return float(v.mean()), float(v.std(ddof=1) / np.sqrt(len(v)))


class Present:
    """The present library in a process of its own, which answers time and again: the same samples, one after the other.

    code: Python that defines `answer(job)`, from a dictionary to anything JSON can hold.

    >>> with Present("def answer(job): return job['a'] + 1") as present:
    ...     present.ask(a=1)
    2
    """

    def __init__(self, code: str) -> None:
        self.code = f"import json, sys\n{code}\n{_ANSWERS}"

    def __enter__(self) -> Present:
        environment = os.environ | {
            "PYTHONPATH": str(ROOT / "src"),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [str(ROOT / ".venv" / "bin" / "python"), "-W", "ignore", "-c", self.code]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()

    def ask(self, **job: Any) -> Any:
        """What `answer` gives for a job; arrays travel as files."""
        assert self.process.stdin
        assert self.process.stdout
        arrays = {key: value for key, value in job.items() if isinstance(value, np.ndarray)}
        with tempfile.TemporaryDirectory() as folder:
            for key, value in arrays.items():
                np.save(Path(folder) / f"{key}.npy", value)
                job[key] = str(Path(folder) / f"{key}.npy")
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("The present library ended without an answer; its message is above.")
        return json.loads(line)


_ANSWERS = """
import numpy as np
said, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    job = json.loads(line)
    job = {k: np.load(v) if isinstance(v, str) and v.endswith(".npy") else v for k, v in job.items()}
    said.write(json.dumps(answer(job)) + "\\n")
    said.flush()
"""


def ratio_of_means(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Mean of a over mean of b, and its standard error from the pairs."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    r = a.mean() / b.mean()
    return float(r), float(np.std(a - r * b, ddof=1) / b.mean() / np.sqrt(len(a)))


def one_thread_seconds(f: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, of which other processes take little, and the result."""
    started = time.process_time()
    result = f()
    return time.process_time() - started, result
