"""The file of a model: JSON, every number to its last digit."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, tril

from . import io
from ._version import __version__
from .basis import MonomialBasis
from .significance import Covariance

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
        packed = content.get("covariance")
        own = {"basis": basis, "covariance": None if packed is None else _unpacked(packed, len(basis))}
        own["moved_from"] = content.get("moved_from")
        return {name: own[name] if name in own else content[name] for name in FIELDS}
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


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
