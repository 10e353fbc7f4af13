"""A model and what there is to say of it as one HTML file, which needs nothing else and no network."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import io
from ..model import PolynomialModel
from ..wording import once
from .content import gather
from .page import page

__all__ = ["write_report"]


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    sample_weight: Any = None,
    new: bool | None = None,
    title: str | None = None,
    said: Sequence[str] = (),
) -> None:
    """Write a report of a model as one HTML file: in words, as a graph, as tables and pictures.

    Parameters
    ----------
    model : PolynomialModel or fitted estimator
        Of an estimator tests of fit allow for its having been fitted to the same samples.
    path : path
        An existing file is replaced only by a complete one.
    X : array or DataFrame of shape (n_samples, n_variables), optional
        Samples, in the variables of the model, to hold it against; without them the report is of the model alone.
    sample_weight : array of shape (n_samples,), optional
        Repetition counts; pictures then show rows in proportion, and there are no tests of fit.
    new : bool, optional
        Whether the model was not learned from X. By default that is told by the number of rows and their middles.
    title : str, optional
        Of the report.
    said : sequence of str
        What else there is to say, such as warnings of the fit, which a model does not keep.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from isodus import PolynomialModel, write_report
    >>> model = PolynomialModel.from_dict({(0, 0): 1, (0, 1): 0.5, (1, 1): 1})
    >>> with TemporaryDirectory() as folder:
    ...     write_report(model, Path(folder) / "report.html")
    ...     "<h1>Interactions of 2 variables</h1>" in (Path(folder) / "report.html").read_text(encoding="utf-8")
    True
    """
    made = getattr(model, "model_", model)
    if not isinstance(made, PolynomialModel):
        raise ValueError(f"a PolynomialModel or a fitted estimator is wanted, not {model!r}")
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"there is no folder {Path(path).parent} to write {Path(path).name} into")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings(
            "ignore", "Glyph .* missing from", UserWarning
        )  # names are in the page, not in pictures
        found = gather(model, made, X, sample_weight, new, title, said)
        late = [" ".join(str(one.message).split()) for one in caught]
        found["warnings"] = once([*found["warnings"], *late])
    io.write_text(path, page(found))
    for one in caught:
        warnings.warn(one.message, one.category, stacklevel=2)
