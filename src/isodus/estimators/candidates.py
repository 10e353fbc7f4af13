"""Among which terms a penalty chooses: all that are not left out, or, of very many, a list of those that count."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..basis import MonomialBasis
from ..criteria import Task
from ..nodewise import Nodes
from ..penalties import multiplier, weights
from ..pilots import confined, floors, in_spaces
from ..preparation import Setting
from ..regression import independent
from ..samples import ArraySamples
from ..selection import weakest
from ..shortlist import PairSlopes, Shortlist, TermSlopes

__all__ = ["Form", "candidates", "listed", "over", "within"]

_MANY_TERMS = 20_000  # from which those that count are listed first
_SHARE = 0.5  # of λ that a slope must be at first for its term to be listed; of the least of a path, all of it


class Form(NamedTuple):
    """What is penalised. make(basis, samples): its nodes; bounded: whether the highest powers have least values.

    likelihood: whether it is pseudo-likelihood, which begins at the Gaussian without interactions.
    """

    make: Callable[[MonomialBasis, ArraySamples], Nodes]
    likelihood: bool
    bounded: bool = True


def candidates(estimator: Any, setting: Setting) -> tuple[Setting, np.ndarray]:
    """A setting without the terms that are left out, and the weights of the others, (M,)."""
    basis = setting.basis
    columns = estimator._columns or setting.names
    weight = weights(
        basis, columns, estimator.l1_weights, estimator.include, estimator.exclude, estimator.penalize_self
    )
    inside = np.isfinite(weight)
    pure = inside & (basis.orders == 1)
    highest = np.zeros(len(setting.names), int)
    np.maximum.at(highest, basis.factors[pure, 0], basis.degrees[pure])
    odd = np.flatnonzero(~_confined(basis, highest))
    if len(odd):
        raise ValueError(
            f"{setting.names[odd[0]]} has no pure power of even degree above its others among the terms: no "
            "conditional density exists. Add one to the basis, or do not leave it out"
        )
    if inside.all():
        return setting, weight
    return setting._replace(basis=basis.only(np.flatnonzero(inside))), weight[inside]


def _confined(basis: MonomialBasis, highest: np.ndarray) -> np.ndarray:
    """Which variables have a pure power, the highest of theirs, that makes a density, or need none; (p,)."""
    even = (highest > 0) & (highest % 2 == 0)
    if basis.spaces is None:
        return even
    free = np.array([space.support.bounded or space.functions is not None for space in basis.spaces])
    half = np.array([np.isfinite(space.support.low) for space in basis.spaces])
    return free | np.where(half, highest > 0, even)


def over(
    estimator: Any,
    setting: Setting,
    basis: MonomialBasis,
    samples: ArraySamples,
    form: Form,
    tol: float,
    max_iter: int,
) -> tuple[Setting, Task]:
    """The fit over the terms of a basis, or those of them that are not left out."""
    part, weight = candidates(estimator, setting._replace(basis=basis))
    least, raw = floors(part.basis, setting.scale / setting.width), estimator.l1_scaling is not None
    low = least if form.bounded else np.full_like(least, -np.inf)
    if basis.spaces is None:
        alone = confined(independent(part.basis, samples), least)
    else:
        alone = in_spaces(part.basis, setting.scale / setting.width)
    theta = alone if form.likelihood else np.where(low > -np.inf, 100 * low, 0.0)
    make = partial(form.make, part.basis)
    return part, Task(part.basis, make, theta, weight, low, raw, tol, max_iter, estimator.rule, alone, least)


def within(short: Shortlist, task: Task) -> Task:
    """A fit over the terms of a list, which knows of the others, and where the model without interactions lies."""
    theta = task.theta.copy()
    theta[task.basis.positions(task.basis.padded(short.alone.factors))] = short.theta
    return task._replace(theta=theta, elsewhere=short.elsewhere)


def listed(
    estimator: Any, setting: Setting, samples: ArraySamples, form: Form, tol: float, max_iter: int
) -> Shortlist | None:
    """A list of the terms that count, where there are very many and it is known how to find them."""
    whole, path, raw = setting.basis, isinstance(estimator.l1, str), estimator.l1_scaling is not None
    known = form.likelihood and whole.complete and whole.spaces is None and whole.max_order != 1
    if whole.degree == 2:
        known = known and estimator.l1 not in ("cv", "stars") and not (raw and path)
    else:  # along a path every look at all terms would be a pass over the samples
        known = known and not path and not estimator.penalize_self
    named = (estimator.l1_weights, estimator.include, estimator.exclude)
    if not known or len(whole) < _MANY_TERMS or any(given is not None for given in named):
        return None
    slopes = PairSlopes(samples, raw) if whole.degree == 2 else TermSlopes(whole, raw)
    short = Shortlist(whole, slopes, raw)
    start = over(estimator, setting, short.basis, samples, form, tol, max_iter)[1].start(samples)
    factor = multiplier(1.0, estimator.l1_scaling, len(setting.names), setting.n)
    if path and estimator.l1_path is None:
        least = weakest(short.slopes.largest(start, start.empty.theta), whole.largest, setting.n)
    else:
        least = float(np.min(estimator.l1_path if path else estimator.l1)) * factor
    short.begin(start, least, 1.0 if path else _SHARE)
    return short
