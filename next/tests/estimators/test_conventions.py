"""scikit-learn's conventions."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from isodus import PseudoLikelihood, Ridge, datasets

FEW = "its columns have two or three values, which are no density on the line: refused by name"
EXPECTED = {
    "check_sample_weights_shape": FEW,
    "check_sample_weights_not_overwritten": FEW,
    "check_sample_weight_equivalence_on_dense_data": "it has 27 rows of 30 columns: refused without a user's ridge",
}
ABOVE_DEGREE_TWO = {
    "check_sample_weights_pandas_series": FEW,
    "check_sample_weights_not_an_array": FEW,
    "check_estimators_dtypes": "20 rows of a few whole values, whose products depend on one another: refused by name",
}


def expected(estimator):
    return EXPECTED | (ABOVE_DEGREE_TWO if estimator.degree > 2 else {})


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [PseudoLikelihood(n_jobs=1), PseudoLikelihood(scale="cdf", n_jobs=1), PseudoLikelihood(2, n_jobs=1)],
    expected_failed_checks=expected,
)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def pair():
    return datasets.paper_pair(2000, seed=1)


def test_clone_and_parameters(pair):
    est = PseudoLikelihood(4, penalty=Ridge(2.0), max_order=2)
    assert clone(est).get_params() | {"penalty": None} == est.get_params() | {"penalty": None}
    assert est.get_params()["penalty__strength"] == 2.0
    assert est.set_params(penalty__strength=3.0).penalty.strength == 3.0
    fitted = est.fit(pair)
    assert not hasattr(clone(fitted), "model_")


def test_a_pickle_scores_the_same(pair):
    est = PseudoLikelihood(4).fit(pair)
    again = pickle.loads(pickle.dumps(est))
    assert_array_equal(again.score_samples(pair), est.score_samples(pair))
    assert_array_equal(again.model_.theta, est.model_.theta)


def test_in_a_pipeline_and_a_grid_search(pair):
    search = GridSearchCV(
        make_pipeline(StandardScaler(), PseudoLikelihood(penalty=Ridge(1.0), n_jobs=1)),
        {"pseudolikelihood__degree": [2, 4], "pseudolikelihood__penalty__strength": [0.1, 10.0]},
        cv=3,
    ).fit(pair)
    assert search.best_params_["pseudolikelihood__degree"] == 4


def test_score_is_the_mean_of_score_samples_in_the_units_of_x(pair):
    est, scaled = PseudoLikelihood(4).fit(pair), PseudoLikelihood(4).fit(1000 * pair)
    assert est.score(pair) == pytest.approx(est.score_samples(pair).mean(), rel=1e-12)
    assert scaled.score(1000 * pair) == pytest.approx(est.score(pair) - np.log(1000), abs=1e-8)


def test_score_is_the_conditional_density(pair):
    est = PseudoLikelihood(4).fit(pair)
    rows = pair[:50]
    logs = [est.model_.conditional(i, np.delete(rows, i, axis=1)).logpdf(rows[:, i]) for i in range(2)]
    assert_allclose(est.score_samples(rows), np.mean(logs, axis=0), rtol=1e-10)


def test_frames_are_matched_by_name(pair):
    frame = pd.DataFrame(pair, columns=["b", "a"])
    est = PseudoLikelihood(4).fit(frame)
    assert est.feature_names_in_.tolist() == ["b", "a"]
    assert_array_equal(est.score_samples(frame[["a", "b"]]), est.score_samples(frame))
    with pytest.raises(ValueError, match="missing: 'a'"):
        est.score_samples(frame[["b"]])


def test_a_row_off_its_axis_scores_minus_infinity():
    X = np.random.default_rng(0).exponential(size=(500, 2))
    est = PseudoLikelihood(2, support="positive").fit(X)
    scores = est.score_samples([[1.0, 1.0], [-1.0, 1.0]])
    assert np.isfinite(scores[0])
    assert scores[1] == -np.inf


def test_the_objective_is_public(pair):
    est = PseudoLikelihood(4, penalty=None, tol=1e-8).fit(pair)
    f = est.objective(pair)
    at = f(est.model_.tau)
    base = np.mean([axis.log_base(x).mean() for axis, x in zip(est.model_.terms.axes, pair.T, strict=True)])
    assert est.score(pair) == pytest.approx(base - at.value / 2, rel=1e-12)
    assert np.abs(at.gradient).max() < 1e-9
    assert PseudoLikelihood(4).objective(pair)(0 * est.model_.tau).value > at.value


def test_a_huge_seed_and_a_generator(pair):
    a = PseudoLikelihood(4, random_state=2**200).fit(pair)
    b = PseudoLikelihood(4, random_state=2**200).fit(pair)
    assert_array_equal(a.model_.theta, b.model_.theta)
    PseudoLikelihood(4, random_state=np.random.default_rng(0)).fit(pair)


def test_an_interrupt_keeps_the_last_iterate(pair, monkeypatch):
    from isodus.fit.objective import Objective

    plain, calls = Objective.__call__, []

    def interrupted(self, tau, order=2):
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return plain(self, tau, order)

    monkeypatch.setattr(Objective, "__call__", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        est = PseudoLikelihood(4, n_jobs=1).fit(pair)
    assert est.status_ == "interrupted"
    assert np.isfinite(est.model_.theta).all()


@pytest.mark.parametrize("strength", ["1e+08, quadratic", "0.1, quadratic"])
def test_an_interrupted_path_keeps_what_it_found(pair, strength):
    """The first is before any strength has been scored."""

    def stop(label, done, total):
        if f"strength {strength}" in label:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        est = PseudoLikelihood(4, basis=[(0,) * 4, (1,) * 4, (0, 1)], penalty=Ridge("cv"), progress=stop).fit(pair)
    assert est.status_ == "interrupted"
    assert np.isfinite(est.model_.theta).all()
    strengths = [] if est.path_ is None else [point.strength for point in est.path_.points]
    assert strengths == ([] if strength.startswith("1e") else [1e8, 1e5, 1e4, 1e3, 100.0, 10.0, 1.0])
    est.model_.summary()


def test_progress_is_reported(pair):
    heard = []
    PseudoLikelihood(4, progress=lambda label, done, total: heard.append(label)).fit(pair)
    assert any("all rows" in label for label in heard)
