"""Nodes with an L1 penalty, at one strength after the other.

    F_i(τ_i) + λ Σ_k c_ik |τ_ik|,   c_ik = weight of term k × noise of its slope at node i,

with the noise √⟨s²⟩ of the rows' scores s without any penalised term. Over n rows the slope of a term that is absent is
of size noise/√n, so that λ√n is how many standard errors a term must show to enter, whatever its degree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .._core.notes import listed
from ..losses import PseudoLikelihoodLoss, TiltedScreening
from ..terms import Key
from .gaussian import fitted_gaussian
from .lasso import missed
from .newton import Status
from .nodewise import NodeFit, learn_nodes
from .objective import Objective
from .proximal import Proximal

__all__ = ["FAR", "Sparse", "SparseProblem", "strengths_to"]

FAR = 0.5
"""Standard errors from pseudo-likelihood's optimum, above which tilts are given up."""

Array = np.ndarray
_NOISE_ROWS = 8192
_ROUNDS = 30  # of looking at all slopes and taking in those that the penalty does not hold
_LOOSE = 0.1  # standard errors: how near to an optimum what is only on the way must be
_RATIO = 0.6  # of two strengths on the way to one


@dataclass(frozen=True)
class Sparse:
    """The optimum at one strength.

    taus: (m,) of each node; slopes: of the loss there; missed: (p,) by how much the conditions of optimality are
    missed at most, in units of noise, as the strength is.
    """

    strength: float
    taus: dict[int, Array]
    slopes: dict[int, Array]
    missed: Array
    status: Status
    n_iter: int


def strengths_to(largest: float, strength: float) -> list[float]:
    """From the strength at which no penalised term is left down to one strength."""
    if strength >= largest or strength <= 0:
        return [strength]
    steps = int(np.ceil(np.log(strength / largest) / np.log(_RATIO)))
    return np.geomspace(largest, strength, steps + 1)[1:].tolist()


class SparseProblem:
    """All nodes of an objective, with an L1 penalty of any strength.

    Parameters
    ----------
    f : Objective
        Of terms in powers; with n_tilts, pseudo-likelihood.
    weight : array of shape (K,)
        0 of what is not penalised; +∞ of what is left out.
    in_noise : bool
        Whether weights are in units of each slope's noise.
    unlisted : array of shape (p,), optional
        How many more penalised terms each node could have, which f does not list.
    n_tilts : int
        How often each problem is tilted anew by its own answer, from that at the strength before; 0 solves f itself.
        Where the answer is more than half a standard error from pseudo-likelihood's, that takes its place.
    """

    def __init__(
        self,
        f: Objective,
        weight: Array,
        in_noise: bool = True,
        n_tilts: int = 0,
        tol: float = 1e-3,
        max_iter: int = 100,
        progress: Callable[[str], None] = lambda what: None,
        unlisted: Array | int = 0,
    ) -> None:
        self.unlisted = unlisted
        self.f, self.n_tilts, self.tol, self.max_iter, self.progress = f, n_tilts, tol, max_iter, progress
        self.n, self.distance = f.n, 0.0
        self._known: dict[int, tuple[bytes, Array, float]] = {}  # of each node: its terms, their optimum, the loss
        self.screening = f  # the objective of the last solution
        self.unknowns = [places for places, _ in f.terms.local_T]
        self.free, self.there = weight == 0, np.isfinite(weight)
        zero = {i: np.zeros(len(places)) for i, places in enumerate(self.unknowns)}
        self.noise = {i: np.ones(len(places)) for i, places in enumerate(self.unknowns)}
        self.cost = {i: np.where(np.isfinite(w), w, 0.0) for i, w in self._of_nodes(weight)}
        self.empty = self._solved(f, np.inf, self._start(zero), self.free, tol)
        self._check_empty()
        self.noise = self._noise()
        if in_noise:
            self._check_noise()
        self.cost = {i: c * (self.noise[i] if in_noise else 1.0) for i, c in self.cost.items()}
        self.largest = max(
            float(np.max(np.abs(self.empty.slopes[i])[on] / c[on], initial=0.0))
            for i, c in self.cost.items()
            for on in [(c > 0) & self.there[self.unknowns[i]]]
        )

    def at(self, strength: float) -> Sparse:
        """The optimum at one strength, by some on the way."""
        *way, last = strengths_to(self.largest, strength)
        here = self.empty
        for value in way:
            here = self.after(here, value, _LOOSE)
        return self.after(here, last, self.tol)

    def path(self, strengths: Sequence[float], tol: float = _LOOSE) -> Iterator[Sparse]:
        """The optimum at each of a decreasing sequence of strengths."""
        here = self.empty
        for strength in strengths:
            here = self.after(here, strength, max(tol, self.tol))
            yield here

    def after(self, before: Sparse, strength: float, tol: float) -> Sparse:
        """The optimum at a strength, from that at a larger one."""
        self.progress(f"strength {strength:.3g}")
        known = strength >= self.largest and not np.any(self._entered(before.taus) & ~self.free)
        if known:
            return Sparse(strength, before.taus, before.slopes, before.missed, before.status, 0)
        # a slope changes by less than the strength does, nearly always: the others are looked at afterwards
        limit = 2 * strength - min(before.strength, self.largest)
        working = self.free | self._entered(before.taus)
        for i, c in self.cost.items():
            likely = np.abs(before.slopes[i]) >= np.maximum(limit, 0.5 * strength) * c
            working[self.unknowns[i][likely & (c > 0)]] = True
        working &= self.there
        if not self.n_tilts:
            return self._solved(self.f, strength, before.taus, working, tol)
        here, pilot = before, before.taus
        for k in range(self.n_tilts):
            if k:  # from a pilot that is shrunk the answer overshoots, by up to as much as the pilot was short
                pilot = {i: 0.5 * (tau + here.taus[i]) for i, tau in pilot.items()}
            here = self._solved(self._tilted(pilot), strength, here.taus, working, tol)
            if here.status != "converged":
                break
            working |= self._entered(here.taus)
        self.distance = self._distance(here) if here.status == "converged" else np.inf
        return here if self.distance <= FAR else self._solved(self.f, strength, before.taus, working, tol)

    @np.errstate(over="ignore", invalid="ignore")
    def _distance(self, solution: Sparse) -> float:
        """√(n gain) of one step to pseudo-likelihood's optimum with the same penalty.

        It is at least the distance of any term in standard errors.
        """
        slopes = {i: at.gradient for i, at in self.f.at_nodes(solution.taus, 1).items()}
        working = self.free | self._entered(solution.taus) | self._wrong(slopes, solution.strength, self.tol)
        inside = dict(self._of_nodes(working & self.there))
        taus = {i: solution.taus[i][inside[i]] for i in inside}
        gain = 0.0
        for i, at in self.f.only(working & self.there).at_nodes(taus).items():
            model = Proximal(at, solution.strength * self.cost[i][inside[i]], taus[i])
            step, _ = model.step(0.0)
            gain = max(gain, np.inf if step is None else model.decrement(step))
        return float(np.sqrt(self.n * gain))

    # ---------------------------------------------------------------- structures

    def kept(self, solution: Sparse, rule: str) -> Array:
        """The penalised terms that one of their nodes keeps, or with "and" all, (K,) of bool."""
        keeping, nodes = np.zeros(len(self.free), int), np.zeros(len(self.free), int)
        for i, tau in solution.taus.items():
            np.add.at(keeping, self.unknowns[i][tau != 0], 1)
            np.add.at(nodes, self.unknowns[i], 1)
        return ~self.free & (keeping >= nodes if rule == "and" else keeping > 0) & (nodes > 0)

    @property
    def candidates(self) -> Array:
        """The penalised terms, (K,) of bool."""
        return self.there & ~self.free

    def count(self, kept: Array) -> int:
        """How many terms are kept."""
        return int(np.count_nonzero(kept))

    def sizes(self, kept: Array) -> tuple[Array, Array]:
        """How many penalised terms each node keeps, and of how many, (p,) each."""
        of = self.candidates
        there = np.array([of[u].sum() for u in self.unknowns]) + self.unlisted
        return np.array([kept[u].sum() for u in self.unknowns]), there

    def losses(self, kept: Array) -> Array:
        """Of each node, pseudo-likelihood's least loss with the kept terms and those that have no penalty, (p,)."""
        inside = kept | self.free
        part = self.f.with_loss(PseudoLikelihoodLoss()).only(inside)
        anew = []
        for i, here in self._of_nodes(inside):
            mark = here.tobytes()
            if self._known.get(i, (b"",))[0] != mark:
                anew.append(i)
                start = self._known[i][1] if i in self._known else self.empty.taus[i]
                self._known[i] = (mark, np.where(here, start, 0.0), np.nan)
        starts = {i: self._known[i][1][inside[self.unknowns[i]]] for i in anew}
        for i, fit in zip(
            anew, learn_nodes(part, [starts], _LOOSE, self.max_iter, nodes=anew) if anew else (), strict=True
        ):
            tau = np.zeros(len(self.unknowns[i]))
            tau[inside[self.unknowns[i]]] = fit.tau
            self._known[i] = (self._known[i][0], tau, fit.at.value)
        return np.array([self._known[i][2] for i in range(len(self.unknowns))])

    def joint(self, solution: Sparse, rule: str, consensus: str) -> dict[Key, float]:
        """One value for each term that is in the model, and for each that has no penalty."""
        total, count, logs = np.zeros((3, len(self.free)))
        keeping = np.zeros(len(self.free), int)
        for i, tau in solution.taus.items():
            places, on = self.unknowns[i], tau != 0
            np.add.at(total, places, tau)
            np.add.at(count, places, 1)
            np.add.at(keeping, places[on], 1)
            np.add.at(logs, places[on], np.log(np.abs(tau[on])))
        one = total / np.maximum(count, 1)
        if consensus == "geometric":
            one = np.sign(one) * np.exp(logs / np.maximum(keeping, 1))
        inside = self.kept(solution, rule) | (self.free & self.there)
        return {self.f.terms.keys[k]: float(one[k]) for k in np.flatnonzero(inside)}

    # ---------------------------------------------------------------- inside

    def _of_nodes(self, values: Array) -> Iterator[tuple[int, Array]]:
        return ((i, values[places]) for i, places in enumerate(self.unknowns))

    def _entered(self, taus: dict[int, Array]) -> Array:
        """The unknowns that are not zero at some node, (K,) of bool."""
        found = np.zeros(len(self.free), bool)
        for i, tau in taus.items():
            found[self.unknowns[i][tau != 0]] = True
        return found

    def _start(self, zero: dict[int, Array]) -> dict[int, Array]:
        """What is not penalised near a Gaussian of independent columns, where it has a lower loss than zero."""
        if not self.free.any():
            return zero
        X, weight = self.f.samples.kept
        gaussian = fitted_gaussian(X, weight)
        starts = [np.zeros(int(self.free.sum()))]
        part = self.f.only(self.free)
        if gaussian is not None:
            precision = np.diag(1 / np.average((X - gaussian.mean) ** 2, axis=0, weights=weight))
            starts.append(part.terms.near_gaussian(gaussian.mean, precision))
        fits = learn_nodes(part, starts, _LOOSE, self.max_iter)
        return self._spread(fits, self.free)

    def _spread(self, fits: Sequence[NodeFit], working: Array) -> dict[int, Array]:
        """Unknowns of nodes from those of the working set."""
        taus = {}
        for (i, inside), fit in zip(self._of_nodes(working), fits, strict=True):
            taus[i] = np.zeros(len(inside))
            taus[i][inside] = fit.tau
        return taus

    def _tilted(self, taus: dict[int, Array]) -> Objective:
        """The objective tilted by a pilot of each node."""
        entered = self._entered(taus) | self.free
        pilot = {i: taus[i][inside] for i, inside in self._of_nodes(entered)}
        return self.f.with_loss(TiltedScreening()).tilted(pilot, self.f.terms.only(entered))

    @np.errstate(over="ignore", invalid="ignore")
    def _solved(self, f: Objective, strength: float, taus: dict[int, Array], working: Array, tol: float) -> Sparse:
        """Solve on a working set, look at all slopes, take in those that the penalty does not hold, and again."""
        costs = {i: np.where(c > 0, strength if np.isfinite(strength) else 0.0, 0.0) * c for i, c in self.cost.items()}
        n_iter, self.screening = 0, f
        for _ in range(_ROUNDS):
            inside = dict(self._of_nodes(working))
            fits = learn_nodes(
                f.only(working),
                [{i: taus[i][inside[i]] for i in inside}],
                tol,
                self.max_iter,
                costs={i: costs[i][inside[i]] for i in inside},
            )
            taus = self._spread(fits, working)
            n_iter += max(fit.n_iter for fit in fits)
            slopes = {i: at.gradient for i, at in f.at_nodes(taus, 1).items()}
            if not np.isfinite(strength):
                wrong = np.zeros_like(working)
                break
            wrong = self._wrong(slopes, strength, tol) & self.there & ~working
            if not wrong.any():
                break
            working = working | wrong
        worst = [
            (missed(taus[i], slopes[i], costs[i]) / self.noise[i])[inside[i]].max(initial=0.0) for i in sorted(taus)
        ]
        status: Status = next((fit.status for fit in fits if fit.status != "converged"), "converged")
        return Sparse(strength, taus, slopes, np.array(worst), "iteration limit" if wrong.any() else status, n_iter)

    def _wrong(self, slopes: dict[int, Array], strength: float, tol: float) -> Array:
        """The terms whose slope the penalty does not hold at some node, (K,) of bool."""
        found = np.zeros(len(self.free), bool)
        for i, c in self.cost.items():
            slack = tol * self.noise[i] / np.sqrt(self.n)
            found[self.unknowns[i][np.abs(slopes[i]) > strength * c + slack]] = True
        return found

    def _check_empty(self) -> None:
        """An error where there is no density without penalised terms."""
        bad = [i for i, slope in self.empty.slopes.items() if not np.isfinite(slope).all()]
        if bad:
            raise ValueError(
                f"Columns {listed([self.f.samples.names[i] for i in bad])} have no density without the terms that L1 "
                "penalises or leaves out. Use penalize_self=False, or list their squares in include."
            )

    def _check_noise(self) -> None:
        """An error where the slopes of penalised terms do not depend on the row."""
        if any(np.any((self.noise[i] <= 1e-300) & (c > 0)) for i, c in self.cost.items()):
            raise ValueError(
                "Without the terms that L1 penalises, slopes of this loss are the same in all rows, so that they have "
                "no noise. Use penalize_self=False, or units='raw'."
            )

    def _noise(self) -> dict[int, Array]:
        """√⟨s²⟩ of each node's scores without penalised terms."""
        f, n = self.f, self.f.samples.kept_samples.n_rows
        if n <= _NOISE_ROWS:
            f = f.kept()
        else:
            f = f.take(np.sort(np.random.default_rng([n, 1]).permutation(n)[:_NOISE_ROWS]))
        sums = f.node_scores(self.empty.taus, lambda block, parts: np.concatenate([S**2 @ block.weight for S in parts]))
        ends = np.cumsum([len(places) for places in self.unknowns])[:-1]
        return {i: np.sqrt(part / f.n) + 1e-300 for i, part in enumerate(np.split(sums, ends))}
