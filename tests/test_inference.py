"""Standard errors against the spread over many sets, closed forms and finite differences."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from cases import PAIR, drawn
from sklearn.base import clone

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching, inference
from isodus.datasets import paper_1d

# closed under translation, few, and far from Gaussian: two wells each, and one coupling
TERMS = [(0,), (1,), (0, 0), (0, 1), (1, 1), (0, 0, 0), (1, 1, 1), (0, 0, 0, 0), (1, 1, 1, 1)]
FEW = dict(basis=MonomialBasis(2, terms=TERMS))
TRUTH = PolynomialModel.from_dict(
    {(1,): 0.2, (0, 0): -2.0, (0, 1): 0.5, (1, 1): -3.0, (0, 0, 0, 0): 1.0, (1, 1, 1, 1): 1.5}
)
SCREENING = dict(refine=0, nu=0.1)
N_SETS = 100


@cache
def sets():
    """Of 1,500 samples in raw units, far from the origin."""
    return np.split(TRUTH.sample(1500 * N_SETS, rng=0) * [3.0, 0.2] + [50.0, -4.0], N_SETS)


@pytest.mark.parametrize(
    "estimator",
    [
        ISODUS(**FEW),
        ISODUS(**FEW, **SCREENING, consensus="precision"),
        ISODUS(**FEW, **SCREENING, consensus="geometric"),
        ISODUS(**FEW, **SCREENING, consensus="mean", objective="plain"),
        PseudoLikelihood(**FEW),
        PseudoLikelihood(degree=2),  # not the model: what is minimised still has a spread
        ScoreMatching(**FEW),
    ],
    ids=["refined", "precision", "geometric", "mean", "pseudo-likelihood", "Gaussian", "score matching"],
)
def test_standard_errors_are_the_spread_over_sets(estimator):
    """The spread itself is known to 1/√(2·99) = 7.1 %."""
    frames = [estimator.fit(X).model_.to_frame() for X in sets()]
    spread = np.std([frame["theta"] for frame in frames], axis=0, ddof=1)
    claimed = np.mean([frame["stderr"] for frame in frames], axis=0)
    assert np.all(np.abs(claimed / spread - 1) < 4 / np.sqrt(2 * (N_SETS - 1)))


def test_separated_wells_are_estimated_without_bias_and_with_honest_errors():
    """The mean of the estimates is known to a tenth of their spread."""
    truth = PolynomialModel.from_dict({(0,): 0.2, (0, 0): -4.0, (0, 0, 0): 0.0, (0, 0, 0, 0): 1.0})
    frames = [ISODUS().fit(part).model_.to_frame() for part in np.split(truth.sample(100 * 1000, rng=0), 100)]
    estimates = np.array([frame["theta"] for frame in frames])
    spread = np.std(estimates, axis=0, ddof=1)
    assert np.all(np.abs(np.mean(estimates, axis=0) - truth.theta) < 0.4 * spread)
    claimed = np.mean([frame["stderr"] for frame in frames], axis=0)
    assert np.all(np.abs(claimed / spread - 1) < 4 / np.sqrt(2 * 99))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_errors_of_a_gaussian_have_a_closed_form(weighted):
    """θ₂ = 1/(2v), v the variance, so var θ₂ = var(v)/(4v⁴), whatever the samples are.

    var(v) = (m₄ − v²)/n, and of n samples two parameters leave n − 2.
    """
    x = drawn(TRUTH, 2000)[:, 0] + 7.0
    weight = np.random.default_rng(0).integers(1, 4, 2000) if weighted else None
    n = 2000 if weight is None else weight.sum()
    d = x - np.average(x, weights=weight)
    v, m3, m4 = (np.average(d**k, weights=weight) for k in (2, 3, 4))
    model = PseudoLikelihood(degree=2).fit(x[:, None], sample_weight=weight).model_
    stderr = dict(zip(model.basis.terms, model.stderr(), strict=True))
    assert stderr[0, 0] == pytest.approx(np.sqrt((m4 - v**2) / (n - 2)) / (2 * v**2), rel=1e-6)
    # θ₁ = −mean/v, and the covariance of mean and v is m₃/n
    mean = np.average(x, weights=weight)
    variance = (v / v**2 - 2 * mean * m3 / v**3 + mean**2 * (m4 - v**2) / v**4) / (n - 2)
    assert stderr[0,] == pytest.approx(np.sqrt(variance), rel=1e-6)


ALL = [ISODUS(), ISODUS(**SCREENING), ISODUS(refine=0), PseudoLikelihood(), ScoreMatching()]


@pytest.mark.parametrize(
    ("estimator", "n"), [*((estimator, 2000) for estimator in ALL), (ISODUS(), 17_000), (ISODUS(**SCREENING), 17_000)]
)
def test_a_covariance_is_symmetric_and_has_no_negative_eigenvalue(estimator, n):
    model = estimator.fit(drawn(TRUTH, n) + 3.0).model_
    C = model.covariance
    assert C.shape == (len(model.basis),) * 2
    size = np.sqrt(np.diagonal(C))
    assert np.allclose(C / size / size[:, None], (C / size / size[:, None]).T, rtol=0, atol=1e-14)
    assert np.linalg.eigvalsh(C / size / size[:, None])[0] > -1e-9
    assert np.array_equal(model.stderr("standardized"), size)
    assert np.array_equal(model.to_frame()["stderr"], model.stderr())


@pytest.mark.parametrize(
    ("estimator", "rel"),
    [
        (ISODUS(), 0.01),  # as far as it is refined
        (ISODUS(**SCREENING, consensus="precision"), 1e-3),  # the curvature is that of a step before
        (ISODUS(**SCREENING, consensus="geometric"), 1e-3),
        (PseudoLikelihood(tol=1e-9), 1e-6),
        (ScoreMatching(), 1e-9),
    ],
    ids=["refined", "precision", "geometric", "pseudo-likelihood", "score matching"],
)
def test_weights_count_repetitions(estimator, rel):
    X = drawn(PAIR, 3000)
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = estimator.fit(X, sample_weight=counts).model_.stderr()
    repeated = estimator.fit(np.repeat(X, counts, axis=0)).model_.stderr()
    assert np.allclose(weighted, repeated, rtol=rel)


@pytest.mark.parametrize("estimator", ALL[:-1], ids=repr)
def test_a_standard_error_falls_with_the_root_of_the_samples(estimator):
    """Also where, above 16,384 rows, covariances come from part of them: n is that of all."""
    X = drawn(PAIR, 32_000)
    ratio = estimator.fit(X[:2000]).model_.stderr() / estimator.fit(X).model_.stderr()
    assert 3 < np.exp(np.mean(np.log(ratio))) < 5.5


@pytest.mark.parametrize(
    ("estimator", "X", "held"),
    [
        (PseudoLikelihood(degree=6), paper_1d().sample(4000, rng=2), [(0,) * 6]),
        (ISODUS(degree=6), paper_1d().sample(4000, rng=2), [(0,) * 6]),
        (ISODUS(degree=2, **SCREENING), drawn(TRUTH, 2000)[:, :1], [(0, 0)]),
    ],
    ids=["pseudo-likelihood", "refined", "screening"],
)
def test_what_is_held_has_no_standard_error(estimator, X, held):
    model = estimator.fit(X).model_
    assert len(estimator.notes_) == len(held)
    for units in ("raw", "standardized"):
        assert [t for t, s in zip(model.basis.terms, model.stderr(units), strict=True) if np.isnan(s)] == held


@pytest.mark.parametrize("held", [[], [13], [0, 5, 13]])
def test_raw_standard_errors_are_the_delta_method_by_finite_differences(held):
    rng = np.random.default_rng(0)
    basis = MonomialBasis(2, 4)
    root = rng.standard_normal((len(basis), len(basis)))
    C, free = root @ root.T, np.setdiff1d(np.arange(len(basis)), held)
    known = np.full_like(C, np.nan)
    known[np.ix_(free, free)] = C[np.ix_(free, free)]
    units = (np.array([20.0, -0.3]), np.array([2.0, 0.05]))
    raw = lambda theta: np.array(list(PolynomialModel(basis, theta, *units).to_dict().values()))
    theta = rng.standard_normal(len(basis))
    slopes = np.stack([(raw(theta + e) - raw(theta - e)) / 2 for e in np.eye(len(basis))], axis=1)[:, free]
    expected = np.sqrt(np.einsum("ki,ij,kj->k", slopes, C[np.ix_(free, free)], slopes))
    expected[held] = np.nan
    model = PolynomialModel(basis, theta, *units, covariance=known)
    assert np.allclose(model.stderr(), expected, rtol=1e-7, equal_nan=True)
    assert np.all(np.isnan(PolynomialModel(basis, theta, *units).stderr()))


# samples that depend on one another, and weights that are no counts


def autoregression(n, rho, rng):
    """A Gaussian series of variance 1."""
    x, noise = np.empty(n), rng.standard_normal(n)
    x[0] = noise[0]
    for t in range(1, n):
        x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * noise[t]
    return x


@pytest.mark.parametrize("dependence", ["auto", 60])
def test_the_errors_of_a_series_are_the_spread_over_series(dependence):
    """x_t² of an autoregression with ρ = 0.8 has 1 + 2Σρ^{2k} = 4.6 times the variance of independent samples."""
    rng = np.random.default_rng(0)
    fits = [PseudoLikelihood(2, dependence=dependence).fit(autoregression(4000, 0.8, rng)[:, None]) for _ in range(100)]
    at = fits[0].model_.basis.terms.index((0, 0))
    spread = np.std([fit.model_.to_frame()["theta"][at] for fit in fits], ddof=1)
    claimed = np.mean([fit.model_.stderr()[at] for fit in fits])
    assert abs(claimed / spread - 1) < 4 / np.sqrt(2 * 99)
    naive = PseudoLikelihood(2).fit(autoregression(4000, 0.8, rng)[:, None]).model_.stderr()[at]
    assert claimed > 1.7 * naive
    assert ("rows apart" in " ".join(fits[0].notes_)) == (dependence == "auto")


@pytest.mark.parametrize("estimator", [PseudoLikelihood(**FEW), ISODUS(**FEW, **SCREENING), ScoreMatching(**FEW)])
def test_groups_of_copies_count_as_one_sample(estimator):
    X = drawn(TRUTH, 1500)
    alone = estimator.fit(X).model_.stderr()
    order = np.random.default_rng(0).permutation(4500)
    labels = np.array([f"g{k}" for k in range(1500)])
    grouped = estimator.fit(np.tile(X, (3, 1))[order], groups=np.tile(labels, 3)[order]).model_.stderr()
    assert np.allclose(grouped, alone, rtol=2e-3)
    # a series without dependence is what independent samples are
    series = clone(estimator).set_params(dependence=0).fit(X).model_.stderr()
    assert np.allclose(series, alone, rtol=1e-3)


def test_ratios_of_densities_are_weights_of_their_own_kind():
    """Samples of N(0, 1.5²), weighted to N(0, 1): the spread of θ = 1/(2v), and no difference by a factor."""
    rng, found = np.random.default_rng(0), []
    for _ in range(100):
        x = 1.5 * rng.standard_normal(2000)
        w = np.exp(-(x**2) / 2 * (1 - 1 / 1.5**2))
        model = PseudoLikelihood(2, weights="importance").fit(x[:, None], sample_weight=7e-3 * w).model_
        found.append((model.to_dict()[0, 0], model.stderr()[model.basis.terms.index((0, 0))]))
    theta, claimed = np.array(found).T
    assert abs(theta.mean() - 0.5) < 4 * theta.std() / 10
    assert abs(claimed.mean() / theta.std(ddof=1) - 1) < 4 / np.sqrt(2 * 99)
    assert model.n_samples == pytest.approx(w.sum() ** 2 / np.square(w).sum())
    again = PseudoLikelihood(2, weights="importance").fit(x[:, None], sample_weight=w).model_
    assert np.allclose(again.stderr(), model.stderr(), rtol=1e-9)


def test_equal_ratios_are_no_weights():
    X = drawn(TRUTH, 1500)
    plain, weighted = (PseudoLikelihood(**FEW, weights=how) for how in ("counts", "importance"))
    same = weighted.fit(X, sample_weight=np.full(1500, 0.01)).model_
    assert np.allclose(same.stderr(), plain.fit(X).model_.stderr(), rtol=1e-6)


@pytest.mark.parametrize("estimator", [PseudoLikelihood(**FEW, tol=1e-9), ScoreMatching(**FEW)])
def test_influence_is_what_a_little_more_weight_does(estimator):
    X = drawn(TRUTH, 800)
    fitted = clone(estimator).fit(X)
    psi = fitted.influence(X)
    assert psi.shape == (800, len(TERMS))
    assert np.allclose(psi.mean(axis=0), 0, atol=1e-6 * np.abs(psi).max(axis=0))
    free = 800 - fitted.model_.basis.largest
    assert np.allclose(np.sqrt(np.diagonal(psi.T @ psi) / 800 / free), fitted.model_.stderr("standardized"), rtol=1e-6)
    units = dict(center=False, scale=False)  # which would move with the weights
    psi, step = clone(estimator).set_params(**units).fit(X).influence(X), 0.05
    for t in (0, 17, 300):
        weight = np.ones(800)
        thetas = []
        for change in (step, -step):
            weight[t] = 1 + change
            thetas.append(clone(estimator).set_params(**units).fit(X, sample_weight=weight).model_.theta)
        slope = (thetas[0] - thetas[1]) / (2 * step) * 800
        assert np.allclose(slope, psi[t], rtol=0.01, atol=0.01 * np.abs(psi[t]).max())


def test_influence_wants_the_weights_of_the_fit():
    X, weight = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 3 + 1.0
    est = ISODUS(2).fit(X, sample_weight=weight)
    with pytest.raises(ValueError, match="the fit had sample_weight: give sample_weight=… here too"):
        est.influence(X)
    assert (
        np.abs(weight @ est.influence(X, weight)).max() < 1e-3 * np.abs(weight @ np.abs(est.influence(X, weight))).max()
    )


def test_influence_is_of_joint_estimates():
    X = drawn(TRUTH, 800)
    with pytest.raises(ValueError, match="all variables jointly"):
        ISODUS(**FEW, **SCREENING).fit(X).influence(X)


def test_blocks_of_many_terms_are_those_of_the_whole_covariance(monkeypatch):
    X = np.column_stack([drawn(TRUTH, 1500), drawn(TRUTH, 1500)[::-1, :1]])
    options, weight = dict(degree=4, max_order=2, refine=0, nu=0.1), np.resize([1, 2], 1500)
    whole = ISODUS(**options).fit(X, sample_weight=weight).model_
    monkeypatch.setattr(inference, "MOST_PARAMETERS", 5)
    part = ISODUS(**options).fit(X, sample_weight=weight).model_
    terms = whole.basis.terms
    known = np.array([[set(a) == set(b) or len({*a, *b}) <= 2 for a in terms] for b in terms])
    assert np.array_equal(part.covariance.toarray() != 0, known)
    size = whole.stderr("standardized")
    off = (part.covariance.toarray() - whole.covariance) / np.outer(size, size)
    assert np.allclose(off[known], 0, atol=1e-3)
    pair = whole.basis.orders == 2
    assert np.allclose(part.stderr()[pair], whole.stderr()[pair], rtol=1e-3)
    assert np.isnan(part.stderr()[[terms.index((0,))]]).all()  # in the units of X it takes terms of other pairs


@pytest.mark.parametrize(
    ("options", "groups", "message"),
    [
        (dict(dependence=-1), None, "dependence must be None"),
        (dict(dependence=600), None, "below half of the 1000"),
        (dict(dependence=True), None, "dependence must be None"),
        (dict(dependence="hac"), None, "dependence must be None"),
        (dict(weights="frequency"), None, "weights must be one of"),
        ({}, np.zeros(1000), "one group only"),
        ({}, np.zeros(7), "one label a row"),
        ({}, np.append(np.nan, np.arange(999.0)), "no label in row 0"),
        (dict(dependence=3), np.arange(1000), "not both"),
    ],
)
def test_what_says_how_samples_depend_is_checked(options, groups, message):
    with pytest.raises(ValueError, match=message):
        PseudoLikelihood(2, **options).fit(drawn(TRUTH, 1000), groups=groups)


def test_few_groups_are_questioned():
    with pytest.warns(UserWarning, match="standard errors from 5 groups"):
        PseudoLikelihood(2).fit(drawn(TRUTH, 1000), groups=np.arange(1000) % 5)


def test_few_samples_for_many_parameters_are_questioned():
    X = drawn(TRUTH, 60)
    with pytest.warns(UserWarning, match=r"standard errors from 40 samples for 10 parameters a variable .* 50 or more"):
        ISODUS(refine=0, nu=1.0, integrable="warn").fit(X[:40])
    assert not any("standard errors" in note for note in PseudoLikelihood(2).fit(X).notes_)


@pytest.mark.filterwarnings("ignore")
def test_few_groups_have_few_degrees_of_freedom():
    """Six terms of independent samples in 30 groups: 5 % of 120 sets; with those of all samples it would be 18 %."""
    rng, rejected, single = np.random.default_rng(0), [], []
    for _ in range(120):
        X, groups = rng.standard_normal((2000, 2)), rng.permutation(2000) % 30
        model = ScoreMatching(4).fit(X, groups=groups).model_
        pair = model.interactions().iloc[0]
        assert (model.settings["error_df"], pair["df"]) == (29, 6)
        rejected.append(pair["p_value"] < 0.05)
        single.append(model.to_frame("standardized")["p_value"][model.basis.terms.index((0, 1))] < 0.05)
    for found in (rejected, single):
        assert np.mean(found) < 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / 120)


def test_groups_that_lose_all_rows_do_not_count():
    X, groups = drawn(TRUTH, 600), np.repeat([0, 1], 300)
    with pytest.raises(ValueError, match="one group only"):
        PseudoLikelihood(2).fit(X, sample_weight=1.0 * (groups == 0), groups=groups)


def test_counts_within_groups_are_repetitions():
    X, counts = drawn(TRUTH, 600), np.random.default_rng(0).integers(1, 4, 600)
    groups = np.arange(600) // 6
    weighted = PseudoLikelihood(**FEW, tol=1e-9).fit(X, sample_weight=counts, groups=groups).model_.stderr()
    again = np.repeat(X, counts, axis=0), np.repeat(groups, counts)
    assert np.allclose(
        weighted, PseudoLikelihood(**FEW, tol=1e-9).fit(again[0], groups=again[1]).model_.stderr(), rtol=1e-5
    )
    with pytest.raises(ValueError, match="counts say nothing of when"):
        PseudoLikelihood(2, dependence=3).fit(X, sample_weight=counts)


@pytest.mark.parametrize("groups", [list("ab" * 300), pd.Series(list("ab" * 300)), [1, "a"] * 300])
def test_groups_may_be_called_anything(groups):
    with pytest.warns(UserWarning, match="from 2 groups"):
        PseudoLikelihood(2).fit(drawn(TRUTH, 600), groups=groups)
    with pytest.raises(ValueError, match="no label in row 0"):
        PseudoLikelihood(2).fit(drawn(TRUTH, 600), groups=["a" if k else float("nan") for k in range(600)])


def test_influence_is_at_the_estimate_of_a_model_that_was_moved():
    Y = np.random.default_rng(0).standard_normal((400, 2))
    Y[:, 1] += 0.3 * Y[:, 0] ** 2 * np.sign(Y[:, 0])
    fitted = PseudoLikelihood(4).fit(Y)
    assert fitted.model_.moved_from is not None
    psi, free = fitted.influence(Y), 400 - fitted.model_.basis.largest
    assert np.allclose(np.sqrt(np.diagonal(psi.T @ psi) / 400 / free), fitted.model_.stderr("standardized"), rtol=1e-5)


def test_goodness_of_fit_knows_how_a_model_was_fitted():
    rng = np.random.default_rng(0)
    series = [autoregression(1000, 0.9, rng)[:, None] for _ in range(10)]
    verdicts = [PseudoLikelihood(2, dependence="auto").fit(x).goodness_of_fit(x, n_draws=100).verdict for x in series]
    assert sum("misfit:" in verdict for verdict in verdicts) <= 2  # as independent samples six of them are
    x = series[0]
    with pytest.raises(ValueError, match=r"fitted with groups: .* new=True"):
        PseudoLikelihood(2).fit(x, groups=np.arange(1000) // 5).goodness_of_fit(x)
    with pytest.raises(ValueError, match="fitted with weights"):
        PseudoLikelihood(2).fit(x, sample_weight=np.ones(1000)).goodness_of_fit(x)
    split = PseudoLikelihood(2, l1=0.1, debias="split").fit(drawn(TRUTH, 600))
    with pytest.raises(ValueError, match="one half was fitted"):
        split.influence(drawn(TRUTH, 600))
