from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases import BASES, NAMESPACES, parameters_of, samples_of, screening

from isodus.arrays import to_host
from isodus.objective import Objective
from isodus.samples import ArraySamples, check_variation, standardisation


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_blocks_are_standardised_rows(namespace):
    X = np.random.default_rng(0).normal(5, 2, (50, 3))
    location, scale = np.array([5.0, 4.0, 0.0]), np.array([2.0, 1.0, 0.5])
    samples = ArraySamples(NAMESPACES[namespace](X), None, location, scale)
    Y, count = samples.block(10, 30)
    assert count is None
    assert np.allclose(to_host(Y), ((X[10:30] - location) / scale).T, rtol=1e-14)
    assert np.array_equal(to_host(samples.X), X)


def test_sums_are_the_same_to_the_bit_whatever_the_number_of_threads():
    basis = BASES["all four-body terms"]
    X, thetas = samples_of(basis, n=5000), parameters_of(basis)
    results = []
    for n_threads in (0, 1, 3):
        pool = ThreadPoolExecutor(n_threads) if n_threads else None
        objective = Objective(basis, screening(basis), ArraySamples(X, None, np.zeros(4), np.ones(4), pool))
        objective.block_rows = lambda locals_: 17  # more blocks than tasks
        results.append(objective.evaluate(range(4), thetas))
        if pool:
            pool.shutdown()
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert a.value == b.value
            assert np.array_equal(a.gradient, b.gradient)
            assert np.array_equal(a.hessian, b.hessian)


def test_subsample_is_spread_over_the_rows_and_keeps_weights():
    X = np.arange(1000.0)[:, None]
    part = ArraySamples(X, 2 * X[:, 0], np.zeros(1), np.ones(1)).subsample(50, np.random.default_rng(0))
    rows = part.X[:, 0]
    assert np.array_equal(rows // 20, np.arange(50))  # one out of each stretch of twenty
    assert len(np.unique(rows % 20)) > 5  # without a period
    assert np.array_equal(part.weight, 2 * rows)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_units_are_median_and_central_range_and_weights_repeat(namespace):
    rng = np.random.default_rng(0)
    X = rng.normal([3.0, -1.0], [2.0, 0.1], (20001, 2))
    convert = NAMESPACES[namespace]
    location, scale = standardisation(convert(X), None, ["a", "b"], rng)
    assert np.array_equal(location, np.median(X, axis=0))  # an odd number of rows
    assert np.allclose(scale, [2.0, 0.1], rtol=0.03)
    counts = rng.integers(0, 3, len(X))
    weighted = standardisation(convert(X), convert(counts.astype(float)), ["a", "b"], rng)
    repeated = standardisation(convert(np.repeat(X, counts, axis=0)), None, ["a", "b"], rng)
    assert np.array_equal(weighted, repeated)


def test_units_of_odd_columns():
    rng = np.random.default_rng(0)
    mostly_equal = np.where(np.arange(100) < 98, 1.0, rng.normal(size=100))
    outlier = rng.normal(size=100)
    outlier[3] = 1e6
    _, scale = standardisation(np.stack([mostly_equal, outlier], axis=1), None, ["a", "b"], rng)
    assert scale[0] > 0
    assert 0.5 < scale[1] < 2
    with pytest.raises(ValueError, match="without variation: b"):
        check_variation(np.stack([outlier, np.ones(100)], axis=1), ["a", "b"])
