"""What must not matter: the order of rows, the zero of a circle, threads, the units of columns.

Largest difference of θ in standard errors, of scores in nats per variable, and of test statistics relative to them.

    python benchmarks/invariance.py
"""

import warnings

import numpy as np
from common import write_table

from isodus import PseudoLikelihood, datasets


def difference(X, changed, degree=4, changed_options=None, **options):
    """Of θ in SE, of the score, of the statistics."""
    a = PseudoLikelihood(degree, **options).fit(X)
    b = PseudoLikelihood(degree, **options | (changed_options or {})).fit(changed)
    stderr = np.sqrt(np.diag(a.model_.fitted.tau_covariance()))
    tests = [est.model_.interactions().sort_index()["statistic"] for est in (a, b)]
    return (
        float(np.abs((a.model_.tau - b.model_.tau) / stderr).max()),
        abs(a.score(X) - b.score(changed)),
        float((np.abs(tests[0] - tests[1]) / tests[0]).max()) if len(tests[0]) else 0.0,
    )


def shuffled(X, seed=1):
    """The rows in another order."""
    return X[np.random.default_rng(seed).permutation(len(X))]


def main():
    """One row per case."""
    warnings.simplefilter("ignore")
    rows = []

    def add(name, goal, found, which=(True, True, True)):
        shown = [f"{value:.1e}" if use else "" for value, use in zip(found, which, strict=True)]
        rows.append((name, goal, *shown))

    sachs = datasets.sachs().to_numpy()
    for name, X, options in (
        ("Sachs, 2,000 rows × 6", sachs[::4, :6][:2000], {}),
        ("Sachs, bounded, 2,000 rows × 6", sachs[::4, :6][:2000], {"scale": "cdf"}),
        ("pair of the paper, 131,072 rows", datasets.paper_pair(131_072), {}),
        ("t3, 4 columns, 131,072 rows", np.random.default_rng(0).standard_t(3, (131_072, 4)), {}),
    ):
        add(f"rows in another order: {name}", "1e-3 SE", difference(X, shuffled(X), **options))
    rng = np.random.default_rng(4)
    angles = rng.vonmises(0.3, 1.5, (2000, 3))
    angles[:, 1] += angles[:, 0]
    for i in range(3):
        turned = angles.copy()
        turned[:, i] += 2.0
        found = difference(angles, turned, 3, support="circle", tol=1e-8)
        add(f"circle, column {i} turned", "1e-8; 1e-5", found, (False, True, True))
    X = datasets.double_wells(5000, 4, coupling=0.8, seed=1)
    add("one thread and two", "0", difference(X, X, changed_options={"n_jobs": 1}, n_jobs=2))
    header = ("what", "goal", "θ, SE", "score", "statistics")
    write_table("invariance", header, rows, __doc__)


if __name__ == "__main__":
    main()
