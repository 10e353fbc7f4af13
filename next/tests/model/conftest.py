"""Models that several tests read: fits to small data, and models by hand."""

import numpy as np
import pandas as pd
import pytest

from isodus import PolynomialModel, PseudoLikelihood, datasets
from isodus.axes import Bounded, Circle, HalfLine, Interval, Line, Mapped, Values


@pytest.fixture(scope="session")
def pair():
    """Two named columns of the paper's pair model, degree 4."""
    X = pd.DataFrame(datasets.paper_pair(800, seed=1), columns=["a", "b"])
    return PseudoLikelihood(4).fit(X).model_


@pytest.fixture(scope="session")
def butterfly():
    """Two pairs Y = WX without correlations, degree 4: x0 and x1 interact, and x2 and x3."""
    return PseudoLikelihood(4).fit(datasets.butterfly(500, pairs=2, seed=3)).model_


@pytest.fixture(scope="session")
def triple():
    """Three columns with terms of all three, degree 4."""
    X = np.random.default_rng(5).standard_normal((800, 3))
    X[:, 2] += 0.8 * X[:, 0] * X[:, 1]
    return PseudoLikelihood(4, max_order=3).fit(pd.DataFrame(X, columns=["u", "v", "w"])).model_


@pytest.fixture(scope="session")
def quartic():
    """A model by hand on the whole line, three variables."""
    return PolynomialModel.from_dict(
        {
            ("a", "a"): 0.3,
            ("a", "a", "a", "a"): 0.2,
            ("b", "b", "b", "b"): 0.4,
            ("b", "b", "b"): -0.3,
            ("a", "b"): 0.5,
            ("c", "c"): 0.5,
            ("a", "b", "c"): 0.2,
            ("c", "c", "c", "c"): 0.1,
            ("b", "c"): -0.4,
        }
    )


@pytest.fixture(scope="session")
def mixed():
    """A model by hand with an axis of each kind, each pair of neighbours coupled."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal(500)
    axes = [
        Line.fit(x, 2),
        Circle(2),
        Values.fit(np.array([-1.0, 0.0, 1.0]), 2),
        Bounded.fit(x, 2),
        Interval.fit(np.tanh(x), 2, ends=(-1.0, 1.0)),
        HalfLine.fit(np.abs(x), 2, start=0.0),
        Mapped.fit(np.exp(x), 2, g="log10"),
    ]
    keys = {(i,) * l: rng.normal() * 0.4 for i, axis in enumerate(axes) for l in range(1, len(axis.degrees) + 1)}
    keys |= {(i, i + 1): rng.normal() * 0.4 for i in range(len(axes) - 1)}
    return PolynomialModel.from_dict(keys, names=["line", "angle", "spin", "cdf", "share", "size", "dose"], axes=axes)


@pytest.fixture(scope="session")
def values():
    """Rows on the axes of `mixed`."""
    rng = np.random.default_rng(7)
    n = 40
    columns = [
        rng.standard_normal(n),
        rng.uniform(0, 6, n),
        rng.choice([-1.0, 0.0, 1.0], n),
        rng.standard_normal(n),
        rng.uniform(-0.9, 0.9, n),
        rng.exponential(size=n) + 0.05,
        rng.lognormal(size=n),
    ]
    return np.column_stack(columns)
