"""The bootstrap on estimates whose scatter is known, and which terms halves of the samples keep."""

import warnings
from importlib import import_module
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from isodus import MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching
from isodus.checks import Interrupted
from isodus.datasets import paper_1d, paper_pair, regular_gaussian
from isodus.energy import raw_units
from isodus.resampling import bootstrap, expected_false, selection_frequencies


class Gaussian(BaseEstimator):
    """Maximum likelihood of one Gaussian variable: θ = (−m/v, 1/2v) in x; in units that differ from fit to fit.

    trouble: what becomes of fits that do not have the first row.
    """

    calls, stop = 0, None  # of all clones

    def __init__(self, own_units=True, weights="counts", trouble=None):
        self.own_units, self.weights, self.trouble = own_units, weights, trouble

    def fit(self, X, y=None, sample_weight=None, groups=None):
        Gaussian.calls += 1
        if Gaussian.calls == Gaussian.stop:
            raise KeyboardInterrupt
        x, w = np.asarray(X)[:, 0], np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
        if w[0] == 0 and self.trouble is not None:
            if isinstance(self.trouble, str):
                raise ValueError(self.trouble)
            warnings.warn("x0: no convergence in 17 iterations", self.trouble, stacklevel=2)
        m = np.average(x, weights=w)
        v = np.average((x - m) ** 2, weights=w)
        c, d = (x[np.argmax(w)], 1 + w.max()) if self.own_units else (0.0, 1.0)
        theta = [d * (c - m) / v, d * d / (2 * v)]
        self.model_ = PolynomialModel(MonomialBasis(1, 2), theta, [c], [d], n_samples=w.sum())
        return self


@pytest.fixture(autouse=True)
def _fresh():
    Gaussian.calls, Gaussian.stop = 0, None


def moments(result):
    """The mean and the variance that every draw of `Gaussian` estimates."""
    T = np.array([raw_units(result.model.basis, d, result.model.location, result.model.scale) for d in result.draws])
    v = 1 / (2 * T[:, 1])
    return -T[:, 0] * v, v


def gaussian_sample(n, seed=0):
    return np.random.default_rng(seed).normal(3.0, 2.0, (n, 1))


def interactions(model):
    return {k for k, value in model.to_dict().items() if len(set(k)) > 1 and value}


@pytest.mark.parametrize("kind", ["nonparametric", "multiplier"])
def test_a_mean_and_a_variance_scatter_as_they_should(kind):
    """Var m = v/n, or v/(n + 1) by Dirichlet weights; Var v = (μ₄ − v²)/n and terms of order 1/n²."""
    x, B = gaussian_sample(400), 1500
    result = bootstrap(Gaussian(), x, B, kind=kind)
    m, v = moments(result)
    v0, fourth = x.var(), np.mean((x - x.mean()) ** 4)
    error = 3 / np.sqrt(2 * B)  # three standard errors of a standard deviation
    assert m.std() == pytest.approx(np.sqrt(v0 / 400), rel=error)
    assert v.std() == pytest.approx(np.sqrt((fourth - v0**2) / 400), rel=error + 0.01)
    assert m.mean() == pytest.approx(x.mean(), abs=3 * np.sqrt(v0 / 400 / B))
    assert v.mean() == pytest.approx(v0 * (1 - 1 / 400), abs=3 * v.std() / np.sqrt(B))
    # θ₂ = 1/2v by the delta method, and its bias Var v/2v³
    frame = result.to_frame()
    assert frame.stderr[1] == pytest.approx(v.std() / (2 * v0**2), rel=0.05)
    assert frame.bias[1] == pytest.approx(v.var() / (2 * v0**3) + 1 / 800 / v0, rel=0.35)
    assert frame.theta.to_numpy() == pytest.approx([-x.mean() / v0, 1 / (2 * v0)])


def test_weights_count_repetitions_or_are_ratios():
    """Var m = Σ w (x − m)²/(Σ w)² where weights count, Σ w² (x − m)²/(Σ w)² where they are ratios of densities."""
    rng, B = np.random.default_rng(1), 300
    x, w = gaussian_sample(200), rng.integers(0, 4, 200).astype(float)
    for weight in (w, 0.37 + w):
        y = x[:, 0] - np.average(x[:, 0], weights=weight)
        for kind in ("nonparametric", "multiplier"):
            for meaning, power in (("counts", 1), ("importance", 2)):
                m, _ = moments(bootstrap(Gaussian(weights=meaning), x, B, kind=kind, sample_weight=weight))
                variance = np.sum(weight**power * y**2) / weight.sum() ** 2
                assert m.std() == pytest.approx(np.sqrt(variance), rel=3.5 / np.sqrt(2 * B) + 0.01)
    repeated = bootstrap(Gaussian(), np.repeat(x, w.astype(int), axis=0), B)
    counted = bootstrap(Gaussian(), x, B, sample_weight=w, rng=1)
    assert counted.estimate @ [1, 0] != repeated.estimate @ [1, 0]  # in other units
    assert counted.stderr() == pytest.approx(repeated.stderr(), rel=4 / np.sqrt(B))


@pytest.mark.parametrize("kind", ["nonparametric", "multiplier"])
def test_groups_of_equal_rows_are_one_row_each(kind):
    x, B = gaussian_sample(150), 600
    rows = np.random.default_rng(2).permutation(np.repeat(np.arange(150), 4))
    right = np.sqrt(x.var() / 150)
    plain, _ = moments(bootstrap(Gaussian(), x[rows], B, kind=kind))
    whole, _ = moments(bootstrap(Gaussian(), x[rows], B, kind=kind, groups=[f"patient {k}" for k in rows]))
    assert plain.std() == pytest.approx(right / 2, rel=0.09)
    assert whole.std() == pytest.approx(right, rel=0.09)
    result = bootstrap(PseudoLikelihood(degree=2), x[rows], 60, kind=kind, groups=rows)
    assert np.allclose(result.stderr("standardized") / result.sandwich, 1, atol=0.25)  # which allows for groups too
    assert f"draws of 150 groups {'with' if kind == 'nonparametric' else 'by exponential'}" in repr(result)


@pytest.mark.parametrize("kind", ["nonparametric", "multiplier"])
def test_blocks_see_the_memory_of_a_series(kind):
    """AR(1): cov(x_t, x_{t+k}) = v φ^k, cov(x_t², x_{t+k}²) = 2v² φ^{2k}; blocks of L weigh lag k by 1 − k/L."""
    rng, n, phi, L = np.random.default_rng(3), 6000, 0.6, 40
    x = np.zeros((n, 1))
    for t in range(1, n):
        x[t] = phi * x[t - 1] + rng.normal()
    m, v = moments(bootstrap(Gaussian(), x, 600, kind=kind, block_length=L))
    lags = np.abs(np.arange(1 - L, L))
    seen = lambda r: np.sum((1 - lags / L) * r**lags)
    v0 = 1 / (1 - phi**2)
    # 150 blocks tell a standard deviation to 1/√(2·150) = 6 %
    assert m.std() == pytest.approx(np.sqrt(v0 / n * seen(phi)), rel=0.15)
    assert v.std() == pytest.approx(np.sqrt(2 * v0**2 / n * seen(phi**2)), rel=0.15)
    plain, _ = moments(bootstrap(Gaussian(), x, 600, kind=kind))
    assert plain.std() == pytest.approx(np.sqrt(v0 / n), rel=0.1)
    assert seen(phi) > 3.8


@pytest.mark.parametrize(
    ("estimator", "X"),
    [
        (PseudoLikelihood(degree=2), regular_gaussian(4).sample(2000, rng=0)),
        (ScoreMatching(degree=4), paper_1d().sample(3000, rng=0)),
    ],
    ids=["pseudo-likelihood", "score matching"],
)
def test_draws_scatter_as_the_sandwich_says(estimator, X):
    B = 120
    for kind in ("nonparametric", "multiplier"):
        result = bootstrap(estimator, X, B, kind=kind)
        ratio = result.stderr("standardized") / result.sandwich
        assert np.all(np.abs(ratio - 1) < 4 / np.sqrt(2 * B))
        assert abs(np.median(ratio) - 1) < 0.12
    fitted = estimator.fit(X).model_
    assert np.array_equal(result.estimate, fitted.theta)
    assert np.array_equal(result.sandwich, fitted.stderr("standardized"))
    assert result.terms == fitted.basis.terms
    assert np.all(result.selected == 1)


def test_units_of_fits_do_not_matter():
    x = gaussian_sample(100)
    own, fixed = (bootstrap(Gaussian(own_units=own), x, 20) for own in (True, False))
    for one, other in zip(moments(own), moments(fixed), strict=True):
        assert np.allclose(one, other, rtol=1e-10)
    assert np.allclose(own.covariance(), fixed.covariance(), rtol=1e-9)
    assert np.allclose(own.stderr(), np.sqrt(np.diagonal(own.covariance())), rtol=1e-10)
    X = paper_pair(1).sample(800, rng=0)
    here = bootstrap(ScoreMatching(degree=4), X, 10)
    c, d = np.array([30.0, -5.0]), np.array([0.2, 7.0])
    there = bootstrap(ScoreMatching(degree=4), c + d * X, 10)
    assert np.allclose(there.draws, here.draws, rtol=1e-6, atol=1e-9)  # the same standardised variables
    raw = np.array([raw_units(here.model.basis, t, here.model.location, here.model.scale) for t in here.draws])
    moved = np.array([raw_units(here.model.basis, t, c, d) for t in raw])
    assert np.allclose(there.to_frame(kind="normal").bias, moved.mean(axis=0) - _raw(there.model), rtol=1e-5, atol=1e-8)
    assert np.allclose(there.stderr(), moved.std(axis=0, ddof=1), rtol=1e-6)


def _raw(model):
    return np.array(list(model.to_dict().values()))


def test_intervals_hold_the_share_of_draws_that_they_should():
    result = bootstrap(PseudoLikelihood(degree=2), regular_gaussian(4).sample(400, rng=1), 199)
    theta, draws = result.estimate, result.draws
    frames = {k: result.to_frame("standardized", 0.9, k) for k in ("percentile", "basic", "normal", "simultaneous")}
    ends = {kind: frame[["ci_low", "ci_high"]].to_numpy().T for kind, frame in frames.items()}
    within = {kind: (low <= draws) & (draws <= high) for kind, (low, high) in ends.items()}
    assert np.all(np.abs(within["percentile"].mean(axis=0) - 0.9) < 0.011)
    assert np.allclose(ends["basic"], 2 * theta - ends["percentile"][::-1])
    assert np.allclose(ends["normal"], theta + 1.6448536 * np.outer([-1, 1], result.stderr("standardized")))
    assert within["simultaneous"].all(axis=1).mean() == pytest.approx(0.9, abs=0.006)
    assert within["normal"].all(axis=1).mean() < 0.6
    raw = result.to_frame()
    assert np.all((raw.ci_low < raw.theta) & (raw.theta < raw.ci_high))


def test_the_model_carries_the_covariance_of_the_draws(tmp_path, monkeypatch):
    X = pd.DataFrame(regular_gaussian(4).sample(500, rng=0), columns=list("abcd"))
    result = bootstrap(PseudoLikelihood(degree=2), X, 40, kind="multiplier")
    assert np.allclose(result.model.covariance, np.cov(result.draws.T))
    assert np.allclose(result.model.covariance, result.covariance("standardized"))
    for units in ("raw", "standardized"):
        assert np.allclose(result.model.stderr(units), result.stderr(units))
    result.model.save(tmp_path / "m.json")
    loaded = PolynomialModel.load(tmp_path / "m.json")
    assert np.allclose(loaded.to_frame().stderr, result.to_frame(kind="normal").stderr)
    assert loaded.settings["covariance"] == "40 draws of rows by exponential weights"
    assert loaded.interactions().chi2.notna().all()
    assert "a*b" in set(result.to_frame(kind="basic").term)
    monkeypatch.setattr(import_module("isodus.resampling.bootstrap"), "MOST_PARAMETERS", 5)
    thin = bootstrap(PseudoLikelihood(degree=2), X, 40, kind="multiplier")
    assert thin.model.covariance.nnz == len(thin.terms)
    assert np.allclose(thin.model.stderr("standardized"), result.stderr("standardized"))


def test_terms_are_chosen_again_in_every_draw():
    X = regular_gaussian(4, degree=1, kappa=0.2).sample(150, rng=5)
    estimator = PseudoLikelihood(degree=2, l1=0.17)
    result = bootstrap(estimator, X, 30)
    fitted = estimator.fit(X).model_
    assert set(result.terms) > set(fitted.basis.terms)
    model = result.model.to_dict("standardized")
    assert all(model[term] == fitted.to_dict("standardized").get(term, 0.0) for term in result.terms)
    pairs = result.model.basis.orders == 2  # the highest degree, which no change of the origin touches
    assert np.allclose(np.mean(result.draws != 0, axis=0)[pairs], result.selected[pairs])
    assert 0 < result.selected[pairs].min() < 0.5 < result.selected[pairs].max()
    assert np.all(result.selected[~pairs] == 1)
    assert np.all(np.isfinite(result.stderr()))
    lower = bootstrap(ScoreMatching(degree=4, l1=0.08), paper_pair(1).sample(400, rng=0), 10)
    pairs = (lower.model.basis.orders == 2) & (lower.model.basis.degrees < 4)
    assert np.any(lower.selected[pairs] < np.mean(lower.draws != 0, axis=0)[pairs])  # zero where its own origin is


def test_draws_do_not_depend_on_how_many_run_at_once():
    X = regular_gaussian(4).sample(200, rng=0)
    one = bootstrap(PseudoLikelihood(degree=2), X, 8, rng=3)
    two = bootstrap(PseudoLikelihood(degree=2), X, 8, rng=3, n_jobs=2)
    assert np.array_equal(one.draws, two.draws)
    few = bootstrap(PseudoLikelihood(degree=2), X, 5, rng=3)
    assert np.array_equal(few.draws, one.draws[:5])
    x = gaussian_sample(30)
    drawn = [bootstrap(Gaussian(), x, 4, rng=np.random.default_rng(7)).draws for _ in range(2)]
    assert np.array_equal(*drawn)
    assert not np.array_equal(drawn[0], bootstrap(Gaussian(), x, 4, rng=None).draws)


def test_an_interruption_leaves_the_draws_there_are():
    x = gaussian_sample(50)
    whole = bootstrap(Gaussian(), x, 20)
    assert whole.complete
    Gaussian.calls, Gaussian.stop = 0, 9
    with pytest.warns(UserWarning, match="interrupted after 7 of 20 draws"):
        part = bootstrap(Gaussian(), x, 20)
    assert np.array_equal(part.draws, whole.draws[:7])
    assert repr(part) == "Bootstrap: 7 draws of rows with replacement, 2 terms; interrupted"
    Gaussian.calls, Gaussian.stop = 0, 3
    with pytest.raises(KeyboardInterrupt):
        bootstrap(Gaussian(), x, 20)


class HalfWay(Gaussian):
    """Whose third fit makes do with part of its path, as fits with a penalty do if they are interrupted."""

    def fit(self, X, y=None, sample_weight=None, groups=None):
        super().fit(X, y, sample_weight)
        if Gaussian.calls == 5:
            warnings.warn("interrupted after 3 of 30 penalties: the choice is among those", Interrupted, stacklevel=2)
        return self


def test_a_fit_that_was_interrupted_is_no_draw():
    with pytest.warns(UserWarning, match="interrupted after 3 of 10 draws"):
        assert len(bootstrap(HalfWay(), gaussian_sample(30), 10).draws) == 3


def test_fits_that_fail_are_counted_and_left_out():
    x = gaussian_sample(60)
    whole = bootstrap(Gaussian(), x, 100)
    with pytest.warns(UserWarning, match="of 100 draws failed, .* with ValueError: no row … is here.*multiplier"):
        part = bootstrap(Gaussian(trouble="no row 0 is here"), x, 100)
    failed = part.failures["ValueError: no row … is here"]
    assert failed == 100 - len(part.draws) == pytest.approx(100 * (1 - 1 / 60) ** 60, abs=15)
    assert {tuple(row) for row in part.draws} < {tuple(row) for row in whole.draws}
    assert f"{failed} more failed" in repr(part)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bootstrap(Gaussian(trouble="no row 0 is here"), x, 20, kind="multiplier")  # which has all rows
    with pytest.raises(ValueError, match="no row … is here"):
        bootstrap(Gaussian(trouble="no row 0 is here"), x, 2, rng=3)
    with pytest.warns(ConvergenceWarning, match="of 100 draws did not converge"):
        loose = bootstrap(Gaussian(trouble=ConvergenceWarning), x, 100)
    assert np.array_equal(loose.draws, whole.draws)
    assert loose.not_converged == failed
    assert loose.warnings == {"ConvergenceWarning: x0: no convergence in … iterations": failed}
    assert bootstrap(Gaussian(trouble=UserWarning), x, 10).not_converged == 0


class Moved(Gaussian):
    """Fits to draws that are another model than that of all rows."""

    def fit(self, X, y=None, sample_weight=None, groups=None):
        return super().fit(X if sample_weight is None else 3 * X, y, sample_weight)


def test_draws_of_another_model_are_told():
    x = gaussian_sample(100)
    with pytest.warns(UserWarning, match="draws of 2 of 2 terms lie off the fit to all rows"):
        bootstrap(Moved(), x, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(10):
            bootstrap(Gaussian(), x, 20, rng=seed)
        bootstrap(Moved(), x, 5)  # too few to tell


class Recording(PseudoLikelihood):
    seen: ClassVar[list] = []  # of all clones

    def fit(self, X, y=None, sample_weight=None, groups=None):
        Recording.seen.append(sample_weight)
        return super().fit(X, y, sample_weight)


def test_halves_come_in_pairs_without_a_common_row():
    Recording.seen.clear()
    X, w = regular_gaussian(4).sample(101, rng=0), np.arange(1.0, 102.0)
    table = selection_frequencies(Recording(degree=2, l1=0.1), X, 6, sample_weight=w)
    first, *halves = Recording.seen
    assert np.array_equal(first, w)
    assert len(halves) == 6
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        assert np.count_nonzero(one) == np.count_nonzero(other) == 50
        assert not np.any(one * other)
        assert np.all((one == 0) | (one == w))
    assert len({tuple(half) for half in halves}) == 6
    # against fits to those halves by hand
    kept = [
        interactions(PseudoLikelihood(degree=2, l1=0.1).fit(X[h > 0], sample_weight=h[h > 0]).model_) for h in halves
    ]
    by_term = table.set_index("term")
    for i, j in MonomialBasis(4, 2, min_degree=2).terms:
        if i != j:
            row, hits = by_term.loc[f"x{i}*x{j}"], np.reshape([(i, j) in k for k in kept], (3, 2))
            assert row.frequency == pytest.approx(hits.mean())
            assert row.stderr == pytest.approx(hits.mean(axis=1).std(ddof=1) / np.sqrt(3))
    Recording.seen.clear()
    selection_frequencies(Recording(degree=2, l1=0.1), X, 4, share=0.2)
    assert {np.count_nonzero(half) for half in Recording.seen[1:]} == {20}


@pytest.mark.parametrize("options", [{}, dict(groups=np.arange(101) // 2), dict(block_length=7)])
def test_exponential_weights_keep_all_rows_and_their_sum(options):
    Recording.seen.clear()
    X, w = regular_gaussian(4).sample(101, rng=0), np.arange(1.0, 102.0)
    bootstrap(Recording(degree=2), X, 3, kind="multiplier", sample_weight=w, **options)
    assert len(Recording.seen) == 4
    for drawn in Recording.seen[1:]:
        assert drawn.sum() == pytest.approx(w.sum())
        assert np.all(drawn > 0)


def test_edges_that_are_there_are_frequent_and_others_rare():
    truth = regular_gaussian(10)
    table = selection_frequencies(PseudoLikelihood(degree=2, l1="auto"), truth.sample(2000, rng=0), 20)
    names = {truth.term_name(term) for term in interactions(truth)}
    there = table.term.isin(names)
    assert len(table) == 45
    assert there.sum() == 15
    assert np.array_equal(table.selected, there)
    assert table.frequency[there].min() >= 0.95
    assert table.frequency[~there].max() <= 0.15
    assert np.all(np.diff(table.frequency) <= 0)
    assert np.array_equal(table.frequency, table.set_frequency)
    assert expected_false(table, low=0.1) == pytest.approx(0.1 * 4.5 / 0.8)


def test_sets_of_variables_are_kept_where_any_of_their_terms_is():
    table = selection_frequencies(ScoreMatching(degree=4, l1=0.08), paper_pair(1).sample(400, rng=0), 10)
    assert len(table) == 6
    assert set(table.variables) == {"x0*x1"}
    assert table.set_frequency.nunique() == 1
    assert table.frequency.max() <= table.set_frequency[0] <= min(table.frequency.sum(), 1)
    assert table.set_selected.all() == table.selected.any()
    one = selection_frequencies(
        ScoreMatching(degree=4, l1=0.08, include=[(0, 1)], exclude=[(0, 0, 1, 1)]), paper_pair(1).sample(400, rng=0), 4
    )
    assert set(one.term) == {"x0^2*x1", "x0*x1^2", "x0^3*x1", "x0*x1^3"}


def test_the_bound_on_false_terms():
    table = pd.DataFrame({"frequency": [1.0] * 5 + [0.1] * 50 + [0.0] * 45})
    assert expected_false(table, 0.9) == pytest.approx(10**2 / (0.8 * 100))
    assert expected_false(table, 0.75, low=0.02) == pytest.approx(0.02 * 2 / 0.5)
    assert expected_false(table, 0.75, low=0.5) == pytest.approx(0.5 * 10 / 0.5)


x = gaussian_sample(20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(n_draws=1), "n_draws must be 2 or more"),
        (dict(n_draws=0), "n_draws must be a positive integer"),
        (dict(n_draws=2.5), "n_draws must be a positive integer"),
        (dict(kind="parametric"), "kind must be 'nonparametric' or 'multiplier', not 'parametric'"),
        (dict(groups=np.arange(20), block_length=3), "groups or block_length, not both"),
        (dict(groups=np.arange(19)), r"groups has shape \(19,\), X has 20 rows"),
        (dict(groups=["a"] * 20), "groups has one group only"),
        (dict(groups=[None, "b"] * 10), "groups has no label in row 0"),
        (dict(block_length=0), "block_length must be a number of rows from 1 to 10, half of all; not 0"),
        (dict(block_length=21), "block_length must be .* not 21"),
        (dict(block_length=2.5), "block_length must be .* not 2.5"),
        (dict(rng="seed"), "rng must be what numpy.random.default_rng takes"),
        (dict(progress=1), "progress must be True, False, None or a function"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap(Gaussian(), x, **options)


def test_bad_weights_intervals_and_units():
    weight = np.ones(20)
    weight[4] = -1
    with pytest.raises(ValueError, match="sample_weight is negative or not finite at row 4: -1.0"):
        bootstrap(PseudoLikelihood(degree=2), x, sample_weight=weight)
    result = bootstrap(Gaussian(), x, 5)
    with pytest.raises(ValueError, match="kind must be one of 'percentile', 'basic', 'normal', 'simultaneous'"):
        result.to_frame(kind="bca")
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        result.to_frame(level=95)
    with pytest.raises(ValueError, match='units must be "raw" or "standardized"'):
        result.stderr("x")


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (PseudoLikelihood(degree=2), {}, 'PseudoLikelihood has no penalty and keeps every term: set l1="auto"'),
        (Gaussian(), {}, "Gaussian has no penalty"),
        (PseudoLikelihood(degree=2, l1=0.1), dict(n_draws=5), "n_draws must be even, 4 or more"),
        (PseudoLikelihood(degree=2, l1=0.1), dict(n_draws=2), "n_draws must be even, 4 or more"),
        (PseudoLikelihood(degree=2, l1=0.1), dict(share=0.6), "share must be at most 0.5"),
        (PseudoLikelihood(degree=2, l1=0.1), dict(share=0), "share must lie between 0 and 1"),
        (PseudoLikelihood(degree=2, l1=0.1, include=[(0, 1)]), {}, "no term is penalised"),
    ],
)
def test_bad_input_of_frequencies(estimator, options, message):
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match=message):
        selection_frequencies(estimator, X, **options)
    with pytest.raises(ValueError, match="threshold must lie above 0.5"):
        expected_false(pd.DataFrame({"frequency": [1.0]}), 0.4)


def test_an_estimator_that_was_fitted_with_groups_wants_them_again():
    X, groups = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) // 5
    est = PseudoLikelihood(2).fit(X, groups=groups)
    with pytest.raises(ValueError, match="the estimator was fitted with groups, to as many rows: give groups"):
        bootstrap(est, X, n_draws=2)
    assert len(bootstrap(est, X, n_draws=2, groups=groups).draws) == 2
    assert len(bootstrap(clone(est), X, n_draws=2).draws) == len(bootstrap(est, X[:150], n_draws=2).draws) == 2
