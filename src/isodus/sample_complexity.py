"""How many samples it takes: the sequential search of the paper for n*, the smallest n at which recovery is sure.

"Let us define n* as the smallest number of samples such that the graph is reconstructed correctly for 45 different and
independent sets of samples in a row […] We use sequential search to determine n*, increasing the search value by 25
samples if 45 trials in a row are not successful, and decreasing by 10 if they are."  (Paper, structure learning.)

So n walks: +25 after a failure, −10 after a success. The text does not say when the walk ends. Here an n has one
verdict, as its samples have fixed seeds, and the walk ends when it comes to an n that it has tried: from there it would
only repeat itself. n* is the smallest n that succeeded. If recovery is certain from some n on and fails below it, the
walk goes round all multiples of the greatest common divisor of its steps (5) between 10 below that n and 25 above it,
so that n* is exact to that divisor, whatever the start.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from . import io
from .checks import count, generator, is_index, warn
from .progress import Progress, Show

__all__ = ["SampleComplexity", "smallest_n"]

_FORMAT = "isodus-sample-complexity"
_SHORT = 0.1  # seconds


@dataclass(frozen=True, repr=False)
class SampleComplexity:
    """What `smallest_n` found.

    Attributes
    ----------
    n : int or None
        The smallest n that was tried with as many successes in a row as were asked for; None if there was none.
    history : list of (int, int)
        Every n that was tried, in this order, and its successes before the first failure.
    trials : int
        How many trials that took, those after a first failure not counted.
    complete : bool
        False if the search was interrupted: then a smaller n may succeed.
    """

    n: int | None
    history: list[tuple[int, int]]
    trials: int
    complete: bool

    def __repr__(self) -> str:
        found = "no n succeeded" if self.n is None else f"n = {self.n:,}"
        tried = f"{len(self.history):,} value{'' if len(self.history) == 1 else 's'} of n"
        ended = "" if self.complete else "; interrupted"
        return f"SampleComplexity: {found}, of {tried} with {self.trials:,} trials{ended}"


def smallest_n(
    succeeds: Callable[[int, int], bool],
    *,
    start: int = 900,
    up: int = 25,
    down: int = 10,
    successes: int = 45,
    minimum: int = 2,
    maximum: int = 1_000_000,
    checkpoint: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = 0,
    progress: Show = None,
) -> SampleComplexity:
    """The smallest n with so many successes in a row, by a walk: `up` after a failure, `down` after a success.

    Forty-five successes in a row happen with probability 0.95⁴⁵ < 0.1 if one has probability 0.95: they show, with
    confidence 90 %, that it is larger. That holds for an n by itself; as the smallest of many n that were tried, n*
    had some luck. A first failure ends the trials of an n.

    Parameters
    ----------
    succeeds : callable
        ``succeeds(n, seed)`` makes one trial, draws n samples with this seed, estimates, compares, and returns True or
        False; an error ends the search. The seed is an integer below 2³² that follows from `rng`, n and the number of
        the trial alone, so that nothing depends on `n_jobs`.
    start, up, down, successes : int
        Where the walk begins, its steps, and how many successes in a row make an n succeed; the paper's by default.
    minimum, maximum : int
        The walk stays between these: a step beyond one leads to it. If not even `maximum` succeeds, nor any n before,
        there is a warning and the n of the result is None.
    checkpoint : path, optional
        A JSON file, written anew after every n. If it exists the search goes on from there; `start`, `up`, `down`,
        `successes` and `rng` must be as they were, and so should `succeeds`, which the file does not know.
    n_jobs : int, optional
        Trials that run at once, in processes, as everywhere in joblib; -1 is one a core.
    rng : int, numpy.random.Generator or None
        Where seeds come from; with a checkpoint an integer.
    progress : bool or callable, optional
        A bar, by default on a terminal after a second, or a function, as in `ISODUS`. Ctrl-C ends it with what there
        is and a warning; with a checkpoint the same call goes on.

    Examples
    --------
    >>> from isodus.sample_complexity import smallest_n
    >>> smallest_n(lambda n, seed: n >= 137, start=200)
    SampleComplexity: n = 140, of 11 values of n with 407 trials

    How many samples the structure of a Gaussian on a graph takes, with the paper's threshold::

        truth = regular_gaussian(20)

        def succeeds(n, seed):
            est = PseudoLikelihood(2).fit(truth.sample(n, rng=seed))
            return compare_structures(threshold(est.model_, coupling=0.125), truth).exact

        smallest_n(succeeds, n_jobs=-1, checkpoint="n_star_20.json")
    """
    if not callable(succeeds):
        raise ValueError(f"succeeds must be a function of n and a seed, not {succeeds!r}")
    start, up, down = count(start, "start"), count(up, "up"), count(down, "down")
    successes, minimum, maximum = count(successes, "successes"), count(minimum, "minimum"), count(maximum, "maximum")
    if not minimum <= start <= maximum:
        raise ValueError(f"start={start} must lie between minimum={minimum} and maximum={maximum}")
    settings = dict(start=start, up=up, down=down, successes=successes, seed=_seed(rng, checkpoint))
    known = {} if checkpoint is None else _resumed(checkpoint, settings)
    history: dict[int, int] = {}
    n, complete = start, False
    try:
        with Progress(progress) as bar, Parallel(n_jobs=n_jobs, batch_size=1) as pool:
            while n not in history:
                if n in known:
                    history[n] = known[n]
                else:
                    history[n] = _successes(succeeds, n, settings, pool, effective_n_jobs(n_jobs), bar)
                    _keep(checkpoint, settings, known | history)
                n = max(n - down, minimum) if history[n] == successes else min(n + up, maximum)
        complete = True
    except KeyboardInterrupt:
        _keep(checkpoint, settings, known | history)
    found = min((m for m, k in history.items() if k == successes), default=None)
    if not complete:
        _say_interrupted(n, history, found, checkpoint)
    elif found is None:
        best = max(history, key=lambda m: history[m])
        warn(
            f"no n up to maximum={maximum:,} had {successes} successes in a row; the most were {history[best]}, at "
            f"n = {best:,}. Raise maximum, or ask why trials fail"
        )
    trials = sum(min(k + 1, successes) for k in history.values())
    return SampleComplexity(found, list(history.items()), trials, complete)


def _successes(
    succeeds: Callable[[int, int], bool], n: int, settings: Mapping[str, int], pool: Parallel, jobs: int, bar: Progress
) -> int:
    """How many trials succeed before the first that does not, or before there are enough.

    As many at once as there are jobs, so that a failure wastes few; more where they are so short that handing them to
    processes would take longer.
    """
    done, size, wanted = 0, jobs, settings["successes"]
    while done < wanted:
        bar(f"trials with n = {n:,}", done, wanted)
        some, started = range(done, min(done + size, wanted)), time.monotonic()
        results = pool(delayed(_trial)(succeeds, n, _trial_seed(settings["seed"], n, k)) for k in some)
        if not all(results):
            return done + results.index(False)
        done = some.stop
        if jobs > 1 and time.monotonic() - started < _SHORT:
            size *= 2
    return wanted


def _trial(succeeds: Callable[[int, int], bool], n: int, seed: int) -> bool:
    try:
        result = succeeds(n, seed)
    except Exception as error:
        error.add_note(f"in succeeds(n={n}, seed={seed})")
        raise
    if not isinstance(result, bool | np.bool_):
        raise TypeError(f"succeeds(n={n}, seed={seed}) must return True or False, not {result!r}")
    return bool(result)


def _trial_seed(seed: int, n: int, trial: int) -> int:
    """Below 2³², which scikit-learn's random_state takes as well."""
    return int(np.random.SeedSequence(seed, spawn_key=(n, trial)).generate_state(1)[0])


def _seed(rng: Any, checkpoint: Any) -> int:
    if is_index(rng):
        return int(rng)
    drawn = int(generator(rng).integers(2**63))
    if checkpoint is not None:
        raise ValueError(f"with a checkpoint rng must be an integer, so that the search can go on; not {rng!r}")
    return drawn


def _resumed(path: str | os.PathLike[str], settings: Mapping[str, int]) -> dict[int, int]:
    """Successes by n of a search with these settings; a new file, if there is none, shows that it can be written."""
    if not Path(path).exists():
        _keep(path, settings, {})
        return {}
    content = io.read_json(path, "checkpoint of smallest_n", _FORMAT)
    there = content.get("settings")
    if not isinstance(there, dict) or not _is_history(content.get("history"), settings["successes"], there):
        raise ValueError(f"{path} is damaged: delete it to begin anew")
    differ = [name for name in settings if there.get(name) != settings[name]]
    if differ:
        how = ", ".join(f"{name} is {settings[name]} here and {there.get(name)} there" for name in differ)
        raise ValueError(f"{path} belongs to another search: {how}. Use another file, or delete it")
    return dict(content["history"])


def _is_history(history: Any, successes: int, there: Mapping[str, Any]) -> bool:
    """Whether these are pairs of an n and its successes."""
    most = there.get("successes", successes)
    return isinstance(history, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(map(is_index, pair)) and pair[1] <= most for pair in history
    )


def _keep(path: str | os.PathLike[str] | None, settings: Mapping[str, int], history: Mapping[int, int]) -> None:
    if path is not None:
        content = {"format": _FORMAT, "settings": dict(settings), "history": list(history.items())}
        io.write_text(path, json.dumps(content) + "\n")


def _say_interrupted(n: int, history: Mapping[int, int], found: int | None, checkpoint: Any) -> None:
    best = "none has succeeded" if found is None else f"the smallest that succeeded is {found:,}"
    go_on = (
        "Nothing was kept: give a checkpoint to be able to go on"
        if checkpoint is None
        else f"They are kept in {checkpoint}: the same call goes on from there"
    )
    warn(f"interrupted at n = {n:,}, after {len(history):,} other values of n, of which {best}. {go_on}")
