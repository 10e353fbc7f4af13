"""Tables of peers: where isodus loses is computed, what is too slow is stopped, one block of a page is replaced."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import peers_table
from peers_table import BEGIN, END, Row, Task, block, measure, replace, verdict

HIGH = Task("a task", "F1", True, "isodus", "About it.")
OURS = Row("a task", "p = 1", "isodus", {0: 0.9, 1: 0.8, 2: 0.85}, [1.0, 1.0, 1.0])


def peer(values, seconds):
    return Row("a task", "p = 1", "peer", dict(enumerate(values)), [seconds] * len(values))


@pytest.mark.parametrize(
    ("values", "seconds", "said"),
    [
        ((0.95, 0.86, 0.90), 2.0, "more accurate, slower"),
        ((0.95, 0.86, 0.90), 0.5, "more accurate, quicker"),
        ((0.80, 0.90, 0.85), 0.5, "as accurate, quicker"),
        ((0.9001, 0.8001, 0.8501), 2.0, "as accurate, slower"),
        ((0.70, 0.60, 0.66), 0.5, "less accurate, quicker"),
        ((0.91,), 2.0, "more accurate, slower"),
        ((np.nan, 0.9, 0.9), 0.5, "less accurate, quicker"),
    ],
)
def test_verdicts_are_of_paired_sets(values, seconds, said):
    assert verdict(HIGH, OURS, peer(values, seconds)) == said


def test_lower_is_better_where_it_is_an_error():
    low = HIGH._replace(high=False)
    assert verdict(low, OURS, peer((0.80, 0.71, 0.74), 2.0)) == "more accurate, slower"
    assert verdict(low, OURS, peer((np.inf, 0.1, 0.1), 2.0)) == "less accurate, slower"


def test_a_block_names_the_rows_that_are_lost():
    rows = [OURS, peer((0.95, 0.86, 0.90), 2.0), Row("a task", "p = 1", "other", {}, [], "not installed")]
    text = block([HIGH], rows, "today")
    assert "| p = 1 | isodus | 0.850 ± 0.029 | 1 |  |" in text
    assert "| p = 1 | other | not installed |  |  |" in text
    assert "- a task: p = 1: peer (more accurate, slower)." in text
    assert "- a task: in no row." in block([HIGH], [OURS], "today")


def test_what_is_too_slow_is_stopped_and_not_tried_again(monkeypatch):
    if not hasattr(peers_table.signal, "setitimer"):
        pytest.skip("this system has no such signal")
    monkeypatch.setattr(peers_table, "LIMIT", 0.5)

    def forever(data):
        while True:
            pass

    todo, slow = {"isodus": lambda data: data, "peer": forever, "none": "not installed"}, {}

    def rows(size):
        return {row.method: row for row in measure(HIGH, size, todo, lambda k: k, lambda data, x: x, 2, slow)}

    first, second = rows("small"), rows("large")
    assert first["isodus"].values == second["isodus"].values == {0: 0, 1: 1}
    assert first["peer"].note == "stopped after 0.5 s"
    assert second["peer"].note == "not run: stopped after 0.5 s at small"
    assert second["none"].note == "not installed"


def test_only_the_block_of_a_page_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    replace(page, "new ± 1")
    assert page.read_text(encoding="utf-8") == f"before\n{BEGIN}\nnew ± 1\n{END}\nafter\n"
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(SystemExit, match="between which"):
        replace(page, "new")
    assert page.read_text(encoding="utf-8") == "no markers"
