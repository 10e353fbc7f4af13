"""Estimators with a penalty: which terms survive, what is said about it, and what is refused."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from isodus import ISODUS, MonomialBasis, PseudoLikelihood, ScoreMatching
from isodus.datasets import diamond_gaussian, hypertree_polynomial, regular_gaussian

ESTIMATORS = {
    "ISODUS": ISODUS,
    "the paper's": lambda *a, **k: ISODUS(*a, refine=0, **k),
    "the paper's, plain": lambda *a, **k: ISODUS(*a, refine=0, objective="plain", **k),
    "PseudoLikelihood": PseudoLikelihood,
    "ScoreMatching": ScoreMatching,
}


def edges(model):
    return {tuple(sorted(names)) for names in model.hyperedges()}


def f1(found, truth):
    both = len(found & truth)
    return 2 * both / max(len(found) + len(truth), 1)


@pytest.fixture(scope="module")
def graph():
    truth = regular_gaussian(12, rng=1)
    return truth, truth.sample(4000, rng=2)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_gaussian_graph_is_found(name, graph):
    truth, X = graph
    est = ESTIMATORS[name](2, l1="auto").fit(X)
    assert f1(edges(est.model_), edges(truth)) >= 0.95
    assert est.kkt_.max() <= 1e-6
    assert 0 < est.l1_ < est.l1_max_
    assert set(est.status_) == {"converged"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_large_penalty_leaves_nothing_and_says_so(name, graph):
    _, X = graph
    with pytest.warns(UserWarning, match=r"no interaction is in the model.*x\d+"):
        est = ESTIMATORS[name](2, l1=100.0).fit(pd.DataFrame(X, columns=[f"x{i}" for i in range(12)]))
    assert not est.model_.hyperedges()
    assert any("no interaction" in note for note in est.notes_)
    assert "no variables interact" in est.model_.summary()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_debiased_estimates_have_errors_and_are_not_shrunk(name, graph):
    truth, X = graph
    shrunk, refitted = (ESTIMATORS[name](2, l1="ebic", debias=debias).fit(X) for debias in (False, "auto"))
    assert edges(shrunk.model_) == edges(refitted.model_)
    true = truth.to_dict()
    pairs = [t for t in refitted.model_.to_dict() if len(set(t)) == 2]
    kept = [t for t in pairs if refitted.model_.to_dict("standardized")[t] != 0]
    bias = [np.mean([abs(est.model_.to_dict()[t]) - abs(true[t]) for t in kept]) for est in (shrunk, refitted)]
    assert bias[0] < -0.005 < 0.01 > abs(bias[1])
    frame = refitted.model_.to_frame("standardized").set_index("term")
    estimated = frame[frame.theta != 0]
    assert (estimated.stderr > 0).all()


def test_the_diamond_is_found_where_lasso_fails():
    truth = diamond_gaussian(0.55)
    est = ISODUS(2, l1="auto").fit(truth.sample(4000, rng=0))
    assert edges(est.model_) == edges(truth)


def test_planted_gaussian_structure_is_found_without_a_hint():
    truth = regular_gaussian(50, rng=3)
    est = ISODUS(2, l1="auto").fit(truth.sample(1000, rng=4))
    assert f1(edges(est.model_), edges(truth)) >= 0.95
    assert repr(est.path_).startswith("PenaltyPath: 30 penalties from")
    frame = est.path_.to_frame()
    assert frame.chosen.sum() == 1
    assert frame.n_terms.is_monotonic_increasing or frame.n_terms.iloc[0] == 0
    assert est.kkt_.max() == est.path_.residuals[est.path_.chosen] <= est.tol
    assert (est.path_.residuals <= 0.01 * est.path_.l1).all()


def test_terms_forced_in_left_out_and_weighted(graph):
    truth, X = graph
    table = pd.DataFrame(X, columns=[f"v{i}" for i in range(12)])
    inside = sorted(edges(truth))[0]
    i, j = (int(name[1:]) for name in inside)
    absent = next((a, b) for a in range(12) for b in range(a + 1, 12) if (f"x{a}", f"x{b}") not in edges(truth))
    est = ISODUS(2, l1=0.05, include=[absent], exclude=[(f"v{i}", f"v{j}")]).fit(table)
    values = est.model_.to_dict("standardized")
    assert values[absent] != 0
    assert (i, j) not in values
    by_dict = ISODUS(2, l1=0.05, l1_weights={absent: 0.0, (j, i): np.inf}).fit(table)
    np.testing.assert_allclose(by_dict.model_.theta, est.model_.theta, atol=1e-7)

    def weight(term):
        return {absent: 0.0, (i, j): np.inf}.get(term, 0.0 if len(set(term)) == 1 else 1.0)

    by_function = ISODUS(2, l1=0.05, l1_weights=weight).fit(table)
    np.testing.assert_allclose(by_function.model_.theta, est.model_.theta, atol=1e-7)


def test_and_is_stricter_than_or(graph):
    _, X = graph
    strict, loose = (edges(PseudoLikelihood(2, l1=0.06, rule=rule).fit(X[:300]).model_) for rule in ("and", "or"))
    assert strict < loose


def test_the_papers_form_is_its_objective():
    """min ⟨exp(Σ θ (f − m)) R⟩ + λ√(log p / n) Σ|θ|, all terms penalised, by a solver that knows none of ours."""
    from scipy.optimize import minimize

    truth = regular_gaussian(4, rng=0)
    X = truth.sample(500, rng=1)
    paper = dict(nu=2.0, delta=2.0, center=False, scale=False, refine=0, objective="plain", integrable="warn")
    est = ISODUS(
        2, min_degree=2, **paper, l1=0.35, l1_scaling="paper", penalize_self=True, consensus="geometric", tol=1e-10
    )
    est.fit(X)
    from scipy.special import gamma

    m2 = 2.0 ** (-2 / 4) * gamma(3 / 4) / gamma(1 / 4)
    weight, nodes = 0.35 * np.sqrt(np.log(4) / 500), []
    for i in range(4):
        features = X[:, [i]] * X
        features[:, i] -= m2

        def loss(v, features=features, i=i):
            theta = v[:4] - v[4:]
            w = np.exp(features @ theta - 2.0 * X[:, i] ** 4)
            g = features.T @ w / len(X)
            return w.mean() + weight * v.sum(), np.concatenate([g, -g]) + weight

        found = minimize(
            loss,
            np.zeros(8),
            jac=True,
            bounds=[(0, None)] * 8,
            method="L-BFGS-B",
            options=dict(ftol=1e-15, gtol=1e-12, maxiter=10000),
        )
        nodes.append(found.x[:4] - found.x[4:])
    nodes = np.array(nodes)
    values = est.model_.to_dict()
    for i in range(4):
        for j in range(i, 4):
            a, b = nodes[i, j], nodes[j, i]
            expected = 0.0 if abs(a * b) < 1e-10 else np.sign(a + b) * np.sqrt(abs(a * b))
            assert values.get((i, j), 0.0) == pytest.approx(expected, abs=2e-5)


def test_more_terms_than_samples():
    truth = regular_gaussian(60, rng=5)
    X = truth.sample(50, rng=6)
    with pytest.raises(ValueError, match='l1="auto"'):
        ISODUS(2).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        est = ISODUS(2, l1=0.5).fit(X)
    assert est.kkt_.max() <= est.tol


def test_terms_of_four_variables_among_thousands():
    truth = hypertree_polynomial(16, rng=0)
    est = ISODUS(4, max_order=4, l1="auto", n_jobs=2).fit(truth.sample(5000, rng=100))
    assert f1(edges(est.model_), edges(truth)) >= 0.95
    assert len(est.model_.basis) < 250


@pytest.mark.parametrize("how", ["cv", "stars"])
def test_other_ways_to_choose(how):
    truth = regular_gaussian(40, rng=7)
    est = PseudoLikelihood(2, l1=how).fit(truth.sample(1000, rng=8))
    assert f1(edges(est.model_), edges(truth)) >= 0.8
    assert est.path_.criterion in ("held-out −log P a variable", "instability")


def test_a_path_of_ones_own(graph):
    _, X = graph
    path = [0.2, 0.1, 0.05]
    est = PseudoLikelihood(2, l1="ebic", l1_path=np.array(path)).fit(X)
    np.testing.assert_allclose(est.path_.l1, path)
    assert est.l1_ in path


def test_a_path_can_be_drawn(graph):
    pytest.importorskip("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    _, X = graph
    top, bottom = PseudoLikelihood(2, l1="cv").fit(X).path_.plot()
    assert bottom.get_xlabel() == "l1"
    assert len(bottom.lines) > 12
    assert "terms at l1" in top.get_title()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(l1=-0.1), "l1 must be a number of at least 0"),
        (dict(l1="lasso"), "l1 must be one of"),
        (dict(l1=np.nan), "l1 must be a number"),
        (dict(l1=0.1, l1_weights={(0, 0, 1): 1.0}), "no term of the basis"),
        (dict(l1=0.1, l1_weights={("x0", "nobody"): 1.0}), "'nobody', which is no column"),
        (dict(l1=0.1, l1_weights={(0, 1): -1.0}), "weight is a number of at least 0"),
        (dict(l1=0.1, include=[(0, 1)], exclude=[("x1", "x0")]), "x0\\*x1: in both include and exclude"),
        (dict(l1=0.1, include=[(0, 1)], l1_weights={(0, 1): np.inf}), "contradict"),
        (dict(l1="auto", l1_path=[0.1, 0.2]), "must decrease.*0.1 is followed by 0.2"),
        (dict(l1="auto", l1_path=[0.1]), "two or more"),
        (dict(l1=0.1, l1_path=[0.2, 0.1]), "leave it out"),
        (dict(l1="cv", folds=300), "too few for 300 folds"),
        (dict(l1="cv", folds=1), "folds must be 2"),
        (dict(l1=0.1, l1_scaling="lasso"), "l1_scaling must be"),
        (dict(l1=0.1, rule="xor"), "rule must be"),
        (dict(debias=True), "without a penalty"),
        (dict(debias="no"), "debias must be"),
        (dict(include=[(0, 1)]), "without a penalty"),
        (dict(l1=0.1, pilot="isodus"), "leave pilot"),
    ],
)
def test_bad_options_are_refused(options, message):
    X = np.random.default_rng(0).standard_normal((200, 3))
    with pytest.raises(ValueError, match=message):
        ISODUS(2, **options).fit(X)


def test_the_highest_power_can_be_left_out():
    X = regular_gaussian(6, rng=0).sample(1500, rng=0)
    powers = [(i,) * d for i in range(3) for d in (3, 4)]
    est = ISODUS(4, l1=0.2, exclude=powers).fit(X)
    assert not set(powers) & set(est.model_.to_dict())
    assert (3, 3, 3, 3) in est.model_.to_dict()
    with pytest.raises(ValueError, match="x1 has no pure power of even degree above its others"):
        ISODUS(4, l1=0.2, exclude=[(1, 1, 1, 1)]).fit(X)


def test_a_fit_without_a_penalty_forgets_the_one_with(graph):
    _, X = graph
    est = ISODUS(2, l1="ebic").fit(X).set_params(l1=0.0).fit(X)
    assert not any(hasattr(est, name) for name in ("l1_", "l1_max_", "kkt_", "path_"))


def test_settings_tell_of_a_penalty_only_where_there_is_one(tmp_path, graph):
    _, X = graph
    plain, penalised = ISODUS(2).fit(X), ISODUS(2, l1="ebic", include=[(0, 1)]).fit(X)
    assert "rule" not in plain.model_.settings
    settings = penalised.model_.settings
    assert settings["l1"] == "ebic"
    assert settings["l1_chosen"] == penalised.l1_
    line = next(line for line in penalised.model_.summary().splitlines() if line.startswith("settings: "))
    assert line.startswith("settings: ISODUS, degree=2, ")
    assert "l1=ebic" in line
    assert "tol=" not in line
    assert line.endswith("; others by default")
    penalised.model_.save(tmp_path / "m.json")
    again = type(penalised.model_).load(tmp_path / "m.json")
    assert again.to_dict() == penalised.model_.to_dict()


def test_an_interruption_keeps_what_was_found(monkeypatch, graph):
    import isodus.criteria as criteria

    _, X = graph
    original, seen = criteria.follow, []

    def follow(start, l1, *rest, **options):
        for k, point in enumerate(original(start, l1, *rest, **options)):
            if k == 8:
                raise KeyboardInterrupt
            seen.append(k)
            yield point

    monkeypatch.setattr(criteria, "follow", follow)
    with pytest.warns(UserWarning, match="interrupted after 8 of 30"):
        est = PseudoLikelihood(2, l1="ebic").fit(X)
    assert len(est.path_.l1) == 8


def interrupting(monkeypatch, name, at):
    """Ctrl-C when a function of criteria.py is called for the so-manieth time, from 0 on."""
    import isodus.criteria as criteria

    original, calls = getattr(criteria, name), []

    def stop(*args, **options):
        calls.append(name)
        if len(calls) == at + 1:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(criteria, name, stop)


@pytest.mark.parametrize(
    ("how", "name", "at", "said"),
    [
        ("ebic", "begin", 0, "before the first penalty was reached: nothing is kept"),
        ("ebic", "agreed", 0, "at penalty 1 of 30: nothing is kept"),
        ("cv", "begin", 1, "after 0 of 30 penalties of fold 1 of 5: to choose takes two folds"),
        ("cv", "agreed", 41, "after 11 of 30 penalties of fold 2 of 5: to choose takes two folds"),
        ("stars", "agreed", 65, "after 5 of 30 penalties of subsample 3 of 20: to choose takes 5 subsamples"),
    ],
)
def test_an_interruption_before_anything_is_finished_says_where(monkeypatch, graph, how, name, at, said):
    interrupting(monkeypatch, name, at)
    with pytest.raises(KeyboardInterrupt, match=said):
        PseudoLikelihood(2, l1=how).fit(graph[1][:400])


@pytest.mark.parametrize(("how", "at", "said"), [("cv", 70, "2 of 5 folds"), ("stars", 160, "5 of 20 subsamples")])
def test_an_interruption_leaves_the_choice_to_what_was_finished(monkeypatch, graph, how, at, said):
    interrupting(monkeypatch, "agreed", at)
    with pytest.warns(UserWarning, match=f"interrupted after {said}: the choice is among those"):
        est = PseudoLikelihood(2, l1=how).fit(graph[1][:400])
    assert len(est.path_.l1) == 30


@pytest.mark.parametrize("stage", ["chosen", "settled", "refit"])
def test_an_interruption_of_the_last_fit_keeps_the_path(monkeypatch, graph, stage):
    import isodus.selection as selection

    def stop(*args, **options):
        raise KeyboardInterrupt

    whole = PseudoLikelihood(2, l1="ebic").fit(graph[1])
    if stage == "refit":
        monkeypatch.setattr(PseudoLikelihood, "_keep", stop)
    elif stage == "settled":
        monkeypatch.setattr(selection, "settled", stop)
    else:  # the first thing after a choice
        monkeypatch.setattr("isodus.estimators.penalized.settle", stop)
    est = PseudoLikelihood(2, l1="ebic")
    with pytest.raises(KeyboardInterrupt, match=r"path is kept in path_, and l1=.*, debias=True"):
        est.fit(graph[1])
    np.testing.assert_array_equal(est.path_.l1, whole.path_.l1)
    assert est.path_.chosen == whole.path_.chosen
    again = PseudoLikelihood(2, l1=est.path_.l1[est.path_.chosen], debias=True)
    monkeypatch.undo()
    assert again.fit(graph[1]).model_.hyperedges() == whole.model_.hyperedges()


def test_samples_with_weights_count(graph):
    _, X = graph
    X = X[:500]
    weight = np.random.default_rng(0).integers(1, 3, 500)
    basis = MonomialBasis(12, 4, max_order=2)
    for options in (dict(degree=2), dict(basis=basis, refine=0)):
        one = ISODUS(l1=0.2, **options).fit(X, sample_weight=weight)
        two = ISODUS(l1=0.2, **options).fit(np.repeat(X, weight, axis=0))
        np.testing.assert_allclose(one.model_.theta, two.model_.theta, atol=1e-5)


def four(n=300):
    return np.array(regular_gaussian(4, rng=1).sample(n, rng=0))


def test_the_unit_of_a_penalty_does_not_depend_on_where_variables_lie():
    """Slopes by x_i x_j are large far from the origin, but what free linear terms explain of them is no evidence."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 2))
    X[:, 1] += 0.45 * X[:, 0]
    for degree, shift in ((2, 10.0), (4, 3.0)):
        near, far = (PseudoLikelihood(degree, l1=0.25, center=False).fit(X + by) for by in (0.0, shift))
        assert near.l1_max_ == pytest.approx(far.l1_max_, rel=1e-3)
        assert len(near.model_.hyperedges()) == len(far.model_.hyperedges()) == 1


def test_a_largest_penalty_is_about_standard_errors_of_the_nearest_term():
    X = np.random.default_rng(0).standard_normal((4000, 6))
    for est in (PseudoLikelihood(4, l1=1.0), ScoreMatching(4, l1=1.0), ISODUS(4, l1=1.0, refine=0)):
        with pytest.warns(UserWarning, match="no interaction"):
            est.fit(X)
        assert 2.5 < est.l1_max_ * np.sqrt(4000) < 5.5  # of 180 terms, seen from two variables each


def test_interactions_are_penalised_where_self_terms_are_too():
    X = np.random.default_rng(0).standard_normal((2000, 5))
    with pytest.warns(UserWarning, match="no interaction"):
        est = ScoreMatching(2, l1=0.5, penalize_self=True, debias=False).fit(X)
    values = est.model_.to_dict("standardized")
    assert {term for term, value in values.items() if value} == {(i, i) for i in range(5)}


@pytest.mark.parametrize("how", ["auto", 0.3])
def test_powers_that_must_be_there_are_never_left_out(how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        est = PseudoLikelihood(4, l1=how, penalize_self=True, debias=False).fit(four())
    assert all(est.model_.to_dict("standardized")[(i,) * 4] > 0 for i in range(4))
    assert est.kkt_.max() <= est.tol


@pytest.mark.parametrize(
    "options",
    [
        dict(basis=MonomialBasis(4, 4, terms=[*((i, i) for i in range(4)), (0, 1), (1, 2), (0, 1, 2, 3)]), l1=0.1),
        dict(degree=4, max_order=4, l1=0.3, exclude=[(i,) * d for i in range(4) for d in (3, 4)]),
        dict(basis=MonomialBasis(4, 4, terms=[*((i,) * 4 for i in range(4)), (0, 1), (0, 1, 2, 3)]), l1="auto"),
    ],
    ids=["squares and four variables", "highest powers left out", "no squares"],
)
def test_what_survives_may_have_a_lower_degree(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        est = ISODUS(**options).fit(four())
    assert est.kkt_.max() <= est.tol
    assert np.isfinite(est.score(four()))


def test_nothing_left_at_all_is_an_error():
    with pytest.raises(ValueError, match="no term is left.*l1 = 0.6 none is kept by all of its variables; from 0.39"):
        ISODUS(2, l1=0.6, penalize_self=True, refine=0, integrable="warn").fit(four())
    lonely = MonomialBasis(4, 2, terms=[(0, 0), (1, 1), (2, 2), (0, 1), (2, 3)])
    with pytest.raises(ValueError, match="x3 has no pure power of even degree"):
        ISODUS(basis=lonely, l1=0.1).fit(four())


def test_an_empty_choice_names_what_came_nearest():
    with pytest.warns(UserWarning, match=r"nearest to it is .*standard errors from none"):
        est = ISODUS(4, l1="auto").fit(four())
    assert est.l1_max_ > est.l1_ > 0


def test_penalties_are_in_the_units_they_were_given_in():
    est = ISODUS(2, l1="ebic", l1_path=[3.0, 2.0, 1.0], l1_scaling="paper", refine=0).fit(four())
    np.testing.assert_allclose(est.path_.l1, [3.0, 2.0, 1.0])
    assert est.l1_ in (3.0, 2.0, 1.0)
    edge = ISODUS(2, l1=0.999 * est.l1_max_, l1_scaling="paper", refine=0, debias=False, rule="or").fit(four())
    assert len(edge.model_.hyperedges()) == 1


def test_weights_that_gather_on_few_samples_are_told_with_a_penalty_too():
    raw = dict(nu=2.0, center=False, scale=False, refine=0, integrable="warn")
    with pytest.warns(ConvergenceWarning, match="x0: the screening weights"):
        est = ISODUS(2, l1=0.1, **raw).fit(four() * 30 + 20)
    assert est.effective_samples_.max() < 300
    assert set(est.status_) <= {"weights collapsed", "weights concentrated"}


def test_columns_that_repeat_others():
    X = four()
    with pytest.warns(UserWarning, match="linear functions of others"):
        ISODUS(4, l1="auto").fit(np.column_stack([X, X[:, 0]]))


def test_an_interruption_while_a_point_is_judged(monkeypatch, graph):
    from isodus.criteria import Ebic

    original = Ebic.enough

    def enough(self, theta):
        if len(self.values) == 5:
            raise KeyboardInterrupt
        return original(self, theta)

    monkeypatch.setattr(Ebic, "enough", enough)
    with pytest.warns(UserWarning, match="interrupted after 5 of 30"):
        est = PseudoLikelihood(2, l1="ebic").fit(graph[1])
    assert len(est.path_.to_frame()) == 5


@pytest.mark.parametrize("how", ["auto", "cv", "stars"])
def test_one_variable_has_nothing_to_choose(how):
    est = ISODUS(4, l1=how).fit(four()[:, :1])
    assert est.l1_max_ == 0
    assert len(est.path_.l1) == 1


@pytest.mark.parametrize("kind", [ISODUS, PseudoLikelihood])
def test_variables_that_cannot_be_fitted_alone_are_named_and_do_not_hide_others(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 3))
    X[:, 1] += X[:, 0]
    X = np.column_stack([X, rng.standard_cauchy(800) ** 3])
    with pytest.warns(ConvergenceWarning, match=r"^x3: no density of this degree could be fitted even without"):
        fit = kind(4, l1="auto").fit(X)
    inside = {term for term, theta in fit.model_.to_dict("standardized").items() if len(set(term)) > 1 and theta}
    assert (0, 1) in inside
    assert not any(3 in term for term in inside)
    assert fit.kkt_[3] > 0.01
    assert fit.l1_max_ < 1.01


def nearly_a_sum(n, rng, many=5):
    """Independent variables, one of them uniform, and nearly their sum: all pairs depend on one another."""
    X = rng.standard_normal((n, many))
    X[:, 0] = rng.uniform(-2, 2, n)
    return np.column_stack([X, X.sum(axis=1) + 0.1 * rng.standard_normal(n)])


@pytest.mark.parametrize(("kind", "degree"), [(ISODUS, 2), (PseudoLikelihood, 2), (ScoreMatching, 2), (ISODUS, 4)])
def test_where_a_path_falls_short_all_terms_that_pay_are_taken(kind, degree):
    rng = np.random.default_rng(0)
    many = 5 if degree == 2 else 3
    X, new = nearly_a_sum(100, rng, many), nearly_a_sum(2000, rng, many)
    fit = kind(degree, l1="auto").fit(X)
    pairs = {term for term in fit.model_.basis.terms if len(term) == 2 and len(set(term)) == 2}
    assert len(pairs) == many * (many + 1) / 2
    assert fit.score(new) > PseudoLikelihood(2).fit(X).score(new) - 0.02
    assert fit.path_.l1[-1] == fit.l1_ == 0
    assert np.all(np.diff(fit.path_.l1) < 0)
    assert fit.path_.values[:-1].min() > fit.path_.values[-1] + 100
    assert fit.kkt_.max() < 1e-6
    assert "(l1 = 0): the least extended BIC, without a penalty" in fit.notes_[0]
    given = kind(degree, l1="auto", l1_path=fit.path_.l1[:-1]).fit(X)  # what is asked for is one of these
    assert len(given.path_.l1) == len(fit.path_.l1) - 1
    assert given.score(new) < fit.score(new) - 0.2
    fit.path_.plot()


def test_what_is_taken_without_a_penalty_is_what_pays():
    """By the same criterion, from all structures of three variables, two of which depend on the third alone."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(300)
    X = np.column_stack([x, x + 0.02 * rng.standard_normal(300), x + 0.02 * rng.standard_normal(300)])
    fit = PseudoLikelihood(2, l1="auto").fit(X)
    S, n = np.corrcoef(X.T), len(X)

    def ebic(pairs):
        total = 0.0
        for i in range(3):
            others = sorted({j for pair in pairs if i in pair for j in pair} - {i})
            left = S[i, i] - S[i, others] @ np.linalg.solve(S[np.ix_(others, others)], S[others, i])
            total += n * np.log(left) + len(others) * np.log(n) + 2 * np.log([1, 2, 1][len(others)])
        return total

    every = [(0, 1), (0, 2), (1, 2)]
    best = min((subset for k in range(4) for subset in combinations(every, k)), key=ebic)
    assert {term for term in fit.model_.basis.terms if len(set(term)) == 2} == set(best)


def test_a_path_ends_where_it_did_if_little_depends_on_anything():
    X = np.array(regular_gaussian(20, 3, 0.25, rng=0).sample(1000, rng=1))
    fit = ISODUS(2, l1="auto").fit(X)
    assert fit.l1_ > 0
    assert fit.path_.l1[-1] > 0


def test_an_interruption_after_the_path_chooses_from_it(monkeypatch):
    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("isodus.criteria.Ebic.without_penalty", stop)
    with pytest.warns(UserWarning, match="interrupted after 30 penalties: the choice is among those"):
        fit = PseudoLikelihood(2, l1="auto").fit(nearly_a_sum(100, np.random.default_rng(0)))
    assert len(fit.path_.l1) == 30
