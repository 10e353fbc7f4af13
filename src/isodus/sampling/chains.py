"""Samples by Markov chains, where no exact sum is within reach: which steps, how many, and whether they sufficed.

Several hundred chains start far apart. A pilot measures what Gibbs sweeps and Hamiltonian trajectories of several
lengths give in effective samples a second, and takes the best. Then rounds follow: so many draws of every chain are
kept, one every `thin` steps. Where they are not nearly independent, or the chains do not agree, `thin` grows by what
was measured and the round was warm-up. Chains that still disagree are in modes that they do not leave: then their
temperatures are made to differ (`tempering`).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ..arrays import one_blas_thread
from ..basis import MonomialBasis
from ..energy import energy
from ..progress import Progress
from . import convergence, sweep
from .kernels import Gibbs, Hamiltonian
from .tempering import Kernel, Ladder

__all__ = ["METHODS", "Run", "run"]

METHODS = ("gibbs", "hmc", "tempering")

_STARTS, _EACH = 64, 8  # where chains start, and how many there
_PART = 128  # chains of a job
_LARGE = 1 << 14  # values of its state from which it runs in a thread
_SWEEPS = 20
_DRAWS = 20  # of every chain, or more: fewer would not tell how they mix
_MIXED = 1.01  # R-hat, and what a round must reach: this share of independent samples
_SHARE = 0.5
_FAR_LESS = 0.5  # three standard errors of an estimate from the means by start
_LENGTHS = (4, 8, 16, 32)
_ROUNDS = 12
_THIN = {"auto": 32, "gibbs": 128, "hmc": 128, "tempering": 256}


@dataclass(frozen=True)
class Run:
    """What chains gave. draws: (chains, draws, p); r_hat, ess, tail_ess: (p + 1,), the energy last.

    warm_up: steps before the first draw; seconds: of all that came before, and of the draws.
    """

    draws: np.ndarray
    method: str
    kind: str  # "gibbs" or "hmc"
    warm_up: int
    thin: int
    r_hat: np.ndarray
    ess: np.ndarray
    tail_ess: np.ndarray
    acceptance: float | None
    swap_rates: np.ndarray | None
    seconds: tuple[float, float]
    complete: bool

    @property
    def mixed(self) -> bool:
        """Whether chains agree, and have not hardly moved."""
        return bool(np.max(self.r_hat) < _MIXED and np.min(self.ess) > self.draws.shape[0])

    def details(self, variables: Sequence[str]) -> dict[str, Any]:
        """In plain values, for `SamplingInfo`."""
        return {
            "method": self.method,
            "variables": list(variables),
            "chains": self.draws.shape[0],
            "draws": self.draws.shape[1],
            "thin": self.thin,
            "warm_up": self.warm_up,
            "seconds": self.seconds,
            "acceptance": self.acceptance,
            "swap_rates": None if self.swap_rates is None else self.swap_rates.tolist(),
            "energy_r_hat": float(self.r_hat[-1]),
            "energy_ess": float(self.ess[-1]),
        }


class _Plain:
    """Chains that all have the same energy."""

    swap_rates = None

    def __init__(self, kernel: Kernel, X: np.ndarray) -> None:
        self.kernels, self.X = [kernel], X

    def step(self, rng: np.random.Generator, learn: bool = False) -> None:
        self.kernels[0].step(self.X, rng, learn)


Sampler = _Plain | Ladder


class _Redrawn:
    """Gibbs sweeps by quantiles, of variables on any support."""

    acceptance: float | None = None

    def __init__(self, basis: MonomialBasis, theta: np.ndarray, names: Sequence[str]) -> None:
        self.conditionals, self.names = sweep.Conditionals(basis, theta), names
        self.groups = self.conditionals.colours()

    def tune(self, X: np.ndarray) -> None:
        """There is nothing to tune."""

    def step(self, X: np.ndarray, rng: np.random.Generator, learn: bool = False) -> None:
        """One sweep."""
        sweep.sweep(self.conditionals, self.groups, self.names, X, rng, 1.0)


def _begin_in_spaces(
    basis: MonomialBasis, theta: np.ndarray, names: Sequence[str], rng: np.random.Generator, start: np.ndarray | None
) -> np.ndarray:
    """States, (p, chains), from samples, or from every variable by itself, after a first warm-up."""
    if start is None:
        start = sweep.chains(basis, theta, sweep.Conditionals(basis, theta), names, rng, _STARTS, _SWEEPS)
    some = rng.permutation(start.shape[1]) if start.shape[1] > _STARTS else np.arange(_STARTS) % start.shape[1]
    return np.repeat(start[:, some[:_STARTS]], _EACH, axis=1)


def run(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str],
    n: int,
    rng: np.random.Generator,
    *,
    method: str = "auto",
    prefer: str | None = None,
    start: np.ndarray | None = None,
    n_jobs: int | None = None,
    progress: Progress,
) -> Run:
    """At least n samples of exp(−E). method: "auto" or one of METHODS; start: (p, any number), where to begin.

    prefer: "gibbs" or "hmc", if the pilot is not to choose between them by their speed.
    """
    started = time.perf_counter()
    with one_blas_thread():
        progress("finding where the density is", 0, None)
        groups = sweep.colours(basis, theta)
        if basis.spaces is not None:
            if method in ("hmc", "tempering"):
                raise ValueError(f'method="{method}" is for variables that live on the whole line; use "gibbs"')
            sampler = _Plain(_Redrawn(basis, theta, names), _begin_in_spaces(basis, theta, names, rng, start))
            return _collect(sampler, n, rng, basis, theta, _THIN["gibbs"], n_jobs, progress, started)
        X = _begin(basis, theta, names, groups, rng, start)
        progress("choosing how to step", 0, None)
        make, kernel = _pilot(basis, theta, names, groups, X, rng, method if method in ("gibbs", "hmc") else prefer)
        if method != "tempering":
            found = _collect(_Plain(kernel, X), n, rng, basis, theta, _THIN[method], n_jobs, progress, started)
            if found.mixed or not found.complete or method != "auto":
                return found
        progress("choosing temperatures", 0, None)
        ladder = Ladder(basis, theta, X, make)
        ladder.adapt(rng)
        return _collect(ladder, n, rng, basis, theta, _THIN["tempering"], n_jobs, progress, started)


def _begin(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str],
    groups: Sequence[Sequence[int]],
    rng: np.random.Generator,
    start: np.ndarray | None,
) -> np.ndarray:
    """States, (p, chains), after a first warm-up; from samples, or from far apart and downhill."""
    if start is None:
        conditionals = sweep.Conditionals(basis, theta)
        start = sweep.chains(basis, theta, conditionals, names, rng, _STARTS, _SWEEPS)
    some = rng.permutation(start.shape[1]) if start.shape[1] > _STARTS else np.arange(_STARTS) % start.shape[1]
    X = np.repeat(start[:, some[:_STARTS]], _EACH, axis=1)
    gibbs = Gibbs(basis, theta, names, groups)
    for k in range(_SWEEPS):
        if k in (0, 2, 5, 10):
            gibbs.tune(X)
        gibbs.step(X, rng, learn=True)
    return X


def _pilot(
    basis: MonomialBasis,
    theta: np.ndarray,
    names: Sequence[str],
    groups: Sequence[Sequence[int]],
    X: np.ndarray,
    rng: np.random.Generator,
    prefer: str | None,
) -> tuple[Callable[[MonomialBasis, np.ndarray], Kernel], Kernel]:
    """What makes kernels of the kind that gives most effective samples a second, and one of them."""

    def by_gibbs(basis: MonomialBasis, theta: np.ndarray) -> Kernel:
        return Gibbs(basis, theta, names, groups)

    gibbs = by_gibbs(basis, theta)
    gibbs.tune(X)
    rate, _, draws = _rate(gibbs, X, rng, 24)
    trial = Hamiltonian(basis, theta, _LENGTHS[0])
    trial.tune(draws.reshape(-1, len(X)).T)
    for _ in range(40):
        trial.step(X, rng, learn=True)
    trial.settle()
    best, most, fastest = trial, 0.0, 0.0
    for length in _LENGTHS:  # times are taken as proportional to lengths, so that the clock does not choose among them
        kernel = copy.copy(trial)
        kernel.length = length
        here, duration, _ = _rate(kernel, X, rng, 12)
        share = here * duration / (length + 1.5)
        if share <= most:
            break
        best, most, fastest = kernel, share, here
    if prefer == "gibbs" or (prefer is None and fastest <= rate):
        return by_gibbs, gibbs
    length = best.length
    return lambda basis, theta: Hamiltonian(basis, theta, length), best


def _rate(kernel: Kernel, X: np.ndarray, rng: np.random.Generator, steps: int) -> tuple[float, float, np.ndarray]:
    """Effective samples a second, of the variables that mix least, seconds a step, and the draws; X goes on."""
    draws, seconds = [], []
    for _ in range(steps):
        started = time.perf_counter()
        kernel.step(X, rng)
        seconds.append(time.perf_counter() - started)
        draws.append(X.T.copy())
    x = np.stack(draws, axis=1)
    tau = convergence.autocorrelation_time(x)
    return X.shape[1] / float(np.quantile(tau, 0.9)) / min(seconds), min(seconds), x


def _collect(
    sampler: Sampler,
    n: int,
    rng: np.random.Generator,
    basis: MonomialBasis,
    theta: np.ndarray,
    most: int,
    n_jobs: int | None,
    progress: Progress,
    started: float,
) -> Run:
    """Rounds of draws, with more and more steps between them, until they are nearly independent and chains agree."""
    chains = sampler.X.shape[1]
    parts = [_part(sampler, slice(first, first + _PART)) for first in range(0, chains, _PART)]
    wanted, draws, thin, warm_up = max(-(-n // chains), _DRAWS), _DRAWS, 1, 0
    found: Run | None = None
    for rounds_left in range(_ROUNDS, 0, -1):
        out, complete, begun = [], True, time.perf_counter()
        try:
            for block in _blocks(parts, draws, thin, rng, n_jobs):
                out.append(block)
                done = sum(block.shape[1] for block in out)
                progress(f"{_called(sampler)}, a draw every {thin} steps", done, draws)
        except KeyboardInterrupt:
            if not out and found is not None:
                return replace(found, complete=False)
            if not out:
                raise
            complete = False
        x, ended = np.concatenate(out, axis=1), time.perf_counter()
        E = energy(basis, theta, x.reshape(-1, x.shape[2]).T).reshape(*x.shape[:2], 1)
        if not np.ptp(E):  # a uniform density: there is nothing that could differ
            E = x[:, :, :1]
        watched = np.concatenate([x, E], axis=2)
        found = Run(
            x,
            _called(sampler),
            "hmc" if isinstance(parts[0].kernels[-1], Hamiltonian) else "gibbs",
            warm_up,
            thin,
            convergence.r_hat(_merged(watched)),
            _effective(watched),
            convergence.tail_effective_sample_size(watched),
            parts[0].kernels[-1].acceptance,
            parts[0].swap_rates,
            (begun - started, ended - begun),
            complete,
        )
        need = x.shape[0] * x.shape[1] / max(float(found.ess[:-1].min()), 1.0)
        independent, agreed = need < 1 / _SHARE, found.r_hat.max() < _MIXED
        settled = (agreed and independent) or (thin >= most and not independent)
        if not complete or (settled and draws == wanted):
            break
        warm_up += draws * thin
        if settled or rounds_left == 2:
            draws = wanted
        if not independent:
            thin = min(int(np.ceil(thin * np.clip(0.75 * need, 1.5, 8))), most)
    assert found is not None
    return found


def _effective(x: np.ndarray) -> np.ndarray:
    """Effective sample sizes, (p,): those of the chains, or, where that is far less, what the means by start tell.

    Short chains that never leave where they are do not tell by themselves how long they would have to be.
    """
    ess = convergence.effective_sample_size(x)
    by_start = _merged(x).mean(axis=1)
    spread = by_start.var(axis=0, ddof=1)
    told = len(by_start) * x.var(axis=(0, 1)) / np.maximum(spread, 1e-300)
    return np.where(told < _FAR_LESS * ess, told, ess)


def _merged(x: np.ndarray) -> np.ndarray:
    """Chains with the same start as one, their draws in turn: many chains are short, and R-hat wants long ones.

    Nested R-hat (Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari and Gelman, 2024): the starts must be forgotten.
    """
    draws, p = x.shape[1:]
    return x.reshape(-1, _EACH, draws, p).swapaxes(1, 2).reshape(-1, draws * _EACH, p)


def _blocks(
    parts: list[Sampler], draws: int, thin: int, rng: np.random.Generator, n_jobs: int | None
) -> Iterator[np.ndarray]:
    """The draws, (chains, some draws, p) at a time, of all parts; parts go on in place."""
    pieces = min(draws, 10)
    # trajectories of many variables are few large products, which threads share; all else holds the interpreter
    large = isinstance(parts[0].kernels[-1], Hamiltonian) and parts[0].X.size >= _LARGE
    prefer = "threads" if large else None
    for k in range(pieces):
        some = draws * (k + 1) // pieces - draws * k // pieces
        seeds = np.random.SeedSequence(rng.integers(2**32, size=4).tolist()).spawn(len(parts))
        jobs = (delayed(_advance)(part, some, thin, seed) for part, seed in zip(parts, seeds, strict=True))
        results: list[tuple[Sampler, np.ndarray]] = Parallel(n_jobs=n_jobs, prefer=prefer, max_nbytes=None)(jobs)
        parts[:] = [part for part, _ in results]
        yield np.concatenate([block for _, block in results])


def _advance(part: Sampler, draws: int, thin: int, seed: Any) -> tuple[Sampler, np.ndarray]:
    rng, out = np.random.default_rng(seed), []
    with one_blas_thread():
        for _ in range(draws):
            for _ in range(thin):
                part.step(rng)
            out.append(part.X.T.copy())
    return part, np.stack(out, axis=1)


def _part(sampler: Sampler, columns: slice) -> Sampler:
    """Some of the chains, to go on by themselves."""
    part = copy.copy(sampler)
    if isinstance(part, Ladder):
        part.states = [X[:, columns].copy() for X in part.states]
        part._forget()
    else:
        part.X = part.X[:, columns].copy()
    return part


def _called(sampler: Sampler) -> str:
    kernel = sampler.kernels[-1]
    steps = f"Hamiltonian, {kernel.length} leapfrog steps" if isinstance(kernel, Hamiltonian) else "Gibbs"
    return f"parallel tempering, {len(sampler.betas)} levels, {steps}" if isinstance(sampler, Ladder) else steps
