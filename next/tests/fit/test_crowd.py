"""Slopes of terms that are not listed, beside those of an objective that lists them; fits with few listed terms."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isodus import ISODUS, L1, PowerReference, PseudoLikelihood, ScoreMatching
from isodus.axes import Circle, Line
from isodus.data import as_samples
from isodus.datasets import many_body
from isodus.estimators import crowded, sparse
from isodus.fit.crowd import Crowd
from isodus.fit.objective import Objective
from isodus.fit.sparse import SparseProblem
from isodus.losses import PseudoLikelihoodLoss
from isodus.terms import Terms, keys_up_to

X = many_body(1200, (3, 2), seed=3)


@pytest.mark.parametrize(("degree", "order", "least"), [(4, 4, 1), (4, 2, 1), (3, 3, 2), (5, 3, 1)])
def test_all_slopes(degree, order, least):
    """Those of the objective of all listed terms in powers, at terms of one variable; and their noise."""
    data = np.column_stack([X, np.random.default_rng(0).vonmises(0, 1, len(X))])
    samples = as_samples(data, np.random.default_rng(1).integers(1, 4, len(X)))
    axes = [*(Line.fit(x, degree) for x in X.T), Circle(degree)]

    def objective(keys):
        return Objective(PseudoLikelihoodLoss(), Terms(axes, keys, None, in_powers=True), samples)

    whole = objective(keys_up_to(axes, degree, order))
    own = whole.only(whole.terms.orders == 1)
    rng, taus, longer = np.random.default_rng(2), {}, {}
    places = {key: k for k, key in enumerate(whole.terms.keys)}
    for i, (unknowns, _) in enumerate(own.terms.local_T):
        taus[i], longer[i] = rng.normal(0, 0.1, len(unknowns)), np.zeros(len(whole.terms.local_T[i][0]))
        inside = [places[own.terms.keys[k]] for k in unknowns]
        longer[i][np.searchsorted(whole.terms.local_T[i][0], inside)] = taus[i]
    crowd = Crowd(own, taus, degree, order, least, True, True)
    slopes = {i: at.gradient for i, at in whole.at_nodes(longer, 1).items()}
    squares = whole.node_scores(longer, lambda block, parts: np.concatenate([S**2 @ block.weight for S in parts]))
    noise = np.sqrt(squares / whole.n)
    expected, start = {}, 0
    for i, (unknowns, _) in enumerate(whole.terms.local_T):
        ratio = np.abs(slopes[i]) / noise[start : start + len(unknowns)]
        start += len(unknowns)
        for k, value in zip(unknowns, ratio, strict=True):
            key = whole.terms.keys[k]
            if whole.terms.orders[k] > 1 and whole.terms.degrees[k] >= least:
                expected[key] = max(expected.get(key, 0.0), value)
    found = crowd.strongest(own, taus, len(expected))
    assert found.keys() == expected.keys()
    assert_allclose([found[key] for key in expected], list(expected.values()), rtol=1e-9)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    level = float(np.median(list(expected.values()))) * (1 + 1e-9)
    assert crowd.above(own, taus, level) == {key for key, value in expected.items() if value > level}


ASKED = [
    (PseudoLikelihood, dict(strength=0.12), {}),
    (PseudoLikelihood, dict(strength=0.1, penalize_self=True), {}),
    (PseudoLikelihood, dict(strength=0.1, include=[(0, 4)], exclude=[(0, 1, 2)]), {}),
    (PseudoLikelihood, dict(strength=0.1), {"min_degree": 2}),
    (PseudoLikelihood, dict(strength=0.03, units="raw"), {}),
    (PseudoLikelihood, dict(strength="ebic"), {}),
    (ISODUS, dict(strength=0.12), {}),
    (ScoreMatching, dict(strength=0.12), {}),
]


@pytest.mark.parametrize(("estimator", "l1", "more"), ASKED, ids=[f"{e.__name__}-{l1}" for e, l1, _ in ASKED])
def test_answers_do_not_depend_on_what_is_listed(estimator, l1, more, monkeypatch):
    with warnings.catch_warnings(action="ignore"):
        listed = estimator(4, max_order=3, penalty=L1(**l1), tol=1e-6, **more).fit(X)
        monkeypatch.setattr(sparse, "_MOST_CANDIDATES", 10)
        monkeypatch.setattr(crowded, "_STRONGEST", 30 if l1["strength"] == "ebic" else 2)
        few = estimator(4, max_order=3, penalty=L1(**l1), tol=1e-6, **more).fit(X)
    assert few.model_.to_dict().keys() == listed.model_.to_dict().keys()
    assert_allclose(list(few.model_.to_dict().values()), list(listed.model_.to_dict().values()), atol=1e-5)
    counts = [note.numbers for est in (few, listed) for note in est.notes_ if note.kind == "selected"]
    assert counts[0]["of"] == counts[1]["of"]


@pytest.mark.parametrize("strength", ["ebic", "cv"])
def test_paths_do_not_depend_on_what_is_listed(strength, monkeypatch):
    """A path of the user's has the same terms at each strength; one that ends early and is chosen there is noted."""
    l1 = L1(strength, path=[0.3, 0.15, 0.1])
    with warnings.catch_warnings(action="ignore"):
        listed = PseudoLikelihood(4, max_order=3, penalty=l1).fit(X)
        monkeypatch.setattr(sparse, "_MOST_CANDIDATES", 10)
        monkeypatch.setattr(crowded, "_STRONGEST", 2)
        few = PseudoLikelihood(4, max_order=3, penalty=l1).fit(X)
        short = PseudoLikelihood(4, max_order=3, penalty=L1(strength)).fit(X)
    assert few.path_.n_terms == listed.path_.n_terms
    assert_allclose(few.path_.scores, listed.path_.scores, rtol=1e-5)
    assert few.path_.chosen == listed.path_.chosen
    at_the_end = short.path_.chosen == len(short.path_.strengths) - 1
    assert [note.kind for note in short.notes_].count("end of the path") == at_the_end


def test_what_cannot_be_done_is_said(monkeypatch):
    monkeypatch.setattr(sparse, "_MOST_CANDIDATES", 10)
    monkeypatch.setattr(crowded, "_MOST_MISSING", 20)
    with pytest.raises(ValueError, match="terms, too many for PowerReference"):
        ISODUS(4, max_order=3, penalty=L1(0.1), reference=PowerReference(1.0)).fit(X)
    with pytest.raises(ValueError, match="too many for .* weights of L1"):
        PseudoLikelihood(4, max_order=3, penalty=L1(0.1, weights={(0, 1): 2.0})).fit(X)
    with pytest.raises(ValueError, match="strength='stars' of L1 has to list them all"):
        PseudoLikelihood(4, max_order=3, penalty=L1("stars")).fit(X)
    for l1 in (L1(0.1, include=[(0, 1, 2, 3)]), L1(0.1, exclude=[(0, 0, 0, 0, 1)]), L1(0.1, include=[(0,) * 6])):
        with pytest.raises(ValueError, match=r"has the term \(.*\), which is not one of the .* terms of this fit"):
            PseudoLikelihood(4, max_order=3, penalty=l1).fit(X)
    monkeypatch.setattr(crowded, "_STRONGEST", 2)
    with pytest.raises(ValueError, match="lets in over 20 of .* terms. Use a larger strength"):
        PseudoLikelihood(4, max_order=3, penalty=L1(1e-3)).fit(X)


def test_criteria_count_the_terms_that_are_not_listed(monkeypatch):
    """Of each node: all terms of up to three variables that it is in, less those of it alone."""
    made = []
    monkeypatch.setattr(sparse, "_MOST_CANDIDATES", 10)
    monkeypatch.setattr(crowded, "SparseProblem", lambda *args: made.append(SparseProblem(*args)) or made[-1])
    with warnings.catch_warnings(action="ignore"):
        PseudoLikelihood(4, max_order=3, penalty=L1(0.2)).fit(X)
    _, of = made[1].sizes(np.zeros(len(made[1].f.terms), bool))
    assert of.tolist() == [4 * 6 + 6 * 4] * 5  # 6 products of each pair, 4 of each triple
