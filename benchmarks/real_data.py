"""How well do the estimators predict real data they have not seen?

Degree 4, pairs. Each data set is split into halves at random, five times; the estimators learn from one half, and
−log P(x_i | rest), averaged over variables and over the samples of the other half, is what counts (in standardised
units: the log of each variable's scale on all samples is taken off, so that figures are comparable). Lower is better.
Every fit that warned, or whose variables did not all converge, is counted as such.

    python benchmarks/real_data.py [--splits 5] [--only sachs] [--jobs 2]
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_sample_image, load_wine

from isodus import ISODUS, PseudoLikelihood, ScoreMatching
from isodus.datasets import load_sachs


def pixels(name, step=16):
    """Every 16th pixel of a sample image, jittered within its rounding."""
    rgb = load_sample_image(name).reshape(-1, 3)[::step].astype(float)
    return rgb + np.random.default_rng(0).uniform(-0.5, 0.5, rgb.shape)


def breast_cancer():
    """Logarithms; columns with zeros, which have none, are left out."""
    X = load_breast_cancer().data
    return np.log(X[:, (X > 0).all(axis=0)])


DATA = {
    "sachs": lambda: load_sachs().to_numpy(),
    "wine": lambda: load_wine().data,
    "breast cancer, log": breast_cancer,
    "diabetes": lambda: np.delete(load_diabetes().data, 1, axis=1),  # without sex, which has two values
    "china.jpg": lambda: pixels("china.jpg"),
    "flower.jpg": lambda: pixels("flower.jpg"),
}

ESTIMATORS = {
    "Gaussian": lambda jobs: PseudoLikelihood(degree=2, n_jobs=jobs),
    "ISODUS": lambda jobs: ISODUS(n_jobs=jobs),
    "ISODUS, select=True": lambda jobs: ISODUS(select=True, n_jobs=jobs),
    "pseudo-likelihood": lambda jobs: PseudoLikelihood(n_jobs=jobs),
    "score matching": lambda jobs: ScoreMatching(n_jobs=jobs),
    "paper's settings": lambda jobs: ISODUS(
        nu=2.0, center=False, scale=False, refine=0, consensus="geometric", integrable="warn", n_jobs=jobs
    ),
}


def halves(X, seed):
    """What to learn from, what is held out, and the mean log scale of the variables."""
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order[: len(X) // 2]], X[order[len(X) // 2 :]], np.mean(np.log(np.std(X, axis=0)))


def split_scores(X, seed, jobs):
    """For each estimator −log P(x_i | rest) a variable on held-out samples, seconds, and what was said."""
    train, held_out, unit = halves(X, seed)
    rows = {}
    for name, make in ESTIMATORS.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            started = time.perf_counter()
            try:
                estimator = make(jobs).fit(train)
            except ValueError as error:
                rows[name] = (np.nan, 0.0, True, [str(error)[:60]])
                continue
            seconds = time.perf_counter() - started
            bad = any(word != "converged" for word in estimator.status_) or len(caught) > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows[name] = (-estimator.score(held_out) - unit, seconds, bad, estimator.notes_)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    worst_gap, worst_gaussian = -np.inf, -np.inf
    for title, load in DATA.items():
        if options.only not in title:
            continue
        X = load()
        results = [split_scores(X, seed, options.jobs) for seed in range(options.splits)]
        print(f"\n{title}: {X.shape[0]:,} samples, {X.shape[1]} variables; mean over {options.splits} splits")
        for name in ESTIMATORS:
            score, seconds, bad, notes = zip(*(r[name] for r in results), strict=True)
            error = (
                np.std(score, ddof=1) / np.sqrt(len(score)) if len(score) > 1 and np.all(np.isfinite(score)) else np.nan
            )
            said = f"{sum(bad)} of {len(bad)} with a warning" if any(bad) else "no warning"
            print(
                f"  {name:<20} {np.mean(score):>12.4g} ± {error:<8.2g} {np.mean(seconds):7.2f} s   {said}"
                + (f"; {notes[0][0]}" if notes[0] else "")
            )
        ours = np.mean([r["ISODUS"][0] for r in results])
        worst_gap = max(worst_gap, ours - np.mean([r["pseudo-likelihood"][0] for r in results]))
        worst_gaussian = max(worst_gaussian, ours - np.mean([r["Gaussian"][0] for r in results]))
    print(f"\nISODUS above pseudo-likelihood by at most {worst_gap:.4f} (wanted: at most 0.01)")
    print(f"ISODUS above the Gaussian by at most {worst_gaussian:.4f} (wanted: at most 0.01)")


if __name__ == "__main__":
    main()
