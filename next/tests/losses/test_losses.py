"""What every loss keeps, for each row of LOSSES: ℓ, its derivatives, and those of the objective made of it."""

import numpy as np
import pytest
from cases import LOSSES

from isodus.axes import packed_pairs
from isodus.data import as_samples
from isodus.fit.objective import Objective
from isodus.terms import Terms, keys_up_to

EACH = [pytest.param(case, column, id=f"{name}-{column}") for name, case in LOSSES.items() for column in case.axes]
STEP = 1e-4


def rows(case, column, n=30):
    """Axis, a, (n, J), and what the loss has prepared for some rows."""
    axis, x = case.on(column)
    a = np.random.default_rng(3).normal(0.0, 0.4, (n, len(axis.degrees)))
    a[:, -1] = np.abs(a[:, -1]) + 0.2  # also for a whole line
    x = x[:n]
    return axis, a, x, case.loss.prepare(axis, x, axis.functions(x))


def objective(case, column, basis="all", block=2048, seed=5, n=150):
    """Two variables of one kind, terms up to degree 3, weights, and a point."""
    axis, x = case.on(column)
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.permutation(x)[:n], rng.permutation(x)[:n]])
    degree = min(3, max(axis.degrees))
    keys, ties = keys_up_to([axis, axis], degree, 2), None
    if basis == "without lower terms":
        keys = keys_up_to([axis, axis], degree, 2, min_degree=2)
    elif basis == "tied":  # of equal powers of both variables
        kinds = sorted({tuple(sorted((key.count(0), key.count(1)))) for key in keys})
        ties = [kinds.index(tuple(sorted((key.count(0), key.count(1))))) for key in keys]
    weight = rng.integers(1, 4, n).astype(float)
    terms = Terms([axis, axis], keys, ties)
    f = Objective(case.loss, terms, as_samples(X, weight, block=block))
    tau = rng.normal(0.0, 0.1, len(terms))
    tau[[k for k, key in enumerate(terms.keys) if len(set(key)) == 1]] += 0.5
    return f, tau


def derivative(f, a, l):
    """Central differences of fourth order of f(a) in a_l, or in entry l of a vector."""
    step = np.zeros(a.shape)
    step[..., l] = STEP
    return (8 * (f(a + step) - f(a - step)) - (f(a + 2 * step) - f(a - 2 * step))) / (12 * STEP)


def close(found, expected, tolerance):
    assert np.all(np.abs(found - expected) <= tolerance * (1 + np.abs(expected).max())), np.abs(found - expected).max()


@pytest.mark.parametrize(("case", "column"), EACH)
def test_values_are_those_written_out(case, column):
    axis, a, x, prepared = rows(case, column)
    expected = [case.value(axis, a[n], x[n]) for n in range(len(x))]
    np.testing.assert_allclose(case.loss.at(axis, a, prepared, False).value, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("case", "column"), EACH)
def test_slope_and_curvature_are_derivatives(case, column):
    """With a log link, curvature is that of exp ℓ, over exp ℓ."""
    axis, a, _, prepared = rows(case, column)
    point = case.loss.at(axis, a, prepared, True)
    log = case.loss.link == "log_mean"

    def value(a):
        return case.loss.at(axis, a, prepared, False).value

    def slope(a):
        at = case.loss.at(axis, a, prepared, False)
        return at.slope * np.exp(at.value - point.value)[:, None] if log else at.slope

    l, m = packed_pairs(a.shape[1])
    for k in range(a.shape[1]):
        close(point.slope[:, k], derivative(value, a, k), 1e-8)
        close(point.curvature[:, l == k], derivative(slope, a, k)[:, m[l == k]], 1e-9)


@pytest.mark.parametrize(("case", "column"), EACH)
def test_rows_are_independent_and_curvature_is_optional(case, column):
    axis, a, x, prepared = rows(case, column)
    whole, first = case.loss.at(axis, a, prepared, True), case.loss.at(axis, a, prepared, False)
    assert first.curvature is None
    part = case.loss.at(axis, a[3:9], case.loss.prepare(axis, x[3:9], axis.functions(x[3:9])), True)
    for name in ("value", "slope", "magnitude"):
        np.testing.assert_allclose(getattr(first, name), getattr(whole, name), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(getattr(part, name), getattr(whole, name)[3:9], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(part.curvature, whole.curvature[3:9], rtol=1e-9, atol=1e-11)
    assert np.all(whole.magnitude >= 0)
    assert whole.unresolved == part.unresolved == 0


@pytest.mark.parametrize("basis", ["all", "without lower terms", "tied"])
@pytest.mark.parametrize(("case", "column"), EACH)
def test_gradient_and_Hessian_of_the_objective_are_derivatives(case, column, basis):
    f, tau = objective(case, column, basis)
    at = f(tau)
    for k in range(len(tau)):
        close(at.gradient[k], derivative(lambda t: f(t, 0).value, tau, k), 1e-8)
        close(at.hessian[:, k], derivative(lambda t: f(t, 1).gradient, tau, k), 1e-8)
    assert at.value == pytest.approx(f(tau, 0).value, rel=1e-14)
    np.testing.assert_allclose(at.gradient, f(tau, 1).gradient, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(at.hessian, at.hessian.T, atol=1e-13)
    assert at.nodes.sum() == pytest.approx(at.value, rel=1e-14)


@pytest.mark.parametrize(("case", "column"), EACH)
def test_scores_are_the_rows_of_the_gradient(case, column):
    """Their weighted mean is the gradient; with a log link, of (w/w̄)(g − ḡ), zero."""
    f, tau = objective(case, column, block=40)
    S, weight = f.scores(tau, lambda block, S: [S]), np.concatenate([block.weight for block in f.samples.blocks()])
    S = np.concatenate(S, axis=1)
    expected = f(tau, 1).gradient if case.loss.link == "mean" else np.zeros(len(tau))
    np.testing.assert_allclose(S @ weight / f.n, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("case", "column"), EACH)
def test_sums_do_not_depend_on_blocks_or_threads(case, column):
    f, tau = objective(case, column)
    one = f(tau)
    for block in (1, 7, 64):
        other = objective(case, column, block=block)[0](tau)
        np.testing.assert_allclose(other.value, one.value, rtol=1e-13)
        np.testing.assert_allclose(other.gradient, one.gradient, atol=1e-13)
        np.testing.assert_allclose(other.hessian, one.hessian, rtol=1e-11, atol=1e-13)
    f = objective(case, column, block=16)[0]
    alone = f(tau)
    for n_jobs in (2, 5):
        f = objective(case, column, block=16)[0]
        f.n_jobs = n_jobs
        threads = f(tau)
        assert threads.value == alone.value
        np.testing.assert_array_equal(threads.gradient, alone.gradient)
        np.testing.assert_array_equal(threads.hessian, alone.hessian)


@pytest.mark.parametrize("case", LOSSES.values(), ids=LOSSES)
def test_rows_that_were_seen_often_are_rows_given_often(case):
    f, tau = objective(case, case.axes[0])
    weight = f.samples.weight.astype(int)
    repeated = f.on(as_samples(np.repeat(f.samples.X, weight, axis=0)))
    one, other = f(tau), repeated(tau)
    assert f.n == repeated.n == repeated.samples.n_rows
    np.testing.assert_allclose(one.value, other.value, rtol=1e-13)
    np.testing.assert_allclose(one.gradient, other.gradient, atol=1e-13)
    np.testing.assert_allclose(one.hessian, other.hessian, rtol=1e-11, atol=1e-13)
