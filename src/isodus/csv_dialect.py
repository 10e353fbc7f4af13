"""What a text file of a table is like: its encoding, what separates its fields, and how its decimals are written."""

from __future__ import annotations

import csv
import gzip
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from typing import IO, Any, NamedTuple

__all__ = ["Dialect", "dialect_of"]

_HEAD = 1 << 16  # bytes that are looked at
_LINES = 50
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_OTHERS = {"latin-1": "Latin-1", "utf-16": "UTF-16"}
_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?(\d+\.\d*|\.\d+)([eE][+-]?\d+)?")


class Dialect(NamedTuple):
    """Options of `pandas.read_csv`."""

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8-sig"

    @property
    def options(self) -> dict[str, Any]:
        """As keywords."""
        return self._asdict()

    @property
    def words(self) -> str:
        """How it departs from commas, points and UTF-8; empty if it does not."""
        said = [f"fields separated by {_SEPARATORS[self.sep]}"] if self.sep != "," else []
        said += ["decimal commas"] if self.decimal == "," else []
        said += [f"text in {_OTHERS[self.encoding]}, not UTF-8"] if self.encoding in _OTHERS else []
        return ", ".join(said)


def dialect_of(source: Path | IO[bytes]) -> Dialect:
    """The dialect of a file, .gz too, or of a stream that can be wound back."""
    if isinstance(source, Path):
        with gzip.open(source, "rb") if source.suffix == ".gz" else open(source, "rb") as file:
            head = file.read(_HEAD)
    else:
        head = source.read(_HEAD)
        source.seek(0)
    encoding = "utf-16" if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = head.decode(encoding)
    except UnicodeDecodeError as error:
        if error.start >= len(head) - 3 and len(head) == _HEAD:  # a letter that was cut in two
            text = head[: error.start].decode(encoding)
        else:
            text, encoding = head.decode("latin-1"), "latin-1"
    lines = text.splitlines()[: _LINES + 1]
    lines = lines[:-1] if len(head) == _HEAD and len(lines) > 1 else lines
    sep = _separator(lines)
    return Dialect(sep, "." if sep == "," else _decimal(lines, sep), encoding)


def _separator(lines: list[str]) -> str:
    """The one by which the header has the most fields, and all other lines as many."""
    found = {}
    for sep in _SEPARATORS:
        many = [len(row) for row in csv.reader(lines, delimiter=sep) if row]
        if many and many[0] > 1 and len(set(many)) == 1:
            found[sep] = many[0]
    return max(found, key=lambda sep: found[sep]) if found else ","


def _decimal(lines: list[str], sep: str) -> str:
    cells = [cell.strip() for row in csv.reader(lines[1:], delimiter=sep) for cell in row]
    return "," if any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells)) else "."
