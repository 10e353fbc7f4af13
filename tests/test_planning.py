"""Plans against closed forms and quadrature, and against what many simulated fits do."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtri
from scipy.stats import norm

from isodus import ISODUS, MonomialBasis, PolynomialModel, ScoreMatching
from isodus.datasets import double_wells, gaussian_10
from isodus.planning import SampleSize, sample_size

GAUSS = PolynomialModel.from_dict({(0, 0): 0.5, (1, 1): 0.5, (0, 1): 0.2}, names=["a", "b"])
WELL = PolynomialModel.from_dict({(0,): 0.2, (0, 0): -2.0, (0, 0, 0): 0.1, (0, 0, 0, 0): 1.0})
WELLS = double_wells(2, height=1.0, coupling=0.25)
ALL = MonomialBasis(2, 4, max_order=2)


@pytest.mark.parametrize("loss", ["pseudo-likelihood", "score matching"])
def test_a_gaussian_with_all_pairs_has_the_errors_of_maximum_likelihood(loss):
    """Both estimators solve it exactly: n var Λ̂_ij = Λ_ii Λ_jj + Λ_ij², and θ_ii = Λ_ii/2."""
    model = gaussian_10()
    Lambda = model.precision()
    table = sample_size(model, error=0.1, loss=loss)
    expected = [(Lambda[i, i] * Lambda[j, j] + Lambda[i, j] ** 2) / (4 if i == j else 1) for i, j in model.basis.terms]
    off = (table["sd"] ** 2 / expected - 1) / table["n_error"]
    assert np.all(np.abs(off) < 5)  # of 55 terms, with errors that are themselves known to a quarter
    assert 0.7 < np.sqrt(np.mean(off**2)) < 1.4
    assert table["n_error"].max() < 0.05
    assert np.allclose(table["n"], np.ceil(table["sd"] ** 2 / 0.01))


def expectation(model, function):
    density = lambda x: np.exp(-model.energy([[x]])[0])
    return quad(lambda x: function(x) * density(x), -4, 4)[0] / quad(density, -4, 4)[0]


def matrix(model, rows, columns):
    return np.array([[expectation(model, lambda x, f=f, g=g: f(x) * g(x)) for g in columns] for f in rows])


def test_one_variable_has_the_inverse_of_fishers_information():
    powers = [lambda x, l=l: x**l for l in range(1, 5)]
    means = np.array([expectation(WELL, f) for f in powers])
    expected = np.diagonal(np.linalg.inv(matrix(WELL, powers, powers) - np.outer(means, means)))
    table = sample_size(WELL, error=0.1, n_draws=50_000)
    assert np.all(np.abs(table["sd"] ** 2 / expected - 1) < 4 * table["n_error"])
    assert table["n_error"].max() < 0.05


def test_score_matching_of_one_variable_has_the_errors_of_its_own_equations():
    """A = E vvᵀ and slopes v (vᵀθ) − v′ with v_l = l x^{l−1}."""
    theta = WELL.theta
    v = [lambda x, l=l: l * x ** (l - 1) for l in range(1, 5)]
    more = [lambda x, l=l: l * (l - 1) * x ** max(l - 2, 0) for l in range(1, 5)]
    slope = lambda x: sum(t * f(x) for t, f in zip(theta, v, strict=True))
    slopes = [lambda x, f=f, g=g: f(x) * slope(x) - g(x) for f, g in zip(v, more, strict=True)]
    A, B = np.linalg.inv(matrix(WELL, v, v)), matrix(WELL, slopes, slopes)
    table = sample_size(WELL, error=0.1, loss="score matching", n_draws=50_000)
    assert np.all(np.abs(table["sd"] ** 2 / np.diagonal(A @ B @ A) - 1) < 4 * table["n_error"])


N, N_SETS = 600, 150


@cache
def fits(kind):
    """θ of x0*x1 and its standard error, (2, sets), in fits to independent sets of samples."""
    models = [kind().fit(part).model_ for part in np.split(np.asarray(WELLS.sample(N * N_SETS, rng=5)), N_SETS)]
    at = models[0].basis.terms.index((0, 1))
    return np.array([(model.to_dict()[(0, 1)], model.stderr()[at]) for model in models]).T


@pytest.mark.parametrize(("kind", "loss"), [(ISODUS, "pseudo-likelihood"), (ScoreMatching, "score matching")])
def test_predicted_errors_are_the_spread_of_fits(kind, loss):
    """The spread is known to 1/√(2·149) = 5.8 %; score matching has tails at this n, which the limit has not."""
    plan = sample_size(WELLS, ("x0", "x1"), error=0.05, basis=ALL, loss=loss)
    spread = np.std(fits(kind)[0], ddof=1)
    assert plan.stderr(N) / spread == pytest.approx(1, abs=0.15)
    assert plan.n == np.ceil((plan.sd / 0.05) ** 2)


def test_predicted_power_is_how_often_fits_find_the_term():
    plan = sample_size(WELLS, (0, 1), power=0.8, basis=ALL)
    theta, error = fits(ISODUS)
    found = np.mean(2 * norm.sf(np.abs(theta / error)) < 0.05)
    predicted = plan.power(N)
    assert 0.3 < predicted < 0.9  # otherwise the next line says nothing
    assert abs(found - predicted) < 3.5 * np.sqrt(predicted * (1 - predicted) / N_SETS)


def test_the_error_of_n_is_its_spread_over_seeds():
    plans = [sample_size(WELL, (0, 0), error=0.1, n_draws=5000, rng=seed) for seed in range(40)]
    spread = np.std([plan.n for plan in plans], ddof=1) / np.mean([plan.n for plan in plans])
    assert np.mean([plan.n_error for plan in plans]) / spread == pytest.approx(1, abs=0.45)


def test_n_and_power_are_two_sides_of_one_formula():
    plan = sample_size(GAUSS, ("b", "a"), power=0.9, significance=0.01)
    assert isinstance(plan, SampleSize)
    distance = ndtri(0.995) + ndtri(0.9)
    assert plan.n == np.ceil((plan.sd * distance / 0.2) ** 2)
    delta, z = 0.2 / plan.stderr(50), ndtri(0.995)
    assert plan.power(50) == pytest.approx(norm.sf(z - delta) + norm.cdf(-z - delta))
    low = sample_size(GAUSS, (0, 1), power=0.1)  # where the other tail counts
    for least in (plan, low):
        asked = 0.9 if least is plan else 0.1
        assert least.power(least.n) >= asked > least.power(least.n - 1)
    curve = plan.curve()
    assert np.all(np.diff(curve["power"]) >= 0)
    assert np.all(np.diff(curve["stderr"]) < 0)
    assert plan.curve([plan.n])["power"].tolist() == [plan.power(plan.n)]


def test_one_term_is_a_row_of_the_table_of_all():
    table = sample_size(WELLS, power=0.8, basis=ALL).set_index("term")
    plan = sample_size(WELLS, (1, 1, 1, 1), power=0.8, basis=ALL)
    row = table.loc["x1^4"]
    assert (plan.n, plan.sd, plan.theta, plan.n_error) == (row["n"], row["sd"], row["theta"], row["n_error"])
    assert np.all(np.isinf(table.loc[["x0", "x0^2*x1", "x0*x1^3"], "n"]))  # what is zero is never found
    assert list(table.columns) == ["degree", "order", "theta", "sd", "n", "n_error"]


def test_more_terms_cost_more_samples():
    alone = sample_size(WELLS, (0, 1), error=0.05)
    assert sample_size(WELLS, (0, 1), error=0.05, basis=ALL).n > 1.2 * alone.n


def test_bonferroni_shares_the_level_among_interactions():
    single, shared = (sample_size(WELLS, (0, 1), power=0.8, basis=ALL, correction=c) for c in (None, "bonferroni"))
    assert shared.alpha == pytest.approx(0.05 / 6)
    assert shared.n > 1.4 * single.n


def test_units_of_the_top_degree_change_errors_by_a_factor_and_n_not_at_all():
    far = PolynomialModel(WELL.basis, WELL.theta, [50.0], [20.0], ["x"])
    options = dict(n_draws=4000, rng=3)
    own, raw = (sample_size(far, (0, 0, 0, 0), power=0.8, units=u, **options) for u in ("standardized", "raw"))
    near = sample_size(WELL, (0, 0, 0, 0), power=0.8, **options)
    assert own.n == raw.n == near.n
    assert own.sd == pytest.approx(near.sd, rel=1e-6)
    assert raw.sd == pytest.approx(near.sd / 20.0**4, rel=1e-6)
    assert sample_size(far, (0, 0), error=0.1, units="standardized", **options).sd == pytest.approx(
        sample_size(WELL, (0, 0), error=0.1, **options).sd, rel=1e-6
    )


def test_score_matching_is_planned_in_the_units_that_its_estimator_takes():
    """It is another estimator in other units: what is drawn is standardised as a fit would do it."""
    options = dict(error=0.1, loss="score matching", n_draws=4000, basis=ALL)
    stretched = PolynomialModel.from_dict({t: v / 10.0 ** t.count(0) for t, v in WELLS.to_dict().items()})
    plain = sample_size(WELLS, (0, 0, 1, 1), **options)
    assert sample_size(stretched, (0, 0, 1, 1), **options).sd == pytest.approx(plain.sd / 100, rel=0.1)


def test_it_says_it_in_a_line():
    goal = "to have a standard error of 0.03"
    plan = SampleSize(1234, 0.021, "a*b", 0.2, 1.05, goal, 0.05, "raw", "score matching", 3)
    assert repr(plan) == (
        "SampleSize: n = 1,234 (± 2.1 %) for a*b to have a standard error of 0.03; it is 0.2 with a standard error of "
        "1.05/√n, by score matching in raw units"
    )
    few = sample_size(GAUSS, ("a", "b"), error=2.0)
    assert few.n == 3  # a fit takes more samples than a variable has parameters
    assert "simulate" in repr(few)
    assert "to be found, at p < 0.05, with probability 0.8" in repr(sample_size(GAUSS, (0, 1), power=0.8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(term=(0, 0, 1), error=0.1), "term: a.2.b is no term of the basis"),
        (dict(term=("a", "z"), error=0.1), "'z', which is no column; the columns are a, b"),
        (dict(term=(0, 1)), "give one of error and power, not neither"),
        (dict(term=(0, 1), error=0.1, power=0.8), "give one of error and power, not both"),
        (dict(term=(0, 1), error=0.0), "error must be a positive number"),
        (dict(term=(0, 1), error=True), "error must be a positive number"),
        (dict(term=(0, 1), power=1.0), "power must lie between 0 and 1"),
        (dict(term=(0, 1), power=0.8, significance=0.0), "significance must lie between 0 and 1"),
        (dict(term=(0, 1), power=0.04), "power=0.04 is not above 0.05"),
        (dict(term=(0, 1), power=0.8, correction="bh"), "correction must be None or"),
        (dict(term=(0, 1), power=0.8, units="own"), "units must be"),
        (dict(term=(0, 1), power=0.8, loss="screening"), "loss must be one of 'pseudo-likelihood'"),
        (dict(term=(0, 1), power=0.8, n_draws=0), "n_draws must be a positive integer"),
        (dict(term=(0, 1), power=0.8, n_draws=20), "n_draws=20 is too few"),
        (dict(term=(0,), power=0.8, basis=MonomialBasis(2, 2)), "a is zero in the model, in raw units"),
        (dict(term=(0, 1), power=0.8, basis=MonomialBasis(3, 2)), "basis must be a MonomialBasis of 2 variables"),
        (dict(term=(0, 0), power=0.8, basis=MonomialBasis(2, 2, max_order=1)), "basis: a.b is no term"),
        (dict(term=(0, 1), power=0.8, rng="x"), "rng must be"),
    ],
)
def test_what_cannot_be_planned_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sample_size(GAUSS, **options)


def test_a_model_that_cannot_be_drawn_from_says_why():
    with pytest.raises(ValueError, match="nothing can be planned: the model is no probability distribution"):
        sample_size(PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): 1.0, (0, 1): 3.0}), (0, 1), power=0.8)
    plan = sample_size(GAUSS, (0, 1), power=0.8)
    with pytest.raises(ValueError, match="n must be a positive number"):
        plan.power(0)
