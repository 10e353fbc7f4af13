"""Tables, graphs, summaries and formulas: what people read."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, false_discovery_control, norm

from isodus import IsodusWarning, Note, PolynomialModel, PseudoLikelihood, datasets
from isodus.axes import Bounded, Circle, Line, Mapped
from isodus.fit.score_tests import InteractionTest
from isodus.model import Fitted


def fitted(tests, **given):
    options = dict(
        estimator="PseudoLikelihood",
        n=1000.0,
        n_rows=1000,
        status="converged",
        minima=np.full(3, -3.0),
        maxima=np.full(3, 3.0),
        penalty="weak ridge",
        columns=("a", "b", "c"),
        tests=tests,
        held_out={"score": -1.25, "reference_score": -1.5, "reference": "Gaussian", "gains": (0.25,) * 5},
    )
    return Fitted(**{**options, **given})


@pytest.fixture
def known():
    """Three variables with tests of known p."""
    hand = PolynomialModel.from_dict(
        {("a", "b"): 3.0, ("a", "c"): 0.5, ("b", "c"): -0.1} | {(v, v): 1.0 for v in "abc"}
    )
    tests = [
        InteractionTest(90.0, 6, 1e-17, "score"),
        InteractionTest(12.0, 6, 0.02, "score"),
        InteractionTest(2.0, 6, 0.9, "one-step"),
    ]
    covariance = np.diag([0.01, 0.02, 0.03, 0.04, 0.05, 0.06])
    note = Note("pile", "info", ("a",), {}, "Column 'a' holds 0 in 9 % of its rows. " + "These are many words. " * 5)
    return PolynomialModel(hand.terms, hand.tau, hand.names, fitted(tests, covariance=covariance, notes=[note]))


# ------------------------------------------------------------------------------------------------ tables


def test_terms_as_a_table(known):
    table = known.to_frame(level=0.9)
    assert table["term"].tolist() == ["a^2", "b^2", "c^2", "a*b", "a*c", "b*c"]
    assert table["theta"].tolist() == [1.0, 1.0, 1.0, 3.0, 0.5, -0.1]
    assert table["order"].tolist() == [1, 1, 1, 2, 2, 2]
    assert table["degree"].tolist() == [2] * 6
    expected = np.sqrt([0.04, 0.05, 0.06, 0.01, 0.02, 0.03])
    np.testing.assert_allclose(table["stderr"], expected)
    np.testing.assert_allclose(known.stderr, expected)
    np.testing.assert_allclose(table["ci_high"] - table["theta"], norm.ppf(0.95) * expected)
    np.testing.assert_allclose(table["p_value"], 2 * norm.sf(np.abs(table["theta"] / expected)))
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        known.to_frame(level=95)


def test_interactions_as_a_table(known):
    table = known.interactions()
    assert table.index.tolist() == [(0, 1), (0, 2), (1, 2)]
    assert table["variables"].tolist() == ["a*b", "a*c", "b*c"]
    np.testing.assert_allclose(table["q_value"], false_discovery_control([1e-17, 0.02, 0.9]))
    np.testing.assert_allclose(table["strength"], [3.0, 0.5, 0.1])
    assert table["method"].tolist() == ["score", "score", "one-step"]
    assert known.interactions(q=0.01)["variables"].tolist() == ["a*b"]
    assert known.hyperedges() == [("a", "b"), ("a", "c")]
    assert known.hyperedges(q=1e-3) == [("a", "b")]
    assert known.hyperedges(q=None) == [("a", "b"), ("a", "c"), ("b", "c")]


def test_tests_of_a_fit_are_of_all_interactions(butterfly):
    table = butterfly.interactions()
    assert len(table) == 6
    np.testing.assert_allclose(table["p_value"], sorted(test.p_value for test in butterfly.fitted.interaction_tests()))
    assert (table["p_value"] >= chi2.sf(table["statistic"], table["df"])).all()
    assert set(butterfly.hyperedges()) >= {("x0", "x1"), ("x2", "x3")}


def test_a_model_by_hand_has_no_tests_and_all_its_interactions():
    model = PolynomialModel.from_dict({("a", "b"): 1.0, ("b", "c"): 0.0, ("a", "a"): 1.0, ("a", "b", "c"): 2.0})
    assert model.interactions()["q_value"].isna().all()
    assert model.hyperedges() == model.hyperedges(q=None) == [("a", "b", "c"), ("a", "b")]
    assert np.isnan(model.stderr).all()


def test_a_fit_without_tests_is_not_asked_for_significance(known):
    model = PolynomialModel(known.terms, known.tau, known.names, fitted(None, status="singular"))
    with pytest.raises(ValueError, match="status 'singular' and has no tests"):
        model.graph()
    assert model.graph(q=None).number_of_edges() == 3
    assert "no tests, as there are no standard errors" in model.summary()


# ------------------------------------------------------------------------------------------------ graphs


def test_graph(known):
    graph = known.graph()
    assert isinstance(graph, nx.Graph)
    assert list(graph) == ["a", "b", "c"]
    assert set(graph.edges) == {("a", "b"), ("a", "c")}
    about = graph.edges["a", "b"]
    assert (about["strength"], about["p_value"]) == (pytest.approx(3.0), 1e-17)
    assert about["q_value"] == pytest.approx(3e-17)
    assert graph.graph["hyperedges"] == []
    with pytest.raises(ValueError, match="q must lie between 0 and 1"):
        known.graph(q=5)


def test_larger_sets_are_hyperedges(triple):
    graph = triple.graph()
    assert [edge["variables"] for edge in graph.graph["hyperedges"]] == [("u", "v", "w")]
    assert graph.graph["hyperedges"][0]["p_value"] < 1e-10
    assert set(graph) == {"u", "v", "w"}


# ------------------------------------------------------------------------------------------------ summary

SUMMARY = """\
PolynomialModel of 3 variables

Variables  a, b, c
Terms      6, of degree 2, with up to 2 variables each
Fit        PseudoLikelihood, 1,000 rows, weak ridge
Status     converged
Held out   -1.250 nats per variable, 0.250 above a Gaussian (-1.500)

Interactions: 2 of 3 significant at a false discovery rate of 5 %
  interaction  strength      chi2  df         p         q
  a*b                 3        90   6     1e-17     3e-17
  a*c               0.5        12   6      0.02      0.03

Notes
- Column 'a' holds 0 in 9 % of its rows. These are many words. These are many
  words. These are many words. These are many words. These are many words."""


def test_summary(known):
    assert known.summary() == SUMMARY


def test_summary_of_a_model_by_hand():
    model = PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0})
    assert model.summary().splitlines() == [
        "PolynomialModel of 2 variables",
        "",
        "Variables  x0, x1",
        "Terms      3, of degree 2, with up to 2 variables each",
        "Fit        none: coefficients were given",
        "",
        "Interactions: 1 (no tests, as the model was not fitted)",
        "  interaction  strength",
        "  x0*x1             0.5",
    ]


def test_summary_of_one_variable():
    model = PolynomialModel.from_dict({"a": 1.0, ("a", "a"): 1.0})
    assert "PolynomialModel of 1 variable\n" in model.summary()
    assert "2, of degrees 1 to 2, with up to 1 variable each" in model.summary()
    assert model.summary().endswith("Interactions: the model has none.")


def test_summary_has_80_columns():
    names = [f"a rather long name of a column, number {i}" for i in range(30)]
    theta = {(i, i): 1.0 for i in range(30)} | {(i, i + 1): 0.1 for i in range(29)}
    text = PolynomialModel.from_dict(theta, names=names).summary()
    assert max(map(len, text.splitlines())) <= 80
    assert "and 18 more" in " ".join(text.split())
    assert "and 9 more; see model.interactions()" in text


def test_summary_of_a_fit_that_is_below_a_gaussian():
    X = np.random.default_rng(2).standard_t(2, size=(60, 3))
    with pytest.warns(IsodusWarning, match="Held out"):
        model = PseudoLikelihood(4).fit(X).model_
    assert "below a Gaussian (" in model.summary()
    assert "\n! Held out, this model scores" in model.summary()
    weighted = PseudoLikelihood(2).fit(X, sample_weight=np.full(60, 3)).model_
    assert "60 rows with a total weight of 180" in weighted.summary()


# ------------------------------------------------------------------------------------------------ formula


def test_formula():
    model = PolynomialModel.from_dict({"a": -1.0, ("a", "a"): 0.123456, ("a", "a", "b"): -2.5e-7, ("b", "b"): 1.0})
    assert model.formula() == "p(a, b) ∝ exp(−[−a + 0.123 a^2 + b^2 − 2.5e-07 a^2*b])"
    assert model.formula(digits=1, max_terms=2) == "p(a, b) ∝ exp(−[−a + b^2 + … (2 more terms)])"
    assert model.formula(latex=True) == (
        r"p(a, b) \propto \exp\left(-\left[-a + 0.123 a^{2} + b^{2} - 2.5 \cdot 10^{-7} a^{2} \, b\right]\right)"
    )
    assert PolynomialModel.from_dict({"a": 0.0}).formula() == "p(a) ∝ exp(−[0])"
    with pytest.raises(ValueError, match="digits"):
        model.formula(digits=0)


def test_formula_of_other_axes():
    x = np.random.default_rng(0).lognormal(size=200)
    axes = [Circle(2), Mapped.fit(x, 2, g="log10"), Line.fit(x, 2)]
    theta = {(0,): 1.0, (0, 0, 0, 0): 2.0, (1, 1): 1.0, (1,): 0.5, (2,): 3.0, (0, 2): -1.0}
    model = PolynomialModel.from_dict(theta, names=["phi", "dose_1", "x3"], axes=axes)
    words = model.formula()
    assert words == (
        "p(phi, dose_1, x3) ∝ q(dose_1) "
        "exp(−[cos(phi) + 0.5 log10(dose_1) + 3 x3 + log10(dose_1)^2 + 2 sin(2 phi) − cos(phi)*x3])"
    )
    latex = model.formula(latex=True)
    assert r"\propto q(\text{dose\_1}) \exp" in latex
    assert r"\cos (\text{phi})" in latex
    assert r"\text{dose\_1}" in latex
    assert "x_{3}" in latex


def test_formula_of_a_learned_scale():
    """Functions of the distribution function are not shown as powers of x."""
    axis = Bounded.fit(np.random.default_rng(0).standard_normal(200), 2)
    model = PolynomialModel.from_dict({"a": 1.0, ("a", "a"): 2.0}, axes=[axis])
    assert model.formula() == "p(a) ∝ q(a) exp(−[P1(a) + 2 P2(a)])"


def test_terms_kept_in_a_short_formula_are_the_surest(known):
    assert known.formula(max_terms=1) == "p(a, b, c) ∝ exp(−[3 a*b + … (5 more terms)])"


def test_repr(known):
    assert repr(known) == "PolynomialModel of 3 variables, 6 terms"


def test_outside(pair):
    X = pd.DataFrame({"b": [0.0, 99.0], "a": [-50.0, 0.0]})
    table = pair.outside(X)
    assert table.to_dict("records") == [
        {"row": 0, "variable": "a", "value": -50.0, "reason": "below the data"},
        {"row": 1, "variable": "b", "value": 99.0, "reason": "above the data"},
    ]
    spins = PseudoLikelihood(2, support="spin").fit(np.sign(datasets.gaussian(200, np.eye(2)))).model_
    assert spins.formula().startswith("p(x0, x1) ∝ exp(−[")
    assert spins.outside([[1.0, 0.5]])["reason"].tolist() == ["not on the axis"]


def test_columns_are_those_of_the_fit(pair):
    with pytest.raises(ValueError, match="missing: 'b'"):
        pair.energy(pd.DataFrame({"a": [1.0], "z": [2.0]}))
    with pytest.raises(ValueError, match="X has 3 features, but PolynomialModel is expecting 2"):
        pair.logpdf(np.zeros((1, 3)))
    X = pd.DataFrame({"b": [0.1], "a": [0.2]})
    assert pair.energy(X) == pair.energy(X[["a", "b"]])
