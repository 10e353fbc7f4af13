"""What may be taken of variables before a model is learned: log10, asinh, normal scores of ranks; by column or of all.

In a model's settings a transform is a word for all columns, "log10", or one for each of some: {"raf": "log10"}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import rankdata

from .tables import chosen_columns

__all__ = ["KINDS", "as_setting", "of_setting", "parsed", "transformed", "undone"]

KINDS = ("log10", "asinh", "rank")


def parsed(words: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """What to take of which column, from words such as "log10" or "asinh:raf,mek*"."""
    found: dict[str, str] = {}
    for word in words:
        kind, _, columns = word.partition(":")
        if kind not in KINDS:
            raise ValueError(
                f"--transform {word}: one of {', '.join(KINDS)} is wanted, with columns as in log10:raf,mek*"
            )
        wanted = [one.strip() for one in columns.split(",") if one.strip()]
        for name in chosen_columns(wanted, names, "the table") if wanted else names:
            if name in found:
                raise ValueError(f"--transform gives {name} twice: {found[name]} and {kind}")
            found[name] = kind
    return found


def transformed(frame: pd.DataFrame, kinds: Mapping[str, str], remedy: str) -> pd.DataFrame:
    """The frame with some columns transformed; missing values stay so. remedy: what to do about log10 of 0."""
    logs = [name for name, kind in kinds.items() if kind == "log10"]
    bad = (frame[logs] <= 0).sum()
    if bad.any():
        counts = ", ".join(f"{name} ({number:,})" for name, number in bad[bad > 0].items())
        raise ValueError(f"log10 of values that are not above zero, of {len(frame):,} rows: {counts}. {remedy}")
    take: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "log10": np.log10,
        "asinh": np.arcsinh,
        "rank": _normal_scores,
    }
    return frame.assign(**{name: take[kind](frame[name].to_numpy()) for name, kind in kinds.items()})


def _normal_scores(x: np.ndarray) -> np.ndarray:
    """What a Gaussian of variance 1 has at the rank of each value (van der Waerden's, ties at their mean rank)."""
    there = ~np.isnan(x)
    out = np.full(len(x), np.nan)
    out[there] = ndtri(rankdata(x[there]) / (there.sum() + 1))
    return out


def undone(values: Any, kinds: Mapping[str, str]) -> Any:
    """A frame in the units that it had before it was transformed."""
    back: dict[str, Callable[[Any], Any]] = {"log10": lambda x: 10.0**x, "asinh": np.sinh}
    return values.assign(**{name: back[kind](values[name]) for name, kind in kinds.items()})


def as_setting(kinds: Mapping[str, str], names: Sequence[str]) -> str | dict[str, str]:
    """As it is kept in a model: a word, if it is the same for all."""
    words = set(kinds.values())
    return words.pop() if len(words) == 1 and set(kinds) == set(names) else dict(kinds)


def of_setting(setting: str | Mapping[str, str] | None, names: Sequence[str]) -> dict[str, str]:
    """What was taken of which column, from what is kept in a model."""
    return dict.fromkeys(names, setting) if isinstance(setting, str) else dict(setting or {})
