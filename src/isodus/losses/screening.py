"""Interaction screening: the paper's ISODUS objective, pointwise in (a, x)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from .. import univariate
from ..arrays import Array, contract, empty, namespace, on_device
from ..references import absolute_power, bounded, fall, moments, power_moments, shared_integer, tilted_moments
from ..spaces import Space, Spaces, powers
from . import Pointwise

__all__ = ["Screening", "Tilted"]


@dataclass(frozen=True)
class Screening:
    """exp( Σ_l (a_l − a⁰_l)(x^l − m_l) − ν|x − centre|^{s+δ} ) for each node; paper, ISODUS estimator.

    nu, exponent, centre: (p,), exponent = s + δ. Without a pilot a⁰ = 0, and moments, (s, p), are the m_l of the
    regularizing density R(x) ∝ exp(−ν|x − centre|^{s+δ}), the paper's. A pilot, the local parameters of every
    node, tilts it: R(x | rest) ∝ exp(−Σ_l a⁰_l x^l − ν|x − centre|^{s+δ}), with m_l its moments at every sample.
    The objective's slope has mean zero at the true parameters for any pilot. `link` says what is minimised, the
    average ("plain") or its logarithm ("log"); both have the same minimiser.

    On a half line R is the same from its end on, on an interval or a circle it is uniform, and so it is among a few
    values: ν = 0. The screening objective of discrete variables (RISE, and logRISE) is this.
    """

    nu: np.ndarray
    exponent: np.ndarray
    centre: np.ndarray
    moments: np.ndarray
    link: Literal["log", "plain"]
    pilot: Sequence[np.ndarray] | None = None
    known: int = 0

    @classmethod
    def of_degree(
        cls,
        s: int,
        nu: np.ndarray,
        delta: np.ndarray,
        centre: np.ndarray,
        link: Literal["log", "plain"],
        spaces: Spaces | None = None,
    ) -> Screening:
        """The loss for energies of degree s; nu, delta and centre have shape (p,)."""
        exponent = s + delta
        if spaces is None:
            return cls(nu, exponent, centre, power_moments(nu, exponent, centre, s), link)
        low = np.array([space.support.low for space in spaces])
        nu, centre = np.where(bounded(spaces), 0.0, nu), np.where(np.isfinite(low), low, centre)
        each = zip(spaces, nu, exponent, centre, strict=True)
        return cls(nu, exponent, centre, np.stack([moments(*one, s) for one in each], axis=1), link)

    def at(self, nodes: np.ndarray, like: Array, hessian: bool, spaces: Spaces | None) -> Callable[..., Pointwise]:
        """The pointwise loss of some nodes, its constants on the device of `like`."""
        if spaces is not None:
            tails = [(spaces[i], float(self.nu[i]), float(self.exponent[i]), float(self.centre[i])) for i in nodes]
            return partial(_in_spaces, tails, on_device(self.moments[:, nodes, None], like))
        if self.pilot is not None:
            return partial(_tilted, self.nu[nodes], self.exponent[nodes], self.centre[nodes])
        e = shared_integer(self.exponent)
        return partial(
            _pointwise,
            on_device(self.moments[:, nodes, None], like),
            on_device(-self.nu[nodes, None], like),
            on_device(self.exponent[nodes, None], like) if e is None else e,
            on_device(self.centre[nodes, None], like) if np.any(self.centre) else None,
        )


def _pointwise(m: Array, minus_nu: Array, exponent: int | Array, centre: Array | None, a: Array, x: Array) -> Pointwise:
    """Value w, ∂ℓ/∂a_l = w u_l and ∂²ℓ/∂a_l∂a_k = w u_l u_k with u_l = x^l − m_l; all times e^−shift.

    w = exp( Σ_l a_l u_l − ν|x − centre|^{s+δ} ); a: (s, q, n); x: (q, n). The one factor is
    √w u, and √w the coordinate along it.
    """
    s = a.shape[0]
    u = powers(x, s)
    if centre is None and isinstance(exponent, int) and exponent % 2 == 0 and s < exponent <= 2 * s:
        log_w = u[s - 1, ...] * u[exponent - s - 1, ...]
    else:
        log_w = absolute_power(x if centre is None else x - centre, exponent)
    log_w *= minus_nu
    if centre is None:  # odd moments are zero
        u[1::2, ...] -= m[1::2, ...]
    else:
        u -= m
    log_w += contract(a, u)
    return _weighted(log_w, u)


def _in_spaces(
    tails: list[tuple[Space, float, float, float]], m: Array, a: Array, x: Array, pilot: Array | None = None
) -> Pointwise:
    """As `_pointwise`, or with a pilot as `_tilted`, of nodes with any functions on any support."""
    xp, s = namespace(x), a.shape[0]
    u, log_w = empty((s, *x.shape), x), xp.zeros_like(x)
    shifted = a if pilot is None else a + 0.0
    for j, (space, nu, exponent, centre) in enumerate(tails):
        u[:, j, :] = space.features(x[j, :], s)
        if pilot is None:
            u[:, j, :] -= m[:, j, :]
        else:
            own = pilot[:, j, :]
            if not space.support.bounded and space.functions is None:
                own = xp.concat([own[: s - 1, :], xp.maximum(own[s - 1 :, :], 0.0 * own[s - 1 :, :])])
            u[:, j, :] -= tilted_moments(space, own, nu, exponent, centre)
            shifted[:, j, :] -= own
        log_w[j, :] -= fall(space, x[j, :], nu, exponent, centre, tilted=pilot is not None)
    log_w += contract(shifted, u)
    return _weighted(log_w, u)


def _tilted(nu: np.ndarray, exponent: np.ndarray, centre: np.ndarray, a: Array, x: Array, pilot: Array) -> Pointwise:
    """As `_pointwise`, with a − a⁰ in the place of a, and the m_l of a tilted R at every sample.

    Where a⁰_s is negative it counts as zero: R exists then, and a⁰ may be any function of the rest.
    """
    xp = namespace(x)
    s = a.shape[0]
    pilot = xp.concat([pilot[: s - 1, ...], xp.maximum(pilot[s - 1 :, ...], 0.0 * pilot[s - 1 :, ...])])
    u = powers(x, s)
    log_w = 0.0 * x
    for j in range(x.shape[0]):
        options: dict[str, Any] = (
            dict(nu=float(nu[j]), power=float(exponent[j]), centre=float(centre[j])) if nu[j] > 0 else {}
        )
        u[:, j, :] -= univariate.integrate(pilot[:, j, :], moments=s, **options).moments
        log_w[j, :] -= float(nu[j]) * absolute_power(x[j, :] - float(centre[j]), float(exponent[j]))
    log_w += contract(a - pilot, u)
    return _weighted(log_w, u)


@dataclass(frozen=True)
class Tilted:
    """exp( Σ_l (a_l − a⁰_l) u_l ) with u_l = x^l − m_l: `Screening` with a pilot and ν → 0, its integrals done before.

    What samples carry: u_1 … u_s and Σ_l a⁰_l u_l of every variable.
    """

    known: int
    link: str = "log"
    pilot: None = None

    def at(
        self, nodes: np.ndarray, like: Array, hessian: bool, spaces: Spaces | None
    ) -> Callable[[Array, Array], Pointwise]:
        """The pointwise loss, a function of a, (s, q, n), and what is known, (s + 1, q, n); the same for all nodes."""
        return _of_known


def _of_known(a: Array, known: Array) -> Pointwise:
    s = a.shape[0]
    u = known[:s, ...] + 0.0  # a copy
    return _weighted(contract(a, u) - known[s, ...], u)


def _weighted(log_w: Array, u: Array) -> Pointwise:
    """The loss of weights w with the slopes u, both times e^−shift; what is given is overwritten."""
    xp = namespace(u)
    shift = xp.max(log_w, axis=1)
    # where every weight vanishes or one overflows there is no finite shift: let the value show it
    shift = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
    log_w -= shift[:, None]
    w = xp.exp(log_w)
    root = xp.sqrt(w)
    u *= root
    return Pointwise(shift, w, [(root, u)])
