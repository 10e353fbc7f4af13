"""Hostile tables: no score above the generator's own, no draw outside of where the model says, no raw error.

n = 2,000 × 3, 2,000 new rows; degree 4 on the line, degree 4 and 8 on the bounded axis, all with the default ridge.
"above" is the model's score on new rows minus the generator's where that is known, nats per variable. "outside" are
draws that are not on the axes, or beyond the range of the data by more than a quarter of it, of 2,000.

    python benchmarks/hostile.py
"""

import time
import warnings

import numpy as np
from common import in_processes, write_table
from scipy.special import gammaln

from isodus import PseudoLikelihood
from isodus.fit.gaussian import Gaussian

CLUSTERS = 20.0 * np.random.default_rng(2).standard_normal((3, 3))
SETTINGS = ((4, "robust"), (4, "cdf"), (8, "cdf"))


def normal(rng, n):
    """Standard normal."""
    return rng.standard_normal((n, 3))


def conditional_t(X, df):
    """Mean log P(x_i | rest) of a spherical t, per variable."""
    p = X.shape[1]
    total = (X**2).sum(axis=1, keepdims=True)
    rest = total - X**2
    k = df + p - 1  # the conditional is a t with k degrees of freedom and scale² (df + rest)/k
    s2 = (df + rest) / k
    log = gammaln((k + 1) / 2) - gammaln(k / 2) - 0.5 * np.log(k * np.pi * s2)
    return float((log - (k + 1) / 2 * np.log1p(X**2 / s2 / k)).mean())


def t(df):
    """Spherical t."""
    return lambda rng, n: rng.standard_normal((n, 3)) / np.sqrt(rng.chisquare(df, (n, 1)) / df)


def spoiled(change):
    """Normal rows, changed."""

    def draw(rng, n):
        X = rng.standard_normal((n, 3))
        return change(X, rng)

    return draw


def put(X, row, column, value):
    """X with one value."""
    X[row, column] = value
    return X


def pile(X, rng):
    """30 % of the first column at 0."""
    X[rng.random(len(X)) < 0.3, 0] = 0.0
    return X


def ring(rng, n):
    """A noisy circle, and noise."""
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + 0.1 * rng.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rng.standard_normal(n)])


def spiral(rng, n):
    """A spiral, and noise."""
    s = rng.uniform(1, 9, n)
    return np.column_stack([s * np.cos(s), s * np.sin(s), s]) + 0.3 * rng.standard_normal((n, 3))


def gauss(X):
    """Score of the standard normal."""
    return float(Gaussian(np.zeros(3), np.eye(3)).node_scores(X).mean())


TABLES = {
    "Gaussian": (normal, gauss),
    "t3": (t(3.0), lambda X: conditional_t(X, 3.0)),
    "Cauchy": (t(1.0), lambda X: conditional_t(X, 1.0)),
    "lognormal": (lambda rng, n: np.exp(normal(rng, n)), lambda X: gauss(np.log(X)) - float(np.log(X).mean())),
    "one value at 1e6": (spoiled(lambda X, rng: put(X, 0, 0, 1e6)), None),
    "exact copy": (spoiled(lambda X, rng: np.column_stack([X[:, :2], X[:, 0]])), None),
    "copy, noise .01": (
        spoiled(lambda X, rng: np.column_stack([X[:, :2], X[:, 0] + 0.01 * X[:, 2]])),
        lambda X: float(Gaussian(np.zeros(3), np.linalg.inv(COPY @ COPY.T)).node_scores(X).mean()),
    ),
    "exact sum": (spoiled(lambda X, rng: np.column_stack([X[:, :2], X[:, 0] + X[:, 1]])), None),
    "rounded to .5": (spoiled(lambda X, rng: np.round(2 * X) / 2), None),
    "pile at 0": (spoiled(pile), None),
    "clusters 20 apart": (lambda rng, n: CLUSTERS[rng.integers(0, 3, n)] + normal(rng, n), None),
    "ring": (ring, None),
    "30 rows": (normal, gauss),
    "offset 1e6": (lambda rng, n: normal(rng, n) + 1e6, lambda X: gauss(X - 1e6)),
    "uniform": (lambda rng, n: rng.random((n, 3)), lambda X: 0.0),
    "square of a column": (spoiled(lambda X, rng: np.column_stack([X[:, :2], X[:, 0] ** 2 + 0.1 * X[:, 2]])), None),
    "scale 1e-6": (lambda rng, n: 1e-6 * normal(rng, n), lambda X: gauss(X * 1e6) + 6 * np.log(10)),
    # five more
    "t1": (lambda rng, n: rng.standard_cauchy((n, 3)), lambda X: float(-np.log(np.pi * (1 + X**2)).mean())),
    "spiral": (spiral, None),
    "exponential": (lambda rng, n: rng.exponential(size=(n, 3)), lambda X: float(-X.mean())),
    "99 % zeros": (spoiled(lambda X, rng: put(np.where(rng.random(X.shape) < 0.99, 0.0, X), 0, 0, 3.0)), None),
    "two scales": (
        lambda rng, n: normal(rng, n) * np.where(rng.random((n, 1)) < 0.5, 1e-3, 1.0),
        None,
    ),
}
COPY = np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 0.01]])


def tried(name, degree, scale):
    """What a fit gives."""
    draw, score = TABLES[name]
    rows = 30 if name == "30 rows" else 2000
    X, new = draw(np.random.default_rng([5, 1]), rows), draw(np.random.default_rng([5, 2]), 2000)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            est = PseudoLikelihood(degree, scale=scale, n_jobs=1).fit(X)
            found = est.score(new)
            D = np.asarray(est.model_.sample(2000, random_state=0))
        except ValueError as error:
            return "refused", f"{error}"[:100], "", "", time.perf_counter() - started
    room = 0.25 * np.ptp(X, axis=0)
    far = int(np.any((D < X.min(axis=0) - room) | (D > X.max(axis=0) + room), axis=1).sum())
    kinds = ", ".join(dict.fromkeys(note.kind for note in est.model_.notes)) or "none"
    above = "" if score is None else f"{found - score(new):.3f}"
    return est.status_, f"{found:.3f}", above, f"{far}; {kinds}", time.perf_counter() - started


def main():
    """One row per table and setting."""
    cases = [(name, *setting) for name in TABLES for setting in SETTINGS]
    found = in_processes(tried, cases)
    rows = [(*case, *outcome) for case, outcome in zip(cases, found, strict=True)]
    header = ("table", "degree", "scale", "status", "score or message", "above", "outside; notes", "seconds")
    write_table("hostile", header, rows, __doc__)


if __name__ == "__main__":
    main()
