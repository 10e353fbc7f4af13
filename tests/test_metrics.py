"""Structures compared with counts by hand and with scikit-learn; thresholds with precision matrices and SciPy."""

from itertools import combinations

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.metrics import precision_recall_fscore_support

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood
from isodus.datasets import gaussian_10, paper_4d, regular_gaussian
from isodus.metrics import (
    StructureComparison,
    compare_structures,
    normalized_couplings,
    partial_correlations,
    threshold,
)

OWN = {(i, i): 1.0 for i in range(4)}


def model(terms, names=("a", "b", "c", "d")):
    return PolynomialModel.from_dict(OWN | terms, names=names)


def test_counts_by_hand_at_every_level():
    found = model({(0, 1): 0.5, (0, 0, 1): 0.1, (1, 2, 3): 0.2, (0, 3): 0.0})
    truth = model({(0, 0, 1): 0.3, (1, 2): 0.2, (1, 2, 3): -0.2})
    result = compare_structures(found, truth)
    assert (result.found, result.true, result.exact) == (2, 3, False)
    assert (result.missed, result.added) == ([("b", "c")], [])
    assert result.by_order == {2: (1, 1, 0), 3: (1, 0, 0)}
    assert (result.precision, result.recall, result.f1) == (1.0, pytest.approx(2 / 3), pytest.approx(4 / 5))

    result = compare_structures(found, truth, level="terms")
    assert (result.missed, result.added) == ([("b", "c")], [("a", "b")])
    assert result.by_order == {1: (4, 0, 0), 2: (1, 1, 1), 3: (1, 0, 0)}
    assert (result.precision, result.recall) == (pytest.approx(6 / 7), pytest.approx(6 / 7))

    result = compare_structures(found, truth, level="graph")  # b, c, d share a term: so do their pairs
    assert result.exact
    assert (result.found, result.by_order) == (4, {2: (4, 0, 0)})


def test_a_fitted_estimator_stands_for_its_model():
    est = PseudoLikelihood(degree=2).fit(regular_gaussian(4, rng=0).sample(500, rng=0))
    pd.testing.assert_frame_equal(partial_correlations(est), partial_correlations(est.model_))
    assert normalized_couplings(est) == normalized_couplings(est.model_)
    assert threshold(est, value=0.2).hyperedges() == threshold(est.model_, value=0.2).hyperedges()
    assert compare_structures(est, est.model_).exact
    for function in (partial_correlations, normalized_couplings, lambda given: threshold(given, value=0.2)):
        with pytest.raises(ValueError, match="model must be a fitted estimator or a PolynomialModel, not Pseudo"):
            function(PseudoLikelihood(degree=2))
    with pytest.raises(ValueError, match="found must be a PolynomialModel, a fitted estimator, a networkx graph"):
        compare_structures(PseudoLikelihood(degree=2), est)


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    pairs = list(combinations(range(9), 2))
    for _ in range(5):
        there, true = rng.random((2, len(pairs))) < 0.4
        result = compare_structures(
            [pair for pair, k in zip(pairs, there, strict=True) if k],
            [pair[::-1] for pair, k in zip(pairs, true, strict=True) if k],
        )
        expected = precision_recall_fscore_support(true, there, average="binary")[:3]
        assert np.allclose([result.precision, result.recall, result.f1], expected)


def test_all_ways_to_give_a_graph_are_the_same():
    truth = regular_gaussian(10, rng=3)
    edges = [tuple(sorted(term)) for term in truth.to_dict() if term[0] != term[1]]
    Lambda = truth.precision()
    graph = networkx.Graph(edges)
    graph.add_edge(0, 0)
    zero = networkx.Graph(graph)
    absent = next(pair for pair in combinations(range(10), 2) if pair not in edges)
    zero.add_edge(*absent, weight=0.0)
    ways = [
        truth,
        truth.graph(),
        truth.hyperedges(),
        truth.to_dict(),
        graph,
        zero,
        Lambda,
        Lambda != 0,
        csr_array(Lambda),
        pd.DataFrame(Lambda),
        pd.DataFrame(Lambda, columns=truth.names),
        pd.DataFrame(Lambda, truth.names, truth.names).iloc[::-1, ::-1],
        (edge for edge in edges),
        [frozenset(edge) for edge in edges],
        [[np.int64(i), j] for i, j in edges],
        [*truth.hyperedges(), *edges[:3]],
    ]
    for way in ways:
        result = compare_structures(way, truth)
        assert result.exact, way
        assert (result.found, result.true, result.by_order) == (15, 15, {2: (15, 0, 0)})
    short = compare_structures(truth, graph.edge_subgraph(edges[1:]))
    assert short.added == [tuple(truth.names[v] for v in edges[0])]
    assert compare_structures(edges, Lambda).exact
    assert compare_structures(edges[1:], Lambda).missed == [edges[0]]
    assert compare_structures(list(truth.hyperedges()), truth.graph()).exact


def test_variables_are_matched_by_name_in_whatever_order():
    there = model({(0, 1): 0.5})
    swapped = model({(1, 3): 0.5}, names=("d", "b", "c", "a"))
    assert compare_structures(there, swapped).exact
    assert compare_structures(swapped, there, level="terms").exact
    assert compare_structures(there, swapped.to_dict()).missed == [("b", "d")]  # indices are positions


def test_names_stand_in_the_order_of_the_model():
    big = PolynomialModel.from_dict({(i, i): 1.0 for i in range(12)})
    assert compare_structures([], [(10, 2), (1, 11), (1, 2, 3)]).missed == [(1, 11), (2, 10), (1, 2, 3)]
    assert compare_structures(big, [(10, 2), (1, 11)]).missed == [("x1", "x11"), ("x2", "x10")]


def test_of_nothing_everything_is_right():
    both = compare_structures([], [(0,), (1, 1)])
    assert (both.precision, both.recall, both.f1, both.exact) == (1.0, 1.0, 1.0, True)
    assert both.by_order == {}
    none = compare_structures(np.eye(3), [(0, 1)])
    assert (none.precision, none.recall, none.f1, none.exact) == (1.0, 0.0, 0.0, False)
    much = compare_structures([(0, 1)], networkx.Graph())
    assert (much.precision, much.recall, much.f1) == (0.0, 1.0, 0.0)


def test_one_line_tells_it():
    result = compare_structures(paper_4d(), [(0, 1), (1, 2)])
    assert str(result) == (
        "StructureComparison: 1 of 2 hyperedges found, 1 added; precision 0.500, recall 0.500, F1 0.500"
    )
    assert "2 of 2 edges found, 0 added; exact" in repr(compare_structures(paper_4d(), [(0, 1), (2, 3)], level="graph"))
    assert isinstance(result, StructureComparison)
    assert result == compare_structures(paper_4d(), [(0, 1), (1, 2)])


@pytest.mark.parametrize(
    ("found", "truth", "level", "message"),
    [
        ([(0, 1)], [(0, 1)], "edges", "level must be"),
        (model({}), [("a", "e")], "hyperedges", "truth has an unknown variable 'e'; there are a, b, c, d"),
        ([(0, 4)], model({}), "hyperedges", "found has an unknown variable 4; there are 4, 0 to 3"),
        ([(0, 3)], np.eye(3), "hyperedges", "found has an unknown variable 3; there are 3"),
        (model({}), model({}, names="abce"), "hyperedges", "truth has the variable 'e', found has a, b, c, d"),
        (model({}), np.eye(3), "graph", "found has 4 variables and truth has 3"),
        ([("a", "b")], [(0, 1)], "hyperedges", "some variables are given by name and some by index"),
        ([("a", "b")], np.eye(2), "hyperedges", "some variables are given by name and some by index"),
        ([("a", 0)], [], "hyperedges", "some variables are given by name and some by index"),
        (["ab"], [(0, 1)], "hyperedges", "found has 'ab' for a term"),
        ([()], [(0, 1)], "hyperedges", r"found has \(\) for a term"),
        ([(0, -1)], [(0, 1)], "hyperedges", "found has -1 for a variable"),
        ([(0, True)], [(0, 1)], "hyperedges", "found has True for a variable"),
        ([(0, 1)], "ab", "hyperedges", "truth must be a PolynomialModel"),
        (3, [(0, 1)], "hyperedges", "found must be a PolynomialModel"),
        (ISODUS(), [(0, 1)], "hyperedges", "a fitted estimator, .*not ISODUS"),
        ({(0, 1): np.nan}, [(0, 1)], "hyperedges", "found maps a term to nan"),
        (np.ones((3, 2)), [(0, 1)], "hyperedges", r"found has shape \(3, 2\); a matrix must be square"),
        (np.triu(np.ones((2, 2))), [(0, 1)], "graph", r"found is not symmetric: 1.0 at \(0, 1\), 0.0 at \(1, 0\)"),
        (np.full((2, 2), np.nan), [(0, 1)], "graph", "found must be a matrix of finite numbers"),
        (pd.DataFrame(np.eye(2), ["a", "b"], ["b", "a"]), [], "graph", "the rows and columns of found"),
        (networkx.DiGraph([(0, 1)]), [(0, 1)], "graph", "found is a directed graph"),
        (np.eye(2), [(0, 1)], "terms", "found has pairs of variables, no terms"),
        ([(0, 1)], networkx.Graph(), "terms", "truth has pairs of variables, no terms"),
    ],
)
def test_what_cannot_be_compared_is_told(found, truth, level, message):
    with pytest.raises(ValueError, match=message):
        compare_structures(found, truth, level=level)


def gaussian(seed=0, p=5):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p, p))
    Lambda = A @ A.T + np.eye(p)
    basis = MonomialBasis(p, 2)
    theta = [
        0.3 if len(term) == 1 else Lambda[term[0], term[1]] / (2 if term[0] == term[1] else 1) for term in basis.terms
    ]
    scale, covariance = rng.uniform(0.5, 2.0, p), np.diag(rng.uniform(0.1, 2.0, len(basis)))
    return PolynomialModel(
        basis, theta, rng.standard_normal(p), scale, settings={"notes": ["n"]}, covariance=covariance
    )


def test_normalised_couplings_are_minus_partial_correlations():
    there = gaussian()
    Sigma = np.linalg.inv(there.precision())  # in raw units: the ratio does not depend on them
    couplings = normalized_couplings(there)
    assert list(couplings) == list(combinations(there.names, 2))
    for (i, j), value in zip(combinations(range(5), 2), couplings.values(), strict=True):
        rest = [k for k in range(5) if k not in (i, j)]
        block = np.ix_([i, j], rest)
        given = Sigma[np.ix_([i, j], [i, j])] - Sigma[block] @ np.linalg.solve(
            Sigma[np.ix_(rest, rest)], Sigma[block].T
        )
        assert -value == pytest.approx(given[0, 1] / np.sqrt(given[0, 0] * given[1, 1]), rel=1e-9)


def check_threshold(there, thin, keep):
    basis = there.basis
    expected = [
        value if len(set(term)) == 1 or keep(term, value, k) else 0.0
        for k, (term, value) in enumerate(there.to_dict("standardized").items())
    ]
    assert np.array_equal(thin.theta, expected)
    gone = np.count_nonzero(thin.theta != there.theta)
    assert 0 < gone < np.count_nonzero(basis.orders > 1)
    assert np.array_equal(thin.covariance, there.covariance)
    assert thin.settings["notes"][0] == "n"
    assert thin.settings["notes"][1].startswith(f"{gone} of 10 interactions were set to zero")
    assert there.settings["notes"] == ["n"]


def test_thresholds_act_on_interactions_alone(tmp_path):
    there = gaussian()
    check_threshold(there, threshold(there, value=1.0), lambda term, value, k: abs(value) >= 1.0)
    Lambda = there.precision()
    check_threshold(
        there,
        threshold(there, coupling=0.3),
        lambda term, value, k: abs(Lambda[term] / np.sqrt(Lambda[term[0], term[0]] * Lambda[term[1], term[1]])) >= 0.3,
    )
    stderr = np.sqrt(np.diag(there.covariance))
    thin = threshold(there, significance=0.05)
    check_threshold(there, thin, lambda term, value, k: abs(value) >= norm.ppf(0.975) * stderr[k])
    thin.save(tmp_path / "m.json")
    assert PolynomialModel.load(tmp_path / "m.json").settings["notes"] == thin.settings["notes"]
    assert threshold(there, value=0).to_dict() == there.to_dict()


def test_a_threshold_of_higher_terms():
    thin = threshold(paper_4d(), value=0.35)
    assert compare_structures(thin, {k: v for k, v in paper_4d().to_dict().items() if v >= 0.35}).exact
    expected = {k for k, v in paper_4d().to_dict().items() if v >= 0.35 or len(set(k)) == 1}
    assert compare_structures(thin, expected, level="terms").exact


def test_zeros_need_no_standard_error():
    covariance = np.diag([1.0, np.nan, 0.01])
    basis = MonomialBasis(3, terms=[(0, 1), (0, 2), (1, 2)])
    held = PolynomialModel(basis, [0.5, 0.0, 0.5], covariance=covariance)
    assert threshold(held, significance=0.05).theta.tolist() == [0.0, 0.0, 0.5]
    with pytest.raises(ValueError, match=r"no standard error, so no p-value, of x0\*x2;"):
        threshold(PolynomialModel(basis, [0.5, 0.1, 0.5], covariance=covariance), significance=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give one of value, coupling and significance, not none"),
        (dict(value=0.1, coupling=0.1), "not value and coupling"),
        (dict(value=-0.1), "value must be a number of at least zero"),
        (dict(value=True), "value must be a number of at least zero"),
        (dict(coupling="big"), "coupling must be a number of at least zero"),
        (dict(value=np.inf), "value must be a number of at least zero"),
        (dict(coupling=0.1), "a model of degree 4 has no normalised couplings"),
        (dict(significance=0.05), "the model has no standard errors"),
        (dict(significance=0.0), "significance must lie between 0 and 1"),
        (dict(significance=5), "significance must lie between 0 and 1"),
    ],
)
def test_thresholds_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        threshold(paper_4d(), **options)


def test_couplings_need_positive_self_terms():
    with pytest.raises(ValueError, match=r"the parameter of x1\^2 is 0; it must be positive"):
        normalized_couplings(PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 0.5}))
    with pytest.raises(ValueError, match="a model of degree 1 has no"):
        normalized_couplings(PolynomialModel.from_dict({(0,): 1.0}))
    assert normalized_couplings(PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): -1.0})) == {}


def test_partial_correlations_of_a_gaussian_have_the_errors_of_the_textbook():
    """(1 − r²)/√n; the fourth moments behind the sandwich are known to about √(96/n) = 1 %."""
    truth = gaussian_10()
    X = np.array(truth.sample(100_000, rng=0)) * 30 + 7
    frame = partial_correlations(PseudoLikelihood(2).fit(X).model_)
    r = frame["partial_correlation"]
    assert np.allclose(frame["stderr"], (1 - r**2) / np.sqrt(100_000), rtol=0.06)
    assert np.mean(frame["stderr"] * np.sqrt(100_000) / (1 - r**2)) == pytest.approx(1, abs=0.01)
    precision = np.linalg.inv(np.cov(X.T))
    d = np.sqrt(np.diagonal(precision))
    a, b = (frame[column].str[1:].astype(int) for column in "ab")
    assert np.allclose(r, -(precision / np.outer(d, d))[a, b], atol=1e-6)
    assert ((frame["ci_low"] > -1) & (frame["ci_low"] < r) & (r < frame["ci_high"]) & (frame["ci_high"] < 1)).all()


def test_partial_correlations_of_many_variables_have_errors_too():
    """p = 100 has 5,150 terms, of whose covariance blocks are known."""
    X = np.array(regular_gaussian(100, rng=0).sample(2000, rng=0))
    frame = partial_correlations(PseudoLikelihood(2, l1="auto").fit(X).debiased(X))
    assert frame["stderr"].to_numpy() == pytest.approx(
        (1 - frame["partial_correlation"] ** 2) / np.sqrt(2000), rel=0.25
    )


def test_partial_correlations_need_errors_and_a_gaussian():
    with pytest.raises(ValueError, match="no standard errors"):
        partial_correlations(gaussian_10())
    with pytest.raises(ValueError, match="degree=2 for a Gaussian"):
        partial_correlations(PolynomialModel.from_dict({(0, 0, 0, 0): 1.0}))


def test_partial_correlations_are_of_what_was_estimated():
    X = np.array(regular_gaussian(4, rng=0).sample(500, rng=0))
    learned = PseudoLikelihood(2).fit(X).model_
    assert partial_correlations(threshold(learned, value=0.25)).equals(partial_correlations(learned))
