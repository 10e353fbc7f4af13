"""How long does a large basis take, and how much memory? All 4.6 million terms of 100 variables up to degree 4.

python benchmarks/basis.py
"""

import resource
import time

from isodus import MonomialBasis


def main():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    basis = MonomialBasis(100, 4)
    terms = time.perf_counter() - started
    local, recipes = basis.local(0), basis.recipes
    total = time.perf_counter() - started
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
    print(
        f"{basis}; {len(local.terms):,} at each variable, {len(basis.cofactors):,} cofactors from {len(recipes)} slices"
    )
    print(f"terms {terms:.2f} s")
    print(f"seconds with the maps of all nodes: {total:.2f} (wanted: below 10)")
    print(f"gigabytes at the peak: {memory:.2f} (wanted: below 2)")


if __name__ == "__main__":
    main()
