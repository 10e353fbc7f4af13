"""Every axis of the table keeps the contract; axes that break it fail with a message that names the property."""

import json
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from cases import AXES, AxisCase

from isodus.axes import Axis, Boundary, Derivatives, Line, Nodes
from isodus.axes.quadrature import gauss_legendre
from isodus.axes.smooth import Smooth, last_coefficients
from isodus.contracts import check_axis


@dataclass(frozen=True, eq=False)
class Toy(Smooth):
    """√x and sin 3x on [0, 1], under dx: what a user adds is this class and one row of the table."""

    strength: float = 1.0

    kind: ClassVar[str] = "toy"

    @property
    def degrees(self):
        return np.array([1, 2])

    @property
    def ends(self):
        return 0.0, 1.0

    def contains(self, x):
        return (x >= 0) & (x <= 1)

    def functions(self, x):
        return self.strength * np.stack([np.sqrt(1 + np.clip(x, 0, 1)), np.sin(3 * x)], axis=1)

    def log_base(self, x):
        return np.where(self.contains(x), 0.0, -np.inf)

    def nodes(self, count):
        u, w = gauss_legendre(count)
        x = self.from_unit(u)
        return Nodes(x, np.log(w / 2), self.functions(x), last_coefficients(count))

    def to_unit(self, x):
        return 2 * x - 1

    def from_unit(self, u):
        return (u + 1) / 2

    def log_density(self, z):
        return np.full(len(z), np.log(0.5))

    def derivatives(self, x):
        root = np.sqrt(1 + x)
        first = np.stack([0.5 / root, 3 * np.cos(3 * x)], axis=1)
        return Derivatives(
            self.strength * first, self.strength * np.stack([-0.25 / root**3, -9 * np.sin(3 * x)], axis=1)
        )

    def boundary(self, x):
        return Boundary(4 * x * (1 - x), 4 - 8 * x)


TABLE = [*AXES, AxisCase("toy", np.linspace(0.05, 0.95, 40), lambda x, degree: Toy(2.0), (2,))]
CASES = [pytest.param(case, degree, id=f"{case.name}, {degree}") for case in TABLE for degree in case.degrees]


@pytest.mark.parametrize(("case", "degree"), CASES)
def test_contract(case, degree):
    check_axis(case.make(case.x, degree), x=case.x)


@pytest.mark.parametrize(
    "case",
    [case for case in AXES if case.name in ("line, normal", "circle", "gamma", "spins")],
    ids=lambda case: case.name,
)
def test_contract_without_rows_and_with_another_seed(case):
    check_axis(case.make(case.x, 2), seed=3)


# ------------------------------------------------------------------------------------------------- broken axes


class Falling(Toy):
    kind: ClassVar[str] = "falling"

    @property
    def degrees(self):
        return np.array([2, 1])


class OtherFunctionsAtNodes(Toy):
    kind: ClassVar[str] = "other functions at nodes"

    def nodes(self, count):
        nodes = super().nodes(count)
        return nodes._replace(phi=nodes.phi * 1.001)


class HeavyNodes(Toy):
    kind: ClassVar[str] = "heavy nodes"

    def nodes(self, count):
        nodes = super().nodes(count)
        return nodes._replace(log_weights=nodes.log_weights + 1e-9)


class Optimist(Toy):
    """Its error is stated as nothing, though eight nodes do not resolve a peak."""

    kind: ClassVar[str] = "optimist"
    smallest: ClassVar[int] = 8
    largest: ClassVar[int] = 8

    def nodes(self, count):
        nodes = super().nodes(count)
        return nodes._replace(check=np.zeros((len(nodes.places), 0)))


class OtherBase(Toy):
    kind: ClassVar[str] = "other base"

    def log_base(self, x):
        return np.where(self.contains(x), x, -np.inf)


class Open(Toy):
    kind: ClassVar[str] = "open"

    def contains(self, x):
        return np.isfinite(x)


class Everywhere(Toy):
    kind: ClassVar[str] = "everywhere"

    def log_base(self, x):
        return np.zeros_like(x)


class Covariances(Toy):
    kind: ClassVar[str] = "covariances"

    def integrals(self, a, second=True, count=None):
        got = super().integrals(a, second, count)
        return got if got.covariance is None else got._replace(covariance=got.covariance * (1 + 1e-6))


class FirstOnly(Toy):
    kind: ClassVar[str] = "first only"

    def integrals(self, a, second=True, count=None):
        got = super().integrals(a, second, count)
        return got if second else got._replace(log_Z=got.log_Z + 1e-6)


class Below(Toy):
    kind: ClassVar[str] = "below"

    def cdf(self, a, x):
        return super().cdf(a, x) ** 1.001


class Quantile(Toy):
    kind: ClassVar[str] = "quantile"

    def quantile(self, a, v):
        return np.clip(super().quantile(a, v) + 1e-4, 0, 1)


class Draws(Toy):
    kind: ClassVar[str] = "draws"

    def draw(self, a, rng):
        return super().draw(0.5 * a, rng)


class Slopes(Toy):
    kind: ClassVar[str] = "slopes"

    def derivatives(self, x):
        return Derivatives(super().derivatives(x).first, -super().derivatives(x).second)


class NoEnd(Toy):
    kind: ClassVar[str] = "no end"

    def boundary(self, x):
        return Boundary(np.ones_like(x), np.zeros_like(x))


class BoundarySlope(Toy):
    kind: ClassVar[str] = "boundary slope"

    def boundary(self, x):
        return super().boundary(x)._replace(slope=8 * x - 4)


class Powers(Line):
    kind: ClassVar[str] = "powers"

    def powers(self):
        return super().powers() + np.diag([0, 0, 1e-3])


class Forgets(Toy):
    kind: ClassVar[str] = "forgets"

    def to_dict(self):
        return super().to_dict() | {"strength": 1.0}


class ForgetsPickling(Toy):
    kind: ClassVar[str] = "forgets pickling"

    def __getstate__(self):
        return {"strength": 1.0}


class SameNames(Toy):
    kind: ClassVar[str] = "same names"

    def name(self, l, variable):
        return variable


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Falling, "shapes: degrees must start at 1 or more and not fall"),
        (SameNames, "shapes: the functions have the same name twice"),
        (OtherFunctionsAtNodes, r"functions at nodes: row \d+ has"),
        (Everywhere, "base: log_base is 0.0 at .* contains says otherwise"),
        (Open, r"ends: functions one turn further: row \d+ has"),
        (HeavyNodes, r"log Z: row \d+ has .* off by 1\.0e-09 where"),
        (OtherBase, r"log Z: row \d+ has"),
        (Optimist, r"(log Z|E\[φ\]|Cov\[φ\]): row \d+ has"),
        (Covariances, r"Cov\[φ\]: row \d+ has"),
        (FirstOnly, r"log Z with second=False: row \d+ has .* off by 1\.0e-06"),
        (Below, r"cdf: row \d+ has"),
        (Quantile, r"cdf of quantile: row \d+ has"),
        (Draws, r"draws: those of row \d+ are 0\.\d+ from cdf"),
        (Slopes, r"φ″: row \d+ has"),
        (NoEnd, "boundary: h at the ends: row 0 has 1, the reference 0"),
        (BoundarySlope, r"boundary: h′: row \d+ has"),
        (Powers, r"powers: row \d+ has"),
        (Forgets, "files: functions differ by"),
        (ForgetsPickling, "pickling: functions differ by"),
    ],
)
def test_broken_axes_fail_by_name(broken, message):
    axis = broken.fit(np.random.default_rng(0).standard_normal(200), 2) if broken is Powers else broken(2.0)
    with pytest.raises(AssertionError, match=message):
        check_axis(axis)


def test_an_axis_that_cannot_be_pickled_fails_by_name():
    @dataclass(frozen=True, eq=False)
    class Local(Toy):
        kind: ClassVar[str] = "local"

    with pytest.raises(AssertionError, match="pickling: .*define classes and functions in a module"):
        check_axis(Local(2.0))


# ------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("case", AXES, ids=[case.name for case in AXES])
def test_copies_are_equal_and_others_are_not(case):
    axis = case.make(case.x, case.degrees[-1])
    if case.name in ("gamma", "hermite", "functions between ends"):
        with pytest.raises(ValueError, match="cannot be saved"):
            axis.to_dict()
        return
    assert Axis.from_dict(json.loads(json.dumps(axis.to_dict()))) == axis
    assert pickle.loads(pickle.dumps(axis)) == axis
    assert axis != Line.fit(DATA_OF_ANOTHER, 3)


DATA_OF_ANOTHER = np.random.default_rng(9).standard_normal(50)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "plane"}, "no axis is of kind 'plane'"),
        ([1, 2], "no axis is of kind"),
        ({"kind": "circle"}, "has degree, not"),
        ({"kind": "circle", "degree": 0}, "whole number from 1 on"),
        ({"kind": "circle", "degree": "four"}, "cannot be made|must be"),
        ({"kind": "circle", "degree": float("nan")}, "must be finite"),
        ({"kind": "whole line", "location": 0.0, "scale": 0.0, "degree": 2, "zero": 0.0, "one": 1.0}, "positive scale"),
        ({"kind": "functions", "f": 1}, "cannot be read|has"),
    ],
)
def test_files_that_mean_nothing_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        Axis.from_dict(data)
