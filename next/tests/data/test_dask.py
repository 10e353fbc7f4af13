"""Dask collections give what the same rows give in memory, however they are cut and whoever works; faults are named."""

import os
import pickle
import signal
import subprocess
import sys
from itertools import pairwise

import cloudpickle
import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from isodus import ISODUS, PowerReference, PseudoLikelihood, ScoreMatching
from isodus.data import as_samples, samples, samples_of
from isodus.data.dask import DaskSamples
from isodus.data.partitions import Job, Reading
from isodus.datasets import paper_pair
from isodus.fit import sums

N, KEPT = 9000, 4096
X = paper_pair(N)
FRAME = pd.DataFrame(X, columns=["a", "b"])
CUTS = [0, 3000, 3001, 3001, 7777, N]  # of partitions, one of them empty


@pytest.fixture(autouse=True)
def few_rows_are_kept(monkeypatch):
    monkeypatch.setattr(samples, "KEPT_ROWS", KEPT)
    with dask.config.set(scheduler="synchronous"):
        yield


def frame(table=FRAME, cuts=CUTS):
    """A frame whose divisions and lengths are not known."""
    parts = [dask.delayed(table.iloc[start:stop]) for start, stop in pairwise(cuts)]
    return dd.from_delayed(parts, meta=table.iloc[:0], verify_meta=False)


COLLECTIONS = {
    "frame": frame,
    "one partition": lambda: dd.from_pandas(FRAME, npartitions=1),
    "array": lambda: da.from_array(X, chunks=(1000, 1)),
    "array of rows": lambda: da.from_array(X, chunks=((500, 0, 7000, 1500), 2)),
    "array of unknown length": lambda: dd.from_pandas(pd.DataFrame(X), npartitions=4).to_dask_array(),
}
ESTIMATORS = {
    "PseudoLikelihood": PseudoLikelihood(4),
    "ISODUS": ISODUS(4),
    "PowerReference": ISODUS(4, reference=PowerReference("auto")),
    "ScoreMatching": ScoreMatching(4),
    "bounded": PseudoLikelihood(4, scale="cdf"),
}
_known = {}


def in_memory(name):
    if name not in _known:
        _known[name] = ESTIMATORS[name].set_params(tol=1e-6).fit(FRAME).model_
    return _known[name]


def check_same(one, other):
    """To 1e-6 standard errors."""
    se = np.sqrt(np.diag(one.fitted.covariance))
    np.testing.assert_allclose(other.theta / se, one.theta / se, rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.diag(other.fitted.covariance) / se**2, 1, atol=1e-6)


# ---------------------------------------------------------------- the answer


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("collection", ["frame", "array"])
def test_the_answer_is_that_of_memory(collection, name):
    est = ESTIMATORS[name].set_params(tol=1e-6).fit(COLLECTIONS[collection]())
    assert est.status_ == "converged"
    check_same(in_memory(name), est.model_)
    assert est.model_.names == (("a", "b") if collection == "frame" else ("x0", "x1"))
    assert est.model_.fitted.n_rows == N


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_the_first_reading(collection):
    memory = as_samples(FRAME if collection in ("frame", "one partition") else X, salt=5)
    of_dask = samples_of(COLLECTIONS[collection](), salt=5)
    assert isinstance(of_dask, DaskSamples)
    for what in ("n", "n_rows", "names", "columns", "weighted"):
        assert getattr(memory, what) == getattr(of_dask, what)
    for what in ("minima", "maxima", "head"):
        np.testing.assert_array_equal(getattr(memory, what), getattr(of_dask, what))
    for one, other in zip(memory.kept, of_dask.kept, strict=True):
        np.testing.assert_array_equal(one, other)
    blocks = list(of_dask.blocks())
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert [block.start for block in blocks] == np.cumsum([0, *(len(block.X) for block in blocks[:-1])]).tolist()
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), X)


@pytest.mark.parametrize("kept", [100, 1000])
def test_kept_rows_are_those_with_the_smallest_hashes(kept, monkeypatch):
    """Row numbers are hashed in parts; memory and Dask share the function, so another says what it should give."""
    monkeypatch.setattr(samples, "KEPT_ROWS", kept)
    monkeypatch.setattr(samples, "_HASHED", 77)
    assert samples.kept_rows(N, 3).tolist() == sorted(np.argsort(samples.hashes(np.arange(N), 3))[:kept])


def test_sums_depend_on_cuts_by_rounding_and_on_nothing_else():
    memory = PseudoLikelihood(4).fit(FRAME)
    f, tau = memory._objective, memory._fit.tau + 0.01
    one = f(tau)
    for cuts in (CUTS, [0, N], [*range(0, N, 250), N]):
        of_dask = f.on(samples_of(frame(cuts=cuts)))
        other = of_dask(tau)
        assert other.value == pytest.approx(one.value, rel=1e-14)
        size = np.sqrt(np.diag(one.hessian))
        np.testing.assert_allclose(other.gradient / size, one.gradient / size, rtol=0, atol=1e-14)
        with dask.config.set(scheduler="threads", num_workers=3):
            again = of_dask(tau)
        assert (again.value, *again.gradient) == (other.value, *other.gradient)


def test_few_rows_are_in_memory_after_one_reading():
    found = samples_of(da.from_array(X[:KEPT], chunks=(1000, 2)))
    assert found.in_memory
    np.testing.assert_array_equal(found.kept.X, X[:KEPT])


def test_tests_of_interactions_and_held_out_scores(monkeypatch):
    """Folds are those of the kept rows."""
    monkeypatch.setattr(samples, "KEPT_ROWS", 300)
    one, other = (PseudoLikelihood(4, tol=1e-6).fit(of) for of in (X[:500], da.from_array(X[:500], chunks=(170, 1))))
    check_same(one.model_, other.model_)
    for what in ("score", "reference_score", "gains"):
        assert getattr(other.held_out_, what) == pytest.approx(getattr(one.held_out_, what), abs=1e-9)
    p_values = [est.model_.interactions()["p_value"].to_numpy() for est in (one, other)]
    np.testing.assert_allclose(*p_values, rtol=1e-6)


@pytest.mark.parametrize("weights", ["counts", "importance"])
def test_weights(weights):
    w = np.random.default_rng(1).integers(0, 3, N) * (1.0 if weights == "counts" else 1e-3)
    w[:3000] = 0.0  # all of a partition
    memory = PseudoLikelihood(3, tol=1e-6).fit(FRAME, sample_weight=w, weights=weights).model_
    table = frame(FRAME.assign(w=w))
    for X_, given in (
        (table, "w"),
        (table[["a", "b"]], table["w"]),
        (frame(), w),
        (da.from_array(X, chunks=(1100, 2)), w),
        (da.from_array(X, chunks=(1100, 2)), da.from_array(w, chunks=3000)),
    ):
        model = PseudoLikelihood(3, tol=1e-6).fit(X_, sample_weight=given, weights=weights).model_
        check_same(memory, model)
        assert model.fitted.n == pytest.approx(memory.fitted.n, rel=1e-12)
        assert model.fitted.n_rows == memory.fitted.n_rows


def test_clusters_and_series():
    labels = np.repeat([f"s{i}" for i in range(900)], 10)
    memory = PseudoLikelihood(3, tol=1e-6).fit(FRAME, groups=labels).model_
    table = frame(FRAME.assign(subject=labels))
    for X_, groups in ((table, "subject"), (table[["a", "b"]], table["subject"]), (frame(), labels)):
        model = PseudoLikelihood(3, tol=1e-6).fit(X_, groups=groups).model_
        assert model.names == ("a", "b")
        check_same(memory, model)
    np.testing.assert_allclose(model.interactions()["p_value"], memory.interactions()["p_value"], rtol=1e-6)
    for dependence in ("auto", 900):
        check_same(
            PseudoLikelihood(3, tol=1e-6).fit(FRAME, dependence=dependence).model_,
            PseudoLikelihood(3, tol=1e-6).fit(frame(cuts=[*range(0, N, 400), N]), dependence=dependence).model_,
        )


@pytest.mark.parametrize("collection", [lambda: frame(FRAME[["b", "a"]]), COLLECTIONS["array"]])
def test_scores_densities_and_objectives(collection):
    est, w = PseudoLikelihood(4).fit(FRAME), np.random.default_rng(1).integers(0, 3, N)
    of_dask = collection()
    np.testing.assert_allclose(est.score_samples(of_dask), est.score_samples(FRAME), rtol=1e-12)
    np.testing.assert_allclose(est.model_.logpdf(of_dask), est.model_.logpdf(FRAME), rtol=1e-12)
    assert est.score(of_dask) == pytest.approx(est.score(FRAME), rel=1e-12)
    assert est.score(of_dask, sample_weight=w) == pytest.approx(est.score(FRAME, sample_weight=w), rel=1e-12)
    one, other = (est.objective(table, w)(est._fit.tau) for table in (FRAME, of_dask))
    np.testing.assert_allclose(one.hessian, other.hessian, rtol=1e-12, atol=1e-14)


def test_what_travels_is_small():
    """Neither rows nor what is prepared of them."""
    est = ISODUS(4).fit(FRAME)
    f = est._objective
    f(np.zeros(len(f.terms)))
    assert f._kept
    job = Job(lambda block: f._made(block), Reading(None, None, "counts", None, None), {})
    assert len(cloudpickle.dumps(job)) < 20_000 < FRAME.to_numpy().nbytes < len(cloudpickle.dumps(f)) < 3 * X.nbytes
    table = pickle.loads(pickle.dumps(est)).model_.interactions()
    pd.testing.assert_frame_equal(table, est.model_.interactions())


def test_what_is_prepared_is_kept_by_its_name(monkeypatch):
    """In another process, from one pass to the next."""
    monkeypatch.setattr(sums, "_shared", {})
    here = sums.Shared()
    here[3] = "prepared here"
    one, other = (pickle.loads(pickle.dumps(here)) for _ in range(2))
    assert one is other is not here
    assert one == {}
    one[3] = "prepared there"
    pickle.loads(pickle.dumps(sums.Shared()))
    assert pickle.loads(pickle.dumps(here)) is one
    for _ in range(2):
        pickle.loads(pickle.dumps(sums.Shared()))
    assert pickle.loads(pickle.dumps(here)) == {}


def test_dask_is_imported_with_the_first_collection():
    code = "import isodus, sys; sys.exit('dask' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": "src"}).returncode == 0


# ---------------------------------------------------------------- workers


def test_a_local_cluster():
    """Products with the Hessian too, which keep nothing where they are computed."""
    est = PseudoLikelihood(4).fit(FRAME)
    f, tau = est._objective, est._fit.tau
    v = np.arange(len(tau)) - 3.0
    of_dask = f.on(samples_of(frame()))
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
        other = of_dask(tau)
        np.testing.assert_allclose(other.hessian @ v, of_dask.curvature_product(tau)(v), rtol=1e-9)
    assert (other.value, *other.gradient) == ((at := of_dask(tau)).value, *at.gradient)


def test_a_worker_that_is_killed_and_one_that_is_added(monkeypatch):
    passes, added_up = [], DaskSamples.sum
    reference = PseudoLikelihood(4, tol=1e-6).fit(frame()).model_
    with (
        dask.config.set({"scheduler": None, "distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=60
        ) as cluster,
        Client(cluster) as client,
    ):

        def disturbed(self, f, n_jobs=1):
            passes.append(client.run(os.getpid) if len(passes) in (2, 3) else None)
            if len(passes) == 3:
                os.kill(next(iter(passes[-1].values())), signal.SIGKILL)
            if len(passes) == 4:
                cluster.scale(3)
            return added_up(self, f)

        monkeypatch.setattr(DaskSamples, "sum", disturbed)
        model = PseudoLikelihood(4, tol=1e-6).fit(frame().persist()).model_
        assert len(passes) > 4
        killed = next(iter(passes[2].values()))
        assert killed not in client.run(os.getpid).values()
    np.testing.assert_array_equal(model.theta, reference.theta)
    np.testing.assert_array_equal(model.fitted.covariance, reference.fitted.covariance)


# ---------------------------------------------------------------- faults


def spoiled(row, value):
    table = FRAME.copy()
    table.loc[row, "b"] = value
    return table


def unlike(change):
    """A frame whose last partition is another than its first says."""
    return dd.from_delayed([dask.delayed(FRAME), dask.delayed(change(FRAME))], meta=FRAME.iloc[:0], verify_meta=False)


def failing(rows):
    raise ZeroDivisionError("an error of the graph")


FAULTS = {
    "NaN": (lambda: frame(spoiled(6017, np.nan)), ValueError, "Column 'b' contains NaN in row 6017"),
    "infinity": (lambda: da.from_array(X / (np.arange(N)[:, None] != 8000), chunks=(900, 1)), ValueError,
                 r"Column 'x0' contains an infinity \(inf\) in row 8000"),
    "strings": (lambda: unlike(lambda t: t.assign(b="x")), ValueError, r"Column 'b' holds strings \(row 9000: 'x'\)"),
    "a name": (lambda: unlike(lambda t: t.rename(columns={"b": "c"})), ValueError,
               "The Dask DataFrame has rows without 'b', from row 9,000 on"),
    "one more": (lambda: unlike(lambda t: t.assign(c=1)), ValueError, "rows with 'c', which were not there before"),
    "no rows": (lambda: frame(FRAME.iloc[:0], [0, 0, 0]), ValueError, "The Dask DataFrame has no rows"),
    "no rows of an array": (lambda: da.zeros((0, 2)), ValueError, "The Dask array has no rows"),
    "a vector": (lambda: da.zeros(5), ValueError, "Expected 2D array, got 1D array"),
    "a series": (lambda: frame()["a"], TypeError, "X is a Dask Series, .* Pass a Dask array or DataFrame"),
    "a bag": (lambda: db.from_sequence([1, 2]), TypeError, "X is a Dask Bag, "),
    "a graph": (lambda: frame().map_partitions(failing, meta=FRAME.iloc[:0]), RuntimeError,
                "The Dask DataFrame cannot be computed: ZeroDivisionError: an error of the graph"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", FAULTS)
def test_collections_that_are_errors(name):
    make, error, message = FAULTS[name]
    with pytest.raises(error, match=message):
        PseudoLikelihood(3).fit(make())


@pytest.mark.parametrize(
    ("name", "message"), [("NaN", "NaN in row 6017"), ("a graph", "ZeroDivisionError"), ("one more", "from row 9,000")]
)
def test_errors_of_scores(name, message):
    est = PseudoLikelihood(3).fit(FRAME)
    make, error, _ = FAULTS[name]
    with pytest.raises(error, match=message):
        est.score(make())
    with pytest.raises(ValueError, match="Columns seen in the fit are missing: 'a'"):
        est.score(frame()[["b"]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sample_weight": np.zeros(N)}, "no rows of positive weight"),
        ({"sample_weight": np.ones(N - 1)}, "sample_weight has 8,999 values, but X has 9,000 rows"),
        ({"sample_weight": np.full(N, 0.1)}, "sums to 900 over 9,000 rows"),
        ({"sample_weight": np.where(np.arange(N) == 5678, -1, 1)}, "sample_weight is negative in row 5678"),
        ({"sample_weight": "w"}, "sample_weight names a column 'w', which The Dask DataFrame does not have"),
        ({"sample_weight": da.ones(N, chunks=N)}, "sample_weight has 1 partitions, and X has 5. Cut both alike"),
        ({"sample_weight": da.ones(N, chunks=1800)}, "1,800 values for the 3,000 rows of the partition .* row 0"),
        ({"groups": np.zeros(N)}, "one label only"),
        ({"groups": pd.Series([*"ab" * 3000, None, *"ab" * 1500][:N])}, "no label in row 6000"),
        ({"groups": "g"}, "groups names a column 'g'"),
    ],
)
def test_weights_and_labels_that_are_errors(given, message):
    with pytest.raises(ValueError, match=message):
        PseudoLikelihood(3).fit(frame(), **given)


def test_other_values_at_a_second_reading():
    rng = np.random.default_rng(0)
    changing = frame().map_partitions(lambda t: t + rng.standard_normal(t.shape), meta=FRAME.iloc[:0])
    with pytest.raises(ValueError, match=r"other values in the partition that begins at row [0-9,]+ than at the first"):
        PseudoLikelihood(3).fit(changing)
