"""Markov chains: that they leave a density as it is, what they give against exact results, and what they tell of it.

Errors of means over chains are from the spread of the means of groups of chains with the same start, which are
independent of one another: they do not rest on what the sampler says of itself.
"""

import copy
import pickle
import sys
import types
import warnings
from collections import Counter
from functools import cache
from itertools import combinations, combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from scipy import ndimage

from isodus import ISODUS, MonomialBasis, PolynomialModel, progress, sampling
from isodus.datasets import double_wells, paper_pair, phi4_lattice, sparse_polynomial
from isodus.sampling import NotExactError, chains, sweep, tree
from isodus.sampling.kernels import Gibbs, Hamiltonian
from isodus.sampling.tempering import Ladder

CHAINS = chains._STARTS * chains._EACH
FEW = CHAINS * chains._DRAWS  # samples that are all draws of all chains

PAIR = paper_pair(2)
SEXTIC = PolynomialModel.from_dict(
    {(0,) * 6: 0.3, (1,) * 6: 0.2, (0, 0): -0.5, (0, 1): 0.8, (0, 0, 0, 1, 1, 1): -0.2, (0, 0, 0, 1): 0.3, (1,): 0.4}
)
THREE = PolynomialModel.from_dict(
    {(i,) * 4: 1.0 for i in range(3)} | {(0, 1, 2): 1.5, (0, 0, 1): 0.5, (1, 1, 2, 2): 0.8, (0,): 0.3}
)
# a correlation of about 0.95, one variable ten times as wide as the other, and terms that make it no Gaussian
TIED = PolynomialModel.from_dict(
    {(0, 0): 5.13, (0, 1): -0.974, (1, 1): 0.0513, (0, 0, 0): 0.2, (0,) * 4: 0.05, (1,) * 4: 5e-6}
)
REACH = {"pair": 3.0, "sextic": 3.0, "three bodies": 3.5, "tied": np.array([7.0, 70.0])}
KERNEL_MODELS = {"pair": PAIR, "sextic": SEXTIC, "three bodies": THREE, "tied": TIED}
WELLS, PHI4 = double_wells(6, height=1.0), phi4_lattice(8)


def monomials(X, degree):
    """All of degree 1 … degree of the columns of X, (n, terms)."""
    p = X.shape[1]
    terms = [term for d in range(1, degree + 1) for term in combinations_with_replacement(range(p), d)]
    return np.stack([np.prod(X[:, list(term)], axis=1) for term in terms], axis=1)


@cache
def exact_moments(name):
    """Means of all monomials up to the fourth, by the trapezoid rule: spectrally accurate for these densities."""
    model = KERNEL_MODELS[name]
    p = model.basis.n_variables
    g = np.linspace(-1.0, 1.0, {2: 401, 3: 71}[p])
    points = np.stack([axis.ravel() for axis in np.meshgrid(*[g] * p, indexing="ij")], axis=1) * REACH[name]
    E = model.energy(points)
    w = np.exp(E.min() - E)
    near = w > 1e-14
    return w[near] @ monomials(points[near], 4) / w[near].sum()


@cache
def exact_samples(name, n=25_000):
    X = np.ascontiguousarray(KERNEL_MODELS[name].sample(n, rng=1, method="exact").T)
    X.flags.writeable = False
    return X


def check_moments(X, name):
    """Of independent columns X, (p, n): z < 4 of every moment up to the fourth."""
    M = monomials(X.T, 4)
    z = (M.mean(axis=0) - exact_moments(name)) / (M.std(axis=0) / np.sqrt(len(M)))
    assert np.max(np.abs(z)) < 4, z


def groups(values):
    """Means, (starts, …), of values, (n, …), at samples that are all draws of all chains."""
    return values.reshape(-1, chains._STARTS, chains._EACH, *values.shape[1:]).mean(axis=(0, 2))


def mean_and_error(values):
    means = groups(np.asarray(values))
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(len(means))


def fresh(model):
    """The same without what it remembers of earlier samples."""
    return pickle.loads(pickle.dumps(model))


def with_chains(model, kind):
    """The model, tempered chains of which step by `kind`: elsewhere the clock chooses."""
    model = fresh(model)
    model._chosen.update(dict.fromkeys(range(model.basis.n_variables), kind))
    return model


# kernels


def gibbs(model):
    return Gibbs(model.basis, model.theta, model.names, sweep.colours(model.basis, model.theta))


@pytest.mark.parametrize("nodes", ["tuned", "coarse", "short"])
@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_gibbs_sweeps_leave_the_density_as_it_is_whatever_their_nodes(name, nodes):
    """Coarse ones are 2.7 widths of a conditional density apart, short ones leave out most of the density."""
    X, rng, kernel = exact_samples(name).copy(), np.random.default_rng(2), gibbs(KERNEL_MODELS[name])
    mean, width = X.mean(axis=1), X.std(axis=1) * (0.31 if name == "tied" else 1.0)
    if nodes == "tuned":
        kernel.tune(X)
    else:
        half = {"coarse": 16.0, "short": 0.5}[nodes] * width
        kernel.reach(mean - half, mean + half, half)
        assert len(kernel.nodes) == 12
    before = X.copy()
    for _ in range(4):
        kernel.step(X, rng)
    check_moments(X, name)
    assert np.mean(before != X, axis=1).min() > {"tuned": 0.98, "coarse": 0.1, "short": 0.1}[nodes]


@pytest.mark.parametrize(("name", "size"), [("pair", 0.5), ("sextic", 0.5), ("three bodies", 0.5), ("tied", 1.0)])
def test_trajectories_leave_the_density_as_it_is(name, size):
    X, rng = exact_samples(name).copy(), np.random.default_rng(3)
    kernel = Hamiltonian(KERNEL_MODELS[name].basis, KERNEL_MODELS[name].theta, 4)
    kernel.tune(X)
    assert (kernel.metric.shape[1] > 1) == (name == "tied")
    kernel.size = size
    accepted = []
    for _ in range(8):
        kernel.step(X, rng)
        accepted.append(kernel.acceptance)
    check_moments(X, name)
    assert 0.4 < np.mean(accepted) < 0.97  # some are not taken, and without that the moments would be wrong


def test_forces_are_in_double_precision_where_rounding_would_tell():
    for scale, kind in ((1.0, np.float32), (1e6, np.float64)):
        model = PolynomialModel.from_dict({(0, 0): scale, (1, 1): scale, (0, 1): 0.1})
        kernel = Hamiltonian(model.basis, model.theta, 4)
        kernel.tune(np.random.default_rng(0).standard_normal((2, 100)))
        assert kernel.forces.first.dtype == kind


def test_trajectories_are_tuned_to_be_taken_four_times_in_five():
    X, rng = exact_samples("tied")[:, :2000].copy(), np.random.default_rng(4)
    kernel = Hamiltonian(TIED.basis, TIED.theta, 4)
    kernel.tune(X)
    for _ in range(100):
        kernel.step(X, rng, learn=True)
    kernel.settle()
    accepted = []
    for _ in range(20):
        kernel.step(X, rng)
        accepted.append(kernel.acceptance)
    assert 0.7 < np.mean(accepted) < 0.95


def test_a_range_that_is_too_short_is_widened():
    X, rng, kernel = exact_samples("pair")[:, :500].copy(), np.random.default_rng(5), gibbs(PAIR)
    mean, width = X.mean(axis=1), X.std(axis=1)
    kernel.reach(mean - 0.1 * width, mean + 0.1 * width, 0.3 * width)
    for _ in range(30):
        kernel.step(X, rng, learn=True)
    half = kernel.h * len(kernel.nodes) / 2
    assert np.all(kernel.middle - half < X.min(axis=1))
    assert np.all(kernel.middle + half > X.max(axis=1))


class Halves:
    """A generator of halves, and once, the second time that single precision is asked for, of the least: zero."""

    def __init__(self):
        self.asked = 0

    def random(self, size, dtype=np.float64):
        self.asked += dtype == np.float32
        return np.full(size, 0.0 if dtype == np.float32 and self.asked == 2 else 0.5, dtype)

    def uniform(self, low, high, size):
        return np.full(size, low)


def test_a_uniform_variate_of_zero_does_not_choose_a_node_of_no_probability():
    """It comes once in 2²⁴ draws of single precision: the second variable of this pair, given the first, at its end."""
    group = TIED._groups[0]
    nodes = group.grid.nodes
    at = tree.draw(group.grid.steps, nodes, group.grid.messages, 1, Halves())
    drawn, again, swept = np.array([[g[k] for g, k in zip(nodes, at[:, 0], strict=True)]]).T, *np.zeros((2, 2, 1))
    sweep.redraw(group.grid.conditionals, nodes, again, Halves())
    kernel = gibbs(TIED)
    kernel.tune(exact_samples("tied")[:, :1000])
    kernel.step(swept, Halves())
    corner = np.array([[0.0, nodes[1][0]]])
    assert TIED.energy(corner)[0] > 80
    for X in (drawn, again, swept):
        assert TIED.energy(X.T)[0] < 25  # the least of 2²⁵ draws is 5.4 standard deviations off: 15


# colours


def test_a_lattice_has_two_colours_and_all_pairs_have_as_many_as_variables():
    lattice, dense = phi4_lattice((4, 5)), PolynomialModel.from_dict(dense_terms(7))
    assert len(sweep.colours(lattice.basis, lattice.theta)) == 2
    assert len(sweep.colours(dense.basis, dense.theta)) == 7


@pytest.mark.parametrize("seed", range(3))
def test_variables_of_one_colour_share_no_term(seed):
    model = sparse_polynomial(20, max_order=3, rng=seed)
    found = sweep.colours(model.basis, model.theta)
    assert sorted(v for group in found for v in group) == list(range(20))
    colour = {v: c for c, group in enumerate(found) for v in group}
    for term in model.basis.terms:
        assert len({colour[v] for v in term}) == len(set(term))


# against exact results


@pytest.mark.parametrize("method", ["gibbs", "hmc", "tempering"])
@pytest.mark.parametrize("model", [WELLS, PHI4], ids=["wells", "phi4"])
def test_chains_agree_with_exact_samples_of_trees(model, method):
    """Means of x_i, x_i² and x_i x_(i+1), 17 or 23 of them, within 4.5 standard errors."""

    def statistics(X):
        X = np.asarray(X)
        return np.concatenate([X, X**2, X[:, 1:] * X[:, :-1]], axis=1)

    expected = statistics(model.sample(100_000, rng=1, method="exact"))
    X = with_chains(model, "gibbs" if model is WELLS else "hmc").sample(FEW, rng=2, method=method)
    assert X.info.trustworthy
    assert X.info.n_draws == len(X) == FEW
    mean, error = mean_and_error(statistics(X))
    z = (mean - expected.mean(axis=0)) / np.hypot(error, expected.std(axis=0) / np.sqrt(len(expected)))
    assert np.max(np.abs(z)) < 4.5, z
    # effective samples, as they are told and by the spread of the chains' own means: the short chains of a small
    # sample tell up to 1.8 times too many
    x = np.asarray(X)
    spread = x.reshape(-1, CHAINS, x.shape[1]).mean(axis=0).var(axis=0, ddof=1) / CHAINS
    assert np.all(X.info.ess / (x.var(axis=0) / spread) < 2.2)
    assert np.all(X.info.ess / (x.var(axis=0) / spread) > 0.6)


QUARTIC, SQUARE, FIELD, TOGETHER, MANY = 0.3, 0.2, 0.15, 0.07, 12


def dense_terms(p, first=0):
    """E = Σ (0.3 x⁴ + 0.2 x² − 0.15 x) − 0.07 Σ_{i<j} x_i x_j."""
    own = {(i,) * d: c for i in range(p) for d, c in ((4, QUARTIC), (2, SQUARE), (1, -FIELD))}
    return own | dict.fromkeys(combinations(range(p), 2), -TOGETHER)


def dense_moments(p):
    """Means of x, x², x⁴ and x_i x_j, exact: exp(g/2 S²) = ⟨exp(√g m S)⟩ over a normal m, given which all x are alike.

    S = Σ x, g the coupling; g Σ_{i<j} x_i x_j = g/2 (S² − Σ x²).
    """
    x, m = np.linspace(-8, 8, 801), np.linspace(-12, 12, 801)
    E = QUARTIC * x**4 + (SQUARE + TOGETHER / 2) * x**2 - (FIELD + np.sqrt(TOGETHER) * m[:, None]) * x
    density = np.exp(-E)
    z = density.sum(axis=1)
    one, two, four = (density @ x**k / z for k in (1, 2, 4))
    log_w = p * np.log(z) - m**2 / 2
    w = np.exp(log_w - log_w.max())
    return np.array([w @ f for f in (one, two, four, one**2)]) / w.sum()


def dense_statistics(X):
    """The same of samples, over all variables and pairs of a row: (n, 4)."""
    total, p = X.sum(axis=1), X.shape[1]
    pairs = (total**2 - (X**2).sum(axis=1)) / (p * (p - 1))
    return np.stack([X.mean(axis=1), (X**2).mean(axis=1), (X**4).mean(axis=1), pairs], axis=1)


DENSE = PolynomialModel.from_dict(dense_terms(MANY))


@pytest.mark.parametrize("method", ["gibbs", "hmc", "auto"])
def test_chains_agree_with_the_integral_of_a_model_with_all_pairs(method):
    X = DENSE.sample(FEW, rng=3, method=method)
    assert X.info.trustworthy
    assert X.info.method != "exact"
    mean, error = mean_and_error(dense_statistics(np.asarray(X)))
    assert np.max(np.abs(mean - dense_moments(MANY)) / error) < 4
    assert dense_moments(MANY)[3] > 20 * error[3]  # 0.049; without a coupling it would be 0.006


def deep_wells():
    """E = 3 ((x² − 1)² + (y² − 1)²) − 6 x y − 0.1 (x + y): wells near (1, 1) and (−1, −1)."""
    return PolynomialModel.from_dict(
        {(i,) * 4: 3.0 for i in (0, 1)} | {(i, i): -6.0 for i in (0, 1)} | {(0, 1): -6.0, (0,): -0.1, (1,): -0.1}
    )


@cache
def barrier_and_share():
    """How far the way from one well to the other leads up from the lower one; the probability of x + y > 0."""
    g = np.linspace(-2.5, 2.5, 401)
    points = np.stack([axis.ravel() for axis in np.meshgrid(g, g, indexing="ij")], axis=1)
    E, upper = deep_wells().energy(points), points.sum(axis=1) > 0
    bottoms = [np.unravel_index(np.where(side, E, np.inf).argmin(), (401, 401)) for side in (upper, ~upper)]
    landscape = E.reshape(401, 401)
    low, high = max(landscape[b] for b in bottoms), E.max()
    while high - low > 1e-3:  # the level at which the wells are one
        level = (low + high) / 2
        label, _ = ndimage.label(landscape <= level)
        low, high = (low, level) if label[bottoms[0]] == label[bottoms[1]] else (level, high)
    w = np.exp(E.min() - E)
    return low - E.min(), w[upper].sum() / w.sum()


def test_chains_that_stay_in_their_wells_say_so(monkeypatch):
    monkeypatch.setitem(chains._THIN, "gibbs", 8)  # it would go on for seconds, in vain
    barrier, _ = barrier_and_share()
    assert barrier > 10
    with pytest.warns(UserWarning, match=r"have not mixed.*R-hat of x[01] 1\.\d\d.*tempering"):
        X = deep_wells().sample(1000, rng=0, method="gibbs")
    assert not X.info.trustworthy
    assert X.info.r_hat.max() > 1.05
    assert "NOT TO BE TRUSTED" in repr(X.info)


@pytest.mark.parametrize("kind", ["gibbs", "hmc"])
def test_tempered_chains_find_how_probable_each_well_is(kind):
    _, share = barrier_and_share()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = with_chains(deep_wells(), kind).sample(FEW, rng=0, method="tempering")
    assert X.info.trustworthy
    mean, error = mean_and_error(X.sum(axis=1) > 0)
    assert abs(mean - share) < 4 * error
    assert error < 0.02  # of 0.617: equal wells would be seen
    rates = X.info.details[0]["swap_rates"]
    steps = {"gibbs": "Gibbs", "hmc": "Hamiltonian, "}[kind]
    assert X.info.method.startswith(f"parallel tempering, {len(rates) + 1} levels, {steps}")
    assert all(0.2 < rate < 0.8 for rate in rates)


def test_auto_tempers_chains_that_do_not_mix(monkeypatch):
    monkeypatch.setitem(chains._THIN, "auto", 4)
    monkeypatch.setattr(sampling.grid, "_MOST_CELLS", 10)  # no exact sums
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = deep_wells().sample(FEW, rng=1)
    assert X.info.method.startswith("parallel tempering")
    mean, error = mean_and_error(X.sum(axis=1) > 0)
    assert abs(mean - barrier_and_share()[1]) < 4 * error


@pytest.mark.parametrize("kind", ["gibbs", "hmc"])
def test_a_ladder_has_levels_that_trade_equally_often(kind):
    model = deep_wells()
    X = np.ascontiguousarray(model.sample(256, rng=0, method="exact").T)

    def kernel(basis, theta):
        if kind == "hmc":
            return Hamiltonian(basis, theta, 4)
        return Gibbs(basis, theta, model.names, sweep.colours(basis, theta))

    rng = np.random.default_rng(0)
    ladder = Ladder(model.basis, model.theta, X, kernel)
    ladder.adapt(rng)
    for _ in range(100):
        ladder.step(rng)
    betas = ladder.betas
    assert betas[0] == 0
    assert betas[-1] == 1
    assert np.all(np.diff(betas) > 0)
    assert np.ptp(np.diff(betas)) > 0.1  # levels at equal steps would be others
    assert np.all((ladder.swap_rates > 0.2) & (ladder.swap_rates < 0.8))
    assert np.ptp(ladder.swap_rates) < 0.15


@cache
def learned():
    """20,000 samples of a quartic model with all pairs of four variables, and what is learned from them."""
    rng = np.random.default_rng(7)
    theta = {(i,) * 4: 0.6 for i in range(4)} | {(i, i): 0.3 * (-1) ** i for i in range(4)}
    for i, j in combinations(range(4), 2):
        theta |= {(i, j): rng.uniform(-0.4, 0.4), (i, i, j): rng.uniform(-0.15, 0.15)}
    X = np.asarray(PolynomialModel.from_dict(theta).sample(20_480, rng=1))
    return X, ISODUS(degree=4, min_degree=2).fit(X).model_


@pytest.mark.parametrize("method", ["exact", "gibbs", "hmc"])
def test_samples_of_a_learned_model_have_the_sufficient_statistics_of_the_data(method):
    """48 of them; they agree exactly at the maximum of the likelihood, which the estimate is near.

    In units of the error of both means their differences would have a root mean square of 0.7 there, 1 if the estimate
    were no better than another sample of the size of the data. Samples 3 % too wide give 2.
    """
    X, model = learned()
    Y = np.asarray(fresh(model).sample(20_480, rng=2, method=method))
    terms = model.basis.terms
    assert len(terms) == 48

    def statistics(X):
        return np.stack([np.prod(X[:, list(term)], axis=1) for term in terms], axis=1)

    there, here = statistics(X), statistics(Y)
    mean, error = mean_and_error(here)
    if method == "exact":
        error = here.std(axis=0) / np.sqrt(len(here))
    z = (mean - there.mean(axis=0)) / np.hypot(error, there.std(axis=0) / np.sqrt(len(there)))
    assert np.max(np.abs(z)) < 4.5, z
    assert np.sqrt(np.mean(z**2)) < 1.3


# which method


def test_auto_is_exact_where_it_can_be():
    X = PAIR.sample(100, rng=0)
    assert X.info.method == "exact"
    assert X.info.trustworthy
    assert np.array_equal(X, PAIR.sample(100, rng=0, method="exact"))


def test_exact_samples_of_too_large_a_model_are_refused():
    with pytest.raises(NotExactError, match="12 variables"):
        DENSE.sample(10, rng=0, method="exact")


PLACES = [0, 1, 2, 4, 5, 6, 7, 8, 10, 11, 12, 13]  # of the dense variables; the pair is 3 and 9


@cache
def mixed_model():
    dense = {tuple(PLACES[v] for v in term): value for term, value in dense_terms(MANY).items()}
    pair = {tuple((3, 9)[v] for v in term): value for term, value in PAIR.to_dict().items()}
    return PolynomialModel.from_dict(dense | pair)


def test_groups_of_variables_that_have_chains_and_groups_that_do_not_come_together():
    X = mixed_model().sample(FEW, rng=4)
    assert X.info.method.endswith("; others exact")
    assert X.info.trustworthy
    assert X.info.details[0]["variables"] == [f"x{v}" for v in PLACES]
    check_moments(np.asarray(X[:, [3, 9]]).T, "pair")
    mean, error = mean_and_error(dense_statistics(np.asarray(X[:, PLACES])))
    assert np.max(np.abs(mean - dense_moments(MANY)) / error) < 4
    across = np.abs(np.corrcoef(X.T)[np.ix_(PLACES, [3, 9])])
    assert across.max() < 4.5 / np.sqrt(FEW)
    assert np.all(X.info.r_hat[[3, 9]] == 1)
    assert np.all(X.info.ess[[3, 9]] == FEW)


# seeds and processes


@pytest.mark.parametrize("method", ["hmc", "tempering"])
def test_the_same_seed_gives_the_same_samples(method):
    first, second = (with_chains(PAIR, "hmc").sample(100, rng, method=method) for rng in (0, np.random.default_rng(0)))
    assert np.array_equal(first, second)


def test_auto_keeps_to_what_it_chose_whatever_is_asked_for_in_between(monkeypatch):
    monkeypatch.setattr(sampling.grid, "_MOST_CELLS", 10)  # no exact sums
    model = fresh(PAIR)
    first = model.sample(50, rng=0)
    model.sample(50, rng=0, method="hmc" if first.info.method == "Gibbs" else "gibbs")
    again = model.sample(50, rng=0)
    assert again.info.method == first.info.method
    assert np.array_equal(first, again)


def test_processes_do_not_change_samples():
    one, two = few_draws(), PAIR.sample(50, rng=np.random.default_rng(0), method="gibbs", n_jobs=2)
    assert np.array_equal(one, two)
    assert np.array_equal(one.info.r_hat, two.info.r_hat)


def test_processes_may_write_to_chains_of_many_variables():
    """From a million bytes on joblib shares arrays with its processes, and shared ones are read-only."""

    class Add:  # local, so that it travels
        acceptance = None

        def step(self, X, rng, learn=False):
            X += 1.0

    parts = [chains._Plain(Add(), np.zeros((1100, chains._PART))) for _ in range(2)]
    first, second = chains._blocks(parts, 2, 3, np.random.default_rng(0), 2)
    assert first.shape == second.shape == (2 * chains._PART, 1, 1100)
    assert np.all(first == 3.0)
    assert np.all(second == 6.0)


# interrupts


def interrupted(function, at):
    """The function, but for its call of this number."""
    calls = Counter()

    def call(*args):
        calls["all"] += 1
        if calls["all"] == at:
            raise KeyboardInterrupt
        return function(*args)

    return call


def test_chains_that_are_interrupted_give_the_samples_there_are(monkeypatch):
    parts = CHAINS // chains._PART
    monkeypatch.setattr(chains, "_advance", interrupted(chains._advance, 3 * parts + 2))  # of ten blocks the fourth
    with pytest.warns(UserWarning, match="interrupted: 3,072 draws were made, for 10,240"):
        X = PAIR.sample(FEW, rng=6, method="gibbs")
    assert X.shape == (3 * FEW // 10, 2)
    assert not X.info.complete
    assert repr(X.info).endswith("Interrupted")
    check_moments(np.asarray(X).T, "pair")


def test_chains_that_are_interrupted_as_a_round_begins_give_the_one_before(monkeypatch):
    parts = CHAINS // chains._PART
    monkeypatch.setattr(chains, "_advance", interrupted(chains._advance, 10 * parts + 1))
    with pytest.warns(UserWarning, match="interrupted: 10,240 draws were made, for 20,480"):
        X = PAIR.sample(2 * FEW, rng=6, method="gibbs")
    assert X.shape == (FEW, 2)
    assert not X.info.complete


def test_chains_that_are_interrupted_before_there_are_any_samples_give_none(monkeypatch):
    monkeypatch.setattr(chains, "_advance", interrupted(chains._advance, 2))
    with pytest.raises(KeyboardInterrupt):
        PAIR.sample(100, rng=6, method="gibbs")


def test_exact_samples_that_are_interrupted_are_those_there_are(monkeypatch):
    n = 200_000
    whole = PAIR.sample(n, rng=6)
    monkeypatch.setattr(sampling, "_part", interrupted(sampling._part, 3))
    with pytest.warns(UserWarning, match="interrupted"):
        X = PAIR.sample(n, rng=6)
    assert 0 < len(X) < n
    assert np.array_equal(X, whole[: len(X)])
    assert not X.info.complete
    assert repr(X.info).endswith("Interrupted")
    monkeypatch.setattr(sampling, "_part", interrupted(sampling._part, 1))
    with pytest.raises(KeyboardInterrupt):
        PAIR.sample(n, rng=6)


def test_chains_are_not_lost_when_the_exact_part_is_interrupted(monkeypatch):
    monkeypatch.setattr(sampling, "_part", interrupted(sampling._part, 2))
    with pytest.warns(UserWarning, match="interrupted"):
        X = mixed_model().sample(2 * FEW, rng=6)
    assert 0 < len(X) < 2 * FEW
    assert len(X) == X.info.n_draws
    check_moments(np.asarray(X[:, [3, 9]]).T, "pair")


# arguments


def test_an_unknown_method_is_told_those_that_there_are():
    with pytest.raises(ValueError, match="'nuts'; there are 'auto', 'exact', 'gibbs', 'hmc', 'tempering'"):
        PAIR.sample(10, method="nuts")


@pytest.mark.parametrize("n", [0, -1, True, 2.5, None])
def test_the_number_of_samples_is_a_positive_integer(n):
    with pytest.raises(ValueError, match="n must be a positive integer"):
        PAIR.sample(n)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([[0.0, np.nan]], "start holds nan in row 0, column x1"),
        ([[0.0, 1.0], [np.inf, 0.0]], "start holds inf in row 1, column x0"),
        (np.zeros((3, 4)), "start has shape .3, 4.; it should have a row or more and 2 columns"),
        (np.zeros((0, 2)), "start has shape .0, 2."),
        (np.zeros(2), "start has shape .2,."),
    ],
)
def test_a_start_has_a_column_a_variable_and_finite_values(start, message):
    with pytest.raises(ValueError, match=message):
        PAIR.sample(10, method="gibbs", start=start)


@pytest.mark.parametrize("method", ["auto", "gibbs", "hmc", "tempering"])
def test_a_model_that_is_no_density_is_refused(method):
    model = PolynomialModel.from_dict({(0,) * 4: -1.0, (1,) * 4: 1.0, (0, 1): 0.5})
    with pytest.raises(ValueError, match="no probability distribution"):
        model.sample(10, method=method)


def test_a_seed_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="rng must be"):
        PAIR.sample(10, rng="seven", method="gibbs")


# where to start


def located():
    """The pair in other units, far from zero."""
    basis = MonomialBasis(2, 4)
    known = PAIR.to_dict()
    theta = [known.get(term, 0.0) for term in basis.terms]
    return PolynomialModel(basis, theta, location=[100.0, -5.0], scale=[10.0, 0.1], names=["a", "b"])


@pytest.mark.parametrize("method", ["gibbs", "hmc"])
def test_chains_start_from_data(monkeypatch, method):
    model, seen, begin = located(), [], chains._begin
    monkeypatch.setattr(chains, "_begin", lambda *args: seen.append(args[-1]) or begin(*args))
    data = exact_samples("pair")[:, :1000].T * model.scale + model.location
    X = model.sample(FEW, rng=7, method=method, start=data)
    assert X.info.trustworthy
    mean, error = mean_and_error(monomials((np.asarray(X) - model.location) / model.scale, 4))
    assert np.max(np.abs(mean - exact_moments("pair")) / error) < 4.5
    frame = pd.DataFrame({"b": data[:, 1], "other": 0.0, "a": data[:, 0]})
    assert np.array_equal(X, model.sample(FEW, rng=7, method=method, start=frame))
    for start in seen:
        assert np.allclose(start, exact_samples("pair")[:, :1000], rtol=0, atol=1e-12)
    assert len(seen) == 2


@pytest.mark.parametrize("method", ["gibbs", "hmc"])
@pytest.mark.parametrize(
    "start",
    [np.zeros((1, 2)), np.array([[0.3, -0.2]]), np.stack([np.zeros(80), np.linspace(-1, 1, 80)], axis=1)],
    ids=["zero", "a point", "a line"],
)
def test_chains_that_start_in_one_place_leave_it(start, method):
    X = PAIR.sample(FEW, rng=8, method=method, start=start)
    assert X.info.trustworthy
    mean, error = mean_and_error(monomials(np.asarray(X), 4))
    assert np.max(np.abs(mean - exact_moments("pair")) / error) < 4.5


def test_gibbs_sweeps_reach_wells_in_which_no_chain_started():
    """A variable alone has a barrier of 16, across which its conditional density leads in one step."""
    model = double_wells([(0, 1), (1, 2), (0, 2)], height=16.0, coupling=-0.1)
    X = model.sample(FEW, rng=9, method="gibbs", start=np.ones((1, 3)))
    mean, error = mean_and_error(X > 0)
    assert X.info.trustworthy
    assert np.max(np.abs(mean - 0.5) / error) < 4


# what comes back


@cache
def few_draws():
    return PAIR.sample(50, rng=0, method="gibbs")


def test_samples_carry_how_they_were_made_and_what_is_computed_from_them_does_not():
    X = few_draws()
    assert isinstance(X, np.ndarray)
    assert X.shape == (50, 2)
    assert X.info.n_draws == FEW
    for part in (X[:10], X[0], X.T, X.copy(), X.reshape(-1)):
        assert part.info is None
    for made in (X + 1, 2 * X, np.exp(X), X.mean(axis=0), X.sum(axis=1), X @ np.eye(2), X > 0, -X):
        assert type(made) is np.ndarray
    assert isinstance(X.mean(), float)
    assert isinstance(X[0, 0], float)
    assert pd.DataFrame(X, columns=PAIR.names).shape == (50, 2)
    assert X.info is not None


def test_info_is_readable():
    info = few_draws().info
    assert repr(info).startswith(f"SamplingInfo: Gibbs ({CHAINS} chains of 20 draws, one every 1 steps after 0 of")
    assert "R-hat up to 1.00" in repr(info)
    frame = info.to_frame()
    assert list(frame.columns) == ["r_hat", "ess", "tail_ess"]
    assert list(frame.index) == ["x0", "x1"]
    (details,) = info.details
    assert details["chains"] * details["draws"] == info.n_draws
    assert details["swap_rates"] is None
    assert repr(PAIR.sample(5, rng=0).info) == "SamplingInfo: exact, independent samples of the model"
    exact = PAIR.sample(5, rng=0).info.to_frame()
    assert np.array_equal(exact, [[1.0, 5.0, 5.0]] * 2)


def test_samples_go_through_files(tmp_path):
    X = few_draws()
    again = pickle.loads(pickle.dumps(X))
    assert np.array_equal(again, X)
    assert repr(pickle.loads(pickle.dumps(X.info))) == repr(X.info)
    assert np.array_equal(copy.deepcopy(X), X)
    np.save(tmp_path / "X.npy", X)
    loaded = np.load(tmp_path / "X.npy")
    assert type(loaded) is np.ndarray
    assert np.array_equal(loaded, X)


# ArviZ


def fake_arviz(monkeypatch, from_dict):
    module = types.ModuleType("arviz")
    module.from_dict = from_dict
    monkeypatch.setitem(sys.modules, "arviz", module)


def old_from_dict(posterior=None, *, sample_stats=None, attrs=None, **kwargs):
    return posterior, kwargs["posterior_attrs"]


def new_from_dict(data, *, name=None, attrs=None):
    return data["posterior"], attrs["posterior"]


@pytest.mark.parametrize("from_dict", [old_from_dict, new_from_dict])
def test_draws_go_to_either_arviz(monkeypatch, from_dict):
    fake_arviz(monkeypatch, from_dict)
    model = PolynomialModel(PAIR.basis, PAIR.theta, names=["chain", "a/b"])
    values, attrs = model.sample(50, rng=0, method="gibbs", return_inferencedata=True)
    assert list(values) == ["chain_", "a_b_"]
    assert values["chain_"].shape == (CHAINS, 20)
    x = np.stack([values["chain_"], values["a_b_"]], axis=2).swapaxes(0, 1).reshape(-1, 2)
    assert {tuple(row) for row in np.asarray(few_draws())} <= {tuple(row) for row in x}
    assert attrs == {"method": "Gibbs", "model": repr(model)}


def test_exact_samples_are_one_chain_to_arviz(monkeypatch):
    fake_arviz(monkeypatch, new_from_dict)
    values, _ = PAIR.sample(50, rng=0, return_inferencedata=True)
    assert np.array_equal(values["x1"], PAIR.sample(50, rng=0)[None, :, 1])


def test_names_that_arviz_cannot_tell_apart_are_refused(monkeypatch):
    fake_arviz(monkeypatch, new_from_dict)
    model = PolynomialModel(PAIR.basis, PAIR.theta, names=["draw", "draw_"])
    with pytest.raises(ValueError, match="rename"):
        model.sample(5, rng=0, return_inferencedata=True)


def test_without_arviz_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        PAIR.sample(5, rng=0, return_inferencedata=True)


def test_arviz_agrees_on_effective_samples():
    arviz = pytest.importorskip("arviz")
    X = PAIR.sample(FEW, rng=0, method="gibbs")
    data = fresh(PAIR).sample(FEW, rng=0, method="gibbs", return_inferencedata=True)
    assert data.posterior.attrs["method"] == "Gibbs"
    ess = arviz.ess(data)
    assert np.allclose([float(ess[name]) for name in PAIR.names], X.info.ess, rtol=1e-6)


# progress


@pytest.mark.parametrize(("method", "what"), [("gibbs", "a draw every"), ("exact", "drawing on a grid")])
def test_a_bar_goes_to_standard_error(monkeypatch, capfd, method, what):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    PAIR.sample(100, rng=0, method=method, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert what in err


@pytest.mark.parametrize("quiet", [False, None])
def test_there_is_no_bar_where_none_is_wanted_or_no_terminal(monkeypatch, capfd, quiet):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    PAIR.sample(100, rng=0, progress=quiet)
    assert capfd.readouterr() == ("", "")


def test_progress_is_yes_or_no():
    with pytest.raises(ValueError, match="progress must be True, False, None or a function .* not 'yes'"):
        PAIR.sample(10, rng=0, method="gibbs", progress="yes")
