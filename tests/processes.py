"""Commands as processes of their own, forked from one that has loaded the libraries, which takes a second each time."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["isodus", "isodus.cli", "matplotlib.pyplot"])


def isodus(*arguments, stdin=None, cwd=None):
    """The command line with these arguments, with files for its streams; what `subprocess.run` would give."""
    arguments = [str(one) for one in arguments]
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        streams[0].write_bytes(stdin or b"")
        process = _SERVER.Process(target=_run, args=(arguments, [str(file) for file in streams], cwd or os.getcwd()))
        process.start()
        process.join(300)
        assert process.exitcode is not None, f"isodus {' '.join(arguments)} has not ended"
        return subprocess.CompletedProcess(arguments, process.exitcode, *(file.read_bytes() for file in streams[1:]))


def start(*arguments, **options):
    """A process that Ctrl-C ends, also where the tests run in the background of a shell, in which it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen([sys.executable, *map(str, arguments)], **options)
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt(run):
    """Ctrl-C until the process ends: Python drops one that comes while it collects garbage. What it printed."""
    for _ in range(60):
        run.send_signal(signal.SIGINT)
        try:
            return run.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            continue
    run.kill()
    raise AssertionError("Ctrl-C does not end it")


def _run(arguments, streams, cwd):
    for number, name in enumerate(streams):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY), number)
    sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), encoding="utf-8", line_buffering=True)
    os.chdir(cwd)
    sys.argv = ["isodus", *arguments]
    from isodus.cli import app

    app()
