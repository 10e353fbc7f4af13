"""What a fit is made of, whatever the estimator: terms, units, node problems and their verdicts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from .arrays import Array, available_memory, to_host
from .basis import MonomialBasis, n_monomials
from .losses import Loss
from .model import term_name
from .objective import MANY, Evaluation, Objective
from .samples import ArraySamples, check_variation, standardisation
from .solvers.newton import Problem, Rung, ladder
from .validation import check_samples, check_weight

__all__ = ["Setting", "judge", "minimize", "prepare", "sources"]

_RUNGS = (64, 8)  # fractions of the samples on which a fit starts
_ROWS_PER_PARAMETER = 30  # how many a subsample must have
_NODES_AT_ONCE = 8  # nodes that share one pass over the samples, where memory allows
_SINGLE = 1e-5  # relative change of a value that sums in single precision cannot resolve
_DOUBLE = 1e-12  # likewise in double precision


class Setting(NamedTuple):
    """Validated samples with their terms and units.

    X: (n, p); weight: (n,) or None; n: the sum of the weights; centre, width: a robust location and scale of
    every variable; location, scale: those of them that are used for y = (x − location)/scale.
    """

    X: Array
    weight: Array | None
    n: float
    names: list[str]
    basis: MonomialBasis
    centre: np.ndarray
    width: np.ndarray
    location: np.ndarray
    scale: np.ndarray


def prepare(estimator: Any, X: Array, sample_weight: Array | None, *, units: bool = True) -> Setting:
    """Check samples, weights, terms and sizes of an estimator's fit, and find its units.

    units: whether centre and width are wanted even if the estimator uses neither.
    """
    _check_terms(estimator)
    X, names = check_samples(estimator, X)
    weight, n = check_weight(sample_weight, X)
    n_used = X.shape[0] if weight is None else int(np.count_nonzero(to_host(weight)))
    _check_size(estimator, X.shape[1], n_used)
    basis = estimator.basis or MonomialBasis(
        X.shape[1], estimator.degree, min_degree=estimator.min_degree, max_order=estimator.max_order
    )
    unused = [name for i, name in enumerate(names) if not len(basis.local(i).terms)]
    if unused:
        raise ValueError(f"no term of the basis contains {', '.join(unused)}: drop the columns, or add terms")
    check_variation(X, names)
    p = X.shape[1]
    centre, width = np.zeros(p), np.ones(p)
    if units or estimator.center or estimator.scale:
        centre, width = standardisation(X, weight, names, rng=np.random.default_rng(0))
    location = centre if estimator.center and basis.closed_under_translation else np.zeros(p)
    scale = width if estimator.scale else np.ones(p)
    return Setting(X, weight, n, names, basis, centre, width, location, scale)


@contextmanager
def sources(setting: Setting, n_jobs: int | None) -> Iterator[ArraySamples]:
    """The samples in standardised variables, with threads for as long as they are needed."""
    largest = max(len(setting.basis.local(i).terms) for i in range(setting.basis.n_variables))
    n_threads = effective_n_jobs(n_jobs) if largest >= MANY else 1
    with _blas().limit(limits=1, user_api="blas"):
        pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        try:
            yield ArraySamples(setting.X, setting.weight, setting.location, setting.scale, pool)
        finally:
            if pool:
                pool.shutdown(cancel_futures=True)


def minimize(
    samples: ArraySamples,
    basis: MonomialBasis,
    loss: Loss,
    starts: Sequence[np.ndarray],
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
    seed = 0 if random_state is None else check_random_state(random_state).randint(2**31)
    stages = _stages(samples, largest, tol, np.random.default_rng(seed), single)
    problems: list[Problem] = []
    for first in range(0, len(starts), at_once):
        nodes = range(first, min(first + at_once, len(starts)))
        rungs = [
            Rung(partial(_evaluate, Objective(basis, loss, part), nodes), part_tol, rounding)
            for part, part_tol, rounding in stages
        ]
        problems += ladder(rungs, [starts[i] for i in nodes], max_iter=max_iter)
    return problems


def _stages(
    samples: ArraySamples, n_parameters: int, tol: float, rng: np.random.Generator, single: bool
) -> list[tuple[ArraySamples, float, float]]:
    """Samples to minimise on one after the other, each with its tolerance and rounding.

    A subsample is solved to a fraction of its own statistical error; then all samples in single precision,
    to what that can tell; then all in double precision, which is the answer.
    """
    sizes = [samples.n_rows // part for part in _RUNGS]
    sizes = [size for size in sizes if size >= _ROWS_PER_PARAMETER * n_parameters]
    parts = [samples.subsample(size, rng) for size in sizes]
    rounding = _SINGLE if single else _DOUBLE
    stages = [
        (part.in_single() if single else part, 0.3 * np.sqrt(n_parameters / part.n_rows), rounding) for part in parts
    ]
    if stages and single:
        stages.append((samples.in_single(), 1e-4, _SINGLE))
    return [*stages, (samples, tol, _DOUBLE)]


def _evaluate(
    objective: Objective, nodes: range, which: list[int], points: list[np.ndarray], hessian: bool
) -> list[Evaluation]:
    return objective.evaluate([nodes[j] for j in which], points, hessian)


@cache
def _blas() -> ThreadpoolController:
    """Looking for the loaded BLAS libraries takes a millisecond: once is enough."""
    return ThreadpoolController()


def _check_terms(estimator: Any) -> None:
    if estimator.basis is not None and not isinstance(estimator.basis, MonomialBasis):
        raise ValueError(f"basis must be a MonomialBasis, not {type(estimator.basis).__name__}")
    degree = estimator.degree if estimator.basis is None else estimator.basis.degree
    if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree < 1:
        raise ValueError(f"degree must be an even integer of at least 2, not {degree!r}")
    if degree % 2:
        raise ValueError(
            f"degree={degree} is odd: exp(−x^{degree}) grows without bound on one side, so no density of that "
            f"degree exists on the real line. Use degree={degree + 1}, or {max(degree - 1, 2)}"
        )


def _check_size(estimator: Any, p: int, n: int) -> None:
    """Every variable has more samples than parameters, and the work fits in memory."""
    if estimator.basis is not None:
        if estimator.basis.n_variables != p:
            raise ValueError(f"the basis has {estimator.basis.n_variables} variables, X has {p} columns")
        largest = max(len(estimator.basis.local(i).terms) for i in range(p))
    else:
        options = dict(degree=estimator.degree, min_degree=estimator.min_degree, max_order=estimator.max_order)
        largest = n_monomials(p, **options) - n_monomials(p - 1, **options)
    gigabytes = 3 * 8 * largest**2 / 1e9
    minutes = 20 * p * n * largest**2 / 5e9 / 60
    if largest >= n:
        raise ValueError(
            f"{largest:,} parameters at each variable and n_samples = {n:,}: without a penalty there is no "
            f"estimate. (With samples enough this size would take about {minutes:,.1g} minutes and "
            f"{gigabytes:,.1g} GB.) Use more samples, degree=2, max_order=2, or a basis with fewer terms"
        )
    if gigabytes * 1e9 > available_memory():
        raise ValueError(
            f"{largest:,} parameters at each variable need about {gigabytes:,.3g} GB for a Hessian matrix, and "
            f"{available_memory() / 1e9:,.3g} GB are free. Use degree=2, max_order=2, or fewer terms"
        )


def judge(
    problems: Sequence[Problem], basis: MonomialBasis, names: Sequence[str], nu: np.ndarray | None = None
) -> tuple[list[str], np.ndarray]:
    """A status and an effective sample size for every variable, with a warning for each that is not to be trusted.

    nu: the strength of the regularizing density, where the loss has weights that can collapse.
    """
    verdicts, sizes = [], []
    for i, problem in enumerate(problems):
        ess = getattr(problem.evaluation, "ess", 0.0)
        collapsed = nu is not None and problem.evaluation is not None and ess < 2 * len(problem.theta)
        verdicts.append("weights collapsed" if collapsed else problem.status)
        sizes.append(ess)
        if collapsed and nu is not None:
            message = (
                f"the screening weights collapsed: effective sample size {ess:.1f} for {len(problem.theta)} "
                f"parameters. Its estimates are not trustworthy. Raise nu (here {nu[i]:.2g}), lower the degree or "
                "the number of terms, transform heavy tails (log, asinh, ranks), or use more samples"
            )
        elif problem.status == "converged":
            continue
        else:
            message = _explanation(problem, i, basis, names)
        warnings.warn(f"{names[i]}: {message}", ConvergenceWarning, stacklevel=4)
    return verdicts, np.array(sizes)


def _explanation(problem: Problem, i: int, basis: MonomialBasis, names: Sequence[str]) -> str:
    """What a bad status means and what to do about it."""
    if problem.status == "iteration limit":
        return (
            f"no convergence in {problem.n_iter} iterations (Newton decrement {problem.decrement:.1e}). "
            "Raise max_iter or nu; with scale=False, try scale=True"
        )
    if problem.status == "non-finite":
        return (
            "the objective is not finite at the start. Values too large for powers of this degree? "
            "Use center=True and scale=True"
        )
    hessian = getattr(problem.evaluation, "hessian", None)
    group = ""
    if hessian is not None:
        scale = np.sqrt(np.maximum(np.diagonal(hessian), np.finfo(float).tiny))
        vector = np.abs(np.linalg.eigh(hessian / scale / scale[:, None])[1][:, 0])
        terms = basis.local(i).terms
        listed = [basis.terms[terms[k]] for k in np.argsort(-vector)[:4] if vector[k] > 0.1]
        group = ": " + ", ".join(term_name(term, names) for term in listed)
    return (
        f"terms cannot be told apart on these samples{group}. Drop a collinear column, one with few distinct "
        "values, or terms; transform heavy tails (log, asinh, ranks)"
    )
