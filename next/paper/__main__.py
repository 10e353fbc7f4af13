"""python -m paper [STUDY] [--size quick|standard]: run a study or all, print the claims, and write the page."""

import argparse
from pathlib import Path

from . import STUDIES
from .page import write_page
from .study import RESULTS, load, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument("study", nargs="?", default="all", choices=[*STUDIES, "all"])
    parser.add_argument("--size", default="quick", choices=["quick", "standard"])
    options = parser.parse_args()
    folder = RESULTS if options.size == "standard" else RESULTS / options.size
    for name in STUDIES if options.study == "all" else [options.study]:
        study = load(name)
        results = run(name, options.size, folder)
        print(f"\n{name}: {study.TITLE} ({results.about['seconds']:,.0f} s of a core)")
        for claim in study.claims(results.table):
            print(f"  {claim.verdict:<15} {claim.text}: {claim.measured}")
    page = Path(__file__).parents[1] / "docs" / "paper.md" if options.size == "standard" else folder / "paper.md"
    write_page(folder, page)
    print(f"\nwrote {page}")


if __name__ == "__main__":
    main()
