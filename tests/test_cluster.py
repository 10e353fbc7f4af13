"""Samples of Dask: the same answers as a stream of the same rows, whatever the blocks, workers and losses of them."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

from isodus import ISODUS, PseudoLikelihood, ScoreMatching, bootstrap, open_samples
from isodus.cluster import DaskSource
from isodus.datasets import paper_pair, regular_gaussian

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

N = 40_000


@pytest.fixture(scope="module")
def pair():
    return np.array(paper_pair(1).sample(N, rng=0))


@pytest.fixture(scope="module")
def client():
    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0")
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def streamed(est, X, **options):
    return est.fit(open_samples(lambda: [X]), **options).model_


def frame(X, blocks):
    return dd.from_pandas(pd.DataFrame(X, columns=["raf", "mek"]), npartitions=blocks)


@pytest.mark.parametrize("collection", [lambda X: da.from_array(X, chunks=(7_000, 1)), lambda X: frame(X, 3)])
def test_without_a_cluster(pair, collection):
    X, est = collection(pair), ISODUS(4, min_degree=2)
    theta = est.fit(X).model_.theta
    np.testing.assert_allclose(theta, streamed(ISODUS(4, min_degree=2), pair).theta, rtol=1e-10, atol=1e-13)
    plain = pair if not hasattr(X, "columns") else pd.DataFrame(pair, columns=["raf", "mek"])
    assert est.score(X) == pytest.approx(est.score(plain), rel=1e-10)
    assert est.model_.names == (("raf", "mek") if hasattr(X, "columns") else ("x0", "x1"))


@pytest.mark.parametrize("make", [ISODUS, PseudoLikelihood, ScoreMatching])
def test_on_a_cluster(client, pair, make):
    est = make(4, min_degree=2)
    expected = streamed(make(4, min_degree=2), pair)
    for X in (da.from_array(pair, chunks=(3_000, 2)), frame(pair, 4)):
        found = est.fit(X).model_
        np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(found.stderr(), expected.stderr(), rtol=1e-8)


def test_weights_of_any_kind(client, pair):
    weight = np.random.default_rng(0).integers(0, 3, N).astype(float)
    X, est = da.from_array(pair, chunks=(9_000, 2)), ScoreMatching(4, min_degree=2)
    expected = streamed(ScoreMatching(4, min_degree=2), pair, sample_weight=weight).theta
    for given in (weight, da.from_array(weight, chunks=9_000)):
        np.testing.assert_allclose(est.fit(X, sample_weight=given).model_.theta, expected, rtol=1e-10, atol=1e-13)


def test_a_penalty_is_chosen_on_a_cluster(client):
    truth = regular_gaussian(8, rng=1)
    X = np.array(truth.sample(N, rng=0))
    est = ISODUS(2, l1="auto").fit(da.from_array(X, chunks=(10_000, 8)))
    expected = ISODUS(2, l1="auto").fit(open_samples(lambda: [X]))
    assert est.path_.chosen == expected.path_.chosen
    np.testing.assert_allclose(est.model_.theta, expected.model_.theta, rtol=1e-10, atol=1e-13)
    assert set(est.model_.hyperedges()) == set(truth.hyperedges())


def test_a_bootstrap_on_a_cluster(client, pair):
    est = ScoreMatching(4, min_degree=2)
    found = bootstrap(est, da.from_array(pair, chunks=(20_000, 2)), n_draws=5, kind="multiplier")
    expected = bootstrap(est, open_samples(lambda: [pair]), n_draws=5, kind="multiplier")
    np.testing.assert_allclose(found.draws, expected.draws, rtol=1e-8, atol=1e-10)


def test_losing_a_worker_changes_nothing(client, pair, monkeypatch):
    est = PseudoLikelihood(4, min_degree=2)
    expected = streamed(PseudoLikelihood(4, min_degree=2), pair)
    original, rounds = DaskSource.reduce, []

    def reduce(self, function):
        rounds.append(len(rounds))
        if len(rounds) == 3:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return original(self, function)

    monkeypatch.setattr(DaskSource, "reduce", reduce)
    found = est.fit(da.from_array(pair, chunks=(5_000, 2))).model_
    assert len(rounds) > 3
    np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-10, atol=1e-13)


def test_what_is_refused(client, pair):
    X = da.from_array(pair, chunks=(9_000, 2))
    with pytest.raises(ValueError, match=r"x1 is nan in row 12,345 \(block 1\)"):
        ISODUS(2).fit(
            da.from_array(np.where((np.arange(2 * N) == 24_691).reshape(N, 2), np.nan, pair), chunks=(9_000, 2))
        )
    with pytest.raises(ValueError, match="sample_weight has shape"):
        ISODUS(2).fit(X, sample_weight=np.ones(5))
    with pytest.raises(ValueError, match="sample_weight has 2 blocks and X has 5"):
        ISODUS(2).fit(X, sample_weight=da.ones(N, chunks=N // 2))
    with pytest.raises(ValueError, match="two dimensions"):
        ISODUS(2).fit(X[:, 0])
    with pytest.raises(ValueError, match="device is for samples of this process"):
        ISODUS(2, device="cuda").fit(X)
    with pytest.raises(ValueError, match="groups are for samples in memory"):
        ISODUS(2).fit(X, groups=np.arange(N))
    words = dd.from_pandas(pd.DataFrame({"a": ["1", "oops"], "b": [1.0, 2.0]}), npartitions=1)
    with pytest.raises(ValueError, match="block 0: column 'a' is not numeric, such as 'oops' in row 1"):
        ISODUS(2).fit(words)
