"""The tables of peers.py: what was measured, how it compares with isodus, and a block of a page that is replaced."""

import contextlib
import importlib.metadata
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# seconds of processor time
LIMIT = 60  # of one fit, beyond which it is stopped, and larger sizes are not tried
ENOUGH = 30  # of a method at a size, after which it gets no more sets
ALIKE = 1e-3  # of a figure: a smaller difference is none
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
WORSE, BETTER = "more accurate", "as accurate, quicker"
LOSSES = (WORSE, BETTER)
ABSENT = "not installed"


class Data(NamedTuple):
    """Samples, and what the answer is held against."""

    X: np.ndarray
    truth: Any


class Row(NamedTuple):
    """A method at a size: its accuracy by set, its seconds, and why there are none."""

    task: str
    size: str
    method: str
    values: dict[int, float]
    seconds: list[float]
    note: str = ""

    def accuracy(self):
        """Mean and standard error over sets; no number for the error of one set."""
        values = np.array(list(self.values.values()))
        sure = len(values) > 1 and np.isfinite(values).all()
        return values.mean(), np.std(values, ddof=1) / np.sqrt(len(values)) if sure else np.nan


class Task(NamedTuple):
    """A table: what its accuracy is, whether more of it is better, and the method of isodus that others are held to."""

    name: str
    accuracy: str
    high: bool
    ours: str
    about: str
    digits: int = 3


def say(text):
    print(text, file=sys.stderr, flush=True)


def installed(name):
    """The version of a package; nothing if it is not there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


class TooSlow(BaseException):
    """Of a fit that took longer than LIMIT; no library takes it for an error of its own."""


@contextlib.contextmanager
def at_most(seconds):
    """Stops what runs in it, once it is back in Python; not where there is no such signal."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_):
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(method, data):
    """What the method gives, and its seconds; a pair is an answer with its own seconds."""
    with warnings.catch_warnings(), at_most(LIMIT):
        warnings.simplefilter("ignore")
        started = time.process_time()  # on one core, the time of a machine that has nothing else to do
        answer = method(data)
        taken = time.process_time() - started
    return answer if isinstance(answer, tuple) else (answer, taken)


def measure(task, size, todo, draw, judge, sets, slow):
    """Yields a row a method: all methods on the same sets.

    todo: name → function of data, or a text, why there is none; draw: set → data; judge: (data, answer) → accuracy;
    slow: name → why it is not run any more, kept from size to size.
    """
    rows = {name: Row(task.name, size, name, {}, []) for name in todo}
    for name, method in todo.items():
        reason = method if isinstance(method, str) else slow.get(name, "")
        rows[name] = rows[name]._replace(note=reason)
    for k in range(sets):
        data = draw(k)
        for name, method in todo.items():
            row = rows[name]
            if row.note or sum(row.seconds) > ENOUGH:
                continue
            try:
                answer, taken = attempt(method, data)
            except TooSlow:
                rows[name] = row._replace(note=f"stopped after {LIMIT} s")
                slow[name] = f"not run: stopped after {LIMIT} s at {size}"
                continue
            except (ArithmeticError, ValueError, RuntimeError) as error:
                rows[name] = row._replace(note=f"failed: {str(error).splitlines()[0][:60]}", values={}, seconds=[])
                continue
            row.values[k] = judge(data, answer)
            row.seconds.append(taken)
            say(f"  {task.name}, {size}, set {k}, {name}: {row.values[k]:.4g}, {taken:.2f} s")
    yield from rows.values()


def difference(task, ours, peer):
    """By how much the peer is more accurate on common sets, and its standard error; 0 for that of one set."""
    common = sorted(ours.values.keys() & peer.values.keys())
    sign = 1.0 if task.high else -1.0
    with np.errstate(invalid="ignore"):
        gains = sign * np.array([peer.values[k] - ours.values[k] for k in common])
    if not np.isfinite(gains).all():
        return -np.inf if np.isfinite([ours.values[k] for k in common]).all() else np.inf, 0.0
    return gains.mean(), np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0


def verdict(task, ours, row):
    """What a row says about isodus: two standard errors apart, and not alike, is better or worse."""
    if row.method.startswith("isodus") or not row.values or not ours.values:
        return ""
    gain, error = difference(task, ours, row)
    quicker = np.mean(row.seconds) < np.mean(ours.seconds)
    least = max(2 * error, ALIKE * abs(ours.accuracy()[0]))
    if gain > least:
        return WORSE + (", quicker" if quicker else ", slower")
    if gain < -least:
        return "less accurate" + (", quicker" if quicker else ", slower")
    return BETTER if quicker else "as accurate, slower"


def cells(task, row, most):
    """Accuracy and seconds; how many sets, where others have more."""
    if not row.values:
        return row.note, ""
    mean, error = row.accuracy()
    taken = np.mean(row.seconds)
    took = "below 0.01" if taken < 0.01 else f"{taken:.2g}" if taken < 9.5 else f"{taken:.0f}"
    if not np.isfinite(mean):
        return "no density at some sample", took
    digits = task.digits if abs(mean) < 100 else 0
    text = f"{mean:.{digits}f}".replace("-", "−")
    few = f" ({len(row.values)} of {most} sets)" if len(row.values) < most else ""
    return text + (f" ± {error:.{digits}f}" if np.isfinite(error) else "") + few, took


def table(task, rows):
    """Lines of Markdown, and for each size what isodus loses to."""
    lines = [f"| size | method | {task.accuracy} | seconds | against {task.ours} |", "| --- | --- | --- | --- | --- |"]
    lost = {}
    for size in dict.fromkeys(row.size for row in rows):
        group = [row for row in rows if row.size == size]
        ours = next(row for row in group if row.method == task.ours)
        most = max(len(row.values) for row in group)
        for row in group:
            said = verdict(task, ours, row)
            lines.append(f"| {size} | {row.method} | {' | '.join(cells(task, row, most))} | {said} |")
            if said.startswith(LOSSES):
                lost.setdefault((size, said), []).append(row.method)
    return lines, [f"{size}: {'; '.join(methods)} ({said})" for (size, said), methods in lost.items()]


def block(tasks, rows, header):
    """The text between the markers."""
    lines, losses = [header, ""], []
    for task in tasks:
        own = [row for row in rows if row.task == task.name]
        if not own:
            continue
        made, lost = table(task, own)
        lines += [f"### {task.name}", "", task.about, "", *made, ""]
        losses.append(f"- {task.name}: " + (". ".join(lost) if lost else "in no row") + ".")
    lines += ["### Where isodus loses", "", "Peers that are more accurate, or as accurate and quicker:", "", *losses]
    return "\n".join(lines)


def kept(file):
    """The rows that a file has; none where there is no file."""
    if not Path(file).exists():
        return []
    rows = [Row(*fields) for fields in json.loads(Path(file).read_text(encoding="utf-8"))]
    return [row._replace(values={int(k): value for k, value in row.values.items()}) for row in rows]


def keep(file, rows):
    """Rows for another time; those that the file has of other tasks stay. Returns all."""
    tasks = {row.task for row in rows}
    rows = [*(row for row in kept(file) if row.task not in tasks), *rows]
    write(file, "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    return rows


def replace(page, text):
    """Puts a text between the markers of a page."""
    page = Path(page)
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has no lines {BEGIN} and {END}, between which the tables would go")
    write(page, f"{before}{BEGIN}\n{text}\n{END}{after}")


def write(path, text):
    """A whole file or nothing."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
