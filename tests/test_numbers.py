"""Numbers at their limits: nothing overflows, derivatives are right at any scale, threads and blocks do not matter."""

import sys
from functools import reduce
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from isodus import ISODUS, MonomialBasis, PseudoLikelihood, ScoreMatching
from isodus import objective as module
from isodus.datasets import double_wells
from isodus.losses.pseudo_likelihood import PseudoLikelihoodLoss
from isodus.losses.score_matching import ScoreMatchingLoss
from isodus.losses.screening import Screening
from isodus.objective import Objective
from isodus.samples import ArraySamples

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from stress import stress

BASIS = MonomialBasis(2, 4, max_order=2)
S, NODE = BASIS.degree, 0


def test_no_loss_overflows_or_is_no_number():
    said = []
    found, _, done = stress(seed=1, count=40_000, say=said.append)
    assert done >= 40_000
    assert not found, said


def polynomial(theta, row):
    """a_1 … a_s of x0 given x1, in as many digits as are asked for."""
    a = [mp.mpf(0)] * S
    for k, value in zip(BASIS.local(NODE).terms, theta, strict=True):
        term = BASIS.terms[k]
        a[term.count(NODE) - 1] += value * mp.mpf(row[1]) ** term.count(1)
    return a


def screening(theta, X, unit):
    e, nu = S + 2, mp.mpf(0.5) / mp.mpf(unit) ** (S + 2)
    m = [
        0 if l % 2 else nu ** (-mp.mpf(l) / e) * mp.gamma(mp.mpf(l + 1) / e) / mp.gamma(mp.mpf(1) / e)
        for l in range(1, S + 1)
    ]

    def weight(row):
        x = mp.mpf(row[0])
        return mp.exp(sum(a * (x ** (l + 1) - m[l]) for l, a in enumerate(polynomial(theta, row))) - nu * abs(x) ** e)

    return mp.log(sum(map(weight, X)) / len(X))


def pseudo_likelihood(theta, X, unit):
    step = mp.mpf(unit) / 16  # sums over equal steps are exact to 1e-40 for what falls so fast on both sides

    def one(row):
        a = polynomial(theta, row)
        energy = lambda x: reduce(lambda total, c: (total + c) * x, reversed(a), mp.mpf(0))
        return energy(mp.mpf(row[0])) + mp.log(step * sum(mp.exp(-energy(k * step)) for k in range(-96, 97)))

    return sum(map(one, X)) / len(X)


def score_matching(theta, X, unit):
    def one(row):
        a, x = polynomial(theta, row), mp.mpf(row[0])
        slope = sum((l + 1) * c * x**l for l, c in enumerate(a))
        return slope**2 / 2 - sum((l + 1) * l * c * x ** (l - 1) for l, c in enumerate(a) if l)

    return sum(map(one, X)) / len(X)


EXACT = {
    "screening": (
        screening,
        lambda u: Screening.of_degree(S, np.full(2, 0.5 / u**6), np.full(2, 2.0), np.zeros(2), "log"),
    ),
    "pseudo-likelihood": (pseudo_likelihood, lambda u: PseudoLikelihoodLoss()),
    "score matching": (score_matching, lambda u: ScoreMatchingLoss()),
}


def same_slopes(name, unit, size, found, exact):
    """To 1e-9 of what they are about: 1/θ, and for score matching, a square of slopes by x, 1/x² of that."""
    factor = 1 / size if name != "score matching" else 1 / size / unit**2
    assert 0.01 < np.abs(exact / factor).max() < 1e4
    np.testing.assert_allclose(found / factor, exact / factor, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("name", EXACT)
def test_gradients_against_many_digits(name, unit):
    """By central differences of the formula in 50 digits, with steps of 1e-20: what is left is rounding in double."""
    formula, loss = EXACT[name]
    rng, n = np.random.default_rng(0), 3 if name == "pseudo-likelihood" else 12
    X = unit * rng.normal(0.1, 0.8, (n, 2))
    terms = BASIS.local(NODE).terms
    size = unit ** -BASIS.degrees[terms].astype(float)
    theta = size * 0.3 * rng.standard_normal(len(terms))
    pure = [k for k, t in enumerate(terms) if BASIS.terms[t] == (0, 0, 0, 0)]
    theta[pure] = size[pure] * 0.5
    (got,) = Objective(BASIS, loss(unit), ArraySamples(X, None, np.zeros(2), np.ones(2))).evaluate([NODE], [theta])
    with mp.workdps(50):
        exact = [mp.mpf(float(t)) for t in theta]
        value = float(formula(exact, X, unit))
        slope = []
        for k in range(len(terms)):
            h = mp.mpf(float(size[k])) * mp.mpf(10) ** -20
            up, down = ([*exact[:k], exact[k] + d, *exact[k + 1 :]] for d in (h, -h))
            slope.append(float((formula(up, X, unit) - formula(down, X, unit)) / (2 * h)))
    assert got.value == pytest.approx(value, rel=1e-9)
    same_slopes(name, unit, size, got.gradient, np.array(slope))


def by_jax(name, X, unit):
    """The same formulas for JAX, as functions of θ."""
    import jax.numpy as jnp
    from jax.scipy.special import gamma, logsumexp

    terms = [BASIS.terms[k] for k in BASIS.local(NODE).terms]
    x, cofactors = X[:, 0], np.stack([X[:, 1] ** term.count(1) for term in terms], axis=1)
    power = np.array([[term.count(NODE) == l for l in range(1, S + 1)] for term in terms], float)
    a = lambda theta: (cofactors * theta) @ power  # (n, s)
    l = np.arange(1, S + 1)
    if name == "screening":
        e, nu = S + 2, 0.5 / unit ** (S + 2)
        m = jnp.where(l % 2 == 0, nu ** (-l / e) * gamma((l + 1) / e) / gamma(1 / e), 0.0)
        exponent = lambda theta: jnp.sum(a(theta) * (x[:, None] ** l - m), axis=1) - nu * jnp.abs(x) ** e
        return lambda theta: logsumexp(exponent(theta)) - jnp.log(len(x))
    if name == "pseudo-likelihood":
        grid = unit / 16 * np.arange(-96, 97)
        log_z = lambda theta: logsumexp(-a(theta) @ (grid[:, None] ** l).T, axis=1) + jnp.log(unit / 16)
        return lambda theta: jnp.mean(jnp.sum(a(theta) * x[:, None] ** l, axis=1) + log_z(theta))
    slope = lambda theta: jnp.sum(l * a(theta) * x[:, None] ** (l - 1), axis=1)
    bend = lambda theta: jnp.sum((l * (l - 1) * a(theta))[:, 1:] * x[:, None] ** (l[1:] - 2), axis=1)
    return lambda theta: jnp.mean(0.5 * slope(theta) ** 2 - bend(theta))


@pytest.mark.parametrize("unit", [1e-30, 1e-3, 1.0, 1e30])
@pytest.mark.parametrize("name", EXACT)
def test_gradients_against_automatic_differentiation(name, unit):
    jax = pytest.importorskip("jax")
    rng, terms = np.random.default_rng(1), BASIS.local(NODE).terms
    X = unit * rng.normal(0.1, 0.8, (50, 2))
    size = unit ** -BASIS.degrees[terms].astype(float)
    theta = size * 0.3 * rng.standard_normal(len(terms))
    pure = [BASIS.terms[k] == (0, 0, 0, 0) for k in terms]
    theta[pure] = 0.5 * size[pure]
    samples = ArraySamples(X, None, np.zeros(2), np.ones(2))
    (got,) = Objective(BASIS, EXACT[name][1](unit), samples).evaluate([NODE], [theta])
    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(by_jax(name, X, unit))(jax.numpy.array(theta))
    assert got.value == pytest.approx(float(value), rel=1e-9)
    same_slopes(name, unit, size, got.gradient, np.asarray(slope))


@pytest.mark.parametrize("kind", [ISODUS, PseudoLikelihood, ScoreMatching])
def test_threads_and_blocks_do_not_matter(kind, monkeypatch):
    X = np.asarray(double_wells(5, coupling=0.3).sample(3000, rng=0))
    expected = kind(4).fit(X).model_

    def close(found):
        np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-10, atol=1e-10)

    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            close(kind(4).fit(X).model_)
    close(kind(4, n_jobs=2).fit(X).model_)
    monkeypatch.setattr(module, "_BLOCK_BYTES", (1 << 14, 1 << 15))
    close(kind(4).fit(X).model_)
