"""The file of a model: JSON, every number to its last digit."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, tril

from . import io
from ._version import __version__
from .basis import MonomialBasis
from .functions import from_plain, plain
from .significance import Covariance
from .spaces import Space
from .supports import Support

__all__ = ["FIELDS", "read", "write"]

FORMAT = "isodus-model"
FORMAT_VERSION = 1
FIELDS = ("basis", "theta", "location", "scale", "names", "n_samples", "settings", "covariance", "moved_from")
_HIGHEST = 64  # degree of a file whose terms have not themselves a higher one
_WANTED = ("names", "location", "scale", "degree", "terms", "theta", "n_samples", "settings")


def write(path: str | os.PathLike[str], fields: Mapping[str, Any]) -> None:
    """Write the FIELDS of a model; an existing file is replaced only by a complete one."""
    basis, covariance = fields["basis"], fields["covariance"]
    content = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "written_by": f"isodus {__version__}",
        "names": list(fields["names"]),
        "location": fields["location"].tolist(),
        "scale": fields["scale"].tolist(),
        "degree": basis.degree,
        "terms": [list(term) for term in basis.terms],
        "theta": fields["theta"].tolist(),
        "n_samples": fields["n_samples"],
        "settings": dict(fields["settings"]),
        "covariance": None if covariance is None else _packed(covariance),
        "moved_from": None if fields["moved_from"] is None else fields["moved_from"].tolist(),
    }
    if basis.spaces is not None:
        content["spaces"] = [_plain(space) for space in basis.spaces]
    io.write_text(path, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n")


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The FIELDS of a model that `write` wrote."""
    content = io.read_json(path, "isodus model", FORMAT)
    if content.get("version") != FORMAT_VERSION or isinstance(content["version"], bool):
        raise ValueError(
            f"{path} has model format version {content.get('version')!r}; this is isodus {__version__}, which "
            f"reads version {FORMAT_VERSION}. Use the isodus that wrote it ({content.get('written_by', 'unknown')})"
        )
    missing = [name for name in _WANTED if name not in content]
    if missing:
        raise ValueError(f"{path} is incomplete: {', '.join(missing)} missing")
    try:
        if any(not isinstance(content[name], list) for name in ("names", "location", "scale", "terms", "theta")):
            raise ValueError("names, location, scale, terms and theta must be lists")
        if not isinstance(content["n_samples"], int | float | None) or not isinstance(content["settings"], dict):
            raise ValueError("n_samples must be a number and settings a mapping")
        _check_degree(content["degree"], content["terms"])
        basis = MonomialBasis(len(content["names"]), content["degree"], terms=content["terms"])
        if basis.terms != [tuple(term) for term in content["terms"]]:
            raise ValueError("its terms are not in graded order")
        if content.get("spaces") is not None:
            basis = _in_spaces(basis, content["spaces"])
        packed = content.get("covariance")
        own = {"basis": basis, "covariance": None if packed is None else _unpacked(packed, len(basis))}
        own["moved_from"] = content.get("moved_from")
        return {name: own[name] if name in own else content[name] for name in FIELDS}
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _plain(space: Space) -> dict[str, Any]:
    """A space in plain values; what is infinite is None."""
    low, high, values, circle = space.support
    return {
        "low": low if isfinite(low) else None,
        "high": high if isfinite(high) else None,
        "values": None if values is None else list(values),
        "circle": circle,
        "functions": plain(space.functions),
    }


def _in_spaces(basis: MonomialBasis, content: Any) -> MonomialBasis:
    if not isinstance(content, list) or len(content) != basis.n_variables:
        raise ValueError("its spaces are not one a variable")
    spaces = []
    for one in content:
        low, high = (
            (-inf if one["low"] is None else float(one["low"])),
            inf if one["high"] is None else float(one["high"]),
        )
        values = None if one["values"] is None else tuple(map(float, one["values"]))
        if not low < high or (values is not None and (len(values) < 2 or list(values) != sorted(values))):
            raise ValueError("one of its supports is empty, or its values are not in order")
        spaces.append(Space(Support(low, high, values, bool(one["circle"])), from_plain(one["functions"])))
    found = basis.within(tuple(spaces))
    if len(found) < len(basis):
        raise ValueError("some of its terms cannot be told apart on their supports")
    return found


def _check_degree(degree: Any, terms: list[Any]) -> None:
    """Memory for every term goes by the degree, so that it is not taken on trust."""
    longest = max((len(term) for term in terms if isinstance(term, list)), default=0)
    if isinstance(degree, bool) or not isinstance(degree, int) or not longest <= degree <= max(longest, _HIGHEST):
        raise ValueError(f"its degree is {str(degree)[:20]}, and that of its terms {longest}")


def _packed(covariance: Covariance) -> str | dict[str, str]:
    """The lower triangle of a symmetric matrix, row by row; of a sparse one what it holds of that, with its places."""
    if not issparse(covariance):
        return _text(covariance[np.tril_indices(covariance.shape[0])], "<f8")
    lower = tril(covariance).tocoo()
    return {"rows": _text(lower.row, "<i8"), "columns": _text(lower.col, "<i8"), "values": _text(lower.data, "<f8")}


def _unpacked(packed: Any, length: int) -> Covariance:
    most = length * (length + 1) // 2
    if isinstance(packed, dict):
        rows, columns = (_numbers(packed[name], "<i8", most) for name in ("rows", "columns"))
        lower = csr_array((_numbers(packed["values"], "<f8", most), (rows, columns)), shape=(length, length))
        return csr_array(lower + tril(lower, -1).T)
    triangle = _numbers(packed, "<f8", most)
    if triangle.size != most:
        raise ValueError(f"its covariance has {triangle.size} values for {length} terms")
    matrix = np.zeros((length, length))
    matrix[np.tril_indices(length)] = triangle
    return np.tril(matrix, -1).T + matrix


def _text(values: np.ndarray, kind: str) -> str:
    """Numbers, little-endian, compressed, in base 64."""
    return base64.b64encode(zlib.compress(values.astype(kind).tobytes(), 1)).decode("ascii")


def _numbers(text: Any, kind: str, most: int) -> np.ndarray:
    """The numbers of `_text`, at most so many: what a few bytes unfold to is not taken on trust."""
    unfold = zlib.decompressobj()
    limit = min(8 * most, io.MOST_BYTES)
    content = unfold.decompress(base64.b64decode(text, validate=True), limit + 1)
    if len(content) > limit or not unfold.eof:
        raise ValueError(f"its covariance is cut short, or has more than {limit // 8:,} values")
    return np.frombuffer(content, kind)
