"""Standard errors against the spread over many sets, closed forms and finite differences."""

from functools import cache

import numpy as np
import pytest
from cases import PAIR, drawn

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching
from isodus.datasets import paper_1d

# closed under translation, few, and far from Gaussian: two wells each, and one coupling
TERMS = [(0,), (1,), (0, 0), (0, 1), (1, 1), (0, 0, 0), (1, 1, 1), (0, 0, 0, 0), (1, 1, 1, 1)]
FEW = dict(basis=MonomialBasis(2, terms=TERMS))
TRUTH = PolynomialModel.from_dict(
    {(1,): 0.2, (0, 0): -2.0, (0, 1): 0.5, (1, 1): -3.0, (0, 0, 0, 0): 1.0, (1, 1, 1, 1): 1.5}
)
SCREENING = dict(refine=0, nu=0.1)
N_SETS = 100


@cache
def sets():
    """Of 1,500 samples in raw units, far from the origin."""
    return np.split(TRUTH.sample(1500 * N_SETS, rng=0) * [3.0, 0.2] + [50.0, -4.0], N_SETS)


@pytest.mark.parametrize(
    "estimator",
    [
        ISODUS(**FEW),
        ISODUS(**FEW, **SCREENING, consensus="precision"),
        ISODUS(**FEW, **SCREENING, consensus="geometric"),
        ISODUS(**FEW, **SCREENING, consensus="mean", objective="plain"),
        PseudoLikelihood(**FEW),
        PseudoLikelihood(degree=2),  # not the model: what is minimised still has a spread
        ScoreMatching(**FEW),
    ],
    ids=["refined", "precision", "geometric", "mean", "pseudo-likelihood", "Gaussian", "score matching"],
)
def test_standard_errors_are_the_spread_over_sets(estimator):
    """The spread itself is known to 1/√(2·99) = 7.1 %."""
    frames = [estimator.fit(X).model_.to_frame() for X in sets()]
    spread = np.std([frame["theta"] for frame in frames], axis=0, ddof=1)
    claimed = np.mean([frame["stderr"] for frame in frames], axis=0)
    assert np.all(np.abs(claimed / spread - 1) < 4 / np.sqrt(2 * (N_SETS - 1)))


def test_separated_wells_are_estimated_without_bias_and_with_honest_errors():
    """The mean of the estimates is known to a tenth of their spread."""
    truth = PolynomialModel.from_dict({(0,): 0.2, (0, 0): -4.0, (0, 0, 0): 0.0, (0, 0, 0, 0): 1.0})
    frames = [ISODUS().fit(part).model_.to_frame() for part in np.split(truth.sample(100 * 1000, rng=0), 100)]
    estimates = np.array([frame["theta"] for frame in frames])
    spread = np.std(estimates, axis=0, ddof=1)
    assert np.all(np.abs(np.mean(estimates, axis=0) - truth.theta) < 0.4 * spread)
    claimed = np.mean([frame["stderr"] for frame in frames], axis=0)
    assert np.all(np.abs(claimed / spread - 1) < 4 / np.sqrt(2 * 99))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_errors_of_a_gaussian_have_a_closed_form(weighted):
    """θ₂ = 1/(2v), v the variance, so var θ₂ = var(v)/(4v⁴) with var(v) = (m₄ − v²)/n, whatever the samples are."""
    x = drawn(TRUTH, 2000)[:, 0] + 7.0
    weight = np.random.default_rng(0).integers(1, 4, 2000) if weighted else None
    n = 2000 if weight is None else weight.sum()
    d = x - np.average(x, weights=weight)
    v, m3, m4 = (np.average(d**k, weights=weight) for k in (2, 3, 4))
    model = PseudoLikelihood(degree=2).fit(x[:, None], sample_weight=weight).model_
    stderr = dict(zip(model.basis.terms, model.stderr(), strict=True))
    assert stderr[0, 0] == pytest.approx(np.sqrt((m4 - v**2) / n) / (2 * v**2), rel=1e-6)
    # θ₁ = −mean/v, and the covariance of mean and v is m₃/n
    mean = np.average(x, weights=weight)
    variance = (v / v**2 - 2 * mean * m3 / v**3 + mean**2 * (m4 - v**2) / v**4) / n
    assert stderr[0,] == pytest.approx(np.sqrt(variance), rel=1e-6)


ALL = [ISODUS(), ISODUS(**SCREENING), ISODUS(refine=0), PseudoLikelihood(), ScoreMatching()]


@pytest.mark.parametrize(
    ("estimator", "n"), [*((estimator, 2000) for estimator in ALL), (ISODUS(), 17_000), (ISODUS(**SCREENING), 17_000)]
)
def test_a_covariance_is_symmetric_and_has_no_negative_eigenvalue(estimator, n):
    model = estimator.fit(drawn(TRUTH, n) + 3.0).model_
    C = model.covariance
    assert C.shape == (len(model.basis),) * 2
    size = np.sqrt(np.diagonal(C))
    assert np.allclose(C / size / size[:, None], (C / size / size[:, None]).T, rtol=0, atol=1e-14)
    assert np.linalg.eigvalsh(C / size / size[:, None])[0] > -1e-9
    assert np.array_equal(model.stderr("standardized"), size)
    assert np.array_equal(model.to_frame()["stderr"], model.stderr())


@pytest.mark.parametrize(
    ("estimator", "rel"),
    [
        (ISODUS(), 0.01),  # as far as it is refined
        (ISODUS(**SCREENING, consensus="precision"), 1e-3),  # the curvature is that of a step before
        (ISODUS(**SCREENING, consensus="geometric"), 1e-3),
        (PseudoLikelihood(tol=1e-9), 1e-6),
        (ScoreMatching(), 1e-9),
    ],
    ids=["refined", "precision", "geometric", "pseudo-likelihood", "score matching"],
)
def test_weights_count_repetitions(estimator, rel):
    X = drawn(PAIR, 3000)
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = estimator.fit(X, sample_weight=counts).model_.stderr()
    repeated = estimator.fit(np.repeat(X, counts, axis=0)).model_.stderr()
    assert np.allclose(weighted, repeated, rtol=rel)


@pytest.mark.parametrize("estimator", ALL[:-1], ids=repr)
def test_a_standard_error_falls_with_the_root_of_the_samples(estimator):
    """Also where, above 16,384 rows, covariances come from part of them: n is that of all."""
    X = drawn(PAIR, 32_000)
    ratio = estimator.fit(X[:2000]).model_.stderr() / estimator.fit(X).model_.stderr()
    assert 3 < np.exp(np.mean(np.log(ratio))) < 5.5


@pytest.mark.parametrize(
    ("estimator", "X", "held"),
    [
        (PseudoLikelihood(degree=6), paper_1d().sample(4000, rng=2), [(0,) * 6]),
        (ISODUS(degree=6), paper_1d().sample(4000, rng=2), [(0,) * 6]),
        (ISODUS(degree=2, **SCREENING), drawn(TRUTH, 2000)[:, :1], [(0, 0)]),
    ],
    ids=["pseudo-likelihood", "refined", "screening"],
)
def test_what_is_held_has_no_standard_error(estimator, X, held):
    model = estimator.fit(X).model_
    assert len(estimator.notes_) == len(held)
    for units in ("raw", "standardized"):
        assert [t for t, s in zip(model.basis.terms, model.stderr(units), strict=True) if np.isnan(s)] == held


@pytest.mark.parametrize("held", [[], [13], [0, 5, 13]])
def test_raw_standard_errors_are_the_delta_method_by_finite_differences(held):
    rng = np.random.default_rng(0)
    basis = MonomialBasis(2, 4)
    root = rng.standard_normal((len(basis), len(basis)))
    C, free = root @ root.T, np.setdiff1d(np.arange(len(basis)), held)
    known = np.full_like(C, np.nan)
    known[np.ix_(free, free)] = C[np.ix_(free, free)]
    units = (np.array([20.0, -0.3]), np.array([2.0, 0.05]))
    raw = lambda theta: np.array(list(PolynomialModel(basis, theta, *units).to_dict().values()))
    theta = rng.standard_normal(len(basis))
    slopes = np.stack([(raw(theta + e) - raw(theta - e)) / 2 for e in np.eye(len(basis))], axis=1)[:, free]
    expected = np.sqrt(np.einsum("ki,ij,kj->k", slopes, C[np.ix_(free, free)], slopes))
    expected[held] = np.nan
    model = PolynomialModel(basis, theta, *units, covariance=known)
    assert np.allclose(model.stderr(), expected, rtol=1e-7, equal_nan=True)
    assert np.all(np.isnan(PolynomialModel(basis, theta, *units).stderr()))
