"""Tables of cases: a contract test of a room takes each row of its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from fit.toy_penalty import OrderRidge
from losses.toy_reference import NormalReference
from losses.toy_screening import UniformScreening
from losses.written_out import (
    power_screening,
    pseudo_likelihood,
    score_matching,
    tilted_screening,
    uniform_screening,
)

from isodus.axes import Axis, Bounded, Circle, Functions, HalfLine, Interval, Line, Mapped, Values, WholeLine
from isodus.fit.penalties import Penalty, Ridge, WeakRidge
from isodus.losses import (
    Loss,
    PowerReference,
    PseudoLikelihoodLoss,
    Reference,
    ReferenceScreening,
    ScoreMatchingLoss,
    TiltedScreening,
)


class AxisCase(NamedTuple):
    """A kind of axis on some data: `make(x, degree)`."""

    name: str
    x: np.ndarray
    make: Callable[[np.ndarray, int], Axis]
    degrees: tuple[int, ...] = (1, 4, 8)


def gamma_functions(x):
    return np.stack([x, np.log(x)], axis=1)


def gamma_slopes(x):
    return np.stack([1 + 0 * x, 1 / x], axis=1), np.stack([0 * x, -1 / x**2], axis=1)


def hermite_functions(x):
    return np.stack([x, x**2 - 1, x**3 - 3 * x, x**4 - 6 * x**2 + 3], axis=1)


def bumps(x):
    return np.stack([np.exp(-((x - 1) ** 2)), np.sin(3 * x)], axis=1)


def _data():
    rng = np.random.default_rng(20)
    n = 1500
    normal = rng.standard_normal(n)
    return {
        "normal": normal,
        "shifted": 1e6 + normal,
        "small": 1e-6 * normal,
        "skewed": rng.lognormal(size=n),
        "t3": rng.standard_t(3, size=n),
        "cauchy": rng.standard_cauchy(size=n),
        "integers": rng.poisson(4.0, size=n).astype(float),
        "wells": np.where(rng.random(n) < 0.4, -2.0, 2.0) + 0.5 * normal,
        "piles": np.where(rng.random(n) < 0.3, 0.0, normal),
        "uniform": rng.random(n),
        "exponential": rng.exponential(size=n),
        "angles": rng.vonmises(1.0, 2.0, size=n),
        "five": rng.choice([-2.0, -1.0, 0.5, 3.0, 4.0], size=n, p=[0.1, 0.3, 0.2, 0.3, 0.1]),
        "spins": np.sign(normal),
    }


DATA = _data()


def _table():
    knots = np.array([[0.0, 1.0, 2.0, 5.0, 30.0], [0.0, 1.0, 1.5, 2.0, 3.0]])
    cases = [AxisCase(f"line, {name}", DATA[name], Line.fit) for name in
             ("normal", "shifted", "small", "skewed", "t3", "cauchy", "integers", "wells", "piles")]  # fmt: skip
    cases += [AxisCase(f"bounded, {name}", DATA[name], Bounded.fit) for name in
              ("normal", "shifted", "small", "skewed", "cauchy", "integers", "wells", "piles")]  # fmt: skip
    return [
        *cases,
        AxisCase("interval", DATA["uniform"], lambda x, d: Interval.fit(x, d, ends=(0.0, 1.0))),
        AxisCase("wide interval", DATA["skewed"], lambda x, d: Interval.fit(x, d, ends=(0.0, 100.0)), (1, 4)),
        AxisCase("half line", DATA["exponential"], lambda x, d: HalfLine.fit(x, d, start=0.0)),
        AxisCase("half line, skewed", DATA["skewed"], lambda x, d: HalfLine.fit(x, d, start=0.0)),
        AxisCase("half line to the left", 3 - DATA["exponential"],
                 lambda x, d: HalfLine.fit(x, d, start=3.0, direction=-1.0)),
        AxisCase("circle", DATA["angles"], Circle.fit),
        AxisCase("whole line", DATA["normal"], WholeLine.fit, (2, 4, 6)),
        AxisCase("whole line, shifted", DATA["shifted"], WholeLine.fit, (2, 4)),
        AxisCase("values", DATA["five"], Values.fit, (1, 2, 4)),
        AxisCase("spins", DATA["spins"], Values.fit, (1,)),
        AxisCase("gamma", DATA["exponential"],
                 lambda x, d: Functions.fit(x, gamma_functions, (0.0, np.inf), [1, 1], slopes=gamma_slopes), (1,)),
        AxisCase("hermite", DATA["normal"],
                 lambda x, d: Functions.fit(x, hermite_functions, (-np.inf, np.inf), [1, 2, 3, 4]), (4,)),
        AxisCase("functions between ends", DATA["uniform"],
                 lambda x, d: Functions.fit(x, bumps, (0.0, 2.0), [1, 2]), (2,)),
        AxisCase("log10 to a line", DATA["skewed"], lambda x, d: Mapped.fit(x, d, g="log10"), (1, 4, 8)),
        AxisCase("asinh to a line", DATA["cauchy"], lambda x, d: Mapped.fit(x, d, g="asinh"), (1, 4, 8)),
        AxisCase("table to a bounded axis", DATA["skewed"],
                 lambda x, d: Mapped.fit(x, d, g="table", knots=knots, axis=Bounded.fit), (4,)),
        AxisCase("table to a line", DATA["skewed"], lambda x, d: Mapped.fit(x, d, g="table", knots=knots), (4,)),
    ]  # fmt: skip


AXES = _table()


class LossCase(NamedTuple):
    """A loss, the axes to try it on, by name, and ℓ of one row in another way: `value(axis, a, x, pilot)`."""

    loss: Loss
    axes: tuple[str, ...]
    value: Callable[[Axis, np.ndarray, float, np.ndarray], float]

    def on(self, name: str) -> tuple[Axis, np.ndarray]:
        """An axis and its column."""
        x, make = LOSS_AXES[name]
        axis = make(x)
        return axis.unclamped() if self.loss.unclamped else axis, x


_NORMAL = DATA["normal"][:400]
LOSS_AXES = {
    "line": (_NORMAL, lambda x: Line.fit(x, 4)),
    "shifted line": (40 + 20 * _NORMAL, lambda x: Line.fit(x, 3)),
    "whole line": (3 + _NORMAL, lambda x: WholeLine.fit(x, 2)),
    "half line": (np.exp(_NORMAL / 3), lambda x: HalfLine.fit(x, 3)),
    "interval": (np.tanh(_NORMAL), lambda x: Interval.fit(x, 4)),
    "circle": (2 * _NORMAL, lambda x: Circle(2)),
    "values": (np.clip(np.rint(_NORMAL), -1, 1), lambda x: Values.fit(x, 2)),
}

LOSSES = {
    "pseudo-likelihood": LossCase(PseudoLikelihoodLoss(), tuple(LOSS_AXES), pseudo_likelihood),
    "tilted screening": LossCase(TiltedScreening(), tuple(LOSS_AXES), tilted_screening),
    "power screening": LossCase(
        ReferenceScreening(PowerReference([0.3, 0.3], 0.5), 4), tuple(LOSS_AXES), power_screening(0.3, 4.5)
    ),
    "score matching": LossCase(
        ScoreMatchingLoss(), ("line", "shifted line", "whole line", "half line", "interval", "circle"), score_matching
    ),
    "uniform screening": LossCase(UniformScreening(), ("interval",), uniform_screening),
}

PENALTIES: dict[str, Penalty] = {
    "weak ridge": WeakRidge(),
    "ridge": Ridge(3.0),
    "ridge, own terms free": Ridge(3.0, free="own"),
    "ridge by order": OrderRidge(2.0),
}

REFERENCES: dict[str, Reference] = {
    "powers": PowerReference(1.0),
    "powers, each its own": PowerReference([0.5, 0.3, 0.7], delta=1.0),
    "normal": NormalReference(0.7),
}
