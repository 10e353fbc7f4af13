"""The paper's experiments on this library: Ren, Misra, Vuffray and Lokhov, "Learning Continuous Exponential Families
Beyond Gaussian". One file per study; `make paper STUDY=error-1d SIZE=standard` runs one, and `docs/paper.md` shows all.

A study has TITLE, STATED (what the paper says), PROCESSES (1 where time is measured), tasks(size), repetition(task),
claims(table) and draw(table). A task is a dictionary; the rows of its repetition and the task itself become the table.
"""

STUDIES = (
    "error-1d",
    "time-1d",
    "degree-ratio",
    "two-d",
    "error-4d",
    "time-4d",
    "gaussian-scaling",
    "nu-delta",
    "irrepresentability",
    "lambda-sweep",
    "n-star",
)
SIZES = ("tiny", "quick", "standard")
