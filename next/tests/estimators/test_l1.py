"""Estimators with an L1 penalty: which terms are found, what is known after a fit, and bad input."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from isodus import (
    ISODUS,
    L1,
    IsodusWarning,
    MonomialBasis,
    PolynomialModel,
    PowerReference,
    PseudoLikelihood,
    ScoreMatching,
    datasets,
)
from isodus.fit.strength import SparsePath

PLAIN = PowerReference(0.3, link="plain")
ESTIMATORS = {
    "pseudo-likelihood": PseudoLikelihood,
    "score matching": ScoreMatching,
    "tilted": ISODUS,
    "paper": lambda *args, **kwargs: ISODUS(*args, reference=PLAIN, **kwargs),
}
EACH = [pytest.param(make, id=name) for name, make in ESTIMATORS.items()]
J = datasets.regular_precision(6, seed=1)
EDGES = {(int(i), int(j)) for i, j in np.argwhere(np.triu(J, 1))}
X = datasets.gaussian(1500, J, seed=1)
NAMED = pd.DataFrame(X[:, :4], columns=list("abcd"))
WELLS = pd.DataFrame(datasets.double_wells(800, 3, height=1.0, coupling=0.4, seed=2), columns=list("abc"))


def quietly(estimator, data, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsodusWarning)
        return estimator.fit(data, **kwargs)


def warned(estimator, data):
    """What a fit warns of, as one text."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        estimator.fit(data)
    return " | ".join(str(w.message) for w in found)


def pairs(est):
    """The terms of more than one variable in the model."""
    return {key for key in est.model_.terms.keys if len(set(key)) > 1}


# ---------------------------------------------------------------- what is found


@pytest.mark.parametrize("make", EACH)
@pytest.mark.parametrize("strength", [0.12, "ebic", "stars"])
def test_the_edges_of_a_gaussian(make, strength):
    path = None if not isinstance(strength, str) else [0.3, 0.2, 0.15, 0.12]
    est = quietly(make(2, penalty=L1(strength, path=path)), X)
    assert est.status_ == "converged"
    if make is ESTIMATORS["paper"]:  # whose estimates vary more
        assert pairs(est) <= EDGES if strength == "stars" else pairs(est) >= EDGES
    else:
        assert pairs(est) == EDGES
    assert est.strength_ in (path or [0.12])
    assert (est.path_ is None) == (path is None)
    assert np.max(est.kkt_) * np.sqrt(len(X)) < 1e-3


def test_folds_choose_what_predicts():
    """More terms than there are, as always, and all edges among them; the score is that of the folds."""
    est = quietly(PseudoLikelihood(2, penalty=L1("cv")), X)
    assert pairs(est) >= EDGES
    table = est.path_.to_frame()
    assert list(table) == ["strength", "n_terms", "cv", "chosen"]
    assert table["chosen"].sum() == 1
    assert table["cv"].idxmax() == table.index[table["chosen"]][0]
    assert table["cv"].max() == pytest.approx(est.score(X), abs=0.02)
    assert (np.diff(table["strength"]) < 0).all()


@pytest.mark.parametrize("name", ["pseudo-likelihood", "score matching"])
def test_interactions_of_three_variables(name):
    data = datasets.many_body(2500, sizes=(3, 2), seed=0)
    est = ESTIMATORS[name](
        4, max_order=3, scale="spread", penalty=L1("ebic", path=np.geomspace(0.3, 0.06, 8).tolist())
    ).fit(data)
    assert pairs(est) == {(0, 1, 2), (3, 4)}
    truth = datasets.many_body_theta((3, 2))
    view = est.model_.polynomial()
    z = [(view.coefficients[k] - truth.get(key, 0.0)) / view.stderr[k] for k, key in enumerate(view.keys)]
    assert np.abs(z).max() < 4


def test_coupled_double_wells():
    data = datasets.double_wells(1500, 4, height=1.0, coupling=0.4, seed=2)
    est = PseudoLikelihood(4, penalty=L1("ebic", path=np.geomspace(0.5, 0.08, 8).tolist())).fit(data)
    assert pairs(est) == {(0, 1), (1, 2), (2, 3)}
    est = quietly(PseudoLikelihood(4, penalty=L1("ebic")), datasets.double_wells(1000, 3, seed=2))
    assert pairs(est) == set()


def test_spins():
    rng = np.random.default_rng(0)
    S = np.sign(rng.standard_normal((800, 4)))
    S[:, 1] = np.where(rng.random(800) < 0.75, S[:, 0], S[:, 1])
    for make in (PseudoLikelihood, ISODUS, ESTIMATORS["paper"]):
        assert pairs(make(2, support="spin", penalty=L1("ebic")).fit(S)) == {(0, 1)}


# ---------------------------------------------------------------- what is known after a fit


@pytest.mark.filterwarnings("ignore::isodus.IsodusWarning")
@pytest.mark.parametrize("make", EACH)
@pytest.mark.parametrize("degree", [2, 4])
@pytest.mark.parametrize("refit", [True, False])
def test_a_sparse_model_is_a_model(make, degree, refit, tmp_path):
    data = NAMED[:500] if degree == 2 else WELLS
    est = make(degree, penalty=L1(0.15, refit=refit)).fit(data)
    x = data.to_numpy()[:5]
    model = est.model_
    table = model.interactions()
    assert len(table) == len({tuple(sorted(set(key))) for key in pairs(est)})
    assert set(map(frozenset, model.graph().edges)) <= {frozenset("abcd"[i] for i in set(key)) for key in pairs(est)}
    assert len(model.hyperedges()) <= len(table)
    assert "L1" in str(model.summary())
    assert model.formula()
    assert np.isfinite(model.logpdf(x)).all()
    assert np.isfinite(est.score(data))
    assert model.sample(20, random_state=0).shape == (20, data.shape[1])
    stderr = model.polynomial().stderr
    assert (stderr is None or np.isnan(stderr).all()) == (not refit)
    model.save(tmp_path / "model.json")
    again = PolynomialModel.load(tmp_path / "model.json")
    assert_allclose(again.logpdf(x), model.logpdf(x))
    assert [note.kind for note in est.notes_].count("selected") == 1


def test_a_refit_is_the_fit_of_the_terms_that_are_left():
    est = quietly(PseudoLikelihood(4, penalty=L1(0.15, refit=True), tol=1e-6), NAMED)
    plain = PseudoLikelihood(basis=MonomialBasis(est.model_.terms.keys), penalty=None, tol=1e-6).fit(NAMED)
    assert est.score(NAMED) == pytest.approx(plain.score(NAMED), abs=1e-9)


def test_penalised_estimates_have_no_errors_and_no_tests():
    est = quietly(PseudoLikelihood(2, penalty=L1(0.1)), NAMED)
    text = next(note.text for note in est.notes_ if note.kind == "selected")
    assert text.endswith("penalised terms are in the model (L1 of strength 0.1). Penalised estimates have no standard "
                         "errors.")  # fmt: skip
    assert est.model_.stderr is None or np.isnan(est.model_.polynomial().stderr).all()


@pytest.mark.parametrize(("make", "degree"), [(PseudoLikelihood, 2), (PseudoLikelihood, 4), (ScoreMatching, 4)])
def test_units(make, degree):
    """Raw λ costs what it says; that of the paper is √(log p / n) times as large."""
    few = NAMED[:300]
    paper = quietly(make(degree, penalty=L1(2.0, units="paper")), few)
    raw = quietly(make(degree, penalty=L1(2.0 * np.sqrt(np.log(4) / len(few)), units="raw")), few)
    assert paper.model_.terms.keys == raw.model_.terms.keys
    assert_allclose(paper.model_.tau, raw.model_.tau)
    path = [4.0, 2.0, 1.0]
    est = quietly(make(degree, penalty=L1("ebic", units="paper", path=path)), few)
    assert est.path_.strengths == pytest.approx(path[: len(est.path_.strengths)])


@pytest.mark.parametrize("degree", [2, 4])
def test_rules_are_nested(degree):
    few = X[:40, :4]
    either, both = (pairs(quietly(PseudoLikelihood(degree, penalty=L1(0.25 if degree == 2 else 0.3, rule=r)), few))
                    for r in ("or", "and"))  # fmt: skip
    assert both < either


def test_consensus_of_a_sparse_model():
    """Terms that one variable leaves out count as zero in the mean, and not in the geometric mean."""
    few = X[:40, :4]
    mean, geometric = (quietly(PseudoLikelihood(2, penalty=L1(0.2, refit=False), consensus=kind), few)
                       for kind in ("mean", "geometric"))  # fmt: skip
    one, two = ({key: v for key, v in zip(est.model_.terms.keys, est.model_.tau, strict=True) if key[0] != key[-1]}
                for est in (mean, geometric))  # fmt: skip
    assert set(one) == set(two)
    assert all(abs(two[key]) <= (2 + 1e-9) * abs(one[key]) for key in one)
    assert any(abs(two[key]) > 1.5 * abs(one[key]) for key in one)


@pytest.mark.parametrize("degree", [2, 4])
def test_include_exclude_and_weights(degree):
    few = NAMED[:300]
    est = quietly(PseudoLikelihood(degree, penalty=L1(100.0, include=[("a", "b")], exclude=[("c", "d")])), few)
    assert pairs(est) == {(0, 1)}
    free = quietly(PseudoLikelihood(degree, penalty=L1(0.0, exclude=[("c", "d")])), few)
    assert (2, 3) not in pairs(free)
    assert (0, 1) in pairs(free)
    other = quietly(PseudoLikelihood(degree, penalty=L1(100.0, weights={("b", "a"): 0, ("c", "d"): np.inf})), few)
    assert_allclose(other.model_.tau, est.model_.tau, atol=1e-8)
    called = quietly(PseudoLikelihood(degree, penalty=L1(100.0, weights=lambda key: float(len(set(key)) > 1) *
                                                         (key != (0, 1)))), few)  # fmt: skip
    assert pairs(called) == {(0, 1)}
    assert_allclose(called.model_.tau, est.model_.tau, atol=1e-8)


def test_a_note_where_a_gaussian_predicts_better():
    est = PseudoLikelihood(2, penalty=L1(0.5))
    assert "below a Gaussian. Use a smaller strength of L1" in warned(est, X)
    assert est.held_out_.gain < -0.01
    assert quietly(PseudoLikelihood(2, penalty=L1("ebic")), X).held_out_ is None


def test_the_objective_is_what_was_minimised():
    """Tilted, with the pilot of each variable; the paper's, with its reference."""
    rng = np.random.default_rng(0)
    S = np.sign(rng.standard_normal((500, 3)) + rng.standard_normal((500, 1)))
    f = quietly(ISODUS(2, support="spin", penalty=L1(0.02, refit=False)), S).objective(S)
    assert f.loss.link == "log_mean"
    assert f.pilot is not None
    with_notes = quietly(ISODUS(4, penalty=L1(0.2, refit=False)), NAMED[:200])
    far = [note.text for note in with_notes.notes_ if note.kind == "pilot on all rows"]
    assert (with_notes.objective(NAMED).loss.link == "mean") == bool(far)
    paper = quietly(ISODUS(4, reference=PLAIN, penalty=L1(0.1)), WELLS)
    assert paper.objective(WELLS).loss.link == "mean_exp"
    assert paper.nu_.tolist() == [0.3] * 3


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize("degree", [2, 4])
def test_rows_that_are_counted_are_rows(degree):
    few = X[:150, :3]
    count = np.random.default_rng(0).integers(0, 4, len(few))
    once = quietly(PseudoLikelihood(degree, penalty=L1(0.1, units="raw"), tol=1e-7), few, sample_weight=count)
    twice = quietly(PseudoLikelihood(degree, penalty=L1(0.1, units="raw"), tol=1e-7), np.repeat(few, count, axis=0))
    assert pairs(once) == pairs(twice)
    assert_allclose(once.model_.polynomial().coefficients, twice.model_.polynomial().coefficients, rtol=1e-4, atol=1e-7)


def test_importance_weights_are_scaled_to_kish():
    """Ratios of densities: only proportions matter, and λ√n is of Kish's n."""
    w = np.random.default_rng(0).gamma(2.0, size=len(X))
    one, two = (quietly(PseudoLikelihood(2, penalty=L1("ebic")), X, sample_weight=c * w, weights="importance")
                for c in (1.0, 7.0))  # fmt: skip
    assert pairs(one) == pairs(two)
    assert one.strength_ == pytest.approx(two.strength_)
    assert one.model_.fitted.n == pytest.approx(w.sum() ** 2 / (w**2).sum())


@pytest.mark.parametrize("kwargs", [{"groups": np.arange(400) // 10}, {"dependence": 10}])
def test_rows_that_depend_on_one_another(kwargs):
    few = X[:400, :3]
    with pytest.raises(ValueError, match="strength='ebic' of L1 needs independent rows"):
        PseudoLikelihood(2, penalty=L1()).fit(few, **kwargs)
    for strength in (0.1, "cv", "stars"):
        est = quietly(PseudoLikelihood(2, penalty=L1(strength)), few, **kwargs)
        assert est.status_ == "converged"


def test_halves_keep_groups_together():
    """Rows that are copies of 40: halves that split them would agree on what only these rows have in common."""
    rng = np.random.default_rng(3)
    data = np.repeat(rng.standard_normal((40, 5)), 25, axis=0) + 0.01 * rng.standard_normal((1000, 5))
    split = quietly(PseudoLikelihood(2, penalty=L1("stars", path=[0.4, 0.2, 0.1])), data)
    together = quietly(PseudoLikelihood(2, penalty=L1("stars", path=[0.4, 0.2, 0.1])), data,
                       groups=np.repeat(np.arange(40), 25))  # fmt: skip
    assert np.mean(together.path_.scores) > np.mean(split.path_.scores)
    assert together.strength_ >= split.strength_


def test_fewer_rows_than_columns():
    few = np.random.default_rng(0).standard_normal((15, 30))
    for make in (PseudoLikelihood, ScoreMatching, ISODUS):
        assert len(pairs(quietly(make(2, penalty=L1()), few))) <= 3
    for make, degree in ((PseudoLikelihood, 2), (ScoreMatching, 2), (ESTIMATORS["paper"], 2), (ScoreMatching, 4)):
        with pytest.raises(ValueError, match="15 rows are too few for .* terms per variable that are not pen"):
            make(degree, penalty=L1(weights=lambda key: 0)).fit(few)
    with pytest.raises(ValueError, match="15 rows are too few to estimate the .* terms .* that L1 leaves"):
        PseudoLikelihood(2, penalty=L1(0.1, refit=True)).fit(few)
    with pytest.raises(ValueError, match="sample_weight is zero in all rows"):
        PseudoLikelihood(2, penalty=L1()).fit(few, sample_weight=np.zeros(15))


def test_the_criterion_does_not_take_as_many_terms_as_rows():
    """The loss of a node with as many terms as rows has no bound."""
    few = np.random.default_rng(1).standard_normal((12, 16))
    est = quietly(PseudoLikelihood(2, penalty=L1("ebic", path=[0.7, 0.3, 0.1, 0.03, 0.01, 1e-3])), few)
    assert est.strength_ >= 0.3
    assert not np.isfinite(est.path_.scores[-1])


# ---------------------------------------------------------------- conventions


def test_parameters_clone_and_grid():
    est = PseudoLikelihood(2, penalty=L1(0.1, rule="and"))
    assert est.get_params()["penalty__strength"] == 0.1
    assert clone(est).get_params()["penalty__rule"] == "and"
    assert clone(est).penalty is not est.penalty
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsodusWarning)
        grid = GridSearchCV(est, {"penalty__strength": [1.0, 0.03]}, cv=3).fit(X[:400])
    assert grid.best_params_ == {"penalty__strength": 0.03}
    assert repr(L1(0.1, units="raw")) == "L1(strength=0.1, units='raw')"


def test_attributes_of_another_fit_are_gone():
    est = quietly(PseudoLikelihood(2, penalty=L1(0.1)), X)
    assert est.strength_ == 0.1
    est.set_params(penalty=None).fit(X)
    assert not hasattr(est, "strength_")
    assert not hasattr(est, "kkt_")


class Stop:
    """A call of progress that ends the computation once, at the given strength of a path."""

    def __init__(self, after):
        self.after, self.done, self.seen = after, False, 0

    def __call__(self, label, done, total):
        self.seen += label.startswith("strength")
        if self.seen > self.after and not self.done:
            self.done = True
            raise KeyboardInterrupt


@pytest.mark.parametrize(("strength", "after", "first"), [("ebic", 6, 0.3), ("cv", 20, 0.3), ("stars", 45, 0.6)])
def test_an_interrupted_path_is_kept(strength, after, first):
    path = np.geomspace(first, 0.05, 8).tolist()
    est = PseudoLikelihood(4, penalty=L1(strength, path=path), progress=Stop(after))
    text = warned(est, X[:300, :3])
    assert (
        text.count("interrupted") == text.count("The path was interrupted, and the strength is the best of those") == 1
    )
    assert est.status_ == "interrupted"
    assert est.path_.interrupted
    assert 0 < len(est.path_.strengths) < 8
    assert np.isfinite(est.score(X[:300, :3]))
    with pytest.raises(KeyboardInterrupt):
        PseudoLikelihood(4, penalty=L1(strength, path=path), progress=Stop(0)).fit(X[:300, :3])


def test_paths_as_tables():
    path = SparsePath("ebic", (2.0, 1.0), (0, 3), (5.0, 4.0), 1)
    assert path.strength == 1.0
    assert path.in_units(2.0).strengths == (1.0, 0.5)
    assert path.to_frame().to_dict("list") == {"strength": [2.0, 1.0], "n_terms": [0, 3], "ebic": [5.0, 4.0],
                                               "chosen": [False, True]}  # fmt: skip
