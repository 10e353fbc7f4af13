"""A model as a file: JSON, compressed where its name ends in .gz, versioned, and checked as it is read.

What a file holds is never trusted. It may be cut off, changed or made to exhaust memory; either all of it makes a
model, or a ValueError names the file and what is wrong.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .._core.notes import Note
from .._core.writing import write
from ..axes import Axis
from ..terms import Key, Product, Terms, key_of, product_of
from .fitted import Fitted
from .fitted_file import fitted_from, fitted_to
from .reading import Reader

__all__ = ["MOST_FACTORS", "Content", "read_model", "write_model"]

Array = np.ndarray
Path = str | os.PathLike[str]

_VERSION = 1
_LARGEST_DEGREE = 100  # of a function
_MOST_NUMBERS = {"alpha": _LARGEST_DEGREE, "beta": _LARGEST_DEGREE, "values": 10_000, "knots": 20_000}
_MOST_OTHERS = 1000  # numbers in any other list of an axis
MOST_FACTORS = 64
"""Variables of one term, at most."""
_EXPANSION, _ROOM = 100, 1 << 24  # of compressed bytes, and bytes that are always allowed


class Content(NamedTuple):
    """What a model consists of."""

    terms: Terms
    tau: Array
    names: tuple[str, ...]
    fitted: Fitted | None
    notes: list[Note]


def write_model(path: Path, model: Content) -> None:
    """The file, whole or not at all."""
    try:
        axes = [axis.to_dict() for axis in model.terms.axes]
    except ValueError as error:
        raise ValueError(f"The model cannot be saved: {error}.") from None
    content = {
        "format": "isodus model",
        "version": _VERSION,
        "names": list(model.names),
        "axes": axes,
        "terms": _terms_to(model.terms),
        "tau": model.tau.tolist(),
        "fitted": None if model.fitted is None else fitted_to(model.fitted),
        "notes": [note.to_dict() for note in model.notes],
    }
    data = json.dumps(_plain(content), allow_nan=False, separators=(",", ":")).encode()
    write(path, gzip.compress(data, mtime=0) if os.fspath(path).endswith(".gz") else data)


def read_model(path: Path) -> Content:
    """The content of a file; a ValueError that names it and what is wrong."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return _content(Reader("the file", json.loads(_inflated(data), parse_constant=_no_constant)))
    except RecursionError:
        reason = "its content is nested too deeply"
    except json.JSONDecodeError as error:
        reason = f"it is not JSON ({error})"
    except UnicodeDecodeError:
        reason = "it is not text"
    except (ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
    raise ValueError(f"{os.fspath(path)} is not a readable isodus model: {reason}. Save the model again.")


def _no_constant(word: str) -> float:
    raise ValueError(f"it holds {word}, which is not a number")


def _plain(value: Any) -> Any:
    """Numbers that JSON has no word for, as words."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)  # "nan", "inf", "-inf"
    return value


def _inflated(data: bytes) -> bytes:
    """The text of a file that may be compressed, up to a size that a model's text may have."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    most = _EXPANSION * len(data) + _ROOM
    try:
        engine = zlib.decompressobj(wbits=31)
        text = engine.decompress(data, most)
        if engine.unconsumed_tail:
            raise ValueError("its compressed content is too large to be that of a model")
        if not engine.eof:
            raise ValueError("its compressed content ends too early")
        return text
    except zlib.error as error:
        raise ValueError(f"its compressed content is damaged ({error})") from None


# terms ----------------------------------------------------------------------------------------------------------------


def _terms_to(terms: Terms) -> dict[str, Any]:
    T = terms.T.copy()
    T.sort_indices()
    T = T.tocoo()
    return {
        "keys": [list(key) for key in terms.keys],
        "products": None if terms.identity else [list(key_of(factors)) for factors in terms.products],
        "T": None if terms.identity else [T.row.tolist(), T.col.tolist(), T.data.tolist()],
        "copies": terms.copies,
    }


def _content(file: Reader) -> Content:
    if file.value.__class__ is not dict or file.value.get("format") != "isodus model":
        raise ValueError("it does not say that it is one")
    version = file["version"].integer(1, 10**6)
    if version > _VERSION:
        raise ValueError(f"it has format version {version}, and this isodus reads up to {_VERSION}; upgrade isodus")
    names = tuple(name.text() for name in file["names"].parts())
    if not names or len(set(names)) < len(names):
        raise ValueError("its names are not different from each other")
    axes = [_axis(part) for part in file["axes"].parts(len(names))]
    terms = _terms(file["terms"], axes)
    tau = file["tau"].numbers(len(terms))
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.all(np.isfinite(terms.T @ tau)):
            raise ValueError("its coefficients are too large")
    notes = [note.made(Note.from_dict) for note in file["notes"].parts()]
    about = file["fitted"]
    fitted = None if about.value is None else fitted_from(about, terms, notes)
    return Content(terms, tau, names, fitted, notes)


def _axis(part: Reader) -> Axis:
    """An axis whose functions are finite on its nodes."""
    _check_sizes(part)
    with np.errstate(all="ignore"):
        axis = part.made(Axis.from_dict)
        nodes = part.made(lambda _: axis.nodes(axis.smallest))
        matrix = axis.powers
        powers = np.zeros(0) if matrix is None else part.made(lambda _: matrix())
        if not all(np.all(np.isfinite(values)) for values in (nodes.phi, nodes.places, powers)):
            raise ValueError(f"the functions of {part.where} are not finite")
    return axis


def _check_sizes(part: Reader) -> None:
    """Degrees and lists decide how much memory an axis takes: they are checked before one is made."""
    while isinstance(part.value, dict):
        if "degree" in part.value:
            part["degree"].number(0, _LARGEST_DEGREE)
        for name, value in part.value.items():
            most = _MOST_NUMBERS.get(name, _MOST_OTHERS)
            rows = value if isinstance(value, list) else []
            if sum(len(row) if isinstance(row, list) else 1 for row in rows) > most:
                raise ValueError(f"{part.where}.{name} has more than {most:,} numbers")
        if "axis" not in part.value:
            return
        part = part["axis"]


def _terms(part: Reader, axes: list[Axis]) -> Terms:
    keys = [_key(key, axes) for key in part["keys"].parts()]
    if len(set(keys)) < len(keys) or not keys:
        raise ValueError("its terms are not different from each other")
    copies = part["copies"].integer(1, 10**9)
    if part["T"].value is None:
        return Terms.of(axes, [product_of(key) for key in keys], copies=copies)
    products: list[Product] = [product_of(_key(key, axes)) for key in part["products"].parts()]
    if len(set(products)) < len(products):
        raise ValueError("its products are not different from each other")
    rows, columns, values = part["T"].parts(3)
    data = values.numbers()
    where = (rows.integers(len(data), len(products)), columns.integers(len(data), len(keys)))
    T = csr_array((data, where), shape=(len(products), len(keys)))
    if T.nnz < len(data) or not np.all(np.bincount(where[0], minlength=len(products))):
        raise ValueError("its matrix T holds an entry twice, or a row without entries")
    return Terms.of(axes, products, T, keys, False, copies)


def _key(part: Reader, axes: list[Axis]) -> Key:
    """Variables in order, each at most as often as its axis has functions."""
    numbers = part.integers(None, len(axes))
    key = tuple(sorted(numbers.tolist()))
    factors = product_of(key)
    if not factors or len(factors) > MOST_FACTORS:
        raise ValueError(f"{part.where} must have from 1 to {MOST_FACTORS} variables")
    for i, l in factors:
        if l >= len(axes[i].degrees):
            raise ValueError(f"{part.where} has a function that its axis does not have")
    return key
