"""How a study runs: tasks in processes, a line per finished task in a file, so that it goes on where it was stopped."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import platform
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).parent / "results"
Task = dict[str, Any]
Row = dict[str, Any]


class Results(NamedTuple):
    """The table of a study, and how it was made."""

    table: pd.DataFrame
    about: dict[str, Any]


def load(name: str) -> Any:
    """The study of this name."""
    return importlib.import_module(f"{__package__}.{name.replace('-', '_')}")


def run(name: str, size: str, folder: Path) -> Results:
    """The results of a study, computed as far as they are not there, and its figure."""
    from .figures import save

    study, results = load(name), stored(name, folder)
    if results is None or results.about["tasks"] != mark_of(study.tasks(size)):
        results = compute(name, size, folder)
    save(study.draw(results.table), folder / name)
    return results


def stored(name: str, folder: Path) -> Results | None:
    """Results in a folder."""
    about = folder / f"{name}.json"
    if not about.exists():
        return None
    return Results(pd.read_csv(folder / f"{name}.csv"), json.loads(about.read_text("utf-8")))


def rows_of(study: Any, task: Task) -> list[Row]:
    """The rows of one task, warnings counted and not shown."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return [task | row for row in study.repetition(task)]


def _timed(name: str, task: Task) -> tuple[float, list[Row]]:
    started = time.process_time()
    rows = rows_of(load(name), task)
    return time.process_time() - started, rows


def mark_of(tasks: list[Task]) -> str:
    """A mark that distinguishes lists of tasks."""
    return hashlib.sha1(json.dumps(tasks).encode()).hexdigest()[:12]


def compute(name: str, size: str, folder: Path) -> Results:
    """The results of a study; tasks that an interrupted run has finished are not run again."""
    folder.mkdir(parents=True, exist_ok=True)
    study = load(name)
    tasks, done = study.tasks(size), {}
    mark = mark_of(tasks)
    part = folder / f"{name}.{mark}.part.jsonl"
    for line in part.read_text("utf-8").splitlines() if part.exists() else []:
        if line.endswith("]]"):  # else it was cut short
            key, seconds, rows = json.loads(line)
            done[key] = seconds, rows
    with part.open("a", encoding="utf-8") as file, ProcessPoolExecutor(study.PROCESSES) as pool:
        todo = {pool.submit(_timed, name, task): json.dumps(task) for task in tasks if json.dumps(task) not in done}
        try:
            for k, future in enumerate(as_completed(todo), 1):
                done[todo[future]] = future.result()
                print("\n" + json.dumps([todo[future], *future.result()]), file=file, flush=True, end="")
                if sys.stderr.isatty():
                    print(f"\r{name}: {k} of {len(todo)}", end="", file=sys.stderr, flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    found = [done[json.dumps(task)] for task in tasks]
    table = pd.DataFrame([row for _, rows in found for row in rows])
    table.to_csv(folder / f"{name}.csv", index=False, float_format="%.5g")
    about = {"size": size, "tasks": mark, "seconds": round(sum(s for s, _ in found), 1), "machine": _machine()}
    (folder / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    part.unlink()
    results = stored(name, folder)
    assert results is not None
    return results


def _machine() -> str:
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
