"""Bars that are shown, and those that are not."""

from isodus import progress
from isodus.progress import Progress


def test_what_opens_inside_another_bar_shows_nothing(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with Progress(True) as outer:
        outer("fits", 1, 3)
        with Progress(True) as inner:
            inner("steps", 1, 2)
        with Progress(True) as inner:
            inner("steps", 2, 2)
    with Progress(True) as later:
        later("afterwards", 1, 1)
    shown = capsys.readouterr().err
    assert "fits" in shown
    assert "steps" not in shown
    assert "afterwards" in shown
