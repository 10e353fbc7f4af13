import io
import sys

import pytest

from isodus._core import progress
from isodus._core.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless it is set."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def shown(monkeypatch, setting, stream, clock, seconds=0.0):
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(setting, "fitting", 10) as p:
        clock[0] += seconds
        p(5)
        p(6)  # within a tenth of a second: not drawn
    return stream.getvalue()


def test_a_terminal_shows_a_bar_after_a_second(monkeypatch, clock):
    assert shown(monkeypatch, None, Terminal(), clock) == ""
    text = shown(monkeypatch, None, Terminal(), clock, 1.5)
    assert "fitting [" in text
    assert "5 of 10" in text
    assert "6 of 10" not in text
    assert text.endswith("\r")


def test_elsewhere_only_if_asked_for(monkeypatch, clock):
    assert shown(monkeypatch, None, io.StringIO(), clock, 5) == ""
    assert "5 of 10" in shown(monkeypatch, True, io.StringIO(), clock)
    assert shown(monkeypatch, False, Terminal(), clock, 5) == ""


def test_no_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    for setting in (None, True, False):
        with Progress(setting, "fitting", 10) as p:
            p(1)


def test_a_function_is_called():
    calls = []
    with Progress(lambda *arguments: calls.append(arguments), "reading") as p:
        p(1)
        p(2, 4)
    assert calls == [("reading", 1, None), ("reading", 2, 4)]


def test_an_unknown_total(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress(True, "reading") as p:
        p(12345)
    assert "reading: 12,345" in sys.stderr.getvalue()


def test_other_settings():
    with pytest.raises(ValueError, match="progress"):
        Progress("yes", "fitting")
