from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from cases import BASES, NAMESPACES, parameters_of, samples_of, screening

from isodus.arrays import to_host
from isodus.dependence import Dependence
from isodus.objective import Objective
from isodus.samples import ArraySamples, check_variation, generator, part_of, standardisation


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
        objective.block_rows = lambda locals_, hessian=False: 17  # more blocks than tasks
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


def parts(X, weight=None, many=5):
    """The rows of each part that is left out, in order."""
    samples = ArraySamples(X, weight, np.zeros(X.shape[1]), np.ones(X.shape[1]))
    out = []
    for train, rest in samples.folds(many):
        assert train.n_rows + rest.n_rows == len(X)
        out.append(sorted(map(tuple, to_host(rest.X).tolist())))
    return out


@pytest.mark.parametrize("values", [None, 2, 4])
def test_folds_go_by_what_rows_are_not_by_where(values):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((603, 3)) if values is None else rng.integers(0, values, (603, 3), endpoint=False) - 0.7
    found = parts(X)
    assert sorted(map(len, found)) == [120, 120, 121, 121, 121]
    assert found == parts(rng.permutation(X))
    assert [[row[::-1] for row in part] for part in map(sorted, parts(X[:, ::-1].copy()))] == [
        sorted(part, key=lambda row: row[::-1]) for part in found
    ]


def test_rows_that_repeat_as_wholes_are_in_one_fold():
    rng = np.random.default_rng(4)
    X, counts = rng.standard_normal((400, 2)), rng.integers(1, 5, 400)
    repeated = parts(np.repeat(X, counts, axis=0))
    assert [sorted(set(part)) for part in repeated] == parts(X, counts.astype(float))
    rounded = parts(rng.integers(0, 12, (2000, 2)).astype(float))
    assert sum(len(set(a) & set(b)) for a, b in pairwise(rounded)) > 300


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_units_are_middle_and_length_of_the_central_range_and_weights_repeat(namespace):
    rng = np.random.default_rng(0)
    X = rng.normal([3.0, -1.0], [2.0, 0.1], (20001, 2))
    convert = NAMESPACES[namespace]
    location, scale = standardisation(convert(X), None, ["a", "b"], rng)
    low, high = np.quantile(X, [0.025, 0.975], axis=0, method="inverted_cdf")
    assert np.allclose(location, (low + high) / 2, rtol=1e-12)
    assert np.allclose(scale, (high - low) / 3.92, rtol=1e-12)
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


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("weighted", [False, True])
def test_some_of_the_rows_keep_weights_and_units(namespace, weighted):
    convert = NAMESPACES[namespace]
    X = np.random.default_rng(0).standard_normal((100, 2))
    weight = np.arange(100.0) if weighted else None
    units = np.array([1.0, -1.0]), np.array([2.0, 0.5])
    samples = ArraySamples(convert(X), None if weight is None else convert(weight), *units).in_single()
    part = samples.take(np.array([7, 3, 3, 99]))
    assert np.array_equal(to_host(part.X), X[[7, 3, 3, 99]])
    assert part.weight is None if weight is None else np.array_equal(to_host(part.weight), [7, 3, 3, 99])
    assert part.single
    assert np.array_equal([part.location, part.scale], units)


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [90, 5000])
def test_steadied_samples_have_two_more_on_the_rays_from_the_mean(namespace, weighted, n):
    convert, rng = NAMESPACES[namespace], np.random.default_rng(0)
    X = rng.normal([3.0, -1.0], [2.0, 0.1], (n, 2))
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    samples = ArraySamples(convert(X), convert(weight) if weighted else None, np.zeros(2), np.ones(2))
    more = samples.steadied(np.random.default_rng(1))
    Y, counts = to_host(more.X), to_host(more.weight)
    assert np.array_equal(Y[:n], X)
    assert np.array_equal(counts[:n], weight)
    assert counts.sum() == pytest.approx(weight.sum() + 2, rel=1e-12)
    some = samples if n <= 2000 else samples.subsample(2000, np.random.default_rng(1))
    rows = to_host(some.X)
    assert len(Y) == n + len(rows)
    mean = np.average(rows, axis=0, weights=to_host(some.weight) if weighted else None)
    assert np.allclose(
        counts[n:] * (weight.sum() if n <= 2000 else to_host(some.weight).sum() if weighted else 2000),
        2 * (to_host(some.weight) if weighted else np.ones(len(rows))),
    )
    factors = ((Y[n:] - mean) * (rows - mean)).sum(axis=1) / np.square(rows - mean).sum(axis=1)
    assert np.allclose(Y[n:] - mean, factors[:, None] * (rows - mean), rtol=1e-9, atol=1e-12)
    values, times = np.unique(factors.round(9), return_counts=True)
    assert values.tolist() == [1.25, 1.5, 2.0]
    assert times.min() >= len(rows) // 3


def test_part_of_few_samples_is_all_and_of_many_some_spread_over_them():
    samples = lambda n: ArraySamples(np.arange(float(n))[:, None], None, np.zeros(1), np.ones(1))
    few = samples(2 * 8192)
    assert part_of(few, 10) is few
    some = part_of(samples(20_000), 10)
    assert some.n_rows == 8192
    assert np.all(np.diff(some.X[:, 0]) >= 0)
    assert np.abs(some.X[:, 0] - np.linspace(0, 20_000, 8192)).max() < 4
    assert part_of(samples(50_000), 1000).n_rows == 50_000  # thirty to a parameter would be more than half
    assert part_of(samples(50_000), 500).n_rows == 15_000
    assert np.array_equal(part_of(samples(20_000), 10).X, some.X)
    assert not np.array_equal(part_of(samples(20_000), 10, random_state=1).X, some.X)


def test_generators_come_from_seeds_of_scikit_learn():
    draw = lambda seed: generator(seed).random(3).tolist()
    assert draw(None) == draw(None)
    assert draw(7) == draw(7) != draw(8)
    assert draw(np.random.RandomState(7)) == draw(7)
    state = np.random.RandomState(7)
    assert draw(state) != draw(state)  # it goes on
    with pytest.raises(ValueError, match="seed"):
        generator("seven")


def test_folds_keep_groups_and_stretches_whole():
    X = np.random.default_rng(0).standard_normal((300, 2))
    samples = ArraySamples(X, None, np.zeros(2), np.ones(2))
    groups = np.random.default_rng(1).integers(0, 40, 300)
    seen = 0
    for train, rest in samples.folds(3, groups):
        parted = [np.isin(X[:, 0], np.asarray(part.X)[:, 0]) for part in (train, rest)]
        assert not set(groups[parted[0]]) & set(groups[parted[1]])
        assert 60 < parted[1].sum() < 140
        seen += parted[1].sum()
    assert seen == 300
    series = Dependence(lags=4).together(300, 3)
    for _, rest in samples.folds(3, series):
        at = np.flatnonzero(np.isin(X[:, 0], np.asarray(rest.X)[:, 0]))
        assert len(at) == 100
        assert np.all(np.diff(at) == 1)
