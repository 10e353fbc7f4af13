"""Arguments of an L1 penalty that mean nothing, and data that leave nothing: errors that name them."""

import numpy as np
import pytest
from estimators.test_l1 import NAMED, quietly, warned

from isodus import L1, PseudoLikelihood, ScoreMatching

BAD = [
    (dict(strength=-0.1), "strength of L1 must be .* at least 0, not -0.1"),
    (dict(strength=np.nan), "strength of L1 must be .*, not nan"),
    (dict(strength=np.inf), "strength of L1 must be .*, not inf"),
    (dict(strength="bic"), "strength of L1 must be .*, not 'bic'"),
    (dict(strength=True), "strength of L1 must be .*, not True"),
    (dict(strength=[0.1]), r"strength of L1 must be .*, not \[0.1\]"),
    (dict(units="sd"), "units of L1 must be one of 'noise', 'raw', 'paper'"),
    (dict(rule="xor"), "rule of L1 must be one of 'or', 'and'"),
    (dict(refit="no"), "refit of L1 must be one of"),
    (dict(penalize_self="no"), "penalize_self of L1 must be one of"),
    (dict(folds=1), "folds of L1 must be an integer of at least 2"),
    (dict(path=[0.1, 0.2]), "path of L1 must decrease, .* 0.1 is followed by 0.2"),
    (dict(path=[0.2, 0.2]), "path of L1 must decrease"),
    (dict(path=[0.2]), "path of L1 must list two or more positive strengths"),
    (dict(path=[0.2, 0.0]), "path of L1 must list two or more positive strengths"),
    (dict(path="ab"), "path of L1 must list two or more positive strengths, not 'ab'"),
    (dict(strength=0.1, path=[0.2, 0.1]), "path of L1 .* strength is 0.1. Leave path out"),
    (dict(weights={("a", "z"): 1.0}), r"weights of L1 has \('a', 'z'\), which is no term"),
    (dict(weights={("a", "b"): -1.0}), r"weights of L1 give -1.0 for \('a', 'b'\)"),
    (dict(weights={("a", "b"): np.nan}), "weights of L1 give nan"),
    (dict(weights={("a", "b"): "1"}), "weights of L1 give '1'"),
    (dict(weights={("a", "b"): 1, ("b", "a"): 2}), r"weights of L1 has the term \('b', 'a'\) twice"),
    (dict(weights=[1.0, 2.0]), "weights of L1 must map terms to numbers"),
    (dict(weights=lambda key: None), r"weights of L1 give None for \(0,\)"),
    (dict(include=[("a", "z")]), r"include of L1 has \('a', 'z'\), which is no term of these columns"),
    (dict(include=("a", "b")), "include of L1 has 'a', which is no term"),
    (dict(include="ab"), "include of L1 must list terms"),
    (dict(include=iter([("a", "b")])), "include of L1 must list terms"),
    (dict(include=[("a",) * 9]), "include of L1 has the term .* not one of the .* terms of this fit. Raise degree"),
    (dict(exclude=[(0, 7)]), r"exclude of L1 has \(0, 7\), which is no term"),
    (dict(exclude=[("a", "b"), ("b", "a")]), r"exclude of L1 has the term \('b', 'a'\) twice"),
    (dict(include=[("a", "b")], exclude=[(1, 0)]), r"The term \('a', 'b'\) is in include and in exclude of L1"),
]


@pytest.mark.parametrize("degree", [2, 4])
@pytest.mark.parametrize(("arguments", "text"), BAD, ids=range(len(BAD)))
def test_bad_arguments(arguments, text, degree):
    with pytest.raises(ValueError, match=text):
        PseudoLikelihood(degree, penalty=L1(**arguments)).fit(NAMED[:100])


def test_no_term_is_left():
    with pytest.raises(ValueError, match="The L1 penalty leaves no term. Use a smaller strength, or penalize_self=Fa"):
        PseudoLikelihood(4, penalty=L1(1e9, penalize_self=True)).fit(NAMED)
    with pytest.raises(ValueError, match="Columns 'a', .* have no density without the terms that L1 penalises"):
        PseudoLikelihood(2, penalty=L1(0.1, penalize_self=True)).fit(NAMED)
    with pytest.raises(ValueError, match="Columns 'a' have no density without the terms that L1 penalises or leaves"):
        PseudoLikelihood(2, penalty=L1(0.1, exclude=[("a", "a")])).fit(NAMED)
    with pytest.raises(ValueError, match="leaves columns 'a', .* without a positive square"):
        ScoreMatching(2, min_degree=2, penalty=L1(1e6, penalize_self=True)).fit(NAMED)
    with pytest.raises(ValueError, match="they have no noise. Use penalize_self=False, or units='raw'"):
        ScoreMatching(4, penalty=L1(0.1, penalize_self=True)).fit(NAMED)


def test_an_empty_model_is_said():
    assert "0 of 36 penalised terms are in the model" in warned(PseudoLikelihood(4, penalty=L1(1e9)), NAMED)


def test_nothing_is_penalised():
    """All terms are free: the fit without a penalty, whatever chooses the strength."""
    for strength in (0.3, "ebic"):
        est = quietly(PseudoLikelihood(2, penalty=L1(strength, weights=lambda key: 0)), NAMED)
        plain = PseudoLikelihood(2, penalty=None).fit(NAMED)
        assert est.score(NAMED) == pytest.approx(plain.score(NAMED), abs=1e-7)
