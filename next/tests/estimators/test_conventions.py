"""scikit-learn's conventions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from isodus import ISODUS, PowerReference, PseudoLikelihood, Ridge, ScoreMatching, TiltedReference, datasets

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


RIDGE = "it has fewer rows than terms and no ridge: refused by name"
WITHOUT_A_RIDGE = dict.fromkeys(
    ["check_n_features_in_after_fitting", "check_dtype_object", "check_estimators_nan_inf"], RIDGE
)


def expected(estimator):
    ridge = {} if getattr(estimator, "reference", None) is None else WITHOUT_A_RIDGE
    return EXPECTED | ridge | (ABOVE_DEGREE_TWO if estimator.degree > 2 else {})


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        PseudoLikelihood(n_jobs=1),
        PseudoLikelihood(scale="cdf", n_jobs=1),
        PseudoLikelihood(2, n_jobs=1),
        ISODUS(n_jobs=1),
        ISODUS(reference=PowerReference(1.0), n_jobs=1),
        ScoreMatching(n_jobs=1),
    ],
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


OTHERS = [
    ISODUS(4, n_jobs=1),
    ISODUS(4, reference=PowerReference(nu=0.5), consensus="mean", n_jobs=1),
    ISODUS(4, reference=TiltedReference(n_tilts=3), n_jobs=1),
    ScoreMatching(4, n_jobs=1),
    PseudoLikelihood(4, consensus="geometric", n_jobs=1),
]


@pytest.mark.filterwarnings("ignore:Held out")
@pytest.mark.parametrize("est", OTHERS, ids=str)
def test_clone_of_other_estimators(est, pair):
    assert str(clone(est)) == str(est)
    assert clone(est).get_params(deep=False).keys() == est.get_params(deep=False).keys()
    assert not hasattr(clone(est.fit(pair)), "model_")
    assert eval(str(est)).get_params().keys() == est.get_params().keys()


@pytest.mark.filterwarnings("ignore:Held out")
def test_parameters_of_a_reference(pair):
    est = ISODUS(4, reference=PowerReference(), n_jobs=1)
    assert est.get_params()["reference__nu"] == "auto"
    est.set_params(reference__nu=0.5, reference__delta=1.0, consensus="mean")
    assert est.fit(pair).nu_.tolist() == [0.5, 0.5]
    assert est.reference_.delta == 1.0
    assert set(clone(est).get_params()) == set(est.get_params())
    search = GridSearchCV(ISODUS(4, reference=PowerReference(), n_jobs=1), {"reference__nu": [0.05, 5.0]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert search.fit(pair).best_params_["reference__nu"] == 0.05


@pytest.mark.filterwarnings("ignore:Held out")
def test_a_fit_leaves_nothing_of_the_one_before(pair):
    est = ISODUS(4, reference=PowerReference(0.5), n_jobs=1).fit(pair)
    assert {"nu_", "effective_samples_"} <= set(vars(est))
    est.set_params(reference=None).fit(pair)
    assert not {"nu_", "effective_samples_", "precision_"} & set(vars(est))
    est.set_params(degree=2).fit(pair)
    assert est.precision_.shape == (2, 2)


@pytest.mark.filterwarnings("ignore:Held out")
@pytest.mark.parametrize("est", [PseudoLikelihood(4), *OTHERS], ids=str)
def test_a_pickle_scores_the_same(est, pair):
    est = clone(est).fit(pair)
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
