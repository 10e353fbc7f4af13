"""Densities whose valleys are almost too narrow for the nodes."""

import numpy as np
import pytest
from given_models import on_whole_lines

from isodus.sampling import log_partition, sample


@pytest.mark.parametrize(
    ("theta", "log_Z"),
    [
        # ∫ exp(−x⁴ − y⁴ + 1.9999 x²y²), by polar coordinates: ¼ ∫ √(π / f(φ)) dφ with f the quartic on the circle
        ({(0,) * 4: 1.0, (1,) * 4: 1.0, (0, 0, 1, 1): -1.9999}, 2.472178),
        # x and y nearly equal: ∫ exp(−2u⁴) du √(π / 10⁴)
        ({(0,) * 4: 1.0, (1,) * 4: 1.0, (0, 0): 1e4, (1, 1): 1e4, (0, 1): -2e4}, -3.611217),
    ],
)
def test_narrow_valleys_are_summed_as_far_as_nodes_go(theta, log_Z):
    terms, values = on_whole_lines(theta)
    found = log_partition(terms, values, np.random.default_rng(0))
    assert found.method == "exact"
    assert found.value == pytest.approx(log_Z, abs=1e-4)
    X = sample(terms, values, 4000, np.random.default_rng(1)).X
    density = lambda x, y: np.exp(-sum(v * x ** key.count(0) * y ** key.count(1) for key, v in theta.items()))
    u = np.linspace(-30, 30, 6001) if log_Z > 0 else np.linspace(-3, 3, 6001)
    mass = np.array([np.trapezoid(density(x, u), u) for x in u])
    spread = np.sqrt(mass @ u**2 / mass.sum())
    fourth = mass @ u**4 / mass.sum()
    assert abs(np.mean(X[:, 0] ** 2) - spread**2) < 4 * np.sqrt((fourth - spread**4) / 4000)
