"""Samples that are not in memory: the same answers, whatever the blocks, and clear words where something is wrong."""

import gzip
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pandas as pd
import pytest

from isodus import ISODUS, PseudoLikelihood, ScoreMatching, bootstrap, open_samples
from isodus.blocks import uniform
from isodus.datasets import paper_pair, regular_gaussian
from isodus.streams import SampleStream

N = 60_000


@pytest.fixture(scope="module")
def pair():
    return np.array(paper_pair(1).sample(N, rng=0))


def cut(X, size):
    """A function that gives the rows in blocks of this size."""

    def blocks():
        for start in range(0, len(X), size):
            yield X[start : start + size]

    return blocks


ESTIMATORS = {
    "default": lambda **o: ISODUS(4, min_degree=2, **o),
    "paper": lambda **o: ISODUS(4, min_degree=2, nu=2.0, refine=0, **o),
    "pseudo-likelihood": lambda **o: PseudoLikelihood(4, min_degree=2, **o),
    "score matching": lambda **o: ScoreMatching(4, min_degree=2, **o),
    "series": lambda **o: ISODUS(4, min_degree=2, dependence=4, **o),
    "penalty": lambda **o: ISODUS(4, min_degree=2, l1=0.02, **o),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_how_rows_are_cut_into_blocks_does_not_matter(pair, name):
    make = ESTIMATORS[name]
    one = make().fit(open_samples(cut(pair, N))).model_
    for size, memory, jobs in ((7_919, "16MiB", 1), (20_000, None, 2)):
        other = make(n_jobs=jobs).fit(open_samples(cut(pair, size), memory=memory)).model_
        np.testing.assert_allclose(other.theta, one.theta, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(other.stderr(), one.stderr(), rtol=1e-8)


@pytest.mark.parametrize("name", ["default", "paper", "pseudo-likelihood", "score matching"])
def test_a_stream_gives_what_memory_gives(pair, name):
    """To a small part of a standard error: what curvatures are taken from is another part of the samples."""
    here = ESTIMATORS[name]().fit(pair)
    there = ESTIMATORS[name]().fit(open_samples(cut(pair, 9_000)))
    raw = np.abs(there.model_.to_frame()["theta"] - here.model_.to_frame()["theta"]) / here.model_.stderr()
    assert raw.max() < 0.1
    assert there.model_.n_samples == N
    assert there.score(open_samples(cut(pair, 9_000))) == pytest.approx(there.score(pair), rel=1e-10)


def test_few_rows_are_taken_into_memory(pair):
    X = pair[:5_000]
    one, other = ISODUS(4, min_degree=2).fit(X), ISODUS(4, min_degree=2).fit(open_samples(cut(X, 700)))
    np.testing.assert_array_equal(one.model_.theta, other.model_.theta)


def test_weights_are_counts_and_rows_without_weight_are_not_there(pair):
    count = np.random.default_rng(1).integers(0, 3, N)
    est = PseudoLikelihood(4, min_degree=2)
    several = est.fit(open_samples(cut(np.repeat(pair, count, axis=0), 8_000))).model_
    given = est.fit(open_samples(cut(pair, 8_000)), sample_weight=count).model_
    beside = open_samples(cut(np.column_stack([pair, count]), 5_000), weight="x2")
    column = est.fit(beside).model_
    assert column.n_samples == given.n_samples == several.n_samples == count.sum()
    np.testing.assert_allclose(column.theta, given.theta, rtol=1e-10, atol=1e-13)
    off = np.abs(given.to_frame()["theta"] - several.to_frame()["theta"]) / given.stderr()
    assert off.max() < 0.1


def test_ratios_of_densities_sum_to_what_they_are_worth(pair):
    ratio = np.random.default_rng(2).exponential(size=N)
    options = dict(min_degree=2, weights="importance")
    here = PseudoLikelihood(4, **options).fit(pair, sample_weight=ratio).model_
    there = PseudoLikelihood(4, **options).fit(open_samples(cut(pair, 8_000)), sample_weight=ratio).model_
    assert there.n_samples == pytest.approx(here.n_samples)
    assert np.max(np.abs(there.to_frame()["theta"] - here.to_frame()["theta"]) / here.stderr()) < 0.1
    np.testing.assert_allclose(there.stderr(), here.stderr(), rtol=0.2)


@pytest.mark.parametrize("how", ["ebic", "cv", "stars"])
def test_penalties_are_chosen(how):
    truth = regular_gaussian(8, rng=1)
    X = np.array(truth.sample(40_000, rng=0))
    est = PseudoLikelihood(2, l1=how).fit(open_samples(cut(X, 9_000)))
    whole = PseudoLikelihood(2, l1=how).fit(X)
    if how == "stars":  # other subsamples: what is 0.04 here may be 0.06 there
        np.testing.assert_allclose(est.path_.values, whole.path_.values, atol=0.04)
    else:
        assert set(truth.hyperedges()) == set(est.model_.hyperedges())
        assert abs(est.path_.chosen - whole.path_.chosen) <= 3


def test_half_of_a_stream_chooses_and_the_other_fits():
    X = np.array(regular_gaussian(8, rng=1).sample(40_000, rng=0))
    est = PseudoLikelihood(2, l1=0.05, debias="split").fit(open_samples(cut(X, 9_000)))
    assert est.model_.n_samples == pytest.approx(20_000, rel=0.05)


def test_a_bootstrap_of_a_stream(pair):
    stream = open_samples(cut(pair, 25_000))
    est = ScoreMatching(4, min_degree=2)
    for kind in ("nonparametric", "multiplier"):
        found = bootstrap(est, stream, n_draws=30, kind=kind)
        np.testing.assert_allclose(found.stderr("standardized") / found.sandwich, 1.0, atol=0.5)
    again = bootstrap(est, open_samples(cut(pair, 7_000)), n_draws=30, kind="multiplier")
    np.testing.assert_allclose(again.draws, found.draws, rtol=1e-8, atol=1e-10)


def test_random_numbers_of_rows_are_uniform():
    u = uniform(np.arange(1_000_000), 3)
    assert 0 <= u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1
    assert abs(u.mean() - 0.5) < 4 / np.sqrt(12e6)
    other = uniform(np.arange(1_000_000), 4)
    assert abs(np.corrcoef(u, other)[0, 1]) < 4e-3
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4e-3
    np.testing.assert_array_equal(uniform(np.arange(500, 600), 3), u[500:600])


# files


@pytest.fixture
def frame(pair):
    return pd.DataFrame(pair[:40_000], columns=["raf", "mek"]).assign(count=1.0)


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=3_000, write_page_checksum=True)
    elif path.suffix == ".npy":
        np.save(path, frame.to_numpy())
    elif path.suffix == ".gz":
        with gzip.open(path, "wt", compresslevel=1) as file:
            frame.to_csv(file, index=False)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".npy"])
def test_files(tmp_path, frame, ending):
    parts = [frame[:11_000], frame[11_000:11_001], frame[11_001:]]
    paths = [write(part, tmp_path / f"part{k}{ending}") for k, part in enumerate(parts)]
    columns = ["x1", "x0"] if ending == ".npy" else ["mek", "raf"]
    stream = open_samples(paths, columns=columns)
    est = ScoreMatching(4, min_degree=2).fit(stream)
    assert est.model_.names == tuple(columns)
    assert list(est.feature_names_in_) == columns
    other = ScoreMatching(4, min_degree=2).fit(frame[["mek", "raf"]])
    np.testing.assert_allclose(est.model_.to_frame()["theta"], other.model_.to_frame()["theta"], rtol=2e-2, atol=2e-3)
    assert "40,000 rows of 2 columns" in repr(stream)
    folder = open_samples(tmp_path, columns=columns)
    np.testing.assert_array_equal(ScoreMatching(4, min_degree=2).fit(folder).model_.theta, est.model_.theta)
    assert stream.sample(50).shape == (50, 2)


def refused(match, make, *args, **options):
    with pytest.raises((ValueError, FileNotFoundError), match=match):
        make(*args, **options)


def test_a_column_that_is_missing_in_the_third_file(tmp_path, frame):
    paths = [write(frame, tmp_path / f"{k}.parquet") for k in range(2)]
    paths.append(write(frame.drop(columns="mek"), tmp_path / "2.parquet"))
    refused(r"2\.parquet: no column 'mek'; there are raf, count", open_samples, paths)
    refused(r"no column 'erk'", open_samples, paths[:2], columns=["raf", "erk"])


def test_files_that_are_cut_short(tmp_path, frame):
    whole = write(frame, tmp_path / "whole.parquet").read_bytes()
    short = tmp_path / "short.parquet"
    short.write_bytes(whole[: len(whole) // 2])
    refused(r"short\.parquet: not a whole Parquet file", open_samples, short)
    harmed = bytearray(whole)
    harmed[len(whole) // 2 : len(whole) // 2 + 2_000] = bytes(2_000)
    short.write_bytes(harmed)
    refused(r"short\.parquet, from row .* on: cannot be read", ScoreMatching(2).fit, open_samples(short))
    array = write(frame, tmp_path / "a.npy").read_bytes()
    (tmp_path / "b.npy").write_bytes(array[: len(array) // 2])
    refused(r"b\.npy: not a whole \.npy file", open_samples, tmp_path / "b.npy")
    (tmp_path / "c.csv").write_bytes(b"")
    refused(r"c\.csv: no header can be read", open_samples, tmp_path / "c.csv")
    (tmp_path / "d.csv").write_text("a,b\n")
    refused(r"d\.csv: no rows", ScoreMatching(2).fit, open_samples(tmp_path / "d.csv"))


def test_values_that_are_no_numbers(tmp_path, frame):
    path = tmp_path / "words.csv"
    path.write_text("a,b\n" + "1.5,2\n" * 70 + "oops,3\n" + "1.0,2\n" * 30)
    refused(r"words\.csv, from row 0 on: column 'a' is not numeric, such as 'oops' in row 70", ScoreMatching(2).fit,
            open_samples(path))  # fmt: skip
    frame.loc[30_123, "mek"] = np.nan
    write(frame, tmp_path / "nan.csv")
    refused(r"mek is nan in row 30,123 \(.*nan\.csv, from row", ScoreMatching(2).fit,
            open_samples(tmp_path / "nan.csv", columns=["raf", "mek"]))  # fmt: skip
    path.write_text("a,b\n1,2\n3,4,5,6\n")
    refused(r"words\.csv, from row 0 on: cannot be read", ScoreMatching(2).fit, open_samples(path))
    path.write_text("a,b\n1,2,3\n3,4,5\n")
    refused(r"words\.csv: no header can be read \(3 fields in the first row under a header of 2", open_samples, path)


def test_a_stream_that_changes_between_passes(pair):
    rng = np.random.default_rng(0)

    def restless():
        yield pair
        yield rng.standard_normal((20_000, 2))

    with pytest.raises(ValueError, match=r"block 1 of restless\(\): block 1 has other values than at first"):
        ScoreMatching(2).fit(open_samples(restless))
    left = [5]

    def shrinking():
        left[0] -= 1
        yield from np.array_split(pair, 4)[: left[0]]

    with pytest.raises(ValueError, match="blocks in this pass and"):
        ScoreMatching(2).fit(open_samples(shrinking))


def test_what_cannot_be_a_stream(pair, tmp_path):
    refused("an iterator can be gone through once", open_samples, iter([pair]))
    refused("there is no such file", open_samples, tmp_path / "nothing.csv")
    (tmp_path / "text.txt").write_text("1")
    refused("not a kind of file that can be streamed, which are .parquet, .csv", open_samples, tmp_path / "text.txt")
    (tmp_path / "empty").mkdir()
    refused("no .parquet, .csv, .csv.gz, .npy file is in this folder", open_samples, tmp_path / "empty")
    refused("no files", open_samples, [])
    for memory in ("lots", 100, -1, True, "1 kB"):
        refused("memory must be a size of at least 16 MiB", open_samples, cut(pair, 10), memory=memory)
    refused("no rows", open_samples, lambda: [])
    refused("an array of two dimensions or a DataFrame, not ndarray", open_samples, lambda: [pair[:, 0]])
    refused("has columns x0, x1, x2; the first has x0, x1", ScoreMatching(2).fit,
            open_samples(lambda: [pair, np.ones((3, 3))]))  # fmt: skip
    stream = open_samples(cut(pair, 10_000))
    refused("groups are for samples in memory", ISODUS(2).fit, stream, groups=np.arange(N))
    refused("sample_weight has 7 values", ISODUS(2).fit, stream, sample_weight=np.ones(7))
    refused("negative or not finite in row 3", ISODUS(2).fit, stream, sample_weight=np.where(np.arange(N) == 3, -1, 1))
    constant = open_samples(cut(np.column_stack([pair, np.ones(N)]), 10_000))
    refused("columns without variation: x2", ISODUS(2).fit, constant)
    est = ISODUS(2).fit(stream)
    refused("the samples have columns", est.score, constant)
    for ask in (est.score_samples, est.influence, est.goodness_of_fit, est.model_.energy, est.model_.logpdf):
        refused(r"this wants samples in memory, and not a stream of them: stream\.sample", ask, stream)
    assert stream.n_rows == N


def test_a_thread_that_reads_ahead_ends_with_its_pass(pair):
    before = threading.active_count()
    with pytest.raises(ValueError, match="NaN"):
        ISODUS(2).fit(open_samples(cut(np.where(np.arange(N)[:, None] == 5, np.nan, pair), 100)))
    assert threading.active_count() == before
    stream = open_samples(cut(pair, 100))

    def stop(block):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream.reduce(stop)
    assert threading.active_count() == before
    assert isinstance(stream, SampleStream)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak memory of a process from Linux")
def test_memory_does_not_grow_with_the_stream():
    """Ten times the budget is streamed; what it took is below the budget, whatever the number of rows."""
    code = """
        import resource
        import numpy as np
        from isodus import ISODUS, open_samples

        def blocks(many):
            def make():
                for k in range(many):
                    yield np.random.default_rng(k).random((50_000, 8))
            return make

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

        budget = 64
        ISODUS(2).fit(open_samples(blocks(2), memory=budget << 20))
        before = peak()
        est = ISODUS(2).fit(open_samples(blocks(10 * (budget << 20) // (50_000 * 64) + 1), memory=budget << 20))
        print(est.model_.n_samples * 64 / 2**20, peak() - before)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    streamed, took = map(float, done.stdout.split())
    assert streamed >= 640
    assert took < 64
