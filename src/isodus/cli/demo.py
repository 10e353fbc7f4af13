"""isodus demo: samples of a known model, learned and compared."""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from .._version import __version__
from .common import Debug, Json, as_json, errors_in_a_line

__all__ = ["demo"]


def demo(
    n: Annotated[int, typer.Option("-n", "--samples", min=1000, help="How many samples to draw.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples.")] = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw samples of the paper's four-variable model, learn it, and compare."""
    with errors_in_a_line(debug):
        console = Console(width=None if Console().is_terminal else 100, quiet=json)
        console.print(
            f"isodus {__version__}: four variables in two independent pairs, 24 parameters. The estimator knows\n"
            "neither; it learns all terms of degree 2 to 4.\n",
            highlight=False,
        )
        found = _compared(n, seed)
        if json:
            typer.echo(as_json(found))
            return
        _show(console, found)


def _compared(n: int, seed: int) -> dict[str, Any]:
    """What was true and what was learned, with the mean errors, also with the paper's settings, and seconds."""
    from .. import ISODUS
    from ..datasets import paper_4d

    truth = paper_4d()
    terms = dict(degree=4, min_degree=2, max_order=None, random_state=seed)
    started = time.perf_counter()
    X = truth.sample(n, rng=seed)
    drawn = time.perf_counter() - started
    started = time.perf_counter()
    model = ISODUS(**terms).fit(X).model_  # type: ignore[arg-type]
    learned = time.perf_counter() - started
    paper = dict(nu=2.0, delta=2.0, center=False, scale=False, refine=0, consensus="geometric", integrable="warn")
    other = ISODUS(**terms, **paper).fit(X).model_  # type: ignore[arg-type]
    true = np.array([truth.to_dict().get(term, 0.0) for term in model.basis.terms])
    error, papers = (float(np.mean(np.abs(found.parameters() - true))) for found in (model, other))
    frame = model.to_frame()[["term", "theta", "stderr"]].assign(true=true)
    return {
        "n_samples": n,
        "seed": seed,
        "terms": frame.to_dict("records"),
        "mean_error": error,
        "mean_error_paper": papers,
        "seconds": {"sampling": drawn, "learning": learned},
    }


def _show(console: Console, found: dict[str, Any]) -> None:
    table = Table(title="parameters that are not zero", title_justify="left", header_style="bold")
    for _ in range(2):
        table.add_column("term")
        table.add_column("true", justify="right")
        table.add_column("learned", justify="right")
    terms = found["terms"]
    cells = [(t["term"], f"{t['true']:.2f}", f"{t['theta']:+.3f} ± {t['stderr']:.3f}") for t in terms if t["true"]]
    first = [cell for cell in cells if "x0" in cell[0] or "x1" in cell[0]]
    second = [cell for cell in cells if cell not in first]
    for left, right in zip(first, second, strict=True):
        table.add_row(*left, *right)
    console.print(table)
    zeros = [t for t in terms if not t["true"]]
    sure = sum(abs(t["theta"]) < 1.96 * t["stderr"] for t in zeros)
    took = found["seconds"]
    console.print(
        f"{len(zeros)} further terms, in truth zero, were learned too: {sure} within 1.96 standard errors of zero.\n"
        f"Mean absolute error over all {len(terms)} terms: {found['mean_error']:.3f}; with the settings of the paper "
        f"{found['mean_error_paper']:.3f}.\n"
        f"{found['n_samples']:,} samples drawn in {took['sampling']:.2f} s, model learned in {took['learning']:.2f} s.",
        highlight=False,
    )
