from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from isodus.data import as_samples, columns_of

COLUMNS = {"a": [0.5, 2.0, -1.0, 4.0], "b": [1, 0, 3, 7], "c": [True, False, True, True]}
VALUES = np.array([[0.5, 1, 1], [2.0, 0, 0], [-1.0, 3, 1], [4.0, 7, 1]])
OBJECTS = pd.DataFrame(
    {"a": [Decimal("0.5"), 2, -1.0, 4], "b": [1, 0, 3, 7], "c": [True, False, True, True]}, dtype=object
)
NULLABLE = pd.DataFrame(COLUMNS).convert_dtypes()

FRAMES = [pd.DataFrame(COLUMNS), NULLABLE, OBJECTS, pl.DataFrame(COLUMNS), pa.table(COLUMNS)]
ARRAYS = [
    VALUES,
    np.asfortranarray(VALUES),
    VALUES[::-1][::-1],
    VALUES.astype(np.float32),
    VALUES.astype(object),
    VALUES.tolist(),
    [tuple(row) for row in VALUES],
    np.ma.masked_invalid(VALUES),
    np.matrix(VALUES) if hasattr(np, "matrix") else VALUES,
]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("X", [*FRAMES, *ARRAYS], ids=lambda X: type(X).__module__ + "." + type(X).__name__)
def test_tables_that_are_read(X):
    samples = as_samples(X)
    np.testing.assert_array_equal(samples.X, VALUES)
    assert type(samples.X) is np.ndarray
    assert samples.X.dtype == np.float64
    assert samples.X.flags.f_contiguous
    framed = any(X is frame for frame in FRAMES)
    assert samples.names == (("a", "b", "c") if framed else ("x0", "x1", "x2"))
    assert samples.columns == (("a", "b", "c") if framed else None)
    assert (samples.n, samples.n_rows) == (4.0, 4)


def test_data_of_the_user_are_not_changed_and_cannot_be():
    X = np.asfortranarray(VALUES.copy())
    samples = as_samples(X, np.ones(4))
    with pytest.raises(ValueError, match="read-only"):
        samples.X[0, 0] = 9.0
    X[0, 0] = X[0, 0]  # still theirs to write


def with_value(value, row=2, column=1):
    X = VALUES.astype(object if not isinstance(value, float) else float)
    X[row, column] = value
    return X


def frame(make, **columns):
    return make({"a": [1.0, 2.0, 3.0], **columns})


LAZY = pl.DataFrame(COLUMNS).lazy()


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (with_value(np.nan), ValueError, r"Column 'x1' contains NaN in row 2 \(1 such rows\)"),
        (with_value(-np.inf, 3, 0), ValueError, r"Column 'x0' contains an infinity \(inf\) in row 3"),
        (with_value(None), ValueError, "Column 'x1' contains NaN in row 2"),
        (np.ma.masked_equal(VALUES, 3.0), ValueError, "Column 'x1' contains NaN in row 2"),
        (pd.DataFrame(COLUMNS).assign(b=[1, None, 3, None]), ValueError, r"Column 'b' contains NaN in row 1 \(2 such"),
        (NULLABLE.assign(b=pd.array([1, None, 3, 4], "Int64")), ValueError, "Column 'b' contains NaN in row 1"),
        (frame(pl.DataFrame, b=[1.0, None, 2.0]), ValueError, "Column 'b' contains NaN in row 1"),
        (frame(pa.table, b=[1, 2, None]), ValueError, "Column 'b' contains NaN in row 2"),
        (with_value("high"), ValueError, r"Column 'x1' holds strings \(row 2: 'high'\)"),
        (np.array([["1", "2"]]), ValueError, "Column 'x0' holds strings"),
        ([[1.0, "high"]], ValueError, r"Column 'x1' holds strings \(row 0"),
        (frame(pd.DataFrame, b=["u", "v", "w"]), ValueError, "Column 'b' holds strings"),
        (frame(pl.DataFrame, b=["u", "v", "w"]), ValueError, "Column 'b' holds strings"),
        (frame(pd.DataFrame, b=pd.Categorical([1, 2, 1])), ValueError, "Column 'b' holds values of type Categorical"),
        (
            frame(pd.DataFrame, b=pd.to_datetime(["2020", "2021", "2022"])),
            ValueError,
            "Column 'b' holds values of type D",
        ),
        (frame(pa.table, b=[[1], [2], [3]]), ValueError, "Column 'b' holds values of type List"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), ValueError, "Column 'x0' holds dates"),
        (with_value(object()), TypeError, "Column 'x1' is not a number in row 2"),
        (with_value(1j), ValueError, "Complex data not supported.*Column 'x1' is complex in row 2"),
        (VALUES * 1j, ValueError, "Complex data not supported"),
        (sparse.csr_array(VALUES), TypeError, "dense"),
        (VALUES[0], ValueError, "Expected 2D array, got 1D array"),
        (VALUES[None], ValueError, "Expected 2D array, got 3D array"),
        (1.0, ValueError, "Expected 2D array, got 0D array"),
        (np.empty((0, 3)), ValueError, r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\)"),
        (np.empty((3, 0)), ValueError, r"Found array with 0 feature\(s\) \(shape=\(3, 0\)\)"),
        (pd.DataFrame({"a": []}), ValueError, "0 sample"),
        ([[1.0], [2.0, 3.0]], ValueError, "rows of equal length"),
        (pd.DataFrame(VALUES, columns=["a", "b", "a"]), ValueError, "More than one column is called 'a'"),
        (pd.DataFrame(VALUES, columns=["a", 1, "1"]), ValueError, "More than one column is called '1'"),
        (LAZY, TypeError, "lazy frame.*Collect"),
    ],
)
def test_tables_that_are_not_read(X, error, message):
    with pytest.raises(error, match=message):
        as_samples(X)


def test_names_that_are_given():
    assert as_samples(VALUES, names=["u", "v", "w"]).names == ("u", "v", "w")
    assert as_samples(FRAMES[0], names=["u", "v", "w"]).columns == ("a", "b", "c")
    with pytest.raises(ValueError, match="Column 'v' contains NaN"):
        as_samples(with_value(np.nan), names=["u", "v", "w"])
    for names in (["u", "v"], ["u", "v", "u"]):
        with pytest.raises(ValueError, match="names must be 3 different names"):
            as_samples(VALUES, names=names)


def test_finite_numbers_whose_sum_overflows():
    np.testing.assert_array_equal(as_samples([[1e308], [1e308]]).X, [[1e308], [1e308]])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_are_found_by_name(make):
    names = ("a", "b", "c")
    turned = make({name: COLUMNS[name] for name in ("c", "a", "b")})
    np.testing.assert_array_equal(columns_of(turned, names), VALUES)
    np.testing.assert_array_equal(columns_of(make(COLUMNS), names), VALUES)
    np.testing.assert_array_equal(columns_of(VALUES, names), VALUES)  # an array, by position
    np.testing.assert_array_equal(columns_of(make(COLUMNS), ("x0", "x1", "x2")), VALUES)  # the fit knew no names


def test_columns_that_do_not_fit():
    data = pd.DataFrame(COLUMNS)
    with pytest.raises(ValueError, match=r"missing: 'd'.*not in the fit: 'c'.*in any order"):
        columns_of(data, ("a", "b", "d"))
    with pytest.raises(ValueError, match=r"missing: 'd'\. X has 3 features, but ISODUS is expecting 4 features"):
        columns_of(data, ("a", "b", "c", "d"), "ISODUS")
    with pytest.raises(ValueError, match=r"not in the fit: 'c'\. X has 3 features, but ISODUS is expecting 2"):
        columns_of(data, ("a", "b"), "ISODUS")
    with pytest.raises(ValueError, match="X has 3 features, but isodus is expecting 2 features as input"):
        columns_of(VALUES, ("a", "b"))
    with pytest.raises(ValueError, match="missing: 'x0'"):
        columns_of(pd.DataFrame({"x1": [1.0], "y": [2.0]}), ("x0", "x1"))  # some of the default names are there
