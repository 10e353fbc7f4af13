"""Densities whose valleys are almost too narrow for the nodes."""

import numpy as np
import pytest
from given_models import energy, on_whole_lines

from isodus.sampling import NoDensity, log_partition, sample


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


def test_a_deep_valley_behind_a_barrier_is_found():
    """E = 5x² + 5y² − x²y + .011 (x⁴ + y⁴) has its mass near (±28, 24), behind hills; log Z by a grid around it."""
    theta = {(0, 0): 5.0, (1, 1): 5.0, (0, 0, 1): -1.0, (0,) * 4: 0.011, (1,) * 4: 0.011}
    found = log_partition(*on_whole_lines(theta), np.random.default_rng(0))
    x, y = np.linspace(20, 36, 1201), np.linspace(16, 32, 1201)
    E = energy(theta, x[:, None], y[None])
    grid = np.log(np.exp(E.min() - E).sum() * (x[1] - x[0]) * (y[1] - y[0])) - E.min() + np.log(2)
    assert found.value == pytest.approx(grid, abs=1e-6)
    X = sample(*on_whole_lines(theta), 400, np.random.default_rng(1)).X
    assert np.all(np.abs(np.abs(X[:, 0]) - 28) < 4)
    assert abs(np.mean(X[:, 0] > 0) - 0.5) < 4 * 0.5 / 20


def test_windows_that_few_nodes_placed_wrongly_are_widened():
    """∫ exp(−x²y² − x² − ey²) dy = √(π / (x² + e)) exp(−x²): its logarithm is integrable, however small e."""
    for e in (1e-2, 1e-3):
        found = log_partition(*on_whole_lines({(0, 0, 1, 1): 1.0, (0, 0): 1.0, (1, 1): e}), np.random.default_rng(0))
        u = np.linspace(-20, 20, 200_001)
        x = np.sinh(u) * np.sqrt(e)
        expected = np.sum(np.exp(-x * x) * np.sqrt(np.pi)) * (u[1] - u[0])
        assert abs(found.value - np.log(expected)) < max(4 * found.stderr, 1e-6)


@pytest.mark.parametrize(
    "theta", [{(0, 0): 1.0, (0, 1): -2.0, (1, 1): 1.0}, {(0, 0): 1e-9, (0, 1): -2e-9, (1, 1): 1e-9}]
)
def test_a_singular_precision_is_no_density(theta):
    with pytest.raises(NoDensity, match="not positive definite"):
        sample(*on_whole_lines(theta), 10, np.random.default_rng(0))
