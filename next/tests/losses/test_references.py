"""What every reference of one variable keeps, for each row of REFERENCES: E_R[φ], the optimum, and what a user sees."""

import warnings

import numpy as np
import pytest
from cases import REFERENCES
from numpy.testing import assert_allclose
from scipy.integrate import quad
from sklearn.base import clone

from isodus import ISODUS, L1
from isodus.axes import Line
from isodus.losses import Reference

EACH = pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES)
PRECISION = np.array([[1.0, -0.4, 0.0], [-0.4, 1.5, 0.3], [0.0, 0.3, 0.8]])
X = np.random.default_rng(3).standard_normal((4000, 3)) @ np.linalg.cholesky(np.linalg.inv(PRECISION)).T


@EACH
def test_means_of_functions(reference):
    """E_R[φ] by quadrature of R = r q."""
    axis = Line.fit(X[:, 0], 4).unclamped()
    log_r, mean = reference.of(0, axis, 2)

    def weight(x):
        at = np.array([x])
        return np.exp(log_r(at) + axis.log_base(at))[0]

    total = quad(weight, -12, 12, points=[0.0], limit=200)[0]
    for l in range(len(axis.degrees)):
        value = quad(lambda x: weight(x) * axis.functions(np.array([x]))[0, l], -12, 12, points=[0.0], limit=200)[0]  # noqa: B023
        assert_allclose(mean[l], value / total, atol=1e-7)


@EACH
def test_the_truth_is_found(reference):
    """A Gaussian's precision, within four standard errors, and none of them tiny or huge."""
    est = ISODUS(2, min_degree=2, scale=None, reference=reference).fit(X)
    model = est.model_
    truth = np.array([PRECISION[key] / (1 + (key[0] == key[1])) for key in model.terms.keys])
    theta = np.array([model.to_dict()[key] for key in model.terms.keys])
    error = model.to_frame()["stderr"].to_numpy()
    assert np.all(np.abs(theta - truth) < 4 * error)
    assert np.all((error > 0.005) & (error < 0.2))
    assert type(est.reference_) is type(reference)


@EACH
def test_links_and_penalties(reference):
    """The plain mean has the same minimiser; an L1 penalty leaves the pairs that are there."""
    plain = clone(reference)
    plain.link = "plain"
    found = [
        ISODUS(2, min_degree=2, scale=None, reference=one, tol=1e-7).fit(X).model_.tau for one in (reference, plain)
    ]
    assert_allclose(*found, atol=1e-6)
    with warnings.catch_warnings(action="ignore"):  # the score beside a Gaussian with all pairs
        sparse = ISODUS(2, scale=None, reference=reference, penalty=L1(0.1)).fit(X)
    assert sorted(sparse.model_.hyperedges()) == [("x0", "x1"), ("x1", "x2")]


def test_a_reference_without_a_density():
    with pytest.raises(NotImplementedError, match="Reference has no method of"):
        ISODUS(2, reference=Reference()).fit(X)
