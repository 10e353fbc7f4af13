"""After selection: one step towards the unpenalised estimate, and samples that are split."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from isodus import ISODUS, PolynomialModel, PseudoLikelihood, ScoreMatching, inference
from isodus.datasets import double_wells, regular_gaussian
from isodus.solvers.proximal import sparse_inverse


def test_a_sparse_inverse_is_near_an_inverse():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12)) * np.geomspace(1e-3, 1e3, 12)
    H = X.T @ X / 200
    scale = 1 / np.sqrt(np.diagonal(H))
    for mu in (0.0, 0.05, 0.3):
        M = sparse_inverse(H, mu, tol=1e-10)
        off = (H * scale * scale[:, None]) @ (M / scale / scale[:, None]).T - np.eye(12)
        assert np.abs(off).max() <= mu + 1e-8
        assert np.allclose(np.diagonal(off), 0, atol=1e-8)
    assert np.allclose(sparse_inverse(H, 0.0, tol=1e-12), np.linalg.inv(H), rtol=1e-6, atol=1e-6 * scale.max() ** 2)
    assert np.count_nonzero(sparse_inverse(H, 0.3)) < 20


@pytest.mark.parametrize("estimator", [PseudoLikelihood, ISODUS, ScoreMatching])
def test_intervals_of_chosen_terms_and_of_others_cover(estimator):
    """p = 20, n = 500, 10 sets: 1,900 pairs, of which 300 are edges; they are not independent within a set."""
    truth = regular_gaussian(20, rng=0)
    inside = []
    for seed in range(10):
        X = np.array(truth.sample(500, rng=seed))
        frame = estimator(2, l1="auto").fit(X).debiased(X).to_frame()
        frame["truth"] = [truth.to_dict().get(term, 0.0) for term in estimator(2).fit(X).model_.basis.terms]
        pairs = frame[frame["order"] == 2]
        covered = (pairs["ci_low"] <= pairs["truth"]) & (pairs["truth"] <= pairs["ci_high"])
        edge = pairs["truth"] != 0
        inside.append((covered[edge].mean(), covered[~edge].mean()))
    edges, others = np.array(inside).T
    for rate in (edges, others):
        assert abs(rate.mean() - 0.95) < 4 * max(rate.std(ddof=1), 0.01) / np.sqrt(10)


def test_what_a_penalty_shrank_is_undone():
    """A far too strong penalty, and the step from there: half the way back, at the least, for every coupling."""
    truth = double_wells(6)
    X = np.array(truth.sample(20_000, rng=0))
    fitted = ISODUS(4, l1=0.2, debias=False).fit(X)
    want = {term: v for term, v in ISODUS(4).fit(X).model_.to_dict("standardized").items() if term in truth.to_dict()}
    before, after = fitted.model_.to_dict("standardized"), fitted.debiased(X).to_dict("standardized")
    for term in [t for t in want if len(set(t)) == 2]:
        assert abs(after[term] - want[term]) < 0.5 * abs(before.get(term, 0.0) - want[term])


def test_a_debiased_model_is_kept_in_a_file(tmp_path):
    X = np.array(regular_gaussian(20, rng=0).sample(300, rng=0))
    model = PseudoLikelihood(2, l1="auto").fit(X).debiased(X)
    assert len(model.basis) == 230
    assert "de-biased estimates of 230 candidate terms" in model.settings["notes"][0]
    model.save(tmp_path / "m.json")
    assert PolynomialModel.load(tmp_path / "m.json").interactions().equals(model.interactions())


def test_nothing_is_debiased_without_a_penalty():
    X = np.array(regular_gaussian(4, rng=0).sample(300, rng=0))
    with pytest.raises(ValueError, match="nothing was penalised"):
        PseudoLikelihood(2).fit(X).debiased(X)


@pytest.mark.parametrize("estimator", [PseudoLikelihood, ISODUS, ScoreMatching])
def test_split_samples_choose_on_one_half_and_fit_on_the_other(estimator):
    truth = regular_gaussian(20, rng=0)
    X = np.array(truth.sample(2000, rng=0))
    whole, split = (estimator(2, l1="auto", debias=how).fit(X).model_ for how in (True, "split"))
    assert split.n_samples == 1000
    both = set(whole.hyperedges()) & set(split.hyperedges())
    assert len(both) >= 28
    ratio = np.array(
        [
            split.stderr()[split.basis.terms.index(t)] / whole.stderr()[whole.basis.terms.index(t)]
            for t in split.basis.terms
            if len(set(t)) == 2 and t in whole.basis.terms
        ]
    )
    assert ratio.mean() == pytest.approx(np.sqrt(2), rel=0.1)


def test_split_halves_keep_groups_and_series_together():
    truth = regular_gaussian(4, rng=0)
    X = np.repeat(np.array(truth.sample(400, rng=0)), 2, axis=0)
    groups = np.repeat(np.arange(400), 2)
    model = PseudoLikelihood(2, l1=0.05, debias="split").fit(X, groups=groups).model_
    assert model.n_samples == 400  # whole groups
    series = PseudoLikelihood(2, l1=0.05, debias="split", dependence=1).fit(X).model_
    second = PseudoLikelihood(basis=series.basis).fit(X[400:]).model_.to_dict()
    assert series.to_dict() == pytest.approx(second, rel=1e-6, abs=1e-9)


def test_too_few_samples_cannot_be_split():
    with pytest.raises(ValueError, match="cannot be split"):
        PseudoLikelihood(2, l1=0.1, debias="split").fit(np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 2.5]]))


def test_debiased_errors_know_of_groups_and_series():
    X = np.array(regular_gaussian(6, rng=0).sample(1000, rng=0))
    far = dict(l1=0.3, debias=False)  # where slopes are not zero on average
    alone = PseudoLikelihood(2, **far).fit(X).debiased(X).stderr()
    random = np.random.default_rng(0).integers(50, size=1000)
    grouped = PseudoLikelihood(2, **far).fit(X, groups=random).debiased(X, groups=random)
    assert np.mean((grouped.stderr() / alone) ** 2) == pytest.approx(1, abs=0.2)
    assert grouped.settings["error_df"] == 49
    series = PseudoLikelihood(2, **far, dependence="auto").fit(X).debiased(X)
    assert np.mean((series.stderr() / alone) ** 2) == pytest.approx(1, abs=0.2)
    copies, labels = np.tile(X, (3, 1)), np.tile(np.arange(1000), 3)
    est = PseudoLikelihood(2, **far).fit(copies, groups=labels)
    assert np.allclose(est.debiased(copies, groups=labels).stderr(), alone, rtol=0.1)  # μ is for three times as many


def test_debiased_is_for_the_samples_that_were_fitted(monkeypatch):
    X = pd.DataFrame(np.array(regular_gaussian(4, rng=0).sample(500, rng=0)), columns=list("abcd"))
    est = PseudoLikelihood(2, l1=0.1).fit(X)
    for other in (X.to_numpy(), X[["a", "b", "c"]], 2 * X, X[:250] + 1):
        with pytest.raises(ValueError, match="not the samples that were fitted"):
            est.debiased(other)
    assert list(est.feature_names_in_) == list("abcd")
    assert est.debiased(X).names == tuple("abcd")
    monkeypatch.setattr(inference, "MOST_PARAMETERS", 5)
    with pytest.raises(ValueError, match="errors are known for independent samples only"):
        est.debiased(X, groups=np.arange(500) // 5)


@pytest.mark.parametrize("debias", [True, False, "split"])
def test_debiased_wants_the_groups_and_the_weights_of_the_fit(debias):
    X, groups = np.array(regular_gaussian(4, rng=0).sample(400, rng=0)), np.arange(400) // 8
    est = PseudoLikelihood(2, l1=0.05, debias=debias)
    plain = clone(est).fit(X).debiased(X)
    with pytest.raises(ValueError, match=r"the fit had groups: give groups=… here too"):
        est.fit(X, groups=groups).debiased(X)
    assert est.debiased(X, groups=groups).settings["error_df"] == 49
    with pytest.raises(ValueError, match=r"the fit had sample_weight: give sample_weight=… here too"):
        est.fit(X, sample_weight=np.full(400, 2)).debiased(X)
    np.testing.assert_allclose(est.debiased(X, np.full(400, 2)).n_samples, 800)
    with pytest.raises(ValueError, match=r"the fit had sample_weight and groups: give sample_weight=… and groups=…"):
        est.fit(X, sample_weight=np.full(400, 2), groups=groups).debiased(X)
    np.testing.assert_array_equal(est.fit(X).debiased(X).stderr(), plain.stderr())  # an earlier fit is forgotten


def test_groups_are_not_cut_by_a_split():
    X, groups = np.array(regular_gaussian(4, rng=0).sample(400, rng=0)), np.arange(400) // 8
    model = PseudoLikelihood(2, l1=0.05, debias="split").fit(X, groups=groups).model_
    assert model.settings["error_df"] == 24
    with pytest.raises(ValueError, match="3 groups cannot be split"):
        PseudoLikelihood(2, l1=0.05, debias="split").fit(X, groups=np.arange(400) % 3)
