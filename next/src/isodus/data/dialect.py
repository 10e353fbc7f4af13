"""How a CSV file is written, from its first lines: encoding, comments, separator, decimal comma, names of columns."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Mapping
from typing import Any

from .tables import default_names, distinct

__all__ = ["csv_options"]

_LOOKED = 1 << 16  # bytes
_LINES = 50
_SEPARATORS = ("\t", ";", ",", "|", " ")
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_MISSING = ("", "na", "n/a", "null", "none", "nan", "?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


def csv_options(file: Any, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `pandas.read_csv`: those that are given, and for the others what the first lines show.

    The file stays where it is; it needs `peek`. Names are those of the first line that is not a comment, those of a
    comment with as many fields right before a line of numbers, or x0, x1, ….
    """
    first = file.peek(_LOOKED)[:_LOOKED]
    encoding = given.get("encoding") or next((e for mark, e in _MARKS.items() if first.startswith(mark)), "utf-8")
    if b"\0" in first[:200] and not encoding.lower().startswith("utf-16"):
        raise ValueError(f"{name} is no text that open_samples reads. If it is, give csv={{'encoding': 'utf-16-le'}}.")
    comment, lines = given.get("comment"), first.decode(encoding, "replace").splitlines()
    lines = lines[: len(lines) - (len(lines) > 2)]  # the last may not be whole
    start = next((k for k, line in enumerate(lines) if line.strip() and line.lstrip()[0] != (comment or "#")), 0)
    data = [line.partition(comment)[0] if comment else line for line in lines[start : start + _LINES]]
    data = [line for line in data if line.strip()]
    if not data:
        raise ValueError(f"{name} has no rows. Pass a file that has some.")
    separator = given.get("sep") or given.get("delimiter") or _separator(data)
    rows = [_fields(line, separator) for line in data]
    decimal = given.get("decimal") or _decimal(rows, separator)
    names, titled = rows[0], _are_names(rows[0], decimal)
    if not titled:
        names = list(default_names(len(rows[0])))
        before = [line.strip()[1:].strip() for line in lines[:start] if line.strip()]
        titles = _fields(before[-1], separator) if before else []
        names = titles if len(titles) == len(names) and _are_names(titles, decimal) else names
    found = {
        "sep": r"\s+" if separator == " " else separator,
        "decimal": decimal,
        "skiprows": start,
        "encoding": encoding,
        "names": distinct(names),
        "header": 0 if titled else None,
        "index_col": 0 if not names[0] else False,  # as frames write their index
    }
    return found | {key: value for key, value in given.items() if key != "delimiter"}


def _fields(line: str, separator: str) -> list[str]:
    if separator in (" ", r"\s+"):
        return line.split()
    return [field.strip() for field in next(csv.reader([line], delimiter=separator))]


def _separator(lines: list[str]) -> str:
    """The first that cuts all lines into equally many fields, and more than one."""
    for separator in _SEPARATORS:
        counts = {len(_fields(line, separator)) for line in lines[:20]}
        if len(counts) == 1 and counts.pop() > 1:
            return separator
    return ","


def _decimal(rows: list[list[str]], separator: str) -> str:
    comma = separator != "," and any(_DECIMAL_COMMA.fullmatch(field) for row in rows for field in row)
    return "," if comma else "."


def _are_names(fields: list[str], decimal: str) -> bool:
    """Whether a line names columns: some field is no number, or they are 0, 1, 2, …"""
    return fields == [str(i) for i in range(len(fields))] or not all(_may_be_value(field, decimal) for field in fields)


def _may_be_value(field: str, decimal: str) -> bool:
    try:
        float(field.replace(decimal, "."))
    except ValueError:
        return field.lower() in _MISSING
    return True
