"""Many fits, in processes: what they gave, what they warned of, and which went wrong."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from ..arrays import to_host
from ..basis import MonomialBasis
from ..checks import Interrupted, generator, is_index, warn
from ..progress import Progress

__all__ = ["Generator", "counts", "positions", "repeat"]

Generator = np.random.Generator
_MANY = 0.05  # of the fits, from which on those that went wrong are worth a warning
_REMEDY = 'Use fewer terms, more samples, a stronger penalty, or kind="multiplier", which loses no row'
_NUMBER = re.compile(r"(?<![A-Za-z_\d])[−-]?\d[\d.,]*(e[+-]?\d+)?")


def repeat(task: Callable[[Generator], Any], n: int, rng: Any, n_jobs: int | None, progress: Any, what: str) -> Any:
    """The results of n tasks; what was warned of, why some failed, how many did not converge, whether all were made."""
    seed = int(rng) if is_index(rng) else int(generator(rng).integers(2**63))
    done: list[tuple[Any, str, frozenset[str]]] = []
    try:
        with Progress(progress) as bar:
            for one in Parallel(n_jobs, return_as="generator")(delayed(_tried)(task, seed, k) for k in range(n)):
                done.append(one)
                bar(what, len(done), n)
    except KeyboardInterrupt:
        if sum(not error for _, error, _ in done) < 2:
            raise
        warn(f"interrupted after {len(done):,} of {n:,} {what}: the result is of those", Interrupted)
    good = [(result, messages) for result, error, messages in done if not error]
    said, failures = Counter(m for _, messages in good for m in messages), Counter(e for _, e, _ in done if e)
    lost = sum(any(m.startswith(ConvergenceWarning.__name__) for m in messages) for _, messages in good)
    _warn_of(failures, lost, len(good), what)
    return [result for result, _ in good], said, failures, lost, len(done) == n


def _tried(task: Callable[[Generator], Any], seed: int, k: int) -> tuple[Any, str, frozenset[str]]:
    """A result, or why there is none, and what was warned of; numbers in messages are blotted out."""
    result, error = None, ""
    with warnings.catch_warnings(record=True) as caught, Progress(False):  # the bars of fits would be many
        warnings.simplefilter("always")
        try:
            result = task(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,))))
        except Exception as failure:
            error = _NUMBER.sub("…", f"{type(failure).__name__}: {failure}")
    if any(issubclass(one.category, Interrupted) for one in caught):  # it made do with part of its path
        raise KeyboardInterrupt
    return result, error, frozenset(_NUMBER.sub("…", f"{one.category.__name__}: {one.message}") for one in caught)


def _warn_of(failures: Counter[str], lost: int, good: int, what: str) -> None:
    """Fits that failed or did not converge, if they are many; an error if hardly any is left."""
    done = good + failures.total()
    if done - good > _MANY * done:
        why, times = failures.most_common(1)[0]
        message = f"{done - good:,} of {done:,} {what} failed, {times:,} of them with {why}"
        if good < 2:
            raise ValueError(message)
        warn(f"{message}. The result is of the others, which may be the tamer ones. {_REMEDY}")
    if lost > _MANY * good:
        warn(f"{lost:,} of {good:,} {what} did not converge, and may be far off. {_REMEDY}", ConvergenceWarning)


def counts(sample_weight: Any, n: int) -> np.ndarray:
    """Weights that a fit has accepted, (n,)."""
    return np.ones(n) if sample_weight is None else np.asarray(to_host(sample_weight), dtype=np.float64)


def positions(basis: MonomialBasis, factors: np.ndarray) -> np.ndarray:
    """The places of terms in a basis, -1 for those it has not."""
    return basis.positions(basis.padded(factors))
