"""Copies and sums of columns with noise: the score on new rows beside the generator's own.

n = 2,000, 5,000 new rows; x standard normal, the copy x + noise·e; the sum x + y + noise·e. Degree 2 and 4, pairs.
At degree 4, beside the first set: the most steps of a stage or rung, and the worst difference, of five more sets.

    python benchmarks/near_copies.py
"""

import warnings

import numpy as np
from common import write_table

from isodus import PseudoLikelihood
from isodus.fit.gaussian import Gaussian


def table(kind, noise, n, rng):
    """Rows, and the generator as a Gaussian."""
    A = np.array([[1, 0], [1, noise]] if kind == "copy" else [[1, 0, 0], [0, 1, 0], [1, 1, noise]], float)
    return rng.standard_normal((n, len(A))) @ A.T, Gaussian(np.zeros(len(A)), np.linalg.inv(A @ A.T))


def others(kind, noise):
    """The most steps and the worst difference of five sets at degree 4."""
    steps, worst = [], []
    for seed in (11, 21, 31, 41, 51):
        X, model = table(kind, noise, 2000, np.random.default_rng(seed))
        new = table(kind, noise, 5000, np.random.default_rng(seed + 1))[0]
        est = PseudoLikelihood(4).fit(X)
        steps += [count for *_, count in est._fit.trace]
        worst.append(est.score(new) - model.node_scores(new).mean())
    return f"{max(steps)}, {max(worst, key=abs):.4f}"


def main():
    """One row per kind, noise and degree."""
    rows = []
    for kind in ("copy", "sum"):
        for noise in (0.1, 0.03, 0.01, 1e-3, 1e-5, 0.0):
            for degree in (2, 4):
                if noise == 0:
                    X = table(kind, 1.0, 2000, np.random.default_rng(1))[0]
                    X[:, -1] = X[:, :-1].sum(axis=1)
                    new, truth = X, np.nan
                else:
                    X, model = table(kind, noise, 2000, np.random.default_rng(1))
                    new = table(kind, noise, 5000, np.random.default_rng(2))[0]
                    truth = model.node_scores(new).mean()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        est = PseudoLikelihood(degree).fit(X)
                        score, said = est.score(new), [n.kind for n in est.notes_]
                        steps = "; ".join(f"{what} {steps}" for what, _, steps in est._fit.trace)
                        outcome = (
                            f"{score:.3f}",
                            f"{truth:.3f}",
                            f"{score - truth:.4f}",
                            est.status_,
                            steps,
                            others(kind, noise) if degree > 2 else "",
                            ", ".join(said),
                        )
                    except ValueError as error:
                        outcome = ("", f"{truth:.3f}", "", "refused", "", "", str(error)[:90])
                rows.append((kind, noise, degree, *outcome))
    header = ("kind", "noise", "degree", "score", "truth", "difference", "status", "steps", "five more sets", "notes")
    write_table("near_copies", header, rows, __doc__)


if __name__ == "__main__":
    main()
