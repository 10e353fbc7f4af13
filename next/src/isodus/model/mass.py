"""What draws say of a model: above all, whether its mass is where the data are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._core.notes import Note
from ..axes import Axis
from ..sampling import Draws, LogPartition
from .fitted import Fitted

__all__ = ["draw_notes", "mass_notes", "partition_notes"]

Array = np.ndarray
_OUTSIDE = 0.1  # share of draws beyond the range of the data
_SHIFT, _WIDE, _NARROW = 0.5, 2.0, 0.3  # of the data's standard deviation
_SURE = 4.0  # standard errors of what draws say
_LARGE_ERROR = 0.1  # nats of log Z
_MIXED = 0.2  # share of draws that count as independent
_FEW = 30  # draws, up to which their standard deviation says nothing
_LIGHT = 8.0  # standard deviations in the range of a column whose standard deviation draws must reach


def draw_notes(draws: Draws, fitted: Fitted | None, names: Sequence[str], axes: Sequence[Axis]) -> list[Note]:
    """What draws say of a model: where its mass is, whether chains mix, and whether integrals are resolved."""
    n, notes = len(draws.X), []
    effective = _effective(draws)
    if fitted is not None:
        notes += mass_notes(draws.X, effective, fitted, names, axes)
    if effective < _MIXED * n:
        text = (
            f"The {n:,} draws count as {effective:,.0f} independent ones, because Gibbs chains move slowly between "
            "regions of this density. Averages over them are less exact than their number suggests. Draw more."
        )
        notes.append(Note("slow chains", "warning", (), {"n": n, "effective": effective}, text))
    bad = {name: int(count) for name, count in zip(names, draws.unresolved, strict=True) if count}
    if bad:
        text = (
            f"Conditional densities of {', '.join(map(repr, bad))} are too narrow to be integrated, so that these "
            "draws are not reliable. The columns are nearly determined by others. Drop near-copies."
        )
        notes.append(Note("unresolved draws", "warning", tuple(bad), {k: float(v) for k, v in bad.items()}, text))
    return notes


def partition_notes(found: LogPartition, draws: Draws | None = None) -> list[Note]:
    """A warning where log Z is an estimate with a large error, or by chains that do not reach all of the density."""
    lost = draws is not None and (draws.unresolved.any() or _effective(draws) < _MIXED * len(draws.X))
    if found.method == "annealed" and lost:
        what = f"Log Z is an estimate by chains that do not mix, so its error may be far above {found.stderr:.2g} nats"
    elif found.stderr > _LARGE_ERROR:
        what = f"Log Z has a standard error of {found.stderr:.2g} nats"
    else:
        return []
    text = f"{what}. Values of logpdf share this error. Compare densities of one model by `energy`, which is exact."
    return [Note("log partition", "warning", (), {"stderr": float(found.stderr)}, text)]


def _effective(draws: Draws) -> float:
    """How many draws count as independent."""
    return float(len(draws.X) if draws.effective is None else draws.effective.min())


def mass_notes(X: Array, effective: float, fitted: Fitted, names: Sequence[str], axes: Sequence[Axis]) -> list[Note]:
    """A warning that names the columns whose draws, (n, p), are not where the data are; `effective` draws count."""
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for i in np.flatnonzero([axis.ordered for axis in axes]).tolist():
        moments = None if fitted.means is None or fitted.sds is None else (fitted.means[i], fitted.sds[i])
        words, numbers = _distance(X[:, i], max(effective, 1.0), fitted.minima[i], fitted.maxima[i], moments)
        if words:
            found[names[i]] = (words.format(repr(names[i])), numbers)
    if not found:
        return []
    said = [words for words, _ in found.values()]
    more = f", and so on for {len(said) - 3} more columns" if len(said) > 3 else ""
    text = (
        f"The model's mass is not where the data are: {', '.join(said[:3])}{more}. Samples and log Z describe that "
        "region, not your data. Lower the degree, use more rows, or use penalty=Ridge('cv')."
    )
    numbers = {f"{what} {name}": value for name, (_, values) in found.items() for what, value in values.items()}
    return [Note("mass far from the data", "warning", tuple(found), numbers, text)]


def _distance(
    x: Array, count: float, low: float, high: float, moments: tuple[float, float] | None
) -> tuple[str, dict[str, float]]:
    """How draws of a column differ from its data, in words with {} for its name, else no words; and by number."""
    sure = _SURE / np.sqrt(count)
    outside = float(np.mean((x < low) | (x > high)))
    numbers, words = {"outside": outside}, ""
    if outside > _OUTSIDE + sure * np.sqrt(_OUTSIDE * (1 - _OUTSIDE)):
        words = f"{100 * outside:.0f} % of the draws of {{}} lie beyond the data"
    if moments is None:
        return words, numbers
    mean, sd = moments[0], max(moments[1], 1e-300)
    near = np.clip(x, low - (high - low), high + (high - low))  # one draw far out in a tail is no sign
    shift, ratio = float(abs(near.mean() - mean) / sd), float(near.std() / sd)
    narrow = high - low < _LIGHT * sd and ratio < _NARROW / (1 + sure)
    if shift > _SHIFT + sure * max(ratio, 1.0):
        words = f"the draws of {{}} are {shift:.2g} standard deviations from the data on average"
    elif not words and count > _FEW and (ratio > _WIDE * (1 + sure) or narrow):
        words = f"the draws of {{}} have {ratio:.2g} times the standard deviation of the data"
    return words, numbers | {"shift": shift, "spread": ratio}
