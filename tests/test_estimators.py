import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from cases import NAMESPACES, OTHERS, PAIR, drawn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from isodus import ISODUS, MonomialBasis, PseudoLikelihood, ScoreMatching, open_samples
from isodus.datasets import gaussian_10, paper_1d, paper_4d, paper_pair
from isodus.functions import LogPowers
from isodus.objective import MANY
from isodus.samples import ArraySamples

PAPER = dict(nu=2.0, delta=2.0, center=False, scale=False, refine=0, consensus="geometric", integrable="warn")
SCREENING = dict(refine=0, nu=0.03, consensus="mean", integrable="warn")
FEW_ROWS = "fits more parameters at a variable than there are rows, which is refused"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": FEW_ROWS,
    "check_sample_weight_equivalence": FEW_ROWS,
}


@parametrize_with_checks(
    [ISODUS(degree=2), ISODUS(degree=2, l1="auto")],
    expected_failed_checks=lambda estimator: {} if estimator.l1 else EXPECTED,  # with a penalty rows may be few
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.fixture(scope="module")
def pair():
    return drawn(PAIR, 20_000)


@pytest.fixture(scope="module")
def skewed():
    """Three coupled, non-Gaussian variables with means and spreads of their own."""
    X = paper_4d().sample(20_000, rng=1)[:, :3]
    return X * [3.0, 0.02, 1.0] + [5.0, -1.0, 100.0]


def theta(estimator, units="standardized"):
    return np.array(list(estimator.model_.to_dict(units).values()))


@pytest.mark.parametrize(
    ("truth", "options"),
    [
        (paper_1d(), dict(min_degree=2) | PAPER),
        (paper_1d(), {}),
        (paper_pair(2), dict(min_degree=2) | PAPER),
        (paper_pair(2), dict(min_degree=2)),
        (paper_pair(2), dict(objective="plain", refine=0, nu=0.03)),
        (paper_4d(), dict(min_degree=2, max_order=None) | PAPER),
        (gaussian_10(0), dict(degree=2, min_degree=2) | PAPER),
        (gaussian_10(0), dict(degree=2)),
    ],
)
def test_error_halves_from_1e4_to_4e4_samples(truth, options):
    """Mean absolute error over 10 sets (40 of the one-variable model, whose few errors go together);
    1/√n gives a factor of 2, its spread here is about 0.2.
    """
    true = truth.to_dict()
    n_sets = 40 if truth.basis.n_variables == 1 else 10

    def error(X):
        found = ISODUS(**options).fit(X).model_.to_dict()
        return np.mean([abs(value - true.get(term, 0.0)) for term, value in found.items()])

    X = truth.sample(50_000 * n_sets, rng=0)
    small = np.mean([error(part) for part in np.split(X[: 10_000 * n_sets], n_sets)])
    large = np.mean([error(part) for part in np.split(X[10_000 * n_sets :], n_sets)])
    assert 1.6 < small / large < 2.6
    assert large < 0.25


@pytest.mark.parametrize("options", [{}, dict(refine=0)])
@pytest.mark.parametrize("c", [1e-6, 1e-3, 1e3, 1e6])
def test_units_of_the_data_do_not_matter(skewed, c, options):
    a, b = ISODUS(**options).fit(skewed), ISODUS(**options).fit(c * skewed)
    assert np.allclose(theta(a), theta(b), rtol=1e-8, atol=1e-12)
    degrees = a.model_.basis.degrees.astype(float)
    assert np.allclose(theta(a, "raw"), theta(b, "raw") * c**degrees, rtol=1e-8, atol=1e-8 * np.abs(theta(a, "raw")))


@pytest.mark.parametrize("options", [{}, dict(refine=0)])
@pytest.mark.parametrize("shift", [1.0, 1e2, 1e4])
def test_origin_of_the_data_does_not_matter(skewed, shift, options):
    t = shift * skewed.std(axis=0) * [1, -1, 1]
    a, b = ISODUS(**options).fit(skewed), ISODUS(**options).fit(skewed + t)
    assert np.allclose(theta(a), theta(b), rtol=1e-8, atol=1e-8)
    assert np.allclose(b.location_, a.location_ + t, rtol=1e-12)
    assert np.allclose(a.model_.score_function(skewed[:9]), b.model_.score_function(skewed[:9] + t), rtol=1e-6)


@pytest.mark.parametrize(("options", "atol"), [(dict(refine=0), 0.3), ({}, 0.02)])
def test_without_centering_a_closed_basis_gives_the_same_model_class(pair, options, atol):
    """center=False moves the regularizing density: both are consistent, their fits agree statistically. Of a
    refinement it moves the pilot only: the fits agree to a tenth of a standard error, of which the largest is 0.18.
    """
    a, b = ISODUS(**options).fit(pair), ISODUS(center=False, **options).fit(pair)
    assert np.all(b.location_ == 0)
    assert np.allclose(theta(a, "raw"), theta(b, "raw"), atol=atol)


@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_a_basis_without_linear_terms_keeps_its_origin(offset):
    truth = paper_pair(1)
    X = truth.sample(40_000, rng=0) + offset
    estimator = ISODUS(min_degree=2).fit(X)
    assert np.all(estimator.location_ == 0)
    if offset == 0:
        true = truth.to_dict()
        assert np.mean([abs(v - true[k]) for k, v in estimator.model_.to_dict().items()]) < 0.15


def test_permuting_variables_permutes_the_answer(skewed):
    order = [2, 0, 1]
    a, b = (ISODUS(max_order=None, tol=1e-11).fit(X) for X in (skewed, skewed[:, order]))
    x, y = a.model_.to_dict("standardized"), b.model_.to_dict("standardized")
    for term, value in y.items():
        assert value == pytest.approx(x[tuple(sorted(order[v] for v in term))], rel=1e-7, abs=1e-9)


def distance(a, b):
    """Between two estimates: root mean square over terms, in standard errors of the first."""
    return np.sqrt(np.mean(((theta(a) - theta(b)) / a.model_.stderr("standardized")) ** 2))


def test_permuting_samples_and_seeds_change_nothing(pair):
    shuffled = np.random.default_rng(0).permutation(pair)
    exact = SCREENING | dict(tol=1e-11)
    a = theta(ISODUS(**exact).fit(pair))
    assert np.allclose(a, theta(ISODUS(**exact).fit(shuffled)), rtol=1e-8, atol=1e-10)
    assert np.allclose(a, theta(ISODUS(**exact, random_state=7).fit(pair)), rtol=1e-8, atol=1e-10)
    assert np.allclose(a, theta(ISODUS(**SCREENING).fit(pair)), rtol=0, atol=1e-7)  # what tol=1e-8 leaves
    refined = ISODUS().fit(pair)
    assert distance(refined, ISODUS().fit(shuffled)) < 0.1
    assert distance(refined, ISODUS(random_state=7).fit(pair)) < 0.1
    assert np.array_equal(theta(refined), theta(ISODUS().fit(pair)))


@pytest.mark.parametrize("n", [5000, 20_000])
def test_weights_count_repetitions(pair, n):
    X = pair[:n]
    counts = np.random.default_rng(0).integers(0, 3, n)
    exact = SCREENING | dict(tol=1e-11)
    a = ISODUS(**exact).fit(X, sample_weight=counts)
    b = ISODUS(**exact).fit(np.repeat(X, counts, axis=0))
    assert a.model_.n_samples == b.model_.n_samples == counts.sum()
    assert np.allclose(theta(a), theta(b), rtol=1e-8, atol=1e-10)
    assert distance(ISODUS().fit(X, sample_weight=counts), ISODUS().fit(np.repeat(X, counts, axis=0))) < 0.1
    for options in (SCREENING, {}):
        ones = ISODUS(**options).fit(X, sample_weight=np.ones(n))
        assert np.array_equal(theta(ISODUS(**options).fit(X)), theta(ones))


def test_plain_and_log_objectives_have_one_minimiser(pair):
    exact = SCREENING | dict(tol=1e-11)
    a, b = (ISODUS(**exact, objective=objective).fit(pair) for objective in ("log", "plain"))
    assert np.allclose(theta(a), theta(b), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("options", [dict(degree=6, max_order=2, refine=0, nu=0.03), dict(refine=0), {}])
def test_threads_change_nothing(options):
    X = paper_4d().sample(20_000, rng=1)
    a, b = (ISODUS(**dict(max_order=None) | options, n_jobs=n_jobs).fit(X) for n_jobs in (1, 3))
    assert len(a.model_.basis.local(0).terms) >= MANY
    assert np.array_equal(theta(a), theta(b))
    assert np.array_equal(a.model_.covariance, b.model_.covariance, equal_nan=True)


def test_nu_and_delta_per_variable(pair):
    both = ISODUS(refine=0, nu=[0.1, 0.5], delta=[2.0, 1.0]).fit(pair)
    first, second = ISODUS(refine=0, nu=0.1, delta=2.0).fit(pair), ISODUS(refine=0, nu=0.5, delta=1.0).fit(pair)
    get = lambda e, term: e.model_.to_dict("standardized")[term]
    assert get(both, (0, 0)) == pytest.approx(get(first, (0, 0)), rel=1e-8)
    assert get(both, (1, 1)) == pytest.approx(get(second, (1, 1)), rel=1e-8)
    assert get(both, (1, 1)) != pytest.approx(get(first, (1, 1)), rel=1e-4)
    assert np.array_equal(both.nu_, [0.1, 0.5])


def test_nu_auto_is_of_a_grid_in_scaled_variables(pair):
    """Twenty-one values from 3.2 down to 0.003; as a number it gives the same, and in raw units ν/d^(s+δ)."""
    auto = ISODUS(refine=0).fit(pair)
    assert np.all(np.abs(np.log(auto.nu_[:, None] / np.geomspace(3.2, 0.003, 21))).min(axis=1) < 1e-9)
    assert np.allclose(theta(auto), theta(ISODUS(refine=0, nu=auto.nu_).fit(pair)), rtol=1e-9, atol=1e-11)
    raw = ISODUS(refine=0, scale=False).fit(pair)
    assert np.allclose(raw.nu_, auto.nu_ / auto.scale_**6, rtol=1e-9)
    assert np.allclose(theta(raw, "raw"), theta(auto, "raw"), rtol=1e-5, atol=1e-6)
    refined = ISODUS().fit(pair)  # of a pilot it does not depend on the data
    assert np.allclose(refined.nu_, 1.8**-6, rtol=1e-12)
    assert np.array_equal(theta(refined), theta(ISODUS(nu=1.8**-6.0).fit(pair)))


@pytest.mark.parametrize("namespace", OTHERS)
@pytest.mark.parametrize("options", [dict(degree=2), dict(l1="ebic", l1_path=[1.0, 0.5, 0.2]), dict(refine=0)])
def test_arrays_of_another_library_with_a_penalty(pair, options, namespace):
    X = pair[:1000]
    a, b = (ISODUS(**{"l1": 0.1} | options).fit(Y) for Y in (X, NAMESPACES[namespace](X)))
    assert np.allclose(theta(a), theta(b), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("namespace", OTHERS)
def test_arrays_of_another_library(pair, namespace):
    X = NAMESPACES[namespace](pair[:4000])
    weight = np.random.default_rng(0).random(4000) + 0.5
    a = ISODUS().fit(pair[:4000], sample_weight=weight)
    b = ISODUS().fit(X, sample_weight=NAMESPACES[namespace](weight))
    assert np.allclose(theta(a), theta(b), rtol=1e-9, atol=1e-11)
    assert b.score(X) == pytest.approx(a.score(pair[:4000]), rel=1e-9)
    named = ISODUS().fit(pd.DataFrame(pair[:500], columns=["a", "b"])).fit(X)
    assert named.model_.names == ("x0", "x1")


@pytest.mark.parametrize("estimator", [ISODUS, PseudoLikelihood, ScoreMatching])
def test_a_device_that_is_not_there(pair, estimator, monkeypatch):
    X = pair[:300]
    assert np.array_equal(theta(estimator(device="cpu").fit(X)), theta(estimator().fit(X)))
    with pytest.raises(ValueError, match="device=3|device must be None"):
        estimator(device=3).fit(X)
    monkeypatch.setitem(sys.modules, "torch", None)  # as if they were not installed
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ValueError, match="needs PyTorch or CuPy, and neither is installed"):
        estimator(device="cuda").fit(X)


def test_devices_of_torch(pair):
    torch = pytest.importorskip("torch")
    X = torch.asarray(pair[:300])
    expected = theta(ISODUS().fit(pair[:300]))
    assert np.array_equal(theta(ISODUS(device="cpu").fit(X)), expected)  # on the host it is NumPy's
    with pytest.raises(ValueError, match="device='nowhere' cannot be used"):
        ISODUS(device="nowhere").fit(X)
    with pytest.raises(ValueError, match="device='nowhere' cannot be used"):
        ISODUS(device="nowhere").fit(pair[:300])


def test_arrays_of_jax(pair):
    jax = pytest.importorskip("jax")
    here = jax.devices("cpu")[0]  # on another device sums are rounded otherwise
    with pytest.warns(UserWarning, match="JAX rounds all numbers"):
        single = ISODUS().fit(jax.device_put(pair[:1000], here))
    with jax.enable_x64(True):
        X = jax.device_put(pair[:1000], here)
        double = ISODUS().fit(X)
    expected = ISODUS().fit(pair[:1000])
    assert np.array_equal(theta(double), theta(expected))
    assert double.score(X) == expected.score(pair[:1000])
    assert np.allclose(theta(single), theta(expected), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda X: X[::-1], lambda X: X.astype(np.float32), lambda X: X.tolist()]
)
def test_layouts_and_types(pair, change):
    X = pair[:3000].astype(np.float32).astype(float)
    X.flags.writeable = False
    before = X.copy()
    expected = theta(ISODUS().fit(X))
    assert np.array_equal(X, before)
    assert np.allclose(expected, theta(ISODUS().fit(change(X))), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"refine": 0}, {"l1": 0.05}, {"groups": True}, {"dependence": 3}])
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_single_precision_stays_in_memory_and_changes_nothing(pair, namespace, options):
    """Blocks are made double before anything is computed, so that the answer is that of the same numbers in double."""
    X = pair[:3000].astype(np.float32)
    single = NAMESPACES[namespace](X)
    seen, own = [], dict(options)
    groups = {"groups": np.arange(3000) // 30} if own.pop("groups", False) else {}
    est = ISODUS(**own)
    original = ArraySamples.__init__

    def init(self, X, *args, **kwargs):
        seen.append(str(X.dtype))
        original(self, X, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArraySamples, "__init__", init)
        found = est.fit(single, **groups)
    assert "float32" in seen[0]
    expected = ISODUS(**own).fit(NAMESPACES[namespace](X.astype(np.float64)), **groups)
    assert np.array_equal(theta(found), theta(expected))
    np.testing.assert_array_equal(found.model_.stderr(), expected.model_.stderr())


def test_names_go_in_and_out(pair):
    frame = pd.DataFrame(pair, columns=["Raf", "Mek"])
    estimator = ISODUS().fit(frame)
    assert estimator.feature_names_in_.tolist() == ["Raf", "Mek"]
    assert estimator.model_.names == ("Raf", "Mek")
    assert "Raf^2*Mek" in estimator.model_.to_frame()["term"].tolist()
    assert set(estimator.model_.graph()) == {"Raf", "Mek"}


NOT_STRINGS = {
    "integers": [2, 1, 0],
    "mixed": ["a", 1, 2.5],
    "tuples": pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", 1)]),
}


@pytest.mark.parametrize("columns", NOT_STRINGS.values(), ids=NOT_STRINGS)
def test_names_that_are_no_strings_are_those_of_the_fit(columns):
    X = np.random.default_rng(1).normal(size=(500, 3)) * [1, 5, 20]
    frame = pd.DataFrame(X, columns=columns)
    names, turned = list(frame.columns), frame[list(frame.columns)[::-1]]
    est = ISODUS(2).fit(frame)
    assert est.model_.names == tuple(map(str, names))
    assert est.score(frame) == est.score(X) == est.score(frame.set_axis(list(map(str, names)), axis=1))
    np.testing.assert_allclose(est.model_.logpdf(turned), est.model_.logpdf(frame))
    strings = ISODUS(2).fit(frame.set_axis(list(map(str, names)), axis=1))
    assert strings.score(frame) == est.score(frame)
    for fitted in (est, strings):
        for given in (turned, frame.set_axis(["p", "q", "r"], axis=1), turned.set_axis(range(5, 8), axis=1)):
            with pytest.raises(ValueError, match=r"feature names should match|unseen at fit time"):
                fitted.score(given)
    assert np.isfinite(ISODUS(2).fit(X).score(frame))  # of a fit without names, columns are by position


@pytest.mark.parametrize("columns", NOT_STRINGS.values(), ids=NOT_STRINGS)
def test_a_key_is_the_name_of_a_column_before_it_is_a_position(columns):
    frame = pd.DataFrame(np.random.default_rng(1).exponential(size=(500, 3)), columns=columns)
    first, _, last = frame.columns
    for name in (last, str(last)):
        spaces = ISODUS(2, support={name: "positive"}).fit(frame).model_.basis.spaces
        assert [space.support.low for space in spaces] == [-np.inf, -np.inf, 0.0]
    spaces = ISODUS(2, support="positive", functions={last: LogPowers()}).fit(frame).model_.basis.spaces
    assert [space.functions is None for space in spaces] == [True, True, False]
    pair = tuple(sorted(map(str, (first, last))))
    kept = PseudoLikelihood(2, l1=10.0, include=[(first, last)]).fit(frame)
    costly = PseudoLikelihood(2, l1=0.01, l1_weights={(first, last): 1e6}).fit(frame)
    left = PseudoLikelihood(2, l1=1e-6, exclude=[(first, last)]).fit(frame)
    edges = [{tuple(sorted(edge)) for edge in est.model_.hyperedges()} for est in (kept, costly, left)]
    assert edges[0] == {pair}
    assert pair not in edges[1]
    assert len(edges[2] - {pair}) == len(edges[2]) == 2
    by_position = PseudoLikelihood(2, l1=10.0, include=[(0, 2)]).fit(frame.set_axis(list("abc"), axis=1))
    assert set(by_position.model_.hyperedges()) == {("a", "c")}


def test_frames_of_other_libraries_have_names_too(pair):
    frame = pd.DataFrame(pair[:300], columns=["Raf", "Mek"])
    table = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    est = ISODUS(2, support={"Raf": (-100, 100)}).fit(table)
    assert est.model_.names == ("Raf", "Mek")
    assert est.score(table) == est.score(frame)


def test_names_that_are_one_as_strings_and_keys_of_one_column_are_refused():
    frame = pd.DataFrame(np.random.default_rng(1).exponential(size=(50, 2)), columns=[1, 0])
    with pytest.raises(ValueError, match="duplicate column names: '1'"):
        ISODUS(2).fit(frame.set_axis([1, "1"], axis=1))
    with pytest.raises(ValueError, match="support names the column 0 more than once"):
        ISODUS(2, support={0: "positive", "0": "positive"}).fit(frame)
    with pytest.raises(ValueError, match="support names True; the columns are 1, 0"):
        ISODUS(2, support={True: "positive"}).fit(frame)


def test_clone_pipeline_and_grid_search(pair):
    estimator = clone(ISODUS(degree=2, nu=0.3, basis=None))
    assert estimator.get_params()["nu"] == 0.3
    basis = MonomialBasis(2, 4, min_degree=2)
    assert clone(ISODUS(basis=basis)).basis == basis
    pipeline = make_pipeline(FunctionTransformer(np.arcsinh), ISODUS(degree=2)).fit(pair[:2000])
    assert np.isfinite(pipeline.score(pair[2000:4000]))
    search = GridSearchCV(ISODUS(), {"degree": [2, 4]}, cv=3).fit(pair[:6000])
    assert search.best_params_ == {"degree": 4}  # the truth is quartic
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_score_is_the_conditional_gaussian_density_for_degree_2():
    truth = gaussian_10(1)
    X, held_out = truth.sample(5000, rng=0), truth.sample(500, rng=1)
    estimator = ISODUS(degree=2).fit(X)
    precision = estimator.precision_
    linear = np.array([estimator.model_.to_dict()[(i,)] for i in range(10)])
    variance = 1 / np.diag(precision)
    rest = held_out @ precision - held_out * np.diag(precision)
    mean = -(rest + linear) * variance
    log_density = -0.5 * np.log(2 * np.pi * variance) - (held_out - mean) ** 2 / (2 * variance)
    assert np.allclose(estimator.score_samples(held_out), log_density.mean(axis=1), rtol=1e-9)
    assert estimator.score(held_out) == pytest.approx(log_density.mean(), rel=1e-9)


def test_precision_of_a_gaussian():
    truth = gaussian_10(1)
    estimator = ISODUS(degree=2).fit(truth.sample(50_000, rng=0))
    assert np.abs(estimator.precision_ - truth.precision()).mean() < 0.05
    with pytest.raises(AttributeError, match="degree 2 only"):
        _ = ISODUS().fit(paper_1d().sample(1000, rng=0)).precision_


def test_before_fit():
    with pytest.raises(NotFittedError):
        ISODUS().sample(3)
    with pytest.raises(NotFittedError):
        ISODUS().score_samples(np.zeros((2, 2)))


def test_what_fit_leaves_behind(pair):
    estimator = ISODUS().fit(pair)
    assert estimator.status_ == ["converged", "converged"]
    assert estimator.n_iter_.shape == estimator.effective_samples_.shape == (2,)
    assert np.all(estimator.effective_samples_ > 1000)
    assert estimator.model_.settings["nu"] == "auto"
    assert estimator.model_.n_samples == len(pair)
    assert estimator.sample(5, rng=0).shape == (5, 2)


# what cannot be trusted says so


def test_collapsed_weights_are_reported():
    X = np.random.default_rng(0).standard_t(3, (300, 2))
    frame = pd.DataFrame(X, columns=["calm", "wild"])
    with (
        pytest.warns(UserWarning, match="heavier"),
        pytest.warns(
            ConvergenceWarning,
            match="wild: the screening weights collapsed: effective sample size .* for 10 param.*Raise nu .here 1e-06.",
        ),
    ):
        estimator = ISODUS(**SCREENING | dict(nu=1e-6)).fit(frame)
    assert "weights collapsed" in estimator.status_


@pytest.mark.parametrize(("options", "who"), [(SCREENING, "x0"), ({}, "all variables jointly")])
def test_iteration_limit_is_reported(pair, options, who):
    with pytest.warns(ConvergenceWarning, match=f"{who}: no convergence in 1 iterations.*Raise max_iter"):
        estimator = ISODUS(max_iter=1, **options).fit(pair[:500])
    assert estimator.status_ == ["iteration limit"] * 2


@pytest.mark.parametrize(("options", "who"), [(SCREENING, "x0"), ({}, "all variables jointly")])
def test_values_beyond_range_are_reported(options, who):
    X = np.random.default_rng(0).standard_normal((100, 1)) * 1e200
    with pytest.warns(ConvergenceWarning, match=f"{who}: the objective is not finite.*scale=True"):
        estimator = ISODUS(center=False, scale=False, **options).fit(X)
    assert estimator.status_ == ["non-finite"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SCREENING, r"c: terms cannot be told apart on these samples: (a|b)\*c, (a|b)\*c"),
        ({}, r"all variables jointly: terms cannot be told apart on these samples: (a\*b|a\^2|b\^2), "),
    ],
)
def test_terms_that_cannot_be_told_apart_are_named(options, message):
    x = np.random.default_rng(0).standard_normal(500)
    frame = pd.DataFrame({"a": x, "b": 2 * x, "c": np.random.default_rng(1).standard_normal(500)})
    with pytest.warns(ConvergenceWarning, match=message):
        ISODUS(degree=2, **options).fit(frame)


def test_concentrated_weights_are_reported():
    """Strongly correlated variables: the conditional is narrow, and few samples keep their weight."""
    X = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 20_000)
    with pytest.warns(ConvergenceWarning, match="x0: the screening weights concentrated: .* may be far off"):
        assert ISODUS(**SCREENING).fit(X).status_ == ["weights concentrated"] * 2
    with pytest.warns(ConvergenceWarning, match="x0: the screening weights collapsed"):  # three samples in truth
        ISODUS(**SCREENING).fit(X[:2000], sample_weight=np.r_[np.full(3, 1e9), np.ones(1997)])


@pytest.mark.parametrize("options", [SCREENING, dict(refine=0), {}])
def test_samples_without_weight_are_not_there(pair, options):
    weight = np.random.default_rng(0).integers(0, 2, len(pair)).astype(float)
    wild = np.where(weight[:, None] > 0, pair, 1e100)
    a, b = ISODUS(**options).fit(wild, sample_weight=weight), ISODUS(**options).fit(pair[weight > 0])
    assert np.array_equal(theta(a), theta(b))
    assert np.array_equal(a.model_.covariance, b.model_.covariance)


def test_one_wild_value_fails_with_a_status_and_spares_the_others(pair):
    wild = np.vstack([pair, [[1e60, 0.0]]])
    with pytest.warns(UserWarning, match="heavier"), pytest.warns(ConvergenceWarning, match="x1: the objective is not"):
        estimator = ISODUS(**SCREENING).fit(wild)
    assert estimator.status_ == ["converged", "non-finite"]
    assert np.all(np.isfinite(estimator.model_.theta))
    with pytest.warns(UserWarning, match=r"x0 \(kurtosis 19,999.0, 100 % of it from row 20000, 1e\+60\)"):
        estimator = ISODUS().fit(wild)
    assert np.all(np.isfinite(estimator.model_.theta))


def test_a_variable_that_failed_does_not_spoil_what_others_know():
    x = np.random.default_rng(0).standard_normal((2000, 2))
    x[:, 1] = np.sign(x[:, 1])  # two values: its powers cannot be told apart
    with pytest.warns(UserWarning, match="few distinct"), pytest.warns(ConvergenceWarning, match="x1: terms cannot"):
        estimator = ISODUS(degree=2, **SCREENING).fit(x)
    assert estimator.status_[0] == "converged"
    assert abs(estimator.model_.to_dict("standardized")[0, 1]) < 0.2


def test_relative_weights_are_questioned(pair):
    with pytest.warns(UserWarning, match="sums to 1 for 500 rows"):
        ISODUS(degree=2).fit(pair[:500], sample_weight=np.full(500, 1 / 500))


def test_a_conditional_that_does_not_exist_scores_minus_infinity(pair):
    estimator = ISODUS(degree=2).fit(pair[:500])
    from isodus import PolynomialModel

    estimator.model_ = PolynomialModel.from_dict({(0, 0): -1.0, (1, 1): 1.0})
    with pytest.warns(UserWarning, match="no conditional density for x0"):
        assert estimator.score(pair[:10]) == -np.inf


# bad input


def frame_with(column, value):
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((50, 3)), columns=["a", "b", "c"])
    X[column] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (frame_with("b", np.nan), r"NaN or infinity: b \(first in row 0\)"),
        (frame_with("c", [0.5] * 7 + [np.inf] + [0.1] * 42), r"NaN or infinity: c \(first in row 7\)"),
        (frame_with("b", "word"), "not numeric: 'b'"),
        (frame_with("d", pd.Timestamp("2024-01-01")), "not numeric: 'd'"),
        (frame_with("a", 3.0), "without variation: a"),
        (pd.DataFrame(np.ones((9, 2)), columns=["a", "a"]), "duplicate column names: 'a'"),
        (np.zeros((1, 2)), "minimum of 2"),
        (np.zeros(5), "two dimensions are wanted"),
        (np.zeros((0, 2)), "0 sample"),
    ],
)
def test_bad_samples(X, message):
    with pytest.raises(ValueError, match=message):
        ISODUS(degree=2).fit(X)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(49), r"shape \(49,\), X has 50 rows"),
        (np.ones((50, 1)), "one weight a row"),
        (np.r_[1, -1, np.ones(48)], "negative or not finite at row 1"),
        (np.r_[1, 1, np.nan, np.ones(47)], "at row 2"),
        (np.zeros(50), "zero everywhere"),
        (np.eye(50)[3], "leaves n_samples = 1"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        ISODUS(degree=2).fit(np.random.default_rng(0).standard_normal((50, 2)), sample_weight=weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(nu=0.0), "nu must be a positive number, not 0.0"),
        (dict(nu=-1), "nu must be a positive number"),
        (dict(nu="best"), "nu must be a positive number, not 'best'"),
        (dict(nu=[0.1, -0.1]), "nu must be positive, but is -0.1 for x1"),
        (dict(nu=[0.1]), r"nu has shape \(1,\)"),
        (dict(delta=0.0), "delta must be a positive number"),
        (dict(delta=np.inf), "delta must be a positive number"),
        (dict(degree=3), "degree=3 is odd: .*no density.*Use degree=4, or 2"),
        (dict(degree=0), "degree must be an even integer"),
        (dict(degree=2.5), "degree must be an even integer"),
        (dict(max_order=0), "max_order must be an integer"),
        (dict(max_order="2"), "max_order must be an integer"),
        (dict(min_degree=2.0), "min_degree must be an integer"),
        (dict(center="no"), "center must be True or False"),
        (dict(n_jobs=0), "n_jobs"),
        (dict(basis=MonomialBasis(2, terms=[(0, 0)])), "no term of the basis contains x1"),
        (dict(min_degree=5), "no term is left"),
        (dict(objective="square"), "objective must be one of 'log', 'plain', not 'square'"),
        (dict(consensus="median"), "consensus must be one of 'precision', 'geometric', 'mean', not 'median'"),
        (dict(refine=-1), 'refine must be "auto", 0 .the paper\'s estimator. or a number of steps, not -1'),
        (dict(refine=1.5), 'refine must be "auto", 0 .* or a number of steps, not 1.5'),
        (dict(refine="yes"), "refine must be \"auto\", 0 .* or a number of steps, not 'yes'"),
        (dict(refine=True), 'refine must be "auto", 0 .* or a number of steps, not True'),
        (dict(pilot="gauss"), "pilot must be one of 'auto', 'isodus', 'score_matching', or a PolynomialModel, not"),
        (dict(pilot=None), "pilot must be one of .* or a PolynomialModel, not None"),
        (dict(integrable="maybe"), "integrable must be one of 'enforce', 'warn', not 'maybe'"),
        (dict(tol=0), "tol must be a positive number"),
        (dict(max_iter=0), "max_iter must be"),
        (dict(basis="pairs"), "basis must be a MonomialBasis"),
        (dict(basis=MonomialBasis(3, 2)), "the basis has 3 variables, X has 2 columns"),
        (dict(basis=MonomialBasis(2, terms=[(0,), (0, 0, 1)])), "degree=3 is odd"),
    ],
)
def test_bad_parameters(pair, options, message):
    with pytest.raises(ValueError, match=message):
        ISODUS(**options).fit(pair[:200])


def test_more_parameters_than_samples_is_refused_before_anything_is_allocated():
    X = np.random.default_rng(0).standard_normal((500, 400))
    with pytest.raises(ValueError, match=r"10,\d+,\d+ parameters at each variable and n_samples = 500: .*GB.*degree=2"):
        ISODUS(degree=4, max_order=None).fit(X)
    with pytest.raises(ValueError, match=r"2,398 parameters at each variable"):
        ISODUS(degree=4).fit(X)


def test_a_hessian_too_big_for_memory_is_refused(monkeypatch):
    monkeypatch.setattr("isodus.preparation.available_memory", lambda: 10**9)
    with pytest.raises(ValueError, match="need about 3.66 GB for a Hessian matrix, and 1 GB are free"):
        ISODUS(degree=4, max_order=None).fit(np.random.default_rng(0).standard_normal((30_000, 40)))


@pytest.mark.parametrize("estimator", [ISODUS, PseudoLikelihood, ScoreMatching])
def test_what_is_masked_is_missing(estimator):
    X = np.random.default_rng(0).standard_normal((300, 2))
    masked = np.ma.masked_array(X, mask=False)
    np.testing.assert_array_equal(estimator(2).fit(masked).model_.theta, estimator(2).fit(X).model_.theta)
    masked[7, 1] = np.ma.masked
    with pytest.raises(ValueError, match=r"x1 \(first in row 7\)"):
        estimator(2).fit(masked)
    assert np.isnan(estimator(2).fit(X).model_.energy(masked)[7])


@pytest.mark.parametrize("blocks", [False, True])
def test_a_penalty_does_not_weigh_what_is_too_far_out_for_a_computer(blocks):
    X = np.random.default_rng(0).standard_normal((40_000, 3))
    X[7, 1] = -1e60
    data = open_samples(lambda: [X]) if blocks else X
    where = "" if blocks else " in row 7"
    with pytest.raises(ValueError, match=rf"x1 is -1e\+60{where}, .* spreads from the middle: its powers"):
        ISODUS(4, l1="auto").fit(data)


def test_costs_are_told_where_there_are_any():
    X = np.random.default_rng(0).standard_normal((50, 60))
    with pytest.raises(ValueError, match="n_samples = 3: without a penalty there is no estimate. Use l1"):
        ISODUS(4).fit(X[:3, :2])
    with pytest.raises(ValueError, match="would take about .* minutes"):
        ISODUS(4, max_order=4).fit(X)


def test_objects_that_are_numbers_are_numbers():
    X = np.random.default_rng(0).standard_normal((300, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    expected = ISODUS(2).fit(frame).model_.theta
    np.testing.assert_array_equal(ISODUS(2).fit(frame.astype(object)).model_.theta, expected)
    np.testing.assert_array_equal(ISODUS(2).fit(X.astype(object)).model_.theta, expected)
    frame = frame.astype(object)
    frame.loc[3, "b"] = "much"
    with pytest.raises(ValueError, match="columns that are not numeric: 'b'"):
        ISODUS(2).fit(frame)
