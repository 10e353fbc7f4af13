"""What --support says: where columns live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..supports import as_support
from ..tables import chosen_columns

__all__ = ["supports_of"]

_WORDS = ("positive", "spin", "circle")


def supports_of(words: Sequence[str], names: Sequence[str]) -> dict[str, Any] | None:
    """Supports of columns, from words such as "positive:dose*", "0..1:share" or "0/1/2:level"; None for none."""
    found: dict[str, Any] = {}
    for word in words:
        kind, _, columns = word.partition(":")
        support = _support(kind.strip(), word)
        wanted = [one.strip() for one in columns.split(",") if one.strip()]
        for name in chosen_columns(wanted, names, "the table") if wanted else names:
            if name in found:
                raise ValueError(f"--support gives {name} twice")
            found[name] = support
    return found or None


def _support(kind: str, word: str) -> Any:
    if kind in _WORDS:
        return kind
    try:
        if ".." in kind:
            low, high = map(float, kind.split(".."))
            given: Any = (low, high)
        else:
            given = [float(value) for value in kind.split("/")]
        as_support(given)
    except ValueError as error:
        told = "" if "could not convert" in str(error) or "unpack" in str(error) else f" ({error})"
        raise ValueError(
            f"--support {word}: one of {', '.join(_WORDS)}, an interval as 0..1 or 0..inf, or values as 0/1/2 is "
            f"wanted, with columns as in positive:dose,age*{told}"
        ) from None
    return given
