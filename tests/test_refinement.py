"""From a pilot to pseudo-likelihood's optimum: never downhill, by every road, from every pilot."""

import warnings

import numpy as np
import pandas as pd
import pytest
from cases import PAIR, WELLS, drawn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching

FEW, MANY = 2000, 17_000  # Newton steps on all samples; above 16,384 steps on a subsample with the slope of all


def uniform(n):
    U = np.random.default_rng(0).random((n, 2))
    return np.stack([U[:, 0], U[:, 0] + U[:, 1]], axis=1)


def mixture(n):
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0], [[1.0, 0.5], [0.5, 0.9]], n)
    X[: n // 3] = 0.4 * X[: n // 3] + [2.5, -1.0]
    return rng.permutation(X)


SAMPLES = {
    "well-specified": lambda n: drawn(PAIR, n),
    "double wells": lambda n: drawn(WELLS, n),
    "uniform": uniform,
    "mixture": mixture,
}


def confined_gaussian(X):
    """A pilot far off: the Gaussian of the samples with a small quartic power."""
    gaussian, basis = PseudoLikelihood(degree=2).fit(X).model_, MonomialBasis(2, 4)
    theta = dict.fromkeys(basis.terms, 0.0) | gaussian.to_dict("standardized") | {(0,) * 4: 0.05, (1,) * 4: 0.05}
    return PolynomialModel(basis, [theta[term] for term in basis.terms], gaussian.location, gaussian.scale)


PILOTS = {
    "screening": lambda X: ISODUS(refine=0, nu=0.1).fit(X).model_,
    "score matching": lambda X: ScoreMatching().fit(X).model_,
    "confined Gaussian": confined_gaussian,
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "n", "pilot"),
    [
        ("well-specified", FEW, "screening"),
        ("double wells", FEW, "screening"),
        ("uniform", FEW, "score matching"),
        ("mixture", FEW, "screening"),
        ("mixture", FEW, "confined Gaussian"),
        ("well-specified", MANY, "screening"),
        ("double wells", MANY, "score matching"),
    ],
)
def test_no_refinement_lowers_the_pseudo_likelihood_of_its_pilot(name, n, pilot):
    X = SAMPLES[name](n)
    model = PILOTS[pilot](X)
    before = model.conditional_log_density(X).mean()
    for steps in (1, 2, 3, "auto"):
        assert ISODUS(pilot=model, refine=steps).fit(X).score(X) >= before - 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "n"), [("double wells", FEW), ("mixture", FEW), ("well-specified", MANY)])
def test_more_refinement_scores_no_less(name, n):
    X = SAMPLES[name](n)
    scores = [ScoreMatching().fit(X).score(X), *(ISODUS(refine=steps).fit(X).score(X) for steps in (1, 2, 3, "auto"))]
    assert np.all(np.diff(scores) >= -1e-6)


@pytest.mark.parametrize(("name", "n"), [*((name, FEW) for name in SAMPLES), ("double wells", MANY), ("uniform", MANY)])
def test_refined_to_the_end_it_is_pseudo_likelihood(name, n):
    """Within a tenth of a standard error, which is where "auto" stops."""
    X = SAMPLES[name](n)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        refined, exact = ISODUS().fit(X), PseudoLikelihood(tol=1e-8).fit(X)
    apart = (refined.model_.theta - exact.model_.theta) / exact.model_.stderr("standardized")
    assert np.sqrt(np.mean(apart**2)) < 0.1
    for pilot in ("isodus", "score_matching") if n == FEW else ():
        other = ISODUS(pilot=pilot).fit(X)
        assert other.score(X) == pytest.approx(exact.score(X), abs=0.1 * len(apart) / n)


@pytest.mark.parametrize("n", [FEW, MANY])
def test_a_pilot_in_units_of_its_own_is_the_same_density(n):
    """From the optimum itself, written in raw units, there is no way to go."""
    X = pd.DataFrame(drawn(PAIR, n) * [3.0, 0.2] + [5.0, -1.0], columns=["a", "b"])
    raw = PseudoLikelihood(center=False, scale=False, tol=1e-8).fit(X)
    assert not np.any(raw.location_)
    refined = ISODUS(pilot=raw.model_).fit(X)
    assert (refined.pilot_, refined.n_iter_.tolist()) == ("model", [1, 1])
    assert np.allclose(refined.model_.theta, PseudoLikelihood(tol=1e-8).fit(X).model_.theta, rtol=1e-4, atol=1e-4)


def test_a_pilot_from_other_samples_and_with_fewer_terms():
    X = drawn(PAIR, 6000)
    exact = PseudoLikelihood(tol=1e-8).fit(X)
    few = MonomialBasis(2, terms=[(0,), (1,), (0, 0), (1, 1), (0, 0, 0), (1, 1, 1), (0,) * 4, (1,) * 4])
    for pilot in (ISODUS(refine=0).fit(X[:1000]).model_, PseudoLikelihood(basis=few).fit(X[:2000]).model_):
        refined = ISODUS(pilot=pilot).fit(X)
        assert refined.pilot_ == "model"
        assert refined.score(X) == pytest.approx(exact.score(X), abs=1e-5)


def test_what_a_pilot_led_to_can_be_saved(tmp_path):
    X = drawn(PAIR, 2000)
    estimator = clone(ISODUS(pilot=ISODUS(refine=0, nu=0.1).fit(X).model_)).fit(X)
    estimator.model_.save(tmp_path / "m.json")
    assert np.array_equal(PolynomialModel.load(tmp_path / "m.json").theta, estimator.model_.theta)


def test_a_pilot_without_conditional_densities_is_replaced():
    X = drawn(PAIR, 3000)
    pilot = PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): 1.0, (0,) * 4: -1.0, (1,) * 4: 1.0})
    refined = ISODUS(pilot=pilot).fit(X)
    assert refined.pilot_ != "model"
    assert refined.score(X) == pytest.approx(PseudoLikelihood().fit(X).score(X), abs=1e-5)


@pytest.mark.parametrize(
    ("pilot", "message"),
    [
        (
            PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): 1.0, (0, 0, 0, 1): 1.0}, names=["a", "b"]),
            r"the pilot has terms that the model to be fitted has not: a\^3\*b. It may have those of the 8 terms",
        ),
        (
            PolynomialModel.from_dict({(0,) * 6: 1.0, (1, 1): 1.0}, names=["a", "b"]),
            r"terms that the model to be fitted has not: a\^6",
        ),
        (
            PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): 1.0}, names=["a", "c"]),
            "the pilot is a model of a, c; the columns are a, b",
        ),
        (PolynomialModel.from_dict({(0, 0): 1.0}, names=["a"]), "the pilot is a model of a; the columns are a, b"),
    ],
)
def test_a_pilot_of_something_else_is_refused(pilot, message):
    X = pd.DataFrame(drawn(PAIR, 300), columns=["a", "b"])
    with pytest.raises(ValueError, match=message):
        ISODUS(max_order=1, pilot=pilot).fit(X)
