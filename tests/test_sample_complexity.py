"""The search for n* on trials whose probability is known."""

import json
import os
from math import exp, gcd

import numpy as np
import pytest

from isodus.sample_complexity import smallest_n


def certain(threshold):
    return lambda n, seed: n >= threshold


def likely(scale):
    """Succeeds with probability 1 − exp(−n/scale)."""
    return lambda n, seed: np.random.default_rng(seed).random() < 1 - exp(-n / scale)


class Trials:
    """A trial that counts, and is interrupted at a call of some number."""

    def __init__(self, trial, stop=None):
        self.trial, self.stop, self.seen = trial, stop, []

    def __call__(self, n, seed):
        self.seen.append((n, seed))
        if len(self.seen) == self.stop:
            raise KeyboardInterrupt
        return self.trial(n, seed)


def test_forty_five_in_a_row_are_enough_for_the_claim():
    assert 0.95**45 < 0.1 < 0.95**44


def test_the_walk_goes_up_by_25_and_down_by_10():
    result = smallest_n(certain(137), start=150)
    values = [n for n, _ in result.history]
    assert values == [150, 140, 130, 155, 145, 135, 160]
    assert [k for _, k in result.history] == [45, 45, 0, 45, 45, 0, 45]
    assert (result.n, result.trials, result.complete) == (140, 5 * 45 + 2, True)
    assert smallest_n(certain(137), start=900).n == 140
    assert smallest_n(certain(900), start=100).n == 900


@pytest.mark.parametrize(("up", "down"), [(25, 10), (10, 25), (7, 3), (6, 4), (1, 1), (5, 100), (64, 64)])
def test_a_threshold_is_found_to_the_common_divisor_of_the_steps(up, down):
    grid = gcd(up, down)
    for start in (203, 777, 1302):
        for edge in (700, 777, 843):
            result = smallest_n(certain(edge), start=start, up=up, down=down, successes=2, minimum=1)
            assert result.n == edge + (start - edge) % grid
            for (n, k), (after, _) in zip(result.history, result.history[1:], strict=False):
                assert after == (n - down if k == 2 else n + up)


def test_the_ends_of_the_range():
    assert smallest_n(certain(0), start=35, minimum=8).history == [(35, 45), (25, 45), (15, 45), (8, 45)]
    result = smallest_n(certain(98), start=50, maximum=100)
    assert result.history == [(50, 0), (75, 0), (100, 45), (90, 0)]  # and 100 again
    assert result.n == 100
    with pytest.warns(
        UserWarning, match="no n up to maximum=100 had 45 successes in a row; the most were 0, at n = 50"
    ):
        result = smallest_n(certain(101), start=50, maximum=100)
    assert (result.n, result.complete, result.history) == (None, True, [(50, 0), (75, 0), (100, 0)])
    assert repr(result) == "SampleComplexity: no n succeeded, of 3 values of n with 3 trials"


def test_history_counts_successes_before_the_first_failure():
    seen = Trials(likely(200.0))
    result = smallest_n(seen, start=600, successes=10, rng=3)
    trials = {}
    for n, seed in seen.seen:
        trials.setdefault(n, []).append(seen.trial(n, seed))
    assert list(trials) == [n for n, _ in result.history]
    for n, k in result.history:
        assert trials[n] == ([True] * 10 if k == 10 else [True] * k + [False])
    assert result.trials == len(seen.seen)
    assert result.n == min(n for n, k in result.history if k == 10)


def test_found_n_are_those_of_a_walk_whose_probabilities_are_known():
    """An n succeeds with probability (1 − exp(−n/50))⁴⁵: the same walk with coins of that bias ends at the same n."""

    def walk(rng, n=400):
        verdict = {}
        while n not in verdict:
            verdict[n] = rng.random() < (1 - exp(-n / 50)) ** 45
            n += -10 if verdict[n] else 25
        return min(n for n in verdict if verdict[n])

    rng = np.random.default_rng(0)
    expected = [walk(rng) for _ in range(2000)]
    found = [smallest_n(likely(50.0), start=400, rng=seed).n for seed in range(40)]
    error = np.std(expected) / np.sqrt(40)
    assert abs(np.mean(found) - np.mean(expected)) < 3 * error
    assert 4 * error < 50 * np.log(45 / 25)  # with 25 in a row all n would be smaller by so much
    assert np.mean(1 - np.exp(-np.array(found) / 50) > 0.95) >= 0.9


def test_seeds_follow_from_the_seed_n_and_the_trial_alone():
    one, other, moved = Trials(certain(137)), Trials(certain(137)), Trials(certain(137))
    smallest_n(one, start=160)
    smallest_n(other, start=150)
    smallest_n(moved, start=160, rng=1)
    by_n = [{n: [s for m, s in t.seen if m == n] for n, _ in t.seen} for t in (one, other, moved)]
    assert all(by_n[0][n] == by_n[1][n] for n in (140, 145, 150))
    assert len({seed for t in (one, moved) for _, seed in t.seen}) == len(one.seen) + len(moved.seen)
    assert all(isinstance(seed, int) and 0 <= seed < 2**32 for _, seed in one.seen)
    drawn = [smallest_n(likely(50.0), start=300, rng=np.random.default_rng(5)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert smallest_n(certain(137), start=150, rng=None).n == 140


def test_two_processes_find_the_same(tmp_path):
    options = dict(start=260, successes=7, rng=4)
    whole = smallest_n(likely(60.0), **options)
    assert smallest_n(likely(60.0), n_jobs=2, **options) == whole

    def trial(n, seed):
        if n == 240:
            raise KeyboardInterrupt
        return likely(60.0)(n, seed)

    with pytest.warns(UserWarning, match="interrupted at n = 240, after 2 other values of n"):
        part = smallest_n(trial, n_jobs=2, checkpoint=tmp_path / "n.json", **options)
    assert part.history == whole.history[:2]
    assert smallest_n(likely(60.0), checkpoint=tmp_path / "n.json", **options) == whole


def test_an_interrupted_search_goes_on_where_it_was(tmp_path):
    path = tmp_path / "n.json"
    options = dict(start=500, successes=8, rng=2)
    whole = smallest_n(likely(60.0), **options)
    parts, seen = [], []
    for stop in (1, 30, 45, 60):
        trials = Trials(likely(60.0), stop)
        with pytest.warns(UserWarning, match="interrupted at n = .* kept in .*n.json: the same call goes on"):
            parts.append(smallest_n(trials, checkpoint=path, **options))
        seen += trials.seen
    assert [part.complete for part in parts] == [False] * 4
    assert [part.history for part in parts] == [whole.history[: len(part.history)] for part in parts]
    assert 0 == len(parts[0].history) < len(parts[1].history) < len(parts[2].history) < len(parts[3].history)
    assert parts[0].n is None
    assert parts[3].n == min(n for n, k in parts[3].history if k == 8)
    assert repr(parts[3]).endswith("; interrupted")
    rest = Trials(likely(60.0))
    assert smallest_n(rest, checkpoint=path, **options) == whole
    assert not {n for n, _ in rest.seen} & {n for n, _ in parts[3].history}
    again = Trials(likely(60.0))
    assert smallest_n(again, checkpoint=path, **options) == whole  # a search that is finished needs no trial
    assert again.seen == []
    assert os.listdir(tmp_path) == ["n.json"]


def test_an_interruption_without_a_checkpoint_says_so():
    with pytest.warns(
        UserWarning, match="after 2 other values of n, of which the smallest that succeeded is 490. Nothing"
    ):
        result = smallest_n(Trials(certain(0), 20), start=500, successes=8)
    assert (result.n, result.history, result.trials, result.complete) == (490, [(500, 8), (490, 8)], 16, False)


def test_a_search_can_be_taken_up_with_a_larger_range(tmp_path):
    path = tmp_path / "n.json"
    with pytest.warns(UserWarning, match="no n up to maximum=150"):
        smallest_n(certain(160), start=100, maximum=150, checkpoint=path)
    seen = Trials(certain(160))
    assert smallest_n(seen, start=100, checkpoint=path) == smallest_n(certain(160), start=100)
    assert min(n for n, _ in seen.seen) > 150


def test_a_checkpoint_of_another_search_is_refused(tmp_path):
    path = tmp_path / "n.json"
    smallest_n(certain(137), start=150, checkpoint=path)
    before = path.read_text()
    with pytest.raises(ValueError, match="another search: start is 160 here and 150 there, seed is 1 here and 0 there"):
        smallest_n(certain(137), start=160, rng=1, checkpoint=path)
    with pytest.raises(ValueError, match="successes is 40 here and 45 there. Use another file"):
        smallest_n(certain(137), start=150, successes=40, checkpoint=path)
    with pytest.raises(ValueError, match="with a checkpoint rng must be an integer"):
        smallest_n(certain(137), start=150, rng=None, checkpoint=path)
    assert path.read_text() == before
    content = json.loads(before)
    for damaged, message in [
        ("{", "it is not JSON"),
        ("[]", 'lacks "format"'),
        (json.dumps(content | {"history": [[150]]}), "is damaged"),
        (json.dumps(content | {"history": [[150, 46]]}), "is damaged"),
        (json.dumps(content | {"settings": None}), "is damaged"),
    ]:
        path.write_text(damaged)
        with pytest.raises(ValueError, match=message):
            smallest_n(certain(137), start=150, checkpoint=path)
        assert path.read_text() == damaged


def test_a_checkpoint_that_cannot_be_written_is_told_before_any_trial(tmp_path):
    seen = Trials(certain(137))
    with pytest.raises(FileNotFoundError):
        smallest_n(seen, checkpoint=tmp_path / "nowhere" / "n.json")
    assert seen.seen == []


def test_errors_of_a_trial_say_which_one(tmp_path):
    path = tmp_path / "n.json"

    def trial(n, seed):
        return True if n > 485 else 1 / 0

    with pytest.raises(ZeroDivisionError) as caught:
        smallest_n(trial, start=500, successes=3, checkpoint=path)
    (note,) = caught.value.__notes__
    assert note.startswith("in succeeds(n=480, seed=")
    assert json.loads(path.read_text())["history"] == [[500, 3], [490, 3]]
    with pytest.raises(TypeError, match="must return True or False, not 'yes'"):
        smallest_n(lambda n, seed: "yes")
    assert smallest_n(lambda n, seed: np.bool_(n > 100), start=110, successes=2).n == 105


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(start=0), "start must be a positive integer"),
        (dict(up=2.5), "up must be a positive integer"),
        (dict(down=-10), "down must be a positive integer"),
        (dict(successes=0), "successes must be a positive integer"),
        (dict(minimum=True), "minimum must be a positive integer"),
        (dict(maximum=1e6), "maximum must be a positive integer"),
        (dict(start=1), "start=1 must lie between minimum=2 and maximum=1000000"),
        (dict(maximum=800), "start=900 must lie between minimum=2 and maximum=800"),
        (dict(rng=-1), "rng must be"),
        (dict(rng="seed"), "rng must be"),
        (dict(progress=2), "progress must be"),
        (dict(succeeds=3), "succeeds must be a function"),
    ],
)
def test_searches_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        smallest_n(**dict(succeeds=certain(137)) | options)
