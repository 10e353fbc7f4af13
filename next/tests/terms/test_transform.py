"""T against monomials at points, condition numbers against numpy's SVD."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from isodus.axes import Bounded, Circle, HalfLine, Interval, Line, Values, WholeLine
from isodus.datasets import double_wells
from isodus.model.polynomial import power_matrix
from isodus.terms import Terms, keys_up_to, to_powers
from isodus.terms.transform import condition

RNG = np.random.default_rng(2)
Z = RNG.standard_normal((200, 3))
CASES = {
    "centred": [Line.fit(z, 4) for z in Z.T],
    "shifted": [Line.fit(5 + 2 * z, 4) for z in Z.T],
    "no units": [Line.fit(1e-3 * z, 4).in_units(0.0, 1.0) for z in Z.T],
    "degrees of their own": [Line.fit(z, 4 + i) for i, z in enumerate(Z.T)],
    "others": [
        Interval.fit(np.tanh(Z[:, 0]), 4), HalfLine.fit(np.exp(Z[:, 1] / 3), 4), Values.fit(np.rint(Z[:, 2]), 4)
    ],
    "whole line": [WholeLine.fit(3 + z, 4) for z in Z.T],
}  # fmt: skip
DATA = {
    "shifted": 5 + 2 * Z,
    "no units": 1e-3 * Z,
    "others": np.column_stack([np.tanh(Z[:, 0]), np.exp(Z[:, 1] / 3), np.rint(Z[:, 2])]),
    "whole line": 3 + Z,
}
LISTS = {
    "without lower terms": [(0, 0), (0, 1), (1, 1), (0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 1, 2)],
    "one": [(0, 1, 2)],
    "even": [(0, 0), (1, 1), (2, 2), (0, 0, 2, 2)],
}


def columns(terms, X):
    """The products of functions at some points, (n, P)."""
    phi = [axis.functions(x) for axis, x in zip(terms.axes, X.T, strict=True)]
    return np.stack([np.prod([phi[i][:, l] for i, l in factors], axis=0) for factors in terms.products], axis=1)


@pytest.mark.parametrize("keys", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("case", CASES)
def test_columns_of_T_are_powers_of_x_over_unit(case, keys):
    axes, X = CASES[case], DATA.get(case, Z)
    terms = Terms(axes, keys)
    made = columns(terms, X) @ terms.T.toarray()
    units = np.array([axis.unit for axis in axes])
    expected = np.stack([np.prod((X / units)[:, list(key)], axis=1) for key in keys], axis=1)
    difference = (made - made[0]) - (expected - expected[0])  # constants are dropped
    assert np.all(np.abs(difference) < 1e-9 * np.abs(expected).max(axis=0))
    assert not terms.identity
    assert terms.keys == keys


@pytest.mark.parametrize("seed", [2, 12, 14, 17])
def test_powers_without_their_divisors_are_nothing_but_themselves(seed):
    X = double_wells(3000, 2, height=4.0, coupling=0.5, seed=seed)
    axes = [Line.fit(x, 4) for x in X.T]
    terms = Terms(axes, [key for key in keys_up_to(axes, 4, 2) if len(key) > 1])
    keys, M = power_matrix(terms)
    assert sorted(keys) == sorted(terms.keys)
    assert M.nnz == len(terms)


def test_functions_without_powers_stand_for_themselves():
    axes = [Line.fit(1 + Z[:, 0], 2), Circle(2)]
    X = np.column_stack([1 + Z[:, 0], 3 * Z[:, 1]])
    terms = Terms(axes, [(0, 0, 1), (1, 1, 1)])  # x² cos y, cos 2y
    y = X[:, 0] / axes[0].unit
    expected = np.stack([y**2 * np.cos(X[:, 1]), np.cos(2 * X[:, 1])], axis=1)
    np.testing.assert_allclose(columns(terms, X) @ terms.T.toarray(), expected, atol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_a_closed_list_of_powers_back_in_powers_is_itself(case):
    axes = CASES[case]
    keys = keys_up_to(axes, 4, 3, min_degree=2)
    terms = Terms(axes, keys)
    powers, B = to_powers(axes, terms.products)
    units = np.array([axis.unit for axis in axes])
    expected = np.zeros((len(powers), len(keys)))
    for k, key in enumerate(keys):
        expected[powers.index(key), k] = np.prod(units[list(key)] ** -1.0)
    np.testing.assert_allclose((B @ terms.T).toarray(), expected, atol=1e-8 * expected.max())


def test_functions_are_sums_of_powers():
    axes, X = CASES["shifted"], DATA["shifted"]
    terms = Terms(axes, keys_up_to(axes, 3, 3))
    powers, B = to_powers(axes, terms.products)
    assert set(powers) == {key for size in (1, 2, 3) for key in combinations_with_replacement(range(3), size)}
    made = np.stack([np.prod(X[:, list(key)], axis=1) for key in powers], axis=1) @ B.toarray()
    expected = columns(terms, X)
    np.testing.assert_allclose(made - made[0], expected - expected[0], atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 3.0, 10.0, 100.0])
@pytest.mark.parametrize("keys", LISTS.values(), ids=LISTS)
def test_the_condition_number_is_that_of_numpy(offset, keys):
    axes = [Line.fit(offset + z, 4) for z in Z.T]
    T = Terms(axes, keys)
    dense = T.T.toarray()
    singular = np.linalg.svd(dense / np.sqrt((dense**2).sum(axis=0)), compute_uv=False)
    assert T.condition() == pytest.approx(singular[0] / singular[-1], rel=1e-6)


def test_conditions_far_from_zero():
    """x², x³ and x⁴ differ by a cubic in (x − c)/c, so that the condition number grows as c³."""
    found = []
    for offset in (10.0, 100.0, 1000.0):
        axes = [Line.fit(offset + z, 4) for z in Z[:, :2].T]
        found.append(np.log10(Terms(axes, keys_up_to(axes, 4, 2, min_degree=2)).condition()))
    np.testing.assert_allclose(np.diff(found), 3.0, atol=0.2)


def test_the_condition_of_a_large_T_is_that_of_its_worst_interaction(monkeypatch):
    axes = [Line.fit(4 + z, 4) for z in Z.T]
    keys = keys_up_to(axes, 4, 2, min_degree=2)
    terms = Terms(axes, keys)
    groups, dense = list(terms.interactions.values()), terms.T.toarray()
    parts = [dense[:, g] / np.sqrt((dense[:, g] ** 2).sum(axis=0)) for g in groups]
    worst = max(s[0] / s[-1] for s in (np.linalg.svd(part, compute_uv=False) for part in parts))
    monkeypatch.setattr("isodus.terms.transform._WHOLE", 0)
    assert condition(terms.T, groups) == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize("kind", [Line, Bounded, Circle, Interval])
def test_a_fit_carried_to_axes_of_other_rows_keeps_its_density(kind):
    """Polynomials on another window are the same polynomials; functions of another kernel estimate are near."""
    rng = np.random.default_rng(5)
    x, y = rng.random((2, 400, 2))
    options = {"ends": (0.0, 1.0)} if kind is Interval else {}
    old, new = ([kind.fit(c, 3, **options) for c in rows.T] for rows in (x, y))
    terms = [Terms(axes, keys_up_to(axes, 3, 2)) for axes in (old, new)]
    tau = rng.standard_normal(len(terms[0]))
    carried = terms[1].carried(terms[0], tau)
    grid = np.stack(np.meshgrid(np.linspace(0.1, 0.9, 9), np.linspace(0.1, 0.9, 9)), axis=-1).reshape(-1, 2)
    energies = []
    for t, theta in zip(terms, (tau, carried), strict=True):
        phi = [axis.functions(v) for axis, v in zip(t.axes, grid.T, strict=True)]
        energies.append(
            sum(c * np.prod([phi[i][:, l] for i, l in f], axis=0) for c, f in zip(theta, t.products, strict=True))
        )
    difference = energies[0] - energies[1]
    room = 0.5 if kind is Bounded else 1e-9
    assert np.ptp(difference) < room * np.ptp(energies[0])
