"""Measured tables: every degree converges, and the score in sample does not fall with the degree.

Half of the rows, one split; the other half is scored beside the Gaussian and a mixture of Gaussians by BIC (up to 10
components, full covariances). Scores are mean log P(x_i | rest) in units of each column's standard deviation.
Settings with fewer rows than local parameters are left out.

    python benchmarks/real_data.py [--only NAME]
"""

import argparse
import time
import warnings

import numpy as np
from common import in_processes, write_table
from common.models import MEASURED
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from isodus import PseudoLikelihood
from isodus.fit.gaussian import fitted_gaussian

SETTINGS = [("robust", 4), ("robust", 6)] + [("cdf", degree) for degree in range(2, 13, 2)]


def halves(name):
    """Rows to fit and rows to score, standardised by all rows."""
    X = MEASURED[name]()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[: len(X) // 2]], X[order[len(X) // 2 :]]


def mixture_score(X, new):
    """Mean log P(x_i | rest) of the mixture with the least BIC."""
    tried = [GaussianMixture(k, random_state=0, reg_covar=1e-5).fit(X) for k in range(1, 11)]
    best = min(tried, key=lambda m: m.bic(X))
    joint = logsumexp(_log_components(best, new, None) + np.log(best.weights_), axis=1)
    total = 0.0
    for i in range(X.shape[1]):
        rest = logsumexp(_log_components(best, new, i) + np.log(best.weights_), axis=1)
        total += np.mean(joint - rest)
    return total / X.shape[1]


def _log_components(mixture, X, without):
    keep = [j for j in range(X.shape[1]) if j != without]
    out = []
    for mean, covariance in zip(mixture.means_, mixture.covariances_, strict=True):
        S, d = covariance[np.ix_(keep, keep)], X[:, keep] - mean[keep]
        L = np.linalg.cholesky(S)
        z = np.linalg.solve(L, d.T)
        out.append(-0.5 * (z**2).sum(axis=0) - np.log(np.diag(L)).sum() - 0.5 * len(keep) * np.log(2 * np.pi))
    return np.stack(out, axis=1)


def tried(name, scale, degree):
    """One fit: status, scores in sample and on new rows."""
    X, new = halves(name)
    p = X.shape[1]
    local = degree + (p - 1) * degree * (degree - 1) // 2
    if len(X) < local:
        return "left out", np.nan, np.nan, len(X) / local, 0.0, ""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            est = PseudoLikelihood(degree, scale=scale, n_jobs=1).fit(X)
        except ValueError as error:
            return "refused", np.nan, np.nan, len(X) / local, 0.0, str(error)[:80]
        seconds = time.perf_counter() - started
        kinds = ", ".join(dict.fromkeys(note.kind for note in est.notes_ if note.severity == "warning"))
        return est.status_, est.score(X), est.score(new), len(X) / local, seconds, kinds


def main():
    """One row per table and setting."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=list(MEASURED))
    names = parser.parse_args().only or list(MEASURED)
    cases = [(name, *setting) for name in names for setting in SETTINGS]
    found = in_processes(tried, cases)
    rows = []
    for name in names:
        X, new = halves(name)
        gaussian = fitted_gaussian(X, np.ones(len(X)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mixture = mixture_score(X, new)
        rows.append((name, "Gaussian", "", "", "", f"{gaussian.node_scores(new).mean():.3f}", "", "", ""))
        rows.append((name, "mixture", "", "", "", f"{mixture:.3f}", "", "", ""))
        for case, (status, inside, outside, per, seconds, kinds) in zip(cases, found, strict=True):
            if case[0] == name and status != "left out":
                shown = f"{inside:.4f}", f"{outside:.3f}"
                rows.append((name, case[1], case[2], status, *shown, f"{per:.0f}", f"{seconds:.1f}", kinds))
    header = (
        "table",
        "scale",
        "degree",
        "status",
        "in sample",
        "new rows",
        "rows per local parameter",
        "s",
        "warnings",
    )
    write_table("real_data", header, rows, __doc__)


if __name__ == "__main__":
    main()
