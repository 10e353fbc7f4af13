"""Intervals, p-values, false discovery rates and joint tests, against closed forms, SciPy and simulation."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from isodus import MonomialBasis, PolynomialModel, ScoreMatching
from isodus.energy import raw_matrix
from isodus.significance import block, in_other_units, p_values, q_values, wald, width


def model(covariance, theta=(1.0, -0.2, 0.3), **options):
    return PolynomialModel(MonomialBasis(2, terms=[(0, 0), (0, 1), (1, 1)]), theta, covariance=covariance, **options)


def test_p_values_are_those_of_a_two_sided_normal_test():
    theta, errors = np.array([0.0, 1.96, -3.0, 1.0]), np.array([1.0, 1.0, 0.5, np.nan])
    expected = 2 * stats.norm.sf(np.abs(theta) / errors)
    assert np.allclose(p_values(theta, errors), expected, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("correction", ["bh", "by"])
def test_q_values_agree_with_scipy(correction):
    p = np.random.default_rng(0).random(50) ** 3
    assert np.allclose(q_values(p, correction), stats.false_discovery_control(p, method=correction), rtol=1e-12)


def test_q_values_leave_out_what_has_no_p_value():
    p = np.array([0.01, np.nan, 0.02, 0.5])
    expected = stats.false_discovery_control(p[[0, 2, 3]])
    assert np.allclose(q_values(p)[[0, 2, 3]], expected)
    assert np.isnan(q_values(p)[1])
    assert np.isnan(q_values(np.array([np.nan]))).all()


def test_simultaneous_intervals_of_independent_estimates_have_a_closed_form():
    """P(max|z| < c) = (2Φ(c) − 1)^k; the quantile of 20,000 draws is known to about 0.02."""
    for k in (1, 5, 40):
        exact = stats.norm.ppf(0.5 + 0.95 ** (1 / k) / 2)
        assert width(np.diag(np.arange(1.0, k + 1)), 0.95, simultaneous=True) == pytest.approx(exact, abs=0.05)
    assert width(np.ones((7, 7)), 0.9, simultaneous=True) == pytest.approx(stats.norm.ppf(0.95), abs=0.04)
    assert width(None, 0.9) == pytest.approx(stats.norm.ppf(0.95))


def test_walds_test_is_a_quadratic_form():
    rng = np.random.default_rng(0)
    root, theta = rng.standard_normal((4, 4)), rng.standard_normal(4)
    C = root @ root.T
    found = wald(theta, C)
    assert found.statistic == pytest.approx(theta @ np.linalg.solve(C, theta), rel=1e-9)
    assert found.df == 4
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, 4))
    # a parameter that was held is not tested; two that always move together are one
    held = np.full((5, 5), np.nan)
    held[:4, :4] = C
    assert wald(np.append(theta, 9.0), held) == found
    twice = C[np.ix_([0, 1, 1], [0, 1, 1])]
    assert wald(theta[[0, 1, 1]], twice).df == 2
    assert np.isnan(wald(theta, np.full((4, 4), np.nan)).p_value)


def test_walds_test_allows_for_a_covariance_that_was_estimated():
    """Means of 40 samples of 15 variables: Hotelling's T² is exact, and χ² rejects far too often."""
    rng, found = np.random.default_rng(0), []
    for _ in range(1000):
        X = rng.standard_normal((40, 15))
        C = np.cov(X.T) / 40
        found.append((wald(X.mean(axis=0), C, 39).p_value, wald(X.mean(axis=0), C).p_value))
    exact, naive = (np.array(found) < 0.05).mean(axis=0)
    assert abs(exact - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 1000)
    assert naive > 0.3
    assert np.isnan(wald(np.ones(3), np.eye(3), 2).p_value)


def test_a_frame_has_intervals_at_a_level():
    C = np.diag([0.01, 0.04, np.nan])
    C[2] = C[:, 2] = np.nan
    frame = model(C).to_frame(level=0.9)
    z = stats.norm.ppf(0.95)
    assert np.allclose(frame["ci_low"][:2], [1 - 0.1 * z, -0.2 - 0.2 * z])
    assert np.allclose(frame["ci_high"][:2], [1 + 0.1 * z, -0.2 + 0.2 * z])
    assert frame.loc[2, ["stderr", "ci_low", "ci_high", "p_value", "q_value"]].isna().all()
    wider = model(np.diag([0.01, 0.04, 0.04])).to_frame(level=0.9, simultaneous=True)
    assert np.all(wider["ci_high"][:2] > frame["ci_high"][:2])


def test_interactions_and_terms_of_one_variable_are_families_of_their_own():
    frame = model(np.diag([0.01, 0.01, 0.01]), theta=(5.0, 0.1, 4.0)).to_frame()
    assert frame["q_value"][1] == pytest.approx(frame["p_value"][1])  # many self terms do not lend it their strength


def test_interactions_are_tested_set_by_set():
    basis = MonomialBasis(3, 4, max_order=2)
    rng = np.random.default_rng(0)
    root, theta = rng.standard_normal((len(basis), len(basis))), rng.standard_normal(len(basis))
    made = PolynomialModel(basis, theta, covariance=root @ root.T / 100, names=["a", "b", "c"])
    frame = made.interactions()
    assert frame["p_value"].is_monotonic_increasing
    at = [k for k, term in enumerate(basis.terms) if set(term) == {0, 2}]
    row = frame[frame["variables"] == "a*c"].iloc[0]
    C = made.covariance[np.ix_(at, at)]
    assert row["chi2"] == pytest.approx(theta[at] @ np.linalg.solve(C, theta[at]))
    assert (row["order"], row["n_terms"], row["df"]) == (2, 6, 6)
    assert row["strength"] == pytest.approx(made.hyperedges()["a", "c"])


def test_a_sparse_covariance_knows_what_it_holds(tmp_path):
    basis = MonomialBasis(2, 2)
    rng = np.random.default_rng(0)
    root = rng.standard_normal((len(basis), len(basis)))
    C = root @ root.T
    same = np.array([[set(a) == set(b) for a in basis.terms] for b in basis.terms])
    units = dict(location=[3.0, -1.0], scale=[2.0, 0.5])
    full = PolynomialModel(basis, np.ones(len(basis)), **units, covariance=C)
    part = PolynomialModel(basis, np.ones(len(basis)), **units, covariance=csr_array(np.where(same, C, 0.0)))
    assert np.allclose(part.stderr("standardized"), full.stderr("standardized"))
    # x0 in the units of X takes x0², which is known, and x0 x1, which is not
    known = np.array([len(term) > 1 for term in basis.terms])
    assert np.allclose(part.stderr()[known], full.stderr()[known])
    assert np.isnan(part.stderr()[~known]).all()
    assert part.to_frame()["p_value"][known].notna().all()
    assert part.interactions().equals(full.interactions())
    assert np.array_equal(block(part.covariance, np.array([0, 1]))[0], [C[0, 0], np.nan], equal_nan=True)
    part.save(tmp_path / "m.json")
    again = PolynomialModel.load(tmp_path / "m.json")
    assert np.array_equal(again.covariance.toarray(), part.covariance.toarray())
    with pytest.raises(ValueError, match="simultaneous intervals need the covariance of all"):
        part.to_frame("standardized", simultaneous=True)


def test_covariances_in_other_units_are_congruent():
    rng = np.random.default_rng(0)
    T, root = csr_array(np.tril(rng.standard_normal((5, 5)))), rng.standard_normal((5, 5))
    C = root @ root.T
    assert np.allclose(in_other_units(C, T), T.toarray() @ C @ T.toarray().T)
    assert in_other_units(None, T) is None


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, True, "0.95", np.nan])
def test_levels_lie_between_zero_and_one(level):
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model(np.eye(3)).to_frame(level=level)


def test_unknown_corrections_are_refused():
    with pytest.raises(ValueError, match="correction must be"):
        model(np.eye(3)).to_frame(correction="bonferroni")
    with pytest.raises(ValueError, match="the model has none"):
        model(None).to_frame(simultaneous=True)


def test_intervals_are_of_what_was_estimated(tmp_path):
    moved = model(np.diag([0.01, 0.04, 0.04]), moved_from=(0.5, 0.4, 0.3))
    frame, still = moved.to_frame(), model(np.diag([0.01, 0.04, 0.04]), theta=(0.5, 0.4, 0.3)).to_frame()
    assert frame["theta"].tolist() == [1.0, -0.2, 0.3]
    for column in ("stderr", "ci_low", "ci_high", "p_value", "q_value"):
        assert frame[column].equals(still[column])
    moved.save(tmp_path / "m.json")
    assert PolynomialModel.load(tmp_path / "m.json").to_frame().equals(frame)
    assert pickle.loads(pickle.dumps(moved)).to_frame().equals(frame)
    with pytest.raises(ValueError, match="moved_from has shape"):
        model(None, moved_from=(1.0,))


def test_a_model_that_was_moved_is_tested_where_it_was_estimated():
    X = np.random.default_rng(0).standard_normal((300, 2))
    learned, kept = (ScoreMatching(4, integrable=how).fit(X).model_ for how in ("enforce", "warn"))
    assert not np.array_equal(learned.theta, kept.theta)
    assert learned.interactions()["chi2"].equals(kept.interactions()["chi2"])
    assert learned.to_frame()["p_value"].equals(kept.to_frame()["p_value"])


def test_what_a_sparse_covariance_does_not_know_is_not_made_up():
    """In other units, and between terms: what is finite is what the whole covariance gives."""
    terms = [(0,), (1,), (2,), (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (0, 0, 2), (0, 0, 0), (0, 0, 0, 2), (0,) * 4]
    basis = MonomialBasis(3, terms=terms)
    rng = np.random.default_rng(0)
    root = rng.standard_normal((len(basis), len(basis)))
    C = root @ root.T
    known = np.array([[set(a) == set(b) or len({*a, *b}) <= 2 for a in basis.terms] for b in basis.terms])
    T = raw_matrix(basis, np.array([3.0, 2.0, 0.0]), np.ones(3))
    full, part = in_other_units(C, T), in_other_units(csr_array(np.where(known, C, 0.0)), T).toarray()
    there = np.isfinite(part) & (part != 0)
    assert np.allclose(part[there], full[there])
    assert np.isnan(part).any()
    assert there.diagonal().sum() > 3
    # a stored zero is a known one, and what was held is missing
    zeros = csr_array((np.array([1.0, 0.0, 0.0, 2.0]), ([0, 0, 1, 1], [0, 1, 0, 1])), shape=(2, 2))
    assert np.array_equal(block(zeros, np.array([0, 1])), [[1.0, 0.0], [0.0, 2.0]])


def test_units_are_checked_for_errors_too():
    with pytest.raises(ValueError, match="units must be"):
        model(np.eye(3)).stderr("z-scores")


def test_few_degrees_of_freedom_make_wide_intervals():
    settings = {"error_df": 5.0}
    frame = model(np.diag([0.01, 0.04, 0.04]), settings=settings).to_frame()
    assert np.allclose(frame["ci_high"] - frame["theta"], np.array([0.1, 0.2, 0.2]) * stats.t.ppf(0.975, 5))
    assert np.allclose(frame["p_value"], 2 * stats.t.sf(np.abs(frame["theta"]) / frame["stderr"], 5))
    wide = width(np.eye(4), 0.95, simultaneous=True, df=5)
    drawn = np.abs(np.random.default_rng(1).standard_normal((200_000, 4))).max(axis=1)
    drawn /= np.sqrt(np.random.default_rng(2).chisquare(5, 200_000) / 5)
    assert wide == pytest.approx(np.quantile(drawn, 0.95), rel=0.03)
