"""Fits with a penalty against proximal gradients, conditions of optimality, and each other."""

from dataclasses import replace

import numpy as np
import pytest

from isodus import MonomialBasis
from isodus.losses.pseudo_likelihood import PseudoLikelihoodLoss
from isodus.losses.score_matching import ScoreMatchingLoss
from isodus.losses.screening import Screening
from isodus.nodewise import GramNodes, SampledNodes, TiltedNodes
from isodus.path import LOOSE, at, begin, follow, settled
from isodus.pilots import confined, floors
from isodus.regression import independent, second_moments
from isodus.samples import ArraySamples
from isodus.solvers.proximal import lasso

TOL = 1e-9


def correlated(p, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)) / np.sqrt(p))
    return ArraySamples(X / X.std(axis=0), None, np.zeros(p), np.ones(p))


def screening(p, s, link):
    return Screening.of_degree(s, np.full(p, 1.8 ** -(s + 2.0)), np.full(p, 2.0), np.zeros(p), link)


def places(nodes, values, otherwise):
    return np.where(nodes.terms >= 0, values[nodes.terms], otherwise)


def problem(kind, p=4, n=400, degree=2, max_order=None, penalize_self=False):
    """A start of a path, and the nodes; weight 1 on interactions."""
    basis = MonomialBasis(p, degree, max_order=max_order)
    samples = correlated(p, n, seed=p + degree)
    low = np.full(len(basis), -np.inf)
    start = np.zeros(len(basis))
    if kind in ("gram", "likelihood"):
        low = floors(basis, np.ones(p))
        start = np.where(np.isfinite(low), 0.5, 0.0)
        start[basis.positions(basis.padded(np.stack([np.arange(p)] * 2, axis=1)))] = 0.5
    loss = {
        "likelihood": PseudoLikelihoodLoss(),
        "matching": ScoreMatchingLoss(),
        "log": screening(p, degree, "log"),
        "plain": screening(p, degree, "plain"),
    }.get(kind)
    nodes = GramNodes(basis, second_moments(samples)) if loss is None else SampledNodes(basis, loss, samples)
    weight = np.where((basis.orders == 1) & (not penalize_self), 0.0, 1.0)
    return begin(
        nodes,
        places(nodes, start, 0.0),
        places(nodes, weight, np.inf),
        places(nodes, low, -np.inf),
        tol=TOL,
        max_iter=100,
    )


def slow(start, l1):
    """Proximal gradients with backtracking, of all places of every node: nothing of the solver's is used but `full`."""
    there = start.nodes.terms >= 0
    cost = np.where(there, l1 * start.weight, 0.0)
    unit = np.where(there, start.unit, 1.0)
    theta, moved, momentum = start.empty.theta.copy(), start.empty.theta.copy(), np.ones(len(unit))
    t = np.full(len(unit), 1e-2)
    for _ in range(200_000):
        value, gradient = start.nodes.full(moved)
        pending = np.arange(len(unit))
        new = np.empty_like(theta)
        while len(pending):
            step = t[pending, None] / unit[pending] ** 2
            at = moved[pending] - step * gradient[pending]
            at = np.sign(at) * np.maximum(np.abs(at) - step * cost[pending], 0.0)
            at = np.where(there[pending], np.maximum(at, start.low[pending]), 0.0)
            new[pending] = at
            after, _ = start.nodes.full(np.where(np.isin(np.arange(len(unit)), pending)[:, None], new, moved))
            change = at - moved[pending]
            bound = value[pending] + np.sum(gradient[pending] * change + change**2 / (2 * step), axis=1)
            bad = ~(after[pending] <= bound + 1e-14 * np.abs(bound))
            t[pending[bad]] *= 0.5
            pending = pending[bad & (t[pending] > 1e-12)]
        restart = np.sum((moved - new) * (new - theta), axis=1) > 0
        following = np.where(restart, 1.0, (1 + np.sqrt(1 + 4 * momentum**2)) / 2)
        inertia = np.where(restart, 0.0, (momentum - 1) / following)
        far = np.abs(new - theta).max()
        before, theta, momentum = theta, new, following
        moved = np.maximum(new + inertia[:, None] * (new - before), start.low)
        if far < 1e-11:
            return theta
    raise AssertionError("the slow solution did not converge")


CASES = {
    "gram": dict(kind="gram", p=8, n=300),
    "likelihood, degree 2": dict(kind="likelihood", p=4, n=200),
    "matching, degree 4": dict(kind="matching", p=3, n=400, degree=4, max_order=2),
    "screening, log": dict(kind="log", p=5, n=300),
    "screening, plain": dict(kind="plain", p=5, n=300),
    "screening, log, all terms penalised": dict(kind="log", p=4, n=300, penalize_self=True),
}


@pytest.mark.parametrize("name", CASES)
def test_solution_is_that_of_proximal_gradients(name):
    start = problem(**CASES[name])
    for share in (0.6, 0.2):
        (found,) = follow(start, [share * start.l1_max])
        assert found.residual.max() <= TOL
        assert np.count_nonzero(found.theta[start.weight > 0]) > 0
        np.testing.assert_allclose(found.theta, slow(start, found.l1), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("kind", "degree"),
    [("gram", 2), *((kind, degree) for kind in ("likelihood", "matching", "log", "plain") for degree in (2, 4))],
)
def test_conditions_of_optimality_hold_along_a_path(kind, degree):
    start = problem(kind, p=5, n=600, degree=degree, max_order=3)
    for found in follow(start, start.l1_max * np.geomspace(0.9, 0.05, 6)):
        value, gradient = start.nodes.full(found.theta)
        np.testing.assert_allclose(value, found.value, rtol=1e-12)
        cost = found.l1 * start.weight
        free = (start.nodes.terms >= 0) & ~((found.theta <= start.low) & (gradient > 0))
        on = free & (found.theta != 0)
        assert np.abs((gradient + np.where(on, cost, 0.0) * np.sign(found.theta)) / start.unit)[on].max() <= TOL
        assert (np.abs(gradient) <= cost + TOL * start.unit)[free & ~on].all()


@pytest.mark.parametrize("kind", ["gram", "likelihood", "matching", "log", "plain"])
def test_the_model_is_empty_from_the_largest_penalty_on(kind):
    start = problem(kind, p=6)
    interactions = start.weight > 0
    for factor in (10.0, 1.0):
        (found,) = follow(start, [factor * start.l1_max])
        assert not found.theta[interactions].any()
    (found,) = follow(start, [(1 - 1e-6) * start.l1_max])
    assert found.theta[interactions & (start.nodes.terms >= 0)].any()


def test_the_gram_matrix_gives_what_samples_give():
    gram, sampled = problem("gram", p=6), problem("likelihood", p=6)
    basis = sampled.nodes.objective.basis
    l1 = 0.3 * gram.l1_max

    def by_term(start, l1):
        # weights are in units of noise, which the two measure each in its own way: compare with the same costs
        weight = np.where(start.weight > 0, np.where(start.nodes.terms >= 0, 1.0, np.inf), 0.0)
        (found,) = follow(replace(start, weight=weight), [l1])
        out = np.zeros((basis.n_variables, len(basis)))
        row, place = np.nonzero(start.nodes.terms >= 0)
        out[row, start.nodes.terms[row, place]] = found.theta[row, place]
        return out

    np.testing.assert_allclose(by_term(gram, l1), by_term(sampled, l1), atol=1e-8)


def test_a_path_ends_where_a_cold_start_does():
    start = problem("gram", p=12, n=60)
    end = 0.05 * start.l1_max
    *_, warm = follow(start, np.geomspace(start.l1_max, end, 20))
    (cold,) = follow(start, [end])
    np.testing.assert_allclose(warm.theta, cold.theta, atol=1e-7)


def test_quadratic_problems_with_a_penalty_and_floors():
    rng = np.random.default_rng(0)
    q, A = 40, 12
    R = rng.standard_normal((q, A, A + 2))
    H = R @ R.transpose(0, 2, 1) / A + 0.01 * np.eye(A)
    g, theta = rng.standard_normal((q, A)), rng.standard_normal((q, A))
    cost = np.abs(rng.standard_normal((q, A))) * (rng.random((q, A)) < 0.8)
    low = np.where(rng.random((q, A)) < 0.2, 0.3, -np.inf)
    theta = np.maximum(theta, low)
    x = lasso(H, g, theta, cost, low)
    slope = g + np.einsum("ijk,ik->ij", H, x - theta)
    assert (x >= low).all()
    held = (x <= low) & (slope + cost * np.sign(x) >= 0)
    free = ~held & (x != 0)
    np.testing.assert_allclose((slope + cost * np.sign(x))[free], 0, atol=1e-9)
    zero = ~held & (x == 0)
    assert (np.abs(slope)[zero] <= cost[zero] + 1e-9).all()
    assert zero.any()
    assert held.any()


def test_tilted_objectives_end_at_the_optimum_of_pseudo_likelihood():
    """What tilts is the solution at a stronger penalty; the optimum does not depend on it."""
    samples = correlated(4, 1500, seed=9)
    X = samples.X - 0.15 * samples.X**3 / 3  # not of the family
    samples = ArraySamples(X / X.std(axis=0), None, np.zeros(4), np.ones(4))
    basis = MonomialBasis(4, 4, max_order=3)
    low = floors(basis, np.ones(4))
    theta = confined(independent(basis, samples), low)
    weight = np.where(basis.orders == 1, 0.0, 1.0)
    found = []
    for nodes in (TiltedNodes(basis, samples), SampledNodes(basis, PseudoLikelihoodLoss(), samples)):
        by_place = places(nodes, theta, 0.0), places(nodes, weight, np.inf), places(nodes, low, -np.inf)
        start = begin(nodes, *by_place, tol=1e-8, max_iter=100)
        l1 = 0.15 * start.l1_max
        if isinstance(nodes, TiltedNodes):
            *_, last = follow(start, np.geomspace(start.l1_max, l1, 8), tol=LOOSE * l1)
            assert last.residual.max() < 0.05 * l1
            found += [settled(start, last), at(start, l1)]
        else:
            found.append(at(start, l1))
    for one in found:
        assert one.residual.max() <= 1e-8
        np.testing.assert_allclose(one.theta, found[0].theta, atol=1e-6)
    assert 0 < np.count_nonzero(found[0].theta[weight[nodes.terms] > 0]) < 200


def test_the_tilted_objective_has_the_slopes_of_pseudo_likelihood_at_its_pilot():
    samples = correlated(3, 500, seed=1)
    basis = MonomialBasis(3, 4, max_order=2)
    nodes = TiltedNodes(basis, samples)
    rng = np.random.default_rng(0)
    theta = np.where(nodes.terms >= 0, 0.05 * rng.standard_normal(nodes.terms.shape), 0.0)
    theta += places(nodes, np.where(np.isfinite(floors(basis, np.ones(3))), 0.4, 0.0), 0.0)
    value = nodes.tilt(theta)
    exact_value, exact_gradient = nodes.exact.full(theta)
    np.testing.assert_allclose(value, exact_value, rtol=1e-7)
    tilted_value, gradient = nodes.full(theta)
    np.testing.assert_allclose(tilted_value, 0.0, atol=1e-12)
    np.testing.assert_allclose(gradient, exact_gradient, atol=1e-6)
