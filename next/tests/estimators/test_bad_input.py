"""Bad input ends in an error that names the column, or in a stated answer."""

import numpy as np
import pandas as pd
import pytest

from isodus import IsodusWarning, MonomialBasis, PseudoLikelihood, Ridge
from isodus.axes import Interval

RNG = np.random.default_rng(7)
X = RNG.standard_normal((300, 3))


def changed(column, values):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame[column] = values
    return frame


REFUSED = {
    "constant": (changed("b", 1.0), {}, "Column 'b' is constant"),
    "two values": (changed("b", np.sign(X[:, 1])), {}, "Column 'b' has two values"),
    "copy": (changed("b", X[:, 0]), {}, "'b' is a sum or copy of 'a'"),
    "sum": (changed("c", X[:, 0] - 2 * X[:, 1]), {}, "'c' is a sum or copy of 'a', 'b'"),
    "rows": (changed("c", X[:, 2]).iloc[:3], {}, "3 rows are too few for 3 columns"),
    "no penalty": (X[:10], {"penalty": None}, "10 rows are too few for 16 terms"),
    "strings": (changed("b", list("xyz" * 100)), {}, "Column 'b'"),
    "NaN": (changed("b", np.where(np.arange(300) == 7, np.nan, X[:, 1])), {}, "NaN.*row 7|row 7.*NaN"),
    "infinity": (changed("b", np.where(np.arange(300) == 7, np.inf, X[:, 1])), {}, "'b'"),
    "complex": (X + 1j, {}, "Complex"),
    "one row": (X[:1], {}, "1 sample"),
    "no rows": (X[:0], {}, "0 sample"),
    "one dimension": (X[:, 0], {}, "2D|two dimensions|one column"),
    "degree": (X, {"degree": 0}, "degree must be a positive integer"),
    "order": (X, {"max_order": 2.5}, "max_order must be"),
    "min_degree": (X, {"min_degree": 5}, "above degree"),
    "support": (X, {"support": "lines"}, "support is 'lines'"),
    "support of a column": (X, {"support": {"z": "line"}}, "a column 'z', which X does not have"),
    "support ends": (X, {"support": (0, 1)}, "Column 'x0'.*not all between"),
    "width zero": (X, {"support": (1, 1)}, "support is"),
    "positive": (X, {"support": "positive"}, "Column 'x0'.*not all at least 0"),
    "scale": (X, {"scale": "robustly"}, "scale must be one of"),
    "penalty": (X, {"penalty": "strong"}, "penalty must be"),
    "strength": (X, {"penalty": Ridge(-1.0)}, "strength of Ridge"),
    "tol": (X, {"tol": 0.0}, "tol must be"),
    "max_iter": (X, {"max_iter": 0}, "max_iter must be"),
    "n_jobs": (X, {"n_jobs": 0}, "n_jobs must be"),
    "random_state": (X, {"random_state": -1}, "random_state must be"),
    "progress": (X, {"progress": "yes"}, "progress must be"),
    "unknown variable": (X, {"basis": [("a", "a")]}, "a variable 'a', which is not a column"),
    "term twice": (X, {"basis": [(0, 1), (1, 0)]}, "in the basis twice"),
    "function": (X, {"basis": MonomialBasis([(0,) * 4, (0, 1)]), "support": {0: "spin"}}, "Column 'x0'|column 'x0'"),
    "far from zero": (X + 1000, {"min_degree": 2}, "Include the lower degrees"),
    "a square": (np.column_stack([X, X[:, 0] ** 2]), {}, "'x3'.*sums of lower terms"),
    "a basis of numbers": (X, {"basis": [0, 1]}, "is a tuple of variables"),
    "large": (RNG.standard_normal((300, 60)), {"degree": 8, "max_order": 3}, "terms, and at most 20,000"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name):
    data, options, message = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        PseudoLikelihood(**{"n_jobs": 1} | options).fit(data)


def test_integers_are_numbers():
    counts = RNG.poisson(50, (500, 2))
    assert PseudoLikelihood(2).fit(counts).status_ == "converged"


def test_few_values_are_warned_of_by_name():
    data = X.copy()
    data[:, 1] = np.round(data[:, 1]).clip(-2, 2)
    with pytest.warns(IsodusWarning, match="Column 'x1' has only 5 values"):
        est = PseudoLikelihood(2).fit(data)
    assert [note.variables for note in est.notes_ if note.kind == "few values"] == [("x1",)]


def test_a_pile_is_noted_by_name():
    data = X.copy()
    data[:60, 2] = 0.0
    note = next(note for note in PseudoLikelihood(2).fit(data).notes_ if note.kind == "pile")
    assert note.variables == ("x2",)
    assert note.numbers["share"] == pytest.approx(0.2)


@pytest.mark.parametrize("scale", ["robust", "cdf"])
@pytest.mark.filterwarnings("ignore:Held out, this model scores 0.01 nats per variable below a Gaussian")
def test_one_row_at_a_million_spreads(scale):
    wild, new = np.random.default_rng(1).standard_normal((2, 2000, 2))
    plain = PseudoLikelihood(4, scale=scale).fit(wild).score(new)
    wild[5, 0] = 1e6
    est = PseudoLikelihood(4, scale=scale).fit(wild)
    assert est.status_ == "converged"
    assert est.score(new) == pytest.approx(plain, abs=0.02)


def test_one_variable():
    x = np.random.default_rng(2).standard_normal((2000, 1))
    est = PseudoLikelihood(4).fit(x)
    assert est.status_ == "converged"
    assert est.model_.logpdf(x[:5]) == pytest.approx(-0.5 * x[:5, 0] ** 2 - 0.5 * np.log(2 * np.pi), abs=0.15)


def test_few_rows_have_an_answer():
    with pytest.warns(IsodusWarning):
        est = PseudoLikelihood(4).fit(np.random.default_rng(3).standard_t(2, size=(8, 3)))
    assert est.held_out_ is not None
    assert np.isfinite(est.model_.theta).all()


@pytest.mark.parametrize("noise", [3e-4, 1e-4, 3e-5])
def test_near_copies_end_by_name(noise):
    data = X.copy()
    data[:, 2] = data[:, 0] + noise * data[:, 2]
    with pytest.raises(ValueError, match="columns 'x0', 'x2' cannot be integrated: .* nearly determined"):
        PseudoLikelihood(4).fit(data)


def test_other_columns_at_prediction():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    est = PseudoLikelihood(2).fit(frame)
    with pytest.raises(ValueError, match=r"missing: 'c'.*not in the fit: 'd'"):
        est.score(frame.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match="2 features"):
        est.score(X[:, :2])


def test_few_groups_are_warned_of_and_not_tested():
    with pytest.warns(IsodusWarning) as said:
        est = PseudoLikelihood(4).fit(X, groups=np.arange(300) % 20)
    kinds = [note.kind for note in est.notes_ if note.severity == "warning"]
    assert kinds == ["held out", "few groups", "no tests"]
    assert len(said) == len(kinds)
    assert est.model_.interactions()["p_value"].isna().all()


def test_groups_of_alike_rows_find_what_is_there():
    data = np.random.default_rng(4).standard_normal((2000, 3))
    data[:, 1] += 0.8 * data[:, 0]
    table = PseudoLikelihood(4).fit(data, groups=np.arange(2000) % 100).model_.interactions()
    assert table.loc[[(0, 1)], "p_value"].iloc[0] < 1e-20
    assert table["p_value"].iloc[1] > 1e-3


def test_many_terms_for_the_rows_are_not_tested():
    """At degree 12 a pair has 66 terms: statistics would reach their bound n whatever the data."""
    with pytest.warns(IsodusWarning) as said:
        est = PseudoLikelihood(12, random_state=1).fit(X)
    assert any("300 rows are too few to test interactions of 66 terms" in str(w.message) for w in said)
    assert est.model_.interactions()["p_value"].isna().all()


def test_a_series_longer_than_a_quarter_of_the_rows():
    with pytest.raises(ValueError, match="dependence is 100 for 300 rows"):
        PseudoLikelihood(4).fit(X, dependence=100)


@pytest.mark.parametrize("total", [1.0, 100.0])
def test_weights_that_are_no_counts(total):
    with pytest.raises(ValueError, match="weights count how often a row was seen"):
        PseudoLikelihood(4).fit(X, sample_weight=np.full(300, total / 300))


def test_labels_of_columns_that_are_numbers():
    frame = pd.DataFrame(np.exp(X), columns=[2, 1, 0])
    est = PseudoLikelihood(2, support={2: "positive"}).fit(frame)
    assert [axis.contains(np.array([-1.0]))[0] for axis in est.model_.terms.axes] == [False, True, True]


def test_a_warning_points_at_the_line_of_the_user():
    with pytest.warns(IsodusWarning) as said:
        PseudoLikelihood(4).fit(np.random.default_rng(0).standard_normal((100, 4)))
    assert {warning.filename for warning in said} == {__file__}


def test_an_axis_that_does_not_hold_the_rows_is_refused():
    pair = np.random.default_rng(0).normal(0.5, 0.5, (100, 2))
    axis = Interval.fit(np.linspace(0, 1, 50), 4, ends=(0.0, 1.0))
    with pytest.raises(ValueError, match="Column 'x1': the axis given as support does not contain -?[0-9.]+"):
        PseudoLikelihood(4, support={1: axis}).fit(pair)


@pytest.mark.parametrize("unit", [1e-27, 1e-100, 1e77, 1e100])
def test_units_whose_powers_are_out_of_range_are_refused(unit):
    X = unit * np.random.default_rng(0).standard_normal((300, 2))
    with pytest.raises(ValueError, match="Column 'x0' has .* powers of degree 6 are beyond the range of numbers"):
        PseudoLikelihood(6).fit(X)


def test_ties_need_one_support():
    X = np.abs(np.random.default_rng(0).standard_normal((300, 2)))
    basis = MonomialBasis([(0, 0), (1, 1), (0, 1)], ties=[0, 0, 1])
    with pytest.raises(ValueError, match="'x0', 'x1' share parameters, .* different supports"):
        PseudoLikelihood(basis=basis, support={1: "positive"}).fit(X)


@pytest.mark.parametrize("basis", ["ab", ["ab"], [("a",), "b"]])
def test_names_alone_are_no_terms(basis):
    with pytest.raises(ValueError, match=r"tuple of variables, such as \(0, 0, 1\) for x0² x1 or \('a',\)"):
        MonomialBasis(basis)


def test_ends_far_from_the_data_are_none():
    X = np.random.default_rng(0).standard_normal((500, 2))
    wide = PseudoLikelihood(2, support=(-1e4, 1e4)).fit(X)
    assert wide.score(X) == pytest.approx(PseudoLikelihood(2).fit(X).score(X), abs=0.02)


def test_a_fit_that_scores_below_a_gaussian_is_checked_with_any_number_of_rows():
    """Two columns of correlation .99 on bounded axes, and without their product; the Gaussian is nearly the truth."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.99], [0.99, 1.0]], 3000)
    with pytest.warns(IsodusWarning, match="below a Gaussian. Use scale='robust', or"):
        est = PseudoLikelihood(4, scale="cdf").fit(X)
    assert est.held_out_.gain < -0.05
    with pytest.warns(IsodusWarning, match="below a Gaussian. Include all terms up to degree 2"):
        PseudoLikelihood(basis=[(0, 0), (1, 1)]).fit(X)
    assert PseudoLikelihood(4).fit(X).held_out_ is None
