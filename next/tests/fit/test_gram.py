"""The sparse Gaussian on its moments beside the same problem on rows, and beside closed forms."""

import numpy as np
import pytest
from fit import optima
from numpy.testing import assert_allclose

from isodus.axes import WholeLine
from isodus.data import as_samples
from isodus.fit.gram import GramProblem
from isodus.fit.objective import Objective
from isodus.fit.sparse import SparseProblem
from isodus.losses import PseudoLikelihoodLoss, ScoreMatchingLoss
from isodus.terms import Terms, keys_up_to

P = 5


def columns(n=200, p=P, seed=0):
    rng = np.random.default_rng(seed)
    return 0.7 + (rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))) * np.arange(1, p + 1)


def costs(kind, own, seed=1):
    """c of pairs, and `own` on the diagonal."""
    rng = np.random.default_rng(seed)
    weight = np.ones((P, P))
    if kind == "mixed":
        weight = rng.choice([0.0, 0.5, 1.0, 2.0, np.inf], (P, P), p=[0.15, 0.3, 0.3, 0.15, 0.1])
    weight = np.triu(weight, 1) + np.triu(weight, 1).T
    np.fill_diagonal(weight, own)
    return weight


def both(X, weight, linear, scored, in_noise=False, row_weight=None, solve=True):
    """The problem on moments and on rows, of powers of x."""
    loss = ScoreMatchingLoss() if scored else PseudoLikelihoodLoss()
    axes = [WholeLine.fit(x, 2).in_units(0.0, 1.0) for x in X.T]
    terms = Terms(axes, keys_up_to(axes, 2, 2, 1 if linear else 2), None, in_powers=True)
    f = Objective(loss, terms, as_samples(X, row_weight))
    share = np.full(len(X), 1 / len(X)) if row_weight is None else row_weight / row_weight.sum()
    mean = share @ X
    M = (X * share[:, None]).T @ X - (np.outer(mean, mean) if linear else 0)
    length = 1 / np.array([axis.scale for axis in axes])  # derivatives are by y = (x − location)/scale
    gram = GramProblem(M, mean if linear else None, weight, f.n, in_noise, scored, length)
    c = own_costs(terms, weight)
    return gram, f if not solve else SparseProblem(f, c, in_noise, tol=1e-9, max_iter=200)


def thetas(problem, solution):
    """θ_ij of each node i, (p, p), from the unknowns of nodes."""
    out = np.zeros((P, P))
    for i, places in enumerate(problem.unknowns):
        for k, value in zip(places, solution.taus[i], strict=True):
            key = problem.f.terms.keys[k]
            if len(key) == 2:
                out[i, key[0] if key[1] == i else key[1]] = value
    return out


def check_by_itself(X, weight, linear, row_weight):
    """Squares that are penalised: no density is left without them, and so there is no path on rows."""
    gram, f = both(X, weight, linear, False, row_weight=row_weight, solve=False)
    for share in (0.3, 0.03):
        strength, found = share * gram.largest, gram.at(share * gram.largest)
        for i, (places, _) in enumerate(f.terms.local_T):
            keys = [f.terms.keys[k] for k in places]
            F, _ = optima.gaussian(optima.Rows(X, keys, i, row_weight))
            other = [0 if len(set(key)) == 1 else sum(key) - i for key in keys]
            cost = strength * np.array([weight[i, i if len(set(key)) == 1 else j] if len(key) == 2 else 0.0
                                        for key, j in zip(keys, other, strict=True)])  # fmt: skip
            start = np.array([found.theta[i, i if len(set(key)) == 1 else j] if len(key) == 2 else 0.0
                              for key, j in zip(keys, other, strict=True)])  # fmt: skip
            if linear:
                start[[len(key) == 1 for key in keys]] = -found.theta[i] @ X.mean(axis=0)
            best = optima.penalised(F, cost, start)
            pairs = [len(key) == 2 for key in keys]
            assert_allclose(start[pairs], best[pairs], atol=1e-8)


def own_costs(terms, weight):
    """c of each key: of pairs and, on the diagonal, of squares."""
    return np.array([weight[key[0], key[-1]] if len(key) == 2 else 0.0 for key in terms.keys])


@pytest.mark.parametrize("scored", [False, True], ids=["pseudo-likelihood", "score matching"])
@pytest.mark.parametrize("linear", [True, False], ids=["centred", "without linear terms"])
@pytest.mark.parametrize("own", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["equal", "mixed"])
def test_the_same_problem_on_rows(scored, linear, own, kind):
    X, weight = columns(), costs(kind, own)
    row_weight = np.random.default_rng(3).integers(1, 4, len(X)).astype(float)
    if own and not scored:
        return check_by_itself(X, weight, linear, row_weight)
    gram, rows = both(X, weight, linear, scored, row_weight=row_weight)
    if not own:  # with own terms penalised the empty models differ
        assert gram.largest == pytest.approx(rows.largest, rel=1e-8)
    for share in (0.5, 0.1, 0.01):
        strength = share * gram.largest
        found, other = gram.at(strength), rows.at(strength)
        expected = thetas(rows, other)
        assert found.status == other.status == "converged"
        assert_allclose(found.theta, expected, rtol=0, atol=1e-8 * (1 + np.abs(expected).max()))
        for rule in ("or", "and") if not own else ():  # on moments only pairs are counted
            kept, same = gram.kept(found, rule), rows.kept(other, rule)
            assert gram.count(kept) == rows.count(same)
            assert_allclose(gram.sizes(kept), rows.sizes(same))
            for consensus in ("mean", "geometric"):
                one, two = gram.joint(found, rule, consensus), rows.joint(other, rule, consensus)
                assert set(one) == set(two)
                pairs = [key for key in one if len(key) == 2]
                assert_allclose([one[key] for key in pairs], [two[key] for key in pairs], atol=1e-8)


@pytest.mark.parametrize("linear", [True, False], ids=["centred", "without linear terms"])
def test_losses_are_least_and_those_of_joint_values(linear):
    """Of kept pairs without a penalty, node by node, and of one θ for all: from the conditional Gaussians of rows."""
    X = columns()
    weight = costs("mixed", 0.0)
    gram, _ = both(X, weight, linear, False)
    found = gram.at(0.1 * gram.largest)
    for rule in ("or", "and"):
        kept = gram.kept(found, rule)
        inside = kept | ((weight == 0) & ~np.eye(P, dtype=bool))
        Z = X - X.mean(axis=0) if linear else X
        losses = gram.losses(kept)
        for i in range(P):
            j = np.flatnonzero(inside[i])
            r = Z[:, i] - Z[:, j] @ np.linalg.lstsq(Z[:, j], Z[:, i], rcond=None)[0]
            least = 0.5 * np.log(2 * np.pi * np.mean(r**2)) + 0.5  # −⟨log P⟩
            assert losses[i] - losses[0] == pytest.approx(least - gaussian_loss(Z, 0, inside), abs=1e-9)
        values = gram.joint(found, rule, "mean")
        J = np.zeros((P, P))
        for key, value in values.items():
            if len(key) == 2:
                J[key[0], key[-1]] += value
                J[key[-1], key[0]] += value
        assert_allclose(gram.joint_losses(values), conditional_losses(X, J, values, linear), rtol=1e-10)
    S = Z.T @ Z / len(Z)
    assert_allclose(gram.gaussian_losses(), conditional_losses(Z, np.linalg.inv(S), None, False), rtol=1e-9)


def gaussian_loss(Z, i, inside):
    """−⟨log P(x_i | rest)⟩ at its least, by regression on the columns that are inside."""
    j = np.flatnonzero(inside[i])
    r = Z[:, i] - Z[:, j] @ np.linalg.lstsq(Z[:, j], Z[:, i], rcond=None)[0]
    return 0.5 * np.log(2 * np.pi * np.mean(r**2)) + 0.5


def conditional_losses(X, J, values, linear):
    """−⟨log P(x_i | rest)⟩ under exp(−xᵀJx/2 − hᵀx)."""
    h = np.array([values[(i,)] for i in range(P)]) if linear else np.zeros(P)
    d = np.diag(J)
    mean = -(X @ (J - np.diag(d)) + h) / d
    return np.mean(0.5 * np.log(2 * np.pi / d) + 0.5 * d * (X - mean) ** 2, axis=0)


@pytest.mark.parametrize("scored", [False, True])
def test_units_of_noise_are_those_of_rows(scored):
    """√⟨s²⟩ of a slope is σ_i σ_j where columns are independent; rows have its estimate."""
    X = np.random.default_rng(0).standard_normal((20_000, P)) * np.arange(1, P + 1)
    gram, rows = both(X, costs("equal", 0.0), True, scored, in_noise=True)
    assert gram.largest == pytest.approx(rows.largest, rel=0.05)
    found, other = gram.at(0.3 * gram.largest), rows.at(0.3 * gram.largest)
    assert_allclose(found.theta, thetas(rows, other), atol=0.05 * np.abs(found.theta).max())


@pytest.mark.parametrize("scored", [False, True])
def test_a_path_of_moments_is_what_each_strength_is_by_itself(scored):
    X = columns(40, 12)
    M = np.cov(X.T, bias=True)
    weight = 1.0 - np.eye(12)
    gram = GramProblem(M, X.mean(axis=0), weight, 40, True, scored)
    for found in gram.path(gram.largest * np.geomspace(1.2, 0.02, 9)):
        cold = GramProblem(M, X.mean(axis=0), weight, 40, True, scored).at(found.strength)
        assert_allclose(found.theta, cold.theta, rtol=0, atol=1e-9 * (1 + np.abs(cold.theta).max()))
        assert found.missed.max() < 1e-11


def test_fewer_rows_than_columns():
    """No more than the conditions of optimality are known; they hold at every strength, down to small ones."""
    X = columns(15, 30)
    gram = GramProblem(np.cov(X.T, bias=True), X.mean(axis=0), 1.0 - np.eye(30), 15)
    for found in gram.path(gram.largest * np.geomspace(1, 0.01, 10)):
        assert found.missed.max() < 1e-10
        assert found.status == "converged"
