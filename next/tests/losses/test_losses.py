"""What every loss keeps, for each row of LOSSES: ℓ, its derivatives, and those of the objective made of it."""

import numpy as np
import pytest
from cases import LOSSES

from isodus.contracts import check_loss
from isodus.data import as_samples
from isodus.fit.objective import Objective
from isodus.losses import NodeRows, PseudoLikelihoodLoss
from isodus.terms import Terms, keys_up_to

EACH = [pytest.param(case, column, id=f"{name}-{column}") for name, case in LOSSES.items() for column in case.axes]
STEP = 1e-4


def rows(case, column, n=30):
    """Axis, a, (n, J), x, a pilot's a, and what the loss has prepared for some rows."""
    axis, x = case.on(column)
    a = np.random.default_rng(3).normal(0.0, 0.4, (n, len(axis.degrees)))
    a[:, -1] = np.abs(a[:, -1]) + 0.2  # also for a whole line
    x, pilot = x[:n], 0.7 * a[::-1]
    return axis, a, x, pilot, case.loss.prepare(NodeRows(0, axis, x, axis.functions(x), pilot))


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
    return f.tilted(0.8 * tau), tau


def derivative(f, a, l):
    """Central differences of fourth order of f(a) in a_l, or in entry l of a vector."""
    step = np.zeros(a.shape)
    step[..., l] = STEP
    return (8 * (f(a + step) - f(a - step)) - (f(a + 2 * step) - f(a - 2 * step))) / (12 * STEP)


def close(found, expected, tolerance):
    assert np.all(np.abs(found - expected) <= tolerance * (1 + np.abs(expected).max())), np.abs(found - expected).max()


@pytest.mark.parametrize(("case", "column"), EACH)
def test_values_are_those_written_out(case, column):
    axis, a, x, pilot, prepared = rows(case, column)
    expected = [case.value(axis, a[n], x[n], pilot[n]) for n in range(len(x))]
    np.testing.assert_allclose(case.loss.at(axis, a, prepared, False).value, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("case", "column"), EACH)
def test_the_contract(case, column):
    axis, a, x, *_ = rows(case, column)
    check_loss(case.loss, axis, x, a=a)
    check_loss(case.loss, axis, x)


class Wrong(PseudoLikelihoodLoss):
    """Its slope has the wrong sign in one place."""

    def at(self, axis, a, prepared, second):
        point = super().at(axis, a, prepared, second)
        point.slope[3, 1] *= -1
        return point


def test_a_wrong_slope_is_found():
    axis, x = LOSSES["pseudo-likelihood"].on("line")
    with pytest.raises(AssertionError, match="(slope|curvature) is off by"):
        check_loss(Wrong(), axis, x[:40])


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
