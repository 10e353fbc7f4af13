"""What goes wrong around a run: a full disk, Ctrl-C at any moment, too little memory. Nothing is lost or left."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import pytest
from processes import interrupt, start
from threadpoolctl import threadpool_info
from typer.testing import CliRunner

from isodus import ISODUS, PseudoLikelihood, arrays, bootstrap
from isodus.cli import app
from isodus.datasets import double_wells, paper_pair

X = np.asarray(paper_pair(1).sample(400, rng=0))
Y = np.asarray(double_wells(4, coupling=0.3).sample(400, rng=0))


@contextmanager
def full_disk(size=1000):
    """No file may become longer than this; what is written beyond is refused as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


OUTPUTS = {
    "m.json": ["fit", "x.csv", "-o", "m.json"],
    "r.html": ["fit", "x.csv", "--report", "r.html"],
    "s.csv": ["sample", "model.json", "-n", "500", "-o", "s.csv"],
    "s.npy": ["sample", "model.json", "-n", "500", "-o", "s.npy"],
    "p.png": ["plot", "model.json", "-o", "p.png"],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_full_disk_leaves_the_old_file_and_no_other(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, columns=["a", "b"]).to_csv("x.csv", index=False)
    ISODUS(2).fit(pd.DataFrame(X, columns=["a", "b"])).model_.save("model.json")
    (tmp_path / name).write_text("what was there")
    before = {file.name for file in tmp_path.iterdir()}
    with full_disk():
        done = CliRunner().invoke(app, OUTPUTS[name])
    assert done.exit_code == 1, done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert f"{name} cannot be written: " in line
    assert (tmp_path / name).read_text() == "what was there"
    assert {file.name for file in tmp_path.iterdir()} == before


def calls_of(work, at=None):
    """Do the work; how many calls that took, or, if `at` is given, with a Ctrl-C at that one."""
    many = 0

    def seen(frame, event, argument):
        nonlocal many
        if event == "call" and frame.f_code.co_filename.startswith(os.path.dirname(arrays.__file__)):
            many += 1
            if many == at:
                raise KeyboardInterrupt

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return many


WORK = {
    "fit": lambda: ISODUS(4).fit(X).model_.theta,
    "fit in threads": lambda: PseudoLikelihood(4, max_order=4, n_jobs=2).fit(Y).model_.theta,
    "path": lambda: ISODUS(2, l1="auto").fit(Y).model_.theta,
    "bootstrap": lambda: bootstrap(PseudoLikelihood(2).fit(X), X, n_draws=20, rng=0).draws,
    "samples": lambda: np.asarray(double_wells(4, coupling=0.3).sample(200, rng=0)),
    "chains": lambda: np.asarray(double_wells(4, coupling=0.3).sample(200, rng=0, method="gibbs")),
}


@pytest.mark.parametrize("name", WORK)
def test_ctrl_c_at_any_moment_leaves_nothing_behind(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    work = WORK[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.array(work())
        threads, blas = threading.active_count(), threadpool_info()
        many = calls_of(work)
        for at in np.unique(np.linspace(1, many, 12).astype(int)).tolist():
            with suppress(KeyboardInterrupt):
                calls_of(work, at)
            assert threading.active_count() == threads
            assert threadpool_info() == blas
        np.testing.assert_array_equal(np.array(work()), expected)
    told = []
    ISODUS(4, progress=lambda *what: told.append(what)).fit(X)
    assert told  # a bar that was not closed would hide all others
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes as Linux has them")
def test_processes_and_their_files_end_with_the_run(tmp_path):
    code = """
        import numpy as np
        from isodus import PseudoLikelihood, bootstrap
        from isodus.datasets import double_wells
        X = np.asarray(double_wells(4).sample(5000, rng=0))
        est = PseudoLikelihood(4).fit(X)
        bootstrap(est, X, n_draws=10**6, n_jobs=2, rng=0, progress=lambda *what: print(flush=True))
    """
    run = start(
        "-c",
        textwrap.dedent(code),
        env={**os.environ, "JOBLIB_TEMP_FOLDER": str(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for _ in range(3):
        run.stdout.readline()
    interrupt(run)
    for _ in range(100):
        try:
            os.killpg(run.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        os.killpg(run.pid, signal.SIGKILL)
        pytest.fail("processes of the run are still there")
    assert not list(tmp_path.iterdir())


def test_memory_is_what_a_container_leaves(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_GROUP", tmp_path)
    host = arrays.available_memory()
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 100\n")
    assert arrays.available_memory() >= 0.5 * host
    (tmp_path / "memory.max").write_text("1000000\n")
    assert arrays.available_memory() == 1_000_000 - 900 + 100
    with pytest.raises(ValueError, match=r"are free\. Lower degree or max_order"):
        ISODUS(4, l1="auto", max_order=4).fit(np.random.default_rng(0).standard_normal((300, 40)))
    monkeypatch.undo()
    old = tmp_path / "old" / "memory"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text("5000")
    (old / "memory.usage_in_bytes").write_text("6000")
    (old / "memory.stat").write_text("inactive_file 10\n")
    monkeypatch.setattr(arrays, "_GROUP", tmp_path / "old")
    assert arrays.available_memory() == 0
