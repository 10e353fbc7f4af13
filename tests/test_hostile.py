"""Data that are out to get a wrong answer: each gives the right one, a warning that names the reason, or an error.

The rows are those of the table in docs/hostile_data.md, and a test holds the two against one another.
"""

import re
import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

from isodus import ISODUS, PseudoLikelihood, ScoreMatching, goodness_of_fit
from isodus.datasets import paper_pair

ESTIMATORS = (ISODUS, PseudoLikelihood, ScoreMatching)
X = np.asarray(paper_pair(1).sample(1000, rng=0))
RNG = np.random.default_rng(0)
G = RNG.standard_normal((500, 3))
G[:, 1] += 0.5 * G[:, 0]
Z = RNG.standard_normal(len(G))
LAST_DIGITS = 1 + 1e-13 * RNG.standard_normal(len(X))
PAGE = Path(__file__).parents[1] / "docs" / "hostile_data.md"


class Row(NamedTuple):
    """A line of the table: what the data are, how they are made, and what comes of them at some degrees.

    right: as many as this the parameters are off from those of `like`, in standardised units; none: words of a
    warning, or of an error.
    """

    name: str
    data: object
    right: float | None = None
    warning: str = ""
    error: str = ""
    degrees: tuple[int, ...] = (2, 4)
    like: object = None

    @property
    def outcome(self):
        return "right" if self.right is not None else "warning" if self.warning else "error"


def with_row(at, values):
    Y = G.copy()
    Y[at] = values
    return Y


def read_only():
    Y = X.copy()
    Y.flags.writeable = False
    return Y


def frame(**columns):
    return pd.DataFrame(X, columns=["a", "b"]).assign(**columns)


def mapped():
    with TemporaryFile() as file:
        Y = np.memmap(file, X.dtype, "w+", shape=X.shape)
    Y[...] = X
    return Y


ROWS = [
    Row("scales of 1e-300", lambda: X * 1e-300, right=1e-9),
    Row("scales of 1e300", lambda: X * 1e300, right=1e-9),
    Row("scales of 1e-300 and 1e300 side by side", lambda: X * [1e-300, 1e300], right=1e-9),
    Row("a mean of 1e6 spreads", lambda: X + 1e6 * X.std(axis=0), right=1e-8),
    Row("a mean of 1e12 spreads", lambda: X + 1e12 * X.std(axis=0), right=1e-3),
    Row("a constant column", lambda: np.c_[X, np.ones(len(X))], error="columns without variation: x2"),
    Row("one value in a constant column", lambda: np.c_[X, np.arange(len(X)) == 5], warning="few distinct values.*x2"),
    Row(
        "a column that varies in its last three digits",
        lambda: np.c_[X[:, 0], LAST_DIGITS],
        right=5e-3,
        like=lambda: np.c_[X[:, 0], (LAST_DIGITS - 1) * 2.0**52],
    ),
    Row("all samples equal", lambda: np.ones((100, 2)), error="columns without variation: x0, x1"),
    Row(
        "a column that is a linear function of others",
        lambda: np.c_[G, G[:, 0] + G[:, 1]][:80],
        warning="columns that are linear functions of others: x. of x., x.\\.",
    ),
    Row(
        "nearly so, by 1e-6 of its spread, degree 4",
        lambda: np.c_[G, G[:, 0] + 1e-6 * Z],
        warning="columns that are nearly linear functions of others: x. of x.\\.",
        degrees=(4,),
    ),
    Row(
        "a square or a product of other columns, degree 4",
        lambda: np.c_[G, G[:, 0] ** 2][np.abs(G[:, 0]) < 1.5][:100],
        warning=r"linear functions of others: (x0\^2 of (x0, )?x3|x3 of x0\^2)",
        degrees=(4,),
    ),
    Row("Student's t, 2 degrees of freedom", lambda: RNG.standard_t(2, (500, 2)), warning="tails heavier than"),
    Row("Cauchy", lambda: RNG.standard_cauchy((500, 2)), warning="tails heavier than"),
    Row("one value of 1e6 spreads", lambda: with_row((7, 1), 1e6), warning=r"tails heavier.*x1 .*from row 7, 1e\+06"),
    Row("one value of 1e60 spreads", lambda: with_row((7, 1), 1e60), warning=r"tails heavier.*x1 .*from row 7, 1e\+60"),
    Row("one row of 1e6 spreads", lambda: with_row(7, 1e6), warning="tails heavier than .*x0 .*x1|x1 .*x0"),
    Row("half of the values equal", lambda: with_row((slice(None, None, 2), 0), 0), warning="far more frequent.*x0"),
    Row(
        "half of the values at a limit",
        lambda: np.c_[np.maximum(G[:, 0], 0), G[:, 1]],
        warning="pile up at an end of the range.*x0 .*lowest, 0",
    ),
    Row("rounded to whole spreads", lambda: np.round(G), warning="few distinct values.*x0.*8 values"),
    Row("rounded to a thousandth", lambda: np.round(X / X.std(), 3), right=2e-2, like=lambda: X / X.std()),
    Row("integers of a wide range", lambda: np.rint(1e6 * X).astype(np.int64), right=1e-4, like=lambda: 1e6 * X),
    Row("classes 0 to 3", lambda: RNG.integers(0, 4, (500, 2)), warning="few distinct values.*4 values"),
    Row("booleans", lambda: RNG.random((500, 2)) < 0.5, warning="few distinct values.*2 values"),
    Row("half precision", lambda: X.astype(np.float16), right=2e-2),
    Row("single precision", lambda: X.astype(np.float32), right=1e-5),
    Row("the other order of bytes", lambda: X.astype(">f8"), right=0.0),
    Row("objects that are numbers", lambda: X.astype(object), right=0.0),
    Row("a frame of objects", lambda: frame().astype(object), right=0.0),
    Row("texts that are numbers", lambda: X.astype(str), right=0.0),
    Row("texts that are none", lambda: [["1", "2"], ["3", "x"]], error="X has 'x' in row 1, column 1"),
    Row("a masked array, nothing masked", lambda: np.ma.masked_array(X, mask=False), right=0.0),
    Row("masked values", lambda: np.ma.masked_array(X, mask=X > 1), error=r"NaN or infinity: x0 \(first in row"),
    Row("NaN", lambda: np.where(X > 1, np.nan, X), error=r"NaN or infinity: x0 \(first in row"),
    Row("infinity", lambda: np.where(X > 1, np.inf, X), error=r"NaN or infinity: x0 \(first in row"),
    Row("nullable types of pandas", lambda: frame().convert_dtypes(), right=0.0),
    Row("nullable types with pd.NA", lambda: frame().convert_dtypes().mask(X > 1), error=r"NaN or infinity: a \(first"),
    Row("categories", lambda: frame(k=pd.Categorical(X[:, 0] > 0)), error="columns that are not numeric: 'k'"),
    Row("dates", lambda: frame(k=pd.Timestamp("2020")), error="columns that are not numeric: 'k'"),
    Row("complex numbers", lambda: X + 1j, error="Complex data not supported: give real and imaginary parts"),
    Row("one dimension", lambda: X[:, 0], error=r"X has shape \(1000,\): two dimensions .* X.reshape\(-1, 1\)"),
    Row("three dimensions", lambda: X[None], error=r"X has shape \(1, 1000, 2\): two dimensions"),
    Row("no rows", lambda: X[:0], error="a minimum of 2 is required"),
    Row("no columns", lambda: X[:, :0], error="a minimum of 1 is required"),
    Row("Fortran order", lambda: np.asfortranarray(X), right=0.0),
    Row("negative strides", lambda: X[::-1, ::-1].copy()[::-1, ::-1], right=0.0),
    Row("read-only memory", read_only, right=0.0),
    Row("a memory map", mapped, right=0.0),
    Row("one sample", lambda: X[:1], error="a minimum of 2 is required"),
    Row("two samples", lambda: X[:2], error="n_samples = 2: without a penalty there is no estimate"),
    Row("fewer samples than parameters", lambda: RNG.random((5, 8)), error="n_samples = 5: without a penalty there is"),
    Row(
        "two clusters 40 spreads apart, degree 4",
        lambda: np.r_[G[:250, :2] - 20, G[250:, :2] + 20],
        warning="samples in 2 clusters that are far apart in x0, x1",
        degrees=(4,),
    ),
]


def standardised(estimator):
    return np.array(list(estimator.model_.to_dict("standardized").values()))


@cache
def plain(kind, degree, l1, like):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return standardised(kind(degree, l1=l1).fit(like() if like else X))


def holds(row, kind, degree, l1=0.0):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if row.error:
            with pytest.raises(ValueError, match=row.error):
                kind(degree, l1=l1).fit(row.data())
            return
        found = kind(degree, l1=l1).fit(row.data())
    said = [str(one.message) for one in caught]
    assert not [one for one in caught if issubclass(one.category, RuntimeWarning)], said
    if row.warning:
        assert any(re.search(row.warning, words) for words in said), said
    else:
        assert not said
        np.testing.assert_allclose(standardised(found), plain(kind, degree, l1, row.like), rtol=0, atol=row.right)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_outcome(row):
    for degree in row.degrees:
        for kind in ESTIMATORS:
            holds(row, kind, degree)


PENALISED = {row.name: row for row in ROWS} | {
    "one value of 1e60 spreads": Row(
        "", lambda: with_row((7, 1), 1e60), error=r"x1 is 1e\+60 in row 7, .* too large for"
    ),
    "two samples": Row(
        "", lambda: X[:2], error="n_samples = 2: powers of one variable have no penalty; 5 are the least"
    ),
}


@pytest.mark.parametrize(
    ("name", "degree"),
    [
        ("scales of 1e-300 and 1e300 side by side", 2),
        ("scales of 1e-300 and 1e300 side by side", 4),
        ("a mean of 1e12 spreads", 4),
        ("a constant column", 4),
        ("a column that is a linear function of others", 2),
        ("one value of 1e6 spreads", 2),
        ("one value of 1e60 spreads", 4),
        ("half of the values equal", 2),
        ("booleans", 2),
        ("masked values", 4),
        ("two samples", 4),
    ],
)
def test_outcome_with_a_penalty(name, degree):
    for kind in ESTIMATORS:
        holds(PENALISED[name], kind, degree, l1="auto")


def test_the_table_of_the_documentation_is_this_one():
    cells = [line.strip("|").split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    told = {name.strip(): outcome.strip() for name, outcome, *_ in cells}
    for row in ROWS:
        assert told.get(row.name, "none").startswith(row.outcome), row.name


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_nearly_collinear_columns_are_right_at_degree_2(kind):
    Y = np.c_[G, G[:, 0] + 1e-5 * Z]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = kind(2).fit(Y)
    np.testing.assert_allclose(found.precision_, np.linalg.inv(np.cov(Y.T, bias=True)), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("kind", [ISODUS, PseudoLikelihood])
def test_one_variable_has_the_moments_of_the_data(kind):
    x = X[:, :1]
    model = kind(4).fit(x).model_

    def integral(power):
        return quad(lambda t: t**power * np.exp(-model.energy(np.array([[t]]))[0]), -6, 6, limit=200)[0]

    for power in range(1, 5):
        error = np.std(x**power) / np.sqrt(len(x))
        assert abs(integral(power) / integral(0) - np.mean(x**power)) < 0.1 * error


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_exact_symmetry_leaves_no_odd_terms(kind):
    model = kind(4).fit(np.r_[X, -X]).model_
    odd = model.basis.degrees % 2 == 1
    theta = np.array(list(model.to_dict().values()))
    assert np.abs(theta[odd] / model.stderr()[odd]).max() < 0.1


@pytest.mark.parametrize(
    ("draw", "degree", "misfit"),
    [
        (lambda rng: rng.random((1500, 2)), 2, True),
        (lambda rng: rng.random((1000, 2)), 4, False),  # a quartic comes so near that it takes more to tell
        (lambda rng: rng.standard_normal((1000, 2)) * np.where(rng.random((1000, 1)) < 0.3, 0.1, 3.0), 4, True),
        (lambda rng: rng.exponential(size=(1000, 2)), 4, True),
    ],
    ids=["uniform, degree 2", "uniform, degree 4", "mixture", "exponential"],
)
def test_a_test_tells_what_no_warning_does(draw, degree, misfit):
    Y = draw(np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = goodness_of_fit(ISODUS(degree).fit(Y).model_, Y, n_draws=0)
    assert found.verdict.startswith("misfit") == misfit


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_basis_of_millions_of_terms_is_refused_at_once(kind):
    Y = np.random.default_rng(0).standard_normal((300, 100))
    with pytest.raises(ValueError, match=r"176,851 parameters at each variable .* minutes and .* GB"):
        kind(4, max_order=4).fit(Y)
    with pytest.raises(ValueError, match=r"are 1,705,904,745 terms: about \d+ GB"):
        kind(6, max_order=None, l1="auto").fit(Y)


def test_a_test_of_fit_wants_a_model():
    with pytest.raises(
        ValueError, match=r"model must be a PolynomialModel, such as the model_ of an estimator, not ISO"
    ):
        goodness_of_fit(ISODUS(2).fit(X), X)
