"""Nodes with an L1 penalty against independent optima, for each loss; paths, costs and what is kept."""

from typing import NamedTuple

import numpy as np
import pytest
from fit import optima
from numpy.testing import assert_allclose

from isodus.axes import Line, Values, WholeLine
from isodus.data import as_samples
from isodus.fit.lasso import missed
from isodus.fit.objective import Objective
from isodus.fit.sparse import SparseProblem, strengths_to
from isodus.losses import Loss, PowerReference, PseudoLikelihoodLoss, ReferenceScreening, ScoreMatchingLoss
from isodus.terms import Terms, keys_up_to


class Case(NamedTuple):
    """A loss on some columns, terms in powers of y, and F of a node in another way: `written(rows, axis)`."""

    loss: Loss
    columns: str
    degree: int
    written: object
    least: int = 1
    order: int = 2


def spins(n, p=4, seed=0):
    """Draws of a model of pairs and fields."""
    rng = np.random.default_rng(seed)
    states = np.array(np.meshgrid(*[[-1.0, 1.0]] * p)).reshape(p, -1).T
    J = np.triu(rng.choice([0.0, 0.4, -0.3], (p, p)), 1)
    mass = np.exp(np.einsum("ni,ij,nj->n", states, J, states) + states @ rng.normal(0, 0.3, p))
    return states[rng.choice(len(states), n, p=mass / mass.sum())]


def curved(n, p=3, seed=0):
    """Correlated columns with lighter tails than a Gaussian's."""
    rng = np.random.default_rng(seed)
    X = 2.5 * rng.beta(2.0, 2.0, (n, p)) - 1.25
    X[:, 1] += 0.3 * X[:, 0]
    return X + 0.2 * X[:, :1] ** 2


def gaussian(n, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ (np.eye(p) + 0.3 * rng.standard_normal((p, p)))


COLUMNS = {
    "spins": lambda: (spins(400), lambda x, d: Values.fit(x, 1, values=[-1.0, 1.0]).in_units(0.0, 1.0)),
    "gaussian in x": lambda: (gaussian(300), lambda x, d: WholeLine.fit(x, d).in_units(0.0, 1.0)),
    "shifted": lambda: (5 + 3 * gaussian(300), WholeLine.fit),
    "line": lambda: (3 + 2 * curved(300), Line.fit),
    "line in x": lambda: (curved(300), lambda x, d: Line.fit(x, d).in_units(0.0, 1.0)),
}


def _spins(link):
    return ReferenceScreening(PowerReference(1.0), 1, link)


CASES = {
    "RISE": Case(_spins("mean_exp"), "spins", 2, lambda rows, axis: optima.spins(rows, False)),
    "logRISE": Case(_spins("log_mean"), "spins", 2, lambda rows, axis: optima.spins(rows, True)),
    "RPLE": Case(PseudoLikelihoodLoss(), "spins", 2, lambda rows, axis: optima.conditional_spins(rows)),
    "triples of spins": Case(PseudoLikelihoodLoss(), "spins", 3,
                             lambda rows, axis: optima.conditional_spins(rows), 1, 3),
    "Gaussian, plain": Case(ReferenceScreening(PowerReference(2.0), 2, "mean_exp"), "gaussian in x", 2,
                            lambda rows, axis: optima.screening(rows, 2.0, 4.0, False)),
    "Gaussian, log": Case(ReferenceScreening(PowerReference(2.0), 2), "gaussian in x", 2,
                          lambda rows, axis: optima.screening(rows, 2.0, 4.0, True)),
    "Gaussian, no linear terms": Case(ReferenceScreening(PowerReference(2.0), 2), "gaussian in x", 2,
                                      lambda rows, axis: optima.screening(rows, 2.0, 4.0, True), 2),
    "Gaussian, pseudo-likelihood": Case(PseudoLikelihoodLoss(), "shifted", 2, lambda rows, axis: optima.gaussian(rows)),
    "quartic, pseudo-likelihood": Case(PseudoLikelihoodLoss(), "line", 4,
                                       lambda rows, axis: optima.conditional(rows, axis.low, axis.high, axis.tail)),
    "quartic, no linear terms": Case(PseudoLikelihoodLoss(), "line in x", 4,
                                     lambda rows, axis: optima.conditional(rows, axis.low, axis.high, axis.tail), 2),
    "quartic, screening": Case(ReferenceScreening(PowerReference(0.3), 4), "line", 4,
                               lambda rows, axis: optima.screening(rows, 0.3, 6.0, True)),
    "quartic, score matching": Case(ScoreMatchingLoss(), "line", 4, lambda rows, axis: optima.score_matching(rows)),
}  # fmt: skip


def objective(case, weight=None, rows=slice(None), keys=None):
    X, make = COLUMNS[case.columns]()
    X = X[rows]
    axes = [make(x, case.degree) for x in X.T]
    keys = keys_up_to(axes, case.degree, case.order, case.least) if keys is None else keys
    return Objective(case.loss, Terms(axes, keys, None, in_powers=True), as_samples(X, weight), 1)


def free_own(f):
    """c = 1 of interactions, 0 of terms of one variable."""
    return (f.terms.orders > 1).astype(float)


def written_out(case, f, weight=None):
    """F and scores of each node, and its keys."""
    X = f.samples.X
    in_x = case.columns in ("spins", "gaussian in x", "line in x")
    Y = X if in_x else np.stack([axis.coordinate(x) for axis, x in zip(f.axes, X.T, strict=True)], 1)
    for i, (places, _) in enumerate(f.terms.local_T):
        keys = [f.terms.keys[k] for k in places]
        yield i, places, *case.written(optima.Rows(Y, keys, i, weight), f.axes[i])


EACH = [pytest.param(case, id=name) for name, case in CASES.items()]


def check_optimum(case, f, problem, weight, found, in_noise=True, rows=None, atol=None):
    """The unknowns of each node are those of an independent solver."""
    assert found.status == "converged"
    atol = (1e-8 if case.columns == "spins" else 1e-7) if atol is None else atol
    for i, places, F, scores in written_out(case, f, rows):
        c = weight[places]
        start = optima.penalised(F, np.where(c == 0, 0.0, np.inf), problem.empty.taus[i])
        w = np.full(f.samples.n_rows, 1 / f.samples.n_rows) if rows is None else rows / rows.sum()
        cost = np.where(np.isfinite(c), found.strength * np.where(np.isfinite(c), c, 0.0), np.inf)
        if in_noise:
            cost = np.where(cost > 0, cost, 0.0) * np.sqrt(w @ scores(start) ** 2)
        best = optima.penalised(F, cost, found.taus[i])
        assert_allclose(found.taus[i], best, rtol=0, atol=atol * (1 + np.abs(best).max()))
        assert np.array_equal(found.taus[i] == 0, best == 0)


@pytest.mark.parametrize("case", EACH)
@pytest.mark.parametrize("unit", ["noise", "raw"])
def test_independent_optima(case, unit):
    f = objective(case)
    weight = free_own(f)
    problem = SparseProblem(f, weight, unit == "noise", tol=1e-8)
    for share in (0.3, 0.02):
        check_optimum(case, f, problem, weight, problem.at(share * problem.largest), unit == "noise")


@pytest.mark.parametrize("name", ["logRISE", "Gaussian, plain", "quartic, score matching"])
def test_weights_of_rows_and_of_terms(name):
    """Counts of rows; terms twice as dear, free, left out, and terms of one variable that are penalised."""
    case = CASES[name]
    rows = np.random.default_rng(1).integers(0, 4, len(COLUMNS[case.columns]()[0])).astype(float)
    kept = np.flatnonzero(rows)
    f = objective(case, rows[kept], kept)
    weight = np.random.default_rng(2).choice([0.5, 1.0, 2.0, np.inf, 0.0], len(f.terms), p=[0.3, 0.3, 0.2, 0.1, 0.1])
    highest = f.terms.degrees == case.degree if case.columns != "spins" else np.zeros(len(f.terms), bool)
    weight[highest & (f.terms.orders == 1)] = 0.0  # without these there is no density
    problem = SparseProblem(f, weight, tol=1e-8)
    for share in (0.3, 0.03):
        check_optimum(case, f, problem, weight, problem.at(share * problem.largest), rows=rows[kept])


@pytest.mark.parametrize("name", ["RISE", "RPLE"])
def test_all_terms_penalised(name):
    """Nothing is free: the empty model is θ = 0, and λ large leaves it."""
    f = objective(CASES[name])
    weight = np.ones(len(f.terms))
    problem = SparseProblem(f, weight, tol=1e-8)
    assert all(not tau.any() for tau in problem.at(1.001 * problem.largest).taus.values())
    assert any(tau.any() for tau in problem.at(0.999 * problem.largest).taus.values())
    check_optimum(CASES[name], f, problem, weight, problem.at(0.1 * problem.largest))


def test_a_strength_of_zero_is_no_penalty():
    case = CASES["logRISE"]
    f = objective(case)
    problem = SparseProblem(f, free_own(f), tol=1e-8)
    found = problem.at(0.0)
    for i, _, F, _ in written_out(case, f):
        assert np.abs(F(found.taus[i])[1]).max() < 1e-9
        assert found.taus[i].all()


@pytest.mark.parametrize("name", ["Gaussian, pseudo-likelihood", "quartic, pseudo-likelihood", "RPLE"])
def test_conditions_of_optimality_of_tilted_screening(name):
    """At the answer, with the pilot that it was tilted by; it is near pseudo-likelihood's own optimum, or that."""
    case = CASES[name]
    f = objective(case)
    problem = SparseProblem(f, free_own(f), n_tilts=2, tol=1e-7)
    plain = SparseProblem(f, free_own(f), tol=1e-7)
    for share in (0.3, 0.05):
        found = problem.at(share * plain.largest)
        other = plain.at(share * plain.largest)
        slopes = problem.screening.at_nodes(found.taus, 1)
        tilted = problem.screening.loss != f.loss
        assert tilted == (problem.distance < 0.5)
        assert tilted or name != "RPLE"
        for i, tau in found.taus.items():
            off = missed(tau, slopes[i].gradient, found.strength * problem.cost[i]) / problem.noise[i]
            assert off.max() * np.sqrt(f.n) < 1e-6
            assert np.abs((tau - other.taus[i]) * problem.noise[i]).max() * np.sqrt(f.n) < 0.5


def test_tilts_that_end_far_from_pseudo_likelihood_are_given_up(monkeypatch):
    f = objective(CASES["quartic, pseudo-likelihood"])
    monkeypatch.setattr("isodus.fit.sparse.FAR", 0.0)
    problem, plain = (SparseProblem(f, free_own(f), n_tilts=tilts, tol=1e-7) for tilts in (2, 0))
    found, other = problem.at(0.1 * plain.largest), plain.at(0.1 * plain.largest)
    assert problem.distance > 0
    assert problem.screening.loss == f.loss
    for i, tau in found.taus.items():
        assert_allclose(tau, other.taus[i], atol=1e-6)


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize("name", ["logRISE", "quartic, score matching", "quartic, pseudo-likelihood"])
def test_a_path_is_what_each_strength_is_by_itself(name):
    """Warm starts and strong rules change nothing, also on a coarse path, whose slopes change by more than λ."""
    f = objective(CASES[name])
    problem = SparseProblem(f, free_own(f), tol=1e-8)
    for strengths in ([1.2, 1.0, 0.7, 0.4, 0.2, 0.1], [1.0, 0.02]):
        strengths = [share * problem.largest for share in strengths]
        for found in problem.path(strengths, tol=1e-8):
            cold = SparseProblem(f, free_own(f), tol=1e-8)
            alone = cold.after(cold.empty, found.strength, 1e-8)
            assert found.status == "converged"
            for i, tau in found.taus.items():
                assert_allclose(tau, alone.taus[i], atol=1e-8 * (1 + np.abs(tau).max()))
            assert np.array_equal(problem.kept(found, "or"), cold.kept(alone, "or"))


def test_strong_rules_leave_out_nothing_that_enters(monkeypatch):
    """Without them every term is in the working set; the answers are the same."""
    f = objective(CASES["RPLE"])
    ruled, whole = (SparseProblem(f, free_own(f), tol=1e-8) for _ in range(2))
    solved = SparseProblem._solved
    everything = lambda self, f, strength, taus, working, tol: solved(self, f, strength, taus, self.there, tol)
    strengths = ruled.largest * np.geomspace(1, 0.02, 8)
    first = list(ruled.path(strengths, tol=1e-8))
    monkeypatch.setattr(SparseProblem, "_solved", everything)
    for one, other in zip(first, whole.path(strengths, tol=1e-8), strict=True):
        for i, tau in one.taus.items():
            assert_allclose(tau, other.taus[i], atol=1e-8)


def test_slopes_that_jump_are_taken_in_afterwards():
    """A term whose slope is small until another enters: strong rules miss it, the look at all slopes does not."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 3))
    X = np.column_stack([A[:, 0] + 0.2 * A[:, 2], A[:, 1], A[:, 0] + A[:, 1]]) @ np.diag([1.0, 1.0, 1.0])
    axes = [WholeLine.fit(x, 2) for x in X.T]
    f = Objective(PseudoLikelihoodLoss(), Terms(axes, keys_up_to(axes, 2, 2), None, in_powers=True), as_samples(X))
    problem = SparseProblem(f, free_own(f), tol=1e-8)
    found = list(problem.path([problem.largest, 0.3 * problem.largest, 1e-3 * problem.largest], tol=1e-8))[-1]
    off = [missed(found.taus[i], found.slopes[i], found.strength * problem.cost[i]) for i in range(3)]
    assert max(map(np.max, off)) < 1e-8
    assert max(found.missed) < 1e-8


def test_fewer_rows_than_terms():
    """12 rows, 6 columns of 5 interactions and two free terms each: an optimum at every strength of a path."""
    X = gaussian(12, 6)
    axes = [Line.fit(x, 2) for x in X.T]
    f = Objective(PseudoLikelihoodLoss(), Terms(axes, keys_up_to(axes, 3, 3), None, in_powers=True), as_samples(X))
    weight = (f.terms.orders > 1).astype(float)
    problem = SparseProblem(f, weight, tol=1e-6)
    for found in problem.path(problem.largest * np.geomspace(1, 0.2, 6), tol=1e-6):
        assert found.status == "converged"
        assert np.max(found.missed) < 1e-6


def test_strengths_on_the_way():
    way = strengths_to(10.0, 0.5)
    assert way[-1] == 0.5
    assert np.all(np.diff(way) < 0)
    assert way[0] < 10
    assert min(b / a for a, b in zip([10.0, *way], way, strict=False)) >= 0.6 - 1e-12
    assert strengths_to(10.0, 20.0) == [20.0]
    assert strengths_to(10.0, 0.0) == [0.0]
    assert strengths_to(0.0, 1.0) == [1.0]


# ---------------------------------------------------------------- what is kept, and joint values


def test_rules_and_joint_values():
    """Two nodes per pair: "or" if one keeps it, "and" if both do; the mean counts zeros, "geometric" does not."""
    f = objective(CASES["logRISE"])
    problem = SparseProblem(f, free_own(f), tol=1e-8)
    strengths = problem.largest * np.geomspace(1, 0.05, 12)
    found = next(s for s in problem.path(strengths) if problem.kept(s, "or").sum() > problem.kept(s, "and").sum() > 0)
    place = {key: k for k, key in enumerate(f.terms.keys)}
    value = lambda i, key: found.taus[i][list(problem.unknowns[i]).index(place[key])]
    for rule in ("or", "and"):
        kept = problem.kept(found, rule)
        mean, geometric = (problem.joint(found, rule, kind) for kind in ("mean", "geometric"))
        for key, k in place.items():
            values = np.array([value(i, key) for i in key])
            inside = values.any() if rule == "or" else values.all()
            assert kept[k] == (inside and len(key) == 2)
            assert (key in mean) == (key in geometric) == bool(inside or len(key) == 1)
            if key in mean:
                some = values[values != 0]
                assert mean[key] == pytest.approx(values.mean(), rel=1e-12)
                size = np.exp(np.mean(np.log(np.abs(some))))
                assert geometric[key] == pytest.approx(np.sign(values.mean()) * size, rel=1e-12)
        own, of = problem.sizes(kept)
        assert own.sum() == 2 * problem.count(kept)
        assert of.tolist() == [3, 3, 3, 3]


def test_losses_of_kept_terms_are_least():
    """Of pseudo-likelihood without a penalty, whatever the loss of the problem; asked again, they are remembered."""
    f = objective(CASES["logRISE"])
    problem = SparseProblem(f, free_own(f), tol=1e-8)
    for share in (0.3, 0.05, 0.3):
        kept = problem.kept(problem.at(share * problem.largest), "or")
        losses = problem.losses(kept)
        inside = kept | problem.free
        for i, places, F, _ in written_out(CASES["RPLE"], f):
            t = optima.penalised(F, np.where(inside[places], 0.0, np.inf))
            assert 2 * f.n * (losses[i] - F(t)[0]) == pytest.approx(0, abs=0.01)
