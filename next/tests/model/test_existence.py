"""Known cases of integrable and other polynomials, and curves along which an energy falls."""

import numpy as np
import pytest

from isodus import PolynomialModel, PseudoLikelihood, datasets
from isodus.axes import Circle

x, y, z = "x", "y", "z"

INTEGRABLE = {
    "gaussian": {x + x: 1.0, y + y: 1.0, x + y: 1.9},
    "independent": {x * 2: 0.5, y * 6: 0.1, y * 3: 5.0},
    "lower terms do not matter": {x * 4: 0.01, x * 3: 50.0, x * 2: -90.0, x: 7.0},
    "mixed degrees": {x * 4: 1.0, y * 2: 1.0, x * 2 + y: 1.9},  # (x² + .95 y)² + …
    "even mixed terms help": {x * 2: 1.0, y * 2: 1.0, (x + y) * 2: 3.0, x + y: -0.5},
    "outweighed": {x * 4: 1.0, y * 4: 1.0, x * 3 + y: 0.5, x + y * 3: -0.4},
    "outweighed in other units": {x * 4: 1e-4, y * 4: 1e4, x * 2 + y * 2: -1.9},
    "a sum of squares": {x * 4: 1.0, y * 4: 1.0, x * 3 + y: -1.2, (x + y) * 2: 1.2, x + y * 3: -1.2},
    "four to the fourth": {x * 4: 1.0, y * 4: 1.0, z * 4: 1.0, x * 2 + y + z: 1.0, x + y + z * 2: -1.0},
    "the paper's pair": {"".join("xy"[i] for i in key): v for key, v in datasets.paper_pair_theta(1).items()},
    "a triple product below the pure powers": {x * 4: 0.1, y * 4: 0.1, z * 4: 0.1, x + y + z: 90.0},
}
NOT = {
    "a saddle": {x * 2: 1.0, y * 2: 1.0, x + y: 2.1},
    "flat along a diagonal": {x * 4: 1.0, y * 4: 1.0, x * 3 + y: -4.0, x + y * 3: -4.0, (x + y) * 2: 6.0},
    "flat in one variable": {x * 2: 1.0, y: 0.0},
    "odd": {x * 3: 1.0, x * 2: 1.0},
    "negative": {x * 4: -0.01, x * 2: 5.0},
    "one of two components": {x * 2: 1.0, y * 4: -1.0},
    "a negative mixed term": {x * 4: 1.0, y * 4: 1.0, (x + y) * 2: -2.1},
    "a mixed term above the pure powers": {x * 2: 1.0, y * 2: 1.0, x * 2 + y: 0.1},
    "a product of three above squares": {x * 2: 1.0, y * 2: 1.0, z * 2: 1.0, x + y + z: 0.01},
    "mixed degrees, too strong": {x * 4: 1.0, y * 2: 1.0, x * 2 + y: 2.1},
    "a pair of variables among three": {x * 4: 1.0, y * 4: 1.0, z * 6: 1.0, x * 3 + y: 5.0, z * 2 + x: 1.0},
    "no pure powers": {x + y: 1.0},
}
UNKNOWN = {
    "a square that vanishes on curves": {x * 4: 1.0, y * 4: 1.0, (x + y) * 2: -2.0, x * 2: 0.1, y * 2: 0.3},
    "no pure power, and not negative": {(x + y) * 2: 1.0, y * 2: 1.0},
}


def made(theta):
    return PolynomialModel.from_dict({tuple(key): value for key, value in theta.items()})


@pytest.mark.parametrize("name", INTEGRABLE)
def test_integrable(name):
    found = made(INTEGRABLE[name]).integrability()
    assert (found.verdict, found.direction) == ("integrable", {})


@pytest.mark.parametrize("name", NOT)
def test_not_integrable(name):
    """And the energy does not grow along the curve x_i = t^{1/d_i} u_i that is reported."""
    model = made(NOT[name])
    found = model.integrability()
    assert found.verdict == "not integrable"
    assert found.direction
    theta = model.to_dict()
    u = np.array([found.direction.get(name, 0.0) for name in model.names])
    pure = np.array([max((len(k) for k, v in theta.items() if set(k) == {i} and v), default=2) for i in range(len(u))])
    lowest = np.inf
    for d in (pure, np.full(len(u), 2)):  # without pure powers, the curve is a ray
        along = np.array([1e8, 1e10])[:, None] ** (1 / d) * u
        energy = [sum(v * np.prod(row[list(k)]) for k, v in theta.items()) for row in along]
        lowest = min(lowest, energy[1] - energy[0])
    assert lowest <= 1e-9 * np.abs(energy[1])


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(name):
    found = made(UNKNOWN[name]).integrability()
    assert found.verdict == "unknown"
    assert found.reason.endswith(".")


def test_the_paper_models_are_integrable():
    for theta in (datasets.paper_1d_theta(), datasets.paper_4d_theta(), datasets.many_body_theta()):
        assert PolynomialModel.from_dict(theta).integrability().verdict == "integrable"


def test_many_variables():
    """A lattice by bounds, block by block, and a chain of a thousand sites."""
    assert PolynomialModel.from_dict(datasets.phi4_theta((6, 6))).integrability().verdict == "integrable"
    chain = {(i, i): -1.0 for i in range(1000)} | {(i,) * 4: 1.0 for i in range(1000)}
    chain |= {(i, i + 1): -1.0 for i in range(999)}
    assert PolynomialModel.from_dict(chain).integrability().verdict == "integrable"
    gaussian = {(i, i): 1.01 for i in range(200)} | {(i, i + 1): -1.0 for i in range(199)}
    assert PolynomialModel.from_dict(gaussian).integrability().verdict == "integrable"


def test_an_axis_without_powers_has_no_polynomial():
    model = PolynomialModel.from_dict({("a",): 1.0}, axes=[Circle(2)])
    assert model.integrability().verdict == "unknown"
    assert "'a' are no powers of x" in model.integrability().reason


def test_a_disproof_comes_with_its_standard_error():
    """Gaussian data at degree 4: θ of a fourth power is zero up to its error, which the reason says."""
    seeds = (np.random.default_rng(seed) for seed in range(20))
    verdicts = [PseudoLikelihood(4).fit(rng.standard_normal((300, 1))).model_.integrability() for rng in seeds]
    against = [verdict for verdict in verdicts if verdict.verdict == "not integrable"]
    assert len(against) > 3
    for verdict in against:
        assert "with a standard error of" in verdict.reason
        assert verdict.direction == {"x0": 1.0}
    assert sum("not distinguishable from zero. Lower the degree" in v.reason for v in against) >= len(against) - 1
