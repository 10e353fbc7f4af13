"""Makes docs/paper.md, "The paper, checked", from the results in docs/paper.

isodus paper all --size standard -o docs/paper
python docs/make_paper.py
"""

from collections import Counter
from pathlib import Path

from isodus.paper import STUDIES
from isodus.paper.study import read_results, verdicts, write_outputs

HERE = Path(__file__).parent
RESULTS = HERE / "paper"

INTRODUCTION = """# The paper, checked

Ren, Misra, Vuffray and Lokhov, "Learning Continuous Exponential Families Beyond Gaussian", introduced ISODUS. Its
figures are reproduced here, every claim that it makes in numbers is measured again, and what it could not show is in
the same figures: pseudo-likelihood with batched integrals, score matching, and ISODUS as this library has it by
default.

"ISODUS, paper" is the estimator as the paper has it: ν = δ = 2, raw units, the plain objective, geometric mean.
Pseudo-likelihood has the geometric mean too. ISODUS by default refines a pilot by integrals until pseudo-likelihood
does not rise: near the model its estimates are those of pseudo-likelihood. For Gaussians without a penalty
pseudo-likelihood, score matching and ISODUS by default are all the inverse of the empirical covariance, so that their
curves coincide.

All estimators see the same samples, which are exact (the paper's are on grids). An error is the mean of |θ̂ − θ| over
all components. Figures have standard errors; slopes have 95 % intervals, widened where points scatter about the line
by more than their errors (χ²/df above 1), and are fitted over all n and from about 1,000 samples a parameter of a
variable on, where the asymptotic law may be expected. With so many intervals one or two miss their truth by chance.
Where the paper's words leave room ("similar", "flat"), what is counted as true is said in brackets. A claim holds, or
does not, where the whole 95 % interval of its figure says so, with a t-distribution where there are few sets; otherwise
it cannot be told at this size. Rows in italics are not the paper's claims but what it could not show. A verdict follows
from the results file alone.
"""

SPEED = """## The headline case

`python benchmarks/paper_speed.py` (two cores, one thread, 2026-11-16): pair (1, 2), n = 100,000, from raw samples to
estimates of both variables, ours with standard errors; medians of five rounds. The paper has 9 s for ISODUS and 7,000
times as long for pseudo-likelihood.

| estimator | seconds | times ISODUS with the paper's settings |
| --- | --- | --- |
| ISODUS, paper's settings | 0.025 | 1 |
| ISODUS, default | 0.079 | 3.2 |
| pseudo-likelihood, batched integrals | 0.191 | 7.6 |
| score matching | 0.023 | 0.9 |
| Ipopt through CasADi on the paper's problems | 0.780 | 31 |
| pseudo-likelihood, adaptive integrals one after the other, 3 passes, scaled from 500 samples | 618 | 24,600 |
"""


def cell(text):
    """Text in a cell of a table; the asterisk of n* ends no italics."""
    return str(text).replace("|", "\\|").replace("*", "\\*")


def section(study, results):
    """Heading, what the paper says, the figure, a row a claim, and remarks."""
    lines = [
        f"## {study.TITLE}",
        "",
        f"*The paper:* {study.STATED}",
        "",
        f"![{study.TITLE}](paper/{study.NAME}.png)",
        "",
    ]
    lines += ["| claim | measured | |", "| --- | --- | --- |"]
    for row in verdicts(study, results).itertuples():
        verdict = row.verdict if row.verdict == "holds" else f"**{row.verdict}**"
        claim = cell(row.claim) if row.of_paper else f"*{cell(row.claim)}*"
        lines.append(f"| {claim} | {cell(row.measured)} | {verdict} |")
    for remark in study.remarks(results.table, results.settings):
        lines += ["", remark]
    command = f"isodus paper {study.NAME} --size {results.settings['size']}"
    cores = results.machine["cores"]
    machine = f"{results.machine['processor']}, {cores} core{'s' if cores > 1 else ''}"
    lines += ["", f"`{command}`; isodus {results.isodus}, seed {results.settings['seed']}; {machine}.", ""]
    return "\n".join(lines)


def summary(tables):
    """How many claims hold, and which do not."""
    papers = {name: table[table["of_paper"]] for name, table in tables.items()}
    verdict = Counter(row.verdict for table in papers.values() for row in table.itertuples())
    lines = [
        "## In short",
        "",
        f"Of {verdict.total()} claims of the paper {verdict['holds']} hold, {verdict['does not hold']} do not, and "
        f"{verdict['cannot be told at this size']} cannot be told at this size.",
    ]
    for other, words in (("does not hold", "Do not hold"), ("cannot be told at this size", "Cannot be told")):
        rows = [(name, row) for name, table in papers.items() for row in table[table["verdict"] == other].itertuples()]
        if rows:
            lines += ["", f"{words}:", "", *(f"- {row.claim}: {row.measured} ({name})." for name, row in rows)]
    return "\n".join(lines) + "\n"


def main():
    """Figures, claims and the page."""
    found = {name: read_results(RESULTS / f"{name}.json") for name in STUDIES}
    for name, results in found.items():
        write_outputs(STUDIES[name], results, RESULTS)
    tables = {name: verdicts(STUDIES[name], results) for name, results in found.items()}
    parts = [
        INTRODUCTION,
        summary(tables),
        SPEED,
        *(section(STUDIES[name], results) for name, results in found.items()),
    ]
    parts.append(
        "## How to make this page again\n\n"
        "`isodus paper all --size standard -o docs/paper` takes three to four hours on two cores, and goes on where it "
        "was if it is stopped; `python docs/make_paper.py` writes the page. `--size full` has the paper's repetitions, "
        "`--size quick` takes seven minutes.\n"
    )
    (HERE / "paper.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
