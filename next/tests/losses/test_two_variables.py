"""The objective of two variables, against conditional densities in powers of x that are written out and integrated."""

from itertools import pairwise

import numpy as np
import pytest
from losses.toy_screening import UniformScreening
from losses.written_out import ends
from scipy.integrate import quad

from isodus.axes import Interval, Line
from isodus.data import as_samples
from isodus.fit.learn import no_ridge
from isodus.fit.newton import newton
from isodus.fit.objective import Objective
from isodus.fit.sandwich import sandwich
from isodus.losses import PseudoLikelihoodLoss
from isodus.terms import Terms, to_powers

RNG = np.random.default_rng(11)
X = np.column_stack([0.5 + RNG.standard_normal(400), RNG.gamma(3.0, size=400)])
ROWS = X[:12]
WEIGHT = RNG.integers(1, 5, 12).astype(float)
AXES = [Line.fit(x, 4) for x in X.T]
BASES = {  # no linear terms; only products; tied; closed
    "without lower terms": ([(0, 0), (0, 1), (1, 1), (0, 0, 1, 1), (0, 0, 0, 0), (1, 1, 1, 1)], None),
    "products": ([(0, 0, 1), (0, 1, 1, 1)], None),
    "tied": ([(0, 0), (1, 1), (0, 1), (0, 0, 1), (0, 1, 1)], [0, 0, 1, 2, 2]),
    "closed": ([(0,), (1,), (0, 0), (1, 1), (0, 1), (0, 0, 1)], None),
}


@pytest.fixture
def rng():
    return np.random.default_rng(123)


def energy(terms, theta, x, y):
    """Σ_k θ_k x^α y^β over some terms."""
    return sum(t * x ** key.count(0) * y ** key.count(1) for key, t in zip(terms, theta, strict=True))


def spread(tau, ties):
    """One coefficient for each key."""
    return tau if ties is None else tau[list(ties)]


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_pseudo_likelihood(name, weighted, rng):
    """Σ_i ⟨log ∫ exp(E(x) − E(x with x_i = t)) q(t) dt⟩, x held at the ends of windows, q exponential beyond."""
    keys, ties = BASES[name]
    axes, terms = AXES, Terms(AXES, keys, ties)
    weight = WEIGHT if weighted else np.ones(12)
    f = Objective(PseudoLikelihoodLoss(), terms, as_samples(ROWS, weight))
    tau = rng.normal(0.0, 0.1, len(terms))
    if terms.identity:  # τ are the coefficients of orthonormal functions
        powers, B = to_powers(axes, terms.products)
        E = lambda point: energy(powers, B @ tau, *point)
    else:
        E = lambda point: energy(keys, spread(tau, ties), *(np.asarray(point) / [axis.unit for axis in axes]))
    expected = [[log_integral(E, row, i, axis) for i, axis in enumerate(axes)] for row in ROWS]
    np.testing.assert_allclose(f(tau).nodes, np.average(expected, axis=0, weights=weight), rtol=1e-9)


def log_integral(E, row, i, axis):
    """log ∫ exp(E(row) − E(row with x_i = t)) q(t) dt; E is constant beyond the window, where q has mass tail each."""
    low, high = ends(axis)
    clipped = [np.clip(v, *ends(a)) for v, a in zip(row, AXES, strict=True)]

    def mass(t):
        other = [*clipped]
        other[i] = t
        return float(np.exp(E(clipped) - E(other)))

    edges = np.linspace(low, high, 9)
    inside = sum(quad(mass, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in pairwise(edges))
    return np.log(inside / axis.scale + axis.tail * (mass(low) + mass(high)))


@pytest.mark.parametrize("name", ["without lower terms", "products", "tied"])
def test_uniform_screening(name, rng):
    """Σ_i log⟨exp(Σ_k θ_k (x^α − ∫ x^α dx_i / length))⟩ over the terms of variable i."""
    keys, ties = BASES[name]
    Y, span = np.tanh(ROWS / 3), [(-1.0, 1.0), (-1.0, 1.5)]
    axes = [Interval.fit(np.tanh(x / 3), 4, ends=e) for x, e in zip(X.T, span, strict=True)]
    terms = Terms(axes, keys, ties)
    tau = rng.normal(0.0, 0.5, len(terms))
    theta, units = spread(tau, ties), [axis.unit for axis in axes]
    expected = []
    for i, (low, high) in enumerate(span):
        exponents = []
        for row in Y:
            total = 0.0
            for key, t in zip(keys, theta, strict=True):
                l = key.count(i)
                if l:
                    moment = (high ** (l + 1) - low ** (l + 1)) / ((l + 1) * (high - low))
                    rest = (row[1 - i] / units[1 - i]) ** key.count(1 - i)
                    total += t * rest * (row[i] ** l - moment) / units[i] ** l
            exponents.append(total)
        expected.append(np.log(np.average(np.exp(exponents), weights=WEIGHT)))
    at = Objective(UniformScreening(), terms, as_samples(Y, WEIGHT, block=5))(tau)
    np.testing.assert_allclose(at.nodes, expected, rtol=1e-11)


def grid_samples(tau, keys, n, seed):
    """Draws from exp(−Σ τ x^α y^β) on [−1, 1]², in cells of a grid."""
    g = (np.arange(400) + 0.5) / 200 - 1
    x, y = (v.ravel() for v in np.meshgrid(g, g, indexing="ij"))
    mass = np.exp(-energy(keys, tau, x, y))
    rng = np.random.default_rng(seed)
    cells = rng.choice(len(x), n, p=mass / mass.sum())
    return np.stack([x[cells], y[cells]], axis=1) + (rng.random((n, 2)) - 0.5) / 200


@pytest.mark.parametrize("loss", [UniformScreening(), PseudoLikelihoodLoss()], ids=["screening", "pseudo-likelihood"])
def test_both_losses_find_the_model_and_know_their_error(loss):
    """30 sets of 1,000 rows: (estimate − truth)/SE has mean square 1 (± .11 for 150 of them), by sandwich and link."""
    keys, truth = [(0,), (0, 0), (0, 1), (1, 1), (0, 0, 1)], np.array([0.5, 1.0, -1.5, -0.8, 0.7])
    z = []
    for seed in range(30):
        Y = grid_samples(truth, keys, 1000, seed)
        axes = [Interval.fit(y, 2) for y in Y.T]
        f = Objective(loss, Terms(axes, keys), as_samples(Y, block=300))
        fit = newton(f, f.terms.zeros(), no_ridge(f), tol=1e-4)
        assert fit.status == "converged"
        z.append((fit.tau - truth) / np.sqrt(np.diag(sandwich(f, fit))))
    z = np.array(z)
    assert 0.7 < np.mean(z**2) < 1.4
    assert np.all(np.abs(z.mean(axis=0)) < 3.5 / np.sqrt(30))
