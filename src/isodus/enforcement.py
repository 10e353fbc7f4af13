"""The nearest parameters whose density is proved to exist.

Near an estimate θ̂ its objective is q(Δ) = g·Δ + ½ ΔᵀAΔ, Δ = θ − θ̂. What integrability asks of θ concerns the form F of
the terms with ω = 1 alone (see `diagnostics`), so the terms below are eliminated, A becomes a Schur complement, and

    minimise q over F = hᵀGh,    G ≥ ε,    h the monomials with ω = ½,

is left: a semidefinite program. The monomials that hᵀGh has and the model has not must vanish, as x²yz in a model of
pairs; they couple all of G. (A sum of squares of pairs and of squares alone has none, and needs no care; it costs ten
times as much pseudo-likelihood on proteins.) Both halves have closed solutions, the best G without a bound on its
eigenvalues and the nearest G ≥ ε: the alternating direction method of multipliers takes a few hundred of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import lcm
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .basis import MonomialBasis
from .diagnostics import integrability
from .objective import Evaluation
from .positivity import Form, Squares, half_monomials, linked
from .solvers.newton import inverse

__all__ = ["enforce"]

_MARGIN = 2e-3  # ε, where pure powers have parameter 1: enough for the proof to be found again
_MOST_SQUARES = 300  # rows of a Gram matrix
_ROUNDS = 20
_ITERATIONS = 1200
_RIDGE = 1e-8  # of a curvature: samples that cannot tell terms apart do not mind how they move
_SETTLED = 2e-4  # relative distance that is left
_TINY = 1e-300
_CHANCE = 0.02  # of 1/n a term, which chance makes the objective differ by, and which is not worth another round


class _Block(NamedTuple):
    """Variables whose part of F must be made positive. places: the positions of its terms among those that move."""

    squares: Squares
    places: np.ndarray


class _Leading(NamedTuple):
    """What moves. form: the terms of F that do, at: their positions in the basis; below: those of terms with ω < 1.

    own, d: (p,) the position in the basis of each variable's highest pure power, and its degree.
    """

    form: Form
    at: np.ndarray
    below: np.ndarray
    blocks: list[_Block]
    own: np.ndarray
    d: np.ndarray


@dataclass
class _Work:
    """Where the iterations stand, for the next to go on from; size: (p,) the pure powers that are 1 in their units."""

    size: np.ndarray | None = None
    margin: float = _MARGIN
    Z: list[np.ndarray] = field(default_factory=list)
    U: list[np.ndarray] = field(default_factory=list)
    rho: float = 0.0  # 0: to be chosen

    def fit(self, leading: _Leading, own: np.ndarray) -> np.ndarray:
        """The units; afresh if pure powers, `own`, are no longer near 1 in them."""
        if self.size is None or np.any((own > 2 * self.size) | (own < 0.5 * self.size)):
            self.size, self.rho = own, 0.0
            self.Z = [np.eye(block.squares.n) for block in leading.blocks]
            self.U = [np.zeros_like(z) for z in self.Z]
        return self.size


def enforce(
    basis: MonomialBasis,
    theta: np.ndarray,
    here: Evaluation,
    n: float,
    evaluate: Callable[[np.ndarray, bool], Evaluation] | None = None,
) -> np.ndarray | None:
    """The θ that is proved integrable where the objective is least; None if none was found.

    here: the objective at θ̂, with its Hessian; n: how many samples, which tells what difference is chance.
    evaluate(θ, hessian): the objective, if it is not quadratic. Where the quadratic misses it, the way is gone as far
    as it holds, and it is expanded anew there. What is integrable stays so between two such points.
    """
    leading = _leading(basis, theta)
    if leading is None or here.hessian is None or not np.all(np.isfinite(here.hessian)):
        return None
    chance, point, proved, work = _CHANCE * len(theta) / n, theta, None, _Work()
    for rounds in range(_ROUNDS):
        target, change = _target(basis, leading, point, here, 0.05 * chance, work, prove=proved is None)
        if target is None or (proved is not None and change > -0.2 * chance):
            break
        if evaluate is None:
            return target
        length, off = _agreement(evaluate, here, point, target, chance if proved is None else 0.0)
        if length == 0:
            break
        point = target if length == 1 else point + length * (target - point)
        if proved is None and length == 1:
            proved = point
        if rounds == 0 and length == 1 and off <= chance:
            break  # the quadratic holds all the way to where it is least
        here = evaluate(point, True)
    if proved is None or point is proved or integrability(basis, point).status != "integrable":
        return proved
    return point


def _agreement(
    evaluate: Callable[[np.ndarray, bool], Evaluation],
    here: Evaluation,
    point: np.ndarray,
    target: np.ndarray,
    slack: float,
) -> tuple[float, float]:
    """How much of the way to a target, 1, ½, ¼ …, the quadratic tells roughly, and by how much it is off there.

    0 if no such part is found. Without slack, only what is better will do.
    """
    assert here.hessian is not None
    step, length = target - point, 1.0
    while length > 1e-3:
        q = length * float(here.gradient @ step) + 0.5 * length**2 * float(step @ here.hessian @ step)
        change = evaluate(point + length * step, False).value - here.value
        if change <= (q + 0.5 * abs(q) + slack if slack else 0.0):
            return length, abs(change - q)
        length /= 2
    return 0.0, np.inf


def _leading(basis: MonomialBasis, theta: np.ndarray) -> _Leading | None:
    """The blocks of F that are not proved positive; None if they are too large, or if it is not F that decides."""
    p, there = basis.n_variables, np.flatnonzero(theta)
    whole = Form(basis.factors, theta, tuple(f"x{i}" for i in range(p))).where(there)
    d, own = whole.highest_pure_powers()
    if not np.all(d) or np.any(d % 2):
        return None
    w = lcm(*d.tolist()) // d
    level, top = whole.level(w), int(w[0] * d[0])
    if np.any(whole.can_fall() & (level > top)):
        return None
    form, blocks = whole.where(level == top), list[_Block]()
    moving = list[np.ndarray]()
    for variables in linked(form):
        block = form.among(variables)
        part = MonomialBasis(len(variables), terms=block.terms())
        if integrability(part, block.theta).status == "integrable":
            continue
        squares = Squares(half_monomials(block.terms(), d[variables], w[variables]), block.terms())
        if not squares.complete or not 0 < squares.n <= _MOST_SQUARES:
            return None
        inside = np.flatnonzero(np.isin(form.factors[:, 0], variables))
        blocks.append(_Block(squares, np.arange(len(inside)) + sum(len(k) for k in moving)))
        moving.append(inside)
    if not blocks:
        return None
    k = np.concatenate(moving)
    return _Leading(form.where(k), there[level == top][k], there[level < top], blocks, there[own], d)


def _target(
    basis: MonomialBasis,
    leading: _Leading,
    theta: np.ndarray,
    here: Evaluation,
    tol: float,
    work: _Work,
    prove: bool,
) -> tuple[np.ndarray | None, float]:
    """θ where the quadratic is least among those with such a G, and the value of the quadratic there.

    prove: whether that G must be found again from θ alone, or θ is None: margins and units are chosen for it.
    """
    A, g, at, below = here.hessian, here.gradient, leading.at, leading.below
    assert A is not None
    A = A + _RIDGE * np.diag(np.diagonal(A))
    solve = inverse(A[np.ix_(below, below)]) if len(below) else np.zeros_like
    if solve is None:
        return None, np.inf
    R = solve(np.column_stack([A[np.ix_(below, at)], g[below]]))
    S = A[np.ix_(at, at)] - A[np.ix_(at, below)] @ R[:, :-1]
    slope = g[at] - A[np.ix_(at, below)] @ R[:, -1]
    new, own = theta, leading.own
    if not np.all(np.diagonal(A)[own] > 0):
        return None, np.inf  # where weights have collapsed, nothing tells what a change costs
    least = 0.01 / np.sqrt(np.diagonal(A)[own])  # for powers that are not positive yet
    for _ in range(4):
        size = work.fit(leading, np.maximum(new[own], least))
        unit = leading.form.monomials(size ** (-1 / leading.d))
        moved, value = _nearest(leading, S / unit / unit[:, None], slope / unit, theta[at] * unit, tol, work)
        new = theta.copy()
        new[at] = moved / unit
        new[below] -= R[:, -1] + R[:, :-1] @ (new[at] - theta[at])
        if np.all(new[own] > 0) and (not prove or integrability(basis, new).status == "integrable"):
            return new, value - 0.5 * float(g[below] @ R[:, -1])
        if np.all(new[own] <= 2 * size):
            work.margin *= 2
    return None, np.inf


def _nearest(
    leading: _Leading, S: np.ndarray, g: np.ndarray, theta: np.ndarray, tol: float, work: _Work
) -> tuple[np.ndarray, float]:
    """The coefficients of hᵀGh, G ≥ ε, where q = g·Δ + ½ ΔᵀSΔ is least, Δ their distance from θ; and q.

    G minimises q plus ½ρ|G − Z + U|², Z is the nearest to G + U with Z ≥ ε, and U adds up G − Z. ρ balances how
    far apart they are and how far Z still moves.
    """
    blocks, q, Z, U, margin = leading.blocks, np.inf, work.Z, work.U, work.margin
    count = np.concatenate([block.squares.count[: len(block.places)] for block in blocks])
    work.rho = work.rho or 0.3 * float(np.median(np.diagonal(S)))
    factor = cho_factor(S + np.diag(work.rho / count))
    for n_iter in range(1, _ITERATIONS + 1):
        W = [z - u for z, u in zip(Z, U, strict=True)]
        w = [block.squares.coefficients(x) for block, x in zip(blocks, W, strict=True)]
        now = np.concatenate([x[: len(block.places)] for block, x in zip(blocks, w, strict=True)])
        step = -cho_solve(factor, g + S @ (now - theta))
        G, Z_before = [], Z.copy()
        for j, block in enumerate(blocks):
            change = -w[j]  # monomials that are no terms vanish
            change[: len(block.places)] = step[block.places]
            G.append(W[j] + block.squares.spread(change))
            relaxed = 1.6 * G[j] - 0.6 * Z[j]  # a known way to fewer iterations
            value, vector = np.linalg.eigh(relaxed + U[j])
            Z[j] = (vector * np.maximum(value, margin)) @ vector.T
            U[j] = U[j] + relaxed - Z[j]
        if n_iter % 20:
            continue
        before, delta = q, now + step - theta
        q = float(g @ delta + 0.5 * delta @ S @ delta)
        apart, moved = _distance(G, Z) / _distance(Z), _distance(Z, Z_before) / (_distance(U) + _TINY)
        small = abs(q - before) <= tol and max(apart, moved) < _SETTLED
        if small and all(np.linalg.eigvalsh(x)[0] > margin / 2 for x in G):
            break
        balance = 3 * apart / (moved + _TINY)
        if not 0.3 < balance < 3 and n_iter <= _ITERATIONS // 3:
            ratio = float(np.clip(np.sqrt(balance), 0.2, 5.0))
            work.rho *= ratio
            U[:] = [u / ratio for u in U]
            factor = cho_factor(S + np.diag(work.rho / count))
    return now + step, q


def _distance(A: list[np.ndarray], B: list[np.ndarray] | None = None) -> float:
    return float(np.sqrt(sum(np.sum((a if B is None else a - B[j]) ** 2) for j, a in enumerate(A))))
