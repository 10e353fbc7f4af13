"""How far anything slow has come: a bar after a second on a terminal, or a call of the user's own function.

Where there is no terminal, and nothing else is asked for, the logger "isodus" is told every ten seconds.

What is slow opens a `Progress`; what works inside it says `report`, which goes to the one that is open.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from weakref import ReferenceType, ref

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

__all__ = ["Progress", "Show", "report", "shown"]

Show = bool | Callable[[str, float, float | None], object] | None

P = ParamSpec("P")
R = TypeVar("R")

_PATIENCE, _LOGGED = 1.0, 10.0  # seconds until a bar is shown, and between lines of a log
_log = logging.getLogger("isodus")
# weak: one that a Ctrl-C kept from closing is gone with its caller, and hides no other
_open: ContextVar[ReferenceType[Progress] | None] = ContextVar("progress", default=None)


class Progress:
    """``with Progress(show) as progress: progress("sampling", done, total)``.

    show: None for a bar on a terminal (standard error), True for one anywhere, False for none; or a function that is
    called with what is done, how much of it and how much there is, None where that is not known. What opens inside
    another one shows nothing.
    """

    def __init__(self, show: Show = None) -> None:
        if show is not None and not isinstance(show, bool) and not callable(show):
            raise ValueError(f"progress must be True, False, None or a function (what, done, total), not {show!r}")
        self._call = None if show is None or isinstance(show, bool) else show
        self.shown = sys.stderr is not None and sys.stderr.isatty() if show is None else bool(show)
        self._started = self._told = time.monotonic()
        self._logged = show is None and not self.shown
        self._bar: Bar | None = None
        self._busy = False
        self._token: Token[ReferenceType[Progress] | None]

    def __enter__(self) -> Self:
        self.shown, self._logged = (one and _current() is None for one in (self.shown, self._logged))
        self._token = _open.set(ref(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _open.reset(self._token)
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, done: float, total: float | None, *, minor: bool = False) -> None:
        """Where things stand; total: None where it is not known. minor: a part of what was told last, if that goes on.

        Minor reports are shown where there is nothing better: steps of a fit, but not of each fit along a path.
        """
        if self._logged and time.monotonic() - self._told >= _LOGGED:
            self._told = time.monotonic()
            _log.info("%s: %s%s", what, f"{done:,.6g}", "" if total is None else f" of {total:,.6g}")
        if not self.shown or (minor and self._busy):
            return
        if not minor:
            self._busy = total is not None and done < total
        if self._call is not None:
            self._call(what, done, total)
            return
        if self._bar is None and time.monotonic() - self._started < _PATIENCE:
            return
        if self._bar is None:
            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            console = Console(stderr=True)
            self._bar = Bar(*columns, console=console, transient=console.is_terminal)
            self._task = self._bar.add_task(what, total=total)
            self._bar.start()
        self._bar.update(self._task, description=what, completed=done, total=total)


def _current() -> Progress | None:
    """The one that is open."""
    found = _open.get()
    return None if found is None else found()


def report(what: str, done: float, total: float | None = None, *, minor: bool = False) -> None:
    """As calling the `Progress` that is open; nothing where none is."""
    progress = _current()
    if progress is not None:
        progress(what, done, total, minor=minor)


def shown(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A method that shows how far it has come as its object's `progress` says."""

    @wraps(method)
    def showing(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        with Progress(self.progress):
            return method(self, *args, **kwargs)

    return showing
