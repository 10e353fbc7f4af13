"""Bars that are shown, and those that are not."""

from threading import Thread

import numpy as np
import pytest
from sklearn.base import clone

from isodus import ISODUS, PseudoLikelihood, ScoreMatching, bootstrap, open_samples, progress
from isodus.datasets import double_wells
from isodus.progress import Progress, report


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


def test_a_function_is_told_of_everything_at_once():
    told = []
    with Progress(lambda *where: told.append(where)) as outer:
        outer("fits", 1, 3)
        with Progress(True) as inner:
            inner("steps", 1, 2)
            report("steps", 2, 2)
        report("steps", 1, minor=True)  # of a fit, whose number is known
        report("fits", 3, 3)
        report("steps", 7, minor=True)
    report("nobody listens", 1)
    assert told == [("fits", 1, 3), ("fits", 3, 3), ("steps", 7, None)]


def test_without_a_terminal_there_is_a_log(monkeypatch, caplog, capsys):
    monkeypatch.setattr(progress, "_LOGGED", 0.0)
    caplog.set_level("INFO", "isodus")
    with Progress() as outer:
        outer("sampling", 100, 2000)
        with Progress() as inner:
            inner("inside", 1, 2)
    with Progress(False) as quiet:
        quiet("nothing", 1, 2)
    assert caplog.messages == ["sampling: 100 of 2,000"]
    assert capsys.readouterr().err == ""


def test_threads_have_bars_of_their_own():
    told = []
    with Progress(lambda *where: told.append(where)):
        other = Thread(target=report, args=("elsewhere", 1))
        other.start()
        other.join()
    assert told == []


@pytest.fixture(scope="module")
def X():
    return np.asarray(double_wells(2).sample(300, rng=0))


@pytest.mark.parametrize("estimator", [ISODUS, PseudoLikelihood, ScoreMatching])
def test_fits_tell_how_far_they_are(estimator, X):
    told = []
    options = dict(l1="cv", folds=2, l1_path=np.geomspace(2, 0.1, 6))
    est = estimator(4, **options, progress=lambda *where: told.append(where)).fit(X)
    whats = [what for what, _, _ in told]
    assert {"penalties, fold 1 of 2", "penalties, fold 2 of 2", "penalties", "fitting what was chosen"} <= set(whats)
    of_path = [(done, total) for what, done, total in told if what == "penalties"]
    assert of_path == [(k + 1, len(est.path_.l1)) for k in range(len(of_path))]
    assert "fitting, Newton steps" not in whats[: whats.index("fitting what was chosen")]
    assert "progress" not in est.model_.settings
    quiet = clone(est).set_params(progress=False).fit(X)
    np.testing.assert_array_equal(quiet.model_.theta, est.model_.theta)


def test_steps_and_rows_of_a_stream_are_told():
    told = []
    X = np.asarray(double_wells(2).sample(40_000, rng=0))
    stream = open_samples(lambda: [X[:20_000], X[20_000:]])
    ISODUS(4, progress=lambda *where: told.append(where)).fit(stream)
    assert told[:2] == [("rows of samples", 20_000, None), ("rows of samples", 40_000, None)]
    assert ("rows of samples", 20_000, 40_000) in told
    assert any(what == "fitting, Newton steps" and total is None for what, _, total in told)


def test_what_a_function_raises_ends_the_fit(X):
    def stop(what, done, total):
        raise RuntimeError(f"enough at {what}")

    with pytest.raises(RuntimeError, match="enough at fitting"):
        ISODUS(4, progress=stop).fit(X)


def test_draws_of_a_bootstrap_are_told_and_their_fits_are_not(X):
    told = []
    est = ISODUS(2, progress=lambda *where: told.append(("fit", *where))).fit(X)
    told.clear()
    bootstrap(est, X, n_draws=3, rng=0, progress=lambda *where: told.append(where))
    assert told == [("draws", 1, 3), ("draws", 2, 3), ("draws", 3, 3)]


def test_progress_is_checked_at_fit(X):
    with pytest.raises(ValueError, match=r"progress must be True, False, None or a function \(what, done, total\)"):
        ISODUS(2, progress="yes").fit(X)
