"""What a fit says, on models whose truth is known."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isodus import IsodusWarning, PseudoLikelihood, Ridge, datasets, lattice
from isodus.datasets import phi4, phi4_theta


def test_the_pair_of_the_paper():
    truth, est = datasets.paper_pair_theta(), PseudoLikelihood(4).fit(datasets.paper_pair(20_000, seed=3))
    view = est.model_.polynomial()
    z = (view.coefficients - [truth.get(key, 0.0) for key in view.keys]) / view.stderr
    assert np.abs(z).max() < 3.5
    assert est.status_ == "converged"
    assert est.held_out_ is None


def test_one_term_among_many_is_found():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 6))
    X[:, 0] += 0.3 * (X[:, 1] ** 2 - 1)
    table = PseudoLikelihood(4).fit(X).model_.interactions()
    assert table.loc[[(0, 1)], "p_value"].iloc[0] < 1e-20
    assert (table["q_value"] < 1e-3).sum() == 1


@pytest.mark.parametrize("scale", ["robust", "cdf"])
def test_dependence_without_correlation_is_found(scale):
    table = PseudoLikelihood(4, scale=scale).fit(datasets.butterfly(600, pairs=2, seed=2)).model_.interactions()
    assert {(0, 1), (2, 3)} <= set(table.index[table["q_value"] < 0.05])
    assert len(table) == 6


@pytest.mark.filterwarnings("ignore:Held out")
@pytest.mark.parametrize("variable", [0, 1, 2])
def test_a_circle_does_not_depend_on_its_zero(variable):
    rng = np.random.default_rng(4)
    X = rng.vonmises(0.3, 1.5, (800, 3))
    X[:, 1] += X[:, 0]
    turned = X.copy()
    turned[:, variable] = np.mod(turned[:, variable] + 2.0, 2 * np.pi)
    plain, other = (PseudoLikelihood(2, support="circle", tol=1e-8).fit(data) for data in (X, turned))
    assert other.score(turned) == pytest.approx(plain.score(X), abs=1e-8)
    a, b = (est.model_.interactions().sort_index() for est in (plain, other))
    assert_allclose(a["statistic"], b["statistic"], rtol=1e-5)


def test_the_order_of_rows_does_not_matter():
    X = datasets.sachs().to_numpy()[:3000, :5]
    with pytest.warns(IsodusWarning, match="Rows depend on the row before"):  # conditions follow one another
        plain = PseudoLikelihood(4).fit(X)
    other = PseudoLikelihood(4).fit(X[np.random.default_rng(1).permutation(len(X))])
    stderr = np.sqrt(np.diag(plain.model_.fitted.tau_covariance()))
    # functions are orthonormal under the same rows, whatever their order
    assert np.max(np.abs(plain.model_.tau - other.model_.tau) / stderr) < 1e-3


def test_the_units_of_a_column_do_not_matter():
    X = datasets.curved(1000, seed=2)
    plain, other = PseudoLikelihood(4, tol=1e-6).fit(X), PseudoLikelihood(4, tol=1e-6).fit(1e6 + 1e3 * X)
    assert other.score(1e6 + 1e3 * X) == pytest.approx(plain.score(X) - np.log(1e3), abs=1e-6)


def test_gaussian_data_at_degree_four_have_a_density():
    X = datasets.gaussian(1000, datasets.regular_precision(4), seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsodusWarning)
        est = PseudoLikelihood(4).fit(X)
    assert {note.kind for note in est.notes_ if note.severity == "warning"} <= {"held out"}
    assert np.isfinite(est.model_.logpdf(X[:20])).all()


def test_a_fit_that_predicts_worse_than_a_gaussian_says_so():
    X = np.random.default_rng(5).standard_t(2, size=(150, 4))
    with pytest.warns(IsodusWarning, match=r"Held out.*below a Gaussian. Use penalty=Ridge\(strength='cv'\)"):
        est = PseudoLikelihood(4).fit(X)
    assert est.held_out_.gain < -0.01
    new = np.random.default_rng(6).standard_t(2, size=(4000, 4))
    better = PseudoLikelihood(4, penalty=Ridge("cv")).fit(X)
    assert better.score(new) > est.score(new)
    assert better.path_.best.score >= better.path_.reference_score


def test_a_strength_by_folds_is_the_best_of_its_path():
    est = PseudoLikelihood(4, penalty=Ridge("cv")).fit(datasets.double_wells(120, 3, height=2.0, coupling=0.8, seed=1))
    assert est.path_.best.score == max(point.score for point in est.path_.points)
    assert {point.free for point in est.path_.points} >= {"quadratic", "own"}
    assert est.held_out_.score == est.path_.best.score


@pytest.mark.filterwarnings("ignore:Held out")
def test_independent_data_of_few_rows_are_shrunk_to_independence():
    X, new = (np.random.default_rng(seed).standard_normal((n, 10)) for seed, n in ((1, 25), (2, 2000)))
    score = PseudoLikelihood(2, penalty=Ridge("cv")).fit(X).score(new)
    assert score > -1.55  # entropy of a standard normal is 1.419; the sample's own Gaussian scores −1.9
    assert score > PseudoLikelihood(2).fit(X).score(new) + 0.1


def test_a_lattice_with_tied_parameters():
    X = phi4(60, (8, 8), sweeps=100, seed=2)
    truth = phi4_theta((8, 8))
    est = PseudoLikelihood(basis=lattice((8, 8))).fit(X)
    found = est.model_.to_dict()
    stderr = est.model_.stderr
    expected = [truth[0, 0], truth[0, 0, 0, 0], -1.0]
    values = [found[key] for key in ((0, 0), (0, 0, 0, 0), (0, 1))]
    assert len(est.model_.tau) == 3
    view = est.model_.polynomial()
    errors = dict(zip(view.keys, view.stderr, strict=True))
    z = [(v - e) / errors[key] for v, e, key in zip(values, expected, ((0, 0), (0,) * 4, (0, 1)), strict=True)]
    assert np.abs(z).max() < 3.5
    assert np.isfinite(stderr).all()


def test_spins_and_lines_together():
    rng = np.random.default_rng(8)
    spin = rng.choice([-1.0, 1.0], 2000)
    X = np.column_stack([spin, 0.8 * spin + rng.standard_normal(2000), rng.standard_normal(2000)])
    est = PseudoLikelihood(2, support={0: "spin"}).fit(X)
    table = est.model_.interactions()
    assert table["q_value"].iloc[0] < 1e-10
    assert table.index[0] == (0, 1)
    exact = -0.5 * np.log(2 * np.pi) - 0.5 * (X[:, 1] - 0.8 * spin) ** 2
    assert est.model_.conditional(1, X).logpdf(X[:, 1]).mean() == pytest.approx(exact.mean(), abs=0.01)


def test_threads_do_not_change_the_answer():
    X = datasets.skewed(5000, 3, seed=1)
    one, two = (PseudoLikelihood(4, n_jobs=n).fit(X).model_.tau for n in (1, 2))
    assert np.array_equal(one, two)
