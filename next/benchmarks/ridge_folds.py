"""Ridge("cv") and the default fit on new rows, beside a Gaussian's and the best strength of the path.

Degree 4, pairs, six splits per table. Measured tables: the rows not taken for the fit are scored, at most 5,000.
Invented tables: p = 6, as many rows as make 4, 8 or 20 per local parameter, 5,000 new rows. Scores are
mean log P(x_i | rest), nats per variable. The Gaussian has Ledoit's and Wolf's covariance below five rows per column.

    python benchmarks/ridge_folds.py [--splits 6] [--part measured|invented|few] [--scale robust|cdf]
"""

import argparse
import warnings

import numpy as np
from common import in_processes, mean_se, write_table
from common.models import FIVE_MORE, INVENTED, MEASURED, random_precision

from isodus import PseudoLikelihood, Ridge, datasets
from isodus.fit.gaussian import fitted_gaussian
from isodus.fit.held_out import node_scores
from isodus.fit.learn import free_start
from isodus.fit.newton import newton
from isodus.fit.path import STRENGTHS
from isodus.fit.penalties import ridge_matrix

ROWS = {"wine": (89,), "iris": (75,), "diabetes": (221,), "breast cancer, log": (284,), "Sachs": (60, 120, 250, 500)}
LOCAL = 34  # unknowns per node at degree 4 with p = 6
DENSITIES = (4, 8, 20)


def split(table, rows, seed):
    """Rows to fit and new rows."""
    if table in MEASURED:
        X = MEASURED[table]()
        order = np.random.default_rng([seed, 17]).permutation(len(X))
        return X[order[:rows]], X[order[rows : rows + 5000]]
    draw = (INVENTED | FIVE_MORE)[table]
    return draw(rows, 6, np.random.default_rng([seed, 18])), draw(5000, 6, np.random.default_rng([seed, 19]))


def compared(table, rows, seed, scale):
    """Scores on new rows: Gaussian, Ridge("cv"), the best of the path, the default; and whether the default warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, new = split(table, rows, seed)
        gaussian = float(fitted_gaussian(X, np.ones(len(X))).node_scores(new).mean())
        cv = PseudoLikelihood(4, penalty=Ridge("cv"), scale=scale, n_jobs=1).fit(X)
        chosen, best = cv.score(new), best_strength(cv, new)
        try:
            est = PseudoLikelihood(4, scale=scale, n_jobs=1).fit(X)
            default, warned = est.score(new), any(note.kind == "held out" for note in est.notes_)
        except ValueError:  # refused by name
            default, warned = -np.inf, True
    return gaussian, chosen, max(best, chosen, gaussian), default, warned


def best_strength(est, new):
    """The best score on new rows of any strength on both paths."""
    f = est._objective
    rest, best = est.objective(new), -np.inf
    for free in ("quadratic", "own"):
        tau = free_start(f, free)[0]
        D = f.diagonal(f.terms.T @ tau)
        for strength in STRENGTHS:
            tau = newton(f, tau, ridge_matrix(f.terms, D, f.n, strength, free), tol=0.1, max_iter=60).tau
            score = float(node_scores(rest, tau).mean())
            best = max(best, score if np.isfinite(score) else -np.inf)
    return best


def few(p, n, degree, seed):
    """Gaussian data, a third of the pairs coupled: Ridge("cv") minus Ledoit's and Wolf's Gaussian on new rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        P = random_precision(p, seed, share=1 / 3)
        X = datasets.gaussian(n, P, seed=np.random.default_rng([seed, 20]))
        new = datasets.gaussian(5000, P, seed=np.random.default_rng([seed, 21]))
        est = PseudoLikelihood(degree, penalty=Ridge("cv"), n_jobs=1).fit(X)
        from sklearn.covariance import ledoit_wolf

        from isodus.fit.gaussian import Gaussian

        reference = Gaussian(X.mean(axis=0), np.linalg.inv(ledoit_wolf(X)[0])).node_scores(new).mean()
        return est.score(new) - float(reference), est.path_.best.free


def tables(part):
    """Names and numbers of rows."""
    if part == "measured":
        return [(name, rows) for name, sizes in ROWS.items() for rows in sizes]
    return [(name, per * LOCAL) for name in INVENTED | FIVE_MORE for per in DENSITIES]


def main():
    """One row per table and size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--part", choices=["measured", "invented", "few"], nargs="+")
    parser.add_argument("--scale", choices=["robust", "cdf"], default="robust")
    args = parser.parse_args()
    parts = args.part or ["measured", "invented", "few"]
    suffix = "_cdf" if args.scale == "cdf" else ""
    about = f"{__doc__.strip()}\n\nscale={args.scale!r}."
    cases = [case for part in parts if part != "few" for case in tables(part)]
    if cases:
        splits = range(args.first, args.first + args.splits)
        found = in_processes(compared, [(*case, seed, args.scale) for case in cases for seed in splits])
        found = np.array(found).reshape(len(cases), args.splits, 5)
        rows = [row_of(*case, found[k]) for k, case in enumerate(cases)]
        flat = found.reshape(-1, 5)
        below = flat[:, 0] - flat[:, 3]
        worse, better = below > 0.05, below < -0.05
        summary = (
            f"Mean regret against the best strength {np.mean(flat[:, 2] - flat[:, 1]):.4f}. The default fit: "
            f"{int(flat[worse, 4].sum())} of {int(worse.sum())} splits that are below the Gaussian by more than .05 "
            f"are warned of, and {int(flat[better, 4].sum())} of {int(better.sum())} that are better by .05."
        )
        header = (
            "table",
            "rows",
            "Gaussian",
            "Ridge('cv') − Gaussian",
            "worst split",
            "regret",
            "default − Gaussian",
            "warned",
        )
        write_table(f"ridge_folds{suffix}", header, rows, f"{about}\n\n{summary}")
    if "few" in parts:
        rows = []
        for p, n, degree in ((60, 90, 2), (60, 200, 2), (20, 40, 2), (20, 80, 2), (20, 40, 4), (20, 80, 4)):
            each = in_processes(few, [(p, n, degree, seed) for seed in range(args.splits)])
            mean, se = mean_se([row[0] for row in each])
            rows.append((p, n, degree, f"{mean:.3f} ± {se:.3f}", f"{min(row[0] for row in each):.3f}"))
        text = "Gaussian data, a third of the pairs coupled: Ridge('cv') minus the Gaussian of Ledoit and Wolf."
        write_table("few_rows", ("p", "n", "degree", "mean", "worst"), rows, f"{text} {args.splits} sets.")


def row_of(table, rows, found):
    """Means and standard errors over splits."""
    gain, se = mean_se(found[:, 1] - found[:, 0])
    with np.errstate(invalid="ignore"):
        default = np.mean(found[:, 3] - found[:, 0])
    worst, regret = np.min(found[:, 1] - found[:, 0]), np.mean(found[:, 2] - found[:, 1])
    fails = "" if gain > -0.05 - 2 * se else " (below the goal)"
    shown = f"{gain:.3f} ± {se:.3f}{fails}"
    return (table, rows, f"{np.mean(found[:, 0]):.3f}", shown, f"{worst:.3f}", f"{regret:.3f}", f"{default:.3f}",
            f"{int(found[:, 4].sum())} of {len(found)}")  # fmt: skip


if __name__ == "__main__":
    main()
