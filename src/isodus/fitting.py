"""What a fit is made of, whatever the estimator: node problems and their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from .arrays import namespace, on_device, one_blas_thread, to_host
from .basis import MonomialBasis
from .blocks import Blocked, BlockedSamples
from .checks import warn
from .description import FAR_AWAY, term_name
from .diagnostics import looked_at, strays
from .energy import raw_units
from .losses import Loss
from .model import PolynomialModel
from .objective import MANY, Evaluation, Objective
from .optimum import Optimum
from .preparation import Setting
from .samples import ArraySamples, generator
from .solvers.newton import Problem, Rung, inverse, ladder
from .wording import listed

__all__ = [
    "FAR",
    "judge",
    "judge_joint",
    "judge_weights",
    "left_out_note",
    "minimize",
    "move_note",
    "notes",
    "on_floor_note",
    "pilot_parameters",
    "sources",
    "stray_note",
]

_RUNGS = (64, 8)  # one sample in so many is what a fit starts on
_ROWS_PER_PARAMETER = 30  # how many a subsample must have
_NODES_AT_ONCE = 8  # nodes that share one pass over the samples, where memory allows
_COLLAPSED, _CONCENTRATED = 2, 50  # effective samples a parameter below which weights have
FAR = 2.0  # standard errors; a term that is moved so far leaves its interval
_MOVED = 0.1  # standard errors from which a change of a term counts
_SINGLE = 1e-5  # relative change of a value that sums in single precision cannot resolve
_DOUBLE = 1e-12  # likewise in double precision


@contextmanager
def sources(setting: Setting, n_jobs: int | None) -> Iterator[ArraySamples]:
    """The samples in standardised variables, with threads for as long as they are needed."""
    n_threads = effective_n_jobs(n_jobs) if setting.basis.largest >= MANY else 1
    with one_blas_thread():
        pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        try:
            if isinstance(setting.X, Blocked):
                yield BlockedSamples(setting.X, setting.location, setting.scale, pool)
            else:
                yield ArraySamples(setting.X, setting.weight, setting.location, setting.scale, pool)
        finally:
            if pool:
                pool.shutdown(cancel_futures=True)


def minimize(
    samples: ArraySamples,
    basis: MonomialBasis,
    loss: Loss,
    starts: Sequence[np.ndarray],
    floors: Sequence[np.ndarray | None] | None = None,
    *,
    tol: float,
    max_iter: int,
    random_state: Any,
    single: bool,
) -> list[Problem]:
    """Minimise the objective of every node, several nodes to a pass over the samples.

    single: whether the loss may be evaluated in single precision until the last stage.
    """
    largest = max(map(len, starts))
    at_once = max(1, min(_NODES_AT_ONCE, int(256e6 / (8 * largest**2))))
    stages = _stages(samples, largest, tol, generator(random_state), single)
    problems: list[Problem] = []
    for first in range(0, len(starts), at_once):
        nodes = range(first, min(first + at_once, len(starts)))
        rungs = [
            Rung(partial(_evaluate, Objective(basis, loss, part), nodes), part_tol, rounding)
            for part, part_tol, rounding in stages
        ]
        low = None if floors is None else [floors[i] for i in nodes]
        problems += ladder(rungs, [starts[i] for i in nodes], low, max_iter=max_iter)
    return problems


def on_floor_note(term: tuple[int, ...], names: Sequence[str]) -> str:
    """What it means that a term is held at its floor."""
    return (
        f"the data do not support {term_name(term, names)}: its parameter is held at the least value at which the "
        "conditional density is sure to exist"
    )


def move_note(model: PolynomialModel, theta: np.ndarray) -> tuple[str, list[str]]:
    """How far parameters were moved to make a model integrable, in words; and which ones by more than `FAR`."""
    moved, stderr = np.abs(theta - model.theta), model.stderr("standardized")
    known = np.flatnonzero(stderr > 0)
    if not len(known):
        return f"made integrable: {np.count_nonzero(moved)} of {len(theta)} terms moved", []
    far = moved[known] / stderr[known]
    names = [model.term_name(model.basis.terms[known[k]]) for k in np.argsort(-far)]
    rms = np.sqrt(np.mean(far**2))
    return (
        f"made integrable: {np.count_nonzero(far > _MOVED)} of {len(known)} terms moved by more than a tenth of a "
        f"standard error, the farthest, {names[0]}, by {far.max():.2g} (root mean square {rms:.2g})"
    ), names[: np.count_nonzero(far > FAR)]


def stray_note(setting: Setting, model: PolynomialModel) -> str:
    """Where a model has its mass, in words, if that is far from the data; empty if it is not."""
    all_rows = setting.X.kept if isinstance(setting.X, Blocked) else setting.X
    rows = looked_at(all_rows.shape[0], len(model.basis))
    X = to_host(namespace(all_rows).take(all_rows, on_device(rows, all_rows), axis=0)).astype(np.float64)
    found = strays(model.basis, model.theta, ((X - model.location) / model.scale).T)
    if found is None:
        return ""
    lower, y = found
    place = ", ".join(
        f"{model.names[i]} = {model.location[i] + model.scale[i] * y[i]:.3g}" for i in np.argsort(-np.abs(y))[:3]
    )
    return f"{FAR_AWAY}: about {place}{', …' if len(y) > 3 else ''}, its energy is {lower:.2g} lower"


def pilot_parameters(pilot: PolynomialModel, setting: Setting) -> np.ndarray:
    """A model's θ in the standardised variables of a setting; it must be over the same variables and terms."""
    if pilot.names != tuple(setting.names):
        raise ValueError(
            f"the pilot is a model of {', '.join(pilot.names[:8])}; the columns are {', '.join(setting.names[:8])}"
        )
    basis = setting.basis
    at = basis.positions(basis.padded(pilot.basis.factors)) if pilot.basis.degree <= basis.degree else [-1]
    if np.any(np.asarray(at) < 0):
        strange = [term_name(term, pilot.names) for term in pilot.basis.terms if term not in set(basis.terms)]
        raise ValueError(
            f"the pilot has terms that the model to be fitted has not: {', '.join(strange[:5])}. "
            f"It may have those of the {len(basis)} terms of degree {basis.degree} or less that are fitted"
        )
    theta = np.zeros(len(basis))
    theta[at] = pilot.theta
    if not basis.closed_under_translation and np.any(pilot.location != setting.location):
        raise ValueError("the pilot has a location of its own, and the terms are not closed under translation")
    return raw_units(basis, theta, (pilot.location - setting.location) / setting.scale, pilot.scale / setting.scale)


def notes(setting: Setting, found: Optimum) -> list[str]:
    """What is worth knowing about an optimum: what was done to find it, and which terms are held."""
    said = []
    if found.steadied is not None:
        said.append(
            f"{setting.n:,.10g} rows for {len(found.basis):,} terms: rows that lie farther out, with the weight of two "
            "rows in all, were added to steady the fit"
        )
    held = [found.basis.terms[k] for k in np.flatnonzero(found.problem.on_floor)]
    return said + [on_floor_note(term, setting.names) for term in held]


def left_out_note(setting: Setting, found: Optimum) -> str:
    """Which terms a selection left out, in words; empty if none."""
    basis, names = setting.basis, setting.names
    many, of = len(basis) - len(found.basis), int(np.count_nonzero(basis.degrees > 2))
    if not many:
        return ""
    without = [name for i, name in enumerate(names) if not np.any(found.basis.degrees[found.basis.local(i).terms] > 2)]
    which = "" if len(without) == len(names) else f", those of {listed(without)}"
    return f"select=True left out {many:,} of {of:,} terms above degree 2{which}: they are zero and were not tested"


def _stages(
    samples: ArraySamples, n_parameters: int, tol: float, rng: np.random.Generator, single: bool
) -> list[tuple[ArraySamples, float, float]]:
    """Samples to minimise on one after the other, each with its tolerance and rounding.

    A subsample is solved to a fraction of its own statistical error; then all samples in single precision,
    to what that can tell; then all in double precision, which is the answer.
    """
    sizes = sorted({min(samples.n_rows // part, samples.at_hand) for part in _RUNGS})
    sizes = [size for size in sizes if size >= _ROWS_PER_PARAMETER * n_parameters]
    parts = [samples.subsample(size, rng) for size in sizes]
    rounding = _SINGLE if single else _DOUBLE
    stages = [
        (part.in_single() if single else part, 0.3 * np.sqrt(n_parameters / part.total), rounding) for part in parts
    ]
    if stages and single and samples.in_memory:  # elsewhere its rounding would depend on how rows are cut into blocks
        stages.append((samples.in_single(), 1e-4, _SINGLE))
    return [*stages, (samples, tol, _DOUBLE)]


def _evaluate(
    objective: Objective, nodes: range, which: list[int], points: list[np.ndarray], hessian: bool
) -> list[Evaluation]:
    return objective.evaluate([nodes[j] for j in which], points, hessian)


def judge(setting: Setting, problems: Sequence[Problem], nu: np.ndarray | None = None) -> tuple[list[str], np.ndarray]:
    """A status and an effective sample size for every variable, with a warning for each that is not to be trusted.

    nu: the strength of the regularizing density, where the loss has weights that can collapse.
    """
    # counts that are far from equal leave fewer samples than they count
    counts = None if setting.weight is None else to_host(setting.weight)
    distinct = 1.0 if counts is None else float(counts.sum() ** 2 / np.square(counts).sum() / len(counts))
    verdicts, sizes = [], []
    for i, problem in enumerate(problems):
        ess = getattr(problem.evaluation, "ess", 0.0)
        verdict, message = problem.status, ""
        if nu is not None and problem.evaluation is not None:
            verdict, message = judge_weights(setting, problem, ess * distinct, float(nu[i]))
        if not message and verdict != "converged":
            message = _explanation(problem, setting.basis.local(i).terms, setting.basis, setting.names)
        if message:
            warn(f"{setting.names[i]}: {message}", ConvergenceWarning)
        verdicts.append(verdict)
        sizes.append(ess)
    return verdicts, np.array(sizes)


def judge_weights(setting: Setting, problem: Problem, ess: float, nu: float) -> tuple[str, str]:
    """Whether enough samples carry weight for the parameters they are to tell."""
    K = len(problem.theta)
    if ess < _COLLAPSED * K:
        verdict, what = "weights collapsed", "Its estimates are not trustworthy"
    elif problem.status == "converged" and ess < min(_CONCENTRATED * K, 0.2 * setting.n):
        verdict, what = "weights concentrated", "Its estimates may be far off"
    else:
        return problem.status, ""
    how = f"Raise nu (here {nu:.2g}; if that is above 10, lower it)" if nu else 'Use refine="auto"'  # there is no nu
    return verdict, (
        f"the screening {verdict}: effective sample size {ess:.1f} of {setting.n:,.10g} for {K} parameters. {what}. "
        f"{how}, lower the degree or the number of terms, transform heavy tails (log, asinh, ranks), or use more "
        "samples"
    )


def judge_joint(problem: Problem, basis: MonomialBasis, names: Sequence[str]) -> list[str]:
    """The status of a problem that has all variables in it, with a warning if it is not to be trusted."""
    if problem.status != "converged":
        message = _explanation(problem, np.arange(len(basis)), basis, names)
        warn(f"all variables jointly: {message}", ConvergenceWarning)
    return [problem.status] * basis.n_variables


def _unsettled(problem: Problem) -> list[int]:
    """The terms, four at most, whose next Newton step is longest beside their standard errors."""
    hessian = getattr(problem.evaluation, "hessian", None)
    hessian = problem.metric if hessian is None else hessian
    if problem.evaluation is None or hessian is None or not np.all(np.isfinite(hessian)):
        return []
    solve = inverse(hessian)
    if solve is None:
        return []
    spread = np.sqrt(np.maximum(np.diagonal(solve(np.eye(len(hessian)))), np.finfo(float).tiny))
    far = np.abs(solve(problem.evaluation.gradient)) / spread
    return [k for k in np.argsort(-far)[:4].tolist() if far[k] > 0.1 * far.max()]


def _explanation(problem: Problem, terms: np.ndarray, basis: MonomialBasis, names: Sequence[str]) -> str:
    """What a bad status of a problem over some terms means and what to do about it."""
    if problem.status == "iteration limit":
        far = _unsettled(problem)
        unsettled = ", ".join(term_name(basis.terms[terms[k]], names, basis.spaces) for k in far)
        return (
            f"no convergence in {problem.n_iter} iterations (Newton decrement {problem.decrement:.1e})"
            + (f"; the farthest from their optimum are {unsettled}" if unsettled else "")
            + ". Their estimates and intervals may be far off. Raise max_iter (or refine, if it is a number, or nu, "
            "where there is one). Transform heavy tails (log, asinh, ranks), lower the degree, or use fewer terms or a "
            "penalty (l1). With scale=False, try scale=True"
        )
    if problem.status == "non-finite":
        return (
            "the objective is not finite at the start. Values too large for powers of this degree, or nu too small? "
            "Use center=True and scale=True"
        )
    hessian = getattr(problem.evaluation, "hessian", None)
    group = ""
    if hessian is not None and np.all(np.isfinite(hessian)):
        scale = np.sqrt(np.maximum(np.diagonal(hessian), np.finfo(float).tiny))
        vector = np.abs(np.linalg.eigh(hessian / scale / scale[:, None])[1][:, 0])
        listed = [basis.terms[terms[k]] for k in np.argsort(-vector)[:4] if vector[k] > 0.1]
        group = ": " + ", ".join(term_name(term, names) for term in listed)
    return (
        f"terms cannot be told apart on these samples{group}. Drop a collinear column, one with few distinct "
        "values, or terms; transform heavy tails (log, asinh, ranks)"
    )
