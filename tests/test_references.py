import numpy as np
import pytest
from cases import NAMESPACES
from scipy.integrate import quad

from isodus.arrays import to_host
from isodus.references import absolute_power, power_moments


@pytest.mark.parametrize("nu", [1e-3, 0.1, 2.0, 50.0])
@pytest.mark.parametrize("delta", [0.01, 0.7, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("centre", [0.0, -1.3])
@pytest.mark.parametrize("s", [2, 4, 6])
def test_centering_constants_against_quadrature(nu, delta, centre, s):
    e = s + delta
    width = (40 / nu) ** (1 / e)

    def integral(l):
        f = lambda x: x**l * np.exp(-nu * abs(x - centre) ** e)
        halves = (
            quad(f, centre - width, centre, epsabs=0, epsrel=1e-12),
            quad(f, centre, centre + width, epsabs=0, epsrel=1e-12),
        )
        return sum(value for value, _ in halves), sum(abs(value) for value, _ in halves)

    z, _ = integral(0)
    m = power_moments(np.array([nu]), np.array([e]), np.array([centre]), s)[:, 0]
    for l in range(1, s + 1):
        value, size = integral(l)
        assert abs(m[l - 1] - value / z) <= 1e-9 * size / z


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("exponent", [2, 3, 4, 5, 6, 7, 8, 11])
def test_integer_powers_by_products(exponent, namespace):
    x = np.array([[-2.5, -1e-3, 0.0, 0.3, 1.7]])
    y = absolute_power(NAMESPACES[namespace](x), exponent)
    assert np.allclose(to_host(y), np.abs(x) ** exponent, rtol=1e-14, atol=0)
