"""isodus demo: samples of a known model, learned and compared."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from .._version import __version__

__all__ = ["demo"]


def demo(
    n: Annotated[int, typer.Option("-n", "--samples", min=1000, help="How many samples to draw.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
) -> None:
    """Draw samples of the paper's four-variable model, learn it, and compare."""
    from .. import ISODUS
    from ..datasets import paper_4d

    console = Console(width=None if Console().is_terminal else 100)
    truth = paper_4d()
    console.print(
        f"isodus {__version__}: four variables in two independent pairs, 24 parameters. The estimator knows\n"
        "neither; it learns all terms of degree 2 to 4.\n",
        highlight=False,
    )
    terms = dict(degree=4, min_degree=2, max_order=None, random_state=seed)
    started = time.perf_counter()
    X = truth.sample(n, rng=seed)
    drawn = time.perf_counter() - started
    started = time.perf_counter()
    model = ISODUS(**terms).fit(X).model_  # type: ignore[arg-type]
    learned = time.perf_counter() - started
    paper = dict(nu=2.0, delta=2.0, center=False, scale=False, refine=0, consensus="geometric", integrable="warn")
    other = ISODUS(**terms, **paper).fit(X).model_  # type: ignore[arg-type]

    true, values, stderr = truth.to_dict(), model.to_dict(), dict(zip(model.basis.terms, model.stderr(), strict=True))
    table = Table(title="parameters that are not zero", title_justify="left", header_style="bold")
    for _ in range(2):
        table.add_column("term")
        table.add_column("true", justify="right")
        table.add_column("learned", justify="right")
    cells = [(model.term_name(t), f"{true[t]:.2f}", f"{values[t]:+.3f} ± {stderr[t]:.3f}") for t in values if t in true]
    first = [cell for cell in cells if "x0" in cell[0] or "x1" in cell[0]]
    second = [cell for cell in cells if cell not in first]
    for left, right in zip(first, second, strict=True):
        table.add_row(*left, *right)
    console.print(table)
    zeros = [t for t in values if t not in true]
    sure = sum(abs(values[t]) < 1.96 * stderr[t] for t in zeros)
    error, papers = (
        np.mean([abs(value - true.get(t, 0.0)) for t, value in found.to_dict().items()]) for found in (model, other)
    )
    console.print(
        f"{len(zeros)} further terms, in truth zero, were learned too: {sure} within 1.96 standard errors of zero.\n"
        f"Mean absolute error over all {len(values)} terms: {error:.3f}; with the settings of the paper {papers:.3f}.\n"
        f"{n:,} samples drawn in {drawn:.2f} s, model learned in {learned:.2f} s.",
        highlight=False,
    )
