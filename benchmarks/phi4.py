"""How many configurations of a φ⁴ field its couplings take, by estimator: a standard error of 0.02 in λ and m².

    python benchmarks/phi4.py [--sizes 4 8 16 32] [--samples 400] [--cases "two wells"]

E(φ) = Σ_i (m²/2 φ_i² + λ/4! φ_i⁴) + ½ Σ_<ij> (φ_i − φ_j)² on periodic L × L lattices, configurations by chains of
this library, all estimators on the same ones. Three couplings are learned: those of φ², φ⁴ and of neighbours; m² = 2
θ_mass + 4 θ_neighbours, λ = 24 θ_quartic. Errors are those that the estimators tell (sandwich), and samples needed
follow from them as n (error/0.02)². "z" is how far the estimate is from the truth in such errors.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from isodus import ISODUS, ScoreMatching, lattice_basis
from isodus.datasets import phi4_lattice

CASES = {"one well": (1.0, 6.0), "near the transition": (-1.5, 6.0), "two wells": (-4.0, 12.0)}
ESTIMATORS = {
    "ISODUS": lambda basis: ISODUS(basis=basis),
    "score matching": lambda basis: ScoreMatching(basis=basis),
    "paper's form": lambda basis: ISODUS(basis=basis, refine=0),
}
WANTED = 0.02


def couplings(fit) -> tuple[np.ndarray, np.ndarray]:
    """λ and m², and their standard errors."""
    names = list(fit.shared_.index)
    T = np.zeros((2, len(names)))
    T[0, names.index("quartic")] = 24
    T[1, names.index("mass")], T[1, names.index("neighbours")] = 2, 4
    return T @ fit.shared_.theta.to_numpy(), np.sqrt(np.diagonal(T @ fit.shared_covariance_ @ T.T))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--samples", type=int, default=400, help="at least, and as many as make 100,000 sites")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{'':22}{'L':>4} {'estimator':16}{'λ':>9}{'error':>8}{'z':>6}{'m²':>9}{'error':>8}{'z':>6}"
          f"{'n for λ':>11}{'n for m²':>10}{'seconds':>9}")  # fmt: skip
    for case in options.cases:
        mass2, coupling = CASES[case]
        for L in options.sizes:
            model = phi4_lattice((L, L), mass2=mass2, coupling=coupling, periodic=True)
            started, n = time.perf_counter(), max(options.samples, 102_400 // L**2)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                X = np.asarray(model.sample(n, rng=options.seed, method="hmc" if L > 4 else "auto"))
            drawing = time.perf_counter() - started
            mixed = not any("not mixed" in str(w.message) for w in caught)
            for name, make in ESTIMATORS.items():
                started = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fit = make(lattice_basis((L, L))).fit(X)
                seconds = time.perf_counter() - started
                value, error = couplings(fit)
                if set(fit.status_) != {"converged"} or not np.all(np.isfinite(error)):
                    print(f"{case:22}{L:4} {name:16}  no answer ({fit.status_[0]}, or at a bound)", flush=True)
                    continue
                z, need = (value - [coupling, mass2]) / error, len(X) * (error / WANTED) ** 2
                row = "".join(f"{v:9.3f}{e:8.3f}{d:6.1f}" for v, e, d in zip(value, error, z, strict=True))
                print(f"{case:22}{L:4} {name:16}{row}{need[0]:11,.0f}{need[1]:10,.0f}{seconds:9.2f}", flush=True)
            note = "" if mixed else ", whose chains have not mixed"
            print(f"{'':27}{len(X):,} configurations drawn in {drawing:.0f} s{note}", flush=True)


if __name__ == "__main__":
    main()
