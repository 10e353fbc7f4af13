"""A penalty as a user would write it: own terms are free, and terms of more variables are shrunk more."""

import numpy as np
from scipy.sparse import csr_array, diags_array

from isodus.fit.penalties import Penalty


class OrderRidge(Penalty):
    """½ Σ r_k θ_k², r_k = strength (order − 1) A_kk / n."""

    free = "own"

    def __init__(self, strength=1.0):
        self.strength = strength

    def matrix(self, terms, diagonal, n):
        """TᵀRT."""
        orders = np.array([len(factors) for factors in terms.products])
        return csr_array(terms.T.T @ (diags_array(self.strength * (orders - 1) * diagonal / n) @ terms.T))
