"""log Z by annealed importance sampling, on models whose log Z is known."""

import itertools
from math import comb

import numpy as np
import pytest
from given_models import SEPARATED, WELLS, chain, on_axes, on_whole_lines

from isodus.axes import Values
from isodus.sampling import log_partition
from isodus.sampling.graph import components
from isodus.sampling.partition import annealed
from isodus.sampling.windows import on_windows

SPIN = Values.fit(np.array([-1.0, 1.0]), 1, values=[-1.0, 1.0])


@pytest.mark.parametrize("theta", [WELLS, SEPARATED, chain(8), chain(12, 0.05)])
def test_estimates_agree_with_exact_values(theta):
    terms, values = on_whole_lines(theta)
    exact = log_partition(terms, values, np.random.default_rng(0))
    assert exact.method == "exact"
    rng = np.random.default_rng(1)
    part = on_windows(components(terms, values)[0], rng, None)
    found = np.array([annealed(part, child, None, 256) for child in rng.spawn(6)])
    error = (found[:, 0] - exact.value) / found[:, 1]
    assert np.all(found[:, 1] < 0.06)
    assert np.abs(error).max() < 4
    assert 0.3 < np.sqrt(np.mean(error**2)) < 2  # the stated error is meant


def test_many_coupled_spins_are_estimated():
    # all pairs of 30 spins: by enumeration of their sum, as all couplings are equal
    p, coupling, field = 30, -0.02, 0.1
    theta = {(i,): field for i in range(p)} | dict.fromkeys(itertools.combinations(range(p), 2), coupling)
    terms, values = on_axes([SPIN] * p, theta)
    up = np.arange(p + 1)
    total = 2 * up - p
    log_count = np.array([np.log(comb(p, int(k))) for k in up])
    exponent = log_count - field * total - coupling * (total**2 - p) / 2
    log_Z = exponent.max() + np.log(np.exp(exponent - exponent.max()).sum())
    found = log_partition(terms, values, np.random.default_rng(0), n_draws=200)
    assert found.method == "annealed"
    assert 0 < found.stderr < 0.06
    assert abs(found.value - log_Z) < 4 * found.stderr


def test_a_mode_that_chains_miss_is_part_of_the_error():
    # 14 spins whose sum is either near 0 or ±14: own terms and small couplings know of the first alone
    p, coupling = 14, -0.55
    theta = {(i,): 0.0 for i in range(p)} | dict.fromkeys(itertools.combinations(range(p), 2), coupling)
    theta |= {(i,): 2.2 for i in range(p)}
    terms, values = on_axes([SPIN] * p, theta)
    total = 2 * np.arange(p + 1) - p
    exponent = np.array([np.log(comb(p, k)) for k in range(p + 1)]) - 2.2 * total - coupling * (total**2 - p) / 2
    log_Z = exponent.max() + np.log(np.exp(exponent - exponent.max()).sum())
    part = components(terms, values)[0]
    for seed, start in ((0, None), (1, np.ones((1, p)))):
        value, error = annealed(part, np.random.default_rng(seed), start, 64)
        assert abs(value - log_Z) < 4 * error


def test_parts_add_up():
    first = log_partition(*on_whole_lines(WELLS), np.random.default_rng(0)).value
    both = WELLS | {tuple(i + 2 for i in key): value for key, value in WELLS.items()} | {(4, 4): 0.5}
    found = log_partition(*on_whole_lines(both), np.random.default_rng(0))
    assert found.value == pytest.approx(2 * first + 0.5 * np.log(2 * np.pi), abs=1e-9)
