"""Comparisons against sums by hand, explicit quadratic forms, closed forms, and the size of tests over many sets."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from cases import drawn
from scipy.sparse import csr_array
from scipy.stats import chi2, f, norm, sem

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching
from isodus.comparison import compare, nested_test, predicted
from isodus.datasets import double_wells, gaussian

WELLS = double_wells(2, height=1.0, coupling=0.5)
GAUSS = gaussian(np.array([[1.0, 0.4], [0.4, 1.0]]))
ALONE = [(0,), (1,), (0, 0), (1, 1), (0, 0, 0), (1, 1, 1), (0, 0, 0, 0), (1, 1, 1, 1)]
NAMES = ["a", "b"]


def at(size, shift=0.0):
    """Independent Gaussians of variance 1/(2 size), whose conditionals SciPy knows."""
    return PolynomialModel.from_dict({(0,): shift, (1,): 0.0, (0, 0): size, (1, 1): size}, names=NAMES)


def frame(X):
    return pd.DataFrame(X, columns=NAMES)


@cache
def fitted(kind, degree, model, n=1500, **options):
    return kind(degree, **options).fit(frame(drawn(model, n)))


def sets(model, n, k, seed=0):
    return np.split(np.asarray(model.sample(n * k, rng=seed)), k)


# scores


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_and_paired_differences_by_hand(weighted):
    X = np.random.default_rng(0).normal(0, 0.8, (300, 2))
    counts = np.random.default_rng(1).integers(0, 4, 300) if weighted else np.ones(300, int)
    models = {"right": at(0.78), "wide": at(0.4), "narrow": at(1.5)}
    result = compare(models, frame(X), sample_weight=counts if weighted else None)
    by_hand = {
        name: np.repeat(norm.logpdf(X, 0, np.sqrt(0.5 / size)).mean(axis=1), counts)
        for name, size in (("right", 0.78), ("wide", 0.4), ("narrow", 1.5))
    }
    assert result.table["name"].tolist() == sorted(by_hand, key=lambda name: -by_hand[name].mean())
    for row in result.table.itertuples():
        own, less = by_hand[row.name], by_hand[row.name] - by_hand["right"]
        assert (row.score, row.stderr) == (pytest.approx(own.mean()), pytest.approx(sem(own)))
        assert (row.difference, row.difference_stderr) == (pytest.approx(less.mean()), pytest.approx(sem(less)))
        assert (row.n_terms, row.degree, row.no_density) == (2, 2, "")
        if row.name != "right":
            assert row.z == pytest.approx(less.mean() / sem(less))
    assert result.verdict == "all models are Gaussian: take right"
    assert (len(result.wald), result.recommended) == (0, "right")


def test_scores_are_those_of_the_estimators():
    estimators = [fitted(ISODUS, 2, WELLS), fitted(ISODUS, 4, WELLS)]
    X = frame(drawn(WELLS, 3000)[1500:])
    table = compare(estimators, X).table.set_index("name")
    for estimator, name in zip(estimators, ("ISODUS (degree 2)", "ISODUS (degree 4)"), strict=True):
        assert table.loc[name, "score"] == pytest.approx(estimator.score(X), rel=1e-12)


SPIN_AND_LINE = PolynomialModel.from_dict({(0,): 0.2, (0, 1): 0.5, (1, 1): 0.5}, support=["spin", None])


def test_probabilities_of_values_are_not_compared_with_a_density():
    X = np.asarray(SPIN_AND_LINE.sample(500, rng=0))
    spin, other = ISODUS(2, support=["spin", None]).fit(X), ISODUS(2, support=[[-1, 0, 1], None]).fit(X)
    with pytest.warns(UserWarning, match="x0"):
        line = ISODUS(4).fit(X)
    with pytest.raises(ValueError, match="x0 has the values -1, 1 by spin and a density by line: probabilities of"):
        compare({"spin": spin, "line": line}, X)
    with pytest.raises(ValueError, match="x0 has a density by line and the values -1, 0, 1 by three: prob"):
        compare({"line": line, "more": line, "three": other}, X)
    with pytest.raises(ValueError, match="x0 has the values -1, 1 by spin and the values -1, 0, 1 by three"):
        compare({"spin": spin, "three": other}, X)
    with pytest.raises(ValueError, match="x0 has a density by large and the values -1, 1 by small"):
        nested_test(line, spin)
    new = np.asarray(SPIN_AND_LINE.sample(500, rng=1))
    assert compare({"spin": spin, "truth": SPIN_AND_LINE}, new).recommended in ("spin", "truth")
    with pytest.warns(UserWarning, match="rows that spin was fitted to.* no model is recommended"):
        same = compare({"spin": spin, "truth": SPIN_AND_LINE}, X)
    assert (same.recommended, same.verdict) == (None, "no verdict: these are the rows that spin was fitted to")


@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_weights_that_are_less_than_a_sample_are_refused():
    X = frame(np.random.default_rng(0).normal(0, 0.8, (400, 2)))
    models = {"one": at(0.78), "two": at(0.7)}
    for total in (0.5, 1.0):
        with pytest.raises(ValueError, match=f"sample_weight sums to {total:g}: .* takes more than one sample. Give"):
            compare(models, X, sample_weight=np.full(400, total / 400))
    assert "nan" not in compare(models, X, sample_weight=np.full(400, 2 / 400)).verdict


def test_values_are_those_of_the_samples_whatever_the_scale():
    X = np.asarray(SPIN_AND_LINE.sample(500, rng=0)) * [0.3, 1.0]
    fits = [ISODUS(2, support=[[-0.3, 0.3], None], scale=scale).fit(X) for scale in (True, False)]
    assert np.isfinite(compare(fits, X).table["score"]).all()
    positive = [ISODUS(2, support=[None, support]).fit(np.abs(X) + X) for support in ((0, np.inf), None)]
    assert np.isfinite(compare(positive, np.abs(X) + X).table["score"]).all()  # densities both


def test_a_simpler_model_is_taken_within_two_standard_errors():
    X = frame(np.random.default_rng(0).normal(0, 0.8, (400, 2)))
    more = at(0.78, shift=-0.02 * np.sign(X["a"].mean()))  # a term more, and hardly another density
    result = compare({"more": more, "less": at(0.78)}, X)
    assert result.table["name"].tolist() == ["more", "less"]
    assert -2 < result.table["z"].iloc[1] < 0
    assert result.recommended == "less"
    assert result.verdict.endswith("take less, the simplest within two standard errors of the best")
    alike = compare({"one": at(0.78), "two": at(0.78)}, X)
    assert alike.recommended == "one"
    assert np.isnan(alike.table["z"]).all()


def test_gaussian_samples_keep_the_gaussian():
    X = frame(drawn(GAUSS, 4000)[1500:])
    with pytest.warns(UserWarning, match="select=True left out 9 of 9 terms"):
        quartic = ISODUS(4, select=True).fit(frame(drawn(GAUSS, 4000)[:1500]))
    result = compare([fitted(ISODUS, 2, GAUSS), quartic], X)
    assert result.verdict == "all models are Gaussian: take ISODUS (degree 2)"
    assert np.isnan(result.wald[["chi2", "p_value"]].to_numpy(float)).all()
    assert result.wald["note"][0] == "select=True left out 9 of these terms: fit with select=False to test them"


def test_rows_that_were_fitted_are_noticed():
    X = frame(drawn(WELLS, 1000))
    fits = {f"degree {degree}": ISODUS(degree).fit(X) for degree in (2, 4)}
    with pytest.warns(UserWarning, match="X has the number, middles and spreads of the rows that degree 2, degree 4"):
        compare(fits, X)


@pytest.mark.filterwarnings("ignore:the learned model")
def test_terms_that_gaussian_samples_do_not_ask_for_are_never_recommended():
    """Score matching keeps what ISODUS leaves out; some of its models have no density."""
    verdicts = []
    for X in sets(GAUSS, 2000, 8):
        result = compare([ISODUS(2).fit(X[:800]), ScoreMatching().fit(X[:800])], X[800:])
        assert result.recommended == "ISODUS (degree 2)"
        verdicts.append(result.verdict)
    assert any("no evidence that ScoreMatching (degree 4) predicts better than" in verdict for verdict in verdicts)
    assert any("ScoreMatching (degree 4) has no conditional density of x" in verdict for verdict in verdicts)
    assert any("terms beyond degree 2 cannot be told from zero (Wald χ² =" in verdict for verdict in verdicts)


def test_double_wells_take_more_than_a_gaussian():
    result = compare([fitted(ISODUS, 2, WELLS), fitted(ISODUS, 4, WELLS)], frame(drawn(WELLS, 4000)[1500:]))
    assert result.recommended == "ISODUS (degree 4)"
    assert result.verdict.startswith("ISODUS (degree 4) predicts better than the Gaussian, ISODUS (degree 2), by 0.")
    assert "terms beyond degree 2 are not zero (Wald χ²" in result.verdict
    assert repr(result).startswith(f"Comparison: {result.verdict}\n")
    assert "no_density" not in repr(result)
    (row,) = result.nested.itertuples()
    assert (row.smaller, row.larger, row.n_terms, row.df) == ("ISODUS (degree 2)", "ISODUS (degree 4)", 9, 9)
    assert row.chi2 == pytest.approx(nested_test(fitted(ISODUS, 4, WELLS), 2).statistic)


def test_a_gaussian_that_predicts_better_is_taken():
    """Wells where there are none, as if badly learned."""
    worse = PolynomialModel.from_dict({(0, 0): -2.0, (1, 1): -2.0, (0,) * 4: 1.0, (1,) * 4: 1.0}, names=NAMES)
    result = compare({"wells": worse, "gauss": at(0.5)}, frame(drawn(GAUSS, 500)))
    assert result.recommended == "gauss"
    assert result.verdict.startswith("the Gaussian, gauss, predicts better, by ")
    assert "terms beyond degree 2 not tested: the model has no standard errors" in result.verdict


def test_a_score_without_a_density_names_the_variable():
    X = frame(np.vstack([np.zeros((10, 2)), [[0.0, 9.0]] * 3]))
    bad = PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): 1.0, (0, 0, 1): -0.2}, names=NAMES)  # none of a if b > 5
    result = compare({"bad": bad, "good": at(1.0)}, X)
    row = result.table.iloc[1]
    assert (row["name"], row["score"], row["difference"], row["no_density"]) == ("bad", -np.inf, -np.inf, "a (3)")
    assert result.verdict == "bad has no conditional density of a (3); all others are Gaussian: take good"
    none = compare([bad], X)
    assert none.recommended is None
    assert none.verdict == "no model has all conditional densities at all samples (model (degree 3): a (3))"
    assert "a (3)" in repr(none)
    fine = compare({"bad": bad}, X, sample_weight=[1.0] * 10 + [0.0] * 3)  # what has no weight is not there
    assert np.isfinite(fine.table["score"]).all()


def test_without_a_gaussian_it_says_so():
    new = frame(drawn(WELLS, 2000)[1500:])
    result = compare([fitted(ISODUS, 4, WELLS), fitted(PseudoLikelihood, 4, WELLS)], new)
    assert result.verdict.startswith("no Gaussian to compare with (degree=2); terms of ")


def test_of_one_model_it_says_that_there_is_nothing_to_compare_with():
    new = frame(drawn(WELLS, 2000)[1500:])
    verdict = compare([fitted(ISODUS, 4, WELLS)], new).verdict
    assert verdict.startswith("ISODUS (degree 4) is the only model: there is nothing to compare it with; its terms bey")
    assert "take" not in verdict
    assert compare([fitted(ISODUS, 2, WELLS)], new).verdict.endswith(
        "the only model: there is nothing to compare it with"
    )


def test_whether_a_model_predicts_better_than_a_gaussian_is_put_into_words():
    assert predicted(-1.3, -1.2).endswith("worse than a Gaussian with all pairs, by 0.1 nats")
    assert "better" in predicted(-1.2, -1.3)
    assert predicted(-1.2, -1.2001).endswith("and no better")
    assert predicted(-1.2, float("nan")) == ""


def test_names_of_a_list_are_as_long_as_it_takes():
    few = fitted(ISODUS, 4, WELLS, l1=0.2)
    models = [fitted(ISODUS, 2, WELLS), fitted(ISODUS, 4, WELLS), few, few, at(0.5)]
    result = compare(models, frame(drawn(WELLS, 300)))
    k = np.count_nonzero(few.model_.theta)
    assert set(result.table["name"]) == {
        "ISODUS (degree 2)",
        "ISODUS (degree 4, 14 terms)",
        f"2: ISODUS (degree 4, {k} terms)",
        f"3: ISODUS (degree 4, {k} terms)",
        "model (degree 2)",
    }
    notes = result.wald.set_index("name")["note"]
    assert "with l1 and without debias=True" in notes[f"2: ISODUS (degree 4, {k} terms)"]
    chosen = compare([fitted(ISODUS, 4, WELLS, l1="auto")], frame(drawn(WELLS, 300)))
    said = "p is too small, as a penalty chose the terms from the same samples"
    assert chosen.wald["note"].tolist() == [said]
    assert said in chosen.verdict


def test_variables_are_matched_by_name():
    X = frame(drawn(WELLS, 500))
    swapped = ISODUS(2).fit(frame(drawn(WELLS, 1500))[["b", "a"]])
    result = compare({"one": fitted(ISODUS, 4, WELLS), "two": swapped, "three": fitted(ISODUS, 2, WELLS)}, X)
    scores = result.table.set_index("name")["score"]
    assert scores["two"] == pytest.approx(scores["three"])
    pairs = result.nested.set_index("smaller")["chi2"]
    assert pairs["two"] == pytest.approx(pairs["three"])
    own = {(0, 0): 1.0, (0, 1): 0.1, (1, 1): 1.0, (0,): 0.0, (1,): 0.0, (1, 1, 1): 0.1, (1, 1, 1, 1): 0.1}
    uneven = PolynomialModel.from_dict(own, names=["b", "a"])  # a alone has terms beyond degree 2
    (row,) = compare({"small": uneven, "large": fitted(ISODUS, 4, WELLS)}, X).nested.itertuples()
    terms = [("a", "a", "a"), ("a",) * 4, *fitted(ISODUS, 2, WELLS).model_.basis.terms]
    assert row.chi2 == pytest.approx(nested_test(fitted(ISODUS, 4, WELLS), terms).statistic)
    with pytest.raises(ValueError, match="give X as a DataFrame"):
        compare([fitted(ISODUS, 4, WELLS), swapped], X.to_numpy())


@pytest.mark.parametrize(
    ("models", "X", "message"),
    [
        ([], np.zeros((5, 2)), "a list of at least one model"),
        ("abc", np.zeros((5, 2)), "a list of at least one model"),
        ([3], np.zeros((5, 2)), "models.0. must be a fitted estimator or a PolynomialModel, not 3"),
        ({"x": None}, np.zeros((5, 2)), "x must be a fitted estimator"),
        ([at(1), GAUSS], np.zeros((5, 2)), "model .degree 2, 3 terms. has other variables than the first model: a is"),
        ([at(1)], np.zeros((5, 3)), "X has shape"),
        ([at(1)], np.array([[0.0, 1.0], [np.nan, 2.0]]), "row 1, column a"),
        ([at(1)], np.zeros((1, 2)), "X has one row"),
    ],
)
def test_what_cannot_be_compared_is_refused(models, X, message):
    with pytest.raises(ValueError, match=message):
        compare(models, X)


def test_estimators_must_be_fitted_and_weights_fit_the_rows():
    with pytest.raises(ValueError, match="must be a fitted estimator or a PolynomialModel, not ISODUS"):
        compare([ISODUS()], np.zeros((5, 2)))
    with pytest.raises(ValueError, match="sample_weight has shape"):
        compare([at(1)], np.zeros((5, 2)), sample_weight=np.ones(4))


# nested terms


def quadratic_form(model, terms):
    k = [model.basis.terms.index(term) for term in terms]
    theta, C = model.theta[k], model.covariance[np.ix_(k, k)]
    statistic = theta @ np.linalg.solve(C, theta)
    df, n = len(k), model.n_samples
    return statistic, df, f.sf(statistic * (n - df) / (df * (n - 1)), df, n - df)


def test_all_ways_to_name_the_smaller_model_are_the_same():
    large = fitted(PseudoLikelihood, 4, WELLS, integrable="warn").model_
    beyond = [term for term in large.basis.terms if len(term) > 2]
    low = [term for term in large.basis.terms if len(term) <= 2]
    ways = [2, np.int64(2), fitted(ISODUS, 2, WELLS), fitted(ISODUS, 2, WELLS).model_, MonomialBasis(2, 2), low]
    ways.append([tuple(NAMES[v] for v in term) for term in low])
    for way in ways:
        assert nested_test(large, way) == pytest.approx(quadratic_form(large, beyond))
    assert nested_test(large, terms=beyond) == pytest.approx(quadratic_form(large, beyond))
    one = nested_test(large, terms=[("b", "a", "a")])
    assert one == pytest.approx(quadratic_form(large, [(0, 0, 1)]))
    row = large.to_frame("standardized").set_index("term").loc["a^2*b"]
    assert one.p_value == pytest.approx(row["p_value"], abs=1e-3)  # by the normal distribution there


def test_units_do_not_matter_where_what_is_left_is_closed_under_translation():
    X = frame(drawn(WELLS, 1500))
    small = MonomialBasis(2, terms=[*ALONE, (0, 1)])
    moved = X * [1e3, 0.01] + [-4e3, 7.0]
    options = dict(tol=1e-10, integrable="warn")
    plain, other = (nested_test(PseudoLikelihood(**options).fit(Y), small) for Y in (X, moved))
    assert other.statistic == pytest.approx(plain.statistic, rel=1e-5)


def test_a_model_that_keeps_its_origin_is_tested_there():
    """Without linear terms: the hypothesis is that they are zero in the units of the samples."""
    X = frame(drawn(GAUSS, 1500) + np.array([0.05, -0.02]))
    large, small = PseudoLikelihood(2).fit(X), PseudoLikelihood(2, min_degree=2).fit(X)
    raw = large.model_.to_frame().set_index("term")
    test = nested_test(large, small)
    assert test.df == 2
    one = PolynomialModel(MonomialBasis(2, terms=[(0, 0), (0, 1), (1, 1), (1,)]), np.ones(4), names=NAMES)
    assert nested_test(large, one).p_value == pytest.approx(raw.loc["a", "p_value"], abs=1e-3)
    (row,) = compare({"small": small, "large": large}, X).nested.itertuples()
    assert (row.chi2, row.note) == (pytest.approx(test.statistic), "in the units of the samples")
    assert nested_test(large, small.model_.basis).statistic != pytest.approx(test.statistic, rel=1e-3)


def test_nested_tests_have_their_size():
    """Terms beyond a*b and those of one variable are zero; 5 % of 240 sets, within 3.5 binomial errors."""
    sets = np.split(np.asarray(WELLS.sample(500 * 240, rng=0)), 240)
    small = MonomialBasis(2, terms=[*ALONE, (0, 1)])
    p = np.array([nested_test(ISODUS().fit(X), small).p_value for X in sets])
    assert abs(np.mean(p < 0.05) - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 240)
    assert abs(np.mean(p < 0.5) - 0.5) < 3.5 * np.sqrt(0.25 / 240)


def test_what_was_held_is_no_evidence():
    C = np.diag([1.0, 1.0, np.nan])
    part = PolynomialModel(MonomialBasis(1, 3), [0.0, 2.0, 5.0], covariance=C)
    assert nested_test(part, 1) == pytest.approx((4.0, 1, chi2.sf(4.0, 1)))
    moved = PolynomialModel(MonomialBasis(1, 3), [0.0, 1.0, 5.0], covariance=C, moved_from=[0.0, 2.0, 5.0])
    assert nested_test(moved, 1) == nested_test(part, 1)


def test_terms_that_cannot_be_told_apart_are_named():
    C = np.array([[1.0, 0, 0], [0, 1.0, 1.0], [0, 1.0, 1.0]])
    model = PolynomialModel(MonomialBasis(2, terms=[(0,), (0, 0), (1,)]), np.ones(3), names=NAMES, covariance=C)
    with pytest.raises(ValueError, match="(b, a.2|a.2, b) cannot be told apart: their covariance is singular"):
        nested_test(model, terms=[(0,), (0, 0), (1,)])


def test_of_a_sparse_covariance_only_blocks_are_tested():
    C = csr_array(np.diag([1.0, 1.0, 4.0]) + np.diag([0.5, 0.0], 1) + np.diag([0.5, 0.0], -1))
    C.eliminate_zeros()
    model = PolynomialModel(MonomialBasis(2, terms=[(0,), (0, 0), (1,)]), np.ones(3), names=NAMES, covariance=C)
    with pytest.raises(ValueError, match="only parts of the covariance are known"):
        nested_test(model, terms=[(0,), (0, 0)])
    assert nested_test(model, terms=[(0, 0)]).statistic == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(small=MonomialBasis(2, 6)), "small is not nested in large: a.5 is no term of the basis"),
        (dict(small=[(0, 0, 0, 0), ("a", "z")]), "'z', which is no column"),
        (dict(small=4), "no term is asked to be zero"),
        (dict(), "give one of small and terms, not neither"),
        (dict(small=2, terms=[(0, 1)]), "give one of small and terms, not both"),
        (dict(terms="ab"), "terms must list terms"),
        (dict(small=2.5), "small is not nested in large must list terms"),
    ],
)
def test_what_cannot_be_tested_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        nested_test(fitted(ISODUS, 4, WELLS), **options)


def test_a_test_needs_a_covariance():
    with pytest.raises(ValueError, match="the model has no standard errors"):
        nested_test(at(1.0), 1)
    with pytest.raises(ValueError, match="large must be a fitted estimator or a PolynomialModel, not ISODUS"):
        nested_test(ISODUS(), 2)
    with pytest.raises(ValueError, match="large must be a fitted estimator or a PolynomialModel, not 3"):
        nested_test(3, 2)
