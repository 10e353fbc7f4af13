"""Streams give what the same rows give in memory, in few readings and flat memory; what is wrong with them is named."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from isodus import ISODUS, PowerReference, PseudoLikelihood, Ridge, ScoreMatching, open_samples
from isodus.data import as_samples, samples, samples_of
from isodus.datasets import butterfly, paper_pair

N, KEPT = 9000, 4096
X = paper_pair(N)
FRAME = pd.DataFrame(X, columns=["a", "b"])


@pytest.fixture(autouse=True)
def few_rows_are_kept(monkeypatch):
    monkeypatch.setattr(samples, "KEPT_ROWS", KEPT)


def cut(table, size):
    return lambda: (table[start : start + size] for start in range(0, len(table), size))


def parquet(path):
    FRAME.to_parquet(path / "d.parquet", row_group_size=1234)
    return open_samples(path / "d.parquet")


def csv(path):
    FRAME.to_csv(path / "d.csv", index=False)
    return open_samples(path / "d.csv")


SOURCES = {
    "blocks of 97": lambda path: open_samples(cut(FRAME, 97)),
    "blocks of 2049": lambda path: open_samples(cut(FRAME, 2049)),
    "one block": lambda path: open_samples(lambda: [FRAME]),
    "Parquet": parquet,
    "CSV": csv,
}
ESTIMATORS = {
    "PseudoLikelihood": PseudoLikelihood(4),
    "ISODUS": ISODUS(4),
    "PowerReference": ISODUS(4, reference=PowerReference("auto")),
    "ScoreMatching": ScoreMatching(4),
    "degree 2": PseudoLikelihood(2),
    "bounded": PseudoLikelihood(4, scale="cdf"),
    "no ridge": PseudoLikelihood(3, penalty=None, consensus="geometric"),
}
_known = {}


def in_memory(name, **kwargs):
    key = (name, *kwargs)
    if key not in _known:
        _known[key] = ESTIMATORS[name].set_params(tol=1e-6).fit(FRAME, **kwargs).model_
    return _known[key]


def check_same(one, other):
    """To 1e-6 standard errors."""
    se = np.sqrt(np.diag(one.fitted.covariance))
    np.testing.assert_allclose(other.theta / se, one.theta / se, rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.diag(other.fitted.covariance) / se**2, 1, atol=1e-6)


FEW = dict.fromkeys(("blocks of 97", "CSV"), ("PseudoLikelihood", "PowerReference"))


@pytest.mark.parametrize(("source", "name"), [(s, name) for s in SOURCES for name in FEW.get(s, ESTIMATORS)])
def test_the_answer_is_that_of_memory(source, name, tmp_path):
    stream = SOURCES[source](tmp_path)
    est = ESTIMATORS[name].set_params(tol=1e-6).fit(stream)
    assert est.status_ == "converged"
    check_same(in_memory(name), est.model_)
    assert est.model_.names == ("a", "b")
    assert est.feature_names_in_.tolist() == ["a", "b"]


def test_by_folds(monkeypatch):
    """Folds are those of the kept rows."""
    monkeypatch.setattr(samples, "KEPT_ROWS", 1000)
    rows = butterfly(2500, pairs=1)
    fits = [PseudoLikelihood(3, penalty=Ridge("cv"), tol=1e-6).fit(of) for of in (rows, open_samples(cut(rows, 700)))]
    assert fits[0].path_ == fits[1].path_
    check_same(*(est.model_ for est in fits))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_readings_are_few_counted_and_shown(name):
    shown, stream = [], open_samples(cut(X, 1000))
    est = ESTIMATORS[name].set_params(tol=1e-3, progress=lambda *args: shown.append(args))
    est.fit(stream)
    est.set_params(progress=None)
    assert 2 < stream.reads <= 12
    assert {label for label, _, _ in shown if label.startswith("read")} == {
        f"read {k} of the function '<lambda>'" for k in range(1, stream.reads + 1)
    }
    assert shown[-1][1:] == (N, N)


def test_few_rows_are_read_once():
    stream = open_samples(cut(X[:KEPT], 1000))
    check_same(PseudoLikelihood(4).fit(X[:KEPT]).model_, PseudoLikelihood(4).fit(stream).model_)
    assert stream.reads == 1


def test_the_first_reading():
    weight = np.random.default_rng(0).integers(0, 4, N)
    memory = as_samples(FRAME, weight, salt=5)
    stream = samples_of(open_samples(cut(FRAME, 321)), weight, salt=5)
    for what in ("n", "n_rows", "names", "columns", "weighted"):
        assert getattr(memory, what) == getattr(stream, what)
    for what in ("minima", "maxima", "head"):
        np.testing.assert_array_equal(getattr(memory, what), getattr(stream, what))
    for one, other in zip(memory.kept, stream.kept, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(stream.kept.X) == KEPT < stream.n_rows
    for one, other in zip(memory.blocks(), stream.blocks(), strict=True):
        assert (one.number, one.start) == (other.number, other.start)
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.weight, other.weight)


@pytest.mark.parametrize("weights", ["counts", "importance"])
def test_weights(weights):
    w = np.random.default_rng(1).integers(0, 3, N) * (1.0 if weights == "counts" else 1e-3)
    w[:1500] = 0.0  # all of the first block
    memory = PseudoLikelihood(3, tol=1e-6).fit(FRAME, sample_weight=w, weights=weights).model_
    with_column = open_samples(cut(FRAME.assign(w=w), 800), sample_weight="w")
    for stream, given in ((with_column, None), (open_samples(cut(FRAME.assign(w=w), 800)), "w"),
                          (open_samples(cut(FRAME, 800)), w)):  # fmt: skip
        model = PseudoLikelihood(3, tol=1e-6).fit(stream, sample_weight=given, weights=weights).model_
        check_same(memory, model)
        assert model.fitted.n == pytest.approx(memory.fitted.n, rel=1e-12)
    with pytest.raises(ValueError, match="was given to open_samples and to fit"):
        PseudoLikelihood(3).fit(with_column, sample_weight=w)


def test_clusters_and_series():
    labels = np.repeat([f"s{i}" for i in range(900)], 10)
    memory = PseudoLikelihood(3, tol=1e-6).fit(FRAME, groups=labels)
    table = FRAME.assign(subject=labels)
    column, array = (PseudoLikelihood(3, tol=1e-6).fit(open_samples(cut(of, 777)), groups=groups)
                     for of, groups in ((table, "subject"), (FRAME, labels)))  # fmt: skip
    check_same(memory.model_, column.model_)
    check_same(memory.model_, array.model_)
    assert column.model_.names == ("a", "b")
    p_values = [est.model_.interactions()["p_value"].to_numpy() for est in (memory, column)]
    np.testing.assert_allclose(*p_values, rtol=1e-6)
    for dependence in ("auto", 30):
        of_rows, of_stream = (PseudoLikelihood(3, tol=1e-6).fit(rows, dependence=dependence).model_
                              for rows in (FRAME, open_samples(cut(FRAME, 777))))  # fmt: skip
        check_same(of_rows, of_stream)


def test_scores_densities_and_objectives():
    est, w = PseudoLikelihood(4).fit(FRAME), np.random.default_rng(1).integers(0, 3, N)
    for table in (FRAME, FRAME[["b", "a"]]):
        stream = open_samples(cut(table, 1300))
        np.testing.assert_allclose(est.score_samples(stream), est.score_samples(FRAME), rtol=1e-12)
        np.testing.assert_allclose(est.model_.logpdf(stream), est.model_.logpdf(FRAME), rtol=1e-12)
        assert est.score(stream) == pytest.approx(est.score(FRAME), rel=1e-12)
        assert est.score(stream, sample_weight=w) == pytest.approx(est.score(FRAME, sample_weight=w), rel=1e-12)
        one, other = (est.objective(of, w)(est._fit.tau) for of in (FRAME, stream))
        assert one.value == pytest.approx(other.value, rel=1e-13)
        np.testing.assert_allclose(one.hessian, other.hessian, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="Columns seen in the fit are missing: 'a'"):
        est.score(open_samples(cut(FRAME[["b"]], 100)))
    with pytest.raises(TypeError, match=r"fit, score, score_samples, objective and logpdf"):
        est.model_.outside(stream)


def test_fits_of_files_can_be_pickled(tmp_path):
    for source in ("Parquet", "CSV"):
        est = ScoreMatching(3).fit(SOURCES[source](tmp_path))
        again = pickle.loads(pickle.dumps(est))
        assert again.score(FRAME[:100]) == est.score(FRAME[:100])


def test_memory_is_flat():
    """Four times as many rows take no more memory: less than three bytes for each of the others."""

    def peak(n):
        def blocks():
            rng = np.random.default_rng(0)
            return (rng.standard_normal((5000, 2)) for _ in range(n // 5000))

        tracemalloc.start()
        ScoreMatching(3).fit(open_samples(blocks), groups=np.broadcast_to(np.arange(500), (n // 500, 500)).ravel())
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found - 8 * n  # the labels

    peak(20_000)  # what is made once
    assert peak(480_000) < peak(120_000) + 1e6


def test_blocks_that_share_memory():
    """A function may write its blocks into one array."""

    def blocks():
        buffer = np.empty((700, 2), order="F")
        for start in range(0, N - N % 700, 700):
            buffer[:] = X[start : start + 700]
            yield buffer

    rows = X[: N - N % 700]
    check_same(PseudoLikelihood(3).fit(rows).model_, PseudoLikelihood(3, n_jobs=2).fit(open_samples(blocks)).model_)


# ---------------------------------------------------------------- faults


def parts(*tables):
    return lambda: iter(tables)


def nan_in_block(k):
    blocks = [X[i * 1000 : (i + 1) * 1000].copy() for i in range(9)]
    blocks[k - 1][17, 1] = np.nan
    return blocks


FAULTS = {
    "no rows": (parts(), "has no rows"),
    "empty blocks": (parts(X[:0]), "has no rows"),
    "a width": (parts(X, np.ones((5, 3))), "has 3 columns from row 9,000 on, and 2 before"),
    "nothing": (parts(X, None), r"blocks of shape \(\) at row 9,000"),
    "a vector": (parts(X, X[:, 0]), r"blocks of shape \(9000,\) at row 9,000"),
    "a name": (parts(FRAME, FRAME.rename(columns={"b": "c"})), "rows without 'b', from row 9,000 on"),
    "one more": (parts(FRAME, FRAME.assign(c=1)), "rows with 'c', which were not there before, from row 9,000 on"),
    "a kind": (parts(FRAME, X), "arrays and frames by turns, at row 9,000"),
    "strings": (parts(FRAME, FRAME.assign(b="x")), r"Column 'b' holds strings \(row 9000: 'x'\)"),
    "dates": (parts(FRAME.assign(t=pd.Timestamp("2024-01-31"))), "Column 't' holds .*Datetime.*dependence='auto'"),
    "NaN": (parts(*nan_in_block(7)), "Column 'x1' contains NaN in row 6017"),
    "complex": (parts(X, X * 1j), "Column 'x0' is complex"),
    "an infinity": (parts(X, X + np.inf), r"Column 'x0' contains an infinity \(inf\) in row 9000"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_blocks_that_are_errors(name):
    blocks, message = FAULTS[name]
    with pytest.raises(ValueError, match=message):
        PseudoLikelihood(3).fit(open_samples(blocks))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(N), "no rows, or none of positive weight"),
        (np.ones(N - 1), "sample_weight has 8,999 values, but .* has more rows"),
        (np.ones(N + 1), "sample_weight has 9,001 values, but .* has 9,000 rows"),
        (np.full(N, 0.1), "sums to 900 over 9,000 rows"),
        (np.where(np.arange(N) == 5678, -1, 1), "sample_weight is negative in row 5678"),
        ("w", "sample_weight names a column 'w', which .* does not have"),
    ],
)
def test_weights_that_are_errors(weight, message):
    with pytest.raises(ValueError, match=message):
        PseudoLikelihood(3).fit(open_samples(cut(X, 1000)), sample_weight=weight)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(N), "one label only"),
        ([*("ab" * 3000), None, *("ab" * 1500)][:N], "no label in row 6000"),
        (np.arange(N - 1), "groups has 8,999 values"),
        ("g", "groups names a column 'g'"),
    ],
)
def test_labels_that_are_errors(groups, message):
    with pytest.raises(ValueError, match=message):
        PseudoLikelihood(3).fit(open_samples(cut(X, 1000)), groups=groups)


def later(change):
    """Blocks that change after the first reading."""
    readings = []

    def blocks():
        readings.append(0)
        return iter(np.array_split(X if len(readings) == 1 else change(X.copy()), 9))

    return blocks


def one_bit(rows):
    rows[5000, 1] = np.nextafter(rows[5000, 1], 9)
    return rows


CHANGES = {
    "ends early": (lambda rows: rows[:-100], "other values in rows 8,192 to 8,899"),
    "ends at a block": (lambda rows: rows[:8192], "ended after 8,192 of the 9,000 rows"),
    "grows": (lambda rows: np.vstack([rows, rows[:9]]), "has more than the 9,000 rows"),
    "order": (lambda rows: rows[::-1], "other values in rows 0 to 2,047"),
    "one bit": (one_bit, "other values in rows 4,096 to 6,143"),
    "nothing": (lambda rows: rows[:0].reshape(0, 2), "ended after 0 of the 9,000 rows"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_rows_at_a_second_reading(name):
    change, message = CHANGES[name]
    with pytest.raises(ValueError, match=rf"{message}.*must be the same each time\. Pass a copy"):
        PseudoLikelihood(3).fit(open_samples(later(change)))


def test_errors_of_a_users_function_are_passed_on():
    def blocks():
        yield X
        raise ConnectionError("no longer there")

    with pytest.raises(ConnectionError, match="no longer there"):
        PseudoLikelihood(3).fit(open_samples(blocks))


def test_a_file_that_grows(tmp_path):
    path = tmp_path / "d.csv"
    FRAME.to_csv(path, index=False)
    stream = samples_of(open_samples(path))
    with path.open("a") as file:
        file.write("1.5,2.5\n")
    with pytest.raises(ValueError, match=r"d.csv has more than the 9,000 rows of the first reading"):
        stream.sum(lambda block: 1)
