"""What the GNU C library does with memory that is freed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CDLL

__all__ = ["kept_pages"]

_LIMIT = "MALLOC_TRIM_THRESHOLD_"
_TRIM, _MMAP = -1, -3  # numbers of mallopt's parameters
_KEPT, _USUAL_MMAP = 1 << 30, 1 << 17  # bytes


@contextmanager
def kept_pages() -> Iterator[None]:
    """Freed memory is used again at once in here where the environment asks to give it back, as in Dask's workers.

    With a limit set, each temporary array of more than 128 KiB gets pages of its own from the system, and a pass
    over rows takes several times as long. Afterwards the limit is in force again, and free memory is given back.
    """
    limit = os.environ.get(_LIMIT, "")
    library = CDLL(None) if limit.isdigit() else None
    if library is None or not hasattr(library, "mallopt"):
        yield
        return
    library.mallopt(_MMAP, _KEPT)
    library.mallopt(_TRIM, _KEPT)
    try:
        yield
    finally:
        library.mallopt(_MMAP, _USUAL_MMAP)
        library.mallopt(_TRIM, int(limit))
        library.malloc_trim(0)
