"""A study of the paper: its repetitions are computed to a results file, once; it is drawn and judged from that alone.

A study is a module with the names of `Study` below. Its settings are numbers, texts and lists of them, so that a
results file can say them. A repetition depends on the settings and its task alone, never on what ran before it or
beside it: a run that was stopped goes on where it was, and its file is the same to the byte as if nothing had happened
(but for seconds, where those are what is studied).
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs

from .. import io
from .._version import __version__
from ..progress import Progress, Show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Claim",
    "Results",
    "Settings",
    "Stopped",
    "Study",
    "Task",
    "compute",
    "read_results",
    "verdicts",
    "write_outputs",
]

Settings = Mapping[str, Any]
Task = Mapping[str, Any]

_FORMAT = "isodus-paper-study"


class Claim(NamedTuple):
    """One statement and what became of it.

    claim: in words. measured: likewise, with the figure and its standard error. holds: None where the study at this
    size cannot tell. of_paper: whether the paper says so; other rows say what it could not show.
    """

    claim: str
    measured: str
    value: float
    stderr: float
    holds: bool | None
    of_paper: bool = False

    @property
    def verdict(self) -> str:
        """In words."""
        return "cannot be told at this size" if self.holds is None else "holds" if self.holds else "does not hold"


class Study(Protocol):
    """What a module of a study has."""

    NAME: str
    TITLE: str
    STATED: str  # what the paper says, and where
    TIMED: bool  # whether seconds are studied: then one repetition runs at a time
    SIZES: dict[str, dict[str, Any]]

    def tasks(self, settings: Settings) -> list[dict[str, Any]]:
        """Every repetition, as the numbers that define it."""

    def repetition(self, settings: Settings, task: Task) -> list[dict[str, Any]]:
        """What one gives: rows of the table."""

    def cost(self, task: Task) -> float:
        """About how long one takes, in any unit."""

    def claims(self, table: pd.DataFrame, settings: Settings) -> list[Claim]:
        """What the paper states, held against the table."""

    def remarks(self, table: pd.DataFrame, settings: Settings) -> list[str]:
        """What else is worth saying, in sentences, from the table."""

    def draw(self, table: pd.DataFrame, settings: Settings) -> Figure:
        """The figure."""


class Stopped(KeyboardInterrupt):
    """Ctrl-C ended a study; what it had finished is kept."""


@dataclass(frozen=True)
class Results:
    """The content of a results file."""

    study: str
    isodus: str
    settings: dict[str, Any]
    machine: dict[str, Any]
    rows: list[dict[str, Any]]

    @property
    def table(self) -> pd.DataFrame:
        """A row a result; what was not finite is NaN."""
        return pd.DataFrame(self.rows).replace({None: np.nan}).infer_objects()


def compute(
    study: Study,
    settings: Settings,
    folder: str | os.PathLike[str],
    *,
    n_jobs: int | None = None,
    progress: Show = None,
    again: bool = False,
    label: str | None = None,
) -> Results:
    """The results of a study, from its file in a folder if it is there; otherwise computed, a repetition at a time.

    again: begin anew whatever is there. label: of the progress bar.
    """
    folder = _writable(folder)
    kept: dict[str, Any] = json.loads(json.dumps(dict(settings)))  # as a file has them
    path, part = folder / f"{study.NAME}.json", folder / f"{study.NAME}.part.jsonl"
    if again:
        path.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    if path.exists():
        return _checked(path, study, kept)
    header = {"format": _FORMAT, "study": study.NAME, "isodus": __version__, "settings": kept, "machine": machine()}
    todo = {_key(task): task for task in study.tasks(kept)}
    done = _resumed(part, header, todo, study.TIMED)
    missing = [task for key, task in todo.items() if key not in done]
    weight = {key: study.cost(task) for key, task in todo.items()}
    jobs = 1 if study.TIMED else n_jobs
    try:
        with part.open("a", encoding="utf-8") as f, Progress(progress) as bar:
            bar(label or study.NAME, 0, 100)
            for task, rows in _repeated(study, kept, missing, jobs):
                done[_key(task)] = rows
                f.write(json.dumps({"task": task, "rows": rows}) + "\n")
                f.flush()
                share = sum(weight[key] for key in done) / sum(weight.values())
                bar(label or study.NAME, round(100 * share), 100)
    except KeyboardInterrupt:
        raise Stopped(
            f"stopped with {len(done):,} of {len(todo):,} repetitions of {study.NAME} done. They are kept in {part}: "
            "the same command goes on from there"
        ) from None
    results = Results(study.NAME, __version__, kept, machine(), [row for key in todo for row in done[key]])
    _write(path, results)
    part.unlink()
    return results


def _write(path: Path, results: Results) -> None:
    """Rows as lists of their values, without the names again and again."""
    columns = list(dict.fromkeys(column for row in results.rows for column in row))
    values = [[row.get(column) for column in columns] for row in results.rows]
    content = {"format": _FORMAT} | asdict(results) | {"columns": columns, "rows": values}
    io.write_text(path, json.dumps(content, separators=(",", ":"), ensure_ascii=False) + "\n")


def _repeated(
    study: Study, settings: Settings, todo: Sequence[Task], n_jobs: int | None
) -> Iterator[tuple[Task, list[dict[str, Any]]]]:
    """A task and its rows, in whatever order they end."""
    if effective_n_jobs(n_jobs) == 1:
        for task in todo:
            yield _repetition(study.NAME, settings, task)
        return
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    yield from pool(delayed(_repetition)(study.NAME, settings, task) for task in todo)


def _key(task: Task) -> str:
    return json.dumps(dict(task), sort_keys=True)


def _repetition(name: str, settings: Settings, task: Task) -> tuple[Task, list[dict[str, Any]]]:
    from . import STUDIES

    try:
        rows = STUDIES[name].repetition(settings, task)
    except Exception as error:
        error.add_note(f"in a repetition of {name}: {dict(task)}")
        raise
    return task, [{column: _plain(value) for column, value in {**task, **row}.items()} for row in rows]


def _plain(value: Any) -> Any:
    """As JSON has it; None for a number that is not finite."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _writable(folder: str | os.PathLike[str]) -> Path:
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot make the folder {folder}: {error.strerror}. Give another one with -o") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"the folder {folder} cannot be written into. Give another one with -o")
    return folder


def _checked(path: Path, study: Study, settings: Settings) -> Results:
    """The results in a file, if they are those of this study with these settings."""
    results = read_results(path)
    _same(path, results.study, results.settings, study.NAME, settings)
    tasks = study.tasks(settings)
    done = {_key({column: row.get(column) for column in tasks[0]}) for row in results.rows}
    if done != {_key(task) for task in tasks}:
        raise ValueError(
            f"{path} was made by isodus {results.isodus}, whose {study.NAME} has other repetitions. Give another "
            "folder with -o, or begin anew with --again"
        )
    return results


def read_results(path: str | os.PathLike[str]) -> Results:
    """The results in a file."""
    path = Path(path)
    content = io.read_json(path, "results file of a study", _FORMAT)
    try:
        rows = [dict(zip(content["columns"], row, strict=True)) for row in content["rows"]]
        results = Results(**{field: content[field] for field in ("study", "isodus", "settings", "machine")}, rows=rows)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error!r}): delete it to begin anew") from None
    return results


def _same(path: Path, study: Any, there: Any, name: str, settings: Settings) -> None:
    if study != name:
        raise ValueError(f"{path} holds the study {study}, not {name}")
    if not isinstance(there, dict):
        raise ValueError(f"{path} is damaged: delete it to begin anew")
    keys = [key for key in {**settings, **there} if there.get(key) != settings.get(key)]
    if keys:
        how = "; ".join(f"{key} is {_short(settings.get(key))} here and {_short(there.get(key))} there" for key in keys)
        raise ValueError(f"{path} has other settings: {how}. Give another folder with -o, or begin anew with --again")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _resumed(
    part: Path, header: Mapping[str, Any], todo: Mapping[str, Task], timed: bool
) -> dict[str, list[dict[str, Any]]]:
    """Rows by task of a run that did not end; a line that was not written to its end is cut off."""
    if not part.exists():
        io.write_text(part, json.dumps(header) + "\n")
        return {}
    text = part.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1].splitlines()
    try:
        first, *lines = [json.loads(line) for line in whole]
        if first["format"] != _FORMAT:
            raise ValueError
        done = {_key(line["task"]): line["rows"] for line in lines}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{part} is no part of a study: delete it, or give another folder with -o") from None
    _same(part, first["study"], first["settings"], str(header["study"]), header["settings"])
    other = next((key for key in ("isodus", "machine")[: 1 + timed] if first[key] != header[key]), None)
    if other or not set(done) <= set(todo):
        begun = {"isodus": f"by isodus {first['isodus']}", "machine": "on another machine"}.get(str(other), "otherwise")
        raise ValueError(
            f"{part} was begun {begun}, this is isodus {header['isodus']}: results of the two are not mixed. Give "
            "another folder with -o, or begin anew with --again"
        )
    if not text.endswith("\n"):
        io.write_text(part, "".join(f"{line}\n" for line in whole))
    return done


def machine() -> dict[str, Any]:
    """What it ran on."""
    import scipy
    import sklearn

    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def verdicts(study: Study, results: Results) -> pd.DataFrame:
    """A row a claim."""
    found = study.claims(results.table, results.settings)
    rows = [(study.NAME, c.claim, c.measured, c.value, c.stderr, c.verdict, c.of_paper) for c in found]
    return pd.DataFrame(rows, columns=["study", "claim", "measured", "value", "stderr", "verdict", "of_paper"])


def write_outputs(study: Study, results: Results, folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The figure, as PNG and SVG, and the claims, as CSV, beside the results; returns the claims."""
    import matplotlib

    folder = Path(folder)
    table = verdicts(study, results)
    with matplotlib.rc_context({"svg.hashsalt": study.NAME, "svg.fonttype": "none"}):
        figure = study.draw(results.table, results.settings)
        for ending, metadata in (("png", None), ("svg", {"Date": None})):
            with io.writing(folder / f"{study.NAME}.{ending}", binary=True) as f:
                figure.savefig(f, format=ending, dpi=150, metadata=metadata)
    with io.writing(folder / f"{study.NAME}.claims.csv") as f:
        table.to_csv(f, index=False)
    return table
