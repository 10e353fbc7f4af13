"""Interaction screening with a uniform reference on an interval: a loss as a user would write it."""

import numpy as np

from isodus.axes import packed_pairs
from isodus.losses import Pointwise


class UniformScreening:
    """log⟨exp Σ_l a_l (φ_l − m_l)⟩ with m_l = E[φ_l] under the uniform distribution of an `Interval`."""

    link = "log_mean"
    unclamped = False
    quadratic = False

    def prepare(self, rows):
        """φ − m."""
        axis, phi = rows.axis, rows.phi
        u, w = np.polynomial.legendre.leggauss(32)
        places = axis.location + axis.scale * (axis.low + (axis.high - axis.low) * (u + 1) / 2)
        return (phi - w @ axis.functions(places) / 2,)

    def at(self, axis, a, prepared, second):
        """The exponent, its slope φ − m, and the slope's products."""
        (away,) = prepared
        l, m = packed_pairs(a.shape[1])
        terms = a * away
        curvature = away[:, l] * away[:, m] if second else None
        return Pointwise(terms.sum(axis=1), away, curvature, np.zeros(len(a), bool), np.abs(terms).sum(axis=1))
