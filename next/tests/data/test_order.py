"""What is in the order of rows: found in series and groups, and not in independent rows of any kind."""

import numpy as np
import pandas as pd
import pytest
from cases import DATA
from scipy.signal import lfilter

from isodus import IsodusWarning, PseudoLikelihood, ScoreMatching, open_samples
from isodus.data import as_samples, order_facts

KINDS = DATA | {
    "t1.5": np.random.default_rng(1).standard_t(1.5, 1500),
    "rare": (np.arange(1500) < 5) * 1.0,
    "large": np.where(np.arange(1500) < 2, 1e9, np.random.default_rng(2).standard_normal(1500)),
}


def series(rho, n=800, p=1, seed=0):
    return lfilter([1.0], [1.0, -rho], np.random.default_rng(seed).standard_normal((n, p)), axis=0)


@pytest.mark.parametrize("name", KINDS)
def test_independent_rows_are_not_warned_of(name):
    """The level is .1 %: of 400 permutations, five are found with a probability below 1e-4."""
    rng = np.random.default_rng(3)
    found = sum(bool(order_facts(as_samples(rng.permutation(KINDS[name])[:, None])).lag1) for _ in range(400))
    assert found < 5


def test_many_columns_have_the_level_of_one():
    rng = np.random.default_rng(4)
    found = sum(bool(order_facts(as_samples(rng.standard_normal((200, 50)))).lag1) for _ in range(300))
    assert found < 4


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.76, 0.97, -0.4])
def test_series_are_found(rho):
    """r of ranks is (6/π) arcsin(ρ/2) for a Gaussian."""
    for seed in range(20):
        found = order_facts(as_samples(series(rho, seed=seed), names=["x"])).lag1
        assert found["x"] == pytest.approx(6 / np.pi * np.arcsin(rho / 2), abs=0.15)


def test_grouped_rows_are_found():
    rng = np.random.default_rng(5)
    X = np.repeat(rng.standard_normal((500, 2)), 10, axis=0) + rng.standard_normal((5000, 2))
    facts = order_facts(as_samples(X))
    assert facts.sorted == ()
    assert facts.lag1 == pytest.approx({"x0": 0.43, "x1": 0.43}, abs=0.06)  # (9/10)(1/2)


@pytest.mark.parametrize("table", [lambda X: X, lambda X: open_samples(lambda: np.array_split(X, 7))])
def test_a_fit_warns_and_names_what_to_use(table):
    X = series(0.8, 500, 3)
    X[:, 1] = np.random.default_rng(0).standard_normal(500)
    with pytest.warns(IsodusWarning, match=r"'x0' \(0.\d\d\), 'x2' \(0.\d\d\) have .*dependence='auto'.* use groups"):
        est = ScoreMatching(2).fit(table(X))
    note = next(note for note in est.notes_ if note.kind == "dependent rows")
    assert note.variables == ("x0", "x2")
    assert note.numbers["x0"] == pytest.approx(0.8, abs=0.08)


def test_a_fit_that_was_told_does_not_warn():
    X = series(0.8, 500, 2)
    told = [{"dependence": "auto"}, {"dependence": 0}, {"groups": np.arange(500) // 10}]
    for kwargs in (*told, {"sample_weight": np.ones(500)}):
        est = ScoreMatching(2).fit(X, **kwargs)
        assert not any(note.kind == "dependent rows" for note in est.notes_)


@pytest.mark.parametrize("direction", [1, -1])
def test_sorted_rows_are_named(direction):
    X = pd.DataFrame(np.random.default_rng(6).standard_normal((500, 2)), columns=["a", "b"])
    X["b"] += X["a"]
    ordered = X.sort_values("b")[::direction]
    with pytest.warns(IsodusWarning, match="Rows are sorted by 'b'. If they were sorted after sampling, shuffle them"):
        est = PseudoLikelihood(2).fit(ordered)
    note = next(note for note in est.notes_ if note.kind == "sorted rows")
    assert note.variables == ("b",)
    assert set(note.numbers) == {"a", "b"}
    PseudoLikelihood(2).fit(ordered.sample(frac=1, random_state=0))


def test_dates_name_dependence():
    times = pd.DataFrame({"t": pd.date_range("2024-01-31", periods=500), "x": series(0.9, 500)[:, 0]})
    for table in (times, times.assign(t=times["t"].astype(str)), times.assign(t=times["t"].dt.date)):
        with pytest.raises(ValueError, match=r"Column 't' holds .*dependence='auto'"):
            PseudoLikelihood(2).fit(table)
