"""Nodes with an L1 penalty against independent optima, for each loss; paths, costs and what is kept."""

from typing import NamedTuple

import numpy as np
import pytest
import optima
from fit import optima
from numpy.testing import assert_allclose

from isodus.axes import Line, Values, WholeLine
from isodus.data import as_samples
from isodus.fit.lasso import missed
from isodus.fit.objective import Objective
from isodus.fit.sparse import SparseProblem, strengths_to
from isodus.losses import Loss, PowerScreening, PseudoLikelihoodLoss, ScoreMatchingLoss
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
CASES = {
    "RISE": Case(PowerScreening((1.0,) * 4, 3.0, "mean_exp"), "spins", 2, lambda rows, axis: optima.spins(rows, False)),
    "logRISE": Case(PowerScreening((1.0,) * 4, 3.0), "spins", 2, lambda rows, axis: optima.spins(rows, True)),
    "RPLE": Case(PseudoLikelihoodLoss(), "spins", 2, lambda rows, axis: optima.conditional_spins(rows)),
    "triples of spins": Case(PseudoLikelihoodLoss(), "spins", 3, lambda rows, axis: optima.conditional_spins(rows), 1, 3),
    "Gaussian, plain": Case(PowerScreening((2.0,) * 4, 4.0, "mean_exp"), "gaussian in x", 2,
                            lambda rows, axis: optima.screening(rows, 2.0, 4.0, False)),
    "Gaussian, log": Case(PowerScreening((2.0,) * 4, 4.0), "gaussian in x", 2,
                          lambda rows, axis: optima.screening(rows, 2.0, 4.0, True)),
    "Gaussian, no linear terms": Case(PowerScreening((2.0,) * 4, 4.0), "gaussian in x", 2,
                                      lambda rows, axis: optima.screening(rows, 2.0, 4.0, True), 2),
    "Gaussian, pseudo-likelihood": Case(PseudoLikelihoodLoss(), "shifted", 2, lambda rows, axis: optima.gaussian(rows)),
    "quartic, pseudo-likelihood": Case(PseudoLikelihoodLoss(), "line", 4,
                                       lambda rows, axis: optima.conditional(rows, axis.low, axis.high, axis.tail)),
    "quartic, no linear terms": Case(PseudoLikelihoodLoss(), "line in x", 4,
                                     lambda rows, axis: optima.conditional(rows, axis.low, axis.high, axis.tail), 2),
    "quartic, screening": Case(PowerScreening((0.3,) * 3, 6.0), "line", 4,
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


@pytest.mark.parametrize("case", EACH)
@pytest.mark.parametrize("unit", ["noise", "raw"])
def test_independent_optima(case, unit):
    f = objective(case)
    weight = free_own(f)
    problem = SparseProblem(f, weight, unit == "noise", tol=1e-8)
    nodes = list(written_out(case, f))
    costs, starts = {}, {}
    for i, places, F, scores in nodes:
        starts[i] = optima.penalised(F, np.where(weight[places] == 0, 0.0, np.inf), problem.empty.taus[i])
        noise = np.sqrt(np.mean(scores(starts[i]) ** 2, axis=0)) if unit == "noise" else 1.0
        costs[i] = weight[places] * noise
    for share in (0.5, 0.1, 0.02):
        strength = share * problem.largest
        found = problem.at(strength)
        assert found.status == "converged"
        for i, _, F, _ in nodes:
            best = optima.penalised(F, strength * costs[i], found.taus[i])
            assert_allclose(found.taus[i], best, rtol=0, atol=1e-7 * (1 + np.abs(best).max()))
            assert np.array_equal(found.taus[i] == 0, best == 0)
