"""isodus fit: from files to a model, with a summary that a person can read."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from .. import io
from .._version import __version__
from ..checks import warn
from ..description import chosen_from_the_same, selected
from ..suitability import few_rows
from ..tables import Table, complete, read_table
from ..transforms import as_setting, parsed, transformed
from .common import (
    Debug,
    Json,
    as_json,
    check_output,
    check_stdout,
    counted,
    errors_in_a_line,
    seconds,
    show_warnings,
    warning_lines,
)
from .judged import held_out_in_words, held_out_scores, rounded, with_draws_judged
from .report import ENDINGS
from .supports import supports_of

if TYPE_CHECKING:
    from .. import PolynomialModel

__all__ = ["fit"]

_REMEDY = "Use --transform asinh, or leave those columns or rows out"
_MOST_CANDIDATES = 20_000
_MOST_SCORED = 200_000  # rows that scores are taken on, where there are more
_ROWS_A_TERM = 50  # samples from which the joint test of terms above degree 2 holds its level
_WORSE = 0.01  # nats per variable by which a model that predicts worse is warned of
_ROUNDS = 3  # of filling in what is missing and learning again


class Estimator(StrEnum):
    """What to learn by."""

    ISODUS = "isodus"
    PSEUDO_LIKELIHOOD = "pseudo-likelihood"
    SCORE_MATCHING = "score-matching"


class Missing(StrEnum):
    """What to do about missing values."""

    FAIL = "fail"
    DROP = "drop"
    IMPUTE = "impute"


class Chosen(NamedTuple):
    """Options of an estimator, and what is to be said of them."""

    degree: int
    max_order: int
    l1: float | str
    said: str


def fit(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES...",
            help="Tables, a sample a row: CSV with a header, Parquet, Feather, .npy or .npz; - is standard input.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Where to write the model, as JSON; its terms go beside it, as CSV. - is standard output.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write a report of it, as HTML; see isodus report; - is standard output."
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns to take, as a,b,gene_*; all numeric ones unless given.")
    ] = None,
    transform: Annotated[
        list[str] | None, typer.Option(help="Take log10, asinh or rank of all columns first, or of some: log10:a,b*")
    ] = None,
    support: Annotated[
        list[str] | None,
        typer.Option(help="Where columns live: positive, spin, circle, 0..1 or 0/1/2; of some: positive:dose,age*"),
    ] = None,
    weights: Annotated[str | None, typer.Option(metavar="COLUMN", help="A column of repetition counts.")] = None,
    missing: Annotated[
        Missing, typer.Option(help="Missing values: an error, leave out their rows, or fill them in by the model.")
    ] = Missing.FAIL,
    degree: Annotated[
        int | None, typer.Option(show_default="4, if there are rows enough", help="Highest degree of a term; even.")
    ] = None,
    max_order: Annotated[int | None, typer.Option(show_default="2", help="Most distinct variables in a term.")] = None,
    estimator: Annotated[Estimator, typer.Option(help="What to learn by.")] = Estimator.ISODUS,
    l1: Annotated[
        str | None,
        typer.Option(
            show_default="0, or auto if rows are few",
            help="Penalty that leaves few terms: a number, or auto, ebic, cv or stars to choose one.",
        ),
    ] = None,
    match_moments: Annotated[
        bool,
        typer.Option(
            "--match-moments",
            help="Then find a model to sample from: these terms, a power more of each column, the data's moments.",
        ),
    ] = False,
    device: Annotated[str | None, typer.Option(help="Where to compute, such as cuda.")] = None,
    level: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of what is filled in, and of chains.")] = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Learn the model behind the numeric columns of tables, and say what was found."""
    with errors_in_a_line(debug):
        terms = None if output is None or io.is_stream(output) else output.with_suffix(".terms.csv")
        aside = check_stdout({"-o": output, "--report": report}, json)
        what: dict[Path | None, str] = dict.fromkeys(files, "the samples")
        check_output(output, "the model", what)
        check_output(terms, "its terms", what)
        check_output(report, "the report", what | {output: "the model", terms: "its terms"}, ENDINGS)
        said = _Said(json, aside)
        table = _read(files, columns, weights, missing, said)
        kinds = parsed(transform or [], list(table.frame.columns))
        table = table._replace(frame=transformed(table.frame, kinds, _REMEDY))
        supports = supports_of(support or [], list(table.frame.columns))
        chosen = _suited(len(table.frame), len(table.frame.columns), degree, max_order, l1)
        if chosen.said:
            said(chosen.said)
        learner = _learner(estimator, chosen, device).set_params(support=supports)
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            filled = _learned(learner, table, seed, said)
            if match_moments:
                _match(learner, filled, seed)
            learned = time.perf_counter() - started
            with Console(stderr=True).status("comparing with the samples, and with a Gaussian on rows held out"):
                model = with_draws_judged(learner.model_, learner.integrability_, filled)
                learner.model_, some = model, _some(filled)
                score = learner.score(some.frame, sample_weight=some.weight)
                held_out = None if match_moments else held_out_scores(learner, some)
                if held_out and held_out["gaussian_score"] - held_out["score"] > _WORSE:
                    warn(f"{held_out_in_words(held_out)}. Use --degree 2, fewer terms, or a transform of heavy tails")
        if kinds:
            model = replace(model, settings={**model.settings, "transform": as_setting(kinds, model.names)})
        found = _found(model, learner, level, score, held_out) | {"n_scored": len(some.frame)}
        if output:
            found["written"] = _written(model, output, terms, level)
        if report:
            learner.model_ = model  # with what was taken of the samples
            source = model if match_moments else learner
            compared = [held_out_in_words(held_out)] if held_out else []
            caught += _report(source, report, filled, [*said.lines[1:], *warning_lines(caught), *compared])
            found["report"] = str(report)
        if json:
            found |= {"said": said.lines, "warnings": warning_lines(caught), "seconds": learned}
            typer.echo(as_json(found))
            return
        how = f"{estimator}, with the moments of the data," if match_moments else estimator
        said(f"learned by {how} in {learned:.2f} s\n\n{model.summary(level=level)}\n")
        show_warnings(caught)
        for line in _lines(found, model, learner.status_):
            said(line)


def _report(source: Any, path: Path, table: Table, said: Sequence[str]) -> list[warnings.WarningMessage]:
    """Write a report of what was learned; what was warned of meanwhile. source: the estimator, or a model."""
    from .. import write_report

    with warnings.catch_warnings(record=True) as caught, Console(stderr=True).status("making the report"):
        warnings.simplefilter("always")
        write_report(source, path, table.frame, sample_weight=table.weight, new=False, said=said)
    return caught


def _written(model: PolynomialModel, output: Path, terms: Path | None, level: float) -> list[str]:
    """Write the model and, beside a file, its terms; the names of what was written."""
    model.save(output)
    if terms is None:
        return [str(output)]
    with io.writing(terms) as f:
        model.to_frame(level=level).to_csv(f, index=False)
    return [str(output), str(terms)]


class _Said:
    """What was said, printed at once or kept; aside: on standard error."""

    def __init__(self, quiet: bool, aside: bool = False) -> None:
        self.quiet, self.aside, self.lines = quiet, aside, list[str]()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if not self.quiet:
            typer.echo(line, err=self.aside)


def _read(files: list[Path], columns: str | None, weights: str | None, missing: Missing, said: _Said) -> Table:
    """The table, complete unless what is missing is to be filled in, and what there is to say of it."""
    started = time.perf_counter()
    wanted = None if columns is None else [name.strip() for name in columns.split(",")]
    with Console(stderr=True).status("reading"):
        table = read_table(files, wanted, weights)
    said(f"read {len(table.frame):,} rows, {counted(len(table.frame.columns), 'column')} in {seconds(started)}")
    if missing != Missing.IMPUTE:
        called = " and ".join(map(str, files)) if len(files) < 3 else f"{len(files)} files"
        table = complete(table, called, missing)
    for line in table.said:
        said(line)
    if table.left_out:
        said("left out: " + _listed(table.left_out))
    return table


def _listed(left_out: Mapping[str, str]) -> str:
    """The first of them, each with its reason."""
    first = [f"{name} ({why})" for name, why in list(left_out.items())[:12]]
    return ", ".join(first) + (f" and {len(left_out) - 12:,} more" if len(left_out) > 12 else "")


def _suited(n: int, p: int, degree: int | None, max_order: int | None, l1: str | None) -> Chosen:
    """The options that were asked for, or, where none was, ones that suit the size of the data."""
    if not (degree is None and max_order is None and l1 is None):
        usual = (4 if degree is None else degree, 2 if max_order is None else max_order)  # 0 is for the fit to refuse
        return Chosen(*usual, _penalty("0" if l1 is None else l1), "")
    a_variable, all_terms = 4 + 6 * (p - 1), 4 * p + 3 * p * (p - 1)
    why = few_rows(n, a_variable, 4)
    if not why:
        return Chosen(4, 2, 0.0, "")
    if p == 1:
        return Chosen(2, 2, 0.0, f"{why}: took degree 2 (--degree 2)")
    if all_terms > _MOST_CANDIDATES:
        return Chosen(2, 2, "auto", f"{why}: looked for the few pairs that matter at degree 2 (--degree 2 --l1 auto)")
    return Chosen(
        4,
        2,
        "auto",
        f"{why}: looked for the few that matter, by a penalty (--l1 auto). Another way is a Gaussian with all pairs "
        "(--degree 2)",
    )


def _penalty(text: str) -> float | str:
    """A number, or the word that it is."""
    try:
        return float(text)
    except ValueError:
        return text


def _learner(estimator: Estimator, chosen: Chosen, device: str | None) -> Any:
    from .. import ISODUS, PseudoLikelihood, ScoreMatching

    choice: Any = {"isodus": ISODUS, "pseudo-likelihood": PseudoLikelihood, "score-matching": ScoreMatching}
    return choice[estimator](chosen.degree, max_order=chosen.max_order, l1=chosen.l1, n_jobs=-1, device=device)


def _learned(learner: Any, table: Table, seed: int, said: _Said) -> Table:
    """Fit to what is complete; then fill in the rest by the model and fit again, a few times. The filled table."""
    empty = int(table.frame.isna().to_numpy().sum())
    if not empty:
        learner.fit(table.frame, sample_weight=table.weight)
        return table
    whole = complete(table, "the table", "drop")
    learner.fit(whole.frame, sample_weight=whole.weight)
    filled = table
    for k in range(_ROUNDS):
        filled = table._replace(frame=pd.DataFrame(learner.model_.impute(table.frame, rng=seed + k)))
        learner.fit(filled.frame, sample_weight=table.weight)
    each = ", ".join(f"{name} {count:,}" for name, count in table.frame.isna().sum().items() if count)
    said(
        f"{counted(empty, 'missing cell')} filled in by the model, learned from {len(whole.frame):,} complete rows and "
        f"then {_ROUNDS} times from all: {each}. Standard errors do not know of it, and are too small"
    )
    return filled


def _match(learner: Any, table: Table, seed: int) -> None:
    """Put a model whose samples have the moments of the data in the place of the one that was learned."""
    from .. import match_moments

    if table.weight is not None:
        raise ValueError("--match-moments does not know of --weights: leave one of them out")
    learner.model_ = match_moments(learner.model_, table.frame, rng=seed)
    learner.integrability_ = learner.model_.integrability()


def _some(table: Table) -> Table:
    """Rows of a table, spread evenly, that tell a mean well enough."""
    if len(table.frame) <= _MOST_SCORED:
        return table
    at = np.linspace(0, len(table.frame) - 1, _MOST_SCORED).astype(int)
    return table._replace(frame=table.frame.iloc[at], weight=None if table.weight is None else table.weight[at])


def _found(
    model: PolynomialModel, learner: Any, level: float, score: float, held_out: dict[str, Any] | None
) -> dict[str, Any]:
    """What was learned, for programs to read."""
    from .. import nested_test

    test = None
    if model.basis.degree > 2:
        try:
            test = nested_test(model, 2)._asdict()
        except ValueError:  # without standard errors there is none
            test = None
    verdict = learner.integrability_
    return {
        "isodus": __version__,
        "n_samples": model.n_samples,
        "columns": list(model.names),
        "settings": model.settings,
        "status": dict(zip(model.names, learner.status_, strict=True)),
        "integrability": None if verdict is None else {"status": verdict.status, "reason": verdict.reason},
        "score": score,
        "held_out": held_out,
        "gaussian_test": test,
        "interactions": model.interactions().to_dict("records"),
        "terms": model.to_frame(level=level).to_dict("records"),
        "level": level,
    }


def _lines(found: Mapping[str, Any], model: PolynomialModel, status: Sequence[str]) -> list[str]:
    """What is to be said after the summary."""
    lines = [f"note: {line}" for line in _unsettled(model.names, status)]
    verdict, test = found["integrability"], found["gaussian_test"]
    if verdict:
        lines.append(f"a density? {verdict['status']}: {verdict['reason']}")
    if model.basis.degree > 2 and model.basis.spaces is None:
        lines.append(f"a Gaussian? {_gaussian_verdict(test, model)}")
    lines.append(f"mean log P(x_i | rest) per variable, on {_which(found)}: {rounded(found['score'])}")
    if held_out := found["held_out"]:
        lines.append(held_out_in_words(held_out))
    if "written" in found:
        model_file, *beside = found["written"]
        lines.append(f"model written to {model_file}" + "".join(f", its terms to {path}" for path in beside))
    if "report" in found:
        lines.append(f"report written to {found['report']}")
    return lines


def _which(found: Mapping[str, Any]) -> str:
    return f"{_MOST_SCORED:,} of the rows" if found["n_scored"] == _MOST_SCORED else "these samples"


def _gaussian_verdict(test: Mapping[str, Any] | None, model: PolynomialModel) -> str:
    """The test that all terms above degree 2 are zero; which of two models predicts better is another question."""
    high = model.basis.degrees > 2
    if not np.any(model.theta[high]):
        return "not tested: no term above degree 2 is in the model"
    if selected(model):
        return "not tested: select=True may have left out terms above degree 2"
    if test is None or not np.isfinite(test["p_value"]):
        return "not tested: terms above degree 2 have no standard errors"
    what = f"of {counted(int(np.count_nonzero(model.theta[high])), 'term')} above degree 2, all at once, p = "
    what += "below 1e-300" if test["p_value"] == 0 else f"{test['p_value']:.2g}"
    held = int(np.count_nonzero(np.isnan(model.stderr("standardized")) & high & (model.theta != 0)))
    said = ["too small, as they were chosen from the same rows"] if chosen_from_the_same(model) else []
    said += [f"{counted(held, 'term')} held at a bound, not tested"] if held else []
    what += f" ({'; '.join(said)})" if said else ""
    if model.n_samples is not None and model.n_samples < _ROWS_A_TERM * test["df"]:
        return f"not tested reliably: with fewer than {_ROWS_A_TERM} samples a term p is too small: {what}"
    return f"rejected: {what}" if test["p_value"] < 0.05 else f"not rejected: {what}"


def _unsettled(names: Sequence[str], status: Sequence[str]) -> list[str]:
    """The variables that did not converge as they should, a line for each status."""
    lines = []
    for word in sorted(set(status) - {"converged"}):
        found = [name for name, other in zip(names, status, strict=True) if other == word]
        lines.append(f"{word}, {len(found)} of {len(names)} variables: {', '.join(found)}")
    return lines
