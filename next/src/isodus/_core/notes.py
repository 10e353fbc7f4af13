"""Notes: what a fit has to report, as data."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["IsodusWarning", "Note", "announce", "listed"]

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class IsodusWarning(UserWarning):
    """The class of all warnings of isodus."""


@dataclass(frozen=True)
class Note:
    """One fact about data or a fit, with what follows from it and what can be done.

    Parameters
    ----------
    kind : str
        A fixed phrase that names the kind of fact, such as "held out" or "pile".
    severity : "info" or "warning"
        Notes of severity "warning" are also given as Python warnings.
    variables : tuple of str
        Names of the variables concerned.
    numbers : dict of str to float
        The numbers in the text, by name.
    text : str
        Full sentences: the problem, its consequence, the remedy.

    Examples
    --------
    >>> note = Note("pile", "info", ("raf",), {"share": 0.2}, "Column 'raf' holds 1.0 in 20 % of its rows.")
    >>> note.numbers["share"]
    0.2
    >>> Note.from_dict(note.to_dict()) == note
    True
    """

    kind: str
    severity: Literal["info", "warning"]
    variables: tuple[str, ...]
    numbers: Mapping[str, float] = field(hash=False)
    text: str

    def __post_init__(self) -> None:
        if self.severity not in ("info", "warning"):
            raise ValueError(f"severity must be 'info' or 'warning', not {self.severity!r}")

    def to_dict(self) -> dict[str, Any]:
        """The note in types that JSON has."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "variables": list(self.variables),
            "numbers": {name: float(value) for name, value in self.numbers.items()},
            "text": self.text,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Note:
        """The note that `to_dict` described; a ValueError for anything else."""
        try:
            return cls(
                str(content["kind"]),
                content["severity"],
                tuple(str(name) for name in content["variables"]),
                {str(name): float(value) for name, value in content["numbers"].items()},
                str(content["text"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"This is not a note: {error!r}.") from None


def announce(note: Note) -> None:
    """Give a note of severity "warning" as a warning that points at the line of the user's code."""
    if note.severity == "warning":
        warnings.warn(note.text, IsodusWarning, stacklevel=_user_level())


def _user_level() -> int:
    """The `stacklevel` with which a warning given by the caller points at the first frame outside of isodus."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PACKAGE, contextlib.__file__)):
        level, frame = level + 1, frame.f_back
    return level


def listed(names: Sequence[str]) -> str:
    """'a', 'b' and so on; the first eight, and how many more."""
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
