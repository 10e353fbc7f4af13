import numpy as np
import pytest

from isodus import MonomialBasis
from isodus.consensus import combine

BASIS = MonomialBasis(3, terms=[(0, 0), (0, 1), (0, 1, 2), (1, 1), (2, 2)])


def node_values(values):
    """Local parameters from {(node, term): value}."""
    return [np.array([values[i, BASIS.terms[k]] for k in BASIS.local(i).terms]) for i in range(3)]


@pytest.mark.parametrize(
    ("three", "mean", "geometric"),
    [
        ((2.0, 4.0, 1.0), 7 / 3, 2.0),
        ((-2.0, -4.0, -1.0), -7 / 3, -2.0),
        ((-8.0, 1.0, 1.0), -2.0, -2.0),
        ((3.0, 0.0, 1.0), 4 / 3, 0.0),
    ],
)
def test_each_term_is_combined_over_its_variables(three, mean, geometric):
    values = {(0, (0, 0)): 1.5, (1, (1, 1)): -0.5, (2, (2, 2)): 0.0, (0, (0, 1)): 4.0, (1, (0, 1)): 9.0}
    values |= {(i, (0, 1, 2)): v for i, v in enumerate(three)}
    thetas = node_values(values)
    got = dict(zip(BASIS.terms, combine(BASIS, thetas, "mean"), strict=True))
    assert got[0, 0] == 1.5
    assert got[0, 1] == 6.5
    assert got[0, 1, 2] == pytest.approx(mean)
    got = dict(zip(BASIS.terms, combine(BASIS, thetas, "geometric"), strict=True))
    assert (got[0, 0], got[1, 1], got[2, 2]) == pytest.approx((1.5, -0.5, 0.0))
    assert got[0, 1] == pytest.approx(6.0)
    assert got[0, 1, 2] == pytest.approx(geometric)
