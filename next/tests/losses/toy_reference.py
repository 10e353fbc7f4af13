"""A reference as a user would write it: a normal density in units of the axis."""

import numpy as np

from isodus.losses import Reference

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


class NormalReference(Reference):
    """R(x) ∝ exp(−½ (x/(width unit))²) of each variable."""

    def __init__(self, width=0.7):
        self.width = width

    def of(self, node, axis, degree):
        """log R/q, and E_R[φ] by Gauss and Hermite's nodes."""
        sd = self.width * axis.unit
        mean = WEIGHTS @ axis.functions(sd * NODES) / WEIGHTS.sum()
        return lambda x: -0.5 * (x / sd) ** 2 - axis.log_base(x), mean
