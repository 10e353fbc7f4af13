"""isodus compare: models beside one another on new samples."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from ..transforms import of_setting
from .common import Debug, Json, as_json, errors_in_a_line, load_model, samples_for, show_warnings, warning_lines

__all__ = ["compare"]


def compare(
    files: Annotated[list[Path], typer.Argument(metavar="MODELS...", help="Models, as isodus fit -o writes them.")],
    data: Annotated[
        Path,
        typer.Option(help="A table of samples that no model was fitted to; - is standard input.", show_default=False),
    ],
    weights: Annotated[str | None, typer.Option(metavar="COLUMN", help="A column of repetition counts.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Which model predicts new samples best, and whether it takes more than a Gaussian."""
    from .. import compare as side_by_side

    with errors_in_a_line(debug):
        models = {}
        for file in files:
            if str(file) in models:
                raise ValueError(f"{file} is given twice")
            models[str(file)] = load_model(file)
        first = next(iter(models.values()))
        kinds = {name: model.settings.get("transform") for name, model in models.items()}
        if len({repr(kind) for kind in kinds.values()}) > 1:
            listed = ", ".join(f"{name}: {kind or 'none'}" for name, kind in kinds.items())
            raise ValueError(f"models of different transforms of the data cannot be compared: {listed}")
        if "rank" in of_setting(next(iter(kinds.values())), first.names).values():
            raise ValueError("models of ranks have no samples to be compared on but their own")
        table = samples_for(first, data, weights)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = side_by_side(models, table.frame, sample_weight=table.weight)
        if json:
            typer.echo(
                as_json(
                    {
                        "verdict": found.verdict,
                        "recommended": found.recommended,
                        "table": found.table.to_dict("records"),
                        "wald": found.wald.to_dict("records"),
                        "nested": found.nested.to_dict("records"),
                        "said": table.said,
                        "warnings": warning_lines(caught),
                    }
                )
            )
            return
        for line in table.said:
            typer.echo(line)
        typer.echo(repr(found).removeprefix("Comparison: "))
        show_warnings(caught)
