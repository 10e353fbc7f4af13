"""Draws, missing values, and models whose mass is not where the data are."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from isodus import IsodusWarning, PolynomialModel
from isodus.axes import Circle, WholeLine
from isodus.model import Fitted
from isodus.model.mass import draw_notes, mass_notes
from isodus.sampling import Draws

AXES = [WholeLine(0.0, 1.0, 2)] * 2
PRECISION = np.array([[2.0, 0.6, 0.3], [0.6, 1.5, -0.4], [0.3, -0.4, 1.0]])


@pytest.fixture(scope="module")
def gaussian():
    theta = {(i, j): PRECISION[i, j] / (2 if i == j else 1) for i in range(3) for j in range(i, 3)}
    return PolynomialModel.from_dict(theta | {(0,): -1.0}, names=["a", "b", "c"])


@pytest.fixture(scope="module")
def moments():
    covariance = np.linalg.inv(PRECISION)
    return covariance @ [1.0, 0.0, 0.0], covariance


def about(X, **given):
    ranges = dict(minima=X.min(axis=0), maxima=X.max(axis=0), means=X.mean(axis=0), sds=X.std(axis=0))
    return Fitted("PseudoLikelihood", len(X), len(X), "converged", **{**ranges, **given})


# ------------------------------------------------------------------------------------------------ draws


def test_draws_have_names_where_columns_had(pair, butterfly, gaussian):
    assert list(pair.sample(5, random_state=0).columns) == ["a", "b"]
    assert isinstance(butterfly.sample(5, random_state=0), np.ndarray)
    assert list(gaussian.sample(5, random_state=0).columns) == ["a", "b", "c"]
    assert isinstance(PolynomialModel.from_dict({(0, 0): 1.0}).sample(5), np.ndarray)


def test_draws_repeat_with_the_seed(pair):
    pd.testing.assert_frame_equal(pair.sample(50, random_state=1), pair.sample(50, random_state=1))
    assert not pair.sample(50, random_state=1).equals(pair.sample(50, random_state=2))


def test_moments_of_draws(gaussian, moments):
    X = gaussian.sample(20_000, random_state=0)
    np.testing.assert_allclose(X.mean(), moments[0], atol=0.03)
    np.testing.assert_allclose(np.cov(X.T), moments[1], atol=0.05)


def test_arguments_are_checked(gaussian):
    for options in ({"n": 0}, {"n": 2.5}, {"n": 5, "method": "nuts"}, {"n": 5, "random_state": "x"}):
        with pytest.raises(ValueError, match=r"\bn\b|method|random_state"):
            gaussian.sample(**options)


def test_no_density_no_draws():
    model = PolynomialModel.from_dict({("a", "a"): 1.0, ("a", "b"): 3.0, ("b", "b"): 1.0})
    with pytest.raises(ValueError, match="no density.*not integrable.*negative"):
        model.sample(10)


# ------------------------------------------------------------------------------------------------ mass


def test_draws_of_a_good_fit_have_nothing_to_say(pair):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pair.sample(2000, random_state=0)
    assert [note.kind for note in pair.notes if note.kind == "mass far from the data"] == []


def test_mass_far_from_the_data_is_a_note_and_a_warning():
    """A second well that the data never visited holds the mass."""
    X = pd.DataFrame(np.random.default_rng(0).normal(0, 0.2, (300, 2)), columns=["a", "b"])
    by_hand = PolynomialModel.from_dict({("a",) * 4: 1.0, ("a",) * 3: -4.0, ("a",) * 2: 3.2, ("b", "b"): 12.5})
    model = PolynomialModel(by_hand.terms, by_hand.tau, by_hand.names, about(X.to_numpy()))
    with pytest.warns(
        IsodusWarning,
        match="mass is not where the data are: the draws of 'a' are .* standard deviations from the data on average.",
    ) as caught:
        model.sample(500, random_state=0)
    assert len(caught) == 1
    [note] = model.notes
    assert (note.kind, note.variables) == ("mass far from the data", ("a",))
    assert note.numbers["shift a"] > 2
    assert "b" not in "".join(key.split(" ", 1)[1] for key in note.numbers)
    assert "Samples and log Z describe that region, not your data." in model.summary().replace("\n  ", " ")
    with pytest.warns(IsodusWarning):
        model.sample(500, random_state=1)
    assert len(model.notes) == 1


@pytest.mark.parametrize("seed", range(3))
def test_mass_notes(seed):
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((500, 2))
    names, fitted = ("a", "b"), about(data)

    def columns(X, fitted=fitted, effective=None):
        return [note.variables for note in mass_notes(X, effective or len(X), fitted, names, AXES)]

    draws = rng.standard_normal((1000, 2))
    assert columns(draws) == columns(draws[:3]) == columns(draws[:1]) == []
    assert columns(draws + np.array([0.0, 2.0])) == [("b",)]
    assert columns(draws * np.array([4.0, 1.0])) == [("a",)]
    assert columns(draws * np.array([0.05, 1.0])) == [("a",)]
    assert columns(draws + 9.0) == [("a", "b")]
    assert columns(draws + np.array([0.0, 0.6]), effective=20) == []
    assert columns(draws + np.array([0.0, 9.0]), about(data, means=None, sds=None)) == [("b",)]
    tail = draws.copy()
    tail[0, 1] = 1e9
    assert columns(tail) == []
    heavy = rng.standard_cauchy((500, 2))
    assert columns(np.clip(rng.standard_cauchy((1000, 2)), -30, 30), about(heavy)) == []


def test_angles_are_neither_below_nor_above_others():
    """Data from −π to π, and draws from 0 to 2π."""
    X = np.random.default_rng(0).vonmises(0.0, 1.0, (300, 2))
    model = PolynomialModel.from_dict({(0,): -0.8, (0, 1): -0.4}, axes=[Circle(1)] * 2)
    model = PolynomialModel(model.terms, model.tau, model.names, about(X))
    assert (model.sample(300, random_state=0) > X.max()).any()
    assert model.notes == []
    assert len(model.outside(X + 2 * np.pi)) == 0


def test_slow_chains_and_unresolved_draws_are_warnings():
    X = np.zeros((100, 2))
    draws = Draws(X, "chains", np.array([100.0, 5.0]), np.array([0, 7]))
    slow, unresolved = draw_notes(draws, None, ("a", "b"), AXES)
    assert (slow.kind, slow.severity, slow.numbers["effective"]) == ("slow chains", "warning", 5.0)
    assert slow.text.startswith("The 100 draws count as 5 independent ones")
    assert (unresolved.kind, unresolved.variables, unresolved.numbers) == ("unresolved draws", ("b",), {"b": 7.0})
    assert draw_notes(Draws(X, "exact", None, np.zeros(2, int)), None, ("a", "b"), AXES) == []


# ------------------------------------------------------------------------------------------------ missing values


def conditional_mean(moments, row):
    """E[missing | observed] of a Gaussian."""
    mean, covariance = moments
    gone, seen = np.isnan(row), ~np.isnan(row)
    weights = covariance[np.ix_(gone, seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    return mean[gone] + weights @ (row[seen] - mean[seen])


def test_means_of_missing_values_are_a_gaussians(gaussian, moments):
    X = np.random.default_rng(1).standard_normal((6, 3))
    X[0, 1] = X[1, 0] = X[2, [0, 2]] = X[3, [1, 2]] = np.nan
    filled = gaussian.impute(X, method="mean", random_state=0)
    for row, exact in zip(range(4), (1e-10, 1e-10, 0.15, 0.15), strict=True):
        np.testing.assert_allclose(filled[row, np.isnan(X[row])], conditional_mean(moments, X[row]), atol=exact)
    seen = ~np.isnan(X)
    np.testing.assert_array_equal(filled[seen], X[seen])


def test_draws_of_missing_values_are_a_gaussians(gaussian, moments):
    row = np.array([0.5, np.nan, np.nan])
    X = gaussian.impute(np.tile(row, (8000, 1)), random_state=0)
    np.testing.assert_allclose(X[:, 1:].mean(axis=0), conditional_mean(moments, row), atol=0.04)
    np.testing.assert_allclose(np.cov(X[:, 1:].T), np.linalg.inv(PRECISION[1:, 1:]), atol=0.06)


def test_a_row_without_any_value_is_a_draw(gaussian, moments):
    X = gaussian.impute(np.full((8000, 3), np.nan), random_state=0)
    np.testing.assert_allclose(np.cov(X.T), moments[1], atol=0.06)


def test_frames_come_back_as_frames(gaussian):
    X = pd.DataFrame({"c": [1, 2, 3], "a": [0.1, np.nan, 0.3], "b": [None, 1.0, 2.0]}, index=[7, 5, 9])
    filled = gaussian.impute(X, random_state=0)
    assert list(filled.columns) == ["c", "a", "b"]
    assert list(filled.index) == [7, 5, 9]
    assert filled["c"].dtype == X["c"].dtype
    assert filled.notna().all().all()
    assert filled.loc[7, "a"] == 0.1
    assert np.isnan(X.loc[5, "a"])  # what was given is as it was
    theirs = gaussian.impute(pl.from_pandas(X), random_state=0)
    assert isinstance(theirs, pl.DataFrame)
    np.testing.assert_array_equal(theirs["a"].to_numpy(), filled["a"])
    arrow = gaussian.impute(pl.from_pandas(X).to_arrow(), random_state=0)
    assert arrow.column_names == ["c", "a", "b"]
    lists = gaussian.impute([[0.1, None, 1.0]], random_state=0)
    assert isinstance(lists, np.ndarray)
    assert not np.isnan(lists).any()
    masked = np.ma.masked_invalid([[0.1, np.nan, 1.0]])
    np.testing.assert_array_equal(gaussian.impute(masked, random_state=0), lists)


def test_nothing_is_missing(gaussian):
    X = pd.DataFrame(np.eye(3), columns=["c", "a", "b"])
    pd.testing.assert_frame_equal(gaussian.impute(X), X)
    np.testing.assert_array_equal(gaussian.impute(np.eye(3)), np.eye(3))


def test_missing_values_on_axes_of_all_kinds(mixed, values):
    X = values.copy()
    for i in range(7):
        X[i, i] = np.nan
    X[8, [1, 2]] = X[9, [0, 3, 6]] = np.nan
    for method in ("draw", "mean"):
        filled = mixed.impute(X, method=method, random_state=0)
        assert np.isfinite(filled).all()
        if method == "draw":
            assert np.isfinite(mixed.energy(filled)).all()
    for i, name in enumerate(mixed.names):
        assert filled[i, i] == pytest.approx(mixed.conditional(name, values[i : i + 1]).mean()[0], abs=1e-10)


def test_a_mean_direction_over_draws_is_one_of_vectors(mixed):
    axis = mixed.terms.axes[1]
    mean, variance = np.array([[0.1, 2 * np.pi - 0.1, 0.1, 2 * np.pi - 0.1]]), np.full((1, 4), 0.2)
    assert min(axis.pooled_mean(mean, variance)[0] % (2 * np.pi), 1.0) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(axis.pooled_mean(np.array([[0.0, np.pi / 2]]), np.array([[0.0, 1.0]])), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"a": [np.nan], "b": [1.0]}), "missing: 'c'"),
        (pd.DataFrame({"a": [np.nan], "b": [1.0], "c": [1.0], "d": [1.0]}), "not in the fit: 'd'"),
        (np.full((2, 2), np.nan), "X has 2 features, but PolynomialModel is expecting 3"),
        ([[np.nan, np.inf, 1.0]], "contains an infinity"),
        ([[np.nan, "x", 1.0]], "strings"),
        (np.array([np.nan, 1.0, 1.0]), "Expected 2D array"),
        (np.empty((0, 3)), "0 sample"),
    ],
)
def test_tables_to_fill_are_checked(gaussian, X, message):
    with pytest.raises(ValueError, match=message):
        gaussian.impute(X)


def test_methods_are_checked(gaussian, mixed, values):
    with pytest.raises(ValueError, match="method must be one of 'draw', 'mean'"):
        gaussian.impute([[np.nan, 1.0, 1.0]], method="median")
    X = values.copy()
    X[0, 0], X[0, 2] = np.nan, 0.3
    with pytest.raises(ValueError, match="'spin' has the value 0.3 in row 0"):
        mixed.impute(X)
