"""Variables on half lines, intervals, circles and among a few values, and functions other than powers."""

import itertools
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, optimize, stats
from sklearn.base import clone
from test_objective import objective_of

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching, open_samples
from isodus.comparison import compare
from isodus.functions import Fourier, HeavyTails, Hermite, Legendre, Logarithms, LogPowers
from isodus.goodness import goodness_of_fit, residuals
from isodus.losses.pseudo_likelihood import PseudoLikelihoodLoss
from isodus.losses.score_matching import ScoreMatchingLoss
from isodus.losses.screening import Screening
from isodus.supports import Support

INF = np.inf


class LogBeta:
    """log x and log(1 − x), as a Beta distribution has; a class of a user's own."""

    support, ends = Support(0.0, 1.0), True

    def __call__(self, x, s):
        return np.stack([np.log(x), np.log1p(-x)])[:s]


def from_dict(theta, **options):
    return lambda: PolynomialModel.from_dict(theta, **options)


# what a model is made of, and how often an interaction is asked for by each estimator
TRUTHS = {
    "half lines": from_dict({(0,): -1.0, (0, 0): 0.5, (1, 1): 0.5, (1,): 0.2, (0, 1): 0.3}, support=(0.0, INF)),
    "intervals": from_dict({(0,): 0.5, (1,): -0.5, (0, 1): 1.3, (0, 0): -1.0, (1, 1, 1): 0.5}, support=(-1.0, 1.5)),
    "spins": from_dict({(0,): 0.2, (1,): -0.3, (0, 1): 0.4}, support="spin"),
    "alphabets": from_dict(
        {(0,): 0.5, (0, 0): -0.6, (1,): -0.2, (1, 1, 1): -0.1, (0, 1): -0.8}, support=[[-1, 0, 1], [0.0, 0.5, 1.0, 2.0]]
    ),
    "angles": from_dict({(0,): -1.0, (0, 0): 0.5, (1,): 0.3, (0, 1): -0.8, (0, 0, 1, 1): -0.8}, support="circle"),
    "a spin and a half line": from_dict({(0,): 0.3, (0, 1): 0.5, (1,): 1.0, (1, 1): 0.2}, support=["spin", "positive"]),
    "the line and an interval": from_dict(
        {(0, 0): 0.5, (0, 0, 0, 0): 0.1, (0, 1): 0.7, (1,): 0.5, (1, 1): -1.0}, support={1: (0.0, 2.0)}
    ),
    "Gamma": from_dict({(0,): -1.0, (0, 0): 1.0, (1,): 0.4, (1, 1): 0.7, (0, 0, 1, 1): 0.3}, functions=LogPowers()),
    "heavy tails": from_dict({(0,): 0.5, (0, 0): 1.6, (1,): -0.2, (1, 1): 2.0, (0, 1): -0.8}, functions=HeavyTails()),
    "Hermite": from_dict(
        {(0, 0): 0.6, (0,): 0.1, (1, 1): 0.5, (0, 0, 0, 0): 0.2, (1, 1, 1, 1): 0.1, (0, 1): -0.4}, functions=Hermite()
    ),
    "logarithms": from_dict(
        {(0,): -0.3, (0, 0): 0.6, (1,): 0.2, (1, 1): 0.5, (0, 1): -0.4}, functions=Logarithms(0.3, 0.8)
    ),
    "Legendre": from_dict({(0,): 0.3, (1,): -0.2, (1, 1): 0.3, (0, 1): -0.4, (0, 0, 1): 0.2}, functions=Legendre(0, 5)),
}
DISCRETE = ("spins", "alphabets", "a spin and a half line")


@cache
def truth_of(name):
    return TRUTHS[name]()


@cache
def drawn(name):
    X = np.asarray(truth_of(name).sample(32_000, rng=3))
    X.flags.writeable = False
    return X


def nodes(space):
    """Points and weights of an integral over one variable, not those that the library has."""
    support, functions = space
    if support.values is not None:
        return np.array(support.values), np.ones(len(support.values))
    if support.circle:
        return np.linspace(-np.pi, np.pi, 64, endpoint=False), np.full(64, 2 * np.pi / 64)
    if support.bounded:
        quarter = (support.high - support.low) / 4  # in two halves: the weight of score matching has a kink between
        x, w = np.polynomial.legendre.leggauss(24)
        x = support.low + quarter * (x + 1)
        return np.concatenate([x, x + 2 * quarter]), quarter * np.concatenate([w, w])
    if np.isfinite(support.low):
        if functions is None:
            x, w = np.polynomial.legendre.leggauss(40)
            ends = np.array([0.0, 1.0, 4.0, 30.0])  # at one is a kink, too
            half = np.diff(ends)[:, None] / 2
            return (ends[:-1, None] + half * (x + 1)).ravel(), (half * w).ravel()
        x, w = np.polynomial.legendre.leggauss(110)
        t, w = np.concatenate([2 * (x - 1), 1.25 * (x + 1)]), np.concatenate([2 * w, 1.25 * w])
        return np.exp(1.5 * np.sinh(t)), w * np.exp(1.5 * np.sinh(t)) * 1.5 * np.cosh(t)
    if isinstance(functions, HeavyTails):
        t = np.linspace(-15.0, 15.0, 301)
        return np.sinh(t), (t[1] - t[0]) * np.cosh(t)
    x = np.linspace(-6.0, 6.0, 161)
    return x, np.full(161, x[1] - x[0])


def population(truth):
    """Points, (n, 2), and their probabilities."""
    spaces = truth.basis.spaces
    (x, v), (y, w) = nodes(spaces[0]), nodes(spaces[1])
    points = np.stack([g.ravel() for g in np.meshgrid(x, y, indexing="ij")], axis=1)
    weight = np.exp(-truth.energy(points)) * np.outer(v, w).ravel()
    some = weight > 1e-100 * weight.max()
    return points[some], weight[some]


def losses(truth):
    basis, p = truth.basis, 2
    rough = 2.0 if isinstance(basis.spaces[0].functions, HeavyTails) else 0.7  # |x|^2.7 has a kink, which nodes miss
    for nu, delta in ((0.5, 2.0), (0.2, rough)):
        yield Screening.of_degree(basis.degree, np.full(p, nu), np.full(p, delta), np.zeros(p), "log", basis.spaces)
    yield PseudoLikelihoodLoss()
    if all(space.has_slopes for space in basis.spaces):
        yield ScoreMatchingLoss()


@pytest.mark.parametrize("name", TRUTHS)
def test_the_slope_vanishes_at_the_truth(name):
    """By quadrature: the screening property, pseudo-likelihood, and score matching with its weight at the ends."""
    truth = truth_of(name)
    points, weight = population(truth)
    thetas = [truth.theta[truth.basis.local(i).terms] for i in range(2)]
    for loss in losses(truth):
        objective = objective_of(truth.basis, loss, points, weight)
        here = objective.evaluate([0, 1], thetas, hessian=False)
        assert max(np.abs(e.gradient).max() for e in here) < 1e-8
        there = objective.evaluate([0, 1], [t + 0.05 for t in thetas], hessian=False)
        assert max(np.abs(e.gradient).max() for e in there) > 1e-3


@pytest.mark.parametrize("name", TRUTHS)
def test_normalisation_and_marginals_are_those_of_a_quadrature(name):
    truth = truth_of(name)
    points, weight = population(truth)
    assert truth.log_partition() == pytest.approx(np.log(weight.sum()), abs=1e-7)
    X = drawn(name)
    for i in range(2):
        for f in (np.arctan, lambda x: 1 / (1 + x * x)):
            expected, error = weight @ f(points[:, i]) / weight.sum(), np.std(f(X[:, i])) / np.sqrt(len(X))
            assert np.mean(f(X[:, i])) == pytest.approx(expected, abs=4 * error + 1e-12)


ESTIMATORS = {
    "ISODUS": lambda basis: ISODUS(basis=basis),
    "without refinement": lambda basis: ISODUS(basis=basis, refine=0),
    "score matching": lambda basis: ScoreMatching(basis=basis),
}


@pytest.mark.parametrize(
    ("name", "estimator"),  # values that lie apart have no derivatives to match
    [(name, one) for name in TRUTHS for one in ESTIMATORS if not (one == "score matching" and name in DISCRETE)],
)
def test_parameters_are_recovered_with_the_errors_that_are_told(name, estimator):
    """And errors fall as 1/√n: sixteen times the samples, a quarter of the error."""
    truth, X = truth_of(name), drawn(name)
    errors, expected = [], truth.parameters("raw")
    for n in (2_000, 32_000):
        fit = ESTIMATORS[estimator](truth.basis).fit(X[:n])
        assert set(fit.status_) == {"converged"}
        errors.append(fit.model_.stderr())
        z = (fit.model_.parameters("raw") - expected) / errors[-1]
        assert np.sqrt(np.mean(z**2)) < 2.5
        assert np.abs(z).max() < 4
    assert np.median(errors[0] / errors[1]) == pytest.approx(4, rel=0.25)


@pytest.mark.parametrize(
    ("functions", "low", "high"),
    [
        (Hermite(0.3, 2.0), -2, 2),
        (Legendre(0, 3), 0.1, 2.9),
        (Fourier(), -3, 3),
        (LogPowers(), 0.3, 3),
        (Logarithms(0.2, 1.5), 0.3, 3),
        (HeavyTails(0.2, 1.5), -3, 3),
    ],
)
def test_derivatives_are_differences(functions, low, high):
    x, h = np.linspace(low, high, 7), 1e-5
    first, second = functions.derivatives(x, 4)
    assert np.allclose(first, (functions(x + h, 4) - functions(x - h, 4)) / (2 * h), rtol=1e-7, atol=1e-7)
    slopes = [functions.derivatives(x + step, 4)[0] for step in (h, -h)]
    assert np.allclose(second, (slopes[0] - slopes[1]) / (2 * h), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", TRUTHS)
def test_pseudo_likelihood_is_what_refinement_finds(name):
    X, basis = drawn(name)[:3000], truth_of(name).basis
    a, b = PseudoLikelihood(basis=basis).fit(X).model_, ISODUS(basis=basis).fit(X).model_
    assert np.sqrt(np.mean(((a.theta - b.theta) / a.stderr("standardized")) ** 2)) < 0.1  # where refinement stops


CLOSED = {
    "exponential": (from_dict({(0,): 0.7}, support="positive"), stats.expon(scale=1 / 0.7)),
    "truncated Gaussian": (from_dict({(0,): -1.0, (0, 0): 0.5}, support=(0.0, 2.0)), stats.truncnorm(-1, 1, loc=1)),
    "half Gaussian": (from_dict({(0, 0): 0.5}, support=(0.0, INF)), stats.halfnorm()),
    "uniform": (from_dict({(0,): 0.0}, support=(2.0, 5.0)), stats.uniform(2, 3)),
    "Beta": (from_dict({(0,): -0.5, (0, 0): -2.0}, functions=LogBeta()), stats.beta(1.5, 3)),
    "Gamma": (from_dict({(0,): 0.6, (0, 0): 0.5}, functions=LogPowers()), stats.gamma(0.4, scale=2)),
    "von Mises": (from_dict({(0,): -2.0}, support="circle"), stats.vonmises(2.0)),
    "Student": (from_dict({(0, 0): 2.0}, functions=HeavyTails(1.0, np.sqrt(3))), stats.t(3, loc=1)),
}


@pytest.mark.parametrize("method", ["auto", "gibbs"])
@pytest.mark.parametrize("name", CLOSED)
def test_draws_have_the_distribution_of_a_closed_form(name, method):
    make, known = CLOSED[name]
    model = make()
    X = np.asarray(model.sample(4000, rng=1, method=method))[:, 0]
    assert stats.kstest(X, known.cdf).pvalue > 1e-3
    x = known.ppf(np.array([0.05, 0.3, 0.9]))
    assert np.allclose(model.logpdf(x[:, None]), known.logpdf(x), atol=1e-7)
    given = model.conditional(0, x[:1, None])
    assert np.allclose(given.logpdf(x[None, :]), known.logpdf(x), atol=1e-8)
    assert np.allclose(given.cdf(x[None, :]), known.cdf(x), atol=1e-8)
    assert np.allclose(given.quantile([0.05, 0.3, 0.9]), x, rtol=1e-7, atol=1e-7)
    assert given.mean()[0] == pytest.approx(known.mean(), abs=1e-6)


def test_spins_are_enumerated():
    """Order three and four: sums, probabilities, draws and what is learned from exact draws."""
    theta = {(0,): 0.2, (1,): -0.3, (0, 1): 0.4, (1, 2): -0.5, (0, 1, 2): 0.3, (0, 1, 2, 3): 0.5, (3,): 0.2, (2,): 0.1}
    model = PolynomialModel.from_dict(theta, support="spin")
    every = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    weight = np.exp(-model.energy(every))
    assert model.log_partition() == pytest.approx(np.log(weight.sum()), abs=1e-12)
    assert np.allclose(model.logpdf(every), np.log(weight / weight.sum()), atol=1e-12)
    assert model.logpdf([[0.5, 1.0, 1.0, 1.0]])[0] == -INF
    for method in ("auto", "gibbs"):
        X = np.asarray(model.sample(20_000, rng=1, method=method))
        seen = np.array([np.all(row == X, axis=1).sum() for row in every])
        assert stats.chisquare(seen, weight / weight.sum() * len(X)).pvalue > 1e-3
    for options in (dict(), dict(refine=0), dict(refine=0, objective="plain")):
        fit = ISODUS(4, max_order=None, support="spin", **options).fit(every, sample_weight=seen)
        assert len(fit.model_.theta) == 15
        z = (fit.model_.theta - [theta.get(term, 0.0) for term in fit.model_.basis.terms]) / fit.model_.stderr()
        assert np.sqrt(np.mean(z**2)) < 1.6


def rise(kind, X, weight, penalty, u):
    """θ of node u by another solver: that of RISE's papers, whose density is exp(+Σ θ …), the field first."""
    S = np.column_stack([X[:, u], *(X[:, u] * X[:, j] for j in range(X.shape[1]) if j != u)])

    def value(split):
        theta = split[:p] - split[p:]
        h = S @ theta
        cost = penalty * (split[1:p].sum() + split[p + 1 :].sum())
        if kind == "RISE":
            e = weight * np.exp(-h)
            f, g = e.sum(), -S.T @ e
        elif kind == "logRISE":
            e = weight * np.exp(-h)
            f, g = np.log(e.sum()), -S.T @ e / e.sum()
        else:
            f, g = weight @ np.logaddexp(0, -2 * h), -2 * S.T @ (weight / (1 + np.exp(2 * h)))
        by = np.concatenate([g, -g])
        by[1:p] += penalty
        by[p + 1 :] += penalty
        return f + cost, by

    p = X.shape[1]
    bounds = [(0, None)] * (2 * p)
    found = optimize.minimize(value, np.full(2 * p, 0.1), jac=True, method="L-BFGS-B", bounds=bounds,
                              options=dict(ftol=1e-16, gtol=1e-13, maxiter=5000, maxcor=50))  # fmt: skip
    return found.x[:p] - found.x[p:]


@pytest.mark.parametrize("kind", ["RISE", "logRISE", "RPLE"])
def test_interaction_screening_of_spins(kind):
    """The plain objective is RISE, the log one logRISE, pseudo-likelihood RPLE, from counts of configurations."""
    every = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
    chance = np.exp(every @ [0.1, -0.2, 0.3] + 0.4 * every[:, 0] * every[:, 2])
    counts = np.random.default_rng(5).multinomial(100_000, chance / chance.sum()).astype(float)
    penalty = 0.002
    options = dict(basis=MonomialBasis(3, 2), support="spin", l1=penalty, l1_scaling="raw", debias=False, rule="or")
    if kind == "RPLE":
        fit = PseudoLikelihood(tol=1e-12, **options)
    else:
        fit = ISODUS(refine=0, objective="plain" if kind == "RISE" else "log", tol=1e-12, **options)
    found = fit.fit(every, sample_weight=counts).model_.to_dict()
    R = [rise(kind, every, counts / counts.sum(), penalty, u) for u in range(3)]
    for u in range(3):
        assert -found[u,] == pytest.approx(R[u][0], abs=5e-8)
        for v in range(u):
            place = [j for j in range(3) if j != u].index(v) + 1, [j for j in range(3) if j != v].index(u) + 1
            assert -found.get((v, u), 0.0) == pytest.approx((R[u][place[0]] + R[v][place[1]]) / 2, abs=5e-8)
    assert any("left out" in note for note in fit.notes_)


@pytest.mark.parametrize("make", [ISODUS, PseudoLikelihood])
def test_combinations_of_values_that_were_never_seen_leave_terms_open(make):
    """x0 = 1 was seen with x1 = 1 alone: the larger their coupling, the better it fits."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (400, 3))
    seen = X[~((X[:, 0] == 1) & (X[:, 1] == -1))]
    with pytest.warns(UserWarning, match=r"the samples leave open how large .*x0\*x1.* never seen"):
        fit = make(2, support="spin").fit(seen)
    frame = fit.model_.to_frame().set_index("term")
    assert np.isnan(frame["stderr"]["x0*x1"])
    assert frame["stderr"]["x0*x2"] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.all(make(2, support="spin").fit(X).model_.stderr() > 0)


def test_a_stream_lives_where_its_samples_do():
    X = drawn("a spin and a half line")
    many = lambda: iter(np.array_split(X, 7))
    basis = truth_of("a spin and a half line").basis
    a, b = PseudoLikelihood(basis=basis).fit(X), PseudoLikelihood(basis=basis).fit(open_samples(many))
    assert np.allclose(a.model_.theta, b.model_.theta, atol=0.02 * a.model_.stderr("standardized").min())
    with pytest.raises(ValueError, match=r"lives on \(0, 1\), and"):
        PseudoLikelihood(2, support=["spin", (0.0, 1.0)]).fit(open_samples(many))


@pytest.mark.parametrize("name", TRUTHS)
def test_files_residuals_and_missing_cells(name, tmp_path):
    truth, X = truth_of(name), drawn(name)[:1500]
    truth.save(tmp_path / "model.json")
    again = PolynomialModel.load(tmp_path / "model.json")
    assert again.basis == truth.basis
    assert np.array_equal(again.energy(X), truth.energy(X))
    U = residuals(truth, X)
    assert all(stats.kstest(U[:, i], "uniform").pvalue > 1e-3 for i in range(2))
    holes = X[:200].copy()
    holes[::2, 0] = np.nan
    holes[1::4, 1] = np.nan
    full = truth.impute(holes, rng=0)
    assert all(space.support.holds(y).all() for space, y in zip(truth.basis.spaces, full.T, strict=True))


OUTSIDE = {"half lines": -2.0, "intervals": 1.6, "spins": 0.5, "alphabets": 1.5, "Gamma": 0.0, "Legendre": -0.1}


@pytest.mark.parametrize("name", OUTSIDE)
def test_rows_outside_of_a_support_have_no_density(name):
    """Also where the other variables are inside; nothing is given a value that is not, and what is told names it."""
    truth, bad = truth_of(name), drawn(name)[:3000].copy()
    supports, functions = zip(*truth.basis.spaces, strict=True)
    est = PseudoLikelihood(2, support=list(supports), functions=list(functions)).fit(bad)
    fine, wrong = est.score_samples(bad), OUTSIDE[name]
    bad[7, 1] = wrong
    assert np.array_equal(np.argwhere(est.model_.outside(bad)), [[7, 1]])
    with pytest.warns(UserWarning, match="values of x1 are outside of the support at some of the samples, which sco"):
        scores = est.score_samples(bad)
    assert scores[7] == -np.inf
    assert np.array_equal(np.delete(scores, 7), np.delete(fine, 7))
    assert np.all(est.model_.conditional_log_density(bad)[7] == -np.inf)
    assert est.model_.logpdf(bad[:9])[7] == -np.inf
    for rows in (bad, open_samples(lambda: np.array_split(bad, 3))):
        with pytest.warns(UserWarning, match="values of x1 are outside"):
            assert est.score(rows) == -np.inf
    with pytest.warns(UserWarning, match="values of x1 are outside"):  # what has no weight is not there
        assert est.score(bad, sample_weight=np.arange(3000) != 7) == pytest.approx(np.delete(fine, 7).mean())
    result = compare([est], bad)
    assert result.table["no_density"][0] == "x1 (1 outside of its support)"
    assert result.table["score"][0] == -np.inf
    holes = bad[:20].copy()
    holes[:, 0] = np.nan
    for refused in (lambda: est.model_.conditional(0, bad), lambda: est.model_.impute(holes)):
        with pytest.raises(ValueError, match=rf"x1 lives on .*, and 1 of .* values do not: {wrong:g} in row 7\. Mend"):
            refused()
    est.model_.conditional(1, bad)  # what is asked for is not looked at


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ends", [(0.1, 0.7), (-1e3 / 3, 1e4 / 7), (1e6 + 0.1, 1e6 + 0.3), (0.3, INF)])
def test_the_ends_of_a_support_are_inside_in_any_units(ends, dtype):
    """Standardised and back they are others by rounding."""
    low, high = ends
    last = low + 1.0 if high == INF else high
    X = np.random.default_rng(0).uniform(low, last, (500, 2))
    X[0], X[1] = low, last
    model = PseudoLikelihood(2, support=ends).fit(X).model_
    rows = np.array([[low, low], [last, low], [low, last]], dtype)
    assert not model.outside(rows).any()
    assert np.isfinite(model.conditional_log_density(rows)).all()
    for end in (0.0, 1.0) if high < INF else (0.0,):
        one = model.conditional(0, X[:1])
        assert np.isfinite(one.logpdf(one.quantile(end))).all()
    assert model.outside([[low - 1e-9 * abs(low), last]]).tolist() == [[True, False]]


def test_goodness_of_fit_tells_a_wrong_model():
    X = drawn("half lines")[:3000]
    right = ISODUS(2, support="positive").fit(X)
    assert right.goodness_of_fit(X).verdict.startswith("no misfit found")
    wrong = PolynomialModel.from_dict({(0,): 1.0, (1,): 1.0}, support="positive")
    assert goodness_of_fit(wrong, X).misfits == ["x0", "x1"]


def test_units_and_names():
    """A frame, one support by name; parameters in the units of X; a change of units changes nothing else."""
    import pandas as pd

    X = pd.DataFrame({"dose": 3 + 1e3 * drawn("half lines")[:4000, 0], "level": drawn("half lines")[:4000, 1]})
    fit = ISODUS(2, support={"dose": (3.0, INF), "level": "positive"}).fit(X)
    plain = ISODUS(2, support="positive").fit(drawn("half lines")[:4000])
    assert fit.score(X) + np.log(1e3) / 2 == pytest.approx(plain.score(drawn("half lines")[:4000]), abs=1e-6)
    assert fit.integrability_.status == "integrable"
    Z = fit.sample(500, rng=0)
    assert Z[:, 0].min() >= 3


def test_terms_are_called_by_their_functions():
    model = PolynomialModel.from_dict({(0,): -1.0, (0, 0): 1.0, (0, 1): 0.2}, names=["dose", "angle"],
                                      functions={"dose": LogPowers(), "angle": Fourier()})  # fmt: skip
    assert list(model.to_frame()["term"]) == ["log(dose)", "dose", "log(dose)*cos(angle)"]
    assert "log(dose)" in model.formula()


def test_a_mean_that_does_not_exist_is_not_told():
    cauchy = PolynomialModel.from_dict({(0, 0): 1.0}, functions=HeavyTails()).conditional(0, [[0.0]])
    assert np.isnan(cauchy.mean()[0])
    assert np.isnan(cauchy.var()[0])
    assert cauchy.median()[0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", ["half lines", "spins", "the line and an interval"])
def test_a_penalty_finds_what_interacts(name):
    """Six variables of which two interact, whatever they are."""
    X = np.concatenate([drawn(name)[:2000], drawn(name)[2000:4000, ::-1][:, [0]], drawn(name)[4000:6000]], axis=1)
    spaces = truth_of(name).basis.spaces
    support = [spaces[k].support for k in (0, 1, 1, 0, 1)]
    degree = max(truth_of(name).basis.degree, 2)
    for estimator in (ISODUS(degree, support=support, l1="auto"), ISODUS(degree, support=support, l1=0.05, refine=0)):
        edges = set(estimator.fit(X).model_.hyperedges())
        assert {("x0", "x1"), ("x3", "x4")} <= edges
        assert len(edges) <= 4


NEGATIVE = np.column_stack([np.linspace(0.1, 2, 40), np.linspace(2, 0.1, 40) ** 2])
NEGATIVE[[3, 17], 1] = -1.0


class NoSlopes:
    """Functions without derivatives."""

    support = Support(-5.0, 5.0)

    def __call__(self, x, s):
        return np.stack([np.tanh(x) ** l for l in range(1, s + 1)])


class NoStart(NoSlopes):
    """On the whole line."""

    support = Support()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ISODUS(2, support="cube").fit(NEGATIVE), "there is no support 'cube'"),
        (lambda: ISODUS(2, support=[[1.0], None]).fit(NEGATIVE), "x0: a variable that has 1 value does not vary"),
        (lambda: ISODUS(2, support=(2.0, 1.0)).fit(NEGATIVE), "goes from low to high"),
        (lambda: ISODUS(2, support=(0.0, INF)).fit(NEGATIVE), r"x1 lives on \(0, inf\), and 2 of 40 .* -1 in row 3"),
        (lambda: ISODUS(2, support=["spin"]).fit(NEGATIVE), "support has 1 entries, and there are 2 columns"),
        (lambda: ISODUS(2, support={"z": "spin"}).fit(NEGATIVE), "support names 'z'; the columns are x0, x1"),
        (lambda: ISODUS(3).fit(NEGATIVE), "degree=3 is odd"),
        (lambda: ISODUS(3, support={"x0": "positive"}).fit(NEGATIVE), "on the real line, where x1 lives"),
        (lambda: ScoreMatching(2, support="spin").fit(np.sign(NEGATIVE)), "x0 has values that lie apart"),
        (lambda: ScoreMatching(2, functions=NoSlopes()).fit(NEGATIVE), r"the functions of x0 \(NoSlopes\) have none"),
        (lambda: ISODUS(2, functions=NoStart()).fit(NEGATIVE), r"must say by start\(s\)"),
        (lambda: ISODUS(2, functions=3.0).fit(NEGATIVE), "functions is one for all columns"),
        (lambda: MonomialBasis(1, terms=[(0, 0)], support="spin"), "no term is left"),
        (
            lambda: MonomialBasis(2, 2, support=["spin", None], tied=[[(0,), (1,)]]),
            "share the parameter 0, but their variables live on",
        ),
        (lambda: MonomialBasis(2, 2, tied=[[(0, 1), (0, 5)]]), "of group 0 is no term of the basis"),
        (lambda: MonomialBasis(2, 2, tied=[[(0,)], [(0,)]]), "is in two groups"),
        (
            lambda: PolynomialModel.from_dict({(0, 0): 1.0, (0,): 1.0}, support="spin"),
            "cannot tell that power from lower ones",
        ),
        (
            lambda: PolynomialModel.from_dict({(0,): 1.0}, functions=LogBeta()).save("never.json"),
            "functions of your own",
        ),
        (
            lambda: PolynomialModel.from_dict({(0,): 1.0}, support="positive").sample(10, method="hmc"),
            "variables that live on the whole line",
        ),
    ],
)
def test_bad_input(make, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        make()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("theta", "support", "status"),
    [
        ({(0,): 1.0, (1,): -1.0, (1, 1): 0.5}, ["positive", None], "integrable"),
        ({(0,): -1.0}, "positive", "not integrable"),
        ({(0, 0): 0.5, (1, 1): 0.5, (0, 1): -1.5}, "positive", "not integrable"),
        ({(0, 0): 0.5, (1, 1): 0.5, (0, 1): 1.5}, "positive", "integrable"),
        ({(0, 0): -0.5}, (0.0, 1.0), "integrable"),
        ({(0, 0): 0.5, (0, 1): 3.0}, {1: "spin"}, "integrable"),
        ({(0, 0): 0.5, (0, 0, 1): 3.0}, {1: "spin"}, "not integrable"),
        ({(0, 0): 0.5, (0, 0, 1): 3.0}, {1: (-1.0, 1.0)}, "unknown"),
        ({(0, 0): -0.5, (0, 1): 3.0}, {1: "spin"}, "not integrable"),
        ({(0, 0): 1.0, (0, 0, 1): 0.9, (1, 2): 0.3}, {1: "spin", 2: "spin"}, "integrable"),
        ({(0, 0): 1.0, (0, 0, 1): 1.0}, {1: "spin"}, "not integrable"),  # flat where they cancel
        ({(0,): 1.0, (0, 1): 1.2}, ["positive", [-1.0, 0.0, 1.0]], "not integrable"),
        ({(0,): 1.0, (0, 1): 0.8}, ["positive", [-1.0, 0.0, 1.0]], "integrable"),
        ({(0, 0): 1.0, (1, 1): 1.0, (0, 1, 2): 1.9}, {2: "spin"}, "integrable"),
        ({(0, 0): 1.0, (1, 1): 1.0, (0, 1, 2): 2.1}, {2: "spin"}, "not integrable"),
        ({(0, 0): 1.0, (1, 1): 1.0, (0, 1, 2): 1.1, (0, 1, 3): -1.1}, {2: "spin", 3: "spin"}, "not integrable"),
        ({(0, 0): 1.0, (1, 1): 1.0, (0, 1, 2): 0.9, (0, 1, 3): -0.9}, {2: "spin", 3: "spin"}, "integrable"),
        # of a rate that is a sum over many spins, and of many rates that have one each
        ({(0,): 6.0} | {(0, k): 0.4 for k in range(1, 13)}, ["positive", *["spin"] * 12], "integrable"),
        ({(0,): 4.7} | {(0, k): 0.4 for k in range(1, 13)}, ["positive", *["spin"] * 12], "not integrable"),
        ({(0,): 6.0} | {(0, k): 0.4 for k in range(1, 14)}, ["positive", *["spin"] * 13], "unknown"),
        (
            {(k,): 1.0 for k in range(20)}
            | {(k, k + 20): 0.9 for k in range(20)}
            | {(k, k + 1): 1.0 for k in range(20, 39)},
            ["positive"] * 20 + ["spin"] * 20,
            "integrable",
        ),
    ],
)
def test_integrability(theta, support, status):
    assert PolynomialModel.from_dict(theta, support=support).integrability().status == status


def test_a_density_that_does_not_exist_at_some_values_names_them():
    """In the units of X, with a direction in which it does not fall; what does exist has its closed form."""
    model = PolynomialModel.from_dict({(0, 0): 1.0, (0, 0, 1): -0.4}, support=[None, [0, 1, 2, 3]], names=["x", "n"])
    moved = MonomialBasis(2, terms=model.basis.terms).within(
        tuple(space.standardised(0.0, 4.0 if i else 1.0) for i, space in enumerate(model.basis.spaces))
    )
    for found in (model, PolynomialModel(moved, model.theta * [1.0, 4.0], scale=[1.0, 4.0], names=["x", "n"])):
        verdict = found.integrability()
        assert verdict.reason == "the density of x has no finite integral where n is 3"
        assert np.array_equal(np.abs(verdict.direction), [1.0, 0.0])
        for ask in (found.log_partition, lambda found=found: found.logpdf([[1.0, 1.0]])):
            with pytest.raises(
                ValueError, match="no probability distribution: the density of x has no .* where n is 3"
            ):
                ask()
    fine = PolynomialModel.from_dict({(0, 0): 1.0, (0, 0, 1): -0.3}, support=[None, [0, 1, 2, 3]])
    assert fine.integrability().status == "integrable"
    exact = np.log(np.sqrt(np.pi / (1 - 0.3 * np.arange(4))).sum())
    assert fine.log_partition() == pytest.approx(exact, abs=1e-9)
    down = PolynomialModel.from_dict({(0,): 1.0, (0, 0): 1.0, (0, 0, 1): 1.0}, support=[None, "spin"]).integrability()
    assert (down.status, down.direction[0]) == ("not integrable", -1.0)  # exp(−x) where the square is gone
    pair = PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): 1.0, (0, 1, 2): 2.5}, support=[None, None, "spin"])
    assert pair.integrability().reason.startswith("where x2 is -1, the energy falls without bound along x0")


@pytest.mark.parametrize(
    ("theta", "options"),
    [
        ({(0, 0): 0.5, (0, 0, 1): 3.0}, {"support": [None, (-1.0, 1.0)]}),
        ({(0,): 1.0, (0, 1): 2.0}, {"support": ["positive", (-1.0, 1.0)]}),
        ({(0, 0): 1.0, (1, 1): 1.0, (0, 1, 2): 2.5}, {"support": [None, None, (-1.0, 1.0)]}),
        ({(0,): -0.2, (0, 0): 0.3, (1, 1): 2.0, (0, 1): -0.8}, {"functions": HeavyTails()}),
    ],
)
def test_a_sum_that_has_no_end_is_refused(theta, options):
    """Where nothing is proved, sums are found to be largest at the last of their nodes."""
    model = PolynomialModel.from_dict(theta, **options)
    assert model.integrability().status == "unknown"
    for ask in (
        model.log_partition,
        lambda: model.logpdf(np.full((1, len(model.names)), 0.5)),
        lambda: model.sample(3),
    ):
        with pytest.raises(
            ValueError, match="no probability distribution: the sum over .* is largest where x0 is as far"
        ):
            ask()


def test_functions_and_a_few_values_are_decided_value_by_value():
    make = lambda c: PolynomialModel.from_dict(
        {(0,): -1.0, (0, 0): 1.0, (0, 0, 1): c, (1,): 0.2}, functions=[LogPowers(), None], support=[None, "spin"]
    )
    assert make(1.2).integrability().reason == "the density of x0 has no finite integral where x1 is -1"
    fine = make(0.5)  # Gamma(2) with rates 1 ± c
    assert fine.integrability().status == "integrable"
    exact = np.log(np.exp(-0.2) / 1.5**2 + np.exp(0.2) / 0.5**2)
    assert fine.log_partition() == pytest.approx(exact, abs=1e-8)


def test_supports_on_the_command_line(tmp_path):
    from typer.testing import CliRunner

    from isodus.cli import app

    def run(*options):
        words = [word for option in options for word in ("--support", option)]
        return CliRunner().invoke(app, ["fit", str(tmp_path / "data.csv"), "-o", str(tmp_path / "m.json"), *words])

    X = drawn("a spin and a half line")[:800]
    np.savetxt(tmp_path / "data.csv", X, delimiter=",", header="switch,dose", comments="")
    result = run("spin:switch", "0..inf:d*")
    assert result.exit_code == 0, result.output
    assert "a Gaussian" not in result.output
    spaces = PolynomialModel.load(tmp_path / "m.json").basis.spaces
    assert [str(space.support) for space in spaces] == ["{-1, 1}", "(0, inf)"]
    for options, message in (
        (["cube"], "one of positive, spin, circle"),
        (["2..1:dose"], "from low to high"),
        (["spin:dose"], "dose lives on {-1, 1}, and"),
        (["positive:dose", "0..9:dose"], "gives dose twice"),
        (["1:dose"], "has 1 value"),
        (["positive:nothing"], "nothing"),
    ):
        result = run(*options)
        assert result.exit_code != 0
        assert message in result.output + str(getattr(result, "stderr", "")).replace("\n", " ")


def test_the_distribution_of_functions_of_a_users_own():
    """By quadrature of SciPy: three coefficients of log x and log(1 − x)."""
    model = PolynomialModel.from_dict({(0,): -0.4, (0, 0): -1.3}, functions=LogBeta())
    total = integrate.quad(lambda x: x**0.4 * (1 - x) ** 1.3, 0, 1, epsabs=1e-13)[0]
    assert model.log_partition() == pytest.approx(np.log(total), abs=1e-9)


@pytest.mark.parametrize(
    ("estimator", "tol"),
    [(PseudoLikelihood(1), 1e-4), (ISODUS(1), 0.2), (ISODUS(1, l1="auto"), 0.2), (ScoreMatching(1), 4.0)],
    ids=["pseudo-likelihood", "isodus", "isodus, l1", "score matching"],
)
def test_degree_1_is_independent_variables(estimator, tol):
    """θ = −atanh(mean) of spins, and 1/mean on the half line; tol: in standard errors 1/√n(1 − m²) and θ/√n."""
    rng, n = np.random.default_rng(0), 2000
    kinds = {"spin": np.where(rng.random((n, 3)) < [0.3, 0.5, 0.8], -1.0, 1.0)}
    kinds["positive"] = rng.exponential(size=(n, 3)) * [1.0, 5.0, 20.0]
    for support, X in kinds.items():
        if support == "spin" and isinstance(estimator, ScoreMatching):
            continue
        mean = X.mean(axis=0)
        expected = -np.arctanh(mean) if support == "spin" else 1 / mean
        error = 1 / np.sqrt(n * (1 - mean**2)) if support == "spin" else expected / np.sqrt(n)
        model = clone(estimator).set_params(support=support).fit(X).model_
        assert np.all(np.abs(model.parameters("raw") - expected) <= tol * error)
        np.testing.assert_allclose(model.stderr(), error, rtol=0.1 if tol < 1 else 0.5)
        log_z = np.log(2 * np.cosh(model.theta)).sum() if support == "spin" else -np.log(model.parameters("raw")).sum()
        assert model.log_partition() == pytest.approx(log_z, abs=1e-6)
        assert np.abs(model.sample(4000, rng=0).mean(axis=0) - mean).max() < 0.1 * X.std(axis=0).max()


def test_degree_1_is_no_density_on_the_line():
    X = np.random.default_rng(0).exponential(size=(50, 2))
    for support, where in ((None, ""), (["positive", None], ", where x1 lives")):
        with pytest.raises(ValueError, match=f"degree=1 is odd.*no density of that degree.*line{where}. Use degree=2$"):
            PseudoLikelihood(1, support=support).fit(X)


def test_degrees_are_asked_about():
    angle = np.random.default_rng(0).vonmises(1.0, 1.0, (500, 2))
    with pytest.warns(
        UserWarning, match=r"x1: angles are in radians, and 9\d% of its values lie beyond ±4π. Are they d"
    ):
        ISODUS(2, support="circle").fit(angle * [1.0, 180 / np.pi])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ISODUS(2, support="circle").fit(angle + 2 * np.pi)  # a turn is nothing
        ISODUS(2, support={"b": "positive"}).fit(pd.DataFrame({"a": angle[:, 0], "b": 100 + angle[:, 1]}))
