"""Two groups of samples: sizes, power, closed forms and units."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from cases import drawn
from scipy.stats import norm, t

from isodus import ISODUS, MonomialBasis, ScoreMatching
from isodus.datasets import double_wells, gaussian
from isodus.groups import compare_groups
from isodus.planning import sample_size

WELLS = double_wells(2, height=1.0, coupling=0.5)
GAUSS = gaussian(np.array([[1.0, 0.4], [0.4, 1.0]]))
NAMES = ["a", "b"]


def frame(X):
    return pd.DataFrame(X, columns=NAMES)


def sets(model, n, k, seed=0):
    return np.split(np.asarray(model.sample(n * k, rng=seed)), k)


def test_two_groups_of_one_variable_have_closed_forms():
    """θ₂ = 1/(2v) with the variance (m₄ − v²)/(4v⁴(n − 2)), in each group by itself."""
    rng = np.random.default_rng(0)
    groups = [rng.normal(50.0, 2.0, 400), rng.normal(52.0, 2.5, 700)]
    result = compare_groups(*(x[:, None] for x in groups), ISODUS(2), units="raw")
    v = np.array([x.var() for x in groups])
    m4 = np.array([np.mean((x - x.mean()) ** 4) for x in groups])
    row = result.table.set_index("term").loc["x0^2"]
    assert (row["theta_1"], row["theta_2"]) == pytest.approx(0.5 / v)
    assert row["stderr"] == pytest.approx(np.sqrt(np.sum((m4 - v**2) / (4 * v**4 * [398, 698]))), rel=1e-6)
    z = (row["theta_1"] - row["theta_2"]) / row["stderr"]
    assert (row["difference"], row["p_value"]) == pytest.approx((0.5 / v[0] - 0.5 / v[1], 2 * norm.sf(abs(z))))
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(
        row["difference"] + row["stderr"] * norm.ppf([0.025, 0.975])
    )


def test_the_test_of_one_term_is_welchs():
    """θ = 1/(2⟨x²⟩), of which only the variance of x² makes the error."""
    rng = np.random.default_rng(0)
    groups = [rng.normal(0.0, 1.0, (30, 1)), rng.normal(0.0, 1.3, (12, 1))]
    result = compare_groups(*groups, ISODUS(basis=MonomialBasis(1, terms=[(0, 0)])), units="raw")
    m = np.array([np.mean(x**2) for x in groups])
    C = np.array([np.var(x**2) / (4 * np.mean(x**2) ** 4 * (len(x) - 1)) for x in groups])
    z = (0.5 / m[0] - 0.5 / m[1]) / np.sqrt(C.sum())
    nu = C.sum() ** 2 / (C[0] ** 2 / 29 + C[1] ** 2 / 11)
    assert result.test == pytest.approx((z**2, 1, 2 * t.sf(abs(z), nu)), rel=1e-5)


def test_few_samples_and_many_terms_have_their_size_too():
    """60 samples each for 20 terms, where the χ² of many samples would be wrong 17 % of the time."""
    sphere = gaussian(np.eye(5) + 0.2)
    p = [compare_groups(X[:60], X[60:], ISODUS(2)).test.p_value for X in sets(sphere, 120, 100)]
    assert abs(np.mean(np.less(p, 0.05)) - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 100)


@cache
def same_groups():
    """Groups of 300 and 500 from one model, 120 times."""
    return [compare_groups(X[:300], X[300:]) for X in sets(WELLS, 800, 120)]


def test_groups_that_do_not_differ_are_told_apart_as_often_as_said():
    overall = np.mean([result.test.p_value < 0.05 for result in same_groups()])
    assert abs(overall - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 120)
    p = np.array([result.table["p_value"] for result in same_groups()])
    assert p.shape == (120, 14)
    assert np.all(np.abs(np.mean(p < 0.05, axis=0) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 120))
    assert abs(np.mean(p < 0.05) - 0.05) < 0.02
    any_found = np.mean([len(result.different()) > 0 for result in same_groups()])  # of two families of terms
    assert any_found < 0.1 + 3.5 * np.sqrt(0.1 * 0.9 / 120)


def test_standard_errors_of_differences_are_their_spread():
    spread = np.std([result.table["difference"] for result in same_groups()], axis=0, ddof=1)
    claimed = np.mean([result.table["stderr"] for result in same_groups()], axis=0)
    assert np.all(np.abs(claimed / spread - 1) < 4 / np.sqrt(2 * 119))


def test_gaussian_groups_that_do_not_differ_are_left_in_peace():
    """Which terms are compared is chosen by the data, and the size holds nonetheless."""
    results = [compare_groups(X[:200], X[200:]) for X in sets(GAUSS, 400, 80, seed=3)]
    assert np.mean([len(result.table) == 5 for result in results]) > 0.9
    overall = np.mean([result.test.p_value < 0.05 for result in results])
    assert abs(overall - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 80)


def test_a_difference_is_found_where_it_is():
    other = double_wells(2, height=1.0, coupling=1.2)
    result = compare_groups(drawn(WELLS, 2000), drawn(other, 2000))
    assert result.different()["term"].tolist() == ["x0*x1"]
    assert result.verdict.startswith("the groups differ (T² =")
    assert "1 of 14 terms differ at a false discovery rate of 5 %, foremost x0*x1, by -" in result.verdict
    raw = compare_groups(drawn(WELLS, 2000), drawn(other, 2000), units="raw").table.set_index("term")
    assert abs(raw.loc["x0*x1", "difference"] + 0.7) < 4 * raw.loc["x0*x1", "stderr"]
    same = compare_groups(drawn(WELLS, 4000)[:2000], drawn(WELLS, 4000)[2000:])
    assert same.verdict.startswith("no evidence that the groups differ (T² =")
    assert repr(same) == f"GroupComparison: {same.verdict}"


def test_power_is_what_was_planned():
    """The difference of two independent estimates, each with the standard error that `sample_size` foretells."""
    n, k, other = 700, 60, double_wells(2, height=1.0, coupling=1.3)
    groups = zip(sets(WELLS, n, k, seed=1), sets(other, n, k, seed=2), strict=True)
    rows = [compare_groups(X, Y, units="raw").table.set_index("term").loc["x0*x1"] for X, Y in groups]
    all_terms = MonomialBasis(2, 4, max_order=2)
    plans = [sample_size(model, (0, 1), error=0.1, basis=all_terms) for model in (WELLS, other)]
    z = 0.8 / np.hypot(*(plan.stderr(n) for plan in plans))
    predicted = norm.sf(norm.ppf(0.975) - z)
    assert 0.3 < predicted < 0.9  # otherwise the next line says nothing
    found = np.mean([row["p_value"] < 0.05 for row in rows])
    assert abs(found - predicted) < 3.5 * np.sqrt(predicted * (1 - predicted) / k)


@pytest.mark.filterwarnings("ignore:the learned model")
def test_gaussians_with_other_correlations_are_compared_as_gaussians():
    """Their mixture is none: it has terms beyond degree 2 that neither group has."""
    other = gaussian(np.array([[1.0, -0.6], [-0.6, 1.0]]))
    groups = drawn(GAUSS, 1500) + 3.0, 4.0 * drawn(other, 1500)
    result = compare_groups(*groups)
    assert len(result.table) == 5
    assert result.notes == ["9 terms, which the samples do not support, are left out; 5 are compared"]
    assert "x0*x1" in set(result.different()["term"])
    assert np.count_nonzero(ISODUS(integrable="warn").fit(np.vstack(groups)).model_.theta) > 5


def test_units_and_order_do_not_matter():
    X, Y = frame(drawn(WELLS, 1000)), frame(1.2 * drawn(WELLS, 2000)[1000:] + 0.1)
    plain = compare_groups(X, Y)
    move = lambda Z: (Z * [1e3, 0.02] + [5e3, -3.0])[["b", "a"]]
    moved = compare_groups(move(X)[["a", "b"]], move(Y))
    raw = compare_groups(move(X)[["a", "b"]], move(Y), units="raw")
    back = compare_groups(Y, X)
    assert np.allclose(moved.table["p_value"], plain.table["p_value"], rtol=1e-4, atol=1e-12)
    assert moved.test.statistic == pytest.approx(plain.test.statistic, rel=1e-4)
    top = plain.table["degree"] == 4
    assert np.allclose(raw.table["p_value"][top], plain.table["p_value"][top], rtol=1e-4)
    assert not np.allclose(raw.table["p_value"][~top], plain.table["p_value"][~top], rtol=0.1)
    assert np.allclose(back.table["difference"], -plain.table["difference"], rtol=1e-3)
    assert moved.table["term"].tolist() == plain.table["term"].tolist()


def test_terms_of_a_penalty_and_of_a_basis_are_compared():
    X, Y = drawn(WELLS, 1000), drawn(WELLS, 2000)[1000:]
    sparse = compare_groups(X, Y, ISODUS(l1="auto"))
    assert 8 < len(sparse.table) < 14
    assert sparse.table["p_value"].notna().all()
    own = MonomialBasis(2, terms=[(0, 0), (1, 1), (0, 1), (0, 0, 0, 0), (1, 1, 1, 1)])  # keeps its origin
    listed = compare_groups(X, Y, ScoreMatching(basis=own))
    assert listed.table["term"].tolist() == ["x0^2", "x0*x1", "x1^2", "x0^4", "x1^4"]
    assert all(model.location.tolist() == [0.0, 0.0] for model in listed.models)
    few = compare_groups(X[:40], Y, ISODUS(basis=MonomialBasis(2, 4)))
    assert few.notes[0].startswith("standard errors of group 1 may be too small")


@pytest.mark.parametrize(
    ("X", "Y", "options", "message"),
    [
        (frame(np.eye(2)), frame(np.eye(2)).rename(columns={"b": "c"}), {}, "group 2: (.|\n)*- c\n(.|\n)*- b"),
        (np.zeros((9, 2)), np.zeros((9, 3)), {}, "group 1: columns without variation: x0, x1"),
        (
            np.random.default_rng(0).random((9, 2)),
            np.random.default_rng(0).random((9, 3)),
            {},
            "group 2: X has 3 features",
        ),
        (frame(np.eye(2)), frame([[1.0, np.nan], [2.0, 3.0]]), {}, "group 2: .*: b .first in row 0."),
        (np.eye(2), np.eye(2), dict(level=2), "level must lie between"),
        (np.eye(2), np.eye(2), dict(correction="no"), "correction must be one of"),
        (np.eye(2), np.eye(2), dict(units="own"), "units must be one of"),
        (np.eye(2), np.eye(2), dict(estimator=ISODUS(dependence="auto")), "set dependence=None"),
    ],
)
def test_groups_that_cannot_be_compared_are_refused(X, Y, options, message):
    with pytest.raises(ValueError, match=message):
        compare_groups(X, Y, **options)


def test_a_group_with_too_few_samples_is_named():
    with pytest.raises(ValueError, match="group 2: 6 samples for 14 terms. Give an estimator with fewer"):
        compare_groups(drawn(WELLS, 1000), drawn(WELLS, 6))
    with pytest.raises(ValueError, match="q must lie between 0 and 1"):
        compare_groups(drawn(WELLS, 300), drawn(WELLS, 600)[300:]).different(0)


def test_unequal_groups_are_told_that_levels_do_not_hold():
    X = drawn(WELLS, 4000)
    with pytest.warns(UserWarning, match="the groups have 300 and 700 rows. Beyond a ratio of 2 : 1 the level of the"):
        result = compare_groups(X[:300], X[1000:1700])
    assert any("Beyond a ratio of 2 : 1" in note for note in result.notes)
    assert "Beyond a ratio" in repr(result)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not compare_groups(X[:600], X[1000:1700]).notes
