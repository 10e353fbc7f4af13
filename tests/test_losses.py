"""What the losses promise: where their slopes vanish, and where they are one another's."""

from dataclasses import replace

import numpy as np
import pytest
from cases import EVERYWHERE, PAIR, WELLS, parameters_of, samples_of, screening
from test_objective import objective_of

from isodus.losses.pseudo_likelihood import PseudoLikelihoodLoss

TRUTHS = {"paper": (PAIR, 3.4), "double wells": (WELLS, 3.6)}


def slope_of_the_population(truth, half_width, loss, shift=0.0):
    """The largest derivative of the objectives of both nodes, by the sum over a grid, which is spectrally accurate."""
    grid = np.linspace(-half_width, half_width, 111)
    points = np.stack([g.ravel() for g in np.meshgrid(grid, grid, indexing="ij")], axis=1)
    density = np.exp(-truth.energy(points))
    thetas = [truth.theta[truth.basis.local(i).terms] + shift for i in range(2)]
    evaluated = objective_of(truth.basis, loss, points, density).evaluate([0, 1], thetas, hessian=False)
    return max(np.abs(e.gradient).max() for e in evaluated)


def pilot_of(truth, kind):
    """Local parameters of each node: random, or those of a model without conditional densities."""
    basis = truth.basis
    thetas = parameters_of(basis, seed=3, size=0.4)
    if kind == "no density":
        for i, theta in enumerate(thetas):
            theta[[basis.terms[k] for k in basis.local(i).terms].index((i,) * 4)] = -2.0
    return thetas


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize(
    ("pilot", "nu", "delta", "centre"),
    [
        (None, 2.0, 2.0, 0.0),
        (None, 0.05, 1.0, 0.0),
        (None, 0.5, 0.7, 0.4),
        ("random", 0.1, 2.0, 0.0),
        ("random", 0.3, 1.0, -0.4),
        ("random", 0.0, 2.0, 0.0),
        ("no density", 0.5, 2.0, 0.0),
        ("no density", 0.3, 2.0, 0.5),
    ],
)
def test_the_slope_of_screening_vanishes_at_the_truth(name, pilot, nu, delta, centre):
    """For every regularizing density, tilted by any pilot; and nowhere near."""
    truth, half_width = TRUTHS[name]
    loss = screening(truth.basis, nu or 1.0, delta, centre)
    loss = replace(loss, nu=loss.nu if nu else np.zeros(2), pilot=None if pilot is None else pilot_of(truth, pilot))
    assert slope_of_the_population(truth, half_width, loss) < 1e-9
    assert slope_of_the_population(truth, half_width, loss, shift=0.05) > 1e-3


@pytest.mark.parametrize("name", EVERYWHERE)
def test_at_its_own_pilot_screening_has_the_slope_of_pseudo_likelihood(name):
    """Without the regularizing power exactly, with little of it nearly; and all weights are one."""
    basis = EVERYWHERE[name]
    X, thetas, nodes = samples_of(basis), parameters_of(basis), range(basis.n_variables)
    expected = objective_of(basis, PseudoLikelihoodLoss(), X).evaluate(nodes, thetas)
    tilted = replace(screening(basis), pilot=thetas)
    for nu, tol in ((0.0, 1e-9), (1e-7, 1e-3)) if name != "heavy tails" else ((0.0, 1e-9),):  # there is no little of it
        loss = replace(tilted, nu=np.full(basis.n_variables, nu))
        for a, b in zip(expected, objective_of(basis, loss, X).evaluate(nodes, thetas), strict=True):
            assert np.allclose(a.gradient, b.gradient, rtol=tol, atol=tol)
            assert b.ess == pytest.approx(len(X), rel=tol)
