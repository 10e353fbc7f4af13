"""Formulas against brute force; tests of fit against how often they are right about known models."""

from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from cases import PAIR, WELLS, drawn
from scipy.integrate import quad
from scipy.stats import kstest, norm

from isodus import MonomialBasis, PolynomialModel, univariate
from isodus.datasets import double_wells
from isodus.energy import cofactor_matrix, gradient
from isodus.goodness import goodness_of_fit, moment_table, plot_residuals, residual_test, residuals, stein_test, unlike
from isodus.goodness.residual import _edges, drift
from isodus.goodness.rows import by_power, evenly, neighbours, signs
from isodus.goodness.stein import Kernel, _signed, _sums
from isodus.progress import Progress
from isodus.sampling import Draws

GAUSSIAN = PolynomialModel(MonomialBasis(2, 2), [0.0, 0.0, 0.5, 0.3, 0.5])
CHAIN = PolynomialModel.from_dict(
    {(0, 0): 0.5, (1, 1): 0.5, (2, 2): 0.5, (0, 1): 0.4, (1, 2): -0.3, (0, 0, 0, 0): 0.2, (1, 1, 2, 2): 0.3}
)
OWN = {(0, 0): 0.5, (1, 1): 0.5, (0, 0, 0, 0): 0.5, (1, 1, 1, 1): 0.5, (0, 1): 0.3}
ALONE = PolynomialModel.from_dict(OWN)


def coupled(strength):
    return PolynomialModel.from_dict(OWN | {(0, 0, 1, 1): strength})


def gaussian_fit(X):
    """The Gaussian with the mean and covariance of X, and the influence of every row, both in closed form."""
    mean, S = X.mean(axis=0), np.cov(X.T, bias=True)
    L = np.linalg.inv(S)
    theta = np.array([*(-L @ mean), L[0, 0] / 2, L[0, 1], L[1, 1] / 2])
    Y = X - mean
    dL = -np.einsum("ab,nb,nc,cd->nad", L, Y, Y, L) + L
    linear = -dL @ mean - Y @ L
    psi = np.column_stack([linear, dL[:, 0, 0] / 2, dL[:, 0, 1], dL[:, 1, 1] / 2])
    return PolynomialModel(MonomialBasis(2, 2), theta), psi


def pseudo_likelihood(basis, theta, X):
    """Σ_i −log P(x_i | rest): its mean, its slopes at every row, (n, M), and the mean Hessian."""
    Y, n, s = np.ascontiguousarray(X.T), len(X), basis.degree
    H = cofactor_matrix(basis, Y)
    value, S, A = 0.0, np.zeros((len(basis), n)), np.zeros((len(basis), len(basis)))
    for i, y in enumerate(Y):
        a = np.zeros((s, n))
        groups = by_power(basis, i)
        for l, terms, cofactors in groups:
            a[l - 1] = theta[terms] @ H[cofactors]
        found = univariate.integrate(a, moments=2 * s)
        m = np.vstack([np.ones(n), found.moments])
        value += np.mean(found.log_z + sum(a[l - 1] * y**l for l in range(1, s + 1)))
        for l, terms, cofactors in groups:
            S[terms] += H[cofactors] * (y**l - m[l])
            for k, others, its in groups:
                A[np.ix_(terms, others)] += (H[cofactors] * (m[l + k] - m[l] * m[k])) @ H[its].T / n
    return value, S.T, A


def pseudo_likelihood_fit(start, X):
    """Its optimum by Newton steps, halved where they are too long, and the influence of every row."""
    theta = start.theta.copy()
    value, S, A = pseudo_likelihood(start.basis, theta, X)
    for _ in range(30):
        step = -np.linalg.solve(A, S.mean(axis=0))
        found = pseudo_likelihood(start.basis, theta + step, X)
        while not found[0] < value + 1e-8:  # what integrals are exact to
            step /= 2
            found = pseudo_likelihood(start.basis, theta + step, X)
        theta, (value, S, A) = theta + step, found
        if np.abs(step).max() < 1e-6:
            break
    assert np.abs(S.mean(axis=0)).max() < 1e-6
    return PolynomialModel(start.basis, theta), -np.linalg.solve(A, S.T).T


def sets(model, repetitions, n):
    return np.asarray(model.sample(repetitions * n, rng=0)).reshape(repetitions, n, -1)


def is_size(p_values, level, errors=4.0):
    """Whether the share of p-values below the level is the level, within so many binomial standard errors."""
    p_values = np.ravel(p_values)
    return abs(np.mean(p_values <= level) - level) <= errors * np.sqrt(level * (1 - level) / len(p_values))


# residuals


@pytest.mark.parametrize("model", [PAIR, WELLS, CHAIN])
def test_residuals_are_integrals_of_the_conditional_density(model):
    X = np.asarray(drawn(model, 4))
    U = residuals(model, X)
    for j, row in enumerate(X):
        for i in range(X.shape[1]):

            def density(x, row=row, i=i):
                at = row.copy()
                at[i] = x
                return np.exp(model.energy(row[None])[0] - model.energy(at[None])[0])

            options = dict(limit=200, epsabs=0, epsrel=1e-9)
            low, high = (quad(density, *ends, **options)[0] for ends in ((-8, row[i]), (row[i], 8)))
            assert U[j, i] == pytest.approx(low / (low + high), abs=1e-7)


def test_residuals_do_not_depend_on_units_or_on_the_order_of_columns():
    X = np.asarray(drawn(PAIR, 50))
    basis = MonomialBasis(2, 4)
    theta = np.zeros(len(basis))
    theta[basis.positions(basis.padded(PAIR.basis.factors))] = PAIR.theta
    moved = PolynomialModel(basis, theta, [5.0, -300.0], [2.0, 40.0], ["a", "b"])
    frame = pd.DataFrame(X * [2.0, 40.0] + [5.0, -300.0], columns=["a", "b"])
    assert np.allclose(residuals(moved, frame[["b", "a"]]), residuals(PAIR, X), atol=1e-9)


@pytest.mark.parametrize("model", [PAIR, WELLS, CHAIN])
def test_drift_is_what_a_change_of_theta_does_to_residuals(model):
    """D(u) is the derivative by θ̂ of the mean of F(q_u(θ̂) | rest; θ), the share of residuals up to u."""
    Y, eps, u = np.asarray(drawn(model, 60)), 1e-4, _edges(64)[1:-1]
    H = cofactor_matrix(model.basis, np.ascontiguousarray(Y.T))
    for i in range(Y.shape[1]):
        groups = by_power(model.basis, i)
        a = np.zeros((model.basis.degree, len(Y)))
        for l, terms, cofactors in groups:
            a[l - 1] = model.theta[terms] @ H[cofactors]
        D, k = drift(model, i, Y), 0
        for l, _, cofactors in groups:
            for c in H[cofactors]:
                step = np.zeros_like(a)
                step[l - 1] = eps * c
                for g in (3, 20, 31, 60):
                    at = np.full(len(Y), u[g])
                    up, down = (univariate.cdf(a, univariate.quantile(a + sign * step, at)) for sign in (1, -1))
                    size = np.abs(D[k]).max()
                    assert D[k, g] == pytest.approx(np.mean(up - down) / (2 * eps), abs=0.01 * size + 1e-6)
                k += 1
        assert k == len(D)


def test_neighbours_are_the_weights_of_newey_and_west():
    W = np.random.default_rng(0).standard_normal((30, 2))
    for lags in (0, 1, 4):
        weights = np.maximum(1 - np.abs(np.subtract.outer(np.arange(30), np.arange(30))) / (lags + 1), 0)
        smooth = neighbours(W, lags)
        assert np.allclose(smooth.T @ smooth, W.T @ weights @ W)
    g = signs(np.random.default_rng(0), 20_000, 8, 3)
    expected = np.maximum(1 - np.abs(np.subtract.outer(np.arange(8), np.arange(8))) / 4, 0)
    assert np.abs(g.T @ g / len(g) - expected).max() < 0.04


def test_size_of_the_residual_test_of_a_given_model():
    rows = sets(CHAIN, 400, 60)
    found = [residual_test(CHAIN, X) for X in rows]
    p = np.array([table["p_value"] for table in found])
    assert all(kstest(column, "uniform").pvalue > 1e-3 for column in p.T)
    assert is_size(p[:, 0], 0.05)
    over = np.array([table["statistic"] > table["critical"] for table in found])
    assert np.array_equal(over, p < 0.05)
    # the least q-value is Simes' test of all variables
    assert np.mean([table["q_value"].min() <= 0.1 for table in found]) < 0.1 + 4 * np.sqrt(0.09 / 400)
    one = residuals(CHAIN, rows[0])[:, 1]
    assert found[0].loc["x1", "p_value"] == pytest.approx(kstest(one, "uniform").pvalue)


def test_size_of_both_tests_of_a_learned_gaussian():
    """Two unknown means and three second moments, 120 samples; without the influence hardly anything is rejected."""
    with_it, without, stein, few = [], [], [], []
    for r, X in enumerate(sets(GAUSSIAN, 120, 120)):
        model, psi = gaussian_fit(X)
        with_it.append(residual_test(model, X, influence=psi, n_bootstrap=400, rng=r)["p_value"])
        without.append(residual_test(model, X)["p_value"])
        stein.append(stein_test(model, X, influence=psi, n_bootstrap=200, rng=r).p_value)
        few.append(stein_test(model, X, influence=psi, n_bootstrap=200, max_samples=50, rng=r).p_value)
    for i in range(2):
        assert is_size(np.array(with_it)[:, i], 0.05)
        assert is_size(np.array(with_it)[:, i], 0.3)
        assert np.mean(np.array(without)[:, i] <= 0.3) < 0.05
    for p in (stein, few):
        assert is_size(p, 0.05)
        assert is_size(p, 0.3)


def test_size_of_both_tests_of_a_learned_quartic():
    """All terms of degree 2 to 4 of the paper's pair by pseudo-likelihood, 400 samples, 40 repetitions."""
    fits = [(*pseudo_likelihood_fit(PAIR, X), X) for X in sets(PAIR, 40, 400)]
    options = dict(n_bootstrap=300, rng=0)
    p = np.array([residual_test(model, X, influence=psi, **options)["p_value"] for model, psi, X in fits])
    assert is_size(p[:, 0], 0.1)
    assert is_size(p[:, 1], 0.1)
    assert is_size([stein_test(model, X, influence=psi, **options).p_value for model, psi, X in fits], 0.1)


# Stein


def explicit_kernels(kernel, x, other, some):
    """k_a(x, x') of every variable, from the definition in y; x, other: (p,); some: (p, r), the reference rows."""
    p = len(x)

    def imq(i, v, w):
        return 1 / np.sqrt(1 + ((v - w) / kernel.c[i]) ** 2)

    def centred(i, v, w):
        mean = imq(i, v, some[i]).mean() + imq(i, some[i], w).mean()
        return (imq(i, v, w) - mean + imq(i, some[i][:, None], some[i]).mean()) / kernel.spread[i]

    values = []
    for a in range(p):
        rest = [centred(b, x[b], other[b]) for b in range(p) if b != a]
        pairs = [rest[i] * rest[j] for i in range(len(rest)) for j in range(i)]
        w = 0.5 + sum(rest) / max(np.sqrt(len(rest)), 1) + 0.5 * sum(pairs) / max(np.sqrt(len(pairs)), 1)
        values.append(kernel.omega[a] * imq(a, x[a], other[a]) * w * kernel.c[a] ** 2)  # score and slope are by y/c
    return np.array(values)


def explicit_stein(kernel, x, other, s, s_other, some, eps=1e-4):
    """h by finite differences of the kernels; s: scores by y."""
    h = 0.0
    for a in range(len(x)):
        e = np.eye(len(x))[a] * eps
        k = lambda u, v, a=a: explicit_kernels(kernel, u, v, some)[a]
        h += s[a] * s_other[a] * k(x, other)
        h += s[a] * (k(x, other + e) - k(x, other - e)) / (2 * eps)
        h += s_other[a] * (k(x + e, other) - k(x - e, other)) / (2 * eps)
        corners = k(x + e, other + e) - k(x + e, other - e) - k(x - e, other + e) + k(x - e, other - e)
        h += corners / (4 * eps**2)
    return h


def stein_matrix(kernel):
    everything = slice(0, kernel.z.shape[1])
    return sum(kernel.stein(a, everything, w, kappa, D) for a, w, kappa, D in kernel.pieces(everything))


@pytest.mark.parametrize("model", [PolynomialModel.from_dict({(0, 0): -1.0, (0, 0, 0, 0): 0.5}), PAIR, CHAIN])
def test_stein_kernel_is_made_of_slopes_of_the_kernel(model):
    Y = np.ascontiguousarray(np.asarray(drawn(model, 300)).T)
    kernel, some = Kernel.of(model, Y), Y[:, evenly(300, 256)]
    h, s = stein_matrix(kernel), -gradient(model.basis, model.theta, Y)
    assert np.allclose(h, h.T)
    for i, j in ((0, 1), (5, 5), (17, 240)):
        assert h[i, j] == pytest.approx(explicit_stein(kernel, Y[:, i], Y[:, j], s[:, i], s[:, j], some), abs=2e-6)
    assert np.trace(h) / 300 == pytest.approx(1.0)
    assert np.linalg.eigvalsh(h)[0] > -1e-10 * np.linalg.norm(h)


def test_stein_features_vanish_under_the_model():
    """∫ (s_a k_a + ∂_a k_a) μ dx = 0 for any x', and not for another model's score."""
    Y = np.ascontiguousarray(np.asarray(drawn(PAIR, 60)).T)
    kernel, grid, eps = Kernel.of(PAIR, Y), np.linspace(-2.5, 2.5, 41), 1e-4
    points = np.stack(np.meshgrid(grid, grid, indexing="ij")).reshape(2, -1)
    density = np.exp(PAIR.logpdf(points.T)) * (grid[1] - grid[0]) ** 2
    density, points = density[density > 1e-9], points[:, density > 1e-9]
    other = Y[:, 7]
    k = np.array([explicit_kernels(kernel, x, other, Y) for x in points.T])
    up, down = (
        np.array([[explicit_kernels(kernel, x + e, other, Y)[a] for a, e in enumerate(d)] for x in points.T])
        for d in (eps * np.eye(2), -eps * np.eye(2))
    )
    slope = (up - down) / (2 * eps)
    for model, vanishes in ((PAIR, True), (coupled(0.5), False)):
        s = -gradient(model.basis, model.theta, points).T
        assert (np.abs(density @ (s * k + slope)).max() < 1e-5) == vanishes


def test_what_a_change_of_theta_does_to_the_stein_features():
    """With means over other rows ⟨ξ_i, ⟨ξ_j(θ + δ)⟩⟩ = ⟨h_ij⟩ + d_iᵀδ and ⟨h⟩(θ + δ) = ⟨h⟩ + 2⟨d⟩ᵀδ + δᵀQδ, exactly."""
    Y = np.ascontiguousarray(np.asarray(drawn(CHAIN, 40)).T)
    kernel, basis = Kernel.of(CHAIN, Y), CHAIN.basis
    delta = np.random.default_rng(0).standard_normal(len(basis))
    moved = replace(kernel, s=-kernel.c[:, None] * gradient(basis, CHAIN.theta + delta, Y))
    with Progress(False) as bar:
        found = _sums(kernel, kernel.slopes(basis), len(basis), np.ones((1, 40)), bar)
    h, others = stein_matrix(kernel), ~np.eye(40, dtype=bool)
    assert found.drawn[0] == pytest.approx(h.sum() / 40)
    assert found.parts.mean() == pytest.approx(h.sum() / 40)
    change = 2 * found.d.mean(axis=0) @ delta + delta @ found.Q @ delta
    assert stein_matrix(moved)[others].mean() == pytest.approx(h[others].mean() + change)
    s, shifted = (-gradient(basis, theta, Y) for theta in (CHAIN.theta, CHAIN.theta + delta))
    for i in (3, 21):
        explicit = [explicit_stein(kernel, Y[:, i], Y[:, j], s[:, i], shifted[:, j], Y) for j in range(40) if j != i]
        assert np.mean(explicit) == pytest.approx(h[i, others[i]].mean() + found.d[i] @ delta, abs=1e-5)


def test_bootstrap_of_a_learned_model_is_that_of_the_corrected_kernel():
    """With all rows in use it is gᵀh̃g/n, h̃_ij = h_ij + d_iᵀψ_j + d_jᵀψ_i + ψ_iᵀQψ_j."""
    X = sets(GAUSSIAN, 1, 60)[0]
    model, psi = gaussian_fit(X)
    kernel = Kernel.of(model, np.ascontiguousarray(X.T))
    G, _ = _signed(psi, np.arange(60), 2, 500, np.random.default_rng(5))
    with Progress(False) as bar:
        found = _sums(kernel, kernel.slopes(model.basis), 5, G, bar)
    cross = found.d @ psi.T
    corrected = stein_matrix(kernel) + cross + cross.T + psi @ found.Q @ psi.T
    drawn = np.einsum("bi,ij,bj->b", G, corrected, G) / 60
    test = stein_test(model, X, influence=psi, dependence=2, n_bootstrap=500, rng=5)
    assert test.p_value == pytest.approx((1 + np.sum(drawn >= test.statistic)) / 501)
    assert np.mean(drawn) < 0.8  # what the fit has taken


def test_size_of_the_stein_test_of_a_given_model():
    found = [stein_test(CHAIN, X, n_bootstrap=200, rng=r) for r, X in enumerate(sets(CHAIN, 300, 80))]
    p = [test.p_value for test in found]
    assert is_size(p, 0.05)
    assert is_size(p, 0.5)
    assert np.mean([test.statistic for test in found]) == pytest.approx(1.0, abs=0.05)
    assert found[0].by_variable.mean() == pytest.approx(found[0].statistic)


def test_stein_test_finds_a_quartic_coupling_that_the_model_lacks():
    """2 x0²x1² beside quartic self terms of 0.5, left out of a model whose other terms are fitted; n = 1,000."""
    found, given = [], []
    for r, X in enumerate(sets(coupled(2.0), 16, 1000)):
        model, psi = pseudo_likelihood_fit(ALONE, X)
        found.append(stein_test(model, X, influence=psi, n_bootstrap=200, rng=r).p_value)
        given.append(stein_test(model, X, n_bootstrap=200, rng=r).p_value)
    assert np.mean(np.array(found) < 0.05) >= 0.9
    assert np.mean(found) < np.mean(given)  # to know of the fit makes it stronger


def test_residuals_find_a_double_well_in_a_gaussian():
    """E = −x² + x⁴/2, and the Gaussian with its mean and variance; n = 300."""
    wells = PolynomialModel.from_dict({(0, 0): -1.0, (0, 0, 0, 0): 0.5, (1, 1): 0.5})
    found = []
    for r, X in enumerate(sets(wells, 20, 300)):
        model, psi = gaussian_fit(X)
        found.append(residual_test(model, X, influence=psi, n_bootstrap=500, rng=r)["p_value"])
    found = np.array(found) < 0.05
    assert found[:, 0].mean() > 0.9
    assert found[:, 1].mean() < 0.3


def test_rows_that_depend_on_one_another():
    """An autoregressive series with correlation 0.7 from row to row, n = 300, under its own distribution."""
    rng, plain, series = np.random.default_rng(1), [], []
    model = PolynomialModel.from_dict({(0, 0): 0.5, (1, 1): 0.5})
    for r in range(60):
        X = rng.standard_normal((300, 2))
        for t in range(1, 300):
            X[t] = 0.7 * X[t - 1] + np.sqrt(1 - 0.49) * X[t]
        for found, dependence in ((plain, None), (series, 12)):
            options = dict(dependence=dependence, n_bootstrap=200, rng=r)
            stein = stein_test(model, X, **options).p_value
            thinned = stein_test(model, X, max_samples=100, **options).p_value
            found.append((stein, thinned, *residual_test(model, X, **options)["p_value"]))
    plain, series = np.array(plain), np.array(series)
    assert np.all((plain < 0.05).mean(axis=0)[[0, 2, 3]] > 0.3)
    assert np.all((series < 0.05).mean(axis=0) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 60))
    assert np.all((series < 0.5).mean(axis=0) > 0.2)


# moments


def test_moments_of_a_given_gaussian():
    rows = sets(GAUSSIAN, 100, 200)
    tables = [moment_table(GAUSSIAN, X, rng=r) for r, X in enumerate(rows)]
    z = np.array([table["z"] for table in tables])
    assert list(tables[0].index) == ["x0", "x1", "x0^2", "x0*x1", "x1^2"]
    assert np.abs(np.mean(z**2, axis=0) - 1).max() < 4 * np.sqrt(2 / 100) + 0.1
    S = np.linalg.inv(GAUSSIAN.precision())
    table = tables[0]
    assert np.all(np.abs(table["model"] - [0, 0, S[0, 0], S[0, 1], S[1, 1]]) < 5 * table["model_stderr"])
    assert table["stderr"].iloc[2] == pytest.approx(np.sqrt(2 * S[0, 0] ** 2 / 200), rel=0.3)
    X = rows[0]
    assert np.allclose(table["observed"], [*X.mean(axis=0), *np.mean([X[:, 0] ** 2, X.prod(axis=1), X[:, 1] ** 2], 1)])


def test_moments_that_were_fitted_have_no_error_left():
    X = sets(GAUSSIAN, 1, 400)[0]
    model, psi = gaussian_fit(X)
    given, learned = moment_table(model, X), moment_table(model, X, influence=psi, n_draws=50_000)
    assert np.all(learned["stderr"] < 0.05 * given["stderr"])
    assert np.all(np.abs(learned["z"]) < 4)


def test_errors_of_moments_know_of_chains(monkeypatch):
    X = sets(GAUSSIAN, 1, 50)[0]
    exact, sample = moment_table(GAUSSIAN, X), PolynomialModel.sample

    def by_chains(self, n, **options):
        draws = sample(self, n, **options)
        fewer = replace(draws.info, ess=np.array([n, n / 4]), tail_ess=np.array([n / 9, n]), trustworthy=False)
        return Draws(np.asarray(draws), fewer)

    monkeypatch.setattr(PolynomialModel, "sample", by_chains)
    ratio = moment_table(GAUSSIAN, X)["model_stderr"] / exact["model_stderr"]
    assert np.allclose(ratio, [3, 2, 3, 3, 2])
    assert "not mixed" in goodness_of_fit(GAUSSIAN, X, n_bootstrap=50).note


# all of it


def test_verdicts():
    X = np.asarray(drawn(PAIR, 600))
    fine = goodness_of_fit(PAIR, X)
    assert fine.verdict.startswith("no misfit found (Stein p = ")
    assert (fine.misfits, fine.note, fine.values.shape) == ([], "", (600, 2))
    assert "Residuals" in repr(fine)
    assert "Moments" in repr(fine)
    assert "600 rows" in repr(fine.stein)

    names = ["a", "b"]
    wrong = PolynomialModel.from_dict({(0, 0): 0.2, (1, 1): 1.0 / (2 * X[:, 1].var()), (1,): 0.0}, names=names)
    bad = goodness_of_fit(wrong, pd.DataFrame(X, columns=names), max_samples=200)
    assert bad.verdict.startswith("misfit: residuals of a")
    assert "200 of 600 rows" in repr(bad.stein)

    score = replace(fine, stein=replace(fine.stein, p_value=0.001))
    worst = fine.stein.by_variable.idxmax()
    assert score.verdict.startswith(
        f"misfit: the Stein test of all variables together, most at {worst} (Stein p = 0.001"
    )


def test_mass_far_from_the_samples_is_a_misfit():
    """Two variables that share their well, samples of the shallow one: given one of them the other is as it should."""
    own = {(i,) * d: c for i in range(2) for d, c in ((1, 0.6), (2, -4.0), (4, 1.0))}
    model = PolynomialModel.from_dict(own | {(0, 1): -6.0}, names=["a", "b"])
    X = np.asarray(model.sample(20_000, rng=0))
    X = X[X.min(axis=1) > 0]
    assert 100 < len(X) < 1000
    result = goodness_of_fit(model, X)
    assert result.misfits == []
    assert result.stein.p_value > 0.05
    assert result.beyond == ["a", "b"]
    assert result.verdict.startswith("misfit: the mass of the model is beyond all samples in a, b (Stein p = ")


def test_a_model_whose_mass_is_elsewhere_by_its_energy_is_not_drawn_from(monkeypatch):
    model = PolynomialModel.from_dict({(0, 0): 0.5, (0, 0, 0): -0.1, (0, 0, 0, 0): 0.003}, names=["a"])
    assert model.energy([[20.0]])[0] < -100
    monkeypatch.setattr(PolynomialModel, "sample", lambda *_, **__: pytest.fail("drawn from"))
    result = goodness_of_fit(model, np.random.default_rng(0).standard_normal((300, 1)))
    assert result.beyond == ["a"]
    assert result.moments is None
    assert result.note.startswith("no moments: the energy is far lower away from the samples")


def test_the_verdict_has_its_level():
    """Both tests together: at most 10 % of true models are called misfits."""
    verdicts = [
        goodness_of_fit(GAUSSIAN, X, level=0.1, n_bootstrap=200, n_draws=100, rng=r).verdict
        for r, X in enumerate(sets(GAUSSIAN, 200, 50))
    ]
    share = np.mean([verdict.startswith("misfit") for verdict in verdicts])
    assert 0.02 < share < 0.1 + 4 * np.sqrt(0.09 / 200)


def test_a_model_without_a_density_has_residuals_but_no_moments():
    saddle = PolynomialModel.from_dict({(0, 0): 0.5, (1, 1): 0.5, (0, 1): 1.5})  # conditionals exist
    result = goodness_of_fit(saddle, np.random.default_rng(0).standard_normal((200, 2)))
    assert result.moments is None
    assert result.note.startswith("no moments: the model is no probability distribution")
    assert result.note in repr(result)
    assert result.verdict.startswith("misfit")


def test_the_same_seed_gives_the_same_and_one_variable_is_enough():
    model = PolynomialModel.from_dict({(0, 0): -1.0, (0, 0, 0, 0): 0.5})
    X = model.sample(300, rng=0)
    first, second = (goodness_of_fit(model, X, rng=3) for _ in range(2))
    assert repr(first) == repr(second)
    assert first.verdict.startswith("no misfit")
    constant = stein_test(GAUSSIAN, np.zeros((20, 2)))
    assert np.isfinite(constant.statistic)


def test_bad_input():
    X, psi = np.random.default_rng(0).standard_normal((40, 2)), np.zeros((40, 5))
    psi[7, 3] = np.nan
    for test in (residual_test, stein_test, moment_table, goodness_of_fit):
        with pytest.raises(ValueError, match=r"X has shape \(40, 3\)"):
            test(GAUSSIAN, np.ones((40, 3)))
        with pytest.raises(ValueError, match="X has 9 rows: a test needs 10 or more"):
            test(GAUSSIAN, X[:9])
        with pytest.raises(ValueError, match=r"influence has shape \(40, 2\).*\(40, 5\)"):
            test(GAUSSIAN, X, influence=X)
        with pytest.raises(ValueError, match=r"nan for x0\*x1, the first in row 7"):
            test(GAUSSIAN, X, influence=psi)
        for dependence in (-1, 20, 1.5, True):
            with pytest.raises(ValueError, match="dependence must be None or a number of rows below half of the 40"):
                test(GAUSSIAN, X, dependence=dependence)
    holed = X.copy()
    holed[3, 1] = np.inf
    with pytest.raises(ValueError, match="X holds inf in row 3, column x1"):
        residuals(GAUSSIAN, holed)
    with pytest.raises(ValueError, match="no column x1"):
        residuals(GAUSSIAN, pd.DataFrame(X, columns=["x0", "y"]))
    with pytest.raises(ValueError, match="n_bootstrap must be a positive integer"):
        stein_test(GAUSSIAN, X, n_bootstrap=0)
    with pytest.raises(ValueError, match="max_samples is 5: a test needs 10"):
        stein_test(GAUSSIAN, X, max_samples=5)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        goodness_of_fit(GAUSSIAN, X, level=1.0)


def test_a_variable_without_a_conditional_density_is_named():
    model = PolynomialModel.from_dict({(0, 0): 1.0, (0, 0, 1): 1.0, (1, 1): 1.0}, names=["a", "b"])
    X = np.random.default_rng(0).standard_normal((40, 2))
    bad = int(np.sum(X[:, 1] <= -1))
    with pytest.raises(ValueError, match=f"a has no distribution given the other variables in {bad} of 40 rows"):
        residual_test(model, X)


def test_plot_of_residuals():
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    U = rng.random((400, 11))
    U[:, 4] = norm.cdf(rng.standard_normal(400) + 0.5)
    figure, ax = plt.subplots()
    assert plot_residuals(U, ax=ax) is ax
    assert len(ax.lines) == 11 + 1
    (named,) = ax.get_legend().get_texts()
    assert named.get_text().startswith("x4 (q = ")
    line = next(line for line in ax.lines if line.get_label().startswith("x4"))
    x, y = line.get_data()
    assert np.allclose(x + y, np.sort(U[:, 4]))
    plt.close(figure)
    result = goodness_of_fit(GAUSSIAN, sets(GAUSSIAN, 1, 100)[0], n_draws=10)
    figure, ax = plt.subplots()
    assert result.plot(ax) is ax
    assert ax.get_legend() is None
    plt.close(figure)


def test_draws_with_other_means_or_spreads_are_told():
    truth = double_wells(3)
    X = np.asarray(truth.sample(800, rng=0))
    fit = goodness_of_fit(truth, X)
    assert fit.unlike == []
    assert fit.draws.shape == (10_000, 3)
    fit = goodness_of_fit(truth, X * [1.0, 1.0, 2.0] + [0.0, 1.2, 0.0])
    assert set(fit.unlike) == {"x1", "x2"}
    assert "draws of the model have other means or spreads than the samples in" in fit.verdict
    assert goodness_of_fit(truth, X, n_draws=0).draws is None


def test_few_samples_do_not_make_draws_unlike():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4000, 2))
    found = [unlike(draws, rng.standard_normal((12, 2)), ["a", "b"]).names for _ in range(200)]
    assert sum(map(len, found)) <= 2
    far = unlike(draws, rng.normal([0.0, 0.7], 1.0, (400, 2)), ["a", "b"], np.ones(400))
    assert far.names == ["b"]
    assert far.words.startswith("b ")
