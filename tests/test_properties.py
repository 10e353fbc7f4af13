"""What holds of any data: units, orders, repetitions and blocks do not matter; steps descend; files give back."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from cases import LOSSES, parameters_of
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching
from isodus.objective import Objective
from isodus.samples import ArraySamples
from isodus.solvers.newton import Problem as State
from isodus.solvers.newton import Rung, minimize

pytestmark = pytest.mark.filterwarnings("ignore")
KINDS = st.sampled_from([ISODUS, PseudoLikelihood, ScoreMatching])
DEGREES = st.sampled_from([2, 4])
LOSS = st.sampled_from(sorted(LOSSES))
SEEDS = st.integers(0, 2**32 - 1)


def some(many):
    """So many examples, always the same, however long each takes."""
    health = [HealthCheck.too_slow, HealthCheck.data_too_large]
    phases = [Phase.explicit, Phase.generate]  # samples become no clearer by being fewer
    options = dict(phases=phases, suppress_health_check=health)
    return settings(derandomize=True, database=None, deadline=None, max_examples=many, **options)


@st.composite
def samples(draw, least=120):
    """Samples of one to three variables that depend on one another, light-tailed, some skewed, some with two modes."""
    rng, n, p = np.random.default_rng(draw(SEEDS)), draw(st.integers(least, 2 * least)), draw(st.integers(1, 3))
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))
    if draw(st.booleans()):
        X[:, 0] = np.tanh(X[:, 0]) + 0.2 * rng.standard_normal(n)
    if draw(st.booleans()):
        X[:, -1] += draw(st.sampled_from([1.0, 2.0])) * rng.choice([-1, 1], n)
    return X


def fitted(kind, degree, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(degree).fit(X, **options).model_


def standardised(model):
    return np.array(list(model.to_dict("standardized").values()))


def same(a, b):
    """Two models of the same samples, to the tenth of a standard error at which a fit stops."""
    error = a.stderr("standardized")
    known = error > 0
    apart = ((standardised(a) - standardised(b))[known] / error[known]) if known.any() else np.zeros(1)
    assert np.sqrt(np.mean(apart**2)) < 0.1


@some(40)
@given(samples(), KINDS, DEGREES, st.integers(-200, 200), st.floats(-1e3, 1e3))
def test_units_and_origin(X, kind, degree, exponent, shift):
    unit = 10.0**exponent
    a, b = fitted(kind, degree, X), fitted(kind, degree, (X + shift) * unit)
    np.testing.assert_allclose(b.scale, a.scale * unit, rtol=1e-9)
    np.testing.assert_allclose(standardised(b), standardised(a), rtol=1e-5, atol=1e-7)


@some(40)
@given(samples(), KINDS, DEGREES, st.randoms(use_true_random=False))
def test_order_of_variables(X, kind, degree, random):
    order = random.sample(range(X.shape[1]), X.shape[1])
    a, b = fitted(kind, degree, X), fitted(kind, degree, X[:, order])
    value, error = b.to_dict("standardized"), a.stderr("standardized")
    place = {v: k for k, v in enumerate(order)}
    for (term, theta), e in zip(a.to_dict("standardized").items(), error, strict=True):
        other = value[tuple(sorted(place[v] for v in term))]
        assert abs(theta - other) <= 0.1 * (e if e > 0 else 0.0) + 1e-6 * (1 + abs(theta))


@some(15)
@given(samples(), KINDS, DEGREES, SEEDS)
def test_order_of_samples(X, kind, degree, seed):
    shuffled = np.random.default_rng(seed).permutation(X)
    same(fitted(kind, degree, X), fitted(kind, degree, shuffled))


@some(15)
@given(samples(600), KINDS, DEGREES, SEEDS)
def test_repeated_samples_are_weights(X, kind, degree, seed):
    counts = np.random.default_rng(seed).integers(0, 4, len(X))
    weighted = fitted(kind, degree, X, sample_weight=counts)
    repeated = fitted(kind, degree, np.repeat(X, counts, axis=0))
    assert weighted.n_samples == repeated.n_samples
    np.testing.assert_allclose(weighted.location, repeated.location, rtol=1e-12, atol=1e-12)
    same(repeated, weighted)


def objective_of(X, name, degree, rows=None, order=2):
    p = X.shape[1]
    basis = MonomialBasis(p, degree, max_order=order)
    objective = Objective(basis, LOSSES[name](basis), ArraySamples(X, None, np.zeros(p), np.ones(p)))
    if rows:
        objective.block_rows = lambda locals_, hessian=False: rows
    return objective


@some(40)
@given(samples(), LOSS, DEGREES, st.integers(1, 130), SEEDS)
def test_size_of_blocks(X, name, degree, rows, seed):
    whole, cut = objective_of(X, name, degree, len(X)), objective_of(X, name, degree, rows)
    nodes, thetas = range(X.shape[1]), parameters_of(whole.basis, seed % 1000)
    for a, b in zip(whole.evaluate(nodes, thetas), cut.evaluate(nodes, thetas), strict=True):
        np.testing.assert_allclose(b.value, a.value, rtol=1e-11, atol=1e-13)
        size = np.abs(a.gradient).max()
        np.testing.assert_allclose(b.gradient, a.gradient, rtol=1e-9, atol=1e-11 * size)
        # that of a logarithm is a difference, of the size of the squared slope
        np.testing.assert_allclose(b.hessian, a.hessian, rtol=1e-9, atol=1e-11 * (np.abs(a.hessian).max() + size**2))


CONVEX = st.sampled_from(
    ["screening, log", "screening, plain", "screening, tilted", "pseudo-likelihood", "score matching"]
)


@some(40)
@given(samples(), CONVEX, DEGREES)
def test_no_step_raises_the_objective_and_the_answer_is_a_minimum(X, name, degree):
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    objective = objective_of(X, name, degree)
    nodes = range(X.shape[1])
    values = [[] for _ in nodes]

    problems = [State(start) for start in parameters_of(objective.basis)]
    for _ in range(60):
        minimize(Rung(objective.evaluate, 1e-9, verified=True), problems, max_iter=1)
        for problem, seen in zip(problems, values, strict=True):
            if problem.evaluation is not None and np.isfinite(problem.evaluation.value):
                seen.append(problem.evaluation.value)
            if problem.status == "iteration limit":
                problem.status = "running"  # one step at a time
    for i, (problem, seen) in enumerate(zip(problems, values, strict=True)):
        assert np.all(np.diff(seen) <= 1e-11 * (1 + np.abs(seen[:-1])))
        if problem.status != "converged":
            continue
        value = lambda theta, i=i: objective.evaluate([i], [theta], False)[0].value
        least = value(problem.theta)
        for step in np.eye(len(problem.theta)):
            for h in (1e-3, -1e-3, 1e-4, -1e-4):  # a slope that is not zero would lead below
                assert value(problem.theta + h * step) >= least - 1e-10 * (1 + abs(least))


@some(15)
@given(samples(), KINDS, st.floats(0.05, 0.5))
def test_a_penalised_answer_meets_its_conditions(X, kind, l1):
    X = np.c_[X, np.random.default_rng(0).standard_normal(len(X))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = kind(2, l1=l1, debias=False).fit(X)
    if set(est.status_) == {"converged"}:
        assert est.kkt_.max() <= 1e-6


NAMES = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4, unique=True)


@some(60)
@given(NAMES, st.data())
def test_a_file_gives_the_model_back(names, data):
    p = len(names)
    terms = data.draw(st.lists(st.lists(st.integers(0, p - 1), min_size=1, max_size=5), min_size=1, max_size=8))
    listed = MonomialBasis(p, terms=sorted({tuple(sorted(term)) for term in terms}))
    basis = data.draw(st.sampled_from([listed, MonomialBasis(p, 3, max_order=2)]))
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    theta = data.draw(st.lists(numbers, min_size=len(basis), max_size=len(basis)))
    scale = data.draw(st.lists(st.floats(1e-300, 1e300), min_size=p, max_size=p))
    location = data.draw(st.lists(numbers, min_size=p, max_size=p)) if basis.closed_under_translation else None
    model = PolynomialModel(basis, theta, location, scale, names)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "m.json")
        back = PolynomialModel.load(Path(folder) / "m.json")
    assert back.names == model.names
    assert back.basis == model.basis
    for name in ("theta", "location", "scale"):
        np.testing.assert_array_equal(getattr(back, name), getattr(model, name))


@some(10)
@given(st.integers(1, 3), st.floats(-4, 2), st.floats(-0.8, 0.8), st.floats(-50, 50), SEEDS)
def test_samples_are_where_the_density_is(p, curvature, coupling, shift, seed):
    theta = {(i, i): curvature for i in range(p)} | {(i,) * 4: 1.0 for i in range(p)}
    theta |= {(i, i + 1): coupling for i in range(p - 1)}
    basis = MonomialBasis(p, 4, max_order=2)
    model = PolynomialModel(basis, [theta.get(term, 0.0) for term in basis.terms], [shift] * p, [2.0] * p)
    X = np.asarray(model.sample(300, rng=seed))
    assert X.shape == (300, p)
    assert np.isfinite(X).all()
    line = np.linspace(-3, 3, 41)
    grid = shift + 2.0 * np.stack(np.meshgrid(*[line] * p), axis=-1).reshape(-1, p)
    assert (model.energy(X) - model.energy(grid).min()).max() < 40
