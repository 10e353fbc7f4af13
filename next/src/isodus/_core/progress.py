"""How far a computation has come: a plain bar, or a call of the user's function."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

__all__ = ["Progress", "Show"]

Show = bool | Callable[[str, float, float | None], object] | None

_PATIENCE, _INTERVAL = 1.0, 0.1  # seconds until the bar is shown, and between two states of it


class Progress:
    """``with Progress(setting, "fitting", total) as p: p(done)``.

    setting: None shows a bar on standard error after a second if that is a terminal, True always, False never; a
    function is called with (label, done, total) instead. total is None where it is not known.
    """

    def __init__(self, setting: Show, label: str, total: float | None = None) -> None:
        if setting is not None and not isinstance(setting, bool) and not callable(setting):
            raise ValueError(f"progress must be None, True, False or a function (label, done, total), not {setting!r}")
        self.label, self.total = label, total
        self._call = setting if callable(setting) else None
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = sys.stderr is not None and (setting is True or (setting is None and terminal))
        self._next = time.monotonic() + (0.0 if setting is True else _PATIENCE)
        self._width = 0  # of what is on the line now
        self._steps = 0

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: float, total: float | None = None) -> None:
        """Report that `done` of `total` is finished; a total given here replaces the earlier one."""
        self.total = self.total if total is None else total
        if self._call is not None:
            self._call(self.label, done, self.total)
        elif self._shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + _INTERVAL
            self._write(self._line(done))

    def say(self, what: str) -> None:
        """Report that another step begins, and what it is."""
        self.label, self._steps = what, self._steps + 1
        self(self._steps)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._width:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _line(self, done: float) -> str:
        if not self.total:
            return f"{self.label}: {done:,.6g}"
        width = max(10, min(40, shutil.get_terminal_size().columns - len(self.label) - 30))
        full = round(width * min(1.0, done / self.total))
        return f"{self.label} [{'#' * full}{' ' * (width - full)}] {done:,.6g} of {self.total:,.6g}"

    def _write(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)
