import numpy as np
import pytest
from cases import BASES, EVERYWHERE, LOSSES, NAMESPACES, OTHERS, PAIRS, parameters_of, samples_of, screening
from scipy.special import gamma, logsumexp

from isodus import objective as module
from isodus.objective import Objective
from isodus.samples import ArraySamples


def objective_of(basis, loss, X, weight=None, rows=None, asarray=np.asarray):
    p = basis.n_variables
    weight = None if weight is None else asarray(weight)
    objective = Objective(basis, loss, ArraySamples(asarray(X), weight, np.zeros(p), np.ones(p)))
    if rows:
        objective.block_rows = lambda locals_, hessian=False: rows
    return objective


def written_out(basis, i, theta, X, nu, delta):
    """log of the paper's objective at node i, from the paper's formula, term by term; X has shape (n, p)."""
    e = basis.degree + delta
    c = lambda l: 0.0 if l % 2 else nu ** (-l / e) * gamma((l + 1) / e) / gamma(1 / e)
    exponent = -nu * np.abs(X[:, i]) ** e
    for k, t in zip(basis.local(i).terms, theta, strict=True):
        term = basis.terms[k]
        rest = np.prod([X[:, v] for v in term if v != i], axis=0)
        exponent += t * (X[:, i] ** term.count(i) - c(term.count(i))) * rest
    return logsumexp(exponent) - np.log(len(X))


@pytest.mark.parametrize("name", BASES)
def test_value_is_the_formula_of_the_paper(name):
    basis = BASES[name]
    X, thetas, nodes = samples_of(basis), parameters_of(basis), range(basis.n_variables)
    loss = screening(basis, nu=0.7)
    for i, got in enumerate(objective_of(basis, loss, X).evaluate(nodes, thetas)):
        expected = written_out(basis, i, thetas[i], X, loss.nu[i], 2.0)
        assert got.value == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("name", "loss"), PAIRS)
def test_gradient_and_hessian_against_finite_differences(name, loss):
    basis = EVERYWHERE[name]
    thetas, nodes = parameters_of(basis), list(range(basis.n_variables))
    weight = np.random.default_rng(5).integers(0, 4, 300).astype(float)
    objective = objective_of(basis, LOSSES[loss](basis), samples_of(basis), weight)
    plain = objective.loss.link == "plain"
    here = objective.evaluate(nodes, thetas)
    h = 1e-5
    for i in nodes:
        for k in range(len(thetas[i])):
            step = h * np.eye(len(thetas[i]))[k]
            (up,) = objective.evaluate([i], [thetas[i] + step])
            (down,) = objective.evaluate([i], [thetas[i] - step])
            g = here[i].gradient
            assert g[k] == pytest.approx((up.value - down.value) / (2 * h), rel=1e-6, abs=1e-8)
            row = (up.gradient - down.gradient) / (2 * h)
            if plain:  # ∇²f/f = ∇²log f + ggᵀ
                row = row + g[k] * g
            assert np.allclose(here[i].hessian[k], row, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("where", [*OTHERS, "all nodes in one product"])
@pytest.mark.parametrize(("name", "loss"), PAIRS)
def test_every_library_gives_what_numpy_gives(name, loss, where, monkeypatch):
    basis, loss = EVERYWHERE[name], LOSSES[loss](EVERYWHERE[name])
    X, thetas, nodes = samples_of(basis), parameters_of(basis), range(basis.n_variables)
    weight = np.random.default_rng(5).random(300)
    expected = objective_of(basis, loss, X, weight).evaluate(nodes, thetas)
    if where in OTHERS:
        other = objective_of(basis, loss, X, weight, rows=77, asarray=NAMESPACES[where])
    else:  # as on an accelerator
        other = objective_of(basis, loss, X, weight, rows=77)
        monkeypatch.setattr(module, "on_accelerator", lambda x: True)
    for a, b in zip(expected, other.evaluate(nodes, thetas), strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-12)
        assert np.allclose(a.gradient, b.gradient, rtol=1e-10, atol=1e-12)
        assert np.allclose(a.hessian, b.hessian, rtol=1e-10, atol=1e-12)
        assert a.ess == pytest.approx(b.ess, rel=1e-10)


@pytest.mark.parametrize("rows", [1, 7, 64, 299])
def test_blocks_do_not_matter(rows):
    basis = BASES["all four-body terms"]
    X, thetas, nodes = samples_of(basis), parameters_of(basis), range(4)
    X[13] *= 4  # one block with a shift far from the others'
    whole = objective_of(basis, screening(basis), X, rows=300).evaluate(nodes, thetas)
    blocked = objective_of(basis, screening(basis), X, rows=rows).evaluate(nodes, thetas)
    for a, b in zip(whole, blocked, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-12)
        assert np.allclose(a.gradient, b.gradient, rtol=1e-11, atol=1e-13)
        assert np.allclose(a.hessian, b.hessian, rtol=1e-11, atol=1e-13)


def test_weights_count_repetitions():
    basis = BASES["quartic pairs"]
    X, thetas = samples_of(basis), parameters_of(basis)
    counts = np.random.default_rng(5).integers(0, 4, len(X))
    weighted = objective_of(basis, screening(basis), X, counts.astype(float)).evaluate(range(3), thetas)
    repeated = objective_of(basis, screening(basis), np.repeat(X, counts, axis=0)).evaluate(range(3), thetas)
    for a, b in zip(weighted, repeated, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-12)
        assert np.allclose(a.hessian, b.hessian, rtol=1e-11, atol=1e-13)
        assert a.ess == pytest.approx(b.ess, rel=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6, 1e20])
def test_sums_never_overflow(size):
    basis = BASES["quartic pairs"]
    X = samples_of(basis) * 30
    for got in objective_of(basis, screening(basis, nu=1e-9), X, rows=50).evaluate(
        range(3), parameters_of(basis, size=size)
    ):
        assert np.isfinite(got.value)
        assert np.all(np.isfinite(got.gradient))
        assert np.all(np.isfinite(got.hessian))


@pytest.mark.parametrize(("name", "loss"), PAIRS)
def test_the_gradient_alone_is_the_same(name, loss):
    basis = EVERYWHERE[name]
    weight = np.random.default_rng(5).random(300)
    objective = objective_of(basis, LOSSES[loss](basis), samples_of(basis), weight)
    nodes, thetas = range(basis.n_variables), parameters_of(basis)
    for a, b in zip(objective.evaluate(nodes, thetas), objective.evaluate(nodes, thetas, False), strict=True):
        assert b.hessian is None
        # fewer moments ask less of a quadrature
        rel = 1e-9 if objective.loss.link == "mean" else 1e-12
        assert (a.value, a.ess) == pytest.approx((b.value, b.ess), rel=rel)
        assert np.allclose(a.gradient, b.gradient, rtol=10 * rel, atol=rel)
