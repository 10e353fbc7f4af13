import numpy as np
import pytest

from isodus.data import as_samples, column_facts
from isodus.data.samples import KEPT_ROWS, hashes

X = np.random.default_rng(0).normal(size=(5000, 3))


def test_weights_count_rows_and_zero_drops_them():
    weight = np.random.default_rng(1).integers(0, 4, 5000)
    samples = as_samples(X, weight)
    assert samples.n == weight.sum()
    assert samples.n_rows == np.count_nonzero(weight)
    repeated = as_samples(np.repeat(X, weight, axis=0))
    for f in (lambda b: b.weight @ b.X, lambda b: b.weight.sum()):
        np.testing.assert_allclose(samples.sum(f), repeated.sum(f))
    np.testing.assert_array_equal(samples.minima, X[weight > 0].min(axis=0))
    np.testing.assert_array_equal(samples.maxima, X[weight > 0].max(axis=0))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(4), r"shape \(4,\), but X has 3 rows"),
        (np.ones((3, 1)), "shape"),
        ([1.0, np.nan, 1.0], "NaN or infinite .* in row 1"),
        ([1.0, 1.0, np.inf], "NaN or infinite .* in row 2"),
        ([1.0, -1.0, 1.0], "negative in row 1"),
        ([0.0, 0.0, 0.0], "zero in all rows"),
        (["1", "2", "3"], "sample_weight holds strings"),
        (np.ma.masked_equal([1.0, 2.0, 3.0], 2.0), "NaN or infinite .* in row 1"),
    ],
)
def test_weights_that_are_errors(weight, message):
    with pytest.raises(ValueError, match=message):
        as_samples(X[:3], weight)


def test_blocks_are_all_rows_in_order():
    samples = as_samples(X, np.arange(1, 5001), block=700)
    blocks = list(samples.blocks())
    assert [block.number for block in blocks] == list(range(8))
    assert [block.start for block in blocks] == list(range(0, 5000, 700))
    np.testing.assert_array_equal(np.vstack([block.X for block in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([block.weight for block in blocks]), np.arange(1, 5001))
    assert all(column.flags.c_contiguous for block in blocks for column in block.X.T)


def test_sums_do_not_depend_on_threads():
    samples = as_samples(X * 10.0 ** np.arange(-3, 6, 3), block=64)
    sums = [samples.sum(lambda b: np.exp(b.X * 1e-5).T @ b.X, n_jobs) for n_jobs in (1, 2, 3)]
    assert sums[0].tobytes() == sums[1].tobytes() == sums[2].tobytes()
    with pytest.raises(ZeroDivisionError):
        samples.sum(lambda b: 1 // 0, 2)


def test_rows_that_are_taken():
    samples = as_samples(X, np.arange(1, 5001), names=("a", "b", "c"), salt=3, block=100)
    mask = X[:, 0] > 0
    for rows in (mask, np.flatnonzero(mask)):
        part = samples.take(rows)
        np.testing.assert_array_equal(part.X, X[mask])
        np.testing.assert_array_equal(part.weight, np.arange(1, 5001)[mask])
        assert (part.names, part.salt, part.block) == (("a", "b", "c"), 3, 100)
        assert part.X.flags.f_contiguous
    np.testing.assert_array_equal(samples.take(np.array([7, 3])).X, X[[7, 3]])


def test_few_rows_are_all_kept():
    samples = as_samples(X, np.arange(1, 5001), salt=1)
    assert samples.kept.X is samples.X
    assert samples.kept.weight is samples.weight
    assert len(samples.kept.columns) == 3


def test_of_many_rows_some_are_kept_by_number_and_salt():
    n = KEPT_ROWS + 40_000
    rows = np.arange(n, dtype=float)[:, None]
    kept = {salt: as_samples(rows, np.arange(1, n + 1), salt=salt).kept for salt in (0, 1)}
    for X_kept, weight in kept.values():
        assert X_kept.shape == (KEPT_ROWS, 1)
        assert np.all(np.diff(X_kept[:, 0]) > 0)  # in their order, none twice
        np.testing.assert_array_equal(weight, X_kept[:, 0] + 1)
        share = KEPT_ROWS / n
        for part in np.array_split(np.arange(n), 10):  # evenly from everywhere
            found = np.isin(part, X_kept[:, 0]).mean()
            assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / len(part))
    both = np.intersect1d(kept[0].X, kept[1].X).size / n
    assert abs(both - share**2) < 0.005  # as of two independent choices
    again = as_samples(rows, salt=1).kept
    np.testing.assert_array_equal(again.X, kept[1].X)


def test_hashes_are_splitmix64():
    # the generator's published outputs for the seed 1234567 are the mixed sums of the seed and the golden gamma
    state, gamma = 1234567, 0x9E3779B97F4A7C15
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    states = np.array([(state + k * gamma) % 2**64 for k in range(4)], dtype=np.uint64)
    from isodus.data.samples import _mix

    assert _mix(states).tolist() == published
    assert len(np.unique(hashes(np.arange(100_000, dtype=np.uint64), 5))) == 100_000


def test_what_columns_look_like():
    rng = np.random.default_rng(2)
    columns = {
        "constant": np.full(1000, 0.1),
        "nearly": 1e6 + 1e-10 * rng.random(1000),
        "spin": rng.choice([-1.0, 1.0], 1000),
        "pile": np.where(rng.random(1000) < 0.3, 0.25, rng.normal(size=1000)),
        "counts": rng.poisson(100, 1000),
    }
    weight = rng.integers(1, 4, 1000)
    samples = as_samples(np.column_stack(list(columns.values())), weight, names=list(columns))
    facts = {fact.name: fact for fact in column_facts(samples)}
    assert [fact.constant for fact in facts.values()] == [True, True, False, False, False]
    assert facts["constant"].values.tolist() == [0.1]
    assert facts["spin"].values.tolist() == [-1.0, 1.0]
    np.testing.assert_array_equal(facts["counts"].values, np.unique(columns["counts"]))
    np.testing.assert_array_equal(facts["pile"].values, np.unique(columns["pile"]))
    assert facts["pile"].mode == 0.25
    assert facts["pile"].share == weight[columns["pile"] == 0.25].sum() / weight.sum()
