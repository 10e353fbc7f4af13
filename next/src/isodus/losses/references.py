"""References of interaction screening: what a user chooses; the losses are in `interaction_screening`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from .._core.checks import finite_number, one_of, positive_integer
from ..axes import Axis

__all__ = ["PowerReference", "Reference", "TiltedReference"]

Array = np.ndarray


class TiltedReference(BaseEstimator):
    """R(x_i | rest) ∝ q_i exp(−Σ_l a⁰_l φ_l): each variable's conditional density under a pilot model.

    The answer of one problem is the pilot of the next. A pilot that is pseudo-likelihood's optimum is its own answer.

    Parameters
    ----------
    pilot : PolynomialModel, optional
        By default pseudo-likelihood on a part of the rows: a quarter, or more where rows are few.
        The distance of the answer from the fixed point is then checked, and where it is more than half a standard
        error the pilot takes all rows. The answer for a given pilot is not checked.
    n_tilts : int, default=2
        How many problems are solved, each tilted by the answer before. The default pilot may take up to two more.

    Examples
    --------
    >>> from isodus import TiltedReference
    >>> TiltedReference(n_tilts=3)
    TiltedReference(n_tilts=3)
    """

    def __init__(self, pilot: Any = None, n_tilts: int = 2) -> None:
        self.pilot = pilot
        self.n_tilts = n_tilts

    def check(self, names: Sequence[str]) -> None:
        """An error for values that mean nothing, and for a pilot of other columns."""
        positive_integer(self.n_tilts, "n_tilts")
        if self.pilot is None:
            return
        there = getattr(self.pilot, "names", None)
        if there is None or not hasattr(self.pilot, "terms"):
            raise ValueError(f"pilot of TiltedReference is a PolynomialModel, not {self.pilot!r:.60}.")
        if tuple(there) != tuple(names):
            raise ValueError(
                f"pilot of TiltedReference is a model of {', '.join(map(repr, there[:6]))}, and X has the columns "
                f"{', '.join(map(repr, names[:6]))}. Use a model of these columns, in this order."
            )


class Reference(BaseEstimator):
    """R of one variable, whatever the others are. One of your own is a class of this one with `of`.

    Each variable has a problem of its own, without integrals, and `consensus` combines their answers. It has no ridge.
    """

    link: Literal["log", "plain"] = "log"

    def check(self, names: Sequence[str]) -> None:
        """An error for values that mean nothing."""

    def check_axis(self, axis: Axis, degree: int) -> None:
        """An error, in words that follow the column's name, for an axis whose energy has that degree."""

    def of(self, node: int, axis: Axis, degree: int) -> tuple[Callable[[Array], Array], Array]:
        """log R/q up to a constant, as a function of x, and E_R[φ], (J,); degree: of the model's energy."""
        raise NotImplementedError(f"{type(self).__name__} has no method of, which gives log R/q and E_R[φ].")


class PowerReference(Reference):
    """The paper's reference R ∝ exp(−ν|y|^{s+δ}), s the degree; uniform on circles, intervals and a few values.

    Each variable has a problem of its own, without integrals, and `consensus` combines their answers. It has no ridge.

    Parameters
    ----------
    nu : float, sequence of float or "auto", default="auto"
        ν, also for each column, in units of y = (x − location)/scale, so of x with ``scale=None``. "auto" takes the
        largest of a grid whose estimated variance is at most twice the smallest, variable by variable: below, the
        weights of few rows decide, and intervals are too short.
    delta : float, default=2.0
        δ: how much faster R falls than the model may.
    link : {"log", "plain"}, default="log"
        Whether the logarithm of the mean is minimised, or the mean itself. Without an L1 penalty both have the same
        minimiser, and the logarithm is solved.
    origin : float or sequence of float, optional
        R ∝ exp(−ν|y − origin|^{s+δ}), also for each column, on the line. By default 0; with "auto" ν, and a scale that
        moves columns, 0 or the middle of the 2.5 and 97.5 % quantiles, whichever has the smaller variance.

    Examples
    --------
    >>> from isodus import PowerReference
    >>> PowerReference(nu=2.0)
    PowerReference(nu=2.0)
    """

    def __init__(
        self,
        nu: float | Sequence[float] | Literal["auto"] = "auto",
        delta: float = 2.0,
        link: Literal["log", "plain"] = "log",
        origin: float | Sequence[float] | None = None,
    ) -> None:
        self.nu = nu
        self.delta = delta
        self.link = link
        self.origin = origin

    def check(self, names: Sequence[str]) -> None:
        """An error for values that mean nothing."""
        finite_number(self.delta, "delta of PowerReference", above=0.0)
        one_of(self.link, ("log", "plain"), "link of PowerReference")
        if not (isinstance(self.nu, str) and self.nu == "auto"):
            self.nus(len(names))
        self.origins(len(names))

    def check_axis(self, axis: Axis, degree: int) -> None:
        """An error where there is no integral."""
        axis.power_reference(1.0, 4.0)
        if degree % 2 and axis.powers is not None and np.all(np.isinf(axis.ends)):
            raise ValueError(
                f"its highest power is {degree}, which is odd, so that its energy has no lower bound. "
                "Use an even degree, or TiltedReference"
            )

    def of(self, node: int, axis: Axis, degree: int) -> tuple[Callable[[Array], Array], Array]:
        """That of the axis, with the ν and the origin of the node."""
        return axis.power_reference(_at(self.nu, node), degree + self.delta, _at(self.origin or 0.0, node))

    def nus(self, p: int) -> tuple[float, ...]:
        """ν of each of p variables."""
        return _for_each(self.nu, p, "nu", above=0.0)

    def origins(self, p: int) -> tuple[float, ...] | None:
        """The origin of each of p variables, where it is given."""
        return None if self.origin is None else _for_each(self.origin, p, "origin")


def _for_each(value: Any, p: int, what: str, **bounds: float) -> tuple[float, ...]:
    """A number for each of p variables."""
    values = [value] * p if np.ndim(value) == 0 else list(value)
    if len(values) != p:
        raise ValueError(f"{what} of PowerReference has {len(values)} values for {p} columns. Give one number or {p}.")
    return tuple(finite_number(value, f"{what} of PowerReference", **bounds) for value in values)


def _at(value: Any, node: int) -> float:
    """The number of one variable."""
    return value if np.ndim(value) == 0 else value[node]
