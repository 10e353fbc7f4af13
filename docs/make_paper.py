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
Pseudo-likelihood has the geometric mean too. ISODUS by default refines a pilot by integrals until the pseudo-
likelihood does not rise: near the model its estimates are pseudo-likelihood's. For Gaussians without a penalty
pseudo-likelihood, score matching and ISODUS by default are all the inverse of the empirical covariance, so that their
curves coincide.

All estimators see the same samples, which are exact (the paper's are on grids). An error is the mean of |θ̂ − θ| over
all components. Figures have standard errors; slopes have 95 % intervals, widened where points scatter about the line
by more than their errors (χ²/df above 1), and are fitted over all n and from about 1,000 samples a parameter of a
variable on, where the asymptotic law may be expected. With so many intervals one or two miss their truth by chance.
Where the paper's words leave room ("similar", "flat"), what is counted as true is said in brackets. Rows in italics
are not the paper's claims but what it could not show. A verdict follows from the results file alone.
"""


def cell(text):
    """Text in a cell of a table."""
    return str(text).replace("|", "\\|")


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
    machine = f"{results.machine['processor']}, {results.machine['cores']} cores"
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
        f"{verdict['cannot be told at this size']} cannot be told at this size. Those that do not:",
        "",
    ]
    for name, table in papers.items():
        for row in table[table["verdict"] == "does not hold"].itertuples():
            lines.append(f"- {row.claim}: {row.measured} ({name}).")
    return "\n".join(lines) + "\n"


def main():
    """Figures, claims and the page."""
    found = {name: read_results(RESULTS / f"{name}.json") for name in STUDIES}
    for name, results in found.items():
        write_outputs(STUDIES[name], results, RESULTS)
    tables = {name: verdicts(STUDIES[name], results) for name, results in found.items()}
    parts = [INTRODUCTION, summary(tables), *(section(STUDIES[name], results) for name, results in found.items())]
    parts.append(
        "## How to make this page again\n\n"
        "`isodus paper all --size standard -o docs/paper` takes about two hours on two cores, and goes on where it was "
        "if it is stopped; `python docs/make_paper.py` writes the page. `--size full` has the paper's repetitions, "
        "`--size quick` takes ten minutes.\n"
    )
    (HERE / "paper.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
