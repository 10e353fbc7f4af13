"""What `check_axis` compares an axis with: random exponents, and their integrals by an independent rule in x."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..axes.base import Array, Axis, Integrals, packed_pairs

__all__ = ["LEVELS", "Case", "agree", "random_exponents"]

LEVELS = np.array([1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 0.999, 1 - 1e-6])
_HALVINGS = 12  # of panels, at most
_CUT = 1e150  # functions are cut there, where the density is zero


@dataclass(frozen=True)
class Case:
    """An axis, some values, and what several properties share."""

    axis: Axis
    x: Array
    seed: int

    @cached_property
    def periodic(self) -> bool:
        """Whether the axis goes on beyond its ends."""
        end = self.axis.ends[1]
        return bool(np.isfinite(end) and self.axis.contains(np.array([2 * end + 1]))[0])

    @cached_property
    def _rows(self) -> tuple[Array, Integrals]:
        """Exponents whose integrals exist and are resolved, and these integrals."""
        a = random_exponents(self.axis, self.x, np.random.default_rng(self.seed), 4)
        for l in range(a.shape[1] - 1, 0, -1):
            a[~np.isfinite(self.axis.integrals(a, second=False).log_Z), l] = 0.0
        a = a[np.isfinite(self.axis.integrals(a, second=False).log_Z)]
        assert len(a), "integrals: log Z is not finite in any row"
        got = self.axis.integrals(a)
        resolved = got.error <= self.axis.tolerance
        assert resolved.any(), f"integrals: no row is resolved; stated errors are {got.error.min():.1e} and more"
        return a[resolved], Integrals(*(values[resolved] for values in got if values is not None))

    @property
    def a(self) -> Array:
        """Exponents, (n, J)."""
        return self._rows[0]

    @property
    def integrals(self) -> Integrals:
        """What the axis says of them."""
        return self._rows[1]

    @cached_property
    def panels(self) -> tuple[Array, Array]:
        """Edges of panels on which a rule of ten nodes gives all masses, (2, E), and of the wider ones they halve.

        First those between the places of 512 nodes and the ends; then halves of what changes when halved.
        """
        places = np.unique(self.axis.nodes(512).places)
        start, end = self.axis.ends
        edges = np.unique(np.concatenate([_onwards(self, places, -1, start), places, _onwards(self, places, 1, end)]))
        waiting, whole, halves = np.stack([edges[:-1], edges[1:]]), [], []
        total = _masses(self, waiting)[1].sum(axis=1, keepdims=True)
        for k in range(_HALVINGS):
            middle = waiting[0] + np.diff(waiting, axis=0)[0] / 2
            finer = np.stack([[waiting[0], middle], [middle, waiting[1]]], axis=-1).reshape(2, -1)
            change = np.abs(_masses(self, waiting)[1] - _masses(self, finer)[1].reshape(len(total), -1, 2).sum(axis=2))
            fine = np.all(change < 1e-15 * total, axis=0) | (k == _HALVINGS - 1)
            whole.append(waiting[:, fine])
            halves.append(finer[:, np.repeat(fine, 2)])
            waiting = finer[:, np.repeat(~fine, 2)]
            if fine.all():
                break
        panels = np.concatenate(halves, axis=1)
        return panels[:, np.argsort(panels[0])], np.concatenate(whole, axis=1)

    @cached_property
    def reference(self) -> Integrals:
        """The integrals by panels; its error is the change from panels twice as wide."""
        if not self.axis.continuous:
            return self._sums(self.axis.nodes(self.axis.largest).places, np.zeros(1))
        fine, coarse = (self._sums(*_nodes(panels)) for panels in self.panels)
        change = np.maximum.reduce(
            [
                np.abs(fine.log_Z - coarse.log_Z),
                np.abs(fine.mean - coarse.mean).max(axis=1) / (1 + np.abs(fine.mean).max(axis=1)),
                np.abs(fine.covariance - coarse.covariance).max(axis=1)  # type: ignore[operator]
                / (1 + np.abs(fine.covariance).max(axis=1)),  # type: ignore[arg-type]
            ]
        )
        assert change.max() < 1e-6, (
            f"integrals: row {change.argmax()} of the reference changes by {change.max():.1e} with the width of its "
            "panels; functions or log_base jump"
        )
        return fine._replace(error=change)

    def log_density(self, x: Array) -> tuple[Array, Array]:
        """Log q − Σ a_l φ_l, (rows, n), and φ, (n, J)."""
        with np.errstate(all="ignore"):
            phi = np.nan_to_num(np.clip(self.axis.functions(x), -_CUT, _CUT))
        return self.axis.log_base(x) - self.a @ phi.T, phi

    def _sums(self, x: Array, log_weights: Array) -> Integrals:
        exponent, phi = self.log_density(x)
        exponent = exponent + log_weights
        top = exponent.max(axis=1)
        mass = np.exp(exponent - top[:, None])
        Z = mass.sum(axis=1)
        mass /= Z[:, None]
        mean, (l, m) = mass @ phi, packed_pairs(phi.shape[1])
        away = (phi - centre for centre in mean)
        covariance = np.stack([((p[:, None] * d).T @ d)[l, m] for p, d in zip(mass, away, strict=True)])
        return Integrals(np.log(Z) + top, mean, covariance, np.zeros(len(mean)))

    @cached_property
    def levels(self) -> tuple[Array, Array, Array]:
        """Rows, places and the reference's distribution function there."""
        if self.axis.continuous:
            top, mass = _masses(self, self.panels[0])
            mass, at = mass * np.exp(top - self.reference.log_Z)[:, None], self.panels[0][1]
        else:
            at = self.axis.nodes(self.axis.largest).places
            mass = np.exp(self.log_density(at)[0] - self.reference.log_Z[:, None])
        below = mass.cumsum(axis=1)
        j = np.array([np.searchsorted(row, LEVELS) for row in below]).clip(0, len(at) - 1)
        rows = np.repeat(np.arange(len(below)), len(LEVELS))
        j = j.ravel()
        j = np.maximum(j - 1, 0) if self.periodic else j  # the end of a turn is its start
        return rows, at[j], below[rows, j]

    @cached_property
    def inside(self) -> Array:
        """Values between the middle nodes; on an axis of values, these."""
        places = np.unique(self.axis.nodes(self.axis.smallest).places)
        if not self.axis.continuous:
            return places
        return (places[:-1] + places[1:])[len(places) // 4 : -(len(places) // 4)] / 2

    @cached_property
    def beside(self) -> tuple[Array, Array]:
        """A little to the left and to the right of them."""
        places = np.unique(self.axis.nodes(self.axis.smallest).places)
        step = 1e-3 * np.diff(places)[len(places) // 4 : -(len(places) // 4)]
        return self.inside - step, self.inside + step

    @cached_property
    def run(self) -> Array:
        """What the coordinate grows by from left to right."""
        left, right = self.beside
        return self.axis.coordinate(right) - self.axis.coordinate(left)


def random_exponents(axis: Axis, x: Array, rng: np.random.Generator, count: int) -> Array:
    """Exponents a, (3 count, J), of densities that are flat, have one peak and have two among the values x."""
    low, high = np.quantile(axis.coordinate(x), [0.025, 0.975])
    y = 2 * (np.clip(axis.coordinate(x), low, high) - low) / (high - low) - 1
    functions = np.hstack([np.ones((len(x), 1)), axis.functions(x)])
    size = functions[:, 1:].std(axis=0)
    rows = []
    for peaks in np.repeat([0, 1, 2], count):
        energy = 10 ** rng.uniform(0, 2.5) * np.prod(y - rng.uniform(-1, 1, (peaks, 1)), axis=0) ** 2
        fitted = np.linalg.lstsq(functions, energy, rcond=1e-10)[0][1:] if peaks else 0.0
        rows.append(fitted + 0.3 * rng.standard_normal(len(size)) / size)
    return np.array(rows)


def _nodes(panels: Array) -> tuple[Array, Array]:
    """Places and log weights of ten Gauss-Legendre nodes in each panel, one after the other."""
    u, w = np.polynomial.legendre.leggauss(10)
    half = np.diff(panels, axis=0)[0][:, None] / 2
    with np.errstate(divide="ignore"):  # no mass where rounding leaves no width
        return (panels[0][:, None] + half * (u + 1)).ravel(), (np.log(half) + np.log(w)).ravel()


def _masses(case: Case, panels: Array) -> tuple[Array, Array]:
    """Top of each row, (rows,), and mass of each panel over exp(top), (rows, panels)."""
    x, log_weights = _nodes(panels)
    exponent = case.log_density(x)[0] + log_weights
    top = case.integrals.log_Z
    mass = np.exp(np.minimum(exponent - top[:, None], 700.0))
    return top, mass.reshape(len(mass), -1, 10).sum(axis=2)


def _onwards(case: Case, places: Array, side: int, end: float) -> Array:
    """Edges beyond the outermost place: ever nearer to an end, or in steps that double until no row has mass left."""
    at = places[0 if side < 0 else -1]
    if np.isfinite(end):
        return np.append(end + (at - end) * 4.0 ** -np.arange(1, 25), end)
    step = (places[-1] - places[0]) / 64
    top = case.log_density(places)[0].max(axis=1) + np.log(step)
    edges: list[float] = []
    while len(edges) < 1000 and np.isfinite(at + side * step):
        at += side * step
        edges.append(at)
        density = case.log_density(np.array([at]))[0][:, 0] + np.log(step)
        if len(edges) > 8 and np.all(density < top - 50):
            return np.array(edges)
        top, step = np.maximum(top, density), 2 * step
    raise AssertionError(f"integrals: the density does not fall towards {side * np.inf}")


def agree(what: str, got: Array | None, truth: Array | None, allowed: Array | float, rows: Array | None = None) -> None:
    """All entries within what is allowed, NaN nowhere."""
    assert got is not None, f"{what}: missing"
    assert truth is not None
    assert np.shape(got) == np.shape(truth), f"{what}: shape {np.shape(got)}, not {np.shape(truth)}"
    off = np.abs(got - truth)
    wrong = ~(off <= allowed)
    if wrong.any():
        worst = tuple(np.argwhere(wrong)[np.argmax(np.nan_to_num((off / allowed)[wrong], nan=np.inf))])
        row = worst[0] if rows is None else rows[worst[0]]
        limit = np.broadcast_to(allowed, off.shape)[worst]
        raise AssertionError(
            f"{what}: row {row} has {got[worst]:.12g}, the reference {truth[worst]:.12g}, "
            f"off by {off[worst]:.1e} where {limit:.1e} is allowed"
        )
