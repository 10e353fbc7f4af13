"""Threads: how many, what BLAS does meanwhile, and results in the order of their items."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from numbers import Integral
from typing import TypeVar

from threadpoolctl import LibController, ThreadpoolController

__all__ = ["one_blas_thread", "ordered_map", "workers"]

T = TypeVar("T")
R = TypeVar("R")


def workers(n_jobs: int | None) -> int:
    """The number of threads: None for all cores this process may use, −1 too, −2 for all but one, and so on."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None, a positive integer or a negative one (−1: all cores), not {n_jobs!r}")
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if n_jobs is None else max(1, cores + 1 + int(n_jobs))


@functools.cache
def _blas() -> list[LibController]:
    """The BLAS libraries of this process; looking for them takes ten milliseconds."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


class _OneThread:
    """One limit for the process, held as long as anyone asks for it."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = threading.Lock(), 0, list[int]()

    def acquire(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = [library.num_threads for library in _blas()]
                for library in _blas():
                    _limit(library, 1)
            self._users += 1

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for library, before in zip(_blas(), self._before, strict=True):
                    if library.num_threads == 1:  # else somebody has set it since
                        _limit(library, before)


def _limit(library: LibController, count: int) -> None:
    library.set_num_threads(count)
    # since threadpoolctl 3.8 only the thread that set a limit may change it; here the last one to leave must
    release: Callable[[], None] = getattr(library, "clear_controlling_thread", lambda: None)
    release()


_one_thread = _OneThread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS works in one thread while anyone is in here, and then as before the first one came in.

    The limit is one of the whole process. It may be entered again inside itself, and by several threads.
    """
    _one_thread.acquire()
    try:
        yield
    finally:
        _one_thread.release()


def ordered_map(f: Callable[[T], R], items: Iterable[T], n_jobs: int | None = 1) -> Generator[R, None, None]:
    """f(item) for each item, in their order, computed by threads.

    At most two results per thread are waiting or under way, so that memory stays bounded. Each call sees the caller's
    context, such as `numpy.errstate`. An exception, of f or of an interrupt, ends the rest.
    """
    count = workers(n_jobs)
    if count == 1:
        yield from map(f, items)
        return
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(count, thread_name_prefix="isodus")
    try:
        for item in items:
            waiting.append(pool.submit(copy_context().run, f, item))
            if len(waiting) >= 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
