"""A progress bar on anything slow: after a second, on a terminal; elsewhere none."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

__all__ = ["Progress"]

_PATIENCE = 1.0  # seconds


class Progress:
    """``with Progress(show) as progress: progress("sampling", done, total)``.

    show: None for a bar on a terminal (standard error), True for one anywhere, False for none. What opens inside
    another one shows nothing.
    """

    _open = 0

    def __init__(self, show: bool | None = None) -> None:
        if show is not None and not isinstance(show, bool):
            raise ValueError(f"progress must be True, False or None, not {show!r}")
        self.shown = sys.stderr is not None and sys.stderr.isatty() if show is None else show
        self._started = time.monotonic()
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        self.shown = self.shown and not Progress._open
        Progress._open += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        Progress._open -= 1
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, done: float, total: float | None) -> None:
        """Where things stand; total: None where it is not known."""
        if not self.shown or (self._bar is None and time.monotonic() - self._started < _PATIENCE):
            return
        if self._bar is None:
            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            console = Console(stderr=True)
            self._bar = Bar(*columns, console=console, transient=console.is_terminal)
            self._task = self._bar.add_task(what, total=total)
            self._bar.start()
        self._bar.update(self._task, description=what, completed=done, total=total)
