import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from isodus._core.threads import one_blas_thread, ordered_map, workers


def blas():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


def test_workers():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert workers(None) == workers(-1) == cores
    assert workers(3) == workers(np.int64(3)) == 3
    assert workers(-2) == max(1, cores - 1)
    assert workers(-1000) == 1


@pytest.mark.parametrize("bad", [0, True, 1.0, "2"])
def test_workers_of_anything_else(bad):
    with pytest.raises(ValueError, match="n_jobs"):
        workers(bad)


def test_blas_is_left_as_it_was_when_limits_overlap_in_threads():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    with threadpool_limits(2, user_api="blas"):
        before = blas()
        thread = threading.Thread(target=other)
        with one_blas_thread(), one_blas_thread():
            assert blas() == {1}
            thread.start()
            assert entered.wait(10)
        assert blas() == {1}  # the other thread is still inside
        leave.set()
        thread.join()
        assert blas() == before
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            raise ZeroDivisionError
        assert blas() == before


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_order_whoever_is_first(n_jobs):
    gates = [threading.Event() for _ in range(4)]

    def f(i):
        if n_jobs == 5 and i < 3:
            assert gates[i + 1].wait(10)  # each one ends after its successor
        if n_jobs == 5 and i < 4:
            gates[i].set()
        return i * i

    assert list(ordered_map(f, range(20), n_jobs)) == [i * i for i in range(20)]


def test_few_are_in_flight():
    begun = []
    results = ordered_map(begun.append, iter(range(1000)), 2)
    next(results)
    assert len(begun) <= 4
    results.close()
    assert len(begun) <= 4


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_exceptions_and_the_context_pass_through(n_jobs):
    with pytest.raises(ZeroDivisionError):
        list(ordered_map(lambda i: 1 // (i - 7), range(20), n_jobs))
    with np.errstate(divide="ignore"):
        assert all(np.isinf(x) for x in ordered_map(lambda x: 1 / x, np.zeros(5), n_jobs))


def test_an_interrupt_ends_it():
    code = """
import os, signal, threading
from isodus._core.threads import ordered_map
waiting = threading.Event()
def f(i):
    if i == 3:
        os.kill(os.getpid(), signal.SIGINT)
    waiting.wait(.05)
try:
    for _ in ordered_map(f, range(10**9), 2): pass
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == ["interrupted", "1"]
