from itertools import product

import numpy as np
import pytest

from isodus.axes import Circle, Line, Values
from isodus.terms import count_up_to, key_of, keys_up_to, name_of, product_of
from isodus.terms.keys import closed

x = np.random.default_rng(0).standard_normal(200)
LINE, CIRCLE, SPIN = Line.fit(x, 4), Circle(2), Values.fit(np.sign(x), 1)


@pytest.mark.parametrize(
    ("key", "factors"),
    [
        ((0,), ((0, 0),)),
        ((0, 0, 1), ((0, 1), (1, 0))),
        ((2, 2, 2, 7), ((2, 2), (7, 0))),
        ((1, 3, 5), ((1, 0), (3, 0), (5, 0))),
    ],
)
def test_keys_and_products(key, factors):
    assert product_of(key) == product_of(reversed(key)) == factors
    assert key_of(factors) == key


@pytest.mark.parametrize("axes", [[LINE] * 3, [LINE, CIRCLE, SPIN], [CIRCLE, CIRCLE]])
@pytest.mark.parametrize(("degree", "order", "least"), [(4, 2, 1), (3, 3, 2), (2, 1, 1), (4, 5, 3)])
def test_all_terms_by_degree_and_order(axes, degree, order, least):
    expected = set()
    for numbers in product(*(range(len(axis.degrees) + 1) for axis in axes)):  # how often each variable is repeated
        total = sum(axis.degrees[l - 1] for axis, l in zip(axes, numbers, strict=True) if l)
        if least <= total <= degree and 1 <= np.count_nonzero(numbers) <= order:
            expected.add(tuple(i for i, l in enumerate(numbers) for _ in range(l)))
    keys = keys_up_to(axes, degree, order, least)
    assert set(keys) == expected
    assert len(keys) == len(expected)
    orders = [len(set(key)) for key in keys]
    assert orders == sorted(orders)


def test_sine_and_cosine_have_the_same_degree():
    assert keys_up_to([CIRCLE], 1, 1) == [(0,), (0, 0)]


def test_names():
    axes, names = [LINE, CIRCLE, LINE], ["flow", "angle", "b"]
    assert name_of((0,), axes, names) == "flow"
    assert name_of((0, 0, 2), axes, names) == "flow^2*b"
    assert name_of((0, 1, 1, 1, 1), axes, names) == "flow*sin(2 angle)"


@pytest.mark.parametrize(
    ("axes", "keys", "yes"),
    [
        ([LINE, LINE], [(0,), (1,), (0, 1)], True),
        ([LINE, LINE], [(0, 1), (0,), (1,)], True),
        ([LINE, LINE], [(0, 1), (0,)], False),
        ([LINE, LINE], [(0,), (1,), (0, 0, 1), (0, 0)], False),
        ([LINE], [(0, 0)], False),
        ([LINE], [(0, 0, 0, 0), (0,), (0, 0, 0), (0, 0)], True),
        ([CIRCLE, CIRCLE], [(0, 0, 1)], True),
        ([CIRCLE, LINE], [(0, 0, 1)], False),
        ([CIRCLE, LINE], [(0, 0, 1), (0, 0)], True),
        ([CIRCLE, LINE], [(0, 0, 1, 1)], False),
        ([CIRCLE, LINE], [(0, 0, 1, 1), (0, 0), (0, 0, 1)], True),
    ],
)
def test_closed(axes, keys, yes):
    assert closed(keys, axes) is yes


@pytest.mark.parametrize("axes", [[LINE] * 3, [LINE, CIRCLE, SPIN]])
def test_all_terms_up_to_a_degree_are_closed(axes):
    assert closed(keys_up_to(axes, 4, 3), axes)
    assert not closed(keys_up_to(axes, 4, 3, min_degree=2), axes)


@pytest.mark.parametrize(("degree", "order", "least"), [(4, 2, 1), (6, 3, 3), (2, 4, 1), (1, 1, 1), (5, 2, 6)])
def test_terms_are_counted_without_a_list(degree, order, least):
    axes = [LINE, CIRCLE, SPIN, LINE]
    assert count_up_to(axes, degree, order, least) == len(keys_up_to(axes, degree, order, least))
