"""Where a refinement starts: candidates, the one that scores best, and whether a Gaussian does already."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .basis import MonomialBasis
from .consensus import combine
from .losses.score_matching import ScoreMatchingLoss
from .objective import Evaluation
from .refinement import Joint, decrement
from .regression import gaussian_parameters, second_moments
from .samples import ArraySamples
from .solvers.newton import Problem, newton_step

__all__ = ["Pilot", "choose", "confined", "floors", "gaussian", "in_spaces", "quadratic_minimum"]

_FLOOR = 1e-3  # least value of the highest pure power, in standardised variables
_SAFE = 0.6  # one at which other parameters cannot run away, whatever the data
_CONFINING = 0.3  # one that a Gaussian is given to start from


class Pilot(NamedTuple):
    """θ in standardised variables, what it is, and whether it is near the optimum already."""

    theta: np.ndarray
    name: str
    near: bool = False


def floors(basis: MonomialBasis, unit: np.ndarray, value: float = _FLOOR) -> np.ndarray:
    """Least values, (M,): for the highest pure power x_i^d of each variable `value` · unit_i^d, else −inf; unit: (p,).

    Where all other variables are zero it is the last coefficient of the conditional, which must be positive; and
    where d is the degree of the basis it is so everywhere: then the conditional density is sure to exist.
    """
    low = np.full(len(basis), -np.inf)
    first = basis.factors[:, 0]
    pure = np.flatnonzero(((basis.factors == first[:, None]) | (basis.factors < 0)).all(axis=1))
    highest = np.zeros(basis.n_variables, int)
    np.maximum.at(highest, first[pure], basis.degrees[pure])
    confines = basis.degrees[pure] % 2 == 0
    if basis.spaces is not None:  # on a half line any power does; within bounds, or with other functions, none need
        powers = np.array([space.functions is None and not space.support.bounded for space in basis.spaces])
        half = np.array([np.isfinite(space.support.low) for space in basis.spaces])
        confines = (confines | half[first[pure]]) & powers[first[pure]]
    top = pure[(basis.degrees[pure] == highest[first[pure]]) & confines]
    low[top] = value * unit[first[top]] ** basis.degrees[top]
    for k in _of_functions(basis, pure):
        low[k] = value
    return low


def _of_functions(basis: MonomialBasis, pure: np.ndarray) -> list[int]:
    """Terms of one variable, other than powers, that make its density where it has no bounds: the last of its start."""
    last = {
        i: int(np.flatnonzero(space.functions.start(basis.degree))[-1]) + 1
        for i, space in enumerate(basis.spaces or ())
        if space.functions is not None and not space.support.bounded
    }
    first, degrees = basis.factors[pure, 0], basis.degrees[pure]
    return [int(k) for k, i, d in zip(pure, first.tolist(), degrees.tolist(), strict=True) if last.get(i) == d]


def in_spaces(basis: MonomialBasis, unit: np.ndarray) -> np.ndarray:
    """A θ without interactions whose densities exist, where variables do not all live on the line; unit: (p,).

    Uniform within bounds, exponential on a half line, a Gaussian on the line, or what functions say.
    """
    theta, s = np.maximum(np.zeros(len(basis)), _CONFINING / _FLOOR * floors(basis, unit)), basis.degree
    at = {term: k for k, term in enumerate(basis.terms) if len(set(term)) == 1}
    for i, space in enumerate(basis.spaces or ()):
        a = space.start(s, float(unit[i]))
        for l in np.flatnonzero(a).tolist():
            if (i,) * (l + 1) in at:
                theta[at[(i,) * (l + 1)]] = max(theta[at[(i,) * (l + 1)]], a[l])
    return theta


def confined(theta: np.ndarray, low: np.ndarray) -> np.ndarray:
    """A Gaussian θ with enough of the highest pure powers that conditional densities exist whatever follows.

    low: `floors`.
    """
    return np.maximum(theta, _CONFINING / _FLOOR * low)


def quadratic_minimum(at_zero: Evaluation, floor: np.ndarray | None = None) -> Problem:
    """The minimum −A⁻¹g of a quadratic objective, from its derivatives at zero; nothing below the floor."""
    zeros = np.zeros_like(at_zero.gradient)
    theta = None if at_zero.hessian is None else newton_step(at_zero.hessian, at_zero.gradient, zeros, floor)
    if theta is None:
        return Problem(zeros, status="singular", evaluation=at_zero, metric=at_zero.hessian, n_iter=1)
    return Problem(theta, status="converged", evaluation=at_zero, metric=at_zero.hessian, n_iter=1)


def gaussian(basis: MonomialBasis, samples: ArraySamples) -> tuple[np.ndarray, bool]:
    """θ of the Gaussian with the second moments of the samples, and whether it is pseudo-likelihood's at degree 2.

    It is where every variable has its square, and the regressions of the variables agree on what they share.
    """
    nodes = range(basis.n_variables)
    moments = second_moments(samples)
    found = [gaussian_parameters(basis, moments, i) for i in nodes]
    thetas = [
        np.zeros(len(basis.local(i).terms)) if theta is None else theta for i, theta in zip(nodes, found, strict=True)
    ]
    theta, _ = combine(basis, thetas, "mean")
    exact = all(part is not None and part.any() for part in found)
    exact = exact and all(np.allclose(theta[basis.local(i).terms], thetas[i], rtol=1e-6, atol=1e-9) for i in nodes)
    return theta, exact


def choose(
    which: str | np.ndarray,
    samples: ArraySamples,
    part: Joint,
    unit: np.ndarray,
    gaussian: np.ndarray,
    isodus: Callable[[ArraySamples], np.ndarray] | None = None,
) -> Pilot:
    """The pilot that was asked for, or for "auto" score matching if it is near pseudo-likelihood's optimum.

    A pilot has conditional densities: its highest pure powers are above their floor. Where it has none, or is farther
    from the optimum than chance allows, what scores best of it, score matching bounded to where other parameters
    cannot run away, and the Gaussian with a confining term.
    """
    basis, low = part.objective.basis, floors(part.objective.basis, unit)
    at_zero = Joint(basis, ScoreMatchingLoss(), samples)(np.zeros(len(basis)))
    matched = quadratic_minimum(at_zero).theta
    if not isinstance(which, str):
        pilot = Pilot(which, "model")
    elif which == "isodus" and isodus is not None:
        pilot = Pilot(isodus(samples), which)
    else:
        pilot = Pilot(matched, "score_matching")
    exists = bool(np.all(pilot.theta > low)) and bool(np.any(pilot.theta))
    auto = isinstance(which, str) and which == "auto"
    if exists and (not auto or decrement(part(matched), matched, low) <= 2 * part.noise()):
        return pilot._replace(near=True)
    candidates = [
        pilot,
        Pilot(quadratic_minimum(at_zero, floors(basis, unit, _SAFE)).theta, "score_matching"),
        Pilot(confined(gaussian, low), "gaussian"),
    ]
    candidates = [c for c in candidates if np.all(c.theta > low) and np.any(c.theta)]
    values = [part(c.theta, hessian=False).value for c in candidates]
    return candidates[int(np.argmin(values))] if candidates else Pilot(gaussian, "gaussian")
